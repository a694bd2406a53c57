#include "job_runner.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>
#include <utility>

#include "contract.h"
#include "redacting_log.h"
#include "schema/codec.h"
#include "schema/mutation.h"
#include "schema/utf8.h"

namespace muster {
namespace {

constexpr Millis kConfigTtl{60'000};
constexpr std::size_t kMaxConfigs = 256;
constexpr Millis kPagesWithin{10};  // of one answer: from then on what is there is worth more than what comes
constexpr std::size_t kPagesBytes = 256 * 1024;  // of one answer before the last of its pages, and of that
constexpr Millis kRefusedFor{5000};              // a hint: what keeps a worker from changes seldom passes at once

class RunningContext final : public JobContext {
 public:
  RunningContext(const Job& job, std::stop_token stop, TimePoint deadline, const Redactor& redactor,
                 const spdlog::logger& parent)
      : job_(job), stop_(std::move(stop)), deadline_(deadline), redactor_(redactor), parent_(parent) {}

  [[nodiscard]] std::stop_token stop_token() const override { return stop_; }
  [[nodiscard]] TimePoint deadline() const override { return deadline_; }
  void count_calls(std::uint32_t calls) override { calls_ += calls; }
  /// Those that were counted since the last time.
  std::uint32_t take_calls() { return calls_.exchange(0); }

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

/// What of the operation may hold secrets.
Document* document_of(JobOperation& operation) {
  if (auto* create = std::get_if<CreateJob>(&operation)) return &create->properties;
  if (auto* update = std::get_if<UpdateJob>(&operation)) return &update->desired;
  return nullptr;
}

std::size_t bytes_of(const std::vector<Item>& items) {
  return std::accumulate(items.begin(), items.end(), std::size_t{0}, [](std::size_t sum, const Item& item) {
    return sum + item.native_id.size() + item.uid.size() + item.properties.size();
  });
}

void append(ListResult& list, ListResult page) {
  if (MUSTER_MUTATION("page-left-out")) page.items.clear();
  list.items.insert(list.items.end(), std::make_move_iterator(page.items.begin()),
                    std::make_move_iterator(page.items.end()));
  list.problems = std::move(page.problems);  // there were none
  list.skipped += page.skipped;
  list.next_page_token = std::move(page.next_page_token);
}

/// Appends the pages that follow to a listing's first, as far as the job asks for them and `may_go_on`: many small
/// messages cost more than one. All are asked for in one size, for some systems count pages. A page with which
/// something is wrong is left to who asks for it next.
template <typename MayGoOn, typename Run>
void add_pages(const Job& job, Outcome& outcome, MayGoOn may_go_on, Run run) {
  const auto& asked = std::get<ListJob>(job.operation);
  auto& list = std::get<ListResult>(outcome.result);
  std::optional<Job> next;
  std::size_t bytes = bytes_of(list.items), largest = list.items.size();
  bool news = largest > 0;
  for (int pages = 1; pages < asked.pages && news && list.problems.empty() && !list.next_page_token.empty() &&
                      list.items.size() + largest <= asked.page_size && bytes < kPagesBytes && may_go_on();
       ++pages) {
    if (!next) next = job;
    auto& operation = std::get<ListJob>(next->operation);
    operation.page_token = list.next_page_token;
    Outcome more = run(*next);
    outcome.calls += more.calls;
    auto* page = std::get_if<ListResult>(&more.result);
    if (page == nullptr || page->next_page_token == operation.page_token) break;
    const std::size_t size = bytes_of(page->items);
    if (size > kPagesBytes) break;
    bytes += size;
    largest = std::max(largest, page->items.size());
    news = !page->items.empty();
    append(list, std::move(*page));
  }
}

/// What the job says in plain of names: what it names is no secret on the bus.
std::string known_of(const Job& job) {
  if (const auto* create = std::get_if<CreateJob>(&job.operation)) {
    return create->properties.json + (create->parent ? "\n" + create->parent->native_id : "");
  }
  if (const auto* update = std::get_if<UpdateJob>(&job.operation)) return update->native_id;
  if (const auto* remove = std::get_if<DeleteJob>(&job.operation)) return remove->native_id;
  if (const auto* status = std::get_if<StatusJob>(&job.operation)) {
    return status->native_id + "\n" + status->request_id;
  }
  return {};
}

Result<ResolvedDocument> resolve_references(const Document& document, const SecretPolicy& policy) {
  auto resolved = resolve(document, policy);
  if (!resolved) shorten_message(resolved.error().message);  // it names a reference, of any length
  return resolved;
}

}  // namespace

JobReply reply_of(const Job& job, const WorkerId& worker, const Outcome& outcome) {
  return {job.fleet, job.id, job.token, worker, job.attempt, outcome.calls, outcome.result};
}

Error refused(std::string why) {
  Error error = throttled(presentable(why) + "; nothing was done", kRefusedFor);  // it may name a file
  shorten_message(error.message);
  return error;
}

JobRunner::JobRunner(const Plugin& plugin, SecretPolicy secrets, std::shared_ptr<spdlog::logger> log,
                     std::shared_ptr<Journal> journal, const Clock& clock, WorkerId worker)
    : plugin_(plugin),
      secrets_(std::move(secrets)),
      log_(std::move(log)),
      journal_(std::move(journal)),
      clock_(clock),
      worker_(std::move(worker)) {}

Outcome JobRunner::run(const Job& job, const Permit& permit, TimePoint now) {
  auto config = config_of(job.target, now);
  if (!config) return {std::move(config.error()), 0};
  if (is_mutation(job.operation)) return run_mutation(job, **config, permit, now);
  return call(job, **config, (*config)->redactor, permit, known_of(job));
}

Outcome JobRunner::call(const Job& job, const Config& config, const Redactor& redactor, const Permit& permit,
                        std::string_view known) const {
  RunningContext context(job, permit.stop, permit.deadline, redactor, *log_);
  const TimePoint until = clock_.now() + kPagesWithin;
  const auto run = [&](const Job& what) {
    Outcome outcome{plugin_.run(what, config.value, context), 0};
    outcome.calls = std::max(context.take_calls(), 1U);
    return outcome;
  };
  Outcome outcome = run(job);
  if (std::holds_alternative<ListResult>(outcome.result)) {
    add_pages(
        job, outcome, [&] { return clock_.now() < until && !permit.stop.stop_requested(); }, run);
  }
  redactor.redact(outcome.result, known);
  fit_bounds(outcome.result);
  return outcome;
}

Outcome JobRunner::run_mutation(const Job& job, const Config& config, const Permit& permit, TimePoint now) {
  auto filled = fill(job, config.redactor, now);
  if (!filled) return {std::move(filled.error()), 0};
  Journal& journal = *journal_;
  if (auto room = journal.begin(job.token); !room && !MUSTER_MUTATION("act-without-journal")) {
    log_->error("job={} token={} refused, for its result could not be kept: {}", job.id.value, job.token.value,
                room.error().message);
    return {refused("this worker cannot keep the result of a change: " + room.error().message), 0};
  }
  // As late as can be: the process may have been stopped since the loop looked.
  if (clock_.now() >= permit.lease_end && !MUSTER_MUTATION("ignore-lease")) {
    journal.remove(job.token);
    return {refused("the lease ended before the change was begun"), 0};
  }
  Outcome outcome = call(filled->job, config, filled->redactor, permit, known_of(job));
  auto* error = std::get_if<Error>(&outcome.result);
  if (error != nullptr && error->code == Errc::kCancelled && permit.stop.stop_requested()) error->code = *permit.why;
  if (auto kept = journal.finish(job.token, encode(reply_of(job, worker_, outcome))); !kept) {
    log_->error(
        "job={} token={} is done, and its result is not on disk: it is lost if this process ends before a "
        "coordinator has it: {}",
        job.id.value, job.token.value, kept.error().message);
  }
  return outcome;
}

Result<JobRunner::Filled> JobRunner::fill(const Job& job, const Redactor& redactor, TimePoint now) {
  Filled filled{job, redactor};
  Document* document = document_of(filled.job.operation);
  if (document == nullptr) return filled;
  auto resolved = resolve_references(*document, secrets_);
  if (!resolved) return std::move(resolved.error());
  if (document->secrets.empty()) return filled;
  if (!std::all_of(resolved->secrets.begin(), resolved->secrets.end(), valid_utf8)) {
    return invalid_request("a secret of the declared properties is not UTF-8");
  }
  *document = {resolved->value.dump(), {}};
  const Redactor secrets(resolved->secrets);
  filled.redactor.add(secrets);
  const std::lock_guard lock(mutex_);
  declared_.emplace_back(now + kConfigTtl, secrets);
  while (declared_.size() > kMaxConfigs || declared_.front().first <= now) declared_.pop_front();
  return filled;
}

Redactor JobRunner::redactor() {
  Redactor all = credentials_;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, cached] : cache_) all.add(cached.config->redactor);
  for (const auto& [expires, secrets] : declared_) all.add(secrets);
  return all;
}

Result<std::shared_ptr<const JobRunner::Config>> JobRunner::config_of(const Target& target, TimePoint now) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = cache_.find(target.id);
    const bool fresh = found != cache_.end() && found->second.expires > now;
    if (fresh && found->second.document == target.config) return found->second.config;
  }
  auto resolved = resolve_references(target.config, secrets_);  // outside the lock: it may read files
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
