// What a run knows of a target that it has not begun with is as the store has it by then.
#include <algorithm>

#include "support/commands_fixture.h"
#include "support/runs_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;

namespace {

struct KnownTargets : RunsFixture {
  /// The answer of one target, as of the system behind it.
  FakeWorker::Behaviour inspected(const std::string& is) const { return JobResult(InspectResult{is, {}, {}}); }
  TargetRow target(const std::string& name) { return store->target(name).value().value(); }
  static bool inspects(const Job& job, const std::string& target) {
    return job.target.name == target && std::holds_alternative<InspectJob>(job.operation);
  }
};

/// Target `z` is another system than it was. A run over all has begun, and its turn has not come: the others keep the
/// one worker busy.
struct WaitingTarget : KnownTargets {
  WaitingTarget() {
    config.limits.run_deadline = Millis(20'000);  // before the others have been asked long enough
    for (const auto* name : {"u", "v", "z"}) add_target(name);
    add_worker().announcement.slots = 1;
    workers[0]->announce();
    start();
    finish_runs();
    workers[0]->on_job = [this](const Job& job) -> FakeWorker::Behaviour {
      return inspects(job, "z") ? inspected("system-2") : FakeWorker::Behaviour();
    };
    discover({{"targets", {"z"}}});
    REQUIRE(target("z").state == TargetState::kChanged);
    workers[0]->on_job = [this](const Job& job) -> FakeWorker::Behaviour {
      if (inspects(job, "z")) return inspected("system-2");
      return std::holds_alternative<InspectJob>(job.operation) ? FakeWorker::Behaviour(FakeWorker::Hold{})
                                                               : FakeWorker::Behaviour();
    };
    id = api("discover")["run"];
    advance(Millis(200));
    REQUIRE(run(id)["state"] == "running");
    api("targets-accept", {{"target", "z"}});
    REQUIRE(target("z").state == TargetState::kActive);
  }

  Json id;
};

}  // namespace

TEST_CASE_METHOD(WaitingTarget, "a target that is accepted before a run comes to it stays accepted") {
  SECTION("the run comes to it") {
    for (int i = 0; i < 10; ++i) {
      workers[0]->release();
      advance(Millis(200));
    }
    finish_runs();
    CHECK(run(id)["state"] == "complete");
  }
  SECTION("the run is given up before") {
    advance(config.limits.run_deadline);
    CHECK(run(id)["state"] == "failed");
  }
  CHECK(target("z").state == TargetState::kActive);
}

TEST_CASE_METHOD(KnownTargets, "that a target is another is told once, however many runs wait for it") {
  add_target("u", "MS");
  add_worker();
  auto& other = add_worker("w2", make_manifest({{"MS::Box", ""}}, "MS"));
  start();
  finish_runs();
  hold_lists("t");
  api("discover", {{"targets", {"t"}}});
  advance(Millis(200));
  const auto all = api("discover")["run"];
  other.on_job = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  system.inspection.system = "system-2";
  const auto second = api("discover", {{"targets", {"u"}}})["run"];
  advance(Millis(200));
  REQUIRE(run(second)["state"] == "running");
  system.inspection.system = "system-1";
  events();
  let_go();
  advance(Millis(200));
  REQUIRE(run(all)["state"] == "running");
  other.on_job = nullptr;
  system.inspection.system = "system-2";
  workers[0]->on_job = [this](const Job& job) -> FakeWorker::Behaviour {
    return inspects(job, "t") ? inspected("system-1") : FakeWorker::Behaviour();
  };
  other.release();
  finish_runs();
  CHECK(run(all)["state"] == "partial");
  CHECK(target("u").state == TargetState::kChanged);
  CHECK(events("target.changed").size() == 1);
}

namespace {

/// A target of a file that gets another name while a run looks at it, and another one waits for that.
struct RenamedTarget : CommandsFixture {
  RenamedTarget() {
    system.add("NS::Box", {.id = "wild", .properties = R"({"name":"wild"})"});
    start_discovered();
    auto made = box("a");
    made["target"] = "new";
    request = {{"stacks", {{{"stack", "shop"}, {"resources", {made}}}}}, {"mode", "reconcile"}};
    request["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}, {"discover", GENERATE(true, false)}}});
    REQUIRE(apply(request)["state"] == "complete");
    finish_runs();
    worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
      if (job.target.name == "new" && std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
      return {};
    };
    first = api("discover", {{"targets", {"new"}}})["run"];
    advance(Millis(200));
    next = api("discover", {{"targets", {"new"}}})["run"];
    REQUIRE(next != first);
    request["targets"][0]["name"] = "newer";
    request["targets"][0]["renamed_from"] = "new";
    request["stacks"][0]["resources"][0]["target"] = "newer";
    REQUIRE(apply(request)["state"] == "complete");
    worker().on_job = {};
  }
  Json run(const Json& id) { return api("run", {{"run", id}}); }

  Json request, first, next;
};

}  // namespace

TEST_CASE_METHOD(RenamedTarget, "a run that was asked for looks at the target under the name that it has got since") {
  SECTION("the run before it ends") {
    worker().release();
  }
  SECTION("the coordinator dies meanwhile") {
    restart();
  }
  finish_runs();
  CHECK(run(next)["state"].is_string());
  const auto looked = worker().asked<ListJob>();
  CHECK(std::ranges::any_of(looked, [](const Job& job) { return job.target.name == "newer"; }));
}

TEST_CASE_METHOD(RenamedTarget, "a run tells of a target by the name that it has got meanwhile") {
  events();
  system.thing("NS::Box", "wild").properties = R"({"name":"wild","size":2})";
  worker().release();
  finish_runs();
  CHECK(scan_of(run(next), "NS::Box", "newer")["complete"] == true);
  CHECK(scan_of(run(first), "NS::Box", "newer")["complete"] == true);
  for (const auto& event : events("resource.changed")) CHECK(event["data"]["target"] != "new");
}
