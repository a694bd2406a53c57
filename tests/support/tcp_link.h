#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace muster::test {

/// A way to a loopback port over which connections go, until it is cut. Throws std::runtime_error where it cannot
/// listen. Thread: any.
class TcpLink {
 public:
  /// `address`   IPv4, where it listens on a free port
  /// `delay`     of every byte, each way
  explicit TcpLink(std::uint16_t to, const std::string& address = "127.0.0.1", std::chrono::milliseconds delay = {});
  ~TcpLink();
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Open: bytes pass. Frozen: none do, nobody is told, new connections are taken and stay silent. Cut: connections
  /// end, new ones end at once.
  enum class State : std::uint8_t { kOpen, kFrozen, kCut };
  void set(State state) { state_ = state; }

 private:
  void run(const std::stop_token& stop);

  std::uint16_t to_, port_ = 0;
  const std::chrono::milliseconds delay_;
  int listener_ = -1;
  std::atomic<State> state_ = State::kOpen;
  std::jthread thread_;
};

}  // namespace muster::test
