#include "support/tcp_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <list>
#include <stdexcept>
#include <vector>

namespace muster::test {
namespace {

constexpr int kLookMillis = 20;              // for another state, and for what has been under way for long enough
constexpr std::size_t kMost = 1 << 20;       // bytes held of one direction
constexpr std::size_t kPortion = 64 * 1024;  // read at once

using std::chrono::steady_clock;

/// One direction of a connection.
struct Flow {
  struct Piece {
    steady_clock::time_point due;
    std::string bytes;
  };

  int from, to;
  std::deque<Piece> held;
  std::size_t bytes = 0;  // of them

  [[nodiscard]] bool has_due() const { return !held.empty() && held.front().due <= steady_clock::now(); }
  /// False when the connection is over.
  bool read(std::chrono::milliseconds delay) {
    std::array<char, kPortion> portion;
    const auto count = ::recv(from, portion.data(), portion.size(), MSG_DONTWAIT);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    held.push_back({steady_clock::now() + delay, {portion.data(), static_cast<std::size_t>(count)}});
    bytes += static_cast<std::size_t>(count);
    return true;
  }
  bool write() {
    auto& first = held.front().bytes;
    const auto count = ::send(to, first.data(), first.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count <= 0) return count == 0 || errno == EAGAIN || errno == EINTR;
    first.erase(0, static_cast<std::size_t>(count));
    bytes -= static_cast<std::size_t>(count);
    if (first.empty()) held.pop_front();
    return true;
  }
};

/// Its sockets are closed at the end.
struct Connection {
  Connection(int client, int server) : there{client, server, {}, 0}, back{server, client, {}, 0} {}
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

TcpLink::TcpLink(std::uint16_t to, const std::string& address, std::chrono::milliseconds delay)
    : to_(to), delay_(delay) {
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
        const bool reads = state == State::kOpen && flow->bytes < kMost;
        const bool writes = state == State::kOpen && other->has_due();
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
        if ((socket->revents & ~POLLOUT) != 0) alive = flow->read(delay_) && alive;
        if ((socket->revents & POLLOUT) != 0 && other->has_due()) alive = other->write() && alive;
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
