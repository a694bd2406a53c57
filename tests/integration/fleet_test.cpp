// Whole fleets of real processes: nats-server, coordinator and workers under `muster up`.

#include <algorithm>
#include <fstream>
#include <set>

#include <catch2/catch.hpp>

#include "support/live_fleet.h"

using muster::test::LiveFleet;

namespace {

std::string state_of(const LiveFleet& fleet, const std::string& run) {
  const auto report = fleet.json({"run", run});
  return report.is_object() ? report.value("state", "") : "";
}

std::string newest_run(const LiveFleet& fleet) {
  std::string run;
  LiveFleet::eventually([&] {
    const auto runs = fleet.json({"runs"});
    if (runs.is_array() && !runs.empty()) run = runs[0].value("run", "");
    return !run.empty();
  });
  return run;
}

bool ends(const LiveFleet& fleet, const std::string& run, const std::string& state) {
  return LiveFleet::eventually([&] {
           const auto now = state_of(fleet, run);
           return now == state || now == "complete" || now == "partial" || now == "failed";
         }) &&
         state_of(fleet, run) == state;
}

std::size_t events_of(const LiveFleet& fleet, const std::string& type) {
  std::size_t count = 0;
  for (const auto& event : fleet.json({"events"})) count += event.value("type", "") == type ? 1 : 0;
  return count;
}

void touch(const std::filesystem::path& path) {
  std::ofstream(path) << path.native();
}

}  // namespace

TEST_CASE("a directory tree with odd names is known exactly, and a second run finds nothing new") {
  LiveFleet fleet("");
  const auto root = fleet.directory() / "tree";
  std::filesystem::create_directories(root / "with space" / "deep");
  std::set<std::string> names{root.string(), (root / "with space").string(), (root / "with space" / "deep").string()};
  for (const std::string name :
       {"plain", "two words", "line\nbreak", "\"quoted\"", "it's", "100%", "umlaut-\xC3\xA4"}) {
    touch(root / name);
    names.insert((root / name).string());
  }
  touch(root / "%41");
  names.insert((root / "%2541").string());
  touch(root / "bad-\xFF");
  names.insert((root / "bad-%FF").string());
  std::filesystem::create_symlink("/nowhere", root / "link");
  names.insert((root / "link").string());
  std::ofstream(fleet.directory() / "muster.yaml")
      << "workers: [{plugin: fs, count: 2}]\n"
      << "targets: [{name: tree, namespace: FS, config: {root: \"" << root.string() << "\"}}]\n";
  fleet.start();
  REQUIRE(ends(fleet, newest_run(fleet), "complete"));
  std::set<std::string> found;
  for (const auto& resource : fleet.resources()) {
    CHECK(resource["state"] == "present");
    CHECK(found.insert(resource["native_id"]).second);
  }
  CHECK(found == names);

  const auto discovered = events_of(fleet, "muster.resource.discovered");
  CHECK(discovered == names.size());
  const auto again = fleet.json({"discover", "--wait"});
  REQUIRE(again.value("state", "") == "complete");
  for (const auto& scan : again["scans"]) {
    CHECK(scan["new"] == 0);
    CHECK(scan["changed"] == 0);
    CHECK(scan["unchanged"] == scan["listed"]);
  }
  CHECK(events_of(fleet, "muster.resource.discovered") == discovered);
  CHECK(events_of(fleet, "muster.resource.changed") == 0);

  std::filesystem::remove(root / "plain");
  touch(root / "fresh");
  const auto third = fleet.json({"discover", "--wait"});
  CHECK(third.value("state", "") == "complete");
  CHECK(events_of(fleet, "muster.resource.vanished") == 1);
  CHECK(events_of(fleet, "muster.resource.discovered") == discovered + 1);
  CHECK(fleet.stop() == 0);
}

TEST_CASE("a target is read by the workers of its own pool only") {
  LiveFleet fleet(
      "workers: [{plugin: fake, pool: near}]\n"
      "targets:\n"
      "  - {name: here, namespace: FAKE, pool: near, config: {resources: 10}}\n"
      "  - {name: there, namespace: FAKE, pool: far, config: {resources: 10}}\n");
  fleet.start();
  const auto run = newest_run(fleet);
  REQUIRE(ends(fleet, run, "partial"));
  const auto report = fleet.json({"run", run});
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["code"] == "NO_WORKER");
  CHECK(report["problems"][0]["target"] == "there");
  const auto resources = fleet.resources();
  CHECK(resources.size() == 10);
  for (const auto& resource : resources) CHECK(resource["target"] == "here");
}

TEST_CASE("a run ends by itself and exact though every process is killed in the middle of it") {
  LiveFleet fleet(
      "workers: [{plugin: fake, count: 2}]\n"
      "targets:\n"
      "  - name: cloud\n"
      "    namespace: FAKE\n"
      "    config: {resources: 3000, page: 200, list_properties: false, latency_ms: 250}\n"
      "discovery: {interval: 0s}\n");
  fleet.start();
  const auto run = newest_run(fleet);
  const auto progress = [&](std::uint64_t least) {
    return LiveFleet::eventually([&] {
      const auto report = fleet.json({"run", run});
      if (!report.is_object() || report["scans"].empty()) return false;
      return report["scans"][0]["read"] >= least || report["state"] != "running";
    });
  };
  REQUIRE(progress(64));
  REQUIRE(fleet.kill_one("muster-plugin-fake"));
  REQUIRE(progress(128));
  REQUIRE(fleet.kill_one("nats-server"));
  REQUIRE(progress(256));
  REQUIRE(fleet.kill_one("coordinator"));

  INFO(fleet.log());
  REQUIRE(ends(fleet, run, "complete"));
  const auto resources = fleet.resources();
  std::set<std::string> ids;
  for (const auto& resource : resources) ids.insert(resource["native_id"]);
  CHECK(resources.size() == 3000);
  CHECK(ids.size() == 3000);
  CHECK(events_of(fleet, "muster.resource.discovered") == 3000);
  CHECK(events_of(fleet, "muster.resource.vanished") == 0);
}
