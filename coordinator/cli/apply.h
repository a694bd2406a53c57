#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/verbs.h"

/// The verbs that carry declarations out: plan, ask, watch. Each returns the exit status.
namespace muster::cli {

struct ApplyOptions {
  std::vector<std::string> files;  // declarations; `-` is standard input
  std::string mode = "reconcile";  // reconcile, patch, destroy
  std::map<std::string, std::string> variables;
  std::vector<std::string> only, exclude;  // names of resources
  std::string plan_in, plan_out;
  bool refresh = false;  // what the stacks have is read again before it is planned
  bool plan_only = false;
  bool yes = false;
  bool refuse_busy = false;
};
/// Asks a question on the terminal; none: there is no terminal to ask on.
using Ask = std::function<std::optional<bool>(const std::string& question)>;
/// Asks whether to go ahead, after what the screen shows. The exit status where nothing is to be done; none: go ahead.
std::optional<int> declined(Screen& screen, const Ask& ask, const std::string& question);
int apply(Client& client, Screen& screen, const ApplyOptions& options, const Ask& ask, const Interrupted& interrupted);

int commands(Client& client, Screen& screen, std::uint64_t limit);
int command(Client& client, Screen& screen, const std::string& id);
int cancel(Client& client, Screen& screen, const std::string& id, bool force);

// forget.cpp
struct ForgetOptions {
  std::string stack;
  std::vector<std::string> names;  // of resources
  std::string target;              // only what is on it
  bool all = false;
  bool plan_only = false;
  bool yes = false;
};
int forget(Client& client, Screen& screen, const ForgetOptions& options, const Ask& ask);

/// Writes discovered resources as declarations, in YAML (or JSON).
int export_resources(Client& client, Screen& screen, const ResourcesOptions& options, const std::string& stack);

}  // namespace muster::cli
