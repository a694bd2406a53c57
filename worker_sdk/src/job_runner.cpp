#include "job_runner.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "contract.h"

namespace muster {
namespace {

constexpr Millis kConfigTtl{60'000};
constexpr std::size_t kMaxConfigs = 256;

/// Passes lines on to the worker's own sinks, with the job's keys before and without its secrets.
class JobSink final : public spdlog::sinks::sink {
 public:
  JobSink(std::vector<spdlog::sink_ptr> sinks, std::string keys, const Redactor& redactor)
      : sinks_(std::move(sinks)), keys_(std::move(keys)), redactor_(redactor) {}

  void log(const spdlog::details::log_msg& line) override {
    std::string text = presentable({line.payload.data(), line.payload.size()});
    redactor_.redact(text);
    text.insert(0, keys_);
    spdlog::details::log_msg redacted = line;
    redacted.payload = text;
    for (const auto& next : sinks_) {
      if (next->should_log(line.level)) next->log(redacted);
    }
  }
  void flush() override {
    for (const auto& next : sinks_) next->flush();
  }
  void set_pattern(const std::string&) override {}  // the worker's own sinks have one
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  std::vector<spdlog::sink_ptr> sinks_;
  std::string keys_;
  const Redactor& redactor_;
};

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
      log_ = std::make_unique<spdlog::logger>(parent_.name(),
                                              std::make_shared<JobSink>(parent_.sinks(), std::move(keys), redactor_));
      log_->set_level(parent_.level());
      log_->flush_on(parent_.flush_level());
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

Result<std::shared_ptr<const JobRunner::Config>> JobRunner::config_of(const Target& target, TimePoint now) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = cache_.find(target.id);
    const bool fresh = found != cache_.end() && found->second.expires > now;
    if (fresh && found->second.document == target.config) return found->second.config;
  }
  auto resolved = resolve(target.config, secrets_);  // outside the lock: it may read files
  if (!resolved) return std::move(resolved.error());
  auto config = std::make_shared<const Config>(Config{std::move(resolved->value), Redactor(resolved->secrets)});

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
