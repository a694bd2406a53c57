#include "coordinator/identity_index.h"

#include <nlohmann/json.hpp>

namespace muster {

const PlanningView::Known* IdentityIndexes::find(const std::string& target, const std::string& type,
                                                 const TypeRules& rules, const std::string& identity) {
  const auto& index = of(target, type, rules);
  const auto it = index.find(identity);
  return it == index.end() ? nullptr : &it->second;
}

std::string IdentityIndexes::in_the_way(const DeclaredResource& resource, const TypeRules& rules,
                                        const nlohmann::json& there, const nlohmann::json& declared) {
  const bool create_first = resource.replace == ReplaceOrder::kAsType ? rules.rules.create_first
                                                                      : resource.replace == ReplaceOrder::kCreateFirst;
  const auto identity = rules.identity_of(declared);
  if (create_first || identity.empty() || identity == rules.identity_of(there)) return {};
  const auto* const other = find(resource.target, resource.type, rules, identity);
  if (other == nullptr || other->stack == stack_) return {};  // what the stack has may leave
  if (other->managed)
    return other->native_id + " belongs to stack " + other->stack + ", as " + other->name +
           ": declare another than that";
  if (other->state != ResourceState::kPresent) return {};
  return other->native_id + " is there already: declare it under another name beside " + resource.name +
         ", or forget " + resource.name + " first";
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
