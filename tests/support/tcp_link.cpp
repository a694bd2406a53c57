#include "support/tcp_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <list>
#include <stdexcept>
#include <vector>

namespace muster::test {
namespace {

constexpr int kLookMillis = 20;              // for another state
constexpr std::size_t kMost = 1 << 20;       // bytes held of one direction
constexpr std::size_t kPortion = 64 * 1024;  // read at once

/// One direction of a connection.
struct Flow {
  int from, to;
  std::string held;

  /// False when the connection is over.
  bool read() {
    std::array<char, kPortion> bytes;
    const auto count = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) held.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }
  bool write() {
    const auto count = ::send(to, held.data(), held.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) held.erase(0, static_cast<std::size_t>(count));
    return count >= 0 || errno == EAGAIN || errno == EINTR;
  }
};

/// Its sockets are closed at the end.
struct Connection {
  Connection(int client, int server) : there{client, server, {}}, back{server, client, {}} {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    ::close(there.from);
    ::close(there.to);
  }

  Flow there, back;
};

sockaddr_in address_of(const std::string& address, std::uint16_t port) {
  sockaddr_in all{};
  all.sin_family = AF_INET;
  all.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &all.sin_addr);
  return all;
}

/// -1 where nobody listens.
int connect_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = address_of("127.0.0.1", port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

}  // namespace

TcpLink::TcpLink(std::uint16_t to, const std::string& address) : to_(to) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto own = address_of(address, 0);
  socklen_t size = sizeof own;
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&own), size) != 0 || ::listen(listener_, SOMAXCONN) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    ::close(listener_);
    throw std::runtime_error("cannot listen on " + address);
  }
  port_ = ntohs(own.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

TcpLink::~TcpLink() {
  thread_ = {};
  ::close(listener_);
}

void TcpLink::run(const std::stop_token& stop) {
  std::list<Connection> connections;
  while (!stop.stop_requested()) {
    const State state = state_;
    if (state == State::kCut) connections.clear();
    std::vector<pollfd> sockets{{listener_, POLLIN, 0}};
    for (const auto& one : connections) {
      for (const auto* flow : {&one.there, &one.back}) {
        const auto* other = flow == &one.there ? &one.back : &one.there;
        const bool reads = state == State::kOpen && flow->held.size() < kMost;
        const bool writes = state == State::kOpen && !other->held.empty();
        // A negative one is passed over: what hangs up would else end each poll at once.
        sockets.push_back(
            {reads || writes ? flow->from : -1, static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0});
      }
    }
    if (::poll(sockets.data(), sockets.size(), kLookMillis) <= 0 || state != state_) continue;
    auto socket = sockets.begin() + 1;
    for (auto one = connections.begin(); one != connections.end();) {
      bool alive = true;
      for (auto* flow : {&one->there, &one->back}) {
        auto* other = flow == &one->there ? &one->back : &one->there;
        if ((socket->revents & ~POLLOUT) != 0) alive = flow->read() && alive;
        if ((socket->revents & POLLOUT) != 0) alive = other->write() && alive;
        ++socket;
      }
      one = alive ? std::next(one) : connections.erase(one);
    }
    if ((sockets[0].revents & POLLIN) == 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = client < 0 || state == State::kCut ? -1 : connect_to(to_);
    if (server < 0) {
      ::close(client);
    } else {
      connections.emplace_back(client, server);
    }
  }
}

}  // namespace muster::test
