#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schema/messages.h"
#include "worker_sdk/bus/nats_bus.h"

namespace muster {

/// One mistake in a configuration; `line` and `column` count from 1, 0 where the mistake has no place in the file
/// (environment, flags).
struct ConfigMistake {
  std::string file;
  int line = 0;
  int column = 0;
  std::string message;  // what is wrong and what would be right
  bool operator==(const ConfigMistake&) const = default;
};
std::string to_string(const ConfigMistake& mistake);  // file:line:column: message

/// Whether what a folder of plugins has must be in its list of checksums.
enum class Verify { kIfListed, kRequired };

/// What one process may use.
struct ProcessLimits {
  std::uint64_t memory = 0;  // bytes; 0: no limit
  double cpu = 0;            // processors; 0: no limit
  bool operator==(const ProcessLimits&) const = default;
};
inline constexpr std::uint64_t kLeastMemory = 16ULL << 20;
inline constexpr std::uint64_t kMostMemory = 1ULL << 50;
inline constexpr double kLeastCpu = 0.01;
inline constexpr double kMostCpu = 1024;

struct WorkerConfig {
  std::string plugin;  // name or path; empty: there is a folder
  std::string folder;  // each executable file in it is a plugin
  Verify verify = Verify::kIfListed;
  std::string pool = "default";
  int count = 1;  // 0..256 processes, of each plugin; with a `max` at the fewest
  int max = 0;    // 1..256, as many as it takes up to that; 0: `count`
  int slots = 4;  // 1..1024 jobs at once in each
  std::map<std::string, std::string> env;
  std::vector<std::string> allow_env;    // names or patterns (PG_*) that this worker may resolve
  std::vector<std::string> allow_files;  // directories
  ProcessLimits limits;                  // of each process
};

struct TargetConfig {
  std::string name;
  std::string ns;
  std::string pool = "default";
  Document config;  // secret references are parsed out of it
  bool discover = true;
  std::vector<MatchFilter> filters;
  Millis interval{0};  // 0: discovery.interval
  std::string renamed_from;
};

struct RetryConfig {
  int attempts = 5;  // of one job, for retriable errors
  Millis base{200};  // first back-off; doubles, full jitter
  Millis max{30'000};
};

struct LimitsConfig {
  double requests_per_second = 0;  // of a namespace on a target; 0: what the plugin announces
  std::uint64_t event_bytes = 1ULL << 30;
  Millis event_age{7LL * 24 * 3600 * 1000};
  int jobs_in_flight = 1024;                      // of one namespace and pool
  std::uint64_t resources_per_type = 10'000'000;  // of one target, that a run lists
  Millis run_deadline{24LL * 3600 * 1000};
  Millis job_deadline{120'000};
};

struct Config {
  NatsOptions nats;  // url empty: not configured
  std::string prefix = "muster";
  std::string data_dir;  // empty: the default of the user
  std::string store;     // empty: sqlite in the data directory
  std::vector<WorkerConfig> workers;
  std::vector<TargetConfig> targets;
  Millis discovery_interval{5 * 60'000};  // 0: only when asked
  Millis drift_interval{0};               // 0: off
  RetryConfig retry;
  LimitsConfig limits;
};

/// What a configuration gave, or every mistake in it.
struct ConfigResult {
  Config config;
  std::vector<ConfigMistake> mistakes;  // empty: config is good
};

/// Reads and checks a configuration: the YAML text, then MUSTER_* of `env`.
/// `file`   name for messages
ConfigResult parse_config(const std::string& yaml, const std::string& file,
                          const std::map<std::string, std::string>& env);

/// The same from a file; one that cannot be read is a mistake like any other. `path` empty: no file, defaults only.
ConfigResult load_config(const std::string& path, const std::map<std::string, std::string>& env);

/// The whole of a file.
/// errors   kNotFound, with the reason
Result<std::string> read_file(const std::string& path);

/// `250ms`, `10s`, `5m`, `1h`, `7d`.
std::optional<Millis> parse_duration(std::string_view text);

/// `512MiB`, `2GiB`, `65536KiB`, `1048576`.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace muster
