#pragma once

#include <chrono>
#include <csignal>

namespace muster {

class NatsBus;

/// SIGTERM and SIGINT as a wish to drain; the second one ends the process at once, with status 1. One object at a time
/// in a process.
class StopSignals {
 public:
  StopSignals();
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
