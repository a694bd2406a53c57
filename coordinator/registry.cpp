#include "coordinator/registry.h"

#include <algorithm>
#include <set>
#include <utility>

#include "schema/nesting.h"
#include "schema/subjects.h"
#include "schema/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kMaxHealthBytes = 4096;  // schema/worker.capnp

}  // namespace

std::size_t ids_read_together(const TypeDescriptor& type) {
  constexpr std::size_t kUnlessSaid = 64;
  return type.read_batch == 0 ? kUnlessSaid : type.read_batch;
}

std::string_view worker_state_name(WorkerState state) {
  switch (state) {
    case WorkerState::kActive:
      return "active";
    case WorkerState::kDraining:
      return "draining";
    case WorkerState::kLost:
      return "lost";
  }
  return "lost";
}

std::optional<Rejection> Registry::judge(const Announcement& a, const FleetId& fleet) const {
  auto reject = [](std::string code, std::string message) {
    return Rejection{std::move(code), std::move(message), true};
  };
  if (a.protocol != kProtocolMajor) {
    return reject("PROTOCOL", "this fleet speaks protocol " + std::to_string(kProtocolMajor) + ", the worker " +
                                  std::to_string(a.protocol) + ": install a plugin built for this version");
  }
  if (!valid_namespace(a.ns) || !valid_namespace(a.pool)) {
    return reject("NAMESPACE",
                  "namespace and pool are [A-Za-z0-9][A-Za-z0-9_-]{0,63}, not '" + a.ns + "' and '" + a.pool + "'");
  }
  if (!valid_token(a.worker.value)) return reject("LIMIT", "the worker id is no subject token of at most 64 bytes");
  if (a.slots < 1 || a.slots > 1024) return reject("LIMIT", "slots must be 1..1024, not " + std::to_string(a.slots));
  if (const auto* known = find(a.ns, a.worker); known != nullptr && known->announcement.pool != a.pool) {
    return reject("NAMESPACE", "worker " + a.worker.value + " is one of " + a.ns + "/" + known->announcement.pool +
                                   ": an id is one worker's");
  }
  if (!a.fleet.empty() && a.fleet != fleet) {
    return reject("FLEET", "the worker belongs to fleet " + a.fleet.value + ", this is " + fleet.value +
                               ": use another prefix, or restart the worker to move it");
  }
  if (auto rejection = no_room_for(a)) return rejection;
  return no_room_for_manifest(a);
}

/// Over when others have gone: the worker asks again.
std::optional<Rejection> Registry::no_room_for(const Announcement& a) const {
  if (find(a.ns, a.worker) != nullptr) return std::nullopt;
  const auto members = members_.find(a.ns);
  const auto of_namespace = members == members_.end() ? 0 : members->second.workers.size();
  if (of_namespace >= limits_.of_namespace) {
    return Rejection{"LIMIT",
                     "there are " + std::to_string(of_namespace) + " workers of " + a.ns +
                         " already, as many as may be: stop some, or give each more slots",
                     false};
  }
  if (workers_.size() < limits_.all) return std::nullopt;
  return Rejection{"LIMIT",
                   "there are " + std::to_string(workers_.size()) +
                       " workers already, as many as may be: stop some, or give each more slots",
                   false};
}

/// Over when the workers of others have gone, or serve one of those: so it is with those of a version before.
std::optional<Rejection> Registry::no_room_for_manifest(const Announcement& a) const {
  const auto of_namespace = serving_.find(a.ns);
  static const Serving kNone;
  const auto& serving = of_namespace == serving_.end() ? kNone : of_namespace->second;
  if (serving.contains(a.manifest)) return std::nullopt;
  const auto refuse = [&](const std::string& how_many) {
    return Rejection{"LIMIT",
                     "the workers of " + a.ns + " serve " + how_many +
                         " already, as many as may be: start workers of one version and configuration of the plugin",
                     false};
  };
  if (serving.size() >= manifest_limits_.served) {
    return refuse(std::to_string(serving.size()) + " different manifests");
  }
  auto bytes = bytes_of(a.manifest);
  if (bytes == 0) return std::nullopt;  // it is asked once more when its manifest is there
  for (const auto& [hash, workers] : serving) bytes += bytes_of(hash);
  if (bytes <= manifest_limits_.served_bytes) return std::nullopt;
  return refuse("manifests of " + std::to_string(bytes) + " bytes, with this one,");
}

Registry::Change Registry::accept(const Announcement& announcement, TimePoint now, WallTime wall) {
  auto [it, added] = workers_.try_emplace(name_of(announcement));
  auto& worker = it->second;
  const bool was_lost = !added && worker.state == WorkerState::kLost;
  auto said = announcement;
  said.running.clear();   // heartbeats say it
  said.features.clear();  // of 10,000 workers they take hundreds of megabytes
  const bool news = added || was_lost || worker.announcement != said;
  if (!added) serves_no_more(worker.announcement);
  ++serving_[said.ns][said.manifest];
  worker.announcement = std::move(said);
  worker.lets_wait = std::ranges::find(announcement.features, kWaitingRoom) != announcement.features.end();
  worker.last_heard = now;
  if (added) {
    worker.since = wall;
    worker.free_slots = announcement.slots;
    members_[announcement.ns].workers.emplace(announcement.worker, &worker);
  }
  if (was_lost) worker.state = WorkerState::kActive;
  if (news) change(announcement.ns);
  return added ? Change::kJoined : was_lost ? Change::kReturned : Change::kNone;
}

Registry::Change Registry::heartbeat(const Heartbeat& heartbeat, TimePoint now) {
  auto* worker = find(heartbeat.ns, heartbeat.worker);
  if (worker == nullptr) return Change::kNone;
  worker->last_heard = now;
  worker->free_slots = heartbeat.free_slots;
  worker->healthy = heartbeat.healthy;
  worker->health = utf8_prefix(heartbeat.health, kMaxHealthBytes);
  if (heartbeat.free_slots > 0) worker->full_until = now;
  const auto before = worker->state;
  if (heartbeat.draining) {
    worker->state = WorkerState::kDraining;
    worker->drain_said = now;
  } else if (before == WorkerState::kLost || now - worker->drain_said > kLostAfter) {
    worker->state = WorkerState::kActive;  // who says over and over that it does not drain never did
  }
  if (before == worker->state) return Change::kNone;
  change(worker->announcement.ns);
  if (worker->state == WorkerState::kDraining) return Change::kDraining;
  return Change::kReturned;
}

std::vector<Registry::Departure> Registry::expire(TimePoint now) {
  std::vector<Departure> departures;
  for (auto it = workers_.begin(); it != workers_.end();) {
    const auto next = std::next(it);
    const auto silent = now - it->second.last_heard;
    if (it->second.state == WorkerState::kLost) {
      if (silent > kForgetAfter) erase(it);
    } else if (silent > kLostAfter) {
      departures.push_back(lose(it));
    }
    it = next;
  }
  return departures;
}

Registry::Departure Registry::lose(Workers::iterator it) {
  auto& worker = it->second;
  const bool drained = worker.state == WorkerState::kDraining && worker.assigned == 0;
  Departure departure{it->first.id, worker.lane(), drained ? Change::kLeft : Change::kLost};
  worker.state = WorkerState::kLost;
  worker.free_slots = 0;
  worker.assigned = 0;
  drained ? erase(it) : change(departure.lane.ns);
  return departure;
}

void Registry::erase(Workers::iterator it) {
  const auto& said = it->second.announcement;
  serves_no_more(said);
  change(said.ns);
  const auto members = members_.find(said.ns);
  members->second.workers.erase(it->first.id);
  if (members->second.workers.empty()) members_.erase(members);
  workers_.erase(it);
}

void Registry::grace(TimePoint now) {
  for (auto& [name, worker] : workers_) {
    if (worker.state != WorkerState::kLost) worker.last_heard = now;
  }
}

WorkerEntry* Registry::find(std::string_view ns, const WorkerId& id) const {
  const auto members = members_.find(ns);
  if (members == members_.end()) return nullptr;
  const auto it = members->second.workers.find(id);
  return it == members->second.workers.end() ? nullptr : it->second;
}

std::vector<const WorkerEntry*> Registry::called(const WorkerId& id) const {
  std::vector<const WorkerEntry*> found;
  for (const auto& [ns, members] : members_) {
    if (const auto* worker = find(ns, id)) found.push_back(worker);
  }
  return found;
}

const std::vector<WorkerEntry*>& Registry::lane(const Lane& lane) {
  static const std::vector<WorkerEntry*> kNobody;
  const auto* members = members_of(lane.ns);
  if (members == nullptr) return kNobody;
  const auto it = members->pools.find(lane.pool);
  return it == members->pools.end() ? kNobody : it->second;
}

bool Registry::serves(const Lane& which, std::string_view manifest, const WorkerId& except) {
  return std::ranges::any_of(lane(which), [&](const WorkerEntry* worker) {
    return worker->state == WorkerState::kActive && worker->announcement.worker != except &&
           (manifest.empty() || worker->announcement.manifest == manifest);
  });
}

std::size_t Registry::slots(const Lane& which) {
  std::size_t sum = 0;
  for (const auto* worker : lane(which)) {
    if (worker->state == WorkerState::kActive) sum += worker->announcement.slots;
  }
  return sum;
}

std::size_t Registry::capacity(const Lane& which) {
  std::size_t sum = 0;
  for (const auto* worker : lane(which)) {
    sum += worker->state == WorkerState::kActive ? worker->announcement.slots : worker->assigned;
  }
  return sum;
}

namespace {

std::size_t in_memory(const std::vector<std::string>& texts) {
  std::size_t bytes = texts.size() * sizeof(std::string);
  for (const auto& text : texts) bytes += text.size();
  return bytes;
}

std::size_t in_memory(const MatchFilter& filter) {
  auto bytes = sizeof(filter) + in_memory(filter.types) + filter.conditions.size() * sizeof(Condition);
  for (const auto& condition : filter.conditions) {
    if (const auto* tag = std::get_if<TagMatch>(&condition)) bytes += in_memory(tag->keys) + tag->value.size();
    if (const auto* match = std::get_if<PropertyMatch>(&condition)) bytes += match->path.size() + match->value.size();
  }
  return bytes;
}

std::size_t in_memory(const TypeDescriptor& type) {
  auto bytes = sizeof(type) + type.name.size() + type.description.size() + type.schema.size() + type.parent.size() +
               type.label_query.size() + type.operations.size() * sizeof(Operation) + in_memory(type.examples);
  for (const auto& parameter : type.parent_parameters) {
    bytes += sizeof(parameter) + parameter.name.size() + parameter.property.size();
  }
  return bytes;
}

std::size_t in_memory(const Manifest& manifest) {
  auto bytes = sizeof(manifest) + manifest.plugin.size() + manifest.version.size() + manifest.description.size() +
               manifest.label_query.size() + manifest.config_schema.size();
  for (const auto& type : manifest.types) bytes += in_memory(type);
  for (const auto& filter : manifest.filters) bytes += in_memory(filter);
  for (const auto& function : manifest.functions) {
    bytes += sizeof(function) + function.kind.size() + function.name.size() + function.input_schema.size() +
             function.returns.size();
  }
  return bytes;
}

}  // namespace

std::vector<std::string> Registry::learn(const std::string& hash, std::shared_ptr<const Manifest> manifest) {
  const auto ns = manifest->ns;
  latest_[ns] = hash;
  auto& learnt = learnt_[ns];
  std::erase(learnt, hash);
  learnt.push_back(hash);
  in_memory_[hash] = in_memory(*manifest);
  manifests_[hash] = std::move(manifest);
  return forget_manifests(ns);
}

std::vector<std::string> Registry::forget_manifests(const std::string& ns) {
  auto& learnt = learnt_.at(ns);
  const auto& serving = serving_[ns];
  std::vector<std::string> forgotten;
  std::size_t others = 0, bytes = 0;
  for (auto it = learnt.rbegin() + 1; it != learnt.rend(); ++it) {
    if (serving.contains(*it)) continue;
    if (others == manifest_limits_.others || bytes + bytes_of(*it) > manifest_limits_.other_bytes) {
      forgotten.push_back(*it);
      continue;
    }
    ++others;
    bytes += bytes_of(*it);
  }
  for (const auto& hash : forgotten) {
    std::erase(learnt, hash);
    in_memory_.erase(hash);
    manifests_.erase(hash);
  }
  return forgotten;
}

std::size_t Registry::bytes_of(const std::string& hash) const {
  const auto it = in_memory_.find(hash);
  return it == in_memory_.end() ? 0 : it->second;
}

void Registry::serves_no_more(const Announcement& announcement) {
  const auto of_namespace = serving_.find(announcement.ns);
  if (of_namespace == serving_.end()) return;
  auto& serving = of_namespace->second;
  const auto it = serving.find(announcement.manifest);
  if (it != serving.end() && --it->second == 0) serving.erase(it);
  if (serving.empty()) serving_.erase(of_namespace);
}

std::shared_ptr<const Manifest> Registry::manifest(const std::string& hash) const {
  const auto it = manifests_.find(hash);
  return it == manifests_.end() ? nullptr : it->second;
}

namespace {

/// The hashes that those of these workers announce that are active, those of most first; ties: of the newest joined.
std::vector<std::string> announced_by(const std::vector<WorkerEntry*>& workers) {
  struct Votes {
    int workers = 0;
    WallTime newest;
  };
  std::map<std::string, Votes> votes;
  for (const auto* worker : workers) {
    if (worker->state != WorkerState::kActive) continue;
    auto& vote = votes[worker->announcement.manifest];
    ++vote.workers;
    vote.newest = std::max(vote.newest, worker->since);
  }
  std::vector<std::string> hashes;
  for (const auto& [hash, vote] : votes) hashes.push_back(hash);
  std::ranges::stable_sort(hashes, std::greater<>(), [&](const auto& hash) {
    const auto& vote = votes.at(hash);
    return std::pair(vote.workers, vote.newest);
  });
  return hashes;
}

ServedType type_in(std::pair<std::string, std::shared_ptr<const Manifest>> described, std::string_view name) {
  auto& [hash, manifest] = described;
  if (!manifest) return {};
  const auto type = std::ranges::find(manifest->types, name, &TypeDescriptor::name);
  if (type == manifest->types.end()) return {};
  return {std::move(hash), std::move(manifest), &*type};
}

}  // namespace

std::pair<std::string, std::shared_ptr<const Manifest>> Registry::manifest_of(const Lane& which) {
  const auto hashes = announced_by(lane(which));
  return hashes.empty() ? std::pair<std::string, std::shared_ptr<const Manifest>>()
                        : std::pair(hashes.front(), manifest(hashes.front()));
}

std::pair<std::string, std::shared_ptr<const Manifest>> Registry::latest_manifest(std::string_view ns) {
  const auto* members = members_of(ns);
  if (members != nullptr && !members->manifests.empty() && manifests_.contains(members->manifests.front())) {
    return {members->manifests.front(), manifest(members->manifests.front())};
  }
  const auto it = latest_.find(ns);
  if (it == latest_.end() || !manifests_.contains(it->second)) return {};
  return {it->second, manifest(it->second)};
}

ServedType Registry::type(std::string_view name) {
  auto found = type_in(latest_manifest(namespace_of(name)), name);
  if (const auto* members = found ? nullptr : members_of(namespace_of(name))) {
    for (const auto& hash : members->manifests) {
      if ((found = type_in({hash, manifest(hash)}, name))) break;
    }
  }
  return found;
}

std::vector<ServedType> Registry::types(std::string_view ns) {
  std::vector<ServedType> types;
  std::set<std::string_view> names;
  const auto add = [&](const std::string& hash, const std::shared_ptr<const Manifest>& manifest) {
    if (!manifest) return;
    for (const auto& type : manifest->types) {
      if (names.insert(type.name).second) types.push_back({hash, manifest, &type});
    }
  };
  const auto [hash, latest] = latest_manifest(ns);
  add(hash, latest);
  if (const auto* members = members_of(ns)) {
    for (const auto& other : members->manifests) add(other, manifest(other));
  }
  return types;
}

void Registry::change(const std::string& ns) {
  ++changes_;
  members_.at(ns).stale = true;
}

const Registry::Members* Registry::members_of(std::string_view ns) {
  const auto it = members_.find(ns);
  if (it == members_.end()) return nullptr;
  auto& members = it->second;
  if (!std::exchange(members.stale, false)) return &members;
  members.pools.clear();
  std::vector<WorkerEntry*> there;
  for (const auto& [id, worker] : members.workers) {
    if (worker->state == WorkerState::kLost) continue;
    members.pools[worker->announcement.pool].push_back(worker);
    there.push_back(worker);
  }
  members.manifests = announced_by(there);
  return &members;
}

namespace {

std::optional<std::string> type_fault(const TypeDescriptor& type, const std::set<std::string>& names,
                                      std::string_view ns) {
  if (type.name.size() < ns.size() + 3 || type.name.size() > 196 || namespace_of(type.name) != ns ||
      !type.name.substr(ns.size()).starts_with("::")) {
    return "type '" + type.name + "' does not begin with '" + std::string(ns) + "::'";
  }
  if (!type.parent.empty() && !names.contains(type.parent)) {
    return "type " + type.name + " names a parent " + type.parent + " that is not in the manifest";
  }
  if (nested_too_deep(type.schema)) return "the schema of type " + type.name + " is nested too deep";
  if (std::ranges::any_of(type.examples, nested_too_deep))
    return "an example of type " + type.name + " is nested too deep";
  if (type.read_batch > kMaxReadBatch) return "type " + type.name + " reads more than 1000 ids at once";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> manifest_fault(const Manifest& manifest, std::string_view ns) {
  if (manifest.ns != ns)
    return "manifest of namespace '" + manifest.ns + "' from a worker of '" + std::string(ns) + "'";
  if (manifest.types.size() > kMaxTypes) return "more than 4096 types";
  if (nested_too_deep(manifest.config_schema)) return "the schema of the configuration is nested too deep";
  std::set<std::string> names;
  std::map<std::string, std::string> parent_of;
  for (const auto& type : manifest.types) {
    if (!names.insert(type.name).second) return "type " + type.name + " stands twice in the manifest";
    parent_of[type.name] = type.parent;
  }
  for (const auto& type : manifest.types) {
    if (auto fault = type_fault(type, names, ns)) return fault;
    // A type may be its own parent; longer circles have no root to start from.
    std::string at = type.name;
    for (std::size_t steps = 0; !at.empty() && parent_of[at] != at; ++steps) {
      if (steps > names.size()) return "the parents of type " + type.name + " form a circle";
      at = parent_of[at];
    }
  }
  return std::nullopt;
}

}  // namespace muster
