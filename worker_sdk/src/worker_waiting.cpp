// Reads that wait for a slot: the way of the next job to a worker costs it no time then.

#include <utility>

#include "schema/mutation.h"
#include "worker_core.h"

namespace muster {

bool WorkerCore::may_wait(const Job& job) const {
  return options_.waiting_room && state_ == State::kActive && job.wait > Millis{0} && !is_mutation(job.operation) &&
         waiting_.size() < options_.slots;
}

void WorkerCore::wait(std::shared_ptr<const Job> job, std::string reply, TimePoint now) {
  const TimePoint until = now + std::min(job->wait, job->deadline);
  waiting_.push_back({std::move(job), std::move(reply), now, until});
  slots_due_ = std::min(slots_due_, until);
}

void WorkerCore::begin_waiting(TimePoint now) {
  while (!waiting_.empty() && free_slots() > 0) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.until <= slots_due_) slots_due_ = now;  // it waits no longer: the tick finds what is due next
    take(std::move(next.job), std::move(next.reply), next.received, now);
  }
}

void WorkerCore::turn_away_waiting(TimePoint now) {
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.until > now) return false;
    ++counters_.busy;
    reply_to(*waiting.job, waiting.reply, Busy{}, 0);
    return true;
  });
}

}  // namespace muster
