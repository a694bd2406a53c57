#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "schema/messages.h"

namespace muster {

/// What the JSON Schema of a type says of one property, as far as it matters for comparing what is declared with what
/// is there. A property that the schema does not know has a rule with nothing set.
struct PropertyRule {
  bool create_only = false;       // another value takes another object
  bool read_only = false;         // the system's own; never declared
  bool write_only = false;        // never read back; an array of what is never read back is so as a whole
  bool holds_write_only = false;  // it, or something in it, is write-only
  bool secret = false;
  bool unordered = false;                   // an array whose order means nothing
  bool closed = false;                      // of a type: it has no other properties than these
  bool json_text = false;                   // a string that holds JSON: compared as JSON
  std::string key;                          // of an array of objects: the property that tells them apart
  std::optional<nlohmann::json> otherwise;  // what the system takes where nothing is declared
  std::map<std::string, PropertyRule, std::less<>> properties;
  std::shared_ptr<const PropertyRule> others;  // of properties that are not named
  std::shared_ptr<const PropertyRule> items;   // of an array's elements
  std::vector<std::string> identity;  // of a type: properties that tell its objects apart; empty: their ids alone
  bool create_first = false;          // of a type: what replaces is made before the old one goes, where nobody says

  [[nodiscard]] const PropertyRule& of(std::string_view property) const;
  [[nodiscard]] const PropertyRule& of_items() const;
};

/// The rule of what a JSON pointer names in a document of the type; elements of an array have one rule.
const PropertyRule& rule_at(const PropertyRule& rules, const std::string& pointer);

/// Whether what a JSON pointer names is kept from being read and stored: it, or something around it, is secret or
/// write-only.
bool is_confidential(const PropertyRule& rules, const std::string& pointer);

/// Whether a JSON pointer names what another one does, or something in it.
bool within(const std::string& pointer, const std::string& around);

/// Where a document holds write-only values that are set: JSON pointers, in the document's order.
std::vector<std::string> write_only_in(const PropertyRule& rules, const nlohmann::json& document);

/// A value of the rule with null for all that is write-only in it: to be kept and shown.
nlohmann::json without_write_only(const PropertyRule& rule, nlohmann::json value);

/// Rules of a type, from its schema, wherever that says something of a property: `readOnly`, `writeOnly`, `default`,
/// `contentMediaType: application/json` and x-muster-{identity,replace,secret,create-only,unordered,key,
/// default} (schema/manifest.capnp). What a schema refers to itself for again and again, and marks secrets somewhere,
/// counts as write-only in the end. errors   kMalformed: no JSON object, or nested too deep
Result<PropertyRule> property_rules(const JsonText& schema);

}  // namespace muster
