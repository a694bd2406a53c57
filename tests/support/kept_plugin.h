#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "coordinator/cli/plugin_keeper.h"
#include "worker_sdk/testing/fake_clock.h"

namespace muster::test {

using cli::PluginKeeper;
using State = PluginKeeper::State;
using Pids = std::vector<pid_t>;

/// A keeper, and the test as the system that starts and ends its processes. Ids count from 1.
class KeptPlugin {
 public:
  explicit KeptPlugin(std::size_t count = 1) : keeper(count) {}

  /// Does what the keeper decides; the ids of what was started.
  Pids turn() {
    const auto actions = keeper.decide(clock.now());
    Pids started;
    for (const auto& start : actions.starts) {
      keeper.started(start, ++last_, clock.now());
      version_of[last_] = start.version;
      started.push_back(last_);
    }
    drained.insert(drained.end(), actions.drains.begin(), actions.drains.end());
    killed.insert(killed.end(), actions.kills.begin(), actions.kills.end());
    return started;
  }
  pid_t start_one() {
    const Pids started = turn();
    REQUIRE(started.size() == 1);
    return started.front();
  }
  /// One that runs and that a coordinator has accepted.
  pid_t serve(const std::string& version) {
    keeper.want(version);
    const pid_t pid = start_one();
    keeper.accepted(pid);
    turn();
    return pid;
  }
  /// Two that are to run do so and are accepted, and a new version is wanted.
  void replace_two() {
    keeper.want("v1");
    REQUIRE(turn() == Pids{1, 2});
    for (const pid_t pid : {1, 2}) keeper.accepted(pid);
    keeper.want("v2");
  }
  void end(pid_t pid, const std::string& how = "exited with status 1") { keeper.ended(pid, how, clock.now()); }
  /// Starts and ends a version until it is not started any more; how often.
  int wear_out() {
    for (int starts = 0; starts < 100; ++starts) {
      Pids started = turn();
      for (int i = 0; started.empty() && i < 200; ++i) {
        clock.advance(Millis{100});
        started = turn();
      }
      if (started.empty()) return starts;
      end(started.front());
    }
    return -1;
  }
  [[nodiscard]] State state() const { return keeper.status().state; }
  [[nodiscard]] std::string reason() const { return keeper.status().reason; }

  FakeClock clock;
  PluginKeeper keeper;
  std::map<pid_t, std::string> version_of;
  Pids drained, killed;

 private:
  pid_t last_ = 0;
};

}  // namespace muster::test
