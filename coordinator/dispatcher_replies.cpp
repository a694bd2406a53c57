// What workers say of the jobs that they have.

#include <algorithm>
#include <numeric>
#include <utility>

#include "coordinator/dispatcher.h"
#include "schema/codec.h"
#include "schema/mutation.h"

namespace muster {
namespace {

constexpr std::size_t kMaxReplyPartBytes = 256ULL << 20;  // of all replies that are being put together

/// Whether it is the outcome of a change, which counts whoever brings it: a worker that was started again has another
/// id.
bool tells_of_change(const decltype(JobReply::body)& body) {
  const auto* result = std::get_if<JobResult>(&body);
  return std::holds_alternative<Part>(body) || (result != nullptr && std::holds_alternative<MutationResult>(*result));
}

}  // namespace

void Dispatcher::on_reply(std::string_view ns, JobReply reply, TimePoint now, Effects& effects) {
  const auto known = MUSTER_MUTATION("any-token") ? jobs_.find(reply.job) : jobs_.end();
  if (known != jobs_.end()) reply.token = known->second.token;
  resume_by(reply, now, effects);
  const auto lease = leases_.find(reply.token.value);
  if (reply.fleet != fleet_ || lease == leases_.end() || lease->second->id != reply.job) {
    ++counters_.stale_replies;
    if (std::holds_alternative<Accepted>(reply.body) && registry_.find(ns, reply.worker) != nullptr) {
      cancel(ns, reply.worker, reply.job, reply.token, effects);
    }
    return;
  }
  auto& record = *lease->second;
  if (record.gone && record.worker != reply.worker && !tells_of_change(reply.body)) {
    ++counters_.stale_replies;  // one message reached two, or one lies: who was told to go on has it
    if (std::holds_alternative<Accepted>(reply.body) && registry_.find(ns, reply.worker) != nullptr) {
      cancel(ns, reply.worker, reply.job, reply.token, effects);
    }
    return;
  }
  if (std::holds_alternative<Busy>(reply.body)) {
    ++counters_.busy;
    record.offered = record.offered || !record.waits;  // it was sent there to wait for its turn
    if (auto* worker = registry_.find(ns, reply.worker)) {
      worker->full_until = now + kBusyPause;
      if (record.waits) {
        worker->no_wait_until = now + kPlacesPause;
        worker->quick = false;
      }
    }
    attribute(record, reply.worker);
    return untaken(record);
  }
  attribute(record, reply.worker);
  if (auto* result = std::get_if<JobResult>(&reply.body)) {
    note_pace(record);
    take_result(record, std::move(*result), reply.calls, now);
    return;
  }
  record.state = State::kRunning;
  record.since = now;
  record.slow = true;
  if (std::holds_alternative<Accepted>(reply.body) && is_mutation(record.spec.operation)) go(record, now);
  if (auto* part = std::get_if<Part>(&reply.body)) take_part(record, std::move(*part), now, effects);
}

/// On a slow link every sign may take longer than the time after which a job is sent again.
void Dispatcher::resume_by(const JobReply& reply, TimePoint now, Effects& effects) {
  auto* record = reply.fleet == fleet_ ? find_unheard(reply.job, reply.token) : nullptr;
  if (record == nullptr) return;
  const bool read = !is_mutation(record->spec.operation);
  const bool free = record->state != State::kRunning;
  bool counts =
      free && (std::holds_alternative<Accepted>(reply.body) || (read && std::holds_alternative<Part>(reply.body)));
  if (const auto* result = std::get_if<JobResult>(&reply.body); read && result != nullptr) {
    const auto* error = std::get_if<Error>(result);
    counts = error == nullptr || (free && error->code != Errc::kCancelled);
  }
  if (counts) resume(*record, reply.token, reply.worker, now, effects);
}

void Dispatcher::resume(Record& record, const Token& token, const WorkerId& worker, TimePoint now, Effects& effects) {
  const bool sent = record.state == State::kSent || record.state == State::kRunning;
  if (!sent) ++record.attempt;  // was taken back when it was given up
  recall(record, effects);
  unheard_.erase(token.value);
  std::erase(record.unheard, token);
  record.suspects.clear();
  record.token = token;
  record.state = State::kRunning;
  record.since = now;
  record.worker = worker;
  leases_.emplace(record.token.value, &record);
  ++lanes_[record.spec.lane].flying;
  if (auto* entry = registry_.find(record.spec.lane.ns, worker)) ++entry->assigned;
}

void Dispatcher::take_result(Record& record, JobResult result, std::uint32_t calls, TimePoint now) {
  ++counters_.results;
  if (calls > 1 && record.limited) {
    limiter_.charge(record.spec.lane.ns, record.spec.target.id, calls - 1.0, now);
  } else if (calls > 1) {  // a limit that was learnt since is not for what was free
    limiter_.count(record.spec.lane.ns, record.spec.target.id, calls - 1.0, now);
  }
  const auto worker = record.worker;
  const bool was_uncertain = record.uncertain;
  end_flight(record);
  if (auto* entry = registry_.find(record.spec.lane.ns, worker)) entry->full_until = now;  // it has a free slot now
  const auto* failed = std::get_if<Error>(&result);
  if (failed == nullptr || error_traits(failed->code).applied != Applied::kUnknown) {
    record.uncertain = was_uncertain;  // how this attempt went is known
  }
  if (auto* error = std::get_if<Error>(&result)) {
    fail(record, std::move(*error), calls, now);
  } else {
    finish(record, std::move(result));
  }
}

void Dispatcher::note_pace(const Record& record) {
  if (is_mutation(record.spec.operation)) return;
  if (auto* worker = registry_.find(record.spec.lane.ns, record.worker)) worker->quick = !record.slow;
}

void Dispatcher::take_part(Record& record, Part part, TimePoint now, Effects& effects) {
  const auto& ns = record.spec.lane.ns;
  if (!make_part_room(ns, part.data.size())) {
    ++counters_.refused_parts;  // its lease runs out, and the job is tried again
    return;
  }
  if (!record.parts) record.parts = std::make_unique<PartAssembler>();
  const auto before = record.parts->bytes();
  auto whole = record.parts->add(std::move(part));
  part_bytes_[ns] += record.parts->bytes() - before;
  if (!whole) {
    ++counters_.refused_parts;
    return;
  }
  if (!*whole) return;
  auto reply = decode<JobReply>(**whole);
  if (!reply || !std::holds_alternative<JobResult>(reply->body) || reply->token != record.token) {
    take_result(record, Error{Errc::kInternalFailure, "the parts of the result make no reply to this job", {}, 0}, 0,
                now);
    return;
  }
  on_reply(ns, std::move(*reply), now, effects);
}

bool Dispatcher::make_part_room(const std::string& ns, std::size_t bytes) {
  const auto held = [&] {
    return std::accumulate(part_bytes_.begin(), part_bytes_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& entry) { return sum + entry.second; });
  };
  while (held() + bytes > kMaxReplyPartBytes) {
    const auto most = std::ranges::max_element(part_bytes_, {}, [](const auto& entry) { return entry.second; });
    if (most == part_bytes_.end() || most->first == ns) return false;
    Record* largest = nullptr;
    for (const auto& [token, record] : leases_) {
      if (!record->parts || record->spec.lane.ns != most->first) continue;
      if (largest == nullptr || record->parts->bytes() > largest->parts->bytes()) largest = record;
    }
    ++counters_.refused_parts;
    drop_parts(*largest);
  }
  return true;
}

void Dispatcher::drop_parts(Record& record) {
  if (!record.parts) return;
  auto& held = part_bytes_[record.spec.lane.ns];
  held -= record.parts->bytes();
  if (held == 0) part_bytes_.erase(record.spec.lane.ns);
  record.parts.reset();
}

void Dispatcher::on_undecodable(const Token& token, const Error& error, TimePoint now) {
  const auto lease = leases_.find(token.value);
  if (lease == leases_.end()) return;
  auto& record = *lease->second;
  const Error rejected{Errc::kInternalFailure, "the worker's reply cannot be decoded: " + error.message, {}, 0};
  notice(JobNotice::Kind::kRejected, record, rejected);
  take_result(record, rejected, 0, now);
}

void Dispatcher::on_unsendable(const Token& token, const Error& error, TimePoint now) {
  const auto lease = leases_.find(token.value);
  if (lease == leases_.end()) return;
  const std::string what = "the job is too large to be sent: " + error.message + " (max_payload of nats-server)";
  take_result(*lease->second, Error{Errc::kLimit, what, {}, 0}, 0, now);
}

void Dispatcher::on_no_responders(const Token& token, TimePoint now, Effects&) {
  const auto lease = leases_.find(token.value);
  if (lease == leases_.end()) return;
  auto& record = *lease->second;
  if (record.state != State::kSent) return;
  if (auto* worker = registry_.find(record.spec.lane.ns, record.worker)) {
    worker->full_until = now + kNoSign;  // between two connections, or dead: its silence will tell
  } else if (!is_heard_after(record.spec.lane, record.since)) {  // else one has come since the job was sent
    lanes_[record.spec.lane].not_before = now + kNobodyPause;
  }
  untaken(record);
}

void Dispatcher::untaken(Record& record) {
  --record.attempt;
  end_flight(record);
  if (record.stopped) return finish(record, *record.stopped);
  enqueue(record, true);
}

bool Dispatcher::take_up(const WorkerId& worker, const Running& running, TimePoint now) {
  const auto job = jobs_.find(running.job);
  if (job == jobs_.end() || !may_be_claimed(job->second) || leases_.contains(running.token.value)) return false;
  auto& record = job->second;
  record.token = running.token;
  record.state = State::kRunning;
  record.since = now;
  record.attempt = 1;
  record.gone = true;
  record.go_until = {};  // never: if it waits for its `go`, it gives the job back
  record.deadline = std::max(record.deadline, now + kChangeLease);
  record.worker = worker;
  leases_.emplace(record.token.value, &record);
  ++lanes_[record.spec.lane].flying;
  if (auto* entry = registry_.find(record.spec.lane.ns, worker)) ++entry->assigned;
  return true;
}

void Dispatcher::on_announcement(const WorkerId& worker, const std::vector<Running>& running, TimePoint now) {
  for (const auto& one : running) take_up(worker, one, now);
}

void Dispatcher::on_heartbeat(const Heartbeat& heartbeat, TimePoint now, Effects& effects) {
  for (const auto& running : heartbeat.running) {
    if (auto* late = find_unheard(running.job, running.token); late != nullptr && late->state != State::kRunning) {
      resume(*late, running.token, heartbeat.worker, now, effects);
    }
    const auto lease = leases_.find(running.token.value);
    if (lease == leases_.end() || lease->second->id != running.job) {
      if (take_up(heartbeat.worker, running, now)) continue;
      cancel(heartbeat.ns, heartbeat.worker, running.job, running.token, effects);
      continue;
    }
    auto& record = *lease->second;
    attribute(record, heartbeat.worker);
    if (record.worker == heartbeat.worker && std::exchange(record.stranded, false)) {  // it is not lost after all
      --lanes_[record.spec.lane].stranded;
      if (auto* entry = registry_.find(heartbeat.ns, record.worker)) ++entry->assigned;
    }
    record.state = State::kRunning;
    record.since = now;
    if (is_mutation(record.spec.operation) && record.worker == heartbeat.worker) go(record, now);
  }
}

}  // namespace muster
