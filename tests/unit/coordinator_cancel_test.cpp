// What is carried out no further: cancelled by force, or cut short by the end of a coordinator.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Behaviour = FakeWorker::Behaviour;
using Catch::Contains;

namespace {

struct CancelFixture : CommandsFixture {
  CancelFixture() {
    auto& type = manifest.types.at(1);
    type.parent = "NS::Box";
    type.schema = R"({"type":"object","x-muster-identity":["name"]})";
    system.holds = true;
  }
  static Json item(const std::string& name, const std::string& parent) {
    return {
        {"name", name}, {"type", "NS::Item"}, {"target", "t"}, {"parent", parent}, {"properties", {{"name", name}}}};
  }
  static Behaviour hold(const Job&) { return FakeWorker::Hold{}; }
  static Behaviour hold_items(const Job& job) {
    return job.type == "NS::Item" ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  }
  /// Box `a` of a kind, with items in it.
  static Json full(const std::string& kind, const Strings& items = {"b"}) {
    std::vector<Json> resources;
    for (const auto& name : items) resources.push_back(item(name, "a"));
    resources.push_back(box("a", {{"kind", kind}}));
    return stack(resources);
  }
  /// Makes it so, in a system that deletes no box that is full.
  void make_full(const Strings& items = {"b"}) {
    system.refuses_full = true;
    start_discovered();
    REQUIRE(apply(full("x", items))["state"] == "complete");
  }
  /// It is then to be of another kind, for which it is emptied. Returns the command, half a second old.
  std::string begin_emptying(std::function<Behaviour(const Job&)> on_go, const Strings& items = {"b"}) {
    make_full(items);
    worker().on_go = std::move(on_go);
    const auto id = begin(full("y", items));
    advance(Millis(500));
    return id;
  }
  void force_cancel(const std::string& id) { api("cancel", {{"command", id}, {"force", true}}); }
  std::size_t changes() { return worker().asked<CreateJob>().size() + worker().asked<DeleteJob>().size(); }
  /// Types of the events of resources since the last look.
  Strings told() {
    Strings types;
    for (const auto& event : events("resource.")) types.push_back(event["type"]);
    return types;
  }
};

}  // namespace

TEST_CASE_METHOD(CancelFixture, "what is cancelled by force while it is read first has not been begun") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}}), linked("b", "a")}));
  worker().on_job = [](const Job& job) -> Behaviour {
    return std::holds_alternative<ReadJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  };
  const auto id = begin(stack({box("a", {{"size", 2}}), linked("b", "a")}));
  advance(Millis(500));
  force_cancel(id);
  const auto ended = end_of(id);
  CHECK(ended["state"] == "cancelled");
  CHECK(result_of(ended, "a") == "cancelled CANCELLED");
}

TEST_CASE_METHOD(CancelFixture, "nobody vouches for what a cancelled change may have changed until it is looked at") {
  start_discovered();
  const auto wanted = stack({box("a", {{"size", 1}})});
  apply(wanted);
  worker().on_go = [](const Job&) -> Behaviour {
    return JobResult(MutationResult{MutationStatus::kInProgress, "r", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> Behaviour {
    return std::holds_alternative<ListJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  };
  const bool deletes = GENERATE(true, false);
  const auto id = begin(deletes ? stack({}) : stack({box("a", {{"size", 2}})}));
  advance(Millis(50));
  worker().on_job = [deletes](const Job& job) -> Behaviour {
    if (std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
    if (deletes || !std::holds_alternative<ReadJob>(job.operation)) return {};
    return JobResult(Error{Errc::kServiceUnavailable, "not now", {}, 0});
  };
  force_cancel(id);
  const auto ended = end_of(id);
  CHECK_THAT(message_of(ended, "a"), Contains("whether it was applied is not known"));
  CHECK(state_of("NS::Box", "made-1") == "stale");
  CHECK(plan(wanted)["unchecked"].size() == 1);
  system.things["NS::Box"].clear();  // it comes to its end after all
  worker().on_job = {};
  worker().release();
  discover();
  CHECK(state_of("NS::Box", "made-1") == "missing");
}

TEST_CASE_METHOD(CancelFixture, "what was cancelled by force is not carried out by the next coordinator") {
  start_discovered();
  Json wanted = stack({box("a", {{"size", 2}})});
  std::size_t left = 1;
  SECTION("a creation") {
    left = 0;
  }
  SECTION("an update") {
    apply(stack({box("a", {{"size", 1}})}));
  }
  SECTION("a deletion") {
    apply(stack({box("a", {{"size", 1}})}));
    wanted = stack({});
  }
  worker().on_go = hold;
  const auto id = begin(wanted);
  advance(Millis(500));
  force_cancel(id);
  crash();
  worker().on_go = {};
  start();
  CHECK(end_of(id)["state"] == "cancelled");
  CHECK(count() == left);
  if (left > 0) CHECK(thing("a")["size"] == 1);
}

TEST_CASE_METHOD(CancelFixture, "a replacement that is cancelled by force ends with the change that is under way") {
  start_discovered();
  apply(stack({box("a", {{"kind", "x"}})}));
  worker().on_go = hold;
  auto other = box("a", {{"kind", "y"}});
  if (GENERATE(false, true)) {
    other["replace"] = "create-first";
    other["properties"]["name"] = "a2";
  }
  const auto id = begin(stack({other}));
  advance(Millis(500));
  worker().on_go = {};
  const auto held = worker().jobs.back();
  const auto result = system.change(held);  // before the worker hears of the cancellation
  force_cancel(id);
  worker().send_late(held, result);
  CHECK(end_of(id)["state"] == "cancelled");
  CHECK(changes() == 2);
}

TEST_CASE_METHOD(CancelFixture, "what lies in a thing is emptied no further when that is cancelled by force") {
  const auto id = begin_emptying(hold_items, {"b", "c"});
  REQUIRE(worker().asked<DeleteJob>().size() == 2);
  const auto held = worker().jobs.back();
  SECTION("the worker has done it") {
    const auto result = system.change(held);
    worker().on_go = {};
    force_cancel(id);
    worker().send_late(held, result);
    CHECK(end_of(id)["state"] == "cancelled");
    CHECK(system.things["NS::Item"].size() == 1);
  }
  SECTION("the coordinator ends") {
    force_cancel(id);
    crash();
    worker().on_go = {};
    start();
    CHECK(end_of(id)["state"] == "cancelled");
    CHECK(system.things["NS::Item"].size() == 2);
  }
  CHECK(thing("a")["kind"] == "x");
  CHECK(worker().asked<DeleteJob>().size() == 2);
}

TEST_CASE_METHOD(CancelFixture, "what may have been made is found out, though nobody has been asked for it once more") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> Behaviour {
    static_cast<void>(system.change(job));
    worker().draining = true;
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a")}));
  advance(Millis(1500));
  const auto job = worker().asked<CreateJob>().at(0);
  worker().send_reply(job, Subjects("muster").reply("NS", coordinator->status().id, job.token),
                      JobResult(Error{Errc::kNetwork, "reset", {}, 0}));
  advance(Millis(1500));
  REQUIRE(worker().asked<CreateJob>().size() == 1);
  api("cancel", {{"command", id}});
  worker().on_go = {};
  add_worker("w2");
  CHECK(result_of(end_of(id), "a") == "done");
}

TEST_CASE_METHOD(CancelFixture, "what has been deleted to be replaced is made anew though its command is cancelled") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"kind", "x"}})}))["state"] == "complete");
  worker().on_go = hold;
  const auto id = begin(stack({box("a", {{"kind", "y"}})}));
  advance(Millis(500));
  worker().draining = true;
  advance(Millis(1500));
  worker().release();
  advance(Millis(300));
  REQUIRE(count() == 0);
  const bool by_force = GENERATE(false, true);
  CAPTURE(by_force);
  api("cancel", {{"command", id}, {"force", by_force}});
  add_worker("w2");
  const auto ended = end_of(id);
  if (by_force) {
    CHECK(result_of(ended, "a") == "cancelled CANCELLED");
    CHECK_THAT(message_of(ended, "a"), Contains("has been deleted"));
  } else {
    CHECK(result_of(ended, "a") == "done");
    CHECK(thing("a")["kind"] == "y");
  }
}

TEST_CASE_METHOD(CancelFixture, "what was taken back unsent is looked at by runs as before") {
  const auto id = begin_emptying(hold);
  worker().draining = true;
  advance(Millis(1500));
  worker().release();
  advance(Millis(300));
  api("cancel", {{"command", id}});
  CHECK(end_of(id)["state"] == "cancelled");
  add_worker("w2");
  advance(Millis(2000));
  system.things["NS::Item"].front().properties = R"({"name":"b","color":"red"})";
  CHECK(scan_of(discover(), "NS::Item")["changed"] == 1);
  system.things["NS::Item"].clear();
  CHECK(scan_of(discover(), "NS::Item")["missing"] == 1);
}

TEST_CASE_METHOD(CancelFixture, "what a coordinator began, and the next one goes on with, is no drift") {
  start_discovered();
  auto declared = box("a", {{"size", 1}});
  apply(stack({declared}));
  worker().on_go = [&](const Job& job) -> Behaviour {
    static_cast<void>(system.change(job));
    crash();
    return FakeWorker::Silent{};
  };
  declared["properties"]["size"] = 2;
  const bool deletes = GENERATE(false, true);
  const auto id = begin(deletes ? stack({}) : stack({declared}));
  settle();
  worker().on_go = {};
  events();
  start();
  CHECK(end_of(id)["state"] == "complete");
  finish_runs();
  for (const auto& type : told()) {
    CHECK(type != "muster.resource.drifted");
    CHECK(type != "muster.resource.vanished");
  }
}

TEST_CASE_METHOD(CancelFixture,
                 "the result for what lay in a thing is not taken for that thing's by the next coordinator") {
  const auto id = begin_emptying(hold_items, {"b", "c"});
  REQUIRE(worker().asked<DeleteJob>().size() == 2);
  const auto held = worker().jobs.back();
  const auto result = system.change(held);
  crash();
  worker().on_go = hold;
  start();
  wait_until([&] { return worker().asked<DeleteJob>().size() > 2; });
  worker().send_late(held, result);
  advance(Millis(100));
  worker().on_go = {};
  worker().release();
  const auto ended = end_of(id);
  INFO(ended.dump());
  CHECK(ended["state"] == "complete");
  CHECK(count() == 1);
  CHECK(thing("a")["kind"] == "y");
}

TEST_CASE_METHOD(CancelFixture,
                 "what refuses to be deleted full is emptied also where an attempt's outcome is unknown") {
  const auto id = begin_emptying(hold);
  REQUIRE(worker().asked<DeleteJob>().size() == 1);
  crash();
  worker().on_go = {};
  start();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 1);
  CHECK(thing("a")["kind"] == "y");
}

TEST_CASE_METHOD(CancelFixture,
                 "what is replaced, the new one first, goes when those that refer to it have turned away") {
  start_discovered();
  auto owner = box("a", {{"kind", "x"}});
  apply(stack({owner, linked("b", "a")}));
  const auto first = thing("a")["id"];
  owner = box("a2", {{"kind", "y"}});
  owner["name"] = "a";
  owner["replace"] = "create-first";
  worker().on_go = [&](const Job& job) -> Behaviour {
    const bool in_use = thing("b")["link"] == first;
    if (std::holds_alternative<DeleteJob>(job.operation) && in_use) {
      return JobResult(Error{Errc::kConflict, "b refers to it", {}, 0});
    }
    return {};
  };
  SECTION("all is well, also for one that the next coordinator goes on with") {
    const bool restarts = GENERATE(false, true);
    if (restarts) {
      worker().on_go = [&, each = worker().on_go](const Job& job) -> Behaviour {
        return std::holds_alternative<UpdateJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : each(job);
      };
    }
    const auto id = begin(stack({owner, linked("b", "a")}));
    if (restarts) {
      advance(Millis(1000));
      crash();
      worker().on_go = {};
      start();
    }
    CHECK(end_of(id)["state"] == "complete");
    CHECK(count() == 2);
    CHECK(thing("b")["link"] == thing("a2")["id"]);
    CHECK(worker().asked<DeleteJob>().size() == 1);
    CHECK(plan(stack({owner, linked("b", "a")}))["nothing"] == true);
  }
  SECTION("where one of these fails it stays, and the next apply deletes it") {
    worker().on_go = [](const Job& job) -> Behaviour {
      return std::holds_alternative<UpdateJob>(job.operation)
                 ? Behaviour(JobResult(Error{Errc::kAccessDenied, "no", {}, 0}))
                 : Behaviour();
    };
    const auto ended = apply(stack({owner, linked("b", "a")}));
    CHECK(result_of(ended, "a") == "failed NOT_STABILIZED");
    CHECK(result_of(ended, "b") == "failed ACCESS_DENIED");
    CHECK(count() == 3);
    worker().on_go = {};
    CHECK(apply(stack({owner, linked("b", "a")}))["state"] == "complete");
    CHECK(count() == 2);
  }
}

TEST_CASE_METHOD(CancelFixture, "an array is compared though a secret's name begins with its name") {
  start_discovered();
  auto declared = box("a", {{"pass", Json::array({1, 2})}, {"password", nullptr}});
  declared["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", "X"}}}}}});
  REQUIRE(apply(stack({declared}))["state"] == "complete");
  edit("a", "pass", Json::array({1, 3}));
  events();
  discover();
  CHECK(events("resource.drifted").size() == 1);
  declared["properties"]["pass"] = Json::array({7, 8});
  CHECK(apply(stack({declared}))["state"] == "complete");
  CHECK(thing("a")["pass"] == Json::array({7, 8}));
}

TEST_CASE_METHOD(CancelFixture, "what is cancelled by force before its worker may do it is told as cancelled") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  Json wanted;
  SECTION("an update") {
    wanted = stack({box("a", {{"size", 2}})});
  }
  SECTION("a deletion") {
    wanted = stack({});
  }
  worker().on_job = [](const Job& job) -> Behaviour {
    return is_mutation(job.operation) ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  };
  const auto id = begin(wanted);
  advance(Millis(500));
  force_cancel(id);
  const auto ended = end_of(id);
  CHECK(ended["state"] == "cancelled");
  CHECK(result_of(ended, "a") == "cancelled CANCELLED");
  CHECK(thing("a")["size"] == 1);
}

TEST_CASE_METHOD(CancelFixture, "what a thing cannot be emptied of is told as it is, also when that is cancelled") {
  const auto id = begin_emptying(hold_items);
  REQUIRE(worker().asked<DeleteJob>().size() == 2);
  const auto code = GENERATE(Errc::kAccessDenied, Errc::kCancelled);
  const bool cancels = GENERATE(true, false);
  if (cancels) api("cancel", {{"command", id}});
  const auto held = worker().jobs.back();
  worker().send_reply(held, Subjects("muster").reply("NS", coordinator->status().id, held.token),
                      JobResult(Error{code, "no", {}, 0}));
  const auto told = result_of(end_of(id), "a");
  CHECK(told == (code == Errc::kAccessDenied ? "failed ACCESS_DENIED"
                 : cancels                   ? "cancelled CANCELLED"
                                             : "failed CANCELLED"));
  CHECK(thing("a")["kind"] == "x");
}

TEST_CASE_METHOD(CancelFixture, "an answer to something else has deleted nothing in a thing that is emptied") {
  const auto id = begin_emptying([](const Job& job) -> Behaviour {
    return job.type == "NS::Item" ? Behaviour(JobResult(ReadResult{})) : Behaviour();
  });
  const auto ended = end_of(id);
  CHECK(result_of(ended, "a") == "failed CONTRACT");
  CHECK_THAT(message_of(ended, "a"), Contains("whether it was deleted is not known"));
  CHECK(state_of("NS::Item", "made-2") == "stale");
  CHECK(events("resource.vanished").empty());
}

TEST_CASE_METHOD(CancelFixture, "each deletion in a thing that is emptied is a job of its own") {
  make_full({"b", "c"});
  REQUIRE(apply(full("y", {"b", "c"}))["state"] == "complete");
  const auto deletions = worker().asked<DeleteJob>();
  REQUIRE(deletions.size() == 4);  // the box, which refuses, what lies in it, and the box
  std::set<std::string> jobs;
  for (const auto& job : deletions) jobs.insert(job.id.value);
  CHECK(jobs.size() == 4);
}

TEST_CASE_METHOD(CancelFixture, "what has gone by itself from a thing that is emptied holds up nothing") {
  make_full();
  worker().on_go = [this](const Job& job) -> Behaviour {
    if (job.type == "NS::Item" && std::holds_alternative<DeleteJob>(job.operation)) system.things["NS::Item"].clear();
    return {};
  };
  CHECK(apply(full("y"))["state"] == "complete");
  CHECK(thing("a")["kind"] == "y");
  CHECK(system.things["NS::Item"].size() == 1);
}

TEST_CASE_METHOD(CancelFixture, "what another system does not have has not gone from a thing that is emptied") {
  const auto id = begin_emptying(hold_items);
  system.things.clear();
  system.inspection.system = "system-2";
  api("discover");
  advance(Millis(1000));
  events();
  worker().release();
  CHECK(result_of(end_of(id), "a") == "failed TARGET_CHANGED");
  CHECK(state_of("NS::Item", "made-2") == "stale");
  CHECK(told() == Strings{});
}

TEST_CASE_METHOD(CancelFixture, "what may be gone from a thing that is emptied no further is not taken for known") {
  config.retry.attempts = 1;
  const bool cancelled = GENERATE(false, true);
  CAPTURE(cancelled);
  const auto id = begin_emptying([&](const Job& job) -> Behaviour {
    if (job.type != "NS::Item") return {};
    if (cancelled) return FakeWorker::Hold{};
    return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
  });
  if (cancelled) force_cancel(id);
  const auto ended = end_of(id);
  CHECK(result_of(ended, "a") == (cancelled ? "cancelled CANCELLED" : "failed NETWORK"));
  CHECK_THAT(message_of(ended, "a"), Contains("made-2") && Contains("is not known"));
  CHECK(state_of("NS::Item", "made-2") == "stale");
}

TEST_CASE_METHOD(CancelFixture, "what is renamed in a thing that is emptied is deleted under its new id") {
  const auto id = begin_emptying(hold_items);
  auto& inner = system.things["NS::Item"].at(0);
  const auto was = std::exchange(inner.id, "renamed");
  api("discover");
  advance(Millis(1000));
  REQUIRE(state_of("NS::Item", "renamed") == "present");
  worker().on_go = {};
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(thing("a")["kind"] == "y");
  CHECK(state_of("NS::Item", "renamed") == "vanished");
  system.add("NS::Item",
             {.id = was, .properties = R"({"name":"other"})", .parent = thing("a")["id"].get<std::string>()});
  discover();
  CHECK(state_of("NS::Item", was) == "present");  // runs see what has the old id now
}

TEST_CASE_METHOD(CancelFixture, "a command that is cancelled while it waits drops no target, though it has no steps") {
  start_discovered();
  auto file = stack({});
  file["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}}});
  REQUIRE(apply(file)["state"] == "complete");
  worker().on_go = hold;
  auto others = stack({});
  others["stacks"].push_back({{"stack", "other"}, {"resources", {box("x")}}});
  begin(others);
  advance(Millis(300));
  file["mode"] = "destroy";
  const auto id = begin(file);
  advance(Millis(300));
  REQUIRE(api("command", {{"command", id}})["state"] == "queued");
  api("cancel", {{"command", id}});
  CHECK(end_of(id)["state"] == "cancelled");
  CHECK(store->target("new").value()->state != TargetState::kRemoved);
}

TEST_CASE_METHOD(CancelFixture, "of a replacement that does not come to its end is said what it has done") {
  system.refuses_full = true;
  start_discovered();
  const bool create_first = GENERATE(false, true);
  const auto declared = [&](const std::string& kind) {
    auto outer = box("a", {{"kind", kind}});
    if (create_first) outer["properties"]["name"] = "a" + kind;
    if (create_first) outer["replace"] = "create-first";
    return create_first ? stack({outer}) : stack({item("b", "a"), outer});
  };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  const auto is_of_outer = [](const Job& job) {
    return job.type == "NS::Box" && std::holds_alternative<DeleteJob>(job.operation);
  };
  SECTION("when it is cancelled") {
    worker().on_job = [&](const Job& job) -> Behaviour {
      const bool emptied = create_first || system.things["NS::Item"].empty();
      if (is_of_outer(job) && emptied) return Busy{};
      return {};
    };
    const auto id = begin(declared("y"));
    advance(Millis(2000));
    force_cancel(id);
    const auto ended = end_of(id);
    CHECK(result_of(ended, "a") == "cancelled CANCELLED");
    CHECK_THAT(message_of(ended, "a"),
               Contains(create_first ? "what replaces it has been made" : "what lay in it has been deleted"));
  }
  SECTION("when it fails") {
    worker().on_go = [&](const Job& job) -> Behaviour {
      if (!is_of_outer(job)) return {};
      if (!create_first && !system.things["NS::Item"].empty()) return {};
      return JobResult(Error{Errc::kAccessDenied, "not for you", {}, 0});
    };
    const auto failed = apply(declared("y"));
    CHECK(result_of(failed, "a") == "failed ACCESS_DENIED");
    CHECK_THAT(message_of(failed, "a"),
               Contains(create_first ? "what replaces it has been made" : "what lay in it has been deleted"));
  }
}

TEST_CASE_METHOD(CancelFixture, "a look at how a change went that force has cut off is taken once more") {
  start_discovered();
  int looks = 0;
  const auto hold_first = [&](bool is_one) {
    return is_one && looks++ == 0 ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  };
  SECTION("at what is in progress") {
    worker().on_go = [this](const Job& job) -> Behaviour {
      auto done = std::get<MutationResult>(system.change(job));
      return JobResult(MutationResult{MutationStatus::kInProgress, "r", done.native_id, done.uid, {}, Millis(0)});
    };
    worker().on_job = [&](const Job& job) { return hold_first(std::holds_alternative<StatusJob>(job.operation)); };
  }
  SECTION("for what may have been made") {
    make_and_crash();
    system.knows_keys = false;
    const auto crash_once = worker().on_go;
    worker().on_go = [=, this](const Job& job) { return count() == 0 ? crash_once(job) : Behaviour(); };
    worker().on_job = [&](const Job& job) { return hold_first(std::holds_alternative<ListJob>(job.operation)); };
  }
  const auto id = begin(stack({box("a")}));
  advance(Millis(2000));
  force_cancel(id);
  CHECK(result_of(end_of(id), "a") == "done");
  CHECK(row("NS::Box", "made-1").managed);
}
