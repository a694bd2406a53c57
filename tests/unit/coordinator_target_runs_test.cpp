// Targets that files declare: when they are looked at, and what becomes of a run over one that is declared anew.
#include <algorithm>

#include "support/targets_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;

TEST_CASE_METHOD(TargetsFixture, "of the targets of a file those are looked at that are new and to be discovered") {
  start_discovered();
  auto request = file();
  const bool discovers = GENERATE(true, false);
  request["targets"][0]["discover"] = discovers;
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(looks() == (discovers ? 1 : 0));
  request["stacks"][0]["resources"][0]["properties"]["size"] = 2;
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(looks() == (discovers ? 1 : 0));
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file that is not to be discovered any more is looked at no more") {
  auto request = looked_at_every_ten_seconds();
  request["targets"][0]["discover"] = false;
  CHECK(apply(request)["state"] == "complete");
  advance(Millis(60'000));
  finish_runs();
  CHECK(looks() == 4);
}

TEST_CASE_METHOD(TargetsFixture, "a target is looked at as often as before when its file is applied again") {
  auto request = looked_at_every_ten_seconds();
  request["stacks"][0]["resources"][0]["properties"]["size"] = 2;
  SECTION("as it was") {}
  SECTION("with another interval") {
    request["targets"][0]["interval_ms"] = 2'000;
  }
  CHECK(apply(request)["state"] == "complete");
  const auto before = looks();
  advance(Millis(20'000));
  finish_runs();
  CHECK(looks() - before == (request["targets"][0]["interval_ms"] == 2'000 ? 10 : 2));
}

TEST_CASE_METHOD(TargetsFixture, "a file that is applied again and again keeps nobody from looking at its targets") {
  start_discovered();
  auto request = file();
  request["targets"][0]["interval_ms"] = 10'000;
  REQUIRE(apply(request)["state"] == "complete");
  finish_runs();
  const auto before = looks();
  for (int i = 0; i < 10; ++i) {
    request["stacks"][0]["resources"][0]["properties"]["size"] = i;
    REQUIRE(apply(request)["state"] == "complete");
    advance(Millis(6000));
  }
  CHECK(looks() - before >= 5);
}

TEST_CASE_METHOD(TargetsFixture, "a target that has got another name is looked at under that alone") {
  start_discovered();
  auto request = file();
  request["targets"][0]["interval_ms"] = 10'000;
  REQUIRE(apply(request)["state"] == "complete");
  advance(Millis(5000));
  request["targets"][0]["name"] = "other";
  request["targets"][0]["renamed_from"] = "new";
  request["stacks"][0]["resources"][0]["target"] = "other";
  static_cast<void>(api("apply", request));
  finish_runs();
  const auto runs = store->runs({}, 100).value().size();
  advance(Millis(29'000));
  CHECK(store->runs({}, 100).value().size() - runs == 2);
}

TEST_CASE_METHOD(TargetsFixture, "for a target that has left nothing is run when it would have been due") {
  system.add("NS::Box", {.id = "wild"});  // which nobody manages there
  start_discovered();
  auto request = file();
  request["targets"][0]["interval_ms"] = 10'000;
  REQUIRE(apply(request)["state"] == "complete");
  advance(Millis(1000));
  auto gone = request;
  gone["mode"] = "destroy";
  REQUIRE(apply(gone)["state"] == "complete");
  finish_runs();
  REQUIRE(target_state() == "removed");
  const auto runs = store->runs({}, 100).value().size();
  advance(Millis(30'000));
  CHECK(store->runs({}, 100).value().size() == runs);
  auto before = looks();
  REQUIRE(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(looks() == before + 1);
  before = looks();
  advance(Millis(20'000));
  CHECK(looks() - before == 2);
}

TEST_CASE_METHOD(TargetsFixture, "of targets that may be others that one is accepted which is named") {
  add_target("u");
  system.add("NS::Box", {.id = "1"});
  start_discovered();
  crash();
  for (auto& target : config.targets) target.config.json = config_of("b")["json"];
  start();
  finish_runs();
  const auto accepted = GENERATE("t", "u");
  api("targets-accept", {{"target", accepted}});
  finish_runs();
  for (const auto* name : {"t", "u"}) {
    CHECK((store->target(name).value()->state == TargetState::kActive) == (name == std::string(accepted)));
  }
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file is looked at once it is to be discovered") {
  start_discovered();
  auto request = file();
  request["targets"][0]["discover"] = false;
  CHECK(apply(request)["state"] == "complete");
  request["targets"][0]["discover"] = true;
  apply(request);
  finish_runs();
  CHECK(looks() == 1);
}

TEST_CASE_METHOD(TargetsFixture, "a target of which nothing is known is looked at once it is declared anew") {
  start_discovered();
  auto request = file();
  request["stacks"][0]["resources"] = Json::array();
  for (const auto* zone : {"a", "b"}) {
    request["targets"][0]["config"] = config_of(zone);
    system.inspection.system = std::string("system-") + zone;
    api("apply", request);
    finish_runs();
  }
  CHECK(looks() == 2);
  CHECK(store->target("new").value()->state == TargetState::kActive);
  CHECK(worker().jobs.back().target.config.json == store->target("new").value()->config.json);
}

TEST_CASE_METHOD(TargetsFixture, "a target that may be another is not looked at before that is accepted") {
  start_discovered();
  auto request = file();
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  const auto last = last_report()["run"];
  request["targets"][0]["config"] = config_of("b");
  api("apply", request);
  finish_runs();
  CHECK(store->target("new").value()->state == TargetState::kChanged);
  CHECK(last_report()["run"] == last);
}

namespace {

/// A run over the target `new` that is under way: its listing has been asked for, and not answered.
struct RunUnderWay : TargetsFixture {
  RunUnderWay() {
    start_discovered();
    declare("a");
    REQUIRE(apply(request)["state"] == "complete");
    finish_runs();
  }
  void begin_run() {
    worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
      if (job.target.name == "new" && std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
      return {};
    };
    const auto before = lists();
    id = api("discover", {{"targets", {"new"}}})["run"];
    wait_until([&] { return lists() > before; });
  }
  Json end_run() {
    worker().on_job = nullptr;
    worker().release();
    finish_runs();
    return api("run", {{"run", id}});
  }
  std::ptrdiff_t lists() {
    return std::ranges::count_if(worker().asked<ListJob>(), [](const Job& job) { return job.target.name == "new"; });
  }
  void declare(const std::string& zone) { request["targets"][0]["config"] = config_of(zone); }
  TargetRow target() { return store->target("new").value().value(); }
  std::string problem(const Json& report) { return report["problems"].at(0)["code"]; }

  Json request = file();
  std::string id;
};

}  // namespace

TEST_CASE_METHOD(RunUnderWay, "a run takes nothing of a target that is declared anew meanwhile") {
  begin_run();
  declare("b");
  api("apply", request);
  const bool accepts = GENERATE(false, true);
  if (accepts) api("targets-accept", {{"target", "new"}});
  const auto report = end_run();
  CHECK(report["state"] == "partial");
  CHECK(problem(report) == "TARGET_CHANGED");
  CHECK(target().config.json == config_of("b")["json"]);
  CHECK(target().state == (accepts ? TargetState::kActive : TargetState::kChanged));
  CHECK(api("resource", {{"target", "new"},
                         {"type", "NS::Box"},
                         {"native_id", row("NS::Box", "made-1", "new").native_id}})["state"] ==
        (accepts ? "present" : "stale"));
  if (accepts) CHECK(worker().jobs.back().target.config.json == target().config.json);
}

TEST_CASE_METHOD(RunUnderWay, "a run tells what it did not look at of a target that was declared anew before") {
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const bool looks = job.target.name == "new" && std::holds_alternative<InspectJob>(job.operation);
    return looks ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
  };
  id = api("discover", {{"targets", {"new"}}})["run"];
  advance(Millis(200));
  declare("b");
  api("apply", request);
  const auto report = end_run();
  CHECK(report["state"] == "partial");
  CHECK(problem(report) == "TARGET_CHANGED");
  CHECK(scan_of(report, "NS::Box", "new")["complete"] == false);
}

TEST_CASE_METHOD(RunUnderWay, "a run that goes on elsewhere tells once that a target is declared anew") {
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  id = api("discover", {{"targets", {"new", "t"}}})["run"];
  advance(Millis(200));
  declare("b");
  api("apply", request);
  advance(Millis(1000));
  const auto next = api("discover", {{"targets", {"new"}}})["run"];  // which nothing looks at any more
  advance(Millis(200));
  CHECK(api("run", {{"run", next}})["state"] == "partial");
  CHECK(api("run", {{"run", id}})["state"] == "running");
  const auto report = end_run();
  CHECK(report["problems"].size() == 1);
  CHECK(problem(report) == "TARGET_CHANGED");
  CHECK(report["scans"].size() == 4);  // of two types on two targets
}

TEST_CASE_METHOD(RunUnderWay, "a target that leaves while a run looks at it does not come back") {
  begin_run();
  auto gone = request;
  gone["mode"] = "destroy";
  CHECK(apply(gone)["state"] == "complete");
  CHECK(target_state() == "removed");
  CHECK(problem(end_run()) == "TARGET_CHANGED");
  CHECK(target_state() == "removed");
}

TEST_CASE_METHOD(RunUnderWay, "what is declared of a target stays when a run over it ends") {
  begin_run();
  request["targets"][0]["interval_ms"] = 7'000'000;
  api("apply", request);
  CHECK(end_run()["state"] == "complete");
  CHECK(target().interval == Millis(7'000'000));
}

TEST_CASE_METHOD(CoordinatorFixture,
                 "a run whose version of the plugin has gone waits for it once, not for each look") {
  constexpr std::size_t kBoxes = 300;
  for (std::size_t i = 0; i < kBoxes; ++i) system.add("NS::Box", {.id = "b" + std::to_string(i)});
  system.page = 100;
  manifest.types[0].read_batch = 2;
  std::function<bool(const Job&)> last;  // what the version that goes is asked for, and answers no more
  SECTION("below each parent") {
    last = [](const Job& job) { return job.type == "NS::Item"; };
  }
  SECTION("for each object") {
    last = [](const Job& job) { return std::holds_alternative<ReadJob>(job.operation); };
  }
  start_discovered();
  bool asked = false;
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!last(job)) return {};
    asked = true;
    return FakeWorker::Silent{};
  };
  const std::string id = api("discover")["run"];
  wait_until([&] { return asked; });
  remove_worker("w1");
  auto next = manifest;
  next.version = "2.0.0";
  add_worker("w2", next);
  advance(Millis(5000));
  CHECK_THAT(api("run", {{"run", id}})["waiting"].get<std::string>(), Catch::Contains(" that serves "));
  wait_until([&] { return coordinator->idle(); }, 3 * config.limits.job_deadline);
  const auto report = api("run", {{"run", id}});
  CHECK(report["state"] == "partial");
  CHECK(std::ranges::count_if(report["problems"], [](const Json& problem) {
          const auto said = problem["message"].get<std::string>();
          return problem["code"] == "NO_WORKER" && said.find("which this run began with, any more: ") < said.size();
        }) == 1);
  CHECK(listed("NS::Box").size() == kBoxes);
  REQUIRE(report.value("followed_by", Json::array()).size() == 1);
  CHECK(api("run", {{"run", report["followed_by"][0]}})["state"] == "complete");
}
