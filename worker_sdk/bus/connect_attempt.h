#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "worker_sdk/bus/nats_link.h"
#include "worker_sdk/bus/open_sockets.h"

namespace muster {

/// Connects on a thread of its own, because the library blocks while it does, and wakes the loop at the end.
/// Thread: the loop thread.
class ConnectAttempt {
 public:
  /// `servers`   those that are configured
  /// `learned`   addresses that others told of, tried after those; a certificate names the first that is configured
  ConnectAttempt(NatsOptions options, std::vector<std::string> servers, std::vector<std::string> learned,
                 std::shared_ptr<LinkContext> context);
  /// Waits for the attempt, a second at most. Then its connection is broken off; where that does not end it in another
  /// second its thread is cancelled, and what the library holds for it is lost.
  ~ConnectAttempt();
  ConnectAttempt(const ConnectAttempt&) = delete;
  ConnectAttempt& operator=(const ConnectAttempt&) = delete;

  /// The outcome, once, when it is there before `until`. A server that falls silent in the middle of the handshake
  /// would hold the library for ever: after options.connect_timeout, for those that are learned once more, and a second
  /// the attempt is kDisconnected. An error is that of the configured servers.
  std::optional<Result<std::unique_ptr<NatsLink>>> outcome(TimePoint until);

  /// When outcome() has an answer at the latest.
  [[nodiscard]] TimePoint deadline() const { return deadline_; }

 private:
  void run(const NatsOptions& options, const std::vector<std::string>& servers,
           const std::vector<std::string>& learned);
  bool wait(TimePoint until);

  std::shared_ptr<LinkContext> context_;
  TimePoint deadline_;
  std::vector<std::uint16_t> ports_;  // of the servers
  OpenSockets before_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Result<std::unique_ptr<NatsLink>>> outcome_;
  std::thread thread_;
};

}  // namespace muster
