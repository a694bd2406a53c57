#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "support/fleet_client.h"
#include "support/nats_server.h"

namespace muster::test {

/// A fleet whose processes are started one by one: a nats-server with JetStream from the beginning, a coordinator and
/// workers when the test says so. What is left of them is killed at the end. Thread: one.
class PartsFleet : public FleetClient {
 public:
  struct WorkerOptions {
    std::map<std::string, std::string> environment{};
    bool as_nobody = false;
    std::string nats{};                  // URL of another server than the fleet's
    std::vector<std::string> wrapper{};  // words before the command
  };

  /// `more`    text for the configuration file of the nats-server
  /// `login`   `user:password@` of all but the workers that have a URL of their own
  explicit PartsFleet(const std::string& more = "", const std::string& login = "");
  ~PartsFleet();

  /// (Re)starts the coordinator with this configuration; returns when it answers.
  void configure(const std::string& yaml);
  /// SIGTERM; its exit status.
  int stop_coordinator();
  /// Starts it again as configured; does not wait for it.
  void start_coordinator();
  void kill_coordinator();  // SIGKILL
  [[nodiscard]] pid_t coordinator_process() const { return coordinator_; }
  void pause_coordinator() const;
  void resume_coordinator() const;

  /// Starts `muster worker ARGS`; a number for the calls below.
  std::size_t start_worker(const std::vector<std::string>& args, const WorkerOptions& options);
  std::size_t start_worker(const std::vector<std::string>& args) { return start_worker(args, WorkerOptions{}); }
  /// The same, and waits until the coordinator has accepted it.
  std::size_t add_worker(const std::vector<std::string>& args, const WorkerOptions& options);
  std::size_t add_worker(const std::vector<std::string>& args) { return add_worker(args, WorkerOptions{}); }
  void signal_worker(std::size_t worker, int number) const;
  /// SIGTERM.
  void drain_worker(std::size_t worker) const;
  /// Waits for its end; its exit status.
  int wait_worker(std::size_t worker);
  int stop_worker(std::size_t worker) {
    drain_worker(worker);
    return wait_worker(worker);
  }
  [[nodiscard]] pid_t process_of(std::size_t worker) const { return workers_.at(worker); }
  void kill_worker(std::size_t worker);  // SIGKILL
  void pause_worker(std::size_t worker) const;
  void resume_worker(std::size_t worker) const;

  /// Whether none of its processes has ended but by a call above.
  [[nodiscard]] bool all_alive() const;

  NatsServer nats;
  std::vector<std::string> coordinator_wrapper;  // words before its command

 private:
  [[nodiscard]] std::size_t active_workers() const;

  pid_t coordinator_ = -1;
  std::vector<pid_t> workers_;
};

}  // namespace muster::test
