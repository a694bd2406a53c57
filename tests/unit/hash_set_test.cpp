#include "coordinator/hash_set.h"

#include <catch2/catch.hpp>
#include <set>

using namespace muster;

TEST_CASE("a set of hashes holds what was put in and not taken out") {
  HashSet set;
  std::set<Hash128> same;
  // Few places that many want, the last ones among them: whoever is taken out leaves a hole in a row of others.
  std::uint64_t state = 1;
  const auto random = [&state] { return (state = state * 6364136223846793005U + 1442695040888963407U) >> 33U; };
  for (int i = 0; i < 200'000; ++i) {
    const Hash128 hash{1 + random() % 50, (random() % 8 - 4) << (i % 3 == 0 ? 7U : 0U)};
    if (random() % 3 == 0) {
      set.erase(hash);
      same.erase(hash);
    } else {
      REQUIRE(set.insert(hash) == same.insert(hash).second);
    }
    REQUIRE(set.size() == same.size());
  }
  for (const auto& hash : same) REQUIRE_FALSE(set.insert(hash));
}

TEST_CASE("a set of hashes grows, and takes any") {
  HashSet set;
  set.erase({1, 2});
  CHECK(set.insert({0, 0}));
  CHECK_FALSE(set.insert({0, 0}));
  for (std::uint64_t i = 1; i < 10'000; ++i) REQUIRE(set.insert({i, i * i}));
  for (std::uint64_t i = 1; i < 10'000; ++i) REQUIRE_FALSE(set.insert({i, i * i}));
  set.erase({0, 0});
  CHECK(set.insert({0, 0}));
  CHECK(set.size() == 10'000);
}
