#include "declared.h"

#include <algorithm>
#include <regex>

#include "config.h"

namespace muster::nats {
namespace {

bool is_of(const Json& type, const Json& value) {
  return type == "integer" ? value.is_number_integer() : type == value.type_name();
}

Result<void> check_inside(const std::string& name, const Json& rules, const Json& value);

Result<void> check(const std::string& name, const Json& rules, const Json& value) {
  const auto wrong = [&](const std::string& what) { return invalid_request(name + ": " + what); };
  if (value.is_null()) {  // servers leave out objects that are not there, and put values of their own for other things
    const bool can_be_absent = rules.contains("default") || rules.value("type", "") == "object";
    return can_be_absent ? Result<void>() : wrong("cannot be absent");
  }
  if (rules.contains("type") && !is_of(rules["type"], value)) {
    return wrong("must be of type " + rules["type"].get<std::string>());
  }
  if (rules.contains("enum") && std::ranges::find(rules["enum"], value) == rules["enum"].end()) {
    return wrong("must be one of " + rules["enum"].dump());
  }
  if (rules.contains("minimum") && value < rules["minimum"])
    return wrong("must be at least " + rules["minimum"].dump());
  // What the server would take for another value, which the declaration then never equals.
  if (rules.contains("not") && value == rules["not"]["const"]) return wrong("must not be " + value.dump());
  if (rules.contains("pattern")) {
    const auto& text = value.get_ref<const std::string&>();
    const auto& pattern = rules["pattern"].get_ref<const std::string&>();
    const bool is_name = !rules.contains("format");
    if (is_name && !valid_name(text)) return wrong("must match " + pattern);
    if (!std::regex_search(text, std::regex(pattern))) return wrong("must match " + pattern);
  }
  if (value.size() < rules.value("minItems", std::size_t{0})) return wrong("must not be empty");
  return check_inside(name, rules, value);
}

/// What is known of the inside; the rest is the server's affair.
Result<void> check_inside(const std::string& name, const Json& rules, const Json& value) {
  if (value.is_object() && rules.contains("properties")) {
    for (const auto& [inner, known] : rules["properties"].items()) {
      const auto said = value.find(inner);
      if (said == value.end() || said->is_null()) continue;
      if (auto good = check(name + "." + inner, known, *said); !good) return good;
    }
  }
  if (value.is_array() && rules.contains("items")) {
    for (const auto& element : value) {
      if (auto good = check(name + "[]", rules["items"], element); !good) return good;
    }
  }
  return {};
}

/// Whether the server kept it: of objects what is declared, arrays as a whole.
bool kept(const Json& rules, const Json& declared, const Json& there) {
  const auto otherwise = rules.value("default", Json());
  if (declared.is_null()) return there.is_null() || there == otherwise;
  if (there.is_null()) return declared == otherwise;
  if (declared.is_object() && there.is_object()) {
    const auto known = rules.value("properties", Json::object());
    return std::ranges::all_of(declared.items(), [&](const auto& inner) {
      return kept(known.value(inner.key(), Json::object()), inner.value(), there.value(inner.key(), Json()));
    });
  }
  if (declared.is_array() && there.is_array()) {
    const auto items = rules.value("items", Json::object());
    const auto same = [&](const Json& a, const Json& b) { return kept(items, a, b); };
    return rules.value("x-muster-unordered", false) ? std::ranges::is_permutation(declared, there, same)
                                                    : std::ranges::equal(declared, there, same);
  }
  return declared == there;
}

}  // namespace

Result<Json> checked_declaration(const Json& schema, const Json& declared) {
  Json whole = Json::object();
  for (const auto& [name, value] : declared.items()) {
    const auto rules = schema["properties"].find(name);
    if (rules == schema["properties"].end()) return invalid_request(name + ": is no property");
    if (rules->value("readOnly", false)) return invalid_request(name + ": is set by the server");
    if (auto good = check(name, *rules, value); !good) return good.error();
    if (!value.is_null()) whole[name] = value;
  }
  for (const auto& name : schema["required"]) {
    if (!whole.contains(name)) return invalid_request(name.get<std::string>() + ": is missing");
  }
  return whole;
}

Result<Json> changes_of(const Json& schema, const Json& prior, const Json& desired) {
  Json changes = Json::object();
  for (const auto& [name, rules] : schema["properties"].items()) {
    if (rules.value("readOnly", false)) continue;
    const auto before = prior.value(name, Json()), after = desired.value(name, Json());
    if (kept(rules, after, before) && kept(rules, before, after)) continue;
    if (rules.value("x-muster-create-only", false)) return invalid_request(name + ": cannot be changed in place");
    if (auto good = check(name, rules, after); !good) return good.error();
    changes[name] = after;
  }
  for (const auto& [name, value] : desired.items()) {
    const bool told = schema["properties"].contains(name) || prior.value(name, Json()) == value;
    if (!told) return invalid_request(name + ": is no property");
  }
  return changes;
}

std::string not_kept(const Json& schema, const Json& declared, const Json& there) {
  std::string names;
  for (const auto& [name, value] : declared.items()) {
    if (kept(schema["properties"][name], value, there.value(name, Json()))) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace muster::nats
