#include "coordinator/cli/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kPeriod = 100'000;  // microseconds, of cpu.max

Error unsupported(const std::string& what) {
  return {Errc::kUnsupported, what + ": " + std::strerror(errno), {}, 0};
}

/// Files of the kernel are there already, and take a write as a whole.
Result<void> write_file(const fs::path& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return unsupported(path.string());
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  close(file);
  errno = error;
  return written ? Result<void>() : unsupported(path.string());
}

Result<void> make_directory(const fs::path& path) {
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST ? Result<void>() : unsupported(path.string());
}

/// The line `0::/PATH` is that of cgroup v2.
Result<std::string> unified_group(const std::string& own) {
  std::istringstream lines(own);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return Error{Errc::kUnsupported, "this process is in no group of cgroup v2", {}, 0};
}

}  // namespace

Result<Cgroups> Cgroups::divide(const fs::path& mount, const std::string& own) {
  const auto group = unified_group(own);
  if (!group) return group.error();
  const fs::path root = mount / *group;
  if (access((root / "cgroup.controllers").c_str(), R_OK) != 0) return unsupported(root.string());
  const fs::path supervisor = root / "supervisor";
  for (const auto& done : {make_directory(supervisor), write_file(supervisor / "cgroup.procs", "0"),
                           write_file(root / "cgroup.subtree_control", "+cpu +memory")}) {
    if (!done) return done.error();
  }
  return Cgroups(root);
}

Result<fs::path> Cgroups::make(const ProcessLimits& limits) {
  const fs::path group = root_ / ("worker-" + std::to_string(++made_));
  if (auto made = make_directory(group); !made) return made.error();
  const std::string cpu = std::to_string(static_cast<long long>(limits.cpu * kPeriod)) + " " + std::to_string(kPeriod);
  auto limited = limits.cpu > 0 ? write_file(group / "cpu.max", cpu) : Result<void>();
  if (limited && limits.memory > 0) limited = write_file(group / "memory.max", std::to_string(limits.memory));
  if (limited) return group;
  remove(group);
  return limited.error();
}

void Cgroups::remove(const fs::path& group) {
  (void)write_file(group / "cgroup.kill", "1");  // where there is none, the end of each process is awaited
  leaving_.push_back(group);
  sweep();
}

bool Cgroups::sweep() {
  std::erase_if(leaving_, [](const fs::path& group) { return rmdir(group.c_str()) == 0 || errno == ENOENT; });
  return leaving_.empty();
}

}  // namespace muster::cli
