#pragma once

#include <chrono>

#include "coordinator/store.h"

namespace muster {

/// How much longer NOT_FOUND proves nothing of a row's object: it was made, renamed or changed less than the settle
/// time of its type ago, and need not show. By wall time, which outlives the process; where the clock was set back the
/// change lies ahead, and has not just been made.
inline Millis settles_for(WallTime changed_at, Millis settle, WallTime now) {
  const auto age = std::chrono::abs(now - changed_at);
  return age < settle ? std::chrono::ceil<Millis>(settle - age) : Millis{0};
}

}  // namespace muster
