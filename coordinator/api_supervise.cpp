#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include "coordinator/api.h"
#include "coordinator/api_request.h"
#include "coordinator/supervision.h"

namespace muster {
namespace {

constexpr std::size_t kMaxReportBytes = 256 * 1024;
constexpr std::size_t kMaxNameBytes = 300;
constexpr std::size_t kMaxPathBytes = 4096;
constexpr std::size_t kMaxWorkers = 1024;  // of one plugin
constexpr std::array<std::string_view, 5> kStates{"starting", "running", "waiting", "quarantined", "draining"};

Error not_so(const std::string& what) {
  return {Errc::kInvalidRequest, what, {}, 0};
}

bool text_up_to(const nlohmann::json& object, const char* name, std::size_t most) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() && it->get_ref<const std::string&>().size() <= most;
}

Result<SupervisedPlugin> read_plugin(const nlohmann::json& item) {
  if (!item.is_object() || !text_up_to(item, "plugin", kMaxNameBytes) || !text_up_to(item, "path", kMaxPathBytes) ||
      !text_up_to(item, "state", kMaxNameBytes)) {
    return not_so("each of `plugins` has texts `plugin`, `path` and `state`");
  }
  SupervisedPlugin plugin{item["plugin"], item["path"], item["state"], {}, 0};
  if (std::ranges::find(kStates, plugin.state) == kStates.end()) return not_so("unknown state " + plugin.state);
  if (item.contains("reason")) {
    if (!text_up_to(item, "reason", kMaxPathBytes)) return not_so("`reason` is a text of at most 4096 bytes");
    plugin.reason = item["reason"];
  }
  if (item.contains("restarts")) {
    if (!item["restarts"].is_number_unsigned()) return not_so("`restarts` is a number");
    plugin.restarts = item["restarts"];
  }
  const auto workers = item.value("workers", nlohmann::json::array());
  if (!workers.is_array() || workers.size() > kMaxWorkers) return not_so("`workers` are at most 1024 ids");
  for (const auto& worker : workers) {
    if (!worker.is_string() || worker.get_ref<const std::string&>().size() > kMaxNameBytes) {
      return not_so("the id of a worker is a text of at most 300 bytes");
    }
    plugin.workers.emplace_back(worker.get<std::string>());
  }
  return plugin;
}

}  // namespace

Result<JsonText> Api::supervise(ApiRequest& request, Effects&) {
  Supervision::Report report{request.required_text("supervisor"), request.required_text("host"), {}, request.bytes()};
  if (request.fault()) return *request.fault();
  const auto* items = request.raw("plugins");
  if (items == nullptr || !items->is_array()) return not_so("`plugins` must be a list");
  if (std::max(report.supervisor.size(), report.host.size()) > kMaxNameBytes) return not_so("names end at 300 bytes");
  for (const auto& item : *items) {
    auto plugin = read_plugin(item);
    if (!plugin) return plugin.error();
    report.plugins.push_back(std::move(*plugin));
  }
  const auto now = p_.clock.now();
  p_.supervision.expire(now);
  if (report.bytes > kMaxReportBytes) return Error{Errc::kLimit, "a report has at most 256 KiB", {}, 0};

  // Who knows the id of a worker has started it: workers of other namespaces never learn it.
  auto workers = nlohmann::json::array();
  std::set<Lane> lanes;
  for (auto& plugin : report.plugins) {
    for (const WorkerId& id : plugin.workers) {
      for (const auto* worker : p_.registry.called(id)) {
        plugin.ns = worker->announcement.ns;
        if (worker->state != WorkerState::kLost) report.proven_by.insert(plugin.ns);
        lanes.insert(worker->lane());
        workers.push_back({{"worker", id.value},
                           {"state", worker_state_name(worker->state)},
                           {"namespace", worker->announcement.ns},
                           {"pool", worker->announcement.pool},
                           {"jobs", worker->in_slots()}});
      }
    }
  }
  const auto supervisor = report.supervisor;
  const auto host = report.host;
  const auto quarantined = p_.supervision.take(std::move(report), now);
  if (!quarantined) return quarantined.error();
  for (const auto& plugin : *quarantined) {
    p_.worker_events.emit(plugin.ns, "worker.quarantined", plugin.plugin,
                          JsonObject()
                              .text("plugin", plugin.plugin)
                              .text("reason", plugin.reason)
                              .text("host", host)
                              .text("supervisor", supervisor)
                              .text("path", plugin.path)
                              .number("restarts", plugin.restarts),
                          now);
  }
  const auto loads = p_.dispatcher.loads(now, &lanes);
  return nlohmann::json{{"workers", std::move(workers)}, {"pools", to_json(loads)}}.dump();
}

void Api::add_quarantined(nlohmann::json& items) {
  p_.supervision.expire(p_.clock.now());
  for (const auto& [supervisor, heard] : p_.supervision.reports()) {
    for (const auto& plugin : heard.report.plugins) {
      if (plugin.state != "quarantined") continue;
      items.push_back({{"namespace", plugin.ns},
                       {"plugin", plugin.plugin},
                       {"version", ""},
                       {"description", ""},
                       {"manifest", ""},
                       {"types", nlohmann::json::array()},
                       {"workers", plugin.workers.size()},
                       {"state", plugin.state},
                       {"reason", plugin.reason},
                       {"host", heard.report.host},
                       {"path", plugin.path},
                       {"restarts", plugin.restarts}});
    }
  }
}

}  // namespace muster
