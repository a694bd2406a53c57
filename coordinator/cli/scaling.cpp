#include "coordinator/cli/scaling.h"

#include <algorithm>

namespace muster::cli {
namespace {

constexpr Millis kLongWait{1000};
constexpr Millis kSpareFor{60'000};
constexpr Millis kSettle{10'000};      // until new workers have joined and taken what waits
constexpr Millis kHeardOften{20'000};  // after a longer silence nobody knows what was in between

}  // namespace

void Scaling::hear(const Demand& demand, TimePoint now) {
  // Without one of ours, a quarter of what is left would still be free.
  const bool spare = demand.queued == 0 && demand.slots >= slots_ && demand.busy * 4 <= (demand.slots - slots_) * 3;
  const bool full = demand.queued > 0 && demand.busy >= demand.slots;
  const bool silence = now - heard_ > kHeardOften;
  if (!spare || silence) spare_since_.reset();
  if (spare && !spare_since_) spare_since_ = now;
  if (!full || silence) full_since_.reset();
  if (full && !full_since_) full_since_ = now;
  heard_ = now;
  if (now < next_change_) return;
  auto wanted = wanted_;
  // Short jobs wait less than a second each, in a queue that stands all the same.
  if (demand.queued > 0 && (demand.wait >= kLongWait || (full && now - *full_since_ >= kLongWait))) {
    const auto missing = (demand.queued + slots_ - 1) / slots_;
    wanted += std::min(missing, wanted_);  // doubled at most
  } else if (spare && now - *spare_since_ >= kSpareFor) {
    --wanted;
  }
  wanted = std::clamp(wanted, min_, max_);
  if (wanted == wanted_) return;
  wanted_ = wanted;
  next_change_ = now + kSettle;
}

}  // namespace muster::cli
