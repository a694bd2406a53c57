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
};

/// The command line and environment of a worker. The URL goes by the environment, as it may hold a password.
/// `config`   nats, prefix and data_dir are used
Command worker_command(const WorkerStart& start, const Config& config, Verbosity verbosity, Environment env);

/// A worker of a configuration as `muster up` starts it: it may resolve what its entry allows and what the
/// configuration's targets refer to.
/// errors   kNotFound: no such plugin; kAccessDenied: a reference in its `env` cannot be resolved
Result<Command> configured_worker(const WorkerConfig& worker, const Config& config, Verbosity verbosity,
                                  const Environment& env);

}  // namespace muster::cli
