#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/child.h"
#include "coordinator/cli/output.h"

namespace muster::cli {

/// How a plugin is started as a worker.
struct WorkerStart {
  std::string executable;
  std::string pool = "default";
  int slots = 4;
  std::vector<std::string> allow_env, allow_files;
  std::string secret_dir;
  std::string state_dir{};  // for results of changes; empty: `workers` in the data directory
  ProcessLimits limits{};
};

/// The command line and environment of a worker. The URL goes by the environment, as it may hold a password.
/// `config`   nats, prefix and data_dir are used
Command worker_command(const WorkerStart& start, const Config& config, Verbosity verbosity, Environment env);

/// Makes `command` one of the plugin whose executable that is: argv[0] and the name for people.
void set_executable(Command& command, const std::string& executable);

/// A worker of a configuration as `muster up` starts it: it may resolve what its entry allows and what the
/// configuration's targets refer to. For a folder of plugins: with the folder in place of the executable.
/// errors   kNotFound: no such plugin; kAccessDenied: a reference in its `env` cannot be resolved
Result<Command> configured_worker(const WorkerConfig& worker, const Config& config, Verbosity verbosity,
                                  const Environment& env);

}  // namespace muster::cli
