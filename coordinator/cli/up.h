#pragma once

#include "coordinator/cli/output.h"
#include "coordinator/cli/settings.h"

namespace muster::cli {

struct UpOptions {
  Config config;  // good, data_dir set; nats.url empty: an own server is started
  Flags flags;    // as given, for the coordinator
  Environment env;
  Millis timeout{5000};
  bool once = false;
};

/// Runs everything on this machine until SIGINT or SIGTERM, or with `once` until the first run has ended.
/// returns   exit status: 0 stopped (once: the run was complete), 1 could not start (once: partial or failed), 2 a
/// plugin
///           of the configuration cannot be found
int up(const UpOptions& options, Screen& screen);

}  // namespace muster::cli
