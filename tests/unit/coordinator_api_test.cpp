// muster.api.<verb>: the JSON that the command line and other clients are written against.
#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "coordinator/event_log.h"
#include "support/coordinator_fixture.h"

using namespace muster;
using test::CoordinatorFixture;
using Strings = std::vector<std::string>;
using Catch::Contains;
using Catch::Matches;

namespace {

constexpr const char* kTime = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)";

struct ApiFixture : CoordinatorFixture {
  ApiFixture() {
    manifest.label_query = "$.name";
    system.add("NS::Box", {.id = "a", .properties = R"({"name":"Alpha"})", .uid = "u-a"});
    system.add("NS::Box", {.id = "b", .properties = R"({"name":"Beta"})"});
    system.add("NS::Item", {.id = "a1", .properties = R"({"n":1})", .parent = "a"});
  }
  Json item(const std::string& verb, const Json& request = Json::object()) { return api(verb, request)["items"].at(0); }
  Strings ids(const Json& request) {
    Strings found;
    const auto answer = api("resources", request);
    for (const auto& one : answer.at("items")) found.push_back(one.at("native_id"));
    std::ranges::sort(found);
    return found;
  }
  std::string refused(const std::string& verb, const Json& request = Json::object()) {
    const auto answer = api(verb, request);
    if (!answer.contains("error")) return "";
    const auto& error = answer["error"];
    CHECK_FALSE(error.at("message").get<std::string>().empty());
    CHECK(error.at("where").is_string());
    CHECK(answer.size() == 1);
    return error.at("code");
  }
  static void has_keys(const Json& object, const std::set<std::string>& keys) {
    for (const auto& key : keys) {
      INFO(key << " in " << object.dump());
      CHECK(object.contains(key));
    }
  }
};

}  // namespace

TEST_CASE_METHOD(ApiFixture, "a resource is shown with every field of the contract") {
  start_discovered();
  const auto child = item("resources", {{"type", "NS::Item"}});
  for (const auto* key :
       {"id", "target", "type", "native_id", "label", "state", "first_seen", "last_seen", "changed_at"}) {
    CHECK(child.at(key).is_string());
  }
  CHECK(child["target"] == "t");
  CHECK(child["type"] == "NS::Item");
  CHECK(child["native_id"] == "a1");
  CHECK(child["uid"].is_null());
  CHECK(child["label"] == "a1");
  CHECK(child["managed"] == false);
  CHECK(child["stack"].is_null());
  CHECK(child["state"] == "present");
  CHECK(child["drifted"] == false);
  CHECK(child["properties"] == Json{{"n", 1}});
  CHECK(child["parent"] == Json{{"type", "NS::Box"}, {"native_id", "a"}});
  CHECK(child["version"] == 1);
  for (const auto* key : {"first_seen", "last_seen", "changed_at"})
    CHECK_THAT(child[key].get<std::string>(), Matches(kTime));
  const auto box = api("resource", {{"target", "t"}, {"type", "NS::Box"}, {"native_id", "a"}});
  CHECK(box["uid"] == "u-a");
  CHECK(box["label"] == "Alpha");
  CHECK(box["parent"].is_null());
}

TEST_CASE_METHOD(ApiFixture, "resources are chosen by text, target, type and state") {
  add_target("u");
  start_discovered();
  CHECK(ids({{"target", "t"}}) == Strings{"a", "a1", "b"});
  CHECK(ids({{"target", "t"}, {"type", "NS::Box"}}) == Strings{"a", "b"});
  CHECK(ids({{"text", "ALPH"}, {"target", "u"}}) == Strings{"a"});
  CHECK(ids({{"text", "a1"}, {"target", "u"}}) == Strings{"a1"});
  CHECK(ids({{"managed", true}}).empty());
  CHECK(ids({{"managed", false}}).size() == 6);
  CHECK(ids({{"drifted", true}}).empty());
  system.remove("NS::Box", "b");
  discover({{"targets", {"t"}}});
  CHECK(ids({{"target", "t"}}) == Strings{"a", "a1"});
  CHECK(ids({{"target", "t"}, {"state", "vanished"}}) == Strings{"b"});
}

TEST_CASE_METHOD(ApiFixture, "a list is read page by page with its cursor") {
  for (int i = 0; i < 25; ++i) system.add("NS::Box", {.id = "box" + std::to_string(i)});
  start_discovered();
  Strings all;
  Json cursor;
  int pages = 0;
  do {
    Json request{{"limit", 10}};
    if (!cursor.is_null()) request["cursor"] = cursor;
    const auto answer = api("resources", request);
    CHECK(answer["items"].size() <= 10);
    for (const auto& one : answer["items"]) all.push_back(one["native_id"]);
    cursor = answer.at("next");
    REQUIRE(++pages < 10);
  } while (!cursor.is_null());
  CHECK(all.size() == 28);
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == 28);
}

TEST_CASE_METHOD(ApiFixture, "a page of large resources fits a message") {
  for (int i = 0; i < 20; ++i) {
    system.add("NS::Box",
               {.id = "large" + std::to_string(i), .properties = Json{{"x", std::string(200'000, 'x')}}.dump()});
  }
  manifest.types[0].read_batch = 2;
  start_discovered();
  std::size_t seen = 0;
  Json request = Json::object();
  for (int pages = 0; pages < 30; ++pages) {
    const auto answer = api("resources", request);
    REQUIRE_FALSE(answer.contains("error"));
    CHECK(answer.dump().size() < 1 << 20);
    seen += answer["items"].size();
    if (answer["next"].is_null()) break;
    request["cursor"] = answer["next"];
  }
  CHECK(seen == 23);
}

TEST_CASE_METHOD(ApiFixture, "one resource is found by id and by name, with history and as it was") {
  start_discovered();
  const auto then = clock.wall();
  advance(Millis(60'000));
  system.thing("NS::Box", "a").properties = R"({"name":"Alef"})";
  discover();
  const auto by_name = api("resource", {{"target", "t"}, {"type", "NS::Box"}, {"native_id", "a"}, {"history", true}});
  const auto by_id = api("resource", {{"id", by_name["id"]}, {"history", true}});
  CHECK(by_id == by_name);
  CHECK(by_id["properties"] == Json{{"name", "Alef"}});
  CHECK(by_id["version"] == 2);
  REQUIRE(by_id["history"].size() == 2);
  for (const auto& entry : by_id["history"]) {
    has_keys(entry, {"version", "at", "cause", "patch"});
    CHECK_THAT(entry["at"].get<std::string>(), Matches(kTime));
    CHECK(entry["patch"].is_array());
  }
  CHECK(by_id["history"][0]["version"] == 1);
  CHECK(by_id["history"][0]["cause"] == "discovered");
  CHECK(by_id["history"][1]["cause"] == "changed");
  CHECK_FALSE(api("resource", {{"id", by_name["id"]}}).contains("history"));
  const auto old = api("resource", {{"id", by_name["id"]}, {"at", rfc3339(then)}});
  CHECK(old["properties"] == Json{{"name", "Alpha"}});
  CHECK(old["version"] == 1);
  CHECK(old["changed_at"] == old["first_seen"]);
  CHECK(old["last_seen"] <= rfc3339(then));
  const auto changed = clock.wall();
  advance(Millis(60'000));
  system.remove("NS::Box", "a");
  discover();
  const auto gone = api("resource", {{"id", by_name["id"]}});
  CHECK(gone["state"] == "vanished");
  const auto before = api("resource", {{"id", by_name["id"]}, {"at", rfc3339(changed)}});
  CHECK(before["state"] == "present");
  CHECK(before["version"] == 2);
  CHECK(refused("resource", {{"id", by_name["id"]}, {"at", "1999-01-01T00:00:00Z"}}) == "NOT_FOUND");
  CHECK(refused("resource", {{"id", by_name["id"]}, {"at", "yesterday"}}) == "INVALID_REQUEST");
  CHECK(refused("resource", {{"id", 7}}) == "INVALID_REQUEST");
  const auto unnamed = api("resource")["error"]["message"].get<std::string>();
  CHECK(unnamed == "id must be given, or target, type and native_id");
}

TEST_CASE_METHOD(ApiFixture, "a history that no message holds comes in pages") {
  start_discovered();
  const std::string much(100'000, 'x');
  for (int i = 0; i < 20; ++i) {
    system.thing("NS::Box", "a").properties = Json{{"text", much + std::to_string(i)}}.dump();
    discover();
  }
  Json request{{"target", "t"}, {"type", "NS::Box"}, {"native_id", "a"}, {"history", true}};
  Json history = Json::array();
  int pages = 0;
  for (Json next = ""; !next.is_null() && pages < 20; ++pages) {
    const auto text = api_text("resource", (request["api"] = 1, request.dump()));
    CHECK(text.size() < 1'000'000);
    const auto answer = Json::parse(text);
    CHECK(answer["native_id"] == "a");
    for (const auto& entry : answer["history"]) history.push_back(entry);
    next = answer.value("next", Json());
    request["cursor"] = next;
  }
  CHECK(pages > 1);
  REQUIRE(history.size() == 21);
  for (std::size_t i = 0; i < history.size(); ++i) CHECK(history[i]["version"] == i + 1);
  request["cursor"] = "x";
  CHECK(api("resource", request)["error"]["code"] == "INVALID_REQUEST");
}

TEST_CASE_METHOD(ApiFixture, "a history tells of a change that is too long for a message, and leaves its patch out") {
  start_discovered();
  const auto known = row("NS::Box", "a");
  const auto patch = [](std::size_t size) {
    return Json::array({{{"op", "test"}, {"path", ""}, {"value", std::string(size, 'x')}}}).dump();
  };
  for (const std::size_t size : {250'000, 300'000, 10}) {
    store->change(known.row, "{}", hash128("{}"), "a", "u-a", patch(size), clock.wall()).value();
  }
  store->commit().value();
  const auto history = api("resource", {{"id", known.id.value}, {"history", true}})["history"];
  REQUIRE(history.size() == 4);
  for (const std::size_t version : {2, 4}) {
    CHECK(history[version - 1]["patch"].is_array());
    CHECK_FALSE(history[version - 1].contains("patch_left_out"));
  }
  CHECK(history[2]["version"] == 3);
  CHECK(history[2]["patch"].is_null());
  CHECK(history[2].value("patch_left_out", false));
}

TEST_CASE_METHOD(ApiFixture, "what was at a time is one version, also where the clock was set back") {
  start_discovered();
  const auto change = [&](int size) {
    system.thing("NS::Box", "a").properties = Json{{"size", size}}.dump();
    discover();
  };
  change(1);
  const auto before = clock.wall();
  clock.set_wall(before - Millis(3'600'000));
  change(2);
  const auto then =
      api("resource", {{"target", "t"}, {"type", "NS::Box"}, {"native_id", "a"}, {"at", rfc3339(before)}});
  CHECK(then["properties"]["size"] == 2);
  CHECK(then["version"] == 3);
  change(3);
  const auto same = api("resource", {{"id", then["id"]}, {"at", rfc3339(before)}});
  CHECK(same["properties"]["size"] == 3);
  CHECK(same["version"] == 4);
}

TEST_CASE_METHOD(ApiFixture, "at the very time of a version that version is shown") {
  start_discovered();
  for (int i = 0; i < 2; ++i) {
    advance(Millis(60'000));
    system.thing("NS::Box", "a").properties = Json{{"size", i}}.dump();
    discover();
  }
  const auto id = row("NS::Box", "a").id.value;
  const auto history = api("resource", {{"id", id}, {"history", true}})["history"];
  REQUIRE(history.size() == 3);
  for (const auto& entry : history) {
    const auto then = api("resource", {{"id", id}, {"at", entry["at"]}});
    CHECK(then["version"] == entry["version"]);
    CHECK(then["changed_at"] == entry["at"]);
  }
}

TEST_CASE_METHOD(ApiFixture, "what is stale is stale at a time since its last version, too") {
  start_discovered();
  remove_worker("w1");
  advance(Millis(60'000));
  discover();
  const auto now = api("resource", {{"target", "t"}, {"type", "NS::Box"}, {"native_id", "a"}});
  REQUIRE(now["state"] == "stale");
  CHECK(api("resource", {{"id", now["id"]}, {"at", rfc3339(clock.wall())}})["state"] == "stale");
}

TEST_CASE_METHOD(ApiFixture, "at a time when it was gone, what is managed was missing, and other things had vanished") {
  start_discovered();
  const std::string cause = GENERATE("vanished", "parent", "deleted", "replaced");
  const bool managed = GENERATE(true, false);
  CAPTURE(cause, managed);
  const auto known = row("NS::Box", "a");
  if (managed) store->manage(known.row, {"shop", "a", "{}"}).value();
  clock.advance(Millis(1000));
  const auto state = managed ? ResourceState::kMissing : ResourceState::kVanished;
  store->leave(known.row, state, cause, clock.wall()).value();
  store->commit().value();
  const auto gone = rfc3339(clock.wall());
  clock.advance(Millis(1000));
  discover();
  REQUIRE(api("resource", {{"id", known.id.value}})["state"] == "present");
  store->change(known.row, "{}", hash128("{}"), "a", "u-a", "[]", clock.wall()).value();
  CHECK(api("resource", {{"id", known.id.value}, {"at", gone}})["state"] == (managed ? "missing" : "vanished"));
}

TEST_CASE_METHOD(ApiFixture, "the newest run is told first, also where the clock was set back") {
  start_discovered();
  clock.set_wall(clock.wall() - Millis(3'600'000));
  const auto newest = api("discover")["run"];
  finish_runs();
  CHECK(last_report()["run"] == newest);
}

TEST_CASE_METHOD(ApiFixture, "targets, workers, plugins and types are shown with every field of the contract") {
  start_discovered();
  const auto target = item("targets");
  has_keys(target, {"name", "namespace", "pool", "system", "state", "last_run", "resources"});
  CHECK(target["name"] == "t");
  CHECK(target["namespace"] == "NS");
  CHECK(target["pool"] == "default");
  CHECK(target["system"] == "system-1");
  CHECK(target["state"] == "active");
  CHECK(target["last_run"] == last_report()["run"]);
  CHECK(target["resources"] == 3);

  const auto worker = item("workers");
  has_keys(worker,
           {"id", "namespace", "pool", "plugin", "version", "host", "pid", "slots", "free", "jobs", "state", "since"});
  CHECK(worker["id"] == "w1");
  CHECK(worker["plugin"] == "fake");
  CHECK(worker["version"] == "1.0.0");
  CHECK(worker["host"] == "host");
  CHECK(worker["pid"] == 42);
  CHECK(worker["slots"] == 4);
  CHECK(worker["free"] == 4);
  CHECK(worker["jobs"] == 0);
  CHECK(worker["state"] == "active");
  CHECK_THAT(worker["since"].get<std::string>(), Matches(kTime));

  const auto plugin = item("plugins");
  has_keys(plugin, {"namespace", "plugin", "version", "manifest", "types", "workers", "state"});
  CHECK(plugin["manifest"] == workers[0]->announcement.manifest);
  CHECK(plugin["types"] == Json{"NS::Box", "NS::Item"});
  CHECK(plugin["workers"] == 1);

  CHECK(api("plugins", {{"namespace", "NS"}})["items"] == Json{plugin});
  const auto unknown = api("plugins", {{"namespace", "NOPE"}})["error"];
  CHECK(unknown["code"] == "NOT_FOUND");
  CHECK(unknown["message"] == "no plugin serves namespace 'NOPE': `muster plugins` lists them");

  const auto types = api("types", {{"namespace", "NS"}})["items"];
  REQUIRE(types.size() == 2);
  CHECK(types[1]["type"] == "NS::Item");
  CHECK(types[1]["parent"] == "NS::Box");
  CHECK(types[1]["operations"] == Json{"list", "read"});
  CHECK(api("types")["items"] == types);
  CHECK(api("schema", {{"type", "NS::Box"}}) == Json{{"type", "object"}});
}

TEST_CASE_METHOD(ApiFixture, "the statistics of the coordinator name the last error") {
  start();
  const auto asks = broker.connect("asks");
  asks->subscribe_answers(asks->inbox()).value();
  const auto endpoint = [&] {
    asks->publish({"$SRV.STATS.muster-coordinator", asks->inbox(), "", {}}).value();
    std::vector<Message> answers;
    wait_until([&] { return asks->receive(answers, 1) == 1; });
    return Json::parse(answers.at(0).data)["endpoints"][0];
  };
  CHECK(endpoint()["last_error"] == "");
  api("run", {{"run", "R"}});
  api("status");
  const auto stats = endpoint();
  CHECK(stats["num_requests"] == 2);
  CHECK(stats["num_errors"] == 1);
  CHECK(stats["last_error"] == "no run R: `muster runs` lists them");
}

TEST_CASE_METHOD(ApiFixture, "a run is shown with every field of the contract, whatever its state") {
  start();
  auto run = item("runs");
  const std::set<std::string> keys{"run",      "state",   "duration_ms", "scans",
                                   "problems", "trigger", "started_at",  "finished_at"};
  has_keys(run, keys);
  CHECK(run["state"] == "queued");
  auto& worker = add_worker();
  worker.on_job = [](const Job& job) -> test::FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation)) return test::FakeWorker::Hold{};
    return {};
  };
  advance(Millis(1500));
  run = api("run", {{"run", run["run"]}});
  has_keys(run, keys);
  CHECK(run["state"] == "running");
  CHECK(run["finished_at"].is_null());
  CHECK_THAT(run["started_at"].get<std::string>(), Matches(kTime));
  worker.on_job = nullptr;
  worker.release();
  finish_runs();
  run = api("run", {{"run", run["run"]}});
  has_keys(run, keys);
  CHECK(run["state"] == "complete");
  CHECK(run["trigger"] == "start");
  CHECK(run["duration_ms"].get<int>() >= 1000);
  CHECK_THAT(run["finished_at"].get<std::string>(), Matches(kTime));
  REQUIRE(run["scans"].size() == 2);
  for (const auto& scan : run["scans"]) {
    has_keys(scan, {"target", "type", "listed", "read", "filtered", "new", "changed", "unchanged", "missing", "errors",
                    "complete"});
  }
  remove_worker("w1");
  advance(Millis(5000));
  const auto partial = discover();
  for (const auto& problem : partial["problems"]) has_keys(problem, {"target", "type", "code", "message"});
}

TEST_CASE_METHOD(ApiFixture, "runs are listed newest first, page by page") {
  start_discovered();
  Strings made;
  for (int i = 0; i < 5; ++i) made.push_back(discover()["run"]);
  const auto first = api("runs", {{"limit", 3}});
  REQUIRE(first["items"].size() == 3);
  CHECK(first["items"][0]["run"] == made[4]);
  CHECK(first["items"][2]["run"] == made[2]);
  const auto second = api("runs", {{"limit", 3}, {"cursor", first["next"]}});
  REQUIRE(second["items"].size() == 3);
  CHECK(second["items"][0]["run"] == made[1]);
}

TEST_CASE_METHOD(ApiFixture, "events are read from a sequence or a time on, without a gap") {
  start_discovered();
  const auto all = api("events");
  REQUIRE(all["items"].size() >= 5);
  for (std::size_t i = 0; i < all["items"].size(); ++i) {
    const auto& event = all["items"][i];
    has_keys(event, {"specversion", "id", "source", "type", "subject", "time", "sequence", "data"});
    CHECK(event["sequence"] == std::to_string(i + 1));
  }
  CHECK(all["next"].is_null());
  CHECK(api("events", {{"since", "2"}})["items"][0]["sequence"] == "3");
  const auto page = api("events", {{"limit", 2}});
  CHECK(page["items"].size() == 2);
  CHECK(api("events", {{"limit", 2}, {"cursor", page["next"]}})["items"][0]["sequence"] == "3");
  advance(Millis(10'000));
  const auto then = rfc3339(clock.wall());
  advance(Millis(10'000));
  system.add("NS::Box", {.id = "new"});
  discover();
  const auto later = api("events", {{"since", then}})["items"];
  REQUIRE_FALSE(later.empty());
  CHECK(later[0]["sequence"] == std::to_string(all["items"].size() + 1));
  CHECK(refused("events", {{"since", "yesterday"}}) == "INVALID_REQUEST");
}

TEST_CASE_METHOD(ApiFixture, "counts are those of the inventory") {
  start_discovered();
  CHECK(item("counts")["target"] == "t");
  std::map<std::string, int> counts;
  const auto answer = api("counts");
  for (const auto& one : answer["items"]) counts[one["type"]] = one["count"];
  CHECK(counts == std::map<std::string, int>{{"NS::Box", 2}, {"NS::Item", 1}});
}

TEST_CASE_METHOD(ApiFixture, "a type of which nothing is there is not counted") {
  system.remove("NS::Item", "a1");
  start_discovered();
  const auto counts = api("counts")["items"];
  REQUIRE(counts.size() == 1);
  CHECK(counts[0]["type"] == "NS::Box");
}

TEST_CASE_METHOD(ApiFixture, "what nobody knows is NOT_FOUND") {
  start_discovered();
  CHECK(refused("resource", {{"id", "nothing"}}) == "NOT_FOUND");
  CHECK(refused("resource", {{"target", "t"}, {"type", "NS::Box"}, {"native_id", "x"}}) == "NOT_FOUND");
  CHECK(refused("run", {{"run", "nothing"}}) == "NOT_FOUND");
  CHECK(refused("discover", {{"targets", {"nowhere"}}}) == "NOT_FOUND");
  CHECK(refused("discover", {{"types", {"NS::Nothing"}}}) == "NOT_FOUND");
  CHECK(refused("targets-accept", {{"target", "nowhere"}}) == "NOT_FOUND");
  CHECK(refused("workers-drain", {{"id", "nobody"}}) == "NOT_FOUND");
  CHECK(refused("schema", {{"type", "NS::Nothing"}}) == "NOT_FOUND");
  CHECK(refused("types", {{"namespace", "NOWHERE"}}) == "NOT_FOUND");
}

TEST_CASE_METHOD(ApiFixture, "a run over types that its targets cannot have is refused") {
  start_discovered();
  auto other = manifest;
  other.ns = "OTHER";
  for (auto& type : other.types) type.name.replace(0, 2, "OTHER");
  for (auto& type : other.types) {
    if (!type.parent.empty()) type.parent.replace(0, 2, "OTHER");
  }
  add_worker("w2", other);
  settle();
  CHECK(refused("discover", {{"targets", {"t"}}, {"types", {"OTHER::Box"}}}) == "INVALID_REQUEST");
  CHECK(api("discover", {{"targets", {"t"}}, {"types", {"OTHER::Box", "NS::Box"}}}).contains("run"));
}

TEST_CASE_METHOD(ApiFixture, "a bad request is refused, and the message names the field") {
  start_discovered();
  CHECK(refused("nonsense") == "UNSUPPORTED");
  CHECK(refused("resources", {{"state", "odd"}}) == "INVALID_REQUEST");
  for (const Json& limit : {Json(0), Json(-1), Json("ten"), Json(1.5), Json(1'000'000)}) {
    CHECK(refused("resources", {{"limit", limit}}) == "INVALID_REQUEST");
  }
  for (const auto* verb : {"resources", "export"}) {
    CHECK(refused(verb, {{"target", "nope"}}) == "NOT_FOUND");
  }
  CHECK_THAT(api("resources", {{"limit", 0}})["error"]["message"].get<std::string>(), Contains("limit"));
  CHECK(refused("resources", {{"text", 1}}) == "INVALID_REQUEST");
  CHECK(refused("resources", {{"managed", "yes"}}) == "INVALID_REQUEST");
  CHECK(refused("resource") == "INVALID_REQUEST");
  CHECK(refused("run") == "INVALID_REQUEST");
  CHECK(refused("schema") == "INVALID_REQUEST");
  CHECK(refused("workers-drain") == "INVALID_REQUEST");
  CHECK(refused("targets-accept") == "INVALID_REQUEST");
  CHECK(refused("discover", {{"targets", "t"}}) == "INVALID_REQUEST");
  CHECK(refused("discover", {{"types", {1}}}) == "INVALID_REQUEST");
  for (const auto* body : {"[]", "1", "{", "\xff\xfe", R"({"api":2})", R"({"api":"1"})"}) {
    const auto answer = Json::parse(api_text("resources", body));
    CHECK(answer["error"]["code"] == "INVALID_REQUEST");
  }
  CHECK(last_report()["run"] == api("runs")["items"][0]["run"]);  // and nothing was started
  CHECK(api("runs")["items"].size() == 1);
}

TEST_CASE_METHOD(ApiFixture, "a report that no message has room for comes in parts, each scan once") {
  std::vector<std::pair<std::string, std::string>> types;
  for (int i = 0; i < 60; ++i) types.emplace_back("NS::Type" + std::to_string(i), "");
  manifest = test::make_manifest(types);
  for (int i = 0; i < 55; ++i) add_target(std::string(60, 'n') + std::to_string(i));
  start_discovered();
  const auto id = last_report()["run"];
  CHECK(api("runs")["items"].size() == 1);
  std::set<std::string> scans;
  Json request{{"run", id}};
  int parts = 0;
  for (Json next = "0"; !next.is_null(); ++parts) {
    request["cursor"] = next;
    const auto part = api("run", request);
    REQUIRE(part["run"] == id);
    for (const auto& scan : part["scans"]) {
      CHECK(scans.insert(scan["target"].get<std::string>() + "/" + scan["type"].get<std::string>()).second);
    }
    next = part.value("next", Json());
  }
  CHECK(parts > 1);
  CHECK(scans.size() == 56 * 60);
  CHECK(refused("run", {{"run", id}, {"cursor", "x"}}) == "INVALID_REQUEST");
}

TEST_CASE_METHOD(ApiFixture, "the status says whether all is well, and why not") {
  start_discovered();
  auto status = api("status");
  CHECK(status["state"] == "ok");
  CHECK(status["fleet"] == store->fleet().value);
  CHECK(status["coordinator"] == coordinator->status().id.value);
  CHECK(status["resources"] == 3);
  CHECK(status["workers"] == 1);
  CHECK(status["malformed"] == 0);
  remove_worker("w1");
  advance(Millis(5000));
  status = api("status");
  CHECK(status["state"] == "degraded");
  CHECK_THAT(status["checks"].dump(), Contains("no worker of NS/default"));
}
