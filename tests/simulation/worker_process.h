#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <spdlog/fwd.h>

#include "simulation/cloud.h"
#include "simulation/objects.h"
#include "worker_sdk/src/worker_core.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::sim {

/// The clock of a process that waits for its disk while the world goes on: ahead of the others until they have caught
/// up.
class HostClock final : public Clock {
 public:
  explicit HostClock(const Clock& world) : world_(world) {}
  [[nodiscard]] TimePoint now() const override { return world_.now() + ahead_; }
  [[nodiscard]] WallTime wall() const override { return world_.wall() + ahead_; }
  void wait(Millis time) { ahead_ += time; }
  void catch_up() { ahead_ = Millis(0); }

 private:
  const Clock& world_;
  Millis ahead_{0};
};

/// Plugin code of one worker, run inline when its virtual time has come; its answer comes when it has taken its time.
class VirtualExecutor final : public Executor {
 public:
  VirtualExecutor(HostClock& clock, Random& random) : clock_(clock), random_(random) {}

  void submit(Work work) override;
  [[nodiscard]] const std::shared_ptr<LoopCalls>& calls() const override { return none_; }
  [[nodiscard]] TimePoint next_due() const;
  /// The next work that is due; whoever runs it hands its outcome to finish().
  std::optional<Work> take_due();
  void finish(Token token, Outcome outcome);
  /// The next outcome whose time has come.
  std::optional<std::pair<Token, Outcome>> take_finished();

 private:
  HostClock& clock_;
  Random& random_;
  const std::shared_ptr<LoopCalls> none_;
  std::multimap<TimePoint, Work> work_;
  std::multimap<TimePoint, std::pair<Token, Outcome>> finished_;
};

/// A worker: a real core with a real plugin, on a host of its own.
class WorkerProcess {
 public:
  struct Setup {
    std::string name;
    std::string version;  // of the plugin: another one has another manifest
    std::shared_ptr<testing::MemoryDisk> disk;
    const Millis& slow_disk;  // at most, before something is begun
    std::size_t max_payload;  // bytes of a message that it can send
    bool waiting_room;
    const Clock& clock;
    Random& random;
    MemoryBroker& broker;
    const Cloud& cloud;
    Objects& objects;
    const Weather& weather;
    std::shared_ptr<spdlog::logger> log;
  };
  explicit WorkerProcess(const Setup& setup);

  /// False: it has ended, in a call or because it was drained.
  bool turn(TimePoint now);
  [[nodiscard]] TimePoint next_due() const;
  [[nodiscard]] MemoryBus& bus() { return *bus_; }
  [[nodiscard]] WorkerCore& core() { return *core_; }

 private:
  HostClock clock_;
  Plugin plugin_;
  Host host_;
  VirtualExecutor executor_;
  std::unique_ptr<MemoryBus> bus_;
  std::unique_ptr<WorkerCore> core_;
};

}  // namespace muster::sim
