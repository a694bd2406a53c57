#include "coordinator/contents.h"

#include <unordered_map>
#include <unordered_set>

namespace muster {
namespace {

/// Whether a step begins only when another has ended.
bool comes_after(const Plan& plan, std::size_t step, std::size_t other) {
  std::unordered_set<std::size_t> seen;
  for (std::vector<std::size_t> open{step}; !open.empty();) {
    const auto at = open.back();
    open.pop_back();
    for (const auto before : plan.steps[at].after) {
      if (before == other) return true;
      if (seen.insert(before).second) open.push_back(before);
    }
  }
  return false;
}

}  // namespace

std::vector<PlanMistake> judge_contents(Plan& plan, PlanningView& view) {
  std::unordered_map<RowId, std::size_t> steps;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].row != 0) steps.emplace(plan.steps[i].row, i);
  }
  std::vector<PlanMistake> mistakes;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    auto& outer = plan.steps[i];
    const bool deletes = outer.action == StepAction::kDelete;
    if (!deletes && outer.action != StepAction::kReplace) continue;
    std::size_t others = 0;
    std::unordered_set<RowId> judged;  // and with them what lies in them
    view.each_within(outer.row, [&](const PlanningView::Known& inner) {
      const auto found = steps.find(inner.row);
      const auto* own = found == steps.end() ? nullptr : &plan.steps[found->second];
      const bool goes = own != nullptr && (own->action == StepAction::kDelete || own->action == StepAction::kReplace);
      if (judged.contains(inner.parent) || inner.managed) judged.insert(inner.row);
      if (judged.contains(inner.parent)) return;
      const bool safe = goes && (deletes || own->action == StepAction::kDelete || own->moves);
      if (safe || (goes && comes_after(plan, found->second, i))) return;
      if (own != nullptr) {
        mistakes.push_back({own->stack,
                            own->name,
                            {},
                            "lies in " + outer.name + ", which would be " +
                                (deletes ? "deleted: declare both, or none"
                                         : "replaced: give it `parent: " + outer.name + "`, or refer to it")});
      } else if (inner.managed) {
        mistakes.push_back({outer.stack,
                            outer.name,
                            {},
                            "would be " + std::string(deletes ? "deleted" : "replaced") + ", and " + inner.native_id +
                                " with it, which is resource " + inner.name + " of stack " + inner.stack});
      } else {
        ++others;
      }
    });
    if (others == 0) continue;
    outer.reason += (outer.reason.empty() ? "" : "; ") + std::to_string(others) +
                    (others == 1 ? " more goes with it" : " more go with it");
  }
  return mistakes;
}

}  // namespace muster
