#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/cli/child.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/limiter.h"
#include "coordinator/parts.h"
#include "schema/subjects.h"
#include "worker_sdk/bus/nats_bus.h"

/// `muster plugin test`: a plugin's executable against the contract.
namespace muster::cli::conformance {

using Json = nlohmann::json;

/// Nothing more can be tested: the user wants an end, or no worker is to be had.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct FleetOptions {
  std::string executable;
  Environment env;                       // of workers
  std::vector<std::string> allow_files;  // that their configuration may refer to; of variables, all
  std::filesystem::path directory;       // for what the fleet keeps
  std::vector<std::string> canaries;     // what must not leave a worker
  Interrupted interrupted;
  std::function<void(std::string_view line)> log;  // gets what workers log
};

enum class Claim : std::uint8_t { kGo, kHold };  // whether a change that is claimed gets its go

/// One job on its way, and what came of it.
struct Dispatch {
  Job job;
  std::optional<int> only;  // that worker, else any
  Claim claim = Claim::kGo;
  TimePoint sent;
  TimePoint again = TimePoint::max();  // when it is sent once more, after `busy`
  bool accepted = false;
  bool gone = false;  // its go was given
  int by = 0;         // the worker that has it; 0: not known
  PartAssembler parts;
  std::optional<JobResult> result;
  std::uint32_t calls = 0;
  TimePoint done;
};
using DispatchPtr = std::shared_ptr<Dispatch>;

inline constexpr int kSlots = 4;  // of each worker
inline constexpr Millis kJobDeadline{60'000};

/// A nats-server, workers of one plugin, and the least of a coordinator: what is sent is what the checks want sent, in
/// the protocol of schema/. Members that wait throw Stopped. Thread: one.
class TestFleet {
 public:
  explicit TestFleet(FleetOptions options);

  /// May be changed before there are workers.
  FleetOptions& options() { return options_; }
  /// Starts the server; workers come with start_worker().
  void start();
  /// Another worker, when it is accepted. Its number counts from 1 and is never used again.
  int start_worker();
  /// There are at least so many.
  void have_workers(std::size_t count);
  [[nodiscard]] std::vector<int> workers() const;
  /// SIGKILL: what it had is lost.
  void kill_worker(int number);
  void stop();

  [[nodiscard]] const Announcement& announcement() const { return announcement_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  /// Hands a job out. `key`s and ids are those of `job`; fleet, token and the like are filled in.
  DispatchPtr send(Target target, std::string type, JobOperation operation, std::optional<int> only = {},
                   Claim claim = Claim::kGo, Millis lease = Millis{10'000});
  /// Hands the job of a dispatch out once more, as another attempt.
  DispatchPtr redeliver(const Dispatch& lost, std::optional<int> only = {});
  void cancel(const Dispatch& dispatch);
  /// Turns until there is a result, at most `patience`; then it is TIMEOUT.
  const JobResult& wait(const DispatchPtr& dispatch, Millis patience = kJobDeadline + Millis{15'000});
  /// One job to its end: THROTTLING is waited for, what is in progress asked for its status.
  JobResult run(const Target& target, const std::string& type, const JobOperation& operation,
                std::optional<int> only = {});
  /// The same from a first answer on.
  JobResult finish(const Target& target, const std::string& type, const JobOperation& operation, JobResult result,
                   std::optional<int> only = {});
  /// Turns the loop until `done`; false at the end of `patience`.
  bool until(const std::function<bool()>& done, Millis patience);
  void pause(Millis time);
  /// What was said has reached the server.
  void flush() { bus_->flush(kJobDeadline).value(); }
  /// Runs a command of the user's. returns its exit status as waitpid() says, and what it wrote
  std::pair<int, std::string> shell(const Command& command);

  /// From now on Ctrl-C does not count: what is there is put in order. What is still on its way is stopped, and waited
  /// for.
  void give_up();
  /// Where canaries were seen since this was asked last.
  std::vector<std::string> take_leaks() { return std::exchange(leaks_, {}); }
  /// Workers that ended on their own since this was asked last.
  std::vector<std::string> take_deaths() { return std::exchange(deaths_, {}); }
  [[nodiscard]] std::uint64_t throttled() const { return throttled_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  [[nodiscard]] std::string log_tail() const;

 private:
  struct Process {
    int number = 0;
    Child child;
    WorkerId id{};
    bool accepted = false;
    bool heard = false;  // a heartbeat, so that it has joined
  };
  void turn(TimePoint until);
  void receive();
  void on_announcement(const Message& message);
  void on_heartbeat(const Message& message);
  void on_reply(const Message& message);
  void take(Dispatch& dispatch, const JobReply& reply);
  void take_manifest(const JobReply& reply);
  void acknowledge(const JobReply& reply, std::string_view to);
  void watch();
  void lose(int number, const std::string& why);
  void publish(const DispatchPtr& dispatch);
  void say(const std::string& subject, Bytes data, const std::string& reply = {});
  void look_for_canaries(std::string_view text, const std::string& where);
  Process* process(int number);
  Process* process_of(const WorkerId& id);

  FleetOptions options_;
  SystemRandom random_;
  FleetId fleet_;
  CoordinatorId self_;
  Subjects subjects_;
  Limiter limiter_;
  std::optional<Child> server_;
  std::string url_;
  std::unique_ptr<NatsBus> bus_;
  SubscriptionId announces_ = 0, heartbeats_ = 0, replies_ = 0, results_ = 0;
  std::vector<Process> processes_;
  int started_ = 0;
  Announcement announcement_;
  Manifest manifest_;
  std::string manifest_hash_;  // of manifest_; empty: not known yet
  Token manifest_token_;
  PartAssembler manifest_parts_;
  std::string refused_;  // why a worker cannot be accepted
  std::map<Token, DispatchPtr> sent_;
  std::set<DispatchPtr> open_;  // without a result
  std::vector<std::string> leaks_, deaths_, log_;
  std::uint64_t throttled_ = 0, calls_ = 0;
};

}  // namespace muster::cli::conformance
