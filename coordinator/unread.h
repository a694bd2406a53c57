#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coordinator/property_rules.h"
#include "schema/result.h"

namespace muster {

/// Properties of a type that are not to be read back: write-only and secret ones. Where a plugin gives them all the
/// same, they are dropped before anything is kept or told of them.
class UnreadProperties {
 public:
  UnreadProperties() = default;
  explicit UnreadProperties(PropertyRule rules);

  /// Whether an object, as text, may hold some. Costs nothing for types that have none.
  [[nodiscard]] bool may_be_in(std::string_view object) const;
  /// The object without them, in canonical form; and, in `dropped`, JSON pointers of what it held.
  /// errors   as canonical_object()
  [[nodiscard]] Result<JsonText> drop_from(std::string_view object, std::vector<std::string>& dropped) const;

 private:
  PropertyRule rules_;
  bool any_name_ = false;
  std::vector<std::string> names_;  // in quotes
};

}  // namespace muster
