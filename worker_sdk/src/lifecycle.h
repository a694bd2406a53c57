#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <spdlog/fwd.h>

#include "executor.h"
#include "job_runner.h"
#include "muster/worker.h"
#include "secrets.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// The part of WorkerCore that calls initialize, health and cleanup of its plugin: one at a time, beside the slots,
/// none waited for without end. No clock, no threads.
class Lifecycle {
 public:
  static constexpr std::string_view kToken = "no job";  // of its work; a job's token has no spaces

  /// `plugin` and `executor` outlive the object and all of its work; `jobs` learns the credentials.
  Lifecycle(const Plugin& plugin, SecretPolicy secrets, std::shared_ptr<JobRunner> jobs, Executor& executor,
            std::shared_ptr<spdlog::logger> log);

  /// Begins; initialized() or failed() later, or at once where the plugin has no such function.
  void initialize(TimePoint now);
  [[nodiscard]] bool initialized() const { return initialized_; }
  [[nodiscard]] bool failed() const { return failed_; }

  [[nodiscard]] bool checks_health() const;
  /// Begins a check, unless one still runs.
  void check_health(TimePoint now);
  [[nodiscard]] bool ill() const { return !reason_.empty(); }
  /// Why it is ill; empty: it is not.
  [[nodiscard]] std::string health(TimePoint now) const;

  /// Stops what runs, then cleans up, if it was initialized: ending() until that is done or `limit` has come.
  void end(TimePoint now, TimePoint limit);
  [[nodiscard]] bool ending() const { return ending_; }

  /// The executor's answer to its work.
  void complete(TimePoint now);
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_due() const;
  /// Whether a function of the plugin has not returned.
  [[nodiscard]] bool runs() const { return call_.has_value(); }

 private:
  enum class Function : std::uint8_t { kInitialize, kHealth, kCleanup };
  struct Answer {
    Result<void> result;
    Redactor credentials;
  };
  struct Call {
    Function function = Function::kHealth;
    TimePoint begun, deadline;
    bool late = false;  // the deadline has come
    std::stop_source stop{};
    std::shared_ptr<Answer> answer = std::make_shared<Answer>();
  };
  class CallContext;

  void begin(Function function, TimePoint now, TimePoint deadline);
  static Result<void> run(const Plugin& plugin, Function function, CallContext& context);
  void on_initialized(const Call& call);
  void on_checked(const Call& call, TimePoint now);
  void on_late(const Call& call, TimePoint now);
  void set_health(std::string reason);
  void clean_up(TimePoint now);
  void give_up();
  static std::string_view name(Function function);

  const Plugin& plugin_;
  const SecretPolicy secrets_;
  const std::shared_ptr<JobRunner> jobs_;
  Executor& executor_;
  const std::shared_ptr<spdlog::logger> log_;

  std::optional<Call> call_;
  bool initialized_ = false;
  bool failed_ = false;
  std::string reason_;
  bool ending_ = false;
  TimePoint limit_ = TimePoint::max();  // of ending
};

}  // namespace muster
