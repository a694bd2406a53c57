#include "job_runner.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "contract.h"
#include "redacting_log.h"
#include "schema/codec.h"
#include "schema/mutation.h"
#include "schema/utf8.h"
#include "waiting_call.h"

namespace muster {
namespace {

constexpr Millis kConfigTtl{60'000};
constexpr std::size_t kMaxConfigs = 256;
constexpr Millis kPagesWithin{10};               // of one answer
constexpr std::size_t kPagesBytes = 256 * 1024;  // of one answer before the last of its pages, and of that
constexpr Millis kHeldLong{500};                 // of the loop: heartbeats, which renew leases, are due every second
constexpr Millis kRefusedFor{5000};              // a hint: what keeps a worker from changes seldom passes at once

/// `Interface`   JobContext or AsyncContext
template <typename Interface>
class RunningContext : public Interface {
 public:
  /// What is passed by reference outlives the context.
  RunningContext(const Job& job, std::stop_token stop, TimePoint deadline, const Redactor& redactor,
                 const spdlog::logger& parent)
      : job_(job), stop_(std::move(stop)), deadline_(deadline), redactor_(redactor), parent_(parent) {}

  [[nodiscard]] std::stop_token stop_token() const override { return stop_; }
  [[nodiscard]] TimePoint deadline() const override { return deadline_; }
  void count_calls(std::uint32_t calls) override { calls_ += calls; }
  /// Those that were counted since the last time, for one answer.
  std::uint32_t take_calls() { return std::max(calls_.exchange(0), 1U); }

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

/// A listing's answer: its first page, and those that follow as far as the job asks for them, for many small messages
/// cost more than one. All are asked for in one size, for some systems count pages. A page with which something is
/// wrong is left to who asks for it next.
class Pages {
 public:
  /// `until`   from then on what is there is worth more than what comes
  Pages(const Job& job, TimePoint until) : job_(job), until_(until) {}

  void add(Outcome outcome) {
    if (!answer_) {
      answer_ = std::move(outcome);
      if (const auto* list = std::get_if<ListResult>(&answer_->result))
        count(bytes_of(list->items), list->items.size());
      return;
    }
    answer_->calls += outcome.calls;
    auto* page = std::get_if<ListResult>(&outcome.result);
    const std::size_t size = page == nullptr ? 0 : bytes_of(page->items);
    if (page == nullptr || page->next_page_token == list().next_page_token || size > kPagesBytes) {
      more_ = false;
      return;
    }
    count(size, page->items.size());
    append(list(), std::move(*page));
  }
  /// Whether the page of next_token() is to be added, too.
  [[nodiscard]] bool wants_more(const Clock& clock, const std::stop_token& stop) const {
    const auto* asked = std::get_if<ListJob>(&job_.operation);
    if (!more_ || asked == nullptr || !std::holds_alternative<ListResult>(answer_->result)) return false;
    const auto& list = std::get<ListResult>(answer_->result);
    return pages_ < asked->pages && list.problems.empty() && !list.next_page_token.empty() &&
           list.items.size() + largest_ <= asked->page_size && bytes_ < kPagesBytes && clock.now() < until_ &&
           !stop.stop_requested();
  }
  [[nodiscard]] const std::string& next_token() const { return std::get<ListResult>(answer_->result).next_page_token; }
  Outcome take() { return std::move(*answer_); }

 private:
  ListResult& list() { return std::get<ListResult>(answer_->result); }
  void count(std::size_t bytes, std::size_t items) {
    ++pages_;
    bytes_ += bytes;
    largest_ = std::max(largest_, items);
    more_ = items > 0;
  }

  const Job& job_;
  const TimePoint until_;
  std::optional<Outcome> answer_;
  int pages_ = 0;
  std::size_t bytes_ = 0, largest_ = 0;
  bool more_ = false;
};

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

/// An outcome as it may leave the worker.
Outcome said(Outcome outcome, const Redactor& redactor, std::string_view known) {
  redactor.redact(outcome.result, known);
  fit_bounds(outcome.result);
  return outcome;
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
  RunningContext<JobContext> context(job, permit.stop, permit.deadline, redactor, *log_);
  Pages pages(job, clock_.now() + kPagesWithin);
  const auto run = [&](const Job& what) {
    JobResult result = plugin_.run(what, config.value, context);
    pages.add({std::move(result), context.take_calls()});
  };
  run(job);
  for (std::optional<Job> next; pages.wants_more(clock_, permit.stop);) {
    if (!next) next = job;
    std::get<ListJob>(next->operation).page_token = pages.next_token();
    run(*next);
  }
  return said(pages.take(), redactor, known);
}

/// A job that takes no thread while it waits; kept by what it waits for. Thread: any, but one at a time.
class JobRunner::AsyncRun final : public RunningContext<AsyncContext>, public std::enable_shared_from_this<AsyncRun> {
 public:
  AsyncRun(const JobRunner& runner, std::shared_ptr<const Job> job, std::shared_ptr<const Config> config,
           const Permit& permit, std::shared_ptr<LoopCalls> calls)
      : RunningContext(*job, permit.stop, permit.deadline, config->redactor, *runner.log_),
        plugin_(runner.plugin_),
        log_(runner.log_),
        clock_(runner.clock_),
        job_(std::move(job)),
        config_(std::move(config)),
        calls_(std::move(calls)),
        pages_(*job_, clock_.now() + kPagesWithin) {}

  /// On the loop.
  void begin() { ask(job_); }

  void after(std::chrono::nanoseconds wait, std::function<void()> then) override {
    const std::lock_guard lock(mutex_);
    if (!take_turn()) return;
    timer_ = calls_->at(wait_end(clock_.now(), wait), stop_token(),
                        continuation([this, then = std::move(then)] { on_loop(then); }));
  }
  void block(std::function<void()> then) override {
    const std::lock_guard lock(mutex_);
    if (take_turn()) calls_->block(continuation(std::move(then)));
  }

 private:
  void ask(const std::shared_ptr<const Job>& job) {
    {
      const std::lock_guard lock(mutex_);
      answered_ = false;
    }
    on_loop([&] {
      plugin_.begin(job, config_->value, shared_from_this(),
                    [self = shared_from_this()](JobResult result) { self->on_answer(std::move(result)); });
    });
  }
  template <typename Call>
  void on_loop(const Call& call) {
    const TimePoint begun = clock_.now();
    call();
    const auto held = std::chrono::duration_cast<Millis>(clock_.now() - begun);
    if (held < kHeldLong) return;
    log().warn(
        "held the worker's loop for {} ms, in which no lease was renewed: what blocks or computes in an asynchronous "
        "function belongs into AsyncCall::block()",
        held.count());
  }
  void on_answer(JobResult result) {
    end_turns();
    pages_.add({std::move(result), take_calls()});
    if (!pages_.wants_more(clock_, stop_token())) {
      return calls_->finish(job_->token, said(pages_.take(), config_->redactor, known_of(*job_)));
    }
    if (!next_) next_ = std::make_shared<Job>(*job_);
    std::get<ListJob>(next_->operation).page_token = pages_.next_token();
    // Not at once: other jobs have their turn, and the loop what else is due.
    calls_->at(TimePoint::min(), {}, [self = shared_from_this()] { self->ask(self->next_); });
  }

  /// False: the call is answered. With the mutex held.
  bool take_turn() {
    if (answered_) return false;
    if (waits_) throw std::logic_error(kOneWait);
    waits_ = true;
    return true;
  }
  /// With the mutex held.
  LoopCalls::Call continuation(std::function<void()> then) {
    return [self = shared_from_this(), turn = turn_, then = std::move(then)] {
      {
        const std::lock_guard lock(self->mutex_);
        if (self->turn_ != turn) return;
        self->waits_ = false;
        self->timer_.reset();
      }
      then();
    };
  }
  /// What an answered call still waits for is not called any more.
  void end_turns() {
    std::optional<LoopCalls::Key> timer;
    {
      const std::lock_guard lock(mutex_);
      ++turn_;
      answered_ = true;
      waits_ = false;
      timer = std::exchange(timer_, std::nullopt);
    }
    if (timer) calls_->drop(*timer);
  }

  const Plugin& plugin_;
  const std::shared_ptr<spdlog::logger> log_;  // that of the context writes to it
  const Clock& clock_;
  const std::shared_ptr<const Job> job_;
  const std::shared_ptr<const Config> config_;
  const std::shared_ptr<LoopCalls> calls_;
  Pages pages_;
  std::shared_ptr<Job> next_;
  std::mutex mutex_;        // of the members below
  std::uint64_t turn_ = 0;  // calls of the function that were answered
  bool answered_ = false;   // the one that was begun last
  bool waits_ = false;
  std::optional<LoopCalls::Key> timer_;
};

bool JobRunner::begin(const std::shared_ptr<const Job>& job, const Permit& permit, TimePoint now,
                      const std::shared_ptr<LoopCalls>& calls) {
  if (!plugin_.is_async(*job)) return false;
  const auto begin_with = [self = shared_from_this(), job, permit, calls](std::shared_ptr<const Config> config) {
    std::make_shared<AsyncRun>(*self, job, std::move(config), permit, calls)->begin();
  };
  if (auto config = config_at_hand(job->target, now)) {
    begin_with(std::move(config));
    return true;
  }
  calls->block([self = shared_from_this(), job, now, calls, begin_with] {
    auto config = self->config_of(job->target, now);
    if (!config) return calls->finish(job->token, {std::move(config.error()), 0});
    calls->at(TimePoint::min(), {}, [begin_with, config = std::move(*config)] { begin_with(config); });
  });
  return true;
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

std::shared_ptr<const JobRunner::Config> JobRunner::config_at_hand(const Target& target, TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto found = cache_.find(target.id);
  const bool fresh = found != cache_.end() && found->second.expires > now;
  return fresh && found->second.document == target.config ? found->second.config : nullptr;
}

Result<std::shared_ptr<const JobRunner::Config>> JobRunner::config_of(const Target& target, TimePoint now) {
  if (auto config = config_at_hand(target, now)) return config;
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
