#include "job_runner.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "contract.h"
#include "redacting_log.h"

namespace muster {
namespace {

constexpr Millis kConfigTtl{60'000};
constexpr std::size_t kMaxConfigs = 256;

class RunningContext final : public JobContext {
 public:
  RunningContext(const Job& job, std::stop_token stop, TimePoint deadline, const Redactor& redactor,
                 const spdlog::logger& parent)
      : job_(job), stop_(std::move(stop)), deadline_(deadline), redactor_(redactor), parent_(parent) {}

  [[nodiscard]] std::stop_token stop_token() const override { return stop_; }
  [[nodiscard]] TimePoint deadline() const override { return deadline_; }
  void count_calls(std::uint32_t calls) override { calls_ += calls; }
  [[nodiscard]] std::uint32_t calls() const { return calls_; }

  [[nodiscard]] spdlog::logger& log() override {
    std::call_once(log_made_, [this] {
      auto keys = "job=" + job_.id.value + " token=" + job_.token.value + " target=" + job_.target.name + " ";
      log_ = redacting_logger(parent_, std::move(keys), redactor_);
    });
    return *log_;
  }

 private:
  const Job& job_;
  const std::stop_token stop_;
  const TimePoint deadline_;
  const Redactor& redactor_;
  const spdlog::logger& parent_;
  std::atomic<std::uint32_t> calls_ = 0;
  std::once_flag log_made_;  // most jobs log nothing
  std::unique_ptr<spdlog::logger> log_;
};

}  // namespace

JobRunner::JobRunner(const Plugin& plugin, SecretPolicy secrets, std::shared_ptr<spdlog::logger> log)
    : plugin_(plugin), secrets_(std::move(secrets)), log_(std::move(log)) {}

Outcome JobRunner::run(const Job& job, std::stop_token stop, TimePoint deadline, TimePoint now) {
  auto config = config_of(job.target, now);
  if (!config) return {std::move(config.error()), 0};
  const Config& resolved = **config;
  RunningContext context(job, std::move(stop), deadline, resolved.redactor, *log_);
  Outcome outcome{plugin_.run(job, resolved.value, context), 0};
  outcome.calls = std::max(context.calls(), 1U);
  resolved.redactor.redact(outcome.result);
  shorten_messages(outcome.result);
  return outcome;
}

Redactor JobRunner::redactor() {
  Redactor all = credentials_;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, cached] : cache_) all.add(cached.config->redactor);
  return all;
}

Result<std::shared_ptr<const JobRunner::Config>> JobRunner::config_of(const Target& target, TimePoint now) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = cache_.find(target.id);
    const bool fresh = found != cache_.end() && found->second.expires > now;
    if (fresh && found->second.document == target.config) return found->second.config;
  }
  auto resolved = resolve(target.config, secrets_);  // outside the lock: it may read files
  if (!resolved) return std::move(resolved.error());
  Redactor redactor(resolved->secrets);
  redactor.add(credentials_);
  auto config = std::make_shared<const Config>(Config{std::move(resolved->value), std::move(redactor)});

  const std::lock_guard lock(mutex_);
  std::erase_if(cache_, [&](const auto& entry) { return entry.second.expires <= now; });
  if (cache_.size() >= kMaxConfigs) {
    cache_.erase(std::min_element(cache_.begin(), cache_.end(),
                                  [](const auto& a, const auto& b) { return a.second.expires < b.second.expires; }));
  }
  cache_[target.id] = {target.config, config, now + kConfigTtl};
  return config;
}

}  // namespace muster
