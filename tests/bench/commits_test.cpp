// The yardstick of creates writes the product's tables without its code.

#include <catch2/catch.hpp>

#include "support/scratch.h"
#include "tests/bench/sqlite_file.h"
#include "tests/bench/yardstick.h"

using namespace muster;

TEST_CASE("the yardstick of creates leaves an operation, a resource and an event of each") {
  const test::Scratch scratch;
  const auto store = (scratch.path / "store.db").string();
  constexpr std::int64_t kCount = 3;
  REQUIRE(bench::run_commits({store, kCount}) == 0);
  bench::SqliteFile file(store);
  for (const char* rows : {"operations WHERE state = 'done' AND creates = 1", "resources", "events"}) {
    auto* count = file.prepare((std::string("SELECT count(*) FROM ") + rows).c_str());
    REQUIRE(sqlite3_step(count) == SQLITE_ROW);
    CHECK(sqlite3_column_int64(count, 0) == kCount);
  }
}

TEST_CASE("a parameter that is missing is a mistake") {
  bench::SqliteFile file(":memory:");
  CHECK_THROWS(file.write(file.prepare("SELECT ?1, ?2"), std::int64_t{1}));
}
