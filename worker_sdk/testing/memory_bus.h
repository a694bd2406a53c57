#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker_sdk/bus/bus.h"

namespace muster {

class MemoryBus;

/// A message bus in memory: the rules of NATS (wildcards, queue groups, no-responders answers, at most once) without
/// threads and without real time. The same calls with the same seed give the same deliveries in the same order.
/// It outlives its clients. Thread: one for the broker and all of its clients.
class MemoryBroker {
 public:
  /// After how long each copy of a message arrives at one receiver: {0} = at once, {} = lost, two entries = twice.
  /// `from`, `to` are names of clients; the broker's own no-responders answers come from "". It must not call the
  /// broker or a client.
  using Deliveries = std::vector<std::chrono::nanoseconds>;
  using Policy = std::function<Deliveries(const Outgoing& message, std::string_view from, std::string_view to)>;

  MemoryBroker(const Clock& clock, Random& random) : clock_(clock), random_(random) {}
  MemoryBroker(const MemoryBroker&) = delete;
  MemoryBroker& operator=(const MemoryBroker&) = delete;

  /// A connected client; `name` is what the policy sees. Destroying it is a crash: what is under way to it is lost.
  std::unique_ptr<MemoryBus> connect(std::string name);

  /// For messages published from now on; an empty one delivers everything at once and in order.
  void set_policy(Policy policy) { policy_ = std::move(policy); }
  void set_max_payload(std::size_t bytes) { max_payload_ = bytes; }

  /// Moves what is due by `now` to its receivers, in order of time (of publication where that is equal).
  void deliver_until(TimePoint now);
  /// When the next message arrives somewhere.
  [[nodiscard]] std::optional<TimePoint> next_due() const;
  /// Copies under way.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_.size(); }

 private:
  friend class MemoryBus;

  struct Content;
  struct Member {
    MemoryBus* client;
    SubscriptionId subscription;
  };
  /// All subscriptions to one pattern in one queue group (empty: plain ones).
  struct Interest {
    std::string pattern;
    std::string queue;
    std::vector<Member> members;
  };
  struct Flight {
    std::uint64_t client;      // by number: it may be gone at arrival
    std::uint64_t connection;  // of that client; a later one does not get it
    SubscriptionId subscription;
    std::shared_ptr<const Content> content;
  };
  using Moment = std::pair<TimePoint, std::uint64_t>;  // due, then order of publication

  void add(const std::string& pattern, const std::string& queue, Member member);
  void remove(const std::string& pattern, const std::string& queue, Member member);
  void publish(const Outgoing& message, MemoryBus& from);
  [[nodiscard]] std::vector<const Interest*> interests_in(std::string_view subject) const;
  [[nodiscard]] std::vector<Member> receivers(const std::vector<const Interest*>& interests);
  void answer_no_responders(const Outgoing& request, MemoryBus& requester);
  void send(const Outgoing& message, std::string_view from, Member to, const std::shared_ptr<const Content>& content);

  const Clock& clock_;
  Random& random_;
  Policy policy_;
  std::size_t max_payload_ = BusLink{}.max_payload;
  std::map<std::string, std::vector<Interest>, std::less<>> interests_;  // by the tokens before the first wildcard
  std::map<std::uint64_t, MemoryBus*> clients_;
  std::uint64_t last_client_ = 0;
  std::map<Moment, Flight> in_flight_;
  std::uint64_t last_sequence_ = 0;
};

/// One connection to a MemoryBroker.
class MemoryBus final : public Bus {
 public:
  ~MemoryBus() override;
  MemoryBus(const MemoryBus&) = delete;
  MemoryBus& operator=(const MemoryBus&) = delete;

  /// errors   kInvalidRequest; without a connection the subscription is made by reconnect()
  Result<SubscriptionId> subscribe(std::string_view subject, std::string_view queue) override;
  Result<SubscriptionId> subscribe_answers(std::string_view subject) override;
  using Bus::subscribe;
  void unsubscribe(SubscriptionId id) override;
  Result<void> publish(const Outgoing& message) override;
  void send() override {}
  /// Delivers first what is due by the broker's clock.
  std::size_t receive(std::vector<Message>& out, std::size_t limit) override;
  bool read() override { return false; }  // receive() has taken in all that there is
  [[nodiscard]] bool drained() const override { return arrived_.empty(); }
  [[nodiscard]] BusLink link() const override { return {connected_, false, connections_, max_payload()}; }
  [[nodiscard]] BusStatus status() const override;
  [[nodiscard]] const std::string& inbox() const override { return inbox_; }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Takes the connection away: what is under way to this client is lost, what has arrived stays.
  void disconnect();
  void reconnect();
  /// Of this client alone, as if its server were another.
  void set_max_payload(std::size_t bytes) { own_max_payload_ = bytes; }

 private:
  friend class MemoryBroker;

  struct Subscription {
    std::string subject;
    std::string queue;
    bool answers = false;
    std::size_t pending = 0;
  };
  struct Arrived {
    SubscriptionId subscription;
    std::shared_ptr<const MemoryBroker::Content> content;
  };

  MemoryBus(MemoryBroker& broker, std::uint64_t number, std::string name, std::string inbox);
  Result<SubscriptionId> add(Subscription made);
  void arrive(SubscriptionId id, std::shared_ptr<const MemoryBroker::Content> content);
  [[nodiscard]] std::size_t max_payload() const { return own_max_payload_.value_or(broker_.max_payload_); }

  MemoryBroker& broker_;
  std::uint64_t number_;
  std::string name_;
  std::string inbox_;
  bool connected_ = false;
  std::uint64_t connections_ = 0;
  std::uint64_t drops_ = 0;
  std::optional<std::size_t> own_max_payload_;
  std::map<SubscriptionId, Subscription> subscriptions_;
  SubscriptionId last_id_ = 0;
  std::deque<Arrived> arrived_;
};

}  // namespace muster
