#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/cli/verbs.h"
#include "schema/messages.h"

namespace muster::cli {

/// What a user wants, read and in the form in which it travels.
struct Wanted {
  std::vector<JsonText> stacks;  // {"stack","resources":[...]}, in parts that fit a request
  std::set<std::string> names;   // of the stacks
  std::vector<nlohmann::json> targets;
  Json basis;  // of a saved plan: what it was made from; null otherwise
  std::string mode;
  std::vector<std::string> only, exclude;
};

/// A plan that save_plan() wrote; nullopt: what is wrong was reported.
std::optional<Wanted> read_plan(Screen& screen, const std::string& file);

/// Readable for the owner alone: declared values may be nobody else's business. Replaces an earlier plan as a whole,
/// and nothing else. returns   false: why it cannot be written was reported
bool save_plan(Screen& screen, const std::string& file, const Wanted& wanted, const Json& plan);

/// Where a plan differs from the one that was saved; empty: nowhere.
std::vector<std::string> moved(const Json& basis, const Json& plan);

/// STACK/NAME of a step.
std::string place_of(const Json& step);

}  // namespace muster::cli
