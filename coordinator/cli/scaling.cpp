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
  if (!spare || now - heard_ > kHeardOften) spare_since_.reset();
  if (spare && !spare_since_) spare_since_ = now;
  heard_ = now;
  if (now < next_change_) return;
  auto wanted = wanted_;
  if (demand.queued > 0 && demand.wait >= kLongWait) {
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
