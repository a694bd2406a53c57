#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/coordinator.h"
#include "muster/worker.h"
#include "simulation/cloud.h"
#include "simulation/objects.h"
#include "simulation/workload.h"
#include "support/failing_store.h"
#include "worker_sdk/src/worker_core.h"
#include "worker_sdk/testing/fake_clock.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::sim {

/// What goes wrong in one simulation; all of it drawn from its seed.
struct Faults {
  double loss = 0;         // share of messages that never arrive
  double duplication = 0;  // share that arrives twice
  Millis delay{0};         // of each message, at most
  double error_rate = 0;   // share of plugin reads that fail with a retriable error
  ChangeFaults changes;
  int worker_crashes = 0;
  int coordinator_crashes = 0;  // between two messages that it sends
  int disconnections = 0;       // of a process from the bus, for up to three seconds
  int stops = 0;                // of a process, for up to fifteen seconds
  int store_failures = 0;       // times in which nothing can be written
  int full_disks = 0;           // times in which workers cannot keep results
  int clock_jumps = 0;          // of the time of day
  int churns = 0;               // changes of the cloud while runs are on their way
  int edits = 0;                // changes of what commands have made, behind their back
};

/// A whole fleet in one thread under virtual time: the real coordinator, real worker cores and a real plugin, over the
/// memory bus. A seed gives the same history on every machine.
class Fleet {
 public:
  /// `without`   names of parts(), which are left out
  Fleet(std::uint64_t seed, const std::set<std::string>& without, std::shared_ptr<spdlog::logger> log);
  ~Fleet();

  /// Runs it to its end: faults and wishes, then quiet, then what is wanted once more, a destroy, and all of it again.
  /// Returns what an invariant has to say, nothing when all of them hold.
  std::optional<std::string> run();

  /// What can be left out: kinds of faults, and the wishes of users.
  [[nodiscard]] const std::vector<std::string>& parts() const { return parts_; }
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
      kStop,
      kStoreFails,
      kStoreWorks,
      kDiskFull,
      kDiskFree,
      kClockJump,
      kChurn,
      kTrigger,
      kEdit,
      kWish
    };
    Kind kind;
    std::size_t who = 0;
  };
  struct CoordinatorDied {};
  using Fault = std::optional<std::string>;

  // fleet.cpp
  void draw_faults();
  void plan_faults();
  void set_policy(const Faults& faults);
  void start_coordinator();
  void crash_coordinator();
  void start_worker(std::size_t index);
  void perform(const Act& act);
  void turn_all();
  void trigger();
  std::size_t ask(const std::string& verb, const Json& request);
  void take_answers();
  void make(const Wish& wish);
  [[nodiscard]] TimePoint next_moment();
  [[nodiscard]] std::string who_is_next() const;  // of those that are due now, for a message
  /// Lets time pass until `done` holds; an error when it does not within `limit` of virtual time.
  Fault pass(const std::function<bool()>& done, Millis limit, const std::string& what);
  [[nodiscard]] bool all_ended();
  [[nodiscard]] bool results_taken() const;
  Fault look();
  /// Carries a request out in a world that stands still. A key that an earlier command has left open may lead to an
  /// object of an older declaration, or to one that is gone since: then `more` applies change it, or make it anew.
  Fault apply(const Json& request, int more = 2);

  // checks.cpp
  void watch(const Outgoing& message);
  [[nodiscard]] Fault check_change(const std::string& key, const Token& token);
  [[nodiscard]] Fault check_inventory();
  [[nodiscard]] Fault check_events();
  [[nodiscard]] Fault check_reports();
  [[nodiscard]] Fault check_owners();
  [[nodiscard]] Fault check_declared(const Json& request);
  [[nodiscard]] Fault check_destroyed(const std::string& stack);

  std::uint64_t seed_;
  std::shared_ptr<spdlog::logger> log_;
  FakeClock clock_;
  SeededRandom random_;
  Faults faults_;
  std::vector<Wish> wishes_;
  std::vector<std::string> parts_;
  Cloud cloud_;
  Objects objects_;
  Config config_;
  MemoryBroker broker_;
  std::unique_ptr<test::FailingStore> store_;
  std::vector<std::shared_ptr<testing::MemoryDisk>> disks_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::vector<TimePoint> stopped_until_;  // by process; the last is the coordinator
  std::optional<std::uint64_t> doom_;     // messages that the coordinator sends before it dies
  std::unique_ptr<MemoryBus> user_;
  std::size_t asked_ = 0;
  std::map<std::size_t, Json> answers_;
  std::vector<std::string> promised_;  // commands whose id was answered
  std::map<Token, TimePoint> gone_;    // tokens that were told to go, and when first
  std::multimap<TimePoint, Act> plan_;
  Fault fault_;
};

}  // namespace muster::sim
