#include "coordinator/supervision.h"

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

bool Supervision::has_room(const Report& report) const {
  std::size_t supervisors = 1, plugins = report.plugins.size(), bytes = report.bytes;
  for (const auto& [name, heard] : reports_) {
    if (name == report.supervisor) continue;
    ++supervisors;
    plugins += heard.report.plugins.size();
    bytes += heard.report.bytes;
  }
  return supervisors <= kMaxSupervisors && plugins <= kMaxSupervisedPlugins && bytes <= kMaxSupervisionBytes;
}

bool Supervision::make_room(const Report& report) {
  while (!has_room(report)) {
    auto victim = reports_.end();
    for (auto it = reports_.begin(); it != reports_.end(); ++it) {
      if (it->second.report.proven || it->first == report.supervisor) continue;
      if (victim == reports_.end() || it->second.at < victim->second.at) victim = it;
    }
    if (!report.proven || victim == reports_.end()) return false;
    reports_.erase(victim);
  }
  return true;
}

Result<std::vector<SupervisedPlugin>> Supervision::take(Report report, TimePoint now) {
  const auto last = reports_.find(report.supervisor);
  if (last != reports_.end()) report.proven |= last->second.report.proven;
  if (!make_room(report)) {
    return Error{Errc::kLimit, "there is no room for what so many supervisors say", {}, 0};
  }
  Heard& heard = reports_[report.supervisor];
  const auto before = by_key(heard.report.plugins);
  std::vector<SupervisedPlugin> quarantined;
  for (auto& plugin : report.plugins) {
    const auto known = before.find({plugin.plugin, plugin.path});
    if (known != before.end() && plugin.ns.empty()) plugin.ns = known->second->ns;
    const bool was = known != before.end() && known->second->state == kQuarantined;
    if (plugin.state == kQuarantined && !was) quarantined.push_back(plugin);
  }
  heard = {std::move(report), now};
  return quarantined;
}

void Supervision::expire(TimePoint now) {
  std::erase_if(reports_, [&](const auto& one) { return now - one.second.at > kSupervisionHolds; });
}

}  // namespace muster
