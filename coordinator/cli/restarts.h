#pragma once

#include <vector>

#include "worker_sdk/bus/clock.h"

namespace muster::cli {

/// When a process that ended is started again: after 0.2 s, doubling to 10 s; after 0.2 s again once it has run for
/// 30 s. One that ends 5 times within 60 s, none of them after 30 s of running, is not worth another try.
class Restarts {
 public:
  /// It ended, or could not be started, after it had run for `ran`.
  void ended(Millis ran, TimePoint now);
  /// It was not tried, for a reason that is none of its own.
  void postponed(TimePoint now);

  [[nodiscard]] TimePoint next_start() const { return next_start_; }
  [[nodiscard]] Millis back_off() const { return back_off_; }
  [[nodiscard]] bool hopeless() const;

 private:
  TimePoint next_start_;  // at once
  Millis back_off_{0};
  std::vector<TimePoint> early_ends_;  // of the last 60 s
};

}  // namespace muster::cli
