#include "simulation/fleet.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "coordinator/claim.h"
#include "coordinator/must.h"
#include "coordinator/sqlite_store.h"
#include "schema/codec.h"

namespace muster::sim {
namespace {

constexpr std::string_view kWorkerName = "worker-";
constexpr std::size_t kSmallMessage = 900;  // bytes: less than what workers tell of one object that has a text
constexpr int kMaxTurnsAtOnce = 20'000;     // without time passing: more of them is a loop that does not move

}  // namespace

struct Fleet::CoordinatorProcess {
  explicit CoordinatorProcess(Fleet& fleet)
      : bus(fleet.broker_.connect("coordinator")),
        core(fleet.config_, *fleet.store_, *bus, fleet.clock_, fleet.random_, fleet.log_) {
    core.start().value();
  }
  std::unique_ptr<MemoryBus> bus;
  Coordinator core;
};

Fleet::Fleet(std::uint64_t seed, const std::set<std::string>& without, std::shared_ptr<spdlog::logger> log)
    : seed_(seed),
      log_(std::move(log)),
      random_(seed),
      cloud_(seed ^ 0xC10DU),
      objects_(seed ^ 0x0B1EC7U, clock_),
      settings_(seed ^ 0x5E7716U),
      forgetting_(seed ^ 0xF02637U),
      broker_(clock_, random_) {
  usual_.prefix = "sim";
  usual_.discovery_interval = Millis(0);
  TargetConfig target;
  target.ns = "SIM";
  for (const std::string name : {"cloud", "mirror"}) {
    target.name = name;
    target.renamed_from = name + kOtherName;
    usual_.targets.push_back(target);
  }
  store_ = std::make_unique<test::FailingStore>(std::move(open_sqlite_store(":memory:", clock_, random_).value()));
  const bool deep = SeededRandom(seed ^ 0xDEE9U).below(3) == 0;
  if (deep && !without.contains("depth")) cloud_.deepen();
  const bool folders = SeededRandom(seed ^ 0xF01DE2U).below(3) == 0;
  if (folders && !without.contains("folders")) cloud_.add_folders();
  cloud_.populate(1 + random_.below(8), random_.below(12), random_.below(40));
  for (std::size_t i = 0; i < kDisks; ++i) disks_.push_back(std::make_shared<testing::MemoryDisk>());
  user_ = broker_.connect("user");
  user_->subscribe_answers(user_->inbox() + ".>").value();
  user_->subscribe("sim.event.>").value();
  objects_.on_change = [this](const std::string& key, const Host& host) { return check_change(key, host); };
  objects_.on_taken_along = [this](const auto& key, const auto& type, const auto& id) {
    return check_taken_along(key, type, id);
  };
  objects_.may_have_twin = [this](const std::string& type, const std::string& id) {
    if (faults_.forgets > 0 && forgotten().contains(id)) return true;
    auto row = must(store_->one("cloud", type, id));
    if (!row) row = must(store_->one(std::string("cloud") + kOtherName, type, id));
    const auto claim = row ? must(store_->claim(row->row)) : std::nullopt;
    return claim && claim->name.ends_with(kReplaced);
  };
  workers_.resize(kMaxWorkers);
  stopped_until_.resize(kMaxWorkers + 1);
  faults_ = draw_faults(random_);
  SeededRandom later(seed ^ 0x1A7E5U);
  draw_later_faults(faults_, later);
  faults_.second_target = SeededRandom(seed ^ 0x5EC0DU).below(4) == 0 ? 1 : 0;
  if (settings_.below(4) == 0) faults_.settings = 1 + static_cast<int>(settings_.below(3));
  SeededRandom streaming(seed ^ 0x5712EA3U);
  if (streaming.below(4) == 0) faults_.stream = 1 + static_cast<int>(streaming.below(4));
  faults_.depth = deep ? 1 : 0;
  faults_.folders = folders ? 1 : 0;
  faults_.notes = SeededRandom(seed ^ 0x2017EU).below(4) == 0 ? 1 : 0;
  faults_.children = SeededRandom(seed ^ 0x4E57U).below(3) == 0 ? 1 : 0;
  faults_.nests = SeededRandom(seed ^ 0x4E575U).below(3) == 0 ? 1 : 0;
  if (faults_.notes > 0) faults_.secrets = SeededRandom(seed ^ 0x5EC2E7U).below(2) == 0 ? 1 : 0;
  faults_.crowds = SeededRandom(seed ^ 0xC20D5U).below(4) == 0 ? 1 : 0;
  faults_.parts = SeededRandom(seed ^ 0x9A275U).below(4) == 0 ? 1 : 0;
  faults_.plans = SeededRandom(seed ^ 0x91A45U).below(3) == 0 ? 1 : 0;
  faults_.waits = SeededRandom(seed ^ 0x3A175U).below(2) == 0 ? 1 : 0;
  faults_.gaps = SeededRandom(seed ^ 0x6A25U).below(4) == 0 ? 1 : 0;
  SeededRandom swapping(seed ^ 0x5A425U);
  if (swapping.below(4) == 0) faults_.swaps = 1 + static_cast<int>(swapping.below(4));
  SeededRandom narrowing(seed ^ 0x7A220U);
  if (narrowing.below(6) == 0) faults_.narrowings = 1 + static_cast<int>(narrowing.below(4));
  if (deep && SeededRandom(seed ^ 0x10053U).below(3) == 0) faults_.loose = 1;
  SeededRandom reviving(seed ^ 0x2E717EU);
  if (reviving.below(4) == 0) faults_.revivals = 1 + static_cast<int>(reviving.below(12));
  if (SeededRandom(seed ^ 0x0A0D5U).below(6) == 0) faults_.no_uids = 1;
  if (faults_.children + faults_.nests > 0 && SeededRandom(seed ^ 0x572C7U).below(3) == 0) faults_.strict = 1;
  if (forgetting_.below(4) == 0) faults_.forgets = 1 + static_cast<int>(forgetting_.below(6));
  SeededRandom showing(seed ^ 0x1A6U);
  // What time of day it is made tells how long ago that was.
  if (showing.below(4) == 0 && faults_.clock_jumps == 0) faults_.lag = Millis(1 + showing.below(1900));
  if (SeededRandom(seed ^ 0x2EADU).below(4) == 0) faults_.unread = 1;
  parts_ = leave_out(faults_, without);
  if (faults_.loose > 0) cloud_.loosen();
  if (faults_.unread > 0) cloud_.only_list();
  if (faults_.strict > 0) objects_.be_strict();
  objects_.show_late(faults_.lag);
  if (faults_.no_uids > 0) {
    cloud_.hide_uids();
    objects_.hide_uids();
    faults_.renames = faults_.successors = faults_.swaps = 0;  // nobody could tell
  }
  if (faults_.second_target == 0) usual_.targets.pop_back();
  config_ = usual_;
  plan_ = plan_faults(faults_, clock_.now(), random_);
  plan_later_faults(faults_, clock_.now(), later, plan_);
  const auto now_and_then = [&](int times, Act::Kind what, SeededRandom& when) {
    for (; times > 0; --times) {
      for (const auto kind : {what, Act::Kind::kTrigger}) {
        plan_.emplace(clock_.now() + Millis(when.below(17'000)), Act{kind});
      }
    }
  };
  now_and_then(faults_.swaps, Act::Kind::kSwap, swapping);
  now_and_then(faults_.narrowings, Act::Kind::kNarrow, narrowing);
  now_and_then(faults_.revivals, Act::Kind::kRevive, reviving);
  now_and_then(faults_.forgets, Act::Kind::kForget, forgetting_);
  weather_.error_rate = faults_.error_rate;
  weather_.gaps = faults_.gaps > 0;
  SeededRandom wishing(seed ^ 0x315711U);
  wishes_ = draw_wishes(wishing);
  if (faults_.children > 0) {
    objects_.add_children();
    add_children(wishes_, wishing);
  }
  if (faults_.nests > 0) {
    objects_.add_nests();
    add_nests(wishes_, wishing);
  }
  if (faults_.parts > 0) objects_.add_texts();
  if (faults_.notes > 0) add_notes(wishes_, wishing);
  if (faults_.secrets > 0) add_secrets(wishes_, wishing);
  if (faults_.crowds > 0) add_crowds(wishes_, wishing);
  if (faults_.plans > 0) add_plans(wishes_, wishing);

  std::vector<Wish> kept;
  for (std::size_t i = 0; i < wishes_.size(); ++i) {
    parts_.push_back("wish-" + std::to_string(i));
    if (!without.contains(parts_.back())) kept.push_back(std::move(wishes_[i]));
  }
  wishes_ = std::move(kept);
  for (std::size_t i = 0; i < wishes_.size(); ++i) {
    plan_.emplace(clock_.now() + wishes_[i].at, Act{Act::Kind::kWish, i});
  }
}

Fleet::~Fleet() = default;

bool Fleet::cut_off(std::string_view process) const {
  if (process == "coordinator") return (cut_off_ >> kMaxWorkers & 1U) != 0;
  if (!process.starts_with(kWorkerName)) return false;
  return (cut_off_ >> std::stoul(std::string(process.substr(kWorkerName.size()))) & 1U) != 0;
}

void Fleet::set_policy(const Faults& faults) {
  broker_.set_policy([this, faults](const Outgoing& message, std::string_view from, std::string_view to) {
    if (message.subject.starts_with("sim.event.")) {  // looked at on its way to the user
      follow(message, from);
      return MemoryBroker::Deliveries{};
    }
    if (from == "coordinator") {
      if (doom_ && (*doom_)-- == 0) throw CoordinatorDied{};
      watch(message);
    } else if (from.starts_with(kWorkerName)) {
      hear(message);
    }
    MemoryBroker::Deliveries deliveries;
    if (from == "user" || to == "user") return MemoryBroker::Deliveries{std::chrono::nanoseconds(0)};
    const auto happens = [&](double share) { return static_cast<double>(random_.below(10'000)) < share * 10'000; };
    const auto delay = [&] {
      return std::chrono::microseconds(50 + random_.below(static_cast<std::uint64_t>(faults.delay.count()) * 1000 + 1));
    };
    if (!from.empty() && cut_off(from) != cut_off(to)) return deliveries;
    if (happens(faults.loss)) return deliveries;
    deliveries.push_back(delay());
    if (happens(faults.duplication)) deliveries.push_back(delay());
    return deliveries;
  });
}

void Fleet::start_coordinator() {
  doom_.reset();
  if (coordinator_) return;
  store_->failing = false;
  coordinator_ = std::make_unique<CoordinatorProcess>(*this);
}

void Fleet::crash_coordinator() {
  doom_.reset();
  coordinator_.reset();
  asked_for_.clear();
  budgets_.clear();
  store_->rollback();  // what was not committed dies with the process
}

void Fleet::start_worker(std::size_t index) {
  if (workers_[index]) return;
  workers_[index] = std::make_unique<WorkerProcess>(WorkerProcess::Setup{
      std::string(kWorkerName) + std::to_string(index),
      faults_.mixed_versions > 0 && random_.below(2) == 0 ? "1.1.0" : "1.0.0",
      disks_[index % disks_.size()],
      faults_.slow_disk,
      faults_.parts > 0 ? kSmallMessage : BusLink{}.max_payload,
      faults_.waits > 0 && index % 3 != 2,  // beside some of a version that has no places
      clock_,
      random_,
      broker_,
      cloud_,
      objects_,
      weather_,
      log_,
  });
}

void Fleet::start_liar() {
  Plugin plugin(Cloud::plugin_info("1.0.0"));
  Host nowhere;
  cloud_.serve(plugin, random_, weather_);
  objects_.serve(plugin, random_, weather_, nowhere);
  liar_ = std::make_unique<Liar>(broker_, clock_, random_, encode(plugin.manifest()));
}

std::size_t Fleet::ask(const std::string& verb, const Json& request) {
  const auto reply = user_->inbox() + "." + std::to_string(++asked_);
  static_cast<void>(user_->publish({"sim.api." + verb, reply, request.dump(), {}}));
  return asked_;
}

void Fleet::take_answers() {
  std::vector<Message> inbox;
  user_->receive(inbox, 1000);
  for (const auto& message : inbox) {
    if (message.no_responders) continue;
    const std::string subject(message.subject);
    auto answer = Json::parse(message.data);
    if (const auto command = answer.find("command"); command != answer.end() && command->is_string()) {
      promised_.push_back(*command);
    }
    const auto number = std::stoul(subject.substr(subject.rfind('.') + 1));
    if (const auto looked = looked_at_.find(number); looked != looked_at_.end() && answer.contains("draft")) {
      plan_.emplace(clock_.now() + looked->second, Act{Act::Kind::kApply, number});
    }
    answers_[number] = std::move(answer);
  }
}

void Fleet::trigger() {
  ask("discover", {{"api", 1}});
}

void Fleet::configure(Config config) {
  const bool runs = coordinator_ != nullptr;
  if (runs) crash_coordinator();
  config_ = std::move(config);
  if (runs) start_coordinator();
}

Fleet::Fault Fleet::accept_targets() {
  for (const auto& target : config_.targets) {
    const auto number = ask("targets-accept", {{"api", 1}, {"target", target.name}});
    if (auto fault = pass([&] { return answers_.contains(number); }, kLimit, "that a target is accepted")) return fault;
    if (answers_[number].value("state", "") != "active") return "not accepted: " + answers_[number].dump();
  }
  return pass([&] { return all_ended(); }, kLimit, "the end of what the targets bring");
}

void Fleet::make(const Wish& wish) {
  if (wish.kind == Wish::Kind::kApply) {
    auto request = wish.request;
    const auto other = std::string("cloud") + kOtherName;
    if (std::ranges::find(config_.targets, other, &TargetConfig::name) != config_.targets.end()) {
      for (auto& resource : request["stacks"][0]["resources"]) resource["target"] = other;
    }
    if (wish.looked_at.count() > 0) {
      request.erase("if_busy");
      looked_at_[ask("plan", request)] = wish.looked_at;
    } else {
      ask("apply", request);
    }
  } else if (!promised_.empty()) {
    ask("cancel", {{"api", 1}, {"command", promised_.back()}, {"force", wish.force}});
  }
}

void Fleet::forget() {
  const std::string stack = forgetting_.below(3) == 0 ? "beta" : "alpha";
  std::vector<std::string> names;
  must(store_->of_stack(stack, {}, [&](const ManagedView& row) { names.emplace_back(declared_name(row.name)); }));
  if (names.empty()) return;
  Json request{{"api", 1}, {"stack", stack}};
  if (forgetting_.below(3) == 0) {
    request["all"] = true;
  } else {
    request["names"] = {names[forgetting_.below(names.size())]};
  }
  ask("forget", request);
}

void Fleet::perform(const Act& act) {
  const auto bus = [&]() -> MemoryBus* {
    if (act.who == kMaxWorkers) return coordinator_ ? coordinator_->bus.get() : nullptr;
    return workers_[act.who] ? &workers_[act.who]->bus() : nullptr;
  };
  switch (act.kind) {
    case Act::Kind::kWorkerCrash:
      workers_[act.who].reset();
      break;
    case Act::Kind::kWorkerStart:
      start_worker(act.who);
      break;
    case Act::Kind::kCoordinatorCrash:
      if (coordinator_) doom_ = random_.below(20);
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
    case Act::Kind::kStop:
      stopped_until_[act.who] = clock_.now() + Millis(random_.below(15'000));
      break;
    case Act::Kind::kStoreFails:
      store_->failing = coordinator_ != nullptr;
      break;
    case Act::Kind::kStoreWorks:
      store_->failing = false;
      break;
    case Act::Kind::kDiskFull:
      disks_[act.who]->full = true;
      break;
    case Act::Kind::kDiskFree:
      disks_[act.who]->full = false;
      break;
    case Act::Kind::kClockJump:
      clock_.set_wall(clock_.wall() + Millis(random_.below(20'000'000)) - Millis(10'000'000));
      break;
    case Act::Kind::kChurn:
      cloud_.churn(1 + random_.below(20));
      break;
    case Act::Kind::kTrigger:
      trigger();
      break;
    case Act::Kind::kEdit:
      objects_.edit();
      break;
    case Act::Kind::kSwap:
      cloud_.swap(1 + random_.below(3));
      break;
    case Act::Kind::kRevive:
      objects_.revive();
      break;
    case Act::Kind::kForget:
      forget();
      break;
    case Act::Kind::kNarrow:
      cloud_.narrow();
      break;
    case Act::Kind::kPartition:
      cut_off_ = act.who;
      break;
    case Act::Kind::kHeal:
      cut_off_ = 0;
      break;
    case Act::Kind::kDrain:
      if (workers_[act.who]) {
        const auto limit = random_.below(2) == 0 ? std::optional<Millis>() : Millis(random_.below(5000));
        workers_[act.who]->core().drain(clock_.now(), limit);
      }
      break;
    case Act::Kind::kOutage:
    case Act::Kind::kOutageEnds:
      weather_.outage = act.kind == Act::Kind::kOutage;
      break;
    case Act::Kind::kThrottling:
    case Act::Kind::kThrottlingEnds:
      weather_.throttling = act.kind == Act::Kind::kThrottling;
      break;
    case Act::Kind::kWish:
      make(wishes_[act.who]);
      break;
    case Act::Kind::kRename:
      cloud_.rename(1 + random_.below(4));
      break;
    case Act::Kind::kSucceed:
      cloud_.succeed(1 + random_.below(4));
      break;
    case Act::Kind::kFilter:
      cloud_.filter();
      break;
    case Act::Kind::kNarrowLook: {
      static const std::vector<std::string> kTypes{"SIM::Box", "SIM::Item", "SIM::Note", "SIM::Object", "SIM::Named"};
      auto type = kTypes.at(act.who);
      if (faults_.depth > 0 && type == "SIM::Note") type = "SIM::Part";
      if (faults_.folders > 0 && type == "SIM::Box") type = "SIM::Folder";
      if (faults_.folders > 0 && type == "SIM::Item") type = "SIM::File";
      ask("discover", {{"api", 1}, {"types", {type}}});
      break;
    }
    case Act::Kind::kStream:
      if (stream_) stream_->set(static_cast<EventStream::State>(act.who));
      break;
    case Act::Kind::kApply:
      ask("apply", {{"api", 1}, {"draft", answers_.at(act.who)["draft"]}});
      break;
    case Act::Kind::kConfigure:
      configure(changed_config(usual_, settings_));
      break;
  }
}

void Fleet::turn_all() {
  const auto now = clock_.now();
  broker_.deliver_until(now);
  if (store_->failing) {  // as after a crash: it begins anew
    asked_for_.clear();
    budgets_.clear();
  }
  if (coordinator_ && stopped_until_[kMaxWorkers] <= now) {
    try {
      coordinator_->core.turn();
    } catch (const CoordinatorDied&) {
      crash_coordinator();
    }
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i] || stopped_until_[i] > now || workers_[i]->turn(now)) continue;
    workers_[i].reset();
    plan_.emplace(now + Millis(random_.below(4000)), Act{Act::Kind::kWorkerStart, i});
  }
  if (liar_) liar_->turn();
  if (stream_) stream_->turn();
  take_answers();
}

TimePoint Fleet::next_moment() {
  auto next = broker_.next_due().value_or(TimePoint::max());
  if (coordinator_) next = std::min(next, std::max(coordinator_->core.next_due(), stopped_until_[kMaxWorkers]));
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i]) next = std::min(next, std::max(workers_[i]->next_due(), stopped_until_[i]));
  }
  if (liar_) next = std::min(next, liar_->next_due());
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

Fleet::Fault Fleet::pass(const std::function<bool()>& done, Millis limit, const std::string& what) {
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
    if (fault_) return fault_;
    if (objects_.fault()) return objects_.fault();
  }
  return std::nullopt;
}

bool Fleet::all_ended() {
  return plan_.empty() && coordinator_ && coordinator_->core.idle() && must(store_->unfinished_runs()).empty() &&
         must(store_->unfinished_commands()).empty();
}

bool Fleet::workers_are_done() const {
  return std::ranges::all_of(disks_, [](const auto& disk) { return disk->files.empty(); }) &&
         std::ranges::none_of(workers_, [](const auto& worker) { return worker && worker->core().runs_plugin_code(); });
}

}  // namespace muster::sim
