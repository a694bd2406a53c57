#include "simulation/fleet.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "coordinator/must.h"
#include "coordinator/sqlite_store.h"

namespace muster::sim {
namespace {

constexpr std::size_t kWorkers = 3;
constexpr Millis kRunLimit{3'600'000};   // of virtual time, for everything that is on its way to end
constexpr int kMaxTurnsAtOnce = 20'000;  // without time passing: more of them is a loop that does not move

/// Runs plugin code inline, when its virtual time has come.
class VirtualExecutor final : public Executor {
 public:
  VirtualExecutor(const Clock& clock, Random& random) : clock_(clock), random_(random) {}

  void submit(Work work) override {
    // Mostly quick; now and then so slow that `accepted` and heartbeats matter.
    const auto slow = random_.below(20) == 0;
    work_.emplace(clock_.now() + Millis(slow ? random_.below(5000) : random_.below(20)), std::move(work));
  }
  [[nodiscard]] TimePoint next_due() const { return work_.empty() ? TimePoint::max() : work_.begin()->first; }
  std::optional<std::pair<Token, Outcome>> take_due() {
    if (next_due() > clock_.now()) return std::nullopt;
    auto node = work_.extract(work_.begin());
    return std::pair(node.mapped().token, node.mapped().run());
  }

 private:
  const Clock& clock_;
  Random& random_;
  std::multimap<TimePoint, Work> work_;
};

}  // namespace

struct Fleet::WorkerProcess {
  WorkerProcess(Fleet& fleet, std::size_t index)
      : plugin(Cloud::plugin_info()),
        executor(fleet.clock_, fleet.random_),
        bus(fleet.broker_.connect("worker-" + std::to_string(index))) {
    fleet.cloud_.serve(plugin, fleet.random_, fleet.faults_.error_rate);
    WorkerCore::Options options;
    options.subjects = Subjects("sim");
    options.id = WorkerId(make_token(fleet.random_));
    options.slots = static_cast<std::uint16_t>(1 + fleet.random_.below(4));
    options.started = fleet.clock_.wall();
    core = std::make_unique<WorkerCore>(std::move(options), plugin, *bus, fleet.random_, executor, fleet.log_);
    core->start(fleet.clock_.now()).value();
  }

  void turn(TimePoint now) {
    std::vector<Message> inbox;
    bus->receive(inbox, 1000);
    for (const auto& message : inbox) core->handle(message, now);
    while (auto ended = executor.take_due()) core->complete(ended->first, std::move(ended->second), now);
    core->tick(now);
  }
  [[nodiscard]] TimePoint next_due() const { return std::min(core->next_due(), executor.next_due()); }

  Plugin plugin;
  VirtualExecutor executor;
  std::unique_ptr<MemoryBus> bus;
  std::unique_ptr<WorkerCore> core;
};

struct Fleet::CoordinatorProcess {
  explicit CoordinatorProcess(Fleet& fleet)
      : bus(fleet.broker_.connect("coordinator")),
        core(fleet.config_, *fleet.store_, *bus, fleet.clock_, fleet.random_, fleet.log_) {
    core.start().value();
  }
  std::unique_ptr<MemoryBus> bus;
  Coordinator core;
};

Fleet::Fleet(std::uint64_t seed, std::shared_ptr<spdlog::logger> log)
    : seed_(seed), log_(std::move(log)), random_(seed), cloud_(seed ^ 0xC10DU), broker_(clock_, random_) {
  config_.prefix = "sim";
  config_.discovery_interval = Millis(0);
  TargetConfig target;
  target.name = "cloud";
  target.ns = "SIM";
  config_.targets.push_back(target);
  store_ = std::move(open_sqlite_store(":memory:", clock_, random_).value());
  cloud_.populate(1 + random_.below(8), random_.below(12), random_.below(40));
  user_ = broker_.connect("user");
  plan_faults();
}

Fleet::~Fleet() = default;

void Fleet::plan_faults() {
  const auto chance = [&](std::uint64_t percent) { return random_.below(100) < percent; };
  if (chance(50)) faults_.loss = static_cast<double>(random_.below(200)) / 1000;
  if (chance(40)) faults_.duplication = static_cast<double>(random_.below(200)) / 1000;
  if (chance(70)) faults_.delay = Millis(chance(20) ? random_.below(3000) : random_.below(50));
  if (chance(40)) faults_.error_rate = static_cast<double>(random_.below(100)) / 1000;
  if (chance(60)) faults_.worker_crashes = static_cast<int>(random_.below(4));
  if (chance(50)) faults_.coordinator_crashes = static_cast<int>(random_.below(3));
  if (chance(40)) faults_.disconnections = static_cast<int>(random_.below(4));
  if (chance(60)) faults_.churns = static_cast<int>(1 + random_.below(5));

  const auto soon = [&] { return clock_.now() + Millis(random_.below(8'000)); };
  const auto later = [&](TimePoint at) { return at + Millis(random_.below(4'000)); };
  for (int i = 0; i < faults_.worker_crashes; ++i) {
    const auto at = soon();
    const auto who = random_.below(kWorkers);
    plan_.emplace(at, Act{Act::Kind::kWorkerCrash, who});
    plan_.emplace(later(at), Act{Act::Kind::kWorkerStart, who});
  }
  for (int i = 0; i < faults_.coordinator_crashes; ++i) {
    const auto at = soon();
    plan_.emplace(at, Act{Act::Kind::kCoordinatorCrash, 0});
    plan_.emplace(later(at), Act{Act::Kind::kCoordinatorStart, 0});
  }
  for (int i = 0; i < faults_.disconnections; ++i) {
    const auto at = soon();
    const auto who = random_.below(kWorkers + 1);  // the last is the coordinator
    plan_.emplace(at, Act{Act::Kind::kDisconnect, who});
    plan_.emplace(later(at), Act{Act::Kind::kReconnect, who});
  }
  for (int i = 0; i < faults_.churns; ++i) {
    plan_.emplace(soon(), Act{Act::Kind::kChurn, 0});
    plan_.emplace(soon(), Act{Act::Kind::kTrigger, 0});
  }
}

void Fleet::set_policy(const Faults& faults) {
  broker_.set_policy([this, faults](const Outgoing&, std::string_view from, std::string_view to) {
    MemoryBroker::Deliveries deliveries;
    if (from == "user" || to == "user") return MemoryBroker::Deliveries{std::chrono::nanoseconds(0)};
    const auto happens = [&](double share) { return static_cast<double>(random_.below(10'000)) < share * 10'000; };
    const auto delay = [&] {
      return std::chrono::microseconds(50 + random_.below(static_cast<std::uint64_t>(faults.delay.count()) * 1000 + 1));
    };
    if (happens(faults.loss)) return deliveries;
    deliveries.push_back(delay());
    if (happens(faults.duplication)) deliveries.push_back(delay());
    return deliveries;
  });
}

void Fleet::start_coordinator() {
  if (!coordinator_) coordinator_ = std::make_unique<CoordinatorProcess>(*this);
}

void Fleet::start_worker(std::size_t index) {
  if (!workers_[index]) workers_[index] = std::make_unique<WorkerProcess>(*this, index);
}

void Fleet::trigger() {
  static_cast<void>(user_->publish({"sim.api.discover", user_->inbox() + ".ignored", R"({"api":1})", {}}));
}

void Fleet::perform(const Act& act) {
  const auto bus = [&]() -> MemoryBus* {
    if (act.who == kWorkers) return coordinator_ ? coordinator_->bus.get() : nullptr;
    return workers_[act.who] ? workers_[act.who]->bus.get() : nullptr;
  };
  switch (act.kind) {
    case Act::Kind::kWorkerCrash:
      workers_[act.who].reset();
      break;
    case Act::Kind::kWorkerStart:
      start_worker(act.who);
      break;
    case Act::Kind::kCoordinatorCrash:
      coordinator_.reset();
      store_->rollback();  // what was not committed dies with the process
      break;
    case Act::Kind::kCoordinatorStart:
      start_coordinator();
      break;
    case Act::Kind::kDisconnect:
      if (auto* connection = bus()) connection->disconnect();
      break;
    case Act::Kind::kReconnect:
      if (auto* connection = bus(); connection != nullptr && !connection->status().connected) connection->reconnect();
      break;
    case Act::Kind::kChurn:
      cloud_.churn(1 + random_.below(20));
      break;
    case Act::Kind::kTrigger:
      trigger();
      break;
  }
}

void Fleet::turn_all() {
  const auto now = clock_.now();
  broker_.deliver_until(now);
  if (coordinator_) coordinator_->core.turn();
  for (auto& worker : workers_) {
    if (worker) worker->turn(now);
  }
}

TimePoint Fleet::next_moment() {
  auto next = broker_.next_due().value_or(TimePoint::max());
  if (coordinator_) next = std::min(next, coordinator_->core.next_due());
  for (const auto& worker : workers_) {
    if (worker) next = std::min(next, worker->next_due());
  }
  if (!plan_.empty()) next = std::min(next, plan_.begin()->first);
  return next;
}

std::string Fleet::who_is_next() const {
  const auto due = [&](TimePoint at) { return at <= clock_.now(); };
  if (broker_.next_due() && due(*broker_.next_due())) return "the bus";
  if (coordinator_ && due(coordinator_->core.next_due())) return "the coordinator";
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i] && due(workers_[i]->next_due())) return "worker " + std::to_string(i);
  }
  return "nobody";
}

std::optional<std::string> Fleet::pass(const std::function<bool()>& done, Millis limit, const std::string& what) {
  const auto until = clock_.now() + limit;
  for (int turns = 0; !done();) {
    const auto next = next_moment();
    if (next > until) return what + " has not happened within " + std::to_string(limit.count()) + " ms";
    turns = next > clock_.now() ? 0 : turns + 1;
    if (turns > kMaxTurnsAtOnce) return "time stands still at " + who_is_next() + " while waiting: " + what;
    if (next > clock_.now()) clock_.set(next);
    while (!plan_.empty() && plan_.begin()->first <= clock_.now()) {
      const auto act = plan_.begin()->second;
      plan_.erase(plan_.begin());
      perform(act);
    }
    turn_all();
  }
  return std::nullopt;
}

bool Fleet::all_runs_ended() {
  return coordinator_ && coordinator_->core.idle() && must(store_->unfinished_runs()).empty();
}

std::optional<std::string> Fleet::run() {
  set_policy(faults_);
  workers_.resize(kWorkers);
  start_coordinator();
  for (std::size_t i = 0; i < kWorkers; ++i) start_worker(i);

  if (auto fault = pass([&] { return plan_.empty(); }, kRunLimit, "the end of the faults")) return fault;
  for (std::size_t i = 0; i < kWorkers; ++i) start_worker(i);
  start_coordinator();
  if (auto fault = pass([&] { return all_runs_ended(); }, kRunLimit, "the end of every run")) return fault;

  // Quiet: the world stands still and nothing goes wrong any more.
  Faults quiet;
  quiet.delay = Millis(1);
  set_policy(quiet);
  // The errors of the plugin stay: they are retried like any other. A run that one of them made partial is repeated.
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto before = must(store_->runs({}, 1)).front().id;
    trigger();
    const auto ended = [&] { return must(store_->runs({}, 1)).front().id != before && all_runs_ended(); };
    if (auto fault = pass(ended, kRunLimit, "the end of the last run")) return fault;
    if (must(store_->runs({}, 1)).front().state == "complete") break;
    if (attempt == 19)
      return "no run is complete though the world stands still: " + must(store_->runs({}, 1)).front().report;
  }
  if (auto fault = check_inventory()) return fault;
  return check_events();
}

std::optional<std::string> Fleet::check_inventory() {
  std::map<std::string, std::map<std::string, std::string>> rows;
  std::optional<std::string> fault;
  ResourceQuery query;
  query.limit = 1'000'000;
  must(store_->query(query, [&](const ResourceView& row) {
    const std::string type(row.type), id(row.native_id);
    if (!rows[type].emplace(id, row.properties).second) fault = "doubled: " + type + " " + id;
    if (!cloud_.ever(type, id)) fault = "invented: " + type + " " + id;
    if (row.state != ResourceState::kPresent) fault = "stale after a complete run: " + type + " " + id;
    return true;
  }));
  if (fault) return fault;
  for (const auto& [type, things] : cloud_.types()) {
    for (const auto& [id, thing] : things) {
      const auto row = rows[type].find(id);
      if (row == rows[type].end()) return "lost: " + type + " " + id;
      const auto truth = Cloud::properties(type, id, thing).dump();
      if (row->second != truth)
        return "wrong: " + type + " " + id + " is " + truth + ", the inventory has " + row->second;
      rows[type].erase(row);
    }
    if (!rows[type].empty()) return "still there: " + type + " " + rows[type].begin()->first;
  }
  return std::nullopt;
}

std::optional<std::string> Fleet::check_events() {
  std::uint64_t last = 0;
  std::size_t vanished = 0;
  std::map<std::string, int> listed;  // resource id -> discovered less vanished
  for (;;) {
    const auto events = must(store_->events(last, 1000));
    if (events.empty()) break;
    for (const auto& event : events) {
      if (event.sequence != last + 1) return fmt::format("event {} follows {}", event.sequence, last);
      last = event.sequence;
      if (event.what == "resource.discovered" && ++listed[event.subject] > 1) return "discovered twice: " + event.data;
      if (event.what == "resource.vanished") {
        ++vanished;
        if (--listed[event.subject] < 0) return "vanished without having been there: " + event.data;
      }
    }
  }
  if (vanished > cloud_.removals()) {
    return fmt::format("{} resources vanished, {} were ever removed", vanished, cloud_.removals());
  }
  const auto rows = std::ranges::count_if(listed, [](const auto& entry) { return entry.second == 1; });
  std::size_t things = 0;
  for (const auto& [type, all] : cloud_.types()) things += all.size();
  if (static_cast<std::size_t>(rows) != things)
    return fmt::format("events speak of {} resources, there are {}", rows, things);
  return std::nullopt;
}

std::string Fleet::describe() const {
  return fmt::format(
      "loss={} duplication={} delay={}ms errors={} worker_crashes={} coordinator_crashes={} "
      "disconnections={} churns={}",
      faults_.loss, faults_.duplication, faults_.delay.count(), faults_.error_rate, faults_.worker_crashes,
      faults_.coordinator_crashes, faults_.disconnections, faults_.churns);
}

}  // namespace muster::sim
