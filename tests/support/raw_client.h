#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace muster::test {

/// A client of a nats-server on loopback that says what it is told to, and never reads a byte of what it gets.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int small = 4096;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("no server");
    }
    say("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"name\":\"raw\"}\r\n");
  }
  ~RawClient() { ::close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void say(std::string_view words) const {
    if (::send(socket_, words.data(), words.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(words.size())) {
      throw std::runtime_error("the server does not listen");
    }
  }

 private:
  int socket_;
};

}  // namespace muster::test
