#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/jsonpath.h"

namespace muster::testing {

/// The values that a selector gives for a document, as one JSON array; throws where either is invalid.
inline nlohmann::json values(std::string_view selector, std::string_view document) {
  JsonDocument parsed;
  parsed.parse(document).value();
  const auto matches = JsonPath::parse(selector).value().find(parsed);
  nlohmann::json out = nlohmann::json::array();
  for (const Match& match : matches.value()) out.push_back(nlohmann::json::parse(match.value));
  return out;
}

inline std::vector<std::string> paths(std::string_view selector, std::string_view document) {
  JsonDocument parsed;
  parsed.parse(document).value();
  const auto matches = JsonPath::parse(selector).value().find(parsed);
  std::vector<std::string> out;
  for (const Match& match : matches.value()) out.push_back(match.path);
  return out;
}

inline bool valid(std::string_view selector) {
  return JsonPath::parse(selector).has_value();
}

/// The message of an invalid selector, empty for a valid one.
inline std::string mistake(std::string_view selector) {
  const auto path = JsonPath::parse(selector);
  return path ? "" : path.error().message;
}

}  // namespace muster::testing
