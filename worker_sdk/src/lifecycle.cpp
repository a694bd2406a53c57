#include "lifecycle.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "contract.h"
#include "redacting_log.h"

namespace muster {
namespace {

constexpr Millis kInitializeLimit{60'000};
constexpr Millis kHealthLimit{5000};

std::string seconds_of(TimePoint begun, TimePoint now) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now - begun).count()) + " s";
}

}  // namespace

/// What a function gets, and what is to be hidden of what it says.
class Lifecycle::CallContext final : public InitializeContext {
 public:
  CallContext(std::string_view function, std::stop_token stop, TimePoint deadline, const SecretPolicy& secrets,
              Redactor redactor, const spdlog::logger& parent)
      : stop_(std::move(stop)),
        deadline_(deadline),
        secrets_(secrets),
        redactor_(std::move(redactor)),
        log_(redacting_logger(parent, "function=" + std::string(function) + " ", redactor_)) {}

  [[nodiscard]] std::stop_token stop_token() const override { return stop_; }
  [[nodiscard]] TimePoint deadline() const override { return deadline_; }
  [[nodiscard]] spdlog::logger& log() override { return *log_; }

  [[nodiscard]] std::optional<std::string> env(const std::string& name) const override {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  Result<std::string> credential(const std::string& name) override {
    auto value = read_credential(name, secrets_);
    if (value) redactor_.add(Redactor({*value}));
    return value;
  }
  [[nodiscard]] const Redactor& redactor() const { return redactor_; }

 private:
  const std::stop_token stop_;
  const TimePoint deadline_;
  const SecretPolicy& secrets_;
  Redactor redactor_;
  const std::unique_ptr<spdlog::logger> log_;
};

Lifecycle::Lifecycle(const Plugin& plugin, SecretPolicy secrets, std::shared_ptr<JobRunner> jobs, Executor& executor,
                     std::shared_ptr<spdlog::logger> log)
    : plugin_(plugin),
      secrets_(std::move(secrets)),
      jobs_(std::move(jobs)),
      executor_(executor),
      log_(std::move(log)) {}

std::string_view Lifecycle::name(Function function) {
  switch (function) {
    case Function::kInitialize:
      return "initialize";
    case Function::kHealth:
      return "health";
    case Function::kCleanup:
      return "cleanup";
  }
  return "unknown";
}

Result<void> Lifecycle::run(const Plugin& plugin, Function function, CallContext& context) {
  switch (function) {
    case Function::kInitialize:
      return plugin.run_initialize(context);
    case Function::kHealth:
      return plugin.run_health(context);
    case Function::kCleanup:
      return plugin.run_cleanup(context);
  }
  return {};
}

void Lifecycle::begin(Function function, TimePoint now, TimePoint deadline) {
  const Call& call = call_.emplace(Call{.function = function, .begun = now, .deadline = deadline});
  auto work = [function, deadline, stop = call.stop.get_token(), answer = call.answer, &plugin = plugin_,
               secrets = secrets_, jobs = jobs_, log = log_] {
    CallContext context(name(function), stop, deadline, secrets, jobs->redactor(), *log);
    answer->result = run(plugin, function, context);
    answer->credentials = context.redactor();
    if (!answer->result) {
      std::string& message = answer->result.error().message;
      Redactor redactor = context.redactor();
      redactor.add(jobs->redactor());  // jobs may have been given more meanwhile
      redactor.redact(message);
      shorten_message(message);
    }
    return Outcome{};
  };
  executor_.submit({Token(std::string(kToken)), std::move(work)});
}

void Lifecycle::initialize(TimePoint now) {
  if (plugin_.initialize_) {
    begin(Function::kInitialize, now, now + kInitializeLimit);
  } else {
    initialized_ = true;
  }
}

void Lifecycle::on_initialized(const Call& call) {
  if (call.answer->result) {
    initialized_ = true;
    jobs_->keep(call.answer->credentials);
    return;
  }
  failed_ = true;
  const Error& error = call.answer->result.error();
  log_->error(
      "cannot initialize code={}: {}. The worker ends without having announced itself; start it again when this is "
      "mended",
      errc_name(error.code), error.message);
}

bool Lifecycle::checks_health() const {
  return plugin_.health_ != nullptr;
}

void Lifecycle::check_health(TimePoint now) {
  if (!call_) begin(Function::kHealth, now, now + kHealthLimit);
}

std::string Lifecycle::health(TimePoint now) const {
  if (!call_ || call_->function != Function::kHealth || !call_->late) return reason_;
  return "the health check has not answered for " + seconds_of(call_->begun, now);
}

void Lifecycle::set_health(std::string reason) {
  if (reason == reason_) return;
  if (reason.empty()) {
    log_->info("healthy again");
  } else {
    log_->warn("unhealthy: {}", reason);
  }
  reason_ = std::move(reason);
}

void Lifecycle::on_checked(const Call& call, TimePoint now) {
  const Result<void>& result = call.answer->result;
  if (!result) {
    set_health(result.error().message.empty() ? std::string(errc_name(result.error().code)) : result.error().message);
  } else {  // what is well after the stop token was set proves little
    set_health(call.late ? "the health check took " + seconds_of(call.begun, now) : "");
  }
}

void Lifecycle::on_late(const Call& call, TimePoint now) {
  if (call.function == Function::kInitialize) {
    failed_ = true;
    log_->error("initialize has not returned for {}: the worker ends without having announced itself",
                seconds_of(call.begun, now));
  } else if (call.function == Function::kHealth) {
    set_health(health(now));
  }
}

void Lifecycle::end(TimePoint now, TimePoint limit) {
  if (failed_) return;
  ending_ = true;
  limit_ = limit;
  if (call_) {
    call_->stop.request_stop();
  } else {
    clean_up(now);
  }
  tick(now);
}

void Lifecycle::clean_up(TimePoint now) {
  if (initialized_ && plugin_.cleanup_ && now < limit_) return begin(Function::kCleanup, now, limit_);
  give_up();
}

void Lifecycle::give_up() {
  ending_ = false;
  const bool cleaned = call_ && call_->function == Function::kCleanup;
  if (initialized_ && plugin_.cleanup_ && !cleaned) {
    log_->error("cleanup is left out: other functions of the plugin do not return");
  }
}

void Lifecycle::complete(TimePoint now) {
  if (!call_) return;
  const Call call = std::move(*call_);
  call_.reset();
  if (call.function == Function::kInitialize) on_initialized(call);
  if (call.function == Function::kHealth && !ending_) on_checked(call, now);
  if (call.function == Function::kCleanup) {
    if (!call.answer->result) log_->error("cleanup failed: {}", call.answer->result.error().message);
    ending_ = false;
  }
  if (ending_) clean_up(now);
}

void Lifecycle::tick(TimePoint now) {
  if (call_ && !call_->late && now >= call_->deadline) {
    call_->late = true;
    call_->stop.request_stop();
    on_late(*call_, now);
  }
  if (!ending_ || now < limit_) return;
  log_->error("{} has not returned for {}: the process ends without waiting any longer", name(call_->function),
              seconds_of(call_->begun, now));
  give_up();
}

TimePoint Lifecycle::next_due() const {
  const TimePoint deadline = call_ && !call_->late ? call_->deadline : TimePoint::max();
  return ending_ ? std::min(deadline, limit_) : deadline;
}

}  // namespace muster
