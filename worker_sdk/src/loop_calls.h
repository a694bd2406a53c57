#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "schema/messages.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// How a job ended, and what it cost.
struct Outcome {
  JobResult result;
  std::uint32_t calls = 0;  // to the provider
};

/// What a worker's loop is to call, and which jobs have ended. Shared with those jobs: one that goes on after the loop
/// has ended is not heard. Bounded by its users: a job waits for one call at a time. Thread: any, where nothing else is
/// said.
class LoopCalls {
 public:
  struct Finished {
    Token token;
    Outcome outcome;
  };
  using Call = std::function<void()>;
  using Key = std::pair<TimePoint, std::uint64_t>;

  /// Of the calling thread's loop. `wake`   has it look at next_due() again; called from other threads only,
  /// with a lock that close() takes
  explicit LoopCalls(std::function<void()> wake);

  /// Calls `call` on the loop at `due`, or when `stop` is set.
  Key at(TimePoint due, std::stop_token stop, Call call);
  /// Forgets it; nothing where it has been called.
  void drop(const Key& key);
  /// Has `call` run where it may block.
  void block(Call call);
  void finish(Token token, Outcome outcome);

  // Thread: the loop's
  /// The earliest of what at() was given; min() when there is something to take, or hurry() was called.
  [[nodiscard]] TimePoint next_due() const;
  /// Stop tokens have been set: what waits with one is called by the next run().
  void hurry();
  void run(TimePoint now);
  std::vector<Finished> take_finished();
  std::vector<Call> take_blocking();
  /// Lets go of all that waits; what comes from now on is dropped.
  void close();

 private:
  struct Waiting {
    std::stop_token stop;
    Call call;
  };
  [[nodiscard]] bool idle() const { return finished_.empty() && blocking_.empty(); }
  [[nodiscard]] bool elsewhere() const { return std::this_thread::get_id() != loop_; }

  const std::function<void()> wake_;
  const std::thread::id loop_ = std::this_thread::get_id();
  mutable std::mutex mutex_;  // of the members below
  std::map<Key, Waiting> waiting_;
  std::uint64_t last_ = 0;
  bool hurried_ = false;
  bool closed_ = false;
  std::vector<Finished> finished_;
  std::vector<Call> blocking_;
};

}  // namespace muster
