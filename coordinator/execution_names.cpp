// Who has a name in its stack, when another takes it.

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "coordinator/claim.h"
#include "coordinator/execution_work.h"
#include "coordinator/must.h"

namespace muster {
namespace {

/// Of a row that a step was planned for.
bool has_another_name(const CommandStep& planned, std::string_view name) {
  return declared_name(name) != declared_name(planned.name);
}

void rename_to_go(Store& store, RowId row, const std::string& stack, DeclaredResource declared) {
  declared.name += kReplaced;
  declared.on_drift = OnDrift::kObserve;
  must(store.manage(row, {stack, declared.name, declared_text(declared)}));
}

}  // namespace

/// What of a stack has a name, but for what goes since another has it now.
void Execution::each_named(const std::string& stack, const std::string& name,
                           const std::function<void(const ManagedView&)>& sink) const {
  must(s_.store.of_stack(stack, name, [&](const ManagedView& row) {
    const bool goes = deleted_.contains(row.row) && !has_another_name(plan_.steps[to_go_.at(row.row)], row.name);
    if (!goes) sink(row);
  }));
}

/// What another has taken the name of stays the stack's until it is deleted: where that fails, the next apply goes on
/// with it.
void Execution::rename_replaced(RowId row) {
  const auto claim = must(s_.store.claim(row));
  auto declared = claim ? claimed(claim->declared) : std::nullopt;
  if (!declared) return must(s_.store.release(row));
  declared->protect = false;
  rename_to_go(s_.store, row, claim->stack, std::move(*declared));
}

void rename_others(Store& store, const CommandStep& step) {
  std::map<RowId, DeclaredResource> others;
  must(store.of_stack(step.stack, step.name, [&](const ManagedView& view) {
    if (view.type == step.type && view.target == step.target) return;
    if (auto declared = claimed(std::string(view.declared))) others.emplace(view.row, std::move(*declared));
  }));
  for (auto& [row, declared] : others) rename_to_go(store, row, step.stack, std::move(declared));
}

/// What is gone, and is to be deleted by no other step, leaves its name to what is adopted in its place.
void Execution::release_gone(const CommandStep& adopted) {
  std::vector<RowId> gone;
  must(s_.store.of_stack(adopted.stack, adopted.name, [&](const ManagedView& view) {
    const bool stays = view.row == adopted.row || to_go_.contains(view.row);
    if (!stays && view.state == ResourceState::kMissing) gone.push_back(view.row);
  }));
  for (const auto row : gone) {
    must(s_.store.release(row));
    must(s_.store.leave(row, ResourceState::kVanished, "replaced", s_.clock.wall()));
  }
}

/// What is made anew, and is declared under another name now, leaves the old one.
bool Execution::is_gone_as_another(const CommandStep& step) const {
  const auto row = step.row == 0 ? std::nullopt : must(s_.store.one(step.row));
  if (!row || !row->managed || row->state != ResourceState::kMissing) return false;
  const auto claim = must(s_.store.claim(step.row));
  return claim && claim->stack == step.stack && claim->name != step.name;
}

/// What was to be deleted was gone, and another of the stack has been made under its id since.
bool Execution::is_anothers(const CommandStep& step) const {
  const auto claim = must(s_.store.claim(step.row));
  return claim && claim->stack == step.stack && has_another_name(step, claim->name);
}

std::string way_to_replace(Store& store, const CommandPlan& plan, const CommandStep& replaced) {
  const auto find = [&](StepAction action, const std::function<bool(const CommandStep&)>& uses_it) {
    const auto found = std::ranges::find_if(plan.steps, [&](const CommandStep& step) {
      return step.action == action && step.stack == replaced.stack && uses_it(step);
    });
    return found == plan.steps.end() ? std::string() : found->name;
  };
  const auto leaves = find(StepAction::kDelete, [&](const CommandStep& step) {
    const auto claim = must(store.claim(step.row));
    const auto declared = claim ? claimed(claim->declared) : std::nullopt;
    return declared && declared->needs().contains(replaced.name);
  });
  if (!leaves.empty()) {
    return " (" + leaves + ", which uses it, is deleted only when all else has succeeded: apply once with `--exclude " +
           replaced.name + "`, then without)";
  }
  const auto turns = find(StepAction::kUpdate, [&](const CommandStep& step) {
    return step.resource && step.resource->needs().contains(replaced.name);
  });
  if (turns.empty()) return {};
  return " (" + turns + ", which uses it, turns to the new one only when that is there: where both can be there at a " +
         "time, `lifecycle: {replace: create-first}` of " + replaced.name + " makes that first)";
}

std::string way_to_create(const CommandPlan& plan, const CommandStep& created, bool create_first) {
  if (create_first) {
    return " (" + created.native_id +
           ", which it replaces, is deleted only when it has been made: where that is in its " +
           "way, declare another name, or `lifecycle: {replace: delete-first}`)";
  }
  const auto had_its_name = [&](const CommandStep& step) {
    return step.action == StepAction::kDelete && step.stack == created.stack && step.name == created.name &&
           step.target == created.target;
  };
  const auto found = std::ranges::find_if(plan.steps, had_its_name);
  if (found == plan.steps.end()) {
    return " (it was not made by this command: `muster discover --target " + created.target +
           " --wait`, and what is there is adopted)";
  }
  return " (" + found->native_id + ", the " + found->type + " that was " + created.name +
         ", is deleted only when all else has succeeded: where that is in its way, apply once without " + created.name +
         ", then with it)";
}

}  // namespace muster
