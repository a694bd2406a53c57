// Changes while everything dies: workers, the coordinator, the bus, calls. The fake cloud's own count tells the truth.

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <stop_token>
#include <thread>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/fake_cloud.h"
#include "support/live_fleet.h"

using namespace muster::test;
using Json = nlohmann::json;

namespace {

constexpr int kLayers = 20;  // of the graph that is applied

int wanted() {
  const char* given = std::getenv("MUSTER_APPLY_RESOURCES");
  return given == nullptr ? 120 : std::atoi(given);
}

// More workers than kills of one: who ends five times within a minute is not started again.
struct Storm : LiveFleet {
  Storm()
      : LiveFleet(R"(workers:
  - {plugin: fake, count: 8}
targets:
  - name: cloud
    namespace: FAKE
    config:
      resources: 0
      state: @DIR@/state.db
      latency_ms: 5
      fail:
        create: {before: 0.06, after: 0.06, crash_before: 0.01, crash_after: 0.01}
        update: {before: 0.05, after: 0.05, crash_after: 0.01}
        delete: {before: 0.05, after: 0.05, crash_after: 0.01}
discovery: {interval: 0s}
)") {}
};

}  // namespace

TEST_CASE("no double, no orphan, and each command ends, whatever dies meanwhile") {
  Storm fleet;
  const auto state = (fleet.directory() / "state.db").string();
  fleet.start();
  const int count = wanted();
  const auto file = (fleet.directory() / "big.yaml").string();
  // Some kills in each of three storms: who dies often is started again later and later.
  std::atomic<int> kills_left = 0, kills = 0;
  std::jthread reaper([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      if (kills_left <= 0) continue;
      constexpr const char* kVictims[] = {"muster-plugin-fake", "coordinator", "muster-plugin-fake", "nats-server"};
      if (fleet.kill_one(kVictims[kills_left-- % 4])) ++kills;
    }
  });
  const auto until_complete = [&](const std::vector<std::string>& args) {
    kills_left = 5;
    for (int rounds = 1; rounds <= 30; ++rounds) {
      const auto answer = fleet.muster(args);
      const auto report = Json::parse(answer.out, nullptr, false);
      if (!report.is_object() || !report.contains("state")) continue;  // the coordinator died under the request
      CHECK((report["state"] == "complete" || report["state"] == "failed"));
      for (const auto& result : report["results"]) {
        const auto said = result["state"].get<std::string>();
        CHECK((said == "done" || said == "failed" || said == "blocked"));
      }
      if (report["state"] == "complete") return rounds;
      static_cast<void>(fleet.muster({"discover", "--wait"}));  // it may die under that, too
    }
    return 99;
  };
  std::ofstream(file) << things(count, 1, kLayers);
  CHECK(until_complete({"apply", file, "--yes", "-o", "json", "--timeout", "20s"}) < 30);
  CHECK(doubled(state).empty());
  CHECK(written(state).size() == static_cast<std::size_t>(count));

  std::ofstream(file) << things(count, 2, kLayers);
  CHECK(until_complete({"apply", file, "--yes", "-o", "json", "--timeout", "20s"}) < 30);
  CHECK(books(state, "SELECT name FROM objects WHERE NOT deleted AND json_extract(properties, '$.size') <> 2").empty());

  std::ofstream(file) << things(count / 2, 2, kLayers);
  CHECK(until_complete({"apply", file, "--yes", "-o", "json", "--timeout", "20s"}) < 30);
  CHECK(written(state).size() == static_cast<std::size_t>(count / 2));
  reaper.request_stop();
  reaper.join();
  std::printf("%d kills\n", kills.load());
  CHECK(kills > 0);

  // The inventory knows exactly what there is, and of each which declaration it belongs to.
  REQUIRE(fleet.eventually([&] { return fleet.discover()["state"] == "complete"; }));
  std::set<std::string> managed;
  for (const auto& row : fleet.resources({"--managed"})) managed.insert(row["native_id"]);
  CHECK(managed == written(state));
  CHECK(fleet.json({"apply", file, "--plan"})["summary"]["unchanged"] == count / 2);
  // Each change was made once: nothing was created that some later step had to clean up.
  CHECK(doubled(state).empty());
  const auto commands = fleet.json({"commands"});
  CHECK(commands.size() >= 3);
  for (const auto& each : commands) CHECK(each["finished_at"].is_string());
}
