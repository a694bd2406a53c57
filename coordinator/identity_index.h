#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "coordinator/plan.h"
#include "coordinator/type_rules.h"

namespace muster {

/// What is known of targets, by the properties that identify it; read once for each type of a target.
class IdentityIndexes {
 public:
  /// `stack`   whose plan it is for: what that has lost stands in the way of nothing that is there
  IdentityIndexes(PlanningView& view, std::string stack) : view_(view), stack_(std::move(stack)) {}

  /// `identity`   as of TypeRules::identity_of()
  const PlanningView::Known* find(const std::string& target, const std::string& type, const TypeRules& rules,
                                  const std::string& identity);
  /// What is deleted first, to be replaced by one that cannot be made, is lost. Why it cannot be; empty: nothing is
  /// known, or that comes first: it may be what an earlier command has made for this.
  std::string in_the_way(const DeclaredResource& resource, const TypeRules& rules, const nlohmann::json& there,
                         const nlohmann::json& declared);

 private:
  using Index = std::unordered_map<std::string, PlanningView::Known>;
  const Index& of(const std::string& target, const std::string& type, const TypeRules& rules);

  PlanningView& view_;
  const std::string stack_;
  std::map<std::pair<std::string, std::string>, Index> indexes_;  // by target and type
};

}  // namespace muster
