// How many workers `muster up` keeps between `min` and `max`.

#include <catch2/catch.hpp>

#include "coordinator/cli/scaling.h"

using namespace muster;
using namespace muster::cli;

namespace {

struct Pool {
  Scaling scaling;
  TimePoint now{};

  std::size_t hear(const Demand& demand) {
    scaling.hear(demand, now);
    return scaling.wanted();
  }
  /// The same demand for so long, told every 5 s.
  std::size_t pass(Millis time, const Demand& demand) {
    for (const auto end = now + time; now < end;) {
      now += Millis(5000);
      hear(demand);
    }
    return scaling.wanted();
  }
};

constexpr Demand kWaiting{4, 4, 40, Millis(1000)};

}  // namespace

TEST_CASE("jobs that wait for slots get more workers, as many as they need, doubled at most") {
  Pool pool{Scaling(1, 8, 4)};
  CHECK(pool.scaling.wanted() == 1);
  CHECK(pool.hear({4, 4, 40, Millis(999)}) == 1);
  CHECK(pool.hear(kWaiting) == 2);
  CHECK(pool.pass(Millis(5000), kWaiting) == 2);  // until the new one is seen
  CHECK(pool.pass(Millis(5000), kWaiting) == 4);
  CHECK(pool.pass(Millis(10'000), {16, 16, 5, Millis(1200)}) == 6);
  CHECK(pool.pass(Millis(60'000), kWaiting) == 8);
}

TEST_CASE("short jobs that always wait for slots get more workers, too") {
  Pool pool{Scaling(1, 4, 1)};
  const Demand standing{1, 1, 3, Millis(700)};
  CHECK(pool.hear(standing) == 1);
  CHECK(pool.pass(Millis(5000), standing) == 2);
  CHECK(pool.pass(Millis(10'000), {2, 2, 2, Millis(600)}) == 4);
  Pool other{Scaling(1, 4, 1)};
  other.hear(standing);
  SECTION("a moment without one that waits") {
    other.pass(Millis(5000), {1, 1, 0, Millis(0)});
  }
  SECTION("a free slot") {
    other.pass(Millis(5000), {1, 0, 3, Millis(700)});
  }
  SECTION("a silence") {
    other.now += Millis(60'000);
  }
  CHECK(other.hear(standing) == 1);
}

TEST_CASE("slots that stay free for a minute cost a worker, down to the fewest") {
  Pool pool{Scaling(1, 8, 4)};
  pool.pass(Millis(30'000), kWaiting);
  REQUIRE(pool.scaling.wanted() == 8);
  const Demand idle{32, 0, 0, Millis(0)};
  CHECK(pool.pass(Millis(60'000), idle) == 8);
  CHECK(pool.pass(Millis(5000), idle) == 7);
  CHECK(pool.pass(Millis(300'000), idle) == 1);
  CHECK(pool.pass(Millis(300'000), {4, 0, 0, Millis(0)}) == 1);
}

TEST_CASE("a worker stays while the others would be almost full without it") {
  Pool pool{Scaling(1, 2, 4)};
  pool.hear(kWaiting);
  REQUIRE(pool.scaling.wanted() == 2);
  CHECK(pool.pass(Millis(600'000), {8, 4, 0, Millis(0)}) == 2);
  CHECK(pool.pass(Millis(65'000), {8, 3, 0, Millis(0)}) == 1);
}

TEST_CASE("a moment of work, or a silence, begins the minute again") {
  Pool pool{Scaling(1, 2, 4)};
  pool.hear(kWaiting);
  const Demand idle{8, 0, 0, Millis(0)};
  SECTION("work") {
    pool.pass(Millis(55'000), idle);
    pool.pass(Millis(5000), {8, 8, 0, Millis(0)});
  }
  SECTION("silence") {
    pool.hear(idle);
    pool.now += Millis(120'000);
  }
  CHECK(pool.pass(Millis(55'000), idle) == 2);
  CHECK(pool.pass(Millis(15'000), idle) == 1);
}

TEST_CASE("a fixed number stays as it is") {
  Pool pool{Scaling(3, 3, 4)};
  CHECK_FALSE(pool.scaling.active());
  CHECK(pool.pass(Millis(60'000), kWaiting) == 3);
  CHECK(pool.pass(Millis(600'000), {12, 0, 0, Millis(0)}) == 3);
}
