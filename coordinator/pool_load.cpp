#include "coordinator/pool_load.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "coordinator/dispatcher.h"

namespace muster {
namespace {

constexpr Millis kLongWait{1000};
constexpr Millis kRelief{10'000};
constexpr Millis kTellAgain{60'000};

}  // namespace

nlohmann::json to_json(const PoolLoad& load) {
  return {{"namespace", load.lane.ns}, {"pool", load.lane.pool}, {"workers", load.workers},     {"slots", load.slots},
          {"busy", load.busy},         {"queued", load.queued},  {"wait_ms", load.wait.count()}};
}

nlohmann::json to_json(const std::vector<PoolLoad>& loads) {
  auto all = nlohmann::json::array();
  for (const auto& load : loads) all.push_back(to_json(load));
  return all;
}

std::vector<PoolLoad> Dispatcher::loads(TimePoint now, const std::set<Lane>* only) {
  std::map<Lane, PoolLoad> all;
  std::map<Lane, std::size_t> waiting;  // at workers
  for (const auto& [name, worker] : registry_.workers()) {
    if (worker.state != WorkerState::kActive || (only != nullptr && !only->contains(worker.lane()))) continue;
    auto& load = all[worker.lane()];
    ++load.workers;
    load.slots += worker.announcement.slots;
    waiting[worker.lane()] += worker.waiting();
  }
  for (const auto& [lane, state] : lanes_) {
    if (state.jobs == 0 || (only != nullptr && !only->contains(lane))) continue;
    auto& load = all[lane];
    load.queued = std::min(state.flying, waiting[lane]);
    load.busy = state.flying - load.queued;
    for (const auto& queue : state.queues) {
      for (const auto& turn : queue.targets) {
        if (limiter_.ready_at(lane.ns, turn.target, now) > now) continue;
        for (const auto& id : turn.jobs) {
          const auto it = jobs_.find(id);
          if (it == jobs_.end() || it->second.state != State::kQueued) continue;
          ++load.queued;
          load.wait = std::max(load.wait, std::chrono::duration_cast<Millis>(now - it->second.waits_since));
        }
      }
    }
  }
  std::vector<PoolLoad> loads;
  for (auto& [lane, load] : all) {
    load.lane = lane;
    loads.push_back(std::move(load));
  }
  return loads;
}

std::vector<PoolWatch::News> PoolWatch::look(const std::vector<PoolLoad>& loads, TimePoint now) {
  std::vector<News> news;
  std::map<Lane, const PoolLoad*> now_there;
  for (const auto& load : loads) {
    now_there[load.lane] = &load;
    const auto known = saturated_.find(load.lane);
    const bool full = load.queued > 0 && load.slots > 0 && load.busy >= load.slots;
    if (full && known != saturated_.end()) known->second.last_waited = now;
    if (load.wait < kLongWait) continue;
    const auto [it, fresh] = saturated_.try_emplace(load.lane);
    it->second.last_waited = now;
    if (!fresh && now - it->second.told < kTellAgain) continue;
    it->second.told = now;
    news.push_back({load, true});
  }
  for (auto it = saturated_.begin(); it != saturated_.end();) {
    if (now - it->second.last_waited < kRelief) {
      ++it;
      continue;
    }
    const auto there = now_there.find(it->first);
    PoolLoad none;
    none.lane = it->first;
    news.push_back({there == now_there.end() ? none : *there->second, false});
    it = saturated_.erase(it);
  }
  return news;
}

}  // namespace muster
