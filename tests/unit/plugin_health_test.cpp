// Workers that are not heard, or not accepted: how long they are waited for.
#include <catch2/catch.hpp>

#include "support/kept_plugin.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a worker that nobody hears any more is killed after 5 s and started again") {
  KeptPlugin plugin;
  const pid_t one = plugin.serve("v1");
  plugin.keeper.lost(one, plugin.clock.now());
  CHECK(plugin.keeper.awaits());
  plugin.clock.advance(Millis{4999});
  plugin.keeper.lost(one, plugin.clock.now());
  plugin.turn();
  CHECK(plugin.killed.empty());
  SECTION("it is heard again") {
    plugin.keeper.accepted(one);
    plugin.clock.advance(Millis{60'000});
    plugin.keeper.lost(one, plugin.clock.now());
    plugin.turn();
    CHECK(plugin.killed.empty());
  }
  SECTION("nobody can say so for long, and then says the same once") {
    plugin.clock.advance(Millis{60'000});
    plugin.keeper.trust(plugin.clock.now() - Millis{30'000});
    plugin.keeper.lost(one, plugin.clock.now());
    plugin.turn();
    CHECK(plugin.killed.empty());
    plugin.clock.advance(Millis{5000});
    plugin.keeper.lost(one, plugin.clock.now());
    plugin.turn();
    CHECK(plugin.killed == Pids{one});
  }
  SECTION("it is not") {
    plugin.clock.advance(Millis{1});
    plugin.keeper.lost(one, plugin.clock.now());
    plugin.turn();
    plugin.turn();
    CHECK(plugin.killed == Pids{one});
    plugin.end(one, "killed by signal 9");
    plugin.clock.advance(Millis{200});
    CHECK(plugin.turn().size() == 1);
    const auto said = plugin.keeper.take_notices();
    CHECK(said.back() == "did not answer any more: killed; starts again in 200 ms");
  }
}

TEST_CASE("a first version that nobody accepts is killed, and started again") {
  KeptPlugin plugin(2);
  plugin.keeper.want("v1");
  REQUIRE(plugin.turn() == Pids{1, 2});
  plugin.keeper.accepted(1);
  CHECK(plugin.keeper.next_due() == plugin.clock.now() + Millis{90'000});
  plugin.clock.advance(Millis{89'999});
  plugin.turn();
  CHECK(plugin.killed.empty());
  plugin.clock.advance(Millis{1});
  plugin.turn();
  CHECK(plugin.killed == Pids{2});
  plugin.turn();
  CHECK(plugin.killed == Pids{2});
  static_cast<void>(plugin.keeper.take_notices());
  plugin.end(2, "killed by signal 9");
  CHECK(plugin.keeper.take_notices() ==
        std::vector<std::string>{"no coordinator accepted it within 90 s: killed; starts again in 200 ms"});
  plugin.clock.advance(Millis{200});
  CHECK(plugin.turn() == Pids{3});
}

TEST_CASE("after a standstill everybody is waited for anew") {
  KeptPlugin plugin(2);
  plugin.replace_two();
  REQUIRE(plugin.turn() == Pids{3, 4});
  plugin.keeper.lost(1, plugin.clock.now());
  plugin.keeper.unknown(2, plugin.clock.now());
  const auto stand_still = [&] {
    plugin.clock.advance(Millis{100'000});
    plugin.keeper.stalled(plugin.clock.now());
    plugin.turn();
  };
  stand_still();
  CHECK(plugin.state() == State::kRunning);  // the new version is not given up
  CHECK(plugin.keeper.next_due() == plugin.clock.now() + Millis{90'000});
  plugin.keeper.lost(1, plugin.clock.now());
  plugin.keeper.unknown(2, plugin.clock.now());
  plugin.turn();
  CHECK(plugin.killed.empty());
  for (const pid_t pid : {3, 4}) plugin.keeper.accepted(pid);
  plugin.turn();
  REQUIRE(plugin.drained == Pids{1, 2});
  stand_still();
  CHECK(plugin.killed.empty());
  plugin.clock.advance(Millis{12'000});
  plugin.turn();
  CHECK(plugin.killed == Pids{1, 2});
}

TEST_CASE("who is accepted is not waited for, however long the others of the new version take") {
  KeptPlugin plugin(2);
  plugin.replace_two();
  REQUIRE(plugin.turn() == Pids{3, 4});
  plugin.keeper.accepted(3);
  plugin.clock.advance(Millis{89'000});
  plugin.end(4);
  CHECK(plugin.keeper.next_due() == plugin.clock.now() + Millis{200});
  plugin.clock.advance(Millis{1000});
  REQUIRE(plugin.turn() == Pids{5});
  CHECK(plugin.keeper.next_due() == plugin.clock.now() + Millis{90'000});
  CHECK(plugin.turn().empty());
  CHECK(plugin.drained.empty());
  plugin.keeper.accepted(5);
  plugin.turn();
  CHECK(plugin.drained == Pids{1, 2});
}

TEST_CASE("one that was accepted, and that no coordinator knows any more, is killed as one that is never accepted") {
  KeptPlugin plugin;
  const pid_t one = plugin.serve("1");
  const auto unknown = [&] {
    plugin.keeper.unknown(one, plugin.clock.now());
    plugin.turn();
  };
  unknown();
  plugin.clock.advance(Millis{89'999});
  plugin.keeper.accepted(one);  // by the next coordinator
  unknown();
  plugin.clock.advance(Millis{89'999});
  plugin.keeper.trust(plugin.clock.now());  // none answers meanwhile
  unknown();
  plugin.clock.advance(Millis{89'999});
  unknown();
  CHECK(plugin.killed.empty());
  plugin.clock.advance(Millis{1});
  unknown();
  CHECK(plugin.killed == Pids{one});
  plugin.end(one, "killed by signal 9");
  plugin.clock.advance(Millis{200});
  CHECK(plugin.turn().size() == 1);
}

TEST_CASE("who is to leave before it could be killed as lost is killed when it does not drain") {
  KeptPlugin plugin;
  const pid_t one = plugin.serve("v1");
  plugin.keeper.lost(one, plugin.clock.now());
  plugin.clock.advance(Millis{5000});
  plugin.keeper.lost(one, plugin.clock.now());
  SECTION("decide() has not been asked") {
    plugin.keeper.remove();
    plugin.turn();
    CHECK(plugin.drained == Pids{one});
    CHECK(plugin.killed.empty());
    plugin.clock.advance(Millis{12'000});
    CHECK(plugin.keeper.next_due() <= plugin.clock.now());
  }
  SECTION("it has") {
    plugin.turn();
    CHECK(plugin.killed == Pids{one});
    plugin.keeper.remove();
  }
  plugin.turn();
  plugin.clock.advance(Millis{12'000});
  plugin.turn();
  CHECK(plugin.killed == Pids{one});
}
