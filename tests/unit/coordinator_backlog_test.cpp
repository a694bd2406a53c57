// More comes in than can be handled: what waits unread is nobody's silence.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <sstream>

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include "support/coordinator_fixture.h"

using namespace muster;
using namespace muster::test;

namespace {

/// A connection with a socket that is read a few messages at a time.
class NarrowBus final : public Bus {
 public:
  explicit NarrowBus(MemoryBus& bus) : bus_(bus) {}

  Result<SubscriptionId> subscribe(std::string_view subject, std::string_view queue) override {
    return bus_.subscribe(subject, queue);
  }
  Result<SubscriptionId> subscribe_answers(std::string_view subject) override {
    return bus_.subscribe_answers(subject);
  }
  void unsubscribe(SubscriptionId id) override { bus_.unsubscribe(id); }
  Result<void> publish(const Outgoing& message) override { return bus_.publish(message); }
  void send() override { bus_.send(); }
  std::size_t receive(std::vector<Message>& out, std::size_t limit) override {
    bus_.receive(socket_, 100'000);
    const auto count = static_cast<std::ptrdiff_t>(std::min(limit, whole_));
    std::move(socket_.begin(), socket_.begin() + count, std::back_inserter(out));
    socket_.erase(socket_.begin(), socket_.begin() + count);
    whole_ -= static_cast<std::size_t>(count);
    return static_cast<std::size_t>(count);
  }
  bool read() override {
    if (flooded) return true;
    whole_ = std::min(whole_ + width, socket_.size());
    return whole_ > 0;
  }
  [[nodiscard]] bool drained() const override { return !flooded && socket_.empty(); }
  [[nodiscard]] BusLink link() const override { return bus_.link(); }
  [[nodiscard]] BusStatus status() const override { return bus_.status(); }
  [[nodiscard]] const std::string& inbox() const override { return bus_.inbox(); }

  bool flooded = false;      // what a read finds is of no use, and everything else waits behind it
  std::size_t width = 1000;  // messages of a read

 private:
  MemoryBus& bus_;
  std::vector<Message> socket_;
  std::size_t whole_ = 0;  // of those in the socket, how many have been read
};

struct BacklogFixture : CoordinatorFixture {
  BacklogFixture() { system.add("NS::Box", {.id = "a"}); }
  ~BacklogFixture() { coordinator.reset(); }  // before the bus

  /// Started with a worker, on a bus that can be flooded.
  void start_narrow() {
    start_discovered();
    crash();
    bus = broker.connect("coordinator");
    narrow = std::make_unique<NarrowBus>(*bus);
    auto log = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(lines));
    coordinator = std::make_unique<Coordinator>(config, *store, *narrow, clock, random, std::move(log));
    coordinator->start().value();
    finish_runs();
    events();
  }
  /// In a flood the fleet does not come to rest: the coordinator takes turns, as time passes.
  void pass(Millis by) {
    constexpr Millis kTurn{100};
    for (const auto end = clock.now() + by; clock.now() < end;) {
      clock.advance(kTurn);
      coordinator->turn();
      for (auto& worker : workers) worker->turn();
    }
  }
  void flood(Millis lasts) {
    narrow->flooded = true;
    pass(lasts);
    narrow->flooded = false;
  }
  std::size_t lost() {
    settle();
    return events("worker.lost").size();
  }
  [[nodiscard]] std::size_t said(const std::string& what) const {
    std::size_t count = 0;
    const auto text = lines.str();
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }

  std::unique_ptr<NarrowBus> narrow;
  std::ostringstream lines;
};

}  // namespace

TEST_CASE_METHOD(BacklogFixture, "a worker whose heartbeats wait behind a flood is not taken for lost") {
  start_narrow();
  flood(Millis(30'000));
  CHECK(lost() == 0);
  pass(Millis(10'000));
  CHECK(lost() == 0);
  CHECK(api("status")["jobs"]["workers_lost"] == 0);
}

TEST_CASE_METHOD(BacklogFixture, "a worker that died in a flood is lost when it had time to be heard after it") {
  start_narrow();
  workers[0]->alive = false;
  flood(Millis(30'000));
  pass(Millis(2900));
  CHECK(lost() == 0);
  pass(Millis(1000));
  CHECK(lost() == 1);
}

TEST_CASE_METHOD(BacklogFixture, "a backlog that is soon worked off delays no judgement") {
  start_narrow();
  workers[0]->alive = false;
  flood(Millis(2500));
  pass(Millis(1500));
  CHECK(lost() == 1);
  CHECK(api("status")["overloads"] == 0);
}

TEST_CASE_METHOD(BacklogFixture, "jobs end at their deadlines in a flood that does not end") {
  config.limits.job_deadline = Millis(20'000);
  start_narrow();
  workers[0]->on_job = [](const Job&) { return FakeWorker::Silent(); };
  api("discover");
  flood(Millis(60'000));
  CHECK(coordinator->idle());
  settle();
  CHECK(last_report()["problems"].dump().find("TIMEOUT") != std::string::npos);
}

TEST_CASE_METHOD(BacklogFixture, "that nobody is judged late is said now and then, and counted") {
  start_narrow();
  flood(Millis(3000));
  CHECK(said("nobody is judged late") == 0);
  pass(Millis(1000));
  flood(Millis(30'000));
  CHECK(said("nobody is judged late") == 3);
  CHECK(said("has caught up") == 0);
  pass(Millis(1000));
  CHECK(said("has caught up") == 1);
  CHECK(api("status")["overloads"] == 1);
}

TEST_CASE_METHOD(BacklogFixture, "a turn that is behind reads on, within its bounds") {
  start_narrow();
  const auto send = [&](int count) {
    for (int i = 0; i < count; ++i) user->publish({Subjects().heartbeat("NS"), {}, "x", {}}).value();
  };
  narrow->width = 10;
  send(95);
  coordinator->turn();
  CHECK(coordinator->status().malformed == 95);
  send(1000);
  coordinator->turn();
  CHECK(coordinator->status().malformed < 95 + 1000);
  for (int turns = 0; turns < 10; ++turns) coordinator->turn();
  CHECK(coordinator->status().malformed == 95 + 1000);
}
