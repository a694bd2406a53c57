#include "worker_core.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "replies.h"
#include "schema/codec.h"
#include "schema/mutation.h"
#include "schema/views.h"
#include "worker_sdk/bus/digest.h"
#include "worker_sdk/bus/drain.h"

namespace muster {
namespace {

constexpr Millis kHeartbeatInterval{1000};
constexpr Millis kAnnounceInterval{1000};
constexpr Millis kMaxBackoff{30'000};
constexpr std::uint64_t kRollcallSpreadMs = 250;  // so that a fleet does not announce in one instant
constexpr Millis kAcceptAfter{50};                // the protocol allows 100
constexpr Millis kStopGrace{10'000};
constexpr Millis kLeaveDelay{250};  // in the group after draining was said: what is on its way is answered `busy`
constexpr Millis kComplainInterval{1000};
constexpr Millis kHealthInterval{10'000};
constexpr Millis kCleanupLimit{4000};

/// std::erase_if hands its predicate constant entries; these predicates act on them.
template <typename Slots, typename Predicate>
void forget_if(Slots& slots, Predicate predicate) {
  for (auto it = slots.begin(); it != slots.end();) it = predicate(it->second) ? slots.erase(it) : std::next(it);
}

MicroService::Description describe(const WorkerCore::Options& options, const PluginInfo& plugin) {
  return {.name = "muster-" + plugin.name,
          .id = options.id.value,
          .version = plugin.version,
          .description = plugin.description,
          .metadata = {{"namespace", plugin.ns}, {"pool", options.pool}, {"plugin", plugin.name}},
          .endpoint = "job",
          .subject = options.subjects.job(plugin.ns, options.pool),
          .queue_group = std::string(kWorkersGroup),
          .started = options.started};
}

const Clock& clock_of(const WorkerCore::Options& options) {
  if (options.clock == nullptr) throw std::logic_error("a worker without a clock");
  return *options.clock;
}

}  // namespace

WorkerCore::WorkerCore(Options options, const Plugin& plugin, Bus& bus, Random& random, Executor& executor,
                       std::shared_ptr<spdlog::logger> log)
    : options_(std::move(options)),
      plugin_(plugin),
      bus_(bus),
      random_(random),
      executor_(executor),
      log_(std::move(log)),
      runner_(std::make_shared<JobRunner>(plugin, options_.secrets, log_, options_.journal, clock_of(options_),
                                          options_.id)),
      manifest_(encode(plugin.manifest())),
      manifest_hash_(sha256_hex(manifest_)),
      service_(describe(options_, plugin.info())),
      life_(plugin, options_.secrets, runner_, executor, log_) {}

// ---- Membership

Result<void> WorkerCore::start(TimePoint now) {
  const std::string& ns = plugin_.info().ns;
  // Its own subjects first: who hears of this worker can reach it.
  const std::pair<std::string, SubscriptionId*> subjects[] = {
      {options_.subjects.worker_job(ns, options_.id), &own_jobs_},
      {options_.subjects.worker_control(ns, options_.id), &control_},
      {options_.subjects.rollcall(), &rollcall_}};
  for (const auto& [subject, id] : subjects) {
    auto subscribed = bus_.subscribe(subject);
    if (!subscribed) return std::move(subscribed.error());
    *id = *subscribed;
  }
  auto answers = bus_.subscribe_answers(bus_.inbox() + ".>");
  if (!answers) return std::move(answers.error());
  inbox_ = *answers;
  if (auto started = service_.start(bus_); !started) return started;
  life_.initialize(now);
  tick_initialize(now);
  return {};
}

void WorkerCore::tick_initialize(TimePoint now) {
  if (life_.failed()) return end(State::kFailed, now);
  if (!life_.initialized()) return;
  state_ = State::kAnnouncing;
  connections_ = bus_.link().connections;
  announce(now);
}

void WorkerCore::announce(TimePoint now) {
  const PluginInfo& plugin = plugin_.info();
  std::vector<std::string> features;
  if (options_.waiting_room) features.emplace_back(kWaitingRoom);
  const Announcement announcement{.worker = options_.id,
                                  .ns = plugin.ns,
                                  .pool = options_.pool,
                                  .protocol = kProtocolMajor,
                                  .features = std::move(features),
                                  .plugin = plugin.name,
                                  .version = plugin.version,
                                  .manifest = manifest_hash_,
                                  .slots = options_.slots,
                                  .max_requests_per_second = plugin.max_requests_per_second,
                                  .host = options_.host,
                                  .pid = options_.pid,
                                  .running = running(),
                                  .fleet = fleet_};
  publish(options_.subjects.announce(plugin.ns), bus_.inbox() + ".announce", encode(announcement));
  announce_at_ = now + kAnnounceInterval;
}

void WorkerCore::on_announcement_reply(const Message& message, TimePoint now) {
  if (message.no_responders || ending()) return;  // no coordinator yet: asked again in a second
  auto reply = decode<AnnouncementReply>(message.data);
  if (!reply) return malformed("answer to an announcement", reply.error(), now);
  if (reply->rejected) {
    // It has been accepted, and has not asked again: somebody announced it falsely, and it is not this one's answer.
    if (announce_at_ == TimePoint::max()) return static_cast<void>(++counters_.foreign);
    on_rejected(*reply->rejected, now);
  } else {
    on_accepted(*reply, now);
  }
}

void WorkerCore::on_accepted(const AnnouncementReply& reply, TimePoint now) {
  announce_at_ = TimePoint::max();
  backoff_ = Millis{0};
  fleet_ = reply.fleet;
  hurry(now);
  if (state_ != State::kAnnouncing) return;
  const std::string subject = options_.subjects.job(plugin_.info().ns, options_.pool);
  auto joined = bus_.subscribe(subject, kWorkersGroup);
  if (!joined) {
    log_->warn("cannot join the workers of {}: {}", subject, joined.error().message);
    announce_at_ = now + kAnnounceInterval;
    return;
  }
  group_ = *joined;
  state_ = State::kActive;
  heartbeat_at_ = now;
  if (life_.checks_health()) check_at_ = now;
  if (options_.journal) take_over_at_ = now;
  log_->info("accepted worker={} fleet={} coordinator={} subject={}", options_.id.value, fleet_.value,
             reply.coordinator.value, subject);
}

void WorkerCore::on_rejected(const Rejection& rejection, TimePoint now) {
  if (rejection.final) {
    log_->error("rejected for good code={}: {}", rejection.code, rejection.message);
    return end(State::kRejected, now);
  }
  backoff_ = std::clamp(backoff_ * 2, kAnnounceInterval, kMaxBackoff);
  announce_at_ = now + backoff_;
  log_->warn("rejected code={}: {}; asking again in {} ms", rejection.code, rejection.message, backoff_.count());
  if (state_ == State::kActive) {
    leave_group();
    state_ = State::kAnnouncing;
  }
}

void WorkerCore::on_rollcall(const Message& message, TimePoint now) {
  if (auto call = decode<RollCall>(message.data); !call) return malformed("roll call", call.error(), now);
  if (state_ == State::kInitializing || ending()) return;
  announce_at_ = std::min(announce_at_, now + Millis(random_.below(kRollcallSpreadMs + 1)));
}

/// After a reconnect coordinators may have changed, and have not heard from this worker for a while.
void WorkerCore::watch_connection(TimePoint now) {
  const std::uint64_t connections = bus_.link().connections;
  if (connections == connections_) return;
  connections_ = connections;
  announce_at_ = std::min(announce_at_, now + Millis(random_.below(kRollcallSpreadMs + 1)));
  hurry(now);
}

void WorkerCore::send_heartbeat(TimePoint now) {
  said_ill_ = life_.ill();
  const std::string& ns = plugin_.info().ns;
  const Heartbeat beat{.worker = options_.id,
                       .ns = ns,
                       .pool = options_.pool,
                       .free_slots = free_slots(),
                       .running = running(),
                       .draining = state_ >= State::kDraining,
                       .stuck_slots = stuck_slots(),
                       .healthy = !said_ill_,
                       .health = life_.health(now)};
  publish(options_.subjects.heartbeat(ns), {}, encode(beat));
}

void WorkerCore::tick_heartbeat(TimePoint now) {
  if (now < heartbeat_at_) return;
  if (state_ == State::kAnnouncing && slots_.empty()) {  // rejected for the time being: nothing to renew
    heartbeat_at_ = TimePoint::max();
    return;
  }
  send_heartbeat(now);
  heartbeat_at_ = std::max(heartbeat_at_ + kHeartbeatInterval, now);
}

void WorkerCore::leave_group() {
  if (group_) bus_.unsubscribe(*group_);
  group_.reset();
  leave_at_ = TimePoint::max();
}

void WorkerCore::drain(TimePoint now, std::optional<Millis> limit) {
  if (ending()) return;
  if (state_ == State::kInitializing) return end(State::kDrained, now);  // nobody has heard of it
  if (limit) {
    give_up_at_ = std::min(give_up_at_, now + *limit);
    stop_all_at_ = std::min(stop_all_at_, give_up_at_ - kStopBeforeLimit);
  }
  if (state_ == State::kDraining) return;
  log_->info("draining worker={} jobs={}", options_.id.value, slots_.size());
  state_ = State::kDraining;
  turn_away_waiting(TimePoint::max());
  take_over_at_ = TimePoint::max();
  heartbeat_at_ = now;  // also where no answer has come: a coordinator may have accepted it
  leave_at_ = group_ ? now + kLeaveDelay : now;
}

void WorkerCore::tick_drain(TimePoint now) {
  if (now >= leave_at_) leave_group();
  if (now >= stop_all_at_) {
    stop_all_at_ = TimePoint::max();
    forget_if(slots_, [&](Slot& slot) {
      return stop(slot, failure(Errc::kServiceUnavailable, "the worker is shutting down"), now);
    });
  }
  if (now >= give_up_at_) {
    for (const auto& [token, slot] : slots_) {
      if (slot.phase != Slot::Phase::kStuck) answer(slot, slot.stop_error, 1);
    }
    log_->warn("gives up jobs that do not stop worker={} jobs={}", options_.id.value, slots_.size());
    return end(State::kDrained, now);
  }
  if (!group_ && stuck_slots() == slots_.size() && !waits_for_acks(now)) {
    log_->info("drained worker={} results={}", options_.id.value, unacked_.size());
    end(State::kDrained, now);
  }
}

// ---- The plugin's life

void WorkerCore::tick_health(TimePoint now) {
  if (now >= check_at_) {
    if (state_ == State::kActive) life_.check_health(now);
    check_at_ = now + kHealthInterval;
  }
  const bool news = life_.ill() != said_ill_;
  if (news && heartbeat_at_ != TimePoint::max()) heartbeat_at_ = now;
}

void WorkerCore::end(State state, TimePoint now) {
  leave_group();
  turn_away_waiting(TimePoint::max());
  forget_if(slots_, [&](Slot& slot) {  // else its `go` would have it begun beside the cleanup
    return slot.phase == Slot::Phase::kClaimed && stop(slot, refused("the worker ends"), now);
  });
  state_ = State::kCleaning;
  end_state_ = state;
  life_.end(now, runs_jobs() ? now : std::min(now + kCleanupLimit, give_up_at_));
  announce_at_ = check_at_ = stop_all_at_ = give_up_at_ = slots_due_ = TimePoint::max();
  tick_end(now);
}

void WorkerCore::tick_end(TimePoint now) {
  if (life_.ending()) return;
  state_ = end_state_;
  if (!fleet_.empty()) send_heartbeat(now);  // the last word: nothing free, draining
}

TimePoint WorkerCore::next_due() const {
  if (ended()) return TimePoint::max();
  TimePoint due = std::min({announce_at_, heartbeat_at_, check_at_, leave_at_, stop_all_at_, give_up_at_,
                            service_.next_due(), life_.next_due()});
  due = std::min(due, slots_due_);
  if (ending() || state_ == State::kInitializing) return due;
  due = std::min({due, take_over_at_, ack_until_});
  for (const auto& [token, result] : unacked_) due = std::min(due, std::max(result.due, resend_at_));
  return due;
}

void WorkerCore::tick(TimePoint now) {
  if (ended()) return;
  if (now >= service_.next_due()) service_.tick(bus_, stats(), now);
  life_.tick(now);
  if (state_ == State::kInitializing) return tick_initialize(now);
  if (state_ == State::kCleaning) {
    tick_heartbeat(now);
    return tick_end(now);
  }
  watch_connection(now);
  if (now >= announce_at_) announce(now);
  if (now >= slots_due_ && !tick_slots(now)) return;
  tick_results(now);
  tick_health(now);
  tick_heartbeat(now);
  if (state_ == State::kDraining) tick_drain(now);
}

void WorkerCore::handle(const Message& message, TimePoint now) {
  const SubscriptionId id = message.subscription;
  if (id == own_jobs_ || id == group_) return on_job(message, now);
  if (id == control_) return on_control(message, now);
  if (id == rollcall_) return on_rollcall(message, now);
  if (id == inbox_) return on_inbox(message, now);
  // Who asks could have an answer said where it may not speak itself.
  if (message.reply.starts_with(options_.subjects.prefix() + ".") || message.reply.starts_with("$")) {
    return malformed("question", {Errc::kMalformed, "wants its answer on " + std::string(message.reply), {}, 0}, now);
  }
  service_.handle(message, now, random_);
}

// ---- Jobs

TimePoint WorkerCore::Slot::next_due() const {
  const TimePoint accept_at = accepted ? TimePoint::max() : begun + kAcceptAfter;
  switch (phase) {
    case Phase::kClaimed:
      return std::min(received + job->lease, deadline);
    case Phase::kRunning:
      return std::min(deadline, accept_at);
    case Phase::kStopping:
      return std::min(stopped + kStopGrace, accept_at);
    case Phase::kStuck:
      break;
  }
  return TimePoint::max();
}

void WorkerCore::on_job(const Message& message, TimePoint now) {
  auto decoded = decode<Job>(message.data);
  if (!decoded) return malformed("job", decoded.error(), now);
  if (message.reply.empty()) return malformed("job", invalid_request("no reply subject"), now);
  auto job = std::make_shared<const Job>(std::move(*decoded));
  const std::string reply(message.reply);
  const bool has_slot = slots_.contains(job->token);  // for longer than a token may be remembered
  if ((has_slot || !recent_.insert(job->token)) && !MUSTER_MUTATION("run-duplicates")) {
    ++counters_.duplicates;
    return;
  }
  const bool waits = free_slots() == 0;
  if (waits && !may_wait(*job)) {
    ++counters_.busy;
    return reply_to(*job, reply, Busy{}, 0);
  }
  if (auto refused = refusal(*job)) {
    ++counters_.foreign;
    return reply_to(*job, reply, JobResult(std::move(*refused)), 0);
  }
  if (is_mutation(job->operation)) {
    if (auto full = no_room()) return reply_to(*job, reply, JobResult(std::move(*full)), 0);
  }
  log_->debug("job={} token={} attempt={} operation={} type={}", job->id.value, job->token.value, job->attempt,
              operation_name(job->operation), job->type);
  waits ? wait(std::move(job), reply, now) : take(std::move(job), reply, now, now);
}

void WorkerCore::take(std::shared_ptr<const Job> job, std::string reply, TimePoint received, TimePoint now) {
  Slot& slot = slots_[job->token];
  slot.job = std::move(job);
  slot.reply = std::move(reply);
  slot.received = received;
  slot.deadline = received + slot.job->deadline;
  if (is_mutation(slot.job->operation) && !MUSTER_MUTATION("act-without-go")) {
    slot.phase = Slot::Phase::kClaimed;
    accept(slot);
  } else {
    begin(slot, now);
  }
  slots_due_ = std::min(slots_due_, slot.next_due());
}

std::optional<Error> WorkerCore::refusal(const Job& job) const {
  const std::string& ns = plugin_.info().ns;
  if (job.fleet != fleet_) return invalid_request("a job of fleet " + job.fleet.value + ", not " + fleet_.value);
  if (job.ns != ns) return invalid_request("a job of namespace " + job.ns + ", not " + ns);
  if (job.pool != options_.pool) return invalid_request("a job of pool " + job.pool + ", not " + options_.pool);
  return std::nullopt;
}

void WorkerCore::accept(Slot& slot) {
  slot.accepted = true;
  reply_to(*slot.job, slot.reply, Accepted{}, 0);
}

void WorkerCore::begin(Slot& slot, TimePoint now) {
  slot.phase = Slot::Phase::kRunning;
  slot.begun = now;
  slot.stop = std::stop_source();
  slot.why = std::make_shared<std::atomic<Errc>>(Errc::kCancelled);
  Permit permit{slot.stop.get_token(), slot.deadline, slot.received + slot.job->lease, slot.why};
  const auto& calls = executor_.calls();
  if (calls != nullptr && runner_->begin(slot.job, permit, now, calls)) return;
  auto run = [runner = runner_, job = slot.job, permit = std::move(permit), now] {
    return runner->run(*job, permit, now);
  };
  executor_.submit({slot.job->token, std::move(run)});
}

bool WorkerCore::stop(Slot& slot, Error why, TimePoint now) {
  if (slot.phase == Slot::Phase::kClaimed) {  // nothing was begun
    answer(slot, std::move(why), 0);
    return true;
  }
  if (slot.phase == Slot::Phase::kRunning) {
    slot.phase = Slot::Phase::kStopping;
    slot.stopped = now;
    *slot.why = why.code;
    slot.stop_error = std::move(why);
    slot.stop.request_stop();
    if (const auto& calls = executor_.calls(); calls != nullptr) calls->hurry();
    slots_due_ = std::min(slots_due_, slot.next_due());
  }
  return false;
}

bool WorkerCore::tick_slots(TimePoint now) {
  forget_if(slots_, [&](Slot& slot) { return tick_slot(slot, now); });
  turn_away_waiting(now);
  begin_waiting(now);
  slots_due_ = TimePoint::max();
  for (const auto& waiting : waiting_) slots_due_ = std::min(slots_due_, waiting.until);
  for (const auto& [token, slot] : slots_) slots_due_ = std::min(slots_due_, slot.next_due());
  if (stuck_slots() < options_.slots || state_ == State::kDraining) return true;
  log_->error("every slot is stuck worker={} slots={}", options_.id.value, options_.slots);
  end(State::kStuck, now);
  return false;
}

bool WorkerCore::tick_slot(Slot& slot, TimePoint now) {
  if (now < slot.next_due()) return false;
  if (slot.phase == Slot::Phase::kClaimed) {
    return stop(slot, failure(Errc::kCancelled, "no `go` within the lease: nothing was done"), now);
  }
  if (!slot.accepted && now >= slot.begun + kAcceptAfter) accept(slot);
  if (slot.phase == Slot::Phase::kRunning && now >= slot.deadline) {
    stop(slot, failure(Errc::kTimeout, "the deadline has come"), now);
  }
  if (slot.phase == Slot::Phase::kStopping && now >= slot.stopped + kStopGrace) {
    slot.phase = Slot::Phase::kStuck;
    log_->error("job={} token={} ignores its stop token: its slot is stuck", slot.job->id.value, slot.job->token.value);
    answer(slot, failure(Errc::kTimeout, "plugin code ignores its stop token"), 1);
  }
  return false;
}

void WorkerCore::complete(const Token& token, Outcome outcome, TimePoint now) {
  if (token.value == Lifecycle::kToken) return life_.complete(now);
  const auto found = slots_.find(token);
  if (found == slots_.end()) return;
  const Slot slot = std::move(found->second);
  slots_.erase(found);
  if (slot.next_due() <= slots_due_) slots_due_ = now;  // what was waited for is not to come: the tick finds the next

  ++stats_.requests;
  stats_.processing += now - slot.begun;
  const auto* error = std::get_if<Error>(&outcome.result);
  if (error != nullptr) {
    ++stats_.errors;
    stats_.last_error = error->message;
    const bool bug = error->code == Errc::kInternalFailure;
    log_->log(bug ? spdlog::level::warn : spdlog::level::debug, "job={} token={} failed code={}: {}",
              slot.job->id.value, token.value, errc_name(error->code), error->message);
  }
  if (is_mutation(slot.job->operation) && !MUSTER_MUTATION("send-results-once")) {  // evidence, however late
    const JobReply reply = reply_of(*slot.job, options_.id, outcome);
    send(keep(envelope(reply), encode(reply)), slot.reply, now);
  } else if (slot.phase == Slot::Phase::kRunning) {
    answer(slot, std::move(outcome.result), outcome.calls);
  } else if (slot.phase == Slot::Phase::kStopping) {
    answer(slot, slot.stop_error, outcome.calls);
  }
  begin_waiting(now);
}

// ---- Control

void WorkerCore::on_control(const Message& message, TimePoint now) {
  auto control = decode<Control>(message.data);
  if (!control) return malformed("control", control.error(), now);
  if (const auto* request = std::get_if<SendManifest>(&control->action)) {
    return send_manifest(message, control->fleet, *request);  // asked for before the worker is accepted
  }
  if (control->fleet != fleet_) {
    ++counters_.foreign;
    return;
  }
  if (const auto* go = std::get_if<Go>(&control->action)) on_go(go->job, now);
  if (const auto* cancel = std::get_if<Cancel>(&control->action)) on_cancel(cancel->job, now);
  if (std::holds_alternative<Drain>(control->action)) drain(now, std::nullopt);
}

WorkerCore::Slot* WorkerCore::find(const Running& running) {
  const auto found = slots_.find(running.token);
  return found != slots_.end() && found->second.job->id == running.job ? &found->second : nullptr;
}

void WorkerCore::on_go(const Running& running, TimePoint now) {
  Slot* slot = find(running);
  if (slot == nullptr || slot->phase != Slot::Phase::kClaimed) return;
  if (now < slot->next_due()) begin(*slot, now);  // too late: the next tick gives the claim back
}

void WorkerCore::on_cancel(const Running& running, TimePoint now) {
  const auto cancelled = failure(Errc::kCancelled, "cancelled");
  if (Slot* slot = find(running); slot != nullptr && stop(*slot, cancelled, now)) slots_.erase(running.token);
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.job->token != running.token || waiting.job->id != running.job) return false;
    reply_to(*waiting.job, waiting.reply, JobResult(cancelled), 0);
    return true;
  });
  begin_waiting(now);
}

void WorkerCore::send_manifest(const Message& message, const FleetId& fleet, const SendManifest& request) {
  if (message.reply.empty()) return;
  const std::string reply(message.reply);
  Job asked;  // a manifest is answered as a job is
  asked.fleet = fleet;
  asked.token = Token(reply.substr(reply.rfind('.') + 1));
  if (request.hash != manifest_hash_) {
    return reply_to(asked, reply, JobResult(not_found("this worker's manifest is " + manifest_hash_)), 0);
  }
  reply_to(asked, reply, ManifestBytes{manifest_}, 0);
}

// ---- Answers

void WorkerCore::answer(const Slot& slot, JobResult result, std::uint32_t calls) {
  log_->debug("job={} token={} answered", slot.job->id.value, slot.job->token.value);
  reply_to(*slot.job, slot.reply, std::move(result), calls);
}

void WorkerCore::reply_to(const Job& job, const std::string& subject, const decltype(JobReply::body)& body,
                          std::uint32_t calls) {
  Bytes whole = encode(JobReplyView{job.fleet, job.id, job.token, options_.id, job.attempt, calls, body});
  const std::size_t max_payload = bus_.link().max_payload;
  if (whole.size() <= max_payload) return publish(subject, {}, std::move(whole));
  const JobReply ids{job.fleet, job.id, job.token, options_.id, job.attempt, calls, {}};
  for (Bytes& part : in_parts(ids, std::move(whole), max_payload)) publish(subject, {}, std::move(part));
}

void WorkerCore::publish(const std::string& subject, const std::string& reply, Bytes data) {
  auto sent = bus_.publish({subject, reply, std::move(data), {}});
  if (sent) return;
  ++counters_.unsent;  // whoever waits for it asks again
  log_->debug("not sent subject={}: {}", subject, sent.error().message);
}

void WorkerCore::malformed(std::string_view what, const Error& error, TimePoint now) {
  ++counters_.malformed;
  if (now < complain_at_) return;
  complain_at_ = now + kComplainInterval;
  log_->warn("malformed {}: {} (so far {})", what, error.message, counters_.malformed);
}

}  // namespace muster
