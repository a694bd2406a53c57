#include "coordinator/service.h"

#include <atomic>
#include <csignal>
#include <thread>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/coordinator.h"
#include "coordinator/sqlite_store.h"
#include "worker_sdk/bus/stream_ack.h"

namespace muster {
namespace {

constexpr Millis kOtherFleetAnswer{500};
constexpr Millis kCloseTimeout{2000};
constexpr Millis kServerAway{10'000};
constexpr Millis kConnectAgain{500};
constexpr std::string_view kSqlite = "sqlite:";

// A signal handler reaches nothing but globals; set before the handlers are installed, cleared after.
std::atomic<NatsBus*> g_bus{nullptr};
std::atomic<bool> g_stop{false};

void on_signal(int) {
  g_stop = true;
  if (auto* bus = g_bus.load()) bus->wake();
}

/// SIGINT and SIGTERM end the process in order for as long as it lives.
class StopSignals {
 public:
  StopSignals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, &before_int_);
    sigaction(SIGTERM, &action, &before_term_);
  }
  ~StopSignals() {
    sigaction(SIGINT, &before_int_, nullptr);
    sigaction(SIGTERM, &before_term_, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
};

/// Has them wake the loop that waits at a bus, too.
class WakeOnStop {
 public:
  explicit WakeOnStop(NatsBus& bus) { g_bus = &bus; }
  ~WakeOnStop() { g_bus = nullptr; }
  WakeOnStop(const WakeOnStop&) = delete;
  WakeOnStop& operator=(const WakeOnStop&) = delete;
};

/// Tries again for kServerAway: a server that is started again, too, may take a while.
Result<std::unique_ptr<NatsBus>> connect(const NatsOptions& options, const Clock& clock,
                                         const std::shared_ptr<spdlog::logger>& log) {
  const auto until = clock.now() + kServerAway;
  RepeatedReason reason;
  for (int failures = 0;; ++failures) {
    auto bus = NatsBus::connect(with_patience(options, failures), log);
    if (bus || bus.error().code != Errc::kDisconnected || clock.now() >= until || g_stop) return bus;
    if (reason.is_news(bus.error().message)) log->warn("cannot reach the bus, trying again: {}", bus.error().message);
    std::this_thread::sleep_for(kConnectAgain);
  }
}

/// The fleet id of a coordinator that already answers on this prefix, empty when nobody does.
std::string fleet_on(NatsBus& bus, const Subjects& subjects, const Clock& clock) {
  const auto answers = bus.inbox() + ".fleet";
  const auto subscription = bus.subscribe_answers(answers);
  if (!subscription || !bus.publish({subjects.api("status"), answers, R"({"api":1})", {}})) return {};
  std::string fleet;
  std::vector<Message> inbox;
  for (const auto until = clock.now() + kOtherFleetAnswer; inbox.empty() && clock.now() < until;) {
    bus.wait(until);
    bus.receive(inbox, 1);
    std::erase_if(inbox, [](const Message& message) { return acknowledging_stream(message.data).has_value(); });
  }
  if (!inbox.empty() && !inbox.front().no_responders) {
    const auto answer = nlohmann::json::parse(inbox.front().data, nullptr, false);
    const auto told = answer.is_object() ? answer.find("fleet") : answer.end();
    if (told != answer.end() && told->is_string()) fleet = told->get<std::string>();
  }
  bus.unsubscribe(*subscription);
  return fleet;
}

}  // namespace

int run_coordinator(const Config& config, const std::shared_ptr<spdlog::logger>& log) {
  const SystemClock clock;
  SystemRandom random;
  if (!config.store.starts_with(kSqlite)) {
    log->error("store {}: only sqlite:PATH is built in", redact_url(config.store));
    return 1;
  }
  auto store = open_sqlite_store(config.store.substr(kSqlite.size()), clock, random);
  if (!store) {
    log->error("cannot open the store: {}", store.error().message);
    return 1;
  }
  const StopSignals signals;
  auto bus = connect(config.nats, clock, log);
  if (!bus && g_stop) return 0;
  if (!bus) {
    log->error("cannot reach the bus: {}", bus.error().message);
    return 1;
  }
  const auto other = fleet_on(**bus, Subjects(config.prefix), clock);
  if (other == (*store)->fleet().value) {  // not with this file, which is locked
    log->error(
        "a coordinator of fleet {} answers on prefix '{}' already, with another copy of this store: stop it first",
        other, config.prefix);
    return 1;
  }
  if (!other.empty()) {
    log->error("fleet {} answers on prefix '{}', this store is fleet {}: give one of them another --prefix", other,
               config.prefix, (*store)->fleet().value);
    return 1;
  }
  {
    const WakeOnStop waking(**bus);
    Coordinator coordinator(config, **store, **bus, clock, random, log);
    if (auto started = coordinator.start(); !started) {
      log->error("cannot start: {}", started.error().message);
      return 1;
    }
    log->info("coordinator={} fleet={} prefix={} is up", coordinator.status().id.value, (*store)->fleet().value,
              config.prefix);
    while (!g_stop) {
      (*bus)->wait(coordinator.next_due());
      coordinator.turn();
    }
    coordinator.stop();
  }
  (*bus)->close(kCloseTimeout);
  log->info("stopped");
  return 0;
}

}  // namespace muster
