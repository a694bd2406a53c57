// Who is in the fleet: announcements, heartbeats, departures.
#include "support/registry_fixture.h"

using namespace muster;
using Change = Registry::Change;
using test::RegistryFixture;

TEST_CASE_METHOD(RegistryFixture, "an announcement that keeps the rules is accepted") {
  auto a = announcement("w1");
  CHECK(rejected(a).empty());
  a.fleet = fleet;
  a.pool = "site-a";
  a.slots = 1024;
  CHECK(rejected(a).empty());
}

TEST_CASE_METHOD(RegistryFixture, "an announcement that breaks a rule is rejected with its reason") {
  auto a = announcement("w1");
  SECTION("another protocol") {
    a.protocol = 2;
    CHECK(rejected(a) == "PROTOCOL");
  }
  SECTION("namespace") {
    a.ns = GENERATE("", "no.dots", "no spaces", "*", "-x");
    CHECK(rejected(a) == "NAMESPACE");
  }
  SECTION("pool") {
    a.pool = GENERATE("", "a.b", ">");
    CHECK(rejected(a) == "NAMESPACE");
  }
  SECTION("worker id") {
    a.worker = WorkerId(GENERATE("", "a.b", "a b", "*"));
    CHECK(rejected(a) == "LIMIT");
  }
  SECTION("slots") {
    a.slots = GENERATE(std::uint16_t{0}, std::uint16_t{1025});
    CHECK(rejected(a) == "LIMIT");
  }
  SECTION("the id of a worker of another pool") {
    join("w1");
    a.pool = "site";
    CHECK(rejected(a) == "NAMESPACE");
  }
  SECTION("another fleet") {
    a.fleet = FleetId("other");
    CHECK(rejected(a) == "FLEET");
  }
}

TEST_CASE_METHOD(RegistryFixture, "an id is that of one worker in each namespace") {
  auto other = announcement("w1");
  other.ns = "OTHER";
  registry.accept(other, clock.now(), clock.wall());
  CHECK(rejected(announcement("w1")).empty());
  join("w1");
  CHECK(registry.workers().size() == 2);
  CHECK(registry.called(WorkerId("w1")).size() == 2);
  CHECK(registry.called(WorkerId("w2")).empty());
  beat("w1", 2, true);
  CHECK(worker("w1").state == WorkerState::kDraining);
  CHECK(registry.find("OTHER", WorkerId("w1"))->state == WorkerState::kActive);
  CHECK(lose("w1", "OTHER").lane.ns == "OTHER");
  CHECK(worker("w1").state == WorkerState::kDraining);
}

TEST_CASE_METHOD(RegistryFixture, "too many workers of one namespace keep no others out, and none for good") {
  registry = Registry({.all = 4, .of_namespace = 3});
  const auto of = [](const std::string& id, const std::string& ns) {
    auto a = announcement(id);
    a.ns = ns;
    return a;
  };
  for (const auto* id : {"w1", "w2", "w3"}) join(id);
  const auto refused = registry.judge(announcement("w4"), fleet);
  REQUIRE(refused);
  CHECK(refused->code == "LIMIT");
  CHECK(refused->message == "there are 3 workers of NS already, as many as may be: stop some, or give each more slots");
  CHECK_FALSE(refused->final);
  CHECK(rejected(announcement("w1")).empty());

  CHECK(rejected(of("x1", "OTHER")).empty());
  registry.accept(of("x1", "OTHER"), clock.now(), clock.wall());
  const auto full = registry.judge(of("x2", "OTHER"), fleet);
  REQUIRE(full);
  CHECK(full->message == "there are 4 workers already, as many as may be: stop some, or give each more slots");
  CHECK_FALSE(full->final);

  clock.advance(kLostAfter + Millis(1));
  expire();
  clock.advance(kForgetAfter);
  expire();
  CHECK(rejected(announcement("w4")).empty());
}

TEST_CASE_METHOD(RegistryFixture, "an accepted worker is there with all it said") {
  CHECK(join("w1", "m1", 3) == Change::kJoined);
  const auto& entry = worker("w1");
  CHECK(entry.state == WorkerState::kActive);
  CHECK(entry.free_slots == 3);
  CHECK(entry.since == clock.wall());
  CHECK(entry.announcement == announcement("w1", "m1", 3));
  CHECK(registry.lane(lane).size() == 1);
  CHECK(registry.slots(lane) == 3);
  CHECK(registry.serves(lane, ""));
  CHECK(registry.serves(lane, "m1"));
  CHECK_FALSE(registry.serves(lane, "m2"));
  CHECK_FALSE(registry.serves({"NS", "other"}, ""));
}

TEST_CASE_METHOD(RegistryFixture, "features that nobody knows here are not kept") {
  auto wordy = announcement("w1");
  wordy.features = {"feature"};
  registry.accept(wordy, clock.now(), clock.wall());
  const auto before = registry.changes();
  CHECK(worker("w1").announcement == announcement("w1"));
  registry.accept(wordy, clock.now(), clock.wall());
  CHECK(registry.changes() == before);
}

TEST_CASE_METHOD(RegistryFixture, "an announcement that says nothing new changes nothing") {
  join("w1");
  const auto before = registry.changes();
  join("w1");
  CHECK(registry.changes() == before);
  join("w1", "m1", 5);
  CHECK(registry.changes() > before);
  CHECK(registry.slots(lane) == 5);
  join("w1", "m2", 5);
  CHECK(registry.serves(lane, "m2"));
}

TEST_CASE_METHOD(RegistryFixture, "a worker that announces again is the same worker") {
  join("w1");
  const auto since = worker("w1").since;
  clock.advance(Millis(2000));
  CHECK(join("w1", "m2", 5) == Change::kNone);
  CHECK(worker("w1").since == since);
  CHECK(worker("w1").announcement.manifest == "m2");
  CHECK(registry.slots(lane) == 5);
  clock.advance(Millis(2000));
  CHECK(expire().empty());  // to announce is a sign of life
}

TEST_CASE_METHOD(RegistryFixture, "a heartbeat of somebody unknown changes nothing") {
  CHECK(beat("nobody") == Change::kNone);
  CHECK(registry.find("NS", WorkerId("nobody")) == nullptr);
}

TEST_CASE_METHOD(RegistryFixture, "heartbeats say how many slots are free, and how the worker is") {
  join("w1");
  Heartbeat heartbeat;
  heartbeat.worker = WorkerId("w1");
  heartbeat.ns = "NS";
  heartbeat.free_slots = 1;
  heartbeat.healthy = false;
  heartbeat.health = "no route to the database";
  CHECK(registry.heartbeat(heartbeat, clock.now()) == Change::kNone);
  CHECK(worker("w1").free_slots == 1);
  CHECK_FALSE(worker("w1").healthy);
  CHECK(worker("w1").health == "no route to the database");
}

TEST_CASE_METHOD(RegistryFixture, "a worker that is silent for three seconds is lost, once") {
  join("w1");
  join("w2");
  registry.find("NS", WorkerId("w1"))->assigned = 2;
  clock.advance(Millis(2900));
  beat("w2");
  CHECK(expire().empty());
  clock.advance(Millis(200));
  const auto gone = expire();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].worker == WorkerId("w1"));
  CHECK(gone[0].lane == lane);
  CHECK(gone[0].change == Change::kLost);
  CHECK(expire().empty());
  CHECK(worker("w1").state == WorkerState::kLost);
  CHECK(worker("w1").free_slots == 0);
  CHECK(worker("w1").assigned == 0);
  REQUIRE(registry.lane(lane).size() == 1);
  CHECK(registry.lane(lane)[0]->announcement.worker == WorkerId("w2"));
  CHECK(registry.slots(lane) == 2);
}

TEST_CASE_METHOD(RegistryFixture, "a lost worker that gives a sign of life has returned") {
  join("w1");
  clock.advance(Millis(5000));
  REQUIRE(expire().size() == 1);
  SECTION("by a heartbeat") {
    CHECK(beat("w1") == Change::kReturned);
  }
  SECTION("by announcing itself") {
    CHECK(join("w1") == Change::kReturned);
  }
  CHECK(worker("w1").state == WorkerState::kActive);
  CHECK(registry.serves(lane, ""));
  CHECK(expire().empty());
}

TEST_CASE_METHOD(RegistryFixture, "a lost worker is forgotten after a while") {
  join("w1");
  clock.advance(Millis(5000));
  expire();
  clock.advance(std::chrono::minutes(5));
  CHECK(expire().empty());
  CHECK(registry.find("NS", WorkerId("w1")) == nullptr);
  CHECK(join("w1") == Change::kJoined);
}

TEST_CASE_METHOD(RegistryFixture, "a worker that drains takes no more jobs, and has left when it is silent") {
  join("w1");
  CHECK(beat("w1", 2, true) == Change::kDraining);
  CHECK(beat("w1", 2, true) == Change::kNone);
  CHECK(worker("w1").state == WorkerState::kDraining);
  CHECK_FALSE(registry.serves(lane, ""));
  CHECK(registry.slots(lane) == 0);
  CHECK_FALSE(worker("w1").has_room(clock.now()));
  clock.advance(Millis(3100));
  const auto gone = expire();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].change == Change::kLeft);
  CHECK(registry.find("NS", WorkerId("w1")) == nullptr);
}

TEST_CASE_METHOD(RegistryFixture, "a worker that drains does so still when it announces itself once more") {
  join("w1");
  beat("w1", 2, true);
  CHECK(join("w1") == Change::kNone);
  CHECK(worker("w1").state == WorkerState::kDraining);
  CHECK_FALSE(registry.serves(lane, ""));
}

TEST_CASE_METHOD(RegistryFixture, "a worker of which somebody else said that it drains is active again") {
  join("w1");
  CHECK(beat("w1", 2, true) == Change::kDraining);
  for (int i = 0; i < 3; ++i) {
    clock.advance(Millis(1000));
    CHECK(beat("w1") == Change::kNone);
    CHECK_FALSE(registry.serves(lane, ""));
  }
  clock.advance(Millis(1));
  CHECK(beat("w1") == Change::kReturned);
  CHECK(worker("w1").state == WorkerState::kActive);
  CHECK(registry.serves(lane, ""));
  CHECK(beat("w1") == Change::kNone);
}

TEST_CASE_METHOD(RegistryFixture, "a worker that drains does so until it has left, though it says otherwise once") {
  join("w1");
  CHECK(beat("w1", 2, true) == Change::kDraining);
  const auto before = registry.changes();
  for (const bool draining : {false, true, false}) CHECK(beat("w1", 2, draining) == Change::kNone);
  CHECK(worker("w1").state == WorkerState::kDraining);
  CHECK(registry.changes() == before);
  CHECK(lose("w1").change == Change::kLeft);
  CHECK(join("w1") == Change::kJoined);
  CHECK(worker("w1").state == WorkerState::kActive);
}

TEST_CASE_METHOD(RegistryFixture,
                 "lanes and manifests are those of the moment, whoever comes and goes in other namespaces") {
  learn("m1");
  learn("m2");
  const auto names = [&](const Lane& of) {
    std::string all;
    for (const auto* one : registry.lane(of)) all += one->announcement.worker.value + " ";
    return all;
  };
  const auto join_other = [&](const std::string& id) {
    auto a = announcement(id, "o1");
    a.ns = "OTHER";
    registry.accept(a, clock.now(), clock.wall());
  };
  join("w2", "m1");
  join_other("o1");
  CHECK(names(lane) == "w2 ");
  join("w1", "m2");
  join("w3", "m2");
  CHECK(names(lane) == "w1 w2 w3 ");
  CHECK(registry.latest_manifest("NS").first == "m2");
  beat("w1", 2, true);
  lose("w3");
  CHECK(names(lane) == "w1 w2 ");
  CHECK(registry.latest_manifest("NS").first == "m1");
  lose("w1");
  lose("o1", "OTHER");
  CHECK(names(lane) == "w2 ");
  CHECK(names({"OTHER", "default"}).empty());
  join_other("o2");
  CHECK(names({"OTHER", "default"}) == "o2 ");
  clock.advance(kLostAfter + kForgetAfter);
  expire();
  clock.advance(kForgetAfter);
  expire();
  CHECK(registry.workers().empty());
  CHECK(names(lane).empty());
  CHECK(registry.latest_manifest("NS").first == "m2");  // learnt last
  join("w1", "m1");
  CHECK(names(lane) == "w1 ");
}

TEST_CASE_METHOD(RegistryFixture, "ten thousand workers of a namespace come and drain without a look at all for each") {
  constexpr int kMany = 10'000;
  for (int i = 0; i < kMany; ++i) join("w" + std::to_string(i));
  CHECK(registry.lane(lane).size() == kMany);
  for (int i = 0; i < kMany; ++i) CHECK(beat("w" + std::to_string(i), 2, true) == Change::kDraining);
  CHECK(registry.slots(lane) == 0);
}

TEST_CASE_METHOD(RegistryFixture, "a worker that falls silent is lost, or has left where it drained") {
  join("w1");
  join("w2");
  beat("w2", 2, true);
  CHECK(lose("w1").change == Change::kLost);
  CHECK(lose("w2").change == Change::kLeft);
  CHECK(expire().empty());
  CHECK(registry.lane(lane).empty());
  CHECK(worker("w1").state == WorkerState::kLost);
  CHECK(worker("w1").free_slots == 0);
  CHECK(registry.find("NS", WorkerId("w2")) == nullptr);
}

TEST_CASE_METHOD(RegistryFixture,
                 "a worker that falls silent while it drains, with jobs in its hands, is lost like any other") {
  join("w1");
  beat("w1", 0, true);
  registry.find("NS", WorkerId("w1"))->assigned = 1;
  clock.advance(kLostAfter + Millis(1));
  const auto gone = expire();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].change == Change::kLost);
  CHECK(worker("w1").state == WorkerState::kLost);
}

TEST_CASE_METHOD(RegistryFixture, "grace gives everybody a fresh period, but brings nobody back") {
  join("w1");
  clock.advance(Millis(5000));
  expire();
  join("w2");
  clock.advance(Millis(10'000));
  registry.grace(clock.now());
  CHECK(expire().empty());
  CHECK(worker("w1").state == WorkerState::kLost);
  clock.advance(Millis(3100));
  CHECK(expire().size() == 1);
}

TEST_CASE_METHOD(RegistryFixture, "a worker has room until its slots are taken, or it says busy") {
  join("w1", "m1", 2);
  auto& entry = worker("w1");
  CHECK(entry.has_room(clock.now()));
  entry.assigned = 2;
  CHECK_FALSE(entry.has_room(clock.now()));
  entry.assigned = 1;
  entry.full_until = clock.now() + Millis(100);
  CHECK_FALSE(entry.has_room(clock.now()));
  beat("w1", 0);
  CHECK_FALSE(entry.has_room(clock.now()));
  beat("w1", 1);  // a heartbeat that says there is room ends the pause
  CHECK(entry.has_room(clock.now()));
}
