// Whose job goes next, and for how many more there is room.
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

namespace {

struct TurnsFixture : DispatcherFixture {
  /// After 200 turns much of `late` comes: of the next 45 turns discovery has its share, a tenth, and no more.
  void check_share_beside(Priority late) {
    for (int i = 0; i < 200; ++i) succeed(take().job, "w1");
    for (int i = 0; i < 100; ++i) submit(spec(late));
    int discovery = 0;
    for (int i = 0; i < 45; ++i) {
      const auto job = take().job;
      if (job.priority == Priority::kDiscovery) ++discovery;
      succeed(job, "w1");
    }
    CHECK(discovery >= 4);
    CHECK(discovery <= 6);
  }
};

}  // namespace

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

TEST_CASE_METHOD(DispatcherFixture, "each priority has a share: commands go most often, discovery never starves") {
  join("w1");
  for (int i = 0; i < 300; ++i) {
    for (const auto priority : {Priority::kDiscovery, Priority::kDrift, Priority::kStatus, Priority::kCommand}) {
      submit(spec(priority));
    }
  }
  std::map<Priority, int> gone;
  int since_discovery = 0;
  tick();
  for (int i = 0; i < 300; ++i) {
    const auto message = take();
    ++gone[message.job.priority];
    since_discovery = message.job.priority == Priority::kDiscovery ? 0 : since_discovery + 1;
    CHECK(since_discovery <= 30);
    succeed(message.job, "w1");
  }
  CHECK(gone[Priority::kCommand] > gone[Priority::kStatus]);
  CHECK(gone[Priority::kStatus] > gone[Priority::kDrift]);
  CHECK(gone[Priority::kDrift] > gone[Priority::kDiscovery]);
  CHECK(gone[Priority::kDiscovery] > 0);
}

TEST_CASE_METHOD(DispatcherFixture, "there is room for each priority, and for each target, whatever else waits") {
  join("w1", 4);
  const auto has_room = [&](Priority priority, const std::string& target) {
    return dispatcher.has_room({"NS", "default"}, priority, TargetId(target));
  };
  while (has_room(Priority::kCommand, "t1")) submit(spec(Priority::kCommand));
  CHECK(dispatcher.load({"NS", "default"}) == 16);
  CHECK(has_room(Priority::kDiscovery, "t1"));
  int more = 0;
  for (; has_room(Priority::kCommand, "t2"); ++more) submit(spec(Priority::kCommand, "t2"));
  CHECK(more == 4);
  for (int i = 0; i < 16 + 4; ++i) {
    tick();
    while (!sent.empty()) succeed(take().job, "w1");
  }
  CHECK(dispatcher.load({"NS", "default"}) == 0);
  CHECK(has_room(Priority::kCommand, "t1"));
}

TEST_CASE_METHOD(DispatcherFixture, "what waits for a target that is not to be asked leaves all slots to another") {
  join("w1", 32);
  const auto has_room = [&](const std::string& target) {
    return dispatcher.has_room({"NS", "default"}, Priority::kDiscovery, TargetId(target));
  };
  limiter.throttled("NS", TargetId("t1"), Millis(60'000), clock.now());
  while (has_room("t1")) submit();
  const auto resting = dispatcher.load({"NS", "default"});
  tick();
  REQUIRE(sent.empty());
  const auto fill = [&] {
    for (int i = 0; i < 1000 && has_room("t2"); ++i) submit(spec(Priority::kDiscovery, "t2"));
    tick();
  };
  fill();
  CHECK(sent.size() == 32);
  for (int i = 0; i < 100; ++i) {
    succeed(take().job, "w1");
    fill();
  }
  CHECK(sent.size() == 32);
  CHECK(dispatcher.load({"NS", "default"}) <= 2 * resting);
  CHECK_FALSE(has_room("t1"));
}

TEST_CASE_METHOD(DispatcherFixture, "a command does not wait behind discovery that was there before") {
  join("w1");
  for (int i = 0; i < 100; ++i) submit();
  tick();
  for (int i = 0; i < 50; ++i) succeed(take().job, "w1");
  const auto running = take();
  const auto command = submit(spec(Priority::kCommand));
  succeed(running.job, "w1");
  CHECK(take().job.id == command);
}

TEST_CASE_METHOD(TurnsFixture, "a priority that had nothing to do does not catch up on the turns it did not need") {
  join("w1");
  const auto busy = GENERATE(Priority::kDiscovery, Priority::kCommand);
  const auto idle = busy == Priority::kDiscovery ? Priority::kCommand : Priority::kDiscovery;
  for (int i = 0; i < 300; ++i) submit(spec(busy));
  tick();
  check_share_beside(idle);
}

TEST_CASE_METHOD(DispatcherFixture, "targets take turns") {
  join("w1");
  for (int i = 0; i < 6; ++i) submit(spec(Priority::kDiscovery, "large"));
  for (int i = 0; i < 2; ++i) submit(spec(Priority::kDiscovery, "small"));
  std::vector<std::string> order;
  tick();
  for (int i = 0; i < 8; ++i) {
    const auto message = take();
    order.push_back(message.job.target.id.value);
    succeed(message.job, "w1");
  }
  CHECK(std::vector<std::string>(order.begin(), order.begin() + 4) ==
        std::vector<std::string>{"large", "small", "large", "small"});
}

TEST_CASE_METHOD(DispatcherFixture, "a target that is out of calls holds up no other target") {
  join("w1", 4);
  limiter.set_rate("NS", TargetId("slow"), 1, clock.now());
  for (int i = 0; i < 3; ++i) submit(spec(Priority::kDiscovery, "slow"));
  submit(spec(Priority::kDiscovery, "quick"));
  tick();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].job.target.id == TargetId("slow"));
  CHECK(sent[1].job.target.id == TargetId("quick"));
}

TEST_CASE_METHOD(TurnsFixture, "a priority whose target may seldom be asked saves up no turns meanwhile") {
  join("w1");
  limiter.set_rate("NS", TargetId("slow"), 0.001, clock.now());
  limiter.charge("NS", TargetId("slow"), 1, clock.now());
  const auto slow = GENERATE(Priority::kDiscovery, Priority::kCommand);
  const auto quick = slow == Priority::kDiscovery ? Priority::kCommand : Priority::kDiscovery;
  submit(spec(slow, "slow"));
  for (int i = 0; i < 300; ++i) submit(spec(quick));
  tick();
  check_share_beside(slow);
}

TEST_CASE_METHOD(DispatcherFixture,
                 "while those of one manifest are full, the others of the pool are not kept waiting") {
  join("w1", 1, "m1");
  join("w2", 1, "m2");
  const auto of = [](const char* manifest, Priority priority, const char* target) {
    auto made = spec(priority, target);
    made.manifest = manifest;
    return made;
  };
  const auto held = dispatch(of("m1", Priority::kCommand, "t1")).job;
  accept(held, "w1");
  for (int i = 0; i < 20; ++i) submit(of("m1", Priority::kCommand, "t1"));
  for (int i = 0; i < 20; ++i) submit(of("m2", Priority::kDiscovery, "t2"));
  tick();
  int gone = 0;
  for (; !sent.empty() && gone < 20; ++gone) succeed(take().job, "w2");
  CHECK(gone == 20);
  succeed(held, "w1");  // and those that were kept waiting go as soon as they can, in their order
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].subject == own("w1"));
}
