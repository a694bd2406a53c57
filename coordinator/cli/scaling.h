#pragma once

#include <cstddef>
#include <optional>

#include "worker_sdk/bus/clock.h"

namespace muster::cli {

/// What a pool has to do, as a coordinator says.
struct Demand {
  std::size_t slots = 0;   // of all its workers, here and elsewhere
  std::size_t busy = 0;    // jobs that are out
  std::size_t queued = 0;  // jobs that wait for a slot
  Millis wait{0};          // of the one that waits longest
};

/// Decides how many workers are to run here: more while jobs wait for slots, one of them for a second or some of them
/// each time that it is told; one less when slots have stayed free for a minute. Time is passed in.
class Scaling {
 public:
  /// `min`, `max`   workers, 1..256
  /// `slots`        of each
  Scaling(std::size_t min, std::size_t max, std::size_t slots) : min_(min), max_(max), slots_(slots), wanted_(min) {}

  [[nodiscard]] std::size_t wanted() const { return wanted_; }
  /// Whether there is anything to decide.
  [[nodiscard]] bool active() const { return min_ < max_; }
  void hear(const Demand& demand, TimePoint now);

 private:
  std::size_t min_, max_, slots_, wanted_;
  TimePoint next_change_;  // until what was decided last shows
  TimePoint heard_;
  std::optional<TimePoint> spare_since_, full_since_;
};

}  // namespace muster::cli
