#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
    std::size_t bytes = 0;              // as it came
    std::set<std::string> proven_by{};  // the namespaces of those workers of its plugins that the fleet has, or had
  };

  /// Keeps a report in place of its supervisor's last one. A namespace that was known stays known. Who is proven takes
  /// the room of those who are not, and then that of the namespace that has most of it, if that is more than its own
  /// would have; in both cases of those that have reported longest ago.
  /// returns   the plugins that are quarantined now and were not before
  /// errors    kLimit: there is no room beside the reports of others
  Result<std::vector<SupervisedPlugin>> take(Report report, TimePoint now);

  /// Forgets those that were not heard of for kSupervisionHolds.
  void expire(TimePoint now);

  struct Heard {
    Report report;
    TimePoint at;
    std::string room_of;  // the namespace whose room it takes; empty: nobody proves it
  };
  [[nodiscard]] const std::map<std::string, Heard>& reports() const { return reports_; }

 private:
  struct Room {
    std::size_t supervisors = 0, plugins = 0, bytes = 0;
    void add(const Report& report);
    /// Of the bound that is reached first, in millionths.
    [[nodiscard]] std::size_t share() const;
    [[nodiscard]] bool within_bounds() const;
  };
  /// What all reports take but those of `supervisor`, by namespace.
  [[nodiscard]] std::map<std::string, Room> taken_without(const std::string& supervisor) const;
  /// The namespace that has room for it now; none: there is none.
  [[nodiscard]] std::optional<std::string> make_room(const Report& report);
  void forget_oldest(const std::string& room_of, const std::string& except);

  std::map<std::string, Heard> reports_;
};

}  // namespace muster
