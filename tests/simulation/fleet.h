#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/coordinator.h"
#include "simulation/cloud.h"
#include "simulation/event_stream.h"
#include "simulation/faults.h"
#include "simulation/liar.h"
#include "simulation/objects.h"
#include "simulation/settings.h"
#include "simulation/worker_process.h"
#include "simulation/workload.h"
#include "support/failing_store.h"
#include "worker_sdk/testing/fake_clock.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::sim {

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

 private:
  struct CoordinatorProcess;
  struct CoordinatorDied {};
  using Fault = std::optional<std::string>;

  static constexpr Millis kLimit{2 * 3'600'000};  // of virtual time, for everything that is on its way to end

  // fleet.cpp
  void set_policy(const Faults& faults);
  /// On which side of a partition a process is; one of no name is on either.
  [[nodiscard]] bool cut_off(std::string_view process) const;
  void start_coordinator();
  void crash_coordinator();
  void start_worker(std::size_t index);
  void start_liar();
  void perform(const Act& act);
  void turn_all();
  void trigger();
  /// Starts the coordinator anew; without one, the next will have it.
  void configure(Config config);
  Fault accept_targets();
  std::size_t ask(const std::string& verb, const Json& request);
  void take_answers();
  void make(const Wish& wish);
  void forget();
  [[nodiscard]] TimePoint next_moment();
  [[nodiscard]] std::string who_is_next() const;  // of those that are due now, for a message
  /// Lets time pass until `done` holds; an error when it does not within `limit` of virtual time.
  Fault pass(const std::function<bool()>& done, Millis limit, const std::string& what);
  [[nodiscard]] bool all_ended();
  /// No worker has anything to do, or to tell.
  [[nodiscard]] bool workers_are_done() const;

  // course.cpp
  Fault look();
  enum class Left : std::uint8_t { kTidied, kTold };
  /// What stacks have, for a message.
  [[nodiscard]] std::string managed() const;
  /// Takes out what is nobody's and keeps what it lies in from being deleted; false: there was none.
  bool tidy_up(const CommandId& command);
  /// Carries a request out in a world that stands still. A key that an earlier command has left open may lead to an
  /// object of an older declaration, or to one that is gone since: then `more` applies change it, or make it anew: one
  /// for each resource of a stack, where each waits for another. `left`   what becomes of what stands in its way and
  /// belongs to nobody
  Fault apply(const Json& request, Left left, int more = 6);

  // checks.cpp
  void watch(const Outgoing& message);
  [[nodiscard]] bool is_within_rate(const TargetId& target);
  void hear(const Outgoing& message);                           // of a worker
  void follow(const Outgoing& message, std::string_view from);  // an event
  [[nodiscard]] Fault check_change(const std::string& key, const Host& host);
  [[nodiscard]] Fault check_taken_along(const std::string& key, const std::string& type, const std::string& id);
  [[nodiscard]] RunId last_ended_run();
  [[nodiscard]] Fault check_told();
  /// Gives things other ids in a world that stands still: each is known as what it was.
  [[nodiscard]] Fault check_renaming();
  [[nodiscard]] Fault check_inventory();
  [[nodiscard]] Fault check_inventory(const std::string& target);
  [[nodiscard]] Fault check_events();
  [[nodiscard]] Fault check_totals(const Json& told);
  [[nodiscard]] Fault check_followed();
  [[nodiscard]] Fault check_history();
  [[nodiscard]] Fault check_runs();
  [[nodiscard]] Fault check_reports();
  [[nodiscard]] Fault check_owners();
  [[nodiscard]] Fault check_marks();
  void each_event(const std::function<void(const EventRow&)>& use);
  [[nodiscard]] std::set<std::string> forgotten();
  [[nodiscard]] std::set<std::string> drift_told();
  [[nodiscard]] Fault check_declared(const Json& request);
  [[nodiscard]] Fault check_settled(const Json& request);
  [[nodiscard]] Fault check_destroyed(const std::string& stack);

  std::uint64_t seed_;
  std::shared_ptr<spdlog::logger> log_;
  FakeClock clock_;
  SeededRandom random_;
  Faults faults_;
  std::vector<Wish> wishes_;
  std::vector<std::string> parts_;
  Weather weather_;
  Cloud cloud_;
  Objects objects_;
  Config usual_, config_;  // at the start and in the end, and now
  SeededRandom settings_, forgetting_;
  MemoryBroker broker_;
  std::unique_ptr<test::FailingStore> store_;
  std::vector<std::shared_ptr<testing::MemoryDisk>> disks_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::unique_ptr<Liar> liar_;
  std::unique_ptr<EventStream> stream_;
  std::vector<TimePoint> stopped_until_;  // by process; the last is the coordinator
  std::size_t cut_off_ = 0;               // a bit for each process
  std::optional<std::uint64_t> doom_;     // messages that the coordinator sends before it dies
  std::unique_ptr<MemoryBus> user_;
  std::uint64_t followed_ = 0;  // the last event that the user has heard
  std::uint64_t streamed_ = 0;  // and that of the stream
  std::size_t asked_ = 0;
  std::map<std::size_t, Json> answers_;
  std::map<std::size_t, Millis> looked_at_;     // by number of the request: how long its plan is before it is applied
  std::vector<std::string> promised_;           // commands whose id was answered
  std::map<Token, TimePoint> gone_;             // tokens that were told to go, and when first
  std::set<Token> acted_;                       // tokens under which a change was made
  std::map<JobId, std::set<Token>> asked_for_;  // changes that this coordinator has asked for, and with which tokens
  std::map<TargetId, std::pair<double, TimePoint>> budgets_;  // calls that it may still make of targets, and since when
  std::set<Token> superseded_;  // tokens of changes that it has asked for once more since `go`, or told another to go
  std::map<std::string, std::set<std::string>> drifted_at_;  // by key of a change: ids of what was not as declared then
  std::map<Token, std::vector<Bytes>> heard_parts_;          // of results that workers tell in parts
  std::map<Token, std::string> made_;              // native ids that workers have told as there after a change
  std::set<std::string> answered_;                 // commands that the user was told of
  std::map<std::string, RunId> told_;              // those that were acknowledged, and the last run that had ended
  std::map<std::string, std::string> identities_;  // names of things of the cloud, by resource id
  std::map<std::string, std::string> resources_;   // and their resource ids; before the names, the target and a slash
  std::map<std::string, std::set<std::string>> hashes_told_;  // of what events have told, by resource id
  std::map<std::string, std::size_t> renewals_;               // by resource id: how often it was of another thing since
  Plan plan_;
  Fault fault_;
};

}  // namespace muster::sim
