#pragma once

#include "coordinator/cli/output.h"
#include "coordinator/cli/plugin_host.h"
#include "coordinator/config.h"

namespace muster::cli {

/// `muster worker --folder`: keeps the workers of an entry running until a signal asks to stop; SIGHUP looks again.
/// `config`   where the fleet is
/// returns    the exit status
int host_plugins(PluginEntry entry, const Config& config, Screen& screen);

/// How long a loop that turns a supervisor, a host and its reports may sleep: at most a second.
class PluginReports;
Millis longest_sleep(const PluginHost& host, const PluginReports& reports, TimePoint now);

}  // namespace muster::cli
