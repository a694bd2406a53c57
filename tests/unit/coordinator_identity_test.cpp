// Which object is which: uids and renaming.
#include <algorithm>

#include <catch2/catch.hpp>

#include "support/identity_fixture.h"

using namespace muster;
using test::FakeWorker;
using test::IdentityFixture;
using Strings = std::vector<std::string>;

TEST_CASE_METHOD(IdentityFixture, "the same uid under a new native id is the same resource, renamed") {
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  system.thing("NS::Box", "a").id = "z";
  system.thing("NS::Item", "a1").parent = "z";
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "NS::Box")["missing"] == 0);
  CHECK(scan_of(report, "NS::Box")["new"] == 0);
  const auto box = row("NS::Box", "z");
  CHECK(box.id == before);
  CHECK(box.version == 2);
  CHECK(store->history(box.row).value().back().cause == "renamed");
  CHECK(state_of("NS::Box", "a") == "absent");
  CHECK(row("NS::Item", "a1").parent_native_id == "z");
  const auto seen = events("resource.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["type"] == "muster.resource.renamed");
  CHECK(seen[0]["subject"] == before.value);
  CHECK(seen[0]["data"]["native_id"] == "z");
  CHECK(seen[0]["data"]["was"] == "a");
}

TEST_CASE_METHOD(IdentityFixture, "what was renamed and changed at once keeps its id and has both recorded") {
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  system.thing("NS::Box", "a") = {.id = "z", .properties = R"({"kind":"huge"})", .uid = "u-a"};
  discover();
  CHECK(row("NS::Box", "z").id == before);
  CHECK(row("NS::Box", "z").properties == R"({"kind":"huge"})");
  CHECK(state_of("NS::Box", "a") == "absent");
}

TEST_CASE_METHOD(IdentityFixture, "two ids with one uid that are both there are two resources") {
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  system.things["NS::Box"].insert(system.things["NS::Box"].begin(), {.id = "link", .properties = "{}", .uid = "u-a"});
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Box", "a").id == before);
  CHECK(row("NS::Box", "link").id != before);
  CHECK(resource_events() == Strings{"discovered:link"});
}

TEST_CASE_METHOD(IdentityFixture, "one of two ids with the uid of an object that is gone is what that was renamed to") {
  start_discovered();
  const auto before = row("NS::Box", "a").id;
  system.thing("NS::Box", "a").id = "x";
  system.add("NS::Box", {.id = "y", .uid = "u-a"});
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"b", "x", "y"});
  CHECK(row("NS::Box", "x").id == before);
}

TEST_CASE_METHOD(IdentityFixture, "objects whose ids move on in a row are what they were") {
  system.list_properties = GENERATE(false, true);
  const bool backwards = GENERATE(false, true);
  start_discovered();
  events();
  const auto a = row("NS::Box", "a").id;
  const auto b = row("NS::Box", "b").id;
  system.things["NS::Box"] = {{.id = "a", .uid = "u-new"}, {.id = "b", .uid = "u-a"}, {.id = "c", .uid = "u-b"}};
  if (backwards) std::ranges::reverse(system.things["NS::Box"]);
  system.thing("NS::Item", "a1").parent = "b";
  system.thing("NS::Item", "b1").parent = "c";
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Box", "b").id == a);
  CHECK(row("NS::Box", "c").id == b);
  CHECK(row("NS::Item", "a1").parent_native_id == "b");
  CHECK(resource_events() == Strings{"discovered:a", "renamed:b", "renamed:c"});
  system.things["NS::Box"].push_back({.id = "a", .uid = "u-other"});  // listed twice
  discover();
  CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
}

TEST_CASE("observations wait in the order in which they came, as long as there is room") {
  WaitingRoom room;
  CHECK(room.take(7).empty());
  room.add(7, {.item = {.native_id = "a", .properties = std::string(kMaxDeferredBytes - 2, 'x')}});
  CHECK_FALSE(room.full());
  room.add(7, {.item = {.native_id = "b"}});
  CHECK(room.full());
  CHECK(room.next(0) == RowId{7});
  const auto taken = room.take(7);
  REQUIRE(taken.size() == 2);
  CHECK(taken[1].item.native_id == "b");
  CHECK((room.empty() && !room.full()));
  const bool of_one_row = GENERATE(false, true);
  for (RowId row = 1; row < static_cast<RowId>(kMaxDeferred); ++row) room.add(of_one_row ? 1 : row, {});
  CHECK_FALSE(room.full());
  room.add(1, {});
  CHECK(room.full());
  CHECK(room.take(1).size() == (of_one_row ? kMaxDeferred : 2));
  CHECK_FALSE(room.full());
}

TEST_CASE_METHOD(IdentityFixture, "what takes the id of a renamed object may be filtered, or have something below it") {
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "secret")};
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  system.thing("NS::Box", "a").id = "z";
  system.thing("NS::Item", "a1").parent = "z";
  SECTION("filtered") {
    system.things["NS::Box"].insert(system.things["NS::Box"].begin(),
                                    {.id = "a", .properties = R"({"kind":"secret"})", .uid = "u-new"});
    const auto report = discover();
    CHECK(scan_of(report, "NS::Box")["filtered"] == 1);
    CHECK(resource_events() == Strings{"renamed:z"});
  }
  SECTION("with something below it") {
    system.things["NS::Box"].insert(system.things["NS::Box"].begin(), {.id = "a", .uid = "u-new"});
    system.add("NS::Item", {.id = "a2", .parent = "a"});
    discover();
    CHECK(row("NS::Item", "a2").parent_native_id == "a");
    CHECK(resource_events() == Strings{"discovered:a", "discovered:a2", "renamed:z"});
  }
  CHECK(row("NS::Box", "z").id == before);
  CHECK(row("NS::Item", "a1").parent_native_id == "z");
}

TEST_CASE_METHOD(IdentityFixture, "a renamed object takes the id of one that vanished long ago") {
  system.add("NS::Box", {.id = "z", .uid = "u-z"});
  start_discovered();
  system.remove("NS::Box", "z");
  discover();
  REQUIRE(state_of("NS::Box", "z") == "vanished");
  events();
  const auto before = row("NS::Box", "a").id;
  system.thing("NS::Box", "a").id = "z";
  CHECK(discover()["state"] == "complete");
  CHECK(coordinator->status().store_failures == 0);
  CHECK(listed("NS::Box") == Strings{"b", "z"});
  CHECK(state_of("NS::Box", "z") == "present");
  const auto all = api("resources", {{"type", "NS::Box"}, {"text", "z"}});
  REQUIRE(all["items"].size() == 1);
  CHECK(all["items"][0]["id"] == before.value);
}

TEST_CASE_METHOD(IdentityFixture, "objects that swapped their ids are both there") {
  start_discovered();
  std::swap(system.thing("NS::Box", "a").uid, system.thing("NS::Box", "b").uid);
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"a", "b"});
  CHECK(row("NS::Box", "a").uid == "u-b");
  CHECK(row("NS::Box", "b").uid == "u-a");
}

TEST_CASE_METHOD(IdentityFixture, "an id that goes from one object to another loses neither of them") {
  system.list_properties = GENERATE(false, true);
  start_discovered();
  system.things["NS::Box"] = {{.id = "b", .uid = "u-a"}, {.id = "c", .uid = "u-b"}};
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"b", "c"});
  CHECK(row("NS::Box", "b").uid == "u-a");
  CHECK(row("NS::Box", "c").uid == "u-b");
}

TEST_CASE_METHOD(IdentityFixture, "nor does it when the new place of the one is listed before its successor") {
  system.list_properties = true;
  start_discovered();
  system.things["NS::Box"] = {{.id = "c", .uid = "u-b"}, {.id = "b", .uid = "u-a"}};
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"b", "c"});
}

TEST_CASE_METHOD(IdentityFixture, "nor does it when the successor comes while it is looked whether the one is there") {
  start_discovered();
  const auto id = row("NS::Box", "b").id;
  system.thing("NS::Box", "b").id = "c";
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read != nullptr && read->native_ids == Strings{"b"}) system.add("NS::Box", {.id = "b", .uid = "u-other"});
    return {};
  };
  discover();
  CHECK(row("NS::Box", "c").id == id);
}

TEST_CASE_METHOD(IdentityFixture, "a tree that was renamed is renamed as a whole") {
  manifest = test::make_manifest({{"NS::Dir", "NS::Dir"}});
  system.add("NS::Dir", {.id = "/", .uid = "0"});
  system.add("NS::Dir", {.id = "/old", .uid = "1", .parent = "/"});
  system.add("NS::Dir", {.id = "/old/x", .uid = "2", .parent = "/old"});
  start_discovered();
  const auto top = row("NS::Dir", "/old").id;
  const auto below = row("NS::Dir", "/old/x").id;
  events();
  system.things["NS::Dir"] = {{.id = "/", .uid = "0"},
                              {.id = "/new", .uid = "1", .parent = "/"},
                              {.id = "/new/x", .uid = "2", .parent = "/new"}};
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Dir", "/new").id == top);
  CHECK(row("NS::Dir", "/new/x").id == below);
  CHECK(row("NS::Dir", "/new/x").parent_native_id == "/new");
  CHECK(resource_events() == Strings{"renamed:/new", "renamed:/new/x"});
}

TEST_CASE_METHOD(IdentityFixture, "a new uid under the same native id is another object: vanished and discovered") {
  start_discovered();
  events();
  system.thing("NS::Box", "a").uid = "u-new";
  CHECK(discover()["state"] == "complete");
  auto seen = resource_events();
  CHECK(std::ranges::count(seen, "vanished:a") == 1);
  CHECK(std::ranges::count(seen, "discovered:a") == 1);
  CHECK(row("NS::Box", "a").uid == "u-new");
  CHECK(state_of("NS::Box", "a") == "present");
  CHECK(state_of("NS::Item", "a1") == "present");
  CHECK(row("NS::Item", "a1").parent_native_id == "a");
}

TEST_CASE_METHOD(IdentityFixture, "children of an object that was replaced are found again in the same run") {
  system.page = 1;  // the children of `a` are listed before `b` is seen: what is known of them is in memory by then
  start_discovered();
  system.thing("NS::Box", "b").uid = "u-new";
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "b") == "present");
  CHECK(state_of("NS::Item", "b1") == "present");
}

TEST_CASE_METHOD(IdentityFixture, "what is managed in an object that was replaced is there as declared") {
  system.page = 1;
  start_discovered();
  const Claim claim{"shop", "b1", R"({"name":"b1","type":"NS::Item","target":"t","properties":{}})"};
  store->manage(row("NS::Item", "b1").row, claim).value();
  store->commit().value();
  system.thing("NS::Box", "b").uid = "u-new";
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Item", "b1") == "present");
  CHECK_FALSE(row("NS::Item", "b1").drifted);
}

TEST_CASE_METHOD(IdentityFixture, "what a read of one id tells of another says nothing of the one") {
  for (const auto* id : {"a1", "b1"}) system.thing("NS::Item", id).uid = std::string("u-") + id;
  start_discovered();
  system.remove("NS::Item", "a1");
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids != Strings{"a1"}) return {};
    return JobResult(ReadResult{{Item{"b1", "u-b1", "{}"}}});
  };
  CHECK(discover()["state"] == "partial");
  CHECK(state_of("NS::Item", "a1") != "vanished");
}

TEST_CASE_METHOD(IdentityFixture,
                 "nor does it leave when its old parent is judged before it is seen below the new one") {
  manifest = with_parts();
  system.list_properties = GENERATE(false, true);
  start_moving();
  Json types = Json::array();
  SECTION("when all is looked at") {}
  SECTION("when its own type is not looked at") {
    types = {"NS::Item"};
  }
  const auto report = discover({{"types", types}});
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "NS::Box")["filtered"] == 1);
  CHECK(row("NS::Item", "b1").parent_native_id == "c");
  CHECK(state_of("NS::Part", "part") == "present");
  CHECK(resource_events() == Strings{"filtered:b"});
}

TEST_CASE_METHOD(IdentityFixture, "nor does what lies in it, when its old parent is another by now") {
  manifest = with_parts();
  system.things["NS::Item"].back().uid = "u-b1";
  system.add("NS::Box", {.id = "c", .uid = "u-c"});
  system.add("NS::Part", {.id = "part", .parent = "b1"});
  start_discovered();
  events();
  system.thing("NS::Box", "b").uid = "u-new";
  system.thing("NS::Item", "b1").parent = "c";
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Item", "b1").parent_native_id == "c");
  CHECK(state_of("NS::Part", "part") == "present");
  CHECK(resource_events() == Strings{"discovered:b", "vanished:b"});
}

TEST_CASE_METHOD(IdentityFixture, "a run that ends before all is listed lets nothing leave by halves") {
  system.list_properties = false;
  config.targets[0].filters = {kind_filter(FilterAction::kExclude, "secret")};
  system.add("NS::Box", {.id = "c", .properties = R"({"kind":"small"})"});
  system.add("NS::Item", {.id = "c1", .parent = "c"});
  start_discovered();
  for (const auto* id : {"b", "c"}) system.thing("NS::Box", id).properties = R"({"kind":"secret"})";
  bool asked = false;
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (list == nullptr || job.type != "NS::Item") return {};
    asked = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return asked; });
  advance(Millis(1'000));  // what it has found so far is committed
  workers[0]->on_job = {};
  restart();
  discover();
  CHECK(listed("NS::Box") == Strings{"a"});
  CHECK(listed("NS::Item") == Strings{"a1"});
}

TEST_CASE_METHOD(IdentityFixture, "types that a target does not have are not scanned there") {
  SECTION("some of them") {
    system.inspection.types = {"NS::Box"};
    start_discovered();
    CHECK(last_report()["scans"].size() == 1);
    CHECK(listed("NS::Item").empty());
  }
  SECTION("all of them") {
    system.inspection.types = {"NS::Other"};
    start_discovered();
    CHECK(last_report()["scans"].empty());
    CHECK(store->target("t").value()->reachable);
  }
}

TEST_CASE_METHOD(IdentityFixture, "where nobody knows whether an object was renamed, the next run tells") {
  start_discovered();
  const auto id = row("NS::Box", "b").id;
  system.thing("NS::Box", "b").id = "c";
  int reads = 0;
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids != Strings{"b"} || reads++ > 0) return {};
    return JobResult(ReadResult{{Error{Errc::kAccessDenied, "no", {}, 0}}});
  };
  CHECK(scan_of(discover(), "NS::Box")["complete"] == false);
  CHECK(listed("NS::Box") == Strings{"a", "b"});
  discover();
  CHECK(row("NS::Box", "c").id == id);
}

TEST_CASE_METHOD(IdentityFixture, "objects that have taken each other's ids are what they were") {
  system.list_properties = GENERATE(false, true);
  const bool three = GENERATE(false, true);
  system.add("NS::Box", {.id = "c", .properties = R"({"kind":"c"})", .uid = "u-c"});
  start_discovered();
  events();
  const auto a = row("NS::Box", "a").id, b = row("NS::Box", "b").id, c = row("NS::Box", "c").id;
  auto& boxes = system.things["NS::Box"];
  boxes = {{.id = "a", .uid = three ? "u-c" : "u-b"},
           {.id = "b", .uid = "u-a"},
           {.id = "c", .properties = R"({"kind":"c"})", .uid = three ? "u-b" : "u-c"}};
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Box", "a").id == (three ? c : b));
  CHECK(row("NS::Box", "b").id == a);
  CHECK(row("NS::Box", "c").id == (three ? b : c));
  CHECK(resource_events() ==
        (three ? Strings{"renamed:a", "renamed:b", "renamed:c"} : Strings{"renamed:a", "renamed:b"}));
  CHECK(discover()["state"] == "complete");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(IdentityFixture, "what filters leave out leaves, also when it has taken another's id") {
  system.list_properties = GENERATE(false, true);
  const bool three = GENERATE(false, true);
  system.things["NS::Item"].clear();
  system.add("NS::Box", {.id = "c", .properties = R"({"kind":"big"})", .uid = "u-c"});
  start_discovered();
  events();
  const auto a = row("NS::Box", "a").id, c = row("NS::Box", "c").id;
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  auto& boxes = system.things["NS::Box"];
  boxes = {{.id = "a", .properties = R"({"kind":"small"})", .uid = "u-b"},
           {.id = "b", .properties = R"({"kind":"big"})", .uid = three ? "u-c" : "u-a"},
           {.id = "c", .properties = R"({"kind":"big"})", .uid = three ? "u-a" : "u-c"}};
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"b", "c"});
  CHECK(row("NS::Box", "b").id == (three ? c : a));
  CHECK(row("NS::Box", "c").id == (three ? a : c));
  CHECK(resource_events() == (three ? Strings{"filtered:a", "renamed:a", "renamed:b", "renamed:c"}
                                    : Strings{"filtered:a", "renamed:a", "renamed:b"}));
  CHECK(discover()["state"] == "complete");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(IdentityFixture, "objects that have taken each other's ids may be spelt in any way") {
  system.list_properties = GENERATE(false, true);
  const bool object = GENERATE(false, true);
  start_discovered();
  const auto a = row("NS::Box", "a").id, b = row("NS::Box", "b").id;
  system.things["NS::Box"] = {{.id = "a", .properties = R"({"size":1, "kind" : "huge"})", .uid = "u-b"},
                              {.id = "b", .properties = object ? R"({ "kind":"big"})" : "[ 1", .uid = "u-a"}};
  CHECK(discover()["state"] == (object ? "complete" : "partial"));
  CHECK(row("NS::Box", "a").id == b);
  CHECK(row("NS::Box", "a").properties == R"({"kind":"huge","size":1})");
  CHECK(row("NS::Box", "b").id == a);
  CHECK(row("NS::Box", "b").properties == R"({"kind":"big"})");  // what it was, where nobody can say what it is
}

TEST_CASE_METHOD(IdentityFixture, "what has another's id is what it was, also where that comes to light in another") {
  system.list_properties = GENERATE(false, true);
  manifest.types = {manifest.types[0]};
  manifest.types[0].parent = "NS::Box";  // as directories lie in each other
  system.things = {};
  const auto add = [&](const std::string& id, const std::string& uid, const std::string& parent) {
    system.add("NS::Box", {.id = id, .uid = "u-" + uid, .parent = parent});
  };
  for (const auto* id : {"b", "p", "q"}) add(id, id, "");
  add("a", "a", "p");
  add("c", "c", "a");
  add("d", "d", "q");
  start_discovered();
  events();
  std::map<std::string, ResourceId> was;
  for (const auto* id : {"a", "b", "c", "d"}) was[id] = row("NS::Box", id).id;
  system.things = {};
  add("a", "b", "");
  add("p", "p", "");
  add("q", "q", "");
  add("b", "a", "p");
  add("d", "c", "b");  // not listed before it is clear what `b` is
  add("c", "d", "q");
  CHECK(discover()["state"] == "complete");
  for (const auto& [id, now] : std::map<std::string, std::string>{{"a", "b"}, {"b", "a"}, {"c", "d"}, {"d", "c"}}) {
    CHECK(row("NS::Box", now).id == was[id]);
  }
  CHECK(resource_events() == Strings{"renamed:a", "renamed:b", "renamed:c", "renamed:d"});
}

TEST_CASE_METHOD(IdentityFixture, "what is seen without its uid keeps the one that is known") {
  start_discovered();
  const auto before = row("NS::Box", "a").id;
  system.thing("NS::Box", "a") = {.id = "a", .properties = R"({"kind":"huge"})"};
  discover();
  CHECK(row("NS::Box", "a").uid == "u-a");
  system.thing("NS::Box", "a") = {.id = "z", .properties = R"({"kind":"huge"})", .uid = "u-a"};
  discover();
  CHECK(row("NS::Box", "z").id == before);
}

TEST_CASE_METHOD(IdentityFixture, "what has another name is what it was, though its parent is replaced meanwhile") {
  system.list_properties = true;
  system.page = 1;
  system.things["NS::Item"] = {{.id = "a2", .uid = "u-2", .parent = "a"}};
  start_discovered();
  const auto before = row("NS::Item", "a2").id;
  system.thing("NS::Item", "a2") = {.id = "b2", .uid = "u-2", .parent = "b"};
  system.thing("NS::Box", "a").uid = "u-other";  // what lay in it was in another object
  std::ranges::reverse(system.things["NS::Box"]);
  bool asked = false;
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (!asked && list != nullptr && job.type == "NS::Box" && !list->page_token.empty()) return FakeWorker::Hold{};
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids.front() != "a2" || std::exchange(asked, true)) return {};
    return FakeWorker::Silent{};
  };
  events();
  api("discover");
  wait_until([&] { return asked; });
  workers[0]->release();
  settle();
  REQUIRE(row("NS::Box", "a").uid == "u-other");
  CHECK(state_of("NS::Item", "a2") == "present");  // as far as is known
  finish_runs();
  CHECK(events("run.started").size() == 1);
  CHECK(last_report()["state"] == "complete");
  CHECK(state_of("NS::Item", "b2") == "present");
  CHECK(row("NS::Item", "b2").id == before);
}
