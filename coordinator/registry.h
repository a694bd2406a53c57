#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/messages.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// A namespace and pool: the workers that can stand in for each other, and the jobs they share.
struct Lane {
  std::string ns;
  std::string pool;
  auto operator<=>(const Lane&) const = default;
};

/// Ids are of one namespace: who may speak for another may say the same one.
struct WorkerName {
  std::string ns;
  WorkerId id;
  auto operator<=>(const WorkerName&) const = default;
};
inline WorkerName name_of(const Announcement& announcement) {
  return {announcement.ns, announcement.worker};
}

/// A type, and where it is described.
struct ServedType {
  std::string hash;  // of the manifest
  std::shared_ptr<const Manifest> manifest;
  const TypeDescriptor* type = nullptr;  // in that

  explicit operator bool() const { return type != nullptr; }
};

enum class WorkerState : std::uint8_t { kActive, kDraining, kLost };
std::string_view worker_state_name(WorkerState state);

struct WorkerEntry {
  Announcement announcement;
  WorkerState state = WorkerState::kActive;
  TimePoint last_heard;
  WallTime since;
  std::uint16_t free_slots = 0;  // as it said last
  std::uint16_t assigned = 0;    // jobs of this coordinator that it is known to hold
  TimePoint full_until;          // after a `busy`: until then nothing goes there
  bool lets_wait = false;        // jobs beyond its slots, for one to become free
  bool quick = false;            // its last read took less time than a worker has to say that it took it
  TimePoint no_wait_until;       // what waited there has waited in vain
  TimePoint drain_said;          // the last time that it said it drains
  bool healthy = true;
  std::string health;

  [[nodiscard]] Lane lane() const { return {announcement.ns, announcement.pool}; }
  /// Takes a job now, as far as is known.
  [[nodiscard]] bool has_room(TimePoint now) const {
    return state == WorkerState::kActive && assigned < announcement.slots && full_until <= now;
  }
  /// Of its jobs those that have no slot yet.
  [[nodiscard]] std::uint16_t waiting() const {
    return static_cast<std::uint16_t>(std::max(assigned, announcement.slots) - announcement.slots);
  }
  [[nodiscard]] std::uint16_t in_slots() const { return std::min(assigned, announcement.slots); }
  /// How many more may wait there: as many as there are slots, if they are quick.
  [[nodiscard]] std::uint16_t places(TimePoint now) const {
    const bool open = state == WorkerState::kActive && lets_wait && quick && healthy && full_until <= now &&
                      no_wait_until <= now && waiting() < announcement.slots;
    return open ? static_cast<std::uint16_t>(announcement.slots - waiting()) : 0;
  }
};

/// How many ids of a type one job reads.
std::size_t ids_read_together(const TypeDescriptor& type);

/// Silence after which a worker is lost for reads. (Mutations wait longer: they may have happened.)
inline constexpr Millis kLostAfter{3000};
/// How many workers may be there, lost ones with them until they are forgotten. Who may speak for one namespace keeps
/// those of others out with none of it.
struct WorkerLimits {
  std::size_t all = 20'000;
  std::size_t of_namespace = 10'000;
};
/// What the manifests of one namespace may take, in memory and store. Who may speak for it makes as many as it likes.
struct ManifestLimits {
  std::size_t served = 64;  // by the workers that are there, lost ones with them
  std::size_t served_bytes = 128ULL << 20U;
  std::size_t others = 16;  // besides, the newest ones; that which was learnt last is kept in any case
  std::size_t other_bytes = 64ULL << 20U;
};
/// How long a lost worker stays in the list.
inline constexpr Millis kForgetAfter{60'000};

/// Who is there and what they can do. Knows nothing of messages sent or rows written: it answers what changed.
/// Thread: loop thread only.
class Registry {
 public:
  enum class Change : std::uint8_t { kNone, kJoined, kDraining, kLost, kLeft, kReturned };

  explicit Registry(WorkerLimits limits = {}, ManifestLimits manifest_limits = {})
      : limits_(limits), manifest_limits_(manifest_limits) {}

  /// Why an announcement cannot be accepted, none when it can. Does not look at the manifest's content.
  [[nodiscard]] std::optional<Rejection> judge(const Announcement& announcement, const FleetId& fleet) const;

  /// Takes an accepted worker in, or refreshes it.
  Change accept(const Announcement& announcement, TimePoint now, WallTime wall);

  /// kNone also for a worker nobody knows: see find(). Who has said that it drains does so until it has left.
  Change heartbeat(const Heartbeat& heartbeat, TimePoint now);

  struct Departure {
    WorkerId worker;
    Lane lane;
    Change change = Change::kNone;  // kLost, or kLeft for one that drained and has no job left
  };
  /// Workers that fell silent. Those long lost are forgotten.
  std::vector<Departure> expire(TimePoint now);

  /// Everyone gets a fresh period of grace: after this process's own start, stall or disconnection.
  void grace(TimePoint now);

  [[nodiscard]] WorkerEntry* find(std::string_view ns, const WorkerId& worker) const;
  /// Whoever has this id, in whatever namespace.
  [[nodiscard]] std::vector<const WorkerEntry*> called(const WorkerId& worker) const;
  [[nodiscard]] const std::map<WorkerName, WorkerEntry>& workers() const { return workers_; }
  /// Those of a lane that are not lost.
  [[nodiscard]] const std::vector<WorkerEntry*>& lane(const Lane& lane);
  /// Whether somebody of the lane, other than `except`, takes jobs of this manifest (empty: of any).
  [[nodiscard]] bool serves(const Lane& lane, std::string_view manifest, const WorkerId& except = {});
  /// Number of jobs the lane's active workers hold at once.
  [[nodiscard]] std::size_t slots(const Lane& lane);
  /// Jobs that may be in flight: the slots of its active workers, and what others of it still hold.
  [[nodiscard]] std::size_t capacity(const Lane& lane);

  /// Counts whenever somebody comes, goes or announces anew.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

  // Manifests by hash.
  /// Returns the hashes of those that are forgotten for it: nobody serves them, and there are too many newer ones.
  std::vector<std::string> learn(const std::string& hash, std::shared_ptr<const Manifest> manifest);
  [[nodiscard]] std::shared_ptr<const Manifest> manifest(const std::string& hash) const;
  /// What a run uses for a lane: the manifest of most of its active workers (ties: the newest joined), or none.
  [[nodiscard]] std::pair<std::string, std::shared_ptr<const Manifest>> manifest_of(const Lane& lane);
  /// The manifest of most active workers of a namespace, in whatever pool (ties: the newest joined); while none is
  /// there, that which was learnt last.
  [[nodiscard]] std::pair<std::string, std::shared_ptr<const Manifest>> latest_manifest(std::string_view ns);
  /// As latest_manifest() has it; where that does not, as another that active workers announce: a pool may serve what
  /// others do not, and a new version what the old one did not know. None: nobody serves it.
  [[nodiscard]] ServedType type(std::string_view name);
  /// The types of a namespace as type() gives them, in no order.
  [[nodiscard]] std::vector<ServedType> types(std::string_view ns);
  [[nodiscard]] const std::map<std::string, std::shared_ptr<const Manifest>>& manifests() const { return manifests_; }

 private:
  /// Of a namespace: how many workers serve which manifest.
  using Serving = std::map<std::string, std::size_t, std::less<>>;

  [[nodiscard]] std::optional<Rejection> no_room_for(const Announcement& announcement) const;
  [[nodiscard]] std::optional<Rejection> no_room_for_manifest(const Announcement& announcement) const;
  [[nodiscard]] std::size_t bytes_of(const std::string& hash) const;  // 0: it is not known
  void serves_no_more(const Announcement& announcement);
  std::vector<std::string> forget_manifests(const std::string& ns);
  using Workers = std::map<WorkerName, WorkerEntry>;
  Departure lose(Workers::iterator worker);
  void erase(Workers::iterator worker);
  /// Somebody of it has come, gone or announced anew.
  void change(const std::string& ns);

  /// The workers of a namespace. To look at all of them for each that comes or changes takes seconds with thousands:
  /// what is found out of them together is found out when it is asked for.
  struct Members {
    std::map<WorkerId, WorkerEntry*> workers;  // lost ones with them
    bool stale = true;                         // what follows is of a time before the last change
    std::map<std::string, std::vector<WorkerEntry*>, std::less<>> pools;  // those that are not lost
    std::vector<std::string> manifests;  // hashes of those that are active announce, those of most of them first
  };
  /// None: it has no worker.
  [[nodiscard]] const Members* members_of(std::string_view ns);

  WorkerLimits limits_;
  std::uint64_t changes_ = 0;
  Workers workers_;
  std::map<std::string, Members, std::less<>> members_;  // by namespace
  std::map<std::string, std::shared_ptr<const Manifest>> manifests_;
  std::map<std::string, std::string, std::less<>> latest_;  // namespace -> hash that was learnt last
  ManifestLimits manifest_limits_;
  std::map<std::string, Serving, std::less<>> serving_;        // by namespace
  std::map<std::string, std::vector<std::string>> learnt_;     // by namespace: hashes, the newest last
  std::map<std::string, std::size_t, std::less<>> in_memory_;  // bytes of each manifest
};

/// Why a manifest cannot be used, none when it can: names, parents, cycles, bounds, hash.
std::optional<std::string> manifest_fault(const Manifest& manifest, std::string_view ns);

}  // namespace muster
