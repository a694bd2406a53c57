// What a fleet costs when it has nothing to do, and how soon it is there.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/bench/bench.h"
#include "tests/bench/stopwatch.h"

namespace muster::bench {
namespace {

/// What a worker costs in a second.
struct Idle {
  double coordinator = 0, server = 0;  // us of their time
  double bytes = 0;                    // that the server reads and writes
};

Idle watch_idle(int workers, double seconds) {
  const BenchFleet fleet("resources: 10", workers, 4);
  fleet.settle();
  std::this_thread::sleep_for(std::chrono::seconds(2));  // what starting leaves to be done
  const auto coordinator = fleet.coordinator(), server = fleet.server();
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto shares = watch.seconds() * workers;
  const auto coordinator_now = fleet.coordinator(), server_now = fleet.server();
  return {1e6 * (coordinator_now.cpu_seconds - coordinator.cpu_seconds) / shares,
          1e6 * (server_now.cpu_seconds - server.cpu_seconds) / shares,
          (server_now.read_written - server.read_written) / shares};
}

/// `muster up` from nothing.
class NewFleet : public test::FleetClient {
 public:
  NewFleet() {
    std::ofstream(directory() / "muster.yaml")
        << "workers: [{plugin: fake}]\ntargets: [{name: cloud, namespace: FAKE, config: {resources: 10}}]\n";
    const auto file = (directory() / "muster.yaml").string();
    pid_ = test::spawn({command({"up", "-c", file}), {}, directory() / "up.out", directory() / "up.err"});
    while (muster({"status"}).status == 3) {
    }
    seconds = watch_.seconds();
  }
  ~NewFleet() {
    ::kill(pid_, SIGKILL);
    test::wait_for(pid_);
  }
  double seconds = 0;  // until it answered

 private:
  Stopwatch watch_;
  pid_t pid_ = -1;
};

}  // namespace

void idle(const Options& options, Report& report) {
  std::vector<double> coordinator, server, bytes, few_coordinator, few_server, few_bytes;
  const auto seconds = options.quick ? 3 : 10;
  constexpr int kMany = 200, kFew = 50;
  for (int i = 0; i < std::min(options.rounds, 3); ++i) {
    const auto many = watch_idle(kMany, seconds), few = watch_idle(kFew, seconds);
    coordinator.push_back(many.coordinator);
    few_coordinator.push_back(few.coordinator);
    server.push_back(many.server);
    few_server.push_back(few.server);
    bytes.push_back(many.bytes);
    few_bytes.push_back(few.bytes);
  }
  report.add({"idle/coordinator", "us/s/w", coordinator, "with 50 workers", few_coordinator, Bound::kAtMost, 1.2, 1.5});
  report.add({"idle/server", "us/s/w", server, "with 50 workers", few_server, Bound::kAtMost, 1.2, 1.5});
  report.add({"idle/bytes", "B/s/w", bytes, "with 50 workers", few_bytes, Bound::kAtMost, 1.2, 1.5});
}

void start(const Options& options, Report& report) {
  std::vector<double> up, bare, joined, worker_mb, coordinator_mb;
  for (int i = 0; i < options.rounds; ++i) {
    up.push_back(1000 * NewFleet().seconds);
    const Stopwatch server_watch;
    const test::NatsServer server;
    bare.push_back(1000 * server_watch.seconds());
    BenchFleet fleet("resources: 10", 1, 4);
    fleet.settle();
    worker_mb.push_back(usage(fleet.processes("muster-plugin-fake")).resident_mb);
    coordinator_mb.push_back(fleet.coordinator().resident_mb);
    const Stopwatch watch;
    const Processes worker{{fleet.start_worker()}};
    while (fleet.json({"workers"}).size() < 2) {
    }
    joined.push_back(1000 * watch.seconds());
  }
  report.add({"start/up", "ms", up, "nats-server alone", bare, Bound::kAtMost});
  report.add({"start/worker accepted", "ms", joined});
  report.add({"start/worker memory", "MB", worker_mb});
  report.add({"start/coordinator memory", "MB", coordinator_mb});
}

}  // namespace muster::bench
