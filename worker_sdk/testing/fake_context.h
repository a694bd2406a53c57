#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "muster/worker.h"

namespace muster::testing {

/// What a plugin's function gets beside its request, for tests: no bus, no clock, log lines kept. Also for
/// Plugin::run_health() and run_cleanup().
class FakeContext final : public JobContext {
 public:
  FakeContext();
  ~FakeContext() override;

  [[nodiscard]] std::stop_token stop_token() const override { return stop_.get_token(); }
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const override { return deadline_; }
  void count_calls(std::uint32_t calls) override { calls_ += calls; }
  [[nodiscard]] spdlog::logger& log() override { return *log_; }

  /// As a cancellation does.
  void stop() { stop_.request_stop(); }
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  [[nodiscard]] std::uint32_t calls() const { return calls_; }
  /// Every line so far, `level message`.
  [[nodiscard]] std::string logged() const { return lines_.str(); }

 private:
  std::stop_source stop_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::atomic<std::uint32_t> calls_ = 0;
  std::ostringstream lines_;
  std::shared_ptr<spdlog::logger> log_;
};

/// For Plugin::run_initialize(): the worker's environment and credentials are what the test puts in.
class FakeInitializeContext final : public InitializeContext {
 public:
  std::map<std::string, std::string> variables{}, credentials{};

  [[nodiscard]] std::stop_token stop_token() const override { return call_.stop_token(); }
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const override { return call_.deadline(); }
  [[nodiscard]] spdlog::logger& log() override { return call_.log(); }
  [[nodiscard]] std::optional<std::string> env(const std::string& name) const override;
  Result<std::string> credential(const std::string& name) override;

  /// As the end of the worker does, or of the call's time.
  void stop() { call_.stop(); }
  [[nodiscard]] std::string logged() const { return call_.logged(); }

 private:
  FakeContext call_;
};

/// Lists `type` page by page to its end, through the same checks as a job; the items and problems of all pages.
/// `page_size`  items wanted per page
/// Throws std::runtime_error when a page fails or a page token comes twice.
ListResult list_all(const Plugin& plugin, std::string_view type, const Json& config,
                    const std::optional<Parent>& parent = std::nullopt, std::uint32_t page_size = 100);

/// Reads the ids in one job, through the same checks; throws std::runtime_error when the job as a whole fails.
std::vector<ReadItem> read_all(const Plugin& plugin, std::string_view type, const Json& config,
                               std::vector<std::string> native_ids);

/// Runs one create, update, delete or status, through the same checks as a job.
Result<MutationResult> change(const Plugin& plugin, std::string_view type, const Json& config, JobOperation operation);

}  // namespace muster::testing
