#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/config.h"
#include "schema/result.h"

namespace muster::cli {

/// Groups of processes with limits of their own (cgroup v2), below the group that this process is in. That one must
/// have been delegated to it (systemd: `Delegate=yes`) and hold no process but this one. Thread: one.
class Cgroups {
 public:
  /// Moves this process into a group `supervisor` below its own, and has the kernel limit CPU and memory beside it.
  /// `mount`   /sys/fs/cgroup
  /// `own`     text of /proc/self/cgroup
  /// errors    kUnsupported: no cgroup v2, or not ours to divide
  static Result<Cgroups> divide(const std::filesystem::path& mount, const std::string& own);

  /// A new group. A process joins it by writing `0` into the file `cgroup.procs` of it.
  /// returns   its directory
  /// errors    kUnsupported
  Result<std::filesystem::path> make(const ProcessLimits& limits);

  /// Kills what still runs in a group, where the kernel can (Linux 5.14), and removes it, at once or at a sweep()
  /// later: processes take a while to end.
  void remove(const std::filesystem::path& group);
  /// returns   whether all of those have gone
  bool sweep();

 private:
  explicit Cgroups(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
  int made_ = 0;
  std::vector<std::filesystem::path> leaving_;  // removed as soon as they are empty
};

}  // namespace muster::cli
