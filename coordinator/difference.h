#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/property_rules.h"

namespace muster {

/// What would have to change in an object for it to be as declared.
struct Difference {
  nlohmann::json patch = nlohmann::json::array();  // RFC 6902 on what is there; empty: nothing to do
  std::vector<std::string> create_only;            // pointers of what differs and cannot be changed in place
};

/// Compares what is there with what is declared. Only declared fields count; a declared null stands for absence;
/// read-only and write-only properties are left alone; a default of the system counts as there; arrays compare as the
/// rules say (as sets, by key, or in order); numbers by value, strings that hold JSON as JSON.
/// `left_out`   pointers into `declared` whose values are not known yet: not compared
Difference compare(const PropertyRule& rules, const nlohmann::json& there, const nlohmann::json& declared,
                   const std::vector<std::string>& left_out = {});

/// The whole object as it is wanted: what is there, less what only the system sets, with what is declared put over it.
nlohmann::json merge_declared(const PropertyRule& rules, const nlohmann::json& there, const nlohmann::json& declared);

}  // namespace muster
