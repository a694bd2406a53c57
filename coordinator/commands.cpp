#include "coordinator/commands.h"

#include <algorithm>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/claim.h"
#include "coordinator/contents.h"
#include "coordinator/json_forms.h"
#include "coordinator/must.h"
#include "coordinator/property_rules.h"
#include "coordinator/resource_id.h"
#include "coordinator/target_forms.h"
#include "coordinator/target_names.h"
#include "schema/mutation.h"
#include "schema/subjects.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDrafts = 16;
constexpr std::size_t kMaxDraftBytes = 512ULL << 20;  // of all drafts
constexpr std::size_t kCommandsKept = 1000;
constexpr std::uint64_t kCommandBytesKept = 256ULL << 20;  // of their plans
constexpr Millis kDraftAge{15 * 60'000};                   // a user may think for a while before saying yes

}  // namespace

/// Ids sort by time, also for two within a millisecond, or a clock set back.
CommandId Commands::new_id() {
  auto at = s_.clock.wall();
  if (const auto last = parse_resource_id(newest_.value)) at = std::max(at, WallTime(Millis(last->millis + 1)));
  return newest_ = CommandId(make_ulid(at, random_));
}

void Commands::start(TimePoint now) {
  for (const auto& [stack, count] : must(s_.store.stacks())) {
    must(s_.store.of_stack(stack, {}, [&, &stack = stack](const ManagedView& row) {
      if (!row.drifted) return;
      const auto resource = declared_resource_from_json(Json::parse(row.declared, nullptr, false));
      if (resource && resource->on_drift == OnDrift::kRevert) to_put_back_[stack].emplace(row.name);
    }));
  }
  if (const auto newest = must(s_.store.commands({}, 1)); !newest.empty()) newest_ = newest.front().id;
  for (auto& row : must(s_.store.unfinished_commands())) {
    auto plan = CommandPlan::parse(row.plan);
    if (!plan) {
      s_.log.error("command={} cannot go on: {}", row.id.value, plan.error().message);
      row.state = "failed";
      row.finished_at = s_.clock.wall();
      must(s_.store.set_command(row));
      JsonObject told;
      told.text("command", row.id.value).text("kind", row.kind).text("state", row.state);
      s_.events.emit({}, "command.finished", row.id.value, told.raw("stacks", Json(row.stacks).dump()).take());
      continue;
    }
    const auto bytes = row.plan.size();
    row.plan.clear();
    if (row.state == "queued") {
      queued_.push_back({std::move(row), std::move(*plan), bytes});
    } else {
      s_.log.info("command={} did not end: it goes on", row.id.value);
      begin({std::move(row), std::move(*plan)}, now);
    }
  }
}

Result<Draft*> Commands::declare(const std::string& id, std::vector<Declaration> stacks,
                                 std::vector<TargetConfig> targets, std::size_t bytes, TimePoint now) {
  if (draft_bytes_ + bytes > kMaxDraftBytes) {
    return Error{Errc::kTooLarge, "more than 512 MiB of declarations at once", {}, 0};
  }
  Draft* draft = nullptr;
  if (id.empty()) {
    if (drafts_.size() >= kMaxDrafts) {  // the one that was left alone longest
      const auto oldest = std::ranges::min_element(
          drafts_, [](const auto& a, const auto& b) { return a.second->touched < b.second->touched; });
      discard(std::string(oldest->first));
    }
    auto made = std::make_unique<Draft>();
    made->id = make_token(random_);
    made->touched = now;
    draft = made.get();
    drafts_[draft->id] = std::move(made);
  } else {
    auto found = this->draft(id, now);
    if (!found) return found;
    draft = *found;
  }
  draft_bytes_ += bytes;
  draft->bytes += bytes;
  draft->planned = false;
  for (auto& stack : stacks) {
    auto it = std::ranges::find(draft->stacks, stack.stack, &Declaration::stack);
    if (it == draft->stacks.end()) {
      draft->stacks.push_back(std::move(stack));
    } else {
      std::ranges::move(stack.resources, std::back_inserter(it->resources));
    }
  }
  std::ranges::move(targets, std::back_inserter(draft->targets));
  return draft;
}

Result<Draft*> Commands::draft(const std::string& id, TimePoint now) {
  const auto it = drafts_.find(id);
  if (it == drafts_.end()) {
    return Error{Errc::kNotFound, "no draft " + id + ": it was used, or left alone for too long; plan again", {}, 0};
  }
  it->second->touched = now;
  return it->second.get();
}

void Commands::discard(const std::string& id) {
  const auto it = drafts_.find(id);
  if (it == drafts_.end()) return;
  draft_bytes_ -= it->second->bytes;
  drafts_.erase(it);
}

/// Old names by new ones. What is destroyed goes under the name that it has.
std::map<std::string, std::string> Commands::renamed_in(const Draft& draft, const std::vector<TargetRow>& rows) {
  if (draft.mode == ApplyMode::kDestroy) return {};
  return renamed_targets(draft.targets, rows);
}

std::vector<TargetChange> Commands::changes_of(const Draft& draft, const std::vector<TargetRow>& rows) const {
  std::vector<TargetChange> changes;
  const auto add = [&](StepAction action, const TargetConfig& target, const TargetRow* row, std::string reason) {
    const auto before = row == nullptr ? std::string() : to_json(row->config).dump() + row->ns + "/" + row->pool;
    const auto now = to_json(target).dump();
    changes.push_back({action, target.name, target.ns, std::move(reason), hex(hash128(before + "\n" + now))});
  };
  const auto renamed = renamed_in(draft, rows);
  for (const auto& target : draft.targets) {
    const auto was = renamed.find(target.name);
    const auto found = std::ranges::find(rows, was == renamed.end() ? target.name : was->second, &TargetRow::name);
    const auto* row = found == rows.end() || found->state == TargetState::kRemoved ? nullptr : &*found;
    if (draft.mode == ApplyMode::kDestroy) {
      if (row != nullptr && row->applied) add(StepAction::kDelete, target, row, "once nothing declared is on it");
      continue;
    }
    const auto other_name = was == renamed.end() ? std::string() : "is " + was->second + " now";
    if (row == nullptr) {
      add(StepAction::kCreate, target, row, other_name);
      continue;
    }
    const bool moves = row->ns != target.ns || row->pool != target.pool || row->config != target.config;
    const bool same =
        row->discover == target.discover && row->interval == target.interval && row->filters == target.filters;
    if (moves && discovery_.has_rows(*row)) {
      add(StepAction::kUpdate, target, row,
          (other_name.empty() ? "" : other_name + "; ") + "nothing runs on it until `muster targets accept " +
              target.name + "`");
    } else if (moves || !same || !other_name.empty()) {
      add(StepAction::kUpdate, target, row, other_name);
    }
  }
  return changes;
}

void Commands::plan(Draft& draft) {
  draft.plan = {};
  draft.mistakes.clear();
  draft.unchecked.clear();
  draft.stack_of.clear();
  draft.told.reset();
  std::map<std::string, std::string> declared_targets;
  // What a move is told to cost follows from what the target has; who declares no target need not wait for the count.
  const auto targets = must(draft.targets.empty() ? s_.store.targets() : s_.store.counted_targets());
  for (const auto& target : draft.targets) {
    for (const auto& name : {target.name, target.renamed_from}) {
      const auto row = std::ranges::find(targets, name, &TargetRow::name);
      if (row == targets.end() || row->applied || row->state == TargetState::kRemoved) continue;
      draft.mistakes.push_back({{},
                                {},
                                target_pointer(target.name),
                                "target " + name + " is declared in the fleet's configuration already"});
    }
    const auto gone = std::ranges::find(targets, target.name, &TargetRow::name);
    const auto old = std::ranges::find(targets, target.renamed_from, &TargetRow::name);
    if (gone != targets.end() && gone->state == TargetState::kRemoved && old != targets.end() &&
        old->state != TargetState::kRemoved) {
      draft.mistakes.push_back({{},
                                {},
                                target_pointer(target.name),
                                "target " + target.name + " cannot be what " + old->name +
                                    " was: one of that name was there before; take another name"});
    }
    declared_targets.emplace(target.name, target.ns);
  }
  InventoryView view(s_.store, s_.registry, std::move(declared_targets), renamed_in(draft, targets), agreements_);
  if (draft.of_claims) view.take_digests();
  PlanClaims claims;
  auto unknown = draft.only;
  unknown.insert(draft.excluded.begin(), draft.excluded.end());
  for (std::size_t i = 0; i < draft.stacks.size(); ++i) {
    auto made = make_plan(draft.stacks[i], draft.mode, view, claims);
    for (const auto& resource : draft.stacks[i].resources) unknown.erase(resource.name);
    for (const auto& step : made.plan.steps) unknown.erase(step.name);
    const auto dropped = made.plan.restrict_to(draft.only, draft.excluded);
    std::erase_if(made.mistakes, [&](const auto& mistake) { return dropped.contains(mistake.resource); });
    std::erase_if(made.unchecked, [&](const auto& unchecked) { return dropped.contains(unchecked.resource); });
    std::ranges::move(made.mistakes, std::back_inserter(draft.mistakes));
    std::ranges::move(made.unchecked, std::back_inserter(draft.unchecked));
    draft.plan.append(std::move(made.plan));
    draft.stack_of.resize(draft.plan.steps.size(), i);
  }
  for (const auto& name : unknown) {
    draft.mistakes.push_back(
        {{}, {}, {}, "no resource of the stacks is named '" + name + "': --target and --exclude take their names"});
  }
  if (!MUSTER_MUTATION("contents-ignored")) {
    std::ranges::move(judge_contents(draft.plan, view), std::back_inserter(draft.mistakes));
  }
  draft.target_changes = changes_of(draft, targets);
  draft.nothing = draft.plan.empty() && draft.target_changes.empty();
  draft.planned = true;
  draft.planned_at = s_.store.state();
}

PlanBasis Commands::basis(const PlanStep& step) {
  const auto what = step.patch + "\n" + step.native_id + "\n" + step.reason;
  return {step.stack + "/" + step.name, std::string(step_action_name(step.action)), hex(hash128(what)), {}};
}

std::vector<PlanBasis> Commands::basis(const Draft& draft) {
  std::vector<PlanBasis> all;
  for (const auto& step : draft.plan.steps) {
    if (step.action != StepAction::kUnchanged) all.push_back(basis(step));
  }
  for (const auto& change : draft.target_changes) {
    all.push_back({"target " + change.target, std::string(step_action_name(change.action)), change.hash, {}});
  }
  return all;
}

Result<void> Commands::check_plan(Draft& draft) {
  if (!draft.told && draft.planned_at == s_.store.state()) return {};
  auto before = draft.told ? std::move(*draft.told) : basis(draft);
  plan(draft);
  if (!draft.mistakes.empty()) {
    draft.told = std::move(before);
    return Error{Errc::kInvalidRequest, draft.mistakes.front().resource + ": " + draft.mistakes.front().message, {}, 0};
  }
  if (auto where = muster::moved(before, basis(draft)); !where.empty()) {
    draft.told = std::move(before);
    std::string message = "what it was planned on has changed: " + where.front();
    if (where.size() > 1) message += ", and " + std::to_string(where.size() - 1) + " more";
    return Error{Errc::kConflict, message + "; plan again", {}, 0};
  }
  return {};
}

Result<CommandId> Commands::apply(Draft& draft, IfBusy if_busy, TimePoint now) {
  if (auto holds = check_plan(draft); !holds) return holds.error();
  std::vector<std::string> stacks;
  for (const auto& stack : draft.stacks) stacks.push_back(stack.stack);
  if (if_busy == IfBusy::kRefuse && busy(stacks)) {
    return Error{Errc::kConflict, "a command of the stack is under way: `muster commands` shows it", {}, 0};
  }
  if (auto refused = full()) return *refused;
  if (!(running_.empty() && queued_.empty()) && !renamed_in(draft, must(s_.store.targets())).empty()) {
    return Error{Errc::kConflict,
                 "targets get their new names while nothing is under way: `muster commands` shows what is",
                 {},
                 0};
  }
  const bool destroys = draft.mode == ApplyMode::kDestroy;
  if (!destroys) discovery_.apply_targets(draft.targets, now);
  std::size_t at = 0;
  auto command = CommandPlan::of(draft.plan, [&](const PlanStep& step) -> const DeclaredResource& {
    at = static_cast<std::size_t>(&step - draft.plan.steps.data());
    return draft.stacks[draft.stack_of[at]].resources[*step.declared];
  });
  if (destroys) {
    for (const auto& target : draft.targets) {  // under the name that it has: who has the other one is another
      const auto row = must(s_.store.target(target.name));
      const bool renamed = target.renamed_from.empty() || (row && row->state != TargetState::kRemoved);
      command.drop_targets.push_back(renamed ? target.name : target.renamed_from);
    }
  }
  command.behind = overtaken(draft, stacks, command);
  const auto id = enqueue(destroys ? "destroy" : "apply", std::move(stacks), std::move(command));
  discard(std::string(draft.id));
  return id;
}

Result<Cancelled> Commands::cancel(const CommandId& id, Cancelled how, TimePoint now, Effects& effects) {
  for (auto& [owner, execution] : running_) {
    if (execution->row().id != id) continue;
    execution->cancel(how, now, effects);
    return execution->row().cancel;
  }
  for (auto it = queued_.begin(); it != queued_.end(); ++it) {
    if (it->row.id != id) continue;
    it->row.cancel = how;
    must(s_.store.set_command(it->row));
    begin(Queued(std::move(*it)), now);  // ends at once: nothing of it is begun
    queued_.erase(it);
    return how;
  }
  const auto row = must(s_.store.command(id));
  if (!row) return Error{Errc::kNotFound, "no command " + id.value + ": `muster commands` lists them", {}, 0};
  return Error{Errc::kConflict, "command " + id.value + " has ended already: " + row->state, {}, 0};
}

void Commands::take(JobOutcome outcome, TimePoint now) {
  const auto it = running_.find(outcome.owner);
  if (it != running_.end()) it->second->take(std::move(outcome), now);
}

void Commands::tick(TimePoint now, Effects& effects) {
  static_cast<void>(effects);
  look_late(now);
  revert(now);
  if (!queued_.empty()) begin_queued(now);
  for (auto it = running_.begin(); it != running_.end();) {
    auto& execution = *it->second;
    execution.advance(now);
    if (!execution.finished()) {
      ++it;
      continue;
    }
    for (const auto& [target, type] : execution.unsure()) {  // the inventory has what was made after all
      late_looks_.add_at(now + settle_of(type), namespace_of(type), target, type);
    }
    put_back_later(execution, now);
    if (execution.row().state == "complete") drop_targets(execution.plan().drop_targets);
    it = running_.erase(it);
    must(s_.store.prune_commands(kCommandsKept, kCommandBytesKept));
    put_back_at_ = now;
    revert(now);
    if (!queued_.empty()) begin_queued(now);
  }
  std::erase_if(drafts_, [&](const auto& each) {
    if (now - each.second->touched < kDraftAge) return false;
    draft_bytes_ -= each.second->bytes;
    return true;
  });
}

/// But for those on which another command has yet to make something: they are in use then.
void Commands::drop_targets(std::vector<std::string> names) {
  const auto is_used = [&](const CommandPlan& plan, const std::string& name, const auto& has_ended) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].target == name && !has_ended(i)) return true;
    }
    return false;
  };
  std::erase_if(names, [&](const std::string& name) {
    const bool running = std::ranges::any_of(running_, [&](const auto& each) {
      const auto& execution = *each.second;
      return is_used(execution.plan(), name, [&](std::size_t step) { return execution.has_ended(step); });
    });
    const bool queued = std::ranges::any_of(
        queued_, [&](const Queued& each) { return is_used(each.plan, name, [](std::size_t) { return false; }); });
    return running || queued;
  });
  discovery_.drop_targets(names);
}

TimePoint Commands::next_due() const {
  auto due = late_looks_.next_due();
  for (const auto& [owner, execution] : running_) due = std::min(due, execution->next_due());
  if (!to_put_back_.empty()) due = std::min(due, put_back_at_);
  for (const auto& [stack, later] : put_back_later_) {
    if (!later.names.empty()) due = std::min(due, later.at);
  }
  return due;
}

const Execution* Commands::running(const CommandId& id) const {
  for (const auto& [owner, execution] : running_) {
    if (execution->row().id == id) return execution.get();
  }
  return nullptr;
}

const CommandRow* Commands::queued(const CommandId& id) const {
  const auto it = std::ranges::find_if(queued_, [&](const auto& each) { return each.row.id == id; });
  return it == queued_.end() ? nullptr : &it->row;
}

Verdict Commands::evidence(const JobReply& reply, std::string_view ns, TimePoint now, Effects& effects) {
  const auto operation = must(s_.store.operation_of(reply.job));
  if (!operation || namespace_of(operation->type) != ns) return Verdict::kRefused;
  const auto* result = std::get_if<JobResult>(&reply.body);
  const auto* done = result == nullptr ? nullptr : std::get_if<MutationResult>(result);
  if (done == nullptr || MUSTER_MUTATION("drop-late-success"))
    return Verdict::kSuperseded;  // how a superseded attempt failed is of no use
  const bool succeeded = done->status == MutationStatus::kSuccess && !done->native_id.empty();
  if (operation->state == "running") {
    for (auto& [owner, execution] : running_) {
      if (execution->row().id != operation->command) continue;
      if (s_.dispatcher.supersede(reply.job, *result, effects)) return Verdict::kCommitted;
      if (execution->hint(operation->step, *done) || !succeeded) break;
      if (look_late_at(*operation, ns, now)) {
        s_.log.warn("command={} step={} goes on, and has made another object as well: native_id={}",
                    operation->command.value, operation->name, done->native_id);
      }
      break;
    }
    return Verdict::kSuperseded;
  }
  const bool known = operation->state == "done";
  const bool same = operation->native_id.empty() || operation->native_id == done->native_id;
  if (!succeeded || (known && same)) {
    return known ? Verdict::kCommitted : Verdict::kSuperseded;
  }
  if (known && !operation->creates) return Verdict::kCommitted;  // what it changed may have another id by now
  // The step ended without knowing, or a second object was made for one key: a look at the target tells what there is
  // now, and the inventory has it then.
  if (look_late_at(*operation, ns, now)) {
    s_.log.warn("command={} step={} had ended as {}{}, and was applied after all: native_id={}",
                operation->command.value, operation->name, operation->state,
                known ? " with " + operation->native_id : "", done->native_id);
  }
  return Verdict::kSuperseded;
}

/// For as long what is made or changed now need not show.
Millis Commands::settle_of(const std::string& type) {
  const auto served = s_.registry.type(type);
  return served ? served.type->settle : Millis{0};
}

bool Commands::look_late_at(const OperationRow& operation, std::string_view ns, TimePoint now) {
  if (const auto settle = settle_of(operation.type); settle > Millis{0}) {
    late_looks_.add_at(now + settle, ns, operation.target, operation.type);
  }
  return late_looks_.add(ns, operation.target, operation.type);
}

void Commands::look_late(TimePoint now) {
  for (auto& due : late_looks_.take(now)) {
    if (due.left_out > 0) {
      s_.log.warn("namespace={} left_out={}: so many other changes of steps that had ended are said to be applied",
                  due.ns, due.left_out);
    }
    for (auto& part : due.parts) {
      if (discovery_.trigger(part, "drift")) continue;
      // One of the targets is no more, or has another name by now: the others are looked at all the same.
      for (auto& target : part.targets) static_cast<void>(discovery_.trigger({{target}, part.types}, "drift"));
      static_cast<void>(discovery_.trigger({{}, part.types}, "drift"));
    }
  }
}

}  // namespace muster
