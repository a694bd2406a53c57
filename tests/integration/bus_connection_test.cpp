#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "support/nats_bus_fixture.h"
#include "support/scratch.h"
#include "support/silent_nats.h"
#include "support/tcp_link.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

TEST_CASE("the connection comes back with its subscriptions") {
  NatsServer server;
  auto bus = connect_to(server);
  auto other = connect_to(server);
  listen(*bus, "a.*");
  listen(*bus, "job", "workers");
  for (std::uint64_t round = 2; round <= 4; ++round) {
    publish(*bus, "a.stale", "must not arrive later");  // handed over, never written
    server.kill();
    REQUIRE(turn_until(*bus, [&] { return !bus->status().connected; }));
    CHECK_FALSE(bus->status().closed);
    CHECK(code_of(bus->publish({"a.b", {}, {}, {}})) == Errc::kDisconnected);
    CHECK(code_of(bus->flush(1s)) == Errc::kDisconnected);
    const auto later = bus->subscribe("later." + std::to_string(round));
    REQUIRE(later);
    server.start();
    REQUIRE(turn_until(*bus, [&] { return bus->status().connections == round; }));
    REQUIRE(turn_until(*other, [&] { return other->status().connections == round; }));
    REQUIRE(bus->flush(kPatience));
    for (const std::string& subject : {std::string("a.b"), std::string("job"), "later." + std::to_string(round)}) {
      publish(*other, subject, subject);
    }
    REQUIRE(other->flush(kPatience));
    std::set<std::string> got;
    for (const Message& message : receive(*bus, 3)) got.emplace(message.data);
    CHECK(got == std::set<std::string>{"a.b", "job", "later." + std::to_string(round)});
    bus->unsubscribe(*later);
  }
}

TEST_CASE("a connection that breaks off within a message starts clean") {
  NatsServer server;
  auto bus = connect_to(server);
  auto sender = connect_to(server);
  listen(*bus, "big");
  for (std::uint64_t round = 2; round <= 6; ++round) {
    for (int i = 0; i < 64; ++i) publish(*sender, "big", std::string(200'000, 'x'));
    sender->wait(std::chrono::steady_clock::now() + 5ms);
    bus->wait(std::chrono::steady_clock::now() + 5ms);  // reads a part of it
    server.kill();
    server.start();
    REQUIRE(turn_until(*bus, [&] { return bus->status().connections == round; }));
    REQUIRE(turn_until(*sender, [&] { return sender->status().connections == round; }));
    REQUIRE(bus->flush(kPatience));
    publish(*sender, "big", "whole");
    REQUIRE(sender->flush(kPatience));
    bool whole = false;
    CHECK(turn_until(*bus, [&] {
      std::vector<Message> messages;
      bus->receive(messages, 1000);
      for (const Message& message : messages) {
        CHECK((message.data == "whole" || message.data == std::string(200'000, 'x')));
        whole = whole || message.data == "whole";
      }
      return whole;
    }));
  }
}

TEST_CASE("without a server there is an error, without a password in it") {
  NatsServer server({.config = {}, .user = "user", .password = "secret"});
  NatsOptions options = options_for(server);
  server.stop();
  const auto bus = NatsBus::connect(options, quiet());
  REQUIRE_FALSE(bus);
  CHECK(bus.error().code == Errc::kDisconnected);
  CHECK(bus.error().message.find("127.0.0.1") != std::string::npos);
  CHECK(bus.error().message.find("secret") == std::string::npos);
  CHECK(bus.error().message.find(".c:") == std::string::npos);  // nor where the library's source says so
  options.url.clear();
  CHECK(code_of(NatsBus::connect(options, quiet())) == Errc::kInvalidRequest);
  options.url = "nats://127.0.0.1:1";
  for (auto* const file : {&options.creds, &options.nkey_seed}) {
    for (const auto* const none : {"/nonexistent/file", "/"}) {
      *file = none;
      CHECK(code_of(NatsBus::connect(options, quiet())) == Errc::kInvalidRequest);
    }
    file->clear();
  }
  options.tls_ca = "/nonexistent/file";
  CHECK(code_of(NatsBus::connect(options, quiet())) == Errc::kInvalidRequest);
}

TEST_CASE("a wrong password is access denied") {
  NatsServer server({.config = {}, .user = "user", .password = "right"});
  CHECK(connect_to(server)->status().connected);
  NatsOptions options = options_for(server);
  options.url = "nats://user:wrong@127.0.0.1:" + std::to_string(server.port());
  const auto bus = NatsBus::connect(options, quiet());
  REQUIRE_FALSE(bus);
  CHECK(bus.error().code == Errc::kAccessDenied);
  CHECK(bus.error().message.find("wrong") == std::string::npos);
}

TEST_CASE("refused credentials are tried again until they are right") {
  NatsServer server({.config = {}, .user = "user", .password = "right"});
  auto bus = connect_to(server);
  listen(*bus, "a");
  server.kill();
  server.options().password = "other";
  server.start();
  REQUIRE(turn_until(*bus, [&] { return bus->status().last_error.find("Authorization") != std::string::npos; }));
  for (int i = 0; i < 10; ++i) bus->wait(std::chrono::steady_clock::now() + 20ms);
  CHECK_FALSE(bus->status().connected);
  server.kill();
  server.options().password = "right";
  server.start();
  REQUIRE(turn_until(*bus, [&] { return bus->status().connections == 2; }));
  publish(*bus, "a", "back");
  const auto messages = receive(*bus, 1);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].data == "back");
}

TEST_CASE("a missing permission is an asynchronous error") {
  NatsServer server({.config = R"(authorization { users: [
    {user: u, password: p, permissions: {publish: "allowed", subscribe: "allowed"}}]})",
                     .user = {},
                     .password = {}});
  NatsOptions options = options_for(server);
  options.url = "nats://u:p@127.0.0.1:" + std::to_string(server.port());
  auto bus = std::move(NatsBus::connect(options, quiet()).value());
  publish(*bus, "forbidden", "x");
  CHECK(turn_until(*bus, [&] { return bus->status().errors == 1; }));
  CHECK(bus->status().last_error.find("forbidden") != std::string::npos);
  CHECK(bus->status().connected);
}

TEST_CASE("an NKey signs in") {
  // The pair that the NATS documentation shows.
  NatsServer server({.config = "authorization { users: [{nkey: "
                               "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4}] }",
                     .user = {},
                     .password = {}});
  NatsOptions options = options_for(server);
  CHECK(code_of(NatsBus::connect(options, quiet())) == Errc::kAccessDenied);
  options.nkey_seed = server.directory() / "seed.nk";
  std::ofstream(options.nkey_seed) << "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n";
  const auto bus = NatsBus::connect(options, quiet());
  REQUIRE(bus);
  CHECK((*bus)->status().connected);
}

namespace {

/// NAME.pem and NAME.key in `dir`, for the host `localhost`.
void make_certificate(const std::string& dir, const std::string& name) {
  const std::string command = "cd " + dir + " && openssl req -x509 -subj /CN=" + name +
                              " -addext subjectAltName=DNS:localhost -keyout " + name + ".key -out " + name +
                              ".pem -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 2>/dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
}

std::string tls_config(const std::string& dir) {
  return "tls { cert_file: \"" + dir + "trusted.pem\", key_file: \"" + dir + "trusted.key\" }\n";
}

/// Where a server of a cluster takes the others in.
std::string route_port_of(const NatsServer& server) {
  std::ifstream file(server.directory() / "server.log");
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  const std::string mark = "Listening for route connections on 127.0.0.1:";
  const auto at = log.find(mark);
  REQUIRE(at != std::string::npos);
  return log.substr(at + mark.size(), log.find('\n', at) - at - mark.size());
}

/// Publishes on `a` until `to` hears it: the servers may not know each other yet, or the bus be on its way to another.
bool heard(NatsBus& from, NatsBus& to, const std::string& text) {
  return turn_until(from, [&] {
    const bool sent = from.publish({.subject = "a", .reply = {}, .data = text, .headers = {}}) && from.flush(1s);
    to.wait(std::chrono::steady_clock::now() + 20ms);
    std::vector<Message> messages;
    to.receive(messages, 1000);
    return sent && std::ranges::any_of(messages, [&](const Message& message) { return message.data == text; });
  });
}

}  // namespace

TEST_CASE("TLS: a trusted server by its name only, and records in parts") {
  const Scratch scratch;
  const std::string dir = scratch.path.string() + '/';
  for (const std::string name : {"trusted", "stranger"}) make_certificate(dir, name);
  NatsServer server({.config = tls_config(dir), .user = {}, .password = {}});
  NatsOptions options = options_for(server);
  const std::string port = std::to_string(server.port());
  options.url = "tls://localhost:" + port;
  options.tls_ca = dir + "stranger.pem";
  CHECK(code_of(NatsBus::connect(options, quiet())) == Errc::kDisconnected);
  options.tls_ca = dir + "trusted.pem";
  options.url = "tls://127.0.0.1:" + port;  // not in the certificate
  CHECK(code_of(NatsBus::connect(options, quiet())) == Errc::kDisconnected);
  options.url = "tls://localhost:" + port;
  auto bus = std::move(NatsBus::connect(options, quiet()).value());
  auto sender = std::move(NatsBus::connect(options, quiet()).value());
  listen(*bus, "a", "q");
  for (int i = 0; i < 60; ++i) {  // a connection each, whose receive buffer has not grown yet
    const std::string large(100'000 + 10'000 * i, 'x');
    auto fresh = std::move(NatsBus::connect(options, quiet()).value());
    listen(*fresh, "b");
    publish(*sender, "b", large);
    REQUIRE(sender->flush(kPatience));
    const auto messages = receive(*fresh, 1);
    REQUIRE(messages.size() == 1);
    CHECK(messages[0].data == large);
  }
  constexpr std::size_t kMany = 20'000;
  for (std::size_t i = 0; i < kMany; ++i) publish(*sender, "a", "x");
  REQUIRE(sender->flush(kPatience));
  std::vector<Message> many;
  CHECK(turn_until(*bus, [&] {
    while (bus->read()) continue;
    bus->receive(many, kMany);
    return many.size() == kMany && bus->drained();
  }));
  server.kill();
  server.start();
  REQUIRE(turn_until(*bus, [&] { return bus->status().connections == 2; }));
}

TEST_CASE("a server that has too many connections is not told to be slow") {
  const NatsServer server({.config = "max_connections: 1"});
  const auto first = connect_to(server);
  for (int i = 0; i < 10; ++i) {
    const auto second = NatsBus::connect(options_for(server), quiet());
    REQUIRE_FALSE(second);
    const auto& said = second.error().message;
    INFO(said);
    CHECK((said.find("maximum connections exceeded") != std::string::npos ||
           said.find("ended the connection in the handshake") != std::string::npos));
  }
}

TEST_CASE("a silent server ends a flush") {
  NatsServer server;
  auto bus = connect_to(server);
  server.pause();
  CHECK(code_of(bus->flush(50ms)) == Errc::kTimeout);
  server.resume();
  CHECK(bus->flush(kPatience));
}

TEST_CASE("a server that another one told of takes over") {
  NatsServer first({.config = "cluster { name: c, listen: \"127.0.0.1:-1\" }", .user = "u", .password = "p"});
  const auto route_port = route_port_of(first);
  const auto early = connect_to(first);  // is told when the others join
  const test::NatsServerOptions joining{
      .config = "cluster { name: c, listen: \"127.0.0.1:-1\", routes: [nats://127.0.0.1:" + route_port + "] }",
      .user = "u",
      .password = "p"};
  NatsServer second(joining), third(joining);
  const auto at_second = connect_to(second), at_third = connect_to(third);
  listen(*at_second, "a");
  listen(*at_third, "a");
  // Once the servers know each other, the first handshake already names all.
  REQUIRE(heard(*early, *at_second, "joined"));
  REQUIRE(heard(*early, *at_third, "joined"));
  REQUIRE(heard(*at_second, *at_third, "route"));
  const auto late = connect_to(first);
  first.kill();
  for (NatsBus* bus : {early.get(), late.get()}) {
    REQUIRE(turn_until(*bus, [&] { return bus->status().connections == 2; }));
    CHECK(heard(*bus, *at_third, "over the second or the third"));
  }
  second.kill();
  for (NatsBus* bus : {early.get(), late.get()}) CHECK(heard(*bus, *at_third, "over the third"));
}

TEST_CASE("TLS: a server that another one told of takes over by the name of that one") {
  const Scratch scratch;
  const std::string dir = scratch.path.string() + '/';
  make_certificate(dir, "trusted");
  NatsServer first({.config = tls_config(dir) + "cluster { name: c, listen: \"127.0.0.1:-1\" }"});
  NatsServer second({.config = tls_config(dir) +
                               "cluster { name: c, listen: \"127.0.0.1:-1\", routes: [nats://127.0.0.1:" +
                               route_port_of(first) + "] }"});
  NatsOptions options = options_for(first);
  options.tls_ca = dir + "trusted.pem";
  options.url = "tls://localhost:" + std::to_string(second.port());
  const auto far = std::move(NatsBus::connect(options, quiet()).value());
  listen(*far, "a");
  options.url = "tls://localhost:" + std::to_string(first.port());
  const auto bus = std::move(NatsBus::connect(options, quiet()).value());
  REQUIRE(heard(*bus, *far, "over the first"));  // the two know each other
  first.kill();
  REQUIRE(turn_until(*bus, [&] { return bus->status().connections == 2; }));
  CHECK(heard(*bus, *far, "over the second"));
}

TEST_CASE("TLS: a key that has a pass phrase, or is no file, is refused, and nobody is asked") {
  const Scratch scratch;
  const std::string dir = scratch.path.string() + '/';
  make_certificate(dir, "trusted");
  const std::string command = "cd " + dir +
                              " && openssl ec -aes256 -passout pass:x -in trusted.key -out old.key 2>/dev/null"
                              " && openssl pkcs8 -topk8 -passout pass:x -in trusted.key -out new.key && mkfifo pipe";
  REQUIRE(std::system(command.c_str()) == 0);
  NatsServer server({.config = tls_config(dir), .user = {}, .password = {}});
  NatsOptions options = options_for(server);
  options.url = "tls://localhost:" + std::to_string(server.port());
  options.tls_ca = options.tls_cert = dir + "trusted.pem";
  for (const std::string key : {"old.key", "new.key", "pipe", "none"}) {
    options.tls_key = dir + key;
    const auto refused = NatsBus::connect(options, quiet());
    REQUIRE(code_of(refused) == Errc::kInvalidRequest);
    const std::string& said = refused.error().message;
    INFO(said);
    CHECK(said.find(options.tls_key) != std::string::npos);
    CHECK(said.find(key == "pipe"   ? "is no regular file"
                    : key == "none" ? "No such file"
                                    : "has a pass phrase") != std::string::npos);
  }
  options.tls_key = dir + "trusted.key";
  CHECK(NatsBus::connect(options, quiet()));
}

TEST_CASE("a server that takes a connection in and ends it is asked ever less often") {
  const NatsServer server({.config = "max_subscriptions: 2"});
  NatsOptions options = options_for(server);
  options.reconnect_wait = 200ms;
  options.reconnect_wait_max = 5s;
  const auto begun = std::chrono::steady_clock::now();
  const auto bus = std::move(NatsBus::connect(options, quiet()).value());
  for (const char* subject : {"a", "b", "c"}) REQUIRE(bus->subscribe(subject));
  REQUIRE(turn_until(*bus, [&] { return bus->status().connections == 4; }));
  CHECK(std::chrono::steady_clock::now() - begun >= 700ms);  // half of 200, 400 and 800 ms at least
}

TEST_CASE("a server whose handshake takes longer than a try may is reached with more patience") {
  NatsServer server;
  const TcpLink slow(server.port(), "127.0.0.1", 300ms);  // three times that way, each at its own time
  NatsOptions options;
  options.url = "nats://127.0.0.1:" + std::to_string(slow.port());
  options.connect_timeout = 400ms;
  int failures = 0;
  auto bus = NatsBus::connect(with_patience(options, failures), quiet());
  CHECK(code_of(bus) == Errc::kDisconnected);
  CHECK_THAT(bus.error().message, Catch::Contains("in time"));
  while (!bus && failures < 10) bus = NatsBus::connect(with_patience(options, ++failures), quiet());
  REQUIRE(bus);
  CHECK((*bus)->flush(kPatience));
}

TEST_CASE("a server that falls silent in the handshake does not hold the bus, and costs nothing that stays") {
  SilentNats server;
  constexpr int kTries = 3;
  std::thread silent([&] {
    for (int i = 0; i < kTries; ++i) server.greet_one();
  });
  NatsOptions options;
  options.url = server.url();
  options.connect_timeout = 100ms;
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = descriptors();
  for (int i = 0; i < kTries; ++i) CHECK(code_of(NatsBus::connect(options, quiet())) == Errc::kDisconnected);
  silent.join();
  CHECK(descriptors() == before + kTries);  // those of the server
}

TEST_CASE("close is clean in the middle of traffic") {
  NatsServer server;
  auto sender = connect_to(server);
  std::atomic<bool> stop = false;
  std::thread traffic([&] {
    while (!stop) {
      for (int i = 0; i < 50; ++i) {
        if (!sender->publish({"a", {}, std::string(500, 'x'), {{"k", "v"}}})) return;
      }
      if (!sender->flush(kPatience)) return;
    }
  });
  for (int i = 0; i < 50; ++i) {
    auto bus = connect_to(server);
    listen(*bus, "a");
    listen(*bus, ">", "q");
    CHECK(receive(*bus, 1).size() == 1);
    if (i % 2 == 0) bus->close(kPatience);
    CHECK(bus->status().closed == (i % 2 == 0));
    if (i % 2 == 0) {
      CHECK(code_of(bus->publish({"a", {}, {}, {}})) == Errc::kDisconnected);
      CHECK(code_of(bus->subscribe("a")) == Errc::kDisconnected);
      bus->close(kPatience);
    }
  }
  stop = true;
  traffic.join();
}

TEST_CASE("close sends what was published") {
  NatsServer server;
  auto receiver = connect_to(server);
  listen(*receiver, "a");
  auto bus = connect_to(server);
  for (int i = 0; i < 1000; ++i) publish(*bus, "a", "x");
  bus->close(kPatience);
  CHECK(receive(*receiver, 1000).size() == 1000);
}

TEST_CASE("close while there is no connection") {
  NatsServer server;
  auto bus = connect_to(server);
  server.kill();
  REQUIRE(turn_until(*bus, [&] { return !bus->status().connected; }));
  bus->wait(std::chrono::steady_clock::now() + 20ms);
  bus->close(kPatience);
  CHECK(bus->status().closed);
  bus->wait(std::chrono::steady_clock::now());
}
