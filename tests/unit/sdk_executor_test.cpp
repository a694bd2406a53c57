#include <catch2/catch.hpp>

#include <atomic>
#include <latch>
#include <set>
#include <stdexcept>

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
