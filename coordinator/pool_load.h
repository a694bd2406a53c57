#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/registry.h"

namespace muster {

/// What a pool has to do, beside what its workers can do at once: more of them help where jobs wait, fewer would do
/// where slots stay free.
struct PoolLoad {
  Lane lane;
  std::size_t workers = 0;  // that take jobs
  std::size_t slots = 0;    // theirs
  std::size_t busy = 0;     // jobs that workers have a slot for
  std::size_t queued = 0;   // jobs that wait for a slot; not those that wait for a target's rate limit, or a retry
  Millis wait{0};           // of the one of them that waits longest
};

/// `{namespace, pool, workers, slots, busy, queued, wait_ms}`
nlohmann::json to_json(const PoolLoad& load);
nlohmann::json to_json(const std::vector<PoolLoad>& loads);

/// Tells when the jobs of a pool begin to wait for workers, and when they no longer do. Thread: loop thread only.
class PoolWatch {
 public:
  struct News {
    PoolLoad load;
    bool saturated = false;
  };
  /// Saturated: a job has waited for a second. Relieved: none has waited so long for ten seconds, nor any at all while
  /// all slots were busy. What stays saturated is told again once a minute.
  std::vector<News> look(const std::vector<PoolLoad>& loads, TimePoint now);
  [[nodiscard]] bool any_saturated() const { return !saturated_.empty(); }

 private:
  struct Saturated {
    TimePoint told;
    TimePoint last_waited;
  };
  std::map<Lane, Saturated> saturated_;
};

}  // namespace muster
