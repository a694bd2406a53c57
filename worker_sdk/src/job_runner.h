#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include <spdlog/fwd.h>

#include "executor.h"
#include "muster/worker.h"
#include "secrets.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// Runs jobs on a plugin: resolves the target's secrets, calls the plugin, redacts what it says.
/// Thread: any, several at once.
class JobRunner {
 public:
  /// `plugin` outlives the runner.
  JobRunner(const Plugin& plugin, SecretPolicy secrets, std::shared_ptr<spdlog::logger> log);

  /// Never throws for what plugin code does.
  Outcome run(const Job& job, std::stop_token stop, TimePoint deadline, TimePoint now);

  /// What initialize() was given, for redaction in all jobs. Before the first job is run.
  void keep(Redactor credentials) { credentials_ = std::move(credentials); }
  /// Of the credentials and of all secrets that jobs were given lately.
  [[nodiscard]] Redactor redactor();

 private:
  struct Config {
    Json value;
    Redactor redactor;
  };
  struct Cached {
    Document document;
    std::shared_ptr<const Config> config;
    TimePoint expires;
  };

  Result<std::shared_ptr<const Config>> config_of(const Target& target, TimePoint now);

  const Plugin& plugin_;
  const SecretPolicy secrets_;
  const std::shared_ptr<spdlog::logger> log_;
  Redactor credentials_;
  std::mutex mutex_;                  // of cache_
  std::map<TargetId, Cached> cache_;  // a small job does not parse JSON; secrets are read anew each minute
};

}  // namespace muster
