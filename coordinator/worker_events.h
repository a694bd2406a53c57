#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <spdlog/fwd.h>

#include "coordinator/event_log.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// How many events of a namespace are told at once, and then one in so long.
struct EventRate {
  int at_once = 0;
  Millis every{0};
};
inline constexpr EventRate kRejectionRate{60, Millis(1000)};
inline constexpr EventRate kWorkerEventRate{1000, Millis(100)};  // large fleets start at once

/// Events that whoever has the key of one namespace brings about as often as it likes. All share one log with bounds:
/// of each namespace so many are told as its rate allows, and of the others only how many they were.
/// Thread: loop thread only.
class WorkerEvents {
 public:
  /// `left_out`   counts those that are not told
  WorkerEvents(EventLog& events, EventRate rate, spdlog::logger& log, std::uint64_t& left_out)
      : events_(events), rate_(rate), log_(log), left_out_(left_out) {}

  /// As EventLog::emit; the next event that is told says with `left_out` how many were not. What is no namespace counts
  /// as none. False: it is not told.
  bool emit(std::string_view ns, std::string_view what, std::string_view subject, JsonObject data, TimePoint now);

 private:
  struct Told {
    TimePoint paid;  // when all that was told is paid for, each with `every`
    std::uint64_t left_out = 0;
  };

  EventLog& events_;
  EventRate rate_;
  spdlog::logger& log_;
  std::uint64_t& left_out_;
  std::map<std::string, Told, std::less<>> told_;  // by namespace; bounded
};

}  // namespace muster
