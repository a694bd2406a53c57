// Inventories of fleets whose systems, workers and configurations change.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include <catch2/catch.hpp>

#include "support/nats_client.h"
#include "support/parts_fleet.h"

using muster::test::NatsClient;
using muster::test::NatsServer;
using muster::test::PartsFleet;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

constexpr char kOnlyWhenAsked[] = "discovery: {interval: 0s}\nretry: {attempts: 3, base: 20ms, max: 50ms}\ntargets:\n";

std::string fs_target(const std::string& name, const fs::path& root, const std::string& more = "") {
  return "  - {name: " + name + ", namespace: FS, config: {root: \"" + root.string() + "\"}" + more + "}\n";
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

/// `type native id`, sorted; each once.
Names listed(const PartsFleet& fleet, const std::string& target) {
  Names all;
  for (const auto& row : fleet.resources({"--target", target})) {
    all.push_back(row["type"].get<std::string>() + " " + row["native_id"].get<std::string>());
  }
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
  return all;
}

/// Own id by native id, of one target.
std::map<std::string, std::string> ids(const PartsFleet& fleet, const std::string& target) {
  std::map<std::string, std::string> all;
  for (const auto& row : fleet.resources({"--target", target})) all[row["native_id"]] = row["id"];
  return all;
}

Json scan_of(const Json& report, const std::string& target, const std::string& type) {
  for (const auto& scan : report["scans"]) {
    if (scan["target"] == target && scan["type"] == type) return scan;
  }
  FAIL("no scan of " << target << " " << type << " in " << report.dump(1));
  return {};
}

/// Follows a run until its counts satisfy `done`; false when it ends before.
bool reaches(const PartsFleet& fleet, const std::string& run, const std::function<bool(const Json& scan)>& done) {
  bool reached = false;
  PartsFleet::eventually([&] {
    const auto report = fleet.json({"run", run});
    if (!report.is_object()) return false;
    for (const auto& scan : report["scans"]) reached = reached || done(scan);
    return reached || report["state"] == "complete" || report["state"] == "partial" || report["state"] == "failed";
  });
  return reached;
}

Json report_of(const PartsFleet& fleet, const std::string& run) {
  Json report;
  PartsFleet::eventually([&] {
    report = fleet.json({"run", run});
    return report.is_object() && !report["finished_at"].is_null();
  });
  return report;
}

}  // namespace

TEST_CASE("a stream with its consumers deleted and a file edited: those events and no other") {
  PartsFleet fleet;
  NatsClient nats(fleet.nats.url());
  for (const std::string stream : {"ORDERS", "BILLS"}) {
    nats.add_stream(stream);
    for (const std::string consumer : {"one", "two", "three"}) nats.add_consumer(stream, consumer);
  }
  const auto tree = fleet.directory() / "tree";
  fs::create_directories(tree / "sub");
  write(tree / "edited", "before");
  write(tree / "sub" / "other", "stays");
  fleet.configure(kOnlyWhenAsked + std::string("  - {name: bus, namespace: NATS}\n") + fs_target("tree", tree));
  fleet.add_worker({"nats"});
  fleet.add_worker({"fs"});
  REQUIRE(fleet.discover()["state"] == "complete");
  CHECK(listed(fleet, "bus") == Names{"NATS::Consumer BILLS.one", "NATS::Consumer BILLS.three",
                                      "NATS::Consumer BILLS.two", "NATS::Consumer ORDERS.one",
                                      "NATS::Consumer ORDERS.three", "NATS::Consumer ORDERS.two", "NATS::Stream BILLS",
                                      "NATS::Stream ORDERS"});
  const auto edited = "tree/FS::File/" + (tree / "edited").string();
  const auto before = fleet.json({"resource", edited});

  const auto since = fleet.last_event();
  nats.api("STREAM.DELETE.ORDERS");
  write(tree / "edited", "afterwards");
  REQUIRE(fleet.discover()["state"] == "complete");
  CHECK(fleet.resource_events(since) == Names{"changed FS::File " + (tree / "edited").string(),
                                              "vanished NATS::Consumer ORDERS.one",
                                              "vanished NATS::Consumer ORDERS.three",
                                              "vanished NATS::Consumer ORDERS.two", "vanished NATS::Stream ORDERS"});
  for (const auto& event : fleet.events(since, "resource.vanished")) {
    CHECK(event["data"]["reason"] == (event["data"]["type"] == "NATS::Stream" ? "vanished" : "parent"));
  }
  const auto patch = fleet.events(since, "resource.changed").at(0)["data"]["patch"];
  CHECK(before["properties"].patch(patch) == fleet.json({"resource", edited})["properties"]);
  CHECK(listed(fleet, "bus").size() == 4);
}

TEST_CASE("below a directory that cannot be read nothing is judged") {
  PartsFleet fleet;
  const bool root = geteuid() == 0;
  if (root) {  // nothing is closed to root: the worker is somebody else
    REQUIRE(chmod(fleet.directory().c_str(), 0755) == 0);
    const auto try_it = fleet.directory() / "nobody.out";
    if (muster::test::wait_for(muster::test::spawn(
            {{muster::test::built("muster-plugin-fs"), "--version"}, {}, try_it, try_it, true})) != 0) {
      WARN("skipped: the user nobody cannot run what was built");
      return;
    }
  }
  const auto tree = fleet.directory() / "tree";
  const auto closed = tree / "closed";
  fs::create_directories(closed / "deep");
  write(closed / "hidden", "x");
  write(closed / "deep" / "hidden", "x");
  write(tree / "open", "x");
  fleet.configure(kOnlyWhenAsked + fs_target("tree", tree));
  fleet.add_worker({"fs"}, {.as_nobody = root});
  REQUIRE(fleet.discover()["state"] == "complete");
  const auto all = listed(fleet, "tree");
  REQUIRE(all.size() == 6);

  auto since = fleet.last_event();
  fs::remove(closed / "hidden");  // who could know
  fs::remove(tree / "open");
  write(tree / "fresh", "x");
  REQUIRE(chmod(closed.c_str(), 0) == 0);
  const auto blind = fleet.discover();
  REQUIRE(chmod(closed.c_str(), 0755) == 0);
  INFO(blind.dump(1));
  CHECK(blind["state"] == "partial");
  CHECK(scan_of(blind, "tree", "FS::File")["complete"] == false);
  REQUIRE_FALSE(blind["problems"].empty());
  for (const auto& problem : blind["problems"]) {
    CHECK(problem["code"] == "ACCESS_DENIED");
    CHECK_THAT(problem["message"].get<std::string>(), Catch::Contains(closed.string()));
  }
  // Only a complete listing proves absence, of `open` too.
  CHECK(fleet.resource_events(since) ==
        Names{"changed FS::Directory " + closed.string(), "discovered FS::File " + (tree / "fresh").string()});
  for (const auto& row : fleet.resources({"--target", "tree"})) {
    const auto id = row["native_id"].get<std::string>();
    INFO(id);
    CHECK(row["state"] == (id.starts_with(closed.string() + "/") || id.ends_with("open") ? "stale" : "present"));
  }

  since = fleet.last_event();
  CHECK(fleet.discover()["state"] == "complete");
  CHECK(fleet.resource_events(since) == Names{"changed FS::Directory " + closed.string(),
                                              "vanished FS::File " + (closed / "hidden").string(),
                                              "vanished FS::File " + (tree / "open").string()});
  for (const auto& row : fleet.resources({"--target", "tree"})) CHECK(row["state"] == "present");
}

TEST_CASE("a target without workers is reported, and looked at as soon as one is there") {
  PartsFleet fleet;
  const auto tree = fleet.directory() / "tree";
  fs::create_directories(tree);
  fleet.configure(kOnlyWhenAsked + fs_target("tree", tree) +
                  "  - {name: cloud, namespace: FAKE, config: {resources: 20}, discover: false}\n");
  fleet.add_worker({"fs"});
  REQUIRE(fleet.discover()["state"] == "complete");

  const auto alone = fleet.discover({"--target", "cloud", "--target", "tree"});
  INFO(alone.dump(1));
  CHECK(alone["state"] == "partial");
  REQUIRE(alone["problems"].size() == 1);
  CHECK(alone["problems"][0]["code"] == "NO_WORKER");
  CHECK(alone["problems"][0]["target"] == "cloud");
  CHECK(scan_of(alone, "tree", "FS::Directory")["complete"] == true);
  CHECK(listed(fleet, "cloud").empty());

  const auto worker = fleet.add_worker({"fake"});
  CHECK(fleet.discover({"--target", "cloud"})["state"] == "complete");
  CHECK(listed(fleet, "cloud").size() == 20);

  CHECK(fleet.stop_worker(worker) == 0);
  const auto since = fleet.last_event();
  const auto again = fleet.discover({"--target", "cloud"});
  CHECK(again["state"] == "partial");
  CHECK(again["problems"][0]["code"] == "NO_WORKER");
  CHECK(scan_of(again, "cloud", "FAKE::Cloud::Thing0")["complete"] == false);
  CHECK(fleet.resource_events(since).empty());
  CHECK(fleet.resources({"--target", "cloud", "--state", "stale"}).size() == 20);
}

TEST_CASE("a target that is named while another run waits is looked at at once") {
  PartsFleet fleet;
  fleet.configure(kOnlyWhenAsked + std::string("  - {name: slow, namespace: FAKE, config: {resources: 60, page: 1, "
                                               "latency_ms: 250}}\n"
                                               "  - {name: hidden, namespace: FAKE, config: {}, discover: false}\n"));
  fleet.add_worker({"fake", "--slots", "1"});
  const auto running = fleet.json({"discover"})["run"].get<std::string>();
  REQUIRE(reaches(fleet, running, [](const Json& scan) { return scan["listed"] > 0; }));
  const auto follows = fleet.json({"discover"})["run"];
  const auto merged = fleet.json({"discover", "--target", "slow"})["run"];
  CHECK(follows == merged);
  CHECK(follows != running);
  const auto beside = fleet.json({"discover", "--target", "hidden"})["run"];
  CHECK(beside != follows);
  const auto quick = report_of(fleet, beside);
  CHECK(quick["state"] == "complete");
  CHECK(scan_of(quick, "hidden", "FAKE::Cloud::Thing0")["listed"] == 100);
  const auto report = report_of(fleet, merged);
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "slow", "FAKE::Cloud::Thing0")["listed"] == 60);
}

TEST_CASE("workers come and go in the middle of a run, and its end is exact") {
  PartsFleet fleet;
  constexpr int kThings = 1500;
  fleet.configure(
      kOnlyWhenAsked +
      std::string("  - name: cloud\n    namespace: FAKE\n    discover: false\n    config: {resources: 1500, "
                  "page: 100, list_properties: false, latency_ms: 300}\n"));
  std::vector<std::size_t> workers{fleet.add_worker({"fake", "--slots", "2"})};
  const auto run = fleet.json({"discover", "--target", "cloud"})["run"].get<std::string>();
  const auto reads = [&](int least) {
    return reaches(fleet, run, [&](const Json& scan) { return scan["read"] >= least; });
  };
  REQUIRE(reads(100));
  for (int i = 0; i < 3; ++i) workers.push_back(fleet.start_worker({"fake", "--slots", "2"}));
  REQUIRE(PartsFleet::eventually([&] { return fleet.json({"workers"}).size() == workers.size(); }));
  REQUIRE(reads(400));
  for (int i = 0; i < 3; ++i) fleet.drain_worker(workers[i]);
  const auto report = report_of(fleet, run);
  INFO(report.dump(1));
  CHECK(report["state"] == "complete");
  const auto scan = scan_of(report, "cloud", "FAKE::Cloud::Thing0");
  CHECK(scan["listed"] == kThings);
  CHECK(scan["read"] == kThings);
  CHECK(scan["new"] == kThings);
  CHECK(listed(fleet, "cloud").size() == kThings);
  CHECK(fleet.resource_events(0).size() == kThings);
  for (int i = 0; i < 3; ++i) CHECK(fleet.wait_worker(workers[i]) == 0);
}

TEST_CASE("two targets with the same native ids stay apart") {
  PartsFleet fleet;
  NatsServer second({.config = "", .user = "", .password = "", .jetstream = true});
  NatsClient here(fleet.nats.url()), there(second.url());
  for (auto* nats : {&here, &there}) {
    nats->add_stream("ORDERS");
    nats->add_consumer("ORDERS", "one");
  }
  fleet.configure(kOnlyWhenAsked + std::string("  - {name: here, namespace: NATS}\n") +
                  "  - {name: there, namespace: NATS, config: {url: \"" + second.url() + "\"}}\n");
  fleet.add_worker({"nats"});
  REQUIRE(fleet.discover()["state"] == "complete");
  const Names both{"NATS::Consumer ORDERS.one", "NATS::Stream ORDERS"};
  CHECK(listed(fleet, "here") == both);
  CHECK(listed(fleet, "there") == both);
  const auto ids_here = ids(fleet, "here"), ids_there = ids(fleet, "there");
  CHECK(ids_here.at("ORDERS") != ids_there.at("ORDERS"));

  const auto since = fleet.last_event();
  there.api("STREAM.DELETE.ORDERS");
  REQUIRE(fleet.discover()["state"] == "complete");
  CHECK(fleet.resource_events(since) == Names{"vanished NATS::Consumer ORDERS.one", "vanished NATS::Stream ORDERS"});
  for (const auto& event : fleet.events(since, "resource.*")) CHECK(event["data"]["target"] == "there");
  CHECK(listed(fleet, "here") == both);
  CHECK(ids(fleet, "here") == ids_here);
  CHECK(listed(fleet, "there").empty());
}

TEST_CASE("what a new filter excludes leaves, and comes back with the filter gone") {
  PartsFleet fleet;
  const auto tree = fleet.directory() / "tree";
  fs::create_directories(tree / "cache" / "deep");
  for (const std::string file : {"a.log", "b.log", "kept", "cache/in", "cache/deep/in"}) write(tree / file, "x");
  fleet.configure(kOnlyWhenAsked + fs_target("tree", tree));
  fleet.add_worker({"fs"});
  REQUIRE(fleet.discover()["state"] == "complete");
  const auto all = listed(fleet, "tree");
  const auto all_ids = ids(fleet, "tree");
  REQUIRE(all.size() == 8);

  auto since = fleet.last_event();
  fleet.configure(
      kOnlyWhenAsked +
      fs_target("tree", tree,
                ", filters: [{types: [FS::File], action: exclude, conditions: [{property: {path: \"$.path\", "
                "op: regex, value: \"[.]log$\"}}]}, {types: [FS::Directory], action: exclude, conditions: "
                "[{property: {path: \"$.path\", op: regex, value: \"/cache$\"}}]}]"));
  const auto filtered = fleet.discover();
  INFO(filtered.dump(1));
  CHECK(filtered["state"] == "complete");
  CHECK(listed(fleet, "tree") == Names{"FS::Directory " + tree.string(), "FS::File " + (tree / "kept").string()});
  const auto at = [&](const std::string& what, const std::string& file) { return what + (tree / file).string(); };
  CHECK(fleet.resource_events(since) ==
        Names{at("filtered FS::Directory ", "cache"), at("filtered FS::Directory ", "cache/deep"),
              at("filtered FS::File ", "a.log"), at("filtered FS::File ", "b.log"),
              at("filtered FS::File ", "cache/deep/in"), at("filtered FS::File ", "cache/in")});
  CHECK(scan_of(filtered, "tree", "FS::File")["filtered"] >= 2);
  CHECK(scan_of(filtered, "tree", "FS::File")["missing"] == 0);
  CHECK(fleet.events(since, "target.*").empty());  // other filters make no other target

  since = fleet.last_event();
  CHECK(fleet.discover()["state"] == "complete");
  CHECK(fleet.resource_events(since).empty());

  fleet.configure(kOnlyWhenAsked + fs_target("tree", tree));
  CHECK(fleet.discover()["state"] == "complete");
  CHECK(listed(fleet, "tree") == all);
  const auto back = ids(fleet, "tree");
  CHECK(back.at((tree / "kept").string()) == all_ids.at((tree / "kept").string()));
  CHECK(fleet.events(since, "resource.vanished").empty());
  CHECK(fleet.events(since, "resource.changed").empty());
  CHECK(fleet.events(since, "resource.*").size() == 6);
}

TEST_CASE("a run in the middle of an upgrade works with one edition of the plugin") {
  PartsFleet fleet;
  fleet.configure(kOnlyWhenAsked +
                  std::string("  - {name: shop, namespace: EDITION, config: {latency_ms: 20}, discover: false}\n"));
  const auto old = fleet.add_worker({"edition", "--slots", "2"}, {.environment = {{"EDITION", "1"}}});
  const auto check = [&](const Json& report) {
    INFO(report.dump(1));
    CHECK(report["state"] == "complete");
    CHECK(report["problems"].empty());
    const bool has_new = report["scans"].size() == 2;
    for (const auto& scan : report["scans"]) CHECK(scan["listed"] == 60);
    std::set<std::string> editions;
    for (const auto& row : fleet.resources({"--type", "EDITION::Old"})) {
      editions.insert(row["properties"]["edition"].get<std::string>());
    }
    CHECK(editions == std::set<std::string>{has_new ? "2" : "1"});
    return has_new;
  };
  CHECK_FALSE(check(fleet.discover({"--target", "shop"})));

  const auto fresh = fleet.add_worker({"edition", "--slots", "2"}, {.environment = {{"EDITION", "2"}}});
  CHECK(fleet.json({"plugins"}).size() == 2);
  for (int i = 0; i < 3; ++i) check(fleet.discover({"--target", "shop"}));

  CHECK(fleet.stop_worker(old) == 0);
  CHECK(check(fleet.discover({"--target", "shop"})));
  CHECK(listed(fleet, "shop").size() == 120);

  // The way back: a type that the older edition does not know is not judged by it.
  const auto since = fleet.last_event();
  fleet.add_worker({"edition"}, {.environment = {{"EDITION", "1"}}});
  CHECK(fleet.stop_worker(fresh) == 0);
  CHECK_FALSE(check(fleet.discover({"--target", "shop"})));
  CHECK(fleet.events(since, "resource.vanished").empty());
  CHECK(fleet.resources({"--type", "EDITION::New"}).size() == 60);
}
