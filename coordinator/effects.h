#pragma once

#include <vector>

#include "worker_sdk/bus/bus.h"

namespace muster {

/// What decisions want done on the bus. The loop hands `at_once` over as it is; `after_commit` waits until everything
/// that was written before is durable.
struct Effects {
  std::vector<Outgoing> at_once;
  std::vector<Outgoing> after_commit;
};

}  // namespace muster
