#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/fwd.h>

#include "executor.h"
#include "journal.h"
#include "muster/worker.h"
#include "secrets.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// How long a job may take, and who may end it.
struct Permit {
  std::stop_token stop;
  TimePoint deadline;
  /// Of a mutation: from then on it may not be begun.
  TimePoint lease_end = TimePoint::max();
  /// Why the stop token is set, before it is.
  std::shared_ptr<const std::atomic<Errc>> why = std::make_shared<std::atomic<Errc>>(Errc::kCancelled);
};

/// Runs jobs on a plugin: resolves secrets, calls the plugin, redacts what it says, keeps the results of mutations.
/// Thread: any, several at once. Owned by shared pointers.
class JobRunner : public std::enable_shared_from_this<JobRunner> {
 public:
  /// `journal`   null: no mutation may be run
  /// `plugin` and `clock` outlive the runner; the clock is read right before a mutation is begun, and between pages.
  JobRunner(const Plugin& plugin, SecretPolicy secrets, std::shared_ptr<spdlog::logger> log,
            std::shared_ptr<Journal> journal, const Clock& clock, WorkerId worker);

  /// Never throws for what plugin code does. The outcome of a mutation that was begun is in the journal.
  Outcome run(const Job& job, const Permit& permit, TimePoint now);

  /// Begins a job that takes no thread while it waits, and ends it through calls->finish(). False: it is to be run(),
  /// for its function is no asynchronous one. Thread: the loop's.
  bool begin(const std::shared_ptr<const Job>& job, const Permit& permit, TimePoint now,
             const std::shared_ptr<LoopCalls>& calls);

  /// What initialize() was given, for redaction in all jobs. Before the first job is run.
  void keep(Redactor credentials) { credentials_ = std::move(credentials); }
  /// Of the credentials and of all secrets that jobs were given lately.
  [[nodiscard]] Redactor redactor();

 private:
  class AsyncRun;
  struct Config {
    Json value;
    Redactor redactor;
  };
  struct Cached {
    Document document;
    std::shared_ptr<const Config> config;
    TimePoint expires;
  };
  /// A job with its secrets filled in, and what is to be redacted in what comes of it.
  struct Filled {
    Job job;
    Redactor redactor;
  };

  /// Null: it has to be resolved.
  std::shared_ptr<const Config> config_at_hand(const Target& target, TimePoint now);
  Result<std::shared_ptr<const Config>> config_of(const Target& target, TimePoint now);
  Result<Filled> fill(const Job& job, const Redactor& redactor, TimePoint now);
  /// `known`   what was said on the bus of the names in `job`, which may have its secrets filled in
  Outcome call(const Job& job, const Config& config, const Redactor& redactor, const Permit& permit,
               std::string_view known) const;
  Outcome run_mutation(const Job& job, const Config& config, const Permit& permit, TimePoint now);

  const Plugin& plugin_;
  const SecretPolicy secrets_;
  const std::shared_ptr<spdlog::logger> log_;
  const std::shared_ptr<Journal> journal_;
  const Clock& clock_;
  const WorkerId worker_;
  Redactor credentials_;
  std::mutex mutex_;                  // of the members below
  std::map<TargetId, Cached> cache_;  // a small job does not parse JSON; secrets are read anew each minute
  std::deque<std::pair<TimePoint, Redactor>> declared_;  // secrets of mutations, and until when they are remembered
};

/// What a coordinator gets of a job that has ended.
JobReply reply_of(const Job& job, const WorkerId& worker, const Outcome& outcome);

/// The answer to a mutation that is refused before anything is done. THROTTLING, for that is the code which says both
/// that nothing was done and that it may be tried again, here or by another worker of the pool.
Error refused(std::string why);

}  // namespace muster
