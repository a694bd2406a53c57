// Which job goes next, and to whom.

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "coordinator/dispatcher.h"
#include "schema/codec.h"
#include "schema/mutation.h"
#include "schema/views.h"

namespace muster {
namespace {

constexpr std::array<std::uint64_t, 4> kStride = {8, 4, 2, 1};  // by Priority: 8 commands go for one discovery
constexpr std::uint16_t kPagesPerAnswer = 64;                   // of a plugin

}  // namespace

void Dispatcher::enqueue(Record& record, bool front) {
  record.state = State::kQueued;
  auto& lane = lanes_[record.spec.lane];
  auto& queue = lane.queues[static_cast<std::size_t>(record.spec.priority)];
  if (queue.targets.empty()) {
    // A class that was idle does not catch up on the turns it did not need.
    std::uint64_t least = 0;
    for (const auto& other : lane.queues) {
      if (!other.targets.empty()) least = least == 0 ? other.pass : std::min(least, other.pass);
    }
    queue.pass = std::max(queue.pass, least);
  }
  auto it = std::ranges::find_if(queue.targets, [&](const auto& t) { return t.target == record.spec.target.id; });
  if (it == queue.targets.end()) it = queue.targets.insert(it, {record.spec.target.id, {}});
  if (front) {
    it->jobs.push_front(record.id);
  } else {
    it->jobs.push_back(record.id);
  }
}

void Dispatcher::delay(Record& record, TimePoint until) {
  record.state = State::kDelayed;
  record.delayed_until = until;
  delayed_.emplace(until, record.id);
}

std::optional<JobId> Dispatcher::next_job(const Lane& lane, LaneState& state, const std::set<std::string>& full,
                                          TimePoint now) {
  std::array<std::size_t, 4> order = {3, 2, 1, 0};
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return state.queues[i].pass; });
  for (const auto index : order) {
    auto& targets = state.queues[index].targets;
    for (std::size_t left = targets.size(); left > 0; --left) {
      auto& turn = targets.front();
      auto job = jobs_.end();
      while (!turn.jobs.empty()) {
        job = jobs_.find(turn.jobs.front());
        if (job != jobs_.end() && job->second.state == State::kQueued) break;
        turn.jobs.pop_front();
      }
      if (turn.jobs.empty()) {
        targets.pop_front();
        continue;
      }
      const auto ready = limiter_.ready_at(lane.ns, turn.target, now);
      if (ready > now) {
        blocked_until_ = std::min(blocked_until_, ready);
        if (!limiter_.pauses(lane.ns, turn.target, now)) turn.last_rested = now;
      }
      if (ready > now || full.contains(job->second.spec.manifest)) {
        targets.splice(targets.end(), targets, targets.begin());
        continue;
      }
      extend(job->second, turn.last_rested);
      auto id = std::move(turn.jobs.front());
      turn.jobs.pop_front();
      if (turn.jobs.empty()) {
        targets.pop_front();
      } else {
        targets.splice(targets.end(), targets, targets.begin());
      }
      const auto pass = state.queues[index].pass;
      // Those that had nothing to send do not catch up on the turns that they could not use.
      for (auto& other : state.queues) other.pass = std::max(other.pass, pass);
      state.queues[index].pass += kStride[index];
      return id;
    }
  }
  return std::nullopt;
}

void Dispatcher::put_back(Record& record, LaneState& state) {
  auto& queue = state.queues[static_cast<std::size_t>(record.spec.priority)];
  const auto pass = queue.pass;
  enqueue(record, true);
  queue.pass = pass;  // it was not idle: its turn is now, and not after what may go meanwhile
  const auto turn = std::ranges::find(queue.targets, record.spec.target.id, &TargetQueue::target);
  queue.targets.splice(queue.targets.begin(), queue.targets, turn);
}

void Dispatcher::pump(const Lane& lane, LaneState& state, TimePoint now, Effects& effects) {
  state.idle = false;
  if (state.not_before > now) {
    blocked_until_ = std::min(blocked_until_, state.not_before);
    return;
  }
  auto left = room(lane, state, now);
  fill(left, lane, state, now, effects);
  if (left.slots == 0 && registry_.slots(lane) > 0) state.last_full = now;
}

Dispatcher::Room Dispatcher::room(const Lane& lane, const LaneState& state, TimePoint now) {
  const auto less = [](std::size_t from, std::size_t what) { return from - std::min(from, what); };
  Room room;
  std::size_t waiting = 0;
  for (const auto* worker : registry_.lane(lane)) {
    if (worker->state == WorkerState::kActive) waiting += worker->waiting();
    room.places += worker->places(now);
  }
  const auto flying = state.flying - state.stranded;
  const auto may_fly = less(static_cast<std::size_t>(config_.limits.jobs_in_flight), flying);
  room.slots = std::min(less(registry_.capacity(lane), less(flying, waiting)), may_fly);
  room.crowded = room.places > 0 && state.jobs - state.flying >= room.slots;
  // While it is not known whom some jobs have met, it is not known who has no slot free.
  room.places = state.unattributed > 0 ? 0 : std::min(room.places, may_fly - room.slots);
  return room;
}

void Dispatcher::fill(Room& room, const Lane& lane, LaneState& state, TimePoint now, Effects& effects) {
  std::set<std::string> full;
  while (room.slots > 0 || room.places > 0) {
    const auto id = next_job(lane, state, full, now);
    state.idle = !id && full.empty() && room.slots > 0;
    if (!id) return;
    auto& record = jobs_.at(*id);
    if (send(record, state, room, now, effects)) {
      --(record.waits || room.slots == 0 ? room.places : room.slots);
      if (record.worker.empty()) room.places = 0;
      continue;
    }
    const auto index = static_cast<std::size_t>(record.spec.priority);
    state.queues[index].pass -= kStride[index];
    if (registry_.serves(lane, record.spec.manifest)) {  // all who could take it are full
      put_back(record, state);
      blocked_until_ = std::min(blocked_until_, now + kBusyPause);
      const auto has_room = [&](const WorkerEntry* worker) { return worker->has_room(now); };
      if (std::ranges::none_of(registry_.lane(lane), has_room)) return;
      full.insert(record.spec.manifest);  // those of another have room
      continue;
    }
    if (auto next = registry_.manifest_of(lane).first; record.spec.follows && !next.empty()) {
      record.spec.manifest = std::move(next);
      put_back(record, state);
      continue;
    }
    delay(record, now + kNobodyPause);  // nobody of this manifest is there: others need not wait for it
  }
}

bool Dispatcher::queue_group_serves(const Record& record, const LaneState& state, TimePoint now) {
  if (!record.last_worker.empty()) return false;
  return std::ranges::all_of(registry_.lane(record.spec.lane), [&](const WorkerEntry* worker) {
    return worker->has_room(now) && worker->healthy &&
           worker->assigned + state.unattributed < worker->announcement.slots &&
           (record.spec.manifest.empty() || worker->announcement.manifest == record.spec.manifest);
  });
}

bool Dispatcher::may_wait(const Record& record) const {
  const bool reads =
      std::holds_alternative<ListJob>(record.spec.operation) || std::holds_alternative<ReadJob>(record.spec.operation);
  return reads && record.attempt == 0 && record.last_worker.empty() &&
         !limiter_.limits(record.spec.lane.ns, record.spec.target.id);
}

WorkerEntry* Dispatcher::choose(const Record& record, bool may_wait, TimePoint now) {
  WorkerEntry* best = nullptr;
  auto rank = [&](const WorkerEntry& w) {
    return std::tuple(w.announcement.worker == record.last_worker, w.assigned >= w.announcement.slots, !w.healthy,
                      static_cast<double>(w.assigned) / w.announcement.slots);
  };
  for (auto* worker : registry_.lane(record.spec.lane)) {
    if (!worker->has_room(now) && !(may_wait && worker->places(now) > 0)) continue;
    if (!record.spec.manifest.empty() && worker->announcement.manifest != record.spec.manifest) continue;
    if (best == nullptr || rank(*worker) < rank(*best)) best = worker;
  }
  return best;
}

bool Dispatcher::send(Record& record, LaneState& state, const Room& room, TimePoint now, Effects& effects) {
  const auto& spec = record.spec;
  const bool group = !room.crowded && queue_group_serves(record, state, now);
  WorkerEntry* worker = group ? nullptr : choose(record, room.places > 0 && may_wait(record), now);
  if (!group && worker == nullptr) return false;

  const bool change = is_mutation(spec.operation);
  record.token = Token(make_token(random_));
  record.state = State::kSent;
  record.since = now;
  record.gone = false;
  record.slow = false;
  record.waits = worker != nullptr && worker->assigned >= worker->announcement.slots;
  ++record.attempt;
  ++state.flying;
  ++counters_.dispatched;
  leases_.emplace(record.token.value, &record);
  if (spec.limit.count() > 0) record.deadline = std::min(record.deadline, now + std::exchange(record.spec.limit, {}));
  limiter_.charge(spec.lane.ns, spec.target.id, 1, now);
  record.limited = limiter_.limits(spec.lane.ns, spec.target.id);
  if (worker != nullptr) {
    record.worker = worker->announcement.worker;
    ++worker->assigned;
  } else {
    ++state.unattributed;
  }

  if (auto* list = std::get_if<ListJob>(&record.spec.operation)) {
    // Each page is a call; and what may have taken a worker with it is to take no other page along.
    const bool alone = record.limited || record.attempt > 1 || record.workers_taken > 0;
    list->pages = alone ? 1 : kPagesPerAnswer;
  }
  const auto time_left = std::max(Millis(1), std::chrono::duration_cast<Millis>(record.deadline - now));
  const JobView job{fleet_,         record.id,
                    record.token,   record.attempt,
                    spec.lane.ns,   spec.lane.pool,
                    spec.target,    spec.type,
                    spec.manifest,  change ? kChangeLease : kReadLease,
                    time_left,      spec.priority,
                    spec.operation, record.waits ? kWaitForSlot : Millis{0}};
  (change && !MUSTER_MUTATION("change-before-commit") ? effects.after_commit : effects.at_once)
      .push_back({worker == nullptr ? subjects_.job(spec.lane.ns, spec.lane.pool)
                                    : subjects_.worker_job(spec.lane.ns, record.worker),
                  subjects_.reply(spec.lane.ns, self_, record.token),
                  encode(job),
                  {}});
  return true;
}

}  // namespace muster
