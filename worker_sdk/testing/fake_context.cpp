#include "worker_sdk/testing/fake_context.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <iterator>
#include <stdexcept>
#include <unordered_set>

namespace muster::testing {
namespace {

Job job_of(const Plugin& plugin, std::string_view type, JobOperation operation) {
  Job job;
  job.id = JobId("test");
  job.token = Token("test");
  job.ns = plugin.info().ns;
  job.type = type;
  job.target = Target{TargetId("test"), "test", {}};
  job.operation = std::move(operation);
  return job;
}

template <typename T>
T run(const Plugin& plugin, const Job& job, const Json& config) {
  FakeContext context;
  JobResult result = plugin.run(job, config, context);
  if (const auto* error = std::get_if<Error>(&result)) {
    throw std::runtime_error(std::string(errc_name(error->code)) + ": " + error->message);
  }
  return std::move(std::get<T>(result));
}

template <typename T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

FakeContext::FakeContext() {
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_);
  log_ = std::make_shared<spdlog::logger>("test", std::move(sink));
  log_->set_level(spdlog::level::debug);
  log_->set_pattern("%l %v");
}

FakeContext::~FakeContext() = default;

std::optional<std::string> FakeInitializeContext::env(const std::string& name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

Result<std::string> FakeInitializeContext::credential(const std::string& name) {
  const auto found = credentials.find(name);
  if (found == credentials.end()) return access_denied("no credential " + name);
  return found->second;
}

ListResult list_all(const Plugin& plugin, std::string_view type, const Json& config,
                    const std::optional<Parent>& parent, std::uint32_t page_size) {
  ListResult all;
  std::unordered_set<std::string> tokens;
  ListJob list{parent, {}, page_size};
  do {
    auto page = run<ListResult>(plugin, job_of(plugin, type, list), config);
    append(all.items, std::move(page.items));
    append(all.problems, std::move(page.problems));
    all.skipped += page.skipped;
    list.page_token = std::move(page.next_page_token);
    if (!tokens.insert(list.page_token).second) throw std::runtime_error("page token twice: " + list.page_token);
  } while (!list.page_token.empty());
  return all;
}

std::vector<ReadItem> read_all(const Plugin& plugin, std::string_view type, const Json& config,
                               std::vector<std::string> native_ids) {
  return run<ReadResult>(plugin, job_of(plugin, type, ReadJob{std::move(native_ids)}), config).items;
}

Result<MutationResult> change(const Plugin& plugin, std::string_view type, const Json& config, JobOperation operation) {
  FakeContext context;
  JobResult result = plugin.run(job_of(plugin, type, std::move(operation)), config, context);
  if (auto* error = std::get_if<Error>(&result)) return std::move(*error);
  return std::move(std::get<MutationResult>(result));
}

}  // namespace muster::testing
