#include "worker_sdk/bus/open_sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

namespace muster {
namespace {

/// The inode of a socket; none: it is something else, or closed.
std::optional<ino_t> socket_at(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return status.st_ino;
}

/// 0: it has none.
std::uint16_t peer_port(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return 0;
  if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port);
  if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port);
  return 0;
}

std::vector<int> open_descriptors() {
  std::vector<int> descriptors;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    descriptors.push_back(descriptor);
  }
  return descriptors;
}

}  // namespace

OpenSockets::OpenSockets() {
  for (const int descriptor : open_descriptors()) {
    if (const auto socket = socket_at(descriptor)) known_.insert(*socket);
  }
}

void OpenSockets::shut_down_later_ones(const std::vector<std::uint16_t>& ports) const {
  for (const int descriptor : open_descriptors()) {
    // Of our own from here on: other threads may close it, and open another in its place.
    const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0) continue;
    const auto socket = socket_at(own);
    if (socket && !known_.contains(*socket) && std::ranges::find(ports, peer_port(own)) != ports.end()) {
      ::shutdown(own, SHUT_RDWR);
    }
    ::close(own);
  }
}

}  // namespace muster
