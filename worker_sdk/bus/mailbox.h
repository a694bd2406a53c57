#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "worker_sdk/bus/bus.h"
#include "worker_sdk/bus/nats_handles.h"
#include "worker_sdk/bus/waker.h"

namespace muster {

/// What all mailboxes of a bus have in common.
struct Arrivals {
  Waker& waker;
  std::mutex mutex{};                     // of what is in the mailboxes; the loop holds it while it reads the socket
  std::atomic<std::size_t> pending{0};    // messages in all mailboxes
  std::atomic<std::size_t> bytes{0};      // of their data
  std::atomic<std::uint64_t> dropped{0};  // messages that found their mailbox full
};

/// Messages that this thread is done with may still be held, some dozens of them: they are freed now, before the
/// library is closed.
void give_back_messages() noexcept;

/// Messages of one subscription that were not received yet; bounded, the newest are dropped and counted.
/// Thread: put() and wake() any, the rest the loop thread.
class Mailbox {
 public:
  /// What the library may hold back, too, before it drops.
  static constexpr std::size_t kMaxMessages = 65536;
  static constexpr std::size_t kMaxBytes = 256 << 20;

  Mailbox(SubscriptionId id, std::shared_ptr<Arrivals> arrivals) : id_(id), arrivals_(std::move(arrivals)) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Does not wake the loop: wake() does, where it sleeps.
  void put(MsgPtr msg);
  void wake() noexcept { arrivals_->waker.wake_if_asleep(); }
  /// Appends at most `limit` messages to `out`.
  void take(std::size_t limit, std::vector<Message>& out);
  /// Forgets what is there; nothing gets in from now on.
  void close();

 private:
  const SubscriptionId id_;
  const std::shared_ptr<Arrivals> arrivals_;
  bool closed_ = false;
  std::deque<MsgPtr> messages_;
  std::size_t bytes_ = 0;
};

}  // namespace muster
