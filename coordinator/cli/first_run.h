#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "coordinator/cli/output.h"
#include "coordinator/config.h"

namespace muster::cli {

/// Watches, on a thread of its own, the run that a coordinator begins with: shows how it goes and then the inventory's
/// summary.
class FirstRun {
 public:
  /// `config`   where the fleet is; without a target to discover only the summary is shown
  /// `done`     called on the thread at the end
  FirstRun(const Config& config, Screen& screen, std::function<void()> done);

  /// Whether a coordinator has answered.
  [[nodiscard]] bool served() const { return served_; }
  [[nodiscard]] bool done() const { return done_; }
  /// Exit status, once it is done: 0 the run was complete, 1 partial or failed.
  [[nodiscard]] int status() const { return status_; }

  /// Ends the watching within a second or so; the destructor waits for it.
  void stop() { thread_.request_stop(); }

 private:
  void watch(const std::stop_token& stop, const Config& config, Screen& screen);

  std::atomic<bool> served_ = false;
  std::atomic<bool> done_ = false;
  std::atomic<int> status_ = 1;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace muster::cli
