#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "worker_sdk/bus/mailbox.h"
#include "worker_sdk/bus/nats_handles.h"

namespace muster {

/// A subscription of one connection, which it must not outlive. The loop reads it, without a thread, unless it is for
/// answers: those go through the library's delivery thread, for the synchronous read swallows the server's
/// no-responders answers together with the subject that tells which request they belong to.
/// Thread: the loop thread.
class NatsSubscription {
 public:
  NatsSubscription() = default;

  /// Tells the server. `queue`: empty, none.
  natsStatus open(natsConnection* connection, const std::string& subject, const std::string& queue,
                  std::shared_ptr<Mailbox> mailbox);
  /// The same for answers. The mailbox lives until the library calls no more.
  natsStatus open_for_answers(natsConnection* connection, const std::string& subject, std::shared_ptr<Mailbox> mailbox);
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
  natsStatus limit(natsStatus opened);

  SubscriptionPtr native_;
  std::shared_ptr<Mailbox> collected_into_;  // none: the delivery thread fills the mailbox
};

}  // namespace muster
