// Where a job goes, and when it goes again: queue group or own subject, busy, leases, losses, cancellation.
#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

TEST_CASE_METHOD(DispatcherFixture, "an answer may hold several pages of a target without a limit, and else one") {
  join("w1", 4);
  auto listing = spec();
  const auto pages = [&] { return std::get<ListJob>(dispatch(listing).job.operation).pages; };
  CHECK(pages() > 1);
  limiter.set_rate(listing.lane.ns, listing.target.id, 100, clock.now());
  CHECK(pages() == 1);
}

TEST_CASE_METHOD(DispatcherFixture, "what has gone wrong once takes no other page with it") {
  join("w1");
  auto message = dispatch();
  CHECK(std::get<ListJob>(message.job.operation).pages > 1);
  fail(message.job, "w1", Errc::kInternalFailure);
  message = await();
  CHECK(message.job.attempt == 2);
  CHECK(std::get<ListJob>(message.job.operation).pages == 1);
}

TEST_CASE_METHOD(DispatcherFixture,
                 "calls that were free when they were made are not paid for by a limit learnt since") {
  join("w1", 8);
  std::vector<Sent> all;
  for (int i = 0; i < 8; ++i) all.push_back(dispatch());
  fail(all[0].job, "w1", Errc::kThrottling);
  for (int i = 1; i < 8; ++i) answer(all[static_cast<std::size_t>(i)].job, "w1", JobResult(ListResult{}), 64);
  const auto target = spec().target.id;
  CHECK(limiter.ready_at("NS", target, clock.now()) - clock.now() <= Millis(1000));
  const auto limited = await();
  answer(limited.job, "w1", JobResult(ListResult{}), 64);
  CHECK(limiter.ready_at("NS", target, clock.now()) - clock.now() > Millis(1000));
}

TEST_CASE_METHOD(DispatcherFixture, "a job goes to its pool's queue group while nobody of the pool can be full") {
  join("w1", 2);
  join("w2", 2);
  const auto id = submit();
  tick();
  const auto message = take();
  CHECK(message.subject == "muster.job.NS");
  CHECK(message.reply == subjects.reply("NS", self, message.job.token));
  CHECK(message.job.id == id);
  CHECK(message.job.fleet == fleet);
  CHECK(message.job.attempt == 1);
  CHECK(message.job.ns == "NS");
  CHECK(message.job.pool == "default");
  CHECK(message.job.type == "NS::Thing");
  CHECK(message.job.target == spec().target);
  ListJob listing;
  listing.pages = 64;
  CHECK(message.job.operation == JobOperation(listing));
  CHECK(message.job.priority == Priority::kDiscovery);
  CHECK(message.job.deadline == Millis(120'000));
  CHECK(message.job.lease == Millis(3000));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a job of another pool goes to that pool's queue group") {
  join("w1", 1, "m1", "default");
  join("w2", 1, "m1", "site");
  auto job = spec();
  job.lane.pool = "site";
  const auto message = dispatch(job);
  CHECK(message.subject == "muster.job.NS.site");
  CHECK(message.job.pool == "site");
}

TEST_CASE_METHOD(DispatcherFixture, "a job goes to the subject of a worker with room when somebody is full") {
  join("w1");
  join("w2");
  accept(dispatch().job, "w1");
  CHECK(dispatch().subject == own("w2"));
}

TEST_CASE_METHOD(DispatcherFixture, "what nobody has taken yet may fill any worker of the pool") {
  join("w1", 1);
  join("w2", 2);
  const auto first = dispatch();
  CHECK(first.subject == group());
  CHECK(dispatch().subject == own("w1"));
  accept(first.job, "w2");
}

TEST_CASE_METHOD(DispatcherFixture, "of the workers with room the least loaded is chosen") {
  join("w1", 1);
  join("w2", 4);
  join("w3", 4);
  const auto first = dispatch();
  accept(first.job, "w1");  // full from here on: each job goes to one worker
  std::map<std::string, int> load;
  for (int i = 0; i < 8; ++i) {
    const auto message = dispatch();
    accept(message.job, message.subject == own("w2") ? "w2" : "w3");
    ++load[message.subject];
    CHECK(std::abs(load[own("w2")] - load[own("w3")]) <= 1);
  }
  CHECK(load == std::map<std::string, int>{{own("w2"), 4}, {own("w3"), 4}});
}

TEST_CASE_METHOD(DispatcherFixture, "what a worker is not there for goes to another, and nothing of it is left") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  accept(first.job, "w1");
  const auto second = dispatch();
  REQUIRE(second.subject == own("w2"));
  no_responders(second.job);
  succeed(first.job, "w1");
  CHECK(outcome().job == first.job.id);
  const auto again = take();
  CHECK(again.subject == own("w1"));
  succeed(again.job, "w1");
  CHECK(outcome().job == second.job.id);
  advance(Millis(2000));
  CHECK(dispatch().subject == group());  // nobody is full
}

TEST_CASE_METHOD(DispatcherFixture, "no more jobs are sent than the pool has slots") {
  join("w1", 2);
  for (int i = 0; i < 5; ++i) submit();
  tick();
  REQUIRE(sent.size() == 2);
  advance(Millis(500));
  CHECK(sent.size() == 2);
  const auto first = take();
  succeed(first.job, "w1");
  CHECK(sent.size() == 2);  // one more
  CHECK(outcome().job == first.job.id);
}

TEST_CASE_METHOD(DispatcherFixture, "no more jobs of a pool are sent than the configuration allows") {
  config.limits.jobs_in_flight = 2;
  join("w1", 8);
  for (int i = 0; i < 5; ++i) submit();
  tick();
  REQUIRE(sent.size() == 2);
  succeed(take().job, "w1");
  CHECK(sent.size() == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "while a worker says that it is not well, jobs go to the others") {
  join("w1", 4);
  join("w2", 4);
  registry.heartbeat({WorkerId("w2"), "NS", "default", 4, {}, false, 0, false, "no disk"}, clock.now());
  for (int i = 0; i < 4; ++i) CHECK(dispatch().subject == own("w1"));
  CHECK(dispatch().subject == own("w2"));
}

TEST_CASE_METHOD(DispatcherFixture, "a job of a run goes to workers of the run's manifest only") {
  join("w1", 4, "old");
  join("w2", 4, "new");
  auto job = spec();
  job.manifest = "new";
  for (int i = 0; i < 4; ++i) {
    const auto message = dispatch(job);
    CHECK(message.subject == own("w2"));
    CHECK(message.job.manifest == "new");
    accept(message.job, "w2");
  }
  submit(job);
  advance(Millis(900));
  CHECK(sent.empty());  // w1 has room, but is another version
}

TEST_CASE_METHOD(DispatcherFixture, "a job that nobody of its manifest can take holds up no other job") {
  join("w1", 4, "old");
  auto job = spec();
  job.manifest = "gone";
  submit(job);
  CHECK(dispatch().subject == group());
  join("w2", 4, "gone");
  advance(Millis(1000));
  REQUIRE_FALSE(sent.empty());
  CHECK(take().subject == own("w2"));
}

TEST_CASE_METHOD(DispatcherFixture, "a draining worker gets no new job") {
  join("w1", 4);
  join("w2", 4);
  registry.heartbeat({WorkerId("w1"), "NS", "default", 4, {}, true, 0, true, {}}, clock.now());
  for (int i = 0; i < 3; ++i) CHECK(dispatch().subject == own("w2"));
}

TEST_CASE_METHOD(DispatcherFixture, "a job that a worker is too busy for goes elsewhere, and no attempt is counted") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  answer(first.job, "w1", Busy{});
  CHECK(dispatcher.counters().busy == 1);
  const auto second = take();
  CHECK(second.subject == own("w2"));
  CHECK(second.job.id == first.job.id);
  CHECK(second.job.attempt == 1);
  CHECK(second.job.token != first.job.token);
  succeed(second.job, "w2");
  CHECK(outcome().attempts == 1);
}

TEST_CASE_METHOD(DispatcherFixture, "who was busy when the queue group gave it a job is asked again after all others") {
  join("w1");
  const auto message = dispatch();
  REQUIRE(message.subject == group());
  answer(message.job, "w1", Busy{});
  stall(kBusyPause);
  join("w2");
  tick();
  CHECK(take().subject == own("w2"));
}

TEST_CASE_METHOD(DispatcherFixture, "a job waits for the only worker for as long as that says busy") {
  join("w1");
  auto message = dispatch();
  for (int i = 0; i < 50; ++i) {
    answer(message.job, "w1", Busy{});
    CHECK(sent.empty());  // not at once: it would say busy again
    advance(Millis(500));
    message = take();
    CHECK(message.job.attempt == 1);
  }
  succeed(message.job, "w1");
  CHECK(std::holds_alternative<ListResult>(outcome().result));
}

TEST_CASE_METHOD(DispatcherFixture, "who was busy gets the next job as soon as one of its own has ended") {
  join("w1", 2);
  const auto held = dispatch();
  accept(held.job, "w1");
  const auto refused = dispatch();
  answer(refused.job, "w1", Busy{});
  CHECK(sent.empty());
  succeed(held.job, "w1");
  CHECK(take().job.id == refused.job.id);
}

TEST_CASE_METHOD(DispatcherFixture, "a dispatch without any sign for a second is sent again with a new token") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  advance(Millis(950));
  CHECK(sent.empty());
  heartbeat("w1");
  heartbeat("w2");
  advance(Millis(300));
  const auto second = take();
  CHECK(second.job.id == first.job.id);
  CHECK(second.job.token != first.job.token);
  CHECK(second.at - first.at >= Millis(1000));
  succeed(second.job, "w2");
  CHECK(outcome().job == first.job.id);
}

TEST_CASE_METHOD(DispatcherFixture, "while a worker is not heard that may have it, a job is not sent again") {
  join("w1");
  join("w2");
  dispatch();
  advance(Millis(950));
  heartbeat("w1");
  advance(Millis(1000));
  CHECK(sent.empty());
  heartbeat("w2");
  advance(Millis(200));
  succeed(take().job, "w2");
  CHECK(std::holds_alternative<ListResult>(outcome().result));
}

TEST_CASE_METHOD(DispatcherFixture, "a worker that gave no sign of a job gets none for a second") {
  join("w1");
  join("w2");
  const auto other = dispatch();
  accept(other.job, "w1");
  const auto silent = dispatch();
  REQUIRE(silent.subject == own("w2"));
  for (int i = 0; i < 3; ++i) {
    advance(Millis(600));
    heartbeat("w1", {{other.job.id, other.job.token}});
    heartbeat("w2");
  }
  CHECK(sent.empty());
  const auto again = await(Millis(500));
  CHECK(again.job.id == silent.job.id);
  CHECK(again.at - silent.at >= Millis(2000));
}

TEST_CASE_METHOD(DispatcherFixture, "workers that die of a job before they say a word count as taken by it") {
  for (int worker = 1; worker <= kWorkersTaken; ++worker) {
    join("w" + std::to_string(worker));
    const auto message = worker == 1 ? dispatch() : await();
    CHECK((std::get<ListJob>(message.job.operation).pages == 1) == (worker > 1));  // no other page dies with it
    advance(Millis(1500));
    CHECK(sent.empty());
    advance(kLostAfter);
    for (const auto& gone : registry.expire(clock.now())) {
      Effects effects;
      dispatcher.on_worker_lost("NS", gone.worker, clock.now(), effects);
    }
    advance(Millis(200));
  }
  CHECK(failure() == Errc::kInternalFailure);
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a quick result needs no other message") {
  join("w1");
  const auto message = dispatch();
  succeed(message.job, "w1");
  const auto ended = outcome();
  CHECK(ended.job == message.job.id);
  CHECK(ended.owner == 7);
  CHECK(ended.worker == WorkerId("w1"));
  CHECK(dispatcher.counters().dispatched == 1);
  CHECK(dispatcher.counters().results == 1);
  CHECK(ended.attempts == 1);
  CHECK(std::holds_alternative<ListResult>(ended.result));
  advance(Millis(5000));
  CHECK(sent.empty());
  CHECK(outcomes().empty());
}

TEST_CASE_METHOD(DispatcherFixture, "heartbeats that name job and token keep a job with its worker") {
  join("w1");
  join("w2");
  const auto message = dispatch();
  accept(message.job, "w1");
  for (int second = 0; second < 60; ++second) {
    advance(Millis(1000));
    heartbeat("w1", {{message.job.id, message.job.token}});
  }
  CHECK(sent.empty());
  CHECK(cancelled.empty());
  succeed(message.job, "w1");
  CHECK(std::holds_alternative<ListResult>(outcome().result));
}

TEST_CASE_METHOD(DispatcherFixture, "a heartbeat stands for an acceptance that was lost") {
  join("w1");
  const auto message = dispatch();
  advance(Millis(500));
  heartbeat("w1", {{message.job.id, message.job.token}});
  advance(Millis(2000));
  CHECK(sent.empty());
  CHECK(dispatcher.counters().resent == 0);
}

TEST_CASE_METHOD(DispatcherFixture,
                 "a job whose worker is silent for three seconds goes elsewhere as the next attempt") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  accept(first.job, "w1");
  advance(Millis(2950));
  CHECK(sent.empty());
  advance(Millis(300));
  const auto second = take();
  CHECK(second.subject == own("w2"));
  CHECK(second.job.id == first.job.id);
  CHECK(second.job.attempt == 2);
  CHECK(second.job.token != first.job.token);
}

TEST_CASE_METHOD(DispatcherFixture, "heartbeats that do not name a job do not keep it") {
  join("w1");
  join("w2");
  const auto message = dispatch();
  accept(message.job, "w1");
  for (int i = 0; i < 4; ++i) {
    heartbeat("w1", {}, 1);
    advance(Millis(1000));
  }
  CHECK(take().job.attempt == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "jobs of a worker that is known to be lost go elsewhere at once") {
  join("w1");
  join("w2");
  const auto message = dispatch();
  accept(message.job, "w1");
  test::lose(registry, {"NS", WorkerId("w1")}, clock.now());
  Effects effects;
  dispatcher.on_worker_lost("NS", WorkerId("w1"), clock.now(), effects);
  tick();
  const auto second = take();
  CHECK(second.job.id == message.job.id);
  CHECK(second.job.attempt == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "a lost worker takes nothing with it that others are at") {
  join("w1");
  join("w2");
  const auto lost = dispatch();
  accept(lost.job, "w1");
  const auto other = dispatch();
  accept(other.job, "w2");
  lose("w1");
  CHECK(dispatcher.leases(other.job.id, other.job.token));
  succeed(other.job, "w2");
  CHECK(outcome().attempts == 1);
  CHECK(take().job.id == lost.job.id);
}

TEST_CASE_METHOD(DispatcherFixture, "a worker that was lost with a job has its slot when it comes back") {
  join("w1");
  const auto lost = dispatch();
  accept(lost.job, "w1");
  SECTION("known as lost") {}
  SECTION("forgotten, since it drained") {
    registry.heartbeat({WorkerId("w1"), "NS", "default", 0, {}, true, 0, true, {}}, clock.now());
  }
  lose("w1");
  join("w1");
  CHECK(await(Millis(500)).job.id == lost.job.id);
}

TEST_CASE_METHOD(DispatcherFixture, "a job that took three workers with it has failed") {
  for (const auto* id : {"w1", "w2", "w3", "w4"}) join(id);
  auto message = dispatch();
  for (int taken = 1; taken <= 3; ++taken) {
    CHECK(message.job.attempt == taken);
    accept(message.job, "w" + std::to_string(taken));
    CHECK(outcomes().empty());
    advance(Millis(3200));
    if (taken < 3) message = take();
  }
  CHECK(sent.empty());
  CHECK(failure() == Errc::kInternalFailure);
  advance(Millis(10'000));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a result of a superseded dispatch is dropped") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  accept(first.job, "w1");
  advance(Millis(3200));
  const auto second = take();
  succeed(first.job, "w1");
  CHECK(outcomes().empty());
  fail(second.job, "w2", Errc::kAccessDenied);
  CHECK(failure() == Errc::kAccessDenied);
  succeed(second.job, "w2");  // once more: it has ended
  CHECK(outcomes().empty());
  CHECK(dispatcher.counters().stale_replies == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "the token of one job says nothing of another") {
  join("w1", 2);
  const auto job = dispatch(change()).job;
  auto mixed = dispatch().job;
  mixed.token = job.token;
  accept(mixed, "w1");
  CHECK(told_to_go == 0);
  answer(mixed, "w1", Busy{});
  CHECK(dispatcher.leases(job.id, job.token));
  CHECK(dispatcher.counters().stale_replies == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "a worker that accepts what is no longer its job is told to cancel it") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  advance(Millis(900));
  heartbeat("w1");
  heartbeat("w2");
  advance(Millis(300));
  const auto second = take();
  accept(second.job, "w2");
  accept(first.job, "w1");
  REQUIRE(cancelled.size() == 1);
  CHECK(cancelled[0].subject == subjects.worker_control("NS", WorkerId("w1")));
  CHECK(cancelled[0].job == Running{first.job.id, first.job.token});
  succeed(second.job, "w2");
  CHECK(std::holds_alternative<ListResult>(outcome().result));
}

TEST_CASE_METHOD(DispatcherFixture, "a job that a worker names and nobody leases is cancelled at each heartbeat") {
  join("w1", 4);
  const auto known = dispatch();
  accept(known.job, "w1");
  const Running ours{known.job.id, known.job.token};
  const Running unknown{JobId("other"), Token("t")};
  const Running superseded{known.job.id, Token("old")};
  const Running mixed{JobId("other"), known.job.token};
  for (int beat = 1; beat <= 3; ++beat) {
    heartbeat("w1", {ours, unknown, superseded, mixed});
    REQUIRE(cancelled.size() == 3U * static_cast<unsigned>(beat));
  }
  CHECK(cancelled[0].subject == subjects.worker_control("NS", WorkerId("w1")));
  CHECK(cancelled[0].job == unknown);
  CHECK(cancelled[1].job == superseded);
  CHECK(cancelled[2].job == mixed);
  succeed(known.job, "w1");
  CHECK(outcomes().size() == 1);
}

TEST_CASE_METHOD(DispatcherFixture, "a reply of another fleet ends nothing") {
  join("w1");
  const auto message = dispatch();
  JobReply reply{FleetId("other"), message.job.id, message.job.token, WorkerId("w1"), 1, 1, JobResult(ListResult{})};
  Effects effects;
  dispatcher.on_reply("NS", reply, clock.now(), effects);
  CHECK(outcomes().empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a change is ended by who was told to go on with it, or by its outcome") {
  join("w1");
  join("w2");
  submit(change());
  Effects effects;
  dispatcher.tick(clock.now(), Dispatcher::Lateness::kJudge, effects);
  REQUIRE(effects.after_commit.size() == 1);
  const auto job = decode<Job>(effects.after_commit.front().data).value();
  const auto says = [&](const char* worker, decltype(JobReply::body) body) {
    dispatcher.on_reply("NS", {fleet, job.id, job.token, WorkerId(worker), job.attempt, 1, std::move(body)},
                        clock.now(), effects);
  };
  says("w1", Accepted{});
  says("w2", Busy{});
  says("w2", JobResult(Error{Errc::kThrottling, "because", {}, 0}));
  CHECK(outcomes().empty());
  CHECK(dispatcher.leases(job.id, job.token));
  CHECK(dispatcher.counters().stale_replies == 2);
  SECTION("a failure of who has it") {
    says("w1", JobResult(Error{Errc::kAccessDenied, "because", {}, 0}));
    CHECK(failure() == Errc::kAccessDenied);
  }
  SECTION("an outcome that another brings: started again, it has another id") {
    says("w2", JobResult(MutationResult{}));
    CHECK(std::holds_alternative<MutationResult>(outcome().result));
  }
}

TEST_CASE_METHOD(DispatcherFixture, "a change that is cancelled has ten seconds to say how it went") {
  join("w1");
  join("w2");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  const Running running{message.job.id, message.job.token};
  advance(Millis(500));
  cancel_jobs();
  REQUIRE(cancelled.size() == 1);
  CHECK(cancelled[0].job == running);
  SECTION("its worker has it and says nothing") {
    for (int second = 0; second < 9; ++second) {
      advance(Millis(1000));
      heartbeat("w1", {running});
    }
    CHECK(dispatcher.leases(running.job, running.token));
    advance(Millis(1200));
  }
  SECTION("its worker falls silent: nobody else begins it") {
    advance(Millis(9700));
  }
  CHECK(sent.empty());
  const auto ended = outcome();
  CHECK(std::get<Error>(ended.result).code == Errc::kTimeout);
  CHECK(ended.uncertain);
}

TEST_CASE_METHOD(DispatcherFixture, "withdrawn jobs are cancelled where they run, and never end or start") {
  join("w1");
  auto other = spec();
  other.owner = 8;
  const auto running = dispatch();
  accept(running.job, "w1");
  submit();
  submit(other);
  Effects effects;
  dispatcher.withdraw(7, effects);
  REQUIRE(effects.at_once.size() == 1);
  CHECK(effects.at_once[0].subject == subjects.worker_control("NS", WorkerId("w1")));
  CHECK(decode<Control>(effects.at_once[0].data).value().action ==
        decltype(Control::action)(Cancel{{running.job.id, running.job.token}}));
  tick();
  const auto next = take();  // the job of the other owner: the slot is free again
  succeed(next.job, "w1");
  advance(Millis(5000));
  CHECK(sent.empty());
  CHECK(outcome().owner == 8);
  CHECK(dispatcher.load({"NS", "default"}) == 0);
}
