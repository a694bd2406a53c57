#include "coordinator/property_rules.h"

#include <algorithm>
#include <utility>

#include "coordinator/schema_graph.h"
#include "schema/nesting.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRuleDepth = 32;
constexpr int kMaxRules = 5000;        // of a type
constexpr std::size_t kMaxOpen = 200;  // of these, that are read for each other

bool flag(const Json& schema, const char* name) {
  const auto it = schema.find(name);
  return it != schema.end() && it->is_boolean() && it->get<bool>();
}

std::string text(const Json& schema, const char* name) {
  const auto it = schema.find(name);
  return it != schema.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Whether something in a schema is marked as secret or write-only.
bool marks_something(const Json& schema) {
  if (schema.is_object() && (flag(schema, "writeOnly") || flag(schema, "x-muster-secret"))) return true;
  return schema.is_structured() && std::ranges::any_of(schema, marks_something);
}

enum class Take { kAll, kSecrets };

void add(PropertyRule& to, const PropertyRule& more, Take take);

void add(std::shared_ptr<const PropertyRule>& to, const PropertyRule& more, Take take) {
  auto sum = to.use_count() == 1 ? std::const_pointer_cast<PropertyRule>(to)  // nobody else has it
                                 : std::make_shared<PropertyRule>(to ? *to : PropertyRule());
  add(*sum, more, take);
  to = std::move(sum);
}

/// Has a rule say what another says of the same value as well; `kSecrets`: only what is secret or write-only.
void add(PropertyRule& to, const PropertyRule& more, Take take) {
  to.secret |= more.secret;
  to.write_only |= more.write_only;
  to.holds_write_only |= more.holds_write_only;
  if (take == Take::kAll) {
    to.create_only |= more.create_only;
    to.read_only |= more.read_only;
    to.unordered |= more.unordered;
    to.json_text |= more.json_text;
    if (to.key.empty()) to.key = more.key;
    if (!to.otherwise) to.otherwise = more.otherwise;
  }
  for (const auto& [name, rule] : more.properties) {
    const auto [it, made] = to.properties.try_emplace(name);
    if (made && to.others) add(it->second, *to.others, Take::kAll);
    add(it->second, rule, take);
  }
  if (more.others) {
    for (auto& [name, rule] : to.properties) {
      if (!more.properties.contains(name)) add(rule, *more.others, take);
    }
    add(to.others, *more.others, take);
  }
  if (more.items) add(to.items, *more.items, take);
}

class RuleReader {
 public:
  /// `again`   how often what refers to itself is followed
  RuleReader(const Json& root, int again) : root_(root), again_(again), marks_(marks_something(root)) {}

  PropertyRule read(const Json& schema, int depth = 0) {
    PropertyRule rule;
    if (!schema.is_object()) return rule;
    if (depth > kMaxRuleDepth || open_.size() == kMaxOpen || rules_ == kMaxRules) return unseen();
    ++rules_;
    open_.emplace_back(&schema, depth);
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
    read_inner(schema, rule, depth + 1);
    read_beside(schema, rule, depth);
    rule.write_only = rule.write_only || (rule.items && rule.items->write_only);
    rule.holds_write_only =
        rule.write_only || (rule.items && rule.items->holds_write_only) ||
        (rule.others && rule.others->holds_write_only) ||
        std::ranges::any_of(rule.properties, [](const auto& each) { return each.second.holds_write_only; });
    open_.pop_back();
    return rule;
  }
  [[nodiscard]] bool exhausted() const { return rules_ == kMaxRules; }

 private:
  /// Of what is not looked at: nothing of it is kept where it could hold a secret.
  [[nodiscard]] PropertyRule unseen() const {
    PropertyRule rule;
    rule.write_only = rule.holds_write_only = marks_;
    return rule;
  }

  /// What the schema says of parts of the value.
  void read_inner(const Json& schema, PropertyRule& rule, int depth) {
    if (const auto it = schema.find("properties"); it != schema.end() && it->is_object()) {
      for (const auto& [name, property] : it->items()) rule.properties.emplace(name, read(property, depth));
    }
    if (const auto it = schema.find("additionalProperties"); it != schema.end() && it->is_object()) {
      add(rule.others, read(*it, depth), Take::kAll);
    }
    if (const auto it = schema.find("patternProperties"); it != schema.end() && it->is_object()) {
      for (const auto& pattern : *it) add(rule.others, read(pattern, depth), Take::kSecrets);
    }
    for (const auto* name : {"items", "prefixItems", "additionalItems"}) {
      const auto it = schema.find(name);
      if (it == schema.end()) continue;
      if (it->is_object()) add(rule.items, read(*it, depth), Take::kAll);
      if (!it->is_array()) continue;
      for (const auto& element : *it) add(rule.items, read(element, depth), Take::kSecrets);
    }
  }

  /// What other schemas say of the same value.
  void read_beside(const Json& schema, PropertyRule& rule, int depth) {
    if (const auto it = schema.find("$ref"); it != schema.end()) {
      if (const auto* meant = meant_by(root_, *it)) add(rule, follow(*meant, depth), Take::kAll);
    }
    if (const auto it = schema.find("allOf"); it != schema.end() && it->is_array()) {
      for (const auto& each : *it) add(rule, read(each, depth), Take::kAll);
    }
    for (const auto* name : {"anyOf", "oneOf", "dependencies", "dependentSchemas"}) {  // one of them may hold
      const auto it = schema.find(name);
      if (it == schema.end() || !it->is_structured()) continue;
      for (const auto& each : *it) add(rule, read(each, depth), Take::kSecrets);
    }
    for (const auto* name : {"then", "else"}) {
      if (const auto it = schema.find(name); it != schema.end()) add(rule, read(*it, depth), Take::kSecrets);
    }
  }

  PropertyRule follow(const Json& meant, int depth) {
    if (std::ranges::find(open_, std::pair(&meant, depth)) != open_.end()) return {};  // it is being read
    const auto times = std::ranges::count(open_, &meant, &std::pair<const Json*, int>::first);
    return times > again_ ? unseen() : read(meant, depth);
  }

  const Json& root_;
  const int again_;
  const bool marks_;
  int rules_ = 0;
  std::vector<std::pair<const Json*, int>> open_;  // what is being read, and how deep in the document it speaks
};

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

/// What a JSON pointer goes through from the outside in. A reference may go through as many as fit into a request.
std::vector<std::string> tokens_of_pointer(const std::string& pointer) {
  std::vector<std::string> steps;
  for (Json::json_pointer at(pointer); !at.empty(); at.pop_back()) steps.push_back(at.back());
  std::ranges::reverse(steps);
  return steps;
}

const PropertyRule& rule_within(const PropertyRule& around, const std::string& step) {
  return around.items && !around.properties.contains(step) ? around.of_items() : around.of(step);
}

}  // namespace

const PropertyRule& PropertyRule::of(std::string_view property) const {
  const auto it = properties.find(property);
  if (it != properties.end()) return it->second;
  return others ? *others : no_rule();
}

const PropertyRule& PropertyRule::of_items() const {
  return items ? *items : no_rule();
}

const PropertyRule& rule_at(const PropertyRule& rules, const std::string& pointer) {
  const auto* rule = &rules;
  for (const auto& step : tokens_of_pointer(pointer)) rule = &rule_within(*rule, step);
  return *rule;
}

bool is_confidential(const PropertyRule& rules, const std::string& pointer) {
  const auto* rule = &rules;
  return std::ranges::any_of(tokens_of_pointer(pointer), [&](const auto& step) {
    rule = &rule_within(*rule, step);
    return rule->secret || rule->write_only;
  });
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
  if (nested_too_deep(schema)) return Error{Errc::kMalformed, "the schema is nested too deep", {}, 0};
  const auto parsed = Json::parse(schema, nullptr, false);
  if (!parsed.is_object()) return Error{Errc::kMalformed, "the schema is no JSON object", {}, 0};
  PropertyRule rules;
  for (const int again : {3, 0}) {  // the less often, the more else there is time for
    RuleReader reader(parsed, again);
    rules = reader.read(parsed);
    if (!reader.exhausted()) break;
  }
  rules.closed =
      parsed.value("additionalProperties", Json(true)) == Json(false) && !parsed.contains("patternProperties");
  rules.create_first = parsed.value("x-muster-replace", Json()) == "create-first";
  if (const auto it = parsed.find("x-muster-identity"); it != parsed.end() && it->is_array()) {
    for (const auto& property : *it) {
      if (property.is_string()) rules.identity.push_back(property.get<std::string>());
    }
  }
  return rules;
}

}  // namespace muster
