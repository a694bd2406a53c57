// Runs side by side: which of them begin beside others, and what waits for what.
#include <catch2/catch.hpp>

#include "support/runs_fixture.h"

using namespace muster;
using test::RunsFixture;
using Strings = std::vector<std::string>;

TEST_CASE_METHOD(RunsFixture, "a run waits for no target that it has nothing to do with") {
  add_target("u");
  start_discovered();
  hold_lists("t");
  const auto slow = api("discover");
  advance(Millis(200));
  const auto quick = api("discover", {{"targets", {"u"}}});
  CHECK(quick["merged"] == false);
  advance(Millis(200));
  CHECK(run(quick["run"])["state"] == "complete");
  CHECK(run(quick["run"])["scans"].size() == 2);
  CHECK(run(slow["run"])["state"] == "running");
  CHECK(api("status")["runs"]["active"] == slow["run"]);

  const auto next = api("discover", {{"targets", {"t"}}});  // it is being looked at
  const auto again = api("discover", {{"targets", {"u"}}});
  const auto joined = api("discover", {{"targets", {"t"}}});
  advance(Millis(200));
  CHECK(next["merged"] == false);
  CHECK(joined["run"] == next["run"]);
  CHECK(joined["merged"] == true);
  CHECK(run(next["run"])["state"] == "queued");
  CHECK(run(next["run"])["waiting"] == "waiting for the run before it");
  CHECK(again["merged"] == false);
  CHECK(run(again["run"])["state"] == "complete");
  let_go();
  finish_runs();
  CHECK(run(slow["run"])["state"] == "complete");
  CHECK(run(next["run"])["state"] == "complete");
  CHECK(run(next["run"])["scans"].size() == 2);
}

TEST_CASE_METHOD(RunsFixture, "what is free waits for no run that has to wait") {
  add_target("u");
  config.discovery_interval = Millis(10'000);
  start_discovered();
  hold_lists("t");
  const auto slow = api("discover", {{"targets", {"t"}}});
  advance(Millis(200));
  const auto all = api("discover");
  CHECK(all["merged"] == false);
  advance(Millis(200));
  CHECK(run(all["run"])["state"] == "queued");
  CHECK(run(all["run"])["waiting"] == "waiting for the run before it");
  CHECK(api("discover") == Json{{"run", all["run"]}, {"merged", true}});
  CHECK(api("discover", {{"targets", {"t"}}}) == Json{{"run", all["run"]}, {"merged", true}});
  const auto quick = api("discover", {{"targets", {"u"}}});
  CHECK(quick["merged"] == false);
  workers.at(0)->jobs.clear();
  advance(Millis(60'000));
  CHECK(run(quick["run"])["state"] == "complete");
  CHECK(asked_of<InspectJob>("u") >= 5);  // it has its intervals all the while
  CHECK(asked_of<InspectJob>("t") == 0);
  CHECK(run(all["run"])["state"] == "queued");
  let_go();
  finish_runs();
  CHECK(run(slow["run"])["state"] == "complete");
  CHECK(run(all["run"])["state"] == "complete");
  CHECK(run(all["run"])["scans"].size() == 4);
  CHECK(asked_of<InspectJob>("t") == 1);
}

TEST_CASE_METHOD(RunsFixture, "a run that has waited does not wait again for what was taken meanwhile") {
  add_target("u");
  start_discovered();
  hold_lists();
  const auto first = api("discover", {{"targets", {"t"}}});
  advance(Millis(200));
  const auto all = api("discover");
  const auto second = api("discover", {{"targets", {"u"}}});
  advance(Millis(200));
  CHECK(runs_in("running") == 2);
  CHECK(run(all["run"])["state"] == "queued");
  hold_lists("u");
  workers.at(0)->release();
  advance(Millis(1000));  // u is asked for more
  CHECK(run(first["run"])["state"] == "complete");
  CHECK(run(second["run"])["state"] == "running");
  CHECK(run(all["run"])["state"] == "running");
  CHECK(run(all["run"])["scans"].size() == 2);  // of t
  CHECK(run(all["run"])["waiting"] == "waiting for the run before it");
  let_go();
  finish_runs();
  CHECK(run(second["run"])["state"] == "complete");
  CHECK(run(all["run"])["state"] == "complete");
  CHECK(run(all["run"])["scans"].size() == 4);
}

TEST_CASE_METHOD(RunsFixture, "a run waits for a target no longer than until that has been looked at") {
  add_target("u");
  start_discovered();
  hold_lists();
  const auto slow = api("discover");
  advance(Millis(200));
  const auto next = api("discover", {{"targets", {"u"}}});
  advance(Millis(200));
  REQUIRE(run(next["run"])["state"] == "queued");
  hold_lists("t");
  workers.at(0)->release();
  advance(Millis(200));  // t is asked for more
  CHECK(run(slow["run"])["state"] == "running");
  CHECK(run(next["run"])["state"] == "complete");
  let_go();
  finish_runs();
  CHECK(run(slow["run"])["state"] == "complete");
}

TEST_CASE_METHOD(RunsFixture, "an interval that is over while a target takes long holds for the others") {
  add_target("u");
  add_target("hidden").discover = false;
  config.discovery_interval = Millis(10'000);
  config.drift_interval = Millis(15'000);
  start_discovered();
  discover({{"targets", {"hidden"}}});
  hold_lists("t");
  const auto slow = api("discover", {{"targets", {"t"}}});
  advance(Millis(200));
  workers.at(0)->jobs.clear();
  advance(Millis(60'000));
  CHECK(run(slow["run"])["state"] == "running");
  CHECK(asked_of<InspectJob>("u") >= 5);
  CHECK(asked_of<InspectJob>("t") == 0);
  CHECK(asked_of<InspectJob>("hidden") == 0);
  CHECK(runs_in("queued") == 0);  // one that waited for t would take those of u in
  let_go();
  advance(Millis(5'000));
  CHECK(asked_of<InspectJob>("t") == 1);  // it has been due all the while
}

TEST_CASE_METHOD(RunsFixture, "so many runs are under way at once, and the others wait") {
  Strings names;
  for (std::size_t i = 0; i <= Discovery::kMaxActive; ++i) names.push_back(add_target("u" + std::to_string(i)).name);
  auto& worker = add_worker();
  worker.announcement.slots = 100;
  start();
  finish_runs();
  hold_lists();
  for (const auto& name : names) {
    api("discover", {{"targets", {name}}});
    advance(Millis(20));
  }
  CHECK(runs_in("running") == Discovery::kMaxActive);
  CHECK(runs_in("queued") == 1);
  let_go();
  finish_runs();
  CHECK(runs_in("complete") == names.size() + 1);
}

TEST_CASE_METHOD(RunsFixture, "runs that were under way at once are one after a restart") {
  add_target("u");
  start_discovered();
  hold_lists();
  const auto first = api("discover", {{"targets", {"t"}}});
  advance(Millis(200));
  const auto second = api("discover", {{"targets", {"u"}}});
  advance(Millis(200));
  REQUIRE(runs_in("running") == 2);
  crash();
  workers.at(0)->on_job = nullptr;
  events();
  start();
  finish_runs();
  const auto finished = events("run.finished");  // of each that was told to have started
  REQUIRE(finished.size() == 2);
  CHECK(finished[0]["subject"] == second["run"]);
  CHECK(finished[0]["data"]["merged_into"] == first["run"]);
  CHECK(finished[1]["subject"] == first["run"]);
  CHECK(run(first["run"])["state"] == "complete");
  CHECK(run(first["run"])["scans"].size() == 4);
  CHECK(run(second["run"])["merged_into"] == first["run"]);
}
