#include "coordinator/cli/restarts.h"

#include <algorithm>

namespace muster::cli {
namespace {

constexpr Millis kFirstBackOff{200};
constexpr Millis kLastBackOff{10'000};
constexpr Millis kHealthy{30'000};
constexpr Millis kWindow{60'000};
constexpr std::size_t kHopeless = 5;

}  // namespace

void Restarts::ended(Millis ran, TimePoint now) {
  std::erase_if(early_ends_, [&](TimePoint end) { return now - end > kWindow; });
  if (ran > kHealthy) {
    early_ends_.clear();
    back_off_ = kFirstBackOff;
  } else {
    early_ends_.push_back(now);
    back_off_ = std::clamp(back_off_ * 2, kFirstBackOff, kLastBackOff);
  }
  next_start_ = now + back_off_;
}

void Restarts::postponed(TimePoint now) {
  back_off_ = std::clamp(back_off_ * 2, kFirstBackOff, kLastBackOff);
  next_start_ = now + back_off_;
}

bool Restarts::hopeless() const {
  return early_ends_.size() >= kHopeless;
}

}  // namespace muster::cli
