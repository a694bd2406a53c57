#pragma once

#include "worker_sdk/bus/clock.h"

namespace muster {

// How long a worker takes that is asked to end by SIGTERM: who asks it waits so long.
inline constexpr Millis kDrainLimit{9500};       // then it ends, whatever still runs; the promise is 10 s
inline constexpr Millis kStopBeforeLimit{1500};  // jobs that still run are told to stop so long before that

}  // namespace muster
