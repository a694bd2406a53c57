#pragma once

#include <memory>

#include <spdlog/fwd.h>

#include "coordinator/config.h"

namespace muster {

/// Runs a coordinator until SIGINT or SIGTERM: opens the store, connects, serves.
/// `config`   validated; data_dir and nats.url are set
/// returns    exit status: 0 asked to stop, 1 could not start (the log says why)
int run_coordinator(const Config& config, const std::shared_ptr<spdlog::logger>& log);

}  // namespace muster
