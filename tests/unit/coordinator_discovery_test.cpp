// Runs over a system that answers: what is listed, read and stored, what an unchanged or changed system writes, what is
// judged missing, and what the report says of it.
#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"

using namespace muster;
using test::CoordinatorFixture;
using Strings = std::vector<std::string>;

namespace {

struct DiscoveryFixture : CoordinatorFixture {
  DiscoveryFixture() {
    system.add("NS::Box", {.id = "a", .properties = R"({"name":"A","size":1})"});
    system.add("NS::Box", {.id = "b", .properties = R"({"name":"B","size":2})"});
    system.add("NS::Box", {.id = "c", .properties = R"({"name":"C","size":3})"});
    system.add("NS::Item", {.id = "a1", .properties = R"({"n":1})", .parent = "a"});
    system.add("NS::Item", {.id = "a2", .properties = R"({"n":2})", .parent = "a"});
    system.add("NS::Item", {.id = "c1", .properties = R"({"n":3})", .parent = "c"});
  }
  static Json counts(const Json& scan) {
    auto numbers = Json::object();
    for (const auto* key : {"listed", "read", "filtered", "new", "changed", "unchanged", "missing", "errors"}) {
      if (scan.at(key) != 0) numbers[key] = scan.at(key);
    }
    return numbers;
  }
};

}  // namespace

TEST_CASE_METHOD(DiscoveryFixture, "the first run waits for workers, at most ten seconds") {
  start();
  const auto began = clock.now();
  SECTION("and begins as soon as there is one") {
    advance(Millis(3000));
    CHECK(last_report()["state"] == "queued");
    add_worker();
    settle();
    finish_runs();
    CHECK(clock.now() - began < Millis(5000));
    CHECK(last_report()["state"] == "complete");
  }
  SECTION("and then begins without them") {
    advance(Millis(9800));
    CHECK(last_report()["state"] == "queued");
    advance(Millis(500));
    CHECK(last_report()["state"] != "queued");
    finish_runs();
    const auto report = last_report();
    CHECK(report["state"] == "partial");
    REQUIRE(report["problems"].size() == 1);
    CHECK(report["problems"][0]["code"] == "NO_WORKER");
    CHECK(report["problems"][0]["target"] == "t");
  }
  SECTION("also for those that the configuration names") {
    crash();
    config.workers.push_back({.plugin = "fake", .count = 2});
    add_worker("w1");
    start();
    advance(Millis(2000));
    CHECK(last_report()["state"] == "queued");
    add_worker("w2");
    finish_runs();
    CHECK(last_report()["state"] == "complete");
  }
}

TEST_CASE_METHOD(DiscoveryFixture, "a run finds every object on every page, below every parent") {
  system.page = 1;
  start_discovered();
  const auto report = last_report();
  CHECK(report["state"] == "complete");
  CHECK(report["trigger"] == "start");
  CHECK(report["problems"].empty());
  REQUIRE(report["scans"].size() == 2);
  CHECK(counts(scan_of(report, "NS::Box")) == Json{{"listed", 3}, {"read", 3}, {"new", 3}});
  CHECK(counts(scan_of(report, "NS::Item")) == Json{{"listed", 3}, {"read", 3}, {"new", 3}});
  for (const auto& scan : report["scans"]) CHECK(scan["complete"] == true);
  CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
  CHECK(listed("NS::Item") == Strings{"a1", "a2", "c1"});
  CHECK(row("NS::Box", "a").properties == R"({"name":"A","size":1})");
  CHECK(row("NS::Box", "a").parent_type.empty());
  CHECK(row("NS::Item", "c1").parent_type == "NS::Box");
  CHECK(row("NS::Item", "c1").parent_native_id == "c");
  CHECK(resource_events() ==
        Strings{"discovered:a", "discovered:a1", "discovered:a2", "discovered:b", "discovered:c", "discovered:c1"});
}

TEST_CASE_METHOD(DiscoveryFixture, "a run says when it starts and how it ended") {
  start_discovered();
  const auto run = last_report()["run"];
  const auto seen = events("run.");
  REQUIRE(seen.size() >= 2);
  CHECK(seen.front()["type"] == "muster.run.started");
  CHECK(seen.back()["type"] == "muster.run.finished");
  CHECK(seen.back()["subject"] == run);
  CHECK(seen.back()["data"]["state"] == "complete");
  CHECK(seen.back()["data"]["new"] == 6);
}

TEST_CASE_METHOD(DiscoveryFixture, "jobs carry what a worker needs") {
  manifest.types[1].parent_parameters = {{"box", "name"}, {"none", "absent"}};
  manifest.types[1].page_size = 7;
  config.targets[0].config = {R"({"root":"/x"})", {}};
  auto& worker = add_worker();
  start();
  finish_runs();
  const auto lists = worker.asked<ListJob>();
  REQUIRE(lists.size() >= 4);
  for (const auto& job : worker.jobs) {
    CHECK(job.fleet == store->fleet());
    CHECK(job.target.name == "t");
    CHECK(job.target.config.json == R"({"root":"/x"})");
    CHECK(job.manifest == worker.announcement.manifest);
    CHECK(job.priority == Priority::kDiscovery);
  }
  std::map<std::string, std::string> parameters;
  for (const auto& job : lists) {
    const auto& parent = std::get<ListJob>(job.operation).parent;
    CHECK(parent.has_value() == (job.type == "NS::Item"));
    if (parent) parameters[parent->native_id] = parent->parameters;
    if (parent) CHECK(parent->type == "NS::Box");
    CHECK(std::get<ListJob>(job.operation).page_size == (parent ? 7 : 1000));
  }
  CHECK(parameters ==
        std::map<std::string, std::string>{{"a", R"({"box":"A"})"}, {"b", R"({"box":"B"})"}, {"c", R"({"box":"C"})"}});
  CHECK(worker.asked<InspectJob>().size() == 1);
}

TEST_CASE_METHOD(DiscoveryFixture, "ids are read in batches, and not at all where the list gives properties") {
  SECTION("batches") {
    manifest.types[0].read_batch = 2;
    auto& worker = add_worker();
    start();
    finish_runs();
    for (const auto& job : worker.asked<ReadJob>()) {
      if (job.type == "NS::Box") CHECK(std::get<ReadJob>(job.operation).native_ids.size() <= 2);
    }
    CHECK(listed("NS::Box").size() == 3);
  }
  SECTION("properties") {
    system.list_properties = true;
    auto& worker = add_worker();
    start();
    finish_runs();
    CHECK(worker.asked<ReadJob>().empty());
    CHECK(row("NS::Item", "c1").properties == R"({"n":3})");
    CHECK(counts(scan_of(last_report(), "NS::Box")) == Json{{"listed", 3}, {"new", 3}});
  }
}

TEST_CASE_METHOD(DiscoveryFixture, "labels have a bound, also where no query makes them") {
  const std::string id(1000, 'x');
  system.add("NS::Box", {.id = id});
  manifest.label_query = GENERATE("", "$.name");
  start_discovered();
  CHECK(row("NS::Box", id).label == id.substr(0, 256));
  system.thing("NS::Box", id).properties = R"({"size":4})";
  discover();
  CHECK(row("NS::Box", id).label == id.substr(0, 256));
}

TEST_CASE_METHOD(DiscoveryFixture, "labels come from the plugin's query, and fall back to the native id") {
  manifest.label_query = "$.name";
  start_discovered();
  CHECK(row("NS::Box", "a").label == "A");
  CHECK(row("NS::Item", "a1").label == "a1");
  system.thing("NS::Box", "a").properties = R"({"name":"Alpha"})";
  discover();
  CHECK(row("NS::Box", "a").label == "Alpha");
}

TEST_CASE_METHOD(DiscoveryFixture, "an unchanged system writes no event and no version") {
  system.list_properties = GENERATE(false, true);
  start_discovered();
  events();
  const auto seen = row("NS::Box", "a").last_seen;
  advance(Millis(60'000));
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(report["trigger"] == "user");
  CHECK(counts(scan_of(report, "NS::Box")).at("unchanged") == 3);
  CHECK_FALSE(counts(scan_of(report, "NS::Box")).contains("new"));
  CHECK(resource_events().empty());
  const auto box = row("NS::Box", "a");
  CHECK(box.version == 1);
  CHECK(box.last_seen > seen);
  CHECK(store->history(box.row).value().size() == 1);
}

TEST_CASE_METHOD(DiscoveryFixture, "the same value in another spelling is no change") {
  start_discovered();
  events();
  system.thing("NS::Box", "a").properties = "{ \"size\" : 1,\n \"name\" : \"\\u0041\" }";
  const auto report = discover();
  CHECK(counts(scan_of(report, "NS::Box")).at("unchanged") == 3);
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(DiscoveryFixture, "a change is one version more, a patch in the history, and an event") {
  start_discovered();
  events();
  system.thing("NS::Box", "b").properties = R"({"name":"B","size":20})";
  const auto report = discover();
  CHECK(counts(scan_of(report, "NS::Box")) == Json{{"listed", 3}, {"read", 3}, {"changed", 1}, {"unchanged", 2}});
  const auto box = row("NS::Box", "b");
  CHECK(box.version == 2);
  CHECK(box.properties == R"({"name":"B","size":20})");
  const auto history = store->history(box.row).value();
  REQUIRE(history.size() == 2);
  CHECK(history[1].cause == "changed");
  const auto patch = Json::parse(history[1].patch);
  CHECK(Json::parse(R"({"name":"B","size":2})").patch(patch) == Json::parse(box.properties));
  const auto seen = events("resource.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["type"] == "muster.resource.changed");
  CHECK(seen[0]["subject"] == box.id.value);
  CHECK(seen[0]["data"]["target"] == "t");
  CHECK(seen[0]["data"]["type"] == "NS::Box");
  CHECK(seen[0]["data"]["native_id"] == "b");
  CHECK(seen[0]["data"]["patch"] == patch);
}

TEST_CASE_METHOD(DiscoveryFixture, "a patch that is too large for an event is left out, and the event says so") {
  start_discovered();
  events();
  system.thing("NS::Box", "b").properties = Json{{"text", std::string(100'000, 'x')}}.dump();
  discover();
  const auto seen = events("resource.changed");
  REQUIRE(seen.size() == 1);
  CHECK_FALSE(seen[0]["data"].contains("patch"));
  CHECK(seen[0]["data"]["patch_left_out"] == true);
  CHECK(store->history(row("NS::Box", "b").row).value().back().patch.size() > 100'000);
}

TEST_CASE_METHOD(DiscoveryFixture, "a missing object is recorded as vanished once a read says that it is gone") {
  start_discovered();
  events();
  workers[0]->jobs.clear();
  system.remove("NS::Box", "b");
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(counts(scan_of(report, "NS::Box")).at("missing") == 1);
  CHECK(state_of("NS::Box", "b") == "vanished");
  CHECK(listed("NS::Box") == Strings{"a", "c"});
  CHECK(resource_events() == Strings{"vanished:b"});
  CHECK(workers[0]->asked<ReadJob>().back().operation == JobOperation(ReadJob{{"b"}}));
  CHECK(resource_events().empty());
  discover();
  CHECK(resource_events().empty());  // it vanishes once
}

TEST_CASE_METHOD(DiscoveryFixture, "an object that is not listed but can be read stays") {
  start_discovered();
  events();
  const auto hidden = system.thing("NS::Box", "b");
  workers[0]->on_job = [&](const Job& job) -> test::FakeWorker::Behaviour {
    if (job.type != "NS::Box" || !std::holds_alternative<ListJob>(job.operation)) return {};
    return JobResult(ListResult{{{"a", "", {}}, {"c", "", {}}}, {}, {}, 0});
  };
  discover();
  CHECK(state_of("NS::Box", "b") == "present");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(DiscoveryFixture, "an object that is not listed and cannot be read is stale: unknown is not gone") {
  start_discovered();
  events();
  workers[0]->on_job = [&](const Job& job) -> test::FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids != Strings{"b"}) return {};
    return JobResult(ReadResult{{Error{Errc::kAccessDenied, "no", {}, 0}}});
  };
  system.remove("NS::Box", "b");
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(report["problems"][0]["code"] == "ACCESS_DENIED");
  CHECK(state_of("NS::Box", "b") == "stale");
  CHECK(resource_events().empty());
  workers[0]->on_job = nullptr;
  discover();
  CHECK(state_of("NS::Box", "b") == "vanished");
}

TEST_CASE_METHOD(DiscoveryFixture, "what is not listed is read as often as any job is tried, and no more") {
  config.retry = {3, Millis(10), Millis(50)};
  start_discovered();
  system.remove("NS::Box", "b");
  std::size_t reads = 0;
  workers[0]->on_job = [&](const Job& job) -> test::FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids != Strings{"b"}) return {};
    ++reads;
    return JobResult(Error{Errc::kServiceUnavailable, "not now", {}, 0});
  };
  CHECK(discover()["state"] == "partial");
  CHECK(reads == 3);
}

TEST_CASE_METHOD(DiscoveryFixture, "contained children vanish with their parent") {
  start_discovered();
  events();
  system.remove("NS::Box", "a");
  system.remove("NS::Item", "a1");
  system.remove("NS::Item", "a2");
  const auto report = discover();
  CHECK(counts(scan_of(report, "NS::Box")).at("missing") == 1);
  CHECK(counts(scan_of(report, "NS::Item")).at("missing") == 2);
  for (const auto& event : events("resource.")) {
    CHECK(event["type"] == "muster.resource.vanished");
    CHECK(event["data"]["reason"] == (event["data"]["native_id"] == "a" ? "vanished" : "parent"));
  }
  CHECK(state_of("NS::Item", "a1") == "vanished");
  CHECK(store->history(row("NS::Item", "a1").row).value().back().cause == "parent");
  CHECK(listed("NS::Item") == Strings{"c1"});
}

TEST_CASE_METHOD(DiscoveryFixture, "a child that is not contained is judged by a read of its own") {
  manifest.types[1].contained = false;
  start_discovered();
  events();
  system.remove("NS::Box", "a");
  system.remove("NS::Item", "a2");  // a1 is still there, below nothing
  discover();
  CHECK(resource_events() == Strings{"vanished:a", "vanished:a2"});
  CHECK(state_of("NS::Item", "a1") == "present");
}

TEST_CASE_METHOD(DiscoveryFixture, "a child that is not contained is judged by no run that does not look at it") {
  manifest.types[1].contained = false;
  start_discovered();
  events();
  system.remove("NS::Box", "a");
  system.remove("NS::Item", "a2");
  discover({{"types", {"NS::Box"}}});
  CHECK(resource_events() == Strings{"vanished:a"});
  discover();
  CHECK(resource_events() == Strings{"vanished:a2"});
  CHECK(state_of("NS::Item", "a1") == "present");
}

TEST_CASE_METHOD(DiscoveryFixture, "an object that moved below another parent has not vanished") {
  start_discovered();
  events();
  SECTION("whose old parent is there") {
    system.thing("NS::Item", "a1").parent = "b";
  }
  SECTION("whose old parent is gone") {
    system.thing("NS::Item", "a1").parent = "b";
    system.remove("NS::Item", "a2");
    system.remove("NS::Box", "a");
  }
  discover();
  CHECK(state_of("NS::Item", "a1") == "present");
  CHECK(row("NS::Item", "a1").parent_native_id == "b");
  for (const auto& event : events("resource.")) CHECK(event["data"]["native_id"] != "a1");
}

TEST_CASE_METHOD(DiscoveryFixture, "what came back is the same resource, with its history") {
  start_discovered();
  const auto id = row("NS::Box", "b").id;
  const auto thing = system.thing("NS::Box", "b");
  system.remove("NS::Box", "b");
  discover();
  system.add("NS::Box", thing);
  events();
  discover();
  CHECK(resource_events() == Strings{"discovered:b"});
  CHECK(row("NS::Box", "b").id == id);
  CHECK(state_of("NS::Box", "b") == "present");
  CHECK(row("NS::Box", "b").version > 1);
}

TEST_CASE_METHOD(DiscoveryFixture, "a type that is its own parent is walked as a tree") {
  manifest = test::make_manifest({{"NS::Dir", "NS::Dir"}});
  for (const auto* path : {"/", "/a", "/a/b", "/a/b/c", "/d"}) {
    const std::string text = path;
    const auto slash = text.rfind('/');
    system.add("NS::Dir", {.id = text, .parent = text == "/" ? "" : slash == 0 ? "/" : text.substr(0, slash)});
  }
  start_discovered();
  CHECK(listed("NS::Dir").size() == 5);
  CHECK(row("NS::Dir", "/a/b/c").parent_native_id == "/a/b");
  events();
  for (const auto* path : {"/a", "/a/b", "/a/b/c"}) system.remove("NS::Dir", path);
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(counts(scan_of(report, "NS::Dir")).at("missing") == 3);
  CHECK(listed("NS::Dir") == Strings{"/", "/d"});
}

TEST_CASE_METHOD(DiscoveryFixture, "what is asked for while a run waits is taken in by that, which is said") {
  start_discovered();
  workers[0]->on_job = [](const Job&) { return test::FakeWorker::Hold{}; };
  const auto running = api("discover"), waiting = api("discover"), taken_in = api("discover");
  CHECK(running["merged"] == false);
  CHECK(waiting["merged"] == false);
  CHECK(waiting["run"] != running["run"]);
  CHECK(taken_in["merged"] == true);
  CHECK(taken_in["run"] == waiting["run"]);
}

TEST_CASE_METHOD(DiscoveryFixture, "a type that nobody has ever served is not looked for") {
  start_discovered();
  CHECK(api("discover", {{"types", {"NOBODY::Thing"}}})["error"]["code"] == "NOT_FOUND");
  CHECK(api("discover", {{"types", {"NS::Nothing"}}})["error"]["code"] == "NOT_FOUND");
}
