// How it is found out what came of a change that nobody answered for, and what is told of it then.
#include <algorithm>
#include <set>
#include <string>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Behaviour = FakeWorker::Behaviour;
using Catch::Contains;

namespace {

Behaviour failed_as(Errc code, Millis retry_after = Millis(0)) {
  return JobResult(Error{code, "refused", retry_after, 0});
}

Behaviour made_as(const std::string& id, const std::string& uid, const std::string& properties) {
  return JobResult(MutationResult{MutationStatus::kSuccess, {}, id, uid, properties, Millis(0)});
}

bool reads(const Job& job, const std::string& id) {
  const auto* read = std::get_if<ReadJob>(&job.operation);
  return read != nullptr && read->native_ids == Strings{id};
}

}  // namespace

TEST_CASE_METHOD(CommandsFixture, "what a target tells of an old key is not there because one look at it fails") {
  start_discovered();
  std::string first;
  worker().on_go = [&](const Job& job) -> Behaviour {
    const auto& key = std::get<CreateJob>(job.operation).idempotency_key;
    if (first.empty()) {
      first = key;
      return failed_as(Errc::kInternalFailure);
    }
    return key == first ? made_as("lost", "uid-lost", R"({"name":"a"})") : Behaviour();
  };
  int looks = 0;
  worker().on_job = [&](const Job& job) -> Behaviour {
    if (!reads(job, "lost") || looks++ > 0) return {};
    return JobResult(ReadResult{{Error{Errc::kServiceUnavailable, "not now", {}, 0}}});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(looks > 1);
  CHECK(listed("NS::Box") == Strings{"made-1"});
  CHECK(state_of("NS::Box", "lost") == "absent");
}

TEST_CASE_METHOD(CommandsFixture, "an update that finds its object gone has no outcome that is not known") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [this](const Job&) -> Behaviour {
    system.remove("NS::Box", "made-1");
    return failed_as(Errc::kTimeout);
  };
  const auto failed = apply(stack({box("a", {{"size", 2}})}));
  CHECK(result_of(failed, "a") == "failed NOT_FOUND");
  CHECK_THAT(message_of(failed, "a"), Contains("it is gone: apply again") && !Contains("not known"));
  CHECK(state_of("NS::Box", "made-1") == "missing");
}

TEST_CASE_METHOD(CommandsFixture, "what was told of the new object is not taken for what became of the old one") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"kind", "x"}})}))["state"] == "complete");
  auto wanted = box("a2", {{"kind", "y"}});
  wanted["name"] = "a";
  wanted["replace"] = "create-first";
  int creates = 0;
  bool deletes = false;
  worker().on_go = [&](const Job& job) -> Behaviour {
    if (std::holds_alternative<CreateJob>(job.operation)) {
      return creates++ == 0 ? failed_as(Errc::kInternalFailure) : Behaviour();
    }
    deletes = true;
    return failed_as(Errc::kTimeout);
  };
  worker().on_job = [&](const Job& job) -> Behaviour {
    return deletes && std::holds_alternative<ReadJob>(job.operation) ? failed_as(Errc::kAccessDenied) : Behaviour();
  };
  const auto failed = apply(stack({wanted}));
  REQUIRE(creates == 2);
  CHECK(result_of(failed, "a") == "failed ACCESS_DENIED");
  CHECK_THAT(message_of(failed, "a"), Contains("whether it was applied is not known"));
  CHECK(count() == 2);
  worker().on_go = {};
  worker().on_job = {};
  CHECK(apply(stack({wanted}))["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what was asked to change twice is looked at by runs as before") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  int asked = 0;
  worker().on_go = [&](const Job&) -> Behaviour {
    return asked++ == 0 ? failed_as(GENERATE(Errc::kConflict, Errc::kTimeout)) : Behaviour();
  };
  REQUIRE(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  REQUIRE(asked == 2);
  edit("a", "link", "by hand");
  CHECK(scan_of(discover(), "NS::Box")["changed"] == 1);
  CHECK(Json::parse(row("NS::Box", "made-1").properties)["link"] == "by hand");
  system.things.clear();
  CHECK(scan_of(discover(), "NS::Box")["missing"] == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what may have been changed before a restart is no news while it is looked at") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [this](const Job& job) -> Behaviour {
    static_cast<void>(system.change(job));
    return FakeWorker::Silent{};
  };
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(300));
  REQUIRE(thing("a")["size"] == 2);
  restart();
  worker().on_go = {};
  events();
  advance(Millis(1000));
  api("discover");  // before the command looks at it
  advance(Millis(1500));
  REQUIRE(api("command", {{"command", id}})["state"] == "running");
  CHECK(resource_events().empty());
  CHECK(end_of(id)["state"] == "complete");
  finish_runs();
  CHECK(resource_events() == Strings{"changed:made-1", "updated:made-1"});
}

TEST_CASE_METHOD(CommandsFixture,
                 "what was told as made before a restart, and is made anew, is looked at by runs as before") {
  start_discovered();
  worker().on_go = [this](const Job& job) -> Behaviour {
    const auto made = std::get<MutationResult>(system.change(job));
    system.things.clear();  // it does not last
    return JobResult(MutationResult{MutationStatus::kInProgress, "r", made.native_id, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(MutationResult{MutationStatus::kInProgress, "r", "made-1", {}, {}, Millis(1000)});
  };
  const auto id = begin(stack({box("a")}));
  advance(Millis(300));
  REQUIRE_FALSE(worker().asked<StatusJob>().empty());
  restart();
  worker().on_go = {};
  worker().on_job = [](const Job& job) -> Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, {}, Millis(0)});
  };
  REQUIRE(end_of(id)["state"] == "complete");
  REQUIRE(state_of("NS::Box", "made-2") == "present");
  system.add("NS::Box", {.id = "made-1", .properties = R"({"name":"b"})"});
  discover();
  CHECK(state_of("NS::Box", "made-1") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "a late word that names no object is nothing to look at") {
  start_discovered();
  int asked = 0;
  worker().on_go = [&](const Job&) -> Behaviour {
    return asked++ == 0 ? failed_as(Errc::kInternalFailure, Millis(20'000)) : Behaviour();
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return asked == 1; });
  advance(Millis(1000));
  worker().send_late(worker().asked<CreateJob>().front(),
                     MutationResult{MutationStatus::kInProgress, "request", {}, {}, {}, Millis(0)});
  settle();
  CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
  CHECK(end_of(id)["state"] == "complete");
  CHECK(asked == 2);
  for (const auto& job : worker().jobs) CHECK_FALSE(reads(job, ""));
}

TEST_CASE_METHOD(CommandsFixture, "what is told while it is looked for is found by what was told") {
  auto schema = Json::parse(kBoxSchema);
  schema.erase("x-muster-identity");  // a look by properties finds nothing
  for (auto& type : manifest.types) type.schema = schema.dump();
  system.knows_keys = false;
  start_discovered();
  std::optional<JobResult> made;
  worker().on_go = [&](const Job& job) -> Behaviour {
    if (made) return {};
    made = system.change(job);
    return failed_as(Errc::kInternalFailure);
  };
  bool looks = false;
  worker().on_job = [&](const Job& job) -> Behaviour {
    if (!made || looks || !std::holds_alternative<ListJob>(job.operation)) return {};
    looks = true;
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return looks; });
  worker().send_late(worker().asked<CreateJob>().front(), *made);
  settle();
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == 2);
  CHECK(row("NS::Box", "made-1").managed);
}

TEST_CASE_METHOD(CommandsFixture, "what may have been made is looked for though the next attempt is stopped by force") {
  start_discovered();
  bool made = false;
  worker().on_go = [&](const Job& job) -> Behaviour {
    static_cast<void>(system.change(job));
    made = true;
    return failed_as(Errc::kInternalFailure);
  };
  worker().on_job = [&](const Job& job) -> Behaviour {
    return made && is_mutation(job.operation) ? Behaviour(FakeWorker::Silent{}) : Behaviour();
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return worker().asked<CreateJob>().size() == 2; });
  api("cancel", {{"command", id}, {"force", true}});
  const auto ended = end_of(id);
  CHECK(result_of(ended, "a") == "done");
  CHECK(row("NS::Box", "made-1").managed);
}

TEST_CASE_METHOD(CommandsFixture, "a read that is answered with another object is not taken for the one asked for") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_job = [&](const Job& job) -> Behaviour {
    if (!reads(job, "made-1")) return {};
    const auto& there = system.thing("NS::Box", "made-1");
    return JobResult(ReadResult{{Item{"other", there.uid, there.properties}}});
  };
  const auto failed = apply(stack({box("a", {{"size", 2}})}));
  CHECK(result_of(failed, "a") == "failed CONTRACT");
  CHECK_THAT(message_of(failed, "a"), Contains("answered a read of made-1 with other"));
  CHECK(worker().asked<UpdateJob>().empty());
}

TEST_CASE_METHOD(CommandsFixture, "what is refused for good is asked for once") {
  start_discovered();
  worker().on_go = [](const Job&) -> Behaviour { return failed_as(Errc::kInvalidRequest); };
  CHECK(result_of(apply(stack({box("a")})), "a") == "failed INVALID_REQUEST");
  CHECK(worker().asked<CreateJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a uid that a run has found stays where the one who made the object tells none") {
  start_discovered();
  const std::string told = GENERATE("", "uid-told");
  worker().on_go = [](const Job&) -> Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({box("a")}));
  advance(Millis(300));
  const auto job = worker().asked<CreateJob>().front();
  const auto made = system.change(job);
  api("discover");
  wait_until([&] { return state_of("NS::Box", "made-1") == "present"; });
  REQUIRE(row("NS::Box", "made-1").uid == "uid-made-1");
  auto answer = std::get<MutationResult>(made);
  answer.uid = told;
  worker().send_late(job, answer);
  CHECK(end_of(id)["state"] == "complete");
  CHECK(row("NS::Box", "made-1").uid == (told.empty() ? "uid-made-1" : told));
}

TEST_CASE_METHOD(CommandsFixture, "what is to be changed as it is adopted is left alone when it is gone, or left out") {
  system.add("NS::Box", {"found", R"({"kind":"small","name":"a","size":1})", "uid-found", {}});
  start_discovered();
  const auto mine = stack({box("a", {{"size", 2}})}, "patch");
  REQUIRE(plan(mine)["summary"]["adopt"] == 1);
  SECTION("before its command begins") {
    worker().on_go = [](const Job&) -> Behaviour { return FakeWorker::Hold{}; };
    const auto first = begin(stack({box("x")}, "patch"));
    advance(Millis(300));
    const auto second = begin(mine);
    auto there = std::exchange(system.things, {});
    api("discover");
    wait_until([&] { return state_of("NS::Box", "found") == "vanished"; });
    system.things = std::move(there);
    worker().on_go = {};
    worker().release();
    end_of(first);
    CHECK(result_of(end_of(second), "a") == "failed NOT_FOUND");
    CHECK(worker().asked<UpdateJob>().empty());
  }
  SECTION("while it is read first") {
    int held = 0;
    worker().on_job = [&](const Job& job) -> Behaviour {
      return reads(job, "found") && held++ == 0 ? Behaviour(FakeWorker::Hold{}) : Behaviour();
    };
    const auto id = begin(mine);
    wait_until([&] { return held == 1; });
    system.inspection.filters = {
        {{"NS::Box"}, {PropertyMatch{"$.kind", MatchOp::kEq, "\"small\""}}, FilterAction::kExclude}};
    api("discover");
    wait_until([&] { return state_of("NS::Box", "found") == "filtered"; });
    worker().release();
    CHECK(result_of(end_of(id), "a") == "failed NOT_FOUND");
    CHECK(state_of("NS::Box", "found") == "filtered");
    CHECK(listed("NS::Box").empty());
  }
}

TEST_CASE_METHOD(CommandsFixture, "what waits for a step that has yet to begin is not taken for failed") {
  start_discovered();
  auto owner = box("a", {{"kind", "x"}});
  REQUIRE(apply(stack({owner, linked("b", "a"), box("slow", {{"size", 1}})}))["state"] == "complete");
  owner = box("a2", {{"kind", "y"}});
  owner["name"] = "a";
  owner["replace"] = "create-first";
  auto turned = linked("b", "a");
  turned["after"] = {"slow"};
  worker().on_go = [](const Job& job) -> Behaviour {
    return std::holds_alternative<UpdateJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  };
  const auto id = begin(stack({owner, turned, box("slow", {{"size", 2}})}));
  advance(Millis(2000));
  REQUIRE(count() == 4);
  worker().on_go = {};
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 3);
  CHECK(thing("b")["link"] == thing("a2")["id"]);
}

TEST_CASE_METHOD(CommandsFixture, "what is made in place of another is cancelled with what was to turn to it") {
  start_discovered();
  auto owner = box("a", {{"kind", "x"}});
  REQUIRE(apply(stack({owner, linked("b", "a")}))["state"] == "complete");
  owner = box("a2", {{"kind", "y"}});
  owner["name"] = "a";
  owner["replace"] = "create-first";
  worker().on_go = [](const Job&) -> Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({owner, linked("b", "a")}));
  advance(Millis(300));
  api("cancel", {{"command", id}});
  worker().release();
  const auto ended = end_of(id);
  CHECK(ended["state"] == "cancelled");
  CHECK(result_of(ended, "a") == "cancelled CANCELLED");
  CHECK_THAT(message_of(ended, "a"), Contains("what it replaces is there still"));
  CHECK(result_of(ended, "b") == "cancelled CANCELLED");
  CHECK(count() == 3);
}

TEST_CASE_METHOD(CommandsFixture, "what was done is followed to its end though its command is cancelled") {
  start_discovered();
  worker().on_go = [this](const Job&) -> Behaviour {
    worker().draining = true;
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a", {{"size", 1}})}));
  advance(Millis(1500));  // nobody can be asked for a look from now on
  const auto job = worker().asked<CreateJob>().front();
  auto made = std::get<MutationResult>(system.change(job));
  made.properties = R"({"id":"made-1","name":"a"})";  // the size shows later
  worker().send_reply(job, Subjects("muster").reply("NS", coordinator->status().id, job.token), JobResult(made));
  advance(Millis(1000));
  REQUIRE(row("NS::Box", "made-1").managed);
  api("cancel", {{"command", id}});
  settle();
  add_worker("w2");
  CHECK(result_of(end_of(id), "a") == "done");
}

TEST_CASE_METHOD(CommandsFixture, "what a change does not find is deleted only where that was asked for") {
  start_discovered();
  worker().on_go = [](const Job&) -> Behaviour { return failed_as(Errc::kNotFound); };
  CHECK(result_of(apply(stack({box("a")})), "a") == "failed NOT_FOUND");
  worker().on_go = {};
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [this](const Job&) -> Behaviour {
    system.things.clear();
    return failed_as(Errc::kNotFound);
  };
  events();
  if (GENERATE(true, false)) {
    CHECK(result_of(apply(stack({box("a", {{"size", 2}})})), "a") == "failed NOT_FOUND");
    CHECK(state_of("NS::Box", "made-1") == "missing");
    CHECK(row("NS::Box", "made-1").managed);
    advance(Millis(500));
    CHECK(resource_events() == Strings{"drifted:made-1", "vanished:made-1"});
  } else {
    CHECK(result_of(apply(stack({})), "a") == "done");
    CHECK(state_of("NS::Box", "made-1") == "vanished");
  }
}

TEST_CASE_METHOD(CommandsFixture, "what cannot be compared with what was declared is told by what is there") {
  start_discovered();
  auto owner = linked("a", "c");
  owner["properties"]["kind"] = "x";
  REQUIRE(apply(stack({box("c"), owner}))["state"] == "complete");
  const bool create_first = GENERATE(true, false);
  owner["replace"] = create_first ? "create-first" : "delete-first";
  owner["properties"]["kind"] = "y";
  if (create_first) owner["properties"]["name"] = "a2";
  worker().on_go = [](const Job& job) -> Behaviour {
    return std::holds_alternative<CreateJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  };
  const auto id = begin(stack({box("c"), owner}));
  advance(Millis(500));
  system.remove("NS::Box", "made-1");  // what it refers to
  api("discover");
  wait_until([&] { return state_of("NS::Box", "made-1") == "missing"; });
  worker().release();
  const auto failed = end_of(id);
  CHECK(result_of(failed, "a") == "failed NOT_STABILIZED");
  CHECK_THAT(message_of(failed, "a"), Contains(create_first ? "made, and what it replaces is there still: /link"
                                                            : "done, and whether it is as declared is not known"));
}

TEST_CASE_METHOD(CommandsFixture, "a change in progress is asked for by the request that was told last") {
  start_discovered();
  worker().on_go = [this](const Job& job) -> Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request", {}, {}, {}, Millis(0)});
  };
  Strings asked;
  worker().on_job = [&](const Job& job) -> Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    asked.push_back(status->request_id);
    if (asked.size() > 2) return made_as("made-1", "uid-made-1", thing("a").dump());
    const std::string next = asked.size() == 1 ? "" : "other";
    return JobResult(MutationResult{MutationStatus::kInProgress, next, {}, {}, {}, Millis(0)});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(asked == Strings{"request", "request", "other"});
}

TEST_CASE_METHOD(CommandsFixture,
                 "a change in progress is asked for again, and not begun again, where an answer fails") {
  const auto [failure, failures] = GENERATE(std::pair(failed_as(Errc::kThrottling, Millis(600'000)), std::size_t{1}),
                                            std::pair(failed_as(Errc::kNetwork), std::size_t{7}));
  start_discovered();
  worker().on_go = [this](const Job& job) -> Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request", {}, {}, {}, Millis(0)});
  };
  Strings asked;
  worker().on_job = [&](const Job& job) -> Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    asked.push_back(status->request_id);
    return asked.size() > failures ? made_as("made-1", "uid-made-1", thing("a").dump()) : failure;
  };
  CHECK(result_of(apply(stack({box("a")})), "a") == "done");
  CHECK(asked == Strings(failures + 1, "request"));
  CHECK(worker().asked<CreateJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what nobody has cancelled is not told as cancelled") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_job = [](const Job& job) -> Behaviour {
    return reads(job, "made-1") ? failed_as(Errc::kCancelled) : Behaviour();
  };
  CHECK(result_of(apply(stack({box("a", {{"size", 2}})})), "a") == "failed CANCELLED");
}

TEST_CASE_METHOD(CommandsFixture, "what a change finds gone is missing though it was stale, and made anew next") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_job = [](const Job& job) -> Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation)) return {};
    return JobResult(ListResult{{}, {}, {{{}, Error{Errc::kAccessDenied, "some of it", {}, 0}}}, 0});
  };
  discover();
  REQUIRE(state_of("NS::Box", "made-1") == "stale");
  system.things.clear();
  const auto wanted = stack({box("a", {{"size", 2}})});
  CHECK(result_of(apply(wanted), "a") == "failed NOT_FOUND");
  CHECK(state_of("NS::Box", "made-1") == "missing");
  CHECK(apply(wanted)["state"] == "complete");
  CHECK(thing("a")["size"] == 2);
}

TEST_CASE_METHOD(CommandsFixture, "an object that the stack has under another name is not taken for a new one") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  worker().on_go = [this](const Job&) -> Behaviour {
    const auto& there = system.thing("NS::Box", "made-1");
    return made_as(there.id, there.uid, there.properties);
  };
  const auto failed = apply(stack({box("a"), box("b")}));
  CHECK(result_of(failed, "b") == "failed CONFLICT");
  CHECK_THAT(message_of(failed, "b"), Contains("made-1 belongs to stack shop, as a"));
  CHECK(store->claim(*store->find(row("NS::Box", "made-1").scan, "made-1")).value()->name == "a");
}
