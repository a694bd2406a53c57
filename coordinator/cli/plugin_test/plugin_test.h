#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/output.h"
#include "coordinator/cli/settings.h"
#include "coordinator/cli/verbs.h"

namespace muster::cli {

struct PluginTestOptions {
  std::string plugin;               // name or path
  std::string target;               // file
  std::string fixtures;             // directory
  std::vector<std::string> types;   // empty: all
  std::vector<std::string> checks;  // of types, by name; empty: all
};

/// Tests a plugin's executable against the contract, with a bus and workers of its own, and writes a row for each
/// check. returns   0 nothing failed, 1 something did or the test was stopped, 2 bad input
int plugin_test(Screen& screen, const PluginTestOptions& options, const Environment& env,
                const Interrupted& interrupted);

}  // namespace muster::cli
