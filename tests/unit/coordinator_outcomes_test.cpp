// What answers to changes mean, and those that never come: nothing is made twice, and no report says what is not so.
#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Catch::Contains;

TEST_CASE_METHOD(CommandsFixture, "an answer that is lost makes no second object") {
  const bool keys = GENERATE(true, false);
  CAPTURE(keys);
  system.knows_keys = keys;
  start_discovered();
  int lost = 0;
  SECTION("the worker did it and died") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      static_cast<void>(system.change(job));
      return FakeWorker::Silent{};
    };
    CHECK(apply(stack({box("a")}))["state"] == "complete");
    CHECK(lost > 1);  // an answer was lost, and another attempt made
  }
  SECTION("it did it, and answered that it may have failed") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      static_cast<void>(system.change(job));
      return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
    };
    CHECK(apply(stack({box("a")}))["state"] == "complete");
    CHECK(lost > 1);  // an answer was lost, and another attempt made
  }
  SECTION("it did it, lost the answer, and may do no such thing any more") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return JobResult(Error{Errc::kAccessDenied, "not any more", {}, 0});
      static_cast<void>(system.change(job));
      return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
    };
    CHECK(apply(stack({box("a")}))["state"] == "complete");
    CHECK(lost == 2);
  }
  SECTION("it did nothing, and answered that it may have failed") {
    worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      return JobResult(Error{Errc::kServiceUnavailable, "busy", {}, 0});
    };
    CHECK(apply(stack({box("a")}))["state"] == "complete");
    CHECK(lost > 1);  // an answer was lost, and another attempt made
  }
  SECTION("the coordinator dies while it is done") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      static_cast<void>(system.change(job));
      crash();
      return FakeWorker::Silent{};
    };
    const auto id = begin(stack({box("a")}));
    settle();
    REQUIRE(lost == 1);
    start();
    CHECK(end_of(id)["state"] == "complete");
  }
  SECTION("the coordinator dies before it is done, and the worker does it afterwards") {
    worker().on_go = [&](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
    const auto id = begin(stack({box("a")}));
    advance(Millis(300));
    restart();
    advance(Millis(1500));  // a heartbeat says that it has the job still
    CHECK(worker().asked<CreateJob>().size() == 1);
    worker().on_go = {};
    worker().release();
    settle();
    const auto late = worker().asked<CreateJob>().front();
    worker().send_late(late,
                       MutationResult{MutationStatus::kSuccess, {}, "made-1", "uid-made-1", thing("a").dump(), {}});
    settle();
    CHECK(worker().acks.back().verdict == Verdict::kCommitted);
    CHECK(end_of(id)["state"] == "complete");
    CHECK(worker().asked<CreateJob>().size() == 1);
  }
  CHECK(count() == 1);
  CHECK(listed("NS::Box") == Strings{"made-1"});
  CHECK(plan(stack({box("a")}))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "an update or deletion of unknown outcome is settled by a read") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  events();
  int lost = 0;
  const bool done = GENERATE(true, false);
  CAPTURE(done);
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (lost++ > 0) return {};
    if (done) static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  SECTION("update") {
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
    CHECK(thing("a")["size"] == 2);
    CHECK(worker().asked<UpdateJob>().size() == (done ? 1 : 2));
    advance(Millis(500));
    Json patched = Json::array();  // by all that is told together
    for (const auto& event : events("resource.")) {
      for (const auto& change : event["data"].value("patch", Json::array())) patched.push_back(change);
    }
    REQUIRE(patched.size() == 1);
    CHECK(patched[0]["value"] == 2);
  }
  SECTION("deletion") {
    CHECK(apply(stack({}))["state"] == "complete");
    CHECK(count() == 0);
    CHECK(worker().asked<DeleteJob>().size() == (done ? 1 : 2));
  }
  CHECK(lost == (done ? 1 : 2));
}

TEST_CASE_METHOD(CommandsFixture, "what has the id of what may have been changed is not changed in its place") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  REQUIRE(row("NS::Box", "made-1").uid == "uid-made-1");
  const bool as_declared = GENERATE(false, true);
  CAPTURE(as_declared);
  bool first = true;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    if (!std::exchange(first, false)) return {};
    auto& there = system.thing("NS::Box", "made-1");
    there.uid = "uid-other";
    if (as_declared) edit("a", "size", 2);
    return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
  };
  const auto ended = apply(stack({box("a", {{"size", 2}})}));
  // Some systems give what is changed another uid: then it is as declared.
  CHECK(result_of(ended, "a") == (as_declared ? "done" : "failed CONFLICT"));
  CHECK(thing("a")["size"] == (as_declared ? 2 : 1));
  CHECK(worker().asked<UpdateJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what is not known in the end is said, and found by the next look") {
  start_discovered();
  make_and_crash();
  const auto failed = apply(stack({box("a")}));
  CHECK(failed["state"] == "failed");
  CHECK(result_of(failed, "a") == "failed INTERNAL_FAILURE");
  CHECK_THAT(message_of(failed, "a"), Contains("not known"));
  worker().on_go = {};
  SECTION("by discovery: the next apply adopts it") {
    discover();
  }
  SECTION("which nobody has to ask for") {
    finish_runs();
  }
  SECTION("by the worker's own word, later") {
    const auto job = worker().asked<CreateJob>().front();
    worker().send_late(job, MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), {}});
    settle();
    CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
    finish_runs();
  }
  CHECK(plan(stack({box("a")}))["summary"]["adopt"] == 1);
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a value that nobody can read back and that may have been sent is sent again") {
  start_discovered();
  const auto with = [](const char* pin, const char* variable, int size) {
    auto resource = box("a", {{"size", size}, {"login", {{"user", "u"}, {"pin", pin}}}, {"password", nullptr}});
    resource["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", variable}}}}}});
    return stack({resource});
  };
  const auto sent = [&] { return std::get<UpdateJob>(worker().asked<UpdateJob>().back().operation).desired; };
  REQUIRE(apply(with("1", "FIRST", 1))["state"] == "complete");
  bool asked = false;
  const bool done = GENERATE(true, false);
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    asked = true;
    if (!done) return JobResult(Error{Errc::kInvalidRequest, "no", {}, 0});
    static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const bool settles = asked && std::holds_alternative<ReadJob>(job.operation);
    return settles ? FakeWorker::Behaviour(Error{Errc::kAccessDenied, "not yours", {}, 0}) : FakeWorker::Behaviour();
  };
  const auto fail = [&](const Json& request) {
    const auto message = message_of(apply(request), "a");
    CHECK_THAT(message, Contains("whether it was applied is not known") || Contains("no"));
    worker().on_go = {};
    worker().on_job = {};
  };
  SECTION("a value") {
    fail(with("2", "FIRST", 1));
    CHECK((thing("a")["login"]["pin"] == "2") == done);
    CHECK(plan(with("1", "FIRST", 1))["nothing"] == !done);
    CHECK(apply(with("1", "FIRST", 1))["state"] == "complete");
    CHECK(thing("a")["login"]["pin"] == "1");
    CHECK(sent().secrets.empty());
  }
  SECTION("a secret") {
    fail(with("1", "SECOND", 1));
    CHECK(sent().secrets.size() == 1);
    CHECK(plan(with("1", "FIRST", 1))["nothing"] == !done);
    CHECK(apply(with("1", "FIRST", 1))["state"] == "complete");
    CHECK(worker().asked<UpdateJob>().size() == (done ? 2 : 1));
    CHECK(sent().secrets.size() == 1);
  }
  SECTION("not what was not sent") {
    fail(with("1", "FIRST", 2));
    if (done) discover();
    CHECK(apply(with("1", "FIRST", 2))["state"] == "complete");
    CHECK(worker().asked<UpdateJob>().size() == (done ? 1 : 2));
    CHECK(sent().secrets.empty());
    CHECK(sent().json.find("pin") == std::string::npos);
  }
}

TEST_CASE_METHOD(CommandsFixture, "what takes the id of a deleted object is not deleted after it") {
  start_discovered();
  apply(stack({box("a")}));
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    system.add("NS::Box", {.id = "made-1", .properties = R"({"name":"theirs"})", .uid = "another"});
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  CHECK(apply(stack({}))["state"] == "complete");
  CHECK(worker().asked<DeleteJob>().size() == 1);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "an object that another stack has is not taken from it by a create") {
  start_discovered();
  apply(stack({box("a")}));
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    const auto& there = system.thing("NS::Box", "made-1");
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, there.id, there.uid, there.properties, {}});
  };
  auto theirs = stack({box("b")});
  theirs["stacks"][0]["stack"] = "store";
  CHECK(result_of(apply(theirs), "b") == "failed CONFLICT");
  CHECK(row("NS::Box", "made-1").stack == "shop");
}

TEST_CASE_METHOD(CommandsFixture,
                 "what may have been made is never told as not made, though what it refers to is gone") {
  start_discovered();
  system.knows_keys = false;
  const auto wanted = stack({box("a"), linked("b", "a")});
  int asked = 0;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (count() == 0) return {};
    if (asked++ > 0) return FakeWorker::Hold{};
    static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
  };
  const auto id = begin(wanted);
  wait_until([&] { return asked > 1; });
  system.remove("NS::Box", thing("a")["id"]);
  api("discover");
  wait_until([&] { return state_of("NS::Box", "made-1") == "missing"; });
  REQUIRE(api("command", {{"command", id}})["state"] == "running");
  worker().on_go = {};
  SECTION("it is found by its name") {
    worker().release();
    const auto failed = end_of(id);
    CHECK(result_of(failed, "b") == "failed NOT_STABILIZED");
    CHECK_THAT(message_of(failed, "b"), Contains("done, and whether it is as declared is not known: /link refers to"));
    CHECK(row("NS::Box", "made-2").managed);
  }
  SECTION("it is not asked for again, as it cannot be said what") {
    restart();
    CHECK_THAT(message_of(end_of(id), "b"), Contains("whether it was applied is not known: /link refers to"));
    discover();
  }
  CHECK(count() == 1);
  CHECK(apply(wanted)["state"] == "complete");
  CHECK(count() == 2);
  CHECK(thing("b")["id"] == "made-2");
  CHECK(thing("b")["link"] == thing("a")["id"]);
}

TEST_CASE_METHOD(CommandsFixture,
                 "what may have been made is never told as not made, though its target may be another") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return count() == 1; });
  system.inspection.system = "system-2";
  api("discover");
  wait_until([&] { return api("targets")["items"].at(0)["state"] == "changed"; });
  restart();
  const auto failed = end_of(id);
  CHECK(result_of(failed, "a") == "failed TARGET_CHANGED");
  CHECK_THAT(message_of(failed, "a"), Contains("whether it was applied is not known"));
  worker().on_go = {};
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {  // nobody has looked since
    return std::holds_alternative<ListJob>(job.operation) ? FakeWorker::Behaviour{FakeWorker::Hold{}}
                                                          : std::monostate{};
  };
  api("targets-accept", {{"target", "t"}});
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(count() == 1);
  const auto creates = worker().asked<CreateJob>();
  CHECK(std::get<CreateJob>(creates.back().operation).idempotency_key ==
        std::get<CreateJob>(creates.front().operation).idempotency_key);
}

TEST_CASE_METHOD(CommandsFixture, "a result of nobody's job is refused, one that was taken is confirmed again") {
  start_discovered();
  apply(stack({box("a")}));
  CHECK(worker().acks.back().verdict == Verdict::kCommitted);
  auto job = worker().asked<CreateJob>().front();
  const MutationResult done{MutationStatus::kSuccess, {}, "made-1", {}, "{}", {}};
  worker().send_late(job, done);
  settle();
  CHECK(worker().acks.back().verdict == Verdict::kCommitted);
  job.id = JobId("unheard-of");
  worker().send_late(job, done);
  settle();
  CHECK(worker().acks.back().verdict == Verdict::kRefused);
}

TEST_CASE_METHOD(CommandsFixture, "a late success with another id than the one that is known is looked at") {
  start_discovered();
  apply(stack({box("a")}));
  const auto job = worker().asked<CreateJob>().front();
  system.add("NS::Box", {.id = "twin"});
  const auto tell = [&](const std::string& id) {
    worker().send_late(job, MutationResult{MutationStatus::kSuccess, {}, id, {}, "{}", {}});
    advance(Millis(2000));
    finish_runs();
  };
  tell("made-1");
  CHECK(listed("NS::Box") == Strings{"made-1"});
  tell("twin");
  CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
  CHECK(listed("NS::Box") == Strings{"made-1", "twin"});
  CHECK(plan(stack({box("a")}))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "a late success of what replaces another is looked at like that of any create") {
  start_discovered();
  auto declared = box("a", {{"kind", "x"}});
  if (GENERATE(false, true)) declared["replace"] = "create-first";
  REQUIRE(apply(stack({declared}))["state"] == "complete");
  declared["properties"]["kind"] = "y";
  if (declared.contains("replace")) declared["properties"]["name"] = "ay";  // both are there for a while
  REQUIRE(apply(stack({declared}))["state"] == "complete");
  const auto job = worker().asked<CreateJob>().back();
  const auto made = system.things["NS::Box"].front().id;
  system.add("NS::Box", {.id = "twin"});
  const auto tell = [&](const std::string& id) {
    worker().send_late(job, MutationResult{MutationStatus::kSuccess, {}, id, {}, "{}", {}});
    advance(Millis(2000));
    finish_runs();
  };
  tell(made);
  CHECK(worker().acks.back().verdict == Verdict::kCommitted);
  CHECK(listed("NS::Box") == Strings{made});
  tell("twin");
  CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
  CHECK(listed("NS::Box") == Strings{made, "twin"});
}

TEST_CASE_METHOD(CommandsFixture, "a result that comes on another namespace's subject is no evidence") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kThrottling, "later", Millis(60'000), 0});
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return !worker().asked<CreateJob>().empty(); });
  advance(Millis(1000));
  const auto job = worker().asked<CreateJob>().front();
  const JobReply forged{store->fleet(),
                        job.id,
                        Token("forged"),
                        WorkerId("thief"),
                        1,
                        1,
                        JobResult(MutationResult{MutationStatus::kSuccess, {}, "stolen", {}, "{}", {}})};
  user->publish({Subjects().result("OTHER"), {}, encode(forged), {}}).value();
  settle();
  CHECK(api("command", {{"command", id}})["state"] == "running");
  CHECK(state_of("NS::Box", "stolen") == "absent");
  worker().on_go = nullptr;
  CHECK(end_of(id)["state"] == "complete");
  CHECK(state_of("NS::Box", "stolen") == "absent");
}

TEST_CASE_METHOD(CommandsFixture, "a result on another namespace's subject is no evidence of a change that has ended") {
  start_discovered();
  apply(stack({box("a")}));
  const auto job = worker().asked<CreateJob>().front();
  system.add("NS::Box", {.id = "twin"});  // found by whoever looks
  const JobReply forged{store->fleet(),
                        job.id,
                        job.token,
                        WorkerId("thief"),
                        1,
                        1,
                        JobResult(MutationResult{MutationStatus::kSuccess, {}, "twin", {}, "{}", {}})};
  const auto tell = [&](const std::string& ns) {
    user->publish({Subjects().result(ns), user->inbox() + ".ack", encode(forged), {}}).value();
    advance(Millis(2000));
    finish_runs();
  };
  tell("OTHER");
  CHECK(listed("NS::Box") == Strings{"made-1"});
  tell("NS");  // which may
  CHECK(listed("NS::Box") == Strings{"made-1", "twin"});
}

TEST_CASE_METHOD(CommandsFixture, "what a create told is kept where nobody can read it") {
  start_discovered();
  worker().on_go = [&, calls = 0](const Job& job) mutable -> FakeWorker::Behaviour {
    const auto done = system.change(job);
    if (calls++ == 0) return JobResult(Error{Errc::kNetwork, "it may have been made", {}, 0});
    return done;
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation)) return {};
    return JobResult(Error{Errc::kInternalFailure, "it crashes", {}, 0});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{thing("a")["id"].get<std::string>()});
}

TEST_CASE_METHOD(CommandsFixture, "what a command has read is not stale any more") {
  start_discovered();
  const auto declared = stack({box("a", {{"size", 1}})});
  REQUIRE(apply(declared)["state"] == "complete");
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation)) return {};
    ListResult page;
    page.problems.push_back({{}, {Errc::kAccessDenied, "some of it", {}, 0}});
    return JobResult(std::move(page));
  };
  discover();
  REQUIRE(state_of("NS::Box", "made-1") == "stale");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kAccessDenied, "it is to stay as it is", {}, 0});
  };
  REQUIRE(apply(stack({box("a", {{"size", 2}})}))["state"] == "failed");
  CHECK(state_of("NS::Box", "made-1") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "a plugin that changes another object than it was told to has failed") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    std::get<MutationResult>(result).native_id = "other";
    return result;
  };
  const auto failed = apply(stack({box("a", {{"size", 2}})}));
  CHECK_THAT(message_of(failed, "a"), Contains("changed other instead of made-1"));
}

TEST_CASE_METHOD(CommandsFixture, "what is there and not ours is no success") {
  start_discovered();
  system.add("NS::Box", {"theirs", R"({"name":"a"})", "u", ""});
  const auto failed = apply(stack({box("a")}));
  CHECK(result_of(failed, "a") == "failed ALREADY_EXISTS");
  CHECK_THAT(message_of(failed, "a"), Contains("muster discover"));
  discover();
  const auto before = row("NS::Box", "theirs").id;
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(row("NS::Box", "theirs").id == before);
  CHECK(row("NS::Box", "theirs").managed);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture,
                 "a result of which a part was lost is not told as taken, and is taken once it is whole") {
  start_discovered();
  std::optional<JobResult> made;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    made = system.change(job);
    return FakeWorker::Silent{};
  };
  const auto id = begin(stack({box("a")}));
  settle();
  const auto job = worker().asked<CreateJob>().front();
  if (GENERATE(false, true)) advance(Millis(20'000));  // nobody waits for it any more
  const std::uint32_t came = GENERATE(0, 1);
  CAPTURE(came);
  const auto answered = [&] {
    return std::ranges::any_of(worker().acks, [](const auto& ack) { return ack.verdict != Verdict::kLater; });
  };
  worker().send_late_parts(job, *made, {came});
  settle();
  CHECK_FALSE(answered());
  for (int i = 0; i < 3 && !answered(); ++i) {
    worker().send_late_parts(job, *made, {0, 1});
    settle();
  }
  CHECK(answered());
  worker().on_go = {};
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture,
                 "what nobody can read back is sent once where a change is answered without properties") {
  start_discovered();
  const auto with = [](const char* pin) { return stack({box("a", {{"login", {{"user", "u"}, {"pin", pin}}}})}); };
  REQUIRE(apply(with("1"))["state"] == "complete");
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, {}, Millis(0)});
  };
  const auto ended = apply(with("2"));
  CHECK(result_of(ended, "a") == "done");
  CHECK(worker().asked<UpdateJob>().size() == 1);
  CHECK(plan(with("2"))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what was made, and told in a way that cannot be kept, is not made twice") {
  const bool named = GENERATE(false, true);
  auto schema = Json::parse(kBoxSchema);
  schema.erase("x-muster-identity");  // only the key tells that it is the same
  for (auto& type : manifest.types) type.schema = schema.dump();
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, named ? "made-1" : "", {}, "[]", Millis(0)});
  };
  CHECK(result_of(apply(stack({box("a")})), "a") == "failed CONTRACT");
  worker().on_go = {};
  CHECK(result_of(apply(stack({box("a")})), "a") == "done");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what was sent, and answered in a way that cannot be kept, is sent again") {
  start_discovered();
  const auto with = [](const char* pin) { return stack({box("a", {{"login", {{"user", "u"}, {"pin", pin}}}})}); };
  REQUIRE(apply(with("1"))["state"] == "complete");
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, "[]", Millis(0)});
  };
  CHECK(result_of(apply(with("2")), "a") == "failed CONTRACT");
  worker().on_go = {};
  CHECK(apply(with("1"))["state"] == "complete");
  CHECK(thing("a")["login"]["pin"] == "1");
}

TEST_CASE_METHOD(CommandsFixture,
                 "what was changed before a crash is not changed once more while it is not to be seen yet") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<UpdateJob>(job.operation)) return {};
    const auto& there = system.things["NS::Box"].front();
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, there.id, there.uid, there.properties, Millis(0)});
  };
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(300));
  REQUIRE(worker().asked<UpdateJob>().size() == 1);
  restart();
  advance(Millis(5000));
  edit("a", "size", 2);
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<UpdateJob>().size() == 1);
  CHECK(events("resource.updated").size() == 1);
}
