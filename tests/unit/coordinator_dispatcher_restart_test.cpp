// What is asked for once more after a restart, and what somebody may have begun before it.
#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

namespace {

struct RestartFixture : DispatcherFixture {
  /// As far as an answer to it needs it.
  [[nodiscard]] Job job_of(const Running& begun) const {
    return {.fleet = fleet, .id = begun.job, .token = begun.token};
  }
};

}  // namespace

TEST_CASE_METHOD(RestartFixture, "a claim that was made before a restart is never told to go on") {
  // Another attempt may have been told so since: it was the last coordinator that knew.
  join("w1");
  const auto begun = submit_recovered();
  heartbeat("w1", {begun}, 1);
  accept(job_of(begun), "w1");
  heartbeat("w1", {begun}, 1);
  advance(Millis(500));
  heartbeat("w1", {begun}, 1);
  CHECK(told_to_go == 0);
  CHECK(sent.empty());
  CHECK(cancelled.empty());
}

TEST_CASE_METHOD(RestartFixture, "nor is it when another was told to go on and gave the job back") {
  join("w1", 1, "m1");
  join("w2", 1, "m2");
  auto made = change();
  made.manifest = "m1";
  const auto begun = submit_recovered(made);
  const auto message = await(Millis(4000));
  accept(message.job, "w1");
  REQUIRE(told_to_go == 1);
  answer(message.job, "w1", Busy{});
  test::lose(registry, {"NS", WorkerId("w1")}, clock.now());
  advance(Millis(200));
  for (int beat = 0; beat < 3; ++beat) heartbeat("w1", {begun}, 1);  // it turns up late
  accept(job_of(begun), "w1");
  CHECK(told_to_go == 1);
  CHECK(cancelled.empty());  // it is the one that is waited for
}

TEST_CASE_METHOD(RestartFixture, "who was told to begin a change has its lease for it, whatever the deadline") {
  join("w1");
  auto made = change();
  made.deadline = Millis(1000);
  const auto message = dispatch(made);
  advance(Millis(900));
  accept(message.job, "w1");
  REQUIRE(told_to_go == 1);
  heartbeat("w1", {{message.job.id, message.job.token}}, 1);  // told again: that is no other lease
  advance(kChangeLease - Millis(100));
  CHECK(outcomes().empty());
  heartbeat("w1", {{message.job.id, message.job.token}}, 1);
  advance(Millis(200));
  const auto ended = outcome();
  CHECK(std::get<Error>(ended.result).code == Errc::kTimeout);
  CHECK(ended.uncertain);
  CHECK(cancelled.size() == 1);
}

TEST_CASE_METHOD(RestartFixture, "the deadline of what was asked for before a restart begins when nobody has it") {
  join("w1");
  auto made = change();
  made.deadline = Millis(1000);
  const auto begun = submit_recovered(made);
  SECTION("nobody has it") {
    const auto message = await(Millis(4000));
    advance(Millis(500));
    succeed(message.job, "w1");
    CHECK(std::holds_alternative<ListResult>(outcome().result));
  }
  SECTION("its worker has it still") {
    advance(Millis(2000));
    heartbeat("w1", {begun}, 1);
    advance(kLostAfter);
    heartbeat("w1", {begun}, 1);
    advance(kChangeLease - kLostAfter - Millis(100));
    CHECK(outcomes().empty());
    CHECK(sent.empty());
  }
}

TEST_CASE_METHOD(RestartFixture,
                 "what was begun before a restart stays with who has it, also when that is heard late") {
  join("w1");
  const auto other = dispatch().job;
  accept(other, "w1");
  const auto begun = submit_recovered();
  for (int i = 0; i < 5; ++i) {
    heartbeat("w1", {{other.id, other.token}});
    advance(Millis(1000));
  }
  REQUIRE(sent.empty());  // nobody has room for it
  join("w2");
  heartbeat("w2", {begun});
  CHECK(cancelled.empty());
  CHECK(dispatcher.leases(begun.job, begun.token));
  advance(Millis(1000));
  CHECK(sent.empty());
  answer(job_of(begun), "w2", JobResult(MutationResult{}));
  CHECK(std::holds_alternative<MutationResult>(outcome().result));
}

TEST_CASE_METHOD(RestartFixture, "what was asked for before a restart may have begun, and is not taken back") {
  CHECK(dispatcher.take_back(submit(change())));
  CHECK_FALSE(dispatcher.take_back(submit_recovered().job));
}

TEST_CASE_METHOD(RestartFixture,
                 "what was begun before a restart counts for the worker that has it like any other job") {
  join("w1");
  join("w2");
  const auto begun = submit_recovered();
  advance(Millis(3000));
  heartbeat("w1", {begun});
  SECTION("nobody else gets it when it would have been sent again") {
    advance(Millis(900));
    CHECK(sent.empty());
  }
  SECTION("its slot is taken") {
    CHECK(dispatch().subject == own("w2"));
  }
  SECTION("and free again when it has ended") {
    answer(job_of(begun), "w1", JobResult(MutationResult{}));
    CHECK(outcome().attempts == 1);
    CHECK(dispatch().subject == group());
  }
  SECTION("it has the time that it was given") {
    for (int second = 0; second < 15; ++second) {
      advance(Millis(1000));
      heartbeat("w1", {begun});
    }
    CHECK(outcomes().empty());
    CHECK(dispatcher.leases(begun.job, begun.token));
  }
}

TEST_CASE_METHOD(RestartFixture, "after a stall whoever has what was begun before a restart has time anew to say so") {
  join("w1");
  join("w2");
  const auto begun = submit_recovered();
  stall(Millis(4000));  // what a start may take
  dispatcher.grace(clock.now());
  SECTION("it says so") {
    advance(Millis(1000));
    heartbeat("w1", {begun}, 0);
    CHECK(sent.empty());
    CHECK(cancelled.empty());
    CHECK(dispatcher.leases(begun.job, begun.token));
  }
  SECTION("nobody does") {
    CHECK(await(Millis(4000)).job.id == begun.job);
  }
}

TEST_CASE_METHOD(RestartFixture, "nobody is asked again for what was begun before a restart while nobody is heard") {
  using enum Dispatcher::Lateness;
  const auto lateness = GENERATE(kDeadlines, kSkip);
  join("w1");
  join("w2");
  const auto begun = submit_recovered();
  for (int tenth = 0; tenth < 50; ++tenth) {
    tick(lateness);
    stall(Millis(100));
  }
  CHECK(sent.empty());
  dispatcher.grace(clock.now());
  advance(Millis(1000));
  heartbeat("w1", {begun}, 0);
  CHECK(sent.empty());
  CHECK(cancelled.empty());
  CHECK(dispatcher.leases(begun.job, begun.token));
}
