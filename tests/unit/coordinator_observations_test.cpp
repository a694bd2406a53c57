// What commands and runs see of the same objects at a time: what is news, and what is old by then.
#include <algorithm>
#include <optional>

#include "coordinator/write_log.h"
#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

TEST_CASE_METHOD(CommandsFixture, "an observation that was asked for before a change says nothing of it") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  system.list_properties = true;
  // A page of the list that was read before the change arrives after it.
  const auto list_of_boxes = [](const Job& job) {
    return std::holds_alternative<ListJob>(job.operation) && job.type == "NS::Box";
  };
  std::string page;  // as the worker has read it
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!list_of_boxes(job)) return {};
    page = std::get<ListResult>(system.answer(job)).items.at(0).properties;
    return FakeWorker::Hold{};
  };
  const auto lists_before = std::ranges::count_if(worker().jobs, list_of_boxes);
  api("discover");
  wait_until([&] { return !page.empty(); });
  worker().on_job = {};
  SECTION("an update") {
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  }
  SECTION("a deletion") {
    CHECK(apply(stack({}))["state"] == "complete");
  }
  SECTION("a deletion of what was gone already") {
    system.remove("NS::Box", "made-1");
    CHECK(apply(stack({}))["state"] == "complete");
  }
  REQUIRE(Json::parse(page)["size"] == 1);                                           // it is old
  REQUIRE(std::ranges::count_if(worker().jobs, list_of_boxes) == lists_before + 1);  // it is waited for still
  const auto known = count() == 1 ? thing("a") : Json();
  advance(Millis(500));  // for the events of the change
  events();
  worker().release();
  finish_runs();
  CHECK(resource_events().empty());
  CHECK(api("resources", {{"drifted", true}})["items"].empty());
  if (known.is_null()) {
    CHECK(state_of("NS::Box", "made-1") == "vanished");
  } else {
    CHECK(Json::parse(row("NS::Box", "made-1").properties) == known);
  }
}

TEST_CASE_METHOD(CommandsFixture, "an observation is as old after runs of other targets as before") {
  add_target("u");
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  discover({{"targets", {"u"}}});
  system.list_properties = true;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation) && job.target.name == "t") return FakeWorker::Hold{};
    return {};
  };
  api("discover", {{"targets", {"t"}}});
  wait_until([&] { return api("status")["jobs"]["in_flight"] == 2; });  // a list of each type
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  const auto other = api("discover", {{"targets", {"u"}}});
  wait_until([&] { return api("run", {{"run", other["run"]}})["state"] == "complete"; });
  advance(Millis(500));
  events();
  worker().on_job = {};
  worker().release();
  finish_runs();
  CHECK(resource_events().empty());
  CHECK(Json::parse(row("NS::Box", "made-1").properties)["size"] == 2);
}

TEST_CASE("writes are forgotten that no observation is older than") {
  WriteLog log;
  log.note(1, "a");
  const auto position = log.position();
  log.note(1, "b");
  log.begin(1, "c");
  CHECK(log.outdates(0, 1, "a"));
  log.forget(position);
  CHECK_FALSE(log.knows(1, "a"));
  CHECK(log.outdates(position, 1, "b"));
  log.forget(log.position());
  CHECK_FALSE(log.knows(1, "b"));
  CHECK(log.knows(1, "c"));
  log.end(1, "c");
  log.forget(log.position());
  CHECK(log.empty());
}

TEST_CASE_METHOD(CommandsFixture, "what was seen of an object before a deletion found it gone is no news") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  edit("a", "size", 2);
  system.list_properties = true;
  bool listed = false;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    listed = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return listed; });
  worker().on_job = {};
  system.remove("NS::Box", "made-1");
  CHECK(apply(stack({}))["state"] == "complete");
  advance(Millis(500));  // for the events of the change
  events();
  worker().release();
  finish_runs();
  CHECK(resource_events().empty());
  CHECK(state_of("NS::Box", "made-1") == "vanished");
  CHECK(coordinator->status().store_failures == 0);
}

TEST_CASE_METHOD(CommandsFixture, "what an update found gone is gone for a run, unless that sees it come back") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  bool listed = false;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    listed = true;
    return FakeWorker::Hold{};
  };
  const auto gone = [&](int size) {
    edit("a", "size", size);
    api("discover");
    wait_until([&] { return listed; });
    worker().on_job = {};
    const auto things = std::exchange(system.things["NS::Box"], {});
    CHECK(result_of(apply(stack({box("a", {{"size", 2}})})), "a") == "failed NOT_FOUND");
    REQUIRE(state_of("NS::Box", "made-1") == "missing");
    advance(Millis(500));  // for the events of that
    events();
    return things;
  };
  SECTION("it was seen before") {
    system.list_properties = true;
    gone(7);
    worker().release();
    finish_runs();
    CHECK(resource_events().empty());
    CHECK(state_of("NS::Box", "made-1") == "missing");
  }
  SECTION("it is seen once more") {
    const int size = GENERATE(1, 7);
    system.things["NS::Box"] = gone(size);
    worker().release();
    finish_runs();
    CHECK(resource_events() ==
          (size == 1 ? Strings{"discovered:made-1"} : Strings{"discovered:made-1", "drifted:made-1"}));
    CHECK(row("NS::Box", "made-1").properties == system.things["NS::Box"].front().properties);
    CHECK(state_of("NS::Box", "made-1") == "present");
  }
}

TEST_CASE_METHOD(CommandsFixture, "what could not be read before a change is not gone after it") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  advance(Millis(500));
  events();
  const auto there = std::exchange(system.things["NS::Box"], {});
  bool asked = false;  // whether what is not listed is gone
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation)) return {};
    asked = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return asked; });
  worker().on_job = {};
  system.things["NS::Box"] = there;
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  worker().release();
  finish_runs();
  CHECK(resource_events() == Strings{"updated:made-1"});
  CHECK(state_of("NS::Box", "made-1") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "what a run sees of an object while it is changed is no news") {
  start_discovered();
  apply(stack({box("a")}));
  advance(Millis(500));
  events();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));  // and does not answer yet
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({}));
  advance(Millis(200));
  REQUIRE(count() == 0);
  const auto run = api("discover")["run"];
  wait_until([&] { return api("run", {{"run", run}})["state"] == "complete"; });
  CHECK(state_of("NS::Box", "made-1") == "present");
  worker().on_go = {};
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  advance(Millis(500));
  CHECK(resource_events() == Strings{"deleted:made-1"});
}

TEST_CASE_METHOD(CommandsFixture, "what is moved while a command changes it is where a run finds it then") {
  manifest.types[0].parent = "NS::Box";  // as directories lie in each other
  system.list_properties = true;
  system.page = 1;
  start_discovered();
  const auto declared = [](int size) {
    auto inner = box("b", {{"size", size}});
    inner["parent"] = "a";
    return stack({box("a"), inner});
  };
  REQUIRE(apply(declared(1))["state"] == "complete");
  system.add("NS::Box", {"last", R"({"name":"last"})", "uid-last", {}});
  REQUIRE(row("NS::Box", "made-2").parent_native_id == "made-1");
  bool listed = false;  // the first page of what lies in nothing
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    listed = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return listed; });
  worker().on_job = {};
  CHECK(apply(declared(2))["state"] == "complete");
  system.thing("NS::Box", "made-2").parent.clear();
  worker().release();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(row("NS::Box", "made-2").parent_native_id.empty());
  CHECK(state_of("NS::Box", "made-2") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "what a command has made is not missing while its type may take to show it") {
  manifest.types[0].settle = Millis(20'000);
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  const auto things = std::exchange(system.things, {});
  events();
  discover();
  CHECK(state_of("NS::Box", "made-1") == "present");
  CHECK(resource_events().empty());
  const bool shows = GENERATE(true, false);
  if (shows) system.things = things;
  advance(Millis(30'000));
  discover();
  CHECK(state_of("NS::Box", "made-1") == (shows ? "present" : "missing"));
}

TEST_CASE_METHOD(CommandsFixture, "what was made long before the clock was set back has not just been made") {
  manifest.types[0].settle = Millis(20'000);
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  advance(Millis(30'000));
  clock.set_wall(clock.wall() - std::chrono::hours(1));
  system.things.clear();
  discover();
  CHECK(state_of("NS::Box", "made-1") == "missing");
}

TEST_CASE_METHOD(CommandsFixture,
                 "what a command finds there again is told as discovered, as it was told as vanished") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  int reads = 0;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation) || reads++ > 0) return {};
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(200));
  REQUIRE(reads == 1);
  const auto there = std::exchange(system.things, {});
  api("discover");
  advance(Millis(1000));
  REQUIRE(state_of("NS::Box", "made-1") == "missing");
  events();
  system.things = there;
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  advance(Millis(500));
  CHECK(resource_events() == Strings{"discovered:made-1", "updated:made-1"});
  const auto told = api("resource", {{"target", "t"}, {"type", "NS::Box"}, {"native_id", "made-1"}, {"history", true}});
  CHECK(std::ranges::count(told["history"], "discovered", [](const Json& each) { return each["cause"]; }) == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what both a command and a run find there again is discovered once") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  bool held = false;
  const auto hold_one = [&](auto&& is_it) {
    held = false;
    worker().on_job = [&held, is_it](const Job& job) -> FakeWorker::Behaviour {
      if (held || job.type != "NS::Box" || !is_it(job)) return {};
      held = true;
      return FakeWorker::Hold{};
    };
  };
  edit("a", "size", 2);  // as it is to be
  hold_one([](const Job& job) { return std::holds_alternative<ReadJob>(job.operation); });
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  wait_until([&] { return held; });
  const auto there = std::exchange(system.things, {});
  api("discover");
  advance(Millis(1000));
  REQUIRE(state_of("NS::Box", "made-1") == "missing");
  system.things = there;
  hold_one([](const Job& job) { return std::holds_alternative<ListJob>(job.operation); });
  api("discover");
  wait_until([&] { return held; });
  advance(Millis(500));
  events();
  worker().release();  // what the command has read first
  CHECK(end_of(id)["state"] == "complete");
  finish_runs();
  CHECK(resource_events() == Strings{"changed:made-1", "discovered:made-1", "updated:made-1"});
}

TEST_CASE_METHOD(CommandsFixture, "what is told as made when it was seen to have gone is made anew") {
  start_discovered();
  std::optional<JobResult> made;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    made = system.change(job);
    return FakeWorker::Silent{};
  };
  const auto id = begin(stack({box("a")}));
  advance(Millis(100));
  REQUIRE(made);
  api("discover");
  advance(Millis(500));
  REQUIRE(listed("NS::Box") == Strings{"made-1"});
  system.remove("NS::Box", "made-1");
  api("discover");
  advance(Millis(500));
  REQUIRE(state_of("NS::Box", "made-1") == "vanished");
  worker().on_go = {};
  worker().send_late(worker().asked<CreateJob>().at(0), *made);
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what a run sees of an object after a change of it has failed is news") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
  };
  REQUIRE(result_of(apply(stack({box("a", {{"size", 2}})})), "a") == "failed ACCESS_DENIED");
  edit("a", "size", 7);
  discover();
  CHECK(Json::parse(row("NS::Box", "made-1").properties)["size"] == 7);
}

TEST_CASE_METHOD(CommandsFixture, "what lies in an object that a command changes is looked at all the same") {
  manifest.types[1].parent = "NS::Box";
  system.list_properties = true;
  SECTION("and can be read") {}
  SECTION("and can only be listed") {
    manifest.types[1].operations = {Operation::kList};
  }
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  system.add("NS::Item", {.id = "known", .parent = "made-1"});
  discover();
  REQUIRE(state_of("NS::Item", "known") == "present");
  bool asked = false;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    asked = true;
    return FakeWorker::Hold{};
  };
  begin(stack({box("a", {{"size", 2}})}));
  wait_until([&] { return asked; });
  system.add("NS::Item", {.id = "fresh", .parent = "made-1"});
  const auto run = api("discover")["run"];
  wait_until([&] { return !api("run", {{"run", run}})["finished_at"].is_null(); });
  CHECK(api("run", {{"run", run}})["state"] == "complete");
  CHECK(state_of("NS::Item", "known") == "present");
  CHECK(state_of("NS::Item", "fresh") == "present");
}
