#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "coordinator/declaration.h"
#include "coordinator/property_rules.h"
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
  bool create_first = false;          // where a resource does not say how it is replaced

  /// Of a schema that says nothing of use, what can be had of it. `type` outlives the rules.
  static TypeRules of(const TypeDescriptor& type);
  [[nodiscard]] bool can(Operation operation) const;
  /// What tells an object of the type from others; empty where something of it is missing.
  [[nodiscard]] std::string identity_of(const nlohmann::json& properties) const;
};

/// Calls `mistake` with each thing that a resource may not say of its properties whatever is there, and the JSON
/// pointer of where it says so: what the system sets, and secrets that would be kept or read back in the clear.
void check_declared(const DeclaredResource& resource, const TypeRules& rules,
                    const std::function<void(std::string message, std::string pointer)>& mistake);

}  // namespace muster
