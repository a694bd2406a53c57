#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/coordinator.h"
#include "muster/worker.h"
#include "simulation/cloud.h"
#include "worker_sdk/src/worker_core.h"
#include "worker_sdk/testing/fake_clock.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::sim {

/// What goes wrong in one simulation; all of it drawn from its seed.
struct Faults {
  double loss = 0;         // share of messages that never arrive
  double duplication = 0;  // share that arrives twice
  Millis delay{0};         // of each message, at most
  double error_rate = 0;   // share of plugin calls that fail with a retriable error
  int worker_crashes = 0;
  int coordinator_crashes = 0;
  int disconnections = 0;  // of a process from the bus, for up to three seconds
  int churns = 0;          // changes of the cloud while runs are on their way
};

/// A whole fleet in one thread under virtual time: the real coordinator, real worker cores and a real plugin, over the
/// memory bus. A seed gives the same history on every machine.
class Fleet {
 public:
  Fleet(std::uint64_t seed, std::shared_ptr<spdlog::logger> log);
  ~Fleet();

  /// Runs it to its end: faults, then quiet, then one more run over everything.
  /// Returns what an invariant has to say, nothing when all of them hold.
  std::optional<std::string> run();

  [[nodiscard]] std::string describe() const;

 private:
  struct WorkerProcess;
  struct CoordinatorProcess;
  struct Act {
    enum class Kind : std::uint8_t {
      kWorkerCrash,
      kWorkerStart,
      kCoordinatorCrash,
      kCoordinatorStart,
      kDisconnect,
      kReconnect,
      kChurn,
      kTrigger
    };
    Kind kind;
    std::size_t who = 0;
  };

  void plan_faults();
  void set_policy(const Faults& faults);
  void start_coordinator();
  void start_worker(std::size_t index);
  void perform(const Act& act);
  void turn_all();
  void trigger();
  [[nodiscard]] TimePoint next_moment();
  [[nodiscard]] std::string who_is_next() const;  // of those that are due now, for a message
  /// Lets time pass until `done` holds; an error when it does not within `limit` of virtual time.
  std::optional<std::string> pass(const std::function<bool()>& done, Millis limit, const std::string& what);
  [[nodiscard]] bool all_runs_ended();
  [[nodiscard]] std::optional<std::string> check_inventory();
  [[nodiscard]] std::optional<std::string> check_events();

  std::uint64_t seed_;
  std::shared_ptr<spdlog::logger> log_;
  FakeClock clock_;
  SeededRandom random_;
  Faults faults_;
  Cloud cloud_;
  Config config_;
  MemoryBroker broker_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::unique_ptr<MemoryBus> user_;
  std::multimap<TimePoint, Act> plan_;
};

}  // namespace muster::sim
