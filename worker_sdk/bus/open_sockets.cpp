#include "worker_sdk/bus/open_sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace muster {
namespace {

/// 0: it has none.
std::uint16_t peer_port(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return 0;
  if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port);
  if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port);
  return 0;
}

struct Socket {
  int descriptor = -1;
  std::string inode;
};

/// By what their links say: descriptors that belong to others are not used, for they may be closed at any moment.
std::vector<Socket> open_sockets() {
  std::vector<Socket> sockets;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const std::string means = std::filesystem::read_symlink(it->path(), gone);
    if (gone || !means.starts_with("socket:")) continue;
    const std::string name = it->path().filename();
    Socket socket{-1, means};
    std::from_chars(name.data(), name.data() + name.size(), socket.descriptor);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

}  // namespace

OpenSockets::OpenSockets() {
  for (auto& socket : open_sockets()) known_.insert(std::move(socket.inode));
}

void OpenSockets::shut_down_later_ones(const std::vector<std::uint16_t>& ports) const {
  for (const auto& socket : open_sockets()) {
    if (known_.contains(socket.inode)) continue;
    // Of our own from here on: other threads may close it, and open another in its place.
    const int own = ::fcntl(socket.descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0) continue;
    if (std::ranges::find(ports, peer_port(own)) != ports.end()) ::shutdown(own, SHUT_RDWR);
    ::close(own);
  }
}

}  // namespace muster
