#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/live_fleet.h"
#include "support/nats_server.h"
#include "support/scratch.h"
#include "tests/bench/report.h"

namespace muster::bench {

struct Options {
  int rounds = 5;
  bool quick = false;  // a tenth of everything
  std::uint32_t resources = 300'000;
  std::uint32_t page = 64;
  std::uint32_t bytes = 600;
  std::uint32_t types = 1;
  std::uint32_t slots = 4;
  double filtered = 0, changed = 0.1;  // shares
};

/// What `/proc` says of processes.
struct Usage {
  double cpu_seconds = 0;   // of the threads that there are
  double read_written = 0;  // bytes, by system calls: files and sockets
  double resident_mb = 0, peak_mb = 0;
};
Usage usage(const std::vector<pid_t>& pids);

/// A fleet that `muster up` runs, with one target `cloud` of the FAKE namespace that is scanned when it is asked for.
class BenchFleet : public test::LiveFleet {
 public:
  /// `cloud`    more of the target's config, YAML flow style: `resources: 10, page: 64`
  /// `url`      of its bus; empty: it starts one
  BenchFleet(const std::string& cloud, int workers, std::uint32_t slots, const std::string& url = {});
  /// Seconds that a run over the target takes, as its report says; throws unless it is complete. `report`: of that run
  double scan(Json* report = nullptr) const;
  /// The same of the first run with another config, the fleet started anew with the store that it has.
  double change(const std::string& cloud, Json* report);
  /// Until nothing is left to be published.
  void settle() const;
  [[nodiscard]] Usage coordinator() const { return usage(processes("coordinator")); }
  [[nodiscard]] Usage server() const { return usage(processes("nats-server")); }
  /// One more worker, as if from another machine.
  [[nodiscard]] pid_t start_worker() const;
  /// Seconds that `muster WORDS` takes; its output goes to `out`. Throws unless it ends with 0. `peak_mb`: its memory
  double timed(const std::vector<std::string>& words, const std::filesystem::path& out = "/dev/null",
               double* peak_mb = nullptr) const;

 private:
  void begin();
  int workers_;
  std::uint32_t slots_;
  std::string url_;
};

/// Starts `PROGRAM WORDS --url URL` of this build.
pid_t start_program(const std::string& program, const std::vector<std::string>& words, const std::string& url,
                    const std::filesystem::path& out);
/// Runs it to its end; what it printed. Throws when it fails.
nlohmann::json run_program(const std::string& program, const std::vector<std::string>& words, const std::string& url);

/// Kills the processes at its end.
struct Processes {
  ~Processes();
  std::vector<pid_t> pids{};
};

void discover(const Options& options, Report& report);          // discover.cpp: discover-fresh, discover-unchanged
void discover_read(const Options& options, Report& report);     // discover.cpp
void discover_million(const Options& options, Report& report);  // discover.cpp: discover-1m
void events(const Options& options, Report& report);            // discover.cpp
void jobs(const Options& options, Report& report);              // jobs.cpp
void peers(const Options& options, Report& report);             // jobs.cpp
void scale(const Options& options, Report& report);             // jobs.cpp
void idle(const Options& options, Report& report);              // fleets.cpp
void start(const Options& options, Report& report);             // fleets.cpp
void plan(const Options& options, Report& report);              // plan.cpp

}  // namespace muster::bench
