#include "coordinator/property_rules.h"

#include <algorithm>

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 32;

bool flag(const Json& schema, const char* name) {
  const auto it = schema.find(name);
  return it != schema.end() && it->is_boolean() && it->get<bool>();
}

std::string text(const Json& schema, const char* name) {
  const auto it = schema.find(name);
  return it != schema.end() && it->is_string() ? it->get<std::string>() : std::string();
}

PropertyRule rule_of(const Json& schema, int depth) {
  PropertyRule rule;
  if (!schema.is_object() || depth > kMaxDepth) return rule;
  rule.create_only = flag(schema, "x-muster-create-only");
  rule.read_only = flag(schema, "readOnly");
  rule.secret = flag(schema, "x-muster-secret");
  rule.write_only = flag(schema, "writeOnly") || rule.secret;  // what is read of a secret is not kept
  rule.unordered = flag(schema, "x-muster-unordered") || flag(schema, "uniqueItems");
  rule.json_text = text(schema, "contentMediaType") == "application/json";
  rule.key = text(schema, "x-muster-key");
  for (const auto* name : {"x-muster-default", "default"}) {
    if (const auto it = schema.find(name); it != schema.end() && !rule.otherwise) rule.otherwise = *it;
  }
  if (const auto it = schema.find("properties"); it != schema.end() && it->is_object()) {
    for (const auto& [name, property] : it->items()) rule.properties.emplace(name, rule_of(property, depth + 1));
  }
  if (const auto it = schema.find("items"); it != schema.end()) {
    rule.items = std::make_shared<const PropertyRule>(rule_of(*it, depth + 1));
    rule.write_only = rule.write_only || rule.items->write_only;
  }
  rule.holds_write_only =
      rule.write_only || (rule.items && rule.items->holds_write_only) ||
      std::ranges::any_of(rule.properties, [](const auto& each) { return each.second.holds_write_only; });
  return rule;
}

const PropertyRule& no_rule() {
  static const PropertyRule kNone;
  return kNone;
}

void collect_write_only(const PropertyRule& rule, const Json& value, const Json::json_pointer& at,
                        std::vector<std::string>& found) {
  if (!rule.holds_write_only || value.is_null()) return;
  if (rule.write_only) {
    found.push_back(at.to_string());
  } else if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) collect_write_only(rule.of(name), inner, at / name, found);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect_write_only(rule.of_items(), value[i], at / i, found);
  }
}

}  // namespace

const PropertyRule& PropertyRule::of(std::string_view property) const {
  const auto it = properties.find(property);
  return it != properties.end() ? it->second : no_rule();
}

const PropertyRule& PropertyRule::of_items() const {
  return items ? *items : no_rule();
}

const PropertyRule& rule_at(const PropertyRule& rules, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  if (at.empty()) return rules;
  const auto& around = rule_at(rules, at.parent_pointer().to_string());
  return around.items ? around.of_items() : around.of(at.back());
}

bool is_confidential(const PropertyRule& rules, const std::string& pointer) {
  for (Json::json_pointer at(pointer); !at.empty(); at.pop_back()) {
    const auto& rule = rule_at(rules, at.to_string());
    if (rule.secret || rule.write_only) return true;
  }
  return false;
}

bool within(const std::string& pointer, const std::string& around) {
  return pointer.starts_with(around) && (pointer.size() == around.size() || pointer[around.size()] == '/');
}

std::vector<std::string> write_only_in(const PropertyRule& rules, const Json& document) {
  std::vector<std::string> found;
  collect_write_only(rules, document, Json::json_pointer(), found);
  return found;
}

Json without_write_only(const PropertyRule& rule, Json value) {
  for (const auto& pointer : write_only_in(rule, value)) value[Json::json_pointer(pointer)] = nullptr;
  return value;
}

Result<PropertyRule> property_rules(const JsonText& schema) {
  const auto parsed = Json::parse(schema, nullptr, false);
  if (!parsed.is_object()) return Error{Errc::kMalformed, "the schema is no JSON object", {}, 0};
  auto rules = rule_of(parsed, 0);
  rules.closed =
      parsed.value("additionalProperties", Json(true)) == Json(false) && !parsed.contains("patternProperties");
  if (const auto it = parsed.find("x-muster-identity"); it != parsed.end() && it->is_array()) {
    for (const auto& property : *it) {
      if (property.is_string()) rules.identity.push_back(property.get<std::string>());
    }
  }
  return rules;
}

}  // namespace muster
