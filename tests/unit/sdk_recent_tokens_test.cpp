#include "worker_sdk/src/recent_tokens.h"

#include <catch2/catch.hpp>
#include <string>

using namespace muster;

TEST_CASE("the last 4096 tokens are known, and none before them") {
  RecentTokens tokens;
  const auto token = [](int i) { return Token("token-" + std::to_string(i)); };
  for (int i = 0; i < 10'000; ++i) REQUIRE(tokens.insert(token(i)));
  for (int i = 10'000 - 4096; i < 10'000; ++i) REQUIRE_FALSE(tokens.insert(token(i)));
  for (int i = 0; i < 100; ++i) REQUIRE(tokens.insert(token(i)));
}
