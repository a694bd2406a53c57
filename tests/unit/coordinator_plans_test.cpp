// The plan of a command, as it is kept, and what it tells of targets.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/command_plan.h"
#include "support/commands_fixture.h"

using namespace muster;
using test::CommandsFixture;
using Json = nlohmann::json;
using Catch::Contains;

TEST_CASE("the plan of a command is kept as it was made") {
  CommandPlan made;
  made.summary[StepAction::kCreate] = made.summary[StepAction::kDelete] = 1;
  CommandStep first;
  first.action = StepAction::kDelete;
  first.stack = "shop";
  first.name = "a";
  first.target = "t";
  first.type = "NS::Box";
  first.native_id = "box-1";
  first.reason = "it was replaced";
  first.content = {0x0123456789abcdefULL, 0xfedcba9876543210ULL};
  first.row = 7;
  auto second = first;
  second.action = StepAction::kCreate;
  second.native_id.clear();
  second.reason.clear();
  second.after = {0};
  second.resource.emplace();
  second.resource->name = "a";
  second.resource->type = second.type;
  second.resource->target = second.target;
  made.steps = {first, second};

  const auto text = made.json();
  const auto kept = CommandPlan::parse(text).value();
  CHECK(kept.json() == text);
  REQUIRE(kept.steps.size() == 2);
  CHECK(kept.steps[0].reason == "it was replaced");
  CHECK(kept.steps[0].content == first.content);
  CHECK(kept.steps[1].resource == second.resource);
  const auto seen = Json::parse(shown(kept.steps[1], kept.steps[1].patch).take());
  CHECK(seen["native_id"].is_null());
  CHECK(seen["reason"].is_null());

  auto broken = Json::parse(text);
  broken["steps"][1]["resource"].erase("type");
  CHECK_FALSE(CommandPlan::parse(broken.dump()));
}

TEST_CASE("a target that has another name has it in all that is planned on it, and in nothing else") {
  CommandPlan plan;
  const auto add = [&](const char* target) {
    auto& step = plan.steps.emplace_back();
    step.action = StepAction::kUpdate;
    step.target = target;
    step.resource.emplace();
    step.resource->name = "a";
    step.resource->type = "NS::Box";
    step.resource->target = target;
    step.claim = declared_text(*step.resource);
  };
  add("old");
  add("other");
  plan.steps.emplace_back().target = "old";  // a deletion
  plan.rename_target("old", "new");
  const auto claimed_on = [&](std::size_t step) { return Json::parse(plan.steps.at(step).claim)["target"]; };
  CHECK(plan.steps[0].target == "new");
  CHECK(plan.steps[0].resource->target == "new");
  CHECK(claimed_on(0) == "new");
  CHECK(plan.steps[1].target == "other");
  CHECK(plan.steps[1].resource->target == "other");
  CHECK(claimed_on(1) == "other");
  CHECK(plan.steps[2].target == "new");
  CHECK(plan.steps[2].claim.empty());
}

TEST_CASE_METHOD(CommandsFixture,
                 "a plan tells of a target what changes of it, and what a move of what is on it takes") {
  start_discovered();
  auto resource = box("a");
  resource["target"] = "new";
  auto request = stack({resource});
  auto& target = request["targets"][0];
  target = {{"name", "new"}, {"namespace", "NS"}, {"discover", true}};
  REQUIRE(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(plan(request)["targets"].empty());
  target["interval_ms"] = 10'000;
  auto told = plan(request)["targets"];
  REQUIRE(told.size() == 1);
  CHECK_FALSE(Contains("targets accept").match(told.dump()));
  target["config"] = {{"json", R"({"zone":"b"})"}, {"secrets", Json::array()}};
  told = plan(request)["targets"];
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.dump(), Contains("muster targets accept new"));
}
