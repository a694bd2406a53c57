#include "worker_sdk/testing/memory_bus.h"

#include <catch2/catch.hpp>

#include "worker_sdk/testing/fake_clock.h"

using namespace muster;
using namespace std::chrono_literals;

namespace {

/// None for a success.
template <typename T>
std::optional<Errc> code_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

struct World {
  FakeClock clock;
  SeededRandom random{7};
  MemoryBroker broker{clock, random};
};

std::vector<Message> receive_all(MemoryBus& bus) {
  std::vector<Message> messages;
  bus.receive(messages, 1'000'000);
  return messages;
}

std::vector<std::string> texts(MemoryBus& bus) {
  std::vector<std::string> texts;
  for (const Message& message : receive_all(bus)) texts.emplace_back(message.data);
  return texts;
}

void publish(MemoryBus& bus, std::string subject, std::string data) {
  REQUIRE(bus.publish({.subject = std::move(subject), .reply = {}, .data = std::move(data), .headers = {}}));
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(World, "a message comes with everything it was sent with") {
  const auto sender = broker.connect("sender");
  const auto receiver = broker.connect("receiver");
  const auto id = receiver->subscribe("a.b");
  REQUIRE(id);
  REQUIRE(sender->publish({"a.b", "reply.here", "text", {{"k", "v"}, {"k", "w"}, {"Empty", ""}}}));
  const auto messages = receive_all(*receiver);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].subscription == *id);
  CHECK(messages[0].subject == "a.b");
  CHECK(messages[0].reply == "reply.here");
  CHECK(messages[0].data == "text");
  CHECK(messages[0].headers == std::vector<Header>{{"k", "v"}, {"k", "w"}});
  CHECK(messages[0].header("k") == "v");
  CHECK(messages[0].header("K").empty());
  CHECK_FALSE(messages[0].no_responders);
}

TEST_CASE_METHOD(World, "wildcards stand for one token and for all the rest") {
  const auto bus = broker.connect("bus");
  const auto matches = [&](const std::string& pattern, const std::string& subject) {
    const auto id = bus->subscribe(pattern);
    publish(*bus, subject, "x");
    const std::size_t count = receive_all(*bus).size();
    bus->unsubscribe(*id);
    return count == 1;
  };
  CHECK(matches("a.*.c", "a.b.c"));
  CHECK(matches("*.b", "a.b"));
  CHECK(matches("a.>", "a.b.c"));
  CHECK(matches(">", "a"));
  CHECK(matches("a.b*", "a.b*"));
  CHECK_FALSE(matches("a.*", "a"));
  CHECK_FALSE(matches("a.*", "a.b.c"));
  CHECK_FALSE(matches("a.>", "a"));
  CHECK_FALSE(matches("a.b", "a.b.c"));
  CHECK_FALSE(matches("a.b*", "a.bc"));
}

TEST_CASE_METHOD(World, "what cannot be a subject or a header is refused") {
  const auto bus = broker.connect("bus");
  for (const char* subject : {"", ".", "a.", ".a", "a..b", "a b", "a\r\nb", "a.>.b"}) {
    CAPTURE(subject);
    CHECK(code_of(bus->subscribe(subject)) == Errc::kInvalidRequest);
    CHECK(code_of(bus->publish({subject, {}, {}, {}})) == Errc::kInvalidRequest);
  }
  CHECK(code_of(bus->subscribe("a", "two words")) == Errc::kInvalidRequest);
  CHECK(code_of(bus->publish({"a.*", {}, {}, {}})) == Errc::kInvalidRequest);
  CHECK(code_of(bus->publish({"a", "b c", {}, {}})) == Errc::kInvalidRequest);
  CHECK(code_of(bus->publish({"a", {}, {}, {{"k\n", "v"}}})) == Errc::kInvalidRequest);
  CHECK(code_of(bus->publish({"a", {}, {}, {{"k", "v\r\nw"}}})) == Errc::kInvalidRequest);
  CHECK(code_of(bus->publish({std::string(5000, 'a'), {}, {}, {}})) == Errc::kInvalidRequest);
}

TEST_CASE_METHOD(World, "data and headers together are bounded") {
  const auto bus = broker.connect("bus");
  broker.set_max_payload(100);
  CHECK(bus->status().max_payload == 100);
  CHECK(bus->publish({"a", {}, std::string(100, 'x'), {}}));
  CHECK(code_of(bus->publish({"a", {}, std::string(101, 'x'), {}})) == Errc::kTooLarge);
  CHECK(code_of(bus->publish({"a", {}, std::string(90, 'x'), {{"k", "v"}}})) == Errc::kTooLarge);
}

TEST_CASE_METHOD(World, "each queue group gets one copy, and every member its turn") {
  const auto sender = broker.connect("sender");
  std::vector<std::unique_ptr<MemoryBus>> members;
  for (int i = 0; i < 4; ++i) members.push_back(broker.connect("member"));
  // Patterns may differ: the group is its name.
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(members[i]->subscribe(i % 2 == 0 ? "job.x" : "job.*", "workers"));
  const auto observer = broker.connect("observer");
  REQUIRE(observer->subscribe("job.>"));
  for (int i = 0; i < 400; ++i) publish(*sender, "job.x", "x");
  std::size_t total = 0;
  for (const auto& member : members) {
    const std::size_t count = receive_all(*member).size();
    CHECK(count > 50);
    total += count;
  }
  CHECK(total == 400);
  CHECK(receive_all(*observer).size() == 400);
}

TEST_CASE_METHOD(World, "a request that nobody listens to is answered so") {
  const auto requester = broker.connect("requester");
  const auto other = broker.connect("other");
  REQUIRE(requester->subscribe_answers(requester->inbox() + ".>"));
  REQUIRE(other->subscribe_answers(requester->inbox() + ".>"));
  REQUIRE(requester->publish({"nobody.here", requester->inbox() + ".1", "x", {}}));
  const auto answers = receive_all(*requester);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].no_responders);
  CHECK(answers[0].subject == requester->inbox() + ".1");
  CHECK(answers[0].data.empty());
  CHECK(receive_all(*other).empty());

  REQUIRE(other->subscribe("nobody.here"));
  REQUIRE(requester->publish({"nobody.here", requester->inbox() + ".2", "x", {}}));
  CHECK(receive_all(*requester).empty());
  CHECK(receive_all(*other).size() == 1);

  REQUIRE(requester->subscribe("mine"));
  REQUIRE(requester->publish({"nobody.else", "mine", "x", {}}));
  CHECK(receive_all(*requester).empty());  // not subscribed for answers
}

TEST_CASE_METHOD(World, "nothing comes out after unsubscribe, and limits of receive hold") {
  const auto bus = broker.connect("bus");
  const auto first = bus->subscribe("a");
  REQUIRE(bus->subscribe("b"));
  for (const char* text : {"1", "2", "3"}) {
    publish(*bus, "a", text);
    publish(*bus, "b", text);
  }
  std::vector<Message> two;
  CHECK(bus->receive(two, 2) == 2);
  CHECK_FALSE(bus->drained());
  bus->unsubscribe(*first);
  bus->unsubscribe(*first);
  CHECK(texts(*bus) == Texts{"2", "3"});
  CHECK(bus->drained());
  publish(*bus, "a", "4");
  CHECK(texts(*bus).empty());
}

TEST_CASE_METHOD(World, "the policy delays, loses, repeats and reorders") {
  const auto sender = broker.connect("sender");
  const auto receiver = broker.connect("receiver");
  REQUIRE(receiver->subscribe("a"));
  broker.set_policy([](const Outgoing& message, std::string_view from, std::string_view to) {
    CHECK(from == "sender");
    CHECK(to == "receiver");
    if (message.data == "lost") return MemoryBroker::Deliveries{};
    if (message.data == "twice") return MemoryBroker::Deliveries{10ms, 30ms};
    return MemoryBroker::Deliveries{message.data == "late" ? 20ms : 0ms};
  });
  for (const char* text : {"late", "lost", "twice", "now"}) publish(*sender, "a", text);
  CHECK(broker.in_flight() == 4);
  CHECK(broker.next_due() == clock.now());
  CHECK(texts(*receiver) == Texts{"now"});
  CHECK(broker.next_due() == clock.now() + 10ms);
  clock.advance(20ms);
  CHECK(texts(*receiver) == Texts{"twice", "late"});
  clock.advance(1s);
  CHECK(texts(*receiver) == Texts{"twice"});
  CHECK_FALSE(broker.next_due());
}

TEST_CASE_METHOD(World, "a lost connection loses what is under way and keeps what has arrived") {
  const auto sender = broker.connect("sender");
  const auto receiver = broker.connect("receiver");
  REQUIRE(receiver->subscribe("a"));
  broker.set_policy([](const Outgoing& message, std::string_view, std::string_view) {
    return MemoryBroker::Deliveries{message.data == "slow" ? 10ms : 0ms};
  });
  publish(*sender, "a", "arrived");
  broker.deliver_until(clock.now());
  publish(*sender, "a", "slow");
  receiver->disconnect();
  CHECK_FALSE(receiver->status().connected);
  CHECK(code_of(receiver->publish({"a", {}, {}, {}})) == Errc::kDisconnected);
  publish(*sender, "a", "nobody there");
  REQUIRE(receiver->subscribe("b"));
  receiver->reconnect();
  CHECK(receiver->status().connections == 2);
  clock.advance(10ms);
  publish(*sender, "b", "after");
  CHECK(texts(*receiver) == Texts{"arrived", "after"});
}

TEST_CASE_METHOD(World, "a client can crash at any point") {
  const auto sender = broker.connect("sender");
  auto doomed = broker.connect("doomed");
  const auto survivor = broker.connect("survivor");
  REQUIRE(doomed->subscribe("a", "q"));
  REQUIRE(survivor->subscribe("a", "q"));
  for (int i = 0; i < 20; ++i) publish(*sender, "a", "x");
  auto kept = receive_all(*doomed);  // its messages outlive it
  doomed.reset();
  broker.deliver_until(clock.now());
  for (const Message& message : kept) CHECK(message.data == "x");
  receive_all(*survivor);
  for (int i = 0; i < 20; ++i) publish(*sender, "a", "x");
  CHECK(receive_all(*survivor).size() == 20);
}

TEST_CASE_METHOD(World, "an unread subscription drops and counts") {
  const auto bus = broker.connect("bus");
  REQUIRE(bus->subscribe("a"));
  for (int i = 0; i < 65'546; ++i) publish(*bus, "a", {});
  broker.deliver_until(clock.now());
  CHECK(bus->status().slow_consumer_drops == 10);
  CHECK(receive_all(*bus).size() == 65'536);
}

TEST_CASE("one seed gives one history") {
  const auto history = [](std::uint64_t seed) {
    FakeClock clock;
    SeededRandom random{seed};
    MemoryBroker broker{clock, random};
    broker.set_policy([&](const Outgoing&, std::string_view, std::string_view) {
      MemoryBroker::Deliveries deliveries(random.below(3));
      for (auto& delay : deliveries) delay = std::chrono::microseconds(random.below(5000));
      return deliveries;
    });
    std::vector<std::unique_ptr<MemoryBus>> buses;
    for (int i = 0; i < 5; ++i) {
      buses.push_back(broker.connect(std::to_string(i)));
      REQUIRE(buses.back()->subscribe("job.*", "q"));
      REQUIRE(buses.back()->subscribe(">"));
    }
    std::string log;
    for (int i = 0; i < 200; ++i) {
      publish(*buses[random.below(5)], "job.x", std::to_string(i));
      clock.advance(1ms);
      for (const auto& bus : buses) {
        for (const std::string& text : texts(*bus)) log += bus->name() + ':' + text + ' ';
      }
    }
    return log;
  };
  CHECK(history(1) == history(1));
  CHECK(history(1) != history(2));
}
