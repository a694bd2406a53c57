#include "coordinator/target_names.h"

#include <algorithm>
#include <set>
#include <utility>

namespace muster {

std::map<std::string, std::string> renamed_targets(const std::vector<TargetConfig>& declared,
                                                   const std::vector<TargetRow>& rows) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(row.name);
  std::map<std::string, std::string> renamed;
  std::set<std::string> left;  // names whose rows get others
  for (bool more = true; std::exchange(more, false);) {
    for (const auto& target : declared) {
      const auto& was = target.renamed_from;
      const bool free = !names.contains(target.name) || left.contains(target.name);
      if (!free || !names.contains(was) || renamed.contains(target.name) || !left.insert(was).second) continue;
      renamed.emplace(target.name, was);
      more = true;
    }
  }
  return renamed;
}

std::vector<const TargetConfig*> in_order_of_names(const std::vector<TargetConfig>& declared,
                                                   const std::map<std::string, std::string>& renamed) {
  std::set<std::string> held;
  for (const auto& [name, was] : renamed) held.insert(was);
  std::vector<const TargetConfig*> order, waiting;
  for (const auto& target : declared) waiting.push_back(&target);
  while (!waiting.empty()) {
    std::vector<const TargetConfig*> later;
    for (const auto* target : waiting) {
      if (held.contains(target->name)) {
        later.push_back(target);
        continue;
      }
      order.push_back(target);
      if (const auto it = renamed.find(target->name); it != renamed.end()) held.erase(it->second);
    }
    if (later.size() == waiting.size()) {  // no name of these gets free: they are as they are
      order.insert(order.end(), later.begin(), later.end());
      break;
    }
    waiting = std::move(later);
  }
  return order;
}

}  // namespace muster
