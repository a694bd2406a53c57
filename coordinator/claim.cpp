#include "coordinator/claim.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace muster {

using Json = nlohmann::json;

bool may_hold_write_only(const PropertyRule& rules, const JsonText& properties) {
  if (!rules.holds_write_only) return false;
  if (rules.others != nullptr && rules.others->holds_write_only) return true;
  return std::ranges::any_of(rules.properties, [&](const auto& property) {
    if (!property.second.holds_write_only) return false;
    const auto key = Json(property.first).dump();  // with an escape, it may be written in other ways
    return key.find('\\') != std::string::npos || properties.find(key) != std::string::npos;
  });
}

JsonText claim_text(const DeclaredResource& resource, const PropertyRule& rules,
                    const std::function<std::string(const std::string&)>& digest) {
  if (!may_hold_write_only(rules, resource.properties)) return declared_text(resource);
  auto kept = resource;
  auto properties = Json::parse(resource.properties);
  for (const auto& pointer : write_only_in(rules, properties)) {
    auto& value = properties[Json::json_pointer(pointer)];
    value = digest(value.dump());
  }
  kept.properties = properties.dump();
  return declared_text(kept);
}

std::optional<DeclaredResource> claimed(const JsonText& claim) {
  if (claim.empty()) return std::nullopt;
  auto parsed = declared_resource_from_json(Json::parse(claim, nullptr, false));
  return parsed ? std::optional(std::move(*parsed)) : std::nullopt;
}

}  // namespace muster
