#include "coordinator/cli/editor_schema.h"

#include <algorithm>

namespace muster::cli {
namespace {

constexpr const char* kName = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";
constexpr const char* kTargetName = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

Json text(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Json object_of(Json properties, Json required) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

/// Whether a word of schemas has schemas by names that are none of its own.
bool is_of_names(const std::string& word) {
  return word == "properties" || word == "patternProperties" || word == "$defs" || word == "definitions";
}

/// Whether the schema allows a text that is a reference anyway.
bool takes_any_text(const Json& schema) {
  if (!schema.is_object()) return schema != Json(false);
  for (const char* narrows :
       {"enum", "const", "pattern", "format", "maxLength", "anyOf", "oneOf", "allOf", "not", "$ref"}) {
    if (schema.contains(narrows)) return false;
  }
  const auto type = schema.find("type");
  if (type == schema.end()) return true;
  return *type == "string" || (type->is_array() && std::ranges::find(*type, Json("string")) != type->end());
}

/// The schema of a value as it may be declared: references in place of values, nothing that only the system sets.
Json declared(const Json& schema);

Json or_reference(const Json& schema) {
  auto value = declared(schema);
  if (takes_any_text(schema)) return value;
  Json either{{"anyOf", Json::array({std::move(value), {{"$ref", "#/$defs/reference"}}})}};
  for (const char* shown : {"description", "title", "default"}) {
    if (const auto it = schema.find(shown); it != schema.end()) either[shown] = *it;
  }
  return either;
}

Json declared(const Json& schema) {
  if (!schema.is_object()) return schema;
  Json made = schema;
  const auto below = [](Json& in, const char* word) {
    if (const auto it = in.find(word); it != in.end() && it->is_object()) *it = or_reference(*it);
  };
  below(made, "items");
  below(made, "additionalProperties");
  for (const char* word : {"$defs", "definitions"}) {
    const auto it = made.find(word);
    if (it == made.end() || !it->is_object()) continue;
    for (auto& definition : *it) definition = declared(definition);
  }
  if (const auto properties = made.find("properties"); properties != made.end() && properties->is_object()) {
    Json kept = Json::object();
    const auto asked = made.find("required");
    const bool lists = asked != made.end() && asked->is_array();  // a flag is how old schemas have it
    Json required = lists ? *asked : Json::array();
    for (const auto& [name, property] : properties->items()) {
      if (property.is_object() && property.value("readOnly", Json()) == Json(true)) {
        required.erase(std::remove(required.begin(), required.end(), Json(name)), required.end());
      } else {
        kept[name] = or_reference(property);
      }
    }
    *properties = std::move(kept);
    if (required.empty()) {
      made.erase("required");
    } else {
      made["required"] = std::move(required);
    }
  }
  return made;
}

/// The schema at another place of a document: what refers to places in itself does so there.
/// `place`   JSON pointer
Json moved(const Json& schema, const std::string& place) {
  if (schema.is_array()) {
    Json made = Json::array();
    for (const auto& each : schema) made.push_back(moved(each, place));
    return made;
  }
  if (!schema.is_object()) return schema;
  Json made = Json::object();
  for (const auto& [word, value] : schema.items()) {
    if (word == "$ref" && value.is_string() && value.get_ref<const std::string&>().starts_with('#')) {
      made[word] = "#" + place + value.get<std::string>().substr(1);
    } else if (word == "const" || word == "enum" || word == "default" || word == "examples") {
      made[word] = value;  // values, not schemas
    } else if (is_of_names(word) && value.is_object()) {
      made[word] = Json::object();
      for (const auto& [name, inner] : value.items()) made[word][name] = moved(inner, place);
    } else {
      made[word] = moved(value, place);
    }
  }
  return made;
}

/// For each name: where `field` is that name, `then` holds.
template <typename Then>
Json by_name(const std::map<std::string, Json>& all, const char* field, Then then) {
  Json cases = Json::array();
  for (const auto& [name, schema] : all) {
    cases.push_back({{"if", {{"properties", {{field, {{"const", name}}}}}, {"required", Json::array({field})}}},
                     {"then", {{"properties", then(name, schema)}}}});
  }
  return cases;
}

Json names_of(const std::map<std::string, Json>& all) {
  Json names = Json::array();
  for (const auto& [name, schema] : all) names.push_back(name);
  return names;
}

/// Of the definition of a namespace's config; no type is called so.
std::string config_name(const std::string& ns) {
  return "config:" + ns;
}

Json target(const std::map<std::string, Json>& configs) {
  auto schema = object_of({{"name", {{"type", "string"}, {"pattern", kTargetName}}},
                           {"namespace", {{"type", "string"}, {"enum", names_of(configs)}}},
                           {"pool", {{"type", "string"}, {"pattern", kName}}},
                           {"config", {{"type", "object"}}},
                           {"discover", {{"type", "boolean"}}},
                           {"interval", text("a duration like 5m; 0s: never by itself")},
                           {"filters", list_of({{"type", "object"}})},
                           {"renamed_from", {{"type", "string"}, {"pattern", kTargetName}}}},
                          Json::array({"name", "namespace"}));
  schema["allOf"] = by_name(configs, "namespace", [](const std::string& ns, const Json&) {
    return Json{{"config", {{"$ref", "#/$defs/" + config_name(ns)}}}};
  });
  return schema;
}

Json resource(const std::map<std::string, Json>& types) {
  const Json name{{"type", "string"}, {"pattern", kName}};
  const Json on_drift{{"$ref", "#/$defs/on_drift"}};
  Json lifecycle = object_of({{"protect", {{"type", "boolean"}, {"description", "never deleted, never replaced"}}},
                              {"replace", {{"enum", {"delete-first", "create-first"}}}}},
                             Json::array());
  auto schema = object_of({{"name", name},
                           {"type", {{"type", "string"}, {"enum", names_of(types)}}},
                           {"target", {{"type", "string"}, {"pattern", kTargetName}}},
                           {"properties", {{"type", "object"}}},
                           {"native_id", text("of an object that is there and is adopted")},
                           {"parent", name},
                           {"depends_on", list_of(name)},
                           {"on_drift", on_drift},
                           {"lifecycle", std::move(lifecycle)}},
                          Json::array({"name", "type", "target"}));
  schema["allOf"] = by_name(types, "type", [](const std::string& type, const Json&) {
    return Json{{"properties", {{"$ref", "#/$defs/" + type}}}};
  });
  return schema;
}

}  // namespace

Json editor_schema(const std::map<std::string, Json>& types, const std::map<std::string, Json>& configs) {
  Json definitions{
      {"reference", {{"type", "string"}, {"pattern", R"(\$\{(resource|var|env|file|secret):)"}}},
      {"on_drift", {{"enum", {"observe", "alert", "revert", "absorb"}}}},
      {"target", target(configs)},
      {"resource", resource(types)},
  };
  const auto define = [&](const std::string& name, const Json& schema) {
    definitions[name] = declared(moved(schema, "/$defs/" + name));
  };
  for (const auto& [name, schema] : types) define(name, schema);
  for (const auto& [ns, schema] : configs) define(config_name(ns), schema);
  auto made = object_of({{"stack", {{"type", "string"}, {"pattern", kName}}},
                         {"on_drift", {{"$ref", "#/$defs/on_drift"}}},
                         {"targets", list_of({{"$ref", "#/$defs/target"}})},
                         {"resources", list_of({{"$ref", "#/$defs/resource"}})}},
                        Json::array({"stack"}));
  Json all{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A file for `muster apply`"}};
  all.update(made);
  all["$defs"] = std::move(definitions);
  return all;
}

}  // namespace muster::cli
