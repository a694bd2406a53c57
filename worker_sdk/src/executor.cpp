#include "executor.h"

#include <stdexcept>
#include <utility>

namespace muster {

ThreadExecutor::ThreadExecutor(std::size_t slots, std::function<void()> wake) : slots_(slots), wake_(std::move(wake)) {
  threads_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
}

ThreadExecutor::~ThreadExecutor() = default;

void ThreadExecutor::submit(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= slots_) throw std::logic_error("more work than slots");
    queue_.push_back(std::move(work));
  }
  ready_.notify_one();
}

std::vector<ThreadExecutor::Finished> ThreadExecutor::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

void ThreadExecutor::run(const std::stop_token& stop) {
  for (;;) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      if (!ready_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      if (stop.stop_requested()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    Finished finished{std::move(work.token), work.run()};
    {
      const std::lock_guard lock(mutex_);
      finished_.push_back(std::move(finished));
    }
    wake_();
  }
}

}  // namespace muster
