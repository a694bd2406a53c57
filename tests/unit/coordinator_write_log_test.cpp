// Which observations the writes of commands have made old.
#include <catch2/catch.hpp>

#include "coordinator/write_log.h"

using namespace muster;

TEST_CASE("nothing that is seen of an object counts while a change of it is under way, however long that takes") {
  WriteLog writes;
  writes.begin(1, "slow");
  for (int i = 0; i < 3; ++i) writes.note(1, "other");
  writes.forget(writes.position());
  CHECK(writes.outdates(writes.position(), 1, "slow"));
  CHECK_FALSE(writes.outdates(writes.position(), 2, "slow"));
  CHECK_FALSE(writes.knows(1, "other"));
  const auto before = writes.position();
  writes.end(1, "slow");
  CHECK(writes.outdates(before, 1, "slow"));
  CHECK_FALSE(writes.outdates(writes.position(), 1, "slow"));
}

TEST_CASE("a write is remembered until no observation from before it is under way") {
  WriteLog writes;
  writes.note(1, "a");
  const auto asked = writes.position();
  writes.note(1, "b");
  writes.forget(asked);
  CHECK_FALSE(writes.knows(1, "a"));
  CHECK(writes.outdates(asked, 1, "b"));
  writes.forget(writes.position());
  CHECK(writes.empty());
}
