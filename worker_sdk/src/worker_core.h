#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <spdlog/fwd.h>

#include "executor.h"
#include "job_runner.h"
#include "journal.h"
#include "lifecycle.h"
#include "muster/worker.h"
#include "recent_tokens.h"
#include "schema/messages.h"
#include "schema/subjects.h"
#include "worker_sdk/bus/bus.h"
#include "worker_sdk/bus/clock.h"
#include "worker_sdk/bus/micro_service.h"

namespace muster {

/// The protocol side of a worker: announces, heartbeats, takes jobs, answers. No clock, no threads, no waiting: its
/// owner passes in what has come and what time it is, and calls tick() at next_due() at the latest.
/// Thread: the loop's; only JobRunner and the plugin are called by the executor's threads.
/// source   schema/worker.capnp, schema/job.capnp
class WorkerCore {
 public:
  enum class State : std::uint8_t {
    kInitializing,  // the plugin is; nobody has heard of the worker
    kAnnouncing,    // not accepted yet, or rejected for the time being
    kActive,
    kDraining,
    kCleaning,  // no job is left; the plugin cleans up
    kDrained,   // the end: all of its jobs are answered
    kRejected,  // the end: a coordinator said that asking again does not help
    kStuck,     // the end: every slot's job ignores its cancellation
    kFailed,    // the end: the plugin could not initialize
  };

  struct Options {
    Subjects subjects;
    WorkerId id;
    std::string pool{kDefaultPool};
    std::uint16_t slots = 4;   // 1..1024
    bool waiting_room = true;  // reads may wait here for a slot
    std::string host;
    std::uint32_t pid = 0;
    WallTime started;
    SecretPolicy secrets;
    std::shared_ptr<Journal> journal;  // null: mutations are refused
    const Clock* clock = nullptr;      // never null; read by the executor's threads; outlives their work
  };

  /// What $SRV.STATS shows beside the requests.
  struct Counters {
    std::uint64_t busy = 0;        // jobs turned away
    std::uint64_t duplicates = 0;  // jobs that came twice with one token
    std::uint64_t malformed = 0;   // messages that could not be understood
    std::uint64_t foreign = 0;     // messages of another fleet
    std::uint64_t unsent = 0;      // messages that the bus did not take, mostly for want of a connection
  };

  /// `plugin`, `bus`, `random` and `executor` outlive the core and all of its work.
  WorkerCore(Options options, const Plugin& plugin, Bus& bus, Random& random, Executor& executor,
             std::shared_ptr<spdlog::logger> log);

  /// Subscribes, initializes the plugin, and announces.
  /// errors   as Bus::subscribe
  Result<void> start(TimePoint now);
  void handle(const Message& message, TimePoint now);
  /// The executor's answer to a submit(); not from within it.
  void complete(const Token& token, Outcome outcome, TimePoint now);
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_due() const;
  /// Takes no new job, finishes its own. `limit`: what still runs shortly before it is stopped, and answered with
  /// SERVICE_UNAVAILABLE; without one they may take as long as their deadlines allow.
  void drain(TimePoint now, std::optional<Millis> limit);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool ended() const { return state_ >= State::kDrained; }
  /// Whether plugin code may still run on a thread of the executor.
  [[nodiscard]] bool runs_plugin_code() const { return life_.runs() || runs_jobs(); }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  /// A job that was taken.
  struct Slot {
    enum class Phase : std::uint8_t {
      kClaimed,   // a mutation that waits for its `go`
      kRunning,   // plugin code has it
      kStopping,  // its stop token is set
      kStuck,     // ignored its stop token; answered
    };
    std::shared_ptr<const Job> job;
    std::string reply;
    TimePoint received, deadline, begun;
    Phase phase = Phase::kRunning;
    bool accepted = false;  // has been said
    std::stop_source stop{std::nostopstate};
    std::shared_ptr<std::atomic<Errc>> why;  // set before `stop` is
    TimePoint stopped;
    Error stop_error;  // the answer, once it is stopped

    [[nodiscard]] TimePoint next_due() const;
  };

  /// A read that waits for a slot.
  struct Waiting {
    std::shared_ptr<const Job> job;
    std::string reply;
    TimePoint received, until;
  };

  /// The result of a mutation that no coordinator has acknowledged.
  struct Unacknowledged {
    JobReply ids;  // without body
    Bytes reply;   // encoded
    TimePoint sent = TimePoint::min();
    TimePoint due = TimePoint::max();  // to be sent again
    Millis wait{0};                    // from then until the next time
  };

  // Membership
  void announce(TimePoint now);
  void on_inbox(const Message& message, TimePoint now);
  void on_announcement_reply(const Message& message, TimePoint now);
  void on_accepted(const AnnouncementReply& reply, TimePoint now);
  void on_rejected(const Rejection& rejection, TimePoint now);
  void on_rollcall(const Message& message, TimePoint now);
  void watch_connection(TimePoint now);
  void send_heartbeat(TimePoint now);
  void tick_heartbeat(TimePoint now);
  void leave_group();
  void tick_drain(TimePoint now);

  // The plugin's life
  void tick_initialize(TimePoint now);
  void tick_health(TimePoint now);
  /// On the way to `state`, once the plugin has cleaned up.
  void end(State state, TimePoint now);
  void tick_end(TimePoint now);
  /// Nothing but cleaning up is left to do.
  [[nodiscard]] bool ending() const { return state_ >= State::kCleaning; }

  // Jobs
  void on_job(const Message& message, TimePoint now);
  [[nodiscard]] std::optional<Error> refusal(const Job& job) const;
  void take(std::shared_ptr<const Job> job, std::string reply, TimePoint received, TimePoint now);
  void accept(Slot& slot);
  void begin(Slot& slot, TimePoint now);
  /// True: the job was not begun, it is answered and to be forgotten. Else its stop token is set.
  bool stop(Slot& slot, Error why, TimePoint now);
  /// False: every slot is stuck, and the worker ends.
  bool tick_slots(TimePoint now);
  /// True: to be forgotten.
  bool tick_slot(Slot& slot, TimePoint now);

  // What waits for a slot
  [[nodiscard]] bool may_wait(const Job& job) const;
  void wait(std::shared_ptr<const Job> job, std::string reply, TimePoint now);
  /// As many as there are slots for.
  void begin_waiting(TimePoint now);
  /// Those whose time is over by then.
  void turn_away_waiting(TimePoint now);

  // Control
  void on_control(const Message& message, TimePoint now);
  void on_go(const Running& running, TimePoint now);
  void on_cancel(const Running& running, TimePoint now);
  void send_manifest(const Message& message, const FleetId& fleet, const SendManifest& request);
  [[nodiscard]] Slot* find(const Running& running);

  // Results of mutations, until they are acknowledged
  /// What keeps this worker from mutations, if anything does.
  [[nodiscard]] std::optional<Error> no_room() const;
  Unacknowledged& keep(const JobReply& ids, Bytes reply);
  void send(Unacknowledged& result, const std::string& subject, TimePoint now);
  void on_ack(const Message& message, TimePoint now);
  /// All of them are sent again, as soon as that does not repeat what was just said.
  void hurry(TimePoint now);
  void take_over(TimePoint now);
  void tick_results(TimePoint now);
  /// At the end of a drain, when nothing else is left to wait for.
  [[nodiscard]] bool waits_for_acks(TimePoint now);

  // Answers
  void answer(const Slot& slot, JobResult result, std::uint32_t calls);
  void reply_to(const Job& job, const std::string& subject, const decltype(JobReply::body)& body, std::uint32_t calls);
  void publish(const std::string& subject, const std::string& reply, Bytes data);
  void malformed(std::string_view what, const Error& error, TimePoint now);
  [[nodiscard]] MicroService::Stats stats() const;
  [[nodiscard]] std::uint16_t free_slots() const;
  [[nodiscard]] std::uint16_t stuck_slots() const;
  [[nodiscard]] std::vector<Running> running() const;
  [[nodiscard]] bool runs_jobs() const;

  const Options options_;
  const Plugin& plugin_;
  Bus& bus_;
  Random& random_;
  Executor& executor_;
  const std::shared_ptr<spdlog::logger> log_;
  const std::shared_ptr<JobRunner> runner_;  // shared with work, which may outlive a core whose slots are stuck
  const Bytes manifest_;
  const std::string manifest_hash_;
  MicroService service_;
  Lifecycle life_;

  State state_ = State::kInitializing;
  State end_state_ = State::kDrained;    // what kCleaning leads to
  FleetId fleet_;                        // that accepted it; empty before
  std::optional<SubscriptionId> group_;  // of the pool's job subject, while it is a member
  SubscriptionId own_jobs_ = 0, control_ = 0, rollcall_ = 0, inbox_ = 0;
  std::uint64_t connections_ = 0;
  Millis backoff_{0};
  bool said_ill_ = false;  // in the last heartbeat

  TimePoint slots_due_ = TimePoint::max();  // not later than what is due in any of them, or of those that wait
  TimePoint announce_at_ = TimePoint::max();
  TimePoint heartbeat_at_ = TimePoint::max();
  TimePoint check_at_ = TimePoint::max();
  TimePoint leave_at_ = TimePoint::max();
  TimePoint stop_all_at_ = TimePoint::max();
  TimePoint give_up_at_ = TimePoint::max();
  TimePoint take_over_at_ = TimePoint::max();
  TimePoint resend_at_ = TimePoint::min();    // not before it are results sent again
  TimePoint ack_until_ = TimePoint::max();    // a drained worker waits for acknowledgements
  TimePoint complain_at_ = TimePoint::min();  // not before it is the next malformed message logged

  std::map<Token, Slot> slots_;
  std::deque<Waiting> waiting_;  // the oldest first; as many as slots at most
  std::map<Token, Unacknowledged> unacked_;
  std::size_t unacked_bytes_ = 0;
  RecentTokens recent_;
  Counters counters_;
  MicroService::Stats stats_;
};

/// For logs.
std::string_view state_name(WorkerCore::State state);

}  // namespace muster
