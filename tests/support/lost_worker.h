#pragma once

#include <vector>

#include "coordinator/registry.h"

namespace muster::test {

/// As if nothing had been heard of this worker, which is there, for long enough.
inline std::vector<Registry::Departure> lose(Registry& registry, const WorkerName& worker, TimePoint now) {
  registry.find(worker.ns, worker.id)->last_heard = now - kLostAfter - Millis(1);
  return registry.expire(now);
}

}  // namespace muster::test
