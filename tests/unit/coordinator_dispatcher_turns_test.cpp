// Whose job goes next, and for how many more there is room.
#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

TEST_CASE_METHOD(DispatcherFixture,
                 "the more slots a pool has, the more there is room for, within what may be in flight") {
  join("w1", 100);
  const bool few = GENERATE(false, true);
  if (few) config.limits.jobs_in_flight = 10;
  std::size_t jobs = 0;
  for (; jobs < 1000 && dispatcher.has_room({"NS", "default"}, Priority::kCommand, TargetId("t1")); ++jobs) {
    submit(spec(Priority::kCommand));
  }
  CHECK(jobs == (few ? 40 : 400));
}

TEST_CASE_METHOD(DispatcherFixture, "jobs of a target go in the order in which they were asked for") {
  join("w1");
  std::vector<JobId> asked, gone;
  for (int i = 0; i < 4; ++i) asked.push_back(submit());
  tick();
  for (int i = 0; i < 4; ++i) {
    const auto message = take();
    gone.push_back(message.job.id);
    succeed(message.job, "w1");
  }
  CHECK(gone == asked);
}

TEST_CASE_METHOD(DispatcherFixture, "a priority whose jobs come one at a time has its share and no more") {
  join("w1");
  for (int i = 0; i < 100; ++i) submit(spec(Priority::kCommand));
  submit();
  tick();
  int commands = 0, others = 0;
  while (commands + others < 90) {
    const auto message = take();
    const bool command = message.job.priority == Priority::kCommand;
    ++(command ? commands : others);
    if (!command) submit();
    succeed(message.job, "w1");
  }
  CHECK(others >= 9);
  CHECK(others <= 11);
}
