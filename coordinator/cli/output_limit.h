#pragma once

#include <cstddef>
#include <cstdint>

#include "worker_sdk/bus/clock.h"

namespace muster::cli {

/// How much of what a process writes is passed on: 1 MiB at once, 64 KiB a second after that. What is beyond is left
/// out, and some more, so that what does flow comes a second's worth at a time. Time is passed in.
class OutputLimit {
 public:
  /// Whether a line of that many bytes is passed on.
  bool admit(std::size_t line, TimePoint now);
  /// Bytes left out since the last call, newlines among them.
  std::uint64_t take_left_out();

 private:
  std::int64_t left_ = 1 << 20;
  TimePoint filled_{};
  bool open_ = true;
  std::uint64_t left_out_ = 0;
};

}  // namespace muster::cli
