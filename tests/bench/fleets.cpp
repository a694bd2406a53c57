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

struct Idle {
  double coordinator = 0, server = 0, bytes = 0;  // a second: share of a core, share of a core, bytes on loopback
};

double loopback_bytes() {
  std::ifstream table("/proc/net/dev");
  for (std::string line; std::getline(table, line);) {
    const auto at = line.find("lo:");
    if (at != std::string::npos) return std::stod(line.substr(at + 3));
  }
  return 0;
}

Idle watch_idle(int workers, double seconds) {
  const BenchFleet fleet("resources: 10", workers, 4);
  fleet.settle();
  std::this_thread::sleep_for(std::chrono::seconds(2));  // what starting leaves to be done
  const auto bytes = loopback_bytes();
  const auto coordinator = fleet.coordinator().cpu_seconds, server = fleet.server().cpu_seconds;
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto took = watch.seconds();
  return {(fleet.coordinator().cpu_seconds - coordinator) / took, (fleet.server().cpu_seconds - server) / took,
          (loopback_bytes() - bytes) / took};
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
    coordinator.push_back(1e6 * many.coordinator / kMany);
    few_coordinator.push_back(1e6 * few.coordinator / kFew);
    server.push_back(1e6 * many.server / kMany);
    few_server.push_back(1e6 * few.server / kFew);
    bytes.push_back(many.bytes / kMany);
    few_bytes.push_back(few.bytes / kFew);
  }
  report.add({"idle/coordinator", "us/s/w", coordinator, "with 50 workers", few_coordinator, Bound::kAtMost});
  report.add({"idle/server", "us/s/w", server, "with 50 workers", few_server, Bound::kAtMost});
  report.add({"idle/loopback", "B/s/w", bytes, "with 50 workers", few_bytes, Bound::kAtMost});
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
