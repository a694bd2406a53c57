// Which signs count for which job, and what is made of workers that give none.
#include <catch2/catch.hpp>

#include "support/dispatcher_fixture.h"

using namespace muster;

namespace {

class SignsFixture : public test::DispatcherFixture {
 public:
  /// Both workers live, and say nothing of what was sent, which goes once more.
  Sent resent() {
    advance(Millis(950));
    heartbeat("w1");
    heartbeat("w2");
    return await(Millis(500));
  }
};

}  // namespace

TEST_CASE_METHOD(SignsFixture, "a token counts for its own job alone") {
  join("w1");
  join("w2");
  const auto first = dispatch().job, second = dispatch().job;
  CHECK(dispatcher.leases(first.id, first.token));
  CHECK_FALSE(dispatcher.leases(second.id, first.token));
  SECTION("of a dispatch that was given up without a sign, too") {
    resent();
    CHECK(dispatcher.leases(first.id, first.token));
    CHECK_FALSE(dispatcher.leases(second.id, first.token));
    auto wrong = second;
    wrong.token = first.token;
    accept(wrong, "w1");
    CHECK_FALSE(dispatcher.leases(second.id, first.token));
    CHECK(dispatcher.counters().stale_replies == 1);
  }
}

TEST_CASE_METHOD(SignsFixture, "a change that was given up without a sign has no result") {
  join("w1");
  join("w2");
  const auto first = dispatch(change()).job;
  const auto second = resent().job;
  CHECK(dispatcher.leases(second.id, second.token));
  CHECK_FALSE(dispatcher.leases(first.id, first.token));
}

TEST_CASE_METHOD(SignsFixture, "what comes as the result of a change that was given up without a sign ends nothing") {
  join("w1");
  join("w2");
  const auto first = dispatch(change()).job;
  const auto second = resent().job;
  answer(first, "w1", JobResult(MutationResult{}));
  CHECK(outcomes().empty());
  CHECK(dispatcher.counters().stale_replies == 1);
  CHECK(dispatcher.leases(second.id, second.token));
}

TEST_CASE_METHOD(SignsFixture, "of dispatches that were given up the last four may still be answered") {
  join("w1");
  join("w2");
  std::vector<Token> tokens{dispatch().job.token};
  JobId id;
  for (int i = 1; i <= 6; ++i) {
    const auto again = resent();
    id = again.job.id;
    tokens.push_back(again.job.token);
  }
  CHECK(dispatcher.counters().resent == 6);
  for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(dispatcher.leases(id, tokens[i]) == (i >= 2));
}

TEST_CASE_METHOD(SignsFixture, "what a worker has taken after all takes no place of those that were given up") {
  join("w1");
  join("w2");
  const auto first = dispatch().job;
  const auto second = resent().job;
  resent();
  accept(second, "w1");
  REQUIRE(dispatcher.leases(second.id, second.token));
  answer(second, "w1", Busy{});
  await();
  for (int i = 0; i < 3; ++i) resent();
  CHECK(dispatcher.leases(first.id, first.token));
}

TEST_CASE_METHOD(SignsFixture, "what was sent to one worker is not sent again before that is heard") {
  join("w1");
  join("w2");
  accept(dispatch().job, "w1");
  const auto message = dispatch();
  REQUIRE(message.subject == own("w2"));
  advance(Millis(2500));
  CHECK(sent.empty());
  CHECK_FALSE(dispatcher.take_back(message.job.id));  // nobody knows who has it
  heartbeat("w2");
  CHECK(await(Millis(2000)).job.id == message.job.id);
}

TEST_CASE_METHOD(SignsFixture, "what may have taken one worker goes to another, whom it has not taken") {
  join("w1");
  join("w2");
  const auto message = dispatch();
  advance(Millis(1500));
  CHECK(sent.empty());
  lose("w1");
  const auto again = await(Millis(300));  // w2 has not been heard either: one has died of it, which is enough
  CHECK(again.job.id == message.job.id);
}

TEST_CASE_METHOD(SignsFixture, "what may have been done before a restart stays uncertain, whoever is too busy for it") {
  join("w1");
  submit_recovered();
  answer(await().job, "w1", Busy{});
  const auto message = await();
  accept(message.job, "w1");
  fail(message.job, "w1", Errc::kAccessDenied);
  CHECK(outcome().uncertain);
}

TEST_CASE_METHOD(SignsFixture, "a change that its target throttles slows all that goes to the target") {
  join("w1");
  const auto message = dispatch(change());
  const auto target = spec().target.id;
  accept(message.job, "w1");
  SECTION("the target said so") {
    fail(message.job, "w1", Errc::kThrottling);
    CHECK(limiter.limits("NS", target));
  }
  SECTION("the worker did, without a call") {
    answer(message.job, "w1", JobResult(Error{Errc::kThrottling, "because", Millis(1000), 0}), 0);
    CHECK_FALSE(limiter.limits("NS", target));
  }
}

TEST_CASE_METHOD(SignsFixture, "while all of a pool are of a run's manifest, its jobs go to the queue group") {
  join("w1");
  join("w2");
  auto job = spec();
  job.manifest = "m1";
  CHECK(dispatch(job).subject == group());
  join("w3", 1, "m2");
  CHECK(dispatch(job).subject != group());
}

TEST_CASE_METHOD(SignsFixture, "the outcome of a change counts in parts, too, and whoever brings it") {
  join("w1");
  const auto job = dispatch(change()).job;
  accept(job, "w1");
  MutationResult made;
  made.native_id = "thing";
  const auto whole = encode(JobReply{fleet, job.id, job.token, WorkerId("w2"), job.attempt, 1, JobResult(made)});
  answer(job, "w2", Part{0, 2, whole.substr(0, 8)});
  answer(job, "w2", Part{1, 2, whole.substr(8)});
  const auto ended = outcome();
  REQUIRE(std::holds_alternative<MutationResult>(ended.result));
  CHECK(std::get<MutationResult>(ended.result).native_id == "thing");
}

TEST_CASE_METHOD(SignsFixture, "who takes a change that another was told to begin is told to leave it") {
  join("w1");
  join("w2");
  const auto job = dispatch(change()).job;
  accept(job, "w1");
  REQUIRE(told_to_go == 1);
  answer(job, "w2", Busy{});
  accept(job, "unknown");
  CHECK(cancelled.empty());
  accept(job, "w2");
  REQUIRE(cancelled.size() == 1);
  CHECK(cancelled[0].subject == subjects.worker_control("NS", WorkerId("w2")));
  CHECK(cancelled[0].job == Running{job.id, job.token});
  CHECK(told_to_go == 1);
  CHECK(dispatcher.leases(job.id, job.token));
}

TEST_CASE_METHOD(SignsFixture, "each part of a result keeps its job with its worker") {
  join("w1");
  join("w2");
  const auto job = dispatch().job;
  const auto whole =
      encode(JobReply{fleet, job.id, job.token, WorkerId("w1"), job.attempt, 1, JobResult(ListResult{})});
  for (const std::uint32_t i : {0U, 1U}) {
    answer(job, "w1", Part{i, 3, whole.substr(i * 4, 4)});
    advance(Millis(2000));
    CHECK(sent.empty());
  }
  answer(job, "w1", Part{2, 3, whole.substr(8)});
  CHECK(outcome().attempts == 1);
}

TEST_CASE_METHOD(SignsFixture, "who sends a part of a result is not told to begin") {
  join("w1");
  const auto job = dispatch(change()).job;
  answer(job, "w1", Part{0, 2, "part"});
  CHECK(told_to_go == 0);
}

TEST_CASE_METHOD(SignsFixture, "a part that does not belong to the others is counted, and ends nothing") {
  join("w1");
  const auto job = dispatch().job;
  const auto whole =
      encode(JobReply{fleet, job.id, job.token, WorkerId("w1"), job.attempt, 1, JobResult(ListResult{})});
  answer(job, "w1", Part{0, 2, whole.substr(0, 8)});
  answer(job, "w1", Part{1, 3, "other"});
  answer(job, "w1", Part{7, 2, "other"});
  CHECK(dispatcher.counters().refused_parts == 2);
  CHECK(outcomes().empty());
  answer(job, "w1", Part{1, 2, whole.substr(8)});
  CHECK(std::holds_alternative<ListResult>(outcome().result));
}

TEST_CASE_METHOD(SignsFixture, "what was asked for again after a restart is not taken for what was begun before it") {
  join("w1");
  join("w2");
  const auto earlier = submit_recovered();
  const auto message = await();
  accept(message.job, "w1");
  fail(message.job, "w1", Errc::kThrottling, Millis(5000));
  heartbeat("w2", {earlier});
  REQUIRE(cancelled.size() == 1);
  CHECK(cancelled[0].subject == subjects.worker_control("NS", WorkerId("w2")));
  CHECK_FALSE(dispatcher.leases(earlier.job, earlier.token));
}

TEST_CASE_METHOD(SignsFixture, "what does not say that a job was taken takes nothing up that was given up") {
  join("w1");
  join("w2");
  const bool is_change = GENERATE(false, true);
  const auto first = dispatch(is_change ? change() : spec()).job;
  const auto second = resent().job;
  if (is_change) {
    answer(first, "w1", Part{0, 2, "some"});
  } else {
    answer(first, "w1", Busy{});
  }
  Effects effects;
  dispatcher.on_reply("NS", {FleetId("other"), first.id, first.token, WorkerId("w1"), 1, 1, Accepted{}}, clock.now(),
                      effects);
  CHECK(dispatcher.counters().stale_replies == 2);
  CHECK(dispatcher.leases(second.id, second.token));
  CHECK(dispatcher.in_flight() == 1);
  CHECK(sent.empty());
}

TEST_CASE_METHOD(SignsFixture, "a worker that names what was given up leaves it to who has it by then") {
  join("w1");
  join("w2");
  const auto first = dispatch().job;
  const auto second = resent().job;
  accept(second, "w2");
  heartbeat("w1", {{first.id, first.token}});
  CHECK(dispatcher.leases(second.id, second.token));
  REQUIRE(cancelled.size() == 1);
  CHECK(cancelled[0].job == Running{first.id, first.token});
}

TEST_CASE_METHOD(SignsFixture,
                 "what was taken after all has its worker's slot, and waits for nobody when it has failed") {
  config.retry.base = Millis(0);
  join("w1");
  const auto job = dispatch().job;
  advance(Millis(1200));
  REQUIRE(sent.empty());
  accept(job, "w1");
  SECTION("its slot") {
    join("w2");
    CHECK(dispatch().subject == own("w2"));
  }
  SECTION("its next attempt") {
    fail(job, "w1", Errc::kServiceUnavailable, Millis(100));
    CHECK(await(Millis(300)).job.attempt == 2);
  }
}

TEST_CASE_METHOD(SignsFixture, "what replies say of calls counts when a target without a limit throttles") {
  join("w1");
  answer(dispatch().job, "w1", JobResult(ListResult{}), 40);
  fail(dispatch().job, "w1", Errc::kThrottling);
  const auto target = spec().target.id;
  REQUIRE(limiter.limits("NS", target));
  limiter.charge("NS", target, 1, clock.now());
  CHECK(limiter.ready_at("NS", target, clock.now()) - clock.now() <= Millis(100));
}

TEST_CASE_METHOD(SignsFixture, "whether a change that failed may have been done follows from what it failed of") {
  join("w1");
  const auto [code, uncertain] =
      GENERATE(table<Errc, bool>({{Errc::kAccessDenied, false}, {Errc::kInternalFailure, true}}));
  const auto job = dispatch(change()).job;
  accept(job, "w1");
  fail(job, "w1", code);
  CHECK(outcome().uncertain == uncertain);
}

TEST_CASE_METHOD(SignsFixture, "what is no reply ends the attempt, and is told") {
  join("w1");
  const auto job = dispatch().job;
  dispatcher.on_undecodable(job.token, {Errc::kMalformed, "cut short", {}, 0}, clock.now());
  CHECK_FALSE(dispatcher.leases(job.id, job.token));
  const auto notices = dispatcher.take_notices();
  REQUIRE(notices.size() == 2);
  CHECK(notices[0].kind == JobNotice::Kind::kRejected);
  CHECK(notices[0].job == job.id);
  CHECK_THAT(notices[0].error.message, Catch::Contains("cut short"));
  CHECK(notices[1].kind == JobNotice::Kind::kRetried);
  CHECK(await().job.attempt == 2);
}

TEST_CASE_METHOD(SignsFixture, "parts that make another word than a result are an error of the worker") {
  join("w1");
  const auto job = dispatch(change()).job;
  const auto whole = encode(JobReply{fleet, job.id, job.token, WorkerId("w1"), job.attempt, 1, Accepted{}});
  answer(job, "w1", Part{0, 2, whole.substr(0, 8)});
  answer(job, "w1", Part{1, 2, whole.substr(8)});
  CHECK(told_to_go == 0);
  CHECK(failure() == Errc::kInternalFailure);
}

TEST_CASE_METHOD(SignsFixture, "parts of all replies together are kept up to 256 MiB") {
  join("w1", 5);
  std::vector<Job> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(dispatch().job);
  for (const auto& job : jobs) {
    CHECK(dispatcher.counters().refused_parts == 0);
    answer(job, "w1", Part{0, 2, Bytes(60U << 20U, 'x')});
  }
  CHECK(dispatcher.counters().refused_parts == 1);
}

TEST_CASE_METHOD(SignsFixture, "parts that are empty, or do not belong to the others, take no room") {
  join("w1", 3);
  const auto empty = dispatch().job, wrong = dispatch().job, other = dispatch().job;
  answer(empty, "w1", Part{0, 2, ""});
  answer(wrong, "w1", Part{7, 2, "part"});
  answer(other, "w1", Part{0, 2, "part"});
  for (const auto& job : {other, wrong, empty}) succeed(job, "w1");
  CHECK(outcomes().size() == 3);
}

TEST_CASE_METHOD(SignsFixture, "parts of one namespace leave room for those of others") {
  join("w1", 4);
  std::vector<Job> jobs;
  for (const std::size_t megabytes : {60, 62, 61, 63}) {
    jobs.push_back(dispatch().job);
    answer(jobs.back(), "w1", Part{0, 2, Bytes(megabytes << 20U, 'x')});
  }
  CHECK(dispatcher.counters().refused_parts == 0);
  join("o1", 1, "m1", "default", "OTHER");
  auto other = spec();
  other.lane.ns = "OTHER";
  const auto job = dispatch(other).job;
  ListResult page;
  page.items.assign(40, {"thing", "", Bytes(512U << 10U, ' ')});
  const auto whole = encode(JobReply{fleet, job.id, job.token, WorkerId("o1"), job.attempt, 1, JobResult(page)});
  answer(job, "o1", Part{0, 2, whole.substr(0, 1U << 24U)});
  CHECK(dispatcher.counters().refused_parts == 1);
  answer(job, "o1", Part{1, 2, whole.substr(1U << 24U)});
  CHECK(std::get<ListResult>(outcome().result) == page);
  answer(jobs[3], "w1", Part{0, 2, Bytes(63U << 20U, 'x')});  // the largest of its own went, and has room again
  CHECK(dispatcher.counters().refused_parts == 1);
  answer(jobs[0], "w1", Part{1, 2, Bytes(12U << 20U, 'x')});  // now its own are in the way
  CHECK(dispatcher.counters().refused_parts == 2);
}

TEST_CASE_METHOD(SignsFixture, "nothing that is said of a job that has ended does anything") {
  join("w1");
  const auto job = dispatch().job;
  succeed(job, "w1");
  REQUIRE(outcomes().size() == 1);
  const Error why{Errc::kTooLarge, "because", {}, 0};
  no_responders(job);
  dispatcher.on_unsendable(job.token, why, clock.now());
  dispatcher.on_undecodable(job.token, why, clock.now());
  accept(job, "unknown");
  CHECK(cancelled.empty());
  CHECK(outcomes().empty());
  CHECK(dispatcher.take_notices().empty());
  CHECK(dispatch().job.attempt == 1);
}

TEST_CASE_METHOD(SignsFixture, "a worker that names a change which its pool was asked for may begin it") {
  join("w1");
  const auto job = dispatch(change()).job;
  heartbeat("w1", {{job.id, job.token}});
  CHECK(told_to_go == 1);
}

TEST_CASE_METHOD(SignsFixture, "nobody has a job by naming it under a token that it never had") {
  join("w1");
  const auto job = dispatch().job;
  answer(job, "w1", Busy{});
  const Running invented{job.id, Token("invented")};
  heartbeat("w2", {invented});
  CHECK(cancelled.size() == 1);
  CHECK_FALSE(dispatcher.leases(invented.job, invented.token));
}

TEST_CASE_METHOD(SignsFixture, "a worker that comes back with its change has no slot for others until that has ended") {
  join("w1");
  const auto job = dispatch(change()).job;
  accept(job, "w1");
  lose("w1");
  join("w1");
  join("w2");
  heartbeat("w1", {{job.id, job.token}});
  const auto other = dispatch();
  CHECK(other.subject == own("w2"));
  succeed(other.job, "w2");
  answer(job, "w1", JobResult(MutationResult{}));
  CHECK(outcomes().size() == 2);
  CHECK(dispatch().subject == group());
}

TEST_CASE_METHOD(SignsFixture, "after a stall nobody is late with a first sign") {
  join("w1");
  dispatch();
  stall(Millis(10'000));
  dispatcher.grace(clock.now());
  heartbeat("w1");
  advance(Millis(500));
  CHECK(sent.empty());
}

TEST_CASE_METHOD(SignsFixture, "a late refusal of a read counts while nobody else has it") {
  join("w1");
  const auto first = dispatch();
  advance(Millis(1200));
  fail(first.job, "w1", Errc::kCancelled);
  CHECK(outcomes().empty());
  fail(first.job, "w1", Errc::kAccessDenied);
  CHECK(failure() == Errc::kAccessDenied);
}

TEST_CASE_METHOD(SignsFixture, "what its target asks to be spared for a while is not sent for an earlier wait's end") {
  join("w1");
  const auto first = dispatch();
  while (dispatcher.counters().resent == 0) advance(Millis(10));
  REQUIRE(sent.empty());  // while it is not known whether its worker lives
  fail(first.job, "w1", Errc::kServiceUnavailable, Millis(5000));
  heartbeat("w1", {}, 1);
  advance(Millis(4900));
  CHECK(sent.empty());
  CHECK(await(Millis(200)).job.id == first.job.id);
}
