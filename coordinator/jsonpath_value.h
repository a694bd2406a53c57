#pragma once

#include <simdjson.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "coordinator/jsonpath.h"

namespace muster {

// Accessors; the caller has looked at type() before.

inline simdjson::dom::array as_array(const JsonNode& node) {
  return node.get_array().value_unsafe();
}
inline simdjson::dom::object as_object(const JsonNode& node) {
  return node.get_object().value_unsafe();
}
inline std::string_view as_string(const JsonNode& node) {
  return node.get_string().value_unsafe();
}
inline bool as_bool(const JsonNode& node) {
  return node.get_bool().value_unsafe();
}
/// Every int64, uint64 and double is exact in it.
long double as_number(const JsonNode& node);

inline bool is_container(const JsonNode& node) {
  const auto type = node.type();
  return type == simdjson::dom::element_type::ARRAY || type == simdjson::dom::element_type::OBJECT;
}
inline bool is_number(const JsonNode& node) {
  const auto type = node.type();
  return type == simdjson::dom::element_type::INT64 || type == simdjson::dom::element_type::UINT64 ||
         type == simdjson::dom::element_type::DOUBLE;
}

/// Member of an object; none for other values.
std::optional<JsonNode> member(const JsonNode& node, std::string_view name);
/// Elements of an array or members of an object; 0 for other values.
std::size_t child_count(const JsonNode& node);
/// Strings as they are, numbers and booleans as JSON writes them; none for other values.
std::optional<std::string> scalar_text(const JsonNode& node);
/// Equality as RFC 9535 compares: numbers by value, objects whatever the order of their members. False when the budget
/// ends on the way.
bool json_equal(const JsonNode& a, const JsonNode& b, Budget& budget);

}  // namespace muster
