// How busy a pool is, and when that is said.

#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"
#include "support/dispatcher_fixture.h"

using namespace muster;
using namespace muster::test;

namespace {

struct Pools : DispatcherFixture {
  PoolLoad load(const std::string& pool = "default") {
    for (auto& each : dispatcher.loads(clock.now())) {
      if (each.lane.pool == pool) return each;
    }
    return {};
  }
};

PoolLoad waiting(Millis wait, const std::string& pool = "p") {
  PoolLoad load;
  load.lane = {"NS", pool};
  load.queued = wait.count() > 0 ? 1 : 0;
  load.wait = wait;
  return load;
}

}  // namespace

TEST_CASE_METHOD(Pools, "a pool's load: slots, what is out, what waits and how long") {
  CHECK(dispatcher.loads(clock.now()).empty());
  join("w1", 2);
  join("w2", 1);
  join("w3", 4, "m1", "north");
  CHECK(load().workers == 2);
  CHECK(load().slots == 3);
  CHECK(load("north").slots == 4);
  for (int i = 0; i < 5; ++i) submit();
  tick();
  CHECK(load().busy == 3);
  CHECK(load().queued == 2);
  CHECK(load().wait == Millis(0));
  stall(Millis(700));
  submit();
  CHECK(load().queued == 3);
  CHECK(load().wait == Millis(700));
  CHECK(load("north").queued == 0);

  auto* drained = registry.find("NS", WorkerId("w2"));
  REQUIRE(drained != nullptr);
  drained->state = WorkerState::kDraining;
  CHECK(load().slots == 2);
  CHECK(load().workers == 1);
}

TEST_CASE_METHOD(Pools, "what waits for a rate limit or a retry waits for no worker") {
  join("w1", 8);
  limiter.set_rate("NS", TargetId("slow"), 1, clock.now());
  for (int i = 0; i < 5; ++i) submit(spec(Priority::kDiscovery, "slow"));
  tick();
  CHECK(load().busy + dispatcher.waiting() == 5);
  REQUIRE(dispatcher.waiting() > 0);
  stall(Millis(200));
  CHECK(load().queued == 0);
  CHECK(load().wait == Millis(0));

  const auto failed = dispatch(spec(Priority::kDiscovery, "other"));
  accept(failed.job, "w1");
  fail(failed.job, "w1", Errc::kNetwork, Millis(5000));
  CHECK(load().queued == 0);
}

TEST_CASE_METHOD(Pools, "what is tried again waits for a worker from then on, whatever time it has had before") {
  join("w1");
  const auto message = dispatch();
  const auto leave = [&] {
    test::lose(registry, {"NS", WorkerId("w1")}, clock.now());
    Effects effects;
    dispatcher.on_worker_lost("NS", WorkerId("w1"), clock.now(), effects);
    tick();
  };
  SECTION("its worker is lost") {
    accept(message.job, "w1");
    advance(Millis(2000));
    leave();
  }
  SECTION("it was lost on its way") {
    advance(Millis(950));
    registry.heartbeat({WorkerId("w1"), "NS", "default", 0, {}, true, 0, true, {}}, clock.now());  // drains, and lives
    advance(Millis(50));
  }
  SECTION("it was lost on its way, and so was its worker perhaps") {
    advance(Millis(2000));
    REQUIRE(load().queued == 0);
    registry.heartbeat({WorkerId("w1"), "NS", "default", 0, {}, true, 0, true, {}}, clock.now());
    advance(Millis(100));
  }
  SECTION("its pause is over") {
    fail(message.job, "w1", Errc::kNetwork, Millis(5000));
    leave();
    advance(Millis(5000));
  }
  REQUIRE(load().queued == 1);
  CHECK(load().wait == Millis(0));
  stall(Millis(300));
  CHECK(load().wait == Millis(300));
}

TEST_CASE_METHOD(Pools, "a pool without workers has a load when jobs wait for it") {
  submit();
  tick();
  stall(Millis(300));
  CHECK(load().workers == 0);
  CHECK(load().slots == 0);
  CHECK(load().queued == 1);
  CHECK(load().wait == Millis(300));
}

TEST_CASE("a pool whose jobs wait is told once, again each minute, and when it is relieved") {
  PoolWatch watch;
  FakeClock clock;
  const auto look = [&](const PoolLoad& load) { return watch.look({load}, clock.now()); };
  CHECK(look(waiting(Millis(999))).empty());
  CHECK_FALSE(watch.any_saturated());
  const auto first = look(waiting(Millis(1000)));
  REQUIRE(first.size() == 1);
  CHECK(first[0].saturated);
  CHECK(first[0].load.wait == Millis(1000));
  for (int i = 0; i < 59; ++i) {
    clock.advance(Millis(1000));
    CHECK(look(waiting(Millis(2000))).empty());
  }
  clock.advance(Millis(1000));
  CHECK(look(waiting(Millis(2000))).size() == 1);

  clock.advance(Millis(9999));
  CHECK(look(waiting(Millis(10))).empty());
  CHECK(watch.any_saturated());
  clock.advance(Millis(1));
  const auto last = look(waiting(Millis(0)));
  REQUIRE(last.size() == 1);
  CHECK_FALSE(last[0].saturated);
  CHECK_FALSE(watch.any_saturated());
}

TEST_CASE("a pool is not relieved while short jobs always wait for its slots") {
  PoolWatch watch;
  FakeClock clock;
  REQUIRE(watch.look({waiting(Millis(1500))}, clock.now()).size() == 1);
  auto standing = waiting(Millis(600));
  standing.slots = standing.busy = 2;
  for (int i = 0; i < 20; ++i) {
    clock.advance(Millis(1000));
    CHECK(watch.look({standing}, clock.now()).empty());
  }
  standing.busy = 1;
  clock.advance(Millis(10'000));
  CHECK(watch.look({standing}, clock.now()).size() == 1);
  CHECK_FALSE(watch.any_saturated());
}

TEST_CASE("a pool that is gone is relieved as well") {
  PoolWatch watch;
  FakeClock clock;
  REQUIRE(watch.look({waiting(Millis(1500))}, clock.now()).size() == 1);
  clock.advance(Millis(10'000));
  const auto news = watch.look({}, clock.now());
  REQUIRE(news.size() == 1);
  CHECK(news[0].load.lane.pool == "p");
  CHECK(news[0].load.slots == 0);
}

TEST_CASE_METHOD(CoordinatorFixture, "a pool that cannot keep up is seen in lists and told in events") {
  for (int i = 0; i < 8; ++i) add_target("t" + std::to_string(i));
  start_discovered();
  events();
  auto& worker = *workers.at(0);
  worker.on_job = [](const Job&) { return FakeWorker::Hold{}; };
  api("discover");
  advance(Millis(3000));
  const auto pools = api("pools")["items"];
  REQUIRE(pools.size() == 1);
  CHECK(pools[0]["namespace"] == "NS");
  CHECK(pools[0]["pool"] == "default");
  CHECK(pools[0]["workers"] == 1);
  CHECK(pools[0]["slots"] == 4);
  CHECK(pools[0]["busy"] == 4);
  CHECK(pools[0]["queued"] > 0);
  CHECK(pools[0]["wait_ms"] > 1000);
  CHECK(api("workers")["items"].at(0)["pool_queued"] == pools[0]["queued"]);
  auto told = events("worker.load");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["subject"] == "default");
  CHECK(told[0]["data"]["state"] == "saturated");
  CHECK(told[0]["data"]["slots"] == 4);

  worker.on_job = nullptr;
  worker.release();
  finish_runs();
  advance(Millis(12'000));
  told = events("worker.load");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["data"]["state"] == "relieved");
  CHECK(api("pools")["items"].at(0)["queued"] == 0);
}
