#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>

namespace muster {

class NatsBus;

/// SIGTERM and SIGINT as a wish to drain; the second one ends the process at once, with status 1. One object at a time
/// in a process.
class StopSignals {
 public:
  /// What the second signal is where a supervisor keeps the process: no more than the first. It is asked again by one
  /// that is stopped itself while it drains, and twice where all processes of a service are asked; and who is in a
  /// hurry has the supervisor kill it.
  enum class Second : std::uint8_t { kEnds, kSaysTheSame };
  explicit StopSignals(Second second);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] bool came() const;
  /// From now on a signal also wakes `bus`; nullptr: none.
  void wake(NatsBus* bus);

 private:
  struct sigaction terminate_ {
  }, interrupt_{};  // what was set before
};

/// The process ends at the latest after `limit`, then with this status, whatever its threads and destructors still do.
void end_process_within(std::chrono::seconds limit, int status);

}  // namespace muster
