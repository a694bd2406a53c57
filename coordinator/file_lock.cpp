#include "coordinator/file_lock.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace muster {
namespace {

Error unavailable(std::string message) {
  return {.code = Errc::kStoreUnavailable, .message = std::move(message)};
}

std::string owner(int descriptor) {
  std::array<char, 32> text{};
  const auto length = ::pread(descriptor, text.data(), text.size(), 0);
  std::string pid(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return pid.substr(0, pid.find('\n'));
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::string& path) {
  FileLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.descriptor_ < 0) return unavailable(path + ": " + std::strerror(errno));
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return unavailable(path + ": " + std::strerror(errno));
    const auto pid = owner(lock.descriptor_);
    return Error{.code = Errc::kConflict,
                 .message = path + " is held by " + (pid.empty() ? "another process" : "process " + pid)};
  }
  // The lock is what counts: on a full disk it is held without a pid.
  const auto pid = std::to_string(::getpid()) + "\n";
  const auto written = ::pwrite(lock.descriptor_, pid.data(), pid.size(), 0);
  const auto size = written == static_cast<ssize_t>(pid.size()) ? written : 0;
  if (::ftruncate(lock.descriptor_, size) != 0) return unavailable(path + ": " + std::strerror(errno));
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace muster
