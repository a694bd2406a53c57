#include "worker_sdk/bus/mailbox.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace muster {
namespace {

std::size_t bytes_of(const natsMsg* msg) {
  return static_cast<std::size_t>(natsMsg_GetDataLength(msg));
}

/// Messages that are done with. The library frees them in a thread of its own, which it wakes for the first that it is
/// given, and which then contends for the heap with this one: they are given back many at a time. One per thread.
class Discarded {
 public:
  ~Discarded() { give_back(); }
  void add(natsMsg* msg) noexcept {
    bytes_ += bytes_of(msg);
    held_[count_++] = msg;
    if (count_ == held_.size() || bytes_ >= kMaxDiscardedBytes) give_back();
  }
  void give_back() noexcept {
    while (count_ > 0) natsMsg_Destroy(held_[--count_]);
    bytes_ = 0;
  }

 private:
  static constexpr std::size_t kMaxDiscardedBytes = 1 << 20;
  std::array<natsMsg*, 1024> held_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

thread_local Discarded discarded;

std::string_view view(const char* text) {
  return text == nullptr ? std::string_view{} : std::string_view(text);
}

std::vector<Header> headers_of(natsMsg* msg) {
  std::vector<Header> headers;
  const char** names = nullptr;
  int name_count = 0;
  if (natsMsgHeader_Keys(msg, &names, &name_count) != NATS_OK) return headers;
  for (int i = 0; i < name_count; ++i) {
    const char** values = nullptr;
    int value_count = 0;
    if (natsMsgHeader_Values(msg, names[i], &values, &value_count) != NATS_OK) continue;
    for (int j = 0; j < value_count; ++j) headers.push_back({names[i], std::string(view(values[j]))});
    std::free(values);
  }
  std::free(names);
  return headers;
}

Message to_message(SubscriptionId id, MsgPtr msg) {
  Message message;
  message.subscription = id;
  message.subject = view(natsMsg_GetSubject(msg.get()));
  message.reply = view(natsMsg_GetReply(msg.get()));
  message.data = {natsMsg_GetData(msg.get()), bytes_of(msg.get())};
  message.no_responders = message.data.empty() && natsMsg_IsNoResponders(msg.get());
  message.headers = headers_of(msg.get());
  message.owner = {msg.release(), [](void* owned) { discarded.add(static_cast<natsMsg*>(owned)); }};
  return message;
}

}  // namespace

void give_back_messages() noexcept {
  discarded.give_back();
}

void Mailbox::put(MsgPtr msg) {
  const std::size_t bytes = bytes_of(msg.get());
  const std::lock_guard lock(arrivals_->mutex);
  if (closed_) return;
  if (messages_.size() >= kMaxMessages || bytes_ + bytes > kMaxBytes) {
    ++arrivals_->dropped;
    return;
  }
  bytes_ += bytes;
  arrivals_->bytes += bytes;
  messages_.push_back(std::move(msg));
  ++arrivals_->pending;
}

void Mailbox::take(std::size_t limit, std::vector<Message>& out) {
  const std::lock_guard lock(arrivals_->mutex);
  const std::size_t count = std::min(limit, messages_.size());
  const std::size_t before = bytes_;
  for (std::size_t i = 0; i < count; ++i) {
    bytes_ -= bytes_of(messages_.front().get());
    out.push_back(to_message(id_, std::move(messages_.front())));
    messages_.pop_front();
  }
  arrivals_->bytes -= before - bytes_;
  arrivals_->pending -= count;
}

void Mailbox::close() {
  const std::lock_guard lock(arrivals_->mutex);
  closed_ = true;
  arrivals_->pending -= messages_.size();
  arrivals_->bytes -= bytes_;
  messages_.clear();
  bytes_ = 0;
}

}  // namespace muster
