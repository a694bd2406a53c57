// Resources that a stack lets go of.
#include <catch2/catch.hpp>

#include "support/commands_fixture.h"

using namespace muster;
using Catch::Contains;
using test::CommandsFixture;
using test::FakeWorker;
using Json = nlohmann::json;

namespace {

struct ForgetFixture : CommandsFixture {
  /// a, and b that refers to it, of one stack.
  void make_two() {
    start_discovered();
    REQUIRE(apply(stack({box("a"), linked("b", "a")}))["state"] == "complete");
    advance(Millis(500));
    events();
  }
  Json forget(Json request) {
    request["stack"] = "shop";
    auto answer = api("forget", request);
    UNSCOPED_INFO(answer.dump());
    advance(Millis(500));
    return answer;
  }
  std::string id_of(const std::string& name) { return thing(name)["id"]; }
};

}  // namespace

TEST_CASE_METHOD(ForgetFixture, "what a stack forgets stays as it is, and nobody manages it") {
  make_two();
  const auto id = id_of("b");
  const auto jobs = worker().jobs.size();
  const Json asked{{"names", {"b"}}};
  SECTION("nothing is forgotten by a look") {
    const auto answer = forget({{"names", {"b"}}, {"look_only", true}});
    CHECK(answer["count"] == 1);
    CHECK(answer["resources"].at(0) ==
          Json{{"name", "b"}, {"target", "t"}, {"type", "NS::Box"}, {"native_id", id}, {"state", "present"}});
    CHECK(row("NS::Box", id).managed);
    CHECK(events().empty());
    return;
  }
  CHECK(forget(asked)["count"] == 1);
  CHECK(worker().jobs.size() == jobs);
  CHECK_FALSE(row("NS::Box", id).managed);
  CHECK(row("NS::Box", id_of("a")).managed);
  const auto told = events();
  REQUIRE(told.size() == 1);
  CHECK(told[0]["type"] == "muster.resource.forgotten");
  CHECK(told[0]["subject"] == row("NS::Box", id).id.value);
  CHECK(told[0]["data"]["stack"] == "shop");
  CHECK(told[0]["data"]["name"] == "b");
  CHECK(told[0]["data"]["native_id"] == id);
  CHECK(forget(asked)["error"]["code"] == "NOT_FOUND");
  SECTION("the stack does not delete it") {
    CHECK(apply(stack({}))["state"] == "complete");
    CHECK(count() == 1);
    CHECK(thing("b")["id"] == id);
  }
  SECTION("an edit of it is no drift") {
    edit("b", "size", 7);
    discover();
    advance(Millis(500));
    CHECK(resource_events() == std::vector<std::string>{"changed:" + id});
  }
  SECTION("another stack takes it over") {
    auto other = stack({box("b")});
    other["stacks"][0]["stack"] = "other";
    CHECK(apply(other)["state"] == "complete");
    CHECK(thing("b")["id"] == id);
    CHECK(count() == 2);
    CHECK(api("resources", {{"stack", "other"}})["items"].at(0)["native_id"] == id);
  }
  SECTION("and so does its own, where a file still declares it") {
    CHECK(plan(stack({box("a"), linked("b", "a")}))["summary"]["adopt"] == 1);
  }
}

TEST_CASE_METHOD(ForgetFixture, "what is forgotten after a run has begun is judged by nobody in it") {
  make_two();
  const auto id = id_of("b");
  edit("b", "link", "elsewhere");
  worker().on_job = [](const Job&) -> test::FakeWorker::Behaviour { return test::FakeWorker::Hold{}; };
  api("discover");
  forget({{"names", {"b"}}});
  worker().on_job = nullptr;
  worker().release();
  finish_runs();
  CHECK(resource_events() == std::vector<std::string>{"changed:" + id, "forgotten:" + id});
  CHECK_FALSE(row("NS::Box", id).drifted);
}

TEST_CASE_METHOD(ForgetFixture, "what is missing leaves the inventory when it is forgotten") {
  make_two();
  const auto id = id_of("b");
  std::erase_if(system.things["NS::Box"], [&](const auto& each) { return each.id == id; });
  discover();
  REQUIRE(state_of("NS::Box", id) == "missing");
  const auto answer = forget({{"all", true}});
  CHECK(answer["count"] == 2);
  CHECK(state_of("NS::Box", id) == "vanished");
  CHECK(state_of("NS::Box", id_of("a")) == "present");
  CHECK(api("resources", {{"managed", true}})["items"].empty());
}

TEST_CASE_METHOD(ForgetFixture, "what lies on a target that is gone can be forgotten") {
  add_target("old");
  start_discovered();
  auto there = box("b");
  there["target"] = "old";
  REQUIRE(apply(stack({box("a"), there}))["state"] == "complete");
  config.targets.pop_back();
  restart();
  finish_runs();
  events();
  CHECK(forget({{"target", "nowhere"}})["error"]["code"] == "NOT_FOUND");
  CHECK(forget({{"target", "old"}})["count"] == 1);
  CHECK(events("resource.forgotten").size() == 1);
  CHECK(api("resources", {{"managed", true}})["items"].size() == 1);
  CHECK(plan(stack({box("a")}))["nothing"] == true);
}

TEST_CASE_METHOD(ForgetFixture, "what lies in something forgotten moves to what is made in its place, however late") {
  manifest.types[1].parent = "NS::Box";
  start_discovered();
  auto inner = box("inner");
  inner["type"] = "NS::Item";
  inner["parent"] = "outer";
  REQUIRE(apply(stack({box("outer"), inner}))["state"] == "complete");
  advance(Millis(500));
  auto another = box("outer");
  another["properties"]["name"] = "another";
  const auto both = stack({another, inner});
  REQUIRE(forget({{"names", {"outer"}}})["count"] == 1);
  worker().on_job = [](const Job& job) {
    if (!is_mutation(job.operation) || job.type == "NS::Box") return FakeWorker::Behaviour();
    return FakeWorker::Behaviour(JobResult(Error{Errc::kInvalidRequest, "not today", {}, 0}));
  };
  const auto failed = apply(both);
  CHECK(result_of(failed, "outer") == "done");
  CHECK(result_of(failed, "inner") == "failed INVALID_REQUEST");
  worker().on_job = {};
  const auto planned = plan(both);
  INFO(planned.dump());
  CHECK(planned["nothing"] == false);
  REQUIRE(apply(both)["state"] == "complete");
  CHECK(row("NS::Item", system.things["NS::Item"].at(0).id).parent == row("NS::Box", "made-3").row);
  CHECK(plan(both)["nothing"] == true);
}

TEST_CASE_METHOD(ForgetFixture, "what has drifted in something forgotten has drifted still") {
  manifest.types[1].parent = "NS::Box";
  start_discovered();
  auto inner = box("inner", {{"size", 3}});
  inner["type"] = "NS::Item";
  inner["parent"] = "outer";
  REQUIRE(apply(stack({box("outer"), inner}))["state"] == "complete");
  auto& made = system.things["NS::Item"].at(0);
  auto properties = Json::parse(made.properties);
  properties["size"] = 9;
  made.properties = properties.dump();
  discover();
  REQUIRE(row("NS::Item", made.id).drifted);
  REQUIRE(forget({{"names", {"outer"}}})["count"] == 1);
  CHECK(row("NS::Item", made.id).drifted);
}

TEST_CASE_METHOD(ForgetFixture, "what cannot be forgotten is refused whole, and says why") {
  make_two();
  const auto refused = [&](const Json& request) { return forget(request)["error"]["message"].get<std::string>(); };
  CHECK_THAT(refused({{"names", {"a", "c", "d"}}}), Contains("stack shop has no resource c, nor 1 more"));
  CHECK_THAT(refused({{"names", {"a"}}, {"target", "u"}}), Contains("stack shop on target u has no resource a"));
  CHECK_THAT(refused(Json::object()), Contains("names, target, or all alone"));
  CHECK_THAT(refused({{"names", {"a"}}, {"all", true}}), Contains("names, target, or all alone"));
  SECTION("while a command of the stack is under way") {
    worker().on_go = [](const Job&) -> test::FakeWorker::Behaviour { return test::FakeWorker::Silent{}; };
    const auto id = begin(stack({box("a", {{"size", 2}}), linked("b", "a")}));
    CHECK_THAT(refused({{"names", {"a"}}}), Contains("a command of stack shop is under way"));
    worker().on_go = nullptr;
    end_of(id);
  }
  CHECK(api("resources", {{"managed", true}})["items"].size() == 2);
  CHECK(events("resource.forgotten").empty());
}
