#include <catch2/catch.hpp>
#include <set>

#include "worker_sdk/bus/clock.h"
#include "worker_sdk/testing/fake_clock.h"

using namespace muster;
using namespace std::chrono_literals;

namespace {

struct FixedRandom final : Random {
  explicit FixedRandom(std::uint64_t fixed) : value(fixed) {}
  std::uint64_t next() override { return value; }
  std::uint64_t value;
};

}  // namespace

TEST_CASE("a ULID is time and randomness in Crockford base32") {
  FixedRandom zeros{0};
  FixedRandom ones{~std::uint64_t{0}};
  CHECK(make_ulid(WallTime{}, zeros) == "00000000000000000000000000");
  CHECK(make_ulid(WallTime{}, ones) == "0000000000ZZZZZZZZZZZZZZZZ");
  // The example of the ULID specification: 1469918176385 ms is 01ARYZ6S41.
  CHECK(make_ulid(WallTime{1469918176385ms}, zeros) == "01ARYZ6S410000000000000000");
}

TEST_CASE("ULIDs sort by time") {
  SystemRandom random;
  std::string before;
  for (int i = 0; i < 100; ++i) {
    const std::string id = make_ulid(WallTime{std::chrono::milliseconds(1'700'000'000'000 + i)}, random);
    CHECK(before < id);
    before = id;
  }
}

TEST_CASE("a token holds 128 random bits") {
  FixedRandom ones{~std::uint64_t{0}};
  CHECK(make_token(ones) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
  SystemRandom random;
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(make_token(random));
  CHECK(tokens.size() == 1000);
}

TEST_CASE("below keeps to its bound") {
  SystemRandom random;
  CHECK(random.below(0) == 0);
  CHECK(random.below(1) == 0);
  for (int i = 0; i < 1000; ++i) CHECK(random.below(3) < 3);
}

TEST_CASE("the fake clock moves both times, and wall time alone") {
  FakeClock clock;
  const TimePoint start = clock.now();
  const WallTime wall = clock.wall();
  clock.advance(1500ms);
  CHECK(clock.now() == start + 1500ms);
  CHECK(clock.wall() == wall + 1500ms);
  clock.set_wall(wall - 1h);
  CHECK(clock.now() == start + 1500ms);
  CHECK(clock.wall() == wall - 1h);
}

TEST_CASE("a seed gives the same numbers everywhere") {
  SeededRandom random{0};  // first values of splitmix64 as published
  CHECK(random.next() == 0xE220A8397B1DCDAFU);
  CHECK(random.next() == 0x6E789E6AA1B965F4U);
}
