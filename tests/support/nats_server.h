#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::test {

/// A loopback port that nobody listens on, outside of the range of outgoing connections.
std::uint16_t free_port();

struct NatsServerOptions {
  std::string config{};            // more text for the configuration file
  std::string user{}, password{};  // both empty: anybody may connect
  bool jetstream = false;          // stored in the server's directory, kept across restarts
};

/// A nats-server process on a free loopback port, which stays the same across restarts. It dies with this process and
/// leaves nothing behind. Throws std::runtime_error, with the end of the server's log, when it cannot start.
/// Thread: one, which must outlive the server (the kernel ties the child to it).
class NatsServer {
 public:
  explicit NatsServer(NatsServerOptions options = {});
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  /// Starts a stopped or killed one again; returns when it takes connections.
  void start();
  void stop();    // SIGTERM
  void kill();    // SIGKILL
  void pause();   // SIGSTOP: connections stay open, nothing answers
  void resume();  // SIGCONT
  void reload();  // SIGHUP, with the configuration that the options say now
  /// SIGUSR2: it tells its clients to leave, and ends itself when they are gone; waits for that.
  void lame_duck();

  /// What it starts with the next time.
  NatsServerOptions& options() { return options_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// With user and password of the options.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  void write_config() const;
  [[nodiscard]] bool launch(std::chrono::seconds patience);
  [[nodiscard]] bool read_port();
  [[nodiscard]] std::string log_tail() const;
  void end(int signal);

  NatsServerOptions options_;
  std::filesystem::path directory_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace muster::test
