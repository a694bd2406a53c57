#pragma once

#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/coordinator.h"
#include "support/fake_worker.h"
#include "worker_sdk/testing/fake_clock.h"

namespace muster::test {

/// A coordinator on a bus in memory, scripted workers, and the test as its user. Time stands still but in the members
/// that let it pass. The configuration has one target, `t`, of namespace NS; change it before start().
class CoordinatorFixture {
 public:
  using Json = nlohmann::json;

  CoordinatorFixture();
  ~CoordinatorFixture();

  TargetConfig& add_target(const std::string& name, const std::string& ns = "NS");
  /// A worker that announces itself at the next turn.
  FakeWorker& add_worker(const std::string& id, const Manifest& manifest);
  FakeWorker& add_worker(const std::string& id = "w1") { return add_worker(id, manifest); }
  /// Its process is gone, with all it knew.
  void remove_worker(const std::string& id);

  void start();
  /// The coordinator dies where it stands; what it had not committed is lost.
  void crash();
  void restart() {
    crash();
    start();
  }
  /// A worker, a coordinator, and its first run ended.
  void start_discovered();

  /// Everybody takes what has come, until nothing moves any more. No time passes.
  void settle();
  void advance(Millis by);
  /// Lets time pass until `done`; throws when it is not within `limit`.
  template <typename Condition>
  void wait_until(Condition done, Millis limit = Millis(300'000)) {
    settle();
    for (const auto end = clock.now() + limit; !done();) {
      if (clock.now() >= end) throw std::runtime_error("what was waited for did not come");
      step(end);
    }
  }
  void finish_runs() {
    wait_until([&] { return coordinator->idle(); });
    advance(Millis(500));  // for the last commit and its events
  }

  /// The answer of the coordinator to one request.
  Json api(const std::string& verb, const Json& request = Json::object());
  std::string api_text(const std::string& verb, const std::string& body);
  /// Starts a run and lets it end; its report.
  Json discover(const Json& request = Json::object());
  Json last_report() { return api("runs", {{"limit", 1}})["items"].at(0); }
  static Json scan_of(const Json& report, const std::string& type, const std::string& target = "t");

  /// CloudEvents that an observer got since the last call, of types that begin with `muster.<prefix>`; each id once.
  /// Others are forgotten.
  std::vector<Json> events(const std::string& prefix = "");
  /// `what:native id` of each resource event since the last call, sorted.
  std::vector<std::string> resource_events();

  /// State of a resource as the store has it; `absent` when there is no row.
  std::string state_of(const std::string& type, const std::string& native_id, const std::string& target = "t");
  ResourceRecord row(const std::string& type, const std::string& native_id, const std::string& target = "t");
  /// Native ids that a user sees of a type, sorted.
  std::vector<std::string> listed(const std::string& type);

  FakeClock clock;
  SeededRandom random{1};
  MemoryBroker broker{clock, random};
  Config config;
  Manifest manifest = make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}});
  FakeSystem system;
  std::unique_ptr<Store> store;
  std::unique_ptr<MemoryBus> bus;  // the coordinator's
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<MemoryBus> user;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  /// Every message that an observer got on the event subjects.
  struct EventMessage {
    std::string subject, content_type, id, data;
  };
  std::vector<EventMessage> event_messages;

 private:
  void step(TimePoint end);
  bool listen();

  std::shared_ptr<spdlog::logger> log_;
  SubscriptionId events_ = 0;
  std::size_t events_seen_ = 0;
  std::set<std::string> event_ids_;
  int requests_ = 0;
  std::map<std::string, std::string> answers_;
};

}  // namespace muster::test
