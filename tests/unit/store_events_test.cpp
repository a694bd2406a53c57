// The event log of a Store, and its transactions.
#include <catch2/catch.hpp>

#include "support/store_fixture.h"

using namespace muster;
using test::StoreFixture;

TEST_CASE_METHOD(StoreFixture, "events come back in order, after a sequence") {
  CHECK(store().last_sequence().value() == 0);
  CHECK(store().events(0, 10).value().empty());
  for (int i = 1; i <= 5; ++i) CHECK(append("resource.changed", i, R"({"i":1})") == static_cast<std::uint64_t>(i));
  store().commit().value();
  reopen();
  CHECK(store().last_sequence().value() == 5);
  const auto events = store().events(2, 2).value();
  REQUIRE(events.size() == 2);
  CHECK(events[0].sequence == 3);
  CHECK(events[0].at == at(3));
  CHECK(events[0].ns == "PG");
  CHECK(events[0].what == "resource.changed");
  CHECK(events[0].subject == "s");
  CHECK(events[0].data == R"({"i":1})");
  CHECK(events[1].sequence == 4);
  CHECK(append("x.y") == 6);
}

TEST_CASE_METHOD(StoreFixture, "sequences have no gaps, whatever was rolled back") {
  append("a.a");
  store().commit().value();
  append("b.b");
  append("c.c");
  store().rollback();
  CHECK(store().last_sequence().value() == 1);
  CHECK(append("d.d") == 2);
  store().commit().value();
  append("lost.lost");
  reopen();
  append("lost.lost");
  store().rollback();
  CHECK(store().last_sequence().value() == 2);
  CHECK(append("e.e") == 3);
  store().commit().value();
  const auto events = store().events(0, 10).value();
  REQUIRE(events.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(events[i].sequence == i + 1);
  CHECK(events[2].what == "e.e");
}

TEST_CASE_METHOD(StoreFixture, "the sequence at a time is that of the last event before it") {
  CHECK(store().sequence_at(at(5)).value() == 0);
  for (int i = 1; i <= 20; ++i) append("a.a", i);
  CHECK(store().sequence_at(at(0)).value() == 0);
  CHECK(store().sequence_at(at(1)).value() == 0);
  CHECK(store().sequence_at(at(1.5)).value() == 1);
  CHECK(store().sequence_at(at(7)).value() == 6);
  CHECK(store().sequence_at(at(99)).value() == 20);
  store().set_published(20).value();
  CHECK(store().prune_events(at(11), 0, 100).value() == 10);
  CHECK(store().sequence_at(at(0)).value() == 10);
  CHECK(store().sequence_at(at(15)).value() == 14);
  CHECK(store().prune_events(at(99), 0, 100).value() == 10);
  CHECK(store().sequence_at(at(15)).value() == 20);
}

TEST_CASE_METHOD(StoreFixture, "the sequence at a time hides nothing of that time where the clock was set back") {
  for (const double second : {10, 11, 12, 2, 3, 4, 20, 5}) append("a.a", second);
  store().commit().value();
  if (GENERATE(false, true)) reopen();
  CHECK(store().sequence_at(at(1)).value() == 0);
  CHECK(store().sequence_at(at(12)).value() == 2);
  CHECK(store().sequence_at(at(13)).value() == 6);
  CHECK(store().sequence_at(at(21)).value() == 8);
  append("a.a", 1);
  append("a.a", 30);
  CHECK(store().sequence_at(at(21)).value() == 9);
  store().set_published(10).value();
  CHECK(store().prune_events(at(99), 0, 4).value() == 4);
  CHECK(store().sequence_at(at(4)).value() == 5);
  CHECK(store().prune_events(at(99), 0, 9).value() == 6);
  CHECK(store().sequence_at(at(4)).value() == 10);
}

TEST_CASE_METHOD(StoreFixture, "nor does it where the clock was set back between two starts") {
  append("a.a", 10);
  append("a.a", 100);
  store().commit().value();
  reopen();
  append("a.a", 50);
  append("a.a", 60);
  CHECK(store().sequence_at(at(55)).value() == 1);
}

TEST_CASE_METHOD(StoreFixture, "only published events are dropped") {
  for (int i = 1; i <= 10; ++i) append("a.a", i);
  CHECK(store().published().value() == 0);
  CHECK(store().prune_events(at(99), 1, 100).value() == 0);
  store().set_published(4).value();
  CHECK(store().prune_events(at(99), 0, 100).value() == 4);
  CHECK(store().events(0, 100).value().front().sequence == 5);
  store().commit().value();
  reopen();
  CHECK(store().published().value() == 4);
  CHECK(store().last_sequence().value() == 10);
}

TEST_CASE_METHOD(StoreFixture, "events are dropped by age, by size, and not too many at once") {
  for (int i = 1; i <= 10; ++i) append("a.a", i, std::string(100, 'x'));
  store().set_published(10).value();
  CHECK(store().prune_events(at(0), 0, 100).value() == 0);
  CHECK(store().prune_events(at(0), 1000, 100).value() == 0);
  CHECK(store().prune_events(at(3), 0, 100).value() == 2);
  CHECK(store().prune_events(at(0), 550, 100).value() == 3);
  CHECK(store().prune_events(at(99), 0, 2).value() == 2);
  CHECK(store().events(0, 100).value().front().sequence == 8);
  store().commit().value();
  reopen();  // sizes are known again
  CHECK(store().prune_events(at(0), 250, 100).value() == 1);
  CHECK(store().prune_events(at(0), 1, 100).value() == 2);
  store().commit().value();
  reopen();  // and the count goes on where nothing is left
  CHECK(store().last_sequence().value() == 10);
  CHECK(append("a.a") == 11);
  CHECK(store().events(0, 100).value().size() == 1);
}

TEST_CASE_METHOD(StoreFixture, "what is published is rolled back with the rest") {
  append("a.a");
  store().commit().value();
  store().set_published(1).value();
  store().rollback();
  CHECK(store().published().value() == 0);
}

TEST_CASE_METHOD(StoreFixture, "what is not committed is seen, counted, and gone after a rollback") {
  CHECK(store().uncommitted() == 0);
  const auto kept = insert(tables, "kept");
  CHECK(store().uncommitted() == 1);
  store().commit().value();
  CHECK(store().uncommitted() == 0);
  insert(tables, "lost");
  change(kept, R"({"a":1})", R"([{"op":"add","path":"/a","value":1}])", 1);
  append("resource.changed");
  CHECK(store().uncommitted() >= 4);
  CHECK(query().size() == 2);
  CHECK(one(kept).version == 2);
  store().rollback();
  CHECK(store().uncommitted() == 0);
  CHECK(query().size() == 1);
  CHECK(one(kept).version == 1);
  CHECK(store().history(kept).value().size() == 1);
  CHECK(store().events(0, 10).value().empty());
  store().rollback();  // nothing open: nothing happens
  store().commit().value();
  reopen();
  CHECK(query().size() == 1);
}

TEST_CASE_METHOD(StoreFixture, "after a failed write everything fails until the rollback") {
  const auto kept = insert(tables, "kept");
  store().commit().value();
  insert(tables, "lost");
  auto twin = make_target("t");  // a name that another target has
  CHECK(store().put_target(twin).error().code == Errc::kStoreUnavailable);
  CHECK_FALSE(store().set_meta("a", "b"));
  CHECK_FALSE(store().append_event({.at = at(0), .ns = "PG", .what = "a.a", .subject = "s", .data = "{}"}));
  CHECK_FALSE(store().leave(kept, ResourceState::kVanished, "vanished", at(1)));
  CHECK_FALSE(store().one(kept));
  CHECK_FALSE(store().targets());
  CHECK_FALSE(store().commit());
  store().rollback();
  CHECK(query().size() == 1);
  insert(tables, "later");
  store().commit().value();
  reopen();
  CHECK(query().size() == 2);
  CHECK(store().last_sequence().value() == 0);
}
