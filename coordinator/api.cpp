#include "coordinator/api.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include "coordinator/api_request.h"
#include "coordinator/must.h"
#include "schema/codec.h"
#include "schema/utf8.h"

namespace muster {
namespace {

/// A list under construction: stops taking items when the answer is large enough.
class ItemList {
 public:
  [[nodiscard]] bool full() const { return text_.size() > kMaxAnswerBytes; }
  void add(std::string_view item) {
    if (text_.size() > 1) text_ += ',';
    text_ += item;
  }
  /// `next`   cursor, empty: that was all
  [[nodiscard]] JsonText take(std::string_view next) {
    JsonObject answer;
    text_ += ']';
    answer.raw("items", text_);
    if (next.empty()) {
      answer.raw("next", "null");
    } else {
      answer.text("next", next);
    }
    return answer.take();
  }

 private:
  std::string text_ = "[";
};

/// What a resource was after its history says this of it.
ResourceState state_after(std::string_view cause, bool managed) {
  if (cause == "filtered") return ResourceState::kFiltered;
  const bool gone = cause == "vanished" || cause == "parent" || cause == "deleted" || cause == "replaced";
  if (!gone) return ResourceState::kPresent;
  return managed ? ResourceState::kMissing : ResourceState::kVanished;
}

template <typename T>
bool parse_cursor(const std::string& cursor, T& at) {
  const auto* const end = cursor.data() + cursor.size();
  const auto [stopped, failed] = std::from_chars(cursor.data(), end, at);
  return failed == std::errc() && stopped == end;
}

Error not_a_cursor() {
  return {Errc::kInvalidRequest, "cursor must be `next` of an answer to this verb", {}, 0};
}

/// As many of the items, from the cursor on, as an answer has room for.
Result<JsonText> list_answer(ApiRequest& request, const nlohmann::json& items) {
  const auto cursor = request.text("cursor");
  std::size_t at = 0;
  if (!cursor.empty() && !parse_cursor(cursor, at)) return not_a_cursor();
  ItemList list;
  for (; at < items.size() && !list.full(); ++at) list.add(items[at].dump());
  return list.take(at < items.size() ? std::to_string(at) : std::string());
}

std::optional<ResourceState> parse_state(std::string_view name) {
  for (const auto state : {ResourceState::kPresent, ResourceState::kStale, ResourceState::kMissing,
                           ResourceState::kVanished, ResourceState::kFiltered}) {
    if (resource_state_name(state) == name) return state;
  }
  return std::nullopt;
}

Error unknown(std::string what) {
  return {Errc::kNotFound, std::move(what), {}, 0};
}

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

/// A report that no answer has room for, with only as many of its scans, from the given one on, as fit; `next` says
/// where the others begin. Problems, which have a bound of their own, stand in the first part.
JsonText part_of_report(const JsonText& text, std::size_t from) {
  auto report = nlohmann::json::parse(text);
  auto all = std::move(report["scans"]);
  auto some = nlohmann::json::array();
  std::size_t bytes = 0;
  std::size_t next = from;
  for (; next < all.size() && bytes < kMaxAnswerBytes / 2; ++next) {
    bytes += all[next].dump().size();
    some.push_back(std::move(all[next]));
  }
  report["scans"] = std::move(some);
  if (from > 0) report["problems"] = nlohmann::json::array();
  report["next"] = next < all.size() ? nlohmann::json(std::to_string(next)) : nlohmann::json();
  return report.dump();
}

nlohmann::json operations_of(const TypeDescriptor& type) {
  static constexpr const char* kNames[] = {"list", "read", "create", "update", "delete", "status", "check", "diff"};
  auto names = nlohmann::json::array();
  for (const auto operation : type.operations) names.push_back(kNames[static_cast<std::size_t>(operation)]);
  return names;
}

}  // namespace

const Api::Verb Api::kVerbs[] = {
    {"resources", &Api::resources},
    {"resource", &Api::resource},
    {"counts", &Api::counts},
    {"targets", &Api::targets},
    {"targets-accept", &Api::accept_target},
    {"plugins", &Api::plugins},
    {"workers", &Api::workers},
    {"pools", &Api::pools},
    {"workers-drain", &Api::drain_worker},
    {"supervise", &Api::supervise},
    {"types", &Api::types},
    {"schema", &Api::schema},
    {"discover", &Api::discover},
    {"runs", &Api::runs},
    {"run", &Api::run},
    {"events", &Api::events},
    {"status", &Api::status},
    {"declare", &Api::declare},
    {"plan", &Api::plan},
    {"apply", &Api::apply},
    {"commands", &Api::commands},
    {"command", &Api::command},
    {"cancel", &Api::cancel},
    {"export", &Api::export_resources},
};

JsonText error_answer(std::string_view code, std::string_view message, std::string_view where) {
  return JsonObject()
      .raw("error", JsonObject().text("code", code).text("message", message).text("where", where).take())
      .take();
}

JsonText Api::answer(std::string_view verb, std::string_view body, Effects& effects) {
  const auto* const known = std::ranges::find(kVerbs, verb, &Verb::name);
  if (known == std::end(kVerbs)) {
    const std::string_view name = valid_utf8(verb) ? verb : "(not UTF-8)";
    return error_answer("UNSUPPORTED", "no such verb: " + std::string(name), name);
  }
  auto request = ApiRequest::parse(body);
  if (!request) return error_answer(errc_name(request.error().code), request.error().message, verb);
  const auto before = p_.store.state();
  Result<JsonText> answer = Error{Errc::kInternalFailure, {}, {}, 0};
  try {
    answer = (this->*known->handler)(*request, effects);
  } catch (const StoreFailure&) {
    throw;
  } catch (const std::exception& failure) {  // a fault of ours that one request meets ends none of the others
    answer = Error{Errc::kInternalFailure, std::string("this cannot be answered: ") + failure.what(), {}, 0};
    if (p_.store.state() != before) throw StoreFailure(answer.error());  // half of it is written
  }
  const auto* error = request->fault() ? &*request->fault() : answer ? nullptr : &answer.error();
  return error != nullptr ? error_answer(errc_name(error->code), error->message, verb) : std::move(*answer);
}

JsonText resource_line(const ResourceView& r) {
  JsonObject line;
  line.text("id", r.id.value).text("target", r.target).text("type", r.type).text("native_id", r.native_id);
  if (r.uid.empty()) {
    line.raw("uid", "null");
  } else {
    line.text("uid", r.uid);
  }
  line.text("label", r.label).flag("managed", r.managed);
  if (r.stack.empty()) {
    line.raw("stack", "null");
  } else {
    line.text("stack", r.stack);
  }
  line.text("state", resource_state_name(r.state)).flag("drifted", r.drifted).raw("properties", r.properties);
  if (r.parent_type.empty()) {
    line.raw("parent", "null");
  } else {
    line.raw("parent", JsonObject().text("type", r.parent_type).text("native_id", r.parent_native_id).take());
  }
  return line.text("first_seen", rfc3339(r.first_seen))
      .text("last_seen", rfc3339(r.last_seen))
      .text("changed_at", rfc3339(r.changed_at))
      .number("version", r.version)
      .take();
}

Result<ResourceQuery> resource_query(ApiRequest& request, Store& store) {
  ResourceQuery query;
  query.text = request.text("text");
  query.target = request.text("target");
  query.type = request.text("type");
  query.managed = request.flag("managed");
  query.drifted_only = request.flag("drifted").value_or(false);
  query.limit = request.number("limit", 1000, 1, 100'000);
  const auto state = request.text("state");
  query.state = parse_state(state);
  if (!state.empty() && !query.state) {
    return Error{Errc::kInvalidRequest,
                 "state must be present, stale, missing, vanished or filtered, not '" + state + "'",
                 {},
                 0};
  }
  const auto cursor = request.text("cursor");
  if (!cursor.empty() && !parse_cursor(cursor, query.after)) return not_a_cursor();
  if (request.fault()) return *request.fault();
  if (!query.target.empty() && !must(store.target(query.target))) {
    return Error{Errc::kNotFound, "no target is named '" + query.target + "': `muster targets` lists them", {}, 0};
  }
  return query;
}

Result<JsonText> Api::resources(ApiRequest& request, Effects&) {
  const auto query = resource_query(request, p_.store);
  if (!query) return query.error();
  ItemList items;
  std::size_t taken = 0;
  RowId last = 0;
  bool more = false;
  must(p_.store.query(*query, [&](const ResourceView& resource) {
    more = items.full();
    if (more) return false;
    items.add(resource_line(resource));
    last = resource.row;
    ++taken;
    return true;
  }));
  return items.take(more || taken == query->limit ? std::to_string(last) : "");
}

Result<JsonText> Api::resource(ApiRequest& request, Effects&) {
  const auto id = request.text("id");
  std::optional<ResourceRecord> found;
  std::string name = id;
  if (!id.empty()) {
    found = must(p_.store.one(ResourceId(id)));
  } else {
    const auto target = request.text("target"), type = request.text("type"), native_id = request.text("native_id");
    if (request.fault()) return *request.fault();
    if (target.empty() || type.empty() || native_id.empty()) {
      return Error{Errc::kInvalidRequest, "id must be given, or target, type and native_id", {}, 0};
    }
    name = target + "/" + type + "/" + native_id;
    found = must(p_.store.one(target, type, native_id));
  }
  if (!found) return unknown("no resource " + name);

  std::string at_properties;
  if (const auto at = request.text("at"); !at.empty()) {
    const auto time = parse_rfc3339(at);
    if (!time) return Error{Errc::kInvalidRequest, time.error().message, {}, 0};
    auto then = must(p_.store.properties_at(found->row, *time));
    if (!then) return unknown("no resource " + name + " was known at " + at);
    at_properties = std::move(*then);
    found->properties = at_properties;
    const auto history = must(p_.store.history(found->row));
    const auto later = std::ranges::find_if(history, [&](const HistoryEntry& entry) { return entry.at > *time; });
    if (later != history.begin() && later != history.end()) {
      const auto& last = *std::prev(later);
      found->version = last.version;
      found->changed_at = last.at;
      found->state = state_after(last.cause, found->managed);
    }
    found->last_seen = std::min(found->last_seen, *time);
  }
  auto line = resource_line(*found);
  if (!request.flag("history").value_or(false)) return line;
  std::string history;
  for (const auto& entry : must(p_.store.history(found->row))) {
    history += history.empty() ? "[" : ",";
    history += JsonObject()
                   .number("version", entry.version)
                   .text("at", rfc3339(entry.at))
                   .text("cause", entry.cause)
                   .raw("patch", entry.patch)
                   .take();
  }
  line.back() = ',';
  return line + "\"history\":" + (history.empty() ? "[" : history) + "]}";
}

Result<JsonText> Api::counts(ApiRequest& request, Effects&) {
  auto items = nlohmann::json::array();
  for (const auto& count : must(p_.store.counts())) {
    if (count.resources == 0) continue;  // a type that was looked for and is not there
    items.push_back(
        {{"target", count.target}, {"type", count.type}, {"count", count.resources}, {"stale", count.stale}});
  }
  return list_answer(request, items);
}

Result<JsonText> Api::targets(ApiRequest& request, Effects&) {
  auto items = nlohmann::json::array();
  for (const auto& target : must(p_.store.targets())) {
    items.push_back({{"name", target.name},
                     {"namespace", target.ns},
                     {"pool", target.pool},
                     {"system", target.system},
                     {"state", target_state_name(target.state, target.reachable)},
                     {"discover", target.discover},
                     {"last_run", target.last_run.empty() ? nlohmann::json() : nlohmann::json(target.last_run.value)},
                     {"resources", target.resources}});
  }
  return list_answer(request, items);
}

Result<JsonText> Api::accept_target(ApiRequest& request, Effects&) {
  const auto name = request.required_text("target");
  if (request.fault()) return *request.fault();
  const auto run = p_.discovery.accept_target(name);
  if (!run) return run.error();
  return nlohmann::json{{"target", name}, {"state", "active"}, {"run", run->run.value}}.dump();
}

Result<JsonText> Api::plugins(ApiRequest& request, Effects&) {
  std::map<std::string, std::uint64_t> workers;
  for (const auto& [id, worker] : p_.registry.workers()) {
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
  return list_answer(request, items);
}

Result<JsonText> Api::workers(ApiRequest& request, Effects&) {
  std::map<Lane, PoolLoad> loads;
  for (auto& load : p_.dispatcher.loads(p_.clock.now())) {
    const auto lane = load.lane;
    loads.emplace(lane, std::move(load));
  }
  auto items = nlohmann::json::array();
  for (const auto& [id, worker] : p_.registry.workers()) {
    const auto& a = worker.announcement;
    nlohmann::json item{{"id", id.value},
                        {"namespace", a.ns},
                        {"pool", a.pool},
                        {"plugin", a.plugin},
                        {"version", a.version},
                        {"host", a.host},
                        {"pid", a.pid},
                        {"slots", a.slots},
                        {"free", worker.free_slots},
                        {"jobs", worker.assigned},
                        {"healthy", worker.healthy},
                        {"state", worker_state_name(worker.state)},
                        {"since", rfc3339(worker.since)},
                        {"pool_queued", loads[worker.lane()].queued},
                        {"pool_wait_ms", loads[worker.lane()].wait.count()}};
    if (!worker.health.empty()) item["health"] = worker.health;
    items.push_back(std::move(item));
  }
  return list_answer(request, items);
}

Result<JsonText> Api::pools(ApiRequest& request, Effects&) {
  return list_answer(request, to_json(p_.dispatcher.loads(p_.clock.now())));
}

Result<JsonText> Api::drain_worker(ApiRequest& request, Effects& effects) {
  const auto id = request.required_text("id");
  if (request.fault()) return *request.fault();
  const auto* worker = p_.registry.find(WorkerId(id));
  if (worker == nullptr) return unknown("no worker " + id + ": `muster workers` lists them");
  effects.after_commit.push_back({p_.subjects.worker_control(worker->announcement.ns, worker->announcement.worker),
                                  {},
                                  encode(Control{p_.store.fleet(), Drain{}}),
                                  {}});
  return nlohmann::json{{"id", id}, {"state", "draining"}}.dump();
}

Result<JsonText> Api::types(ApiRequest& request, Effects&) {
  const auto ns = request.text("namespace");
  auto items = nlohmann::json::array();
  for (const auto& [hash, manifest] : p_.registry.manifests()) {
    const bool latest = p_.registry.latest_manifest(manifest->ns).first == hash;
    if (!latest || (!ns.empty() && manifest->ns != ns)) continue;
    for (const auto& type : manifest->types) {
      items.push_back({{"type", type.name},
                       {"namespace", manifest->ns},
                       {"plugin", manifest->plugin},
                       {"parent", type.parent.empty() ? nlohmann::json() : nlohmann::json(type.parent)},
                       {"operations", operations_of(type)},
                       {"description", type.description},
                       {"discoverable", type.discoverable}});
    }
  }
  if (!ns.empty() && items.empty())
    return unknown("no plugin serves namespace '" + ns + "': `muster plugins` lists them");
  return list_answer(request, items);
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
  const auto manifest = p_.registry.latest_manifest(namespace_of(name)).second;
  if (manifest) {
    const auto type = std::ranges::find(manifest->types, name, &TypeDescriptor::name);
    if (type != manifest->types.end()) return usable(type->schema);
  }
  return unknown("no plugin serves type '" + name + "': `muster types` lists them");
}

Result<JsonText> Api::discover(ApiRequest& request, Effects&) {
  ScopePart scope{request.texts("targets"), request.texts("types")};
  scope.stacks = request.texts("stacks");
  if (request.fault()) return *request.fault();
  if (!scope.stacks.empty()) {
    scope.look = Look::kReread;
    std::set<std::string, std::less<>> targets, types;
    for (const auto& stack : scope.stacks) {
      must(p_.store.of_stack(stack, {}, [&](const ManagedView& row) {
        targets.emplace(row.target);
        types.emplace(row.type);
      }));
    }
    if (targets.empty()) return unknown("no stack " + scope.stacks.front() + " has resources");
    if (scope.targets.empty()) scope.targets.assign(targets.begin(), targets.end());
    if (scope.types.empty()) scope.types.assign(types.begin(), types.end());
  }
  const auto run = p_.discovery.trigger(std::move(scope), "user");
  if (!run) return run.error();
  return nlohmann::json{{"run", run->run.value}, {"merged", run->merged}}.dump();
}

JsonText Api::run_object(const RunRow& row) const {
  if (const auto* active = p_.discovery.active(); active != nullptr && active->row().id == row.id)
    return active->report();
  if (row.finished_at) return row.report;
  return JsonObject()
      .text("run", row.id.value)
      .text("state", row.state)
      .text("trigger", row.trigger)
      .raw("started_at", "null")
      .raw("finished_at", "null")
      .number("duration_ms", 0)
      .raw("scans", "[]")
      .raw("problems", "[]")
      .text("waiting", p_.discovery.active() == nullptr ? "waiting for workers" : "waiting for the run before it")
      .take();
}

Result<JsonText> Api::runs(ApiRequest& request, Effects&) {
  const auto limit = request.number("limit", 50, 1, 1000);
  RunId before(request.text("cursor"));
  if (request.fault()) return *request.fault();
  ItemList items;
  std::size_t taken = 0;
  for (const auto& row : must(p_.store.runs(before, limit))) {
    if (items.full()) return items.take(before.value);
    auto object = run_object(row);
    items.add(object.size() > kMaxAnswerBytes ? part_of_report(object, 0) : object);
    before = row.id;
    ++taken;
  }
  return items.take(taken == limit ? before.value : "");
}

Result<JsonText> Api::run(ApiRequest& request, Effects&) {
  const auto id = request.required_text("run");
  const auto cursor = request.text("cursor");
  if (request.fault()) return *request.fault();
  std::size_t from = 0;
  if (!cursor.empty() && !parse_cursor(cursor, from)) return not_a_cursor();
  const auto row = must(p_.store.run(RunId(id)));
  if (!row) return unknown("no run " + id + ": `muster runs` lists them");
  auto object = run_object(*row);
  return object.size() > kMaxAnswerBytes ? part_of_report(object, from) : object;
}

Result<JsonText> Api::events(ApiRequest& request, Effects&) {
  const auto since = request.text("since");
  const auto cursor = request.text("cursor");
  const auto limit = request.number("limit", 500, 1, 10'000);
  if (request.fault()) return *request.fault();
  const auto& from = cursor.empty() ? since : cursor;
  std::uint64_t after = 0;
  const auto [end, problem] = std::from_chars(from.data(), from.data() + from.size(), after);
  if (!from.empty() && (problem != std::errc() || end != from.data() + from.size())) {
    const auto time = parse_rfc3339(from);
    if (!time)
      return Error{Errc::kInvalidRequest, "since is a sequence or an RFC 3339 time, not '" + from + "'", {}, 0};
    after = must(p_.store.sequence_at(*time));
  }
  ItemList items;
  std::size_t taken = 0;
  for (const auto& event : must(p_.store.events(after, limit))) {
    if (items.full()) return items.take(std::to_string(after));
    std::string item;
    append_cloud_event(item, event, p_.store.fleet(), p_.subjects.prefix());
    items.add(item);
    after = event.sequence;
    ++taken;
  }
  return items.take(taken == limit ? std::to_string(after) : "");
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
  check("store", status.store_failures == 0,
        status.store_failures == 0 ? "ok"
                                   : std::to_string(status.store_failures) + " failures: see the coordinator's log");
  check("events", true,
        p_.publisher.streaming() ? "stream " + p_.subjects.event_stream() : "no JetStream: events go out once");
  for (const auto& [id, worker] : p_.registry.workers()) {
    if (worker.state == WorkerState::kActive && !worker.healthy) {
      check(("worker " + id.value).c_str(), false, worker.announcement.plugin + " is ill: " + worker.health);
    }
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
  for (const auto& target : must(p_.store.targets())) {
    resources += target.resources;
    targets += target.state != TargetState::kRemoved ? 1 : 0;
  }
  const auto runs = must(p_.store.runs({}, 1));
  const auto& jobs = p_.dispatcher.counters();
  const auto* active = p_.discovery.active();
  return nlohmann::json{{"state", ok ? "ok" : "degraded"},
                        {"fleet", p_.store.fleet().value},
                        {"coordinator", p_.status.id.value},
                        {"version", MUSTER_VERSION},
                        {"started_at", rfc3339(p_.status.started)},
                        {"checks", std::move(all)},
                        {"targets", targets},
                        {"resources", resources},
                        {"workers", p_.registry.workers().size()},
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
                        {"store_failures", p_.status.store_failures}}
      .dump();
}

}  // namespace muster
