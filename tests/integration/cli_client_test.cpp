// The command line's connection: what it does when questions, answers and servers get lost.

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/cli/client.h"
#include "support/fleet_client.h"
#include "support/nats_server.h"
#include "support/scratch.h"

using namespace muster;
using namespace std::chrono_literals;
using test::NatsServer;

namespace {

constexpr Millis kPatience{60'000};

std::shared_ptr<spdlog::logger> quiet() {
  return std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
}

NatsOptions options_for(const NatsServer& server) {
  NatsOptions options;
  options.url = server.url();
  options.reconnect_wait = 5ms;
  options.reconnect_wait_max = 50ms;
  return options;
}

/// Stands where a coordinator would, and answers from the n-th question on, with all that it says.
class Coordinator {
 public:
  Coordinator(const NatsServer& server, int answers_from, std::vector<std::string> says = {R"({"here":true})"})
      : says_(std::move(says)) {
    auto bus = NatsBus::connect(options_for(server), quiet());
    REQUIRE(bus);
    bus_ = std::move(*bus);
    REQUIRE(bus_->subscribe("muster.api.>"));
    REQUIRE(bus_->flush(kPatience));
    thread_ = std::thread([this, answers_from] { serve(answers_from); });
  }
  ~Coordinator() {
    end_ = true;
    thread_.join();
  }
  [[nodiscard]] int questions() const { return questions_; }

 private:
  void serve(int answers_from) {
    std::vector<Message> messages;
    while (!end_) {
      bus_->wait(std::chrono::steady_clock::now() + 20ms);
      while (bus_->receive(messages, 16) > 0) {
        for (const auto& message : messages) {
          if (++questions_ < answers_from) continue;
          for (const std::string& text : says_) (void)bus_->publish({std::string(message.reply), {}, text, {}});
        }
        messages.clear();
      }
    }
  }

  const std::vector<std::string> says_;  // one after the other
  std::unique_ptr<NatsBus> bus_;
  std::atomic<bool> end_ = false;
  std::atomic<int> questions_ = 0;
  std::thread thread_;
};

std::unique_ptr<cli::NatsClient> client_of(const NatsServer& server, Millis timeout = kPatience) {
  auto client = cli::NatsClient::connect(options_for(server), "muster", timeout, quiet());
  REQUIRE(client);
  return std::move(*client);
}

/// What `muster` says, in the end, and how it exits.
struct Said {
  int status;
  std::string out, err;
};

Said say(const NatsServer& server, std::vector<std::string> words) {
  const test::Scratch scratch;
  const auto out = scratch.path / "out", err = scratch.path / "err";
  words.insert(words.begin(), test::built("muster"));
  words.insert(words.end(), {"--nats", server.url()});
  const int status = test::wait_for(test::spawn({words, {}, out, err}));
  return {status, test::slurp(out), test::slurp(err)};
}

}  // namespace

TEST_CASE("a question that changes nothing is asked again until somebody answers") {
  const NatsServer server;
  const Coordinator coordinator(server, 2);
  const auto answer = client_of(server)->ask("status", cli::Json::object());
  REQUIRE(answer);
  CHECK(*answer == R"({"here":true})");
  CHECK(coordinator.questions() >= 2);
}

TEST_CASE("an error of any shape is an error") {
  const NatsServer server;
  const auto* says = GENERATE(R"({"error":{"code":7,"message":["a","list"],"where":{}}})", R"({"error":{"code":null}})",
                              R"({"error":7})");
  const Coordinator coordinator(server, 1, {says});
  CHECK_FALSE(client_of(server)->ask("supervise", cli::Json::object()));
}

TEST_CASE("a stream that takes in questions does not answer for a coordinator") {
  const NatsServer server;
  const std::string stream = R"({"stream":"ALL","domain":"hub","seq":1})";
  SECTION("that is there") {
    const Coordinator coordinator(server, 1, {stream, R"({"here":true})"});
    const auto answer = client_of(server)->ask("apply", cli::Json::object());
    REQUIRE(answer);
    CHECK(*answer == R"({"here":true})");
  }
  SECTION("that is not") {
    const Coordinator coordinator(server, 1, {stream});
    const auto answer = client_of(server, 100ms)->ask("status", cli::Json::object());
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == Errc::kNoResponders);
  }
}

TEST_CASE("an answer that is not as expected is said to be none, and not taken for a mistake of the program") {
  const NatsServer server;
  const Coordinator coordinator(server, 1, {R"({"merged":7,"checks":7,"plan":7,"types":7,"count":"x"})"});
  const auto words = GENERATE(std::vector<std::string>{"discover"}, std::vector<std::string>{"status"},
                              std::vector<std::string>{"command", "x"});
  const auto said = say(server, words);
  INFO(said.err);
  CHECK(said.status == 1);
  CHECK(said.err.find("muster: the answer is none that this version understands") == 0);
}

TEST_CASE("nothing of an answer reaches a terminal as it is") {
  const NatsServer server;
  const Coordinator coordinator(server, 1, {R"({"run":"\u001b[31m","command":"\u001b[31m","state":"\u001b[31m",
      "plan":{"summary":{},"steps":[{"action":"\u001b[31m","patch":[{"op":"\u001b[31m"}]}]},
      "results":[{"state":"done","action":"\u001b[31m"}]})"});
  for (const auto& words : {std::vector<std::string>{"discover"}, std::vector<std::string>{"command", "x"}}) {
    const auto said = say(server, words);
    INFO(said.out << said.err);
    CHECK(said.status == 0);
    CHECK(said.out.find("\\x1b[31m") != std::string::npos);
    CHECK(said.out.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("what was asked ahead is not asked again") {
  const NatsServer server;
  const Coordinator coordinator(server, 1);
  const auto client = client_of(server);
  const cli::Json next{{"cursor", "c1"}};
  client->ask_ahead("resources", next);
  CHECK(client->ask("resources", next));
  CHECK(coordinator.questions() == 1);
  CHECK(client->ask("resources", next));
  CHECK(coordinator.questions() == 2);
}

TEST_CASE("another question than the one asked ahead is asked as ever") {
  const NatsServer server;
  const Coordinator coordinator(server, 1);
  const auto client = client_of(server);
  client->ask_ahead("resources", {{"cursor", "c1"}});
  CHECK(client->ask("resources", {{"cursor", "c2"}}));
  CHECK(coordinator.questions() == 2);
}

TEST_CASE("what was asked ahead of nobody is asked again") {
  const NatsServer server;
  const Coordinator coordinator(server, 2);
  const auto client = client_of(server);
  client->ask_ahead("status", cli::Json::object());
  CHECK(client->ask("status", cli::Json::object()));
  CHECK(coordinator.questions() == 2);
}

TEST_CASE("what changes something is asked once") {
  const NatsServer server;
  const Coordinator coordinator(server, 2);
  const auto verb = GENERATE("discover", "cancel");
  const auto answer = client_of(server, 3s)->ask(verb, cli::Json::object());
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::kNoResponders);
  CHECK_THAT(answer.error().message, Catch::Contains(", and it may be done all the same;"));
  CHECK(coordinator.questions() == 1);
}

TEST_CASE("an answer that nobody wants any more is not waited for") {
  const NatsServer server;
  const Coordinator coordinator(server, 1'000'000);
  const auto client = client_of(server);
  client->stop_when([&] { return coordinator.questions() > 0; });
  const auto* verb = GENERATE("plan", "forget", "status");
  const auto answer = client->ask(verb, cli::Json::object());
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::kCancelled);
  const bool may_be_done = answer.error().message.find("may be done all the same") != std::string::npos;
  CHECK(may_be_done == (std::string_view(verb) == "forget"));
  CHECK(client->ask("forget", cli::Json::object()).error().message == "stopped before it was asked for");
}

TEST_CASE("a question waits for the connection to come back") {
  NatsServer server;
  const auto client = client_of(server);
  server.kill();
  auto asked = std::async(std::launch::async, [&] { return client->ask("status", cli::Json::object()); });
  server.start();
  const auto answer = asked.get();
  REQUIRE_FALSE(answer);
  CHECK_THAT(answer.error().message, Catch::Contains("no coordinator with prefix"));
}
