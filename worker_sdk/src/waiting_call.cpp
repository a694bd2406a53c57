#include "waiting_call.h"

#include <algorithm>
#include <stdexcept>

namespace muster {

TimePoint wait_end(TimePoint now, std::chrono::nanoseconds wait) {
  return wait < TimePoint::max() - now ? now + std::max(wait, std::chrono::nanoseconds::zero()) : TimePoint::max();
}

void WaitingContext::after(std::chrono::nanoseconds wait, std::function<void()> then) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (then_) throw std::logic_error(kOneWait);
  due_ = wait_end(std::chrono::steady_clock::now(), wait);
  then_ = std::move(then);
  changed_.notify_one();
}

void WaitingContext::count_calls(std::uint32_t calls) {
  const std::lock_guard lock(mutex_);
  if (!ended_) context_.count_calls(calls);
}

void WaitingContext::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_one();
}

void WaitingContext::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!then_) {
      changed_.wait(lock, [&] { return ended_ || then_; });
      continue;
    }
    changed_.wait_until(lock, stop_, due_, [&] { return ended_; });
    if (ended_) break;
    auto then = std::exchange(then_, nullptr);
    lock.unlock();
    then();
    then = nullptr;  // it may hold the end of the call
    lock.lock();
  }
  const auto left = std::exchange(then_, nullptr);  // it holds this context
  lock.unlock();
}

}  // namespace muster
