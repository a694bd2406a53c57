#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/dispatcher.h"
#include "schema/codec.h"
#include "support/lost_worker.h"
#include "worker_sdk/testing/fake_clock.h"

namespace muster::test {

/// A dispatcher, and the test as its workers and its caller. Time stands still but in advance(); messages that the
/// dispatcher wants sent are kept, decoded.
class DispatcherFixture {
 public:
  struct Sent {
    std::string subject;
    std::string reply;
    Job job;
    TimePoint at;
  };
  struct Cancelled {
    std::string subject;
    Running job;
  };

  DispatcherFixture() : dispatcher(config, subjects, fleet, self, registry, limiter, random) {}

  void join(const std::string& id, std::uint16_t slots = 1, const std::string& manifest = "m1",
            const std::string& pool = "default", const std::string& ns = "NS", std::vector<std::string> features = {}) {
    Announcement announcement;
    announcement.worker = WorkerId(id);
    announcement.ns = ns;
    announcement.pool = pool;
    announcement.slots = slots;
    announcement.manifest = manifest;
    announcement.features = std::move(features);
    registry.accept(announcement, clock.now(), clock.wall());
    dispatcher.on_lane_changed({ns, pool});
  }
  void lose(const std::string& id) {
    test::lose(registry, {"NS", WorkerId(id)}, clock.now());
    dispatcher.on_worker_lost("NS", WorkerId(id), clock.now(), effects_);
    collect();
  }
  void heartbeat(const std::string& id, std::vector<Running> running = {}, std::uint16_t free_slots = 0) {
    Heartbeat heartbeat;
    heartbeat.worker = WorkerId(id);
    heartbeat.ns = "NS";
    heartbeat.free_slots = free_slots;
    heartbeat.running = std::move(running);
    registry.heartbeat(heartbeat, clock.now());
    dispatcher.on_heartbeat(heartbeat, clock.now(), effects_);
    collect();
    tick();
  }

  static JobSpec spec(Priority priority = Priority::kDiscovery, const std::string& target = "t1") {
    JobSpec spec;
    spec.lane = {"NS", "default"};
    spec.target = {TargetId(target), "target-" + target, {}};
    spec.type = "NS::Thing";
    spec.operation = ListJob{};
    spec.priority = priority;
    spec.owner = 7;
    return spec;
  }
  static JobSpec with_deadline(Millis deadline) {
    auto made = spec();
    made.deadline = deadline;
    return made;
  }
  static JobSpec change() {
    auto made = spec(Priority::kCommand);
    DeleteJob operation;
    operation.native_id = "thing";
    made.operation = operation;
    return made;
  }
  JobId submit(JobSpec spec) { return dispatcher.submit(std::move(spec), clock.now(), clock.wall()); }
  JobId submit() { return submit(spec()); }
  /// A change that was sent before a restart: who has begun it then says so.
  Running submit_recovered(JobSpec made = change()) {
    made.id = JobId("earlier");
    made.recovered = true;
    return {submit(std::move(made)), Token("first")};
  }

  void tick(Dispatcher::Lateness lateness = Dispatcher::Lateness::kJudge) {
    dispatcher.tick(clock.now(), lateness, effects_);
    collect();
  }
  /// Time passes as a loop sees it: a turn whenever something is due, and every 50 ms.
  void advance(Millis by) {
    const auto end = clock.now() + by;
    tick();
    while (clock.now() < end) {
      clock.set(std::min(end, std::clamp(dispatcher.next_due(), clock.now() + Millis(1), clock.now() + Millis(50))));
      tick();
    }
  }
  /// Time passes and nothing is done meanwhile.
  void stall(Millis by) { clock.advance(by); }

  /// The next job that was sent and not looked at yet; throws when there is none.
  Sent take() {
    if (sent.empty()) throw std::runtime_error("no job was sent");
    auto first = std::move(sent.front());
    sent.erase(sent.begin());
    return first;
  }
  /// Lets time pass until a job is sent, and takes it; throws when none is within `limit`.
  Sent await(Millis limit = Millis(60'000)) {
    for (const auto end = clock.now() + limit; sent.empty() && clock.now() < end;) advance(Millis(10));
    return take();
  }
  /// Submits, and takes what is sent for it at once.
  Sent dispatch(JobSpec spec) {
    submit(std::move(spec));
    tick();
    return take();
  }
  Sent dispatch() { return dispatch(spec()); }

  void answer(const Job& job, const std::string& worker, decltype(JobReply::body) body, std::uint32_t calls = 1) {
    JobReply reply{fleet, job.id, job.token, WorkerId(worker), job.attempt, calls, std::move(body)};
    dispatcher.on_reply("NS", std::move(reply), clock.now(), effects_);
    collect();
    tick();
  }
  void accept(const Job& job, const std::string& worker) { answer(job, worker, Accepted{}); }
  void succeed(const Job& job, const std::string& worker) { answer(job, worker, JobResult(ListResult{})); }
  void fail(const Job& job, const std::string& worker, Errc code, Millis retry_after = Millis(0)) {
    answer(job, worker, JobResult(Error{code, "because", retry_after, 0}));
  }
  void no_responders(const Job& job) {
    dispatcher.on_no_responders(job.token, clock.now(), effects_);
    collect();
    tick();
  }

  /// What the owner of all jobs asks for when it is told to stop at once.
  void cancel_jobs() {
    dispatcher.cancel_jobs(spec().owner, clock.now(), effects_);
    collect();
  }

  std::vector<JobOutcome> outcomes() { return dispatcher.take_outcomes(); }
  /// The one outcome so far; throws when there are none or several.
  JobOutcome outcome() {
    auto all = outcomes();
    if (all.size() != 1) throw std::runtime_error(std::to_string(all.size()) + " outcomes");
    return all.front();
  }
  Errc failure() {
    const auto ended = outcome();
    const auto* error = std::get_if<Error>(&ended.result);
    return error == nullptr ? Errc{} : error->code;
  }

  [[nodiscard]] std::string own(const std::string& worker) const { return subjects.worker_job("NS", WorkerId(worker)); }
  [[nodiscard]] std::string group() const { return subjects.job("NS", "default"); }

  Config config;
  const Subjects subjects{"muster"};
  const FleetId fleet{"fleet"};
  const CoordinatorId self{"c1"};
  FakeClock clock;
  SeededRandom random{1};
  Registry registry;
  Limiter limiter;
  Dispatcher dispatcher;
  std::vector<Sent> sent;            // jobs, in order, until take()
  std::vector<Cancelled> cancelled;  // cancel messages, in order
  int told_to_go = 0;

 private:
  void collect() {
    for (auto* messages : {&effects_.at_once, &effects_.after_commit}) {
      for (auto& message : std::exchange(*messages, {})) {
        if (!message.subject.ends_with(".control")) {
          sent.push_back({message.subject, message.reply, decode<Job>(message.data).value(), clock.now()});
          continue;
        }
        const auto control = decode<Control>(message.data).value();
        if (std::holds_alternative<Go>(control.action)) ++told_to_go;
        if (const auto* cancel = std::get_if<Cancel>(&control.action)) {
          cancelled.push_back({message.subject, cancel->job});
        }
      }
    }
  }

  Effects effects_;
};

}  // namespace muster::test
