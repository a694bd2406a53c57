#include "coordinator/claim.h"

#include <nlohmann/json.hpp>

namespace muster {

using Json = nlohmann::json;

JsonText claim_text(const DeclaredResource& resource, const PropertyRule& rules,
                    const std::function<std::string(const std::string&)>& digest) {
  if (!rules.holds_write_only) return declared_text(resource);
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
