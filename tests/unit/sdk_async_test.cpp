// Asynchronous functions of a plugin: in a worker whose time stands still, and called as tests of plugins call them.

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sdk_harness.h"
#include "worker_sdk/testing/fake_context.h"

namespace muster::testing {
namespace {

using namespace std::chrono_literals;
using Answers = std::vector<Result<Resource>>;

Resource thing(const std::string& id) {
  return {id, Properties{{"name", id}}, ""};
}

/// A plugin whose reads do what the test says.
struct Reads {
  Reads() {
    plugin.type({.name = "AS::Thing"}).read_many_async([this](const AsyncReadMany& call) {
      ++begun;
      read(call);
    });
  }

  Plugin plugin{{.name = "async", .ns = "AS", .version = "1.0.0"}};
  std::function<void(const AsyncReadMany&)> read = [](const AsyncReadMany& call) {
    Answers answers;
    for (const auto& id : call.request().native_ids) answers.emplace_back(thing(id));
    call.answer(std::move(answers));
  };
  int begun = 0;
};

ReadJob ids(std::vector<std::string> native_ids) {
  return {std::move(native_ids)};
}

/// A worker that calls asynchronous functions on its loop.
struct LoopWorker : WorkerHarness {
  explicit LoopWorker(const Reads& reads, std::uint16_t slots = 2) : WorkerHarness(reads.plugin, slots) {
    start_accepted();
    resolve_config();
  }
  void ask(const std::string& token, const std::string& id = "a") { send_to_pool(job(token, ids({id}))); }
  [[nodiscard]] std::size_t answered(std::string_view token) const { return count<JobResult>(token); }
  [[nodiscard]] std::uint16_t free() {
    advance(1s);
    return heartbeats().back().free_slots;
  }
};

TEST_CASE("An asynchronous function answers without a thread") {
  Reads reads;
  LoopWorker worker(reads);
  worker.send_to_pool(worker.job("t", ids({"a", "b"})));
  CHECK(worker.submitted().empty());
  const auto result = std::get<ReadResult>(worker.result("t"));
  REQUIRE(result.items.size() == 2);
  CHECK(std::get<Item>(result.items[1]).native_id == "b");
  CHECK(worker.replies("t").back().calls == 1);
}

TEST_CASE("A target's secrets are read in a thread, and its first job goes on on the loop") {
  Reads reads;
  WorkerHarness worker(reads.plugin);
  worker.start_accepted();
  worker.send_to_pool(worker.job("t", ids({"a"})));
  CHECK(worker.submitted().empty());
  CHECK(reads.begun == 0);
  worker.run_blocking();
  CHECK(reads.begun == 1);
  CHECK(std::get<ReadResult>(worker.result("t")).items.size() == 1);
}

TEST_CASE("A target whose secrets cannot be had fails its jobs") {
  Reads reads;
  WorkerHarness worker(reads.plugin);
  worker.start_accepted();
  Job job = worker.job("t", ids({"a"}));
  job.target.config = {R"({"token":null})", {{"/token", {{SecretPart::Kind::kEnv, "AS_NONE"}}}}};
  worker.send_to_pool(job);
  worker.run_blocking();
  CHECK(worker.failed("t").code == Errc::kAccessDenied);
  CHECK(reads.begun == 0);
}

TEST_CASE("A call that waits takes up its slot until its time has come") {
  Reads reads;
  reads.read = [](const AsyncReadMany& call) {
    call.context().count_calls(3);
    call.after(20ms, [call] { call.answer(Answers{thing("a")}); });
  };
  LoopWorker worker(reads, 1);
  worker.ask("t");
  worker.ask("too-many");
  CHECK(worker.count<Busy>("too-many") == 1);
  worker.advance(19ms);
  CHECK(worker.answered("t") == 0);
  worker.advance(1ms);
  CHECK(worker.answered("t") == 1);
  CHECK(worker.replies("t").back().calls == 3);
  worker.ask("next");
  worker.advance(20ms);
  CHECK(worker.answered("next") == 1);
}

TEST_CASE("A call goes on in a slot's thread where it says so, and waits again there") {
  Reads reads;
  reads.read = [](const AsyncReadMany& call) {
    call.block([call] { call.after(5ms, [call] { call.answer(Answers{thing("a")}); }); });
  };
  LoopWorker worker(reads);
  worker.ask("t");
  worker.advance(5ms);
  CHECK(worker.answered("t") == 0);
  worker.run_blocking();
  worker.advance(5ms);
  CHECK(worker.answered("t") == 1);
}

TEST_CASE("A call that waits goes on when it is stopped") {
  Reads reads;
  bool stopped = false;
  reads.read = [&](const AsyncReadMany& call) {
    call.after(1h, [&stopped, call] {
      stopped = call.context().stop_token().stop_requested();
      call.answer(failure(Errc::kCancelled, "stopped"));
    });
  };
  LoopWorker worker(reads, 1);
  worker.ask("t");
  SECTION("by a cancellation") {
    worker.control(Cancel{{JobId("job-t"), Token("t")}});
    CHECK(worker.failed("t").code == Errc::kCancelled);
  }
  SECTION("by its deadline") {
    worker.advance(60s);
    CHECK(worker.failed("t").code == Errc::kTimeout);
  }
  CHECK(stopped);
  CHECK(worker.free() == 1);
}

TEST_CASE("A call that ignores its stop token leaves a stuck slot until it answers after all") {
  Reads reads;
  std::optional<AsyncReadMany> kept;
  reads.read = [&](const AsyncReadMany& call) { kept = call; };
  LoopWorker worker(reads);
  worker.ask("t");
  worker.control(Cancel{{JobId("job-t"), Token("t")}});
  worker.advance(10s);
  CHECK(worker.failed("t").code == Errc::kTimeout);
  CHECK(worker.heartbeats().back().stuck_slots == 1);
  kept->answer(Answers{thing("a")});
  worker.advance(1s);
  CHECK(worker.answered("t") == 1);
  CHECK(worker.heartbeats().back().stuck_slots == 0);
}

TEST_CASE("A call that holds the loop for long is named in the log, and one in a thread is not") {
  const Millis held{GENERATE(499, 500)};
  Reads reads;
  std::function<void()> works;
  const auto answer = [&](const AsyncReadMany& call) {
    works();
    call.answer(Answers{thing("a")});
  };
  bool on_loop = true;
  SECTION("when it begins") {
    reads.read = answer;
  }
  SECTION("after a wait") {
    reads.read = [&](const AsyncReadMany& call) { call.after(1ms, [&answer, call] { answer(call); }); };
  }
  SECTION("in a slot's thread") {
    on_loop = false;
    reads.read = [&](const AsyncReadMany& call) { call.block([&answer, call] { answer(call); }); };
  }
  LoopWorker worker(reads);
  works = [&] { worker.stall(held); };
  worker.ask("t");
  worker.advance(1ms);
  worker.run_blocking();
  CHECK(worker.answered("t") == 1);
  const auto line = "job=job-t token=t target=target held the worker's loop for 500 ms";
  CHECK((worker.logged().find(line) != std::string::npos) == (on_loop && held == 500ms));
}

TEST_CASE("What goes wrong in an asynchronous call is that job's failure") {
  Reads reads;
  std::string message;
  SECTION("it throws") {
    reads.read = [](const AsyncReadMany&) { throw std::runtime_error("at once"); };
    message = "at once";
  }
  SECTION("what it waits with throws") {
    reads.read = [](const AsyncReadMany& call) { call.after(1ms, [] { throw std::runtime_error("later"); }); };
    message = "later";
  }
  SECTION("what it does in a thread throws") {
    reads.read = [](const AsyncReadMany& call) { call.block([] { throw std::runtime_error("elsewhere"); }); };
    message = "elsewhere";
  }
  SECTION("it gives no answer") {
    reads.read = [](const AsyncReadMany&) {};
    message = "contract: an asynchronous function gave no answer";
  }
  SECTION("it gives too few answers") {
    reads.read = [](const AsyncReadMany& call) { call.answer(Answers{}); };
    message = "contract: 1 ids to read, 0 answers";
  }
  SECTION("it waits for two things") {
    reads.read = [](const AsyncReadMany& call) {
      call.after(1ms, [call] {});
      call.block([call] {});
    };
    message = "an asynchronous call waits for one thing at a time";
  }
  LoopWorker worker(reads);
  worker.ask("t");
  worker.advance(1ms);
  worker.run_blocking();
  const Error error = worker.failed("t");
  CHECK(error.code == Errc::kInternalFailure);
  CHECK(error.message == "plugin async, read AS::Thing, job job-t: " + message);
  CHECK(worker.free() == 2);
}

TEST_CASE("An error in place of all answers is that of each") {
  Reads reads;
  reads.read = [](const AsyncReadMany& call) { call.answer(access_denied("none of it")); };
  LoopWorker worker(reads);
  worker.send_to_pool(worker.job("t", ids({"a", "b"})));
  const auto result = std::get<ReadResult>(worker.result("t"));
  REQUIRE(result.items.size() == 2);
  CHECK(std::get<Error>(result.items[1]).code == Errc::kAccessDenied);
}

TEST_CASE("Only the first answer counts, and what is waited for beyond it is not called") {
  Reads reads;
  int called = 0;
  reads.read = [&](const AsyncReadMany& call) {
    call.after(1s, [&called] { ++called; });
    call.answer(Answers{thing("a")});
    call.answer(not_found("too late"));
    call.after(1s, [&called] { ++called; });
    call.block([&called] { ++called; });
  };
  LoopWorker worker(reads);
  worker.ask("t");
  CHECK(worker.calls().next_due() == TimePoint::max());  // nothing is kept of it
  worker.run_blocking();
  worker.advance(2s);
  CHECK(std::get<ReadResult>(worker.result("t")).items.size() == 1);
  CHECK(called == 0);
}

TEST_CASE("An asynchronous call is answered from any thread") {
  Reads reads;
  std::vector<std::jthread> clients;
  reads.read = [&](const AsyncReadMany& call) { clients.emplace_back([call] { call.answer(Answers{thing("a")}); }); };
  LoopWorker worker(reads);
  worker.ask("t");
  clients.clear();
  worker.turn();
  CHECK(worker.answered("t") == 1);
}

TEST_CASE("A target's secrets leave an asynchronous call in no form") {
  ::setenv("AS_TOKEN", "s3cret-value", 1);
  Reads reads;
  reads.read = [](const AsyncReadMany& call) {
    call.after(1ms, [call] {
      const auto token = call.request().target.config.at("token").get<std::string>();
      call.context().log().info("token is {}", token);
      call.answer(access_denied("not with " + token));
    });
  };
  WorkerHarness worker(reads.plugin, 2, {.env = {"AS_*"}, .files = {}, .secret_dir = {}});
  worker.start_accepted();
  Job job = worker.job("t", ids({"a"}));
  job.target.config = {R"({"token":null})", {{"/token", {{SecretPart::Kind::kEnv, "AS_TOKEN"}}}}};
  worker.send_to_pool(job);
  worker.run_blocking();
  worker.advance(1ms);
  const auto read = std::get<ReadResult>(worker.result("t"));
  CHECK(std::get<Error>(read.items.front()).message == "not with ***");
  CHECK_THAT(worker.logged(), Catch::Contains("job=job-t token=t target=target token is ***"));
  CHECK_THAT(worker.logged(), !Catch::Contains("s3cret"));
  ::unsetenv("AS_TOKEN");
}

TEST_CASE("An answer that comes while the call begins to wait leaves nothing behind") {
  Reads reads;
  reads.read = [](const AsyncReadMany& call) {
    std::jthread([call] { call.answer(Answers{thing("a")}); }).join();
    call.after(1h, [call] {});
  };
  LoopWorker worker(reads);
  worker.ask("t");
  CHECK(worker.answered("t") == 1);
  CHECK(worker.calls().next_due() == TimePoint::max());
}

TEST_CASE("A call that is answered waits for nothing beside the next page's") {
  Plugin plugin({.name = "async", .ns = "AS", .version = "1.0.0"});
  std::optional<AsyncList> first;
  plugin.type({.name = "AS::Thing", .list_gives = ListGives::kProperties}).list_async([&](const AsyncList& call) {
    if (!first) {
      first = call;
      return call.answer(ListPage{.items = {thing("a")}, .next_page_token = "more"});
    }
    first->after(1h, [] {});
    call.after(1ms, [call] { call.answer(ListPage{.items = {thing("b")}}); });
  });
  WorkerHarness worker(plugin);
  worker.start_accepted();
  worker.resolve_config();
  worker.send_to_pool(worker.job("t", ListJob{.parent = {}, .page_token = {}, .page_size = 100, .pages = 2}));
  worker.advance(1ms);
  CHECK(std::get<ListResult>(worker.result("t")).items.size() == 2);
  first.reset();
}

TEST_CASE("Tests call asynchronous functions as all others") {
  Reads reads;
  const auto read = [&] { return read_all(reads.plugin, "AS::Thing", Json::object(), {"a"}); };
  SECTION("that answer at once") {
    CHECK(read().size() == 1);
  }
  SECTION("that wait, and block") {
    reads.read = [](const AsyncReadMany& call) {
      call.after(1ms, [call] { call.block([call] { call.answer(Answers{thing("a")}); }); });
    };
    CHECK(read().size() == 1);
  }
  SECTION("that answer from elsewhere") {
    std::vector<std::jthread> clients;
    reads.read = [&](const AsyncReadMany& call) { clients.emplace_back([call] { call.answer(Answers{thing("a")}); }); };
    CHECK(read().size() == 1);
  }
  SECTION("that answer while they wait") {
    reads.read = [](const AsyncReadMany& call) {
      call.after(1h, [call] {});
      call.answer(Answers{thing("a")});
    };
    CHECK(read().size() == 1);
  }
  SECTION("that throw") {
    reads.read = [](const AsyncReadMany& call) { call.after(0ms, [] { throw std::runtime_error("later"); }); };
    CHECK_THROWS_WITH(read(), Catch::Contains("later"));
  }
  SECTION("that give no answer") {
    reads.read = [](const AsyncReadMany& call) { call.after(0ms, [] {}); };
    CHECK_THROWS_WITH(read(), Catch::Contains("gave no answer"));
  }
}

TEST_CASE("A call that a test waits for goes on when it is stopped") {
  Reads reads;
  reads.read = [](const AsyncReadMany& call) {
    call.after(1h, [call] { call.answer(failure(Errc::kCancelled, "stopped")); });
  };
  FakeContext context;
  Job job;
  job.type = "AS::Thing";
  job.operation = ids({"a"});
  std::jthread stopper([&] { context.stop(); });
  const auto result = std::get<ReadResult>(reads.plugin.run(job, Json::object(), context));
  CHECK(std::get<Error>(result.items.front()).code == Errc::kCancelled);
}

TEST_CASE("The function given last is the one that is called") {
  Plugin plugin({.name = "async", .ns = "AS", .version = "1.0.0"});
  auto& type = plugin.type({.name = "AS::Thing"});
  type.read_many_async([](const AsyncReadMany& call) { call.answer(Answers{thing("async")}); });
  Job job;
  job.type = "AS::Thing";
  job.operation = ids({"a"});
  CHECK(plugin.is_async(job));
  type.read([](const ReadRequest&, JobContext&) -> Result<Resource> { return thing("a"); });
  CHECK_FALSE(plugin.is_async(job));
}

}  // namespace
}  // namespace muster::testing
