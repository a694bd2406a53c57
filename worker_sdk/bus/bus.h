#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/result.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

using SubscriptionId = std::uint64_t;

struct Header {
  std::string name;
  std::string value;
  bool operator==(const Header&) const = default;
};

/// What is to be published. `data` and the headers are copied by publish(). A header with an empty value is not sent:
/// the C client would read the next line as its value.
struct Outgoing {
  std::string subject;
  std::string reply;  // empty: none
  std::string data;
  std::vector<Header> headers;
  bool operator==(const Outgoing&) const = default;
};

/// One message that arrived. The views live as long as `owner`, the library's own buffer: nothing is copied on the
/// way in. `data` is not aligned.
struct Message {
  SubscriptionId subscription = 0;
  std::string_view subject;
  std::string_view reply;
  std::string_view data;
  bool no_responders = false;  // the server's answer (503) to a request that nobody subscribes to
  std::vector<Header> headers;
  std::unique_ptr<void, void (*)(void*)> owner{nullptr, [](void*) {}};

  /// Value of the first header of that name (case as sent), empty when there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// What each turn of a loop asks for.
struct BusLink {
  bool connected = false;
  bool closed = false;                // for good: close() was called
  std::uint64_t connections = 0;      // grows with each successful (re)connect
  std::size_t max_payload = 1 << 20;  // bytes, as the server states it
};

struct BusStatus : BusLink {
  std::uint64_t slow_consumer_drops = 0;  // messages lost because they were not read in time
  std::uint64_t errors = 0;               // asynchronous errors (permissions, ...)
  std::string last_error;
};

/// A connection to the message bus, driven from one thread: publish() hands over, receive() returns what has come.
/// Thread: the loop thread only, unless a member says otherwise.
class Bus {
 public:
  virtual ~Bus() = default;

  /// Messages of `subject` (wildcards allowed) come out of receive() from now on; survives reconnects.
  /// `queue`   queue group, empty for a plain subscription
  /// Without a connection it is made with the next one.
  /// errors    kInvalidRequest, kDisconnected (closed for good)
  virtual Result<SubscriptionId> subscribe(std::string_view subject, std::string_view queue) = 0;
  Result<SubscriptionId> subscribe(std::string_view subject) { return subscribe(subject, {}); }
  /// The same for a subject that requests name for their answers: only here the server's word arrives, too, that nobody
  /// subscribes to what was asked.
  virtual Result<SubscriptionId> subscribe_answers(std::string_view subject) = 0;

  /// No message of it comes out of receive() after this call.
  virtual void unsubscribe(SubscriptionId id) = 0;

  /// Hands one message over. It leaves with the next turn of the loop; order per connection is kept.
  /// errors    kDisconnected (nothing is kept for later: stale jobs and heartbeats must not arrive), kTooLarge,
  ///           kInvalidRequest (subject, reply or a header that would break the protocol)
  virtual Result<void> publish(const Outgoing& message) = 0;

  /// What has been published leaves now, as far as the connection takes it without waiting: before work that takes
  /// long.
  virtual void send() = 0;

  /// Appends at most `limit` arrived messages to `out`, in order of arrival per subscription, and returns how many.
  virtual std::size_t receive(std::vector<Message>& out, std::size_t limit) = 0;

  /// Takes in more of what has come, without waiting, for receive() to return: for a loop that is behind. False when
  /// there was nothing to take, or no room for it.
  virtual bool read() = 0;

  /// Whether receive() has returned all that had come to this end of the connection by now.
  [[nodiscard]] virtual bool drained() const = 0;

  [[nodiscard]] virtual BusLink link() const = 0;
  /// Looks at each subscription: for people.
  [[nodiscard]] virtual BusStatus status() const = 0;

  /// Subject prefix of this connection alone (`_INBOX.<random>`); `<inbox>.>` is for answers.
  [[nodiscard]] virtual const std::string& inbox() const = 0;
};

}  // namespace muster
