#include "tests/bench/job_desk.h"

#include <stdexcept>

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include "coordinator/sqlite_store.h"
#include "schema/codec.h"

namespace muster::bench {
namespace {

template <typename T>
T must_have(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

std::shared_ptr<spdlog::logger> silent() {
  return std::make_shared<spdlog::logger>("bench", std::make_shared<spdlog::sinks::null_sink_mt>());
}

}  // namespace

JobDesk::JobDesk(const std::string& url)
    : log_(silent()),
      store_(must_have(open_sqlite_store(":memory:", clock_, random_))),
      bus_(must_have(NatsBus::connect({.url = url, .name = "bench"}, log_))),
      self_(make_ulid(clock_.wall(), random_)),
      events_(*store_, clock_),
      worker_events_(events_, kWorkerEventRate, *log_, left_out_),
      admission_(subjects_, self_, *store_, registry_, worker_events_, worker_events_, random_, clock_, *log_),
      dispatcher_(config_, subjects_, store_->fleet(), self_, registry_, limiter_, random_) {
  replies_ = must_have(bus_->subscribe_answers(subjects_.replies(self_)));
  announces_ = must_have(bus_->subscribe(subjects_.announces()));
  heartbeats_ = must_have(bus_->subscribe(subjects_.heartbeats()));
  effects_.at_once.push_back({subjects_.rollcall(), {}, encode(RollCall{store_->fleet(), self_}), {}});
}

JobDesk::~JobDesk() = default;

void JobDesk::await_workers(std::size_t count) {
  const auto until = clock_.now() + Millis(60'000);
  while (registry_.workers().size() < count) {
    turn([](const JobOutcome&) {});
    if (clock_.now() > until) throw std::runtime_error("the workers do not come");
  }
}

Target JobDesk::target(const std::string& name, const std::string& config) {
  Target made;
  made.id = TargetId("T" + name);
  made.name = name;
  made.config.json = config;
  return made;
}

void JobDesk::submit(const Target& of, JobOperation operation, const std::string& type, std::uint64_t owner,
                     const std::string& ns) {
  JobSpec spec;
  spec.lane = {ns, "default"};
  spec.target = of;
  spec.type = type;
  spec.operation = std::move(operation);
  spec.owner = owner;
  dispatcher_.submit(std::move(spec), clock_.now(), clock_.wall());
}

void JobDesk::turn(const std::function<void(const JobOutcome&)>& done) {
  auto now = clock_.now();
  dispatcher_.tick(now, Dispatcher::Lateness::kSkip, effects_);
  publish(effects_.at_once);
  bus_->wait(std::min(dispatcher_.next_due(), now + Millis(100)));
  now = clock_.now();
  inbox_.clear();
  bus_->receive(inbox_, 2048);
  for (const auto& message : inbox_) route(message, now);
  inbox_.clear();
  if (store_->uncommitted() > 0) store_->commit().value();
  publish(effects_.after_commit);
  dispatcher_.tick(now, Dispatcher::Lateness::kJudge, effects_);
  for (const auto& outcome : dispatcher_.take_outcomes()) done(outcome);
  dispatcher_.take_notices();
}

void JobDesk::route(const Message& message, TimePoint now) {
  if (message.subscription == replies_) {
    const Token token(std::string(subject_token(message.subject, subjects_.prefix(), 3)));
    if (message.no_responders) return dispatcher_.on_no_responders(token, now, effects_);
    reply_bytes = message.data.size();
    auto reply = must_have(decode<JobReply>(message.data));
    if (admission_.asked_namespace(reply.token)) return admission_.on_reply(reply, now, effects_);
    dispatcher_.on_reply(subject_token(message.subject, subjects_.prefix(), 1), std::move(reply), now, effects_);
  } else if (message.subscription == announces_) {
    const auto announcement = must_have(decode<Announcement>(message.data));
    if (admission_.on_announcement(announcement, std::string(message.reply), now, effects_)) {
      dispatcher_.on_lane_changed({announcement.ns, announcement.pool});
    }
  } else if (message.subscription == heartbeats_) {
    const auto heartbeat = must_have(decode<Heartbeat>(message.data));
    const auto* worker = registry_.find(heartbeat.ns, heartbeat.worker);
    if (worker == nullptr) return;
    registry_.heartbeat(heartbeat, now);
    dispatcher_.on_heartbeat(heartbeat, now, effects_);
    dispatcher_.on_lane_changed(worker->lane());
  }
}

void JobDesk::publish(std::vector<Outgoing>& messages) {
  for (const auto& message : messages) {
    job_bytes = message.data.size();
    if (const auto sent = bus_->publish(message); !sent) throw std::runtime_error(sent.error().message);
  }
  messages.clear();
}

}  // namespace muster::bench
