#include "executor.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace muster {

ThreadExecutor::ThreadExecutor(std::size_t slots, std::function<void()> wake)
    : slots_(slots), calls_(std::make_shared<LoopCalls>(std::move(wake))), waits_(slots) {
  threads_.reserve(slots);
  idle_.reserve(slots);
  try {
    for (Idle& wait : waits_) {
      threads_.emplace_back([this, &wait] { run(wait); });
    }
  } catch (const std::system_error& error) {
    stop();  // those that there are would be waited for without end
    throw std::runtime_error("no thread for each slot: " + std::string(error.what()) +
                             ": fewer --slots take less; memory or processes may be limited");
  }
}

ThreadExecutor::~ThreadExecutor() {
  calls_->close();
  stop();
}

void ThreadExecutor::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (Idle* thread : idle_) thread->called.notify_one();
}

void ThreadExecutor::start() {
  auto blocking = calls_->take_blocking();
  if (submitted_.empty() && blocking.empty()) return;
  std::unique_lock lock(mutex_);
  const auto jobs = static_cast<std::size_t>(std::count_if(
      queue_.begin(), queue_.end(), [](const Piece& piece) { return std::holds_alternative<Work>(piece); }));
  if (jobs + submitted_.size() > slots_) throw std::logic_error("more work than slots");
  std::move(blocking.begin(), blocking.end(), std::back_inserter(queue_));
  std::move(submitted_.begin(), submitted_.end(), std::back_inserter(queue_));
  submitted_.clear();
  Idle* next = call_one();
  lock.unlock();  // else the thread would wake to wait for it
  if (next != nullptr) next->called.notify_one();
}

ThreadExecutor::Idle* ThreadExecutor::call_one() {
  if (waking_ || idle_.empty() || queue_.empty()) return nullptr;
  waking_ = true;
  Idle* thread = idle_.back();
  idle_.pop_back();
  thread->is_called = true;
  return thread;
}

void ThreadExecutor::run(Idle& self) {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (queue_.empty() && !stopping_) {
      idle_.push_back(&self);
      self.called.wait(lock, [&] { return self.is_called || stopping_; });
      if (self.is_called) waking_ = self.is_called = false;
    }
    if (stopping_) return;
    std::optional<Piece> piece(std::move(queue_.front()));
    queue_.pop_front();
    Idle* next = call_one();
    lock.unlock();
    if (next != nullptr) next->called.notify_one();
    if (auto* work = std::get_if<Work>(&*piece)) {
      Outcome outcome = work->run();
      work->run = nullptr;
      calls_->finish(std::move(work->token), std::move(outcome));
    } else {
      std::get<LoopCalls::Call> (*piece)();
    }
    piece.reset();  // what it holds is let go outside the lock
    lock.lock();
  }
}

}  // namespace muster
