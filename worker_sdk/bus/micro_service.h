#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "worker_sdk/bus/bus.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// Answers $SRV.PING, INFO and STATS (NATS ADR-32), so that `nats micro` shows the fleet. One endpoint.
/// Thread: the loop's.
class MicroService {
 public:
  struct Description {
    std::string name;     // other characters than letters, digits, `_` and `-` become `-`
    std::string id;       // a subject token, of one start of the process
    std::string version;  // SemVer
    std::string description;
    std::map<std::string, std::string> metadata;
    std::string endpoint, subject, queue_group;
    WallTime started;
  };
  struct Stats {
    std::uint64_t requests = 0, errors = 0;
    std::string last_error;
    std::chrono::nanoseconds processing{0};          // of all requests together
    nlohmann::json data = nlohmann::json::object();  // whatever else is counted
  };

  explicit MicroService(Description description);

  /// errors   as Bus::subscribe
  Result<void> start(Bus& bus);
  /// Whether the message was for this service; its answer is due up to 50 ms later, for many answer one question.
  bool handle(const Message& message, TimePoint now, Random& random);
  [[nodiscard]] TimePoint next_due() const;
  /// Publishes what is due.
  void tick(Bus& bus, const Stats& stats, TimePoint now);

 private:
  enum class Verb : std::uint8_t { kPing, kInfo, kStats };
  struct Pending {
    TimePoint due;
    Verb verb;
    std::string reply;
  };
  [[nodiscard]] std::string answer(Verb verb, const Stats& stats) const;

  Description description_;
  std::map<SubscriptionId, Verb> subscriptions_;
  std::vector<Pending> pending_;
};

}  // namespace muster
