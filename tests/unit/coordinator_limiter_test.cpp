// Token buckets per namespace and target.
#include <catch2/catch.hpp>

#include "coordinator/limiter.h"
#include "worker_sdk/testing/fake_clock.h"

using namespace muster;

namespace {

struct Bucket {
  Limiter limiter;
  FakeClock clock;
  const TargetId target{"t"};

  void rate(double per_second) { limiter.set_rate("NS", target, per_second, clock.now()); }
  bool ready() { return limiter.ready_at("NS", target, clock.now()) <= clock.now(); }
  void charge(double calls = 1) { limiter.charge("NS", target, calls, clock.now()); }
  void throttled(Millis retry_after = Millis(0)) { limiter.throttled("NS", target, retry_after, clock.now()); }
  /// Calls that go in that time when there is always one more; each as soon as it may.
  int calls_within(Millis time) {
    const auto end = clock.now() + time;
    for (int calls = 0;; ++calls) {
      const auto at = std::max(clock.now(), limiter.ready_at("NS", target, clock.now()));
      if (at >= end) {
        clock.set(end);
        return calls;
      }
      clock.set(at);
      charge();
    }
  }
};

}  // namespace

TEST_CASE_METHOD(Bucket, "what has no limit is never held up") {
  CHECK(ready());
  rate(0);
  for (int i = 0; i < 10'000; ++i) charge();
  CHECK(ready());
}

TEST_CASE_METHOD(Bucket, "a bucket lets a second's worth go at once, and then its rate") {
  rate(10);
  int at_once = 0;
  for (; ready() && at_once < 100; ++at_once) charge();
  CHECK(at_once == 10);
  const auto calls = calls_within(Millis(10'000));
  CHECK(calls >= 99);
  CHECK(calls <= 100);
}

TEST_CASE_METHOD(Bucket, "what is saved up is bounded") {
  rate(10);
  clock.advance(std::chrono::hours(5));
  CHECK(calls_within(Millis(1000)) <= 20);
}

TEST_CASE_METHOD(Bucket, "a second's worth is saved up again in a quiet time") {
  rate(10);
  charge(10);
  REQUIRE_FALSE(ready());
  clock.advance(std::chrono::seconds(5));
  CHECK(calls_within(Millis(1)) == 10);
}

TEST_CASE_METHOD(Bucket, "a rate below one a second works too") {
  rate(0.5);
  CHECK(ready());
  const auto calls = calls_within(Millis(20'000));
  CHECK(calls >= 10);
  CHECK(calls <= 11);
}

TEST_CASE_METHOD(Bucket, "calls that are known only afterwards are paid for by waiting") {
  rate(10);
  charge(1);
  charge(29);
  CHECK_FALSE(ready());
  const auto at = limiter.ready_at("NS", target, clock.now());
  CHECK(at - clock.now() >= Millis(2000));
  CHECK(at - clock.now() <= Millis(2200));
  clock.set(at);
  CHECK(ready());
}

TEST_CASE_METHOD(Bucket, "a job that says it cost more calls than an hour allows holds its target up for an hour") {
  rate(10);
  charge(4'294'967'294.0);  // a plugin that has counted below zero
  CHECK_FALSE(ready());
  const auto at = limiter.ready_at("NS", target, clock.now());
  CHECK(at > clock.now() + std::chrono::minutes(59));
  CHECK(at < clock.now() + std::chrono::minutes(61));
  clock.set(at);
  CHECK(ready());
}

TEST_CASE_METHOD(Bucket, "a rate of a call in many years is one") {
  rate(1e-12);
  CHECK(ready());
  charge();
  CHECK(limiter.ready_at("NS", target, clock.now()) > clock.now() + std::chrono::hours(24 * 365));
}

TEST_CASE_METHOD(Bucket, "a target is limited by a rate, or by what it has learnt") {
  CHECK_FALSE(limiter.limits("NS", target));
  charge();
  CHECK_FALSE(limiter.limits("NS", target));
  throttled();
  CHECK(limiter.limits("NS", target));
  CHECK_FALSE(limiter.limits("NS", TargetId("other")));
  CHECK_FALSE(limiter.limits("OTHER", target));
}

TEST_CASE_METHOD(Bucket, "every namespace and target has a bucket of its own") {
  rate(1);
  charge();
  CHECK_FALSE(ready());
  CHECK(limiter.ready_at("NS", TargetId("other"), clock.now()) <= clock.now());
  CHECK(limiter.ready_at("OTHER", target, clock.now()) <= clock.now());
}

TEST_CASE_METHOD(Bucket, "throttling halves the rate") {
  rate(100);
  calls_within(Millis(5000));
  throttled();
  const auto calls = calls_within(Millis(1000));
  CHECK(calls >= 45);
  CHECK(calls <= 62);  // and regained slowly from there
}

TEST_CASE_METHOD(Bucket, "nothing goes before the hint of a throttling") {
  rate(100);
  throttled(Millis(4000));
  CHECK(limiter.ready_at("NS", target, clock.now()) == clock.now() + Millis(4000));
  CHECK(calls_within(Millis(4000)) == 0);
  CHECK(calls_within(Millis(1000)) > 0);
}

TEST_CASE_METHOD(Bucket, "a hint of days is taken for an hour") {
  rate(100);
  throttled(std::chrono::hours(24 * 40));
  CHECK(limiter.ready_at("NS", target, clock.now()) == clock.now() + std::chrono::hours(1));
  throttled(Millis::max());
  CHECK(limiter.ready_at("NS", target, clock.now()) == clock.now() + std::chrono::hours(1));
}

TEST_CASE_METHOD(Bucket, "a shorter hint does not shorten a longer one") {
  rate(100);
  throttled(Millis(4000));
  throttled(Millis(1000));
  CHECK(calls_within(Millis(3900)) == 0);
}

TEST_CASE_METHOD(Bucket, "many jobs that report one overload halve the rate once") {
  rate(100);
  calls_within(Millis(5000));
  for (int i = 0; i < 20; ++i) throttled();
  CHECK(calls_within(Millis(1000)) >= 45);
}

TEST_CASE_METHOD(Bucket, "a throttling that goes on halves again") {
  rate(128);
  calls_within(Millis(5000));
  for (int i = 0; i < 3; ++i) {
    throttled();
    calls_within(Millis(1001));
  }
  CHECK(calls_within(Millis(1000)) <= 64);
}

TEST_CASE_METHOD(Bucket, "a throttling halves what has been regained since the one before, asked for or not") {
  rate(100);
  throttled();
  clock.advance(std::chrono::seconds(20));
  throttled();
  const auto calls = calls_within(Millis(1000));
  CHECK(calls >= 45);
  CHECK(calls <= 62);
}

TEST_CASE_METHOD(Bucket, "however throttled, something goes now and then") {
  rate(10);
  for (int i = 0; i < 100; ++i) {
    throttled();
    clock.advance(Millis(1001));
  }
  CHECK(calls_within(Millis(30'000)) >= 3);
}

TEST_CASE_METHOD(Bucket, "so does it where the limit was learnt") {
  for (int i = 0; i < 100; ++i) {
    throttled();
    clock.advance(Millis(1001));
  }
  CHECK(calls_within(Millis(30'000)) >= 2);
}

TEST_CASE_METHOD(Bucket, "the rate is regained slowly, and not beyond what it was") {
  rate(100);
  calls_within(Millis(5000));
  throttled();
  calls_within(Millis(1000));
  const auto soon = calls_within(Millis(1000));
  CHECK(soon < 90);
  calls_within(Millis(20'000));
  const auto later = calls_within(Millis(1000));
  CHECK(later >= 99);
  CHECK(later <= 101);
}

TEST_CASE_METHOD(Bucket, "a target without a limit gets one when it throttles, at half of what it used") {
  for (int i = 0; i < 40; ++i) {
    charge();
    clock.advance(Millis(50));  // twenty a second
  }
  throttled();
  const auto calls = calls_within(Millis(1000));
  CHECK(calls >= 7);
  CHECK(calls <= 14);
  clock.advance(std::chrono::minutes(5));
  calls_within(Millis(0));
  for (int i = 0; i < 1000; ++i) charge();
  CHECK(ready());  // quiet for long enough: there is no limit any more
}

TEST_CASE_METHOD(Bucket, "a limit that was learnt holds for a quiet minute, however often it is looked at") {
  throttled();
  SECTION("seldom") {
    clock.advance(std::chrono::seconds(50));
    ready();
    CHECK(limiter.limits("NS", target));
    clock.advance(std::chrono::seconds(11));
    ready();
  }
  SECTION("often") {
    for (int tenth = 1; tenth <= 601; ++tenth) {
      CHECK(limiter.limits("NS", target));
      clock.advance(Millis(100));
      ready();
    }
  }
  CHECK_FALSE(limiter.limits("NS", target));
}

TEST_CASE_METHOD(Bucket, "a limit that was learnt grows slowly, and not beyond what was too much, while it is used") {
  for (int i = 0; i < 40; ++i) {
    charge();
    clock.advance(Millis(50));  // twenty a second
  }
  throttled();
  CHECK(calls_within(Millis(1000)) <= 14);
  CHECK(calls_within(Millis(1000)) < 20);
  calls_within(Millis(20'000));
  const auto later = calls_within(Millis(1000));
  CHECK(later >= 18);
  CHECK(later <= 22);
}

TEST_CASE_METHOD(Bucket, "a rate of less than a call in ten seconds is not exceeded for being throttled") {
  rate(0.01);
  charge();
  throttled();
  CHECK(calls_within(std::chrono::seconds(99)) == 0);
}

TEST_CASE_METHOD(Bucket, "a throttling forgives no calls that are not paid for yet") {
  rate(10);
  charge(60);
  throttled();
  CHECK(calls_within(Millis(4000)) == 0);
}

TEST_CASE_METHOD(Bucket,
                 "what a target without a limit used is what it used in the fuller of two seconds, not before") {
  limiter.count("NS", target, 100, clock.now());
  SECTION("a moment ago") {
    clock.advance(Millis(1100));
    limiter.count("NS", target, 1, clock.now());
    throttled();
    CHECK(calls_within(Millis(1000)) >= 45);
  }
  SECTION("long ago") {
    clock.advance(Millis(5000));
    limiter.count("NS", target, 1, clock.now());
    throttled();
    CHECK(calls_within(Millis(1000)) <= 3);
  }
}

TEST_CASE_METHOD(Bucket, "to say the same rate again forgets nothing") {
  rate(100);
  calls_within(Millis(5000));
  throttled(Millis(2000));
  rate(100);
  CHECK(calls_within(Millis(2000)) == 0);
  const auto calls = calls_within(Millis(1000));
  CHECK(calls <= 150);  // a full bucket would give two hundred
}

TEST_CASE_METHOD(Bucket, "another rate holds from then on") {
  rate(10);
  while (ready()) charge();
  rate(50);
  calls_within(Millis(2000));
  const auto calls = calls_within(Millis(2000));
  CHECK(calls >= 99);
  CHECK(calls <= 101);
}

TEST_CASE_METHOD(Bucket, "a clock that stands still gives nothing") {
  rate(10);
  while (ready()) charge();
  for (int i = 0; i < 10; ++i) CHECK_FALSE(ready());
}
