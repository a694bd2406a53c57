// What a run looks at: its targets, whether each is what it was, and which types of it are listed.

#include <algorithm>
#include <set>

#include "coordinator/must.h"
#include "coordinator/run.h"
#include "coordinator/run_state.h"

namespace muster {
namespace {

constexpr Millis kInspectLimit{30'000};
constexpr std::size_t kInspectedPerSlot = 2;  // at once: the time of the others is not spent in a queue

bool can_read(const TypeDescriptor& type) {
  return std::ranges::find(type.operations, Operation::kRead) != type.operations.end();
}

}  // namespace

void mark_stale(Store& store, const TargetId& target) {
  for (auto& scan : must(store.scans(target))) {
    if (scan.stale) continue;
    scan.stale = true;
    must(store.put_scan(scan));
  }
}

void Run::begin_targets(TimePoint now, const IsTaken& is_taken) {
  using enum TargetRun::Phase;
  waits_for_others_ = false;
  if (std::ranges::none_of(targets_, [](const auto& target) { return target->phase == kWaiting; })) return;
  std::map<Lane, std::size_t> inspecting;
  for (const auto& target : targets_) {
    const bool busy = target->phase == kInspecting && !s_.dispatcher.rests(target->inspection, now);
    inspecting[target->lane] += busy ? 1 : 0;
  }
  for (auto& target : targets_) {
    if (target->phase != kWaiting || target->outdated) continue;
    if (is_taken(target->target.id)) {
      waits_for_others_ = true;
      continue;
    }
    const auto slots = s_.registry.slots(target->lane);
    auto& others = inspecting[target->lane];
    if (slots > 0 && others >= slots * kInspectedPerSlot)
      continue;  // where there is nobody, all wait for somebody at once
    begin_target(*target, now);
    others += target->phase == kInspecting ? 1 : 0;
  }
}

void Run::look_up(TargetRun& target) {
  auto row = must(s_.store.target(target.target.name));
  if (row && row->id == target.target.id) target.target = std::move(*row);
}

void Run::begin_target(TargetRun& target, TimePoint now) {
  look_up(target);
  if (target.target.state == TargetState::kChanged) {
    skip_target(
        target, "TARGET_CHANGED",
        "its system or configuration is another one than its rows came from: look, then `muster targets accept " +
            target.target.name + "`");
    return;
  }
  std::tie(target.manifest_hash, target.manifest) = s_.registry.manifest_of(target.lane);
  if (!target.manifest) {
    skip_target(target, "NO_WORKER", "no worker of " + target.lane.ns + "/" + target.lane.pool + " is there");
    return;
  }
  target.phase = TargetRun::Phase::kInspecting;
  for (const auto& stack : target.rereads ? target.stacks : std::vector<std::string>{}) {
    if (!target.only) target.only.emplace();
    must(s_.store.of_stack(stack, {}, [&](const ManagedView& row) {
      if (row.target == target.target.name) target.only->insert(row.row);
    }));
  }
  JobSpec spec{target.lane,
               {target.target.id, target.target.name, target.target.config},
               {},
               target.manifest_hash,
               InspectJob{},
               Priority::kDiscovery,
               s_.config.limits.job_deadline,
               owner_};
  spec.limit = kInspectLimit;
  target.inspection = submit(std::move(spec), {&target, nullptr, Pending::Inspection{}}, now);
}

void Run::skip_target(TargetRun& target, std::string_view code, const std::string& why) {
  // Its scans are known from the manifest that was seen last: they are reported, incomplete, and their rows go stale.
  if (!target.manifest) std::tie(target.manifest_hash, target.manifest) = s_.registry.latest_manifest(target.lane.ns);
  target.skipped = true;
  problem(target, {}, code, why);
  if (target.manifest) make_scans(target);
  for (auto& scan : target.scans) {
    scan->listing_failed = true;
    finish_scan(target, *scan);
  }
  finish_target(target);
}

void Run::take_inspection(TargetRun& target, JobResult result) {
  if (auto* inspection = std::get_if<InspectResult>(&result)) {
    if (!accept_system(target, inspection->system)) return;
    target.target.plugin_filters = std::move(inspection->filters);
    target.types = std::move(inspection->types);
    target.target.inspected = true;
    must(s_.store.note_target(target.target));
  } else {
    const auto* error = std::get_if<Error>(&result);
    const auto code = error != nullptr ? errc_name(error->code) : errc_name(Errc::kContract);
    const auto message = error != nullptr ? error->message : "the plugin answered an inspection with something else";
    if (target.deserted) {
      skip_target(target, code, "cannot inspect the target: " + message);
      return;
    }
    if (!target.target.inspected) {
      target.unanswered = true;
      skip_target(target, code, "cannot inspect the target, and its filters are not known yet: " + message);
      return;
    }
    if (!target.target.system.empty()) {  // what another has, or has not, says nothing of what is known
      target.unanswered = true;
      skip_target(target, code,
                  "cannot inspect the target, and so not tell whether it is the system that it was: " + message);
      return;
    }
    problem(target, {}, code, "cannot inspect the target; the filters of the last inspection hold: " + message);
  }
  if (!compile_queries(target)) return;
  target.phase = TargetRun::Phase::kScanning;
  make_scans(target);
}

bool Run::accept_system(TargetRun& target, const std::string& system) {
  auto& row = target.target;
  if (!row.system.empty() && !system.empty() && row.system != system) {
    row.state = TargetState::kChanged;
    must(s_.store.note_target(row));
    mark_stale(s_.store, row.id);
    s_.dispatcher.stop_changes(row.id);
    s_.events.emit(row.ns, "target.changed", row.name,
                   JsonObject().text("target", row.name).text("was", row.system).text("is", system).take());
    skip_target(target, "TARGET_CHANGED",
                "the system behind it was " + row.system + " and is " + system +
                    ": nothing is judged until `muster targets accept " + row.name + "`");
    return false;
  }
  if (!system.empty()) row.system = system;
  return true;
}

bool Run::compile_queries(TargetRun& target) {
  auto filters = target.manifest->filters;
  filters.insert(filters.end(), target.target.plugin_filters.begin(), target.target.plugin_filters.end());
  filters.insert(filters.end(), target.target.filters.begin(), target.target.filters.end());
  auto compiled = s_.queries.filters(target.lane.ns, filters);
  if (!compiled) {
    skip_target(target, errc_name(Errc::kInvalidRequest), "a filter cannot be used: " + compiled.error().message);
    return false;
  }
  target.filters = std::move(*compiled);
  if (auto labels = s_.queries.labels(target.manifest)) {
    target.labels = std::move(*labels);
  } else {
    problem(target, {}, errc_name(Errc::kContract), "a label query cannot be used: " + labels.error().message);
  }
  return true;
}

void Run::make_scans(TargetRun& target) {
  std::map<std::string, const TypeDescriptor*> types;
  for (const auto& type : target.manifest->types) {
    const bool here = target.types.empty() || std::ranges::find(target.types, type.name) != target.types.end();
    if (here && (target.rereads ? can_read(type) : type.discoverable)) types[type.name] = &type;
  }
  std::set<std::string> wanted;
  for (const auto& [name, type] : types) {
    if (!target.wanted.empty() && std::ranges::find(target.wanted, name) == target.wanted.end()) continue;
    wanted.insert(name);
    // A child is found below its parents: they are listed too.
    for (std::string at = type->parent; !target.rereads && types.contains(at) && wanted.insert(at).second;) {
      at = types[at]->parent;
    }
  }
  std::map<std::string, Scan*> made;
  while (made.size() < wanted.size()) {
    const auto before = made.size();
    for (const auto& name : wanted) {
      const auto* type = types[name];
      const bool root = target.rereads || type->parent.empty() || type->parent == name;
      if (made.contains(name) || (!root && !made.contains(type->parent))) continue;
      auto& scan = *target.scans.emplace_back(std::make_unique<Scan>());
      made[name] = &scan;
      scan.type = type;
      scan.row = must(s_.store.scan(target.target.id, name));
      if (auto rules = property_rules(type->schema)) scan.unread = UnreadProperties(std::move(*rules));
      scan.reads_items = type->list_gives == ListGives::kIds;
      scan.readable = can_read(*type);
      scan.parent = target.rereads || type->parent.empty() ? nullptr : made[type->parent];
      if (scan.parent != nullptr) {
        scan.parent->children.push_back(&scan);
        scan.parent->wants_properties |= !type->parent_parameters.empty();
      }
      scan.same_filters = scan.row.filters == target.judged_by();
    }
    if (made.size() == before) break;  // a parent that cannot be listed: its children are not reached either
  }
  if (!target.rereads && target.wanted.empty()) mark_unserved(target);
}

void Run::mark_unserved(const TargetRun& target) {
  for (auto& row : must(s_.store.scans(target.target.id))) {
    const auto& all = target.manifest->types;
    const auto type = std::ranges::find(all, row.type, &TypeDescriptor::name);
    const bool looked_at = std::ranges::any_of(target.scans, [&](const auto& scan) { return scan->row.id == row.id; });
    const bool only_managed = type != all.end() && !type->discoverable;
    if (looked_at || only_managed || row.stale) continue;
    row.stale = true;
    must(s_.store.put_scan(row));
  }
}

}  // namespace muster
