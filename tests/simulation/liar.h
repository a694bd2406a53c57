#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "schema/messages.h"
#include "schema/subjects.h"
#include "worker_sdk/bus/clock.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::sim {

/// What its answers say: of jobs that were given to it, which nobody can tell from the truth, and of others, which
/// nobody may believe.
constexpr std::string_view kLie = "says a liar";
constexpr std::string_view kForged = "says a forger";

/// A worker that is let in, and breaks the protocol: it takes jobs and does not do them, gives answers that are none,
/// speaks of jobs that it has not, for others, and under tokens of former times. It cannot be caught telling what the
/// target is like, so of that it tells nothing.
class Liar {
 public:
  Liar(MemoryBroker& broker, const Clock& clock, Random& random, Bytes manifest);

  void turn();
  [[nodiscard]] TimePoint next_due() const { return due_; }

 private:
  struct Known {
    Job job;
    std::string reply;
  };
  void announce();
  void heartbeat();
  void on_job(const Message& message);
  void on_control(const Message& message);
  void lie(const Known& known);
  void lie_of_others();
  void say(const Job& job, const std::string& subject, decltype(JobReply::body) body, std::string ack_to = {});
  [[nodiscard]] const Known& any() { return known_[random_.below(known_.size())]; }

  const Clock& clock_;
  Random& random_;
  Bytes manifest_;
  std::string hash_;
  Subjects subjects_{"sim"};
  std::unique_ptr<MemoryBus> bus_;
  WorkerId id_;
  FleetId fleet_;
  std::deque<Known> known_;  // jobs that it has heard of, oldest first
  std::deque<Running> claims_;
  SubscriptionId jobs_ = 0, group_ = 0, control_ = 0;
  TimePoint due_;
};

}  // namespace muster::sim
