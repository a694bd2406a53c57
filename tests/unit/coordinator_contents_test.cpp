// Commands on what lies in something else.
#include <map>
#include <set>
#include <string>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Catch::Contains;
using Strings = std::vector<std::string>;

namespace {

/// Items lie in boxes.
struct ContentsFixture : CommandsFixture {
  ContentsFixture() {
    manifest.types[1].parent = "NS::Box";
    system.list_properties = true;
  }
  static Json item(const std::string& name, const std::string& parent) {
    auto resource = box(name);
    resource["type"] = "NS::Item";
    resource["parent"] = parent;
    return resource;
  }
  /// A run begins, and lists items until release() of the worker.
  void hold_a_run() {
    worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
      const bool looks = job.type == "NS::Item" && std::holds_alternative<ListJob>(job.operation);
      return looks ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
    };
    api("discover");
    advance(Millis(200));
  }
  void end_the_run() {
    worker().on_job = {};
    worker().release();
    finish_runs();
  }
  /// Deletes what the stack has while a run lists items, and is not answered until release() of the worker.
  void delete_while_listed() {
    hold_a_run();
    REQUIRE(apply(stack({}))["state"] == "complete");
  }
  void leave_out_box(const std::string& name) {
    system.inspection.filters = {
        {{"NS::Box"}, {PropertyMatch{"$.name", MatchOp::kEq, "\"" + name + "\""}}, FilterAction::kExclude}};
  }
  /// Where an item of that name lies; all of them, if there are several.
  Strings places(const std::string& name) {
    Strings found;
    for (const auto& each : system.things["NS::Item"]) {
      if (Json::parse(each.properties)["name"] == name) found.push_back(each.parent);
    }
    return found;
  }
  std::string id_of(const std::string& name) {
    for (const auto& each : system.things["NS::Box"]) {
      if (Json::parse(each.properties)["name"] == name) return each.id;
    }
    return {};
  }
};

}  // namespace

TEST_CASE_METHOD(ContentsFixture, "what lies in a thing that is replaced is made anew in the new one") {
  system.names_are_ids = GENERATE(false, true);
  system.refuses_full = GENERATE(false, true);
  const bool create_first = GENERATE(false, true);
  if (create_first && system.names_are_ids) return;  // the name is taken
  start_discovered();
  const auto declared = [&](const char* kind) {
    auto outer = box("a", {{"kind", kind}});
    if (create_first) outer["properties"]["name"] = "a" + std::string(kind);
    if (create_first) outer["replace"] = "create-first";
    auto inner = item("b", "a");
    if (create_first) inner["replace"] = "create-first";
    return stack({inner, outer});
  };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  const auto planned = plan(declared("y"));
  CHECK(planned["summary"]["replace"] == 2);
  const auto applied = apply(declared("y"));
  INFO(applied.dump(1));
  CHECK(applied["state"] == "complete");
  CHECK(count() == 1);
  CHECK(places("b") == Strings{id_of(create_first ? "ay" : "a")});
  CHECK(plan(declared("y"))["nothing"] == true);
  discover();
  CHECK(listed("NS::Item").size() == 1);
  CHECK(plan(declared("y"))["nothing"] == true);
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  CHECK(system.things["NS::Item"].empty());
}

TEST_CASE_METHOD(ContentsFixture, "a thing that is replaced is emptied of nothing but what was planned to go") {
  system.refuses_full = true;
  start_discovered();
  const bool knows_uid = GENERATE(true, false);
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (job.type != "NS::Item" || knows_uid || !std::holds_alternative<CreateJob>(job.operation)) return {};
    auto result = system.change(job);
    system.things["NS::Item"].back().uid.clear();
    std::get<MutationResult>(result).uid.clear();
    return result;
  };
  const auto declared = [](const char* kind) { return stack({item("b", "a"), box("a", {{"kind", kind}})}); };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  const auto& items = system.things["NS::Item"];
  const auto mine = items.front().id;
  SECTION("nothing") {
    CHECK(apply(declared("y"))["state"] == "complete");
    CHECK(thing("a")["kind"] == "y");
    CHECK(items.size() == 1);
    return;
  }
  SECTION("something is in it that nobody declares") {
    system.add("NS::Item", {.id = "theirs", .uid = "u-theirs", .parent = id_of("a")});
    discover();
    CHECK(result_of(apply(declared("y")), "a") == "failed CONFLICT");
    REQUIRE(items.size() == 1);
    CHECK(items.front().id == "theirs");
  }
  SECTION("something else has the id of what is to go") {
    auto& theirs = system.thing("NS::Item", mine);
    if (knows_uid) theirs.uid = "u-theirs";
    if (!knows_uid) theirs.properties = R"({"name":"theirs"})";
    CHECK(result_of(apply(declared("y")), "a") == "failed CONFLICT");
    CHECK(items.size() == 1);
  }
  CHECK(thing("a")["kind"] == "x");
}

TEST_CASE_METHOD(ContentsFixture, "what has no uid, and is seen to be another meanwhile, stays in what is replaced") {
  system.refuses_full = true;
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    for (auto& each : system.things["NS::Item"]) each.uid.clear();
    if (job.type == "NS::Item") std::get<MutationResult>(result).uid.clear();
    return result;
  };
  REQUIRE(apply(stack({item("b", "a"), box("a", {{"kind", "x"}})}))["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({item("b", "a"), box("a", {{"kind", "y"}})}));
  advance(Millis(200));
  auto& items = system.things["NS::Item"];
  items.front().properties = R"({"name":"theirs"})";
  api("discover");
  advance(Millis(1000));
  REQUIRE(row("NS::Item", items.front().id).properties == items.front().properties);
  worker().on_go = {};
  worker().release();
  CHECK(result_of(end_of(id), "a") == "failed CONFLICT");
  CHECK(items.size() == 1);
}

TEST_CASE_METHOD(ContentsFixture, "what goes with a thing that is replaced is looked at again when it is made anew") {
  system.names_are_ids = true;
  system.refuses_full = GENERATE(false, true);
  start_discovered();
  const auto declared = [](const char* kind) { return stack({item("b", "a"), box("a", {{"kind", kind}})}); };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  REQUIRE(apply(declared("y"))["state"] == "complete");
  std::set<std::string> keys;
  const auto deletions = worker().asked<DeleteJob>();
  for (const auto& job : deletions) keys.insert(std::get<DeleteJob>(job.operation).idempotency_key);
  CHECK(deletions.size() == (system.refuses_full ? 3 : 1));  // of the box, of what is in it, of the box again
  CHECK(keys.size() == deletions.size());
  system.thing("NS::Item", "b").properties = R"({"name":"b","size":7})";
  discover();
  CHECK(row("NS::Item", "b").properties == R"({"name":"b","size":7})");
}

TEST_CASE_METHOD(ContentsFixture, "what has the id of what it replaces stays") {
  system.names_are_ids = true;
  start_discovered();
  const auto declared = [](const char* kind) {
    auto only = box("a", {{"kind", kind}});
    only["replace"] = "create-first";
    return stack({only});
  };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<CreateJob>(job.operation)) system.remove("NS::Box", "a");  // somebody else does
    return {};
  };
  CHECK(apply(declared("y"))["state"] == "complete");
  CHECK(thing("a")["kind"] == "y");
  CHECK(state_of("NS::Box", "a") == "present");
}

TEST_CASE_METHOD(ContentsFixture, "a thing is not deleted with what another stack has in it") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  auto other = stack({item("b", "a"), box("a")});
  system.add("NS::Item", {.id = "inside", .properties = R"({"name":"b"})", .parent = "made-1"});
  discover();
  auto theirs = item("b", "");
  theirs.erase("parent");
  const Json request{{"stacks", {{{"stack", "other"}, {"resources", {theirs}}}}}, {"mode", "reconcile"}};
  REQUIRE(apply(request)["state"] == "complete");
  const auto answer = api("apply", stack({}, "destroy"));
  CHECK_THAT(answer.dump(), Contains("inside with it, which is resource b of stack other"));
  CHECK(count() == 1);
  auto both = stack({}, "destroy");
  both["stacks"].push_back({{"stack", "other"}, {"resources", Json::array()}});
  CHECK(apply(both)["state"] == "complete");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(ContentsFixture, "what outlives the thing that it lies in is not told as gone with it") {
  manifest.types[1].contained = false;
  system.holds = false;
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "inside", .parent = "made-1"});
  discover();
  REQUIRE(apply(stack({}))["state"] == "complete");
  CHECK(state_of("NS::Item", "inside") == "present");
}

TEST_CASE_METHOD(ContentsFixture, "what is known as gone is not told as gone once more with what it lay in") {
  start_discovered();
  REQUIRE(apply(stack({item("b", "a"), box("a")}))["state"] == "complete");
  system.remove("NS::Item", "made-2");
  discover();
  advance(Millis(2000));
  REQUIRE(std::ranges::count(resource_events(), "vanished:made-2") == 1);
  REQUIRE(apply(stack({item("b", "a"), box("a", {{"kind", "y"}})}))["state"] == "complete");
  CHECK(std::ranges::count(resource_events(), "vanished:made-2") == 0);
}

TEST_CASE_METHOD(ContentsFixture,
                 "what may have been made in a thing that is gone is not taken for what is declared in another") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (job.type != "NS::Item") return {};
    static_cast<void>(system.change(job));
    return Error{Errc::kInternalFailure, "a fault afterwards", {}, 0};
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const bool looks = job.type == "NS::Item" && std::holds_alternative<ListJob>(job.operation);
    if (looks) return Error{Errc::kAccessDenied, "nobody sees what is in there", {}, 0};
    return {};
  };
  REQUIRE(result_of(apply(stack({box("a", {{"kind", "x"}}), item("b", "a")})), "b") == "failed INTERNAL_FAILURE");
  worker().on_go = {};
  worker().on_job = {};
  system.holds = false;  // what was made in the first lies there still, for all that is known
  const auto again = stack({box("a", {{"kind", "y"}}), item("b", "a")});
  system.things["NS::Item"].clear();
  REQUIRE(apply(again)["state"] == "complete");
  CHECK(places("b") == Strings{id_of("a")});
  const auto creates = worker().asked<CreateJob>();
  std::set<std::string> keys;
  for (const auto& job : creates) {
    if (job.type == "NS::Item") keys.insert(std::get<CreateJob>(job.operation).idempotency_key);
  }
  CHECK(keys.size() == 2);
}

TEST_CASE_METHOD(ContentsFixture,
                 "what may have been made in a thing is gone on with when it is declared there again") {
  const auto in = [&](const char* parent) { return stack({box("a"), box("z"), item("b", parent)}); };
  const bool told_apart = GENERATE(false, true);
  manifest.types[1].schema =
      told_apart ? R"({"type":"object","properties":{"name":{"type":"string"}},"x-muster-identity":["name"]})"
                 : R"({"type":"object","properties":{"name":{"type":"string"}}})";
  start_discovered();
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const bool looks = job.type == "NS::Item" && std::holds_alternative<ListJob>(job.operation);
    if (looks) return Error{Errc::kAccessDenied, "nobody sees what is in there", {}, 0};
    return {};
  };
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (job.type != "NS::Item") return {};
    static_cast<void>(system.change(job));
    return Error{Errc::kInternalFailure, "a fault afterwards", {}, 0};
  };
  REQUIRE(result_of(apply(in("a")), "b") == "failed INTERNAL_FAILURE");
  const bool known = GENERATE(false, true);  // what came of it elsewhere
  if (known) worker().on_go = {};
  REQUIRE(result_of(apply(in("z")), "b") == (known ? "done" : "failed INTERNAL_FAILURE"));
  worker().on_go = {};
  worker().on_job = {};
  CHECK(result_of(apply(in("a")), "b") == "done");
  CHECK(std::ranges::count(places("b"), id_of("a")) == 1);
}

TEST_CASE_METHOD(ContentsFixture, "what was seen in a thing before it was deleted is no news") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "inside", .parent = "made-1"});
  discover();
  delete_while_listed();
  REQUIRE(state_of("NS::Item", "inside") == "vanished");
  worker().on_job = {};
  worker().release();
  finish_runs();
  CHECK(state_of("NS::Item", "inside") == "vanished");
}

TEST_CASE_METHOD(ContentsFixture, "a thing is not deleted with what was made in it since that was planned") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "inside", .properties = R"({"name":"b"})", .parent = "made-1"});
  discover();
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const bool reads = job.type == "NS::Box" && std::holds_alternative<ReadJob>(job.operation);
    return reads ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
  };
  const auto destroy = begin(stack({}, "destroy"));
  advance(Millis(100));
  auto theirs = item("b", "");
  theirs.erase("parent");
  const Json request{{"stacks", {{{"stack", "other"}, {"resources", {theirs}}}}}, {"mode", "reconcile"}};
  REQUIRE(apply(request)["state"] == "complete");
  worker().on_job = {};
  worker().release();
  const auto ended = end_of(destroy);
  CHECK(result_of(ended, "a") == "failed CONFLICT");
  CHECK_THAT(message_of(ended, "a"), Contains("inside lies in it, and is resource b of stack other"));
  CHECK(count() == 1);
}

TEST_CASE_METHOD(ContentsFixture, "what is renamed and moved in its file moves") {
  start_discovered();
  REQUIRE(apply(stack({item("b", "a"), box("a"), box("q")}))["state"] == "complete");
  auto renamed = item("b", "q");
  renamed["name"] = "c";
  const auto moved = stack({renamed, box("a"), box("q")});
  CHECK(apply(moved)["state"] == "complete");
  CHECK(places("b") == Strings{id_of("q")});
  CHECK(plan(moved)["nothing"] == true);
}

TEST_CASE_METHOD(ContentsFixture, "a thing that uses what lies in it can be destroyed") {
  start_discovered();
  REQUIRE(apply(stack({item("b", "a"), box("a")}))["state"] == "complete");
  auto loose = item("b", "");
  loose.erase("parent");
  auto outer = box("a");
  outer["after"] = {"b"};
  REQUIRE(apply(stack({loose, outer}))["state"] == "complete");
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(ContentsFixture, "what cannot be put back holds up nothing else") {
  start_discovered();
  auto outer = box("a", {{"kind", "x"}}), other = box("r", {{"size", 1}});
  for (auto* each : {&outer, &other}) (*each)["on_drift"] = "revert";
  REQUIRE(apply(stack({outer, other}))["state"] == "complete");
  system.add("NS::Item", {.id = "inside", .properties = R"({"name":"b"})", .parent = id_of("a")});
  discover();
  auto theirs = item("b", "");
  theirs.erase("parent");
  const Json request{{"stacks", {{{"stack", "other"}, {"resources", {theirs}}}}}, {"mode", "reconcile"}};
  REQUIRE(apply(request)["state"] == "complete");
  edit("a", "kind", "y");
  edit("r", "size", 2);
  discover();
  advance(Millis(3000));
  CHECK(thing("r")["size"] == 1);
  CHECK(thing("a")["kind"] == "y");
}

TEST_CASE_METHOD(ContentsFixture, "nothing is deleted once more with what was made in it meanwhile") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "inside", .properties = R"({"name":"b"})", .parent = "made-1"});
  discover();
  worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
    if (job.type == "NS::Box") return Error{Errc::kInternalFailure, "a fault", {}, 0};
    return {};
  };
  worker().on_job = [this](const Job& job) -> FakeWorker::Behaviour {
    const bool settles = std::holds_alternative<ReadJob>(job.operation) && job.type == "NS::Box";
    if (settles && !worker().asked<DeleteJob>().empty()) return FakeWorker::Hold{};
    return {};
  };
  const auto destroy = begin(stack({}, "destroy"));
  advance(Millis(1000));
  REQUIRE(worker().asked<DeleteJob>().size() == 1);
  worker().on_go = {};
  auto theirs = item("b", "");
  theirs.erase("parent");
  const Json request{{"stacks", {{{"stack", "other"}, {"resources", {theirs}}}}}, {"mode", "reconcile"}};
  REQUIRE(apply(request)["state"] == "complete");
  worker().on_job = {};
  worker().release();
  CHECK(result_of(end_of(destroy), "a") == "failed CONFLICT");
  CHECK(system.things["NS::Item"].size() == 1);
}

TEST_CASE_METHOD(ContentsFixture, "what was listed first in a thing that has been deleted since is not discovered") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "inside", .parent = "made-1"});
  delete_while_listed();
  worker().on_job = {};
  worker().release();
  finish_runs();
  CHECK(listed("NS::Item").empty());
}

TEST_CASE_METHOD(ContentsFixture, "what was read before it was told as gone is looked at again") {
  start_discovered();
  REQUIRE(apply(stack({item("b", "a"), box("a")}))["state"] == "complete");
  discover();
  events();
  int reads = 0;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation) || reads++ > 0) return {};
    return FakeWorker::Hold{};
  };
  auto larger = item("b", "a");
  larger["properties"]["size"] = 2;
  const auto id = begin(stack({larger, box("a")}));
  advance(Millis(200));
  REQUIRE(reads == 1);
  system.remove("NS::Item", system.things["NS::Item"].front().id);
  api("discover");
  advance(Millis(500));
  worker().release();
  CHECK(end_of(id)["state"] == "failed");
  Strings told;
  for (const auto& event : events("resource.")) told.push_back(event["type"]);
  CHECK(told == Strings{"muster.resource.drifted", "muster.resource.vanished"});
}

TEST_CASE_METHOD(ContentsFixture, "a change that was seen in a thing before it was deleted is no news") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "inside", .parent = "made-1"});
  discover();
  system.thing("NS::Item", "inside").properties = R"({"size":2})";
  delete_while_listed();
  REQUIRE(state_of("NS::Item", "inside") == "vanished");
  end_the_run();
  CHECK(state_of("NS::Item", "inside") == "vanished");
  CHECK(coordinator->status().store_failures == 0);
}

TEST_CASE_METHOD(ContentsFixture, "what a command takes while new filters are looked at stays, with what lies in it") {
  system.add("NS::Box", {.id = "b", .properties = R"({"name":"b"})", .uid = "u-b"});
  system.add("NS::Item", {.id = "inside", .properties = R"({"name":"i"})", .parent = "b"});
  system.add("NS::Box", {.id = "c", .properties = R"({"name":"c"})"});  // keeps the run waiting
  start_discovered();
  leave_out_box("b");
  hold_a_run();
  REQUIRE(apply(stack({box("b")}))["state"] == "complete");
  end_the_run();
  CHECK(state_of("NS::Box", "b") == "present");
  CHECK(state_of("NS::Item", "inside") == "present");
}

TEST_CASE_METHOD(ContentsFixture, "what is managed stays when what it lies in is left out") {
  system.add("NS::Box", {.id = "b", .properties = R"({"name":"b"})", .uid = "u-b"});
  system.add("NS::Item", {.id = "inside", .properties = R"({"name":"i"})", .parent = "b"});
  start_discovered();
  auto inside = item("i", "");
  inside.erase("parent");
  REQUIRE(apply(stack({inside}))["state"] == "complete");
  REQUIRE(row("NS::Item", "inside").managed);
  leave_out_box("b");
  discover();
  CHECK(state_of("NS::Box", "b") == "filtered");
  CHECK(state_of("NS::Item", "inside") == "present");
  CHECK_FALSE(row("NS::Item", "inside").drifted);
}

TEST_CASE_METHOD(ContentsFixture, "what a thing is emptied of is asked for again where that may help") {
  system.refuses_full = true;
  start_discovered();
  const auto declared = [](const char* kind) { return stack({item("b", "a"), box("a", {{"kind", kind}})}); };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  int failed = 0;
  const bool in_vain = GENERATE(false, true);
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    const bool empties = job.type == "NS::Item" && std::holds_alternative<DeleteJob>(job.operation);
    if (!empties || (failed == 3 && !in_vain)) return {};
    if (++failed == 1) return Error{Errc::kThrottling, "later", Millis(100), 0};
    if (failed == 2) return MutationResult{MutationStatus::kInProgress, "request", {}, {}, {}, {}};
    if (in_vain && failed == 5) return Error{Errc::kAccessDenied, "no more", {}, 0};
    return Error{Errc::kServiceUnavailable, "not now", {}, 0};
  };
  CHECK(result_of(apply(declared("y")), "a") == (in_vain ? "failed ACCESS_DENIED" : "done"));
  CHECK(failed == (in_vain ? 5 : 3));
  CHECK(thing("a")["kind"] == (in_vain ? "x" : "y"));
}

TEST_CASE_METHOD(ContentsFixture, "each thing that another is emptied of is asked for as often as one alone") {
  system.refuses_full = true;
  start_discovered();
  const auto declared = [](const char* kind) {
    return stack({item("b", "a"), item("c", "a"), box("a", {{"kind", kind}})});
  };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  std::map<std::string, int> failed;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* deletion = std::get_if<DeleteJob>(&job.operation);
    const bool empties = deletion != nullptr && job.type == "NS::Item";
    if (!empties || failed[deletion->native_id]++ == config.retry.attempts - 1) return {};
    return Error{Errc::kServiceUnavailable, "not now", {}, 0};
  };
  CHECK(result_of(apply(declared("y")), "a") == "done");
  CHECK(failed.size() == 2);
  CHECK(thing("a")["kind"] == "y");
}

TEST_CASE_METHOD(ContentsFixture, "a thing that may not be deleted is not emptied") {
  start_discovered();
  const auto declared = [](const char* kind) { return stack({item("b", "a"), box("a", {{"kind", kind}})}); };
  REQUIRE(apply(declared("x"))["state"] == "complete");
  worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
    if (job.type != "NS::Box" || !std::holds_alternative<DeleteJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "not yours", {}, 0});
  };
  CHECK(result_of(apply(declared("y")), "a") == "failed ACCESS_DENIED");
  CHECK(places("b") == Strings{id_of("a")});
  CHECK(worker().asked<DeleteJob>().size() == 1);
}

TEST_CASE_METHOD(ContentsFixture, "what takes the id of what was replaced is seen by the next run") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"kind", "x"}})}))["state"] == "complete");
  REQUIRE(apply(stack({box("a", {{"kind", "y"}})}))["state"] == "complete");
  system.add("NS::Box", {.id = "made-1", .properties = R"({"name":"other"})", .uid = "u-other"});
  discover();
  CHECK(listed("NS::Box") == Strings{"made-1", "made-2"});
}

TEST_CASE_METHOD(ContentsFixture, "what refers to a thing on another target does not lie in it") {
  add_target("t2");
  start_discovered();
  auto inside = box("b", {{"link", nullptr}});
  inside["type"] = "NS::Item";
  inside["target"] = "t2";
  inside["holes"] = Json::array({{{"pointer", "/link"}, {"parts", {{{"resource", "a"}, {"path", "id"}}}}}});
  REQUIRE(apply(stack({box("a"), inside}))["state"] == "complete");
  CHECK(places("b") == Strings{""});
  CHECK(row("NS::Item", "made-2", "t2").parent == 0);
}

TEST_CASE_METHOD(ContentsFixture, "what lies in a thing that was stale until a command changed it is discovered") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const bool looks = std::holds_alternative<ListJob>(job.operation);
    return looks ? FakeWorker::Behaviour(JobResult(Error{Errc::kAccessDenied, "no", {}, 0})) : FakeWorker::Behaviour();
  };
  discover();
  system.add("NS::Item", {.id = "inside", .parent = "made-1"});
  hold_a_run();
  REQUIRE(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  REQUIRE(state_of("NS::Box", "made-1") == "stale");  // as the run has not ended
  end_the_run();
  CHECK(listed("NS::Item") == Strings{"inside"});
}

TEST_CASE_METHOD(ContentsFixture,
                 "what left with what it lay in, and a command has made again, is told as there once") {
  system.names_are_ids = true;
  system.page = 1;
  system.add("NS::Box", {.id = "b", .properties = R"({"name":"b"})", .uid = "u-b"});
  for (const auto* name : {"first", "inside"}) {
    system.add("NS::Item", {.id = name, .properties = box(name)["properties"].dump(), .parent = "b"});
  }
  start_discovered();
  system.thing("NS::Box", "b").uid = "u-new";
  bool held = false;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (held || job.type != "NS::Item" || !std::holds_alternative<ListJob>(job.operation)) return {};
    held = true;
    return FakeWorker::Hold{};
  };
  events();
  api("discover");
  wait_until([&] { return held; });
  settle();
  REQUIRE(state_of("NS::Item", "inside") == "vanished");
  system.remove("NS::Item", "inside");
  REQUIRE(apply(stack({box("b"), item("inside", "b")}))["state"] == "complete");
  REQUIRE(state_of("NS::Item", "inside") == "present");
  end_the_run();
  CHECK(state_of("NS::Item", "inside") == "present");
  const auto told = resource_events();
  CHECK(std::ranges::count(told, "created:inside") == 1);
  CHECK(std::ranges::count(told, "discovered:inside") == 0);
}
