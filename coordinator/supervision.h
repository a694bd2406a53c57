#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schema/ids.h"
#include "schema/result.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// A plugin as the process says that keeps its workers running.
struct SupervisedPlugin {
  std::string plugin, path;
  std::string state;   // starting, running, waiting, quarantined, draining
  std::string reason;  // of `quarantined`
  std::uint64_t restarts = 0;
  std::vector<WorkerId> workers{};
  std::string ns{};  // empty: unknown
};

/// How long what a supervisor said is believed.
inline constexpr Millis kSupervisionHolds{15'000};
inline constexpr std::size_t kMaxSupervisors = 256;
inline constexpr std::size_t kMaxSupervisedPlugins = 4096;       // of all supervisors
inline constexpr std::size_t kMaxSupervisionBytes = 512 * 1024;  // of their reports

/// What supervisors have said, by supervisor. In memory only. Thread: loop thread only.
class Supervision {
 public:
  struct Report {
    std::string supervisor, host;
    std::vector<SupervisedPlugin> plugins;
    std::size_t bytes = 0;  // as it came
    bool proven = false;    // a worker of its plugins is or was one of the fleet's
  };

  /// Keeps a report in place of its supervisor's last one. A namespace that was known stays known. Who is proven takes
  /// the room of those who are not, and have reported longest ago.
  /// returns   the plugins that are quarantined now and were not before
  /// errors    kLimit: there is no room beside the reports of others
  Result<std::vector<SupervisedPlugin>> take(Report report, TimePoint now);

  /// Forgets those that were not heard of for kSupervisionHolds.
  void expire(TimePoint now);

  struct Heard {
    Report report;
    TimePoint at;
  };
  [[nodiscard]] const std::map<std::string, Heard>& reports() const { return reports_; }

 private:
  [[nodiscard]] bool has_room(const Report& report) const;
  [[nodiscard]] bool make_room(const Report& report);

  std::map<std::string, Heard> reports_;
};

}  // namespace muster
