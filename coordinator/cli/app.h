#pragma once

#include <memory>

#include <spdlog/fwd.h>

#include "coordinator/config.h"

namespace muster::cli {

/// What `muster coordinator` runs: see run_coordinator().
using CoordinatorMain = int (*)(const Config& config, const std::shared_ptr<spdlog::logger>& log);

/// The `muster` command. Returns the exit status: 0 done, 1 failed or refused, 2 bad usage or input, 3 nobody answered.
int run(int argc, char** argv, CoordinatorMain coordinator);

}  // namespace muster::cli
