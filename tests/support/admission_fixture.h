#pragma once

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"
#include "worker_sdk/bus/digest.h"

namespace muster::test {

/// A coordinator, and workers that answer for their manifests as the test says.
struct AdmissionFixture : CoordinatorFixture {
  /// One that has not announced itself yet.
  FakeWorker& add_silent_worker(const std::string& id, const std::string& ns = "NS") {
    const auto of = ns == "NS" ? manifest : make_manifest({}, ns);
    return *workers.emplace_back(std::make_unique<FakeWorker>(broker, clock, id, of, system));
  }
  /// The rejection that a worker with this announcement gets; its answers besides are none.
  Rejection rejection_of(FakeWorker& worker) {
    settle();
    REQUIRE(worker.answers.size() == 1);
    REQUIRE(worker.answers[0].rejected);
    CHECK_FALSE(worker.answers[0].rejected->message.empty());
    CHECK(worker.answers[0].fleet == store->fleet());
    return *worker.answers[0].rejected;
  }
  /// The subject on which the coordinator waits for the manifest of `worker`, which does not answer itself.
  std::string where_manifest_goes(FakeWorker& worker) {
    worker.alive = false;
    const auto hears = broker.connect("hears");
    hears->subscribe(Subjects(config.prefix).worker_control(worker.announcement.ns, worker.announcement.worker))
        .value();
    settle();
    std::vector<Message> heard;
    hears->receive(heard, 10);
    REQUIRE(heard.size() == 1);
    return std::string(heard[0].reply);
  }
  /// What a worker answers that sends it there.
  Job manifest_asked_for(const std::string& reply) {
    Job asked;
    asked.fleet = store->fleet();
    asked.token = Token(reply.substr(reply.rfind('.') + 1));
    return asked;
  }
  /// One that announces a thousand manifests, and sends none.
  void flood(const std::string& ns) {
    auto& worker = add_silent_worker("x", ns);
    worker.alive = false;
    for (int i = 0; i < 1000; ++i) {
      worker.announcement.manifest = sha256_hex(std::to_string(i));
      worker.announce();
    }
    settle();
  }
  Json worker_states() {
    auto states = Json::object();
    const auto answer = api("workers");
    for (const auto& worker : answer["items"]) states[worker["id"].get<std::string>()] = worker["state"];
    return states;
  }
};

}  // namespace muster::test
