#include "coordinator/filter.h"

#include <re2/re2.h>
#include <string.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <variant>

#include "coordinator/jsonpath_regexp.h"
#include "coordinator/jsonpath_value.h"
#include "coordinator/query_compiler.h"

namespace muster {
namespace {

using simdjson::dom::element_type;

// ---- tags

bool value_matches(const std::optional<JsonNode>& tag, const std::string& wanted) {
  if (wanted.empty() || !tag) return wanted.empty();
  return tag->type() == element_type::STRING ? as_string(*tag) == wanted : scalar_text(*tag) == wanted;
}

std::optional<JsonNode> member_in_any_case(const JsonNode& object, std::string_view name) {
  for (const auto field : as_object(object)) {
    if (field.key.size() == name.size() && std::equal(name.begin(), name.end(), field.key.begin(), [](char a, char b) {
          return a == b || (b >= 'A' && b <= 'Z' && a == b + ('a' - 'A'));
        })) {
      return field.value;
    }
  }
  return std::nullopt;
}

/// False when the budget ends on the way.
bool in_tags(const TagMatch& match, const JsonNode& tags, Budget& budget) {
  if (tags.type() == element_type::OBJECT) {
    const std::size_t each = 1 + child_count(tags) / 8;
    return std::any_of(match.keys.begin(), match.keys.end(), [&](const std::string& key) {
      if (!budget.spend(each)) return false;
      const auto value = member(tags, key);
      return value && value_matches(value, match.value);
    });
  }
  if (tags.type() != element_type::ARRAY) return false;
  for (const JsonNode tag : as_array(tags)) {
    if (!budget.spend(match.keys.size())) return false;
    if (tag.type() != element_type::OBJECT) continue;
    const auto key = member_in_any_case(tag, "key");
    if (!key || key->type() != element_type::STRING) continue;
    const bool wanted = std::find(match.keys.begin(), match.keys.end(), as_string(*key)) != match.keys.end();
    if (wanted && value_matches(member_in_any_case(tag, "value"), match.value)) return true;
  }
  return false;
}

struct TagTest {
  TagMatch match;

  [[nodiscard]] Result<bool> holds(const JsonDocument& properties, Budget& budget) const {
    budget.spend(1 + child_count(properties.root()) / 4);
    for (const std::string_view place : {"Tags", "tags"}) {
      const auto tags = member(properties.root(), place);
      if (tags && in_tags(match, *tags, budget)) return true;
    }
    if (budget.exhausted()) return Error{Errc::kTooLarge, "too many tags to compare"};
    return false;
  }
};

// ---- properties

struct PropertyTest {
  JsonPath path;
  MatchOp op = MatchOp::kExists;
  std::shared_ptr<const JsonDocument> value;  // of eq and contains
  std::shared_ptr<const re2::RE2> regex;      // of regex

  [[nodiscard]] Result<bool> holds(const JsonDocument& properties, Budget& budget) const {
    return path.any(
        properties, [&](const JsonNode& node) { return matches(node, budget); }, budget);
  }

 private:
  bool matches(const JsonNode& node, Budget& budget) const {
    switch (op) {
      case MatchOp::kExists:
        return true;
      case MatchOp::kEq:
        return json_equal(node, value->root(), budget);
      case MatchOp::kContains:
        return contains(node, budget);
      case MatchOp::kRegex:
        if (node.type() != element_type::STRING) return false;
        if (!budget.spend(jsonpath::match_cost(*regex, as_string(node).size()))) return false;
        return re2::RE2::PartialMatch({as_string(node).data(), as_string(node).size()}, *regex);
    }
    return false;
  }

  bool contains(const JsonNode& node, Budget& budget) const {
    const JsonNode& wanted = value->root();
    if (node.type() == element_type::STRING && wanted.type() == element_type::STRING) {
      const auto text = as_string(node), part = as_string(wanted);
      // In linear time, which std::string_view::find() does not promise.
      return budget.spend(text.size() / 16) && ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
    }
    if (node.type() != element_type::ARRAY) return false;
    const auto elements = as_array(node);
    return std::any_of(elements.begin(), elements.end(),
                       [&](const JsonNode& element) { return json_equal(element, wanted, budget); });
  }
};

using Test = std::variant<TagTest, PropertyTest>;

constexpr std::size_t kWorkOfCondition = 200;
constexpr std::size_t kWorkOfName = 200;  // of a type or a tag, which is kept as it is

Result<Test> compile_condition(const TagMatch& match, QueryCompiler& compiler) {
  if (auto spent = compiler.spend(kWorkOfCondition + kWorkOfName * match.keys.size()); !spent) return spent.error();
  return Test(TagTest{match});
}

Result<Test> compile_condition(const PropertyMatch& match, QueryCompiler& compiler) {
  if (auto spent = compiler.spend(kWorkOfCondition); !spent) return spent.error();
  auto path = compiler.path(match.path);
  if (!path) return Error{path.error().code, "path " + match.path + ": " + path.error().message};
  PropertyTest test{.path = std::move(*path), .op = match.op, .value = {}, .regex = {}};
  if (match.value.empty()) test.op = MatchOp::kExists;
  if (test.op == MatchOp::kExists) return Test(std::move(test));

  auto parsed = compiler.value(match.value);
  if (!parsed) return Error{parsed.error().code, "value: " + parsed.error().message};
  test.value = std::move(*parsed);
  const JsonNode& value = test.value->root();
  if (value.is_null() || (value.type() == element_type::STRING && as_string(value).empty())) {
    test.op = MatchOp::kExists;
  } else if (test.op == MatchOp::kRegex) {
    if (value.type() != element_type::STRING) return Error{Errc::kMalformed, "value: a regex is a string"};
    const std::string_view pattern = as_string(value);
    auto regex = compiler.regex(pattern);
    if (!regex) return Error{regex.error().code, "regex: " + regex.error().message};
    test.regex = std::move(*regex);
  }
  return Test(std::move(test));
}

// ---- version

/// The filters as one text in which every string carries its length, so that no two sets share a text.
std::string content(const std::vector<MatchFilter>& filters) {
  std::string out;
  const auto put = [&](const std::string& text) { out += std::to_string(text.size()) + ':' + text; };
  const auto put_all = [&](const std::vector<std::string>& texts) {
    out += std::to_string(texts.size()) + '[';
    for (const std::string& text : texts) put(text);
  };
  for (const MatchFilter& filter : filters) {
    out += filter.action == FilterAction::kInclude ? '+' : '-';
    put_all(filter.types);
    for (const Condition& condition : filter.conditions) {
      if (const auto* tag = std::get_if<TagMatch>(&condition)) {
        out += 't';
        put_all(tag->keys);
        put(tag->value);
      } else if (const auto* property = std::get_if<PropertyMatch>(&condition)) {
        out += 'p' + std::to_string(static_cast<int>(property->op));
        put(property->path);
        put(property->value);
      }
    }
  }
  return out;
}

}  // namespace

struct FilterSet::Rule {
  std::vector<std::string> types;
  FilterAction action = FilterAction::kExclude;
  std::vector<Test> conditions;

  [[nodiscard]] bool applies(std::string_view type) const {
    return types.empty() || std::find(types.begin(), types.end(), type) != types.end();
  }

  [[nodiscard]] Result<bool> matches(const JsonDocument& properties, Budget& budget) const {
    for (const Test& condition : conditions) {
      auto holds = std::visit([&](const auto& test) { return test.holds(properties, budget); }, condition);
      if (!holds || !*holds) return holds;
    }
    return true;
  }
};

std::string hex_hash(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

FilterSet::FilterSet() : version_(hex_hash("")) {}
FilterSet::~FilterSet() = default;
FilterSet::FilterSet(FilterSet&&) noexcept = default;
FilterSet& FilterSet::operator=(FilterSet&&) noexcept = default;

std::string FilterSet::version_of(const std::vector<MatchFilter>& filters) {
  return hex_hash(content(filters));
}

Result<FilterSet> FilterSet::compile(const std::vector<MatchFilter>& filters) {
  FilterSet set;
  set.version_ = version_of(filters);
  QueryCompiler compiler;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const auto place = "filter " + std::to_string(i + 1);
    if (auto spent = compiler.spend(kWorkOfCondition + kWorkOfName * filters[i].types.size()); !spent) {
      return Error{spent.error().code, place + ": " + spent.error().message};
    }
    Rule& rule = set.rules_.emplace_back();
    rule.types = filters[i].types;
    rule.action = filters[i].action;
    for (std::size_t j = 0; j < filters[i].conditions.size(); ++j) {
      auto test =
          std::visit([&](const auto& match) { return compile_condition(match, compiler); }, filters[i].conditions[j]);
      if (!test) {
        return Error{test.error().code, place + ", condition " + std::to_string(j + 1) + ": " + test.error().message};
      }
      rule.conditions.push_back(std::move(*test));
    }
  }
  return set;
}

bool FilterSet::applies(std::string_view type) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) { return rule.applies(type); });
}

Result<bool> FilterSet::judge(std::string_view type, const JsonDocument& properties) const {
  Budget budget(kMaxVisits);
  return judge(type, properties, budget);
}

Result<bool> FilterSet::judge(std::string_view type, const JsonDocument& properties, Budget& budget) const {
  bool needs_include = false;
  bool included = false;
  for (const Rule& rule : rules_) {
    if (!rule.applies(type)) continue;
    const bool include = rule.action == FilterAction::kInclude;
    needs_include = needs_include || include;
    if (include && included) continue;
    const auto matches = rule.matches(properties, budget);
    if (!matches) return matches;
    if (*matches && !include) return false;
    included = included || *matches;
  }
  return included || !needs_include;
}

Result<bool> FilterSet::judge(std::string_view type, std::string_view properties_json) const {
  if (!applies(type)) return true;
  JsonDocument properties;
  if (const auto parsed = properties.parse(properties_json); !parsed) return parsed.error();
  return judge(type, properties);
}

}  // namespace muster
