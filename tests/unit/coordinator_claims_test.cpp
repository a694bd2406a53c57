// Changes that a worker has claimed, and dispatches that were given up: what is said to whom, and what counts.
#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

TEST_CASE_METHOD(DispatcherFixture, "an answer to a read that was given up changes nothing when its job is no more") {
  join("w1");
  const auto first = dispatch();
  advance(Millis(900));
  heartbeat("w1");  // it lives: the read is sent again
  advance(Millis(1200));
  const auto second = take();
  REQUIRE(second.job.token != first.job.token);
  SECTION("it has ended") {
    succeed(second.job, "w1");
    CHECK(outcomes().size() == 1);
  }
  SECTION("it was withdrawn") {
    Effects effects;
    dispatcher.withdraw(spec().owner, effects);
  }
  SECTION("it was cancelled") {
    cancel_jobs();
    CHECK(outcomes().size() == 1);
  }
  CHECK_FALSE(dispatcher.leases(first.job.id, first.job.token));
  succeed(first.job, "w1");
  answer(first.job, "w1", Part{0, 2, "some"});
  CHECK(outcomes().empty());
  CHECK(dispatcher.in_flight() == 0);
}

TEST_CASE_METHOD(DispatcherFixture, "`go` is said again as long as a claim may wait for it") {
  join("w1");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  for (int beat = 1; beat <= 5; ++beat) {
    advance(Millis(900));
    heartbeat("w1", {{message.job.id, message.job.token}});
    CHECK(told_to_go == 1 + beat);
  }
  advance(Millis(900));
  heartbeat("w1", {{message.job.id, message.job.token}});
  CHECK(told_to_go == 6);  // who has not heard it so far gives the job back
}

TEST_CASE_METHOD(DispatcherFixture, "a change that is sent again is told to go like the first time") {
  join("w1");
  auto message = dispatch(change());
  accept(message.job, "w1");
  REQUIRE(told_to_go == 1);
  fail(message.job, "w1", Errc::kThrottling, Millis(8000));
  message = await();
  accept(message.job, "w1");
  CHECK(told_to_go == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "of the workers with room those that are ill come last") {
  join("w1");
  join("w2");
  Heartbeat ill;
  ill.worker = WorkerId("w1");
  ill.ns = "NS";
  ill.free_slots = 1;
  ill.healthy = false;
  registry.heartbeat(ill, clock.now());
  CHECK(dispatch().subject == own("w2"));
  CHECK(dispatch().subject == own("w1"));
}
