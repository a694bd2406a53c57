// Everything is killed and stopped at random while a fleet changes and discovers. MUSTER_FAULT_SEED repeats the choices
// of a storm, MUSTER_FAULT_SECONDS makes it longer.

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include <catch2/catch.hpp>

#include "support/fake_cloud.h"
#include "support/parts_fleet.h"
#include "support/postgres_client.h"
#include "support/postgres_server.h"

using namespace muster::test;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using std::chrono::steady_clock;

namespace {

constexpr int kThings = 40;
constexpr std::size_t kWide = 800, kFakeWorkers = 3;

long number(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atol(text);
}

std::set<std::string> set_of(const std::vector<std::string>& list) {
  return {list.begin(), list.end()};
}

class Storm : public PartsFleet {
 public:
  explicit Storm(unsigned seed) : random_(seed) {
    postgres_sql("CREATE SCHEMA load");
    configure(
        "discovery: {interval: 0s}\nretry: {attempts: 20, base: 50ms, max: 1s}\ntargets:\n"
        "  - {name: cloud, namespace: FAKE, config: {resources: 0, latency_ms: 50, state: " +
        state() +
        "}}\n"
        "  - {name: wide, namespace: FAKE, config: {resources: " +
        std::to_string(kWide) +
        ", page: 50, list_properties: false, latency_ms: 100}}\n"
        "  - {name: db, namespace: PG, config: {dsn: \"" +
        postgres_.dsn() + "\"}}\n");
    for (std::size_t i = 0; i < kFakeWorkers; ++i) workers_.push_back(add_worker({"fake", "--slots", "2"}));
    workers_.push_back(add_worker({"postgres"}));
  }

  void rage(std::chrono::seconds time) {
    for (const auto end = steady_clock::now() + time; steady_clock::now() < end;) {
      work();
      strike();
      std::this_thread::sleep_for(std::chrono::milliseconds(below(900)));
    }
  }

  /// When all are there again, what is known becomes what there is, and everything that was begun has ended.
  void settle() {
    REQUIRE(eventually([&] {
      const bool applied = reap(apply_), discovered = reap(discover_);
      return applied && discovered;
    }));
    std::ofstream(stack()) << things(kThings, 9);
    REQUIRE(eventually([&] {
      const auto answer = json({"apply", stack(), "--yes", "--timeout", "60s"});
      return answer.is_object() && answer.value("state", "") == "complete";
    }));
    REQUIRE(eventually([&] { return json({"discover", "--wait", "--timeout", "60s"})["state"] == "complete"; }));
    CHECK(doubled(state()).empty());
    CHECK(written(state()).size() == static_cast<std::size_t>(kThings));
    CHECK(known({"--managed"}) == written(state()));
    CHECK(known({"--target", "wide"}).size() == kWide);
    CHECK(known({"--target", "db", "--type", "PG::Table"}) ==
          set_of(postgres_sql("SELECT 'postgres.load.' || tablename FROM pg_tables WHERE schemaname = 'load'")));
    CHECK(json({"apply", stack(), "--plan", "--timeout", "60s"})["summary"]["unchanged"] == kThings);
    for (const char* list : {"commands", "runs"}) {
      INFO(list);
      const auto all = json({list});
      REQUIRE_FALSE(all.empty());
      for (const auto& each : all) CHECK(each["finished_at"].is_string());
    }
    CHECK(all_alive());
    std::printf("%d strikes, %d applies, %d discoveries, %d tables\n", strikes_, applies_, discoveries_, tables_);
  }

 private:
  [[nodiscard]] unsigned below(unsigned limit) {
    return std::uniform_int_distribution<unsigned>(0, limit - 1)(random_);
  }

  /// Someone is killed and comes back, or stands still for a while.
  void strike() {
    const auto time = std::chrono::milliseconds(below(2500));
    const bool kill = below(2) == 0;
    const auto worker = below(static_cast<unsigned>(workers_.size()));
    const auto hit = [&](const char* who, const std::function<void()>& down, const std::function<void()>& up) {
      std::printf("  %s %s for %d ms\n", who, kill ? "killed" : "stopped", static_cast<int>(time.count()));
      ++strikes_;
      down();
      std::this_thread::sleep_for(time);
      up();
    };
    switch (below(5)) {
      case 0:
        return hit(
            "coordinator", [&] { kill ? kill_coordinator() : pause_coordinator(); },
            [&] { kill ? start_coordinator() : resume_coordinator(); });
      case 1:
        return hit(
            "nats-server", [&] { kill ? nats.kill() : nats.pause(); }, [&] { kill ? nats.start() : nats.resume(); });
      case 2:
        return hit(
            "postgres", [&] { kill ? postgres_.kill() : postgres_.pause(); },
            [&] { kill ? postgres_.start() : postgres_.resume(); });
      default:
        return hit(
            worker < kFakeWorkers ? "fake worker" : "postgres worker",
            [&] { kill ? kill_worker(workers_[worker]) : pause_worker(workers_[worker]); },
            [&] {
              if (!kill) return resume_worker(workers_[worker]);
              workers_[worker] =
                  start_worker(worker < kFakeWorkers ? Words{"fake", "--slots", "2"} : Words{"postgres"});
            });
    }
  }

  /// There is always an apply and a discovery under way, and the database grows.
  void work() {
    if (reap(apply_)) {
      std::ofstream(stack()) << things(kThings / 2 * (1 + applies_ % 2), applies_);
      ++applies_;
      apply_ = begin({"apply", stack(), "--yes", "-o", "json", "--timeout", "5s"});
    }
    if (reap(discover_)) {
      ++discoveries_;
      discover_ = begin({"discover", "--wait", "-o", "json", "--timeout", "5s"});
    }
    postgres_sql("CREATE TABLE load.t" + std::to_string(tables_++) + " (id int)");
  }

  /// Whether the task has ended, or never begun.
  bool reap(Task& task) {
    if (task.process <= 0) return true;
    siginfo_t how{};
    ::waitid(P_PID, static_cast<id_t>(task.process), &how, WEXITED | WNOHANG | WNOWAIT);
    if (how.si_pid == 0) return false;
    static_cast<void>(finish(std::exchange(task, {})));
    return true;
  }

  [[nodiscard]] std::set<std::string> known(const std::vector<std::string>& which) const {
    std::set<std::string> ids;
    for (const auto& row : resources(which)) CHECK(ids.insert(row["native_id"]).second);
    return ids;
  }
  std::vector<std::string> postgres_sql(const std::string& sql) const {
    return PostgresClient(postgres_.dsn()).run(sql);
  }
  [[nodiscard]] std::string state() const { return (directory() / "state.db").string(); }
  [[nodiscard]] std::string stack() const { return (directory() / "stack.yaml").string(); }

  using Words = std::vector<std::string>;
  std::mt19937 random_;
  PostgresServer postgres_;
  std::vector<std::size_t> workers_;
  Task apply_, discover_;
  int strikes_ = 0, applies_ = 0, discoveries_ = 0, tables_ = 0;
};

}  // namespace

TEST_CASE("whoever is killed or stopped under mixed load, nothing is lost, doubled or left hanging") {
  const auto seed = static_cast<unsigned>(number("MUSTER_FAULT_SEED", std::random_device{}() % 1'000'000));
  std::printf("MUSTER_FAULT_SEED=%u\n", seed);
  Storm storm(seed);
  storm.rage(std::chrono::seconds(number("MUSTER_FAULT_SECONDS", 15)));
  INFO(storm.log());
  storm.settle();
}
