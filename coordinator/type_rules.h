#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/declaration.h"
#include "coordinator/property_rules.h"
#include "coordinator/references.h"
#include "coordinator/schema_check.h"
#include "coordinator/store.h"
#include "schema/messages.h"

namespace muster {

/// What planning needs of a type, parsed once.
struct TypeRules {
  const TypeDescriptor* type = nullptr;
  PropertyRule rules;
  Hash128 schema_hash;
  std::optional<SchemaCheck> schema;  // none: the type's cannot be used

  /// Of a schema that says nothing of use, what can be had of it. `type` outlives the rules.
  static TypeRules of(const TypeDescriptor& type);
  [[nodiscard]] bool can(Operation operation) const;
  /// What tells an object of the type from others; empty where something of it is missing.
  [[nodiscard]] std::string identity_of(const nlohmann::json& properties) const;
};

/// Why nobody could read back what has these properties: without what is write-only they are too large. nullopt: they
/// are not.
std::optional<std::string> too_large(const PropertyRule& rules, const JsonText& properties);

using Mistake = std::function<void(std::string message, std::string pointer)>;

/// Calls `mistake` with each thing that a resource may not say of its properties whatever is there, and the JSON
/// pointer of where it says so: what the system sets, and secrets that would be kept or read back in the clear.
void check_declared(const DeclaredResource& resource, const TypeRules& rules, const Mistake& mistake);

/// Calls `mistake` with each thing that the type's schema does not take, or is too large, and `unchecked` with what it
/// could not be asked about.
/// `declared`   the properties, with what is known of references put in
/// `unknown`    pointers into them of what is not known yet
/// `example`    of what they refer to; none: that stays unasked
void check_schema(const DeclaredResource& resource, const TypeRules& rules, nlohmann::json declared,
                  const std::vector<std::string>& unknown, const ReferenceLookup& example, const Mistake& mistake,
                  const Mistake& unchecked);

}  // namespace muster
