#include <catch2/catch.hpp>

#include "sdk_changes.h"

using namespace muster;
using namespace muster::test;
using muster::testing::MemoryDisk;
using muster::testing::MemoryJournal;
using muster::testing::ThingsPlugin;
using muster::testing::WorkerHarness;
using State = WorkerCore::State;

namespace {

/// Notes what a target's configuration has as `token` when something is read.
struct TokenPlugin : Plugin {
  TokenPlugin() : Plugin({.name = "things", .ns = "TH", .version = "1.2.3"}) {
    type({.name = "TH::Thing"}).read([this](const ReadRequest& request, JobContext&) -> Result<Resource> {
      seen = request.target.config.at("token").get<std::string>();
      return not_found();
    });
  }
  std::string seen;
};

}  // namespace

TEST_CASE("a quick job costs one reply") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  Job job = worker.job("a");
  job.attempt = 3;
  worker.send_to_pool(job);
  worker.advance(Millis{40});
  worker.run_one();
  worker.advance(Millis{5000});
  REQUIRE(worker.replies("a").size() == 1);
  const JobReply reply = worker.replies("a").front();
  CHECK(reply.fleet == worker.fleet());
  CHECK(reply.job == job.id);
  CHECK(reply.token == job.token);
  CHECK(reply.worker == WorkerId("w1"));
  CHECK(reply.attempt == 3);
  CHECK(reply.calls == 1);
  const auto page = std::get<ListResult>(std::get<JobResult>(reply.body));
  REQUIRE(page.items.size() == 1);
  CHECK(page.items.front() == Item{"one", "", R"({"n":1})"});
}

TEST_CASE("a job that takes longer is accepted within 100 ms") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.advance(Millis{100});
  REQUIRE(worker.count<Accepted>("a") == 1);
  CHECK(worker.core().next_due() > worker.now());
  worker.advance(Millis{2000});
  worker.run_one();
  CHECK(worker.count<Accepted>("a") == 1);
  CHECK(worker.count<JobResult>("a") == 1);
}

TEST_CASE("a job that has ended keeps nobody awake") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 2);
  worker.start_accepted();
  const auto idle = worker.core().next_due();
  worker.send_to_pool(worker.job("a"));
  worker.advance(Millis{10});
  worker.send_to_pool(worker.job("b"));
  worker.run_one();
  CHECK(worker.core().next_due() == worker.now() + Millis{50});  // the other one is to be accepted
  worker.run_one();
  CHECK(worker.core().next_due() == idle);
}

TEST_CASE("without a free slot the answer is busy at once") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 2);
  worker.start_accepted();
  for (const char* token : {"a", "b", "c"}) worker.send_to_pool(worker.job(token));
  CHECK(worker.count<Busy>("c") == 1);
  CHECK(worker.core().counters().busy == 1);
  CHECK(worker.submitted().size() == 2);
  worker.run_one();
  worker.send_to_worker(worker.job("d"));
  CHECK(worker.count<Busy>("d") == 0);
  CHECK(worker.submitted().size() == 2);
}

TEST_CASE("a job of another fleet, namespace or pool is refused") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  Job fleet = worker.job("a"), ns = worker.job("b"), pool = worker.job("c");
  fleet.fleet = FleetId("other");
  ns.ns = "OTHER";
  pool.pool = "other";
  for (const Job& job : {fleet, ns, pool}) {
    worker.send_to_worker(job);
    CHECK(worker.failed(job.token.value).code == Errc::kInvalidRequest);
  }
  CHECK(worker.submitted().empty());
  CHECK(worker.core().counters().foreign == 3);
}

TEST_CASE("a job that comes twice with one token runs once") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.send_to_pool(worker.job("a"));
  REQUIRE(worker.submitted().size() == 1);
  worker.run_one();
  worker.send_to_worker(worker.job("a"));
  CHECK(worker.submitted().empty());
  CHECK(worker.replies("a").size() == 1);
  CHECK(worker.core().counters().duplicates == 2);

  for (int i = 0; i < 5000; ++i) {  // the memory is bounded: it has forgotten `a` by then
    worker.send_to_pool(worker.job("t" + std::to_string(i)));
    worker.run_one();
  }
  worker.send_to_pool(worker.job("a"));
  CHECK(worker.submitted().size() == 1);
}

TEST_CASE("a change that runs is not claimed again, however late its job comes twice") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  begin(worker, "a");
  for (int i = 0; i < 5000; ++i) {  // more tokens than it remembers
    Job other = worker.job("t" + std::to_string(i));
    other.pool = "another";
    worker.send_to_worker(other);
  }
  begin(worker, "a");
  REQUIRE(worker.submitted().size() == 1);
  worker.run_one();
  CHECK(std::holds_alternative<MutationResult>(worker.result("a")));
  CHECK(worker.count<Accepted>("a") == 1);
  CHECK(disk->files.at(Token("a")).reply);
}

TEST_CASE("a result over the payload limit goes in numbered parts") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.broker().set_max_payload(8192);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  ListResult page;
  for (int i = 0; i < 500; ++i) page.items.push_back({"id-" + std::to_string(i), "", R"({"text":"0123456789"})"});
  worker.complete_one(page, 4);
  Bytes whole;
  const auto replies = worker.replies("a");
  REQUIRE(replies.size() > 2);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto& part = std::get<Part>(replies[i].body);
    CHECK(part.index == i);
    CHECK(part.count == replies.size());
    whole += part.data;
  }
  for (const auto& message : worker.heard()) CHECK(message.data.size() <= 8192);
  const JobReply reply = decode<JobReply>(whole).value();
  CHECK(reply.calls == 4);
  CHECK(std::get<ListResult>(std::get<JobResult>(reply.body)) == page);
}

TEST_CASE("a result beyond every bound is a LIMIT failure") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  ListResult page;
  page.items.push_back({"big", "", std::string(65 * 1024 * 1024, ' ')});
  worker.complete_one(std::move(page));
  CHECK(worker.failed("a").code == Errc::kLimit);
}

TEST_CASE("cancel sets the stop token and is answered when the plugin returns") {
  ThingsPlugin plugin;
  std::stop_token seen;
  plugin.inspect([&](const InspectRequest&, JobContext& context) {
    seen = context.stop_token();
    return Inspection{};
  });
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a", InspectJob{}));
  worker.control(Cancel{{JobId("another"), Token("a")}});
  worker.control(Cancel{running("unknown")});
  CHECK(worker.replies("a").empty());
  worker.control(Cancel{running("a")});
  CHECK(worker.count<JobResult>("a") == 0);
  worker.run_one();
  CHECK(seen.stop_requested());
  CHECK(worker.failed("a").code == Errc::kCancelled);
}

TEST_CASE("control of another fleet is ignored") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send(worker.subjects().worker_control("TH", WorkerId("w1")), encode(Control{FleetId("other"), Drain{}}));
  CHECK(worker.core().state() == State::kActive);
  CHECK(worker.core().counters().foreign == 1);
}

TEST_CASE("control that names no fleet is ignored by a worker that is in none yet") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start();
  worker.send(worker.subjects().worker_control("TH", WorkerId("w1")), encode(Control{FleetId(), Drain{}}));
  CHECK(worker.core().state() == State::kAnnouncing);
  CHECK(worker.core().counters().malformed == 1);
}

TEST_CASE("the deadline stops a job, and it is answered TIMEOUT") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  Job job = worker.job("a");
  job.deadline = Millis{5000};
  worker.send_to_pool(job);
  worker.advance(Millis{6000});
  CHECK(worker.count<JobResult>("a") == 0);
  CHECK(worker.count<Accepted>("a") == 1);
  worker.complete_one(ListResult{});
  CHECK(worker.failed("a").code == Errc::kTimeout);
}

TEST_CASE("a job that ignores its stop token for 10 s is answered, its slot is stuck until it returns") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 2);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.control(Cancel{running("a")});
  worker.advance(Millis{10'000});
  CHECK(worker.failed("a").code == Errc::kTimeout);
  worker.advance(Millis{1000});
  Heartbeat beat = worker.heartbeats().back();
  CHECK(beat.stuck_slots == 1);
  CHECK(beat.free_slots == 1);
  CHECK(beat.running.empty());
  CHECK(worker.core().state() == State::kActive);

  worker.complete_one(ListResult{});
  worker.advance(Millis{1000});
  beat = worker.heartbeats().back();
  CHECK(beat.stuck_slots == 0);
  CHECK(beat.free_slots == 2);
  CHECK(worker.count<JobResult>("a") == 1);
}

TEST_CASE("with every slot stuck the worker ends") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 2);
  worker.start_accepted();
  for (const char* token : {"a", "b"}) {
    worker.send_to_pool(worker.job(token));
    worker.control(Cancel{running(token)});
  }
  worker.advance(Millis{10'000});
  CHECK(worker.core().state() == State::kStuck);
  CHECK(worker.failed("a").code == Errc::kTimeout);
  CHECK(worker.failed("b").code == Errc::kTimeout);
}

TEST_CASE("a mutation is claimed at once and begun by go alone") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a", kCreate));
  CHECK(worker.count<Accepted>("a") == 1);
  CHECK(worker.submitted().empty());
  worker.control(Go{{JobId("another"), Token("a")}});
  worker.control(Go{running("unknown")});
  CHECK(worker.submitted().empty());
  worker.advance(Millis{1000});
  CHECK(worker.heartbeats().back().running == std::vector<Running>{running("a")});
  worker.control(Go{running("a")});
  REQUIRE(worker.submitted().size() == 1);
  worker.control(Go{running("a")});
  CHECK(worker.submitted().size() == 1);
  worker.run_one();
  CHECK(worker.failed("a").code == Errc::kUnsupported);  // this plugin creates nothing
}

TEST_CASE("go after the lease does nothing") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a", kCreate));
  SECTION("the worker waited in vain") {
    worker.advance(Millis{3000});
    CHECK(worker.failed("a").code == Errc::kCancelled);
    worker.control(Go{running("a")});
  }
  SECTION("the worker was stopped and wakes up with go in its inbox") {
    worker.stall(Millis{3000});
    worker.control(Go{running("a")});
    CHECK(worker.failed("a").code == Errc::kCancelled);
  }
  CHECK(worker.submitted().empty());
}

TEST_CASE("a claim is cancelled at once") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin, 1);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a", kCreate));
  worker.control(Cancel{running("a")});
  CHECK(worker.failed("a").code == Errc::kCancelled);
  worker.control(Go{running("a")});
  CHECK(worker.submitted().empty());
  worker.send_to_pool(worker.job("b"));
  CHECK(worker.count<Busy>("b") == 0);
}

TEST_CASE("a mutation's success is reported even after it was given up") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a", kCreate));
  worker.control(Go{running("a")});
  worker.control(Cancel{running("a")});
  MutationResult done;
  done.native_id = "made";
  SECTION("stopped") {
    worker.complete_one(done);
    CHECK(std::get<MutationResult>(worker.result("a")).native_id == "made");
  }
  SECTION("stuck") {
    worker.advance(Millis{10'000});
    CHECK(worker.failed("a").code == Errc::kTimeout);
    worker.heard().clear();
    worker.complete_one(done);
    CHECK(std::get<MutationResult>(worker.result("a")).native_id == "made");
  }
}

TEST_CASE("a result that cannot be sent for want of a connection is lost, nothing else") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.worker_bus().disconnect();
  worker.run_one();
  CHECK(worker.core().counters().unsent == 1);
  worker.worker_bus().reconnect();
  worker.advance(Millis{300});
  worker.accept();
  worker.send_to_pool(worker.job("b"));
  worker.run_one();
  CHECK(worker.count<JobResult>("b") == 1);
}

TEST_CASE("an exception of a plugin is that job's failure") {
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  plugin.type({.name = "TH::Thing"}).read([](const ReadRequest&, JobContext&) -> Result<Resource> {
    throw std::runtime_error("the floor is lava");
  });
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a", ReadJob{{"x"}}));
  worker.run_one();
  const Error error = worker.failed("a");
  CHECK(error.code == Errc::kInternalFailure);
  CHECK(error.message == "plugin things, read TH::Thing, job job-a: the floor is lava");
}

TEST_CASE("a target's secrets are resolved where the worker runs, and leave it in no form") {
  ::setenv("TH_TOKEN", "s3cret\"value", 1);
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  plugin.type({.name = "TH::Thing"}).read([](const ReadRequest& request, JobContext& context) -> Result<Resource> {
    const auto token = request.target.config.at("token").get<std::string>();
    context.log().info("token is {}", token);
    context.count_calls(3);
    if (request.native_id == "throws") throw std::runtime_error("bad " + token);
    return Resource{"", Properties{{"token", token}, {"plain", "text"}}, ""};
  });
  WorkerHarness worker(plugin, 2, {.env = {"TH_*"}, .files = {}, .secret_dir = {}});
  worker.start_accepted();
  Job job = worker.job("a", ReadJob{{"x"}});
  job.target.config = {R"({"token":null})", {{"/token", {{SecretPart::Kind::kEnv, "TH_TOKEN"}}}}};
  worker.send_to_pool(job);
  worker.run_one();
  const auto read = std::get<ReadResult>(worker.result("a"));
  CHECK(std::get<Item>(read.items.front()).properties == R"({"plain":"text","token":"***"})");
  CHECK(worker.replies("a").front().calls == 3);
  CHECK(worker.logged().find("job=job-a token=a target=target token is ***") != std::string::npos);

  job.token = Token("b");
  job.operation = ReadJob{{"throws"}};
  worker.send_to_pool(job);
  worker.run_one();
  CHECK(worker.failed("b").message.ends_with("bad ***"));

  job.token = Token("c");
  job.target.config.secrets.front().parts.front().text = "HOME";
  worker.send_to_pool(job);
  worker.run_one();
  CHECK(worker.failed("c").code == Errc::kAccessDenied);
  CHECK(worker.failed("c").message.find("${env:HOME}") != std::string::npos);
  CHECK(worker.replies("c").front().calls == 0);
  CHECK(worker.logged().find("s3cret") == std::string::npos);
  ::unsetenv("TH_TOKEN");
}

TEST_CASE("a long message is cut after its secrets are gone, between characters") {
  ::setenv("TH_TOKEN", "s3cret", 1);
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  plugin.type({.name = "TH::Thing"}).read([&](const ReadRequest& request, JobContext&) -> Result<Resource> {
    return unavailable(std::string(4092, 'x') + request.target.config.at("token").get<std::string>() + "ü");
  });
  WorkerHarness worker(plugin, 2, {.env = {"TH_*"}, .files = {}, .secret_dir = {}});
  worker.start_accepted();
  Job job = worker.job("a", ReadJob{{"x"}});
  job.target.config = {R"({"token":null})", {{"/token", {{SecretPart::Kind::kEnv, "TH_TOKEN"}}}}};
  worker.send_to_pool(job);
  worker.run_one();
  const auto read = std::get<ReadResult>(worker.result("a"));
  CHECK(std::get<Error>(read.items.front()).message == std::string(4092, 'x') + "***");
  ::unsetenv("TH_TOKEN");
}

TEST_CASE("what could not be listed is named by as much of its id as may be") {
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.2.3"});
  plugin.type({.name = "TH::Thing", .list_gives = ListGives::kProperties})
      .list([](const ListRequest&, JobContext&) -> Result<ListPage> {
        ListPage page;
        page.problems = {{std::string(16 * 1024 - 1, 'x') + "ü", access_denied(std::string(5000, 'x'))}};
        return page;
      });
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("a"));
  worker.run_one();
  const auto list = std::get<ListResult>(worker.result("a"));
  REQUIRE(list.problems.size() == 1);
  CHECK(list.problems.front().native_id == std::string(16 * 1024 - 1, 'x'));
  CHECK(list.problems.front().failure.message.size() == 4096);
}

TEST_CASE("a target's configuration is read anew after a minute, and when it changes") {
  ::setenv("TH_TOKEN", "first-value", 1);
  const TokenPlugin plugin;
  WorkerHarness worker(plugin, 2, {.env = {"TH_*"}, .files = {}, .secret_dir = {}});
  worker.start_accepted();
  int number = 0;
  const auto read = [&](const JsonText& config) {
    Job job = worker.job(std::to_string(++number), ReadJob{{"x"}});
    job.target.config = {config, {{"/token", {{SecretPart::Kind::kEnv, "TH_TOKEN"}}}}};
    worker.send_to_pool(job);
    worker.run_one();
    return plugin.seen;
  };
  CHECK(read(R"({"token":null})") == "first-value");
  ::setenv("TH_TOKEN", "second-value", 1);
  CHECK(read(R"({"token":null})") == "first-value");
  CHECK(read(R"({"token":null,"other":1})") == "second-value");
  ::setenv("TH_TOKEN", "third-value", 1);
  worker.advance(Millis{60'000});
  CHECK(read(R"({"token":null,"other":1})") == "third-value");
  ::unsetenv("TH_TOKEN");
}

TEST_CASE("of more than 256 targets those that were read of last are remembered") {
  const TokenPlugin plugin;
  WorkerHarness worker(plugin, 2, {.env = {"TH_*"}, .files = {}, .secret_dir = {}});
  worker.start_accepted();
  int jobs = 0;
  const auto read = [&](int target) {
    Job job = worker.job("j" + std::to_string(++jobs), ReadJob{{"x"}});
    job.target.id = TargetId("t" + std::to_string(target));
    job.target.config = {R"({"token":null})", {{"/token", {{SecretPart::Kind::kEnv, "TH_TOKEN"}}}}};
    worker.send_to_pool(job);
    worker.run_one();
    return plugin.seen;
  };
  ::setenv("TH_TOKEN", "first-value", 1);
  for (int target = 0; target < 256; ++target) {
    read(target);
    worker.advance(Millis{10});
  }
  ::setenv("TH_TOKEN", "second-value", 1);
  CHECK(read(0) == "first-value");
  CHECK(read(256) == "second-value");
  CHECK(read(1) == "first-value");
  CHECK(read(255) == "first-value");
  CHECK(read(0) == "second-value");  // what was known for longest made room
  ::unsetenv("TH_TOKEN");
}

TEST_CASE("messages that cannot be understood are counted, and logged once a second") {
  const ThingsPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  const Job good = worker.job("a");
  for (int i = 0; i < 10; ++i) {
    worker.send(worker.subjects().job("TH", "default"), "garbage", worker.reply_subject(Token("x")));
    worker.send(worker.subjects().worker_control("TH", WorkerId("w1")), "garbage");
    worker.send(worker.subjects().rollcall(), encode(good).substr(0, 40));
  }
  worker.send(worker.subjects().job("TH", "default"), encode(good));  // nowhere to answer to
  CHECK(worker.core().counters().malformed == 31);
  const std::string lines = worker.logged();
  std::size_t complaints = 0;
  for (auto at = lines.find("malformed"); at != std::string::npos; at = lines.find("malformed", at + 1)) ++complaints;
  CHECK(complaints == 1);
  CHECK(worker.submitted().empty());
}
