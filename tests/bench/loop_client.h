#pragma once

#include <nats/nats.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/bench/stopwatch.h"

namespace muster::bench {

inline void check(natsStatus status, const char* what) {
  if (status != NATS_OK) throw std::runtime_error(std::string(what) + ": " + natsStatus_GetText(status));
}

/// A message that arrived; freed at the end.
class Arrived {
 public:
  explicit Arrived(natsMsg* message) : message_(message) {}
  ~Arrived() { natsMsg_Destroy(message_); }
  Arrived(const Arrived&) = delete;
  Arrived& operator=(const Arrived&) = delete;

  [[nodiscard]] const char* subject() const { return natsMsg_GetSubject(message_); }
  [[nodiscard]] const char* reply() const { return natsMsg_GetReply(message_); }
  [[nodiscard]] std::string_view data() const {
    return {natsMsg_GetData(message_), static_cast<std::size_t>(natsMsg_GetDataLength(message_))};
  }

 private:
  natsMsg* message_;
};

/// The yardsticks' connection: the C client in its event loop mode, which is the fastest that it has. One thread, one
/// read and one write for many messages. No reconnecting, no limits, no subscriptions but one. Thread: one.
class LoopClient {
 public:
  LoopClient(const std::string& url, const std::string& subject, const char* queue = nullptr) {
    natsOptions* options = nullptr;
    check(natsOptions_Create(&options), "options");
    natsOptions_SetURL(options, url.c_str());
    natsOptions_SetSendAsap(options, true);
    natsOptions_SetIOBufSize(options, 128 << 10);
    natsOptions_SetAllowReconnect(options, false);
    natsOptions_SetEventLoop(options, this, attach, on_read, on_write, detach);
    const auto connected = natsConnection_Connect(&connection_, options);
    natsOptions_Destroy(options);
    check(connected, "connect");
    check(queue == nullptr ? natsConnection_SubscribeSync(&subscription_, connection_, subject.c_str())
                           : natsConnection_QueueSubscribeSync(&subscription_, connection_, subject.c_str(), queue),
          "subscribe");
    check(natsSubscription_SetPendingLimits(subscription_, -1, -1), "limits");
  }
  ~LoopClient() {
    natsSubscription_Destroy(subscription_);
    natsConnection_Destroy(connection_);
  }
  LoopClient(const LoopClient&) = delete;
  LoopClient& operator=(const LoopClient&) = delete;

  void publish(const std::string& subject, const char* reply, std::string_view data) {
    check(
        natsConnection_PublishRequest(connection_, subject.c_str(), reply, data.data(), static_cast<int>(data.size())),
        "publish");
  }
  void answer(const Arrived& request, std::string_view data) { answer(request.reply(), data); }
  void answer(const char* subject, std::string_view data) {
    check(natsConnection_Publish(connection_, subject, data.data(), static_cast<int>(data.size())), "answer");
  }

  /// Writes what was published, sleeps until something comes, for `limit` at most, reads it, and calls `take(const
  /// Arrived&)` for each message. False when the connection is gone.
  template <typename Take>
  bool turn(Take take, std::chrono::nanoseconds limit = kLongestSleep) {
    if (wants_write_) natsConnection_ProcessWriteEvent(connection_);
    pollfd entry{socket_, static_cast<short>(POLLIN | (wants_write_ ? POLLOUT : 0)), 0};
    const timespec timeout{0, std::clamp<std::int64_t>(limit.count(), 0, kLongestSleep.count())};
    ::ppoll(&entry, 1, &timeout, nullptr);
    if (entry.revents & (POLLIN | POLLHUP | POLLERR)) natsConnection_ProcessReadEvent(connection_);
    for (natsMsg* message = nullptr; natsSubscription_NextMsg(&message, subscription_, 0) == NATS_OK;) {
      take(Arrived(message));
    }
    return socket_ >= 0;
  }
  /// The same of one who has asked, and gets an answer sooner or later. Throws when there is none for a long time.
  template <typename Take>
  void turn_for_answers(Take take) {
    bool answered = false;
    turn([&](const Arrived& message) {
      answered = answered || !message.data().empty();
      take(message);
    });
    if (answered) heard_ = Stopwatch();
    if (heard_.seconds() > kLongestSilence) throw std::runtime_error("who is asked does not answer");
  }
  /// Until somebody answers on `subject`; where nobody subscribes, the server says so with an empty message.
  void await(const std::string& subject, const char* reply, std::string_view request) {
    for (bool answered = false; !answered;) {
      publish(subject, reply, request);
      turn_for_answers([&](const Arrived& message) { answered = !message.data().empty(); });
    }
  }
  /// Answers until the process is killed or the server goes.
  template <typename Take>
  void serve(Take take) {
    while (turn(take)) {
    }
  }

 private:
  static natsStatus attach(void** user, void* loop, natsConnection*, natsSock socket) {
    *user = loop;
    static_cast<LoopClient*>(loop)->socket_ = socket;
    return NATS_OK;
  }
  static natsStatus on_read(void* user, bool add) {
    if (!add) static_cast<LoopClient*>(user)->socket_ = -1;
    return NATS_OK;
  }
  static natsStatus on_write(void* user, bool add) {
    static_cast<LoopClient*>(user)->wants_write_ = add;
    return NATS_OK;
  }
  static natsStatus detach(void*) { return NATS_OK; }

  static constexpr double kLongestSilence = 30;                          // seconds
  static constexpr std::chrono::nanoseconds kLongestSleep{999'999'999};  // of one turn

  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
  natsSock socket_ = -1;
  bool wants_write_ = false;
  Stopwatch heard_;
};

}  // namespace muster::bench
