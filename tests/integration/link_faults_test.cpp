// Workers at the far end of a link that goes and comes back: a leaf node's, and the network of a host.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include <catch2/catch.hpp>

#include "support/loaded_fleet.h"
#include "support/tcp_link.h"

using namespace muster::test;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kWide = 600;

/// Targets of the pool `site`, whose workers stand at the far end.
class SiteFleet : public LoadedFleet {
 public:
  using LoadedFleet::LoadedFleet;

  void begin_fleet() {
    const std::string site = ", namespace: FAKE, pool: site, config: {latency_ms: 400, ";
    configure("discovery: {interval: 0s}\ntargets:\n  - {name: cloud" + site + "resources: 0, state: " + state() +
              "}}\n  - {name: wide" + site + "resources: " + std::to_string(kWide) +
              ", page: 25, list_properties: false}}\n");
  }

  /// While a change and a discovery of the site are under way, its link goes and comes back.
  template <typename Cut, typename Restore>
  void lose_the_site(std::size_t workers, Cut cut, Restore restore) {
    load();
    cut();
    REQUIRE(eventually([&] { return active_at_site() == 0; }));
    CHECK_FALSE(applied());  // it is not over yet
    restore();
    REQUIRE(eventually([&] { return active_at_site() == workers; }));
    check_end(kWide);
    CHECK(events(0, "resource.vanished").empty());
  }

  /// A few changes and a discovery.
  void work() {
    constexpr int kFew = 4;
    REQUIRE(eventually([&] { return active_at_site() == 1; }));
    const auto stack = (directory() / "few.yaml").string();
    std::ofstream(stack) << things(kFew, 1, 1);
    const auto apply = Json::parse(finish(begin({"apply", stack, "--yes", "-o", "json"})).out, nullptr, false);
    INFO(log());
    REQUIRE(apply.is_object());
    CHECK(apply["state"] == "complete");
    CHECK(written(state()).size() == kFew);
    CHECK(doubled(state()).empty());
    CHECK(discover({"--timeout", "120s"})["state"] == "complete");
    CHECK(resources({"--target", "wide"}).size() == kWide);
  }

  [[nodiscard]] std::size_t active_at_site() const {
    const auto workers = json({"workers"});
    return static_cast<std::size_t>(std::ranges::count_if(
        workers, [](const Json& worker) { return worker["pool"] == "site" && worker["state"] == "active"; }));
  }
};

/// Two workers behind a leaf node.
void lose_a_leaf(TcpLink::State how) {
  const auto port = free_port();
  TcpLink link(port);
  // The address that the hub tells is that of the link: there is no way around it.
  SiteFleet fleet("leafnodes { listen: \"127.0.0.1:" + std::to_string(port) +
                  "\", advertise: \"127.0.0.1:" + std::to_string(link.port()) + "\" }");
  const NatsServer leaf(
      {.config = "leafnodes { remotes: [{ url: \"nats://127.0.0.1:" + std::to_string(link.port()) + "\" }] }"});
  fleet.begin_fleet();
  for (int i = 0; i < 2; ++i) {
    PartsFleet::WorkerOptions far;
    far.nats = leaf.url();
    fleet.add_worker({"fake", "--pool", "site", "--slots", "2"}, far);
  }
  fleet.lose_the_site(
      2, [&] { link.set(how); }, [&] { link.set(TcpLink::State::kOpen); });
}

/// Whether a command of the system succeeds.
bool succeeds(const std::vector<std::string>& words) {
  std::vector<std::string> all{"/usr/bin/env"};
  all.insert(all.end(), words.begin(), words.end());
  return wait_for(spawn({all, {}, "/dev/null", "/dev/null"})) == 0;
}

/// A cable between this host and a process in a network of its own that enters it. It is gone with either.
class Cable {
 public:
  Cable() {
    up_ = succeeds({"unshare", "-n", "true"}) &&
          succeeds({"ip", "link", "add", here_, "type", "veth", "peer", "name", there_}) &&
          succeeds({"ip", "address", "add", here() + "/30", "dev", here_}) && set("up");
  }
  ~Cable() { succeeds({"ip", "link", "delete", here_}); }
  Cable(const Cable&) = delete;
  Cable& operator=(const Cable&) = delete;

  /// False where this machine does not allow it.
  [[nodiscard]] bool laid() const { return up_; }
  /// Address of this end.
  [[nodiscard]] std::string here() const { return network_ + '.' + std::to_string(base_ + 1); }
  /// Words before a command that is to run in a network that has nothing but the other end, once it is plugged in.
  [[nodiscard]] std::vector<std::string> enter() const {
    return {"/usr/bin/env",
            "unshare",
            "-n",
            "sh",
            "-c",
            "until ip link show " + there_ + "; do sleep 0.05; done >/dev/null 2>&1; ip address add " + network_ + '.' +
                std::to_string(base_ + 2) + "/30 dev " + there_ + " && ip link set " + there_ + " up && exec \"$@\"",
            "sh"};
  }
  /// False while the process has not entered.
  [[nodiscard]] bool plug_in(pid_t process) const {
    const auto network = [](const std::string& of) { return std::filesystem::read_symlink("/proc/" + of + "/ns/net"); };
    return network(std::to_string(process)) != network("self") &&
           succeeds({"ip", "link", "set", there_, "netns", std::to_string(process)});
  }
  /// `up`, or `down`: nothing passes, nobody is told.
  [[nodiscard]] bool set(const std::string& state) const { return succeeds({"ip", "link", "set", here_, state}); }

 private:
  // 198.18.0.0/15 is for tests of networks.
  const int pid_ = ::getpid();
  const std::string here_ = "mu" + std::to_string(pid_) + "h", there_ = "mu" + std::to_string(pid_) + "w";
  const std::string network_ =
      "198." + std::to_string(18 + pid_ / 64 / 256 % 2) + '.' + std::to_string(pid_ / 64 % 256);
  const int base_ = pid_ % 64 * 4;
  bool up_ = false;
};

}  // namespace

TEST_CASE("a leaf node whose link breaks, and its workers with it") {
  lose_a_leaf(TcpLink::State::kCut);
}

TEST_CASE("a leaf node whose link falls silent, and nobody is told") {
  lose_a_leaf(TcpLink::State::kFrozen);
}

TEST_CASE("workers whose every word is under way for long do their work all the same") {
  SiteFleet fleet;
  const TcpLink slow(fleet.nats.port(), "127.0.0.1", std::chrono::milliseconds(700));
  fleet.begin_fleet();
  PartsFleet::WorkerOptions far;
  far.nats = "nats://127.0.0.1:" + std::to_string(slow.port());
  fleet.start_worker({"fake", "--pool", "site"}, far);
  fleet.work();
}

TEST_CASE("a host whose network is cut: packets vanish, and it comes back") {
  const Cable cable;
  if (!cable.laid()) {
    WARN("skipped: no network of its own can be made for a process here (needs root and CAP_NET_ADMIN)");
    return;
  }
  SiteFleet fleet;
  const TcpLink door(fleet.nats.port(), cable.here());
  fleet.begin_fleet();
  PartsFleet::WorkerOptions far;
  far.nats = "nats://" + cable.here() + ':' + std::to_string(door.port());
  far.wrapper = cable.enter();
  const auto worker = fleet.start_worker({"fake", "--pool", "site", "--slots", "4"}, far);
  REQUIRE(PartsFleet::eventually([&] { return cable.plug_in(fleet.process_of(worker)); }));
  REQUIRE(PartsFleet::eventually([&] { return fleet.active_at_site() == 1; }));
  fleet.lose_the_site(
      1, [&] { REQUIRE(cable.set("down")); }, [&] { REQUIRE(cable.set("up")); });
}
