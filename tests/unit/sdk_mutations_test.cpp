// Results of changes: kept until a coordinator has acknowledged them.
#include <catch2/catch.hpp>

#include "sdk_changes.h"

using namespace muster;
using namespace muster::test;
using muster::testing::MemoryDisk;
using muster::testing::MemoryJournal;
using muster::testing::WorkerHarness;
using State = WorkerCore::State;

TEST_CASE("a mutation's result asks for an acknowledgement, and is kept until it comes") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  CHECK(std::get<MutationResult>(worker.result("a")) ==
        MutationResult{MutationStatus::kSuccess, "", "made", "uid", R"({"n":1})", Millis{0}});
  REQUIRE(disk->files.contains(Token("a")));
  CHECK(disk->files.at(Token("a")).reply == worker.heard().back().data);
  worker.advance(Millis{1999});
  CHECK(worker.resent().empty());
  worker.acknowledge(reply_subject(worker, "a"), ack("a"));
  CHECK(disk->files.empty());
  worker.advance(Millis{60'000});
  CHECK(worker.resent().empty());
}

TEST_CASE("without an acknowledgement a result goes to any coordinator, again and again, as it was") {
  ChangingPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  const auto first = worker.heard().back();
  worker.advance(Millis{125'000});
  const auto resent = worker.resent();
  std::vector<Millis> gaps;
  TimePoint before = first.at;
  for (const auto& message : resent) {
    CHECK(message.data == first.data);
    CHECK_FALSE(message.reply.empty());
    gaps.push_back(std::chrono::duration_cast<Millis>(message.at - before));
    before = message.at;
  }
  CHECK(gaps == std::vector<Millis>{Millis{2000}, Millis{2000}, Millis{4000}, Millis{8000}, Millis{16'000},
                                    Millis{30'000}, Millis{30'000}, Millis{30'000}});
}

TEST_CASE("each verdict but `later` is final") {
  const auto verdict = GENERATE(Verdict::kCommitted, Verdict::kSuperseded, Verdict::kRefused, Verdict::kLater);
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  worker.advance(Millis{2000});
  REQUIRE(worker.resent().size() == 1);
  worker.acknowledge(worker.resent().back().subject, ack("a", verdict));
  worker.advance(Millis{2000});
  const bool final = verdict != Verdict::kLater;
  CHECK(worker.resent().size() == (final ? 1 : 2));
  CHECK(disk->files.empty() == final);
}

TEST_CASE("an acknowledgement of something else changes nothing") {
  ChangingPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  ResultAck other = ack("a");
  other.job = JobId("another");
  worker.acknowledge(reply_subject(worker, "a"), other);
  worker.acknowledge(reply_subject(worker, "a"), ack("b"));
  worker.send(worker.last_reply_of(reply_subject(worker, "a")), "garbage");
  CHECK(worker.core().counters().malformed == 1);
  worker.advance(Millis{2000});
  CHECK(worker.resent().size() == 1);
}

TEST_CASE("that nobody is there to take a result is no answer to it") {
  ChangingPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  worker.coordinator_bus().disconnect();
  worker.run_one();
  worker.advance(Millis{9000});
  CHECK(worker.core().counters().malformed == 0);
  worker.coordinator_bus().reconnect();
  worker.advance(Millis{30'000});
  CHECK_FALSE(worker.resent().empty());
}

TEST_CASE("errors of a mutation that was begun are acknowledged, too; those of others are not") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  SECTION("the plugin says no") {
    plugin.answer = [](JobContext&) { return Result<Mutation>(conflict("changed meanwhile")); };
    begin(worker, "a");
    worker.run_one();
    CHECK(worker.failed("a").code == Errc::kConflict);
    CHECK(disk->files.size() == 1);
    worker.advance(Millis{2000});
    CHECK(worker.resent().size() == 1);
  }
  SECTION("no go came") {
    worker.send_to_pool(worker.job("a", kCreate));
    worker.advance(Millis{10'000});
    CHECK(worker.failed("a").code == Errc::kCancelled);
    CHECK(worker.last_reply_of(reply_subject(worker, "a")).empty());
  }
  SECTION("cancelled before its go") {
    worker.send_to_pool(worker.job("a", kCreate));
    worker.control(Cancel{running("a")});
    worker.advance(Millis{10'000});
    CHECK(worker.failed("a").code == Errc::kCancelled);
  }
  SECTION("the worker ends before its go") {
    worker.send_to_pool(worker.job("a", kCreate));
    worker.core().drain(worker.now(), Millis{2000});
    worker.advance(Millis{2000});
    CHECK(worker.failed("a").code == Errc::kServiceUnavailable);
  }
  SECTION("a read") {
    worker.send_to_pool(worker.job("a", ReadJob{{"x"}}));
    worker.run_one();
    CHECK(worker.last_reply_of(reply_subject(worker, "a")).empty());
    worker.advance(Millis{10'000});
    CHECK(disk->files.empty());
  }
  SECTION("a status") {
    worker.send_to_pool(worker.job("a", StatusJob{"request", "made"}));
    worker.run_one();
    CHECK(std::get<MutationResult>(worker.result("a")).native_id == "made");
    worker.advance(Millis{10'000});
    CHECK(disk->files.empty());
  }
  if (disk->files.empty()) CHECK(worker.resent().empty());
}

TEST_CASE("results that wait are sent at once after a reconnect, and when a coordinator accepts the worker") {
  ChangingPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  SECTION("reconnect") {
    worker.worker_bus().disconnect();
    worker.run_one();
    worker.advance(Millis{20'000});
    CHECK(worker.resent().empty());
    worker.worker_bus().reconnect();
    worker.turn();
    CHECK(worker.resent().size() == 1);
  }
  SECTION("a coordinator that comes back") {
    worker.run_one();
    worker.advance(Millis{40'000});
    const auto before = worker.resent().size();
    worker.call_roll();
    worker.accept();
    CHECK(worker.resent().size() == before + 1);
    worker.accept();  // another coordinator's: what was said this moment is not said again
    CHECK(worker.resent().size() == before + 1);
  }
}

TEST_CASE("a coordinator that comes back is given as many tries as the one before") {
  ChangingPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  worker.advance(Millis{100'000});  // by now there is half a minute between them
  worker.call_roll();
  worker.accept();
  const auto before = worker.resent().size();
  worker.advance(Millis{6000});
  const auto resent = worker.resent();
  REQUIRE(resent.size() == before + 2);
  CHECK(resent[before].at - resent[before - 1].at == Millis{2000});
  CHECK(resent[before + 1].at - resent[before].at == Millis{4000});
}

TEST_CASE("results that wait keep no worker awake that initializes or cleans up") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  SECTION("initializes") {
    plugin.initialize([](InitializeContext&) { return Result<void>(); });
    WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
    worker.start();
    worker.advance(Millis{40'000});  // what others have left would be due
    REQUIRE(worker.core().state() == State::kInitializing);
    CHECK(worker.core().next_due() > worker.now());
  }
  SECTION("cleans up") {
    plugin.cleanup([](Context&) {});
    WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
    worker.start_accepted();
    begin(worker, "a");
    worker.run_one();
    worker.control(Drain{});
    worker.advance(Millis{2000});  // nobody has acknowledged it
    REQUIRE(worker.core().state() == State::kCleaning);
    CHECK(worker.core().next_due() > worker.now());
    CHECK(disk->files.size() == 1);
  }
}

TEST_CASE("a change that is done keeps no worker awake that cleans up") {
  ChangingPlugin plugin;
  plugin.cleanup([](Context&) {});
  WorkerHarness worker(plugin);
  worker.start_accepted();
  auto job = worker.job("a", kCreate);
  job.lease = Millis{10'000};
  begin(worker, job);
  worker.run_one();
  worker.acknowledge(reply_subject(worker, "a"), ack("a"));
  worker.advance(Millis{7000});
  worker.control(Drain{});
  worker.advance(Millis{3200});  // the lease has ended
  REQUIRE(worker.core().state() == State::kCleaning);
  CHECK(worker.core().next_due() > worker.now());
}

TEST_CASE("a worker that is killed has its results sent by the next one") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  std::string said;
  {
    WorkerHarness worker(plugin, 4, {}, std::make_shared<MemoryJournal>(disk));
    worker.start_accepted();
    begin(worker, "done");
    worker.run_one();
    said = worker.heard().back().data;
    begin(worker, "running");  // and dies of it
    REQUIRE(disk->files.size() == 1);
    static_cast<void>(MemoryJournal(disk).begin(Token("running")));
  }
  WorkerHarness worker(plugin, 4, {}, std::make_shared<MemoryJournal>(disk));
  worker.start();
  worker.advance(Millis{900});
  worker.worker_bus().disconnect();
  worker.worker_bus().reconnect();
  worker.turn();
  CHECK(worker.resent().empty());  // nobody is there to take it
  worker.accept();
  REQUIRE(worker.resent().size() == 1);
  CHECK(worker.resent().front().data == said);
  CHECK(disk->files.size() == 1);
  worker.acknowledge(worker.resent().back().subject, ack("done"));
  CHECK(disk->files.empty());
  CHECK(plugin.calls == 1);
}

TEST_CASE("a worker takes over what others leave while it runs, until it drains") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  Job job = worker.job("b", kCreate);
  const JobReply left{job.fleet, job.id, job.token, WorkerId("w0"), 1, 1, JobResult(not_found())};
  disk->files[job.token] = {nullptr, encode(left)};
  auto strange = left;
  strange.token = Token("z");  // which is no name of the file
  const auto not_understood = GENERATE_COPY(Bytes("garbage"), encode(strange));
  disk->files[Token("c")] = {nullptr, not_understood};
  worker.advance(Millis{31'000});
  REQUIRE(worker.resent().size() == 1);
  CHECK(decode<JobReply>(worker.resent().front().data).value() == left);
  CHECK(disk->files.size() == 2);
  worker.acknowledge(worker.resent().back().subject, ack("b", Verdict::kRefused));
  REQUIRE(disk->files.size() == 1);
  CHECK(disk->files.begin()->second.reply == not_understood);  // another worker may do better

  worker.send_to_pool(worker.job("slow"));
  worker.core().drain(worker.now(), std::nullopt);
  job.token = Token("d");
  disk->files[job.token] = {nullptr, encode(left)};
  worker.advance(Millis{40'000});
  CHECK(worker.core().state() == State::kDraining);
  CHECK(disk->files.at(job.token).owner == nullptr);
}

TEST_CASE("what a worker of another fleet left on the host is left to that fleet") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  const Token token("b");
  const JobReply left{FleetId("another"), JobId("j"), token, WorkerId("w0"), 1, 1, JobResult(not_found())};
  disk->files[token] = {nullptr, encode(left)};
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  worker.advance(Millis{31'000});
  CHECK(worker.resent().empty());  // its coordinator would refuse it, and that is final
  REQUIRE(disk->files.size() == 1);
  CHECK(disk->files.begin()->second.owner == nullptr);
}

TEST_CASE("results that come back in numbers are sent a few at a time") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  for (int i = 0; i < 100; ++i) {
    const Token token("t" + std::to_string(i));
    disk->files[token] = {
        nullptr, encode(JobReply{FleetId("fleet"), JobId("j"), token, WorkerId("w0"), 1, 1, JobResult(not_found())})};
  }
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start();
  worker.accept();
  CHECK(worker.resent().size() == 16);
  worker.advance(Millis{1000});
  CHECK(worker.resent().size() == 100);
}

TEST_CASE("a worker takes over no more results than it may keep, however often it looks") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  for (int i = 0; i < 1010; ++i) {
    const Token token("t" + std::to_string(i));
    disk->files[token] = {
        nullptr, encode(JobReply{FleetId("fleet"), JobId("j"), token, WorkerId("w0"), 1, 1, JobResult(not_found())})};
  }
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  worker.advance(Millis{61'000});
  CHECK(std::ranges::count(disk->files, nullptr, [](const auto& file) { return file.second.owner; }) == 10);
}

TEST_CASE("a worker that cannot keep results refuses changes before anything is done, and reads on") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  std::shared_ptr<Journal> journal = std::make_shared<MemoryJournal>(disk);
  SECTION("no journal") {
    journal = nullptr;
  }
  SECTION("a full one") {
    disk->full = true;
  }
  SECTION("too many results") {
    for (int i = 0; i < 1500; ++i) {
      const Token token("t" + std::to_string(i));
      disk->files[token] = {
          nullptr, encode(JobReply{FleetId("fleet"), JobId("j"), token, WorkerId("w0"), 1, 1, JobResult(not_found())})};
    }
  }
  SECTION("too many bytes") {
    for (int i = 0; i < 4; ++i) {
      const Token token("t" + std::to_string(i));
      disk->files[token] = {nullptr,
                            encode(JobReply{FleetId("fleet"), JobId("j"), token, WorkerId("w0"), 1, 1,
                                            JobResult(CallResult{std::string(17 * 1024 * 1024, ' '), false})})};
    }
  }
  WorkerHarness worker(plugin, 2, {}, journal);
  worker.start();
  worker.accept();
  const auto before = disk->files.size();
  begin(worker, "a");
  if (!worker.submitted().empty()) worker.run_one();
  const Error error = worker.failed("a");
  CHECK(error.code == Errc::kThrottling);
  CHECK(error_traits(error.code).applied == Applied::kNotApplied);
  CHECK(error.retry_after > Millis{0});
  CHECK(plugin.calls == 0);
  CHECK(disk->files.size() == before);
  worker.send_to_pool(worker.job("b", ReadJob{{"x"}}));
  worker.run_one();
  CHECK(std::holds_alternative<ReadResult>(worker.result("b")));
}

TEST_CASE("a result that cannot be written is sent all the same") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  begin(worker, "a");
  disk->broken = true;
  worker.run_one();
  CHECK(std::get<MutationResult>(worker.result("a")).native_id == "made");
  CHECK_THAT(worker.logged(), Catch::Contains("token=a is done, and its result is not on disk"));
  worker.advance(Millis{2000});
  CHECK(worker.resent().size() == 1);
}

TEST_CASE("a worker that ends gives back what it has claimed, and begins none of it") {
  ChangingPlugin plugin;
  plugin.cleanup([](Context&) {});
  WorkerHarness worker(plugin);
  worker.start_accepted();
  const Job job = worker.job("a", kCreate);
  worker.send_to_pool(job);
  worker.call_roll();
  worker.reject({.code = "MANIFEST", .message = "not what it was", .final = true});
  CHECK(worker.core().state() == WorkerCore::State::kCleaning);
  worker.control(Go{{job.id, job.token}});
  worker.run_life();
  CHECK(worker.core().state() == WorkerCore::State::kRejected);
  CHECK_FALSE(worker.core().runs_plugin_code());
  CHECK(plugin.calls == 0);
  CHECK(error_traits(worker.failed("a").code).applied == Applied::kNotApplied);
}

TEST_CASE("a lease that ends between go and the call keeps the plugin from being called") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  const Job job = worker.job("a", kCreate);
  worker.send_to_pool(job);
  worker.advance(Millis{2000});
  worker.control(Go{{job.id, job.token}});
  worker.stall(Millis{1000});  // the process was stopped
  worker.run_one();
  CHECK(plugin.calls == 0);
  const Error error = worker.failed("a");
  CHECK(error_traits(error.code).applied == Applied::kNotApplied);
  CHECK(disk->files.empty());

  begin(worker, "b");
  worker.stall(Millis{2999});
  worker.run_one();
  CHECK(plugin.calls == 1);
}

TEST_CASE("a change that is stopped is answered as the plugin ends it, with the reason for the stop") {
  ChangingPlugin plugin;
  plugin.answer = [](JobContext& context) -> Result<Mutation> {
    if (context.stop_token().stop_requested()) return failure(Errc::kCancelled, "stopped half-way");
    return Mutation::deleted();
  };
  WorkerHarness worker(plugin);
  worker.start_accepted();
  Job job = worker.job("a", DeleteJob{"key", "x", {}});
  job.deadline = Millis{5000};
  begin(worker, job);
  Errc expected = Errc::kCancelled;
  SECTION("cancelled") {
    worker.control(Cancel{running("a")});
  }
  SECTION("its deadline came") {
    worker.stall(Millis{2000});  // the lease still holds where the executor looks
    worker.core().tick(worker.now() + Millis{3000});
    expected = Errc::kTimeout;
  }
  SECTION("the worker ends") {
    worker.core().drain(worker.now(), Millis{2000});
    worker.advance(Millis{600});
    expected = Errc::kServiceUnavailable;
  }
  worker.run_one();
  CHECK(worker.failed("a").code == expected);
  CHECK(worker.failed("a").message == "stopped half-way");
  CHECK_FALSE(worker.last_reply_of(reply_subject(worker, "a")).empty());
}

TEST_CASE("a change that fails as it is stopped fails with what the plugin knows of it") {
  ChangingPlugin plugin;
  plugin.answer = [](JobContext& context) -> Result<Mutation> {
    if (!context.stop_token().stop_requested()) return Mutation::deleted();
    return conflict("it had changed before");  // nothing was done, which the reason for the stop would not say
  };
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a", DeleteJob{"key", "x", {}});
  worker.control(Cancel{running("a")});
  worker.run_one();
  CHECK(worker.failed("a").code == Errc::kConflict);
}

TEST_CASE("a stuck change is given up, and what came of it is told when it returns") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  Job job = worker.job("a", kCreate);
  job.lease = Millis{60'000};
  begin(worker, job);
  worker.control(Cancel{running("a")});
  worker.advance(Millis{10'000});
  CHECK(worker.failed("a").code == Errc::kTimeout);
  CHECK(worker.last_reply_of(reply_subject(worker, "a")).empty());  // its acknowledgement would not be the result's
  worker.advance(Millis{20'000});
  CHECK(worker.resent().empty());
  worker.heard().clear();
  worker.run_one();
  CHECK(std::get<MutationResult>(worker.result("a")).native_id == "made");
  CHECK(disk->files.size() == 1);
  worker.advance(Millis{2000});
  CHECK(worker.resent().size() == 1);
}

TEST_CASE("a result over the payload limit is acknowledged as a whole") {
  ChangingPlugin plugin;
  plugin.answer = [](JobContext&) -> Result<Mutation> {
    return Mutation(Resource{"made", Properties{{"text", std::string(20'000, 'x')}}, ""});
  };
  WorkerHarness worker(plugin);
  worker.broker().set_max_payload(8192);
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  worker.advance(Millis{2000});
  const auto parts = worker.resent();
  REQUIRE(parts.size() == 3);
  Bytes whole;
  for (const auto& part : parts) {
    whole += std::get<Part>(decode<JobReply>(part.data).value().body).data;
    CHECK(part.reply.empty() == (&part != &parts.back()));
  }
  const JobReply reply = decode<JobReply>(whole).value();
  CHECK(std::get<MutationResult>(std::get<JobResult>(reply.body)).properties.size() > 20'000);
  worker.acknowledge(parts.back().subject, ack("a"));
  worker.advance(Millis{10'000});
  CHECK(worker.resent().size() == 3);
}

TEST_CASE("a drained worker waits a moment for acknowledgements, and ends without them") {
  ChangingPlugin plugin;
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, {}, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  begin(worker, "a");
  worker.control(Drain{});
  worker.advance(Millis{5000});
  CHECK(worker.core().state() == State::kDraining);  // it runs
  SECTION("none comes") {
    worker.complete_one(MutationResult{MutationStatus::kSuccess, "", "made", "", "", Millis{0}});
    worker.advance(Millis{999});
    CHECK(worker.core().state() == State::kDraining);
    CHECK(worker.resent().size() == 1);
    worker.advance(Millis{1});
  }
  SECTION("one comes") {
    worker.complete_one(MutationResult{MutationStatus::kSuccess, "", "made", "", "", Millis{0}});
    CHECK(worker.core().state() == State::kDraining);
    worker.acknowledge(reply_subject(worker, "a"), ack("a"));
  }
  CHECK(worker.core().state() == State::kDrained);
}

TEST_CASE("statistics tell what waits for a coordinator") {
  ChangingPlugin plugin;
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  const auto bytes = worker.heard().back().data.size();
  const auto waiting = [&](const std::string& inbox) {
    worker.send("$SRV.STATS", "{}", inbox);
    worker.advance(Millis{100});
    const auto heard = worker.heard();
    const auto stats =
        std::find_if(heard.begin(), heard.end(), [&](const WorkerHarness::Heard& it) { return it.subject == inbox; });
    REQUIRE(stats != heard.end());
    return Json(Json::parse(stats->data)["endpoints"][0]["data"]["journal"]);
  };
  const auto inbox = worker.coordinator_bus().inbox();
  CHECK(waiting(inbox + ".stats") == Json{{"results", 1}, {"bytes", bytes}});
  worker.advance(Millis{2000});
  worker.acknowledge(worker.resent().back().subject, ack("a", Verdict::kCommitted));
  CHECK(waiting(inbox + ".stats-then") == Json{{"results", 0}, {"bytes", 0}});
}

TEST_CASE("properties over 256 KiB are left out of a change's result") {
  ChangingPlugin plugin;
  const auto size = GENERATE(as<std::size_t>{}, kMaxPropertiesBytes, kMaxPropertiesBytes + 1);
  plugin.answer = [&](JobContext&) -> Result<Mutation> {
    return Mutation(Resource{"made", Properties{{"t", std::string(size - 8, 'x')}}, ""});
  };
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  const auto result = std::get<MutationResult>(worker.result("a"));
  CHECK(result.native_id == "made");
  CHECK(result.properties.size() == (size > kMaxPropertiesBytes ? 0 : size));
}

TEST_CASE("a long message of a failed change is cut") {
  ChangingPlugin plugin;
  plugin.answer = [&](JobContext&) { return Result<Mutation>(unavailable(std::string(5000, 'x'))); };
  WorkerHarness worker(plugin);
  worker.start_accepted();
  begin(worker, "a");
  worker.run_one();
  CHECK(worker.failed("a").message.size() == 4096);
}
