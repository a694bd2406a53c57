#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "worker_sdk/bus/mailbox.h"
#include "worker_sdk/bus/nats_bus.h"
#include "worker_sdk/bus/nats_handles.h"
#include "worker_sdk/bus/waker.h"

namespace muster {

/// What the library tells on its own thread: asynchronous errors, such as a missing permission. Thread: any.
class AsyncErrors {
 public:
  void note(std::string text);
  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] std::string last() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;
  std::string last_;
};

/// What a link shares with the bus that it serves; the library's threads may hold it a moment longer than both.
struct LinkContext {
  Waker waker;
  AsyncErrors errors;
  Arrivals arrivals{waker};
};

/// One connection of the library in event-loop mode, from the first handshake until it is lost. It never reconnects by
/// itself: the library would do that on a thread of its own, holding the lock that publish() needs, with the parser in
/// the state where the old connection broke off, and would give up after two identical authentication errors.
/// Under TLS the library's write blocks while the socket is full: what it handed over must leave as it was encrypted.
/// Thread: open() any; the rest the loop thread.
class NatsLink {
 public:
  /// Connects to one of `servers` and ends the handshake; blocks about options.connect_timeout at most, unless the
  /// server falls silent in the middle (see ConnectAttempt). A cancellation point of the thread.
  /// `host`   whom a certificate has to name; empty: the host of the server's own address
  /// errors   kAccessDenied, kInvalidRequest (options), kDisconnected
  static Result<std::unique_ptr<NatsLink>> open(const NatsOptions& options, const std::vector<std::string>& servers,
                                                const std::string& host, std::shared_ptr<LinkContext> context);
  ~NatsLink();
  NatsLink(const NatsLink&) = delete;
  NatsLink& operator=(const NatsLink&) = delete;

  [[nodiscard]] natsConnection* get() const { return connection_.get(); }
  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] bool lost() const { return socket_ < 0; }
  [[nodiscard]] bool wants_write() const { return wants_write_; }
  [[nodiscard]] std::size_t max_payload() const;
  /// Addresses of servers that the connected one told of.
  [[nodiscard]] std::vector<std::string> discovered_servers() const;

  /// Reads a readable socket, without blocking; false when nothing whole was there.
  bool read();
  /// Whether read() would find something: also that the connection has ended.
  [[nodiscard]] bool readable() const;
  /// A part of a TLS record is there: the socket stays readable, and read() can do nothing yet.
  [[nodiscard]] bool awaits_record() const { return awaits_record_; }
  void write() { natsConnection_ProcessWriteEvent(connection_.get()); }
  /// Why it was lost, in the library's words.
  [[nodiscard]] std::string last_error() const;
  /// Makes the next read() find the connection lost.
  void break_off() const;
  /// Closes and waits until no callback of the library can follow, at most `timeout`.
  void close(Millis timeout);

 private:
  struct Callbacks;
  explicit NatsLink(std::shared_ptr<LinkContext> context) : context_(std::move(context)) {}
  enum class Record : std::uint8_t { kNone, kPart, kWhole, kBroken };
  [[nodiscard]] Record next_record() const;
  void make_room() const;

  static natsStatus on_attach(void** user, void* loop, natsConnection* connection, natsSock socket) noexcept;
  static natsStatus on_read_interest(void* user, bool add) noexcept;
  static natsStatus on_write_interest(void* user, bool add) noexcept;
  static natsStatus on_detach(void* user) noexcept;

  std::shared_ptr<LinkContext> context_;
  ConnectionPtr connection_;
  std::future<void> closed_;
  bool tls_ = false;
  bool awaits_record_ = false;
  int parts_in_a_row_ = 0;  // reads that have found a part of a record and nothing else
  int socket_ = -1;
  std::atomic<bool> wants_write_{false};  // set by the library's timer thread, too: it sends pings
};

}  // namespace muster
