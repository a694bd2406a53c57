#include "worker_sdk/bus/nats_subscription.h"

namespace muster {
namespace {

// Closure of a plain subscription: a mailbox, freed when the library says that no call can follow.
using Closure = std::shared_ptr<Mailbox>;

/// The loop is woken for the last message that waits, not for each: it finds all of them.
void on_message(natsConnection*, natsSubscription* subscription, natsMsg* raw, void* closure) noexcept {
  MsgPtr msg(raw);
  if (!msg) return;
  Mailbox& mailbox = **static_cast<Closure*>(closure);
  mailbox.put(std::move(msg));
  int waiting = 0;
  if (natsSubscription_GetPending(subscription, &waiting, nullptr) != NATS_OK || waiting == 0) mailbox.wake();
}

void on_complete(void* closure) noexcept {
  const std::unique_ptr<Closure> own(static_cast<Closure*>(closure));
}

}  // namespace

natsStatus NatsSubscription::open(natsConnection* connection, const std::string& subject, const std::string& queue,
                                  std::shared_ptr<Mailbox> mailbox) {
  collected_into_ = std::move(mailbox);
  natsSubscription* raw = nullptr;
  const natsStatus status = queue.empty()
                                ? natsConnection_SubscribeSync(&raw, connection, subject.c_str())
                                : natsConnection_QueueSubscribeSync(&raw, connection, subject.c_str(), queue.c_str());
  native_.reset(raw);
  return limit(status);
}

natsStatus NatsSubscription::open_for_answers(natsConnection* connection, const std::string& subject,
                                              std::shared_ptr<Mailbox> mailbox) {
  auto closure = std::make_unique<Closure>(std::move(mailbox));
  natsSubscription* raw = nullptr;
  natsStatus status = natsConnection_Subscribe(&raw, connection, subject.c_str(), on_message, closure.get());
  native_.reset(raw);
  if (status == NATS_OK) status = natsSubscription_SetOnCompleteCB(raw, on_complete, closure.get());
  if (status == NATS_OK) [[maybe_unused]]
    const Closure* freed_by_on_complete = closure.release();
  return limit(status);
}

natsStatus NatsSubscription::limit(natsStatus opened) {
  if (opened != NATS_OK) return opened;
  return natsSubscription_SetPendingLimits(native_.get(), static_cast<int>(Mailbox::kMaxMessages),
                                           static_cast<int>(Mailbox::kMaxBytes));
}

void NatsSubscription::collect() {
  if (!collected_into_) return;
  std::size_t left = backlog().messages;
  while (left > 0) {
    natsMsg* raw = nullptr;
    const natsStatus status = natsSubscription_NextMsg(&raw, native_.get(), 0);
    if (status == NATS_SLOW_CONSUMER) continue;  // said once, and no message is taken
    --left;
    if (status == NATS_OK) collected_into_->put(MsgPtr(raw));
  }
}

void NatsSubscription::unsubscribe() {
  if (native_) natsSubscription_Unsubscribe(native_.get());
}

NatsSubscription::Backlog NatsSubscription::backlog() const {
  int messages = 0;
  int bytes = 0;
  if (native_) natsSubscription_GetPending(native_.get(), &messages, &bytes);
  return {static_cast<std::size_t>(messages), static_cast<std::size_t>(bytes)};
}

std::uint64_t NatsSubscription::dropped() const {
  std::int64_t count = 0;
  if (native_) natsSubscription_GetDropped(native_.get(), &count);
  return static_cast<std::uint64_t>(count);
}

}  // namespace muster
