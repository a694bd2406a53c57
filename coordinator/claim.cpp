#include "coordinator/claim.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace muster {

using Json = nlohmann::json;

bool may_hold_unread(const PropertyRule& rules, const JsonText& properties) {
  return std::ranges::any_of(rules.properties, [&](const auto& each) {
    return each.second.write_only && properties.find("\"" + each.first + "\":") != std::string::npos;
  });
}

JsonText claim_text(const DeclaredResource& resource, const PropertyRule& rules,
                    const std::function<std::string(const std::string&)>& digest) {
  if (!may_hold_unread(rules, resource.properties)) return declared_text(resource);
  auto kept = resource;
  auto properties = Json::parse(resource.properties);
  for (const auto& [name, rule] : rules.properties) {
    if (!rule.write_only || !properties.contains(name) || properties[name].is_null()) continue;
    properties[name] = digest(properties[name].dump());
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
