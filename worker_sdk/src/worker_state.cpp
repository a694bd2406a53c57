// What a worker says of itself.

#include <algorithm>

#include "worker_core.h"

namespace muster {

std::string_view state_name(WorkerCore::State state) {
  switch (state) {
    case WorkerCore::State::kInitializing:
      return "initializing";
    case WorkerCore::State::kAnnouncing:
      return "announcing";
    case WorkerCore::State::kActive:
      return "active";
    case WorkerCore::State::kDraining:
      return "draining";
    case WorkerCore::State::kCleaning:
      return "cleaning";
    case WorkerCore::State::kDrained:
      return "drained";
    case WorkerCore::State::kRejected:
      return "rejected";
    case WorkerCore::State::kStuck:
      return "stuck";
    case WorkerCore::State::kFailed:
      return "failed";
  }
  return "unknown";
}

MicroService::Stats WorkerCore::stats() const {
  MicroService::Stats stats = stats_;
  stats.data = {{"state", state_name(state_)},
                {"slots", options_.slots},
                {"free", free_slots()},
                {"stuck", stuck_slots()},
                {"busy", counters_.busy},
                {"duplicates", counters_.duplicates},
                {"malformed", counters_.malformed},
                {"foreign", counters_.foreign},
                {"unsent", counters_.unsent},
                {"dropped", bus_.status().slow_consumer_drops}};
  stats.data["journal"] = nullptr;  // there is none
  if (options_.journal) stats.data["journal"] = {{"results", unacked_.size()}, {"bytes", unacked_bytes_}};
  return stats;
}

std::uint16_t WorkerCore::free_slots() const {
  return state_ == State::kActive ? static_cast<std::uint16_t>(options_.slots - slots_.size()) : 0;
}

std::uint16_t WorkerCore::stuck_slots() const {
  return static_cast<std::uint16_t>(std::count_if(
      slots_.begin(), slots_.end(), [](const auto& entry) { return entry.second.phase == Slot::Phase::kStuck; }));
}

std::vector<Running> WorkerCore::running() const {
  std::vector<Running> running;
  for (const auto& [token, slot] : slots_) {
    if (slot.phase != Slot::Phase::kStuck) running.push_back({slot.job->id, token});
  }
  return running;
}

bool WorkerCore::runs_jobs() const {
  return std::ranges::any_of(slots_, [](const auto& entry) { return entry.second.phase != Slot::Phase::kClaimed; });
}

}  // namespace muster
