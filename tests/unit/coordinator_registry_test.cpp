// Who is in the fleet: announcements, heartbeats, departures, manifests.
#include <algorithm>

#include <catch2/catch.hpp>

#include "coordinator/registry.h"
#include "worker_sdk/testing/fake_clock.h"

using namespace muster;
using Change = Registry::Change;

namespace {

struct Fleet {
  Registry registry;
  FakeClock clock;
  const FleetId fleet{"fleet"};
  const Lane lane{"NS", "default"};

  static Announcement announcement(const std::string& id, const std::string& manifest = "m1", std::uint16_t slots = 2) {
    Announcement a;
    a.worker = WorkerId(id);
    a.ns = "NS";
    a.manifest = manifest;
    a.slots = slots;
    return a;
  }
  Change join(const std::string& id, const std::string& manifest = "m1", std::uint16_t slots = 2) {
    return registry.accept(announcement(id, manifest, slots), clock.now(), clock.wall());
  }
  Change beat(const std::string& id, std::uint16_t free_slots = 2, bool draining = false) {
    Heartbeat heartbeat;
    heartbeat.worker = WorkerId(id);
    heartbeat.ns = "NS";
    heartbeat.free_slots = free_slots;
    heartbeat.draining = draining;
    return registry.heartbeat(heartbeat, clock.now());
  }
  std::vector<Registry::Departure> expire() { return registry.expire(clock.now()); }
  WorkerEntry& worker(const std::string& id) {
    auto* entry = registry.find(WorkerId(id));
    REQUIRE(entry != nullptr);
    return *entry;
  }
  std::string rejected(const Announcement& a) {
    const auto rejection = registry.judge(a, fleet);
    if (rejection) CHECK_FALSE(rejection->message.empty());
    return rejection ? rejection->code : "";
  }
  std::vector<std::string> learn(const std::string& hash, const std::string& ns = "NS", std::size_t bytes = 0) {
    Manifest manifest;
    manifest.ns = ns;
    manifest.version = hash;
    manifest.description = std::string(bytes, 'x');
    return registry.learn(hash, std::make_shared<const Manifest>(std::move(manifest)));
  }
};

Manifest manifest_of_types(std::vector<std::pair<std::string, std::string>> types) {
  Manifest manifest;
  manifest.ns = "NS";
  for (auto& [name, parent] : types) {
    manifest.types.emplace_back();
    manifest.types.back().name = std::move(name);
    manifest.types.back().parent = std::move(parent);
  }
  return manifest;
}

}  // namespace

TEST_CASE_METHOD(Fleet, "an announcement that keeps the rules is accepted") {
  auto a = announcement("w1");
  CHECK(rejected(a).empty());
  a.fleet = fleet;
  a.pool = "site-a";
  a.slots = 1024;
  CHECK(rejected(a).empty());
}

TEST_CASE_METHOD(Fleet, "an announcement that breaks a rule is rejected with its reason") {
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

TEST_CASE_METHOD(Fleet, "too many workers of one namespace keep no others out, and none for good") {
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

TEST_CASE_METHOD(Fleet, "an accepted worker is there with all it said") {
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

TEST_CASE_METHOD(Fleet, "features that nobody knows here are not kept") {
  auto wordy = announcement("w1");
  wordy.features = {"feature"};
  registry.accept(wordy, clock.now(), clock.wall());
  const auto before = registry.changes();
  CHECK(worker("w1").announcement == announcement("w1"));
  registry.accept(wordy, clock.now(), clock.wall());
  CHECK(registry.changes() == before);
}

TEST_CASE_METHOD(Fleet, "an announcement that says nothing new changes nothing") {
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

TEST_CASE_METHOD(Fleet, "a worker that announces again is the same worker") {
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

TEST_CASE_METHOD(Fleet, "a heartbeat of somebody unknown changes nothing") {
  CHECK(beat("nobody") == Change::kNone);
  CHECK(registry.find(WorkerId("nobody")) == nullptr);
}

TEST_CASE_METHOD(Fleet, "heartbeats say how many slots are free, and how the worker is") {
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

TEST_CASE_METHOD(Fleet, "a worker that is silent for three seconds is lost, once") {
  join("w1");
  join("w2");
  registry.find(WorkerId("w1"))->assigned = 2;
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

TEST_CASE_METHOD(Fleet, "a lost worker that gives a sign of life has returned") {
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

TEST_CASE_METHOD(Fleet, "a lost worker is forgotten after a while") {
  join("w1");
  clock.advance(Millis(5000));
  expire();
  clock.advance(std::chrono::minutes(5));
  CHECK(expire().empty());
  CHECK(registry.find(WorkerId("w1")) == nullptr);
  CHECK(join("w1") == Change::kJoined);
}

TEST_CASE_METHOD(Fleet, "a worker that drains takes no more jobs, and has left when it is silent") {
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
  CHECK(registry.find(WorkerId("w1")) == nullptr);
}

TEST_CASE_METHOD(Fleet, "a worker that drains does so still when it announces itself once more") {
  join("w1");
  beat("w1", 2, true);
  CHECK(join("w1") == Change::kNone);
  CHECK(worker("w1").state == WorkerState::kDraining);
  CHECK_FALSE(registry.serves(lane, ""));
}

TEST_CASE_METHOD(Fleet, "a worker of which somebody else said that it drains is active again") {
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

TEST_CASE_METHOD(Fleet, "a worker that drains does so until it has left, though it says otherwise once") {
  join("w1");
  CHECK(beat("w1", 2, true) == Change::kDraining);
  const auto before = registry.changes();
  for (const bool draining : {false, true, false}) CHECK(beat("w1", 2, draining) == Change::kNone);
  CHECK(worker("w1").state == WorkerState::kDraining);
  CHECK(registry.changes() == before);
  CHECK(registry.gone(WorkerId("w1"))->change == Change::kLeft);
  CHECK(join("w1") == Change::kJoined);
  CHECK(worker("w1").state == WorkerState::kActive);
}

TEST_CASE_METHOD(Fleet, "lanes and manifests are those of the moment, whoever comes and goes in other namespaces") {
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
  registry.gone(WorkerId("w3"));
  CHECK(names(lane) == "w1 w2 ");
  CHECK(registry.latest_manifest("NS").first == "m1");
  registry.gone(WorkerId("w1"));
  registry.gone(WorkerId("o1"));
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

TEST_CASE_METHOD(Fleet, "ten thousand workers of a namespace come and drain without a look at all for each") {
  constexpr int kMany = 10'000;
  for (int i = 0; i < kMany; ++i) join("w" + std::to_string(i));
  CHECK(registry.lane(lane).size() == kMany);
  for (int i = 0; i < kMany; ++i) CHECK(beat("w" + std::to_string(i), 2, true) == Change::kDraining);
  CHECK(registry.slots(lane) == 0);
}

TEST_CASE_METHOD(Fleet, "a worker that the server knows to be gone is lost, or has left") {
  join("w1");
  join("w2");
  beat("w2", 2, true);
  CHECK(registry.gone(WorkerId("w1"))->change == Change::kLost);
  CHECK(registry.gone(WorkerId("w2"))->change == Change::kLeft);
  CHECK_FALSE(registry.gone(WorkerId("w1")));
  CHECK_FALSE(registry.gone(WorkerId("w2")));
  CHECK_FALSE(registry.gone(WorkerId("nobody")));
  CHECK(registry.lane(lane).empty());
  CHECK(worker("w1").state == WorkerState::kLost);
  CHECK(worker("w1").free_slots == 0);
  CHECK(registry.find(WorkerId("w2")) == nullptr);
}

TEST_CASE_METHOD(Fleet, "a worker that falls silent while it drains, with jobs in its hands, is lost like any other") {
  join("w1");
  beat("w1", 0, true);
  registry.find(WorkerId("w1"))->assigned = 1;
  clock.advance(kLostAfter + Millis(1));
  const auto gone = expire();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].change == Change::kLost);
  CHECK(worker("w1").state == WorkerState::kLost);
}

TEST_CASE_METHOD(Fleet, "grace gives everybody a fresh period, but brings nobody back") {
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

TEST_CASE_METHOD(Fleet, "a worker has room until its slots are taken, or it says busy") {
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

TEST_CASE_METHOD(Fleet, "a lane's manifest is that of most of its active workers") {
  learn("m1");
  learn("m2");
  CHECK(registry.manifest_of(lane).second == nullptr);
  join("w1", "m1");
  join("w2", "m1");
  clock.advance(Millis(1000));
  join("w3", "m2");
  CHECK(registry.manifest_of(lane).first == "m1");
  CHECK(registry.manifest_of(lane).second->version == "m1");
  SECTION("of two that have the same number, the newest joined decides") {
    beat("w1", 2, true);
    CHECK(registry.manifest_of(lane).first == "m2");
  }
  SECTION("lost workers have no voice") {
    clock.advance(Millis(3100));
    beat("w3");
    expire();
    CHECK(registry.manifest_of(lane).first == "m2");
  }
  CHECK(registry.manifest_of({"NS", "other"}).second == nullptr);
}

TEST_CASE_METHOD(Fleet, "the manifest learnt last is known without any worker") {
  CHECK(registry.latest_manifest("NS").second == nullptr);
  learn("m1");
  learn("m2");
  learn("o1", "OTHER");
  CHECK(registry.latest_manifest("NS").first == "m2");
  CHECK(registry.latest_manifest("OTHER").first == "o1");
  CHECK(registry.manifest("m1")->version == "m1");
  CHECK(registry.manifest("m3") == nullptr);
}

TEST_CASE_METHOD(Fleet, "of manifests that nobody serves the newest are kept, and that which was learnt last") {
  using Hashes = std::vector<std::string>;
  registry = Registry({}, {.others = 2, .other_bytes = 100'000});
  for (const auto* hash : {"m1", "m2", "m3"}) CHECK(learn(hash).empty());
  CHECK(learn("o1", "OTHER").empty());
  join("w1", "m1");
  CHECK(learn("m4").empty());
  CHECK(learn("m5") == Hashes{"m2"});
  CHECK(registry.manifest("m2") == nullptr);
  CHECK(registry.manifest("m1") != nullptr);
  CHECK(registry.latest_manifest("NS").first == "m1");

  SECTION("a lost worker may come back, and serve what it served") {
    clock.advance(kLostAfter + Millis(1));
    expire();
    CHECK(learn("m6") == Hashes{"m3"});
    CHECK(registry.latest_manifest("NS").first == "m6");
    clock.advance(kForgetAfter);
    expire();
    CHECK(learn("m7") == Hashes{"m4", "m1"});
  }
  SECTION("a worker that has left, or serves another one, serves it no more") {
    if (GENERATE(false, true)) {
      join("w1", "m5");
    } else {
      beat("w1", 2, true);
      GENERATE(false, true) ? static_cast<void>(registry.gone(WorkerId("w1"))) : clock.advance(kLostAfter + Millis(1));
      expire();
    }
    CHECK(learn("m6").back() == "m1");
  }
  SECTION("one that is learnt once more is kept once, as the newest") {
    CHECK(learn("m3").empty());
    CHECK(registry.latest_manifest("NS").first == "m1");
    CHECK(learn("m6") == Hashes{"m4"});
    CHECK(registry.manifest("m3") != nullptr);
  }
  SECTION("large ones are fewer") {
    CHECK(learn("m6", "NS", 200'000) == Hashes{"m3"});
    CHECK(registry.manifest("m6") != nullptr);
    CHECK(learn("m7") == Hashes{"m6"});
  }
  CHECK(registry.manifest("o1") != nullptr);
}

TEST_CASE_METHOD(Fleet, "too many manifests of one namespace keep no others out, and none for good") {
  registry = Registry({}, {.served = 2});
  join("w1", "m1");
  join("w2", "m2");
  CHECK(rejected(announcement("w3", "m1")).empty());
  const auto refused = registry.judge(announcement("w3", "m3"), fleet);
  REQUIRE(refused);
  CHECK(refused->code == "LIMIT");
  CHECK_FALSE(refused->final);
  CHECK(refused->message ==
        "the workers of NS serve 2 different manifests already, as many as may be: start workers of one version and "
        "configuration of the plugin");
  auto other = announcement("x1", "m3");
  other.ns = "OTHER";
  CHECK(rejected(other).empty());
  join("w1", "m2");
  CHECK(rejected(announcement("w3", "m3")).empty());
}

TEST_CASE_METHOD(Fleet, "manifests that are served have a bound in bytes") {
  registry = Registry({}, {.served_bytes = 100'000});
  learn("m1", "NS", 60'000);
  learn("m2", "NS", 60'000);
  CHECK(rejected(announcement("w1", "m1")).empty());
  join("w1", "m1");
  CHECK(rejected(announcement("w2", "m1")).empty());
  const auto refused = registry.judge(announcement("w2", "m2"), fleet);
  REQUIRE(refused);
  CHECK(refused->code == "LIMIT");
  CHECK_FALSE(refused->final);
  CHECK(rejected(announcement("w2", "m3")).empty());  // nobody knows how large it is
}

TEST_CASE_METHOD(Fleet, "the manifest of a namespace is that of most who are there, as they come, change and go") {
  learn("m1");
  learn("m2");
  join("w1", "m1");
  CHECK(registry.latest_manifest("NS").first == "m1");
  join("w1", "m2");
  CHECK(registry.latest_manifest("NS").first == "m2");
  join("w2", "m1");
  join("w3", "m1");
  CHECK(registry.latest_manifest("NS").first == "m1");
  for (const auto* id : {"w1", "w2", "w3"}) registry.gone(WorkerId(id));
  CHECK(registry.latest_manifest("NS").first == "m2");  // learnt last
}

TEST_CASE_METHOD(Fleet, "a type is described by the manifest of most workers, and else by another that is served") {
  const auto learn_types = [&](const std::string& hash, std::vector<std::pair<std::string, std::string>> types) {
    registry.learn(hash, std::make_shared<const Manifest>(manifest_of_types(std::move(types))));
  };
  const auto types = [&] {
    std::vector<std::string> all;
    for (const auto& each : registry.types("NS")) all.push_back(each.type->name + " of " + each.hash);
    std::ranges::sort(all);
    return all;
  };
  using Names = std::vector<std::string>;
  learn_types("m1", {{"NS::A", ""}, {"NS::B", ""}});
  learn_types("m2", {{"NS::A", ""}, {"NS::C", ""}});
  CHECK(types() == Names{"NS::A of m2", "NS::C of m2"});
  CHECK_FALSE(registry.type("NS::B"));  // nobody is there, and it was learnt before
  join("w1", "m1");
  join("w2", "m1");
  join("w3", "m2");
  CHECK(types() == Names{"NS::A of m1", "NS::B of m1", "NS::C of m2"});
  CHECK(registry.type("NS::A").hash == "m1");
  REQUIRE(registry.type("NS::C"));
  CHECK(registry.type("NS::C").hash == "m2");
  CHECK(registry.type("NS::C").manifest == registry.manifest("m2"));
  CHECK(registry.type("NS::C").type->name == "NS::C");
  CHECK_FALSE(registry.type("NS::D"));
  CHECK_FALSE(registry.type("OTHER::A"));
  beat("w3", 2, true);
  CHECK_FALSE(registry.type("NS::C"));  // it takes no more jobs
}

TEST_CASE("a manifest that keeps the rules has no fault") {
  CHECK_FALSE(manifest_fault(manifest_of_types({}), "NS"));
  CHECK_FALSE(manifest_fault(manifest_of_types({{"NS::B", "NS::A"}, {"NS::A", ""}, {"NS::C::D", "NS::B"}}), "NS"));
  CHECK_FALSE(manifest_fault(manifest_of_types({{"NS::Directory", "NS::Directory"}}), "NS"));
}

TEST_CASE("a manifest that breaks a rule is refused, and the fault names the type") {
  const auto fault = [](std::vector<std::pair<std::string, std::string>> types) {
    return manifest_fault(manifest_of_types(std::move(types)), "NS").value_or("");
  };
  CHECK_THAT(fault({{"OTHER::A", ""}}), Catch::Contains("OTHER::A"));
  CHECK_THAT(fault({{"XY::A", ""}}), Catch::Contains("XY::A"));
  CHECK_THAT(fault({{"A", ""}}), Catch::Contains("'A'"));
  CHECK_THAT(fault({{"NS:A", ""}}), Catch::Contains("NS:A"));
  CHECK_THAT(fault({{"NS::A", ""}, {"NS::A", ""}}), Catch::Contains("NS::A"));
  CHECK_THAT(fault({{"NS::A", "NS::Nowhere"}}), Catch::Contains("NS::Nowhere"));
  CHECK_THAT(fault({{"NS::A", "NS::B"}, {"NS::B", "NS::A"}}), Catch::Contains("circle"));
  CHECK_THAT(fault({{"NS::" + std::string(200, 'x'), ""}}), Catch::Contains("xxx"));
  auto batch = manifest_of_types({{"NS::A", ""}});
  batch.types[0].read_batch = 1001;
  CHECK_THAT(manifest_fault(batch, "NS").value_or(""), Catch::Contains("NS::A"));
  CHECK(manifest_fault(manifest_of_types({}), "OTHER"));
  auto many = manifest_of_types({});
  many.types.resize(kMaxTypes + 1);
  CHECK_THAT(manifest_fault(many, "NS").value_or(""), Catch::Contains("4096"));
  auto deep = manifest_of_types({{"NS::A", ""}});
  deep.types[0].schema = std::string(1000, '[') + std::string(1000, ']');
  CHECK_THAT(manifest_fault(deep, "NS").value_or(""), Catch::Contains("NS::A"));
  auto configured = manifest_of_types({{"NS::A", ""}});
  configured.config_schema = deep.types[0].schema;
  CHECK_THAT(manifest_fault(configured, "NS").value_or(""), Catch::Contains("configuration"));
}

TEST_CASE("a type needs a name of its own behind the namespace") {
  CHECK(manifest_fault(manifest_of_types({{"NS::", ""}}), "NS"));
}
