// A fleet on three servers with JetStream, of which one goes: killed, or asked to leave; or its coordinator does.

#include <catch2/catch.hpp>

#include "support/loaded_fleet.h"
#include "support/nats_cluster.h"

using namespace muster::test;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kWide = 1500;
constexpr char kStream[] = "MUSTER_EVENTS";

class ClusterFleet : public LoadedFleet {
 public:
  ClusterFleet() {
    where_ = {"--nats", cluster.url()};
    REQUIRE(eventually([&] { return jetstream_works(); }));
    configure(
        "discovery: {interval: 0s}\ntargets:\n"
        "  - {name: cloud, namespace: FAKE, config: {resources: 0, latency_ms: 400, state: " +
        state() +
        "}}\n"
        "  - {name: wide, namespace: FAKE, config: {resources: " +
        std::to_string(kWide) + ", page: 50, list_properties: false, latency_ms: 300}}\n");
    for (int i = 0; i < 3; ++i) add_worker({"fake", "--slots", "2"});
    leader();
  }

  /// The stream has each event of the store, once, in order.
  void check_stream() const {
    NatsClient client(cluster.url());
    std::vector<std::uint64_t> streamed;
    const auto last = [&]() -> std::uint64_t {
      try {
        return client.api(std::string("STREAM.INFO.") + kStream)["state"]["last_seq"];
      } catch (const std::runtime_error&) {
        return 0;  // no leader yet
      }
    };
    std::uint64_t read = 0;
    const auto end = last_event();
    const bool all = eventually([&] {
      for (const auto newest = last(); read < newest;) {
        Json answer;
        try {
          answer = client.api(std::string("STREAM.MSG.GET.") + kStream, {{"seq", read + 1}});
        } catch (const std::runtime_error&) {
          return false;  // it has lost its leader; the next look goes on here
        }
        ++read;
        const auto body = Json::parse(from_base64(answer["message"]["data"]));
        for (const auto& event : body.is_array() ? body : Json::array({body})) {
          streamed.push_back(std::stoull(event["sequence"].get<std::string>()));
        }
      }
      return !streamed.empty() && streamed.back() >= end;
    });
    INFO(log());
    REQUIRE(all);
    for (std::size_t i = 0; i < streamed.size(); ++i) REQUIRE(streamed[i] == i + 1);
  }

  /// The coordinator dies, and with it what it knew of the last events: that the stream has them.
  void forget_published(unsigned events) {
    kill_coordinator();
    const auto store = (directory() / "data" / "muster.db").string();
    REQUIRE(std::stoul(books(store, "SELECT value FROM meta WHERE key = 'published'").at(0)) > events);
    books(store,
          "UPDATE meta SET value = CAST(value - " + std::to_string(events) + " AS TEXT) WHERE key = 'published'");
    start_coordinator();
    REQUIRE(eventually([&] { return json({"status"}).is_object(); }));
  }

  /// The server that leads the stream. While one is elected there is none.
  NatsServer& leader() {
    std::size_t number = NatsCluster::kServers;
    REQUIRE(eventually([&] { return (number = cluster.leader_of(kStream)) < NatsCluster::kServers; }));
    return cluster[number];
  }

  NatsCluster cluster;

 private:
  [[nodiscard]] bool jetstream_works() const {
    try {
      NatsClient(cluster.url()).api("INFO");
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  static std::string from_base64(const std::string& text) {
    std::string bytes;
    unsigned bits = 0;
    int count = 0;
    for (const char c : text) {
      constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
      const auto digit = kDigits.find(c);
      if (digit == std::string_view::npos) break;
      bits = bits << 6 | static_cast<unsigned>(digit);
      if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xff);
    }
    return bytes;
  }
};

}  // namespace

TEST_CASE("the server that leads the event stream is killed under an apply and a discovery") {
  ClusterFleet fleet;
  fleet.load();
  auto& leader = fleet.leader();
  leader.kill();
  CHECK_FALSE(fleet.applied());  // it was under way
  fleet.check_end(kWide);
  leader.start();
  fleet.check_stream();
  fleet.forget_published(50);
  CHECK(fleet.discover()["state"] == "complete");
  fleet.check_stream();
}

TEST_CASE("a server goes into lame-duck mode under an apply and a discovery") {
  ClusterFleet fleet;
  fleet.load();
  auto& leader = fleet.leader();
  CHECK_FALSE(fleet.applied());  // it is under way
  leader.lame_duck();            // returns when it has ended
  fleet.check_end(kWide);
  leader.start();
  fleet.check_stream();
}
