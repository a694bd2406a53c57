// How jobs end before their time: cancelled, withdrawn, taken back, out of time; and what is counted and told of it.
#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;
using test::DispatcherFixture;

namespace {

JobSpec of_other_owner() {
  auto spec = DispatcherFixture::spec();
  spec.owner = 8;
  return spec;
}

const Lane kLane{"NS", "default"};

}  // namespace

TEST_CASE_METHOD(DispatcherFixture, "cancelled reads end at once, their workers are told, and jobs of others go on") {
  join("w1");
  join("w2");
  const auto running = dispatch();
  accept(running.job, "w1");
  const auto theirs = dispatch(of_other_owner());
  accept(theirs.job, "w2");
  cancel_jobs();
  REQUIRE(cancelled.size() == 1);
  CHECK(cancelled[0].subject == subjects.worker_control("NS", WorkerId("w1")));
  CHECK(cancelled[0].job == Running{running.job.id, running.job.token});
  CHECK(failure() == Errc::kCancelled);
  CHECK(dispatcher.leases(theirs.job.id, theirs.job.token));
  CHECK(dispatch().subject == own("w1"));  // its slot is free
}

TEST_CASE_METHOD(DispatcherFixture, "a change that waits to be tried again ends as soon as it is cancelled") {
  join("w1");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  fail(message.job, "w1", Errc::kThrottling, Millis(30'000));
  cancel_jobs();
  CHECK(cancelled.empty());  // nobody has it
  CHECK(failure() == Errc::kCancelled);
}

TEST_CASE_METHOD(DispatcherFixture, "a change that was cancelled is not tried again, whatever it has failed of") {
  join("w1");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  cancel_jobs();
  fail(message.job, "w1", Errc::kThrottling, Millis(500));
  CHECK(failure() == Errc::kThrottling);
  advance(Millis(1000));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture,
                 "a change that was stopped is not given to another by a worker that did not begin it") {
  join("w1");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  const bool of_target = GENERATE(false, true);
  CAPTURE(of_target);
  of_target ? dispatcher.stop_changes(spec().target.id) : cancel_jobs();
  CHECK(outcomes().empty());  // it may have begun it
  answer(message.job, "w1", Busy{});
  CHECK(failure() == (of_target ? Errc::kTargetChanged : Errc::kCancelled));
  advance(Millis(1000));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture,
                 "changes that nobody has begun end with their target, and what only looks goes on") {
  join("w1", 3);
  const auto begun = dispatch(change()), claimed = dispatch(change()), read = dispatch();
  accept(begun.job, "w1");
  submit(change());
  tick();
  dispatcher.stop_changes(TargetId("another"));
  CHECK(outcomes().empty());
  dispatcher.stop_changes(spec().target.id);
  const auto ended = outcomes();
  REQUIRE(ended.size() == 2);
  for (const auto& outcome : ended) {
    CHECK(std::get<Error>(outcome.result).code == Errc::kTargetChanged);
    CHECK_FALSE(outcome.uncertain);
  }
  accept(claimed.job, "w1");  // too late: it gets no `go`
  CHECK(dispatcher.leases(begun.job.id, begun.job.token));
  CHECK(dispatcher.leases(read.job.id, read.job.token));
  CHECK_FALSE(dispatcher.leases(claimed.job.id, claimed.job.token));
  lose("w1");
  advance(Millis(20'000));
  const auto lost = outcomes();
  REQUIRE_FALSE(lost.empty());
  CHECK(lost.back().job == begun.job.id);
  CHECK(lost.back().uncertain);
}

TEST_CASE_METHOD(DispatcherFixture, "a change that has failed is not tried again, though another try may help") {
  join("w1");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  fail(message.job, "w1", Errc::kServiceUnavailable, Millis(500));
  CHECK(failure() == Errc::kServiceUnavailable);
}

TEST_CASE_METHOD(DispatcherFixture, "to cancel a change once more gives it no more time") {
  join("w1");
  const auto message = dispatch(change());
  accept(message.job, "w1");
  cancel_jobs();
  for (int second = 0; second < 10; ++second) {
    advance(Millis(1000));
    heartbeat("w1", {{message.job.id, message.job.token}});
    if (second == 5) cancel_jobs();
  }
  advance(Millis(200));
  CHECK(failure() == Errc::kTimeout);
}

TEST_CASE_METHOD(DispatcherFixture,
                 "a job that is cancelled before anybody has taken it is nobody's, and leaves its slot") {
  join("w1");
  const auto message = dispatch();
  cancel_jobs();
  CHECK(failure() == Errc::kCancelled);
  REQUIRE(dispatcher.in_flight() == 0);
  CHECK(cancelled.empty());  // it is not known who is to be told
  CHECK(dispatch().job.id != message.job.id);
  succeed(message.job, "w1");
  CHECK(outcomes().empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a change that nobody has begun by its deadline has not been done") {
  join("w1");
  auto job = change();
  job.deadline = Millis(900);
  dispatch(job);
  advance(Millis(1000));
  const auto ended = outcome();
  CHECK(std::get<Error>(ended.result).code == Errc::kTimeout);
  CHECK_FALSE(ended.uncertain);
}

TEST_CASE_METHOD(DispatcherFixture, "what comes late of a job that has ended is of no job") {
  join("w1");
  join("w2");
  const auto first = dispatch();
  advance(Millis(950));
  heartbeat("w1");
  heartbeat("w2");
  const auto second = await(Millis(500));
  SECTION("withdrawn") {
    Effects effects;
    dispatcher.withdraw(7, effects);
  }
  SECTION("with an outcome") {
    succeed(second.job, "w2");
    CHECK(outcomes().size() == 1);
  }
  SECTION("with the outcome of what was given up") {
    succeed(first.job, "w1");
    CHECK(outcomes().size() == 1);
  }
  accept(first.job, "w1");
  succeed(first.job, "w1");
  CHECK(outcomes().empty());
  CHECK_FALSE(dispatcher.leases(first.job.id, first.job.token));
  CHECK(dispatcher.counters().stale_replies == 2);
}

TEST_CASE_METHOD(DispatcherFixture, "what is withdrawn of one target leaves the others', and nothing in their way") {
  submit(spec(Priority::kDiscovery, "t1"));
  submit(spec(Priority::kDiscovery, "t1"));
  const auto kept = submit(spec(Priority::kDiscovery, "t2"));
  Effects effects;
  dispatcher.withdraw(7, effects, TargetId("t1"));
  CHECK(dispatcher.load(kLane) == 1);
  join("w1", 4);
  tick();
  CHECK(take().job.id == kept);
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a job is taken back for as long as nobody has been asked to take it") {
  CHECK_FALSE(dispatcher.take_back(JobId("unknown")));
  CHECK(dispatcher.take_back(submit()));
  CHECK(dispatcher.load(kLane) == 0);
  join("w1");
  const auto message = dispatch();
  CHECK_FALSE(dispatcher.take_back(message.job.id));
  SECTION("which was too busy") {
    answer(message.job, "w1", Busy{});
  }
  SECTION("which failed") {
    fail(message.job, "w1", Errc::kServiceUnavailable, Millis(500));
  }
  CHECK_FALSE(dispatcher.take_back(message.job.id));
  CHECK(outcomes().empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a job that was taken back is not sent") {
  REQUIRE(dispatcher.take_back(submit()));
  const auto other = submit();
  join("w1", 4);
  tick();
  CHECK(take().job.id == other);
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "a job that is submitted again is sent once") {
  auto job = spec();
  job.id = JobId("again");
  submit(job);
  REQUIRE(dispatcher.take_back(job.id));
  submit(job);
  join("w1", 4);
  tick();
  accept(take().job, "w1");
  advance(Millis(500));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "jobs that have ended leave their room to others") {
  CHECK(dispatcher.load({"NOBODY", "default"}) == 0);
  const TargetId target = spec().target.id;
  while (dispatcher.has_room(kLane, Priority::kDiscovery, target)) submit();
  const auto full = dispatcher.load(kLane);
  CHECK(full >= 16);
  Effects effects;
  SECTION("withdrawn") {
    dispatcher.withdraw(7, effects);
  }
  SECTION("with an outcome") {
    dispatcher.cancel_jobs(7, clock.now(), effects);
  }
  CHECK(dispatcher.load(kLane) == 0);
  std::size_t again = 0;
  for (; dispatcher.has_room(kLane, Priority::kDiscovery, target); ++again) submit();
  CHECK(again == full);
}

TEST_CASE_METHOD(DispatcherFixture, "a limit of its own counts from when a job is first sent") {
  auto job = spec();
  job.limit = Millis(2000);
  submit(job);
  advance(Millis(5000));
  CHECK(outcomes().empty());
  join("w1");
  auto message = await();
  CHECK(message.job.deadline == Millis(2000));
  advance(Millis(400));
  fail(message.job, "w1", Errc::kServiceUnavailable, Millis(100));
  message = await();
  CHECK(message.job.deadline <= Millis(1500));
  accept(message.job, "w1");
  for (int i = 0; i < 16; ++i) {
    advance(Millis(100));
    heartbeat("w1", {{message.job.id, message.job.token}});
  }
  const auto ended = std::get<Error>(outcome().result);
  CHECK(ended.code == Errc::kTimeout);
  CHECK(ended.message == "no result within the job's deadline, after 2 attempts");
}

TEST_CASE_METHOD(DispatcherFixture, "a limit of its own gives a job no more time than it has") {
  auto job = with_deadline(Millis(2000));
  job.limit = Millis(5000);
  join("w1");
  CHECK(dispatch(job).job.deadline == Millis(2000));
}

TEST_CASE_METHOD(DispatcherFixture, "a job that workers were too busy for until its deadline has timed out") {
  join("w1");
  const auto message = dispatch(with_deadline(Millis(1000)));
  answer(message.job, "w1", Busy{});
  lose("w1");
  advance(Millis(1100));
  CHECK(failure() == Errc::kTimeout);
  submit(with_deadline(Millis(1000)));
  advance(Millis(1100));
  CHECK(failure() == Errc::kNoWorker);  // nobody was there to be asked
}

TEST_CASE_METHOD(DispatcherFixture, "a job that was not sent by its deadline says what it has waited for") {
  std::string waited_for = "no worker of NS/default took the job within its deadline";
  SECTION("for a worker") {}
  SECTION("for one with room") {
    join("w1");
    accept(dispatch().job, "w1");
    waited_for = "no worker of NS/default had room for the job within its deadline";
  }
  SECTION("for its target, which may seldom be asked") {
    join("w1");
    limiter.set_rate("NS", TargetId("t1"), 0.01, clock.now());
    limiter.charge("NS", TargetId("t1"), 1, clock.now());
    waited_for = "the target target-t1 was not to be asked before the job's deadline: its limit of calls is reached";
  }
  submit(with_deadline(Millis(1000)));
  advance(Millis(1100));
  CHECK(std::get<Error>(outcome().result).message == waited_for);
}

TEST_CASE_METHOD(DispatcherFixture, "the time of what waits for the rate of its target begins when it may be sent") {
  join("w1");
  limiter.set_rate("NS", TargetId("t1"), 0.5, clock.now());
  limiter.charge("NS", TargetId("t1"), 1, clock.now());
  auto job = with_deadline(Millis(5000));
  job.patience = Millis(11'000);
  for (int i = 0; i < 7; ++i) submit(job);
  for (int i = 0; i < 5; ++i) {  // one in two seconds
    const auto message = await();
    if (i < 3) CHECK(message.job.deadline > Millis(4800));
    succeed(message.job, "w1");
  }
  CHECK(outcomes().size() == 5);
  advance(Millis(10'000));
  CHECK(sent.empty());
  const auto ended = outcomes();
  REQUIRE(ended.size() == 2);
  for (const auto& outcome : ended) CHECK(std::get<Error>(outcome.result).code == Errc::kNoWorker);
}

TEST_CASE_METHOD(DispatcherFixture, "a deadline that passes while answers may lie unread ends nothing yet") {
  join("w1");
  const auto message = dispatch(with_deadline(Millis(1000)));
  accept(message.job, "w1");
  stall(Millis(1500));
  tick(Dispatcher::Lateness::kSkip);
  CHECK(outcomes().empty());
  tick();
  CHECK(failure() == Errc::kTimeout);
}

TEST_CASE_METHOD(DispatcherFixture, "failures and retries are counted and told; to find nothing is none") {
  join("w1");
  auto message = dispatch();
  fail(message.job, "w1", Errc::kServiceUnavailable);
  CHECK(dispatcher.counters().retried == 1);
  auto notices = dispatcher.take_notices();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].kind == JobNotice::Kind::kRetried);
  CHECK(notices[0].job == message.job.id);
  CHECK(notices[0].worker == WorkerId("w1"));
  CHECK(notices[0].error.code == Errc::kServiceUnavailable);
  fail(await().job, "w1", Errc::kAccessDenied);
  CHECK(dispatcher.counters().failed == 1);
  notices = dispatcher.take_notices();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].kind == JobNotice::Kind::kFailed);
  CHECK(notices[0].attempt == 2);
  CHECK(notices[0].error.code == Errc::kAccessDenied);
  fail(dispatch().job, "w1", Errc::kNotFound);
  succeed(dispatch().job, "w1");
  CHECK(dispatcher.counters().failed == 1);
  CHECK(dispatcher.take_notices().empty());
  CHECK(outcomes().size() == 3);
}

TEST_CASE_METHOD(DispatcherFixture, "a job whose worker is lost is counted, and told as one that is tried again") {
  join("w1");
  const auto message = dispatch();
  accept(message.job, "w1");
  lose("w1");
  CHECK(dispatcher.counters().lost == 1);
  const auto notices = dispatcher.take_notices();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].kind == JobNotice::Kind::kRetried);
  CHECK(notices[0].job == message.job.id);
  CHECK(notices[0].worker == WorkerId("w1"));
  CHECK(notices[0].error.code == Errc::kTimeout);
}

TEST_CASE_METHOD(DispatcherFixture, "a job whose worker is lost when its time is over is not tried again") {
  join("w1");
  join("w2");
  const auto message = dispatch(with_deadline(Millis(5000)));
  accept(message.job, "w1");
  stall(Millis(5000));
  lose("w1");
  const auto notices = dispatcher.take_notices();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].kind == JobNotice::Kind::kFailed);
  tick(Dispatcher::Lateness::kSkip);
  CHECK(sent.empty());
}

TEST_CASE_METHOD(DispatcherFixture, "the end of the next wait is when there is something to do") {
  config.retry.base = Millis(0);
  join("w1");
  fail(dispatch().job, "w1", Errc::kServiceUnavailable, Millis(30));
  CHECK(dispatcher.next_due() == clock.now() + Millis(30));
  fail(await().job, "w1", Errc::kAccessDenied);
  CHECK(dispatcher.next_due() <= clock.now());  // an outcome waits to be taken
  outcomes();
  limiter.set_rate("NS", spec().target.id, 20, clock.now());
  join("w2", 100);
  for (int i = 0; i < 100; ++i) submit();
  tick();
  CHECK(dispatcher.next_due() <= limiter.ready_at("NS", spec().target.id, clock.now()));
}

TEST_CASE_METHOD(DispatcherFixture, "of targets that may not be asked now the first that may be again ends the wait") {
  join("w1", 100);
  limiter.set_rate("NS", TargetId("soon"), 50, clock.now());
  limiter.throttled("NS", TargetId("late"), Millis(5000), clock.now());
  for (int i = 0; i < 51; ++i) submit(spec(Priority::kDiscovery, "soon"));
  tick();
  submit(spec(Priority::kDiscovery, "late"));  // whose turn comes after
  tick();
  CHECK(dispatcher.next_due() == limiter.ready_at("NS", TargetId("soon"), clock.now()));
}

TEST_CASE_METHOD(DispatcherFixture, "who has a job is looked after, whatever else is waited for") {
  join("w1", 2);
  accept(dispatch().job, "w1");
  CHECK(dispatcher.next_due() <= clock.now() + Millis(100));
  fail(dispatch().job, "w1", Errc::kServiceUnavailable, Millis(5000));
  outcomes();
  CHECK(dispatcher.next_due() <= clock.now() + Millis(100));
}

TEST_CASE_METHOD(DispatcherFixture,
                 "who has given a change up by the time that its claim is read is not told to go on") {
  join("w1");
  const auto job = dispatch(change()).job;
  Effects effects;
  for (const auto& body : std::vector<decltype(JobReply::body)>{
           Accepted{}, JobResult(Error{Errc::kCancelled, "no `go` within the lease: nothing was done", {}, 0})}) {
    dispatcher.on_reply("NS", {fleet, job.id, job.token, WorkerId("w1"), job.attempt, 0, body}, clock.now(), effects);
  }
  tick();
  CHECK(effects.at_once.empty());
  CHECK(told_to_go == 0);
  CHECK(failure() == Errc::kCancelled);
}
