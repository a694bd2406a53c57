#include "coordinator/deletions.h"

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/claim.h"

namespace muster {
namespace {

using Leaving = std::vector<const PlanningView::Known*>;
using Users = std::vector<std::set<std::size_t>>;  // by index in Leaving: who refers to it, or lies in it, and goes too

PlanStep deletion(const PlanningView::Known& known, const std::string& reason) {
  PlanStep step;
  step.action = StepAction::kDelete;
  step.stack = known.stack;
  step.name = known.name;
  step.target = known.target;
  step.type = known.type;
  step.native_id = known.native_id;
  step.row = known.row;
  step.content = known.content;
  step.reason = reason;
  return step;
}

/// Adds the deletion of `first` behind those of its users, and of theirs; `done` gets the index of each step.
void add_after_users(std::size_t first, const Leaving& leaving, const Users& users, const std::string& reason,
                     Plan& plan, std::map<std::size_t, std::size_t>& done) {
  std::vector<std::size_t> path{first};
  std::set<std::size_t> entered;
  while (!path.empty()) {
    const auto row = path.back();
    if (done.contains(row)) {
      path.pop_back();
      continue;
    }
    bool waits = false;
    if (entered.insert(row).second) {
      for (const auto user : users[row]) {
        if (done.contains(user) || entered.contains(user)) continue;
        path.push_back(user);
        waits = true;
      }
    }
    if (waits) continue;
    auto step = deletion(*leaving[row], reason);
    for (const auto user : users[row]) {
      if (const auto it = done.find(user); it != done.end()) step.after.push_back(it->second);
    }
    done[row] = plan.steps.size();
    plan.steps.push_back(std::move(step));
    path.pop_back();
  }
}

}  // namespace

void plan_deletions(const Leaving& leaving, const std::string& reason, PlanResult& result) {
  std::multimap<std::string, std::size_t> named;
  for (std::size_t i = 0; i < leaving.size(); ++i) named.emplace(declared_name(leaving[i]->name), i);
  std::unordered_map<RowId, std::size_t> rows;
  for (std::size_t i = 0; i < leaving.size(); ++i) rows.emplace(leaving[i]->row, i);
  Users users(leaving.size());
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    const auto& known = *leaving[i];
    if (const auto place = rows.find(known.parent); place != rows.end()) users[place->second].insert(i);
    const auto before = claimed(known.declared);
    if (!before) continue;
    if (before->protect)
      result.mistakes.push_back(
          {known.stack, known.name, {}, "is protected, and would be deleted: apply it without `protect` first"});
    for (const auto& need : before->needs()) {
      for (auto [it, last] = named.equal_range(need); it != last; ++it) users[it->second].insert(i);
    }
  }
  std::map<std::size_t, std::size_t> done;
  for (std::size_t i = 0; i < leaving.size(); ++i) add_after_users(i, leaving, users, reason, result.plan, done);
}

}  // namespace muster
