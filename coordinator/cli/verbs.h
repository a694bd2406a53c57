#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/client.h"
#include "coordinator/cli/output.h"

/// The verbs that talk to a running fleet. Each returns the exit status.
namespace muster::cli {

/// Asked between two steps of a wait: whether the user wants to stop waiting.
using Interrupted = std::function<bool()>;

// inventory.cpp
struct ResourcesOptions {
  std::string text, target, type, stack, state;
  std::optional<bool> managed;
  bool drifted = false;
  std::uint64_t limit = 0;  // 0: all
};
int resources(Client& client, Screen& screen, const ResourcesOptions& options);
/// `which`   an id, or TARGET/TYPE/NATIVE-ID
int resource(Client& client, Screen& screen, const std::string& which, bool history, const std::string& at);
/// The inventory's summary: target, type, count.
int counts(Client& client, Screen& screen);

// fleet.cpp
int targets(Client& client, Screen& screen);
int accept_target(Client& client, Screen& screen, const std::string& name);
int plugins(Client& client, Screen& screen, const std::string& ns);
int workers(Client& client, Screen& screen);
int pools(Client& client, Screen& screen);
int drain_worker(Client& client, Screen& screen, const std::string& id);
int types(Client& client, Screen& screen, const std::string& ns);
int schema(Client& client, Screen& screen, const std::string& type);
int status(Client& client, Screen& screen);

// runs.cpp
struct DiscoverOptions {
  std::vector<std::string> targets, types;
  bool wait = false;
  std::vector<std::string> stacks{};  // only what these have is read again
};
int discover(Client& client, Screen& screen, const DiscoverOptions& options, const Interrupted& interrupted);
int runs(Client& client, Screen& screen, std::uint64_t limit);
int run(Client& client, Screen& screen, const std::string& id);
/// Waits for the end of a run and shows how it goes. A coordinator that is away for less than 30 s is waited for.
/// returns   the run as the API tells it; none when `interrupted`
Result<std::optional<std::string>> await_run(Client& client, Screen& screen, const std::string& id,
                                             const Interrupted& interrupted);
/// The same of a run and of those that list what it could not find any more.
/// returns   their reports, its own first; none when `interrupted`
Result<std::optional<std::vector<std::string>>> await_runs(Client& client, Screen& screen, const std::string& id,
                                                           const Interrupted& interrupted);
/// 0 for a complete run, 1 for any other.
int run_status(const Json& run);

// events.cpp
struct EventsOptions {
  std::string since;  // sequence number or time, empty: the oldest that is kept (with follow: from now on)
  std::string type;   // pattern, empty: all
  std::uint64_t limit = 0;
  bool follow = false;
};
int events(Client& client, Screen& screen, const EventsOptions& options, const Interrupted& interrupted);
/// Whether a CloudEvents type (`muster.resource.changed`) matches a shell pattern, given with or without `muster.`.
bool matches_event_type(const std::string& pattern, const std::string& type);
/// `text` as an RFC 3339 time, where it is one or a duration: how long before `now` (the epoch at the earliest).
Result<std::string> time_before(std::string_view text, WallTime now);

/// Reports an error on `err` and returns its exit status.
int report(Screen& screen, const Error& error);

}  // namespace muster::cli
