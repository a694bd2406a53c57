#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/plugin_test/bench.h"

namespace muster::cli::conformance {

/// An object, and the scope in which others are made below it.
struct Below {
  Object parent;
  Scope scope;
};

/// What a type's checks work on.
struct Case {
  Bench& bench;
  const Fixture& fixture;
  const TypeDescriptor& type;
  const Scope& scope;
  [[nodiscard]] bool can(Operation operation) const;
  void need(Operation operation) const;  // throws CheckSkipped
  [[nodiscard]] std::vector<std::string> difference(const Object& object) const;
  [[nodiscard]] Below other_parent() const;  // a second one, made for it; throws CheckSkipped where there can be none
};

/// One row of the report. The function returns what was seen; it throws CheckFailed, CheckSkipped and Stopped.
struct Check {
  std::string name;
  std::function<std::string(const Case&)> run;
};

// Each makes its own objects and deletes them; what it leaves when it fails is deleted after it.

// life.cpp: one object from its creation to its end
std::string check_create(const Case& it);
std::string check_plan(const Case& it);
std::string check_update(const Case& it);
std::string check_create_only(const Case& it);
std::string check_delete(const Case& it);
std::string check_precondition(const Case& it);
std::string check_edit(const Case& it);
std::string check_remove(const Case& it);
std::string check_write_only(const Case& it);

// lists.cpp: many objects, parents and systems
std::string check_unknown(const Case& it);
std::string check_list(const Case& it);
std::string check_children(const Case& it);
std::string check_systems(const Case& it);
std::string check_many(const Case& it);

/// Of a root type: what is there before anything is made.
std::string check_inventory(Bench& bench, const TypeDescriptor& type);

// trouble.cpp: what goes wrong
std::string check_same_key(const Case& it);
std::string check_killed(const Case& it);
std::string check_claim(const Case& it);
std::string check_cancel(const Case& it);
std::string check_wrong_type(const Case& it);
std::string check_missing_parent(const Case& it);

// plugin.cpp: the plugin as a whole
bool is_root(const TypeDescriptor& type);  // objects of it are listed below nothing
std::string check_manifest(Bench& bench);
std::string check_examples(const TypeDescriptor& type);
std::string check_inspect(Bench& bench);
/// `bad`   a system that cannot be logged in to; or none
std::string check_credentials(Bench& bench, const std::vector<System>& bad);

/// Those of a type, in the order in which they are run.
const std::vector<Check>& type_checks();

/// A document with another one's values over it.
Document merged(const Document& base, const Document& over);

}  // namespace muster::cli::conformance
