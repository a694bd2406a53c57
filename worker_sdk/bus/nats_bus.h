#pragma once

#include <memory>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

#include "worker_sdk/bus/bus.h"

namespace muster {

struct NatsOptions {
  std::string url;                        // nats://[user:password@|token@]host:port[,…] or tls://…
  std::string name;                       // connection name, shown by the server
  std::string creds;                      // path of a credentials file (JWT and seed)
  std::string nkey_seed;                  // path of a file with an NKey seed
  std::string tls_ca, tls_cert, tls_key;  // paths of PEM files
  std::string inbox = "_INBOX";           // what the subjects begin with on which answers come
  Millis connect_timeout{5000};           // of one try, all servers together
  Millis reconnect_wait{250};             // grows with jitter to reconnect_wait_max
  Millis reconnect_wait_max{5000};
};

/// Why something is tried over and over: news when it is another reason than the last, or was told 30 s ago.
class RepeatedReason {
 public:
  bool is_news(const std::string& reason);

 private:
  std::string said_;
  TimePoint next_{};
};

/// The options for a try to connect that follows so many failed ones: it may take twice as long each time, up to 10 s
/// or what the first one may. Over a slow link a handshake is several round trips, with TLS even more.
NatsOptions with_patience(NatsOptions options, int failures);

/// A Bus on the NATS C client in its event-loop mode: one read and one write for many messages, and no other thread for
/// any but answers. Reconnects for ever; a connection that the library gives up (repeated authentication errors) is
/// built anew, with credentials read afresh, and all subscriptions made again.
class NatsBus final : public Bus {
 public:
  /// Connects, waiting at most options.connect_timeout.
  /// errors   kDisconnected (message names the URL without its password), kAccessDenied, kInvalidRequest
  static Result<std::unique_ptr<NatsBus>> connect(NatsOptions options, std::shared_ptr<spdlog::logger> log);

  /// Closes as close() does, with a second's time.
  ~NatsBus() override;
  NatsBus(const NatsBus&) = delete;
  NatsBus& operator=(const NatsBus&) = delete;

  Result<SubscriptionId> subscribe(std::string_view subject, std::string_view queue) override;
  Result<SubscriptionId> subscribe_answers(std::string_view subject) override;
  using Bus::subscribe;
  void unsubscribe(SubscriptionId id) override;
  Result<void> publish(const Outgoing& message) override;
  void send() override;
  std::size_t receive(std::vector<Message>& out, std::size_t limit) override;
  bool read() override;
  [[nodiscard]] bool drained() const override;
  [[nodiscard]] BusLink link() const override;
  [[nodiscard]] BusStatus status() const override;
  [[nodiscard]] const std::string& inbox() const override;

  /// One turn of the loop: writes what publish() handed over, sleeps until the socket is readable, wake() is called
  /// or `until` has come, and reads. Returns at once when receive() has something left.
  void wait(TimePoint until);

  /// Makes the wait() of the loop thread return. Thread: any; async-signal-safe.
  void wake() noexcept;

  /// Sends what is pending and waits until the server has seen it (a round trip), at most `timeout`.
  /// errors   kTimeout, kDisconnected
  Result<void> flush(Millis timeout);

  /// Drains subscriptions, flushes, closes, waits until no callback of the library can follow.
  void close(Millis timeout);

 private:
  struct State;
  explicit NatsBus(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Ends the library's own threads; the last call in main, after every NatsBus is gone.
void nats_library_close();

/// `url` with user and password replaced by `***`, for logs and errors.
std::string redact_url(std::string_view url);

}  // namespace muster
