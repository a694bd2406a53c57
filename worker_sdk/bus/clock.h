#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "schema/result.h"

namespace muster {

using TimePoint = std::chrono::steady_clock::time_point;  // leases, deadlines, timers
using WallTime = std::chrono::system_clock::time_point;   // times of day, for people and the store

/// Where time comes from. Decisions never read a clock: they get `now` as an argument.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
};

/// The machine's clocks. Thread: any.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] WallTime wall() const override { return std::chrono::system_clock::now(); }
};

/// Where randomness comes from; a simulation passes a seeded one.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
  /// Uniform in [0, bound); 0 for bound 0.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
};

/// Random numbers from a seed of the kernel's random bytes (libsodium). Thread: any.
class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;
};

/// 26 characters of Crockford base32: 48 bits of milliseconds, 80 random bits. Sorts by time.
std::string make_ulid(WallTime now, Random& random);
/// 26 characters of base32: 128 random bits.
std::string make_token(Random& random);

}  // namespace muster
