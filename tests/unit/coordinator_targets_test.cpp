// Targets that files declare: what names and configurations they have, and when they leave.
#include <algorithm>

#include "coordinator/json_forms.h"
#include "support/targets_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Catch::Contains;

TEST_CASE_METHOD(TargetsFixture, "a target of a file stays while something of another stack is on it") {
  start_discovered();
  for (const auto* stack : {"shop", "store"}) CHECK(apply(file(stack))["state"] == "complete");
  auto shop = file("shop"), other = file("store");
  for (auto* request : {&shop, &other}) (*request)["mode"] = "destroy";
  CHECK(apply(shop)["state"] == "complete");
  settle();
  CHECK(count() == 1);
  CHECK(target_state() == "there");
  CHECK(apply(other)["state"] == "complete");
  settle();
  CHECK(target_state() == "removed");
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file leaves though much is managed elsewhere, and that is told once") {
  start_discovered();
  REQUIRE(apply(file())["state"] == "complete");
  const Json other{{"stacks", {{{"stack", "other"}, {"resources", {box("x")}}}}}, {"mode", "reconcile"}};
  REQUIRE(apply(other)["state"] == "complete");
  events();
  auto gone = file();
  gone["mode"] = "destroy";
  REQUIRE(apply(gone)["state"] == "complete");
  settle();
  CHECK(target_state() == "removed");
  gone["stacks"][0]["stack"] = "other";
  REQUIRE(apply(gone)["state"] == "complete");
  advance(Millis(500));
  CHECK(count() == 0);
  CHECK(events("target.changed").size() == 1);
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file that has another name keeps what is on it") {
  start_discovered();
  auto request = file();
  REQUIRE(apply(request)["state"] == "complete");
  finish_runs();
  const auto made = count();
  const auto before = row("NS::Box", "made-1", "new").id;
  request["targets"][0]["name"] = "newer";
  request["targets"][0]["renamed_from"] = "new";
  request["stacks"][0]["resources"][0]["target"] = "newer";
  const auto planned = plan(request);
  REQUIRE(planned["mistakes"].empty());
  CHECK(planned["summary"]["unchanged"] == 1);
  CHECK(planned["summary"]["delete"] == 0);
  REQUIRE(planned["targets"].size() == 1);
  CHECK(planned["targets"][0]["action"] == "update");
  CHECK(planned["targets"][0]["reason"] == "is new now");
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(count() == made);
  CHECK(row("NS::Box", "made-1", "newer").id == before);
  CHECK(target_state() == "absent");
  CHECK(plan(request)["nothing"] == true);
  SECTION("and can be destroyed by that file") {
    request["mode"] = "destroy";
    CHECK(apply(request)["kind"] == "destroy");
    CHECK(count() == made - 1);
    CHECK(store->target("newer").value()->state == TargetState::kRemoved);
  }
  SECTION("and leaves the next one of the old name, when it is destroyed") {
    auto next = stack({});
    next["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}}});
    REQUIRE(apply(next)["state"] == "complete");
    request["mode"] = "destroy";
    REQUIRE(apply(request)["state"] == "complete");
    CHECK(target_state() == "there");
  }
  SECTION("not the name of one that the configuration has") {
    request["targets"][0]["name"] = "newest";
    request["targets"][0]["renamed_from"] = "t";
    CHECK_THAT(plan(request)["mistakes"].dump(), Contains("target t is declared in the fleet's configuration already"));
  }
}

TEST_CASE_METHOD(TargetsFixture, "a target gets no other name while something is under way") {
  start_discovered();
  auto request = file();
  REQUIRE(apply(request)["state"] == "complete");
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<CreateJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  auto more = file("other");
  const auto running = begin(more);
  advance(Millis(500));
  request["targets"][0]["name"] = "newer";
  request["targets"][0]["renamed_from"] = "new";
  request["stacks"][0]["resources"][0]["target"] = "newer";
  CHECK(api("apply", request)["error"]["code"] == "CONFLICT");
  worker().on_job = {};
  worker().release();
  end_of(running);
  CHECK(apply(request)["state"] == "complete");
}

TEST_CASE_METHOD(TargetsFixture, "targets keep what is on them when names move on, in whatever order they stand") {
  config.targets.clear();
  add_target("a");
  add_target("b");
  system.add("NS::Box", {.id = "1", .properties = R"({"name":"one"})"});
  start_discovered();
  const auto a = row("NS::Box", "1", "a").id, b = row("NS::Box", "1", "b").id;
  crash();
  const bool another = GENERATE(false, true);
  config.targets.clear();
  add_target("b").renamed_from = "a";
  add_target("c").renamed_from = "b";
  if (another) add_target("a");
  if (GENERATE(false, true)) std::ranges::reverse(config.targets);
  for (int starts = 0; starts < 2; ++starts) {
    start();
    finish_runs();
    CHECK(row("NS::Box", "1", "b").id == a);
    CHECK(row("NS::Box", "1", "c").id == b);
    CHECK(state_of("NS::Box", "1", "a") == (another ? "present" : "absent"));
    if (another) CHECK(row("NS::Box", "1", "a").id != a);
    crash();
  }
}

TEST_CASE_METHOD(TargetsFixture, "a target whose configuration is another leaves and comes back as such") {
  system.add("NS::Box", {.id = "1", .properties = R"({"name":"one"})"});
  Document before, after{R"({"root":"/elsewhere"})", {}};
  if (GENERATE(false, true)) std::swap(before, after);
  config.targets[0].config = before;
  start_discovered();
  crash();
  config.targets[0].config = after;
  start();
  finish_runs();
  CHECK(api("targets")["items"].at(0).at("state") == "changed");
  crash();
  auto target = std::exchange(config.targets, {}).front();
  start();
  finish_runs();
  crash();
  config.targets.push_back(target);
  start();
  finish_runs();
  CHECK(api("targets")["items"].at(0).at("state") == "changed");
  CHECK(state_of("NS::Box", "1") == "stale");
}

TEST_CASE_METHOD(TargetsFixture, "other filters alone are a change of a target") {
  start_discovered();
  auto request = file();
  REQUIRE(apply(request)["state"] == "complete");
  request["targets"][0]["filters"] = to_json(std::vector<MatchFilter>{
      {{"NS::Box"}, {PropertyMatch{"$.name", MatchOp::kEq, "\"other\""}}, FilterAction::kExclude}});
  const auto planned = plan(request);
  CHECK(planned["nothing"] == false);
  REQUIRE(planned["targets"].size() == 1);
  CHECK(planned["targets"][0]["action"] == "update");
  apply(request);
  CHECK(store->target("new").value()->filters.size() == 1);
  CHECK(plan(request)["nothing"] == true);
}

TEST_CASE_METHOD(TargetsFixture, "a target leaves with what stood on it, though a coordinator dies meanwhile") {
  start_discovered();
  auto request = file();
  REQUIRE(apply(request)["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  request["mode"] = "destroy";
  const auto id = begin(request);
  advance(Millis(500));
  restart();
  worker().on_go = {};
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(target_state() == "removed");
}

TEST_CASE_METHOD(TargetsFixture, "a target does not get the name of one that was there before") {
  start_discovered();
  auto request = file();
  REQUIRE(apply(request)["state"] == "complete");
  request["mode"] = "destroy";
  REQUIRE(apply(request)["state"] == "complete");
  REQUIRE(target_state() == "removed");
  auto other = file("store");
  other["targets"][0]["name"] = "other";
  other["stacks"][0]["resources"][0]["target"] = "other";
  REQUIRE(apply(other)["state"] == "complete");
  auto renamed = file("store");
  renamed["targets"][0]["renamed_from"] = "other";
  const auto mistakes = plan(renamed)["mistakes"];
  REQUIRE(mistakes.size() == 1);
  CHECK_THAT(mistakes[0]["message"].get<std::string>(), Contains("take another name"));
}

TEST_CASE_METHOD(TargetsFixture,
                 "what is destroyed goes under the name that it has, whatever its file calls it by now") {
  start_discovered();
  auto request = file();
  REQUIRE(apply(request)["state"] == "complete");
  request["targets"][0]["name"] = "other";
  request["targets"][0]["renamed_from"] = "new";
  request["stacks"][0]["resources"][0]["target"] = "other";
  request["mode"] = "destroy";
  const auto planned = plan(request);
  CHECK(planned["targets"].empty());
  CHECK(planned["steps"].at(0)["target"] == "new");
  CHECK(apply(request)["state"] == "complete");
  CHECK(target_state() == "removed");
  CHECK_FALSE(store->target("other").value());
}

TEST_CASE_METHOD(TargetsFixture, "targets stay where not all that was declared could be destroyed") {
  start_discovered();
  auto request = file();
  auto empty = request["targets"][0];
  empty["name"] = "empty";
  request["targets"].push_back(empty);
  REQUIRE(apply(request)["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kInvalidRequest, "no", {}, 0});
  };
  request["mode"] = "destroy";
  REQUIRE(apply(request)["state"] == "failed");
  CHECK(target_state() == "there");
  CHECK(store->target("empty").value().value().state == TargetState::kActive);
}

TEST_CASE_METHOD(TargetsFixture, "a target without anything on it is another one without a word of the user") {
  start_discovered();
  auto request = file();
  request["stacks"][0]["resources"] = Json::array();
  static_cast<void>(api("apply", request));
  finish_runs();
  request["targets"][0]["config"] = config_of("elsewhere");
  const auto changes = plan(request)["targets"];
  REQUIRE(changes.size() == 1);
  CHECK(changes[0]["action"] == "update");
  CHECK(changes[0]["reason"] == "");
  static_cast<void>(api("apply", request));
  finish_runs();
  CHECK(store->target("new").value().value().state == TargetState::kActive);
}

TEST_CASE_METHOD(TargetsFixture,
                 "a target on which something is being made is another one only with a word of the user") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  auto request = file();
  const auto first = begin(request);
  advance(Millis(500));
  REQUIRE(worker().asked<CreateJob>().size() == 1);
  request["targets"][0]["config"] = config_of("elsewhere");
  CHECK_THAT(plan(request)["targets"].at(0)["reason"].get<std::string>(), Contains("targets accept new"));
  const auto second = begin(request);
  settle();
  CHECK(store->target("new").value().value().state == TargetState::kChanged);
  CHECK(api("targets-accept", {{"target", "new"}})["error"]["code"] == "CONFLICT");
  worker().on_go = {};
  worker().release();
  static_cast<void>(end_of(first));
  CHECK(end_of(second)["state"] == "failed");
  finish_runs();
  CHECK(count() == 1);
  CHECK(state_of("NS::Box", "made-1", "new") == "stale");
  CHECK(api("targets-accept", {{"target", "new"}})["state"] == "active");
}

TEST_CASE_METHOD(TargetsFixture, "what nobody has begun to make on a target is not made on what it was before") {
  start_discovered();
  bool full = true;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    return full && is_mutation(job.operation) ? FakeWorker::Behaviour(Busy{}) : FakeWorker::Behaviour();
  };
  auto request = file();
  const bool offered = GENERATE(true, false);
  CAPTURE(offered);
  if (!offered) remove_worker("w1");
  const auto first = begin(request);
  settle();
  request["targets"][0]["config"] = config_of("elsewhere");
  const auto second = begin(request);
  if (!offered) add_worker();
  full = false;
  CHECK(result_of(end_of(first), "shop") == "failed TARGET_CHANGED");
  CHECK(end_of(second)["state"] == "complete");
  CHECK_THAT(worker().asked<CreateJob>().back().target.config.json, Contains("elsewhere"));
  CHECK(count() == 1);
  CHECK(store->target("new").value().value().state == TargetState::kActive);
}

TEST_CASE_METHOD(TargetsFixture, "a plan of targets that others have declared since is not carried out unseen") {
  start_discovered();
  auto request = file();
  request["targets"].push_back({{"name", "more"}, {"namespace", "NS"}, {"discover", false}});
  const auto draft = plan(request)["draft"];
  auto theirs = request;
  theirs["stacks"][0]["stack"] = "store";
  theirs["stacks"][0]["resources"] = Json::array();
  for (auto& target : theirs["targets"]) target["config"] = config_of("theirs");
  REQUIRE(apply(theirs)["state"] == "complete");
  const auto refused = api("apply", {{"draft", draft}});
  CHECK(refused.value("/error/message"_json_pointer, "") ==
        "what it was planned on has changed: target new was planned as create, and would be update now, and 1 more; "
        "plan again");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(TargetsFixture, "targets of files are kept, and leave with what stood on them") {
  start_discovered();
  auto request = file();
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(last_report()["trigger"] == "apply");
  restart();
  finish_runs();
  CHECK(api("targets")["items"].size() == 2);
  CHECK(api("targets")["items"].at(0)["state"] == "active");
  CHECK(plan(request)["nothing"] == true);
  request["targets"][0]["name"] = "t";
  CHECK_THAT(plan(request)["mistakes"].dump(), Contains("declared in the fleet's configuration"));
  CHECK(plan(request)["mistakes"].at(0)["pointer"] == "/targets/t");
  request["targets"][0]["name"] = "new";
  request["mode"] = "destroy";
  CHECK(apply(request)["state"] == "complete");
  settle();
  CHECK(api("targets")["items"].at(0)["state"] == "removed");
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file that the configuration names later is the configuration's") {
  start_discovered();
  const auto request = file();
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  const auto state = [&] {
    for (const auto targets = api("targets"); const auto& target : targets["items"]) {
      if (target["name"] == "new") return target["state"].get<std::string>();
    }
    return std::string("absent");
  };
  config.targets.push_back(config.targets.front());
  config.targets.back().name = "new";
  restart();
  finish_runs();
  CHECK(state() == "active");
  CHECK(plan(request)["mistakes"].at(0)["pointer"] == "/targets/new");
  config.targets.pop_back();
  restart();
  finish_runs();
  CHECK(state() == "removed");
}
