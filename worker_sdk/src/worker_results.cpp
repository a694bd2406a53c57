// Results of mutations: a worker keeps them until a coordinator has acknowledged them.

#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "replies.h"
#include "schema/codec.h"
#include "schema/mutation.h"
#include "worker_core.h"

namespace muster {
namespace {

constexpr Millis kAckWait{2000};          // for the first acknowledgement, and after the first time it was asked for
constexpr Millis kMaxAckWait{30'000};     // it doubles until then
constexpr Millis kRepeatGap{500};         // a reconnect and each coordinator's answer say that it is time
constexpr std::size_t kResendBatch = 16;  // of at most 320 KiB, in
constexpr Millis kResendPause{50};        // so that a coordinator that comes back is not flooded
constexpr Millis kAckGrace{1000};         // at the end of a drain; the journal remembers what it leaves
constexpr Millis kTakeOverInterval{30'000};
constexpr const char* kAckSubject = ".ack.";  // below the inbox; then the token
constexpr std::size_t kMaxUnacked = 1000;
constexpr std::size_t kMaxUnackedBytes = 64 * 1024 * 1024;

}  // namespace

void WorkerCore::on_inbox(const Message& message, TimePoint now) {
  if (message.subject.starts_with(bus_.inbox() + kAckSubject)) return on_ack(message, now);
  on_announcement_reply(message, now);
}

std::optional<Error> WorkerCore::no_room() const {
  if (!options_.journal) return refused("this worker has no state directory to keep the result of a change in");
  if (unacked_.size() < kMaxUnacked && unacked_bytes_ < kMaxUnackedBytes) return std::nullopt;
  return refused("no coordinator has acknowledged the last " + std::to_string(unacked_.size()) +
                 " results of this worker");
}

WorkerCore::Unacknowledged& WorkerCore::keep(const JobReply& ids, Bytes reply) {
  Unacknowledged& result = unacked_[ids.token];
  unacked_bytes_ += reply.size() - result.reply.size();
  result = {ids, std::move(reply), TimePoint::min(), TimePoint::max(), kAckWait};
  return result;
}

void WorkerCore::send(Unacknowledged& result, const std::string& subject, TimePoint now) {
  auto parts = in_parts(result.ids, result.reply, bus_.link().max_payload);
  for (Bytes& part : parts) {
    const bool last = &part == &parts.back();  // the answer is one to the whole
    publish(subject, last ? bus_.inbox() + kAckSubject + result.ids.token.value : "", std::move(part));
  }
  result.sent = now;
  result.due = now + result.wait;
}

void WorkerCore::on_ack(const Message& message, TimePoint now) {
  if (message.no_responders) return;  // nobody there: it is sent again in any case
  auto ack = decode<ResultAck>(message.data);
  if (!ack) return malformed("acknowledgement of a result", ack.error(), now);
  const auto found = unacked_.find(ack->token);
  if (found == unacked_.end() || found->second.ids.job != ack->job || ack->verdict == Verdict::kLater) return;
  if (ack->verdict == Verdict::kRefused) {
    log_->warn("job={} token={} the coordinator refuses the result: {}", ack->job.value, ack->token.value, ack->reason);
  } else {
    log_->debug("job={} token={} acknowledged", ack->job.value, ack->token.value);
  }
  options_.journal->remove(ack->token);
  unacked_bytes_ -= found->second.reply.size();
  unacked_.erase(found);
}

void WorkerCore::hurry(TimePoint now) {
  if (fleet_.empty()) return;
  for (auto& [token, result] : unacked_) {
    const bool fresh = result.sent != TimePoint::min() && now - result.sent < kRepeatGap;
    result.due = std::min(result.due, fresh ? result.sent + kRepeatGap : now);
    result.wait = kAckWait;
  }
}

void WorkerCore::take_over(TimePoint now) {
  if (MUSTER_MUTATION("ignore-journal")) return;
  take_over_at_ = now + kTakeOverInterval;
  const Journal::Room room{kMaxUnacked - std::min(kMaxUnacked, unacked_.size()),
                           kMaxUnackedBytes - std::min(kMaxUnackedBytes, unacked_bytes_)};
  const auto wanted = [&](const Bytes& left) {
    const auto reply = decode<JobReply>(left);
    return !reply || reply->fleet == fleet_;  // the host may serve several: no other than its own can take it
  };
  for (Journal::Kept& kept : options_.journal->take_over(room, wanted)) {
    const auto reply = decode<JobReply>(kept.reply);
    if (!reply || reply->token != kept.token) {  // of a newer worker, which may come back for it
      log_->error("token={} the result of a worker that has died is not understood, and stays", kept.token.value);
      continue;
    }
    keep(envelope(*reply), std::move(kept.reply)).due = now;
  }
}

void WorkerCore::tick_results(TimePoint now) {
  if (now >= take_over_at_) take_over(now);
  if (now < resend_at_) return;
  std::size_t sent = 0;
  for (auto& [token, result] : unacked_) {
    if (now < result.due) continue;
    if (sent++ == kResendBatch) {
      resend_at_ = now + kResendPause;
      return;
    }
    send(result, options_.subjects.result(plugin_.info().ns), now);
    result.wait = std::min(result.wait * 2, kMaxAckWait);
  }
}

bool WorkerCore::waits_for_acks(TimePoint now) {
  if (unacked_.empty() || fleet_.empty()) return false;
  if (ack_until_ == TimePoint::max()) {
    ack_until_ = std::min(now + kAckGrace, give_up_at_);
    hurry(now);
  }
  return now < ack_until_;
}

}  // namespace muster
