// How workers come, are refused, fall silent and go: from the announcement to the events.
#include <catch2/catch.hpp>

#include "support/admission_fixture.h"

using namespace muster;
using test::AdmissionFixture;

TEST_CASE_METHOD(AdmissionFixture, "a rejection is an event when it is news, and again after the worker was accepted") {
  start();
  auto& worker = add_silent_worker("w1");
  const auto announce = [&](std::uint16_t slots) {
    worker.announcement.slots = slots;
    worker.announce();
    advance(Millis(500));
  };
  const auto rejections = [&] { return events("worker.rejected").size(); };
  announce(0);
  announce(0);
  CHECK(worker.answers.size() > 1);
  CHECK(rejections() == 1);
  announce(2000);  // for another reason
  CHECK(rejections() == 1);
  announce(1);
  REQUIRE(worker.accepted());
  announce(2000);
  CHECK(rejections() == 1);
}

TEST_CASE_METHOD(AdmissionFixture, "a worker has joined once, and again when it was lost") {
  start();
  auto& worker = add_worker("w1");
  advance(Millis(500));
  const auto joined = [&] { return events("worker.joined").size(); };
  CHECK(joined() == 1);
  worker.announce();
  advance(Millis(500));
  CHECK(joined() == 0);
  worker.alive = false;
  advance(kLostAfter + Millis(1000));
  REQUIRE(worker_states() == Json{{"w1", "lost"}});
  worker.announce();
  advance(Millis(500));
  CHECK(joined() == 1);
}

TEST_CASE_METHOD(AdmissionFixture, "the last rejections of some thousand workers are remembered, not more") {
  start();
  auto& worker = add_silent_worker("w1");
  worker.announcement.slots = 0;
  const auto announce = [&](const std::string& id, const std::string& ns) {
    worker.announcement.worker = WorkerId(id);
    worker.announcement.ns = ns;
    worker.announce();
  };
  announce("first", "NS");
  settle();
  for (int i = 0; i < 5000; ++i) {  // no more of a namespace than are told
    announce("w" + std::to_string(i), "NS" + std::to_string(i / 50));
    if (i % 500 == 0) advance(Millis(100));
  }
  advance(Millis(500));
  CHECK(events("worker.rejected").size() == 5001);
  announce("first", "NS");
  announce("w4999", "NS99");
  advance(Millis(500));
  const auto told = events("worker.rejected");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["subject"] == "first");
}

TEST_CASE_METHOD(AdmissionFixture, "an incompatible worker is told why, and gets no job") {
  start();
  auto& other = add_silent_worker("w1");
  std::string code;
  SECTION("protocol") {
    other.announcement.protocol = 2;
    code = "PROTOCOL";
  }
  SECTION("fleet") {
    other.announcement.fleet = FleetId("another");
    code = "FLEET";
  }
  SECTION("slots") {
    other.announcement.slots = 0;
    code = "LIMIT";
  }
  other.announce();
  settle();
  CHECK(rejection_of(other).code == code);
  finish_runs();
  CHECK(other.jobs.empty());
  CHECK(last_report()["problems"][0]["code"] == "NO_WORKER");
}

TEST_CASE_METHOD(AdmissionFixture, "a coordinator calls the roll when it starts") {
  auto& worker = add_worker("w1");
  settle();
  worker.answers.clear();  // nobody was there
  start();
  CHECK(worker.rollcalls == 1);
  CHECK(worker.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "a heartbeat of an unknown worker has the roll called") {
  auto& worker = add_worker("w1");
  worker.alive = false;
  start();
  advance(Millis(5000));
  CHECK(worker_states().empty());
  worker.alive = true;
  advance(Millis(3000));
  CHECK(worker.accepted());
  CHECK(worker_states() == Json{{"w1", "active"}});
  CHECK(coordinator->status().unknown_workers == 1);
}

TEST_CASE_METHOD(AdmissionFixture, "a reconnected coordinator begins anew, and judges nobody for the time between") {
  start_discovered();
  events();
  const auto stream = broker.connect("stream");
  REQUIRE(stream->subscribe("$JS.API.STREAM.CREATE.*"));
  bus->disconnect();
  advance(Millis(10'000));
  bus->reconnect();
  advance(Millis(1000));
  CHECK(workers[0]->rollcalls == 2);
  std::vector<Message> asked;
  CHECK(stream->receive(asked, 10) == 1);  // there may be one by now
  CHECK(worker_states() == Json{{"w1", "active"}});
  CHECK(events("worker.lost").empty());
}

TEST_CASE_METHOD(AdmissionFixture, "a silent worker is lost, and comes back with a sign of life") {
  start_discovered();
  events();
  workers[0]->alive = false;
  advance(Millis(4500));
  CHECK(worker_states() == Json{{"w1", "lost"}});
  auto seen = events("worker.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["type"] == "muster.worker.lost");
  CHECK(seen[0]["subject"] == "w1");
  workers[0]->alive = true;
  advance(Millis(1500));
  CHECK(worker_states() == Json{{"w1", "active"}});
  seen = events("worker.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["type"] == "muster.worker.joined");
}

TEST_CASE_METHOD(AdmissionFixture, "a worker that is told to drain says so, and has left when it is gone") {
  start_discovered();
  events();
  CHECK(api("workers-drain", {{"id", "w1"}})["state"] == "draining");
  REQUIRE(workers[0]->draining);
  advance(Millis(1500));
  CHECK(worker_states() == Json{{"w1", "draining"}});
  remove_worker("w1");
  advance(Millis(4000));
  CHECK(worker_states().empty());
  std::vector<std::string> types;
  for (const auto& event : events("worker.")) types.push_back(event["type"]);
  CHECK(types == std::vector<std::string>{"muster.worker.draining", "muster.worker.left"});
}

TEST_CASE_METHOD(AdmissionFixture, "a stall of the coordinator is not held against the workers") {
  start_discovered();
  events();
  clock.advance(std::chrono::minutes(2));
  advance(Millis(1000));
  CHECK(worker_states() == Json{{"w1", "active"}});
  CHECK(events("worker.").empty());
}

TEST_CASE_METHOD(AdmissionFixture, "what a worker has is not given to another after a stall of both") {
  system.add("NS::Box", {.id = "a"});
  start_discovered();
  workers[0]->on_job = [](const Job& job) -> test::FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation)) return test::FakeWorker::Hold{};
    return {};
  };
  workers[0]->jobs.clear();
  api("discover");
  advance(Millis(500));
  REQUIRE(workers[0]->asked<ListJob>().size() == 1);
  events();
  if (GENERATE(false, true)) {
    clock.advance(Millis(10'000));
  } else {
    bus->disconnect();
    advance(Millis(10'000));
    bus->reconnect();
  }
  advance(Millis(3000));
  CHECK(workers[0]->asked<ListJob>().size() == 1);
  CHECK(events("job.").empty());
}

TEST_CASE_METHOD(AdmissionFixture, "where there are workers it is soon looked whether they still are") {
  start_discovered();
  CHECK(coordinator->next_due() <= clock.now() + Millis(250));
}

TEST_CASE_METHOD(AdmissionFixture,
                 "where there are none, parts of a result that do not come are looked after all the same") {
  start();
  auto& worker = add_silent_worker("w1");
  Job job;
  job.fleet = store->fleet();
  job.id = JobId("j");
  job.token = Token("t");
  worker.send_late_parts(job, MutationResult{}, {0});
  settle();
  CHECK(coordinator->next_due() <= clock.now() + Millis(250));
}
