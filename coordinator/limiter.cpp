#include "coordinator/limiter.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

using Seconds = std::chrono::duration<double>;

double seconds(TimePoint::duration d) {
  return std::chrono::duration_cast<Seconds>(d).count();
}

constexpr double kSlowest = 0.1;            // calls per second: a throttled target is still asked now and then
constexpr Millis kLongestPause{3'600'000};  // whatever a provider asks for, or a worker says that a job has cost
constexpr Seconds kAges{1e9};               // as far as it is reckoned when a bucket that hardly fills is full

}  // namespace

void Limiter::set_rate(const std::string& ns, const TargetId& target, double rate, TimePoint now) {
  auto& bucket = buckets_[ns][target];
  if (bucket.full_rate == rate) return;
  bucket.full_rate = rate;
  bucket.rate = rate;
  bucket.tokens = std::max(1.0, rate);
  bucket.filled = now;
}

void Limiter::refill(Bucket& bucket, TimePoint now) {
  if (now <= bucket.filled) return;
  const double elapsed = seconds(now - bucket.filled);
  bucket.filled = now;
  if (bucket.rate <= 0) return;
  bucket.tokens = std::min(std::max(1.0, bucket.rate), bucket.tokens + elapsed * bucket.rate);
  if (bucket.halved != TimePoint{}) {
    const double full = bucket.full_rate > 0 ? bucket.full_rate : bucket.too_much;
    bucket.rate = std::min(full, bucket.rate + full * 0.1 * elapsed);
    // What never had a limit loses the one it learnt after a quiet minute.
    const bool quiet = now - bucket.halved > std::chrono::minutes(1);
    if (bucket.full_rate > 0 ? bucket.rate >= full : quiet) {
      bucket.rate = bucket.full_rate;
      bucket.halved = {};
    }
  }
}

TimePoint Limiter::ready_at(const std::string& ns, const TargetId& target, TimePoint now) {
  auto* known = find(ns, target);
  if (known == nullptr) return now;
  auto& bucket = *known;
  refill(bucket, now);
  if (bucket.not_before > now) return bucket.not_before;
  if (bucket.rate <= 0 || bucket.tokens >= 1) return now;
  const auto wait = std::min(Seconds((1 - bucket.tokens) / bucket.rate), kAges);
  return now + std::max<TimePoint::duration>(std::chrono::duration_cast<TimePoint::duration>(wait), Millis(1));
}

bool Limiter::pauses(const std::string& ns, const TargetId& target, TimePoint now) {
  const auto* bucket = find(ns, target);
  return bucket != nullptr && bucket->not_before > now;
}

bool Limiter::limits(const std::string& ns, const TargetId& target) {
  const auto* bucket = find(ns, target);
  return bucket != nullptr && bucket->rate > 0;
}

Limiter::Bucket* Limiter::find(const std::string& ns, const TargetId& target) {
  const auto of_ns = buckets_.find(ns);
  if (of_ns == buckets_.end()) return nullptr;
  const auto it = of_ns->second.find(target);
  return it == of_ns->second.end() ? nullptr : &it->second;
}

void Limiter::charge(const std::string& ns, const TargetId& target, double calls, TimePoint now) {
  auto& bucket = buckets_[ns][target];
  refill(bucket, now);
  if (bucket.rate > 0) bucket.tokens = std::max(bucket.tokens - calls, -bucket.rate * seconds(kLongestPause));
  count(bucket, calls, now);
}

void Limiter::count(const std::string& ns, const TargetId& target, double calls, TimePoint now) {
  count(buckets_[ns][target], calls, now);
}

void Limiter::count(Bucket& bucket, double calls, TimePoint now) {
  if (now - bucket.window > std::chrono::seconds(1)) {
    bucket.used_before = now - bucket.window > std::chrono::seconds(2) ? 0 : bucket.used;
    bucket.used = 0;
    bucket.window = now;
  }
  bucket.used += calls;
}

void Limiter::throttled(const std::string& ns, const TargetId& target, Millis retry_after, TimePoint now) {
  auto& bucket = buckets_[ns][target];
  refill(bucket, now);
  if (retry_after.count() > 0)
    bucket.not_before = std::max(bucket.not_before, now + std::min(retry_after, kLongestPause));
  // Many jobs in flight report one and the same overload: it halves once.
  if (bucket.halved != TimePoint{} && now - bucket.halved < std::chrono::seconds(1)) return;
  const double rate = bucket.rate > 0 ? bucket.rate : std::max({bucket.used, bucket.used_before, 2.0});
  bucket.rate = std::max(std::min(kSlowest, rate), rate / 2);
  bucket.too_much = std::max(rate, 2 * kSlowest);
  bucket.tokens = std::min(bucket.tokens, 1.0);
  bucket.halved = now;
}

}  // namespace muster
