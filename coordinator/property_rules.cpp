#include "coordinator/property_rules.h"

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
  rule.write_only = flag(schema, "writeOnly");
  rule.secret = flag(schema, "x-muster-secret");
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
  }
  return rule;
}

const PropertyRule& no_rule() {
  static const PropertyRule kNone;
  return kNone;
}

}  // namespace

const PropertyRule& PropertyRule::of(std::string_view property) const {
  const auto it = properties.find(property);
  return it != properties.end() ? it->second : no_rule();
}

const PropertyRule& PropertyRule::of_items() const {
  return items ? *items : no_rule();
}

Result<PropertyRule> property_rules(const JsonText& schema) {
  const auto parsed = Json::parse(schema, nullptr, false);
  if (!parsed.is_object()) return Error{Errc::kMalformed, "the schema is no JSON object", {}, 0};
  return rule_of(parsed, 0);
}

}  // namespace muster
