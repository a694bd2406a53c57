#include "loop_calls.h"

#include <iterator>

namespace muster {

LoopCalls::LoopCalls(std::function<void()> wake) : wake_(std::move(wake)) {}

LoopCalls::Key LoopCalls::at(TimePoint due, std::stop_token stop, Call call) {
  const std::lock_guard lock(mutex_);
  if (stop.stop_requested()) due = TimePoint::min();
  const Key key{due, ++last_};
  if (closed_) return key;
  const auto place = waiting_.emplace(key, Waiting{std::move(stop), std::move(call)}).first;
  if (place == waiting_.begin() && idle() && elsewhere()) wake_();
  return key;
}

void LoopCalls::drop(const Key& key) {
  decltype(waiting_)::node_type dropped;  // let go of outside the lock: it may hold the end of a job
  const std::lock_guard lock(mutex_);
  dropped = waiting_.extract(key);
}

void LoopCalls::block(Call call) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (idle() && elsewhere()) wake_();
  blocking_.push_back(std::move(call));
}

void LoopCalls::finish(Token token, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (idle() && elsewhere()) wake_();
  finished_.push_back({std::move(token), std::move(outcome)});
}

TimePoint LoopCalls::next_due() const {
  const std::lock_guard lock(mutex_);
  if (hurried_ || !idle()) return TimePoint::min();
  return waiting_.empty() ? TimePoint::max() : waiting_.begin()->first.first;
}

void LoopCalls::hurry() {
  const std::lock_guard lock(mutex_);
  hurried_ = !waiting_.empty();
}

void LoopCalls::run(TimePoint now) {
  std::vector<Call> due;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      const bool stopped = hurried_ && it->second.stop.stop_requested();
      if (it->first.first > now && !hurried_) break;
      if (it->first.first <= now || stopped) {
        due.push_back(std::move(it->second.call));
        it = waiting_.erase(it);
      } else {
        ++it;
      }
    }
    hurried_ = false;
  }
  for (const Call& call : due) call();
}

std::vector<LoopCalls::Finished> LoopCalls::take_finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

std::vector<LoopCalls::Call> LoopCalls::take_blocking() {
  const std::lock_guard lock(mutex_);
  return std::exchange(blocking_, {});
}

void LoopCalls::close() {
  decltype(waiting_) waiting;
  std::vector<Call> blocking;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  waiting.swap(waiting_);
  blocking.swap(blocking_);
}

}  // namespace muster
