#pragma once

#include <chrono>
#include <cstdint>

#include "worker_sdk/bus/clock.h"

namespace muster {

/// Time that stands still until it is moved. Wall time moves along, and jumps alone with set_wall().
/// Thread: one.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  [[nodiscard]] WallTime wall() const override { return wall_; }

  void advance(std::chrono::nanoseconds by) { set(now_ + by); }
  void set(TimePoint now) {
    wall_ += std::chrono::duration_cast<WallTime::duration>(now - now_);
    now_ = now;
  }
  void set_wall(WallTime wall) { wall_ = wall; }

 private:
  // Neither starts at zero: a time that nobody set would look like the present.
  TimePoint now_{std::chrono::hours(1)};
  WallTime wall_{std::chrono::hours(24 * 365 * 54)};
};

/// The same numbers for the same seed, on every machine (splitmix64). Thread: one.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() override {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace muster
