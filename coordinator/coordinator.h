#pragma once

#include <map>
#include <memory>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/admission.h"
#include "coordinator/api.h"
#include "coordinator/late_parts.h"
#include "worker_sdk/bus/micro_service.h"

namespace muster {

/// The coordinator: owns all state, on one thread. A turn drains the inbox, decides, commits, publishes. Clock, bus,
/// store and randomness are passed in, so a turn is the same in the product and in the simulator.
/// Thread: loop thread only.
class Coordinator {
 public:
  Coordinator(const Config& config, Store& store, Bus& bus, const Clock& clock, Random& random,
              std::shared_ptr<spdlog::logger> log);
  ~Coordinator();

  /// Subscribes, takes up what is durable, and asks workers to announce themselves. A store that fails is tried again
  /// by turn().
  /// errors   as Bus::subscribe
  Result<void> start();

  /// Takes what has come and does what is due. A store that fails costs the turn: it is rolled back, and what was in
  /// memory is built anew from what is durable.
  void turn();

  /// When turn() has something to do even if nothing comes.
  [[nodiscard]] TimePoint next_due() const;

  /// Writes what is still open; the last call.
  void stop();

  [[nodiscard]] const CoordinatorStatus& status() const { return status_; }
  [[nodiscard]] bool idle() const;  // no run is active or waits, nor what asks for one

 private:
  struct Core;
  using Handler = void (Coordinator::*)(const Message&, TimePoint);

  Result<void> subscribe();
  void build_core(TimePoint now);
  void recover(const Error& error, TimePoint now);
  /// Tells all who wait for an answer, or ask in the inbox, that the store failed.
  void refuse();
  /// The same while nothing can be stored, with all that comes. What is not asked goes: workers say again what was not
  /// acknowledged, and no other job is waited for by what is built next.
  void refuse_all(TimePoint now);
  void watch_connection(TimePoint now);
  /// Everyone gets a fresh period of grace.
  void grace(TimePoint now);
  /// Takes what has come, and reads on while more does; whether that was all. The time for it is bounded.
  bool drain_inbox(TimePoint now);
  /// What is not handled when that time is over stays for the next turn; whether nothing does.
  bool handle_inbox(TimePoint now);
  /// What may be judged late: nothing while what would tell of it may lie unread. Where that lasts, jobs still end at
  /// their deadlines, and when it is over nobody is late for what could not be heard.
  Dispatcher::Lateness lateness(bool drained, TimePoint now);
  void decide(TimePoint now, Dispatcher::Lateness lateness);
  void ask_ahead(const std::vector<JobOutcome>& outcomes, TimePoint now);
  void look_at_pools(TimePoint now);
  void prune_events(TimePoint now);
  void commit_and_publish(TimePoint now);
  void publish(std::vector<Outgoing>& messages);
  /// When the publisher wants to be pumped; not without a connection.
  [[nodiscard]] TimePoint publication_due() const;
  void roll_call();
  void report_departure(const Registry::Departure& departure, TimePoint now);
  void report_notices();

  // routes: one for each kind of subject
  void on_reply(const Message& message, TimePoint now);
  void on_result(const Message& message, TimePoint now);
  void on_announcement(const Message& message, TimePoint now);
  void on_heartbeat(const Message& message, TimePoint now);
  void on_api(const Message& message, TimePoint now);
  void on_inbox(const Message& message, TimePoint now);

  /// A worker that keeps its results wants to hear on the message's reply subject that one is taken.
  void take_reply(JobReply reply, const Message& message, TimePoint now);
  /// `ns`       whose subject it came on
  /// `ack_to`   becomes that of the whole where a part makes one
  Verdict late_result(JobReply reply, std::string_view ns, std::string& ack_to, TimePoint now);

  /// Whether a message wants its answer where whoever sent it may not speak; complains where it does.
  bool is_misdirected(const Message& message, TimePoint now);
  /// Whether a message is on the subject of the namespace that it speaks for: whoever may publish there speaks for no
  /// other. Complains where it is not.
  bool is_on_subject_of(std::string_view ns, const Message& message, TimePoint now);
  /// Of the jobs that a worker names on the message's subject those that are of its namespace, or nobody's.
  void leave_others(std::vector<Running>& jobs, const Message& message, TimePoint now);
  template <typename T>
  Result<T> decoded(const Message& message, TimePoint now);
  void complain(const Message& message, const std::string& what, TimePoint now);

  const Config& config_;
  Store& store_;
  Bus& bus_;
  const Clock& clock_;
  Random& random_;
  std::shared_ptr<spdlog::logger> log_;
  Subjects subjects_;
  CoordinatorStatus status_;
  std::map<SubscriptionId, Handler> routes_;
  std::unique_ptr<Core> core_;
  MicroService service_;
  MicroService::Stats requests_;  // of the API
  Effects effects_;
  std::vector<Message> inbox_;      // what was received and is not handled yet; bounded
  std::vector<std::string> asked_;  // where answers are waited for that are not out yet
  LateParts late_parts_;
  TimePoint last_turn_;
  TimePoint dirty_since_;  // of the oldest uncommitted write
  TimePoint next_expiry_;
  TimePoint next_prune_;
  TimePoint next_look_;  // at the pools
  TimePoint last_rollcall_;
  TimePoint last_complaint_;  // about malformed messages: at most one line a second
  TimePoint behind_since_;    // the inbox has not been empty since; none: it was in the last turn
  TimePoint last_said_behind_;
  bool overloaded_ = false;  // for so long that everyone could have been lost meanwhile
  TimePoint recover_at_ = TimePoint::max();
  Millis recover_pause_{0};
  JsonText refusal_;  // the answer to all requests until then
  std::uint64_t connections_ = 0;
};

}  // namespace muster
