// A store that fails: nothing is told that is not kept, whoever asks is told so, and all goes on once it works again.
#include <algorithm>

#include <catch2/catch.hpp>

#include "support/failing_store.h"
#include "support/runs_fixture.h"

using namespace muster;
using test::FakeWorker;
using test::RunsFixture;
using Strings = std::vector<std::string>;

TEST_CASE_METHOD(RunsFixture, "a store that fails costs the turn, and nothing that was told to anybody") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  events();
  for (int i = 0; i < 5; ++i) {
    system.add("NS::Box", {.id = "new" + std::to_string(i)});
    hold_lists();
    const auto asked = api("discover");
    failing.failing = true;
    let_go();
    advance(Millis(1500));
    failing.failing = false;
    finish_runs();
    CHECK(run(asked["run"])["state"] == "complete");
  }
  CHECK(failing.failures > 0);
  CHECK(coordinator->status().store_failures > 0);
  const auto store_check = [&] {
    const auto status = api("status");
    return *std::ranges::find(status["checks"], "store", [](const Json& check) { return check["name"]; });
  };
  CHECK(store_check()["ok"] == false);
  advance(Millis(60'000));
  CHECK(store_check()["ok"] == true);
  CHECK(listed("NS::Box").size() == 8);
  CHECK(resource_events() ==
        Strings{"discovered:new0", "discovered:new1", "discovered:new2", "discovered:new3", "discovered:new4"});
  std::uint64_t sequence = 0;
  for (const auto& event : store->events(0, 10'000).value()) CHECK(event.sequence == ++sequence);
}

TEST_CASE_METHOD(RunsFixture, "a request that cannot be stored is not answered as if it were") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  failing.failing = true;
  const auto said = Json::parse(api_text("discover", R"({"api":1})"));
  CHECK(said["error"]["code"] == "STORE_UNAVAILABLE");
  advance(Millis(1000));
  failing.failing = false;
  advance(Millis(5000));
  finish_runs();
  CHECK(runs_in("running") + runs_in("queued") == 0);
  CHECK(discover()["state"] == "complete");
}

TEST_CASE_METHOD(RunsFixture, "requests that come together are all answered where the store fails at the first") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  failing.failing = true;
  const auto asks = broker.connect("asks");
  asks->subscribe_answers(asks->inbox() + ".>").value();
  for (int i = 0; i < 3; ++i) {
    asks->publish({Subjects(config.prefix).api("discover"),
                   asks->inbox() + ".answer" + std::to_string(i),
                   R"({"api":1})",
                   {}})
        .value();
  }
  settle();
  std::vector<Message> said;
  asks->receive(said, 10);
  CHECK(said.size() == 3);
  for (const auto& answer : said) CHECK(Json::parse(answer.data)["error"]["code"] == "STORE_UNAVAILABLE");
}

TEST_CASE_METHOD(RunsFixture, "who asks while nothing can be stored is told so, however long that lasts") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  failing.failing = true;
  for (int i = 0; i < 20; ++i) {
    CHECK(Json::parse(api_text("discover", R"({"api":1})"))["error"]["code"] == "STORE_UNAVAILABLE");
    advance(Millis(4000));
  }
  failing.failing = false;
  advance(Millis(15'000));
  CHECK(discover()["state"] == "complete");
}

TEST_CASE_METHOD(RunsFixture, "no answer goes where whoever asks may not speak, while nothing can be stored either") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  failing.failing = true;
  api_text("discover", R"({"api":1})");
  const auto hears = broker.connect("hears");
  hears->subscribe("muster.forged.>").value();
  hears->subscribe_answers(hears->inbox() + ".>").value();
  for (const auto& reply : {std::string("muster.forged.here"), hears->inbox() + ".here"}) {
    for (const auto& subject : {std::string("$SRV.PING"), Subjects(config.prefix).api("status")}) {
      user->publish({subject, reply, R"({"api":1})", {}}).value();
    }
  }
  const auto malformed = coordinator->status().malformed;
  advance(Millis(1000));
  std::vector<Message> said;
  hears->receive(said, 10);
  CHECK(said.size() == 2);
  for (const auto& answer : said) CHECK(std::string(answer.subject) == hears->inbox() + ".here");
  CHECK(coordinator->status().malformed == malformed + 2);
}

TEST_CASE_METHOD(RunsFixture, "what waits for a commit that fails is not said after another that does not") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  failing.commits_only = failing.failing = true;
  const auto asks = broker.connect("asks");
  asks->subscribe_answers(asks->inbox() + ".>").value();
  asks->publish({Subjects(config.prefix).api("discover"), asks->inbox() + ".answer", R"({"api":1})", {}}).value();
  advance(Millis(1000));
  failing.failing = false;
  advance(Millis(5000));
  finish_runs();
  std::vector<Message> said;
  asks->receive(said, 10);
  REQUIRE(said.size() == 1);
  CHECK(Json::parse(said[0].data)["error"]["code"] == "STORE_UNAVAILABLE");
}

TEST_CASE_METHOD(RunsFixture, "a coordinator whose store cannot be written from the start waits until it can") {
  auto& failing = test::put_failing_before(store);
  failing.failing = true;
  add_worker();
  start();
  advance(Millis(1000));
  CHECK(coordinator->status().store_failures > 1);
  coordinator->stop();  // has nothing to lose
  failing.failing = false;
  advance(Millis(5000));
  CHECK(discover()["state"] == "complete");
}

TEST_CASE_METHOD(RunsFixture, "a coordinator that is asked to stop leaves nothing behind that was decided") {
  start_discovered();
  system.add("NS::Box", {.id = "last"});
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (job.type == "NS::Item" && std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  events();
  api("discover");
  wait_until([&] { return state_of("NS::Box", "last") != "absent"; });
  coordinator->stop();
  crash();
  CHECK(state_of("NS::Box", "last") == "present");
  settle();
  CHECK(resource_events() == Strings{"discovered:last"});
}

TEST_CASE_METHOD(RunsFixture, "what was counted stays counted where the store fails") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  for (int i = 0; i < 3; ++i) discover();
  const auto before = api("status")["jobs"];
  failing.failing = true;
  CHECK(Json::parse(api_text("discover", R"({"api":1})"))["error"]["code"] == "STORE_UNAVAILABLE");
  failing.failing = false;
  advance(Millis(1500));
  const auto after = api("status")["jobs"];
  for (const auto& [name, count] : before.items()) {
    CAPTURE(name);
    CHECK(after[name] >= count);
  }
}
