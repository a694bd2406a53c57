#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "sdk_harness.h"
#include "support/scratch.h"

using namespace muster;
using muster::testing::WorkerHarness;
using State = WorkerCore::State;

namespace {

/// Serves things, and counts what is called of its life.
struct LivelyPlugin : Plugin {
  LivelyPlugin() : Plugin({.name = "things", .ns = "TH", .version = "1.2.3"}) { muster::testing::add_things(*this); }

  LivelyPlugin& initializes() {
    initialize([this](InitializeContext& context) {
      ++initialized;
      stop = context.stop_token();
      return answer;
    });
    return *this;
  }
  LivelyPlugin& checks_health() {
    health([this](Context& context) {
      ++checked;
      stop = context.stop_token();
      return answer;
    });
    return *this;
  }
  LivelyPlugin& cleans_up() {
    cleanup([this](Context& context) {
      ++cleaned;
      stop = context.stop_token();
    });
    return *this;
  }

  int initialized = 0, checked = 0, cleaned = 0;
  std::stop_token stop;  // of the last call
  Result<void> answer;   // of the next ones
};

bool says(const WorkerHarness& worker, std::string_view text) {
  return worker.logged().find(text) != std::string::npos;
}

Heartbeat last_beat(const WorkerHarness& worker) {
  return worker.heartbeats().back();
}

/// A directory, and a variable of the environment, that hold credentials.
struct Credentials : test::Scratch {
  Credentials() {
    std::ofstream(path / "TH_FILED") << "filed-value\n";
    ::setenv("TH_TOKEN", "token-value", 1);
    ::setenv("TH_FILED", "hidden by the file", 1);
    ::setenv("TH_OTHER", "other-value", 1);
  }
  ~Credentials() {
    for (const char* name : {"TH_TOKEN", "TH_FILED", "TH_OTHER"}) ::unsetenv(name);
  }

  [[nodiscard]] SecretPolicy policy() const {
    return {.env = {"TH_TOKEN", "TH_FILED"}, .files = {}, .secret_dir = path};
  }
};

}  // namespace

TEST_CASE("a plugin is initialized once, before anybody hears of the worker") {
  LivelyPlugin plugin;
  plugin.initializes();
  WorkerHarness worker(plugin);
  worker.start();
  worker.send(worker.subjects().rollcall(), encode(RollCall{worker.fleet(), worker.coordinator()}));
  worker.worker_bus().disconnect();
  worker.worker_bus().reconnect();
  worker.advance(Millis{5000});
  CHECK(worker.heard().empty());
  CHECK(worker.core().state() == State::kInitializing);
  CHECK(worker.core().next_due() > worker.now());  // nothing is due: the loop sleeps
  worker.send_to_worker(worker.job("a"));
  CHECK(worker.count<Busy>("a") == 1);
  worker.heard().clear();

  worker.run_life();
  CHECK(plugin.initialized == 1);
  CHECK(worker.announcements().size() == 1);
  worker.accept();
  worker.send_to_pool(worker.job("b"));
  worker.run_one();
  CHECK(worker.count<JobResult>("b") == 1);
  worker.call_roll();
  worker.reject({.code = "LIMIT", .message = "too many workers"});
  worker.advance(Millis{60'000});
  CHECK(plugin.initialized == 1);
}

TEST_CASE("a worker whose plugin cannot initialize says why, and is never announced") {
  LivelyPlugin plugin;
  plugin.initializes().cleans_up();
  WorkerHarness worker(plugin);
  SECTION("an error") {
    plugin.answer = access_denied("TH_TOKEN is refused: ask the administrator of things for another");
    worker.start();
    worker.run_life();
    CHECK(says(worker, "code=ACCESS_DENIED: TH_TOKEN is refused: ask the administrator of things for another"));
  }
  SECTION("an exception") {
    plugin.initialize([](InitializeContext&) -> Result<void> { throw std::runtime_error("the floor is lava"); });
    worker.start();
    worker.run_life();
    CHECK(says(worker, "code=INTERNAL_FAILURE: plugin things, initialize: the floor is lava"));
  }
  SECTION("something else thrown") {
    plugin.initialize([](InitializeContext&) -> Result<void> { throw 42; });
    worker.start();
    worker.run_life();
    CHECK(says(worker, "plugin things, initialize: threw something that is no std::exception"));
  }
  CHECK(worker.core().state() == State::kFailed);
  CHECK(worker.core().ended());
  worker.advance(Millis{5000});
  CHECK(worker.heard().empty());
  CHECK_FALSE(worker.life_waits());
  CHECK(plugin.cleaned == 0);
}

TEST_CASE("initialize is given 60 s") {
  std::stop_token stop;
  LivelyPlugin plugin;
  plugin.initialize([&](InitializeContext& context) -> Result<void> {
    stop = context.stop_token();
    return {};
  });
  WorkerHarness worker(plugin);
  worker.start();
  Work hangs = std::move(worker.submitted().front());
  worker.submitted().clear();
  worker.advance(Millis{59'999});
  CHECK(worker.core().state() == State::kInitializing);
  CHECK(worker.core().next_due() == worker.now() + Millis{1});  // nothing else wakes it
  worker.advance(Millis{1});
  CHECK(worker.core().state() == State::kFailed);
  CHECK(worker.core().runs_plugin_code());
  CHECK(says(worker, "initialize has not returned for 60 s"));
  CHECK(worker.heard().empty());
  hangs.run();
  CHECK(stop.stop_requested());
}

TEST_CASE("a worker that is told to drain while it initializes stops that first") {
  LivelyPlugin plugin;
  plugin.initializes().cleans_up();
  WorkerHarness worker(plugin);
  worker.start();
  worker.core().drain(worker.now(), Millis{9500});
  CHECK(worker.core().state() == State::kCleaning);  // at once: it must not be announced any more
  SECTION("it is initialized all the same: cleaned up") {
    worker.run_life();
    CHECK(plugin.stop.stop_requested());
    CHECK_FALSE(worker.core().ended());
    worker.run_life();
    CHECK(plugin.cleaned == 1);
  }
  SECTION("it is not: there is nothing to clean up") {
    plugin.answer = failure(Errc::kCancelled, "stopped");
    worker.run_life();
    CHECK_FALSE(worker.life_waits());
  }
  SECTION("it does not return") {
    CHECK(worker.core().next_due() == worker.now() + Millis{4000});
    worker.advance(Millis{4000});
    CHECK(says(worker, "initialize has not returned for 4 s"));
    CHECK_FALSE(says(worker, "cleanup"));  // there is nothing to clean up
    CHECK(worker.core().runs_plugin_code());
  }
  CHECK(worker.core().state() == State::kDrained);
  CHECK(worker.heard().empty());
}

TEST_CASE("initialize gets settings from the environment, and the credentials that the worker's operator allows") {
  const Credentials credentials;
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  muster::testing::add_things(plugin);
  std::optional<std::string> setting, unset;
  std::vector<Result<std::string>> given;
  plugin.initialize([&](InitializeContext& context) -> Result<void> {
    setting = context.env("TH_OTHER");
    unset = context.env("TH_UNSET");
    for (const char* name : {"TH_TOKEN", "TH_FILED", "TH_OTHER", "TH_UNSET", "../TH_FILED"}) {
      given.push_back(context.credential(name));
    }
    context.log().info("the token is {}", *given.front());
    return given[2].error();
  });
  WorkerHarness worker(plugin, 2, credentials.policy());
  worker.start();
  worker.run_life();
  CHECK(setting == "other-value");
  CHECK_FALSE(unset);
  CHECK(given[0].value() == "token-value");
  CHECK(given[1].value() == "filed-value");
  for (const std::size_t refused : {2U, 3U, 4U}) CHECK(given[refused].error().code == Errc::kAccessDenied);
  CHECK(worker.core().state() == State::kFailed);
  CHECK(says(worker, "function=initialize the token is ***"));
  CHECK(says(worker, "no credential TH_OTHER: ${secret:TH_OTHER}"));
  CHECK(says(worker, "--secret-dir"));
  CHECK(says(worker, "--allow-env"));
  for (const char* value : {"token-value", "filed-value", "other-value"}) CHECK_FALSE(says(worker, value));
}

TEST_CASE("a credential leaves the worker in no form") {
  const Credentials credentials;
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  std::string token;
  plugin.initialize([&](InitializeContext& context) -> Result<void> {
    token = context.credential("TH_TOKEN").value();
    return {};
  });
  plugin.health([&](Context& context) -> Result<void> {
    context.log().info("asks with {}", token);
    return unavailable("refused: " + token);
  });
  plugin.cleanup([&](Context&) { throw std::runtime_error("cannot log out " + token); });
  plugin.type({.name = "TH::Thing"}).read([&](const ReadRequest& request, JobContext& context) -> Result<Resource> {
    context.log().info("reads with {}", token);
    if (request.native_id == "fails") return unavailable("refused: " + token);
    return Resource{.properties = {{"token", token}, {"part", request.target.config.at("part")}}};
  });
  WorkerHarness worker(plugin, 2, {.env = {"TH_*"}, .files = {}, .secret_dir = {}});
  worker.start();
  worker.run_life();
  worker.accept();
  worker.run_life();
  CHECK_FALSE(last_beat(worker).healthy);
  CHECK(last_beat(worker).health == "refused: ***");

  Job job = worker.job("a", ReadJob{{"x", "fails"}});
  ::setenv("TH_PART", "token", 1);  // a target's secret that the credential contains: the longer one goes as a whole
  job.target.config = {R"({"part":null})", {{"/part", {{SecretPart::Kind::kEnv, "TH_PART"}}}}};
  worker.send_to_pool(job);
  worker.run_one();
  const auto read = std::get<ReadResult>(worker.result("a"));
  CHECK(std::get<Item>(read.items[0]).properties == R"({"***":"***","part":"***"})");
  CHECK(std::get<Error>(read.items[1]).message == "refused: ***");

  worker.core().drain(worker.now(), {});
  worker.advance(Millis{250});
  worker.run_life();
  CHECK(worker.core().state() == State::kDrained);
  CHECK(says(worker, "function=health asks with ***"));
  CHECK(says(worker, "reads with ***"));
  CHECK(says(worker, "cannot log out ***"));
  CHECK_FALSE(says(worker, "-value"));
  ::unsetenv("TH_PART");
}

TEST_CASE("health is redacted of what jobs were given, also while it was asked") {
  ::setenv("TH_PART", "s3cret", 1);
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  std::string kept;
  Work other;
  plugin.health([&](Context&) -> Result<void> {
    other.run();
    return unavailable("refused: " + kept);
  });
  plugin.type({.name = "TH::Thing"}).read([&](const ReadRequest& request, JobContext&) -> Result<Resource> {
    kept = request.target.config.at("part").get<std::string>();
    return Resource{};
  });
  WorkerHarness worker(plugin, 2, {.env = {"TH_*"}, .files = {}, .secret_dir = {}});
  worker.start_accepted();
  Job job = worker.job("a", ReadJob{{"x"}});
  job.target.config = {R"({"part":null})", {{"/part", {{SecretPart::Kind::kEnv, "TH_PART"}}}}};
  worker.send_to_pool(job);
  REQUIRE(worker.submitted().size() == 2);
  other = std::move(worker.submitted().back());
  worker.submitted().pop_back();
  worker.run_life();
  CHECK(kept == "s3cret");
  CHECK(last_beat(worker).health == "refused: ***");
  ::unsetenv("TH_PART");
}

TEST_CASE("health is asked when the worker is accepted and every 10 s then, and takes no slot") {
  LivelyPlugin plugin;
  plugin.checks_health();
  WorkerHarness worker(plugin, 1);
  worker.start();
  worker.advance(Millis{20'000});
  CHECK_FALSE(worker.life_waits());
  worker.accept();
  CHECK(worker.life_waits());
  worker.advance(Millis{1000});
  CHECK(last_beat(worker).free_slots == 1);
  worker.run_life();
  worker.advance(Millis{8999});
  CHECK_FALSE(worker.life_waits());

  worker.send_to_pool(worker.job("a"));
  worker.advance(Millis{1});
  CHECK(worker.submitted().size() == 2);  // the only slot is taken, and health is asked
  worker.run_life();
  CHECK(plugin.checked == 2);
  CHECK(last_beat(worker).healthy);
  CHECK(last_beat(worker).health.empty());
}

TEST_CASE("heartbeats tell at once that a plugin is ill, why, and that it is well again") {
  LivelyPlugin plugin;
  plugin.checks_health();
  plugin.answer = unavailable("no route to the database");
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.advance(Millis{300});
  worker.heard().clear();
  worker.run_life();
  REQUIRE(worker.heartbeats().size() == 1);
  CHECK_FALSE(last_beat(worker).healthy);
  CHECK(last_beat(worker).health == "no route to the database");
  CHECK(last_beat(worker).free_slots == 2);  // it works on: whether to send it jobs is the coordinator's to say
  CHECK(says(worker, "unhealthy: no route to the database"));

  worker.advance(Millis{5000});
  CHECK(worker.heartbeats().size() == 6);
  CHECK_FALSE(last_beat(worker).healthy);
  const auto lines = worker.logged().size();
  worker.advance(Millis{5000});
  worker.run_life();
  CHECK(worker.logged().size() == lines);  // it is no news
  plugin.answer = unavailable("");
  worker.advance(Millis{10'000});
  worker.run_life();
  worker.advance(Millis{1000});
  CHECK(last_beat(worker).health == "SERVICE_UNAVAILABLE");
  worker.send_to_pool(worker.job("a"));
  worker.run_one();
  CHECK(worker.count<JobResult>("a") == 1);

  plugin.answer = {};
  worker.advance(Millis{10'000});
  worker.heard().clear();
  worker.run_life();
  REQUIRE(worker.heartbeats().size() == 1);
  CHECK(last_beat(worker).healthy);
  CHECK(last_beat(worker).health.empty());
  CHECK(says(worker, "healthy again"));
}

TEST_CASE("what a health check throws is why the plugin is ill") {
  LivelyPlugin plugin;
  plugin.health([](Context&) -> Result<void> { throw std::runtime_error("\xff" + std::string(5000, 'x')); });
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.run_life();
  const std::string health = last_beat(worker).health;
  CHECK(health.starts_with("plugin things, health: %FFxxx"));
  CHECK(health.size() == 4096);
}

TEST_CASE("a health check that hangs delays nothing, is told to stop, and is not asked beside itself") {
  LivelyPlugin plugin;
  plugin.checks_health();
  WorkerHarness worker(plugin, 1);
  worker.start_accepted();
  Work hangs = std::move(worker.submitted().front());
  worker.submitted().clear();
  worker.advance(Millis{4999});
  CHECK(worker.heartbeats().size() == 4);
  CHECK(last_beat(worker).healthy);
  worker.advance(Millis{1});
  CHECK_FALSE(last_beat(worker).healthy);
  CHECK(last_beat(worker).health == "the health check has not answered for 5 s");
  CHECK(worker.core().next_due() > worker.now());
  worker.heard().clear();
  worker.advance(Millis{30'000});
  CHECK(worker.heartbeats().size() == 30);
  CHECK(last_beat(worker).health == "the health check has not answered for 35 s");
  CHECK(last_beat(worker).free_slots == 1);
  CHECK(worker.submitted().empty());
  worker.send_to_pool(worker.job("a"));
  worker.run_one();
  CHECK(worker.count<JobResult>("a") == 1);

  worker.submitted().push_back(std::move(hangs));
  worker.run_life();
  CHECK(plugin.stop.stop_requested());
  worker.advance(Millis{1000});
  CHECK(last_beat(worker).health == "the health check took 35 s");
  worker.advance(Millis{4000});
  worker.run_life();
  CHECK(last_beat(worker).healthy);
}

TEST_CASE("a worker that drains or is rejected asks for health no more") {
  LivelyPlugin plugin;
  plugin.checks_health();
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.run_life();
  worker.send_to_pool(worker.job("a"));
  SECTION("drains") {
    worker.control(Drain{});
  }
  SECTION("is rejected") {
    worker.call_roll();
    worker.reject({.code = "LIMIT", .message = "too many workers"});
  }
  worker.advance(Millis{30'000});
  CHECK_FALSE(worker.core().ended());
  CHECK_FALSE(worker.life_waits());
}

TEST_CASE("of a plugin without cleanup none is said to be left out") {
  LivelyPlugin plugin;
  plugin.checks_health();
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.control(Drain{});
  worker.advance(Millis{4250});
  CHECK(worker.core().state() == State::kDrained);
  CHECK(says(worker, "health has not returned for 4 s"));
  CHECK_FALSE(says(worker, "cleanup"));
}

TEST_CASE("a plugin cleans up once, after its last job") {
  LivelyPlugin plugin;
  plugin.cleans_up();
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.control(Drain{});
  worker.advance(Millis{20'000});
  CHECK(worker.submitted().size() == 1);
  worker.run_one();
  CHECK(worker.core().state() == State::kCleaning);
  CHECK_FALSE(worker.core().ended());
  worker.heard().clear();
  worker.send(worker.subjects().rollcall(), encode(RollCall{worker.fleet(), worker.coordinator()}));
  worker.control(Drain{});
  worker.core().drain(worker.now(), Millis{9500});
  worker.advance(Millis{2000});
  CHECK(worker.announcements().empty());
  CHECK(worker.core().next_due() > worker.now());  // what it will not say keeps it not awake
  REQUIRE(worker.heartbeats().size() == 2);        // it is still there, and takes nothing
  CHECK(last_beat(worker).draining);
  CHECK(last_beat(worker).free_slots == 0);

  worker.run_life();
  CHECK(plugin.cleaned == 1);
  CHECK(worker.core().state() == State::kDrained);
  CHECK_FALSE(worker.core().runs_plugin_code());
  CHECK(worker.heartbeats().size() == 3);
  worker.advance(Millis{5000});
  CHECK(worker.heartbeats().size() == 3);
  CHECK(worker.submitted().empty());
}

TEST_CASE("a cleanup that hangs or fails does not keep the worker") {
  LivelyPlugin plugin;
  plugin.checks_health().cleans_up();
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.run_life();
  worker.advance(Millis{8000});
  worker.core().drain(worker.now(), Millis{9500});
  worker.advance(Millis{250});
  REQUIRE(worker.core().state() == State::kCleaning);
  SECTION("hangs") {
    worker.advance(Millis{3999});
    CHECK_FALSE(worker.core().ended());
    CHECK(worker.core().next_due() > worker.now());  // nothing else is due: the loop sleeps
    worker.advance(Millis{1});
    CHECK(says(worker, "cleanup has not returned for 4 s"));
    CHECK(worker.core().runs_plugin_code());
    worker.submitted().front().run();
    CHECK(plugin.stop.stop_requested());
  }
  SECTION("throws") {
    plugin.cleanup([](Context&) { throw std::runtime_error("the floor is lava"); });
    worker.run_life();
    CHECK(says(worker, "cleanup failed: plugin things, cleanup: the floor is lava"));
  }
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("a cleanup is within the limit of the drain") {
  LivelyPlugin plugin;
  plugin.cleans_up();
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.core().drain(worker.now(), Millis{9500});
  worker.advance(Millis{8500});
  worker.run_one();
  worker.advance(Millis{999});
  CHECK(worker.core().state() == State::kCleaning);
  worker.advance(Millis{1});
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("no other function of the plugin runs beside its cleanup") {
  LivelyPlugin plugin;
  plugin.checks_health().cleans_up();
  WorkerHarness worker(plugin, 1);
  worker.start_accepted();
  SECTION("a health check is stopped and waited for") {
    plugin.answer = failure(Errc::kCancelled, "stopped");
    worker.control(Drain{});
    worker.advance(Millis{2250});
    CHECK(worker.core().state() == State::kCleaning);
    worker.run_life();
    CHECK(plugin.checked == 1);
    CHECK(plugin.stop.stop_requested());
    CHECK(plugin.cleaned == 0);
    worker.run_life();
    CHECK(plugin.cleaned == 1);
    CHECK(worker.core().state() == State::kDrained);
    CHECK(last_beat(worker).healthy);  // what a stopped check says proves nothing
  }
  SECTION("but not for ever") {
    worker.control(Drain{});
    worker.advance(Millis{4250});
    CHECK(worker.core().state() == State::kDrained);
    CHECK(says(worker, "health has not returned for 4 s"));
    CHECK(says(worker, "cleanup is left out"));
  }
  SECTION("a job that does not stop") {
    worker.run_life();
    worker.send_to_pool(worker.job("a"));
    worker.core().drain(worker.now(), Millis{9500});
    worker.advance(Millis{9500});
    CHECK(worker.core().state() == State::kDrained);
    CHECK(says(worker, "cleanup is left out"));
    CHECK_FALSE(worker.life_waits());
  }
  SECTION("a stuck worker") {
    worker.run_life();
    worker.send_to_pool(worker.job("a"));
    worker.control(Cancel{{JobId("job-a"), Token("a")}});
    worker.advance(Millis{10'000});
    CHECK(worker.core().state() == State::kStuck);
    CHECK(says(worker, "cleanup is left out"));
    CHECK(plugin.cleaned == 0);
  }
}

TEST_CASE("a worker that is rejected for good cleans up, too") {
  LivelyPlugin plugin;
  plugin.initializes().cleans_up();
  WorkerHarness worker(plugin);
  worker.start();
  worker.run_life();
  worker.reject({.code = "PROTOCOL", .message = "speak version 2", .final = true});
  CHECK(worker.core().state() == State::kCleaning);
  worker.accept();  // too late, as is another rejection
  worker.reject({.code = "PROTOCOL", .message = "speak version 2", .final = true});
  CHECK(worker.core().state() == State::kCleaning);
  worker.run_life();
  CHECK(plugin.cleaned == 1);
  CHECK_FALSE(plugin.stop.stop_requested());
  CHECK(worker.core().state() == State::kRejected);
}

TEST_CASE("a change that was not begun keeps no worker from cleaning up") {
  LivelyPlugin plugin;
  plugin.cleans_up();
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a", CreateJob{"key", {}, {}}));
  REQUIRE(worker.count<Accepted>("a") == 1);
  worker.call_roll();
  worker.reject({.code = "PROTOCOL", .message = "speak version 2", .final = true});
  REQUIRE(worker.core().state() == State::kCleaning);
  worker.run_life();
  CHECK(plugin.cleaned == 1);
  CHECK(worker.core().state() == State::kRejected);
}

TEST_CASE("no job is taken for a function of the plugin's life") {
  LivelyPlugin plugin;
  plugin.checks_health();
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.heard().clear();
  worker.send(worker.subjects().job("TH", kDefaultPool), encode(worker.job(std::string(Lifecycle::kToken))),
              worker.reply_subject(Token("a")));
  CHECK(worker.submitted().size() == 1);
  CHECK(worker.heard().empty());
  CHECK(worker.core().counters().malformed == 1);
}
