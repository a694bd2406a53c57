#include "manifest_json.h"

#include <array>
#include <string_view>

namespace muster {
namespace {

constexpr std::array<std::string_view, 8> kOperations = {"list",   "read",   "create", "update",
                                                         "delete", "status", "check",  "diff"};
constexpr std::array<std::string_view, 4> kMatchOps = {"eq", "contains", "regex", "exists"};

/// JSON text as a value; what is no JSON as a string, so that its author sees it.
Json value_of(const JsonText& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

Json to_json(const Condition& condition) {
  if (const auto* tag = std::get_if<TagMatch>(&condition)) {
    return {{"tag", {{"keys", tag->keys}, {"value", tag->value}}}};
  }
  const auto& property = std::get<PropertyMatch>(condition);
  Json json{{"path", property.path}, {"op", kMatchOps.at(static_cast<std::size_t>(property.op))}};
  if (!property.value.empty()) json["value"] = value_of(property.value);
  return {{"property", std::move(json)}};
}

Json to_json(const MatchFilter& filter) {
  Json conditions = Json::array();
  for (const Condition& condition : filter.conditions) conditions.push_back(to_json(condition));
  return {{"types", filter.types},
          {"action", filter.action == FilterAction::kExclude ? "exclude" : "include"},
          {"conditions", std::move(conditions)}};
}

Json to_json(const TypeDescriptor& type) {
  Json operations = Json::array();
  for (const Operation operation : type.operations)
    operations.push_back(kOperations.at(static_cast<std::size_t>(operation)));
  Json parameters = Json::object();
  for (const ParentParameter& parameter : type.parent_parameters) parameters[parameter.name] = parameter.property;
  Json examples = Json::array();
  for (const JsonText& example : type.examples) examples.push_back(value_of(example));
  return {{"name", type.name},
          {"description", type.description},
          {"schema", value_of(type.schema)},
          {"parent", type.parent},
          {"parent_parameters", std::move(parameters)},
          {"list_gives", type.list_gives == ListGives::kIds ? "ids" : "properties"},
          {"contained", type.contained},
          {"operations", std::move(operations)},
          {"label_query", type.label_query},
          {"discoverable", type.discoverable},
          {"settle_ms", type.settle.count()},
          {"page_size", type.page_size},
          {"read_batch", type.read_batch},
          {"examples", std::move(examples)}};
}

}  // namespace

Json to_json(const Manifest& manifest) {
  Json types = Json::array();
  for (const TypeDescriptor& type : manifest.types) types.push_back(to_json(type));
  Json filters = Json::array();
  for (const MatchFilter& filter : manifest.filters) filters.push_back(to_json(filter));
  return {{"plugin", manifest.plugin},     {"namespace", manifest.ns},
          {"version", manifest.version},   {"description", manifest.description},
          {"types", std::move(types)},     {"label_query", manifest.label_query},
          {"filters", std::move(filters)}, {"config_schema", value_of(manifest.config_schema)}};
}

}  // namespace muster
