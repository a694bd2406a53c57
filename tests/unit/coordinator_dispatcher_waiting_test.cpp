// Reads that are sent to workers whose slots are taken.
#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

namespace {

struct WaitingFixture : DispatcherFixture {
  /// One that lets jobs wait, and whose reads are known to be quick.
  void join_quick(const std::string& id, std::uint16_t slots = 1) {
    join(id, slots, "m1", "default", "NS", {"waiting-room"});
    submit();
    tick();
    succeed(take().job, id);
    outcomes();
  }
  void submit_many(int count) {
    for (int i = 0; i < count; ++i) submit();
    tick();
  }
  [[nodiscard]] std::size_t waiting() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sent, [](const Sent& message) { return message.job.wait > Millis{0}; }));
  }
  WorkerEntry& worker(const std::string& id) { return *registry.find("NS", WorkerId(id)); }
};

}  // namespace

TEST_CASE_METHOD(WaitingFixture, "a quick worker is sent as many reads more as it has slots, to wait for them") {
  join_quick("w1", 2);
  submit_many(10);
  REQUIRE(sent.size() == 4);
  CHECK(waiting() == 2);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(sent[i].subject == own("w1"));
    CHECK(sent[i].job.wait == Millis(i < 2 ? 0 : 40));
  }
  CHECK(worker("w1").waiting() == 2);

  SECTION("an end makes room for one more") {
    succeed(take().job, "w1");
    REQUIRE(sent.size() == 4);
    CHECK(sent.back().job.wait == Millis(40));
  }
  SECTION("what waits is queued, for people") {
    const auto loads = dispatcher.loads(clock.now());
    REQUIRE(loads.size() == 1);
    CHECK(loads.front().busy == 2);
    CHECK(loads.front().queued == 8);
  }
}

TEST_CASE_METHOD(WaitingFixture, "nothing waits with a worker") {
  SECTION("that does not say that it may") {
    join("w1");
    succeed(dispatch().job, "w1");
  }
  SECTION("that has not answered yet") {
    join("w1", 1, "m1", "default", "NS", {"waiting-room"});
  }
  SECTION("that has to say that it took a read, for it takes long") {
    join_quick("w1");
    const auto job = dispatch().job;
    accept(job, "w1");
    succeed(job, "w1");
  }
  SECTION("that is ill") {
    join_quick("w1");
    worker("w1").healthy = false;
  }
  SECTION("that drains") {
    join_quick("w1");
    worker("w1").state = WorkerState::kDraining;
    join("w2");
  }
  submit_many(3);
  CHECK(sent.size() == 1);
  CHECK(waiting() == 0);
}

TEST_CASE_METHOD(WaitingFixture, "a read that waited tells how quick its worker is, too") {
  join_quick("w1");
  submit_many(2);
  REQUIRE(sent.size() == 2);
  const auto first = take().job, second = take().job;
  succeed(first, "w1");
  SECTION("it was quick") {
    worker("w1").quick = false;
    succeed(second, "w1");
    CHECK(worker("w1").quick);
  }
  SECTION("it was not") {
    accept(second, "w1");
    succeed(second, "w1");
    CHECK_FALSE(worker("w1").quick);
  }
}

TEST_CASE_METHOD(WaitingFixture, "only while every slot is taken does anything wait") {
  join_quick("w1");
  join("w2");
  submit_many(3);
  REQUIRE(sent.size() == 3);
  CHECK(waiting() == 1);
  std::vector<std::string> whom;
  for (const auto& message : sent) whom.push_back(message.subject);
  std::ranges::sort(whom);
  CHECK(whom == std::vector{own("w1"), own("w1"), own("w2")});
}

TEST_CASE_METHOD(WaitingFixture, "nothing waits while a slot is free, and be it an ill worker's") {
  join_quick("w1");
  join("w2");
  worker("w2").healthy = false;
  submit_many(2);
  REQUIRE(sent.size() == 2);
  CHECK(waiting() == 0);
}

TEST_CASE_METHOD(WaitingFixture, "while it is not known whom jobs have met, none is sent to wait") {
  join("w1", 1, "m1", "default", "NS", {"waiting-room"});
  const auto first = dispatch();
  REQUIRE(first.subject == group());
  join("w2", 1, "m1", "default", "NS", {"waiting-room"});
  worker("w2").quick = true;
  submit_many(4);
  CHECK(sent.size() == 1);
  CHECK(waiting() == 0);
  succeed(first.job, "w1");
  CHECK(waiting() > 0);
}

TEST_CASE_METHOD(WaitingFixture, "what is to be done once does not wait at a worker, and gets the next slot") {
  join_quick("w1");
  submit_many(2);
  CHECK(waiting() == 1);
  submit(change());
  submit();
  submit();
  tick();
  REQUIRE(sent.size() == 2);
  succeed(take().job, "w1");
  REQUIRE(sent.size() == 1);  // reads behind it would take the slots that it waits for
  succeed(take().job, "w1");
  REQUIRE(sent.size() == 2);
  CHECK(waiting() == 1);
  const auto deletion =
      std::ranges::find_if(sent, [](const Sent& message) { return is_mutation(message.job.operation); });
  REQUIRE(deletion != sent.end());
  CHECK(deletion->job.wait == Millis(0));
}

TEST_CASE_METHOD(WaitingFixture, "a read of a target with a rate limit does not wait: it would count before its time") {
  join_quick("w1");
  limiter.set_rate("NS", TargetId("t1"), 1000, clock.now());
  submit_many(3);
  CHECK(sent.size() == 1);
}

TEST_CASE_METHOD(WaitingFixture, "where one has waited in vain none waits for a while") {
  join_quick("w1");
  submit_many(2);
  REQUIRE(sent.size() == 2);
  auto first = take().job;
  const auto second = take().job;
  answer(second, "w1", Busy{});
  CHECK(dispatcher.counters().busy == 1);
  CHECK(sent.empty());
  succeed(first, "w1");
  REQUIRE(sent.size() == 1);  // the one that was turned away: no attempt counts
  auto again = take().job;
  CHECK(again.id == second.id);
  CHECK(again.attempt == 1);
  CHECK(again.wait == Millis(0));
  submit_many(2);
  CHECK(sent.empty());
  succeed(again, "w1");
  const auto last = take().job;
  CHECK(sent.empty());
  submit_many(1);
  stall(Millis(5000));
  succeed(last, "w1");
  CHECK(sent.size() == 2);
  CHECK(waiting() == 1);
}

TEST_CASE_METHOD(WaitingFixture, "what has lost its worker does not wait again") {
  join_quick("w1");
  join_quick("w2");
  submit_many(4);
  REQUIRE(waiting() == 2);
  std::vector<Job> lost, kept;
  for (const auto& message : std::exchange(sent, {})) {
    (message.subject == own("w1") ? lost : kept).push_back(message.job);
  }
  REQUIRE(lost.size() == 2);
  lose("w1");
  succeed(kept[0], "w2");
  CHECK(sent.empty());
  succeed(kept[1], "w2");
  const auto again = take();
  CHECK(again.subject == own("w2"));
  CHECK(again.job.wait == Millis(0));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(WaitingFixture, "no more is in flight than may be") {
  config.limits.jobs_in_flight = 3;
  join_quick("w1", 2);
  submit_many(10);
  CHECK(sent.size() == 3);
}

TEST_CASE_METHOD(WaitingFixture, "a pool whose slots are taken is not idle, though there are places to wait") {
  join_quick("w1");
  submit_many(1);
  CHECK(dispatcher.in_flight() == 1);
  int more = 0;
  for (; more < 1000 && dispatcher.has_room({"NS", "default"}, Priority::kDiscovery, TargetId("t2")); ++more) {
    submit(spec(Priority::kDiscovery, "t2"));
  }
  CHECK(more == 15);
}

TEST_CASE_METHOD(WaitingFixture, "a job that may not wait has its turn beside many of a higher priority that may") {
  join_quick("w1", 4);
  for (int i = 0; i < 100; ++i) submit(spec(Priority::kCommand));
  tick();
  auto poll = spec(Priority::kStatus);
  poll.operation = StatusJob{"request", "thing"};
  const auto wanted = submit(poll);
  int before = 0;
  for (; before < 100; ++before) {
    if (std::ranges::any_of(sent, [&](const Sent& message) { return message.job.id == wanted; })) break;
    succeed(take().job, "w1");
  }
  CHECK(before < 15);
}

TEST_CASE_METHOD(WaitingFixture,
                 "what has waited at a worker in vain still waits for a slot, and has its time from then") {
  join_quick("w1");
  const auto taken = dispatch(change()).job;
  accept(taken, "w1");
  auto patient = spec();
  patient.deadline = Millis(10'000);
  patient.patience = Millis(100'000);
  submit(patient);
  tick();
  const auto waits = take().job;
  REQUIRE(waits.wait > Millis(0));
  answer(waits, "w1", Busy{});
  for (int i = 0; i < 30; ++i) {
    heartbeat("w1", {{taken.id, taken.token}});
    advance(Millis(1000));
  }
  CHECK(outcomes().empty());
  CHECK(dispatcher.take_back(waits.id));
}

TEST_CASE_METHOD(WaitingFixture, "a heartbeat during a quick read does not make it a long one") {
  join_quick("w1");
  const auto job = dispatch().job;
  heartbeat("w1", {{job.id, job.token}});
  succeed(job, "w1");
  CHECK(worker("w1").quick);
}
