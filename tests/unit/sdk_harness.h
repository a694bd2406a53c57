#pragma once

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/codec.h"
#include "sdk_memory_journal.h"
#include "worker_sdk/src/worker_core.h"
#include "worker_sdk/testing/fake_clock.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::testing {

/// Keeps work until the test runs it.
class ManualExecutor final : public Executor {
 public:
  ManualExecutor() = default;
  ~ManualExecutor() override { loop->close(); }
  ManualExecutor(const ManualExecutor&) = delete;
  ManualExecutor& operator=(const ManualExecutor&) = delete;

  void submit(Work work) override { submitted.push_back(std::move(work)); }
  [[nodiscard]] const std::shared_ptr<LoopCalls>& calls() const override { return loop; }
  std::deque<Work> submitted;
  std::shared_ptr<LoopCalls> loop = std::make_shared<LoopCalls>([] {});
};

/// A worker on a bus in memory, and the test as its coordinator. Time stands still but in advance().
class WorkerHarness {
 public:
  struct Heard {
    std::string subject;
    std::string reply;
    std::string data;
    TimePoint at;
  };

  /// `journal`   null: the worker has none
  explicit WorkerHarness(const Plugin& plugin, std::uint16_t slots = 2, SecretPolicy secrets = {},
                         std::shared_ptr<Journal> journal = std::make_shared<MemoryJournal>())
      : broker_(clock_, random_),
        worker_bus_(broker_.connect("worker")),
        bus_(broker_.connect("coordinator")),
        log_(std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(lines_))),
        core_(WorkerCore::Options{.subjects = subjects_,
                                  .id = WorkerId("w1"),
                                  .slots = slots,
                                  .host = "host",
                                  .pid = 7,
                                  .started = clock_.wall(),
                                  .secrets = std::move(secrets),
                                  .journal = std::move(journal),
                                  .clock = &clock_},
              plugin, *worker_bus_, random_, executor_, log_),
        ns_(plugin.info().ns) {
    log_->set_level(spdlog::level::debug);
    // Neither the worker's subjects nor answers to it: what a coordinator hears.
    for (const std::string& subject : {subjects_.announces(), subjects_.heartbeats(), subjects_.replies(coordinator_),
                                       subjects_.results(), bus_->inbox() + ".>"}) {
      bus_->subscribe(subject).value();
    }
  }

  void start() {
    core_.start(now()).value();
    turn();
  }
  /// Starts, is accepted, and forgets what was heard until then.
  void start_accepted() {
    start();
    accept();
    heard_.clear();
  }
  void accept() { answer_announcement({.fleet = fleet_, .coordinator = coordinator_, .rejected = {}, .features = {}}); }
  /// Has the worker announce itself again, also one that is active.
  void call_roll() {
    send(subjects().rollcall(), encode(RollCall{fleet_, coordinator_}));
    advance(Millis{251});
  }
  void reject(Rejection rejection) {
    answer_announcement(
        {.fleet = fleet_, .coordinator = coordinator_, .rejected = std::move(rejection), .features = {}});
  }
  void answer_announcement(const AnnouncementReply& reply) {
    const auto asked = hear<Announcement>(subjects_.announce(ns_));
    if (!asked.empty()) send(last_reply_of(subjects_.announce(ns_)), encode(reply));
  }

  [[nodiscard]] Job job(std::string token, JobOperation operation = ListJob{}) const {
    Job job;
    job.fleet = fleet_;
    job.id = JobId("job-" + token);
    job.token = Token(std::move(token));
    job.ns = ns_;
    job.target = Target{TargetId("t1"), "target", {}};
    job.type = std::holds_alternative<InspectJob>(operation) ? "" : ns_ + "::Thing";
    job.lease = Millis{3000};
    job.deadline = Millis{60'000};
    job.operation = std::move(operation);
    return job;
  }
  void send_to_pool(const Job& job) { send(subjects_.job(ns_, kDefaultPool), encode(job), reply_subject(job.token)); }
  void send_to_worker(const Job& job) {
    send(subjects_.worker_job(ns_, WorkerId("w1")), encode(job), reply_subject(job.token));
  }
  void control(decltype(Control::action) action, std::string reply = {}) {
    send(subjects_.worker_control(ns_, WorkerId("w1")), encode(Control{fleet_, std::move(action)}), std::move(reply));
  }
  void send(std::string subject, Bytes data, std::string reply = {}) {
    bus_->publish({std::move(subject), std::move(reply), std::move(data), {}}).value();
    turn();
  }

  /// Runs the oldest work that waits, and hands its outcome to the worker.
  void run_one() {
    Work work = std::move(executor_.submitted.front());
    executor_.submitted.pop_front();
    core_.complete(work.token, work.run(), now());
    turn();
  }
  /// Runs what asynchronous functions have put off into a slot's thread.
  void run_blocking() {
    for (const auto& call : executor_.loop->take_blocking()) call();
    turn();
  }
  /// The target's config is resolved, which the first job does in a slot's thread.
  void resolve_config() {
    send_to_pool(job("resolves", InspectJob{}));
    run_one();
  }
  /// Runs the function of the plugin's life that waits, and tells the worker.
  void run_life() {
    const auto waits = life();
    if (waits == executor_.submitted.end()) throw std::runtime_error("no function of the plugin's life waits");
    Work work = std::move(*waits);
    executor_.submitted.erase(waits);
    core_.complete(work.token, work.run(), now());
    turn();
  }
  [[nodiscard]] bool life_waits() { return life() != executor_.submitted.end(); }
  /// As if that work ended so.
  void complete_one(JobResult result, std::uint32_t calls = 1) {
    const Token token = executor_.submitted.front().token;
    executor_.submitted.pop_front();
    core_.complete(token, {std::move(result), calls}, now());
    turn();
  }

  /// Time passes, and the worker does what is due.
  void advance(Millis by) {
    const TimePoint until = now() + by;
    while (now() < until) {
      const TimePoint due =
          std::min({core_.next_due(), executor_.loop->next_due(), broker_.next_due().value_or(until)});
      clock_.set(std::clamp(due, now() + Millis{1}, until));
      turn();
    }
  }
  /// Time passes, and the worker does not notice before it is over.
  void stall(Millis by) { clock_.advance(by); }
  void turn() {
    for (int i = 0; i < 4; ++i) {
      std::vector<Message> batch;
      worker_bus_->receive(batch, 1000);
      for (const Message& message : batch) core_.handle(message, now());
      for (int calls = 0; calls < 100; ++calls) executor_.loop->run(now());  // one call may be for another at once
      for (auto& one : executor_.loop->take_finished()) core_.complete(one.token, std::move(one.outcome), now());
      core_.tick(now());
      batch.clear();
      bus_->receive(batch, 1000);
      for (const Message& message : batch) {
        heard_.push_back({std::string(message.subject), std::string(message.reply), std::string(message.data), now()});
      }
    }
  }

  /// Every message heard on `subject`, decoded.
  template <typename T>
  [[nodiscard]] std::vector<T> hear(std::string_view subject) const {
    std::vector<T> messages;
    for (const Heard& message : heard_) {
      if (message.subject == subject) messages.push_back(decode<T>(message.data).value());
    }
    return messages;
  }
  [[nodiscard]] std::vector<JobReply> replies(std::string_view token) const {
    return hear<JobReply>(reply_subject(Token(std::string(token))));
  }
  /// The one result for that token; throws when there are none or several.
  [[nodiscard]] JobResult result(std::string_view token) const {
    std::vector<JobResult> results;
    for (JobReply& reply : replies(token)) {
      if (auto* result = std::get_if<JobResult>(&reply.body)) results.push_back(std::move(*result));
    }
    if (results.size() != 1)
      throw std::runtime_error(std::to_string(results.size()) + " results for " + std::string(token));
    return results.front();
  }
  [[nodiscard]] Error failed(std::string_view token) const { return std::get<Error>(result(token)); }
  /// What was sent to any coordinator, and when.
  [[nodiscard]] std::vector<Heard> resent() const {
    std::vector<Heard> all;
    std::copy_if(heard_.begin(), heard_.end(), std::back_inserter(all),
                 [&](const Heard& it) { return it.subject == subjects_.result(ns_); });
    return all;
  }
  /// Answers what was last heard on `subject`, a result.
  void acknowledge(const std::string& subject, const ResultAck& ack) { send(last_reply_of(subject), encode(ack)); }
  template <typename Body>
  [[nodiscard]] std::size_t count(std::string_view token) const {
    const auto all = replies(token);
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const JobReply& reply) { return std::holds_alternative<Body>(reply.body); }));
  }
  [[nodiscard]] std::vector<Heartbeat> heartbeats() const { return hear<Heartbeat>(subjects_.heartbeat(ns_)); }
  [[nodiscard]] std::vector<Announcement> announcements() const { return hear<Announcement>(subjects_.announce(ns_)); }
  [[nodiscard]] std::string reply_subject(const Token& token) const {
    return subjects_.reply(ns_, coordinator_, token);
  }
  [[nodiscard]] std::string last_reply_of(std::string_view subject) const {
    const auto last =
        std::find_if(heard_.rbegin(), heard_.rend(), [&](const Heard& it) { return it.subject == subject; });
    return last == heard_.rend() ? std::string() : last->reply;
  }

  [[nodiscard]] TimePoint now() const { return clock_.now(); }
  [[nodiscard]] std::string logged() const { return lines_.str(); }
  WorkerCore& core() { return core_; }
  MemoryBroker& broker() { return broker_; }
  MemoryBus& worker_bus() { return *worker_bus_; }
  MemoryBus& coordinator_bus() { return *bus_; }
  std::deque<Work>& submitted() { return executor_.submitted; }
  LoopCalls& calls() { return *executor_.loop; }
  std::vector<Heard>& heard() { return heard_; }
  [[nodiscard]] const Subjects& subjects() const { return subjects_; }
  [[nodiscard]] const FleetId& fleet() const { return fleet_; }
  [[nodiscard]] const CoordinatorId& coordinator() const { return coordinator_; }

 private:
  std::deque<Work>::iterator life() {
    return std::find_if(executor_.submitted.begin(), executor_.submitted.end(),
                        [](const Work& work) { return work.token.value == Lifecycle::kToken; });
  }

  const Subjects subjects_{"muster"};
  const FleetId fleet_{"fleet"};
  const CoordinatorId coordinator_{"c1"};
  FakeClock clock_;
  SeededRandom random_{1};
  MemoryBroker broker_;
  std::unique_ptr<MemoryBus> worker_bus_, bus_;
  std::ostringstream lines_;
  std::shared_ptr<spdlog::logger> log_;
  ManualExecutor executor_;
  WorkerCore core_;
  std::string ns_;
  std::vector<Heard> heard_;
};

/// Lists one thing and reads any, but `gone`.
inline void add_things(Plugin& plugin) {
  plugin.type({.name = plugin.info().ns + "::Thing"})
      .list([](const ListRequest&, JobContext&) -> Result<ListPage> {
        ListPage page;
        page.items.push_back({"one", Properties{{"n", 1}}, ""});
        return page;
      })
      .read([](const ReadRequest& request, JobContext&) -> Result<Resource> {
        if (request.native_id == "gone") return not_found();
        return Resource{request.native_id, Properties{{"name", request.native_id}}, ""};
      });
}

struct ThingsPlugin : Plugin {
  ThingsPlugin() : Plugin({.name = "things", .ns = "TH", .version = "1.2.3"}) { add_things(*this); }
};

}  // namespace muster::testing
