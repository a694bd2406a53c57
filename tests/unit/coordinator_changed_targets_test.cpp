// Targets that are no longer what they were: another system, configuration or name, or none any more.
#include <vector>

#include <catch2/catch.hpp>

#include "support/commands_fixture.h"
#include "support/identity_fixture.h"

using namespace muster;
using Catch::Contains;
using test::CommandsFixture;
using test::FakeWorker;
using test::IdentityFixture;

TEST_CASE_METHOD(IdentityFixture, "another system behind the target: nothing vanishes until it is accepted") {
  start_discovered();
  events();
  system.inspection.system = "system-2";
  system.things.clear();
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(report["problems"][0]["code"] == "TARGET_CHANGED");
  CHECK(target_state() == "changed");
  CHECK(state_of("NS::Box", "a") == "stale");
  auto seen = events("target.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["type"] == "muster.target.changed");
  CHECK(resource_events().empty());
  discover();
  CHECK(target_state() == "changed");
  CHECK(state_of("NS::Box", "a") == "stale");

  CHECK(api("targets-accept", {{"target", "t"}})["state"] == "active");
  finish_runs();
  CHECK(target_state() == "active");
  CHECK(last_report()["state"] == "complete");
  CHECK(state_of("NS::Box", "a") == "vanished");
  seen = events("target.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["data"]["is"] == "accepted");
  api("targets-accept", {{"target", "t"}});
  finish_runs();
  CHECK(events("target.").empty());  // it was the one that it is
}

TEST_CASE_METHOD(IdentityFixture, "a target that cannot say which system it is by now is not judged by what it shows") {
  start_discovered();
  events();
  system.inspection.system = "system-2";
  system.things.clear();
  system.add("NS::Box", {.id = "theirs"});
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<InspectJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "not yet", {}, 0});
  };
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(report["problems"][0]["code"] == "ACCESS_DENIED");
  CHECK_THAT(report["problems"][0]["message"].get<std::string>(), Contains("whether it is the system that it was"));
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(state_of("NS::Box", "theirs") == "absent");
  CHECK(resource_events().empty());
  workers[0]->on_job = {};
  CHECK(discover()["problems"][0]["code"] == "TARGET_CHANGED");
}

TEST_CASE_METHOD(IdentityFixture, "a target whose plugin does not say which system it is stays the one that it was") {
  start_discovered();
  system.inspection.system.clear();
  CHECK(discover()["state"] == "complete");
  CHECK(target_state() == "active");
  system.inspection.system = "system-2";
  CHECK(discover()["state"] == "partial");
  CHECK(target_state() == "changed");
}

TEST_CASE_METHOD(IdentityFixture, "another configuration of the target: nothing vanishes until it is accepted") {
  start_discovered();
  crash();
  config.targets[0].config = {R"({"root":"/elsewhere"})", {}};
  system.things.clear();
  events();
  start();
  finish_runs();
  CHECK(target_state() == "changed");
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(last_report()["problems"][0]["code"] == "TARGET_CHANGED");
  const auto told = events("target.changed");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["data"]["is"] == "configuration changed");
  api("targets-accept", {{"target", "t"}});
  finish_runs();
  CHECK(state_of("NS::Box", "a") == "vanished");
  CHECK(workers[0]->jobs.back().target.config.json == R"({"root":"/elsewhere"})");
}

TEST_CASE_METHOD(IdentityFixture, "workers of another pool or namespace for the target: it is another until accepted") {
  start_discovered();
  crash();
  auto& target = config.targets[0];
  (GENERATE(false, true) ? target.pool : target.ns) = "OTHER";
  start();
  finish_runs();
  CHECK(target_state() == "changed");
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(last_report()["problems"][0]["code"] == "TARGET_CHANGED");
}

TEST_CASE_METHOD(IdentityFixture, "a target that left the configuration keeps its rows, stale, and may come back") {
  add_target("u");
  start_discovered();
  events();
  const auto back = config.targets;
  crash();
  config.targets.erase(config.targets.begin());
  start();
  finish_runs();
  CHECK(target_state() == "removed");
  CHECK(state_of("NS::Box", "a", "t") == "stale");
  CHECK(state_of("NS::Box", "a", "u") == "present");
  CHECK(resource_events().empty());
  CHECK(api("discover", {{"targets", {"t"}}})["error"]["code"] == "NOT_FOUND");
  restart();
  finish_runs();
  CHECK(events("target.changed").empty());  // it has been told
  crash();
  config.targets = back;
  start();
  finish_runs();
  CHECK(state_of("NS::Box", "a", "t") == "present");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(IdentityFixture, "what has become of a target is told: removed, back as it was, renamed") {
  config.targets[0].config = {R"({"zone":"a"})", {}};
  auto targets = std::vector{config.targets[0], add_target("u")};
  start_discovered();
  Json was;
  const auto becomes = [&](const std::vector<TargetConfig>& declared) {
    events();
    crash();
    config.targets = declared;
    start();
    finish_runs();
    const auto told = events("target.changed");
    REQUIRE(told.size() == 1);
    was = told[0]["data"].value("was", Json());
    return told[0]["data"]["is"].get<std::string>();
  };
  CHECK(becomes({targets[1]}) == "removed");
  CHECK(becomes(targets) == "back");
  CHECK(target_state() == "active");
  targets[0].name = "new-name";
  targets[0].renamed_from = "t";
  CHECK(was.is_null());
  CHECK(becomes(targets) == "renamed");
  CHECK(was == "t");
}

TEST_CASE_METHOD(IdentityFixture, "a target that is renamed keeps its rows") {
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  crash();
  config.targets[0].name = "new-name";
  config.targets[0].renamed_from = "t";
  start();
  finish_runs();
  CHECK(row("NS::Box", "a", "new-name").id == before);
  CHECK(state_of("NS::Box", "a", "new-name") == "present");
  CHECK(api("targets")["items"].size() == 1);
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(CommandsFixture, "a target that is another system by now is asked for nothing more") {
  start_discovered();
  const auto is_another = [&] {
    system.inspection.system = "system-2";
    api("discover");
    advance(Millis(1000));
  };
  SECTION("what is tried again") {
    apply(stack({box("a", {{"size", 1}})}));
    const bool deletes = GENERATE(false, true);
    worker().on_go = [](const Job&) { return JobResult(Error{Errc::kNetwork, "reset", Millis(5000), 0}); };
    const auto id = begin(deletes ? stack({}) : stack({box("a", {{"size", 2}})}));
    settle();
    system.things.clear();
    is_another();
    const auto failed = end_of(id);
    CHECK(result_of(failed, "a") == "failed TARGET_CHANGED");
    CHECK_THAT(message_of(failed, "a"), Contains("whether it was applied is not known"));
    CHECK(state_of("NS::Box", "made-1") == "stale");
    CHECK(row("NS::Box", "made-1").managed);
  }
  SECTION("nor taken at its word for what it was asked before") {
    apply(stack({box("a", {{"size", 1}})}));
    const bool deletes = GENERATE(false, true);
    const bool looks = GENERATE(false, true);
    CAPTURE(deletes, looks);
    const auto is_held = [&](const Job& job) {
      return job.priority == Priority::kCommand && is_mutation(job.operation) != looks;
    };
    worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
      return looks && is_held(job) ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
    };
    worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
    system.things["NS::Box"].front().id = "elsewhere";  // what is held is answered by what is there now
    if (!looks) system.things["NS::Box"].front().id = "made-1";
    const auto id = begin(deletes ? stack({}) : stack({box("a", {{"size", 2}})}));
    settle();
    system.things.clear();
    is_another();
    worker().release();
    CHECK(result_of(end_of(id), "a") == "failed TARGET_CHANGED");
    CHECK(row("NS::Box", "made-1").managed);
    CHECK(state_of("NS::Box", "made-1") == "stale");
  }
  SECTION("what no worker has begun") {
    apply(stack({box("a", {{"size", 1}})}));
    const bool deletes = GENERATE(false, true);
    CAPTURE(deletes);
    bool full = true;
    worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
      return full && is_mutation(job.operation) ? FakeWorker::Behaviour(Busy{}) : FakeWorker::Behaviour();
    };
    const auto id = begin(deletes ? stack({}) : stack({box("a", {{"size", 2}})}));
    settle();
    is_another();
    full = false;
    const auto failed = end_of(id);
    CHECK(result_of(failed, "a") == "failed TARGET_CHANGED");
    CHECK_THAT(message_of(failed, "a"), Contains("targets accept") && !Contains("is not known"));
    CHECK(thing("a")["size"] == 1);
    CHECK(state_of("NS::Box", "made-1") == "stale");
  }
  SECTION("what a worker had that is lost") {
    apply(stack({box("a", {{"size", 1}})}));
    worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
    const auto id = begin(stack({}));
    settle();
    is_another();
    remove_worker("w1");
    add_worker("w2");
    const auto failed = end_of(id);
    CHECK(result_of(failed, "a") == "failed TARGET_CHANGED");
    CHECK_THAT(message_of(failed, "a"), Contains("is not known"));
    CHECK(count() == 1);
  }
  SECTION("what is replaced") {
    auto owner = box("a", {{"kind", "x"}});
    REQUIRE(apply(stack({owner, linked("b", "a")}))["state"] == "complete");
    owner = box("a2", {{"kind", "y"}});
    owner["name"] = "a";
    owner["replace"] = "create-first";
    worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
      return std::holds_alternative<UpdateJob>(job.operation) ? FakeWorker::Behaviour(FakeWorker::Hold{})
                                                              : FakeWorker::Behaviour();
    };
    const auto id = begin(stack({owner, linked("b", "a")}));
    wait_until([&] { return worker().asked<UpdateJob>().size() == 1; });
    is_another();
    worker().release();
    CHECK(result_of(end_of(id), "a") == "failed TARGET_CHANGED");
    CHECK(worker().asked<DeleteJob>().empty());
    CHECK(count() == 3);
  }
}
