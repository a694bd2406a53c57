// Reads that wait at a worker for a slot.
#include <catch2/catch.hpp>

#include "sdk_changes.h"

using namespace muster;
using namespace muster::test;
using muster::testing::ThingsPlugin;
using muster::testing::WorkerHarness;

namespace {

constexpr Millis kAWhile{50};

/// Accepted, with both slots taken by the jobs `a` and `b`.
struct FullWorker {
  FullWorker() {
    worker.start_accepted();
    for (const char* token : {"a", "b"}) worker.send_to_pool(worker.job(token));
  }
  Job job(const std::string& token, Millis wait = kAWhile, JobOperation operation = ListJob{}) const {
    auto job = worker.job(token, std::move(operation));
    job.wait = wait;
    return job;
  }
  void send(const std::string& token, Millis wait = kAWhile) { worker.send_to_worker(job(token, wait)); }
  [[nodiscard]] bool turned_away(const std::string& token) const { return worker.count<Busy>(token) == 1; }

  ThingsPlugin plugin;
  WorkerHarness worker{plugin, 2};
};

}  // namespace

TEST_CASE("a worker says that jobs may wait with it") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  REQUIRE(worker.announcements().size() == 1);
  CHECK(worker.announcements().front().features == std::vector<std::string>{"waiting-room"});
}

TEST_CASE_METHOD(FullWorker, "what waits for a slot gets the next one, in the order in which it came") {
  send("c");
  send("d");
  CHECK(worker.replies("c").empty());
  CHECK(worker.submitted().size() == 2);
  worker.run_one();
  REQUIRE(worker.submitted().size() == 2);
  CHECK(worker.submitted().back().token == Token("c"));
  worker.run_one();
  REQUIRE(worker.submitted().size() == 2);
  CHECK(worker.submitted().back().token == Token("d"));
  while (!worker.submitted().empty()) worker.run_one();
  for (const char* token : {"a", "b", "c", "d"}) CHECK(worker.count<JobResult>(token) == 1);
  CHECK(worker.core().counters().busy == 0);
}

TEST_CASE_METHOD(FullWorker, "who may not wait is turned away at once") {
  SECTION("it was not told to") {
    send("c", Millis{0});
  }
  SECTION("a change") {
    worker.send_to_worker(job("c", kAWhile, kCreate));
  }
  SECTION("there are as many as slots already") {
    send("d");
    send("e");
    send("c");
    CHECK(worker.replies("d").empty());
    CHECK(worker.replies("e").empty());
  }
  CHECK(turned_away("c"));
}

TEST_CASE_METHOD(FullWorker, "what has waited for its time is turned away, and has taken no slot") {
  send("c");
  send("d", Millis{80});
  worker.advance(Millis{49});
  CHECK(worker.replies("c").empty());
  worker.advance(Millis{1});
  CHECK(turned_away("c"));
  CHECK(worker.replies("d").empty());
  worker.advance(Millis{30});
  CHECK(turned_away("d"));
  CHECK(worker.core().counters().busy == 2);
  while (!worker.submitted().empty()) worker.run_one();
  CHECK(worker.count<JobResult>("c") == 0);
  send("c2");
  CHECK(worker.submitted().size() == 1);
}

TEST_CASE_METHOD(FullWorker, "nothing waits beyond its deadline") {
  auto hurried = job("c");
  hurried.deadline = Millis{20};
  worker.send_to_worker(hurried);
  worker.advance(Millis{20});
  CHECK(turned_away("c"));
}

TEST_CASE_METHOD(FullWorker, "a deadline counts from when a job came, the word that it takes long from its slot") {
  auto waits = job("c");
  waits.deadline = Millis{140};
  worker.send_to_worker(waits);
  worker.advance(Millis{40});
  worker.run_one();
  worker.advance(Millis{49});
  CHECK(worker.count<Accepted>("c") == 0);
  worker.advance(Millis{1});
  CHECK(worker.count<Accepted>("c") == 1);
  worker.run_one();
  worker.advance(Millis{50});
  worker.run_one();
  CHECK(worker.failed("c").code == Errc::kTimeout);
}

TEST_CASE_METHOD(FullWorker, "heartbeats name what runs, not what waits") {
  worker.advance(Millis{980});
  worker.heard().clear();
  send("c");
  worker.advance(Millis{20});
  REQUIRE(worker.heartbeats().size() == 1);
  CHECK(worker.heartbeats().front().running.size() == 2);
  CHECK(worker.heartbeats().front().free_slots == 0);
}

TEST_CASE_METHOD(FullWorker, "a job that waits can be cancelled") {
  send("c");
  worker.control(Cancel{{JobId("job-c"), Token("c")}});
  CHECK(worker.failed("c").code == Errc::kCancelled);
  while (!worker.submitted().empty()) worker.run_one();
  CHECK(worker.count<JobResult>("c") == 1);
  CHECK(worker.count<Busy>("c") == 0);
}

TEST_CASE_METHOD(FullWorker, "a cancelled claim leaves its slot to who waits") {
  worker.run_one();
  worker.send_to_worker(worker.job("change", kCreate));
  send("c");
  worker.control(Cancel{{JobId("job-change"), Token("change")}});
  REQUIRE(worker.submitted().size() == 2);
  CHECK(worker.submitted().back().token == Token("c"));
}

TEST_CASE_METHOD(FullWorker, "a claim that is given back leaves its slot to who waits") {
  worker.run_one();
  auto change = worker.job("change", kCreate);
  change.lease = Millis{30};
  worker.send_to_worker(change);
  send("c");
  worker.advance(Millis{30});
  REQUIRE(worker.submitted().size() == 2);
  CHECK(worker.submitted().back().token == Token("c"));
}

TEST_CASE_METHOD(FullWorker, "a worker that drains gives back what waits") {
  send("c");
  worker.control(Drain{});
  CHECK(turned_away("c"));
  send("d");
  CHECK(turned_away("d"));
  while (!worker.submitted().empty()) worker.run_one();
  CHECK(worker.count<JobResult>("c") == 0);
}

TEST_CASE_METHOD(FullWorker, "one dispatch that comes twice waits once") {
  send("c");
  send("c");
  CHECK(worker.core().counters().duplicates == 1);
  while (!worker.submitted().empty()) worker.run_one();
  CHECK(worker.count<JobResult>("c") == 1);
}
