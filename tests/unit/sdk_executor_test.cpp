#include <catch2/catch.hpp>

#include <atomic>
#include <latch>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "muster/properties.h"
#include "worker_sdk/src/executor.h"

using namespace muster;

TEST_CASE("work runs on as many threads as there are slots, and each end is told once") {
  std::atomic<int> wakes{0};
  ThreadExecutor executor(4, [&] {
    ++wakes;
    wakes.notify_one();
  });
  std::set<Token> ended;
  for (int round = 0; round < 100; ++round) {
    std::latch together(4);  // passes only when all four run at once
    for (int slot = 0; slot < 4; ++slot) {
      executor.submit({Token(std::to_string(round * 4 + slot)), [&together] {
                         together.arrive_and_wait();
                         return Outcome{not_found(), 1};
                       }});
    }
    executor.start();
    for (std::size_t taken = 0; taken < 4;) {
      const int before = wakes;
      const auto finished = executor.take();
      taken += finished.size();
      for (const auto& one : finished) {
        CHECK(one.outcome.calls == 1);
        CHECK(ended.insert(one.token).second);
      }
      if (finished.empty()) wakes.wait(before);
    }
  }
  CHECK(ended.size() == 400);
  CHECK(executor.take().empty());
}

TEST_CASE("more work than slots is a bug") {
  std::latch begun(1), go_on(1);
  ThreadExecutor executor(1, [] {});
  const auto wait = [&] {
    begun.count_down();
    go_on.wait();
    return Outcome{not_found(), 0};
  };
  executor.submit({Token("a"), wait});
  executor.start();
  begun.wait();
  executor.submit({Token("b"), [] { return Outcome{not_found(), 0}; }});
  executor.start();
  executor.submit({Token("c"), [] { return Outcome{not_found(), 0}; }});
  CHECK_THROWS_AS(executor.start(), std::logic_error);
  go_on.count_down();
}

TEST_CASE("calls for the loop come from any thread, and wake it") {
  std::atomic<int> wakes{0};
  ThreadExecutor executor(2, [&] {
    ++wakes;
    wakes.notify_one();
  });
  LoopCalls& calls = *executor.calls();
  const auto loop = std::this_thread::get_id();
  int called = 0;
  std::atomic<int> elsewhere{0};
  for (int round = 0; round < 100; ++round) {
    const int before = wakes;
    std::jthread client([&] {
      calls.at(TimePoint::min(), {}, [&] {
        CHECK(std::this_thread::get_id() == loop);
        ++called;
        calls.block([&] {  // ends a job in a slot's thread
          elsewhere += std::this_thread::get_id() != loop ? 1 : 0;
          calls.finish(Token("t"), {not_found(), 2});
        });
      });
    });
    wakes.wait(before);
    CHECK(calls.next_due() == TimePoint::min());
    calls.run(TimePoint{});
    executor.start();
    auto finished = executor.take();
    for (int now = wakes; finished.empty(); now = wakes) {
      finished = executor.take();
      if (finished.empty()) wakes.wait(now);
    }
    REQUIRE(finished.size() == 1);
    CHECK(finished.front().outcome.calls == 2);
  }
  CHECK(called == 100);
  CHECK(elsewhere == 100);
  CHECK(calls.next_due() == TimePoint::max());
}

TEST_CASE("what waits is called in its order, when it is due or its stop token is set") {
  LoopCalls calls([] {});
  const TimePoint start{};
  std::vector<std::string> called;
  const auto say = [&](const char* what) { return [&called, what] { called.emplace_back(what); }; };
  std::stop_source stop;
  calls.at(start + Millis{30}, {}, say("thirty"));
  calls.at(start + Millis{10}, {}, say("ten"));
  const auto dropped = calls.at(start + Millis{10}, {}, say("dropped"));
  calls.at(start + Millis{1000}, stop.get_token(), say("stopped"));
  calls.drop(dropped);
  CHECK(calls.next_due() == start + Millis{10});
  calls.run(start + Millis{9});
  CHECK(called.empty());
  calls.run(start + Millis{10});
  CHECK(called == std::vector<std::string>{"ten"});
  stop.request_stop();
  calls.hurry();
  CHECK(calls.next_due() == TimePoint::min());
  calls.run(start + Millis{11});
  CHECK(called == std::vector<std::string>{"ten", "stopped"});
  calls.at(start + Millis{1000}, stop.get_token(), say("stopped before"));
  calls.run(start + Millis{12});
  CHECK(called.back() == "stopped before");
  calls.run(start + Millis{30});
  CHECK(called.back() == "thirty");
  CHECK(calls.next_due() == TimePoint::max());
}

TEST_CASE("what comes after the loop's end is let go of") {
  LoopCalls calls([] {});
  const auto held = std::make_shared<int>(1);
  calls.at(TimePoint::max(), {}, [held] {});
  calls.block([held] {});
  calls.close();
  CHECK(held.use_count() == 1);
  calls.at(TimePoint::min(), {}, [held] {});
  calls.block([held] {});
  calls.finish(Token("t"), {not_found(), 0});
  CHECK(held.use_count() == 1);
  CHECK(calls.take_finished().empty());
}
