// What is told of a run and of its jobs: in reports, in events, and while it is under way.
#include <algorithm>
#include <string>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Strings = std::vector<std::string>;

namespace {

struct ReportsFixture : CoordinatorFixture {
  ReportsFixture() {
    manifest = make_manifest({{"NS::Box", ""}});
    for (const auto* id : {"a", "b"}) system.add("NS::Box", {.id = id});
  }
  template <typename Operation>
  void answer(const FakeWorker::Behaviour& with) {
    workers.at(0)->on_job = [with](const Job& job) {
      return std::holds_alternative<Operation>(job.operation) ? with : FakeWorker::Behaviour();
    };
  }
  Json run(const Json& id) { return api("run", {{"run", id}}); }
};

}  // namespace

TEST_CASE_METHOD(ReportsFixture, "the end of a run tells what all its scans have counted") {
  add_target("u");
  for (const auto* id : {"goes", "moves"}) system.add("NS::Box", {.id = id, .uid = std::string("u-") + id});
  start_discovered();
  events();
  system.thing("NS::Box", "a").properties = R"({"size":1})";
  system.thing("NS::Box", "moves").id = "moved";
  system.remove("NS::Box", "goes");
  discover();
  const auto told = events("run.finished");
  REQUIRE(told.size() == 1);
  const auto& data = told[0]["data"];
  CHECK(data["scans"] == 2);
  CHECK(data["scans_ended"] == 2);
  CHECK(data["listed"] == 6);
  CHECK(data["read"] == 6);
  CHECK(data["changed"] == 2);
  CHECK(data["unchanged"] == 2);
  CHECK(data["renamed"] == 2);
  CHECK(data["missing"] == 2);
  CHECK(data["problems"] == 0);
}

TEST_CASE_METHOD(ReportsFixture, "progress tells how many of the scans have ended") {
  add_target("u");
  start_discovered();
  events();
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const bool waits = job.target.name == "u" && std::holds_alternative<ListJob>(job.operation);
    return waits ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
  };
  api("discover");
  advance(Millis(3000));
  const auto told = events("run.progress");
  REQUIRE_FALSE(told.empty());
  CHECK(told.back()["data"]["scans"] == 2);
  CHECK(told.back()["data"]["scans_ended"] == 1);
}

TEST_CASE_METHOD(ReportsFixture, "a run that workers are there for waits for none, and what it looks at is not stale") {
  start_discovered();
  answer<ListJob>(FakeWorker::Hold{});
  const auto asked = api("discover");
  advance(Millis(1000));
  const auto report = run(asked["run"]);
  REQUIRE(report["state"] == "running");
  CHECK_FALSE(report.contains("waiting"));
  CHECK(state_of("NS::Box", "a") == "present");
}

TEST_CASE_METHOD(ReportsFixture, "a problem names the job that brought it, and none where it was no job") {
  config.limits.run_deadline = Millis(30'000);
  config.limits.job_deadline = Millis(60'000);  // so that no job says it first
  config.retry.attempts = 1;
  start_discovered();
  SECTION("a job") {
    answer<ListJob>(JobResult(Error{Errc::kAccessDenied, "no", {}, 0}));
    const auto problem = discover()["problems"].at(0);
    CHECK(problem["job"] == workers[0]->asked<ListJob>().back().id.value);
    CHECK(problem["plugin"] == "fake 1.0.0");
  }
  SECTION("the deadline") {
    const bool after_a_job = GENERATE(false, true);
    after_a_job ? answer<ReadJob>(FakeWorker::Hold{}) : answer<ListJob>(FakeWorker::Hold{});
    const auto problem = discover()["problems"].at(0);
    CHECK(problem["code"] == "TIMEOUT");
    CHECK_FALSE(problem.contains("job"));
    CHECK_FALSE(problem.contains("plugin"));
  }
}

TEST_CASE_METHOD(ReportsFixture, "a report keeps the first thousand problems, and counts the others") {
  start_discovered();
  ListResult page;
  for (int i = 0; i < 1100; ++i) page.items.push_back({"a", "", {}});
  answer<ListJob>(JobResult(page));
  const auto asked = api("discover");
  finish_runs();
  const auto report = Json::parse(store->run(RunId(asked["run"].get<std::string>())).value()->report);
  CHECK(report["problems"].size() == 1000);
  CHECK(report.value("more_problems", 0) == 99);
}

TEST_CASE_METHOD(ReportsFixture, "what could not be read is an error of its scan, with the code of the plugin") {
  config.retry.attempts = 1;
  start_discovered();
  const Error denied{Errc::kAccessDenied, "no", {}, 0};
  SECTION("as a whole") {
    answer<ReadJob>(JobResult(denied));
  }
  SECTION("each by itself") {
    answer<ReadJob>(JobResult(ReadResult{{denied, denied}}));
  }
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(report["problems"].at(0)["code"] == "ACCESS_DENIED");
  CHECK_THAT(report["problems"].at(0)["message"].get<std::string>(), Catch::EndsWith(": no"));
  CHECK(scan_of(report, "NS::Box")["errors"] == 2);
  CHECK(scan_of(report, "NS::Box")["complete"] == false);
  CHECK(events("run.finished").back()["data"]["errors"] == 2);
}

TEST_CASE_METHOD(ReportsFixture, "an attempt that another follows is told as such, and the last one as a failure") {
  start_discovered();
  events();
  answer<InspectJob>(JobResult(Error{Errc::kNetwork, "no route", {}, 0}));
  discover();
  Strings told;
  for (const auto& event : events("job.")) told.push_back(event["type"]);
  CHECK(told == Strings{"muster.job.retried", "muster.job.retried", "muster.job.failed"});
}

TEST_CASE_METHOD(CommandsFixture, "what is declared of a type that is not discovered does not go stale in a run") {
  manifest.types[0].discoverable = false;
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "made-1") == "present");
  for (const auto& job : worker().asked<ListJob>()) CHECK(job.type != "NS::Box");
}

TEST_CASE_METHOD(CommandsFixture,
                 "what is declared of a type that is not discovered is seen to drift, and to be gone") {
  config.drift_interval = Millis(60'000);
  manifest.types[0].discoverable = false;
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}}), box("b")}))["state"] == "complete");
  edit("a", "size", 2);
  advance(Millis(61'000));
  finish_runs();
  CHECK(row("NS::Box", "made-1").drifted);
  CHECK(events("resource.drifted").size() == 1);
  system.remove("NS::Box", "made-2");
  advance(Millis(61'000));
  finish_runs();
  CHECK(state_of("NS::Box", "made-1") == "present");
  CHECK(state_of("NS::Box", "made-2") == "missing");
  CHECK(events("resource.vanished").size() == 1);
  advance(Millis(121'000));
  CHECK(events("resource.").empty());
  for (const auto& job : worker().asked<ListJob>()) CHECK(job.type != "NS::Box");
}

TEST_CASE_METHOD(ReportsFixture, "a run does not wait for workers of a target that it is done with") {
  add_target("u").pool = "far";
  auto& far = *workers.emplace_back(std::make_unique<FakeWorker>(broker, clock, "far", manifest, system));
  far.announcement.pool = "far";
  far.announce();
  start_discovered();
  far.on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  const auto asked = api("discover");
  advance(Millis(1000));
  remove_worker("w1");
  advance(Millis(5000));
  const auto report = run(asked["run"]);
  REQUIRE(report["state"] == "running");
  CHECK_FALSE(report.contains("waiting"));
}

TEST_CASE_METHOD(ReportsFixture, "an inspection that is not answered for half a minute is given up") {
  config.limits.job_deadline = Millis(250'000);
  const bool says_which = GENERATE(true, false);  // without its word, it is the system that it was
  if (!says_which) system.inspection.system.clear();
  start_discovered();
  answer<InspectJob>(FakeWorker::Hold{});
  const auto began = clock.now();
  const auto report = discover();
  CHECK(clock.now() - began < Millis(40'000));
  CHECK(report["problems"].at(0)["code"] == "TIMEOUT");
  CHECK(scan_of(report, "NS::Box")["complete"] == !says_which);
}

TEST_CASE_METHOD(ReportsFixture, "a report tells when its run began, and how long it took") {
  start_discovered();
  answer<ListJob>(FakeWorker::Hold{});
  const auto began = clock.wall();
  const auto asked = api("discover");
  advance(Millis(3000));
  CHECK(run(asked["run"])["finished_at"].is_null());
  workers[0]->on_job = nullptr;
  workers[0]->release();
  finish_runs();
  const auto report = run(asked["run"]);
  const auto at = [&](const char* when) { return parse_rfc3339(report[when].get<std::string>()).value(); };
  CHECK(at("started_at") >= began);
  CHECK(at("started_at") - began < Millis(1000));
  CHECK(report["duration_ms"] >= 3000);
  CHECK(Millis(report["duration_ms"]) == at("finished_at") - at("started_at"));
}
