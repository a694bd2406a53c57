#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <atomic>
#include <set>
#include <thread>

#include "support/nats_bus_fixture.h"
#include "support/raw_client.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// As a program's main does: the library's threads would go on while the process ends.
struct LibraryCloses : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testRunEnded(const Catch::TestRunStats&) override { nats_library_close(); }
};
CATCH_REGISTER_LISTENER(LibraryCloses)

}  // namespace

TEST_CASE("a message comes with everything it was sent with") {
  NatsServer server;
  auto sender = connect_to(server);
  auto receiver = connect_to(server);
  const auto plain = listen(*receiver, "a.b");
  const auto wild = listen(*receiver, "c.*.>");
  const std::string binary("\0\r\n\xFF", 4);
  REQUIRE(sender->publish({"a.b", "reply.here", binary, {{"k", "v"}, {"k", "w"}, {"Empty", ""}}}));
  publish(*sender, "c.d.e.f", "");
  REQUIRE(sender->flush(kPatience));
  const auto messages = receive(*receiver, 2);
  REQUIRE(messages.size() == 2);
  const auto& first = messages[messages[0].subscription == plain ? 0 : 1];
  CHECK(first.subject == "a.b");
  CHECK(first.reply == "reply.here");
  CHECK(first.data == binary);
  CHECK(first.headers == std::vector<Header>{{"k", "v"}, {"k", "w"}});
  CHECK(first.header("k") == "v");
  CHECK(first.header("Empty").empty());
  const auto& second = messages[messages[0].subscription == wild ? 0 : 1];
  CHECK(second.subject == "c.d.e.f");
  CHECK(second.reply.empty());
  CHECK(second.data.empty());
  CHECK(second.headers.empty());
  CHECK_FALSE(second.no_responders);
}

TEST_CASE("messages outlive the bus they came from") {
  NatsServer server;
  auto bus = connect_to(server);
  listen(*bus, "a");
  publish(*bus, "a", "kept");
  const auto messages = receive(*bus, 1);
  bus.reset();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].data == "kept");
}

TEST_CASE("a queue group shares, a plain subscription gets all") {
  NatsServer server;
  auto sender = connect_to(server);
  auto first = connect_to(server);
  auto second = connect_to(server);
  listen(*first, "job", "workers");
  listen(*second, "job", "workers");
  listen(*sender, "job");
  constexpr std::size_t kCount = 200;
  for (std::size_t i = 0; i < kCount; ++i) publish(*sender, "job", "x");
  CHECK(receive(*sender, kCount).size() == kCount);
  std::vector<Message> got_first, got_second;
  CHECK(turn_until(*first, [&] {
    first->receive(got_first, kCount);
    second->wait(std::chrono::steady_clock::now());
    second->receive(got_second, kCount);
    return got_first.size() + got_second.size() == kCount;
  }));
  CHECK(got_first.size() > 20);
  CHECK(got_second.size() > 20);
}

TEST_CASE("a request is answered, or the server says that nobody listens") {
  NatsServer server;
  auto requester = connect_to(server);
  auto responder = connect_to(server);
  REQUIRE(requester->subscribe_answers(requester->inbox() + ".>"));
  listen(*responder, "ask");
  CHECK(requester->inbox() != responder->inbox());
  REQUIRE(requester->publish({"ask", requester->inbox() + ".1", "question", {}}));
  REQUIRE(requester->publish({"nobody", requester->inbox() + ".2", "question", {}}));
  REQUIRE(requester->flush(kPatience));
  const auto questions = receive(*responder, 1);
  REQUIRE(questions.size() == 1);
  publish(*responder, std::string(questions[0].reply), "answer");
  REQUIRE(responder->flush(kPatience));
  const auto answers = receive(*requester, 2);
  REQUIRE(answers.size() == 2);
  const bool refused_first = answers[0].no_responders;
  const Message& refused = answers[refused_first ? 0 : 1];
  const Message& answered = answers[refused_first ? 1 : 0];
  CHECK(refused.no_responders);
  CHECK(refused.subject == requester->inbox() + ".2");
  CHECK(answered.subject == requester->inbox() + ".1");
  CHECK(answered.data == "answer");
  CHECK_FALSE(answered.no_responders);
}

TEST_CASE("forged words that nobody listens hold up nothing behind them") {
  NatsServer server;
  auto bus = connect_to(server);
  listen(*bus, "plain");
  listen(*bus, "queued", "group");
  std::string words;
  for (const std::string subject : {"plain", "queued"}) {
    for (int i = 0; i < 100; ++i) words += "HPUB " + subject + " 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
    words += "PUB " + subject + " 4\r\ntrue\r\n";
  }
  const test::RawClient forger(server.port());
  forger.say(words);
  const auto messages = receive(*bus, 2);
  REQUIRE(messages.size() == 2);
  for (const Message& message : messages) CHECK(message.data == "true");
}

TEST_CASE("what is too large or would break the protocol is refused") {
  NatsServer server({.config = "max_payload: 1000", .user = {}, .password = {}});
  auto bus = connect_to(server);
  listen(*bus, "a");
  CHECK(bus->status().max_payload == 1000);
  CHECK(code_of(bus->publish({"a", {}, std::string(1001, 'x'), {}})) == Errc::kTooLarge);
  CHECK(code_of(bus->publish({"a", {}, std::string(990, 'x'), {{"k", "v"}}})) == Errc::kTooLarge);
  CHECK(code_of(bus->publish({"a b", {}, {}, {}})) == Errc::kInvalidRequest);
  CHECK(code_of(bus->publish({"a", {}, {}, {{"k", "v\r\nw"}}})) == Errc::kInvalidRequest);
  CHECK(code_of(bus->subscribe("a..b")) == Errc::kInvalidRequest);
  publish(*bus, "a", std::string(1000, 'x'));
  REQUIRE(bus->publish({"a", {}, std::string(1000 - 18, 'y'), {{"k", "v"}}}));
  CHECK(receive(*bus, 2).size() == 2);
  CHECK(bus->status().connections == 1);
  CHECK(bus->status().errors == 0);
}

TEST_CASE("a flood arrives in order and without loss") {
  NatsServer server;
  auto sender = connect_to(server);
  auto receiver = connect_to(server);
  listen(*receiver, "flood");
  constexpr int kCount = 100'000;
  std::thread flood([&] {
    for (int i = 0; i < kCount; ++i) {
      if (!sender->publish({"flood", {}, std::to_string(i), {}})) return;
      if (i % 100 == 0) sender->wait(std::chrono::steady_clock::now());
    }
    if (!sender->flush(kPatience)) return;
  });
  int next = 0;
  int disorder = 0;
  std::vector<Message> messages;
  const bool complete = turn_until(*receiver, [&] {
    messages.clear();
    receiver->receive(messages, 1000);
    for (const Message& message : messages) disorder += message.data == std::to_string(next++) ? 0 : 1;
    return next == kCount;
  });
  flood.join();
  CHECK(complete);
  CHECK(disorder == 0);
  CHECK(receiver->status().slow_consumer_drops == 0);
}

TEST_CASE("a busy subscription does not starve another") {
  NatsServer server;
  auto bus = connect_to(server);
  const auto busy = listen(*bus, "busy", "q");
  const auto calm = listen(*bus, "calm", "q");
  for (int i = 0; i < 10'000; ++i) publish(*bus, "busy", "x");
  publish(*bus, "calm", "x");
  REQUIRE(bus->flush(kPatience));
  std::vector<Message> messages;
  REQUIRE(bus->receive(messages, 200) == 200);
  CHECK(std::count_if(messages.begin(), messages.end(), [&](const Message& m) { return m.subscription == calm; }) == 1);
  bus->unsubscribe(busy);
  messages.clear();
  CHECK(bus->receive(messages, 200) == 0);
}

TEST_CASE("a bus is drained when what waits in its socket was received, too") {
  NatsServer server;
  auto bus = connect_to(server);
  auto sender = connect_to(server);
  listen(*bus, "a");
  CHECK(turn_until(*bus, [&] { return bus->drained(); }));
  constexpr std::size_t kCount = 50'000;
  for (std::size_t i = 0; i < kCount; ++i) publish(*sender, "a", "x");
  REQUIRE(sender->flush(kPatience));
  bus->wait(std::chrono::steady_clock::now() + kPatience);  // reads less than that once
  CHECK_FALSE(bus->drained());
  std::vector<Message> messages;
  bus->receive(messages, kCount);
  CHECK(messages.size() < kCount);
  const TimePoint end = std::chrono::steady_clock::now() + kPatience;
  while (messages.size() < kCount && std::chrono::steady_clock::now() < end) {
    while (bus->drained() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    REQUIRE(bus->read());
    bus->receive(messages, kCount);
  }
  CHECK(messages.size() == kCount);
  CHECK(turn_until(*bus, [&] { return bus->drained(); }));
  CHECK_FALSE(bus->read());
}

TEST_CASE("what was read ahead is not added to without bounds") {
  NatsServer server;
  auto bus = connect_to(server);
  auto sender = connect_to(server);
  listen(*bus, "a");
  constexpr std::size_t kCount = 50'000;
  for (std::size_t i = 0; i < kCount; ++i) publish(*sender, "a", "x");
  REQUIRE(sender->flush(kPatience));
  const TimePoint end = std::chrono::steady_clock::now() + kPatience;
  std::vector<Message> messages;
  while (messages.size() < kCount && std::chrono::steady_clock::now() < end) {
    bus->wait(end);
    while (bus->read()) continue;
    const auto before = messages.size();
    bus->receive(messages, kCount);
    CHECK(messages.size() - before < 32'768);
  }
  CHECK(messages.size() == kCount);
  CHECK(bus->status().slow_consumer_drops == 0);
}

TEST_CASE("a bus without a connection is drained when what had come was received") {
  auto server = std::make_unique<NatsServer>();
  auto bus = connect_to(*server);
  listen(*bus, "a");
  publish(*bus, "a", "x");
  REQUIRE(bus->flush(kPatience));
  server.reset();
  CHECK(turn_until(*bus, [&] { return !bus->link().connected; }));
  CHECK_FALSE(bus->drained());
  std::vector<Message> messages;
  CHECK(bus->receive(messages, 10) == 1);
  CHECK(bus->drained());
  CHECK_FALSE(bus->read());
}

TEST_CASE("wake ends a wait, also one that begins later") {
  NatsServer server;
  auto bus = connect_to(server);
  const TimePoint far = std::chrono::steady_clock::now() + 24h;
  bus->wake();
  bus->wait(far);
  std::atomic<bool> stop = false;
  std::atomic<int> turns = 0;
  std::thread waker([&] {
    while (!stop) {
      const int before = turns;
      bus->wake();
      while (turns == before && !stop) std::this_thread::yield();
    }
  });
  while (turns < 1000) {
    bus->wait(far);
    ++turns;
  }
  stop = true;
  waker.join();
  CHECK(turns == 1000);
}

TEST_CASE("messages that are not read in time are dropped and counted") {
  NatsServer server;
  auto bus = connect_to(server);
  auto sender = connect_to(server);
  listen(*bus, "a");
  constexpr std::size_t kLimit = 65'536;
  for (std::size_t i = 0; i < kLimit + 1000; ++i) publish(*sender, "a", "x");
  REQUIRE(sender->flush(kPatience));
  for (int i = 0; i < 100; ++i) bus->wait(std::chrono::steady_clock::now());
  CHECK(bus->status().slow_consumer_drops == 0);  // the rest waits in the socket
  REQUIRE(bus->flush(kPatience));                 // must read it all
  CHECK(turn_until(*bus, [&] { return bus->status().slow_consumer_drops == 1000; }));
  std::vector<Message> messages;
  CHECK(bus->receive(messages, 1'000'000) == kLimit);
  publish(*sender, "a", "after");
  REQUIRE(sender->flush(kPatience));
  CHECK(receive(*bus, 1).size() == 1);
}
