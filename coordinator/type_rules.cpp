#include "coordinator/type_rules.h"

#include <algorithm>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace muster {
namespace {

using Json = nlohmann::json;

void refuse_plain_secrets(const PropertyRule& rule, const Json& value, const Json::json_pointer& at,
                          const Mistake& mistake) {
  if (!rule.holds_write_only || value.is_null()) return;
  if (rule.secret) {
    const auto pointer = at.to_string();
    mistake(pointer + " is a secret: it takes a reference only, like ${env:NAME}", pointer);
  } else if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) refuse_plain_secrets(rule.of(name), inner, at / name, mistake);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) refuse_plain_secrets(rule.of_items(), value[i], at / i, mistake);
  }
}

}  // namespace

TypeRules TypeRules::of(const TypeDescriptor& type) {
  TypeRules made;
  made.type = &type;
  if (auto rules = property_rules(type.schema)) made.rules = std::move(*rules);
  made.schema_hash = hash128(type.schema);
  if (auto check = SchemaCheck::compile(type.schema)) made.schema = std::move(*check);
  return made;
}

bool TypeRules::can(Operation operation) const {
  return std::ranges::find(type->operations, operation) != type->operations.end();
}

std::string TypeRules::identity_of(const Json& properties) const {
  auto parts = Json::array();
  for (const auto& property : rules.identity) {
    if (!properties.contains(property)) return {};
    parts.push_back(properties[property]);
  }
  return parts.empty() ? std::string() : parts.dump();
}

std::optional<std::string> too_large(const PropertyRule& rules, const JsonText& properties) {
  if (properties.size() <= kMaxPropertiesBytes) return std::nullopt;
  const auto bytes = without_write_only(rules, Json::parse(properties)).dump().size();
  if (bytes <= kMaxPropertiesBytes) return std::nullopt;
  return fmt::format("properties of {} bytes, the limit is {}: divide them among several resources", bytes,
                     kMaxPropertiesBytes);
}

void check_declared(const DeclaredResource& resource, const TypeRules& rules, const Mistake& mistake) {
  const auto properties = Json::parse(resource.properties);
  for (const auto& [name, rule] : rules.rules.properties) {
    if (!rule.read_only || !properties.contains(name)) continue;
    mistake("/" + name + " is set by the system and cannot be declared", "/" + name);
  }
  refuse_plain_secrets(rules.rules, properties, Json::json_pointer(), mistake);
  for (const auto& hole : resource.holes) {
    if (!hole.secret() || is_confidential(rules.rules, hole.pointer)) continue;
    mistake(hole.pointer + " is neither secret nor write-only, and would be read back in the clear: it takes no " +
                "reference like ${env:NAME}",
            hole.pointer);
  }
}

void check_schema(const DeclaredResource& resource, const TypeRules& rules, Json declared,
                  const std::vector<std::string>& unknown, const ReferenceLookup& example, const Mistake& mistake,
                  const Mistake& unchecked) {
  auto why = too_large(rules.rules, resource.holes.empty() ? resource.properties : declared.dump());
  if (why) mistake(std::move(*why), {});
  if (!rules.schema) {
    if (rules.type->schema.empty()) return;
    return unchecked("the schema of " + resource.type + " cannot be used: `muster plugin test` says why", {});
  }
  std::vector<std::string> unasked;
  for (const auto& pointer : unknown) {
    const auto hole = std::ranges::find(resource.holes, pointer, &Hole::pointer);
    if (hole == resource.holes.end()) continue;
    if (auto value = resolve(*hole, example)) {
      declared[Json::json_pointer(pointer)] = std::move(*value);
      continue;
    }
    unasked.push_back(pointer);
    if (!hole->secret()) unchecked("its value is not known yet", pointer);
  }
  const auto faults = rules.schema->faults(declared, unasked);
  if (!faults) return unchecked(faults.error().message, {});
  for (const auto& fault : *faults) {
    mistake((fault.pointer.empty() ? "" : fault.pointer + ": ") + fault.message, fault.pointer);
  }
}

}  // namespace muster
