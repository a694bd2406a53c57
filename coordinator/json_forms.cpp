#include "coordinator/json_forms.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "schema/nesting.h"

namespace muster {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kActions{"exclude", "include"};
constexpr std::array<std::string_view, 4> kOperators{"eq", "contains", "regex", "exists"};
constexpr std::array<std::string_view, 4> kPartKinds{"literal", "env", "file", "secret"};

Error malformed(std::string message) {
  return {.code = Errc::kMalformed, .message = std::move(message)};
}

/// The member `key` of `object`, null where it is not there or `object` is none.
const json& member(const json& object, const char* key) {
  static const json kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

Result<std::string> text(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) return malformed(std::string(key) + ": not a string");
  return value.get<std::string>();
}

Result<std::vector<std::string>> texts(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_array() || !std::ranges::all_of(value, &json::is_string)) {
    return malformed(std::string(key) + ": not an array of strings");
  }
  return value.get<std::vector<std::string>>();
}

/// Which of `names` the member is; they stand in the order of E's values.
template <typename E, std::size_t N>
Result<E> choice(const json& object, const char* key, const std::array<std::string_view, N>& names) {
  const auto name = text(object, key);
  const auto it = name ? std::ranges::find(names, *name) : names.end();
  if (it == names.end()) return malformed(std::string(key) + ": not one of its values");
  return static_cast<E>(it - names.begin());
}

json to_json(const PropertyMatch& match) {
  json object{{"path", match.path}, {"op", kOperators.at(static_cast<std::size_t>(match.op))}};
  if (match.value.empty()) return object;
  // Plugins give filters, too: what is nested too deep is kept as text, and refused where filters are compiled.
  const json value =
      nested_too_deep(match.value) ? json(json::value_t::discarded) : json::parse(match.value, nullptr, false);
  // Another spelling of the same value is kept beside it: a filter that was stored still equals the one it was.
  if (value.is_discarded() || value.dump() != match.value) object["value_text"] = match.value;
  if (!value.is_discarded()) object["value"] = value;
  return object;
}

json to_json(const Condition& condition) {
  if (const auto* tag = std::get_if<TagMatch>(&condition)) {
    return {{"tag", {{"keys", tag->keys}, {"value", tag->value}}}};
  }
  return {{"property", to_json(std::get<PropertyMatch>(condition))}};
}

Result<Condition> condition_from_json(const json& object) {
  if (const json& tag = member(object, "tag"); tag.is_object()) {
    auto keys = texts(tag, "keys");
    auto value = text(tag, "value");
    if (!keys) return keys.error();
    if (!value) return value.error();
    return Condition(TagMatch{std::move(*keys), std::move(*value)});
  }
  const json& property = member(object, "property");
  auto path = text(property, "path");
  const auto op = choice<MatchOp>(property, "op", kOperators);
  if (!path) return path.error();
  if (!op) return op.error();
  PropertyMatch match{std::move(*path), *op, {}};
  if (property.contains("value_text")) {
    auto spelling = text(property, "value_text");
    if (!spelling) return spelling.error();
    match.value = std::move(*spelling);
  } else if (property.contains("value")) {
    match.value = property["value"].dump();
  }
  return Condition(std::move(match));
}

Result<Secret> secret_from_json(const json& object) {
  auto pointer = text(object, "pointer");
  if (!pointer) return pointer.error();
  Secret secret{std::move(*pointer), {}};
  const json& parts = member(object, "parts");
  if (!parts.is_array()) return malformed("parts: not an array");
  for (const json& part : parts) {
    const auto kind = std::ranges::find_if(kPartKinds, [&](auto name) { return part.contains(name); });
    if (kind == kPartKinds.end() || !part[std::string(*kind)].is_string()) return malformed("parts: not a part");
    secret.parts.push_back({static_cast<SecretPart::Kind>(kind - kPartKinds.begin()), part[std::string(*kind)]});
  }
  return secret;
}

}  // namespace

json to_json(const MatchFilter& filter) {
  json conditions = json::array();
  for (const auto& condition : filter.conditions) conditions.push_back(to_json(condition));
  return {{"types", filter.types},
          {"action", kActions.at(static_cast<std::size_t>(filter.action))},
          {"conditions", std::move(conditions)}};
}

json to_json(const std::vector<MatchFilter>& filters) {
  json array = json::array();
  for (const auto& filter : filters) array.push_back(to_json(filter));
  return array;
}

json to_json(const Document& document) {
  json secrets = json::array();
  for (const auto& secret : document.secrets) {
    json parts = json::array();
    for (const auto& part : secret.parts) {
      parts.push_back({{kPartKinds.at(static_cast<std::size_t>(part.kind)), part.text}});
    }
    secrets.push_back({{"pointer", secret.pointer}, {"parts", std::move(parts)}});
  }
  return {{"json", document.json}, {"secrets", std::move(secrets)}};
}

Result<MatchFilter> filter_from_json(const json& object) {
  auto types = texts(object, "types");
  const auto action = choice<FilterAction>(object, "action", kActions);
  if (!types) return types.error();
  if (!action) return action.error();
  MatchFilter filter{std::move(*types), {}, *action};
  const json& conditions = member(object, "conditions");
  if (!conditions.is_array()) return malformed("conditions: not an array");
  for (const json& entry : conditions) {
    auto condition = condition_from_json(entry);
    if (!condition) return condition.error();
    filter.conditions.push_back(std::move(*condition));
  }
  return filter;
}

Result<std::vector<MatchFilter>> filters_from_json(const json& array) {
  if (!array.is_array()) return malformed("filters: not an array");
  std::vector<MatchFilter> filters;
  for (const json& object : array) {
    auto filter = filter_from_json(object);
    if (!filter) return filter.error();
    filters.push_back(std::move(*filter));
  }
  return filters;
}

Result<Document> document_from_json(const json& object) {
  auto content = text(object, "json");
  if (!content) return content.error();
  Document document{std::move(*content), {}};
  const json& secrets = member(object, "secrets");
  if (!secrets.is_array()) return malformed("secrets: not an array");
  for (const json& entry : secrets) {
    auto secret = secret_from_json(entry);
    if (!secret) return secret.error();
    document.secrets.push_back(std::move(*secret));
  }
  return document;
}

}  // namespace muster
