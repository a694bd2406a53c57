#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/admission.h"
#include "coordinator/dispatcher.h"
#include "worker_sdk/bus/nats_bus.h"

namespace muster::bench {

/// What a coordinator has between its bus and its decisions: admission, registry, limiter, dispatcher and their loop,
/// around jobs that this program asks for. The store is in memory and holds manifests only. Thread: one.
class JobDesk {
 public:
  /// Throws where the bus or the store cannot be had.
  explicit JobDesk(const std::string& url);
  ~JobDesk();

  /// Until so many workers are in; throws after a minute.
  void await_workers(std::size_t count);

  static Target target(const std::string& name, const std::string& config);
  void submit(const Target& of, JobOperation operation, const std::string& type, std::uint64_t owner,
              const std::string& ns = "FAKE");
  /// One turn of the loop; `done` is called for each job that ended.
  void turn(const std::function<void(const JobOutcome&)>& done);

  /// Whether a caller of the dispatcher would submit more.
  [[nodiscard]] bool has_room(const Target& of, const std::string& ns = "FAKE") {
    return dispatcher_.has_room({ns, "default"}, Priority::kDiscovery, of.id);
  }
  [[nodiscard]] const Dispatcher& dispatcher() const { return dispatcher_; }
  std::size_t job_bytes = 0, reply_bytes = 0;  // of the last of each

 private:
  void route(const Message& message, TimePoint now);
  void publish(std::vector<Outgoing>& messages);

  Config config_;
  Subjects subjects_;
  SystemClock clock_;
  SystemRandom random_;
  std::shared_ptr<spdlog::logger> log_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<NatsBus> bus_;
  CoordinatorId self_;
  EventLog events_;
  std::uint64_t left_out_ = 0;
  WorkerEvents worker_events_;
  Registry registry_;
  Limiter limiter_;
  Admission admission_;
  Dispatcher dispatcher_;
  Effects effects_;
  std::vector<Message> inbox_;
  SubscriptionId replies_ = 0, announces_ = 0, heartbeats_ = 0;
};

}  // namespace muster::bench
