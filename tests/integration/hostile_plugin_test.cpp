// Plugins that do everything they must not: the fleet goes on, each run ends by itself and says who did what.

#include <algorithm>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "support/live_fleet.h"

using muster::test::LiveFleet;
using Json = nlohmann::json;

namespace {

using Ids = std::set<std::string>;

/// What is known in the end of a target of which the plugin behaves so.
struct Case {
  std::string behaviour;
  Ids known;                      // native ids
  std::set<std::string> codes{};  // that problems may have; empty: there is none
  std::string pool = "default";
};

const std::set<std::string> kBroken{"CONTRACT", "INTERNAL_FAILURE"};

const std::vector<Case> kCases{
    {"good", {"good"}},
    {"threads", {"good"}},
    {"stdout", {"good"}},
    {"stdout-closed", {"good"}},
    {"changing-ids", {}},
    {"broken-json", {"good"}, kBroken},
    {"deep-json", {"good"}, {"CONTRACT", "INTERNAL_FAILURE", "LIMIT"}},
    {"array", {}, kBroken},
    {"not-utf8", {}, kBroken},
    {"huge", {"good"}, {"LIMIT"}},
    {"no-id", {}, kBroken},
    {"long-id", {}, {"CONTRACT", "INTERNAL_FAILURE", "LIMIT"}},
    {"id-not-utf8", {}, kBroken},
    {"twice-in-page", {}, {"CONTRACT", "INTERNAL_FAILURE", "DUPLICATE_ID"}},
    {"twice-across-pages", {"a", "b", "c"}, {"DUPLICATE_ID"}},
    {"no-read", {}, kBroken},
    {"read-other", {}, kBroken},
    {"read-throws", {}, {"INTERNAL_FAILURE"}},
    {"long-message", {}, {"ACCESS_DENIED"}},
    {"unknown-code", {}, {"INTERNAL_FAILURE"}},
    {"endless-pages", {"good"}, {"CONTRACT"}},
    {"same-token", {"a", "b"}, {"CONTRACT"}},
    {"long-token", {}, {"CONTRACT", "INTERNAL_FAILURE", "LIMIT"}},
    {"throw", {}, {"INTERNAL_FAILURE"}},
    {"throw-int", {}, {"INTERNAL_FAILURE"}},
    {"inspect-throws", {}, {"INTERNAL_FAILURE"}},
    {"inspect-type", {}, kBroken},
    {"inspect-filter", {}, {"CONTRACT", "INTERNAL_FAILURE", "INVALID_REQUEST"}},
    {"hang", {}, {"TIMEOUT"}, "hang"},
    {"exit", {}, {"INTERNAL_FAILURE", "TIMEOUT"}, "exit"},
    {"abort", {}, {"INTERNAL_FAILURE", "TIMEOUT"}, "abort"},
    {"late-abort", {}, {"INTERNAL_FAILURE", "TIMEOUT"}, "late-abort"},
};

/// One worker for what only answers wrongly, one for each attack on the process; and a healthy target of another
/// plugin.
std::string fleet_of(const std::vector<Case>& cases, const std::string& limits) {
  std::string workers = "  - {plugin: fake}\n  - {plugin: hostile}\n";
  std::string targets = "  - {name: healthy, namespace: FAKE, config: {resources: 200, page: 20}, discover: false}\n";
  for (const auto& one : cases) {
    if (one.pool != "default") workers += "  - {plugin: hostile, slots: 1, pool: " + one.pool + "}\n";
    targets += "  - {name: " + one.behaviour + ", namespace: HOSTILE, pool: " + one.pool +
               ", config: {behaviour: " + one.behaviour + "}, discover: false}\n";
  }
  return "discovery: {interval: 0s}\nretry: {attempts: 3, base: 20ms, max: 100ms}\nlimits: {" + limits +
         "}\nworkers:\n" + workers + "targets:\n" + targets;
}

/// The run of the start is over; it had nothing to look at.
bool idle(const LiveFleet& fleet) {
  return LiveFleet::eventually([&] {
    const auto runs = fleet.json({"runs"});
    return !runs.empty() && !runs[0]["finished_at"].is_null();
  });
}

std::vector<std::string> named(const std::vector<Case>& cases) {
  std::vector<std::string> words{"--target", "healthy"};
  for (const auto& one : cases) words.insert(words.end(), {"--target", one.behaviour});
  return words;
}

std::vector<Json> of_target(const Json& list, const std::string& target) {
  std::vector<Json> found;
  for (const auto& one : list) {
    if (one["target"] == target) found.push_back(one);
  }
  return found;
}

void check_healthy(const Json& report) {
  const auto scans = of_target(report["scans"], "healthy");
  REQUIRE(scans.size() == 1);
  CHECK(scans[0]["complete"] == true);
  CHECK(scans[0]["listed"] == 200);
  CHECK(of_target(report["problems"], "healthy").empty());
}

Ids known(const LiveFleet& fleet, const std::string& target) {
  Ids ids;
  for (const auto& row : fleet.resources({"--target", target})) {
    CHECK(row["properties"].is_object());
    CHECK(ids.insert(row["native_id"]).second);
  }
  return ids;
}

/// Who did it stands in each problem.
void check_named(const Json& problem) {
  INFO(problem.dump().substr(0, 500));
  const bool inspection = problem["target"].get<std::string>().starts_with("inspect-");
  if (!inspection) CHECK(problem["type"] == "HOSTILE::Thing");
  CHECK_THAT(problem.value("plugin", ""), Catch::StartsWith("hostile"));
  CHECK_FALSE(problem.value("job", "").empty());
  CHECK(problem["message"].get<std::string>().size() <= 8 * 1024);
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

}  // namespace

TEST_CASE("whatever plugin code does, the fleet goes on and the run ends with a word of it") {
  LiveFleet fleet(fleet_of(kCases, "job_deadline: 15s"));
  fleet.start();
  REQUIRE(idle(fleet));
  const auto report = fleet.discover(named(kCases));
  CHECK(report["state"] == "partial");
  check_healthy(report);
  for (const auto& one : kCases) {
    INFO(one.behaviour);
    const auto problems = of_target(report["problems"], one.behaviour);
    CHECK(problems.empty() == one.codes.empty());
    for (const auto& problem : problems) {
      CAPTURE(problem["code"]);
      CHECK(one.codes.count(problem["code"]) == 1);
      check_named(problem);
    }
    for (const auto& scan : of_target(report["scans"], one.behaviour)) CHECK(scan["complete"] == one.codes.empty());
    CHECK(known(fleet, one.behaviour) == one.known);
  }
  for (const auto& event : fleet.events(0)) CHECK(event.dump().size() <= 64 * 1024);

  // A job takes three workers with it at most, and one more where a word of it came too late to count; they are
  // started again, as is the one that hangs.
  const auto deaths = fleet.log();
  CHECK(count(deaths, "killed by signal 6") <= 2 * (3 + 1));
  CHECK(count(deaths, "exited with status") <= 3 + 1);
  CHECK(LiveFleet::eventually([&] { return fleet.log().find("every slot is stuck") != std::string::npos; }));
  CHECK(LiveFleet::eventually([&] {
    std::set<std::string> pools;
    for (const auto& worker : fleet.json({"workers"})) {
      if (worker["state"] == "active")
        pools.insert(worker["namespace"].get<std::string>() + "/" + worker["pool"].get<std::string>());
    }
    return pools.size() == 6;
  }));

  const auto again = fleet.discover({"--target", "healthy", "--target", "good", "--target", "threads", "--target",
                                     "stdout", "--target", "throw", "--target", "twice-across-pages"});
  CHECK(again["state"] == "partial");
  check_healthy(again);
  for (const auto& scan : again["scans"]) {
    CHECK(scan["new"] == 0);
    CHECK(scan["changed"] == 0);
    CHECK(scan["missing"] == 0);
  }
  CHECK(fleet.muster({"status"}).status == 0);
  CHECK(muster::test::slurp(fleet.directory() / "up.out").find("HOSTILE") == std::string::npos);
  CHECK(fleet.stop() == 0);
  CHECK(fleet.log().find("worker hostile: does not stop") == std::string::npos);
}

TEST_CASE("a listing without an end ends with its run") {
  const std::vector<Case> cases{{"endless-things", {}, {"TIMEOUT"}}, {"good", {"good"}}};
  LiveFleet fleet(fleet_of(cases, "run_deadline: 20s"));
  fleet.start();
  REQUIRE(idle(fleet));
  const auto since = fleet.last_event();
  for (int i = 0; i < 2; ++i) {
    const auto report = fleet.discover(named(cases));
    INFO(report.dump(1));
    CHECK(report["state"] == "partial");
    check_healthy(report);
    const auto problems = of_target(report["problems"], "endless-things");
    REQUIRE_FALSE(problems.empty());
    for (const auto& problem : problems) CHECK(problem["code"] == "TIMEOUT");
    CHECK(of_target(report["scans"], "endless-things").at(0)["complete"] == false);
    CHECK(of_target(report["scans"], "good").at(0)["complete"] == true);
  }
  CHECK_FALSE(known(fleet, "endless-things").empty());
  CHECK(fleet.events(since, "resource.vanished").empty());
  CHECK(fleet.stop() == 0);
}
