#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace muster::test {

/// A server on loopback that falls silent in the handshake. Throws std::system_error where it cannot listen.
class SilentNats {
 public:
  SilentNats() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* any = reinterpret_cast<sockaddr*>(&address_);
    if (::bind(listener_, any, size) != 0 || ::listen(listener_, 1) != 0 || ::getsockname(listener_, any, &size) != 0) {
      throw std::system_error(errno, std::generic_category());
    }
  }
  SilentNats(const SilentNats&) = delete;
  SilentNats& operator=(const SilentNats&) = delete;
  ~SilentNats() {
    for (const int each : accepted_) ::close(each);
    ::close(listener_);
  }

  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

  /// Waits for somebody, who is greeted and hears nothing more; the connection stays open to the end.
  void greet_one() {
    accepted_.push_back(::accept(listener_, nullptr, nullptr));
    constexpr std::string_view kInfo = "INFO {\"server_id\":\"x\",\"max_payload\":1000,\"proto\":1}\r\n";
    [[maybe_unused]] const auto sent = ::send(accepted_.back(), kInfo.data(), kInfo.size(), MSG_NOSIGNAL);
  }

 private:
  const int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
  std::vector<int> accepted_;
};

}  // namespace muster::test
