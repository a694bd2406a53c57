#include "coordinator/execution.h"

#include <algorithm>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/execution_work.h"
#include "coordinator/must.h"
#include "coordinator/type_rules.h"
#include "schema/mutation.h"
#include "schema/subjects.h"
#include "schema/utf8.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr Millis kProgressEvery{2000};
constexpr Millis kOperationDeadline{60LL * 60'000};  // of a step, polling included
constexpr Millis kRecover{3500};                     // what a worker still has will have been heard of
constexpr std::size_t kMaxRunning = 2048;            // steps at once; the dispatcher bounds their jobs further

bool is_over(std::string_view state) {
  return state != "pending" && state != "running";
}

}  // namespace

Execution::Execution(CommandServices services, CommandRow row, CommandPlan plan, std::uint64_t owner)
    : s_(services), row_(std::move(row)), plan_(std::move(plan)), owner_(owner) {
  const auto count = plan_.steps.size();
  states_.resize(count, State::kPending);
  open_.resize(count);
  dependents_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& step = plan_.steps[i];
    if (step.action == StepAction::kDelete || step.action == StepAction::kReplace) to_go_.emplace(step.row, i);
    if (step.action == StepAction::kDelete) deleted_.insert(step.row);
    open_[i] = step.after.size();
    for (const auto before : step.after) dependents_[before].push_back(i);
    if (step.action != StepAction::kDelete) ++others_left_;
  }
  left_ = count;
}

Execution::~Execution() = default;

std::string_view Execution::state_name(State state) {
  constexpr std::string_view kNames[] = {"pending", "running", "done", "failed", "blocked", "cancelled"};
  return kNames[static_cast<std::size_t>(state)];
}

bool Execution::over(State state) {
  return state != State::kPending && state != State::kRunning;
}

void Execution::start(const std::vector<OperationRow>& operations, TimePoint now) {
  if (row_.state != "running") {
    row_.state = "running";
    row_.started_at = s_.clock.wall();
    must(s_.store.set_command(row_));
    s_.events.emit({}, "command.started", row_.id.value, progress());
  }
  next_progress_ = now + kProgressEvery;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const bool unordered = MUSTER_MUTATION("deletions-unordered") && plan_.steps[i].action == StepAction::kDelete;
    if (open_[i] == 0 || unordered) ready_[plan_.steps[i].target].push_back(i);
  }
  for (const auto& operation : operations) {
    if (operation.step >= states_.size() || !is_over(operation.state)) continue;
    for (const auto state : {State::kDone, State::kFailed, State::kBlocked, State::kCancelled}) {
      if (state_name(state) != operation.state) continue;
      count_ended(operation.step, state);
      if (state == State::kDone) release(operation.step);
    }
    if (!operation.uncertain) continue;
    Work ended(plan_.steps[operation.step], operation);
    ended.set_order(ReplaceOrder::kAsType);  // the one that it had
    if (ended.change() == Work::Change::kCreate) unsure_.emplace(ended.step.target, ended.step.type);
  }
  for (const auto& operation : operations) {  // all, before one of them fails: it blocks none that is under way
    if (operation.state == "running" && operation.step < states_.size()) states_[operation.step] = State::kRunning;
  }
  for (const auto& operation : operations) {
    if (operation.state != "running" || operation.step >= states_.size()) continue;
    const auto& step = plan_.steps[operation.step];
    auto& work = *running_.emplace(operation.step, std::make_unique<Work>(step, operation)).first->second;
    work.deadline = now + kOperationDeadline;
    work.told_at = now;  // how long ago it was is not kept
    const auto phase = work.phase();
    const bool changing = phase == Phase::kCreating || phase == Phase::kUpdating || phase == Phase::kDeleting;
    if (changing && !operation.job.empty()) {
      work.op.uncertain = true;
      work.recovered = phase == Phase::kCreating;  // what guards the others is made anew from what is there
    }
    if (phase == Phase::kEmptying) work.op.job = {};  // it was of something else
    const bool made = phase == Phase::kConverging;
    if (made) find_made(work);
    if (auto located = locate(work); !located) {
      fail(work, made ? unconfirmed(work, located.error()) : located.error());
      continue;
    }
    if (made) work.old_values = made_with_old_values(work);
    if (work.change() != Work::Change::kCreate && !made) begin_write(work);
    const bool settles = changing && phase != Phase::kCreating && work.op.uncertain;
    go_on(work,
          settles                                                  ? Phase::kSettling
          : phase == Phase::kFinding                               ? Phase::kCreating
          : phase == Phase::kDeleting || phase == Phase::kEmptying ? Phase::kReading
                                                                   : phase,
          now, settles ? kRecover : Millis{0});
  }
}

void Execution::begin(std::size_t index, TimePoint now) {
  const auto& step = plan_.steps[index];
  states_[index] = State::kRunning;
  OperationRow operation;
  operation.command = row_.id;
  operation.step = index;
  operation.state = "running";
  operation.native_id = step.native_id;
  operation.name = step.name;
  operation.target = step.target;
  operation.type = step.type;
  auto& work = *running_.emplace(index, std::make_unique<Work>(step, operation)).first->second;
  work.deadline = now + kOperationDeadline;
  const bool noted_only =
      step.action == StepAction::kUnchanged || (step.action == StepAction::kAdopt && step.patch == "[]");
  const bool adopts = step.action == StepAction::kAdopt;
  if (noted_only || adopts) {
    if (const auto lost = lost_row(step)) return fail(work, *lost);
  }
  if (step.action == StepAction::kDelete && is_anothers(step)) return end(index, State::kDone);
  if (adopts) settle_key(work, place_of(step.row));  // this is the one
  if (noted_only) {
    if (const auto path = locate(work) ? unread_moved(work) : std::nullopt;
        path && !MUSTER_MUTATION("values-overtaken")) {
      return fail(work, {Errc::kConflict, *path + " has changed since it was planned: plan again", {}, 0});
    }
    if (adopts) release_gone(step);
    rename_others(s_.store, step);
    must(s_.store.manage(step.row, {step.stack, step.name, step.claim}));
    s_.drift.judge(must(s_.store.one(step.row)).value());  // it may have drifted since it was planned
    return end(index, State::kDone);
  }
  if (auto located = locate(work); !located) return fail(work, located.error());
  const bool creates = work.change() == Work::Change::kCreate;
  if (creates) work.op.native_id.clear();  // that of what it replaces says nothing of it
  go_on(work, creates ? Phase::kCreating : Phase::kReading, now);
  submit_due(work, now);
}

void Execution::go_on(Work& work, Phase phase, TimePoint now, Millis pause) {
  work.set_phase(phase);
  work.due = std::min(now + pause, std::max(now, work.deadline));
}

void Execution::stop(Work& work, TimePoint now) {
  if (!work.op.uncertain) return end(work.op.step, State::kCancelled, "CANCELLED", "cancelled");
  work.search = {};
  go_on(work, work.op.native_id.empty() ? Phase::kFinding : Phase::kSettling, now);
}

void Execution::begin_write(Work& work) {
  if (work.writing || work.op.native_id.empty()) return;
  work.writing = true;
  s_.writes.begin(work.scan, work.op.native_id);
}

void Execution::end_write(Work& work) {
  if (std::exchange(work.writing, false)) s_.writes.end(work.scan, work.op.native_id);
}

/// A run may have found it under another id since it was planned: what is under the old one says nothing of it.
bool Execution::take_new_id(Work& work) {
  const auto row = must(s_.store.one(work.step.row));
  if (!row || row->native_id == work.op.native_id) return false;
  const bool writing = work.writing;
  end_write(work);
  work.op.native_id = row->native_id;
  if (writing) begin_write(work);
  return true;
}

Priority Execution::priority_of(const Work& work) {
  return work.phase() == Phase::kPolling ? Priority::kStatus : Priority::kCommand;
}

void Execution::submit(Work& work, JobOperation operation, TimePoint now, std::string_view type) {
  const bool change = is_mutation(operation);
  JobSpec spec;
  spec.lane = {work.target.ns, work.target.pool};
  spec.target = {work.target.id, work.target.name, work.target.config};
  spec.type = type.empty() ? work.step.type : std::string(type);
  spec.manifest = s_.registry.manifest_of(spec.lane).first;
  spec.operation = std::move(operation);
  spec.priority = priority_of(work);
  const auto left = std::chrono::duration_cast<Millis>(work.deadline - now);
  spec.deadline = std::max(Millis(1000), std::min(left, s_.config.limits.job_deadline));
  spec.patience = left;
  spec.follows = true;
  spec.owner = owner_;
  if (change) {
    spec.id = work.op.job;
    spec.recovered = std::exchange(work.recovered, false);
  }
  work.job = s_.dispatcher.submit(std::move(spec), now, s_.clock.wall());
  if (change) {
    work.op.job = work.job;
    work.op.creates = work.change() == Work::Change::kCreate;  // so does what replaces another
  }
  jobs_[work.job] = work.op.step;
  work.due = TimePoint::max();
  if (change && MUSTER_MUTATION("intent-unwritten")) return;
  if (change || work.phase() == Phase::kPolling) must(s_.store.put_operation(work.op));
}

/// Whether the target is what it was; false: the step has failed.
bool Execution::still_serves(Work& work) {
  const auto there = find_target(work);
  if (!there) fail(work, work.phase() == Phase::kConverging ? unconfirmed(work, there.error()) : there.error());
  return there.has_value();
}

void Execution::submit_due(Work& work, TimePoint now) {
  const auto phase = work.phase();
  const bool looks =
      phase == Phase::kSettling || phase == Phase::kConverging || phase == Phase::kFinding || phase == Phase::kPolling;
  if (row_.cancel == Cancelled::kForced && !looks) return stop(work, now);
  if (!still_serves(work)) return;
  switch (phase) {
    case Phase::kReading:
    case Phase::kSettling:
    case Phase::kConverging:
      work.was_listed = is_listed(read_row(work));
      return submit(work, ReadJob{{work.op.native_id}}, now);
    case Phase::kPolling:
      return submit(work, StatusJob{work.op.request_id, work.op.native_id}, now);
    case Phase::kFinding: {
      if (!work.search.candidates.empty()) return submit(work, ReadJob{first_candidates(work)}, now);
      ListJob list;
      list.parent = parent_of(work);
      list.page_token = work.search.page_token;
      return submit(work, std::move(list), now);
    }
    case Phase::kCreating: {
      auto wanted = document(work.step);
      if (!wanted) return fail(work, wanted.error());
      if (auto why = too_large(rules_of(*work.type), wanted->json)) {  // by what it refers to
        return fail(work, {Errc::kLimit, std::move(*why), {}, 0});
      }
      auto parent = parent_of(work);
      if (!parent && lacks_parent(work)) {
        return fail(
            work,
            {Errc::kNotFound, "it is to lie in " + work.step.resource->parent + ", which is gone: apply again", {}, 0});
      }
      return submit(work, CreateJob{work.key(), std::move(*wanted), std::move(parent)}, now);
    }
    case Phase::kUpdating:
      begin_write(work);
      work.update->idempotency_key = work.key();
      if (MUSTER_MUTATION("update-unconditioned")) work.update->precondition = {};
      return submit(work, *work.update, now);
    case Phase::kDeleting:
      begin_write(work);
      if (MUSTER_MUTATION("delete-unconditioned")) work.precondition = {};
      return submit(work, DeleteJob{work.key(), work.op.native_id, work.precondition}, now);
    case Phase::kEmptying:
      return empty_more(work, now);
  }
}

void Execution::take(JobOutcome outcome, TimePoint now) {
  const auto job = jobs_.extract(outcome.job);
  if (job.empty()) return;
  const auto found = running_.find(job.mapped());
  if (found == running_.end()) return;
  auto& work = *found->second;
  const auto phase = work.phase();
  work.job = {};
  if (is_cut_off(work, outcome)) return stop(work, now);
  const bool changes_it =
      phase == Phase::kCreating || phase == Phase::kUpdating || phase == Phase::kDeleting || phase == Phase::kPolling;
  const bool answers =
      std::holds_alternative<MutationResult>(outcome.result) || std::holds_alternative<Error>(outcome.result);
  if ((changes_it || phase == Phase::kEmptying) && !answers) {  // which says nothing of whether it was applied
    outcome.result = Error{Errc::kContract, "the plugin answered a change with something else", {}, 0};
    outcome.uncertain = true;
  }
  if (changes_it) {
    work.op.uncertain = work.op.uncertain || (outcome.uncertain && !MUSTER_MUTATION("unknown-is-failed"));
    const auto* error = std::get_if<Error>(&outcome.result);
    const bool of_another = error != nullptr && (error->code == Errc::kNotFound || error->code == Errc::kTargetChanged);
    if (of_another && !still_serves(work)) return;
    take_change(work, std::move(outcome.result), now);
    return;
  }
  if (phase == Phase::kEmptying) return take_emptying(work, outcome, now);
  if (!still_serves(work)) return;  // another says nothing of what it was asked before
  if (phase == Phase::kFinding) return take_finding(work, std::move(outcome.result), now);
  ReadItem answer = Error{Errc::kContract, "the plugin answered a read with something else", {}, 0};
  if (auto* error = std::get_if<Error>(&outcome.result)) answer = std::move(*error);
  if (auto* read = std::get_if<ReadResult>(&outcome.result); read != nullptr && read->items.size() == 1) {
    answer = std::move(read->items.front());
  }
  if (const auto* item = std::get_if<Item>(&answer); item != nullptr && item->native_id != work.op.native_id) {
    answer = Error{
        Errc::kContract, "the plugin answered a read of " + work.op.native_id + " with " + item->native_id, {}, 0};
  }
  // What has been told as gone since may have been read before that: another look tells.
  const bool seen = std::holds_alternative<Item>(answer);
  if (seen && work.was_listed && !is_listed(read_row(work))) return go_on(work, phase, now);
  if (phase == Phase::kReading) return take_reading(work, answer, now);
  if (phase == Phase::kSettling) return take_settling(work, answer, now);
  take_converging(work, answer, now);
}

void Execution::release(std::size_t index) {
  for (const auto dependent : dependents_[index]) {
    if (--open_[dependent] == 0) ready_[plan_.steps[dependent].target].push_back(dependent);
  }
}

void Execution::replace_used(TimePoint now) {
  const auto waiting = made_first_;
  for (const auto index : waiting) {
    std::optional<std::size_t> failed;
    const bool used = std::ranges::any_of(dependents_[index], [&](std::size_t dependent) {
      if (plan_.steps[dependent].action == StepAction::kDelete) return false;  // these wait for all others
      if (states_[dependent] != State::kDone) failed = dependent;
      return !over(states_[dependent]);
    });
    if (used) continue;
    made_first_.erase(index);
    auto& work = *running_.at(index);
    work.deadline = now + kOperationDeadline;
    if (!failed) {
      if (!work.op.job.value.empty()) must(s_.store.put_create_of_replacement(work.op));
      work.begin_second_half();
      must(s_.store.put_operation(work.op));
      go_on(work, Phase::kReading, now, Millis{1});
      continue;
    }
    const auto message = "made, and what it replaces is there still: " + plan_.steps[*failed].name +
                         ", which refers to it, did not succeed; the next apply goes on with that";
    const bool cancelled = states_[*failed] == State::kCancelled;
    end(index, cancelled ? State::kCancelled : State::kFailed, cancelled ? "CANCELLED" : "NOT_STABILIZED", message);
  }
}

/// Begins what there is room for; whether that may have made more ready.
bool Execution::begin_ready(TimePoint now) {
  if (others_left_ == 0) {
    for (const auto index : std::exchange(deletions_, {})) ready_[plan_.steps[index].target].push_back(index);
  }
  bool ended = false;
  for (auto& [target, queue] : ready_) {
    while (!queue.empty() && running_.size() - made_first_.size() < kMaxRunning) {
      const auto index = queue.front();
      const bool deletes =
          plan_.steps[index].action == StepAction::kDelete && !MUSTER_MUTATION("deletions-do-not-wait");
      const bool cancelled = row_.cancel != Cancelled::kNo;
      const bool starts = states_[index] == State::kPending && !cancelled && !(deletes && others_left_ > 0);
      if (starts && !has_room(target)) break;
      queue.pop_front();
      if (states_[index] != State::kPending) continue;
      if (cancelled) {
        end(index, State::kCancelled, "CANCELLED", "cancelled before it was begun");
      } else if (deletes && others_left_ > 0) {
        deletions_.push_back(index);  // what is not declared any more goes when all else has succeeded
      } else if (deletes && others_failed_) {
        end(index, State::kBlocked, "BLOCKED", "nothing is deleted unless all else succeeds");
      } else {
        begin(index, now);
      }
      ended = ended || over(states_[index]);
    }
  }
  return ended;
}

bool Execution::has_room(const std::string& target) {
  const auto [it, unknown] = lanes_.try_emplace(target);
  if (unknown) {
    if (const auto row = must(s_.store.target(target))) it->second = {{row->ns, row->pool}, row->id};
  }
  const auto& [lane, id] = it->second;
  return lane.ns.empty() || s_.dispatcher.has_room(lane, Priority::kCommand, id);
}

void Execution::submit_waiting(TimePoint now) {
  std::vector<std::size_t> due;
  for (const auto& [index, work] : running_) {
    if (work->due <= now) due.push_back(index);
  }
  for (const auto index : due) {
    const auto it = running_.find(index);
    if (it == running_.end() || it->second->due > now) continue;
    auto& work = *it->second;
    const Lane lane{work.target.ns, work.target.pool};
    if (s_.dispatcher.has_room(lane, priority_of(work), work.target.id)) submit_due(work, now);
  }
}

void Execution::advance(TimePoint now) {
  if (finished_) return;
  advanced_at_ = now;
  submit_waiting(now);  // first: what has been read is changed before more is begun
  for (int pass = 0; pass < 2; ++pass) {
    while (begin_ready(now)) {
    }
    replace_used(now);  // may end more
  }
  if (left_ == 0) return finish();
  if (now < next_progress_) return;
  next_progress_ = now + kProgressEvery;
  auto said = progress();
  if (said != last_progress_) s_.events.emit({}, "command.progress", row_.id.value, said);
  last_progress_ = std::move(said);
}

TimePoint Execution::next_due() const {
  if (finished_) return TimePoint::max();
  const bool begun = advanced_at_ != TimePoint{};
  if (!begun || left_ == 0 || (others_left_ == 0 && !deletions_.empty())) return advanced_at_;
  auto due = next_progress_;
  for (const auto& [index, work] : running_) {
    if (work->due > advanced_at_) due = std::min(due, work->due);  // the others wait for room, which an answer makes
  }
  return due;
}

void Execution::cancel(Cancelled how, TimePoint now, Effects& effects) {
  if (finished_ || how <= row_.cancel) return;
  row_.cancel = how;
  must(s_.store.set_command(row_));
  take_back_unsent();
  if (how != Cancelled::kForced) return;
  s_.dispatcher.cancel_jobs(owner_, now, effects);
  std::vector<std::size_t> waiting;  // for their time, and not for the answer to a job or to a look
  for (const auto& [index, work] : running_) {
    const auto phase = work->phase();
    const bool looks = phase == Phase::kSettling || phase == Phase::kConverging || phase == Phase::kFinding;
    if (work->job.empty() && !looks) waiting.push_back(index);
  }
  for (const auto index : waiting) stop(*running_.at(index), now);
}

/// What no worker has been given has not been begun, but for a replacement of which one half is done.
void Execution::take_back_unsent() {
  std::vector<std::size_t> taken;
  for (const auto& [index, work] : running_) {
    const auto phase = work->phase();
    const bool looks_back = phase == Phase::kSettling || phase == Phase::kConverging || phase == Phase::kFinding ||
                            phase == Phase::kPolling;
    if (looks_back || work->op.uncertain || work->second_half() || work->job.empty()) continue;
    if (!s_.dispatcher.take_back(work->job)) continue;
    if (phase == Phase::kEmptying) end_write_of_content(*work);
    taken.push_back(index);
  }
  for (const auto index : taken) end(index, State::kCancelled, "CANCELLED", "cancelled before a worker took it");
}

std::string Execution::waiting() const {
  for (const auto& [index, work] : running_) {
    const Lane lane{work->target.ns, work->target.pool};
    if (!work->job.empty() && !s_.registry.serves(lane, {}))
      return "waiting for a worker of " + lane.ns + "/" + lane.pool;
  }
  return {};
}

bool Execution::hint(std::size_t step, const MutationResult& result) {
  const auto it = running_.find(step);
  if (it == running_.end() || result.native_id.empty()) return true;
  auto& work = *it->second;
  if (work.change() != Work::Change::kCreate) return true;
  if (!work.op.native_id.empty()) return work.op.native_id == result.native_id;
  work.op.native_id = result.native_id;  // what is waited for now fails or finds it; a later read of it settles
  work.op.uncertain = true;
  if (work.job.empty()) go_on(work, Phase::kSettling, work.due);
  must(s_.store.put_operation(work.op));
  return true;
}

void Execution::finish() {
  finished_ = true;
  const auto any = [&](State state) { return std::ranges::find(states_, state) != states_.end(); };
  const bool failed = any(State::kFailed) || any(State::kBlocked);
  const bool cancelled = any(State::kCancelled) || (states_.empty() && row_.cancel != Cancelled::kNo);
  row_.state = failed ? "failed" : cancelled ? "cancelled" : "complete";
  row_.finished_at = s_.clock.wall();
  row_.plan = plan_.without_resources().json();
  must(s_.store.put_command(row_));
  s_.events.emit({}, "command.finished", row_.id.value, progress());
  s_.log.info("command={} {}", row_.id.value, row_.state);
}

JsonText Execution::progress() const {
  std::map<State, std::uint64_t> counts;
  for (const auto state : states_) ++counts[state];
  JsonObject text;
  text.text("command", row_.id.value).text("kind", row_.kind).text("state", row_.state);
  text.raw("stacks", Json(row_.stacks).dump());
  for (const auto state :
       {State::kPending, State::kRunning, State::kDone, State::kFailed, State::kBlocked, State::kCancelled}) {
    text.number(state_name(state), counts[state]);
  }
  if (const auto waits = waiting(); !waits.empty()) text.text("waiting", waits);
  return text.take();
}

}  // namespace muster
