// What becomes of that which lay in an object when another one has the object's id.
#include <algorithm>

#include <catch2/catch.hpp>

#include "support/identity_fixture.h"

using namespace muster;
using namespace muster::test;
using Strings = std::vector<std::string>;

namespace {

struct ReplacedFixture : IdentityFixture {
  ReplacedFixture() { system.page = 1; }
  void manage(const std::string& item) {
    const Claim claim{"shop", item, R"({"name":")" + item + R"(","type":"NS::Item","target":"t","properties":{}})"};
    store->manage(row("NS::Item", item).row, claim).value();
    store->commit().value();
  }
};

}  // namespace

TEST_CASE_METHOD(ReplacedFixture, "what is managed in an object that was replaced is filtered by nothing") {
  system.thing("NS::Item", "b1").properties = R"({"kind":"tmp"})";
  start_discovered();
  manage("b1");
  system.inspection.filters = {
      {{"NS::Item"}, {PropertyMatch{"$.kind", MatchOp::kEq, "\"tmp\""}}, FilterAction::kExclude}};
  discover();
  REQUIRE(state_of("NS::Item", "b1") == "present");
  system.thing("NS::Box", "b").uid = "u-new";
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Item", "b1") == "present");
  CHECK_FALSE(row("NS::Item", "b1").drifted);
}

TEST_CASE_METHOD(ReplacedFixture, "what has moved out of an object that was replaced is what it was") {
  system.thing("NS::Item", "b1").uid = "u-b1";
  start_discovered();
  const bool managed = GENERATE(false, true);
  if (managed) manage("b1");
  const auto before = row("NS::Item", "b1").id;
  system.thing("NS::Box", "b").uid = "u-new";
  auto& moved = system.thing("NS::Item", "b1");
  moved.parent = "a";
  std::string id = "b1";
  SECTION("under its id") {}
  SECTION("under another one") {
    id = moved.id = "b2";
  }
  events();
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Item", id) == "present");
  CHECK(row("NS::Item", id).id == before);
  CHECK(row("NS::Item", id).managed == managed);
  CHECK(row("NS::Item", id).parent_native_id == "a");
  const auto told = resource_events();
  CHECK(std::ranges::count(told, "vanished:b1") == 0);
}

TEST_CASE_METHOD(ReplacedFixture, "what lay in an object that was replaced and is nowhere else has gone with it") {
  system.thing("NS::Item", "b1").uid = "u-b1";
  system.add("NS::Item", {.id = "b2", .parent = "b"});
  start_discovered();
  const bool managed = GENERATE(false, true);
  if (managed) manage("b1");
  system.thing("NS::Box", "b").uid = "u-new";
  for (const auto* id : {"b1", "b2"}) system.remove("NS::Item", id);
  events();
  SECTION("all is listed") {
    CHECK(discover()["state"] == "complete");
    CHECK(state_of("NS::Item", "b1") == (managed ? "missing" : "vanished"));
    auto told = Strings{"discovered:b", "vanished:b", "vanished:b1", "vanished:b2"};
    if (managed) told.insert(told.begin() + 1, "drifted:b1");
    CHECK(resource_events() == told);
  }
  SECTION("some of it cannot be listed") {
    workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
      const auto* list = std::get_if<ListJob>(&job.operation);
      if (list == nullptr || !list->parent || list->parent->native_id != "a") return {};
      return JobResult(Error{Errc::kAccessDenied, "not for you", {}, 0});
    };
    CHECK(discover()["state"] == "partial");
    CHECK(state_of("NS::Item", "b1") == "stale");
    workers[0]->on_job = {};
    discover();
    CHECK(state_of("NS::Item", "b1") == (managed ? "missing" : "vanished"));
  }
}

TEST_CASE_METHOD(ReplacedFixture, "what has moved out of a thing that is filtered under another's id is what it was") {
  system.list_properties = GENERATE(false, true);
  const std::string moved = GENERATE("b1", "b9");
  system.things["NS::Item"] = {{.id = "b1", .uid = "u-b1", .parent = "b"}, {.id = "b2", .uid = "u-b2", .parent = "b"}};
  system.add("NS::Box", {.id = "c", .properties = R"({"kind":"big"})", .uid = "u-c"});
  start_discovered();
  events();
  const auto b = row("NS::Box", "b").id, b1 = row("NS::Item", "b1").id;
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  auto& boxes = system.things["NS::Box"];
  boxes = {{.id = "a", .properties = R"({"kind":"small"})", .uid = "u-b"},
           {.id = "b", .properties = R"({"kind":"big"})", .uid = "u-a"},
           boxes.back()};
  system.things["NS::Item"] = {{.id = "b2", .uid = "u-b2", .parent = "a"}, {.id = moved, .uid = "u-b1", .parent = "c"}};
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"b", "c"});
  CHECK(listed("NS::Item") == Strings{moved});
  CHECK(row("NS::Item", moved).id == b1);
  Strings told{"filtered:a", "filtered:b2", "renamed:a", "renamed:b"};
  if (moved == "b9") told.emplace_back("renamed:b9");
  CHECK(resource_events() == told);
  system.inspection.filters = {};
  discover();
  CHECK(row("NS::Box", "a").id == b);
}

TEST_CASE_METHOD(ReplacedFixture,
                 "of what is managed in an object that was replaced nothing is told while it is there") {
  start_discovered();
  manage("b1");
  system.thing("NS::Box", "b").uid = "u-new";
  events();
  discover();
  CHECK(resource_events() == Strings{"discovered:b", "vanished:b"});
}
