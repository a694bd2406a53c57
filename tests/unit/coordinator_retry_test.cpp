// When a job waits, is tried again or given up: nobody there, deadlines, errors, rates, parts, grace.
#include <algorithm>

#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

TEST_CASE_METHOD(DispatcherFixture, "without a worker a job waits, and goes when one comes") {
  submit();
  advance(Millis(20'000));
  CHECK(sent.empty());
  CHECK(outcomes().empty());
  join("w1");
  tick();
  const auto message = take();
  CHECK(message.job.attempt == 1);
  CHECK(message.job.deadline == Millis(100'000));  // what is left of it
}

TEST_CASE_METHOD(DispatcherFixture, "a job without responders waits, and goes when a worker comes") {
  join("w1");
  auto message = dispatch();
  for (int i = 0; i < 10; ++i) {
    no_responders(message.job);
    CHECK(sent.empty());
    advance(Millis(1000));
    message = take();
    CHECK(message.job.attempt == 1);
    CHECK(message.subject == group());  // nobody has taken it, and nobody is full of it
  }
  no_responders(message.job);
  join("w2");
  tick();
  message = take();
  CHECK(message.job.attempt == 1);
  succeed(message.job, "w2");
  CHECK(outcome().attempts == 1);
}

TEST_CASE_METHOD(DispatcherFixture,
                 "a job that a worker has is not given to another, whatever is said of its subject") {
  join("w1");
  join("w2");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  no_responders(message.job);
  CHECK(sent.empty());
  CHECK(dispatcher.leases(message.job.id, message.job.token));
}

TEST_CASE_METHOD(DispatcherFixture, "what was sent before a worker was in the group does not wait for another one") {
  join("w1", 2);
  const auto first = dispatch(), second = dispatch();
  advance(Millis(1));
  no_responders(first.job);
  heartbeat("w1", {}, 2);  // it is in now, and no answer to what was sent before says anything else
  dispatcher.on_lane_changed({"NS", "default"});
  no_responders(second.job);
  CHECK(take().job.id == second.job.id);
  CHECK(take().job.id == first.job.id);
}

TEST_CASE_METHOD(DispatcherFixture, "a worker's own subject without responders sends the job elsewhere") {
  join("w1");
  join("w2", 2);
  join("w3", 2);
  accept(dispatch().job, "w1");
  const auto first = dispatch();
  REQUIRE(first.subject == own("w2"));
  no_responders(first.job);
  const auto second = take();
  CHECK(second.subject == own("w3"));
  CHECK(second.job.attempt == 1);
}

TEST_CASE_METHOD(DispatcherFixture, "a job that nobody took ends at its deadline, and says so") {
  const auto id = submit(with_deadline(Millis(5000)));
  advance(Millis(4900));
  CHECK(outcomes().empty());
  advance(Millis(300));
  const auto ended = outcome();
  CHECK(ended.job == id);
  CHECK(std::get<Error>(ended.result).code == Errc::kNoWorker);
  CHECK_THAT(std::get<Error>(ended.result).message, Catch::Contains("NS/default"));
  CHECK(ended.worker.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a job that runs is cancelled at its deadline, however alive its worker is") {
  join("w1");
  const auto message = dispatch(with_deadline(Millis(5000)));
  accept(message.job, "w1");
  for (int second = 0; second < 6; ++second) {
    heartbeat("w1", {{message.job.id, message.job.token}});
    advance(Millis(900));
  }
  CHECK(failure() == Errc::kTimeout);
  REQUIRE_FALSE(cancelled.empty());
  CHECK(cancelled[0].subject == subjects.worker_control("NS", WorkerId("w1")));
  CHECK(cancelled[0].job == Running{message.job.id, message.job.token});
  CHECK(sent.empty());
  CHECK(dispatch().job.attempt == 1);  // its slot is free
}

TEST_CASE_METHOD(DispatcherFixture, "an error that no retry mends ends the job at once") {
  join("w1");
  for (const auto code : {Errc::kNotFound, Errc::kInvalidRequest, Errc::kUnsupported, Errc::kAccessDenied, Errc::kLimit,
                          Errc::kCancelled, Errc::kTargetChanged, Errc::kAlreadyExists}) {
    fail(dispatch().job, "w1", code);
    CHECK(failure() == code);
  }
  advance(Millis(60'000));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a retriable error is tried again with growing pauses, and then ends the job") {
  join("w1");
  config.retry = {5, Millis(1000), Millis(3000)};
  for (const auto code : {Errc::kServiceUnavailable, Errc::kNetwork, Errc::kTimeout}) {
    auto message = dispatch();
    for (int attempt = 1; attempt < 5; ++attempt) {
      CHECK(message.job.attempt == attempt);
      const auto failed = clock.now();
      fail(message.job, "w1", code);
      CHECK(outcomes().empty());
      message = await();
      CHECK(message.at - failed <= std::min(Millis(3000), Millis(1000) * (1 << (attempt - 1))) + Millis(100));
    }
    CHECK(message.job.attempt == 5);
    fail(message.job, "w1", code);
    const auto ended = outcome();
    CHECK(std::get<Error>(ended.result).code == code);
    CHECK(std::get<Error>(ended.result).message == "because");
    CHECK(ended.attempts == 5);
  }
}

TEST_CASE_METHOD(DispatcherFixture, "an internal failure is tried three times") {
  join("w1");
  auto message = dispatch();
  for (int attempt = 1; attempt < 3; ++attempt) {
    fail(message.job, "w1", Errc::kInternalFailure);
    message = await();
  }
  fail(message.job, "w1", Errc::kInternalFailure);
  CHECK(failure() == Errc::kInternalFailure);
}

TEST_CASE_METHOD(DispatcherFixture, "an internal failure is tried no more often than the configuration says") {
  config.retry.attempts = 2;
  join("w1");
  fail(dispatch().job, "w1", Errc::kInternalFailure);
  fail(await().job, "w1", Errc::kInternalFailure);
  CHECK(outcome().attempts == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "a change that was throttled is begun anew, under a lease of its own") {
  join("w1");
  auto message = dispatch(change());
  CHECK(message.job.lease == kChangeLease);
  accept(message.job, "w1");
  fail(message.job, "w1", Errc::kThrottling, Millis(8000));
  message = await();
  accept(message.job, "w1");
  CHECK(told_to_go == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "the pauses of jobs that failed together are spread") {
  join("w1", 64);
  config.retry = {5, Millis(10'000), Millis(10'000)};
  std::vector<Job> jobs;
  std::vector<Running> running;
  for (int i = 0; i < 64; ++i) jobs.push_back(dispatch().job);
  for (const auto& job : jobs) fail(job, "w1", Errc::kNetwork);
  const auto failed = clock.now();
  std::size_t early = 0;
  for (int i = 0; i < 64; ++i) {
    const auto message = await();
    early += message.at - failed < Millis(5000) ? 1 : 0;
    accept(message.job, "w1");
    heartbeat("w1", [&] {
      running.push_back({message.job.id, message.job.token});
      return running;
    }());
  }
  CHECK(early > 10);  // full jitter: about half of them
  CHECK(early < 54);
  CHECK(clock.now() - failed <= Millis(10'100));
}

TEST_CASE_METHOD(DispatcherFixture, "a hint when to try again is honoured") {
  join("w1");
  const auto code = GENERATE(Errc::kServiceUnavailable, Errc::kThrottling);
  fail(dispatch().job, "w1", code, Millis(7000));
  advance(Millis(6950));
  CHECK(sent.empty());
  CHECK(await().job.attempt == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "a retry that would come after the deadline is not waited for") {
  join("w1");
  fail(dispatch(with_deadline(Millis(5000))).job, "w1", Errc::kServiceUnavailable, Millis(60'000));
  advance(Millis(5200));
  CHECK(failure() == Errc::kServiceUnavailable);
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "throttling is no failure: only the deadline ends the job") {
  join("w1");
  limiter.set_rate("NS", TargetId("t1"), 1000, clock.now());
  auto message = dispatch(with_deadline(Millis(600'000)));
  for (int i = 0; i < 12; ++i) {
    fail(message.job, "w1", Errc::kThrottling);
    CHECK(outcomes().empty());
    message = await();
  }
  succeed(message.job, "w1");
  CHECK(std::holds_alternative<ListResult>(outcome().result));
}

TEST_CASE_METHOD(DispatcherFixture, "throttling halves what goes to the target, and to no other") {
  join("w1", 512);
  config.retry = {5, Millis(1), Millis(1)};
  for (const auto* target : {"t1", "t2"}) {
    limiter.set_rate("NS", TargetId(target), 20, clock.now());
    for (int i = 0; i < 200; ++i) submit(spec(Priority::kDiscovery, target));
  }
  tick();
  CHECK(sent.size() == 40);  // full buckets
  const auto first = take();
  REQUIRE(first.job.target.id == TargetId("t1"));
  sent.clear();
  fail(first.job, "w1", Errc::kThrottling);
  advance(Millis(1000));
  const auto of = [&](const char* target) {
    return std::ranges::count_if(sent, [&](const Sent& s) { return s.job.target.id == TargetId(target); });
  };
  CHECK(of("t1") <= 13);
  CHECK(of("t1") >= 8);
  CHECK(of("t2") >= 19);
}

TEST_CASE_METHOD(DispatcherFixture, "what a draining worker still holds takes no slot of the others") {
  join("w1", 2);
  accept(dispatch().job, "w1");
  accept(dispatch().job, "w1");
  registry.heartbeat({WorkerId("w1"), "NS", "default", 2, {}, true, 0, true, {}}, clock.now());
  join("w2", 2);
  for (int i = 0; i < 2; ++i) CHECK(dispatch().subject == own("w2"));
  submit();
  tick();
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "what a lost worker may still be at takes no slot of the others") {
  join("w1", 2);
  std::vector<Job> jobs;
  for (int i = 0; i < 2; ++i) jobs.push_back(dispatch(change()).job);
  for (const auto& job : jobs) accept(job, "w1");
  lose("w1");
  join("w2", 2);
  for (int i = 0; i < 2; ++i) {
    submit();
    tick();
    REQUIRE(sent.size() == 1);
    jobs.push_back(take().job);
    accept(jobs.back(), "w2");
  }
  submit();
  tick();
  CHECK(sent.empty());
  const auto running = [&](std::size_t from) {
    return std::vector<Running>{{jobs[from].id, jobs[from].token}, {jobs[from + 1].id, jobs[from + 1].token}};
  };
  SECTION("it comes back with what it was at") {
    join("w1", 2);
    heartbeat("w1", running(0));
    tick();
    CHECK(sent.empty());
    answer(jobs[0], "w1", JobResult(MutationResult{}));
    CHECK(take().subject == own("w1"));
  }
  SECTION("it does not, and both are attempted again") {
    for (int second = 0; second < 12; ++second) {
      advance(Millis(1000));
      heartbeat("w2", running(2));
    }
    CHECK(sent.empty());
    succeed(jobs[2], "w2");
    REQUIRE(sent.size() == 1);
    CHECK(is_mutation(take().job.operation));
  }
}

TEST_CASE_METHOD(DispatcherFixture,
                 "a worker that cannot keep results sends changes elsewhere, and throttles no target") {
  join("w1");
  const auto message = dispatch(change());
  const auto refuse = [&](const Sent& what, const std::string& worker) {
    answer(what.job, worker, JobResult(Error{Errc::kThrottling, "no room", Millis(5000), 0}), 0);
  };
  SECTION("another of the pool is asked soon") {
    join("w2");
    refuse(message, "w1");
    CHECK(await(config.retry.base + Millis(20)).subject == own("w2"));
  }
  SECTION("it is asked again when it said") {
    refuse(message, "w1");
    const auto before = clock.now();
    succeed(dispatch().job, "w1");  // another job of the target goes at once
    CHECK(await().at - before >= Millis(5000));
  }
}

TEST_CASE_METHOD(DispatcherFixture, "every call that a reply states is charged to the target") {
  join("w1");
  limiter.set_rate("NS", TargetId("t1"), 10, clock.now());
  answer(dispatch().job, "w1", JobResult(ListResult{}), 30);
  submit();
  advance(Millis(1900));
  CHECK(sent.empty());  // twenty calls too many take two seconds
  advance(Millis(400));
  CHECK(sent.size() == 1);
}

TEST_CASE_METHOD(DispatcherFixture, "a result in parts counts once it is complete") {
  join("w1");
  const auto message = dispatch();
  JobReply reply{fleet, message.job.id, message.job.token, WorkerId("w1"), 1, 3, JobResult(ListResult{})};
  std::get<ListResult>(std::get<JobResult>(reply.body)).next_page_token = std::string(1000, 'p');
  const auto whole = encode(reply);
  const auto cut = whole.size() / 3;
  answer(message.job, "w1", Part{2, 3, whole.substr(2 * cut)});
  answer(message.job, "w1", Part{0, 3, whole.substr(0, cut)});
  CHECK(outcomes().empty());
  answer(message.job, "w1", Part{1, 3, whole.substr(cut, cut)});
  const auto ended = outcome();
  CHECK(std::get<ListResult>(ended.result).next_page_token.size() == 1000);
  CHECK(ended.worker == WorkerId("w1"));
}

TEST_CASE_METHOD(DispatcherFixture, "a part that does not come is a reply that was lost") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  const auto whole =
      encode(JobReply{fleet, first.job.id, first.job.token, WorkerId("w1"), 1, 1, JobResult(ListResult{})});
  answer(first.job, "w1", Part{0, 2, whole.substr(0, 8)});
  advance(Millis(3200));
  const auto second = take();
  CHECK(second.job.id == first.job.id);
  answer(first.job, "w1", Part{1, 2, whole.substr(8)});  // too late
  CHECK(outcomes().empty());
  succeed(second.job, "w2");
  CHECK(std::holds_alternative<ListResult>(outcome().result));
}

TEST_CASE_METHOD(DispatcherFixture, "parts that make no reply to the job are an error of the worker") {
  join("w1");
  auto message = dispatch();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    CHECK(message.job.attempt == attempt);
    answer(message.job, "w1", Part{0, 2, "no "});
    answer(message.job, "w1", Part{1, 2, "reply"});
    if (attempt < 3) message = await();
  }
  CHECK(failure() == Errc::kInternalFailure);
}

TEST_CASE_METHOD(DispatcherFixture, "parts that make a reply to another job end neither") {
  join("w1", 2);
  const auto message = dispatch(), other = dispatch();
  const auto whole =
      encode(JobReply{fleet, other.job.id, other.job.token, WorkerId("w1"), 1, 1, JobResult(ListResult{})});
  answer(message.job, "w1", Part{0, 2, whole.substr(0, 8)});
  answer(message.job, "w1", Part{1, 2, whole.substr(8)});
  CHECK(outcomes().empty());
  CHECK(await().job.id == message.job.id);
  succeed(other.job, "w1");
  CHECK(outcome().job == other.job.id);
}

TEST_CASE_METHOD(DispatcherFixture, "parts of replies that never came whole take no room from those that come after") {
  join("w1");
  for (int i = 0; i < 8; ++i) {  // 256 MiB: all that may lie there at a time
    const auto message = dispatch();
    answer(message.job, "w1", Part{0, 2, Bytes(32U << 20, 'x')});
    fail(message.job, "w1", Errc::kAccessDenied);
    CHECK(failure() == Errc::kAccessDenied);
  }
  answer(dispatch().job, "w1", Part{0, 2, "one more"});
  CHECK(dispatcher.counters().refused_parts == 0);
}

TEST_CASE_METHOD(DispatcherFixture,
                 "an answer to a read that takes longer than the patience for it counts all the same") {
  join("w1");
  const auto first = dispatch();
  SECTION("while its worker is not heard") {
    advance(Millis(2000));
    REQUIRE(sent.empty());
    succeed(first.job, "w1");
    CHECK(std::holds_alternative<ListResult>(outcome().result));
  }
  SECTION("while another has it") {
    join("w2");
    advance(Millis(900));
    heartbeat("w1");
    heartbeat("w2");
    advance(Millis(300));
    const auto second = take();
    accept(second.job, "w2");
    SECTION("what it found ends the job, and the other is called back") {
      succeed(first.job, "w1");
      const auto ended = outcome();
      CHECK(std::holds_alternative<ListResult>(ended.result));
      CHECK(ended.attempts == 1);
      REQUIRE(cancelled.size() == 1);
      CHECK(cancelled[0].job == Running{second.job.id, second.job.token});
      succeed(second.job, "w2");
      CHECK(outcomes().empty());
      CHECK(dispatcher.in_flight() == 0);
    }
    SECTION("that it failed does not, nor that it begins only now") {
      fail(first.job, "w1", Errc::kAccessDenied);
      answer(first.job, "w1", Part{0, 2, "some"});
      CHECK(outcomes().empty());
      succeed(second.job, "w2");
      CHECK(std::holds_alternative<ListResult>(outcome().result));
    }
  }
  SECTION("when it comes in parts") {
    const auto whole =
        encode(JobReply{fleet, first.job.id, first.job.token, WorkerId("w1"), 1, 1, JobResult(ListResult{})});
    for (std::uint32_t i = 0; i < 2; ++i) {
      advance(Millis(2000));
      answer(first.job, "w1", Part{i, 2, i == 0 ? whole.substr(0, 8) : whole.substr(8)});
    }
    CHECK(std::holds_alternative<ListResult>(outcome().result));
  }
  tick();
  CHECK(dispatcher.load({"NS", "default"}) == 0);
}

TEST_CASE_METHOD(DispatcherFixture, "a job is with the worker that gives the first sign of it, however late") {
  const bool is_change = GENERATE(false, true);
  join("w1");
  const auto first = dispatch(is_change ? change() : spec());
  const Running given{first.job.id, first.job.token};
  advance(Millis(1200));
  REQUIRE(sent.empty());  // it is not known whether it took its worker with it
  SECTION("before it is sent again") {
    accept(first.job, "w1");
    CHECK((told_to_go > 0) == is_change);
    advance(Millis(2500));
    CHECK(sent.empty());
    answer(first.job, "w1", is_change ? JobResult(MutationResult{}) : JobResult(ListResult{}));
    CHECK(outcome().attempts == 1);
  }
  SECTION("by a heartbeat") {
    heartbeat("w1", {given});
    CHECK((told_to_go > 0) == is_change);
    CHECK(cancelled.empty());
    advance(Millis(2500));
    CHECK(sent.empty());
  }
  SECTION("when it has been sent again, to somebody who has said nothing yet") {
    join("w2");
    heartbeat("w1");
    advance(Millis(200));
    const auto second = take();
    REQUIRE(second.job.id == first.job.id);
    accept(first.job, "w1");
    CHECK((told_to_go > 0) == is_change);
    accept(second.job, "w2");
    REQUIRE(!cancelled.empty());
    CHECK(cancelled.back().job == Running{second.job.id, second.job.token});
    const auto before = cancelled.size();
    heartbeat("w2", {{second.job.id, second.job.token}});
    CHECK(cancelled.size() == before + 1);
    answer(first.job, "w1", is_change ? JobResult(MutationResult{}) : JobResult(ListResult{}));
    CHECK(outcome().attempts == 1);
    CHECK(dispatcher.in_flight() == 0);
  }
  SECTION("but not when another one has given a sign") {
    join("w2");
    heartbeat("w1");
    advance(Millis(200));
    const auto second = take();
    accept(second.job, "w2");
    const auto told = told_to_go;
    if (is_change) {
      SECTION("also where that one falls silent, which may have begun it") {
        advance(Millis(12'000));
        accept(first.job, "w1");
        CHECK(told_to_go == told);
        return;
      }
    }
    accept(first.job, "w1");
    CHECK(told_to_go == told);
    REQUIRE(cancelled.size() == 1);
    CHECK(cancelled[0].job == given);
    SECTION("which falls silent later: who was told to stop has not got it") {
      for (int i = 0; i < 12; ++i) {
        advance(Millis(1000));
        heartbeat("w1", {given});
      }
      CHECK(told_to_go == told);
      answer(first.job, "w1", Error{Errc::kCancelled, "cancelled", {}, 0});
      CHECK(outcomes().empty());
    }
  }
}

TEST_CASE_METHOD(DispatcherFixture, "a worker whose every word takes over a second has its job in the end") {
  const bool is_change = GENERATE(false, true);
  join("w1", 4);
  submit(is_change ? change() : spec());
  std::vector<Sent> all;
  std::vector<Running> said;
  const auto was_cancelled = [&](const Running& running) {
    return std::ranges::any_of(cancelled, [&](const auto& one) { return one.job == running; });
  };
  for (int step = 1; step <= 100; ++step) {
    advance(Millis(100));
    while (!sent.empty()) all.push_back(take());
    for (const auto& message : all) {
      const Running running{message.job.id, message.job.token};
      if (clock.now() - message.at < Millis(1300) || std::ranges::find(said, running) != said.end()) continue;
      accept(message.job, "w1");
      said.push_back(running);
    }
    if (step % 10 != 0) continue;
    std::vector<Running> runs;
    std::ranges::copy_if(said, std::back_inserter(runs), [&](const auto& one) { return !was_cancelled(one); });
    heartbeat("w1", runs);
  }
  CHECK(all.size() <= 2);
  CHECK((told_to_go > 0) == is_change);
  answer(all.front().job, "w1", is_change ? JobResult(MutationResult{}) : JobResult(ListResult{}));
  CHECK(outcome().attempts == 1);
}

TEST_CASE_METHOD(DispatcherFixture, "nobody is judged late while answers may lie unread") {
  join("w1");
  join("w2");
  const auto message = dispatch();
  stall(Millis(2000));
  tick(Dispatcher::Lateness::kSkip);
  CHECK(sent.empty());
  succeed(message.job, "w1");
  CHECK(outcomes().size() == 1);
}

TEST_CASE_METHOD(DispatcherFixture,
                 "without a connection jobs end at their deadlines, and nobody is taken for silent") {
  join("w1");
  join("w2");
  const auto running = dispatch();
  accept(running.job, "w1");
  dispatch();
  stall(Millis(20'000));
  tick(Dispatcher::Lateness::kDeadlines);
  CHECK(sent.empty());
  CHECK(outcomes().empty());
  stall(running.job.deadline);
  tick(Dispatcher::Lateness::kDeadlines);
  CHECK(sent.empty());
  CHECK(outcomes().size() == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "after a stall of the coordinator everyone has a fresh period of grace") {
  join("w1");
  join("w2");
  const auto running = dispatch();
  accept(running.job, "w1");
  const auto fresh = dispatch();
  stall(Millis(10'000));
  dispatcher.grace(clock.now());
  tick();
  CHECK(sent.empty());
  advance(Millis(900));
  CHECK(sent.empty());
  succeed(fresh.job, "w2");
  advance(Millis(1900));
  CHECK(sent.empty());
  advance(Millis(500));
  CHECK(take().job.id == running.job.id);  // and then it is judged as ever
}
