#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "coordinator/registry.h"
#include "support/lost_worker.h"
#include "worker_sdk/testing/fake_clock.h"

namespace muster::test {

/// A registry, and the test as the workers that announce themselves to it.
struct RegistryFixture {
  using Change = Registry::Change;

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
  Registry::Departure lose(const std::string& id, const std::string& ns = "NS") {
    return test::lose(registry, {ns, WorkerId(id)}, clock.now()).at(0);
  }
  std::vector<Registry::Departure> expire() { return registry.expire(clock.now()); }
  WorkerEntry& worker(const std::string& id) {
    auto* entry = registry.find("NS", WorkerId(id));
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

}  // namespace muster::test
