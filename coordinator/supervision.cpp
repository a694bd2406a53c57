#include "coordinator/supervision.h"

#include <algorithm>

namespace muster {
namespace {

constexpr std::string_view kQuarantined = "quarantined";

using Key = std::pair<std::string_view, std::string_view>;  // two plugins of one name may lie in two folders

std::map<Key, const SupervisedPlugin*> by_key(const std::vector<SupervisedPlugin>& plugins) {
  std::map<Key, const SupervisedPlugin*> map;
  for (const auto& plugin : plugins) map.emplace(Key(plugin.plugin, plugin.path), &plugin);
  return map;
}

}  // namespace

void Supervision::Room::add(const Report& report) {
  ++supervisors;
  plugins += report.plugins.size();
  bytes += report.bytes;
}

std::size_t Supervision::Room::share() const {
  constexpr std::size_t kWhole = 1'000'000;
  return std::max({supervisors * kWhole / kMaxSupervisors, plugins * kWhole / kMaxSupervisedPlugins,
                   bytes * kWhole / kMaxSupervisionBytes});
}

bool Supervision::Room::within_bounds() const {
  return supervisors <= kMaxSupervisors && plugins <= kMaxSupervisedPlugins && bytes <= kMaxSupervisionBytes;
}

std::map<std::string, Supervision::Room> Supervision::taken_without(const std::string& supervisor) const {
  std::map<std::string, Room> taken;
  for (const auto& [name, heard] : reports_) {
    if (name != supervisor) taken[heard.room_of].add(heard.report);
  }
  return taken;
}

std::optional<std::string> Supervision::make_room(const Report& report) {
  for (;;) {
    auto taken = taken_without(report.supervisor);
    Room all;
    all.add(report);
    for (const auto& [ns, room] : taken) {
      all.supervisors += room.supervisors;
      all.plugins += room.plugins;
      all.bytes += room.bytes;
    }
    const auto share_of = [&](const std::string& ns) { return taken[ns].share(); };
    // Of several it takes the room of that which has least.
    const auto own = std::ranges::min_element(report.proven_by, {}, share_of);
    if (all.within_bounds()) return own == report.proven_by.end() ? std::string() : *own;
    if (own == report.proven_by.end()) return std::nullopt;
    auto victim = taken.find({});
    if (victim == taken.end()) {
      taken[*own].add(report);
      victim = std::ranges::max_element(taken, {}, [](const auto& entry) { return entry.second.share(); });
      if (victim->second.share() <= taken[*own].share()) return std::nullopt;
    }
    forget_oldest(victim->first, report.supervisor);
  }
}

void Supervision::forget_oldest(const std::string& room_of, const std::string& except) {
  auto oldest = reports_.end();
  for (auto it = reports_.begin(); it != reports_.end(); ++it) {
    if (it->second.room_of != room_of || it->first == except) continue;
    if (oldest == reports_.end() || it->second.at < oldest->second.at) oldest = it;
  }
  if (oldest != reports_.end()) reports_.erase(oldest);
}

Result<std::vector<SupervisedPlugin>> Supervision::take(Report report, TimePoint now) {
  const auto last = reports_.find(report.supervisor);
  if (last != reports_.end() && report.proven_by.empty()) report.proven_by = last->second.report.proven_by;
  auto room_of = make_room(report);
  if (!room_of) return Error{Errc::kLimit, "there is no room for what so many supervisors say", {}, 0};
  Heard& heard = reports_[report.supervisor];
  const auto before = by_key(heard.report.plugins);
  std::vector<SupervisedPlugin> quarantined;
  std::set<Key> named;
  for (auto& plugin : report.plugins) {
    const auto known = before.find({plugin.plugin, plugin.path});
    if (known != before.end() && plugin.ns.empty()) plugin.ns = known->second->ns;
    const bool was = known != before.end() && known->second->state == kQuarantined;
    const bool again = !named.emplace(plugin.plugin, plugin.path).second;
    if (plugin.state == kQuarantined && !was && !again) quarantined.push_back(plugin);
  }
  heard = {std::move(report), now, std::move(*room_of)};
  return quarantined;
}

void Supervision::expire(TimePoint now) {
  std::erase_if(reports_, [&](const auto& one) { return now - one.second.at > kSupervisionHolds; });
}

}  // namespace muster
