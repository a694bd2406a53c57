#pragma once

#include <string>
#include <vector>

#include "coordinator/plan.h"

namespace muster::cli::conformance {

/// What the planner has to say of one object.
struct Planned {
  StepAction action = StepAction::kUnchanged;
  JsonText patch = "[]";
  std::vector<std::string> mistakes;
};
std::string to_string(const Planned& planned);

/// Asks it about an object that is there, when `declared` is declared for it.
/// `before`   what it was made or last changed by; nullptr: it is nobody's yet, and named by its id
Planned plan(const TypeDescriptor& type, const Item& there, const Document& declared, const Document* before);

/// Places of the document's secrets.
std::vector<std::string> pointers_of(const Document& document);

}  // namespace muster::cli::conformance
