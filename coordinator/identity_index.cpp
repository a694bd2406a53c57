#include "coordinator/identity_index.h"

#include <nlohmann/json.hpp>

namespace muster {

const PlanningView::Known* IdentityIndexes::find(const std::string& target, const std::string& type,
                                                 const TypeRules& rules, const std::string& identity) {
  const auto& index = of(target, type, rules);
  const auto it = index.find(identity);
  return it == index.end() ? nullptr : &it->second;
}

const IdentityIndexes::Index& IdentityIndexes::of(const std::string& target, const std::string& type,
                                                  const TypeRules& rules) {
  const auto [it, made] = indexes_.try_emplace({target, type});
  auto& index = it->second;
  if (!made) return index;
  view_.each(target, type, [&](const PlanningView::Known& known) {
    auto identity = rules.identity_of(nlohmann::json::parse(known.properties));
    if (identity.empty()) return;
    const auto [first, fresh] = index.emplace(std::move(identity), known);
    const bool lost = first->second.state == ResourceState::kMissing && first->second.stack == stack_;
    if (!fresh && lost && known.state != ResourceState::kMissing) first->second = known;
  });
  return index;
}

}  // namespace muster
