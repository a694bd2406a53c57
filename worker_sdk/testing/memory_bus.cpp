#include "worker_sdk/testing/memory_bus.h"

#include <algorithm>

#include "worker_sdk/bus/subject_rules.h"

namespace muster {
namespace {

constexpr std::size_t kMaxPendingMessages = 65536;  // per subscription, as on the real bus

/// The tokens before the first wildcard: what every subject that matches begins with.
std::string_view literal_prefix(std::string_view pattern) {
  const std::size_t wildcard = pattern.find_first_of("*>");
  // Within a token both are ordinary characters; a shorter prefix than possible does no harm.
  if (wildcard == std::string_view::npos) return pattern;
  const std::size_t dot = pattern.rfind('.', wildcard);
  return dot == std::string_view::npos ? std::string_view{} : pattern.substr(0, dot);
}

}  // namespace

/// A message at rest, shared by its receivers.
struct MemoryBroker::Content {
  std::string subject;
  std::string reply;
  std::string padded;  // one byte, then the data: as on the real bus, it is not aligned
  bool no_responders = false;
  std::vector<Header> headers;

  static std::shared_ptr<const Content> of(const Outgoing& message) {
    Content content{message.subject, message.reply, '\0' + message.data, false, message.headers};
    std::erase_if(content.headers, [](const Header& header) { return header.value.empty(); });
    return std::make_shared<const Content>(std::move(content));
  }

  [[nodiscard]] static Message view(SubscriptionId id, std::shared_ptr<const Content> content) {
    Message message;
    message.subscription = id;
    message.subject = content->subject;
    message.reply = content->reply;
    message.data = std::string_view(content->padded).substr(1);
    message.no_responders = content->no_responders;
    message.headers = content->headers;
    using Owner = std::shared_ptr<const Content>;
    message.owner = {new Owner(std::move(content)), [](void* owner) { delete static_cast<Owner*>(owner); }};
    return message;
  }
};

std::unique_ptr<MemoryBus> MemoryBroker::connect(std::string name) {
  const std::uint64_t number = ++last_client_;
  std::unique_ptr<MemoryBus> bus(new MemoryBus(*this, number, std::move(name), "_INBOX." + make_token(random_)));
  clients_.emplace(number, bus.get());
  bus->reconnect();
  return bus;
}

void MemoryBroker::add(const std::string& pattern, const std::string& queue, Member member) {
  auto& interests = interests_[std::string(literal_prefix(pattern))];
  const auto same = [&](const Interest& other) { return other.pattern == pattern && other.queue == queue; };
  auto found = std::ranges::find_if(interests, same);
  if (found == interests.end()) found = interests.insert(found, Interest{pattern, queue, {}});
  found->members.push_back(member);
}

void MemoryBroker::remove(const std::string& pattern, const std::string& queue, Member member) {
  const auto entry = interests_.find(literal_prefix(pattern));
  if (entry == interests_.end()) return;
  for (Interest& interest : entry->second) {
    if (interest.pattern != pattern || interest.queue != queue) continue;
    std::erase_if(interest.members, [&](const Member& other) {
      return other.client == member.client && other.subscription == member.subscription;
    });
  }
  std::erase_if(entry->second, [](const Interest& interest) { return interest.members.empty(); });
  if (entry->second.empty()) interests_.erase(entry);
}

std::vector<const MemoryBroker::Interest*> MemoryBroker::interests_in(std::string_view subject) const {
  std::vector<const Interest*> matching;
  std::string_view prefix = subject;
  while (true) {
    if (const auto entry = interests_.find(prefix); entry != interests_.end()) {
      for (const Interest& interest : entry->second) {
        if (subject_matches(interest.pattern, subject)) matching.push_back(&interest);
      }
    }
    if (prefix.empty()) return matching;
    const std::size_t dot = prefix.rfind('.');
    prefix = dot == std::string_view::npos ? std::string_view{} : prefix.substr(0, dot);
  }
}

/// Every plain subscription, and one random member of each queue group, whatever patterns its members use.
std::vector<MemoryBroker::Member> MemoryBroker::receivers(const std::vector<const Interest*>& interests) {
  std::vector<Member> chosen;
  std::map<std::string_view, std::vector<const Interest*>> groups;
  for (const Interest* interest : interests) {
    if (!interest->queue.empty()) {
      groups[interest->queue].push_back(interest);
    } else {
      chosen.insert(chosen.end(), interest->members.begin(), interest->members.end());
    }
  }
  for (const auto& [queue, parts] : groups) {
    std::size_t size = 0;
    for (const Interest* part : parts) size += part->members.size();
    std::size_t pick = random_.below(size);
    for (const Interest* part : parts) {
      if (pick < part->members.size()) {
        chosen.push_back(part->members[pick]);
        break;
      }
      pick -= part->members.size();
    }
  }
  return chosen;
}

void MemoryBroker::publish(const Outgoing& message, MemoryBus& from) {
  const auto interests = interests_in(message.subject);
  if (interests.empty()) {
    if (!message.reply.empty()) answer_no_responders(message, from);
    return;
  }
  const auto content = Content::of(message);
  for (const Member to : receivers(interests)) send(message, from.name(), to, content);
}

void MemoryBroker::answer_no_responders(const Outgoing& request, MemoryBus& requester) {
  const Outgoing answer{.subject = request.reply, .reply = {}, .data = {}, .headers = {{"Status", "503"}}};
  auto content = std::make_shared<Content>(*Content::of(answer));
  content->no_responders = true;
  for (const Interest* interest : interests_in(answer.subject)) {
    for (const Member to : interest->members) {
      if (to.client == &requester) send(answer, {}, to, content);
    }
  }
}

void MemoryBroker::send(const Outgoing& message, std::string_view from, Member to,
                        const std::shared_ptr<const Content>& content) {
  const auto fly = [&](std::chrono::nanoseconds delay) {
    const Moment due{clock_.now() + std::chrono::duration_cast<TimePoint::duration>(delay), ++last_sequence_};
    in_flight_.emplace(due, Flight{to.client->number_, to.client->connections_, to.subscription, content});
  };
  if (!policy_) return fly({});
  for (const auto delay : policy_(message, from, to.client->name())) fly(delay);
}

void MemoryBroker::deliver_until(TimePoint now) {
  while (!in_flight_.empty() && in_flight_.begin()->first.first <= now) {
    Flight flight = std::move(in_flight_.begin()->second);
    in_flight_.erase(in_flight_.begin());
    const auto client = clients_.find(flight.client);
    if (client == clients_.end()) continue;
    MemoryBus& bus = *client->second;
    if (bus.connected_ && bus.connections_ == flight.connection) {
      bus.arrive(flight.subscription, std::move(flight.content));
    }
  }
}

std::optional<TimePoint> MemoryBroker::next_due() const {
  if (in_flight_.empty()) return std::nullopt;
  return in_flight_.begin()->first.first;
}

MemoryBus::MemoryBus(MemoryBroker& broker, std::uint64_t number, std::string name, std::string inbox)
    : broker_(broker), number_(number), name_(std::move(name)), inbox_(std::move(inbox)) {}

MemoryBus::~MemoryBus() {
  disconnect();
  broker_.clients_.erase(number_);
}

Result<SubscriptionId> MemoryBus::subscribe(std::string_view subject, std::string_view queue) {
  return add({std::string(subject), std::string(queue), false});
}

Result<SubscriptionId> MemoryBus::subscribe_answers(std::string_view subject) {
  return add({std::string(subject), {}, true});
}

Result<SubscriptionId> MemoryBus::add(Subscription made) {
  if (auto valid = check_subscription(made.subject, made.queue); !valid) return valid.error();
  const SubscriptionId id = ++last_id_;
  if (connected_) broker_.add(made.subject, made.queue, {this, id});
  subscriptions_.emplace(id, std::move(made));
  return id;
}

void MemoryBus::unsubscribe(SubscriptionId id) {
  const auto found = subscriptions_.find(id);
  if (found == subscriptions_.end()) return;
  if (connected_) broker_.remove(found->second.subject, found->second.queue, {this, id});
  std::erase_if(arrived_, [id](const Arrived& message) { return message.subscription == id; });
  subscriptions_.erase(found);
}

Result<void> MemoryBus::publish(const Outgoing& message) {
  if (auto valid = check_outgoing(message, max_payload()); !valid) return valid;
  if (!connected_) return Error{Errc::kDisconnected, "not connected"};
  broker_.publish(message, *this);
  return {};
}

std::size_t MemoryBus::receive(std::vector<Message>& out, std::size_t limit) {
  broker_.deliver_until(broker_.clock_.now());
  std::size_t count = 0;
  for (; count < limit && !arrived_.empty(); ++count) {
    Arrived message = std::move(arrived_.front());
    arrived_.pop_front();
    --subscriptions_.at(message.subscription).pending;
    out.push_back(MemoryBroker::Content::view(message.subscription, std::move(message.content)));
  }
  return count;
}

void MemoryBus::arrive(SubscriptionId id, std::shared_ptr<const MemoryBroker::Content> content) {
  const auto found = subscriptions_.find(id);
  if (found == subscriptions_.end()) return;  // unsubscribed while it was under way
  if (content->no_responders && !found->second.answers) return;
  if (found->second.pending >= kMaxPendingMessages) {
    ++drops_;
    return;
  }
  ++found->second.pending;
  arrived_.push_back({id, std::move(content)});
}

BusStatus MemoryBus::status() const {
  BusStatus status;
  static_cast<BusLink&>(status) = link();
  status.slow_consumer_drops = drops_;
  return status;
}

void MemoryBus::disconnect() {
  if (!connected_) return;
  connected_ = false;
  for (const auto& [id, made] : subscriptions_) broker_.remove(made.subject, made.queue, {this, id});
}

void MemoryBus::reconnect() {
  if (connected_) return;
  connected_ = true;
  ++connections_;
  for (const auto& [id, made] : subscriptions_) broker_.add(made.subject, made.queue, {this, id});
}

}  // namespace muster
