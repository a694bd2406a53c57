#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/declaration.h"
#include "coordinator/identity_index.h"
#include "coordinator/plan.h"
#include "coordinator/type_rules.h"

namespace muster {

/// Whether all that tells objects of the type apart is known by now.
/// `unknown`   pointers of the values that are not known yet
bool identity_is_known(const TypeRules& rules, const std::vector<std::string>& unknown);

/// Which objects declared resources stand for that their stack does not have under their names, and whether it may
/// have them.
class Adoption {
 public:
  /// `stack`    whose plan it is
  /// `claims`   of all that is planned together
  Adoption(PlanningView& view, std::string stack, PlanClaims& claims)
      : view_(view), stack_(std::move(stack)), claims_(claims), identities_(view, stack_) {}

  /// The object that is there. nullptr: none, or it is not known yet which.
  /// `unknown`   pointers of the values that are not known yet
  const PlanningView::Known* find(const DeclaredResource& resource, const TypeRules& rules,
                                  const nlohmann::json& declared, const std::vector<std::string>& unknown);

  /// Claims the object, `there` or to be made, for a resource. Mistakes: who has it already.
  std::vector<std::string> claim(const DeclaredResource& resource, const TypeRules& rules,
                                 const nlohmann::json& declared, const std::vector<std::string>& unknown,
                                 const PlanningView::Known* there);

  /// As IdentityIndexes has it.
  std::string in_the_way(const DeclaredResource& resource, const TypeRules& rules, const nlohmann::json& there,
                         const nlohmann::json& declared) {
    return identities_.in_the_way(resource, rules, there, declared);
  }

 private:
  std::optional<PlanningView::Known> managed_on(const std::string& target, const DeclaredResource& resource,
                                                const TypeRules& rules, const std::string& object, bool by_id);

  PlanningView& view_;
  const std::string stack_;
  PlanClaims& claims_;
  IdentityIndexes identities_;
  std::deque<PlanningView::Known> found_;  // by their ids
};

}  // namespace muster
