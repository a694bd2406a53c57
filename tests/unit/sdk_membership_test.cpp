#include <catch2/catch.hpp>

#include "sdk_harness.h"

using namespace muster;
using muster::testing::ThingsPlugin;
using muster::testing::WorkerHarness;
using State = WorkerCore::State;

namespace {

/// Takes some subscriptions, and refuses all that come then.
class RefusingBus final : public Bus {
 public:
  RefusingBus(Bus& bus, int takes) : bus_(bus), left_(takes) {}

  Result<SubscriptionId> subscribe(std::string_view subject, std::string_view queue) override {
    if (left_-- <= 0) return Error{.code = Errc::kDisconnected, .message = "closed"};
    return bus_.subscribe(subject, queue);
  }
  Result<SubscriptionId> subscribe_answers(std::string_view subject) override {
    if (left_-- <= 0) return Error{.code = Errc::kDisconnected, .message = "closed"};
    return bus_.subscribe_answers(subject);
  }
  void unsubscribe(SubscriptionId id) override { bus_.unsubscribe(id); }
  Result<void> publish(const Outgoing& message) override {
    ++published;
    return bus_.publish(message);
  }
  void send() override { bus_.send(); }
  std::size_t receive(std::vector<Message>& out, std::size_t limit) override { return bus_.receive(out, limit); }
  bool read() override { return bus_.read(); }
  [[nodiscard]] bool drained() const override { return bus_.drained(); }
  [[nodiscard]] BusLink link() const override { return bus_.link(); }
  [[nodiscard]] BusStatus status() const override { return bus_.status(); }
  [[nodiscard]] const std::string& inbox() const override { return bus_.inbox(); }

  int published = 0;

 private:
  Bus& bus_;
  int left_;
};

}  // namespace

TEST_CASE("a worker that may not subscribe to all it has to hear says so, and does not announce itself") {
  const ThingsPlugin plugin;
  FakeClock clock;
  SeededRandom random{1};
  MemoryBroker broker(clock, random);
  muster::testing::ManualExecutor executor;
  const auto log = std::make_shared<spdlog::logger>("test");
  const auto connection = broker.connect("worker");
  int taken = 0;
  for (bool started = false; !started && taken < 100; ++taken) {
    RefusingBus bus(*connection, taken);
    WorkerCore core({.subjects = Subjects("muster"),
                     .id = WorkerId("w1"),
                     .host = "host",
                     .started = clock.wall(),
                     .secrets = {},
                     .journal = {},
                     .clock = &clock},
                    plugin, bus, random, executor, log);
    const auto start = core.start(clock.now());
    started = start.has_value();
    if (!started) CHECK(start.error().code == Errc::kDisconnected);
    CHECK(bus.published == (started ? 1 : 0));
  }
  REQUIRE(taken == 3 + 1 + 9 + 1);  // what is for it or for all, answers, $SRV; and the one that started
}

TEST_CASE("a worker that may not join the others of its pool asks again") {
  const ThingsPlugin plugin;
  FakeClock clock;
  SeededRandom random{1};
  MemoryBroker broker(clock, random);
  muster::testing::ManualExecutor executor;
  const auto connection = broker.connect("worker"), coordinator = broker.connect("coordinator");
  coordinator->subscribe("muster.announce.>").value();
  RefusingBus bus(*connection, 3 + 1 + 9);
  WorkerCore core({.subjects = Subjects("muster"),
                   .id = WorkerId("w1"),
                   .host = "host",
                   .started = clock.wall(),
                   .secrets = {},
                   .journal = {},
                   .clock = &clock},
                  plugin, bus, random, executor, std::make_shared<spdlog::logger>("test"));
  core.start(clock.now()).value();
  std::vector<Message> batch;
  coordinator->receive(batch, 10);
  REQUIRE(batch.size() == 1);
  const AnnouncementReply accepted{
      .fleet = FleetId("fleet"), .coordinator = CoordinatorId("c1"), .rejected = {}, .features = {}};
  coordinator->publish({std::string(batch[0].reply), {}, encode(accepted), {}}).value();
  batch.clear();
  bus.receive(batch, 10);
  REQUIRE(batch.size() == 1);
  core.handle(batch[0], clock.now());
  CHECK(core.state() == State::kAnnouncing);
  CHECK(core.next_due() == clock.now() + Millis{1000});
}

TEST_CASE("a worker that is accepted again is in its pool once, and one that drains is not again") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 16);
  worker.start_accepted();
  worker.call_roll();
  worker.accept();
  for (int i = 0; i < 16; ++i) worker.send_to_pool(worker.job("t" + std::to_string(i)));
  CHECK(worker.submitted().size() == 16);
  worker.control(Drain{});
  worker.accept();
  CHECK(worker.core().state() == State::kDraining);
}

TEST_CASE("a worker announces itself until it is answered, then joins and beats") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 3);
  worker.start();
  REQUIRE(worker.announcements().size() == 1);
  const Announcement said = worker.announcements().front();
  CHECK(said.worker == WorkerId("w1"));
  CHECK(said.ns == "TH");
  CHECK(said.pool == "default");
  CHECK(said.protocol == kProtocolMajor);
  CHECK(said.plugin == "things");
  CHECK(said.version == "1.2.3");
  CHECK(said.slots == 3);
  CHECK(said.manifest.size() == 64);
  CHECK(said.fleet.empty());

  worker.advance(Millis{2500});
  CHECK(worker.announcements().size() == 3);
  CHECK(worker.heartbeats().empty());
  CHECK(worker.core().state() == State::kAnnouncing);

  worker.accept();
  CHECK(worker.core().state() == State::kActive);
  worker.heard().clear();
  worker.advance(Millis{3000});
  CHECK(worker.announcements().empty());
  CHECK(worker.heartbeats().size() == 3);
  CHECK(worker.heartbeats().back().free_slots == 3);
}

TEST_CASE("a job sent to the pool before the worker is accepted does not reach it, one to itself is busy") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  worker.send_to_pool(worker.job("a"));
  CHECK(worker.replies("a").empty());
  worker.send_to_worker(worker.job("b"));
  CHECK(worker.count<Busy>("b") == 1);
}

TEST_CASE("a final rejection ends the worker and its log says why") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  worker.reject({.code = "PROTOCOL", .message = "speak version 2", .final = true});
  CHECK(worker.core().state() == State::kRejected);
  CHECK(worker.core().ended());
  CHECK(worker.logged().find("speak version 2") != std::string::npos);
  worker.heard().clear();
  worker.advance(Millis{5000});
  CHECK(worker.heard().empty());
}

TEST_CASE("a worker whose plugin cannot initialize has ended within that turn, for nothing would wake it") {
  ThingsPlugin plugin;
  plugin.initialize([](InitializeContext&) -> Result<void> { return unavailable("no route to the database"); });
  WorkerHarness worker(plugin);
  worker.start();
  const Work work = std::move(worker.submitted().front());
  worker.core().complete(work.token, work.run(), worker.now());
  worker.core().tick(worker.now());
  CHECK(worker.core().state() == State::kFailed);
}

TEST_CASE("another rejection makes it ask again, ever more seldom") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  const auto asked_after = [&] {
    worker.reject({.code = "LIMIT", .message = "too many workers"});
    worker.heard().clear();
    const TimePoint begin = worker.now();
    while (worker.announcements().empty()) worker.advance(Millis{100});
    return std::chrono::duration_cast<Millis>(worker.now() - begin);
  };
  CHECK(asked_after() == Millis{1000});
  CHECK(asked_after() == Millis{2000});
  CHECK(asked_after() == Millis{4000});
  worker.accept();
  CHECK(worker.core().state() == State::kActive);
  worker.call_roll();
  CHECK(asked_after() == Millis{1000});  // what was before is past
}

TEST_CASE("an active worker that is rejected leaves the group, and comes back when it is accepted") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.call_roll();
  worker.reject({.code = "MANIFEST", .message = "unknown type"});
  CHECK(worker.core().state() == State::kAnnouncing);
  worker.send_to_pool(worker.job("a"));
  CHECK(worker.replies("a").empty());
  worker.heard().clear();
  worker.advance(Millis{1500});
  CHECK(worker.heartbeats().empty());
  worker.accept();
  worker.send_to_pool(worker.job("b"));
  CHECK(worker.submitted().size() == 1);
}

TEST_CASE("an active worker takes no rejection that it has not asked for") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  worker.accept();
  for (const bool final : {false, true}) {
    worker.reject({.code = "PROTOCOL", .message = "speak version 2", .final = final});
    CHECK(worker.core().state() == State::kActive);
  }
  CHECK(worker.core().counters().foreign == 2);
  worker.send_to_pool(worker.job("a"));
  CHECK(worker.submitted().size() == 1);
}

TEST_CASE("who leaves the group gets none of its jobs any more") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.call_roll();
  SECTION("rejected for the time being") {
    worker.reject({.code = "LIMIT", .message = "too many workers"});
  }
  SECTION("rejected for good") {
    worker.reject({.code = "PROTOCOL", .message = "speak version 2", .final = true});
  }
  SECTION("drained") {
    worker.control(Drain{});
    worker.advance(Millis{251});
  }
  const auto other = worker.broker().connect("other");
  other->subscribe(worker.subjects().job("TH", "default"), kWorkersGroup).value();
  for (int i = 0; i < 16; ++i) worker.send_to_pool(worker.job("t" + std::to_string(i)));
  std::vector<Message> got;
  CHECK(other->receive(got, 100) == 16);
}

TEST_CASE("a worker that is rejected says that it has its jobs until they are done, and then nothing") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.call_roll();
  worker.reject({.code = "LIMIT", .message = "too many workers"});
  worker.heard().clear();
  worker.advance(Millis{3000});
  REQUIRE(worker.heartbeats().size() >= 3);
  CHECK(worker.heartbeats().back().running.size() == 1);
  worker.run_one();
  CHECK(worker.count<JobResult>("a") == 1);
  worker.advance(Millis{1000});
  worker.heard().clear();
  worker.advance(Millis{2000});
  CHECK(worker.heartbeats().empty());
  CHECK(worker.core().next_due() > worker.now());
}

TEST_CASE("to be told to drain once more keeps no worker") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.control(Drain{});
  worker.advance(Millis{200});
  worker.control(Drain{});
  worker.advance(Millis{51});
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("a worker whose announcement nobody hears takes that for no answer") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.coordinator_bus().disconnect();
  worker.start();
  worker.advance(Millis{1500});
  CHECK(worker.core().counters().malformed == 0);
  worker.coordinator_bus().reconnect();
  worker.advance(Millis{1000});
  REQUIRE(worker.announcements().size() == 1);
  worker.send(worker.last_reply_of(worker.subjects().announce("TH")), "garbage");
  CHECK(worker.core().counters().malformed == 1);
  CHECK(worker.core().state() == State::kAnnouncing);
}

TEST_CASE("a roll call is answered by announcing again, spread over 250 ms, naming what runs") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.call_roll();
  REQUIRE(worker.announcements().size() == 1);
  CHECK(worker.announcements().front().running == std::vector<Running>{{JobId("job-a"), Token("a")}});
  CHECK(worker.announcements().front().fleet == worker.fleet());
}

TEST_CASE("after a reconnect the worker announces again") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.worker_bus().disconnect();
  worker.advance(Millis{2000});
  CHECK(worker.core().counters().unsent >= 2);
  CHECK(worker.core().state() == State::kActive);
  worker.heard().clear();
  worker.worker_bus().reconnect();
  worker.turn();
  worker.advance(Millis{251});
  CHECK(worker.announcements().size() == 1);
}

TEST_CASE("heartbeats name running jobs and free slots") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 2);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.advance(Millis{1000});
  const Heartbeat beat = worker.heartbeats().back();
  CHECK(beat.worker == WorkerId("w1"));
  CHECK(beat.ns == "TH");
  CHECK(beat.pool == "default");
  CHECK(beat.free_slots == 1);
  CHECK(beat.running == std::vector<Running>{{JobId("job-a"), Token("a")}});
  CHECK_FALSE(beat.draining);
}

TEST_CASE("a worker that was stopped for a while does not make up for the heartbeats that it left out") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.advance(Millis{1000});
  worker.stall(Millis{20'000});
  worker.heard().clear();
  for (int i = 0; i < 5; ++i) worker.turn();
  CHECK(worker.heartbeats().size() == 2);  // that it is there, and as always
  CHECK(worker.core().next_due() > worker.now());
}

TEST_CASE("a drain answers busy, finishes its own jobs, says so and leaves") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.heard().clear();
  worker.control(Drain{});
  REQUIRE(worker.core().state() == State::kDraining);
  REQUIRE(worker.heartbeats().size() == 1);
  CHECK(worker.heartbeats().back().draining);
  CHECK(worker.heartbeats().back().free_slots == 0);
  worker.send_to_pool(worker.job("late"));
  CHECK(worker.count<Busy>("late") == 1);
  worker.advance(Millis{20'000});  // a drain by the coordinator has no limit of its own
  CHECK(worker.core().state() == State::kDraining);
  worker.send_to_pool(worker.job("later"));  // the worker is no member any more
  CHECK(worker.replies("later").empty());
  worker.run_one();
  CHECK(std::holds_alternative<ListResult>(worker.result("a")));
  CHECK(worker.core().state() == State::kDrained);
  CHECK(worker.heartbeats().back().running.empty());
}

TEST_CASE("an idle worker drains at once, but stays long enough to answer what is on its way") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.core().drain(worker.now(), Millis{10'000});
  worker.turn();
  CHECK(worker.core().state() == State::kDraining);
  worker.advance(Millis{300});
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("a worker that nobody accepted drains at once") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  worker.core().drain(worker.now(), Millis{10'000});
  worker.turn();
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("a worker that drains before it hears whether it was accepted says that it leaves") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  REQUIRE(worker.announcements().size() == 1);
  worker.core().drain(worker.now(), std::nullopt);
  worker.turn();
  REQUIRE(worker.heartbeats().size() == 1);
  CHECK(worker.heartbeats().back().draining);
  CHECK(worker.heartbeats().back().free_slots == 0);
}

TEST_CASE("a drain with a limit stops what still runs and answers for it") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("obeys"));
  worker.send_to_pool(worker.job("ignores"));
  worker.core().drain(worker.now(), Millis{10'000});
  worker.advance(Millis{8500});
  REQUIRE(worker.core().state() == State::kDraining);
  CHECK(worker.core().next_due() > worker.now());
  worker.complete_one(ListResult{});
  CHECK(worker.failed("obeys").code == Errc::kServiceUnavailable);
  worker.advance(Millis{1500});
  CHECK(worker.core().state() == State::kDrained);
  CHECK(worker.failed("ignores").code == Errc::kServiceUnavailable);
  CHECK(worker.core().runs_plugin_code());
}

TEST_CASE("of several limits of a drain the earliest counts") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("ignores"));
  worker.core().drain(worker.now(), Millis{10'000});
  worker.advance(Millis{5000});
  worker.core().drain(worker.now(), Millis{10'000});
  worker.advance(Millis{4999});
  CHECK(worker.core().state() == State::kDraining);
  worker.advance(Millis{1});
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("a drain that gives up its jobs answers none of them twice") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 2);
  worker.start_accepted();
  worker.send_to_pool(worker.job("stuck"));
  worker.control(Cancel{{JobId("job-stuck"), Token("stuck")}});
  worker.advance(Millis{10'000});
  REQUIRE(worker.failed("stuck").code == Errc::kTimeout);
  worker.send_to_pool(worker.job("ignores"));
  worker.core().drain(worker.now(), Millis{5000});
  worker.advance(Millis{5000});
  REQUIRE(worker.core().state() == State::kDrained);
  CHECK(worker.count<JobResult>("stuck") == 1);
  CHECK(worker.failed("ignores").code == Errc::kServiceUnavailable);
}

TEST_CASE("a drain without a limit does not wait for a slot that is stuck") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 2);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.control(Cancel{{JobId("job-a"), Token("a")}});
  worker.advance(Millis{10'000});
  REQUIRE(worker.failed("a").code == Errc::kTimeout);
  worker.control(Drain{});
  worker.advance(Millis{1000});
  CHECK(worker.core().state() == State::kDrained);
  CHECK(worker.core().runs_plugin_code());
}

TEST_CASE("a worker that drains has drained also where its last job is stuck") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 1);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.control(Drain{});
  worker.control(Cancel{{JobId("job-a"), Token("a")}});
  worker.advance(Millis{10'000});
  CHECK(worker.failed("a").code == Errc::kTimeout);
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("the manifest is sent to who asks for it by hash, in parts where it is large") {
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  for (int i = 0; i < 200; ++i) {
    plugin.type({.name = "TH::Thing" + std::to_string(i)}).read([](const ReadRequest&, JobContext&) {
      return Result<Resource>(not_found());
    });
  }
  WorkerHarness worker(plugin);
  worker.broker().set_max_payload(4096);
  worker.start();
  const std::string hash = worker.announcements().front().manifest;
  worker.control(SendManifest{hash}, worker.reply_subject(Token("m")));
  Bytes whole;
  const auto replies = worker.replies("m");
  REQUIRE(replies.size() > 2);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto& part = std::get<Part>(replies[i].body);
    CHECK(part.index == i);
    CHECK(part.count == replies.size());
    CHECK(replies[i].token == Token("m"));
    whole += part.data;
  }
  const auto reply = decode<JobReply>(whole).value();
  CHECK(decode<Manifest>(std::get<ManifestBytes>(reply.body).encoded).value() == plugin.manifest());

  worker.control(SendManifest{"other"}, worker.reply_subject(Token("n")));
  CHECK(worker.failed("n").code == Errc::kNotFound);
}

TEST_CASE("$SRV shows the worker as a micro service") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  const auto ask = [&](const std::string& subject) {
    const std::string inbox = worker.coordinator_bus().inbox() + ".srv";
    worker.heard().clear();
    worker.send(subject, "{}", inbox);
    worker.advance(Millis{51});
    for (const auto& message : worker.heard()) {
      if (message.subject == inbox) return Json::parse(message.data);
    }
    return Json();
  };
  const Json ping = ask("$SRV.PING");
  CHECK(ping["type"] == "io.nats.micro.v1.ping_response");
  CHECK(ping["name"] == "muster-things");
  CHECK(ping["id"] == "w1");
  CHECK(ping["version"] == "1.2.3");
  CHECK(ping["metadata"] == Json{{"namespace", "TH"}, {"pool", "default"}, {"plugin", "things"}});

  const Json info = ask("$SRV.INFO.muster-things");
  CHECK(info["type"] == "io.nats.micro.v1.info_response");
  CHECK(info["description"].is_string());
  CHECK(info["endpoints"][0]["name"] == "job");
  CHECK(info["endpoints"][0]["subject"] == "muster.job.TH");
  CHECK(info["endpoints"][0]["queue_group"] == "workers");

  worker.send_to_pool(worker.job("a"));
  worker.advance(Millis{20});
  worker.run_one();
  worker.send_to_pool(worker.job("b"));
  worker.complete_one(failure(Errc::kNetwork, "cable"));
  worker.send(worker.subjects().job("TH", "default"), "garbage");
  const Json stats = ask("$SRV.STATS.muster-things.w1");
  CHECK(stats["type"] == "io.nats.micro.v1.stats_response");
  CHECK(stats["started"].is_string());
  const Json& endpoint = stats["endpoints"][0];
  CHECK(endpoint["num_requests"] == 2);
  CHECK(endpoint["num_errors"] == 1);
  CHECK(endpoint["last_error"] == "cable");
  CHECK(endpoint["processing_time"] == 20'000'000);
  CHECK(endpoint["average_processing_time"] == 10'000'000);
  CHECK(endpoint["data"]["malformed"] == 1);
  CHECK(endpoint["data"]["dropped"] == 0);
  CHECK(ask("$SRV.PING.muster-things.other").is_null());

  Job refused = worker.job("c");
  refused.target.config = {R"({"x":null})", {{"/x", {{SecretPart::Kind::kEnv, std::string(10'000, 'X')}}}}};
  worker.send_to_pool(refused);
  worker.run_one();
  const auto last = ask("$SRV.STATS.muster-things.w1")["endpoints"][0]["last_error"].get<std::string>();
  CHECK_THAT(last, Catch::Contains("XXX"));
  CHECK(last.size() <= 4096);

  for (const char* place : {"muster.result.TH", "muster.heartbeat.TH", "$JS.API.INFO"}) {
    worker.heard().clear();
    worker.send("$SRV.PING", "{}", place);
    worker.advance(Millis{51});
    for (const auto& message : worker.heard()) CHECK(message.data.find("ping_response") == std::string::npos);
  }
  CHECK(worker.core().counters().malformed == 4);

  constexpr std::uint64_t kHeld = 65'536;  // by a subscription that nobody reads
  for (std::uint64_t i = 0; i < kHeld + 3; ++i) {
    worker.coordinator_bus().publish({worker.subjects().job("TH", "default"), {}, "garbage", {}}).value();
  }
  for (std::uint64_t read = 0; read < kHeld; read += 4000) worker.turn();
  CHECK(ask("$SRV.STATS.muster-things.w1")["endpoints"][0]["data"]["dropped"] == 3);
}

TEST_CASE("of very many questions at once a worker answers some") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  const std::string inbox = worker.coordinator_bus().inbox() + ".srv";
  for (int i = 0; i < 600; ++i) worker.send("$SRV.PING", "{}", inbox);
  worker.advance(Millis{51});
  const auto answers = std::count_if(worker.heard().begin(), worker.heard().end(),
                                     [&](const WorkerHarness::Heard& it) { return it.subject == inbox; });
  CHECK(answers >= 256);
  CHECK(answers < 400);
}
