#pragma once

#include <array>
#include <memory>
#include <string>

#include "support/nats_client.h"
#include "support/nats_server.h"

namespace muster::test {

/// Three nats-servers, n0 to n2, that make a cluster with JetStream. Thread: one, as of a NatsServer.
class NatsCluster {
 public:
  static constexpr std::size_t kServers = 3;

  NatsCluster() {
    std::array<std::uint16_t, kServers> ports{};
    std::string routes;
    for (auto& port : ports) {
      port = free_port();
      routes += "\"nats://127.0.0.1:" + std::to_string(port) + "\", ";
    }
    for (std::size_t i = 0; i < kServers; ++i) {
      servers_[i] = std::make_unique<NatsServer>(
          NatsServerOptions{.config = "server_name: n" + std::to_string(i) +
                                      "\nlame_duck_duration: 30s\nlame_duck_grace_period: 500ms\n"
                                      "cluster { name: c, listen: \"127.0.0.1:" +
                                      std::to_string(ports[i]) + "\", routes: [" + routes + "] }",
                            .jetstream = true});
    }
  }

  [[nodiscard]] NatsServer& operator[](std::size_t i) { return *servers_[i]; }
  /// Of all three.
  [[nodiscard]] std::string url() const {
    return servers_[0]->url() + ',' + servers_[1]->url() + ',' + servers_[2]->url();
  }

  /// Number of the server that leads a stream; kServers: nobody does.
  [[nodiscard]] std::size_t leader_of(const std::string& stream) const {
    try {
      return number(NatsClient(url()).api("STREAM.INFO." + stream).at("cluster").value("leader", ""));
    } catch (const std::runtime_error&) {
      return kServers;
    }
  }

 private:
  static std::size_t number(const std::string& name) {
    return name.size() == 2 ? static_cast<std::size_t>(name[1] - '0') : kServers;
  }

  std::array<std::unique_ptr<NatsServer>, kServers> servers_;
};

}  // namespace muster::test
