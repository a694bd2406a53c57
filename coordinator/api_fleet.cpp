// The verbs of what the fleet consists of: targets, plugins, workers, types, and how it is.

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "coordinator/api.h"
#include "coordinator/api_answers.h"
#include "coordinator/api_request.h"
#include "coordinator/must.h"
#include "schema/codec.h"

namespace muster {
namespace {

constexpr Millis kStoreFailingFor{60'000};  // after a failure

std::string_view target_state_name(TargetState state, bool reachable) {
  switch (state) {
    case TargetState::kActive:
      return reachable ? "active" : "unreachable";
    case TargetState::kChanged:
      return "changed";
    case TargetState::kRemoved:
      return "removed";
  }
  return "active";
}

nlohmann::json operations_of(const TypeDescriptor& type) {
  static constexpr const char* kNames[] = {"list", "read", "create", "update", "delete", "status", "check", "diff"};
  auto names = nlohmann::json::array();
  for (const auto operation : type.operations) names.push_back(kNames[static_cast<std::size_t>(operation)]);
  return names;
}

}  // namespace

Result<JsonText> Api::targets(ApiRequest& request, Effects&) {
  auto items = nlohmann::json::array();
  for (const auto& target : must(p_.store.counted_targets())) {
    items.push_back({{"name", target.name},
                     {"namespace", target.ns},
                     {"pool", target.pool},
                     {"system", target.system},
                     {"state", target_state_name(target.state, target.reachable)},
                     {"discover", target.discover},
                     {"last_run", target.last_run.empty() ? nlohmann::json() : nlohmann::json(target.last_run.value)},
                     {"resources", target.resources}});
  }
  return list_answer(request, items, {"name"});
}

Result<JsonText> Api::accept_target(ApiRequest& request, Effects&) {
  const auto name = request.required_text("target");
  if (request.fault()) return *request.fault();
  const auto run = p_.discovery.accept_target(name);
  if (!run) return run.error();
  return nlohmann::json{{"target", name}, {"state", "active"}, {"run", run->run.value}}.dump();
}

Result<JsonText> Api::plugins(ApiRequest& request, Effects&) {
  const auto ns = request.text("namespace");
  std::map<std::string, std::uint64_t> workers;
  for (const auto& [name, worker] : p_.registry.workers()) {
    if (worker.state != WorkerState::kLost) ++workers[worker.announcement.manifest];
  }
  auto items = nlohmann::json::array();
  for (const auto& [hash, manifest] : p_.registry.manifests()) {
    const bool latest = p_.registry.latest_manifest(manifest->ns).first == hash;
    if (workers[hash] == 0 && !latest) continue;
    auto types = nlohmann::json::array();
    for (const auto& type : manifest->types) types.push_back(type.name);
    items.push_back({{"namespace", manifest->ns},
                     {"plugin", manifest->plugin},
                     {"version", manifest->version},
                     {"description", manifest->description},
                     {"manifest", hash},
                     {"types", std::move(types)},
                     {"workers", workers[hash]},
                     {"state", workers[hash] > 0 ? "active" : "absent"}});
  }
  add_quarantined(items);
  if (!ns.empty()) {
    std::erase_if(items.get_ref<nlohmann::json::array_t&>(), [&](const auto& item) { return item["namespace"] != ns; });
    if (items.empty()) return unknown("no plugin serves namespace '" + ns + "': `muster plugins` lists them");
  }
  return list_answer(request, items, {"plugin", "namespace", "manifest", "host", "path"});
}

Result<JsonText> Api::workers(ApiRequest& request, Effects&) {
  std::map<Lane, PoolLoad> loads;
  for (auto& load : p_.dispatcher.loads(p_.clock.now())) {
    const auto lane = load.lane;
    loads.emplace(lane, std::move(load));
  }
  auto items = nlohmann::json::array();
  for (const auto& [name, worker] : p_.registry.workers()) {
    const auto& a = worker.announcement;
    nlohmann::json item{{"id", name.id.value},
                        {"namespace", a.ns},
                        {"pool", a.pool},
                        {"plugin", a.plugin},
                        {"version", a.version},
                        {"host", a.host},
                        {"pid", a.pid},
                        {"slots", a.slots},
                        {"free", worker.free_slots},
                        {"jobs", worker.in_slots()},
                        {"healthy", worker.healthy},
                        {"state", worker_state_name(worker.state)},
                        {"since", rfc3339(worker.since)},
                        {"pool_queued", loads[worker.lane()].queued},
                        {"pool_wait_ms", loads[worker.lane()].wait.count()}};
    if (!worker.health.empty()) item["health"] = worker.health;
    items.push_back(std::move(item));
  }
  return list_answer(request, items, {"id"});
}

Result<JsonText> Api::pools(ApiRequest& request, Effects&) {
  return list_answer(request, to_json(p_.dispatcher.loads(p_.clock.now())), {"namespace", "pool"});
}

Result<JsonText> Api::drain_worker(ApiRequest& request, Effects& effects) {
  const auto id = request.required_text("id");
  if (request.fault()) return *request.fault();
  auto workers = p_.registry.called(WorkerId(id));
  if (workers.empty()) return unknown("no worker " + id + ": `muster workers` lists them");
  std::erase_if(workers, [](const auto* worker) { return worker->state == WorkerState::kLost; });
  if (workers.empty()) {
    return Error{Errc::kConflict, "worker " + id + " is lost: it is not heard, and takes no jobs until it is", {}, 0};
  }
  for (const auto* worker : workers) {
    effects.after_commit.push_back({p_.subjects.worker_control(worker->announcement.ns, worker->announcement.worker),
                                    {},
                                    encode(Control{p_.store.fleet(), Drain{}}),
                                    {}});
  }
  return nlohmann::json{{"id", id}, {"state", "draining"}}.dump();
}

Result<JsonText> Api::types(ApiRequest& request, Effects&) {
  const auto ns = request.text("namespace");
  auto items = nlohmann::json::array();
  for (const auto& [hash, manifest] : p_.registry.manifests()) {
    const bool latest = p_.registry.latest_manifest(manifest->ns).first == hash;
    if (!latest || (!ns.empty() && manifest->ns != ns)) continue;
    for (const auto& [described_by, of, served] : p_.registry.types(manifest->ns)) {
      const auto& type = *served;
      items.push_back({{"type", type.name},
                       {"namespace", of->ns},
                       {"plugin", of->plugin},
                       {"parent", type.parent.empty() ? nlohmann::json() : nlohmann::json(type.parent)},
                       {"operations", operations_of(type)},
                       {"description", type.description},
                       {"discoverable", type.discoverable}});
    }
  }
  if (!ns.empty() && items.empty())
    return unknown("no plugin serves namespace '" + ns + "': `muster plugins` lists them");
  return list_answer(request, items, {"type"});
}

Result<JsonText> Api::schema(ApiRequest& request, Effects&) {
  const auto usable = [](const JsonText& schema) {
    return nlohmann::json::accept(schema) ? schema : JsonText(R"({"type":"object"})");
  };
  if (const auto ns = request.text("namespace"); !ns.empty()) {  // of the targets' config
    if (request.fault()) return *request.fault();
    const auto manifest = p_.registry.latest_manifest(ns).second;
    if (!manifest) return unknown("no plugin serves namespace '" + ns + "': `muster plugins` lists them");
    return usable(manifest->config_schema);
  }
  const auto name = request.required_text("type");
  if (request.fault()) return *request.fault();
  if (const auto served = p_.registry.type(name)) return usable(served.type->schema);
  return unknown("no plugin serves type '" + name + "': `muster types` lists them");
}

nlohmann::json Api::checks() {
  auto checks = nlohmann::json::array();
  auto check = [&](const char* name, bool ok, std::string message) {
    checks.push_back({{"name", name}, {"ok", ok}, {"message", std::move(message)}});
  };
  const auto& status = p_.status;
  check("bus", status.bus.connected && status.bus.slow_consumer_drops == 0,
        status.bus.slow_consumer_drops == 0
            ? "connected"
            : std::to_string(status.bus.slow_consumer_drops) + " messages were dropped");
  const bool failing = status.store_failures > 0 && p_.clock.now() - status.store_failed < kStoreFailingFor;
  check("store", !failing,
        status.store_failures == 0 ? "ok"
                                   : std::to_string(status.store_failures) + " failures" +
                                         (failing ? ": see the coordinator's log" : ", and works again"));
  check("events", true,
        p_.publisher.streaming() ? "stream " + p_.subjects.event_stream()
                                 : "no stream takes them: they go out once, and the coordinator's log says why");
  for (const auto& [name, worker] : p_.registry.workers()) {
    if (worker.state == WorkerState::kActive && !worker.healthy) {
      check(("worker " + name.id.value).c_str(), false, worker.announcement.plugin + " is ill: " + worker.health);
    }
  }
  auto quarantined = nlohmann::json::array();
  add_quarantined(quarantined);
  for (const auto& plugin : quarantined) {
    check(("plugin " + plugin["plugin"].get<std::string>()).c_str(), false,
          "quarantined on " + plugin["host"].get<std::string>() + ": " + plugin["reason"].get<std::string>());
  }
  for (const auto& target : must(p_.store.targets())) {
    if (target.state == TargetState::kRemoved || !target.discover) continue;
    const bool served = p_.registry.serves({target.ns, target.pool}, {});
    const bool ok = served && target.state == TargetState::kActive && target.reachable;
    check(("target " + target.name).c_str(), ok,
          !served ? "no worker of " + target.ns + "/" + target.pool
                  : std::string(target_state_name(target.state, target.reachable)));
  }
  return checks;
}

Result<JsonText> Api::status(ApiRequest&, Effects&) {
  auto all = checks();
  const bool ok = std::ranges::all_of(all, [](const auto& check) { return check["ok"].template get<bool>(); });
  std::uint64_t resources = 0, targets = 0;
  for (const auto& target : must(p_.store.counted_targets())) {
    resources += target.resources;
    targets += target.state != TargetState::kRemoved ? 1 : 0;
  }
  const auto workers = std::ranges::count_if(p_.registry.workers(),
                                             [](const auto& each) { return each.second.state != WorkerState::kLost; });
  const auto runs = must(p_.store.runs({}, 1));
  const auto& jobs = p_.dispatcher.counters();
  const auto& running = p_.discovery.active();
  const auto* active = running.empty() ? nullptr : running.front().run.get();
  return nlohmann::json{{"state", ok ? "ok" : "degraded"},
                        {"fleet", p_.store.fleet().value},
                        {"coordinator", p_.status.id.value},
                        {"version", MUSTER_VERSION},
                        {"started_at", rfc3339(p_.status.started)},
                        {"checks", std::move(all)},
                        {"targets", targets},
                        {"resources", resources},
                        {"workers", workers},
                        {"runs",
                         {{"active", active != nullptr ? nlohmann::json(active->row().id.value) : nlohmann::json()},
                          {"last", runs.empty() ? nlohmann::json() : nlohmann::json(runs.front().id.value)},
                          {"last_state", runs.empty() ? nlohmann::json() : nlohmann::json(runs.front().state)}}},
                        {"jobs",
                         {{"in_flight", p_.dispatcher.in_flight()},
                          {"waiting", p_.dispatcher.waiting()},
                          {"dispatched", jobs.dispatched},
                          {"results", jobs.results},
                          {"busy", jobs.busy},
                          {"resent", jobs.resent},
                          {"retried", jobs.retried},
                          {"workers_lost", jobs.lost},
                          {"failed", jobs.failed},
                          {"stale_replies", jobs.stale_replies},
                          {"refused_parts", jobs.refused_parts}}},
                        {"events",
                         {{"last", must(p_.store.last_sequence())},
                          {"published", p_.publisher.published()},
                          {"resent", p_.publisher.resent()}}},
                        {"malformed", p_.status.malformed},
                        {"unknown_workers", p_.status.unknown_workers},
                        {"rejections_left_out", p_.status.rejections_left_out},
                        {"worker_events_left_out", p_.status.worker_events_left_out},
                        {"late_successes_left_out", p_.status.late_successes_left_out},
                        {"overloads", p_.status.overloads},
                        {"store_failures", p_.status.store_failures}}
      .dump();
}

}  // namespace muster
