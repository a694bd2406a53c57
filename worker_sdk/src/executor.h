#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "loop_calls.h"
#include "schema/messages.h"

namespace muster {

/// A job on its way into a slot, or a call of Lifecycle.
struct Work {
  Token token;
  std::function<Outcome()> run;  // plugin code; called once, on any thread
};

/// Where plugin code runs. WorkerCore never submits more at once than a job per slot and one function of the plugin's
/// life, and wants to hear of each end through its complete(), on its own thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void submit(Work work) = 0;
  /// For jobs that go on without a thread; null: there is no loop to call them, and all are submitted.
  [[nodiscard]] virtual const std::shared_ptr<LoopCalls>& calls() const = 0;
};

/// One thread per slot. Thread: the loop's.
class ThreadExecutor final : public Executor {
 public:
  /// `wake`   called from any thread when take() has something to give, or calls() to call
  /// Throws std::runtime_error when the system gives no thread for each slot.
  ThreadExecutor(std::size_t slots, std::function<void()> wake);
  /// Waits for what runs; what has not begun never does.
  ~ThreadExecutor() override;

  /// Keeps it until the next start().
  void submit(Work work) override { submitted_.push_back(std::move(work)); }
  [[nodiscard]] const std::shared_ptr<LoopCalls>& calls() const override { return calls_; }
  /// Hands what was submitted to the threads, all at once: each handing over may wake one and wait for another.
  /// Throws std::logic_error when there is more than one piece of work per slot.
  void start();
  /// What has ended since the last call.
  std::vector<LoopCalls::Finished> take() { return calls_->take_finished(); }

 private:
  /// A thread that waits for work.
  struct Idle {
    std::condition_variable called;
    bool is_called = false;
  };
  void run(Idle& self);
  /// Tells the threads to end.
  void stop();
  /// Who is to be woken for what is queued, if anybody: the thread that worked last, whose memory is still at hand.
  /// Not while one is on its way: it wakes the next when it has taken its work, and short jobs end before that many
  /// threads would be awake. With the mutex held.
  Idle* call_one();

  using Piece = std::variant<Work, LoopCalls::Call>;

  const std::size_t slots_;
  const std::shared_ptr<LoopCalls> calls_;
  std::vector<Work> submitted_;
  std::mutex mutex_;  // of the members below
  std::deque<Piece> queue_;
  std::vector<Idle*> idle_;  // the one that worked last at the end
  bool waking_ = false;      // one that was called has not come yet
  bool stopping_ = false;
  std::vector<Idle> waits_;            // one of each thread
  std::vector<std::jthread> threads_;  // last: they use what is above
};

}  // namespace muster
