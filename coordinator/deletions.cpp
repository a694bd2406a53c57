#include "coordinator/deletions.h"

#include <set>
#include <utility>
#include <vector>

#include "coordinator/claim.h"

namespace muster {
namespace {

using Leaving = std::map<std::string, const PlanningView::Known*>;
using Users = std::map<std::string, std::set<std::string>>;  // by name: who refers to it and goes too

PlanStep deletion(const std::string& name, const PlanningView::Known& known, const std::string& reason) {
  PlanStep step;
  step.action = StepAction::kDelete;
  step.stack = known.stack;
  step.name = name;
  step.target = known.target;
  step.type = known.type;
  step.native_id = known.native_id;
  step.row = known.row;
  step.content = known.content;
  step.reason = reason;
  return step;
}

/// Adds the deletion of `first` behind those of its users, and of theirs; `done` gets the index of each step.
void add_after_users(const std::string& first, const Leaving& leaving, const Users& users, const std::string& reason,
                     Plan& plan, std::map<std::string, std::size_t>& done) {
  std::vector<std::string> path{first};
  std::set<std::string> entered;
  while (!path.empty()) {
    const auto name = path.back();
    if (done.contains(name)) {
      path.pop_back();
      continue;
    }
    const auto mine = users.find(name);
    bool waits = false;
    if (entered.insert(name).second && mine != users.end()) {
      for (const auto& user : mine->second) {
        if (done.contains(user) || entered.contains(user)) continue;
        path.push_back(user);
        waits = true;
      }
    }
    if (waits) continue;
    auto step = deletion(name, *leaving.at(name), reason);
    if (mine != users.end()) {
      for (const auto& user : mine->second) {
        if (const auto it = done.find(user); it != done.end()) step.after.push_back(it->second);
      }
    }
    done[name] = plan.steps.size();
    plan.steps.push_back(std::move(step));
    path.pop_back();
  }
}

}  // namespace

void plan_deletions(const Leaving& leaving, const std::string& reason, PlanResult& result) {
  Users users;
  for (const auto& [name, known] : leaving) {
    const auto before = claimed(known->declared);
    if (!before) continue;
    if (before->protect) result.mistakes.push_back({known->stack, name, {}, "is protected, and would be deleted"});
    for (const auto& need : before->needs()) {
      if (leaving.contains(need)) users[need].insert(name);
    }
  }
  std::map<std::string, std::size_t> done;
  for (const auto& [name, known] : leaving) add_after_users(name, leaving, users, reason, result.plan, done);
}

}  // namespace muster
