#include "worker_sdk/bus/nats_bus.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "worker_sdk/bus/connect_attempt.h"
#include "worker_sdk/bus/mailbox.h"
#include "worker_sdk/bus/nats_handles.h"
#include "worker_sdk/bus/nats_link.h"
#include "worker_sdk/bus/nats_subscription.h"
#include "worker_sdk/bus/nats_url.h"
#include "worker_sdk/bus/subject_rules.h"

namespace muster {
namespace {

using std::chrono::steady_clock;

// Published and not yet taken by the socket: above the first, publish() writes by itself; above the second it refuses.
constexpr int kWriteEarlyBytes = 1 << 20;
constexpr int kMaxUnsentBytes = 64 << 20;

// Arrived and not received yet, over all subscriptions: above, the socket waits, so that the server holds the senders
// back, and a loop that takes small portions loses nothing.
constexpr std::size_t kReadAheadMessages = 16384;
constexpr std::size_t kReadAheadBytes = 64 << 20;

constexpr std::size_t kFairShare = 64;           // messages of one subscription before the next one's turn
constexpr std::chrono::seconds kSilence{15};     // pings go out every 5 s: a peer that answers none of three is gone
constexpr Millis kRecordTick{1};                 // until the rest of a TLS record is looked for
constexpr std::chrono::seconds kReportEvery{1};  // of errors that come by themselves
constexpr std::chrono::seconds kStall{1};        // a loop that was away for longer has not listened itself
constexpr std::chrono::seconds kDestructorGrace{1};
constexpr Millis kFreed{1};  // how often it is looked whether the library has let go

constexpr std::chrono::seconds kLasting{1};  // a connection that lives so long is no failure

constexpr std::size_t kMaxServers = 32;  // configured or learned

constexpr Millis kMostPatience{10'000};  // with one try to connect
constexpr int kAuthTries = 4;            // the library drops one NKey signature in 256
constexpr std::int64_t kLibraryCloseMillis = 5000;

struct Subscription {
  std::string subject;
  std::string queue{};
  bool answers = false;
  std::shared_ptr<Mailbox> mailbox{};
  std::optional<NatsSubscription> native{};  // none while there is no connection
};

natsStatus publish_with_headers(natsConnection* connection, const Outgoing& message) {
  natsMsg* raw = nullptr;
  natsStatus status =
      natsMsg_Create(&raw, message.subject.c_str(), message.reply.empty() ? nullptr : message.reply.c_str(),
                     message.data.data(), static_cast<int>(message.data.size()));
  const MsgPtr msg(raw);
  for (const Header& header : message.headers) {
    if (status == NATS_OK && !header.value.empty())
      status = natsMsgHeader_Add(msg.get(), header.name.c_str(), header.value.c_str());
  }
  return status == NATS_OK ? natsConnection_PublishMsg(connection, msg.get()) : status;
}

natsStatus publish_message(natsConnection* connection, const Outgoing& message) {
  if (!message.headers.empty()) return publish_with_headers(connection, message);
  const auto size = static_cast<int>(message.data.size());
  if (message.reply.empty()) {
    return natsConnection_Publish(connection, message.subject.c_str(), message.data.data(), size);
  }
  return natsConnection_PublishRequest(connection, message.subject.c_str(), message.reply.c_str(), message.data.data(),
                                       size);
}

timespec poll_timeout(TimePoint until) {
  using std::chrono::nanoseconds, std::chrono::seconds;
  const auto now = steady_clock::now();
  const auto left = until <= now ? nanoseconds{0} : std::min<nanoseconds>(until - now, seconds{60});
  const auto whole = std::chrono::floor<seconds>(left);
  return {whole.count(), (left - whole).count()};
}

}  // namespace

/// A flush must get to its answer, however much is waiting to be received.
enum class Reading : std::uint8_t { kBounded, kAll };

struct NatsBus::State {
  State(NatsOptions with, std::shared_ptr<spdlog::logger> logger)
      : options(std::move(with)), log(std::move(logger)), servers(split_servers(options.url)) {
    SystemRandom source;
    inbox = options.inbox + '.' + make_token(source);
  }

  [[nodiscard]] bool connected() const { return link && !link->lost(); }
  void adopt(std::unique_ptr<NatsLink> opened);
  void learn_servers();
  void drop_link();
  void maintain(TimePoint now);
  void retry_later(TimePoint now);
  void turn(TimePoint until, Reading reading);
  [[nodiscard]] bool may_read(Reading reading) const;
  bool read_socket();
  [[nodiscard]] NatsSubscription::Backlog backlog() const;
  Result<SubscriptionId> subscribe(Subscription made);
  void make_native(Subscription& subscription);
  void drop_native(Subscription& subscription);
  void check_silence(TimePoint now);
  void report_errors(TimePoint now);

  NatsOptions options;
  std::shared_ptr<spdlog::logger> log;
  std::vector<std::string> servers;  // configured
  std::vector<std::string> learned;  // that the cluster told of
  std::shared_ptr<LinkContext> context = std::make_shared<LinkContext>();
  std::string inbox;
  std::unique_ptr<NatsLink> link;
  std::unique_ptr<ConnectAttempt> attempt;
  int failures = 0;  // attempts in a row that led to no connection, or to none that lasted
  TimePoint opened_at{};
  TimePoint next_attempt{};
  TimePoint heard{};  // last time that the server sent something, or the loop had not listened
  TimePoint last_turn{};
  std::map<SubscriptionId, Subscription> subscriptions;
  SubscriptionId last_id = 0;
  SubscriptionId last_served = 0;
  bool closed = false;
  std::size_t max_payload = BusLink{}.max_payload;
  std::uint64_t connections = 0;
  std::uint64_t library_drops = 0;  // of subscriptions that are gone
  std::string connect_error;
  RepeatedReason refusal;  // of this outage
  std::uint64_t errors_reported = 0;
  TimePoint next_report{};
};

void NatsBus::State::adopt(std::unique_ptr<NatsLink> opened) {
  link = std::move(opened);
  opened_at = heard = last_turn = steady_clock::now();
  max_payload = link->max_payload();
  connect_error.clear();
  refusal = {};
  ++connections;
  for (auto& [id, subscription] : subscriptions) make_native(subscription);
  log->info("bus connected url={} connections={}", redact_url(options.url), connections);
}

/// Of the connection that was lost: a cluster tells all the while who has joined and left it. It tells only of servers
/// that the connection did not begin with, so those of before stay.
void NatsBus::State::learn_servers() {
  for (const std::string& found : link->discovered_servers()) {
    auto server = with_credentials_of(servers.front(), found);
    if (servers.size() + learned.size() < kMaxServers && std::ranges::find(servers, server) == servers.end() &&
        std::ranges::find(learned, server) == learned.end()) {
      learned.push_back(std::move(server));
    }
  }
}

/// A missing permission would go unnoticed otherwise: the server drops what is not allowed.
void NatsBus::State::report_errors(TimePoint now) {
  const auto count = context->errors.count();
  if (count == errors_reported || now < next_report) return;
  log->warn("bus error={} errors={}", context->errors.last(), count);
  errors_reported = count;
  next_report = now + kReportEvery;
}

void NatsBus::State::make_native(Subscription& subscription) {
  NatsSubscription& native = subscription.native.emplace();
  const natsStatus status =
      subscription.answers ? native.open_for_answers(link->get(), subscription.subject, subscription.mailbox)
                           : native.open(link->get(), subscription.subject, subscription.queue, subscription.mailbox);
  if (status != NATS_OK) link->break_off();  // none may be missing: the next connection makes it
}

void NatsBus::State::drop_native(Subscription& subscription) {
  if (!subscription.native) return;
  library_drops += subscription.native->dropped();
  subscription.native.reset();
}

void NatsBus::State::drop_link() {
  for (auto& [id, subscription] : subscriptions) drop_native(subscription);
  link.reset();
}

void NatsBus::State::retry_later(TimePoint now) {
  SystemRandom random;
  const auto doubled = options.reconnect_wait * (1LL << std::min(failures, 20));
  const auto most = std::clamp(Millis(doubled), Millis(1), std::max(options.reconnect_wait_max, Millis(1)));
  next_attempt = now + most / 2 + Millis(random.below(static_cast<std::uint64_t>(most.count() / 2 + 1)));
  ++failures;
}

/// Replaces a lost connection; the calls that could block run in the attempt's thread.
void NatsBus::State::maintain(TimePoint now) {
  if (closed) return;
  if (link && link->lost()) {
    auto reason = link->last_error();
    // The last that was said may be old: a missing permission ends no connection, and was told when it came.
    if (reason.starts_with("Permissions Violation")) reason = "the server ended it";
    log->warn("bus disconnected url={} reason={}", redact_url(options.url), reason);
    if (now - opened_at >= kLasting) failures = 0;  // one that takes all in to throw them out is not asked at once
    learn_servers();
    drop_link();
    retry_later(now);
  }
  if (!link && !attempt && now >= next_attempt) {
    attempt = std::make_unique<ConnectAttempt>(with_patience(options, failures), servers, learned, context);
  }
  if (!attempt) return;
  auto outcome = attempt->outcome(now);
  if (!outcome) return;
  attempt.reset();
  if (*outcome) return adopt(std::move(**outcome));
  connect_error = outcome->error().message;
  if (refusal.is_news(connect_error)) {
    log->warn("bus not connected, trying again url={} error={}", redact_url(options.url), connect_error);
  }
  retry_later(now);
}

/// Writes, sleeps in poll() until `until` at most, and reads once.
void NatsBus::State::turn(TimePoint until, Reading reading) {
  const bool reads = may_read(reading);
  if (!reads || steady_clock::now() - last_turn > kStall) heard = steady_clock::now();
  if (connected() && link->wants_write()) link->write();
  if (link && link->lost()) return;  // nothing would end the sleep
  context->waker.set_asleep(true);
  // Only now, when the library's threads know to wake the loop, is it settled what to wait for.
  if (reading == Reading::kBounded && context->arrivals.pending > 0) until = {};
  const bool open = connected();
  const bool ticks = open && link->awaits_record();
  if (ticks) until = std::min(until, steady_clock::now() + kRecordTick);
  const int events = (reads && !ticks ? POLLIN : 0) | (open && link->wants_write() ? POLLOUT : 0);
  std::array<pollfd, 2> fds{
      {{context->waker.fd(), POLLIN, 0}, {open ? link->socket() : -1, static_cast<short>(events), 0}}};
  const timespec timeout = poll_timeout(until);
  const int ready = ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
  context->waker.set_asleep(false);
  if (ready > 0) {
    if (fds[0].revents != 0) context->waker.clear();
    if ((fds[1].revents & POLLOUT) != 0) link->write();
  }
  if (connected() && (ticks || (fds[1].revents & ~POLLOUT) != 0)) read_socket();
  last_turn = steady_clock::now();
  check_silence(last_turn);
  report_errors(last_turn);
}

/// What the library holds, of all subscriptions.
NatsSubscription::Backlog NatsBus::State::backlog() const {
  NatsSubscription::Backlog all;
  for (const auto& [id, subscription] : subscriptions) {
    if (!subscription.native) continue;
    const NatsSubscription::Backlog more = subscription.native->backlog();
    all.messages += more.messages;
    all.bytes += more.bytes;
  }
  return all;
}

bool NatsBus::State::may_read(Reading reading) const {
  NatsSubscription::Backlog unread = backlog();
  if (reading == Reading::kBounded) {
    unread.messages += context->arrivals.pending;
    unread.bytes += context->arrivals.bytes;
  }
  return unread.messages < kReadAheadMessages && unread.bytes < kReadAheadBytes;
}

/// The library's delivery thread wakes with the first answer. It waits at the mailboxes until all that there is has
/// been read: else the two would take turns, message for message. False when nothing whole was there.
bool NatsBus::State::read_socket() {
  bool took = false;
  {
    const std::lock_guard held(context->arrivals.mutex);
    took = link->read();
  }
  if (took) heard = steady_clock::now();
  for (auto& [id, subscription] : subscriptions) {
    if (subscription.native) subscription.native->collect();
  }
  return took;
}

void NatsBus::State::check_silence(TimePoint now) {
  if (connected() && now - heard > kSilence) {
    log->warn("bus server silent seconds={}", kSilence.count());
    link->break_off();
    heard = now;
  }
}

Result<SubscriptionId> NatsBus::State::subscribe(Subscription made) {
  if (auto valid = check_subscription(made.subject, made.queue); !valid) return valid.error();
  if (closed) return Error{Errc::kDisconnected, "the bus is closed"};
  const SubscriptionId id = ++last_id;
  made.mailbox = std::make_shared<Mailbox>(id, std::shared_ptr<Arrivals>(context, &context->arrivals));
  Subscription& subscription = subscriptions.emplace(id, std::move(made)).first->second;
  if (connected()) make_native(subscription);
  return id;
}

bool RepeatedReason::is_news(const std::string& reason) {
  constexpr std::chrono::seconds kEvery{30};
  const auto now = steady_clock::now();
  if (reason == said_ && now < next_) return false;
  said_ = reason;
  next_ = now + kEvery;
  return true;
}

NatsOptions with_patience(NatsOptions options, int failures) {
  const Millis longer(options.connect_timeout.count() << std::clamp(failures, 0, 10));
  options.connect_timeout = std::max(options.connect_timeout, std::min(longer, kMostPatience));
  return options;
}

NatsBus::NatsBus(std::unique_ptr<State> state) : state_(std::move(state)) {}

NatsBus::~NatsBus() {
  close(kDestructorGrace);
}

Result<std::unique_ptr<NatsBus>> NatsBus::connect(NatsOptions options, std::shared_ptr<spdlog::logger> log) {
  auto state = std::make_unique<State>(std::move(options), std::move(log));
  if (state->servers.empty()) return Error{Errc::kInvalidRequest, "no NATS URL"};
  const bool signs = !state->options.creds.empty() || !state->options.nkey_seed.empty();
  for (int tries = signs ? kAuthTries : 1;;) {
    ConnectAttempt attempt(state->options, state->servers, {}, state->context);
    auto outcome = attempt.outcome(attempt.deadline());
    if (outcome && *outcome) {
      state->adopt(std::move(**outcome));
      return std::unique_ptr<NatsBus>(new NatsBus(std::move(state)));
    }
    Error error = outcome ? outcome->error() : Error{Errc::kDisconnected, "timeout"};
    if (error.code == Errc::kAccessDenied && --tries > 0) continue;
    error.message = redact_url(state->options.url) + ": " + error.message;
    return error;
  }
}

Result<SubscriptionId> NatsBus::subscribe(std::string_view subject, std::string_view queue) {
  return state_->subscribe({.subject = std::string(subject), .queue = std::string(queue)});
}

Result<SubscriptionId> NatsBus::subscribe_answers(std::string_view subject) {
  return state_->subscribe({.subject = std::string(subject), .answers = true});
}

void NatsBus::unsubscribe(SubscriptionId id) {
  const auto found = state_->subscriptions.find(id);
  if (found == state_->subscriptions.end()) return;
  found->second.mailbox->close();
  if (found->second.native) found->second.native->unsubscribe();
  state_->drop_native(found->second);
  state_->subscriptions.erase(found);
}

Result<void> NatsBus::publish(const Outgoing& message) {
  if (auto valid = check_outgoing(message, state_->max_payload); !valid) return valid;
  if (!state_->connected()) return Error{Errc::kDisconnected, "not connected"};
  natsConnection* connection = state_->link->get();
  if (natsConnection_Buffered(connection) > kWriteEarlyBytes) {
    state_->link->write();
    if (natsConnection_Buffered(connection) > kMaxUnsentBytes) {
      return Error{Errc::kDisconnected, "the server does not read what is published"};
    }
    if (!state_->connected()) return Error{Errc::kDisconnected, "not connected"};
  }
  switch (const natsStatus status = publish_message(connection, message); status) {
    case NATS_OK:
      return {};
    case NATS_MAX_PAYLOAD:
      return Error{Errc::kTooLarge, message.subject + ": larger than the bus takes"};
    default:
      return Error{Errc::kDisconnected, natsStatus_GetText(status)};
  }
}

void NatsBus::send() {
  if (state_->connected() && state_->link->wants_write()) state_->link->write();
}

std::size_t NatsBus::receive(std::vector<Message>& out, std::size_t limit) {
  const std::size_t end = out.size() + std::min(limit, state_->context->arrivals.pending.load());
  const std::size_t before = out.size();
  auto& subscriptions = state_->subscriptions;
  while (out.size() < end) {
    auto turn = subscriptions.upper_bound(state_->last_served);
    if (turn == subscriptions.end()) turn = subscriptions.begin();
    state_->last_served = turn->first;
    turn->second.mailbox->take(std::min(kFairShare, end - out.size()), out);
  }
  return out.size() - before;
}

bool NatsBus::read() {
  const bool reads = state_->connected() && state_->link->readable() && state_->may_read(Reading::kBounded);
  return reads && state_->read_socket();
}

/// Along the way of a message: one that moves on meanwhile is seen, if not here, then there.
bool NatsBus::drained() const {
  const bool nothing_comes = !state_->connected() || !state_->link->readable();
  return nothing_comes && state_->backlog().messages == 0 && state_->context->arrivals.pending == 0;
}

BusLink NatsBus::link() const {
  return {state_->connected(), state_->closed, state_->connections, state_->max_payload};
}

BusStatus NatsBus::status() const {
  BusStatus status;
  static_cast<BusLink&>(status) = link();
  status.slow_consumer_drops = state_->context->arrivals.dropped + state_->library_drops;
  for (const auto& [id, subscription] : state_->subscriptions) {
    if (subscription.native) status.slow_consumer_drops += subscription.native->dropped();
  }
  status.errors = state_->context->errors.count();
  status.last_error = status.connected ? state_->context->errors.last() : state_->connect_error;
  return status;
}

const std::string& NatsBus::inbox() const {
  return state_->inbox;
}

void NatsBus::wait(TimePoint until) {
  const TimePoint now = steady_clock::now();
  const auto connections = state_->connections;
  state_->maintain(now);
  if (state_->connections != connections) return;  // what there is to do changes with it
  if (state_->attempt) {
    until = std::min(until, state_->attempt->deadline());
  } else if (!state_->link && !state_->closed) {
    until = std::min(until, state_->next_attempt);
  } else if (state_->link) {
    until = std::min(until, state_->heard + kSilence);
  }
  state_->turn(until, Reading::kBounded);
}

void NatsBus::wake() noexcept {
  state_->context->waker.wake();
}

Result<void> NatsBus::flush(Millis timeout) {
  if (!state_->connected()) return Error{Errc::kDisconnected, "not connected"};
  const TimePoint until = steady_clock::now() + timeout;
  std::atomic<bool> answered = false;
  natsStatus status = NATS_OK;
  // The library's flush blocks until this loop has sent its ping and read the answer: a thread waits for it.
  std::thread flusher([&, connection = state_->link->get()] {
    status = natsConnection_FlushTimeout(connection, std::max<std::int64_t>(1, timeout.count()));
    answered = true;
    state_->context->waker.wake();
  });
  while (!answered) state_->turn(until + Millis(10), Reading::kAll);
  flusher.join();
  wake();  // a wake() of somebody else may have been taken for the flusher's
  if (status == NATS_OK) return {};
  if (status == NATS_TIMEOUT) return Error{Errc::kTimeout, "no answer from the server"};
  return Error{Errc::kDisconnected, natsStatus_GetText(status)};
}

void NatsBus::close(Millis timeout) {
  if (state_->closed) return;
  const TimePoint until = steady_clock::now() + timeout;
  for (auto& [id, subscription] : state_->subscriptions) {
    if (subscription.native) subscription.native->unsubscribe();
  }
  if (state_->connected() && !flush(timeout)) state_->link->break_off();
  state_->closed = true;
  state_->attempt.reset();
  if (state_->link) {
    state_->link->close(std::max(Millis{0}, std::chrono::duration_cast<Millis>(until - steady_clock::now())));
  }
  state_->drop_link();
  // The library's threads end in no order: what one of them frees after another has gone is lost.
  for (const auto& [id, subscription] : state_->subscriptions) {
    while (subscription.mailbox.use_count() > 1 && steady_clock::now() < until) std::this_thread::sleep_for(kFreed);
  }
  give_back_messages();
}

void nats_library_close() {
  give_back_messages();
  nats_CloseAndWait(kLibraryCloseMillis);
}

}  // namespace muster
