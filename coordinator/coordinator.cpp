#include "coordinator/coordinator.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "coordinator/must.h"
#include "schema/codec.h"
#include "schema/mutation.h"
#include "worker_sdk/bus/stream_ack.h"
#include "worker_sdk/bus/subject_rules.h"

namespace muster {
namespace {

constexpr std::size_t kReceiveAtOnce = 2048;
constexpr int kReceivesPerTurn = 16;
constexpr Millis kMaxDrain{200};                 // of a turn: its other work waits no longer for what comes
constexpr std::size_t kMaxUncommitted = 10'000;  // rows; larger transactions gain nothing
constexpr Millis kMaxDirty{200};                 // age of the oldest uncommitted write
constexpr Millis kStall{1000};                   // a turn that comes so late has kept everybody waiting
constexpr Millis kExpiryEvery{250};
constexpr Millis kSayBehindEvery{10'000};
constexpr Millis kOncePer{1000};
constexpr Millis kMaxRecoverPause{10'000};
constexpr Millis kPruneEvery{60'000};
constexpr Millis kLookEvery{1000};          // at the pools
constexpr std::size_t kPruneAtOnce = 5000;  // events; more go in the turns that follow

MicroService::Description describe(const CoordinatorStatus& status, const Subjects& subjects) {
  return {.name = "muster-coordinator",
          .id = status.id.value,
          .version = MUSTER_VERSION,
          .description = "Muster coordinator",
          .metadata = {{"prefix", subjects.prefix()}},
          .endpoint = "api",
          .subject = subjects.apis(),
          .queue_group = std::string(kCoordinatorsGroup),
          .started = status.started};
}

CoordinatorStatus new_status(const Clock& clock, Random& random) {
  CoordinatorStatus status;
  status.id = CoordinatorId(make_token(random));
  status.started = clock.wall();
  return status;
}

/// Whoever asks could have an answer said where it may not speak itself, on the fleet's own subjects or the server's;
/// and nothing can be sent to a pattern.
bool takes_no_answer(std::string_view reply, const std::string& prefix) {
  return reply.starts_with(prefix + ".") || reply.starts_with("$") ||
         (!reply.empty() && !valid_subject(reply, Wildcards::kRefused));
}

}  // namespace

/// Everything that is built from the store and can be built again.
struct Coordinator::Core {
  Core(Coordinator& c)
      : events(c.store_, c.clock_),
        worker_events(events, kWorkerEventRate, *c.log_, c.status_.worker_events_left_out),
        rejections(events, kRejectionRate, *c.log_, c.status_.rejections_left_out),
        dispatcher(c.config_, c.subjects_, c.store_.fleet(), c.status_.id, registry, limiter, c.random_),
        admission(c.subjects_, c.status_.id, c.store_, registry, worker_events, rejections, c.random_, c.clock_,
                  *c.log_),
        publisher(c.config_, c.subjects_, c.store_, events, c.bus_.inbox(), *c.log_),
        drift(c.store_, registry, events),
        discovery(
            {c.config_, c.store_, registry, dispatcher, limiter, events, writes, drift, queries, c.clock_, *c.log_},
            c.random_),
        commands({c.config_, c.store_, registry, dispatcher, events, writes, drift, queries, c.clock_, *c.log_},
                 discovery, c.random_, c.status_.late_successes_left_out),
        api({c.config_, c.subjects_, c.store_, registry, dispatcher, discovery, commands, publisher, supervision,
             worker_events, c.status_, c.clock_}) {}

  Registry registry;
  Limiter limiter;
  EventLog events;
  WorkerEvents worker_events;
  WorkerEvents rejections;
  Dispatcher dispatcher;
  PoolWatch pools;
  Admission admission;
  Publisher publisher;
  WriteLog writes;
  Drift drift;
  CompiledQueries queries;
  Discovery discovery;
  Commands commands;
  Supervision supervision;
  Api api;
};

Coordinator::Coordinator(const Config& config, Store& store, Bus& bus, const Clock& clock, Random& random,
                         std::shared_ptr<spdlog::logger> log)
    : config_(config),
      store_(store),
      bus_(bus),
      clock_(clock),
      random_(random),
      log_(std::move(log)),
      subjects_(config.prefix),
      status_(new_status(clock, random)),
      service_(describe(status_, subjects_)) {}

Coordinator::~Coordinator() = default;

Result<void> Coordinator::subscribe() {
  const std::pair<Result<SubscriptionId>, Handler> table[] = {
      {bus_.subscribe_answers(subjects_.replies(status_.id)), &Coordinator::on_reply},
      {bus_.subscribe(subjects_.results(), kCoordinatorsGroup), &Coordinator::on_result},
      {bus_.subscribe(subjects_.announces()), &Coordinator::on_announcement},
      {bus_.subscribe(subjects_.heartbeats()), &Coordinator::on_heartbeat},
      {bus_.subscribe(subjects_.apis(), kCoordinatorsGroup), &Coordinator::on_api},
      {bus_.subscribe_answers(bus_.inbox() + ".>"), &Coordinator::on_inbox},
  };
  for (const auto& [id, handler] : table) {
    if (!id) return id.error();
    routes_[*id] = handler;
  }
  return service_.start(bus_);
}

Result<void> Coordinator::start() {
  const auto now = clock_.now();
  last_turn_ = now;
  connections_ = bus_.link().connections;
  if (auto subscribed = subscribe(); !subscribed) return subscribed;
  try {
    build_core(now);
    commit_and_publish(now);
  } catch (const StoreFailure& failure) {
    recover(failure.error(), now);
  }
  return {};
}

void Coordinator::build_core(TimePoint now) {
  const auto counted = core_ ? core_->dispatcher.counters() : Dispatcher::Counters();
  core_ = std::make_unique<Core>(*this);
  core_->dispatcher.count_on(counted);
  behind_since_ = {};
  overloaded_ = false;
  core_->admission.load();
  core_->publisher.start(now, effects_);
  core_->discovery.start(now);
  core_->commands.start(now);
  roll_call();
}

void Coordinator::recover(const Error& error, TimePoint now) {
  ++status_.store_failures;
  status_.store_failed = now;
  log_->error("the store failed, everything since the last commit is taken back: {}", error.message);
  store_.rollback();
  effects_ = {};
  refusal_ = error_answer(errc_name(Errc::kStoreUnavailable),
                          "the store failed, and nothing was done: " + error.message + "; try again", "store");
  refuse();  // what came together with the message that failed
  recover_pause_ = std::clamp(recover_pause_ * 2, Millis(200), kMaxRecoverPause);
  recover_at_ = now + recover_pause_;
}

void Coordinator::refuse() {
  for (const auto& message : std::exchange(inbox_, {})) {
    const auto route = routes_.find(message.subscription);
    const bool asks = route != routes_.end() && route->second == &Coordinator::on_api && !message.reply.empty() &&
                      !takes_no_answer(message.reply, config_.prefix);
    if (asks && std::ranges::find(asked_, message.reply) == asked_.end()) asked_.emplace_back(message.reply);
  }
  for (const auto& reply : std::exchange(asked_, {})) effects_.at_once.push_back({reply, {}, refusal_, {}});
  publish(effects_.at_once);
}

void Coordinator::refuse_all(TimePoint now) {
  auto count = kReceiveAtOnce;
  for (int i = 0; i < kReceivesPerTurn && count == kReceiveAtOnce; ++i) {
    count = bus_.receive(inbox_, kReceiveAtOnce);
    std::erase_if(inbox_, [&](const Message& message) { return is_misdirected(message, now); });
    for (const auto& message : inbox_) service_.handle(message, now, random_);
    refuse();
  }
  if (now >= service_.next_due()) service_.tick(bus_, requests_, now);
}

void Coordinator::roll_call() {
  last_rollcall_ = clock_.now();
  effects_.at_once.push_back({subjects_.rollcall(), {}, encode(RollCall{store_.fleet(), status_.id}), {}});
}

void Coordinator::watch_connection(TimePoint now) {
  const auto connections = bus_.link().connections;
  const bool reconnected = connections != connections_;
  const bool stalled = now - last_turn_ > kStall;
  last_turn_ = now;
  if (!reconnected && !stalled) return;
  grace(now);
  if (!reconnected) return;
  connections_ = connections;
  core_->publisher.reconnect(now);
  roll_call();
}

void Coordinator::grace(TimePoint now) {
  core_->registry.grace(now);
  core_->dispatcher.grace(now);
}

Dispatcher::Lateness Coordinator::lateness(bool drained, TimePoint now) {
  using enum Dispatcher::Lateness;
  if (drained) {
    if (overloaded_) {
      log_->info("has caught up with what comes in: everybody has a fresh period of grace");
      grace(now);
    }
    overloaded_ = false;
    behind_since_ = {};
    return bus_.link().connected ? kJudge : kDeadlines;  // nobody is heard without a connection
  }
  if (behind_since_ == TimePoint{}) behind_since_ = now;
  if (now - behind_since_ <= kLostAfter) return kSkip;
  if (!overloaded_) ++status_.overloads;
  overloaded_ = true;
  if (now - last_said_behind_ >= kSayBehindEvery) {
    last_said_behind_ = now;
    log_->warn("more comes in than can be handled, for {} s by now: nobody is judged late",
               std::chrono::duration_cast<std::chrono::seconds>(now - behind_since_).count());
  }
  return kDeadlines;
}

void Coordinator::turn() {
  const auto now = clock_.now();
  try {
    if (recover_at_ != TimePoint::max()) {
      if (now < recover_at_) return refuse_all(now);
      recover_at_ = TimePoint::max();
      build_core(now);
    }
    watch_connection(now);
    const bool drained = drain_inbox(now);
    decide(now, lateness(drained, now));
    commit_and_publish(now);
    asked_.clear();
    if (drained && core_->api.may_read_ahead()) {
      bus_.send();
      core_->api.read_ahead();
    }
    if (now >= service_.next_due()) {
      requests_.data = {{"pools", to_json(core_->dispatcher.loads(now))}};
      service_.tick(bus_, requests_, now);
    }
    if (store_.uncommitted() == 0) recover_pause_ = Millis(0);
  } catch (const StoreFailure& failure) {
    recover(failure.error(), now);
  }
}

bool Coordinator::drain_inbox(TimePoint now) {
  for (int i = 0; i < kReceivesPerTurn; ++i) {
    bus_.receive(inbox_, kReceiveAtOnce - inbox_.size());
    const bool all = inbox_.size() < kReceiveAtOnce;
    if (!handle_inbox(now)) return false;
    if (all) {
      if (bus_.drained()) return true;
      if (!bus_.read()) return false;
    }
    if (store_.uncommitted() >= kMaxUncommitted || clock_.now() - now >= kMaxDrain) return false;
  }
  return false;
}

bool Coordinator::handle_inbox(TimePoint now) {
  auto next = inbox_.begin();
  for (bool in_time = true; next != inbox_.end() && in_time; in_time = clock_.now() - now < kMaxDrain) {
    const auto& message = *next++;
    if (is_misdirected(message, now)) continue;
    const auto route = routes_.find(message.subscription);
    if (route != routes_.end()) {
      (this->*route->second)(message, now);
    } else {
      service_.handle(message, now, random_);
    }
  }
  inbox_.erase(inbox_.begin(), next);
  return inbox_.empty();
}

void Coordinator::decide(TimePoint now, Dispatcher::Lateness lateness) {
  using enum Dispatcher::Lateness;
  if (now >= next_expiry_ && lateness != kSkip) {
    next_expiry_ = now + kExpiryEvery;
    const auto gone = lateness == kJudge ? core_->registry.expire(now) : std::vector<Registry::Departure>();
    for (const auto& departure : gone) report_departure(departure, now);
    core_->admission.expire(now);
    late_parts_.expire(now);
  }
  // What ended makes room for what comes next, and that goes out with the same write.
  auto outcomes = core_->dispatcher.take_outcomes();
  ask_ahead(outcomes, now);
  report_notices();  // of jobs, before what follows from them
  for (auto& outcome : outcomes) {
    core_->commands.owns(outcome.owner) ? core_->commands.take(std::move(outcome), now)
                                        : core_->discovery.take(std::move(outcome));
  }
  core_->commands.tick(now, effects_);
  core_->discovery.tick(now, effects_);
  const auto& runs = core_->discovery.active();
  const auto position = core_->writes.position();
  core_->writes.forget(runs.empty() || MUSTER_MUTATION("forget-writes") ? position : runs.front().run->begun_at());
  core_->dispatcher.tick(now, lateness, effects_);
  report_notices();
  look_at_pools(now);
  prune_events(now);
}

/// Storing pages takes as long as making them: those that come next are under way before it begins.
void Coordinator::ask_ahead(const std::vector<JobOutcome>& outcomes, TimePoint now) {
  bool asks = false;
  for (const auto& outcome : outcomes) asks = core_->discovery.look_ahead(outcome, now) || asks;
  if (!asks) return;
  core_->dispatcher.tick(now, Dispatcher::Lateness::kSkip, effects_);
  publish(effects_.at_once);
  bus_.send();
}

void Coordinator::look_at_pools(TimePoint now) {
  if (now < next_look_ || (core_->dispatcher.waiting() == 0 && !core_->pools.any_saturated())) return;
  next_look_ = now + kLookEvery;
  for (const auto& [load, saturated] : core_->pools.look(core_->dispatcher.loads(now), now)) {
    auto data = to_json(load);
    data["state"] = saturated ? "saturated" : "relieved";
    core_->events.emit(load.lane.ns, "worker.load", load.lane.pool, data.dump());
  }
}

void Coordinator::prune_events(TimePoint now) {
  if (now < next_prune_) return;
  const auto& limits = config_.limits;
  const auto gone = must(store_.prune_events(clock_.wall() - limits.event_age, limits.event_bytes, kPruneAtOnce));
  next_prune_ = gone == kPruneAtOnce ? now : now + kPruneEvery;
}

void Coordinator::commit_and_publish(TimePoint now) {
  publish(effects_.at_once);
  if (MUSTER_MUTATION("publish-before-commit")) publish(effects_.after_commit);
  if (store_.uncommitted() > 0) {
    if (dirty_since_ == TimePoint{}) dirty_since_ = now;
    const bool due = !effects_.after_commit.empty() || store_.uncommitted() >= kMaxUncommitted ||
                     now - dirty_since_ >= kMaxDirty || publication_due() <= now || core_->discovery.active().empty() ||
                     !core_->commands.idle();
    if (!due) return;
    core_->publisher.note_published();
    must(store_.commit());
    dirty_since_ = {};
  }
  publish(effects_.after_commit);
  const auto link = bus_.link();
  if (!link.connected) return;  // events wait: what is published now is lost
  core_->publisher.pump(now, effects_, link.max_payload);
  publish(effects_.at_once);
}

void Coordinator::publish(std::vector<Outgoing>& messages) {
  for (const auto& message : messages) {
    const auto sent = bus_.publish(message);
    if (sent || sent.error().code == Errc::kDisconnected) continue;  // leases and windows send again what is lost
    log_->error("cannot publish on {}: {}", message.subject, sent.error().message);
    if (sent.error().code != Errc::kTooLarge || !core_) continue;
    const Token token(std::string(subject_token(message.reply, subjects_.prefix(), 3)));
    core_->dispatcher.on_unsendable(token, sent.error(), clock_.now());
  }
  messages.clear();
}

void Coordinator::report_departure(const Registry::Departure& departure, TimePoint now) {
  const bool left = departure.change == Registry::Change::kLeft;
  log_->info("worker={} {} namespace={} pool={}", departure.worker.value, left ? "left" : "lost", departure.lane.ns,
             departure.lane.pool);
  core_->dispatcher.on_worker_lost(departure.lane.ns, departure.worker, now, effects_);
  core_->worker_events.emit(departure.lane.ns, left ? "worker.left" : "worker.lost", departure.worker.value,
                            JsonObject().text("worker", departure.worker.value).text("pool", departure.lane.pool), now);
}

void Coordinator::report_notices() {
  for (const auto& n : core_->dispatcher.take_notices()) {
    const std::string_view what = n.kind == JobNotice::Kind::kRetried  ? "job.retried"
                                  : n.kind == JobNotice::Kind::kFailed ? "job.failed"
                                                                       : "job.rejected";
    log_->info("job={} worker={} attempt={} {} operation={} type={} target={} code={} {}", n.job.value, n.worker.value,
               n.attempt, what, n.operation, n.type, n.target, errc_name(n.error.code), n.error.message);
    core_->events.emit(n.ns, what, n.job.value,
                       JsonObject()
                           .text("job", n.job.value)
                           .text("operation", n.operation)
                           .text("target", n.target)
                           .text("type", n.type)
                           .text("worker", n.worker.value)
                           .number("attempt", n.attempt)
                           .text("code", errc_name(n.error.code))
                           .text("message", n.error.message)
                           .take());
  }
}

template <typename T>
Result<T> Coordinator::decoded(const Message& message, TimePoint now) {
  auto value = decode<T>(message.data);
  if (!value) complain(message, value.error().message, now);
  return value;
}

bool Coordinator::is_misdirected(const Message& message, TimePoint now) {
  if (!takes_no_answer(message.reply, config_.prefix)) return false;
  complain(message, "it wants its answer on " + std::string(message.reply), now);
  return true;
}

bool Coordinator::is_on_subject_of(std::string_view ns, const Message& message, TimePoint now) {
  if (subject_token(message.subject, subjects_.prefix(), 1) == ns) return true;
  complain(message, "it speaks for namespace '" + std::string(ns) + "'", now);
  return false;
}

void Coordinator::leave_others(std::vector<Running>& jobs, const Message& message, TimePoint now) {
  std::erase_if(jobs, [&](const Running& running) {
    const auto* lane = core_->dispatcher.lane_of(running.job);
    return lane != nullptr && !is_on_subject_of(lane->ns, message, now);
  });
}

void Coordinator::complain(const Message& message, const std::string& what, TimePoint now) {
  ++status_.malformed;
  if (now - last_complaint_ < kOncePer) return;
  last_complaint_ = now;
  log_->warn("malformed message on {} ({} bytes): {}; {} so far", message.subject, message.data.size(), what,
             status_.malformed);
}

void Coordinator::on_reply(const Message& message, TimePoint now) {
  const Token token(std::string(subject_token(message.subject, subjects_.prefix(), 3)));
  const auto* lane = core_->dispatcher.lane_of(token);
  if (lane != nullptr && !is_on_subject_of(lane->ns, message, now)) return;
  if (message.no_responders) {
    core_->dispatcher.on_no_responders(token, now, effects_);
    return;
  }
  if (const auto stream = acknowledging_stream(message.data)) {  // not the worker, who answers beside it
    complain(message, "stream " + *stream + " takes in the fleet's own messages and answers them: leave it only events",
             now);
    return;
  }
  auto reply = decoded<JobReply>(message, now);
  if (!reply) {
    core_->dispatcher.on_undecodable(token, reply.error(), now);
  } else if (const auto asked = core_->admission.asked_namespace(reply->token)) {
    if (is_on_subject_of(*asked, message, now)) core_->admission.on_reply(*reply, now, effects_);
  } else {
    take_reply(std::move(*reply), message, now);
  }
}

void Coordinator::take_reply(JobReply reply, const Message& message, TimePoint now) {
  const auto lane = core_->dispatcher.lane_of(reply.job);
  if (lane && !is_on_subject_of(lane->ns, message, now)) return;
  const auto ns = subject_token(message.subject, subjects_.prefix(), 1);
  std::string ack_to(message.reply);
  const bool ends = std::holds_alternative<JobResult>(reply.body) || std::holds_alternative<Part>(reply.body);
  ResultAck ack{reply.job, reply.token, Verdict::kCommitted, {}};
  const auto leased = [&] { return core_->dispatcher.leases(ack.job, ack.token); };
  const bool waited_for = reply.fleet == store_.fleet() && leased();
  const bool part = std::holds_alternative<Part>(reply.body);  // only the last one says where it wants its answer
  if (ends && !waited_for && (part || !ack_to.empty())) {
    ack.verdict = late_result(std::move(reply), ns, ack_to, now);
    if (ack.verdict == Verdict::kRefused) ack.reason = "no such job in this fleet";
  } else {
    core_->dispatcher.on_reply(ns, std::move(reply), now, effects_);
    if (part && leased() && !MUSTER_MUTATION("ack-of-part"))
      ack.verdict = Verdict::kLater;  // the others are still to come
  }
  // A result is known to be taken when it is durable.
  if (!ends || ack_to.empty()) return;
  auto& when = MUSTER_MUTATION("ack-before-commit") ? effects_.at_once : effects_.after_commit;
  when.push_back({std::move(ack_to), {}, encode(ack), {}});
}

Verdict Coordinator::late_result(JobReply reply, std::string_view ns, std::string& ack_to, TimePoint now) {
  if (reply.fleet != store_.fleet()) return Verdict::kRefused;
  if (auto* part = std::get_if<Part>(&reply.body)) {
    auto ended = late_parts_.add(ns, reply.token, std::move(*part), ack_to, now);
    if (!ended) return Verdict::kLater;
    ack_to = std::move(ended->ack_to);
    auto decoded = decode<JobReply>(ended->whole);
    if (!decoded) return Verdict::kLater;
    reply = std::move(*decoded);
  }
  return core_->commands.evidence(reply, ns, now, effects_);
}

void Coordinator::on_result(const Message& message, TimePoint now) {
  auto reply = decoded<JobReply>(message, now);
  if (reply) take_reply(std::move(*reply), message, now);
}

void Coordinator::on_announcement(const Message& message, TimePoint now) {
  auto announcement = decoded<Announcement>(message, now);
  if (!announcement || !is_on_subject_of(announcement->ns, message, now)) return;
  if (core_->admission.on_announcement(*announcement, std::string(message.reply), now, effects_)) {
    leave_others(announcement->running, message, now);
    core_->dispatcher.on_announcement(announcement->worker, announcement->running, now);
    core_->dispatcher.on_lane_changed({announcement->ns, announcement->pool});
  }
}

void Coordinator::on_heartbeat(const Message& message, TimePoint now) {
  auto heartbeat = decoded<Heartbeat>(message, now);
  if (!heartbeat || !is_on_subject_of(heartbeat->ns, message, now)) return;
  const auto* worker = core_->registry.find(heartbeat->ns, heartbeat->worker);
  if (worker == nullptr) {
    ++status_.unknown_workers;
    if (now - last_rollcall_ >= kOncePer) roll_call();
    return;
  }
  if (worker->announcement.pool != heartbeat->pool) {
    return complain(message, "worker " + heartbeat->worker.value + " is of another pool", now);
  }
  leave_others(heartbeat->running, message, now);
  const auto change = core_->registry.heartbeat(*heartbeat, now);
  core_->dispatcher.on_heartbeat(*heartbeat, now, effects_);
  core_->dispatcher.on_lane_changed(worker->lane());
  if (change == Registry::Change::kDraining || change == Registry::Change::kReturned) {
    const bool draining = change == Registry::Change::kDraining;
    core_->worker_events.emit(
        heartbeat->ns, draining ? "worker.draining" : "worker.joined", heartbeat->worker.value,
        JsonObject().text("worker", heartbeat->worker.value).text("pool", worker->announcement.pool), now);
  }
}

void Coordinator::on_api(const Message& message, TimePoint) {
  if (message.reply.empty()) return;
  asked_.emplace_back(message.reply);
  const auto begun = clock_.now();
  status_.bus = bus_.status();
  auto answer = core_->api.answer(message.subject.substr(subjects_.api("").size()), message.data, effects_);
  requests_.processing += clock_.now() - begun;
  ++requests_.requests;
  if (answer.size() > bus_.link().max_payload) {
    answer =
        error_answer("TOO_LARGE", "the answer is larger than the bus takes: raise max_payload of nats-server", "api");
  }
  if (answer.starts_with(R"({"error":)")) {
    ++requests_.errors;
    requests_.last_error = nlohmann::json::parse(answer)["error"]["message"];
  }
  // What an answer promises or shows is durable before it is given, whoever has written it.
  const bool early = MUSTER_MUTATION("answer-before-commit");
  auto& when = store_.uncommitted() == 0 || early ? effects_.at_once : effects_.after_commit;
  when.push_back({std::string(message.reply), {}, std::move(answer), {}});
}

void Coordinator::on_inbox(const Message& message, TimePoint now) {
  core_->publisher.on_reply(message.subject.substr(bus_.inbox().size() + 1), message, now);
}

TimePoint Coordinator::next_due() const {
  if (recover_at_ != TimePoint::max()) return std::min(recover_at_, service_.next_due());
  if (!inbox_.empty()) return last_turn_;
  auto due = std::min({core_->dispatcher.next_due(), core_->discovery.next_due(), core_->commands.next_due(),
                       publication_due(), service_.next_due()});
  if (!core_->registry.workers().empty() || !late_parts_.empty()) due = std::min(due, next_expiry_);
  if (core_->pools.any_saturated()) due = std::min(due, next_look_);
  if (store_.uncommitted() > 0) due = std::min(due, dirty_since_ + kMaxDirty);
  return due;
}

TimePoint Coordinator::publication_due() const {
  return bus_.link().connected ? core_->publisher.next_due() : TimePoint::max();
}

bool Coordinator::idle() const {
  return recover_at_ == TimePoint::max() && core_->discovery.active().empty() && !core_->discovery.any_queued() &&
         core_->commands.idle() && !core_->commands.wants_a_look();
}

void Coordinator::stop() {
  if (recover_at_ != TimePoint::max()) return;  // nothing is open
  try {
    if (store_.uncommitted() > 0) must(store_.commit());
    if (bus_.link().connected) core_->publisher.pump(clock_.now(), effects_, bus_.link().max_payload);
    publish(effects_.at_once);
    core_->publisher.note_published();
    if (store_.uncommitted() > 0) must(store_.commit());
  } catch (const StoreFailure& failure) {
    log_->error("the last writes are lost: {}", failure.what());
    store_.rollback();
  }
}

}  // namespace muster
