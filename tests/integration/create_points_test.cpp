// A create, and a process that is killed or stopped at each point of it, from the command's acceptance to the
// acknowledgement of the result. Each way to strike has a fleet of its own; they wait a lot, so they go side by side.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <nats/nats.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "schema/subjects.h"
#include "support/fake_cloud.h"
#include "support/parts_fleet.h"
#include "worker_sdk/bus/nats_handles.h"

using namespace muster;
using namespace std::chrono_literals;
using test::PartsFleet;
using Json = nlohmann::json;
using std::chrono::steady_clock;

namespace {

constexpr char kType[] = "FAKE::Cloud::Thing0";
constexpr auto kLook = 10ms;     // between two looks at the fake cloud's books
constexpr auto kAsk = 200ms;     // between two questions to the coordinator
constexpr auto kAnswer = 2s;     // for a question that is asked again
constexpr auto kMoment = 60s;    // for a point to be reached
constexpr auto kSettled = 150s;  // for a command to end

/// How long what is stopped stays so: longer than the lease of a change.
std::chrono::seconds stop_time() {
  const char* given = std::getenv("MUSTER_STOP_SECONDS");
  return std::chrono::seconds(given == nullptr ? 12 : std::atoi(given));
}

/// Somebody on the bus: hears every message, and asks the coordinator. Thread: one.
class Observer {
 public:
  explicit Observer(const std::string& url) {
    natsConnection* connection = nullptr;
    check(natsConnection_ConnectTo(&connection, url.c_str()));
    connection_.reset(connection);
    natsSubscription* subscription = nullptr;
    check(natsConnection_SubscribeSync(&subscription, connection, (subjects_.prefix() + ".>").c_str()));
    subscription_.reset(subscription);
    check(natsSubscription_SetPendingLimits(subscription, -1, -1));
    check(natsConnection_Flush(connection));
  }

  /// Notes what comes, until `time` has passed or something came.
  void listen(std::chrono::milliseconds time) {
    natsMsg* raw = nullptr;
    while (natsSubscription_NextMsg(&raw, subscription_.get(), time.count()) == NATS_OK) {
      const MsgPtr message(raw);
      note(natsMsg_GetSubject(raw), {natsMsg_GetData(raw), static_cast<std::size_t>(natsMsg_GetDataLength(raw))});
      time = 0ms;
    }
  }

  /// The answer of `muster.api.VERB`, null when there is none in time.
  [[nodiscard]] Json ask(std::string_view verb, const Json& body, std::chrono::milliseconds time) const {
    const auto text = body.dump();
    natsMsg* raw = nullptr;
    const auto status = natsConnection_Request(&raw, connection_.get(), subjects_.api(verb).c_str(), text.data(),
                                               static_cast<int>(text.size()), time.count());
    const MsgPtr answer(raw);
    if (status != NATS_OK) return {};
    return Json::parse(natsMsg_GetData(raw), natsMsg_GetData(raw) + natsMsg_GetDataLength(raw), nullptr, false);
  }

  // How often each was heard, by target.
  std::map<std::string, int> creates;  // dispatches of a create
  std::map<std::string, int> results;  // of one
  std::map<std::string, int> created;  // events of its commit

 private:
  static void check(natsStatus status) {
    if (status != NATS_OK) throw std::runtime_error(natsStatus_GetText(status));
  }

  void note(std::string_view subject, std::string_view data) {
    const auto kind = subject_token(subject, subjects_.prefix(), 0);
    if (kind == "job" || (kind == "worker" && subject.ends_with(".job"))) {
      const auto job = decode<Job>(data);
      if (!job || !std::holds_alternative<CreateJob>(job->operation)) return;
      targets_[job->id.value] = job->target.name;
      ++creates[job->target.name];
    } else if (kind == "reply" || kind == "result") {
      const auto reply = decode<JobReply>(data);
      if (!reply || !std::holds_alternative<JobResult>(reply->body)) return;
      if (const auto it = targets_.find(reply->job.value); it != targets_.end()) ++results[it->second];
    } else if (subject == subjects_.event("FAKE", "resource.created")) {
      const auto said = Json::parse(data);  // one event, or a batch
      for (const auto& event : said.is_array() ? said : Json::array({said})) ++created[event.at("data").at("target")];
    }
  }

  Subjects subjects_;
  std::map<std::string, std::string> targets_;  // by job
  ConnectionPtr connection_;
  SubscriptionPtr subscription_;  // before the connection, at the end
};

enum class Victim : std::uint8_t { kWorker, kCoordinator };
enum class Strike : std::uint8_t { kKill, kStop };
enum class Others : std::uint8_t { kNone, kJoin };  // whether a second worker comes when the first is struck

struct Way {
  const char* name;
  Victim victim;
  Strike strike;
  Others others = Others::kNone;
};

constexpr std::array<Way, 5> kWays{{{"worker killed", Victim::kWorker, Strike::kKill},
                                    {"worker stopped", Victim::kWorker, Strike::kStop},
                                    {"worker stopped, another joins", Victim::kWorker, Strike::kStop, Others::kJoin},
                                    {"coordinator killed", Victim::kCoordinator, Strike::kKill},
                                    {"coordinator stopped", Victim::kCoordinator, Strike::kStop}}};

/// One way to strike, at one point after the other: each on a target of its own. Thread: one.
class Trial : public PartsFleet {
 public:
  explicit Trial(const Way& way) : way_(way) {}

  /// What went wrong; empty: nothing.
  std::vector<std::string> run() {
    try {
      begin();
      for (const auto& point : kPoints) {
        point_ = &point;
        (this->*point.strike)();
        settle();
      }
    } catch (const std::exception& error) {
      expect(false, error.what());
    }
    if (!failures_.empty()) failures_.push_back(log());
    return failures_;
  }

 private:
  struct Point {
    const char* name;  // of its target, its stack and the object
    const char* fail;  // configuration of the fake cloud
    void (Trial::*strike)();
  };
  static const std::array<Point, 7> kPoints;

  // ---- the points

  /// The command is accepted while no worker is there.
  void undispatched() {
    if (way_.victim == Victim::kWorker) {
      strike(Others::kNone);
      if (way_.strike == Strike::kStop) until("the worker is lost", kAsk, kMoment, [&] { return worker_is("lost"); });
      accept();
      join(way_.others);
      heal();
    } else {
      expect(stop_worker(worker_) == 0, "the worker did not drain");
      accept();
      strike();
      if (way_.strike == Strike::kStop) launch_worker();  // it announces itself to nobody
      heal();
      if (way_.strike == Strike::kKill) launch_worker();
    }
  }

  /// The bus stands still from the moment of the answer.
  void bus_stopped() {
    accept();
    nats.pause();
    strike();
    if (way_.strike == Strike::kStop) std::this_thread::sleep_until(struck_ + stop_time());
    nats.resume();
    heal();
  }

  /// The job is on its way: the worker has not read it.
  void in_flight() {
    pause_worker(worker_);
    accept();
    until("the job goes out", [&] { return observer_.creates[target()] > 0; });
    strike();
    if (way_.victim == Victim::kCoordinator) resume_worker(worker_);
    heal();
  }

  /// The plugin was called, and has not acted.
  void begun() {
    accept();
    until("the call begins", [&] { return !books("SELECT outcome FROM calls WHERE outcome = 'begun'").empty(); });
    strike();
    expect(books(test::kObjects).empty(), "the moment has passed: it acted");
    heal();
  }

  /// The object is there, nobody but the plugin knows.
  void acted() {
    accept();
    until("the object is made", [&] { return !books(test::kObjects).empty(); });
    strike();
    observer_.listen(0ms);
    expect(observer_.results[target()] == 0, "the moment has passed: it answered");
    heal();
  }

  /// The result is on its way to a coordinator that has not read it.
  void unread() {
    answer_to_stopped_coordinator();
    strike();
    heal();
    if (way_.victim == Victim::kWorker) resume_coordinator();
  }

  /// The result is committed; the worker has not read that.
  void unacknowledged() {
    answer_to_stopped_coordinator();
    pause_worker(worker_);
    resume_coordinator();
    until("the result is committed", [&] { return observer_.created[target()] > 0; });
    strike();
    if (way_.victim == Victim::kCoordinator) resume_worker(worker_);
    const int before = observer_.results[target()];
    heal();
    if (way_.victim == Victim::kWorker && way_.strike == Strike::kKill) {
      until("the next worker sends the result again", [&] { return observer_.results[target()] > before; });
    }
  }

  void answer_to_stopped_coordinator() {
    accept();
    until("the object is made", [&] { return !books(test::kObjects).empty(); });
    pause_coordinator();
    observer_.listen(0ms);
    expect(observer_.results[target()] == 0, "the moment has passed: it answered");
    until("the result goes out", [&] { return observer_.results[target()] > 0; });
  }

  // ---- what happens at them

  void strike() { strike(way_.others); }
  void strike(Others others) {
    if (way_.victim == Victim::kWorker) {
      way_.strike == Strike::kKill ? kill_worker(worker_) : pause_worker(worker_);
    } else {
      way_.strike == Strike::kKill ? kill_coordinator() : pause_coordinator();
    }
    struck_ = steady_clock::now();
    join(others);
  }

  void heal() {
    if (way_.strike == Strike::kStop) {
      std::this_thread::sleep_until(struck_ + stop_time());
      way_.victim == Victim::kWorker ? resume_worker(worker_) : resume_coordinator();
    } else if (way_.victim == Victim::kWorker) {
      launch_worker();
    } else {
      start_coordinator();
    }
  }

  void launch_worker() {
    worker_ = start_worker({"fake"}, {{{"MUSTER_STATE_DIR", (directory() / "journal").string()}}});
  }
  void join(Others others) {
    if (others == Others::kNone) return;
    other_ = start_worker({"fake"}, {{{"MUSTER_STATE_DIR", (directory() / "other-journal").string()}}});
  }

  // ---- before and after

  void begin() {
    std::string config = "discovery: {interval: 0s}\ntargets:\n";
    for (const auto& point : kPoints) {
      config += std::string("  - {name: ") + point.name + ", namespace: FAKE, config: {resources: 0, " +
                "unique_names: false, state: " + books_of(point) + ", fail: {create: {" + point.fail + "}}}}\n";
    }
    configure(config);
    launch_worker();
    until("the worker joins", kAsk, kMoment, [&] { return worker_is("active"); });
    expect(discover({"--timeout", "60s"})["state"] == "complete", "the first discovery is not complete");
  }

  /// Asks for the create; returns with the coordinator's word for it.
  void accept() {
    const Json resource{
        {"name", target()}, {"type", kType}, {"target", target()}, {"properties", {{"name", target()}}}};
    const Json stack{{"stack", target()}, {"resources", Json::array({resource})}};
    std::ofstream(file()) << stack.dump();  // YAML as well
    const auto answer = observer_.ask("apply", {{"stacks", Json::array({stack})}}, kMoment);
    if (!answer.is_object() || !answer.value("command", Json()).is_string()) {
      throw std::runtime_error(said("the command is not accepted: " + answer.dump()));
    }
    command_ = answer["command"];
  }

  /// The command ends, and everybody knows of exactly one object.
  void settle() {
    if (outcome() == "failed") {  // it may not know; then the next one does
      accept();
      expect(outcome() == "complete", "the second command failed, too");
    }
    const auto there = books(test::kObjects);
    expect(there.size() == 1, std::to_string(there.size()) + " objects are there");
    expect(test::doubled(books_of(*point_)).empty(), "a create was applied twice");
    const auto run = discover({"--target", target(), "--timeout", "60s"});
    expect(run["state"] == "complete", "discovery: " + run.dump());
    std::vector<std::string> known;
    for (const auto& row : resources({"--target", target(), "--timeout", "60s"})) {
      known.push_back(row["native_id"]);
      expect(row["managed"] == true && row["state"] == "present", "in the inventory: " + row.dump());
    }
    expect(known == there, "the inventory has " + Json(known).dump() + ", the cloud " + Json(there).dump());
    const auto summary = json({"apply", file().string(), "--plan", "--timeout", "60s"})["summary"];
    expect(summary.is_object() && summary.value("unchanged", 0) == 1, "not unchanged: " + summary.dump());
    for (const auto& [action, count] : summary.items()) {
      expect(action == "unchanged" || count == 0, "still planned: " + summary.dump());
    }
    until("all results are acknowledged", [&] { return kept_results() == 0; });
    if (other_ > 0) expect(stop_worker(std::exchange(other_, 0)) == 0, "the other worker did not drain");
    expect(all_alive(), "a process ended by itself");
  }

  /// The state in which the command ends.
  std::string outcome() {
    until("the command ends", kAsk, kSettled + stop_time(), [&] {
      const auto answer = observer_.ask("command", {{"command", command_}, {"brief", true}}, kAnswer);
      return answer.is_object() && answer.contains("finished_at") && answer["finished_at"].is_string();
    });
    const auto command = json({"command", command_, "--timeout", "60s"});
    expect(command["state"] == "complete" || command["state"] == "failed", "the command ended as " + command.dump());
    return command["state"];
  }

  // ---- what can be seen

  /// Listens until `done` holds, looking each `pause`. Throws when it takes too long.
  void until(const std::string& what, std::chrono::milliseconds pause, std::chrono::seconds limit,
             const std::function<bool()>& done) {
    const auto end = steady_clock::now() + limit;
    for (observer_.listen(0ms); !done(); observer_.listen(pause)) {
      if (steady_clock::now() > end) throw std::runtime_error(said("waited in vain until " + what));
    }
  }

  void until(const std::string& what, const std::function<bool()>& done) { until(what, kLook, kMoment, done); }

  [[nodiscard]] bool worker_is(const std::string& state) const {
    const auto answer = observer_.ask("workers", Json::object(), kAnswer);
    if (!answer.is_object() || !answer.contains("items")) return false;
    return std::ranges::any_of(answer["items"], [&](const Json& worker) { return worker["state"] == state; });
  }

  /// First columns of the rows of a query on the fake cloud's books of this point; none before there are books.
  [[nodiscard]] std::vector<std::string> books(const std::string& sql) const {
    return test::books(books_of(*point_), sql);
  }

  /// Results that some worker keeps until a coordinator has them.
  [[nodiscard]] std::size_t kept_results() const {
    std::size_t count = 0;
    for (const char* journal : {"journal", "other-journal"}) {
      if (!std::filesystem::exists(directory() / journal)) continue;
      std::error_code gone;  // files go while we look
      for (std::filesystem::recursive_directory_iterator it(directory() / journal, gone), end; !gone && it != end;
           it.increment(gone)) {
        count += it->path().extension() == ".result" ? 1 : 0;
      }
      if (gone) return 1;  // not all were seen
    }
    return count;
  }

  [[nodiscard]] std::string target() const { return point_->name; }
  [[nodiscard]] std::filesystem::path file() const { return directory() / (target() + ".yaml"); }
  [[nodiscard]] std::string books_of(const Point& point) const {
    return (directory() / (std::string(point.name) + ".db")).string();
  }
  [[nodiscard]] std::string said(const std::string& what) const {
    return (point_ == nullptr ? "" : target() + ": ") + what;
  }
  void expect(bool holds, const std::string& what) {
    if (!holds) failures_.push_back(said(what));
  }

  Way way_;
  Observer observer_{nats.url()};
  const Point* point_ = nullptr;
  std::size_t worker_ = 0, other_ = 0;  // of the second, 0: none
  std::string command_;
  steady_clock::time_point struck_;
  std::vector<std::string> failures_;
};

const std::array<Trial::Point, 7> Trial::kPoints{{{"undispatched", "", &Trial::undispatched},
                                                  {"bus-stopped", "", &Trial::bus_stopped},
                                                  {"in-flight", "", &Trial::in_flight},
                                                  {"begun", "hang_before_ms: 8000", &Trial::begun},
                                                  {"acted", "hang_after_ms: 8000", &Trial::acted},
                                                  {"unread", "hang_after_ms: 8000", &Trial::unread},
                                                  {"unacknowledged", "hang_after_ms: 8000", &Trial::unacknowledged}}};

}  // namespace

TEST_CASE("whoever is killed or stopped, and when: a create makes one object") {
  std::vector<std::future<std::vector<std::string>>> trials;
  trials.reserve(kWays.size());
  for (const auto& way : kWays) {
    trials.push_back(std::async(std::launch::async, [&way] { return Trial(way).run(); }));
  }
  for (std::size_t i = 0; i < kWays.size(); ++i) {
    INFO(kWays[i].name);
    const auto failures = trials[i].get();
    for (const auto& failure : failures) UNSCOPED_INFO(failure);
    CHECK(failures.empty());
  }
}
