#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/property_rules.h"

namespace muster {

/// What would have to change in an object for it to be as declared.
struct Difference {
  nlohmann::json patch = nlohmann::json::array();  // RFC 6902 on what is there; empty: nothing to do
  std::vector<std::string> create_only;            // pointers of what differs and cannot be changed in place

  /// Adds that what `pointer` names changes, though nothing could be compared: all of `whole`, which it is or lies in,
  /// is put as it is declared, less what is write-only in it.
  void put_anew(const PropertyRule& rules, const nlohmann::json& declared, const std::string& pointer,
                const std::string& whole);
};

/// Compares what is there with what is declared. Only declared fields count; a declared null stands for absence;
/// read-only and write-only properties are left alone; a default of the system counts as there; arrays compare as the
/// rules say (as sets, by key, or in order); numbers by value, strings that hold JSON as JSON.
/// `left_out`   pointers into `declared` whose values are not known yet: not compared
Difference compare(const PropertyRule& rules, const nlohmann::json& there, const nlohmann::json& declared,
                   const std::vector<std::string>& left_out = {});

/// Whether another value of what a pointer names takes another object: it, or something around it, is create-only.
bool is_create_only(const PropertyRule& rules, const std::string& pointer);

/// The outermost array that holds what a pointer names, or else the pointer.
std::string outermost_array(const nlohmann::json& document, const std::string& pointer);

/// The whole object as it is wanted: what is there, less what only the system sets, with what is declared put over it.
nlohmann::json merge_declared(const PropertyRule& rules, const nlohmann::json& there, const nlohmann::json& declared);

/// Makes of an object what a change will make of it. What the change leaves alone stays as the system spells it, which
/// may be in another way than it is declared.
/// `patch`     the JSON Patch that compare() found
/// `unknown`   pointers into `declared` whose values are not known yet: null
void put_declared(const PropertyRule& rules, nlohmann::json& object, const nlohmann::json& declared,
                  std::string_view patch, const std::vector<std::string>& unknown);

}  // namespace muster
