#pragma once

#include <map>
#include <string>

#include "schema/messages.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// Token buckets per namespace and target, for the whole fleet: one token is one call to a provider. A job is charged
/// one at its dispatch and the rest of what it cost with its reply, so a bucket may go below zero; then it waits.
/// Halved on THROTTLING, regained by a tenth of the full rate each second without one.
/// Thread: loop thread only.
class Limiter {
 public:
  /// `rate`   calls per second, 0: no limit. Keeps what the bucket has learnt when the rate stays as it is.
  void set_rate(const std::string& ns, const TargetId& target, double rate, TimePoint now);

  /// When the next job for the target may go; `now` or earlier: at once.
  [[nodiscard]] TimePoint ready_at(const std::string& ns, const TargetId& target, TimePoint now);

  /// Whether nothing goes to it yet as its provider has asked for that.
  [[nodiscard]] bool pauses(const std::string& ns, const TargetId& target, TimePoint now);

  /// Whether calls to the target are counted out.
  [[nodiscard]] bool limits(const std::string& ns, const TargetId& target);

  /// Calls that were made, for what is learnt of a target without a limit.
  void count(const std::string& ns, const TargetId& target, double calls, TimePoint now);
  /// The same, and what they cost of the tokens.
  void charge(const std::string& ns, const TargetId& target, double calls, TimePoint now);

  /// The provider said THROTTLING: nothing goes before `retry_after`, and then at half the rate. A target without a
  /// limit gets one at what it used lately, and no more than that back before a quiet minute takes the limit away.
  void throttled(const std::string& ns, const TargetId& target, Millis retry_after, TimePoint now);

 private:
  struct Bucket {
    double full_rate = 0;  // configured or announced; 0: none
    double rate = 0;       // at the moment; 0: no limit
    double tokens = 0;
    TimePoint filled;
    TimePoint not_before;
    TimePoint halved;
    double too_much = 0;  // the rate that was halved last: the full one of what has no limit
    double used = 0;      // calls in the present window of a second, to find a rate for what has no limit
    double used_before = 0;
    TimePoint window;
  };
  static void refill(Bucket& bucket, TimePoint now);
  static void count(Bucket& bucket, double calls, TimePoint now);
  /// Null: nothing is known of the target.
  Bucket* find(const std::string& ns, const TargetId& target);

  std::map<std::string, std::map<TargetId, Bucket>> buckets_;
};

}  // namespace muster
