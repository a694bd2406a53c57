// The verbs of what the fleet consists of: what is gone is not told as there, and what is wrong is told.
#include <map>

#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"

using namespace muster;
using namespace muster::test;

namespace {

struct FleetFixture : CoordinatorFixture {
  /// What is said of the checks of a status that are not ok, by name.
  static std::map<std::string, std::string> wrong(const Json& status) {
    std::map<std::string, std::string> found;
    for (const auto& check : status["checks"]) {
      if (!check["ok"]) found[check["name"]] = check["message"];
    }
    CHECK(status["state"] == (found.empty() ? "ok" : "degraded"));
    return found;
  }
  std::map<std::string, std::string> wrong() { return wrong(api("status")); }
};

using Checks = std::map<std::string, std::string>;

}  // namespace

TEST_CASE_METHOD(FleetFixture, "a plugin without workers is absent, and its older versions are not told") {
  start_discovered();
  auto newer = manifest;
  newer.version = "2.0.0";
  newer.description = "newer";
  add_worker("w2", newer);
  settle();
  CHECK(api("plugins")["items"].size() == 2);
  CHECK(api("types")["items"].size() == 2);
  remove_worker("w1");
  advance(Millis(5000));
  auto plugins = api("plugins")["items"];
  REQUIRE(plugins.size() == 1);
  CHECK(plugins[0]["version"] == "2.0.0");
  CHECK(plugins[0]["workers"] == 1);
  CHECK(plugins[0]["state"] == "active");
  remove_worker("w2");
  advance(Millis(5000));
  plugins = api("plugins")["items"];
  REQUIRE(plugins.size() == 1);
  CHECK(plugins[0]["workers"] == 0);
  CHECK(plugins[0]["state"] == "absent");
}

TEST_CASE_METHOD(FleetFixture, "a type that only a smaller pool serves can be looked at, described and declared") {
  auto lamps = make_manifest({{"NS::Item", ""}, {"NS::Lamp", ""}});
  lamps.types[1].operations.push_back(Operation::kCreate);
  add_worker("w3", lamps).announcement.pool = "north";
  add_worker("w2");
  add_target("n").pool = "north";
  start_discovered();
  std::map<std::string, Json> types;
  const auto answer = api("types");
  for (const auto& type : answer["items"]) types[type["type"]] = type;
  REQUIRE(types.size() == 3);
  CHECK(types.at("NS::Item")["parent"] == "NS::Box");
  CHECK(types.at("NS::Lamp")["parent"].is_null());
  CHECK(api("schema", {{"type", "NS::Lamp"}})["type"] == "object");
  CHECK(api("discover", {{"types", {"NS::Lamp"}}}).contains("run"));
  finish_runs();
  const Json lamp{{"name", "lamp"}, {"type", "NS::Lamp"}, {"target", "n"}, {"properties", Json::object()}};
  const auto plan = api("plan", {{"stacks", {{{"stack", "s"}, {"resources", {lamp}}}}}});
  CHECK(plan["mistakes"] == Json::array());
  CHECK(plan["steps"].at(0)["action"] == "create");
}

TEST_CASE_METHOD(FleetFixture, "the status says which worker is ill") {
  start_discovered();
  REQUIRE(wrong().empty());
  Heartbeat heartbeat;
  heartbeat.worker = WorkerId("w1");
  heartbeat.ns = "NS";
  heartbeat.healthy = false;
  heartbeat.health = "no route to the database";
  user->publish({Subjects(config.prefix).heartbeat("NS"), {}, encode(heartbeat), {}}).value();
  settle();
  CHECK(wrong() == Checks{{"worker w1", "fake is ill: no route to the database"}});
}

TEST_CASE_METHOD(FleetFixture, "the status says how many messages were dropped") {
  start_discovered();
  for (int i = 0; i < 70'000; ++i) user->publish({Subjects(config.prefix).api("nothing"), {}, "{}", {}}).value();
  settle();
  const auto found = wrong();
  REQUIRE(found.contains("bus"));
  CHECK_THAT(found.at("bus"), Catch::Matches("[0-9]+ messages were dropped"));
}

TEST_CASE_METHOD(FleetFixture, "the status says which target is another system") {
  start_discovered();
  system.inspection.system = "system-2";
  discover();
  CHECK(wrong() == Checks{{"target t", "changed"}});
}

TEST_CASE_METHOD(FleetFixture, "a worker that is lost is not counted, and is not told to drain") {
  start_discovered();
  add_worker("w2");
  settle();
  CHECK(api("status")["workers"] == 2);
  CHECK(api("workers-drain", {{"id", "w2"}})["state"] == "draining");
  remove_worker("w1");
  advance(Millis(5000));
  REQUIRE(api("workers")["items"].at(0)["state"] == "lost");
  CHECK(api("status")["workers"] == 1);
  CHECK(api("workers-drain", {{"id", "w1"}})["error"]["code"] == "CONFLICT");
}

TEST_CASE_METHOD(FleetFixture, "what is not to be looked at is not missed") {
  add_target("other");
  start_discovered();
  REQUIRE(api("status")["targets"] == 2);
  config.targets.back().pool = "nobody's";
  SECTION("a target that nobody wants to be looked at") {
    config.targets.back().discover = false;
    restart();
    finish_runs();
    CHECK(api("status")["targets"] == 2);
  }
  SECTION("a target that has left the configuration") {
    config.targets.pop_back();
    restart();
    finish_runs();
    REQUIRE(api("targets")["items"].size() == 2);
    CHECK(api("status")["targets"] == 1);
  }
  CHECK(wrong().empty());
}
