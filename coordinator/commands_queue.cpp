// Commands that wait for others of their stacks, and what those have changed when they begin.

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "coordinator/claim.h"
#include "coordinator/commands.h"
#include "coordinator/must.h"
#include "schema/mutation.h"

namespace muster {
namespace {

constexpr std::size_t kReasonsSaid = 5;

/// Whether a step changes what is declared; others put back what was.
bool claims_anew(const CommandStep& step) {
  return !step.claim.empty() || step.action == StepAction::kDelete;
}

}  // namespace

/// Steps of other commands of the stacks that have yet to end, where the new one keeps what was declared before, or
/// does not know that there will be anything: it was planned on what was there before them.
std::vector<CommandPlan::Other> Commands::overtaken(const Draft& draft, const std::vector<std::string>& stacks,
                                                    const CommandPlan& made) const {
  std::vector<CommandPlan::Other> found;
  if (!busy(stacks)) return found;
  std::set<std::array<std::string, 4>> own;
  std::set<std::pair<std::string, std::string>> declared;
  const auto object = [](const CommandStep& step) {  // another type, or target, takes another one
    return std::array{step.stack, declared_name(step.name), step.type, step.target};
  };
  for (const auto& step : made.steps) {
    if (claims_anew(step)) own.insert(object(step));
  }
  for (const auto& step : draft.plan.steps) declared.emplace(step.stack, step.name);
  const auto leaves_alone = [&](const CommandStep& step) {
    const std::pair where(step.stack, declared_name(step.name));
    if (std::ranges::count(stacks, step.stack) == 0 || own.contains(object(step))) return false;
    if (!draft.only.empty() && !draft.only.contains(where.second)) return false;
    return !draft.excluded.contains(where.second) && (draft.mode != ApplyMode::kPatch || declared.contains(where));
  };
  const auto add = [&](const CommandRow& row, const CommandPlan& plan, const auto& has_ended) {
    CommandPlan::Other other{row.id, {}};
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const auto& step = plan.steps[i];
      if (!has_ended(i) && claims_anew(step) && leaves_alone(step)) other.steps[i] = step.stack + "/" + step.name;
    }
    if (!other.steps.empty()) found.push_back(std::move(other));
  };
  for (const auto& [owner, running] : running_) {
    const auto& execution = *running;
    add(execution.row(), execution.plan(), [&](std::size_t step) { return execution.has_ended(step); });
  }
  for (const auto& queued : queued_) add(queued.row, queued.plan, [](std::size_t) { return false; });
  return found;
}

std::vector<CommandPlan::Other> Commands::changing(const Draft& draft) const {
  if (!draft.plan.empty() || !draft.mistakes.empty()) return {};
  std::vector<std::string> stacks;
  for (const auto& stack : draft.stacks) stacks.push_back(stack.stack);
  return overtaken(draft, stacks, {});
}

CommandId Commands::enqueue(const char* kind, std::vector<std::string> stacks, CommandPlan plan) {
  Queued queued;
  queued.row.id = new_id();
  queued.row.kind = kind;
  queued.row.state = "queued";
  queued.row.stacks = std::move(stacks);
  queued.row.created_at = s_.clock.wall();
  queued.row.plan = plan.json();
  queued.bytes = queued.row.plan.size();
  must(s_.store.put_command(queued.row));
  queued.row.plan.clear();
  queued.plan = std::move(plan);
  queued_.push_back(std::move(queued));
  return queued_.back().row.id;
}

std::optional<Error> Commands::full() const {
  std::size_t bytes = 0;
  for (const auto& queued : queued_) bytes += queued.bytes;
  if (queued_.size() < kMaxQueued && bytes < kMaxQueuedBytes) return std::nullopt;
  return Error{Errc::kTooLarge,
               std::to_string(queued_.size()) + " commands wait already, with plans of " + std::to_string(bytes >> 20) +
                   " MiB: apply again when some have ended (`muster commands` shows them)",
               {},
               0};
}

bool Commands::busy(const std::vector<std::string>& stacks) const {
  const auto shares = [&](const std::vector<std::string>& others) {
    return std::ranges::any_of(stacks,
                               [&](const auto& stack) { return std::ranges::find(others, stack) != others.end(); });
  };
  return std::ranges::any_of(running_, [&](const auto& each) { return shares(each.second->row().stacks); }) ||
         std::ranges::any_of(queued_, [&](const auto& each) { return shares(each.row.stacks); });
}

void Commands::begin_queued(TimePoint now) {
  std::set<std::string> taken;
  for (const auto& [owner, execution] : running_) {
    taken.insert(execution->row().stacks.begin(), execution->row().stacks.end());
  }
  for (auto it = queued_.begin(); it != queued_.end();) {
    const bool waits = std::ranges::any_of(it->row.stacks, [&](const auto& stack) { return taken.contains(stack); });
    taken.insert(it->row.stacks.begin(), it->row.stacks.end());
    if (waits && !MUSTER_MUTATION("two-commands-of-a-stack")) {
      ++it;
      continue;
    }
    auto next = std::move(*it);
    it = queued_.erase(it);
    begin(std::move(next), now);
  }
}

/// Where the store is not as it was when the plan was made, in ways that the steps themselves do not notice.
std::vector<std::string> Commands::moved(const CommandPlan& plan) const {
  std::vector<std::string> said;
  std::set<RowId> planned;
  for (const auto& step : plan.steps) {
    if (step.action != StepAction::kCreate) planned.insert(step.row);  // what is created anew was missing
  }
  for (const auto& step : plan.steps) {
    const auto where = step.stack + "/" + step.name;
    bool ours = false, taken = false;
    must(s_.store.of_stack(step.stack, step.name, [&](const ManagedView& view) {
      ours = ours || view.row == step.row;
      const bool same = view.type == step.type && view.target == step.target;  // another goes
      taken = taken || (same && view.state != ResourceState::kMissing && !planned.contains(view.row));
    }));
    const bool stays = step.action != StepAction::kDelete && step.action != StepAction::kUnchanged;
    if (stays && taken) said.push_back(where + " has been made or adopted meanwhile");
    const bool wants_row = step.action != StepAction::kCreate && step.action != StepAction::kAdopt;
    if (wants_row && !ours && must(s_.store.claim(step.row)).value_or(Claim{}).stack != step.stack) {
      said.push_back(where + " is not the stack's any more");
    }
    if (step.action == StepAction::kDelete) {
      const auto claim = must(s_.store.claim(step.row));
      const auto declared = claim ? claimed(claim->declared) : std::nullopt;
      if (declared && declared->protect) said.push_back(where + " is protected now");
    }
    if (step.action == StepAction::kAdopt) {
      const auto claim = must(s_.store.claim(step.row));
      if (claim && claim->stack != step.stack) said.push_back(where + " belongs to stack " + claim->stack + " now");
    }
  }
  add_overtaken(plan, said);
  add_reordered(plan, said);
  return said;
}

/// What other commands have done since to what this one leaves alone.
void Commands::add_overtaken(const CommandPlan& plan, std::vector<std::string>& said) const {
  if (MUSTER_MUTATION("overtaken-unsaid")) return;
  for (const auto& other : plan.behind) {
    for (const auto& operation : must(s_.store.operations(other.command))) {
      const auto step = other.steps.find(operation.step);
      if (step == other.steps.end() || !Execution::may_have_changed(operation)) continue;
      said.push_back(step->second + (operation.uncertain ? " may have" : " has") + " been changed by command " +
                     other.command.value);
    }
  }
}

/// Deletions of what others use now that go after it, or beside it: a command in between has changed who uses what.
void Commands::add_reordered(const CommandPlan& plan, std::vector<std::string>& said) const {
  std::multimap<std::pair<std::string, std::string>, std::size_t> named;  // by stack and name: steps that delete
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    if (step.action == StepAction::kDelete) named.emplace(std::pair(step.stack, declared_name(step.name)), i);
  }
  std::map<std::size_t, std::vector<std::size_t>> uses;  // of those
  std::unordered_map<RowId, std::size_t> rows;
  for (const auto& [place, step] : named) rows.emplace(plan.steps[step].row, step);
  for (const auto& [place, user] : named) {
    const auto record = must(s_.store.one(plan.steps[user].row));
    const auto around = record ? rows.find(record->parent) : rows.end();
    if (around != rows.end() && plan.steps[around->second].stack == place.first) uses[user].push_back(around->second);
    const auto claim = must(s_.store.claim(plan.steps[user].row));
    const auto declared = claim ? claimed(claim->declared) : std::nullopt;
    for (const auto& need : declared ? declared->needs() : std::set<std::string>()) {
      const auto [first, last] = named.equal_range({place.first, need});
      for (auto it = first; it != last; ++it) uses[user].push_back(it->second);
    }
  }
  const auto reaches = [&](std::size_t from, std::size_t to) {
    std::set<std::size_t> seen;
    for (std::vector<std::size_t> open{from}; !open.empty();) {
      const auto at = open.back();
      open.pop_back();
      if (at == to) return true;
      if (seen.insert(at).second && uses.contains(at)) open.insert(open.end(), uses[at].begin(), uses[at].end());
    }
    return false;
  };
  for (const auto& [user, used] : uses) {
    for (const auto step : used) {
      const auto& after = plan.steps[step].after;
      if (std::ranges::find(after, user) != after.end() || reaches(step, user)) continue;  // a circle has no order
      said.push_back(plan.steps[step].stack + "/" + plan.steps[step].name + " is used by " + plan.steps[user].name);
    }
  }
}

void Commands::begin(Queued queued, TimePoint now) {
  const auto owner = next_owner_++;
  const bool cancelled = queued.row.cancel != Cancelled::kNo;
  if (queued.row.state == "queued" && !cancelled && !MUSTER_MUTATION("old-plan")) {
    if (const auto where = moved(queued.plan); !where.empty()) {
      std::string message = "the stack has changed since it was planned:";
      for (std::size_t i = 0; i < std::min(where.size(), kReasonsSaid); ++i) message += " " + where[i] + ";";
      message += " apply again";
      OperationRow refused;
      refused.command = queued.row.id;
      for (std::size_t i = 0; i < queued.plan.steps.size(); ++i) {
        refused.step = i;
        refused.state = "blocked";
        refused.code = errc_name(Errc::kConflict);
        refused.message = message;
        must(s_.store.put_operation(refused));
      }
    }
  }
  const auto operations = must(s_.store.operations(queued.row.id));
  auto execution = std::make_unique<Execution>(s_, std::move(queued.row), std::move(queued.plan), owner);
  execution->start(operations, now);
  running_[owner] = std::move(execution);
}

}  // namespace muster
