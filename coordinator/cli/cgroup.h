#pragma once

#include <filesystem>
#include <string>

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

  /// When its last process has ended.
  static void remove(const std::filesystem::path& group);

 private:
  explicit Cgroups(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
  int made_ = 0;
};

}  // namespace muster::cli
