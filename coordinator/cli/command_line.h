#pragma once

#include <functional>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "coordinator/cli/app.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/settings.h"

namespace muster::cli {

/// The flags that every verb has.
struct CommonFlags {
  Flags flags;
  std::string format = "table";
  std::string timeout = "5s";
  bool verbose = false;
  bool quiet = false;
};

/// What a verb gets when it is its turn.
struct Session {
  CommonFlags common;
  Environment env;
  Screen& screen;
  CoordinatorMain coordinator = nullptr;
};
using Action = std::function<int(Session&)>;

/// The command line as it is declared: parsing it fills in `common` and `action`.
struct CommandLine {
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App app;
  CommonFlags common;
  Action action;

  /// A verb with the common flags. `example` stands at the end of its help.
  CLI::App* verb(CLI::App& parent, const std::string& name, const std::string& description, const std::string& example,
                 const std::function<Action(CLI::App&)>& declare);

 private:
  void add_common(CLI::App& to);
};

/// A number that is at least 1.
extern const CLI::Validator kAtLeastOne;

// auth_verbs.cpp, fleet_verbs.cpp, plugin_verbs.cpp, process_verbs.cpp
void declare_auth_verbs(CommandLine& line);
void declare_fleet_verbs(CommandLine& line);
void declare_plugin_verbs(CommandLine& line);
void declare_process_verbs(CommandLine& line);

}  // namespace muster::cli
