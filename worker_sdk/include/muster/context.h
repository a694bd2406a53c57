#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <spdlog/fwd.h>

#include "schema/result.h"

namespace muster {

/// What every function of a plugin gets. Valid during the call, on its thread.
class Context {
 public:
  virtual ~Context() = default;
  /// Set when nobody waits for the call any longer: it was cancelled, its deadline has come, or the worker ends. Return
  /// soon; whatever is returned then is dropped, but for what came of a change. Callbacks registered with it run on the
  /// thread that keeps the worker's leases: they must not block.
  [[nodiscard]] virtual std::stop_token stop_token() const = 0;
  [[nodiscard]] virtual std::chrono::steady_clock::time_point deadline() const = 0;
  /// Logger whose lines say what they belong to; resolved secrets and credentials are redacted.
  [[nodiscard]] virtual spdlog::logger& log() = 0;
};

/// What the function of a job gets.
class JobContext : public Context {
 public:
  /// Counts calls to the provider, for rate limits; a function that counts none is charged one.
  virtual void count_calls(std::uint32_t calls) = 0;
};

/// What initialize() gets: the worker's own configuration and credentials, which are the same for all of its targets.
class InitializeContext : public Context {
 public:
  /// A setting: variable `name` of the worker's environment (`workers: env:` in muster.yaml). Unset: nullopt.
  [[nodiscard]] virtual std::optional<std::string> env(const std::string& name) const = 0;
  /// A credential: file `name` in the worker's secret directory, else variable `name`, if the worker's command line
  /// allows it. From then on it is redacted from all that functions answer and log through their contexts.
  /// errors   kAccessDenied: there is none that may be used; the message says where it could be put
  virtual Result<std::string> credential(const std::string& name) = 0;
};

}  // namespace muster
