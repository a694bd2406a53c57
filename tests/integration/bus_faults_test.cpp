// What goes wrong at the bus around a fleet: an observer that does not read, a worker that is signed out, one that is
// huge.

#include <algorithm>
#include <cstdio>
#include <set>

#include <catch2/catch.hpp>

#include "schema/codec.h"
#include "schema/subjects.h"
#include "support/nats_client.h"
#include "support/parts_fleet.h"
#include "support/raw_client.h"

using namespace muster;
using test::NatsClient;
using test::PartsFleet;
using test::slurp;
using Json = nlohmann::json;

// Once half of max_pending waits for a client, a server holds back who publishes to it, up to a second for each
// message: here some eighty of them, and nothing cuts the client off before. The first run is the measure.
TEST_CASE("an observer that does not read its events holds nobody up") {
  constexpr int kMany = 40'000;
  PartsFleet fleet("max_pending: 18MB\nwrite_deadline: \"10m\"");
  std::string config = "discovery: {interval: 0s}\ntargets:\n";
  for (const std::string target : {"alone", "watched"}) {
    config += "  - {name: " + target +
              ", namespace: FAKE, discover: false, config: {resources: " + std::to_string(kMany) + "}}\n";
  }
  fleet.configure(config);
  fleet.add_worker({"fake"});
  const auto run = [&](const std::string& target) {
    const auto report = fleet.discover({"--target", target, "--timeout", "60s"});
    CHECK(report["state"] == "complete");
    CHECK(report["scans"][0]["new"] == kMany);
    REQUIRE(PartsFleet::eventually([&] {  // all of its events are out
      const auto events = fleet.json({"status"})["events"];
      return events["published"] == events["last"];
    }));
    return report["duration_ms"].get<double>();
  };
  const auto alone = run("alone");
  const test::RawClient stuck(fleet.nats.port());
  stuck.say("SUB muster.event.> 1\r\n");
  const auto watched = run("watched");
  std::printf("%d resources: %.0f ms, with an observer that is stuck %.0f ms\n", kMany, alone, watched);
  CHECK(watched < 2 * alone + 10'000);
  CHECK(slurp(fleet.nats.directory() / "server.log").find("Slow Consumer") == std::string::npos);  // it was there
}

TEST_CASE("a worker of 600 slots uses all of them") {
  constexpr int kSlots = 600, kJobs = 1500;
  PartsFleet fleet;
  fleet.configure(
      "discovery: {interval: 0s}\ntargets:\n  - {name: work, namespace: PACED, discover: false, config: {things: " +
      std::to_string(kJobs) + "}}\n");
  fleet.add_worker({"paced", "--slots", std::to_string(kSlots)},
                   {.environment = {{"PACE_NAME", "huge"}, {"PACE_MS", "10000"}}});  // a heartbeat tells of all
  NatsClient bus(fleet.nats.url());
  bus.listen();
  const auto report = fleet.discover({"--target", "work", "--timeout", "120s"});
  CHECK(report["state"] == "complete");
  std::size_t most = 0;
  for (const auto& message : bus.heard()) {
    const std::string_view all(message);
    if (subject_token(all.substr(0, all.find('\n')), "muster", 0) != "heartbeat") continue;
    const auto beat = decode<Heartbeat>(all.substr(all.find('\n', all.find('\n') + 1) + 1));
    REQUIRE(beat);
    CHECK(beat->running.size() + beat->free_slots == kSlots);
    most = std::max(most, beat->running.size());
  }
  CHECK(most == kSlots);
  std::set<std::string> known;
  for (const auto& row : fleet.resources()) CHECK(known.insert(row["native_id"]).second);
  CHECK(known.size() == kJobs);
  CHECK(fleet.all_alive());
}

TEST_CASE("a worker whose password is changed says so, keeps trying, and comes back") {
  const auto users = [](const std::string& password) {
    return "authorization { users: [{user: fleet, password: f}, {user: worker, password: " + password + "}] }";
  };
  PartsFleet fleet(users("old"), "fleet:f@");
  fleet.configure("discovery: {interval: 0s}\ntargets:\n  - {name: many, namespace: FAKE, config: {resources: 100}}\n");
  PartsFleet::WorkerOptions other;
  other.nats = "nats://worker:old@127.0.0.1:" + std::to_string(fleet.nats.port());
  fleet.add_worker({"fake"}, other);
  REQUIRE(fleet.discover({"--timeout", "60s"})["state"] == "complete");

  const auto said = [&] { return slurp(fleet.directory() / "worker0.err"); };
  const auto refusals = [&] {
    const auto log = said();
    std::size_t count = 0;
    for (auto at = log.find("uthorization"); at != std::string::npos; at = log.find("uthorization", at + 1)) ++count;
    return count;
  };
  fleet.nats.options().config = users("new");
  fleet.nats.reload();
  INFO(fleet.log());
  REQUIRE(PartsFleet::eventually([&] { return refusals() >= 2; }));  // when it lost the bus, and when it was refused
  REQUIRE(PartsFleet::eventually([&] { return fleet.json({"workers"})[0]["state"] == "lost"; }));
  CHECK(fleet.all_alive());
  fleet.nats.options().config = users("old");
  fleet.nats.reload();
  REQUIRE(PartsFleet::eventually([&] { return fleet.json({"workers"})[0]["state"] == "active"; }));
  CHECK(fleet.discover({"--timeout", "60s"})["state"] == "complete");
  CHECK(fleet.all_alive());
  CHECK(said().find("worker:old") == std::string::npos);
}
