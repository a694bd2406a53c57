// Changes that take their time: in progress, stopped, or under way while the coordinator is started again.
#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Catch::Contains;

TEST_CASE_METHOD(CommandsFixture,
                 "what a worker may be changing still is not judged by a coordinator that comes back") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  std::optional<Job> begun;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    begun = job;
    return FakeWorker::Hold{};
  };
  const bool updates = GENERATE(true, false);
  CAPTURE(updates);
  const auto id = begin(updates ? stack({box("a", {{"size", 2}})}) : stack({}));
  advance(Millis(200));
  REQUIRE(begun);
  restart();
  advance(Millis(2000));
  static_cast<void>(system.change(*begun));  // whoever tells it to stop comes too late
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<UpdateJob>().size() + worker().asked<DeleteJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what was told late of an object that was made is known after a restart") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
  };
  const auto id = begin(stack({box("a")}));
  REQUIRE(worker().asked<CreateJob>().size() == 1);
  worker().send_late(worker().asked<CreateJob>().front(),
                     MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), {}});
  settle();
  CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
  restart();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == 1);  // it is read, and not asked for once more
  CHECK(listed("NS::Box") == Strings{"made-1"});
}

TEST_CASE_METHOD(CommandsFixture, "what was made before its command was stopped is found and kept") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a"), linked("b", "a")}));
  wait_until([&] { return count() == 1; });
  api("cancel", {{"command", id}, {"force", true}});
  const auto ended = end_of(id);
  CHECK(ended["state"] == "cancelled");
  CHECK(result_of(ended, "a") == "done");
  CHECK(result_of(ended, "b") == "cancelled CANCELLED");
  CHECK(row("NS::Box", "made-1").managed);
}

TEST_CASE_METHOD(CommandsFixture, "what waits to be asked for is stopped at once") {
  start_discovered();
  const bool creates = GENERATE(true, false);
  const bool throttled = GENERATE(true, false);
  CAPTURE(creates, throttled);
  if (!creates) apply(stack({box("a", {{"size", 1}})}));
  constexpr Millis kHalfAnHour{30LL * 60'000};
  const auto in_progress = [&](Millis wait) {
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, wait});
  };
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    return in_progress(throttled ? Millis(0) : kHalfAnHour);
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    if (throttled) return JobResult(Error{Errc::kThrottling, "slowly", kHalfAnHour, 0});
    return in_progress(kHalfAnHour);
  };
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(5000));
  CHECK(api("command", {{"command", id}})["state"] == "running");
  api("cancel", {{"command", id}, {"force", true}});
  worker().on_job = nullptr;
  const auto ended_in = [&](Millis at_most) {
    wait_until([&] { return api("command", {{"command", id}})["state"] == "cancelled"; }, at_most);
  };
  ended_in(Millis(throttled ? 3'600'000 : 5000));
  const auto ended = api("command", {{"command", id}});
  CHECK(result_of(ended, "a") == "cancelled CANCELLED");
  if (creates) CHECK_THAT(message_of(ended, "a"), Contains("whether it was applied is not known"));
}

TEST_CASE_METHOD(CommandsFixture,
                 "what is in progress is asked for within its hour, however long a worker would wait") {
  start_discovered();
  worker().on_go = [](const Job&) {
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(48LL * 3'600'000)});
  };
  const auto failed = apply(stack({box("a")}));  // waits for little more than an hour
  CHECK(result_of(failed, "a") == "failed TIMEOUT");
}

TEST_CASE_METHOD(CommandsFixture, "what was made is not made once more while its type may take to show it") {
  for (auto& type : manifest.types) type.settle = Millis(120'000);
  start_discovered();
  worker().on_go = [](const Job&) {
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, {}, {}});
  };
  const auto id = begin(stack({box("a")}));
  advance(Millis(60'000));
  CHECK(api("command", {{"command", id}})["state"] == "running");
  SECTION("it shows") {
    system.add("NS::Box", {.id = "made-1", .properties = R"({"name":"a"})"});
    CHECK(end_of(id)["state"] == "complete");
    CHECK(worker().asked<CreateJob>().size() == 1);
  }
  SECTION("it is given up after that") {
    wait_until([&] { return worker().asked<CreateJob>().size() == 2; });
    const auto creates = worker().asked<CreateJob>();
    CHECK(std::get<CreateJob>(creates[0].operation).idempotency_key !=
          std::get<CreateJob>(creates[1].operation).idempotency_key);
  }
  SECTION("or when it is stopped") {
    api("cancel", {{"command", id}, {"force", true}});
    advance(Millis(15'000));
    CHECK(result_of(api("command", {{"command", id}}), "a") == "cancelled CANCELLED");
  }
}

TEST_CASE_METHOD(CommandsFixture, "changes in progress are asked for until they end") {
  start_discovered();
  int polls = 0;
  // What it names already, id and properties, is not there before its status says so.
  const std::string id_known = GENERATE("", "made-1");
  const auto properties_known = id_known.empty() ? std::string() : thing("a").dump();
  const auto in_progress =
      JobResult(MutationResult{MutationStatus::kInProgress, "request-1", id_known, {}, properties_known, Millis(0)});
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return in_progress;
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    CHECK(status->request_id == "request-1");
    if (++polls == 2) restart();
    if (polls < 4) return in_progress;
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), {}});
  };
  const auto id = begin(stack({box("a")}));
  CHECK(end_of(id)["state"] == "complete");
  CHECK(polls == 4);
  CHECK(worker().asked<CreateJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a change in progress outlasts as many failures as it has answers between them") {
  start_discovered();
  int asked = 0;
  worker().on_go = [](const Job&) {
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, {}});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    if (++asked % 12 == 0) {
      return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, {}});
    }
    if (asked < 100) return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
    system.add("NS::Box", {"made-1", R"({"name":"a"})", {}, {}});
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, R"({"name":"a"})", {}});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
}

TEST_CASE_METHOD(CommandsFixture, "what is in progress, and nobody can tell how far, is not told as not made") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  const auto failed = apply(stack({box("a")}));
  CHECK(result_of(failed, "a") == "failed INTERNAL_FAILURE");
  CHECK_THAT(message_of(failed, "a"), Contains("whether it was applied is not known"));
  finish_runs();
  CHECK(plan(stack({box("a")}))["summary"]["adopt"] == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a request that the target does not know is asked for no more") {
  start_discovered();
  worker().on_go = [&, asked = 0](const Job& job) mutable -> FakeWorker::Behaviour {
    if (asked++ == 0) return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, {}, "made-1", {}, {}, Millis(0)});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    if (status->request_id == "request-1") return JobResult(Error{Errc::kNotFound, "no such request", {}, 0});
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), {}});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  const auto polls = worker().asked<StatusJob>();
  REQUIRE(polls.size() == 2);
  CHECK(std::get<StatusJob>(polls.back().operation) == StatusJob{"", "made-1"});
}

TEST_CASE_METHOD(CommandsFixture, "what is there tells how a request went that the target knows no more") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(Error{Errc::kNotFound, "no such request", {}, 0});
  };
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  CHECK(worker().asked<StatusJob>().size() == 1);
  CHECK(worker().asked<UpdateJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what is there still is not deleted because a target knows no more of its request") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  worker().on_go = [&, asked = 0](const Job& job) mutable -> FakeWorker::Behaviour {
    if (asked++ > 0) static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(Error{Errc::kNotFound, "no such request", {}, 0});
  };
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  CHECK(worker().asked<DeleteJob>().size() == 2);
  CHECK(count() == 0);
  CHECK(state_of("NS::Box", "made-1") == "vanished");
}

TEST_CASE_METHOD(CommandsFixture, "a change that never shows is found out") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    edit("a", "size", 7);
    auto& done = std::get<MutationResult>(result);
    done.properties = thing("a").dump();
    return result;
  };
  const auto failed = apply(stack({box("a", {{"size", 3}})}));
  CHECK(result_of(failed, "a") == "failed NOT_STABILIZED");
  CHECK_THAT(message_of(failed, "a"), Contains("/size was declared 3 and is 7"));
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(api("resources", {{"drifted", true}})["items"].size() == 1);
}

TEST_CASE_METHOD(CommandsFixture,
                 "what was made is not made again by a coordinator that takes over while it is looked at") {
  start_discovered();
  system.knows_keys = false;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    std::get<MutationResult>(result).properties = R"({"name":"a","size":7})";  // it shows late
    return result;
  };
  const auto id = begin(stack({box("a", {{"size", 3}})}));
  wait_until([&] { return count() == 1 && !worker().asked<CreateJob>().empty(); });
  advance(Millis(10));
  REQUIRE(api("command", {{"command", id}})["state"] == "running");
  restart();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a command whose plan cannot be read has failed, and nothing of it is begun") {
  start_discovered();
  crash();
  CommandRow kept;  // of another version
  kept.id = CommandId("01BX5ZZKBKACTAV9WEVGEMMVRZ");
  kept.kind = "apply";
  kept.state = GENERATE("queued", "running");
  kept.stacks = {"shop"};
  kept.plan = R"({"steps":"in another form"})";
  kept.created_at = clock.wall();
  REQUIRE(store->put_command(kept));
  REQUIRE(store->commit());
  start();
  advance(Millis(2000));
  const auto ended = api("command", {{"command", kept.id.value}, {"brief", true}});
  CHECK(ended["state"] == "failed");
  CHECK(ended["finished_at"].is_string());
  const auto whole = api("command", {{"command", kept.id.value}});
  CHECK(whole["state"] == "failed");
  CHECK_THAT(whole["message"].get<std::string>(), Contains("its plan cannot be read"));
  CHECK(whole["results"].empty());
  CHECK(std::ranges::any_of(events(), [&](const Json& event) {
    return event["type"] == "muster.command.finished" && event["data"]["command"] == kept.id.value;
  }));
  CHECK(store->unfinished_commands().value().empty());
  CHECK(store->operations(kept.id).value().empty());
  CHECK(worker().asked<CreateJob>().empty());
  CHECK(apply(stack({box("a")}))["state"] == "complete");  // none of its stack waits for it
}

TEST_CASE_METHOD(CommandsFixture, "a change that is told to be in progress after it was stopped is not followed") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Silent{}; };
  const auto id = begin(stack({box("a")}));
  advance(Millis(200));
  api("cancel", {{"command", id}, {"force", true}});
  const MutationResult in_progress{MutationStatus::kInProgress, "request", {}, {}, {}, Millis(500)};
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(in_progress);
  };
  worker().send_late(worker().asked<CreateJob>().at(0), in_progress);
  advance(Millis(20'000));
  CHECK(api("command", {{"command", id}})["state"] == "cancelled");
  CHECK(worker().asked<StatusJob>().empty());
}

TEST_CASE_METHOD(CommandsFixture, "what is in progress is asked for behind what users wait for") {
  start_discovered();
  const auto in_progress = JobResult(MutationResult{MutationStatus::kInProgress, "request", {}, {}, {}, Millis(100)});
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour { return in_progress; };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    if (worker().asked<StatusJob>().size() < 3) return in_progress;
    return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
  };
  apply(stack({box("a")}));
  const auto polls = worker().asked<StatusJob>();
  REQUIRE(polls.size() == 3);
  for (const auto& job : polls) CHECK(job.priority == Priority::kStatus);
  for (const auto& job : worker().asked<CreateJob>()) CHECK(job.priority == Priority::kCommand);
}

TEST_CASE_METHOD(CommandsFixture, "a step waits as long as the target asks before it is tried again") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kServiceUnavailable, "in a while", Millis(30'000), 0});
  };
  const auto id = begin(stack({box("a")}));
  advance(Millis(25'000));
  CHECK(worker().asked<CreateJob>().size() == 1);
  worker().on_go = {};
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == 2);
}

TEST_CASE_METHOD(CommandsFixture, "an update that is never as declared is tried a few times") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kInternalFailure, "no", {}, 0});
  };
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(120'000));
  CHECK(result_of(api("command", {{"command", id}}), "a") == "failed NOT_STABILIZED");
  CHECK(worker().asked<UpdateJob>().size() == 5);
}

TEST_CASE_METHOD(CommandsFixture, "a replacement keeps its order though its type has another after a restart") {
  const bool create_first = GENERATE(true, false);
  const auto ordered = [&](bool first) {
    auto changed = manifest;
    auto schema = Json::parse(kBoxSchema);
    if (first) schema["x-muster-replace"] = "create-first";
    for (auto& type : changed.types) type.schema = schema.dump();
    changed.version = first ? "1.0.0" : "2.0.0";
    return changed;
  };
  manifest = ordered(create_first);
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"kind", "x"}})}))["state"] == "complete");
  auto wanted = box("b", {{"kind", "y"}});
  wanted["name"] = "a";
  worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
    return std::holds_alternative<CreateJob>(job.operation) ? FakeWorker::Behaviour(FakeWorker::Hold{})
                                                            : FakeWorker::Behaviour();
  };
  const auto id = begin(stack({wanted}));
  advance(Millis(1000));
  REQUIRE(worker().asked<CreateJob>().size() == 2);
  REQUIRE(worker().asked<DeleteJob>().empty() == create_first);
  add_worker("w2", ordered(!create_first));
  advance(Millis(1500));
  crash();
  remove_worker("w1");
  start();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 1);
  CHECK(thing("b")["kind"] == "y");
  CHECK(row("NS::Box", thing("b")["id"].get<std::string>()).managed);
  CHECK(plan(stack({wanted}))["nothing"] == true);
}
