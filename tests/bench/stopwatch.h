#pragma once

#include <chrono>

namespace muster::bench {

/// Seconds since it was made.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Of a measurement by time, until it runs evenly: jobs of one length that begin together end together, and it takes
/// some rounds until they are spread.
inline constexpr double kWarmUpSeconds = 1;

}  // namespace muster::bench
