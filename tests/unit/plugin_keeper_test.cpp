#include <algorithm>
#include <catch2/catch.hpp>

#include "support/kept_plugin.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("as many processes run as were asked for, each started again after a pause that grows") {
  KeptPlugin plugin(2);
  CHECK(plugin.keeper.over());
  plugin.keeper.want("v1");
  CHECK(plugin.state() == State::kWaiting);
  CHECK(plugin.turn() == Pids{1, 2});
  CHECK(plugin.turn().empty());
  CHECK(plugin.state() == State::kStarting);
  plugin.keeper.accepted(1);
  CHECK(plugin.state() == State::kRunning);
  CHECK(plugin.keeper.awaits());
  plugin.keeper.accepted(2);
  CHECK_FALSE(plugin.keeper.awaits());

  for (const Millis pause : {Millis{200}, Millis{400}, Millis{800}}) {
    const pid_t one = plugin.keeper.status().processes.back();
    plugin.end(one);
    CHECK(plugin.keeper.next_due() == plugin.clock.now() + pause);
    plugin.clock.advance(pause - Millis{1});
    CHECK(plugin.turn().empty());
    plugin.clock.advance(Millis{1});
    CHECK(plugin.turn().size() == 1);
  }
  CHECK(plugin.keeper.status().restarts == 3);
  const pid_t last = plugin.keeper.status().processes.back();
  plugin.clock.advance(Millis{30'001});
  plugin.end(last);
  CHECK(plugin.keeper.next_due() == plugin.clock.now() + Millis{200});
}

TEST_CASE("what keeps dying is quarantined until its file changes or somebody asks") {
  KeptPlugin plugin;
  plugin.keeper.want("v1");
  CHECK(plugin.wear_out() == 5);
  CHECK(plugin.state() == State::kQuarantined);
  CHECK(plugin.reason() == "ended 5 times within 60 s, at last: exited with status 1");
  plugin.keeper.want("v1");
  CHECK(plugin.turn().empty());

  SECTION("the file changes") {
    plugin.keeper.want("v2");
    CHECK(plugin.version_of[plugin.start_one()] == "v2");
    CHECK(plugin.reason().empty());
  }
  SECTION("somebody asks") {
    plugin.keeper.forgive();
    CHECK(plugin.version_of[plugin.start_one()] == "v1");
  }
  SECTION("the file goes") {
    plugin.keeper.remove();
    CHECK(plugin.keeper.over());
  }
}

TEST_CASE("who dies now and then goes on") {
  KeptPlugin plugin;
  plugin.keeper.want("v1");
  for (int i = 0; i < 20; ++i) {
    const pid_t one = plugin.start_one();
    plugin.clock.advance(Millis{16'000});
    plugin.end(one);
    plugin.clock.advance(Millis{10'000});
  }
  CHECK(plugin.state() != State::kQuarantined);
}

TEST_CASE("one of several processes that keeps dying is quarantined alone") {
  KeptPlugin plugin(3);
  plugin.keeper.want("v1");
  REQUIRE(plugin.turn() == Pids{1, 2, 3});
  for (const pid_t pid : {1, 2, 3}) plugin.keeper.accepted(pid);
  plugin.clock.advance(Millis{600'000});
  const auto kill_last = [&] {
    plugin.end(plugin.keeper.status().processes.back(), "killed by signal 9");
    plugin.clock.advance(Millis{10'000});
    return plugin.turn();
  };
  for (int i = 0; i < 5; ++i) REQUIRE(kill_last().size() == 1);  // the first had run for long
  CHECK(plugin.state() != State::kQuarantined);
  CHECK(kill_last().empty());
  CHECK(plugin.state() == State::kQuarantined);
  CHECK(plugin.reason() == "1 of 3 processes: ended 5 times within 60 s, at last: killed by signal 9");
  CHECK(plugin.keeper.status().processes == Pids{1, 2});
  CHECK(plugin.keeper.take_notices().back() ==
        "process 3 is quarantined: ended 5 times within 60 s, at last: killed by signal 9; the others go on; tried "
        "again when the file changes, or on SIGHUP");
  CHECK(plugin.keeper.next_due() == TimePoint::max());

  plugin.end(2, "killed by signal 9");
  CHECK(plugin.keeper.next_due() == plugin.clock.now() + Millis{200});
  plugin.clock.advance(Millis{200});
  const Pids again = plugin.turn();
  REQUIRE(again.size() == 1);
  plugin.keeper.accepted(again.front());

  SECTION("somebody asks") {
    plugin.keeper.forgive();
    CHECK(plugin.turn().size() == 1);
    CHECK(plugin.reason().empty());
  }
  SECTION("fewer are wanted") {
    plugin.keeper.scale(2);
    plugin.turn();
    CHECK(plugin.drained.empty());
    CHECK(plugin.keeper.status().processes == Pids{1, again.front()});
    CHECK(plugin.reason().empty());
  }
  SECTION("the others keep dying, too") {
    plugin.end(again.front());
    CHECK(plugin.wear_out() == 4);
    CHECK(plugin.reason() == "2 of 3 processes: ended 5 times within 60 s, at last: killed by signal 9");
    plugin.end(1);
    CHECK(plugin.wear_out() == 5);
    CHECK(plugin.reason() == "ended 5 times within 60 s, at last: exited with status 1");
    plugin.keeper.scale(4);
    CHECK(plugin.turn().empty());
    plugin.keeper.want("v2");
    CHECK(plugin.turn().size() == 4);
    CHECK(plugin.reason().empty());
  }
}

TEST_CASE("a new version of which one process keeps dying does not take over") {
  KeptPlugin plugin(2);
  plugin.replace_two();
  REQUIRE(plugin.turn() == Pids{3, 4});
  plugin.keeper.accepted(3);
  plugin.end(4);
  CHECK(plugin.wear_out() == 4);
  plugin.turn();
  CHECK(plugin.drained == Pids{3});
  CHECK(plugin.keeper.status().processes == Pids{1, 2});
  CHECK(plugin.reason() == "ended 5 times within 60 s, at last: exited with status 1");
}

TEST_CASE("nothing of a new version runs on when it is given up between two of its starts") {
  KeptPlugin plugin(2);
  plugin.replace_two();
  pid_t pid = 10;
  for (int ends = 0; ends < 5; ++ends) {
    const auto starts = plugin.keeper.decide(plugin.clock.now()).starts;
    REQUIRE(starts.size() == 2);
    plugin.keeper.not_started(starts[0], "Resource temporarily unavailable", plugin.clock.now());
    plugin.keeper.started(starts[1], ++pid, plugin.clock.now());
    if (ends < 4) plugin.end(pid);
    plugin.clock.advance(Millis{10'000});
  }
  CHECK(plugin.state() == State::kQuarantined);
  CHECK(plugin.turn().empty());
  CHECK(plugin.drained == Pids{pid});
  CHECK(plugin.keeper.status().processes == Pids{1, 2});
}

TEST_CASE("a program that cannot be run counts as one that dies") {
  KeptPlugin plugin;
  plugin.keeper.want("v1");
  for (int i = 0; i < 5; ++i) {
    for (const auto& start : plugin.keeper.decide(plugin.clock.now()).starts) {
      plugin.keeper.not_started(start, "Exec format error", plugin.clock.now());
    }
    plugin.clock.advance(Millis{10'000});
  }
  CHECK(plugin.reason() == "ended 5 times within 60 s, at last: Exec format error");
}

TEST_CASE("what there is no room for is tried until there is, and never quarantined") {
  KeptPlugin plugin;
  plugin.keeper.want("v1");
  for (int i = 0; i < 50; ++i) {
    const auto actions = plugin.keeper.decide(plugin.clock.now());
    REQUIRE(actions.starts.size() == 1);
    plugin.keeper.postponed(actions.starts.front(), "no room", plugin.clock.now());
    const auto pause = plugin.keeper.next_due() - plugin.clock.now();
    CHECK((pause >= Millis{200} && pause <= Millis{10'000}));
    CHECK(plugin.turn().empty());
    plugin.clock.advance(std::chrono::duration_cast<Millis>(pause));
  }
  CHECK(plugin.state() == State::kWaiting);
  CHECK(plugin.keeper.take_notices().back() == "no room; tried again in 10000 ms");
  CHECK(plugin.start_one() == 1);
}

TEST_CASE("a new version takes over when a coordinator has accepted all of it, and only then the old one drains") {
  KeptPlugin plugin(2);
  plugin.replace_two();
  CHECK(plugin.turn() == Pids{3, 4});
  plugin.keeper.accepted(3);
  plugin.turn();
  CHECK(plugin.drained.empty());
  plugin.keeper.accepted(4);
  plugin.turn();
  CHECK(plugin.drained == Pids{1, 2});
  CHECK(plugin.keeper.status().processes == Pids{3, 4});
  plugin.end(1, "exited with status 0");
  CHECK(plugin.turn().empty());
  plugin.clock.advance(Millis{11'999});
  plugin.turn();
  CHECK(plugin.killed.empty());
  plugin.clock.advance(Millis{1});
  CHECK(plugin.keeper.next_due() <= plugin.clock.now());
  plugin.turn();
  CHECK(plugin.killed == Pids{2});
}

TEST_CASE("the old version goes on where the new one is broken") {
  KeptPlugin plugin;
  const pid_t old = plugin.serve("v1");
  plugin.keeper.want("v2");

  SECTION("it dies") {
    CHECK(plugin.wear_out() == 5);
    CHECK(plugin.reason() == "ended 5 times within 60 s, at last: exited with status 1");
  }
  SECTION("nobody accepts it") {
    const pid_t fresh = plugin.start_one();
    plugin.clock.advance(Millis{89'999});
    CHECK(plugin.turn().empty());
    CHECK(plugin.drained.empty());
    plugin.clock.advance(Millis{1});
    plugin.turn();
    CHECK(plugin.drained == Pids{fresh});
    CHECK(plugin.reason() == "no coordinator accepted it within 90 s");
    plugin.drained.clear();
  }
  SECTION("it must not be started") {
    plugin.start_one();
    plugin.keeper.refuse("v2", "it is not listed");
    plugin.turn();
    CHECK(plugin.drained.size() == 1);
    CHECK(plugin.reason() == "it is not listed");
    plugin.drained.clear();
  }
  CHECK(plugin.state() == State::kQuarantined);
  CHECK(plugin.keeper.status().processes == Pids{old});
  CHECK(plugin.drained.empty());
  plugin.end(old);
  plugin.clock.advance(Millis{1000});
  CHECK(plugin.version_of[plugin.start_one()] == "v1");  // it is the one that is known to work

  plugin.keeper.want("v1");  // the file is put back
  CHECK(plugin.state() == State::kStarting);
}

TEST_CASE("of a file that is replaced again and again two versions drain at most") {
  KeptPlugin plugin(2);
  plugin.keeper.want("v0");
  REQUIRE(plugin.turn() == Pids{1, 2});
  plugin.keeper.accepted(1);
  plugin.keeper.accepted(2);
  static_cast<void>(plugin.keeper.take_notices());
  const auto replace = [&](int from, int to) {
    for (int i = from; i <= to; ++i) {
      plugin.keeper.want("v" + std::to_string(i));
      plugin.turn();
      plugin.clock.advance(Millis{100});
    }
  };
  replace(1, 100);  // none of them minds SIGTERM
  CHECK(plugin.drained == Pids{3, 4, 5, 6});
  CHECK(plugin.version_of.size() == 6);
  CHECK(plugin.keeper.status().processes == Pids{1, 2});
  const auto said = plugin.keeper.take_notices();
  const std::string waits = "2 versions before it drain still: the new one waits for the end of one";
  CHECK(std::count(said.begin(), said.end(), waits) == 1);
  CHECK(plugin.keeper.next_due() > plugin.clock.now());

  SECTION("one has ended") {
    plugin.end(3);
    CHECK(plugin.turn().empty());  // half of it has
    plugin.end(4);
    CHECK(plugin.keeper.next_due() <= plugin.clock.now());
    REQUIRE(plugin.turn() == Pids{7, 8});
    CHECK(plugin.version_of[7] == "v100");
    plugin.keeper.accepted(7);
    plugin.keeper.accepted(8);
    plugin.turn();
    CHECK(plugin.keeper.status().processes == Pids{7, 8});
    replace(101, 102);
    CHECK(plugin.keeper.status().processes == Pids{7, 8});
  }
  SECTION("they are killed") {
    plugin.clock.advance(Millis{12'000});
    plugin.turn();
    CHECK(plugin.killed == Pids{3, 4, 5, 6});
    for (const pid_t pid : plugin.killed) plugin.end(pid, "killed by signal 9");
    REQUIRE(plugin.turn() == Pids{7, 8});
    CHECK(plugin.version_of[7] == "v100");
  }
  SECTION("what serves is started again all the same") {
    plugin.end(1);
    plugin.end(2);
    plugin.clock.advance(Millis{200});
    REQUIRE(plugin.turn() == Pids{7, 8});
    CHECK(plugin.version_of[7] == "v0");
  }
  SECTION("the file goes and comes") {
    plugin.keeper.remove();
    plugin.turn();
    CHECK(plugin.drained == Pids{3, 4, 5, 6, 1, 2});
    plugin.keeper.want("v101");
    CHECK(plugin.turn().empty());
    CHECK(plugin.state() == State::kWaiting);
    for (const pid_t pid : {1, 2, 3, 4}) plugin.end(pid);
    CHECK(plugin.turn() == Pids{7, 8});
  }
}

TEST_CASE("a new version that is tried again and again waits for those of it that drain") {
  KeptPlugin plugin(2);
  plugin.replace_two();
  for (int i = 0; i < 10; ++i) {
    const Pids started = plugin.turn();
    if (started.empty()) break;
    REQUIRE(started.size() == 2);
    plugin.end(started.back());
    plugin.clock.advance(Millis{200});
    for (int starts = 1; starts < 5; ++starts) {
      plugin.end(plugin.start_one());
      plugin.clock.advance(Millis{2000});
    }
    plugin.turn();
    plugin.keeper.forgive();
  }
  CHECK(plugin.drained.size() == 2);
}

TEST_CASE("what must not be started any more runs to its end") {
  KeptPlugin plugin;
  const pid_t old = plugin.serve("v1");
  plugin.keeper.refuse("v1", "it is not listed");
  CHECK(plugin.turn().empty());
  CHECK(plugin.drained.empty());
  plugin.end(old);
  plugin.clock.advance(Millis{60'000});
  CHECK(plugin.turn().empty());
  plugin.keeper.want("v1");
  CHECK(plugin.turn().size() == 1);
}

TEST_CASE("without a coordinator that answers, a new version takes over by having run for long enough") {
  KeptPlugin plugin;
  const pid_t old = plugin.serve("v1");
  plugin.keeper.want("v2");
  plugin.start_one();
  plugin.keeper.trust(plugin.clock.now());
  plugin.turn();
  CHECK(plugin.drained.empty());
  plugin.keeper.trust(plugin.clock.now() + Millis{1});
  plugin.turn();
  CHECK(plugin.drained == Pids{old});
}

TEST_CASE("a plugin whose file is gone drains, and is over with its last process") {
  KeptPlugin plugin;
  const pid_t one = plugin.serve("v1");
  plugin.keeper.remove();
  plugin.turn();
  CHECK(plugin.drained == Pids{one});
  CHECK(plugin.state() == State::kDraining);
  CHECK_FALSE(plugin.keeper.over());
  plugin.end(one, "exited with status 0");
  CHECK(plugin.keeper.over());
}

TEST_CASE("more processes start at once, of fewer those without jobs drain") {
  KeptPlugin plugin(1);
  const pid_t first = plugin.serve("v1");
  plugin.keeper.scale(3);
  const Pids more = plugin.turn();
  REQUIRE(more.size() == 2);
  plugin.keeper.has_jobs(more[1], 2);
  plugin.keeper.scale(2);
  CHECK(plugin.turn().empty());
  CHECK(plugin.drained == Pids{more[0]});
  CHECK(plugin.keeper.status().processes == Pids{first, more[1]});
  plugin.end(more[0], "exited with status 0");
  CHECK(plugin.turn().empty());  // what drained is not started again

  plugin.keeper.has_jobs(first, 1);
  plugin.keeper.scale(1);
  plugin.turn();
  CHECK(plugin.drained == Pids{more[0]});  // both work still
  plugin.keeper.has_jobs(more[1], 0);
  plugin.keeper.scale(1);
  plugin.turn();
  CHECK(plugin.drained == Pids{more[0], more[1]});
  plugin.end(more[1], "exited with status 0");
  plugin.end(first);
  plugin.clock.advance(Millis{10'000});
  CHECK(plugin.turn().size() == 1);
}

TEST_CASE("a new version starts with as many processes as the one before has now") {
  KeptPlugin plugin(1);
  plugin.serve("v1");
  plugin.keeper.scale(3);
  plugin.turn();
  plugin.keeper.want("v2");
  CHECK(plugin.turn().size() == 3);
}
