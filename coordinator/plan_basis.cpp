#include "coordinator/plan_basis.h"

#include <algorithm>
#include <map>

namespace muster {

std::vector<std::string> moved(const std::vector<PlanBasis>& before, const std::vector<PlanBasis>& now) {
  std::multimap<std::string, const PlanBasis*> old;  // a name may be made as another type, and the old one deleted
  for (const auto& step : before) old.emplace(step.where, &step);
  std::vector<const PlanBasis*> changed;
  for (const auto& step : now) {
    const auto [first, last] = old.equal_range(step.where);
    const auto same = std::find_if(first, last, [&](const auto& each) {
      return each.second->action == step.action && each.second->hash == step.hash;
    });
    same == last ? changed.push_back(&step) : void(old.erase(same));
  }
  std::vector<std::string> said;
  for (const auto* step : changed) {
    const auto was = old.extract(step->where);
    if (was.empty()) {
      said.push_back(step->where + " would need " + step->action + " now");
    } else if (was.mapped()->action != step->action) {
      said.push_back(step->where + " was planned as " + was.mapped()->action + ", and would be " + step->action +
                     " now");
    } else {
      said.push_back(step->where + " differs in other ways than when it was planned" +
                     (step->details.empty() ? "" : ": " + step->details));
    }
  }
  for (const auto& [where, step] : old) {
    said.push_back(where + " was planned as " + step->action + ", and needs nothing now");
  }
  return said;
}

}  // namespace muster
