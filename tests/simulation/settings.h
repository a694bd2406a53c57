#pragma once

#include "coordinator/config.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sim {

/// Targets have two names, one after the other: `cloud` may be `cloud-too` for a while.
inline constexpr const char* kOtherName = "-too";

/// A configuration that an operator may start the coordinator with next: targets that are left out, have other names or
/// other settings, other limits and intervals. Each is a change of `usual`, not of the one before.
Config changed_config(const Config& usual, Random& random);

}  // namespace muster::sim
