#include "coordinator/cli/nats_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>

#include <spdlog/fmt/fmt.h>
#include <nlohmann/json.hpp>

#include "coordinator/cli/plugin_path.h"
#include "coordinator/cli/replace_file.h"
#include "worker_sdk/bus/clock.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

/// Takes a port on loopback for a moment: `port`, or any for 0. Returns which one, 0 when it is in use.
std::uint16_t try_port(std::uint16_t port) {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;  // as the server does: connections of its predecessor that are still winding down don't count
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  const bool taken = bind(socket_fd, any, length) == 0 && getsockname(socket_fd, any, &length) == 0;
  close(socket_fd);
  return taken ? ntohs(address.sin_port) : 0;
}

std::uint16_t choose_port(const fs::path& file) {
  std::uint16_t port = 0;
  std::ifstream(file) >> port;
  constexpr int kTries = 20;
  for (int i = 0; port != 0 && i < kTries; ++i) {
    if (try_port(port) != 0) return port;
    std::this_thread::sleep_for(Millis{100});
  }
  return try_port(0);
}

/// The one it had last time: whoever is connected when all of this is started again comes back with it.
std::string choose_password(const fs::path& file) {
  SystemRandom random;
  const std::string fresh = make_token(random);
  std::string kept;
  std::ifstream(file) >> kept;
  const auto is_of_token = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  return kept.size() == fresh.size() && std::all_of(kept.begin(), kept.end(), is_of_token) ? kept : fresh;
}

std::string find_server(const Environment& env) {
  const auto it = env.find("PATH");  // Debian puts it where a plain user does not look
  return find_executable("nats-server",
                         (it == env.end() ? "" : it->second + ":") + "/usr/local/bin:/usr/bin:/usr/sbin");
}

}  // namespace

Result<NatsServer> prepare_nats_server(const std::string& data_dir, const Environment& env) {
  const std::string executable = find_server(env);
  if (executable.empty()) {
    return Error{Errc::kNotFound,
                 "nats-server is not installed (apt-get install nats-server); or use one that runs: --nats URL"};
  }
  const fs::path directory(data_dir);
  const std::uint16_t port = choose_port(directory / "nats.port");
  if (port == 0) return Error{Errc::kInternalFailure, "no free port on 127.0.0.1"};
  const std::string password = choose_password(directory / "nats.password");
  // An explicit account: the defaults of 2.9 open the global one to everybody when a system account is set alone.
  const std::string config = fmt::format(
      "listen: \"127.0.0.1:{}\"\n"
      "server_name: \"muster-{}\"\n"
      "jetstream {{ store_dir: {} }}\n"
      "accounts {{ MUSTER {{ jetstream: enabled, users: [{{ user: muster, password: \"{}\" }}] }} }}\n"
      "write_deadline: \"2s\"\n",
      port, port, nlohmann::json((directory / "nats").string()).dump(), password);
  if (auto written = replace_file(directory / "nats.conf", config, kPrivate); !written) return written.error();
  if (auto written = replace_file(directory / "nats.port", std::to_string(port) + "\n", kPrivate); !written)
    return written.error();
  if (auto written = replace_file(directory / "nats.password", password + "\n", kPrivate); !written)
    return written.error();
  NatsServer server;
  server.command = {"nats-server", {executable, "-c", (directory / "nats.conf").string()}, env};
  // On few cores one thread serves more: a third more replies, half the tail latency.
  if (std::thread::hardware_concurrency() <= 2) server.command.env.emplace("GOMAXPROCS", "1");
  server.url = fmt::format("nats://muster:{}@127.0.0.1:{}", password, port);
  return server;
}

}  // namespace muster::cli
