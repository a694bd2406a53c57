#include "executor.h"

#include <stdexcept>
#include <utility>

namespace muster {

ThreadExecutor::ThreadExecutor(std::size_t slots, std::function<void()> wake) : slots_(slots), wake_(std::move(wake)) {
  threads_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    threads_.emplace_back([this] { run(); });
  }
}

ThreadExecutor::~ThreadExecutor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
}

void ThreadExecutor::submit(Work work) {
  std::unique_lock lock(mutex_);
  if (queue_.size() >= slots_) throw std::logic_error("more work than slots");
  queue_.push_back(std::move(work));
  const bool wakes = wakes_one();
  lock.unlock();  // else the thread would wake to wait for it
  if (wakes) ready_.notify_one();
}

std::vector<ThreadExecutor::Finished> ThreadExecutor::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

bool ThreadExecutor::wakes_one() {
  if (waking_ || idle_ == 0 || queue_.empty()) return false;
  return waking_ = true;
}

void ThreadExecutor::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (queue_.empty() && !stopping_) {
      ++idle_;
      ready_.wait(lock);
      --idle_;
      waking_ = false;
    }
    if (stopping_) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    const bool wakes = wakes_one();
    lock.unlock();
    if (wakes) ready_.notify_one();
    Finished finished{std::move(work.token), work.run()};
    work.run = nullptr;  // what it holds is let go outside the lock
    lock.lock();
    finished_.push_back(std::move(finished));
    if (finished_.size() > 1) continue;  // the loop has been woken, and takes all of them
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace muster
