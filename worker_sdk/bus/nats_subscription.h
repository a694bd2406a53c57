#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "worker_sdk/bus/mailbox.h"
#include "worker_sdk/bus/nats_handles.h"

namespace muster {

/// A subscription of one connection, which it must not outlive. A queue group's is read by the loop, without a thread.
/// A plain one goes through the library's delivery thread: it can get the server's no-responders answers, and the
/// synchronous read swallows those together with the subject that tells which request they belong to.
/// Thread: the loop thread.
class NatsSubscription {
 public:
  NatsSubscription() = default;

  /// Tells the server. The mailbox lives until the library calls no more.
  natsStatus open(natsConnection* connection, const std::string& subject, const std::string& queue,
                  std::shared_ptr<Mailbox> mailbox);
  /// Moves what the last read brought to the mailbox, before the library forgets it with a lost connection.
  void collect();
  void unsubscribe();
  /// What the library's delivery thread has yet to hand over.
  struct Backlog {
    std::size_t messages = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] Backlog backlog() const;
  /// Messages that the library dropped.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  natsStatus open_queued(natsConnection* connection, const std::string& subject, const std::string& queue);
  natsStatus open_plain(natsConnection* connection, const std::string& subject, std::shared_ptr<Mailbox> mailbox);

  SubscriptionPtr native_;
  std::shared_ptr<Mailbox> collected_into_;  // a queue group's
};

}  // namespace muster
