// When runs begin, which run answers for what was asked, and how each of them ends: triggers, intervals, restarts,
// a store that fails, a deadline.
#include <algorithm>

#include <catch2/catch.hpp>

#include "coordinator/event_log.h"
#include "support/runs_fixture.h"

using namespace muster;
using test::FakeWorker;
using test::RunsFixture;
using Strings = std::vector<std::string>;

TEST_CASE_METHOD(RunsFixture, "a trigger during a run gives the run that follows, and further ones join it") {
  start_discovered();
  hold_lists();
  const auto first = api("discover");
  advance(Millis(200));
  REQUIRE(run(first["run"])["state"] == "running");
  const auto second = api("discover", {{"types", {"NS::Box"}}});
  const auto third = api("discover", {{"types", {"NS::Item"}}});
  CHECK(second["run"] != first["run"]);
  CHECK(third["run"] == second["run"]);
  CHECK(run(second["run"])["state"] == "queued");
  let_go();
  finish_runs();
  CHECK(run(first["run"])["state"] == "complete");
  const auto report = run(second["run"]);
  CHECK(report["state"] == "complete");
  CHECK(report["scans"].size() == 2);  // what both of them asked for
}

TEST_CASE_METHOD(RunsFixture, "a run that nothing holds up asks at once, whatever else the coordinator waits for") {
  start_discovered();
  settle();
  workers[0]->jobs.clear();
  user->publish({Subjects(config.prefix).api("discover"), user->inbox() + ".at-once", R"({"api":1})", {}}).value();
  coordinator->turn();
  workers[0]->turn();
  CHECK((!workers[0]->jobs.empty() || coordinator->next_due() <= clock.now()));
}

TEST_CASE_METHOD(RunsFixture, "a listing that does not end is ended, and nothing is missing for it") {
  start_discovered();
  for (int i = 0; i < 9; ++i) system.add("NS::Box", {.id = "more" + std::to_string(i)});
  config.limits.resources_per_type = 4;
  restart();
  system.remove("NS::Box", "a");  // the first of them
  const auto report = discover();
  CHECK(report["state"] == "partial");
  const auto scan = scan_of(report, "NS::Box");
  CHECK(scan["listed"] == 4);
  CHECK(scan["complete"] == false);
  CHECK(scan["missing"] == 0);
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["code"] == "LIMIT");
  CHECK(report["problems"][0]["message"].get<std::string>().find("there are more than 4") != std::string::npos);
  CHECK(state_of("NS::Box", "a") == "stale");
}

TEST_CASE_METHOD(RunsFixture, "that there is more than a run lists is told once, and only where there is") {
  SECTION("below each of several things") {
    config.limits.resources_per_type = 3;
    for (const std::string box : {"a", "b", "c"}) {
      for (int i = 2; i < 6; ++i) system.add("NS::Item", {.id = box + std::to_string(i), .parent = box});
    }
    start_discovered();
    REQUIRE(last_report()["problems"].size() == 1);
    CHECK(last_report()["problems"][0]["type"] == "NS::Item");
    CHECK(scan_of(last_report(), "NS::Box")["complete"] == true);
  }
  SECTION("before a last page that is empty") {
    config.limits.resources_per_type = 2;
    add_worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
      const auto* list = std::get_if<ListJob>(&job.operation);
      if (list == nullptr || job.type != "NS::Box") return {};
      ListResult page;
      if (!list->page_token.empty()) return JobResult(page);
      for (const auto* id : {"a", "b"}) page.items.push_back({.native_id = id, .properties = "{}"});
      page.next_page_token = "last";
      return JobResult(page);
    };
    start();
    finish_runs();
    CHECK(last_report()["problems"].empty());
    CHECK(scan_of(last_report(), "NS::Box")["listed"] == 2);
  }
}

TEST_CASE_METHOD(RunsFixture, "a run waits for a worker that fell silent, and for none that is about to leave") {
  start_discovered();
  const bool drains = GENERATE(true, false);
  workers.at(0)->draining = drains;
  workers.at(0)->alive = drains;
  advance(Millis(5000));
  const auto asked = api("discover");
  settle();
  CHECK((run(asked["run"])["state"] == "queued") == !drains);
}

TEST_CASE_METHOD(RunsFixture, "a trigger of named targets is not lost in a waiting run over all") {
  add_target("hidden").discover = false;
  start();
  const auto asked = api("discover", {{"targets", {"hidden"}}});  // joins the run of the start, which waits for workers
  add_worker();
  finish_runs();
  const auto report = run(asked["run"]);
  CHECK(report["state"] == "complete");
  CHECK(std::ranges::any_of(report["scans"], [](const Json& scan) { return scan["target"] == "hidden"; }));
}

TEST_CASE_METHOD(RunsFixture, "a run over named targets and types looks at nothing else") {
  add_target("u");
  start_discovered();
  auto report = discover({{"targets", {"u"}}});
  CHECK(report["scans"].size() == 2);
  for (const auto& scan : report["scans"]) CHECK(scan["target"] == "u");
  report = discover({{"types", {"NS::Box"}}, {"targets", {"t"}}});
  REQUIRE(report["scans"].size() == 1);
  CHECK(report["scans"][0]["type"] == "NS::Box");
  report = discover({{"types", {"NS::Item"}}, {"targets", {"t"}}});
  CHECK(report["scans"].size() == 2);  // children are found below their parents
}

TEST_CASE_METHOD(RunsFixture, "a run over a type looks at all that its objects lie in, however deep") {
  manifest = test::make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}, {"NS::Part", "NS::Item"}});
  start_discovered();
  system.add("NS::Part", {.id = "a1-part", .parent = "a1"});
  const auto report = discover({{"types", {"NS::Part"}}});
  CHECK(report["scans"].size() == 3);
  CHECK(scan_of(report, "NS::Part")["listed"] == 1);
  CHECK(row("NS::Part", "a1-part").parent_native_id == "a1");
}

TEST_CASE_METHOD(RunsFixture, "a target is asked no more often than its worker says that it bears") {
  for (int i = 0; i < 6; ++i) system.add("NS::Box", {.id = "more" + std::to_string(i)});
  auto& worker = add_worker();
  worker.announcement.max_requests_per_second = 2;  // said when the roll is called
  std::vector<TimePoint> asked;
  worker.on_job = [&](const Job&) -> FakeWorker::Behaviour {
    asked.push_back(clock.now());
    return {};
  };
  start();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  REQUIRE(asked.size() > 10);
  for (std::size_t i = 2; i < asked.size(); ++i) {  // a second's worth goes at once
    CHECK(asked[i] - asked[0] >= Millis(500) * (i - 1) - Millis(1));
  }
}

TEST_CASE_METHOD(RunsFixture, "a run lists all of a target that may be asked seldom, however many slots its pool has") {
  for (int i = 0; i < 200; ++i) system.add("NS::Box", {.id = "more" + std::to_string(i)});
  system.page = 1000;
  config.limits.requests_per_second = 1;
  add_worker().announcement.slots = 64;
  workers[0]->announce();
  start();
  finish_runs();
  const auto report = last_report();
  CHECK(report["problems"] == Json::array());
  CHECK(report["state"] == "complete");
}

TEST_CASE_METHOD(RunsFixture, "a run lists all though each page takes long and there are few slots") {
  for (int i = 0; i < 40; ++i) system.add("NS::Box", {.id = "more" + std::to_string(i)});
  system.page = 1000;
  add_worker().announcement.slots = 1;
  workers[0]->announce();
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  start();
  for (int i = 0; i < 100 && !coordinator->idle(); ++i) {
    advance(Millis(10'000));
    workers[0]->release();
  }
  const auto report = last_report();
  CHECK(report["problems"] == Json::array());
  CHECK(report["state"] == "complete");
}

TEST_CASE_METHOD(RunsFixture, "one worker that says the system bears next to nothing does not stop its pool") {
  auto& sly = add_worker("w1");
  sly.announcement.max_requests_per_second = 1e-9;
  SECTION("beside one that knows no limit") {
    add_worker("w2");
    start();
    finish_runs();
    CHECK(last_report()["state"] == "complete");
  }
  SECTION("alone: ten seconds for each call") {
    start();
    advance(Millis(120'000));
    CHECK(sly.jobs.size() > 5);
  }
}

TEST_CASE_METHOD(RunsFixture, "a run goes on without a limit when its workers know one no more") {
  for (int i = 0; i < 40; ++i) system.add("NS::Box", {.id = "more" + std::to_string(i)});
  add_worker("w1").announcement.max_requests_per_second = 0.1;
  start();
  advance(Millis(20'000));
  REQUIRE(runs_in("running") == 1);
  if (GENERATE(false, true)) {
    workers.front()->draining = true;
    advance(Millis(2000));
    remove_worker("w1");
    advance(Millis(60'000));
    add_worker("w2");
  } else {
    workers.front()->announcement.max_requests_per_second = 0;
    workers.front()->announce();
  }
  advance(Millis(60'000));
  CHECK(runs_in("complete") == 1);
}

TEST_CASE_METHOD(RunsFixture, "what waits for a target that will not be asked holds up no other of its workers") {
  for (int i = 0; i < 40; ++i) system.add("NS::Box", {.id = "more" + std::to_string(i)});
  add_target("u");
  auto& worker = add_worker();
  worker.on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (job.target.name != "t" || job.type != "NS::Item") return {};
    return JobResult(Error{Errc::kThrottling, "not now", Millis(60'000), 0});
  };
  start();
  advance(Millis(30'000));
  REQUIRE(last_report()["state"] == "running");
  const auto asked = worker.asked<ListJob>();
  CHECK(std::ranges::count_if(asked, [](const Job& job) { return job.target.name == "u" && job.type == "NS::Item"; }) ==
        43);
}

TEST_CASE_METHOD(RunsFixture,
                 "pages that take more than a second to come, in parts, are not asked for again and again") {
  auto& worker = add_worker();
  worker.on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation)) return {};
    return FakeWorker::Silent{};
  };
  start();
  for (int i = 0; i < 1000 && worker.asked<ListJob>().empty(); ++i) advance(Millis(20));
  const auto asked = worker.asked<ListJob>();
  REQUIRE_FALSE(asked.empty());
  const auto& job = asked.front();
  const auto reply_to = Subjects(config.prefix).reply("NS", worker.answers.back().coordinator, job.token);
  worker.alive = false;  // the link is busy with what is below
  advance(Millis(1'500));
  const auto whole = encode(JobReply{job.fleet, job.id, job.token, worker.announcement.worker, job.attempt, 1,
                                     JobResult(system.answer(job))});
  worker.send_reply(job, reply_to, Part{0, 2, whole.substr(0, 8)});
  advance(Millis(1'000));
  worker.send_reply(job, reply_to, Part{1, 2, whole.substr(8)});
  worker.alive = true;
  worker.on_job = nullptr;
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  const auto lists = worker.asked<ListJob>();
  CHECK(std::ranges::count_if(lists, [&](const Job& each) { return each.id == job.id; }) == 1);
}

TEST_CASE_METHOD(RunsFixture, "children of a type that the run does not look at go with their parent all the same") {
  start_discovered();
  events();
  system.remove("NS::Box", "a");
  system.remove("NS::Item", "a1");
  discover({{"types", {"NS::Box"}}});
  CHECK(state_of("NS::Box", "a") == "vanished");
  CHECK(state_of("NS::Item", "a1") == "vanished");
  CHECK(resource_events() == Strings{"vanished:a", "vanished:a1"});
}

TEST_CASE_METHOD(RunsFixture, "a target that is not to be discovered is looked at only when it is named") {
  config.targets[0].discover = false;
  config.targets[0].interval = Millis(10'000);
  start_discovered();
  CHECK(last_report()["scans"].empty());
  CHECK(discover({{"targets", {"t"}}})["scans"].size() == 2);
  CHECK(listed("NS::Box").size() == 3);
  const auto runs = store->runs({}, 100).value().size();
  advance(Millis(30'000));
  CHECK(store->runs({}, 100).value().size() == runs);
}

TEST_CASE_METHOD(RunsFixture, "runs come again per interval, each target at its own") {
  add_target("u").interval = Millis(10'000);
  config.discovery_interval = Millis(60'000);
  start_discovered();
  workers[0]->jobs.clear();
  advance(Millis(115'000));
  finish_runs();
  std::map<std::string, int> inspected;
  for (const auto& job : workers[0]->asked<InspectJob>()) ++inspected[job.target.name];
  CHECK(inspected["t"] == 1);
  CHECK(inspected["u"] >= 10);
  CHECK(last_report()["trigger"] == "interval");
}

TEST_CASE_METHOD(RunsFixture, "without an interval nothing happens until it is asked for") {
  start_discovered();
  workers[0]->jobs.clear();
  advance(std::chrono::hours(2));
  CHECK(workers[0]->jobs.empty());
}

TEST_CASE_METHOD(RunsFixture, "a coordinator that starts again takes up the run that did not end") {
  start_discovered();
  system.add("NS::Box", {.id = "new"});
  hold_lists();
  const auto asked = api("discover");
  advance(Millis(1000));
  REQUIRE(run(asked["run"])["state"] == "running");
  events();
  restart();
  let_go();
  finish_runs();
  CHECK(run(asked["run"])["state"] == "complete");
  CHECK(runs_in("running") == 0);
  CHECK(runs_in("queued") == 0);
  CHECK(listed("NS::Box") == Strings{"a", "b", "c", "new"});
  CHECK(resource_events() == Strings{"discovered:new"});
}

TEST_CASE_METHOD(RunsFixture, "a run that was cut off after it stored something loses and doubles nothing") {
  system.page = 1;
  system.list_properties = true;
  auto& worker = add_worker();
  int lists = 0;
  worker.on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation) && ++lists > 2) return FakeWorker::Hold{};
    return {};
  };
  start();
  advance(Millis(2000));  // the first pages are stored
  REQUIRE(listed("NS::Box").size() >= 1);
  REQUIRE(listed("NS::Box").size() < 3);
  worker.on_job = nullptr;
  restart();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
  CHECK(resource_events() == Strings{"discovered:a", "discovered:a1", "discovered:b", "discovered:c"});
  for (const auto* id : {"a", "b", "c"}) CHECK(row("NS::Box", id).version == 1);
}

TEST_CASE_METHOD(RunsFixture, "several runs that did not end are made one, and each of them ends with a whole report") {
  start_discovered();
  hold_lists();
  const auto first = api("discover");
  const auto second = api("discover");
  advance(Millis(500));
  const auto stopped = rfc3339(clock.wall());
  restart();
  let_go();
  finish_runs();
  for (const auto& asked : {first, second}) {
    const auto report = run(asked["run"]);
    INFO(report.dump());
    CHECK((report["state"] == "complete" || report["state"] == "failed"));
    for (const auto* key : {"trigger", "started_at", "finished_at", "duration_ms", "scans", "problems"}) {
      CHECK(report.contains(key));
    }
    CHECK(report["finished_at"] >= stopped);
  }
  CHECK(runs_in("running") + runs_in("queued") == 0);
  CHECK(store->unfinished_runs().value().empty());
}

TEST_CASE_METHOD(RunsFixture, "a target that a run was asked for by name is looked at after a restart, too") {
  add_target("more").discover = false;
  start_discovered();
  hold_lists();
  api("discover");
  advance(Millis(200));
  SECTION("by a run of its own") {}
  SECTION("by the one that was under way") {
    let_go();
    finish_runs();
    hold_lists();
  }
  SECTION("by one that waited for others already") {
    api("discover");
    advance(Millis(200));
  }
  api("discover", {{"targets", {"more"}}});
  advance(Millis(500));
  restart();
  let_go();
  finish_runs();
  const auto more = api("targets")["items"].at(0);
  CHECK(more["name"] == "more");
  CHECK_FALSE(more["last_run"].is_null());
}

TEST_CASE_METHOD(RunsFixture, "the newest run is the last one, also where the clock was set back over a restart") {
  start_discovered();
  const auto before = last_report()["run"].get<std::string>();
  crash();
  clock.set_wall(clock.wall() - std::chrono::hours(24));
  start();
  finish_runs();
  CHECK(last_report()["run"].get<std::string>() > before);
}

TEST_CASE_METHOD(RunsFixture, "a run has a deadline, and says what was missing then") {
  config.limits.run_deadline = Millis(30'000);
  config.limits.job_deadline = Millis(20'000);
  start_discovered();
  hold_lists();
  const auto asked = api("discover");
  const auto began = clock.now();
  finish_runs();
  CHECK(clock.now() - began < Millis(35'000));
  const auto report = run(asked["run"]);
  CHECK((report["state"] == "partial" || report["state"] == "failed"));
  CHECK(report["problems"].dump().find("TIMEOUT") != std::string::npos);
  for (const auto& scan : report["scans"]) CHECK(scan["complete"] == false);
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(std::ranges::any_of(workers[0]->controls,
                            [](const Control& c) { return std::holds_alternative<Cancel>(c.action); }));
}

TEST_CASE_METHOD(RunsFixture, "a run whose deadline comes says so of each target that is not done") {
  add_target("done");
  add_target("open");
  config.limits.run_deadline = Millis(30'000);
  config.limits.job_deadline = Millis(60'000);  // so that no job says it first
  start_discovered();
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation) && job.target.name != "done") return FakeWorker::Hold{};
    return {};
  };
  const auto report = discover();
  CHECK(report["state"] == "partial");
  Strings told;
  for (const auto& problem : report["problems"]) {
    CHECK(problem["code"] == "TIMEOUT");
    CHECK(problem["message"] == "the run's deadline has come");
    told.push_back(problem["target"]);
  }
  std::ranges::sort(told);
  CHECK(told == Strings{"open", "t"});
  CHECK(scan_of(report, "NS::Box", "done")["complete"] == true);
  CHECK(scan_of(report, "NS::Box", "open")["complete"] == false);
  CHECK(state_of("NS::Box", "a") == "stale");
}

TEST_CASE_METHOD(RunsFixture, "a long run reports its progress, and what it waits for") {
  start_discovered();
  events();
  hold_lists();
  const auto asked = api("discover");
  advance(Millis(5000));
  CHECK_FALSE(events("run.progress").empty());
  remove_worker("w1");
  advance(Millis(5000));
  const auto report = run(asked["run"]);
  CHECK(report["state"] == "running");
  CHECK(report["waiting"].get<std::string>().find("NS/default") != std::string::npos);
  add_worker("w2");
  finish_runs();
  CHECK(run(asked["run"])["state"] == "complete");
}

TEST_CASE_METHOD(RunsFixture, "a run uses one manifest, also while workers of a new version come") {
  start_discovered();
  hold_lists();
  const auto old = workers[0]->announcement.manifest;
  api("discover");
  advance(Millis(500));
  auto newer = manifest;
  newer.version = "2.0.0";
  auto& other = add_worker("w2", newer);
  auto& third = add_worker("w3", newer);
  settle();
  let_go();
  finish_runs();
  CHECK(other.jobs.empty());
  CHECK(third.jobs.empty());
  discover();
  for (const auto* worker : {&other, &third}) {
    for (const auto& job : worker->jobs) CHECK(job.manifest == worker->announcement.manifest);
  }
  CHECK(other.jobs.size() + third.jobs.size() > 0);
  CHECK(workers[0]->jobs.back().manifest == old);
}

TEST_CASE_METHOD(RunsFixture, "messages that are lost or come twice change nothing of the result") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    SeededRandom faults(seed);
    broker.set_policy([&](const Outgoing&, std::string_view from, std::string_view to) {
      if (from == "user" || to == "user") return MemoryBroker::Deliveries{std::chrono::nanoseconds(0)};
      MemoryBroker::Deliveries copies;
      for (int i = 0; i < 2; ++i) {
        if (faults.below(10) < (i == 0 ? 9U : 1U)) copies.push_back(Millis(faults.below(30)));
      }
      return copies;
    });
    if (coordinator == nullptr) {
      add_worker().persistent = true;
      start();
      finish_runs();
    } else {
      discover();
    }
    CHECK(last_report()["state"] == "complete");
    CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
  }
  CHECK(resource_events() == Strings{"discovered:a", "discovered:a1", "discovered:b", "discovered:c"});
}

TEST_CASE_METHOD(RunsFixture, "targets are inspected as there is room, however many wait") {
  for (int i = 0; i < 50; ++i) add_target("more" + std::to_string(i));
  add_worker().announcement.slots = 1;
  workers[0]->announce();
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<InspectJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  start();
  for (int second = 0; second < 200 && !coordinator->idle(); ++second) {
    advance(Millis(2000));
    workers[0]->release();
  }
  const auto report = last_report();
  CHECK(report["state"] == "complete");
  CHECK(report["problems"].empty());
}

TEST_CASE_METHOD(RunsFixture, "targets that cannot be inspected for now keep no other from being inspected") {
  for (const auto* name : {"a", "b", "u"}) add_target(name);
  add_worker().announcement.slots = 1;
  workers[0]->announce();
  const auto code = GENERATE(Errc::kThrottling, Errc::kNetwork);
  CAPTURE(errc_name(code));
  workers.at(0)->on_job = [code](const Job& job) -> FakeWorker::Behaviour {
    const bool meant = job.target.name != "u" && std::holds_alternative<InspectJob>(job.operation);
    return meant ? FakeWorker::Behaviour(JobResult(Error{code, "not now", Millis(20'000), 0}))
                 : FakeWorker::Behaviour();
  };
  start();
  advance(Millis(5000));
  CHECK(asked_of<InspectJob>("t") == 1);
  CHECK(asked_of<InspectJob>("u") == 1);
  CHECK(asked_of<ListJob>("u") > 0);
  finish_runs();
  CHECK(scan_of(last_report(), "NS::Box", "u")["complete"] == true);
}

TEST_CASE_METHOD(RunsFixture, "a run whose deadline comes before a target was looked at has seen nothing of it") {
  config.limits.run_deadline = Millis(5000);
  start_discovered();
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<InspectJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  const auto report = discover();
  CHECK(report["state"] == "failed");
  CHECK(report["problems"].at(0)["code"] == "TIMEOUT");
  CHECK(scan_of(report, "NS::Box")["complete"] == false);
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(store->target("t").value()->reachable);  // nobody has asked it
}
