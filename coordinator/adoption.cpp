#include "coordinator/adoption.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace muster {

bool identity_is_known(const TypeRules& rules, const std::vector<std::string>& unknown) {
  return std::ranges::none_of(rules.rules.identity, [&](const std::string& property) {
    return std::ranges::find(unknown, "/" + property) != unknown.end();
  });
}

const PlanningView::Known* Adoption::find(const DeclaredResource& resource, const TypeRules& rules,
                                          const nlohmann::json& declared, const std::vector<std::string>& unknown) {
  if (!resource.native_id.empty()) {
    auto found = view_.find(resource.target, resource.type, resource.native_id);
    return found ? &found_.emplace_back(std::move(*found)) : nullptr;
  }
  const auto identity = rules.identity_of(declared);
  if (identity.empty() || !identity_is_known(rules, unknown)) return nullptr;
  return identities_.find(resource.target, resource.type, rules, identity);
}

std::vector<std::string> Adoption::claim(const DeclaredResource& resource, const TypeRules& rules,
                                         const nlohmann::json& declared, const std::vector<std::string>& unknown,
                                         const PlanningView::Known* there) {
  auto object = there != nullptr ? there->native_id : resource.native_id;
  if (object.empty() && identity_is_known(rules, unknown)) object = rules.identity_of(declared);
  if (object.empty()) return {};
  std::vector<std::string> mistakes;
  const auto others = view_.same_system(resource.target);
  const auto system = std::accumulate(others.begin(), others.end(), resource.target,
                                      [](const auto& one, const auto& other) { return std::min(one, other); });
  const auto [other, first] = claims_.emplace(system + '\0' + resource.type + '\0' + object,
                                              "resource " + resource.name + " of stack " + stack_);
  if (!first) mistakes.push_back("is the same object as " + other->second + ": " + object);
  // Of two targets that are one system one manages an object: the other would delete what the one has.
  const bool by_id = there != nullptr || !resource.native_id.empty();
  for (const auto& target : others) {
    const auto found = managed_on(target, resource, rules, object, by_id);
    if (!found) continue;
    mistakes.push_back(found->native_id + " is resource " + found->name + " of stack " + found->stack +
                       " already, on target " + target + ", which is the same system as " + resource.target +
                       ": declare it there");
  }
  return mistakes;
}

std::optional<PlanningView::Known> Adoption::managed_on(const std::string& target, const DeclaredResource& resource,
                                                        const TypeRules& rules, const std::string& object, bool by_id) {
  const auto* const indexed = by_id ? nullptr : identities_.find(target, resource.type, rules, object);
  auto found = by_id                ? view_.find(target, resource.type, object)
               : indexed == nullptr ? std::nullopt
                                    : std::optional(*indexed);
  if (!found || !found->managed || found->state == ResourceState::kMissing) return std::nullopt;
  return found;
}

}  // namespace muster
