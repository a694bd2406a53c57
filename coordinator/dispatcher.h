#pragma once

#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/config.h"
#include "coordinator/effects.h"
#include "coordinator/limiter.h"
#include "coordinator/parts.h"
#include "coordinator/pool_load.h"
#include "coordinator/registry.h"
#include "schema/subjects.h"

namespace muster {

/// What is wanted of the fleet: a Job less what the dispatcher gives it.
struct JobSpec {
  Lane lane;
  Target target;
  std::string type;
  std::string manifest;  // only workers of this manifest get it; empty: any
  JobOperation operation;
  Priority priority = Priority::kDiscovery;
  Millis deadline{120'000};  // from submission
  std::uint64_t owner = 0;   // handed back with the outcome
  JobId id{};                // of a job that was submitted before; empty: a new one
  bool recovered = false;    // a worker may have it still: it keeps what it says it has
  Millis limit{0};           // from when it is first sent, within `deadline`; 0: none of its own
  Millis patience{0};    // from submission: until then no wait for its target's rate, or a slot, counts for `deadline`
  bool follows = false;  // where nobody of its manifest is left it goes to those of the one that most have
};

/// How a job ended. Exactly one for each submitted job, unless it is withdrawn.
struct JobOutcome {
  JobId job;
  std::uint64_t owner = 0;
  JobResult result;
  WorkerId worker;  // who answered; empty: nobody
  std::uint16_t attempts = 0;
  bool uncertain = false;  // of a change: some attempt, if not this result's, may have been applied
};

/// What happened to a job on its way, for events and logs.
struct JobNotice {
  enum class Kind : std::uint8_t { kRetried, kFailed, kRejected };
  Kind kind = Kind::kRetried;
  JobId job;
  std::string ns, type, target;
  std::string_view operation;
  WorkerId worker;
  std::uint16_t attempt = 0;
  Error error;
};

/// Timing of design section 5.3.
inline constexpr Millis kNoSign{1000};         // until a dispatch without any answer is sent again
inline constexpr Millis kReadLease{3000};      // until a silent worker's read goes elsewhere
inline constexpr Millis kChangeLease{10'000};  // until a silent worker's change does
inline constexpr int kWorkersTaken = 3;        // workers a job may take with it
inline constexpr Millis kBusyPause{100};       // how long a worker that said `busy` is spared
inline constexpr Millis kWaitForSlot{40};      // how long a read may wait at a worker for its next free slot
inline constexpr Millis kPlacesPause{5000};    // how long none waits there where one has waited in vain
inline constexpr Millis kNobodyPause{250};     // until a lane without responders is tried again

/// Queues jobs, hands them to workers, keeps their leases, tries again. Decides only: what is to be sent goes to
/// Effects, what ended comes out of take_outcomes(). Thread: loop thread only.
class Dispatcher {
 public:
  struct Counters {
    std::uint64_t dispatched = 0, results = 0, busy = 0, resent = 0, lost = 0, retried = 0, failed = 0;
    std::uint64_t stale_replies = 0;  // of tokens that are superseded or unknown
    std::uint64_t refused_parts = 0;
  };

  Dispatcher(const Config& config, const Subjects& subjects, FleetId fleet, CoordinatorId self, Registry& registry,
             Limiter& limiter, Random& random)
      : config_(config),
        subjects_(subjects),
        fleet_(std::move(fleet)),
        self_(std::move(self)),
        registry_(registry),
        limiter_(limiter),
        random_(random) {}

  /// A change is published with what waits for the next commit: its intent is written before.
  JobId submit(JobSpec spec, TimePoint now, WallTime wall);
  /// Ends all jobs of an owner, or those on one target, without an outcome; what runs is cancelled.
  void withdraw(std::uint64_t owner, Effects& effects, const TargetId& target = {});
  /// Ends a job without an outcome that no worker has been given; false: one may have it.
  bool take_back(const JobId& job);
  /// What runs is told to stop, and ends with what its worker says; what waits ends at once.
  void cancel_jobs(std::uint64_t owner, TimePoint now, Effects& effects);
  /// Of a target that is another by now: changes that nobody has begun end, others are not tried again.
  void stop_changes(const TargetId& target);
  /// Of a change: whether a worker may have begun it. One that has not been submitted, or has ended, may have been.
  [[nodiscard]] bool may_have_begun(const JobId& change) const;
  /// Whether it takes no slot for now: it is to be tried again later, or its target is not to be asked yet.
  [[nodiscard]] bool rests(const JobId& job, TimePoint now);
  /// Of a job that has been submitted and not ended; none: it is not one of these.
  [[nodiscard]] const Lane* lane_of(const JobId& job) const;
  /// Of a dispatch that still counts; none: it is not one of these.
  [[nodiscard]] const Lane* lane_of(const Token& token) const;
  /// Whether replies of this dispatch still count.
  [[nodiscard]] bool leases(const JobId& job, const Token& token) const;
  /// An earlier attempt of a job that has been sent again has succeeded: that ends it. False: nobody waits for it.
  bool supersede(const JobId& job, JobResult result, Effects& effects);

  /// Jobs of the lane that have been submitted and not ended.
  [[nodiscard]] std::size_t load(const Lane& lane) const;
  /// More of this priority would only wait longer: callers keep their work until there is room. A target of which
  /// little is there has room in any case, and more of it where slots stay free: what waits for one that is slow or may
  /// be asked seldom is in no other's way.
  [[nodiscard]] bool has_room(const Lane& lane, Priority priority, const TargetId& target);
  /// Of every pool that has workers or jobs, by name; of `only` these where it is given: each costs a look at its jobs.
  [[nodiscard]] std::vector<PoolLoad> loads(TimePoint now, const std::set<Lane>* only = nullptr);
  [[nodiscard]] std::size_t in_flight() const { return leases_.size(); }
  [[nodiscard]] std::size_t waiting() const { return jobs_.size() - leases_.size(); }

  /// `ns`   of whoever has sent it
  void on_reply(std::string_view ns, JobReply reply, TimePoint now, Effects& effects);
  /// Something came on the reply subject's token that is no reply: that attempt has failed.
  void on_undecodable(const Token& token, const Error& error, TimePoint now);
  /// What was to be sent with the token is too large for the bus: that attempt has failed, and nobody has heard of it.
  void on_unsendable(const Token& token, const Error& error, TimePoint now);
  /// The reply subject's token got the server's "no responders".
  void on_no_responders(const Token& token, TimePoint now, Effects& effects);
  /// Renews what it names; cancels what nobody leases.
  void on_heartbeat(const Heartbeat& heartbeat, TimePoint now, Effects& effects);
  void on_worker_lost(std::string_view ns, const WorkerId& worker, TimePoint now, Effects& effects);
  /// Who comes back keeps what it has from before a restart.
  void on_announcement(const WorkerId& worker, const std::vector<Running>& running, TimePoint now);
  /// A worker joined or got room: what waits for the lane may go.
  void on_lane_changed(const Lane& lane);

  /// kSkip while answers may still lie unread: nobody is judged late before the inbox is empty. kDeadlines without a
  /// connection, and where the inbox is not emptied for long: jobs end at their deadlines, and no worker is taken for
  /// silent.
  enum class Lateness : std::uint8_t { kJudge, kDeadlines, kSkip };
  /// Sends what can go, ends what is late.
  void tick(TimePoint now, Lateness lateness, Effects& effects);
  /// When tick() has something to do next.
  [[nodiscard]] TimePoint next_due() const;
  /// Leases and waiting times start afresh.
  void grace(TimePoint now);

  std::vector<JobOutcome> take_outcomes() { return std::exchange(outcomes_, {}); }
  std::vector<JobNotice> take_notices() { return std::exchange(notices_, {}); }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  /// Goes on from what another has counted.
  void count_on(const Counters& counters) { counters_ = counters; }

 private:
  enum class State : std::uint8_t { kQueued, kDelayed, kSent, kRunning };
  struct Record {
    JobId id;
    JobSpec spec;
    State state = State::kQueued;
    std::uint16_t attempt = 0;
    std::uint16_t failures = 0;
    std::uint16_t workers_taken = 0;
    bool gone = false;       // of a change: `go` was given for this dispatch
    bool uncertain = false;  // of a change: an attempt may have been applied
    bool stranded = false;   // of a change that has gone: with a worker that is lost
    bool limited = false;    // the target had a rate when it was sent
    bool offered = false;    // to a worker that is there, which did not take it
    bool waits = false;      // was sent to a worker that had no slot free
    bool slow = false;       // its worker had to say that it has it, or answers in parts
    Token token;
    WorkerId worker;                 // whom it is known to be with
    WorkerId last_worker;            // who had it last: at another attempt others come first
    std::vector<WorkerId> suspects;  // who may have died of it: not heard since it was sent, without any sign of it
    TimePoint deadline;
    TimePoint patient_until;
    TimePoint since;        // sent, or last renewed
    TimePoint waits_since;  // for a worker, where it is queued
    TimePoint delayed_until;
    TimePoint go_until;  // `go` is repeated while the worker may wait for it
    std::unique_ptr<PartAssembler> parts;
    std::optional<Error> stopped;  // why it is not tried again
    std::vector<Token> unheard;    // dispatches that were given up without a sign, the newest last
  };
  using Jobs = std::unordered_map<JobId, Record>;
  /// A worker may have it from before a restart, and not have been heard since.
  static bool may_be_claimed(const Record& record) { return record.spec.recovered && record.attempt == 0; }
  static Millis lease_of(const Record& record) { return record.gone ? kChangeLease : kReadLease; }

  /// What waits for one target, and its turn among the others.
  struct TargetQueue {
    TargetId target;
    std::deque<JobId> jobs;
    TimePoint last_rested{};  // when it was not to be asked, for its rate
  };
  struct PriorityQueue {
    std::list<TargetQueue> targets;  // front is next
    std::uint64_t pass = 0;          // stride scheduling: the smallest pass goes next
    std::size_t jobs = 0;            // submitted, not ended
    std::unordered_map<TargetId, std::size_t> jobs_of;
  };
  struct LaneState {
    std::array<PriorityQueue, 4> queues;
    std::size_t jobs = 0;          // submitted, not ended
    std::size_t unattributed = 0;  // in flight through the queue group, taker not known yet
    std::size_t flying = 0;
    std::size_t stranded = 0;  // of these, with workers that are lost
    bool idle = false;         // slots were free when it was looked at last, and what is queued rests
    TimePoint last_full;       // when all slots were taken
    TimePoint not_before;      // nobody responded
  };

  void count_in(const JobSpec& spec);
  void count_out(const JobSpec& spec);
  void enqueue(Record& record, bool front);
  void delay(Record& record, TimePoint until);
  void pump(const Lane& lane, LaneState& state, TimePoint now, Effects& effects);
  /// How many jobs more a lane takes. Flying ones are in slots, with lost workers, or wait at workers.
  struct Room {
    std::size_t slots = 0;   // free
    std::size_t places = 0;  // to wait, at workers whose slots are taken
    bool crowded = false;    // there is work for all slots, and more may wait: who has it is to be known
  };
  [[nodiscard]] Room room(const Lane& lane, const LaneState& state, TimePoint now);
  void fill(Room& room, const Lane& lane, LaneState& state, TimePoint now, Effects& effects);
  /// `full`   manifests whose workers have no room
  std::optional<JobId> next_job(const Lane& lane, LaneState& state, const std::set<std::string>& full, TimePoint now);
  /// It and its target are next again.
  void put_back(Record& record, LaneState& state);
  bool send(Record& record, LaneState& state, const Room& room, TimePoint now, Effects& effects);
  /// Whether a worker of it has been heard since.
  [[nodiscard]] bool is_heard_after(const Lane& lane, TimePoint time);
  /// Whether its next way to a worker may be one to a slot that is still taken: a small loss where it is turned away.
  [[nodiscard]] bool may_wait(const Record& record) const;
  WorkerEntry* choose(const Record& record, bool may_wait, TimePoint now);
  [[nodiscard]] bool queue_group_serves(const Record& record, const LaneState& state, TimePoint now);
  void attribute(Record& record, const WorkerId& worker);
  /// The worker may begin a change: it is the one that has it. It is told at the next tick.
  void go(Record& record, TimePoint now);
  void say_go(Effects& effects);
  /// From before a restart; false: it is nothing that was waited for.
  bool take_up(const WorkerId& worker, const Running& running, TimePoint now);
  void end_flight(Record& record);
  /// Nobody has taken what was sent.
  void untaken(Record& record);
  void recall(Record& record, Effects& effects);
  /// A job is sent again for want of a sign: a sign of what was sent before counts all the same, should it come.
  void keep_unheard(Record& record);
  void forget_unheard(Record& record);
  /// Of a job that has such a dispatch; null: none of these.
  [[nodiscard]] Record* find_unheard(const JobId& job, const Token& token);
  /// What comes of such a dispatch takes its job over, if nobody else has it by then, or if it ends a read well.
  void resume_by(const JobReply& reply, TimePoint now, Effects& effects);
  void resume(Record& record, const Token& token, const WorkerId& worker, TimePoint now, Effects& effects);
  void finish(Record& record, JobResult result);
  /// `calls`: what it cost the target.
  void fail(Record& record, Error error, std::uint32_t calls, TimePoint now);
  void lose_worker(Record& record, TimePoint now);
  void expire(Record& record, TimePoint now, Effects& effects);
  /// What one that ends without having been taken has waited for.
  std::string waited_for(const Record& record, TimePoint now);
  /// Of a job that has not been sent: its time begins when there is a slot for it, and its target may be asked.
  /// `rested`   the last time that what is queued for its target was not to be sent for the rate of that
  void extend(Record& record, TimePoint rested);
  /// A dispatch without any sign: lost on its way, or it took its worker with it before that could say a word. Sent
  /// again at once, or, while somebody is not heard who may have it, when it is known whether he lives.
  void send_again(Record& record, TimePoint now);
  void settle_suspects(Record& record, TimePoint now);
  /// One more worker is gone; false when that ended the job.
  bool count_taken(Record& record);
  void cancel(std::string_view ns, const WorkerId& worker, const JobId& job, const Token& token, Effects& effects);
  void take_result(Record& record, JobResult result, std::uint32_t calls, TimePoint now);
  /// Of a read that has a result: how quick its worker is.
  void note_pace(const Record& record);
  void take_part(Record& record, Part part, TimePoint now, Effects& effects);
  /// Takes what other namespaces hold more of, if there is no room for a part of `ns`; false: it has the most itself.
  bool make_part_room(const std::string& ns, std::size_t bytes);
  void drop_parts(Record& record);
  void notice(JobNotice::Kind kind, const Record& record, const Error& error);

  const Config& config_;
  const Subjects& subjects_;
  FleetId fleet_;
  CoordinatorId self_;
  Registry& registry_;
  Limiter& limiter_;
  Random& random_;

  Jobs jobs_;
  std::map<Lane, LaneState> lanes_;
  std::unordered_map<std::string_view, Record*> leases_;  // every dispatch that still counts, by its record's token
  std::unordered_map<std::string, JobId> unheard_;        // by the token of a dispatch that was given up
  std::multimap<TimePoint, JobId> delayed_;               // back-off
  TimePoint next_check_;                                  // of leases and deadlines
  TimePoint blocked_until_ = TimePoint::max();            // earliest end of a wait found by the last pump
  std::map<std::string, std::size_t> part_bytes_;         // by namespace
  std::vector<Token> to_go_;                              // dispatches whose workers are to be told to go on
  std::vector<JobOutcome> outcomes_;
  std::vector<JobNotice> notices_;
  Counters counters_;
};

}  // namespace muster
