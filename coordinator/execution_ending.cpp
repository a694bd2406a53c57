// How steps end, and what is kept of those that did not succeed.

#include <utility>

#include <spdlog/spdlog.h>

#include "coordinator/claim.h"
#include "coordinator/execution_work.h"
#include "coordinator/must.h"
#include "schema/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kMessageBytes = 4096;  // of what a step says

}  // namespace

/// One that has failed, too, where the change itself was done, or a half of it.
bool Execution::may_have_changed(const OperationRow& operation) {
  const auto phase = static_cast<Phase>(operation.phase & Work::kPhaseBits);
  return operation.state == state_name(State::kDone) || operation.uncertain || phase == Phase::kConverging ||
         phase == Phase::kEmptying || (operation.phase & Work::kSecondHalf) != 0;
}

void Execution::count_ended(std::size_t index, State state) {
  states_[index] = state;
  --left_;
  if (plan_.steps[index].action == StepAction::kDelete) return;
  --others_left_;
  others_failed_ = others_failed_ || state != State::kDone;
}

/// What a step has seen of a resource no run finds changed once more: where the step does not make it as declared, it
/// is told here that it is another, once; what is marked and as declared again is marked no more. What it makes as it
/// declares may be another than is declared by now: a run has taken over what somebody made of it meanwhile.
void Execution::note_drift(const CommandStep& step, RowId seen, State ended) {
  const auto row = seen == 0 ? std::nullopt : must(s_.store.one(seen));
  const bool there = row && row->managed && row->state != ResourceState::kMissing;
  if (!there || MUSTER_MUTATION("drift-seen-unsaid")) return;
  if (row->drifted) return s_.drift.unmark(*row);
  const auto claim = ended == State::kDone ? must(s_.store.claim(seen)) : std::nullopt;
  if (!claim || claim->declared != step.claim) s_.drift.judge(*row);
}

/// What a replacement that does not succeed has done all the same.
std::string_view Execution::half_done(const Work& work) {
  if (!work.second_half()) return work.emptied_some ? "; some of what lay in it has been deleted" : "";
  if (work.create_first) return "; what replaces it has been made";
  return work.row == 0 ? "; what it replaces has been deleted" : "";
}

void Execution::end(std::size_t index, State state, std::string_view code, const std::string& message) {
  OperationRow operation;
  std::string said = message;
  bool released = false;
  if (const auto it = running_.find(index); it != running_.end()) {
    auto& work = *it->second;
    if (state != State::kDone) said += half_done(work);
    end_write(work);
    jobs_.erase(work.job);
    if (work.change() == Work::Change::kUpdate && state != State::kDone && work.op.uncertain) forget_unread(work);
    note_drift(work.step, work.step.row, state);
    if (work.row != work.step.row) note_drift(work.step, work.row, state);
    const bool creating = work.change() == Work::Change::kCreate;
    const bool forgotten = MUSTER_MUTATION("forget-unsettled-key");
    if (creating && state != State::kDone && work.op.uncertain && work.row == 0 && !forgotten) {
      leave_key(work);
      unsure_.emplace(work.step.target, work.step.type);
    }
    if (!creating && state != State::kDone && work.op.uncertain) leave_unsure(work);
    operation = it->second->op;
    made_first_.erase(index);
    released = work.made_first;
    running_.erase(it);
  }
  note_end(std::move(operation), index, state, code, said);
  if (state != State::kDone) return block_dependents(index);
  if (!released) release(index);
}

void Execution::note_end(OperationRow operation, std::size_t index, State state, std::string_view code,
                         const std::string& message) {
  operation.command = row_.id;
  operation.step = index;
  operation.state = state_name(state);
  operation.code = code;
  operation.message = utf8_prefix(message, kMessageBytes);
  must(s_.store.put_operation(operation));
  count_ended(index, state);
  if (state == State::kDone) return;
  const auto& step = plan_.steps[index];
  s_.log.info("command={} step={} stack={} {} code={} {}", row_.id.value, step.name, step.stack, state_name(state),
              code, message);
}

/// Until a run has looked again nobody vouches for what may have been changed, or be gone: no plan takes it for known.
/// No run is begun for it: what goes on still, it would see as it was before.
void Execution::leave_unsure(const Work& work) {
  const auto row = must(s_.store.one(work.step.row));
  if (row && row->state == ResourceState::kPresent) must(s_.store.set_stale(row->row, true));
}

/// And theirs, of which there may be more, one behind the other, than calls fit on the stack.
void Execution::block_dependents(std::size_t index) {
  const bool cancelled = states_[index] == State::kCancelled;
  const auto state = cancelled ? State::kCancelled : State::kBlocked;
  for (std::vector<std::size_t> ended{index}; !ended.empty();) {
    const auto last = ended.back();
    ended.pop_back();
    for (const auto dependent : dependents_[last]) {
      if (states_[dependent] != State::kPending) continue;
      note_end({}, dependent, state, cancelled ? "CANCELLED" : "BLOCKED",
               "waits for " + plan_.steps[last].name + ", which " + (cancelled ? "was cancelled" : "did not succeed"));
      ended.push_back(dependent);
    }
  }
}

void Execution::fail(Work& work, const Error& error) {
  // What does not become what it is said to be does not another time, either.
  const bool passes = error_traits(error.code).retry != Retry::kNever;
  if (passes && (error.code != Errc::kNotStabilized || work.op.uncertain)) failed_for_now_.insert(work.op.step);
  end(work.op.step, State::kFailed, errc_name(error.code),
      work.op.uncertain ? "whether it was applied is not known: " + error.message : error.message);
}

std::set<std::string> Execution::to_try_again() const {
  std::set<std::string> names;
  for (std::size_t i = 0; i < states_.size() && !failed_for_now_.empty(); ++i) {
    if (states_[i] == State::kBlocked || failed_for_now_.contains(i)) names.insert(declared_name(plan_.steps[i].name));
  }
  return names;
}

}  // namespace muster
