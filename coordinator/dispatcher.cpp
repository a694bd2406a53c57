#include "coordinator/dispatcher.h"

#include <algorithm>
#include <utility>

#include "schema/codec.h"
#include "schema/mutation.h"
#include "schema/views.h"

namespace muster {
namespace {

constexpr Millis kCheckEvery{100};
constexpr std::size_t kQueuedPerSlot = 4;    // of a priority; more waits with the caller
constexpr std::size_t kQueuedPerTarget = 4;  // of a priority, however many others there are
constexpr std::size_t kUnheard = 4;          // dispatches of a job
constexpr Millis kRecoverAfter{3500};        // until nobody has a recovered job any more: some heartbeats

}  // namespace

JobId Dispatcher::submit(JobSpec spec, TimePoint now, WallTime wall) {
  JobId id = spec.id.empty() ? JobId(make_ulid(wall, random_)) : spec.id;
  auto& record = jobs_[id];
  record.id = id;
  record.deadline = now + spec.deadline + (spec.recovered ? kRecoverAfter : Millis{0});
  record.waits_since = now;
  record.patient_until = now + spec.patience;
  record.spec = std::move(spec);
  count_in(record.spec);
  if (record.spec.recovered) {
    record.uncertain = true;
    delay(record, now + kRecoverAfter);
  } else {
    enqueue(record, false);
  }
  return id;
}

bool Dispatcher::rests(const JobId& job, TimePoint now) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return false;
  const auto& record = it->second;
  if (record.state != State::kQueued) return record.state == State::kDelayed;
  return limiter_.ready_at(record.spec.lane.ns, record.spec.target.id, now) > now;
}

const Lane* Dispatcher::lane_of(const JobId& job) const {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : &it->second.spec.lane;
}

const Lane* Dispatcher::lane_of(const Token& token) const {
  const auto it = leases_.find(token.value);
  return it == leases_.end() ? nullptr : &it->second->spec.lane;
}

bool Dispatcher::leases(const JobId& job, const Token& token) const {
  const auto lease = leases_.find(token.value);
  if (lease != leases_.end() && lease->second->id == job) return true;
  if (MUSTER_MUTATION("any-token") && jobs_.contains(job)) return true;
  const auto unheard = unheard_.find(token.value);  // a change that was never told to go has no result
  return unheard != unheard_.end() && unheard->second == job && !is_mutation(jobs_.at(job).spec.operation);
}

bool Dispatcher::supersede(const JobId& job, JobResult result, Effects& effects) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return false;
  auto& record = it->second;
  recall(record, effects);
  finish(record, std::move(result));
  return true;
}

void Dispatcher::cancel_jobs(std::uint64_t owner, TimePoint now, Effects& effects) {
  std::vector<JobId> ids;
  for (const auto& [id, record] : jobs_) {
    if (record.spec.owner == owner) ids.push_back(id);
  }
  for (const auto& id : ids) {
    auto& record = jobs_.at(id);
    record.stopped = Error{Errc::kCancelled, "cancelled", {}, 0};
    if (record.gone && record.state == State::kRunning) {
      cancel(record.spec.lane.ns, record.worker, id, record.token, effects);
      record.deadline = std::min(record.deadline, now + kChangeLease);  // it has as long to say how it went
      continue;
    }
    recall(record, effects);
    finish(record, *record.stopped);
  }
}

void Dispatcher::stop_changes(const TargetId& target) {
  std::vector<JobId> ids;
  for (const auto& [id, record] : jobs_) {
    if (record.spec.target.id == target && is_mutation(record.spec.operation)) ids.push_back(id);
  }
  std::ranges::sort(ids);
  for (const auto& id : ids) {
    auto& record = jobs_.at(id);
    record.stopped = Error{Errc::kTargetChanged, "the target is another by now", {}, 0};
    const bool sent = record.state == State::kSent || record.state == State::kRunning;
    if (sent && record.gone) continue;
    if (sent) end_flight(record);  // who has it is told by nobody to begin
    finish(record, *record.stopped);
  }
}

bool Dispatcher::may_have_begun(const JobId& change) const {
  const auto it = jobs_.find(change);
  if (it == jobs_.end()) return true;
  const auto& record = it->second;
  const bool sent = record.state == State::kSent || record.state == State::kRunning;
  return record.uncertain || (sent && record.gone);
}

void Dispatcher::withdraw(std::uint64_t owner, Effects& effects, const TargetId& target) {
  std::vector<JobId> ids;
  for (const auto& [id, record] : jobs_) {
    if (record.spec.owner == owner && (target.empty() || record.spec.target.id == target)) ids.push_back(id);
  }
  for (const auto& id : ids) {
    auto& record = jobs_.at(id);
    recall(record, effects);
    count_out(record.spec);
    forget_unheard(record);
    jobs_.erase(id);  // queues drop ids that are no longer there
  }
}

bool Dispatcher::take_back(const JobId& job) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return false;
  const auto& record = it->second;
  if (record.attempt > 0 || record.offered || record.uncertain) return false;
  count_out(record.spec);
  jobs_.erase(it);  // queues drop ids that are no longer there
  return true;
}

std::size_t Dispatcher::load(const Lane& lane) const {
  const auto it = lanes_.find(lane);
  return it == lanes_.end() ? 0 : it->second.jobs;
}

bool Dispatcher::has_room(const Lane& lane, Priority priority, const TargetId& target) {
  const auto it = lanes_.find(lane);
  if (it == lanes_.end()) return true;
  const auto& queue = it->second.queues[static_cast<std::size_t>(priority)];
  const auto wanted = std::max<std::size_t>(16, registry_.slots(lane) * kQueuedPerSlot);
  const auto most = static_cast<std::size_t>(config_.limits.jobs_in_flight) * kQueuedPerSlot;
  if (queue.jobs < std::min(wanted, most)) return true;
  const auto found = queue.jobs_of.find(target);
  const auto own = found == queue.jobs_of.end() ? 0 : found->second;
  return own < kQueuedPerTarget || (it->second.idle && own < wanted && queue.jobs < most);
}

void Dispatcher::count_in(const JobSpec& spec) {
  auto& lane = lanes_[spec.lane];
  auto& queue = lane.queues[static_cast<std::size_t>(spec.priority)];
  ++lane.jobs;
  ++queue.jobs;
  ++queue.jobs_of[spec.target.id];
}

void Dispatcher::count_out(const JobSpec& spec) {
  auto& lane = lanes_[spec.lane];
  auto& queue = lane.queues[static_cast<std::size_t>(spec.priority)];
  --lane.jobs;
  --queue.jobs;
  const auto own = queue.jobs_of.find(spec.target.id);
  if (--own->second == 0) queue.jobs_of.erase(own);
}

void Dispatcher::attribute(Record& record, const WorkerId& worker) {
  if (!record.worker.empty()) return;
  record.worker = worker;
  --lanes_[record.spec.lane].unattributed;
  if (auto* entry = registry_.find(record.spec.lane.ns, worker)) ++entry->assigned;
}

void Dispatcher::go(Record& record, TimePoint now) {
  if (!std::exchange(record.gone, true)) {
    if (!MUSTER_MUTATION("late-claim")) forget_unheard(record);  // nobody else may begin it
    record.go_until = now + kChangeLease / 2;
    // Until then it may begin: whoever is asked before that may make a second change beside it.
    record.deadline = std::max(record.deadline, now + kChangeLease);
  }
  if (now <= record.go_until) to_go_.push_back(record.token);
}

/// What was read meanwhile may have ended the dispatch: its worker has given up, and nobody waits for it.
void Dispatcher::say_go(Effects& effects) {
  for (const auto& token : std::exchange(to_go_, {})) {
    const auto lease = leases_.find(token.value);
    if (lease == leases_.end()) continue;
    const auto& record = *lease->second;
    effects.at_once.push_back({subjects_.worker_control(record.spec.lane.ns, record.worker),
                               {},
                               encode(Control{fleet_, Go{{record.id, token}}}),
                               {}});
  }
}

void Dispatcher::end_flight(Record& record) {
  record.uncertain = record.uncertain || record.gone;
  leases_.erase(record.token.value);
  auto& lane = lanes_[record.spec.lane];
  --lane.flying;
  if (record.worker.empty()) {
    --lane.unattributed;
  } else if (std::exchange(record.stranded, false)) {
    --lane.stranded;
  } else if (auto* entry = registry_.find(record.spec.lane.ns, record.worker);
             entry != nullptr && entry->assigned > 0) {
    --entry->assigned;
  }
  drop_parts(record);
  record.token = {};
  record.last_worker = std::exchange(record.worker, {});
}

/// From whoever has it.
void Dispatcher::recall(Record& record, Effects& effects) {
  if (record.state != State::kSent && record.state != State::kRunning) return;
  if (!record.worker.empty()) cancel(record.spec.lane.ns, record.worker, record.id, record.token, effects);
  end_flight(record);
}

void Dispatcher::keep_unheard(Record& record) {
  if (record.unheard.size() == kUnheard) {
    unheard_.erase(record.unheard.front().value);
    record.unheard.erase(record.unheard.begin());
  }
  record.unheard.push_back(record.token);
  unheard_.emplace(record.token.value, record.id);
}

void Dispatcher::forget_unheard(Record& record) {
  for (const auto& token : std::exchange(record.unheard, {})) unheard_.erase(token.value);
}

Dispatcher::Record* Dispatcher::find_unheard(const JobId& job, const Token& token) {
  const auto found = unheard_.find(token.value);
  return found == unheard_.end() || found->second != job ? nullptr : &jobs_.at(job);
}

void Dispatcher::finish(Record& record, JobResult result) {
  if (const auto* error = std::get_if<Error>(&result); error != nullptr && error->code != Errc::kNotFound) {
    ++counters_.failed;
    notice(JobNotice::Kind::kFailed, record, *error);
  }
  count_out(record.spec);
  forget_unheard(record);
  const auto node = jobs_.extract(record.id);  // keeps the record until its parts have gone on
  outcomes_.push_back({std::move(record.id), record.spec.owner, std::move(result), std::move(record.last_worker),
                       record.attempt, record.uncertain});
}

void Dispatcher::notice(JobNotice::Kind kind, const Record& record, const Error& error) {
  notices_.push_back({kind, record.id, record.spec.lane.ns, record.spec.type, record.spec.target.name,
                      operation_name(record.spec.operation), record.last_worker, record.attempt, error});
}

void Dispatcher::fail(Record& record, Error error, std::uint32_t calls, TimePoint now) {
  const auto traits = error_traits(error.code);
  const bool change = is_mutation(record.spec.operation);
  if (record.stopped || (change && error.code != Errc::kThrottling)) {
    finish(record, std::move(error));  // what is to be done is for who knows what was asked
    return;
  }
  if (change && calls == 0) {  // the worker cannot keep its result: no word of the target, nor of other workers
    if (registry_.serves(record.spec.lane, record.spec.manifest, record.last_worker)) error.retry_after = {};
  } else if (error.code == Errc::kThrottling) {
    limiter_.throttled(record.spec.lane.ns, record.spec.target.id, error.retry_after, now);
  } else {
    ++record.failures;  // being throttled is no failure: only the deadline ends it
  }
  const int allowed = traits.retry == Retry::kNever      ? 0
                      : traits.retry == Retry::kFewTimes ? std::min(3, config_.retry.attempts)
                                                         : config_.retry.attempts;
  const auto exponent = std::clamp<int>(record.attempt - 1, 0, 20);  // none counts where a late answer came in
  const Millis ceiling = std::min(config_.retry.max, Millis(config_.retry.base.count() << exponent));
  const Millis jitter(random_.below(static_cast<std::uint64_t>(ceiling.count()) + 1));
  const auto again = now + std::max(jitter, error.retry_after);
  if (record.failures >= allowed || again >= record.deadline) {
    finish(record, std::move(error));
    return;
  }
  ++counters_.retried;
  notice(JobNotice::Kind::kRetried, record, error);
  delay(record, again);
}

bool Dispatcher::count_taken(Record& record) {
  if (++record.workers_taken < kWorkersTaken) return true;
  finish(record,
         Error{Errc::kInternalFailure, "the job took " + std::to_string(kWorkersTaken) + " workers with it", {}, 0});
  return false;
}

void Dispatcher::send_again(Record& record, TimePoint now) {
  ++counters_.resent;
  --record.attempt;
  record.offered = true;
  const auto silent = record.worker;
  const auto unheard = [&](const WorkerEntry& worker) { return worker.last_heard <= record.since; };
  if (silent.empty()) {
    for (const auto* worker : registry_.lane(record.spec.lane)) {
      if (unheard(*worker)) record.suspects.push_back(worker->announcement.worker);
    }
  } else if (const auto* worker = registry_.find(record.spec.lane.ns, silent); worker == nullptr || unheard(*worker)) {
    record.suspects.push_back(silent);
  }
  keep_unheard(record);
  end_flight(record);
  if (auto* worker = registry_.find(record.spec.lane.ns, silent)) worker->full_until = now + kNoSign;
  settle_suspects(record, now);
}

void Dispatcher::settle_suspects(Record& record, TimePoint now) {
  bool gone = false;
  std::erase_if(record.suspects, [&](const WorkerId& id) {
    const auto* worker = registry_.find(record.spec.lane.ns, id);
    const bool lost = worker == nullptr || worker->state == WorkerState::kLost;
    gone = gone || lost;
    return lost || worker->last_heard > record.since;
  });
  if (gone) {
    record.suspects.clear();
    if (!count_taken(record)) return;
  }
  if (record.suspects.empty()) {
    record.waits_since = now;
    enqueue(record, true);
  } else {
    delay(record, now + kCheckEvery);
  }
}

void Dispatcher::lose_worker(Record& record, TimePoint now) {
  ++counters_.lost;
  const auto worker = record.worker;
  end_flight(record);
  if (!count_taken(record)) return;
  Error error{Errc::kTimeout, "worker " + worker.value + " fell silent while it ran the job", {}, 0};
  if (now >= record.deadline || record.stopped) {
    finish(record, std::move(error));
    return;
  }
  notice(JobNotice::Kind::kRetried, record, error);
  record.waits_since = now;
  enqueue(record, true);
}

void Dispatcher::cancel(std::string_view ns, const WorkerId& worker, const JobId& job, const Token& token,
                        Effects& effects) {
  if (auto* record = find_unheard(job, token)) {  // what it says now is that it was told to stop
    unheard_.erase(token.value);
    std::erase(record->unheard, token);
  }
  effects.at_once.push_back(
      {subjects_.worker_control(ns, worker), {}, encode(Control{fleet_, Cancel{{job, token}}}), {}});
}

void Dispatcher::on_worker_lost(std::string_view ns, const WorkerId& worker, TimePoint now, Effects&) {
  std::vector<JobId> ids;
  for (const auto& [token, record] : leases_) {
    if (record->worker != worker || record->spec.lane.ns != ns) continue;
    if (!record->gone || MUSTER_MUTATION("change-lost-as-read")) {
      ids.push_back(record->id);
    } else if (!std::exchange(record->stranded, true)) {  // a change that may run keeps its own lease
      ++lanes_[record->spec.lane].stranded;
    }
  }
  for (const auto& id : ids) lose_worker(jobs_.at(id), now);
}

bool Dispatcher::is_heard_after(const Lane& lane, TimePoint time) {
  return std::ranges::any_of(registry_.lane(lane), [&](const auto* worker) { return worker->last_heard > time; });
}

void Dispatcher::on_lane_changed(const Lane& lane) {
  if (const auto it = lanes_.find(lane); it != lanes_.end()) it->second.not_before = {};
}

std::string Dispatcher::waited_for(const Record& record, TimePoint now) {
  const auto& [ns, pool] = record.spec.lane;
  const auto& target = record.spec.target;
  if (const auto ready = limiter_.ready_at(ns, target.id, now); ready > now) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(ready - now).count();
    return "the target " + target.name + " was not to be asked before the job's deadline: " +
           (limiter_.pauses(ns, target.id, now)
                ? "it asked for a pause that goes on for another " + std::to_string(left) + " s"
                : "its limit of calls is reached");
  }
  const bool served = registry_.serves(record.spec.lane, record.spec.manifest);
  std::string who = "no worker of " + ns + "/" + pool;
  if (const auto manifest = registry_.manifest(record.spec.manifest);
      manifest && !served && registry_.serves(record.spec.lane, {})) {
    who += " that serves " + manifest->plugin + " " + manifest->version;
  }
  return who + (served && !record.offered ? " had room for" : " took") + " the job within its deadline";
}

void Dispatcher::extend(Record& record, TimePoint rested) {
  if (record.attempt > 0) return;
  const auto last = record.offered ? rested : std::max(rested, lanes_[record.spec.lane].last_full);
  record.deadline = std::max(record.deadline, std::min(last + record.spec.deadline, record.patient_until));
}

void Dispatcher::expire(Record& record, TimePoint now, Effects& effects) {
  if (record.state == State::kQueued) {
    const auto& queue = lanes_[record.spec.lane].queues[static_cast<std::size_t>(record.spec.priority)];
    const auto turn = std::ranges::find(queue.targets, record.spec.target.id, &TargetQueue::target);
    extend(record, turn == queue.targets.end() ? TimePoint{} : turn->last_rested);
  }
  if (now >= record.deadline) {
    Error error{Errc::kTimeout, {}, {}, 0};
    if (record.attempt == 0) {
      error.code = record.offered ? Errc::kTimeout : Errc::kNoWorker;
      error.message = waited_for(record, now);
    } else {
      error.message = "no result within the job's deadline, after " + std::to_string(record.attempt) + " attempts";
    }
    recall(record, effects);
    finish(record, std::move(error));
  } else if (record.state == State::kSent && now - record.since >= kNoSign) {
    send_again(record, now);
  } else if (record.state == State::kRunning && now - record.since >= lease_of(record)) {
    lose_worker(record, now);
  }
}

void Dispatcher::tick(TimePoint now, Lateness lateness, Effects& effects) {
  say_go(effects);
  if (jobs_.empty()) return;
  if (now >= next_check_ && lateness != Lateness::kSkip) {
    next_check_ = now + kCheckEvery;
    std::vector<JobId> late;
    for (const auto& [id, record] : jobs_) {
      const bool sent = record.state == State::kSent && now - record.since >= kNoSign;
      const bool silent = record.state == State::kRunning && now - record.since >= lease_of(record);
      if (now >= record.deadline || (lateness == Lateness::kJudge && (sent || silent))) late.push_back(id);
    }
    std::ranges::sort(late);
    for (const auto& id : late) expire(jobs_.at(id), now, effects);
  }
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const auto [until, id] = *delayed_.begin();
    delayed_.erase(delayed_.begin());
    const auto it = jobs_.find(id);
    if (it == jobs_.end()) continue;
    auto& record = it->second;
    if (record.state != State::kDelayed || record.delayed_until != until) continue;
    if (may_be_claimed(record) && lateness != Lateness::kJudge) {
      delay(record, now + kCheckEvery);
      continue;
    }
    record.waits_since = now;
    record.suspects.empty() ? enqueue(record, false) : settle_suspects(record, now);
  }
  blocked_until_ = TimePoint::max();
  for (auto& [lane, state] : lanes_) {
    if (state.jobs > 0) pump(lane, state, now, effects);
  }
}

TimePoint Dispatcher::next_due() const {
  if (!outcomes_.empty() || !to_go_.empty()) return TimePoint{};
  if (jobs_.empty()) return TimePoint::max();
  auto due = std::min(next_check_, blocked_until_);
  if (!delayed_.empty()) due = std::min(due, delayed_.begin()->first);
  return due;
}

void Dispatcher::grace(TimePoint now) {
  for (auto& [id, record] : jobs_) {
    if (record.state == State::kSent || record.state == State::kRunning) record.since = now;
    if (record.state == State::kDelayed && may_be_claimed(record)) delay(record, now + kRecoverAfter);
  }
  for (auto& [lane, state] : lanes_) state.not_before = {};
}

}  // namespace muster
