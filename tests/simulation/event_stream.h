#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "schema/subjects.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::sim {

/// What JetStream does for a fleet: takes its events into a stream, each batch once and, where it is asked to, only
/// right behind another, and tells them to whoever listens.
class EventStream {
 public:
  enum class State : std::uint8_t {
    kThere,
    kSilent,    // nothing is answered, nothing taken
    kElecting,  // says so, and takes nothing
    kAway       // nobody is there
  };
  static constexpr std::size_t kStates = 4;

  EventStream(MemoryBroker& broker, const Clock& clock, const std::string& prefix);
  void turn();
  void set(State state);

 private:
  void answer_api(const Message& message);
  void take(const Message& message);

  const Clock& clock_;
  const Subjects subjects_;
  std::unique_ptr<MemoryBus> bus_;
  State state_ = State::kThere;
  bool is_made_ = false;
  std::map<std::string, TimePoint> taken_;  // by id of a batch
  std::string last_;                        // id
};

}  // namespace muster::sim
