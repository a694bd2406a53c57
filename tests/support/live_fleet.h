#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/fleet_client.h"

namespace muster::test {

/// A fleet of real processes: `muster up` of this build, in a temporary directory of its own. What is left of it is
/// killed and removed at the end. Throws std::runtime_error where nothing can be started. Thread: one.
class LiveFleet : public FleetClient {
 public:
  /// `config`   in which @DIR@ stands for directory()
  explicit LiveFleet(const std::string& config);
  ~LiveFleet();

  /// `muster up ARGS`; returns when the coordinator answers.
  void start(const std::vector<std::string>& args = {});
  /// What the next start() goes by, as in the constructor.
  void configure(const std::string& config);
  /// SIGTERM; the exit status of `muster up`.
  int stop();

  /// Children of `muster up` whose command line holds `what`.
  [[nodiscard]] std::vector<pid_t> processes(const std::string& what) const;
  /// SIGKILL to one of them; whether there was one.
  [[nodiscard]] bool kill_one(const std::string& what) const;

 private:
  pid_t up_ = -1;
};

}  // namespace muster::test
