// What a coordinator keeps comes to an end, and what it is flooded with harms nobody.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <spdlog/logger.h>

#include "coordinator/commands.h"
#include "coordinator/late_parts.h"
#include "coordinator/sqlite_store.h"
#include "support/commands_fixture.h"
#include "support/failing_store.h"

using namespace muster;
using namespace muster::test;

namespace {

/// One that no coordinator of the fleet has.
Job nobodys(Store& store, const std::string& token) {
  Job job;
  job.fleet = store.fleet();
  job.id = JobId("no-such-job");
  job.token = Token(token);
  return job;
}

/// Commands without a coordinator around them: what is declared to them may be said to have any size.
struct DraftsWorld {
  FakeClock clock;
  SeededRandom random{1};
  Config config;
  const Subjects subjects{"muster"};
  std::unique_ptr<Store> store = open_sqlite_store(":memory:", clock, random).value();
  spdlog::logger log{"test"};
  Registry registry;
  Limiter limiter;
  EventLog events{*store, clock};
  Dispatcher dispatcher{config, subjects, store->fleet(), CoordinatorId("c1"), registry, limiter, random};
  WriteLog writes;
  Drift drift{*store, registry, events};
  CompiledQueries queries;
  Discovery discovery{{config, *store, registry, dispatcher, limiter, events, writes, drift, queries, clock, log},
                      random};
  std::uint64_t left_out = 0;
  Commands commands{
      {config, *store, registry, dispatcher, events, writes, drift, queries, clock, log}, discovery, random, left_out};

  Result<Draft*> declare(std::size_t mebibytes, const std::string& id = {}) {
    return commands.declare(id, {}, {}, mebibytes << 20U, clock.now());
  }
};

}  // namespace

TEST_CASE_METHOD(DraftsWorld, "drafts together hold 512 MiB, and one that goes makes room for others") {
  const auto first = declare(300).value()->id;
  CHECK(declare(213).error().code == Errc::kTooLarge);
  CHECK(declare(213, first).error().code == Errc::kTooLarge);
  REQUIRE(declare(212, first));
  CHECK(declare(1).error().code == Errc::kTooLarge);
  SECTION("by hand") {
    commands.discard(first);
  }
  SECTION("when it was left alone for too long") {
    Effects effects;
    clock.advance(Millis(15 * 60'000));
    commands.tick(clock.now(), effects);
    CHECK(commands.draft(first, clock.now()).error().code == Errc::kNotFound);
  }
  CHECK(declare(512));
}

TEST_CASE_METHOD(DraftsWorld, "commands wait with plans of 64 MiB together, and no more") {
  DeclaredResource box;
  box.name = "a", box.type = "NS::Box", box.target = "t";
  box.properties = R"({"note":")" + std::string(16U << 20U, 'x') + R"("})";
  const auto apply = [&](Commands& to) {
    auto& draft = *to.declare({}, {{"shop", {box}}}, {}, 1, clock.now()).value();
    draft.plan.steps = {{.action = StepAction::kCreate, .stack = "shop", .name = "a", .type = box.type, .declared = 0}};
    draft.stack_of = {0};
    draft.planned_at = store->state();
    return to.apply(draft, Commands::IfBusy::kWait, clock.now());
  };
  for (int i = 0; i < 4; ++i) REQUIRE(apply(commands));
  const auto refused = apply(commands);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::kTooLarge);
  CHECK_THAT(refused.error().message, Catch::StartsWith("4 commands wait already, with plans of 64 MiB: apply again"));

  Commands after_a_restart{
      {config, *store, registry, dispatcher, events, writes, drift, queries, clock, log}, discovery, random, left_out};
  after_a_restart.start(clock.now());
  CHECK_FALSE(apply(after_a_restart));
}

TEST_CASE_METHOD(DraftsWorld, "events that nobody takes are kept in memory up to 16 MiB, and read from then on") {
  const auto data = '"' + std::string(50'000, 'x') + '"';
  for (int i = 0; i < 330; ++i) events.emit("NS", "something", "x", data);
  CHECK(events.after(0).size() == 330);
  for (int i = 0; i < 330; ++i) events.emit("NS", "something", "x", data);
  const auto& read = events.after(0);
  CHECK(read.size() == 256);
  CHECK(read.front().sequence == 1);
}

TEST_CASE_METHOD(CommandsFixture, "some hundred commands may wait, and no more") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  begin(stack({box("a")}));
  for (int i = 1; i <= 256; ++i) begin(stack({box("a", {{"size", i}})}));
  const auto refused = api("apply", stack({box("a", {{"size", 257}})}))["error"];
  CHECK(refused["code"] == "TOO_LARGE");
  CHECK(refused["message"] ==
        "256 commands wait already, with plans of 0 MiB: apply again when some have ended (`muster commands` shows "
        "them)");
  CHECK(api("commands", {{"limit", 1000}})["items"].size() == 257);
}

TEST_CASE_METHOD(CommandsFixture, "events are dropped when they take more room than they may") {
  config.limits.event_bytes = 2000;
  start_discovered();
  for (int i = 0; i < 20; ++i) discover();
  advance(Millis(61'000));
  const auto kept = store->events(0, 1000).value();
  REQUIRE_FALSE(kept.empty());
  CHECK(kept.front().sequence > 1);
  CHECK(kept.back().sequence == store->last_sequence().value());
}

TEST_CASE_METHOD(CommandsFixture, "the last thousand runs and commands are kept") {
  for (int i = 0; i < 1100; ++i) {
    RunRow run;
    CommandRow command;
    run.id = RunId(make_ulid(clock.wall(), random));
    command.id = CommandId(make_ulid(clock.wall(), random));
    run.state = command.state = "complete";
    run.trigger = "interval";
    run.scope = "[]";
    run.report = command.plan = "{}";
    command.kind = "apply";
    clock.advance(Millis(10));
    store->put_run(run).value();
    store->put_command(command).value();
  }
  store->commit().value();
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  advance(Millis(500));
  CHECK(store->runs({}, 2000).value().size() == 1000);
  CHECK(store->commands({}, 2000).value().size() == 1000);
}

TEST_CASE_METHOD(CommandsFixture, "long lists of runs and events are read a few rows at a time, and whole") {
  auto& counting = test::put_failing_before(store);
  for (int i = 0; i < 70; ++i) {
    RunRow run;
    run.id = RunId(make_ulid(clock.wall(), random));
    run.state = "complete";
    run.trigger = "interval";
    run.scope = "[]";
    run.finished_at = clock.wall();
    run.report = R"({"run":")" + run.id.value + R"("})";
    clock.advance(Millis(10));
    store->put_run(run).value();
    store->append_event({0, clock.wall(), "NS", "resource.changed", "x", "{}"}).value();
  }
  store->commit().value();
  start_discovered();
  advance(Millis(500));  // all is published
  counting.most_asked_for = 0;
  for (const std::string verb : {"runs", "events"}) {
    const auto all = api(verb, {{"limit", 1000}});
    CHECK(all["next"].is_null());
    REQUIRE(all["items"].size() > 70);
    for (const std::size_t limit : {15, 16, 17, 32, 50}) {
      INFO(verb << " by " << limit);
      auto pages = Json::array();
      for (Json request{{"limit", limit}}; !request["cursor"].is_null() || pages.empty();) {
        const auto page = api(verb, request);
        CHECK(page["items"].size() <= limit);
        for (const auto& item : page["items"]) pages.push_back(item);
        request["cursor"] = page["next"];
      }
      CHECK(pages == all["items"]);
    }
  }
  CHECK(counting.most_asked_for <= 16);  // each may have megabytes
}

TEST_CASE_METHOD(CommandsFixture, "a stack is read as often for many steps as for few") {
  const auto& counting = test::put_failing_before(store);
  start_discovered();
  std::vector<std::size_t> read;
  for (const std::size_t count : {2, 60}) {
    auto all = Json::array(), others = Json::array();
    for (std::size_t i = 0; i < count; ++i) {
      const auto name = std::to_string(count) + "-" + std::to_string(i);
      all.push_back(box(name, {{"size", 1}}));
      others.push_back(box(name, {{"size", 2}}));
    }
    const auto before = counting.whole_stacks;
    REQUIRE(apply(stack(all))["state"] == "complete");
    REQUIRE(apply(stack(others))["state"] == "complete");
    REQUIRE(apply(stack(Json::array()))["state"] == "complete");
    read.push_back(counting.whole_stacks - before);
  }
  CHECK(read[0] == read[1]);
}

TEST_CASE_METHOD(CommandsFixture, "what was read is changed before more is read") {
  start_discovered();
  std::vector<Json> boxes;
  for (int i = 0; i < 200; ++i) boxes.push_back(box(std::to_string(i)));
  REQUIRE(apply(stack(boxes))["state"] == "complete");
  worker().jobs.clear();
  REQUIRE(apply(stack({}))["state"] == "complete");
  std::size_t read = 0, most = 0;  // and not deleted yet
  for (const auto& job : worker().jobs) {
    if (std::holds_alternative<ReadJob>(job.operation)) most = std::max(most, ++read);
    if (std::holds_alternative<DeleteJob>(job.operation)) --read;
  }
  CHECK(worker().asked<DeleteJob>().size() == 200);
  CHECK(most <= 50);  // what the pool has room for, and not all of them
}

TEST_CASE_METHOD(CommandsFixture, "who has an answer hears nothing of a store that fails later") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  const auto asks = broker.connect("asks");
  asks->subscribe_answers(asks->inbox() + ".>").value();
  asks->publish({Subjects(config.prefix).api("discover"), asks->inbox() + ".answer", R"({"api":1})", {}}).value();
  finish_runs();
  failing.failing = true;
  api("discover");
  advance(Millis(1000));
  failing.failing = false;
  finish_runs();
  std::vector<Message> said;
  asks->receive(said, 10);
  CHECK(said.size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "nobody is taken for lost while its heartbeats lie unread behind other messages") {
  start_discovered();
  events();
  const auto noise = broker.connect("noise");
  for (const auto* subject : {"muster.announce.NS", "muster.result.NS", "muster.heartbeat.NS"}) {
    for (int i = 0; i < 45'000; ++i) noise->publish({subject, {}, "x", {}}).value();
  }
  for (int i = 0; i < 8; ++i) {  // turns that are no stall, and do not come to the end of it
    clock.advance(Millis(900));
    worker().turn();
    broker.deliver_until(clock.now());
    coordinator->turn();
  }
  settle();
  CHECK(events("worker.lost").empty());
}

TEST_CASE_METHOD(CommandsFixture, "what is on a target of a pool is asked of the workers of that pool alone") {
  config.targets[0].pool = "site";
  FakeSystem elsewhere;
  auto& there = *workers.emplace_back(std::make_unique<FakeWorker>(broker, clock, "w1", manifest, system));
  auto other = manifest;  // of most workers of the namespace, and of none of the pool
  auto schema = Json::parse(kBoxSchema);
  schema["x-muster-replace"] = "create-first";
  for (auto& type : other.types) type.schema = schema.dump();
  auto& here = *workers.emplace_back(std::make_unique<FakeWorker>(broker, clock, "w2", other, elsewhere));
  add_worker("w3", other);
  there.announcement.pool = "site";
  there.announce();
  here.announce();
  start();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  CHECK(discover()["state"] == "complete");
  CHECK(apply(stack({box("a", {{"kind", "x"}})}))["state"] == "complete");
  const auto replaced = there.asked<DeleteJob>().at(0).id, made = there.asked<CreateJob>().back().id;
  CHECK(std::ranges::find(there.jobs, replaced, &Job::id) < std::ranges::find(there.jobs, made, &Job::id));
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  CHECK(here.jobs.empty());
  for (const auto& job : there.jobs) CHECK(job.pool == "site");
}

TEST_CASE_METHOD(CommandsFixture, "what is too large for the bus fails at once, and says so") {
  start_discovered();
  bus->set_max_payload(2000);
  const auto ended = end_of(begin(stack({box("a", {{"text", std::string(1950, 'x')}})})));
  CHECK(result_of(ended, "a") == "failed LIMIT");
  CHECK_THAT(message_of(ended, "a"), Catch::Contains("bytes, the bus takes 2000"));
  CHECK(worker().asked<CreateJob>().empty());
}

TEST_CASE_METHOD(CommandsFixture,
                 "a coordinator that is asked to stop tells nothing of what its store has taken back") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  events();
  failing.commits_only = failing.failing = true;
  CHECK(api("discover")["error"]["code"] == "STORE_UNAVAILABLE");
  coordinator->stop();
  crash();
  settle();
  CHECK(events().empty());
}

TEST_CASE_METHOD(CommandsFixture, "what a worker says that its target bears holds for commands, before any run") {
  start_discovered();
  remove_worker("w1");
  advance(Millis(20'000));
  auto& newer = *workers.emplace_back(std::make_unique<FakeWorker>(broker, clock, "w2", manifest, system));
  newer.announcement.max_requests_per_second = 2;
  newer.announce();
  std::vector<TimePoint> asked;
  newer.on_job = [&](const Job&) -> FakeWorker::Behaviour {
    asked.push_back(clock.now());
    return {};
  };
  std::vector<Json> boxes;
  for (int i = 0; i < 8; ++i) boxes.push_back(box("box-" + std::to_string(i)));
  CHECK(apply(stack(boxes))["state"] == "complete");
  REQUIRE(asked.size() >= 8);
  for (std::size_t i = 2; i < asked.size(); ++i) {  // a second's worth goes at once
    CHECK(asked[i] - asked[0] >= Millis(500) * (i - 1) - Millis(1));
  }
}

TEST_CASE_METHOD(CommandsFixture, "what nobody wants an answer to is not done") {
  start_discovered();
  const auto runs = store->runs({}, 10).value().size();
  user->publish({Subjects(config.prefix).api("discover"), {}, R"({"api":1})", {}}).value();
  finish_runs();
  CHECK(store->runs({}, 10).value().size() == runs);
}

TEST_CASE_METHOD(CommandsFixture, "of late results whose other parts do not come no more than some are kept") {
  start_discovered();
  const auto late = [&](const std::string& token, const std::vector<std::uint32_t>& which) {
    worker().send_late_parts(nobodys(*store, token), MutationResult{}, which);
    settle();
  };
  late("whole", {0, 1});
  REQUIRE(worker().acks.size() == 1);
  CHECK(worker().acks.back().verdict == Verdict::kRefused);
  late("first", {0});
  for (int i = 0; i < 300; ++i) late("other" + std::to_string(i), {0});
  late("first", {1});
  REQUIRE(worker().acks.size() == 2);
  CHECK(worker().acks.back().verdict == Verdict::kLater);
}

TEST_CASE_METHOD(CommandsFixture, "late results of another namespace take no room, and are no part of one's own") {
  start_discovered();
  const auto job = nobodys(*store, "first");
  worker().send_late_parts(job, MutationResult{}, {0});
  settle();
  JobReply part{job.fleet, job.id, job.token, WorkerId("o1"), 1, 1, Part{1, 2, "no second half"}};
  const auto send = [&] {
    user->publish({Subjects().result("OTHER"), {}, encode(part), {}}).value();
    settle();
  };
  send();
  for (int i = 0; i < 300; ++i) {
    part.token = Token("other" + std::to_string(i));
    send();
  }
  worker().send_late_parts(job, MutationResult{}, {1});
  settle();
  REQUIRE(worker().acks.size() == 1);
  CHECK(worker().acks.back().verdict == Verdict::kRefused);  // it was whole: there is no such job
}

TEST_CASE("a namespace whose late results are too many loses its own, the oldest first") {
  LateParts late({.results = 4, .bytes = 1000});
  TimePoint now{};
  const auto add = [&](const std::string& ns, const std::string& token, std::uint32_t index, std::size_t bytes = 1) {
    now += Millis(1);
    const auto ended = late.add(ns, Token(token), {index, 2, std::string(bytes, 'x')}, "", now);
    return ended ? ended->whole.size() : 0;
  };
  add("A", "a1", 0);
  add("B", "b1", 0);
  for (const auto* token : {"b2", "b3", "b4"}) add("B", token, 0);
  CHECK(add("A", "a1", 1) == 2);
  CHECK(add("B", "b2", 1) == 2);
  CHECK(add("B", "b1", 1) == 0);  // its first part has gone
  add("A", "a1", 0, 400);
  add("B", "b5", 0, 700);  // there is no room for it, whatever else of B goes
  CHECK(add("B", "b5", 1) == 0);
  CHECK(add("A", "a1", 1, 100) == 500);
  now += kKeepLateParts + Millis(1);
  CHECK_FALSE(late.empty());
  late.expire(now);
  CHECK(late.empty());
}

TEST_CASE("parts of a late result that do not belong together end it, and it is answered") {
  LateParts late;
  CHECK_FALSE(late.add("A", Token("t"), {1, 2, "x"}, "inbox", {}));
  const auto ended = late.add("A", Token("t"), {0, 3, "x"}, "", {});
  REQUIRE(ended);
  CHECK(ended->whole.empty());
  CHECK(ended->ack_to == "inbox");
  CHECK(late.empty());
}

TEST_CASE_METHOD(CommandsFixture, "late results whose other parts do not come are kept a minute") {
  start_discovered();
  const auto job = nobodys(*store, "first");
  worker().send_late_parts(job, MutationResult{}, {0});
  advance(Millis(61'000));
  worker().send_late_parts(job, MutationResult{}, {1});
  settle();
  REQUIRE(worker().acks.size() == 1);
  CHECK(worker().acks.back().verdict == Verdict::kLater);
}

TEST_CASE_METHOD(CommandsFixture, "a listing waits while very much may be what was renamed, though it be one object") {
  manifest.types.resize(1);
  system.list_properties = true;
  system.page = 3000;
  system.add("NS::Box", {.id = "was", .uid = "u"});
  start_discovered();
  system.things["NS::Box"].clear();
  for (int i = 0; i < 30'000; ++i) system.add("NS::Box", {.id = std::to_string(i), .uid = "u"});
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ReadJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  worker().jobs.clear();
  api("discover");
  advance(Millis(500));
  CHECK(worker().asked<ListJob>().size() == 5);  // ten thousand, and what was on its way then
}

TEST_CASE_METHOD(CommandsFixture,
                 "what a command did is told in parts that a message has room for, however long ids are") {
  start_discovered();
  system.names_are_ids = true;
  std::string draft;
  for (const std::string half : {"a", "b"}) {
    std::vector<Json> boxes;
    for (int i = 0; i < 34; ++i) {
      auto& made = boxes.emplace_back(box(half + std::to_string(i)));
      made["properties"]["name"] = half + std::to_string(i) + std::string(16'000, 'x');
    }
    auto request = stack(boxes);
    request["stacks"][0]["stack"] = half;
    if (!draft.empty()) request["draft"] = draft;
    draft = api("declare", request)["draft"];
  }
  const auto id = begin({{"draft", draft}});
  wait_until([&] { return count() == 68; });
  advance(Millis(2000));
  std::vector<Json> steps, results;
  for (Json next = "0"; !next.is_null();) {
    const auto part = api("command", {{"command", id}, {"cursor", next}});
    REQUIRE(part.contains("results"));
    for (const auto& one : part["plan"]["steps"]) steps.push_back(one["name"]);
    for (const auto& one : part["results"]) results.push_back(one["name"]);
    CHECK(part["results"][0]["native_id"].get<std::string>().size() > 16'000);
    next = part["next"];
  }
  CHECK(results.size() == 68);
  CHECK(results == steps);
  std::ranges::sort(results);
  CHECK(std::ranges::adjacent_find(results) == results.end());
}

TEST_CASE_METHOD(CommandsFixture, "commands are listed in parts that a message has room for, whatever they are about") {
  start_discovered();
  CommandRow command;
  command.state = "complete";
  command.kind = "apply";
  command.plan = "{}";
  for (int i = 0; i < 300; ++i) command.stacks.push_back("stack-" + std::to_string(i) + std::string(40, 'x'));
  for (int i = 0; i < 100; ++i) {
    command.id = CommandId(make_ulid(clock.wall(), random));
    clock.advance(Millis(10));
    store->put_command(command).value();
  }
  store->commit().value();
  std::vector<std::string> listed;
  std::size_t parts = 0;
  for (Json next; parts == 0 || !next.is_null(); ++parts) {
    const auto part = api("commands", {{"cursor", next}});
    REQUIRE(part.contains("items"));
    for (const auto& one : part["items"]) listed.push_back(one["command"]);
    next = part["next"];
  }
  CHECK(parts > 1);
  CHECK(listed.size() == 100);
  CHECK(std::ranges::is_sorted(listed, std::greater<>()));
  CHECK(std::ranges::adjacent_find(listed) == listed.end());
}

TEST_CASE_METHOD(CommandsFixture, "a plan is told in parts that a message has room for, whatever is wrong with it") {
  start_discovered();
  std::vector<Json> wrong, right;
  for (int i = 0; i < 1200; ++i) wrong.push_back(box("w" + std::to_string(i) + std::string(300, 'x'), {{"size", "?"}}));
  for (int i = 0; i < 900; ++i) right.push_back(box("box-" + std::to_string(i), {{"link", std::string(800, 'x')}}));
  const auto draft = api("declare", stack(wrong))["draft"];
  auto more = stack(right);
  more["draft"] = draft;
  more["stacks"][0]["stack"] = "other";
  REQUIRE(api("declare", more)["draft"] == draft);
  const auto first = plan({{"draft", draft}, {"changes", true}, {"keep", false}});
  REQUIRE(first.contains("steps"));
  CHECK(first["mistakes_total"] == 1200);
  CHECK(first["mistakes"].size() > 100);
  CHECK(first["mistakes"].dump().size() < 200'000);
  CHECK(first.dump().size() < 750'000);
  std::size_t told = first["steps"].size();
  for (Json next = first["next"]; !next.is_null();) {
    const auto part = plan({{"draft", draft}, {"changes", true}, {"keep", false}, {"cursor", next}});
    REQUIRE(part.contains("steps"));
    CHECK(part["mistakes"].empty());
    told += part["steps"].size();
    next = part["next"];
  }
  CHECK(told >= 900);
  CHECK(plan({{"draft", draft}})["error"]["code"] == "NOT_FOUND");  // its last part has been told
}

TEST_CASE_METHOD(CommandsFixture, "steps that wait for one that has failed end, however many wait one for the other") {
  start_discovered();
  worker().on_go = [](const Job&) { return JobResult(Error{Errc::kInvalidRequest, "refused", {}, 0}); };
  Json draft;
  std::vector<Json> part;
  constexpr int kSteps = 20'000;
  for (int i = 0; i < kSteps; ++i) {
    auto& last = part.emplace_back(box("box-" + std::to_string(i)));
    if (i > 0) last["after"] = {"box-" + std::to_string(i - 1)};
    if (part.size() < 5000 && i + 1 < kSteps) continue;
    auto request = stack(std::exchange(part, {}));
    if (!draft.is_null()) request["draft"] = draft;
    draft = api("declare", request)["draft"];
  }
  const auto id = begin({{"draft", draft}});
  wait_until([&] { return api("command", {{"command", id}, {"brief", true}})["state"] == "failed"; });
  CHECK(worker().asked<CreateJob>().size() == 1);
}
