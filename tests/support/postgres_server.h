#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::test {

struct PostgresServerOptions {
  std::string hba;       // lines of pg_hba.conf before those that let everybody in
  std::string settings;  // more lines for postgresql.conf
};

/// A PostgreSQL server of its own: fresh cluster (superuser `postgres`, UTF-8, no password) in a temporary directory,
/// on a free loopback port that stays the same across restarts. It dies with this process and leaves nothing behind. As
/// root it runs as the user `postgres`. Throws std::runtime_error, with the end of the server's log, when it cannot
/// start, and with the package to install when PostgreSQL is not there.
/// Thread: one, which must outlive the server (the kernel ties the child to it).
class PostgresServer {
 public:
  explicit PostgresServer(PostgresServerOptions options = {});
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// Starts a stopped one again; returns when it takes connections.
  void start();
  void stop();    // SIGINT: connections are ended, data are kept
  void kill();    // SIGKILL: what was committed is found again
  void pause();   // SIGSTOP for the process that takes connections: they are made and not answered
  void resume();  // SIGCONT

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Connection string of the superuser over TCP.
  [[nodiscard]] std::string dsn(const std::string& database = "postgres") const;
  /// Of the cluster and `server.log`.
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  /// Of initdb, psql, pgbench, ...
  [[nodiscard]] const std::filesystem::path& programs() const { return programs_; }

 private:
  void create_cluster();
  [[nodiscard]] bool launch();
  [[nodiscard]] bool ready() const;
  [[nodiscard]] std::string log_tail() const;
  void end(int signal);

  PostgresServerOptions options_;
  std::filesystem::path programs_, directory_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
  bool has_run_ = false;
};

}  // namespace muster::test
