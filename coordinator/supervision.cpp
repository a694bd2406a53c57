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

std::vector<SupervisedPlugin> Supervision::take(Report report, TimePoint now) {
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
