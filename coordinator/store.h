#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/messages.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

using RowId = std::int64_t;               // of a resource or scan in the store; 0 = none
using CommandId = Id<struct CommandTag>;  // ULID

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};
/// XXH3-128.
Hash128 hash128(std::string_view bytes);
std::string hex(const Hash128& hash);

enum class TargetState : std::uint8_t {
  kActive,
  kChanged,  // its system or config is another one than the rows were read from: waits for `muster targets accept`
  kRemoved,  // left the configuration; its rows stay, stale
};

struct TargetRow {
  TargetId id;
  std::string name;
  std::string ns;
  std::string pool{"default"};
  Document config;
  bool discover = true;
  Millis interval{0};  // 0: the fleet's
  std::string system;  // as the plugin reported it last; empty: not yet, or it can't tell
  TargetState state = TargetState::kActive;
  std::vector<MatchFilter> filters;         // from the configuration
  std::vector<MatchFilter> plugin_filters;  // as last inspected
  bool inspected = false;                   // plugin_filters and system are known
  bool reachable = true;
  RunId last_run;
  bool applied = false;         // declared by a file that was applied, not by the configuration
  std::uint64_t resources = 0;  // filled by counted_targets(): present and stale rows
};

/// What is known of a scan (target, type) across runs.
struct ScanRow {
  RowId id = 0;
  TargetId target;
  std::string type;
  bool stale = false;                     // the last run could not list it at all: all its rows count as stale
  std::optional<WallTime> last_complete;  // end of the last complete scan
  RunId last_run;
  std::string filters;     // version of the filters that the rows were judged by; empty: unknown
  std::uint64_t runs = 0;  // that used the memory of filtered ids
};

enum class ResourceState : std::uint8_t { kPresent, kStale, kMissing, kVanished, kFiltered };
std::string_view resource_state_name(ResourceState state);

/// One entry of a scan's index: what deciding "known and unchanged" needs, without a read of the row.
struct IndexEntry {
  RowId row = 0;
  Hash128 key;            // hash128 of the native id
  Hash128 content;        // hash128 of the canonical properties
  std::uint64_t uid = 0;  // low half of hash128 of the uid, 0: none
  RowId parent = 0;
  bool stale = false;  // the row's own mark, not the scan's
  bool managed = false;
  bool missing = false;  // managed, and gone
};

struct NewResource {
  RowId scan = 0;
  std::string_view native_id;
  std::string_view uid;
  std::string_view label;
  std::string_view properties;  // canonical JSON
  Hash128 content;
  RowId parent = 0;
  WallTime at;
  bool unlisted = false;  // the caller knows that no row that is listed has the id: it need not be looked for
  bool made = false;      // by a command, and not only found: what its history says of a row that was there before
};

struct Inserted {
  RowId row = 0;
  ResourceId id;
};

/// A row as the store has it. The views live until the sink returns (or, from one(), as long as the object).
struct ResourceView {
  RowId row = 0;
  ResourceId id;
  std::string_view target, type, native_id, uid, label, stack;
  bool managed = false;
  ResourceState state = ResourceState::kPresent;
  bool drifted = false;
  std::string_view properties;
  std::string_view parent_type, parent_native_id;  // empty: none
  RowId parent = 0;
  WallTime first_seen, last_seen, changed_at;
  std::uint64_t version = 1;
};

struct ResourceRecord : ResourceView {
  ResourceRecord() = default;
  ResourceRecord(ResourceRecord&&) noexcept = default;
  ResourceRecord& operator=(ResourceRecord&&) noexcept = default;
  RowId scan = 0;
  std::vector<std::string> storage;  // what the views point into
};

/// What a managed row was declared as.
struct Claim {
  std::string stack, name;
  JsonText declared;  // DeclaredResource as it was applied last, write-only values as digests
};

/// A managed row for planning. The views live until the sink returns.
struct ManagedView {
  RowId row = 0;
  std::string_view target, type, native_id, uid, name;
  ResourceState state = ResourceState::kPresent;
  bool drifted = false;
  std::string_view properties, declared;
  Hash128 content;
  RowId parent = 0;
  WallTime changed_at;
};

struct HistoryEntry {
  std::uint64_t version = 0;
  WallTime at;
  std::string cause;  // discovered, created, changed, updated, renamed, vanished, filtered, parent, ...
  JsonText patch;     // RFC 6902 from the version before; `[]` where the properties did not change
  std::string was;    // the native id before, where it was renamed
};

struct ResourceQuery {
  std::string text;                 // substring of label or native id, case-insensitive
  std::string target, type, stack;  // names; empty: any
  std::optional<bool> managed;
  bool drifted_only = false;
  std::optional<ResourceState> state;  // none: present, stale and missing
  RowId after = 0;                     // cursor: rows above
  std::size_t limit = 1000;
  RowId most_seen = std::numeric_limits<RowId>::max();  // rows that are looked at, whether they are wanted or not
  bool operator==(const ResourceQuery&) const = default;
};

struct EventRow {
  std::uint64_t sequence = 0;  // given by the store, without gaps
  WallTime at;
  std::string ns;       // empty: none
  std::string what;     // class and what: `resource.discovered`
  std::string subject;  // what it is about: resource or job id, target name, worker id, run id
  JsonText data;
};

struct RunRow {
  RunId id;
  std::string state;    // queued, running, complete, partial, failed
  std::string trigger;  // start, interval, user, drift
  JsonText scope;       // RunScope::json()
  std::optional<WallTime> started_at, finished_at;
  JsonText report;  // the contract's report object; {} while it runs
};

enum class Cancelled : std::uint8_t {
  kNo,
  kGraceful,  // what runs ends, nothing more is begun
  kForced,    // what runs is told to stop
};

struct CommandRow {
  CommandId id;
  std::string kind;   // apply, destroy, drift
  std::string state;  // queued, running, complete, failed, cancelled
  Cancelled cancel = Cancelled::kNo;
  std::vector<std::string> stacks;
  JsonText plan = "{}";  // CommandPlan::json(); left out in lists
  WallTime created_at;
  std::optional<WallTime> started_at, finished_at;
};

/// A step of a command that was begun.
struct OperationRow {
  CommandId command;
  std::size_t step = 0;
  std::string state;       // running, done, failed, blocked, cancelled
  std::uint8_t phase = 0;  // Execution::Phase
  JobId job;               // of the change that was asked for last
  std::uint32_t epoch = 0;
  bool uncertain = false;  // an attempt may have been applied
  std::string request_id, native_id;
  std::string code, message;
  std::string name, target, type;  // of the step, as when it was begun; empty where no change was asked for
  bool creates = false;            // it makes one object
};

struct ManifestRow {
  std::string hash;
  Manifest manifest;
  WallTime first_seen;
};

struct TypeCount {
  std::string target, type;
  std::uint64_t resources = 0;
  std::uint64_t stale = 0;
};

/// The inventory and everything the coordinator must not forget. Writes collect in one open transaction until commit();
/// reads see them. Errors are kStoreUnavailable unless stated; after a failed write the transaction is to be rolled
/// back. Thread: the loop thread only.
class Store {
 public:
  virtual ~Store() = default;

  [[nodiscard]] virtual const FleetId& fleet() const = 0;

  /// Makes all writes since the last commit durable (survives kill -9) or, on error, none of them.
  virtual Result<void> commit() = 0;
  virtual void rollback() = 0;
  /// Rows written since the last commit.
  [[nodiscard]] virtual std::size_t uncommitted() const = 0;
  /// Stands for all that this process has written so far, committed or not: while it is the same, so is what is read.
  [[nodiscard]] virtual std::uint64_t state() const = 0;

  // targets and scans
  virtual Result<std::vector<TargetRow>> targets() = 0;  // `resources` not filled
  /// Takes the longer the more rows there are.
  virtual Result<std::vector<TargetRow>> counted_targets() = 0;
  virtual Result<std::optional<TargetRow>> target(std::string_view name) = 0;  // `resources` not filled
  virtual Result<void> put_target(const TargetRow& target) = 0;                // by id; all fields but `resources`
  /// What a run learns of it, and nothing else: it may have been declared anew meanwhile.
  virtual Result<void> note_target(const TargetRow& target) = 0;
  virtual Result<ScanRow> scan(const TargetId& target, std::string_view type) = 0;  // made when it is not there
  virtual Result<std::vector<ScanRow>> scans(const TargetId& target) = 0;
  virtual Result<void> put_scan(const ScanRow& scan) = 0;
  virtual Result<std::vector<TypeCount>> counts() = 0;

  // resources
  /// Calls `sink` for every row of the scan that is present, stale or missing.
  virtual Result<void> load_index(RowId scan, const std::function<void(const IndexEntry&)>& sink) = 0;
  /// Makes the row, or brings a vanished or filtered one of the same native id back (its id and history go on,
  /// version + 1). The full native id is compared.
  virtual Result<Inserted> insert(const NewResource& resource) = 0;
  /// New properties: version + 1, history entry with `patch`; clears the stale mark.
  virtual Result<void> change(RowId row, std::string_view properties, const Hash128& content, std::string_view label,
                              std::string_view uid, std::string_view patch, WallTime at,
                              std::string_view cause = "changed") = 0;
  /// Other text for what are the same properties as JSON: no version of its own.
  virtual Result<void> restate(RowId row, std::string_view properties, const Hash128& content) = 0;
  /// New native id, label and parent for the same object; version + 1, history cause `renamed`.
  virtual Result<void> rename(RowId row, std::string_view native_id, std::string_view label, RowId parent,
                              WallTime at) = 0;
  virtual Result<void> reparent(RowId row, RowId parent) = 0;
  /// The row leaves the list: `state` kVanished or kFiltered (kMissing keeps it listed); history cause `cause`.
  virtual Result<void> leave(RowId row, ResourceState state, std::string_view cause, WallTime at) = 0;
  virtual Result<void> set_stale(RowId row, bool stale) = 0;
  virtual Result<void> set_uid(RowId row, std::string_view uid) = 0;
  virtual Result<void> set_label(RowId row, std::string_view label) = 0;
  /// A missing or stale row is there after all.
  virtual Result<void> come_back(RowId row) = 0;
  /// Rows below `row`, any depth, that are present, stale or missing: nearest first.
  virtual Result<std::vector<RowId>> descendants(RowId row) = 0;
  /// Row of a present, stale or missing resource; 0 when there is none.
  virtual Result<RowId> find(RowId scan, std::string_view native_id) = 0;
  virtual Result<std::optional<ResourceRecord>> one(RowId row) = 0;
  virtual Result<std::optional<ResourceRecord>> one(const ResourceId& id) = 0;
  /// By names; also vanished and filtered rows.
  virtual Result<std::optional<ResourceRecord>> one(std::string_view target, std::string_view type,
                                                    std::string_view native_id) = 0;
  /// Rows in ascending row order; `sink` returns false to stop (the row it was given then counts as not taken).
  /// returns   the row after which it goes on, for `limit`, `sink` or `most_seen` ended it; 0: that was all
  virtual Result<RowId> query(const ResourceQuery& query, const std::function<bool(const ResourceView&)>& sink) = 0;
  /// Oldest first; version 1 is the discovery.
  virtual Result<std::vector<HistoryEntry>> history(RowId row) = 0;
  /// Properties as they were at `at`; none before the first sight.
  virtual Result<std::optional<JsonText>> properties_at(RowId row, WallTime at) = 0;

  // managed resources
  virtual Result<void> manage(RowId row, const Claim& claim) = 0;  // clears the drift mark
  virtual Result<void> release(RowId row) = 0;
  virtual Result<void> set_drifted(RowId row, bool drifted) = 0;
  virtual Result<void> set_created(RowId row) = 0;  // its history begins with `created`
  virtual Result<std::optional<Claim>> claim(RowId row) = 0;
  /// Managed rows of a stack that are present, stale or missing, in the order of their rows; `name` empty: all.
  virtual Result<void> of_stack(std::string_view stack, std::string_view name,
                                const std::function<void(const ManagedView&)>& sink) = 0;
  /// Stacks that have resources, with how many.
  virtual Result<std::vector<std::pair<std::string, std::uint64_t>>> stacks() = 0;

  // commands
  virtual Result<void> put_command(const CommandRow& command) = 0;
  virtual Result<void> set_command(const CommandRow& command) = 0;             // all but its plan
  virtual Result<std::optional<CommandRow>> command(const CommandId& id) = 0;  // without its plan
  virtual Result<JsonText> plan_of(const CommandId& id) = 0;                   // empty: there is no such command
  /// Newest first, without plans; `before` empty for the first page.
  virtual Result<std::vector<CommandRow>> commands(const CommandId& before, std::size_t limit) = 0;
  virtual Result<std::vector<CommandRow>> unfinished_commands() = 0;  // oldest first
  /// Of those that have ended the newest stay: so many, and with so many bytes of plans.
  virtual Result<void> prune_commands(std::size_t keep, std::uint64_t keep_bytes) = 0;
  virtual Result<void> put_operation(const OperationRow& operation) = 0;
  /// By step, from one on.
  virtual Result<std::vector<OperationRow>> operations(const CommandId& command, std::size_t first,
                                                       std::size_t limit) = 0;
  Result<std::vector<OperationRow>> operations(const CommandId& command) {
    return operations(command, 0, std::numeric_limits<std::int64_t>::max());
  }
  /// The operation whose job this is or, of a replacement, was when it made the new object: then as one that is done.
  virtual Result<std::optional<OperationRow>> operation_of(const JobId& job) = 0;
  /// Keeps what operation_of() says of the job of a replacement that has made the new object, and goes on to delete.
  virtual Result<void> put_create_of_replacement(const OperationRow& operation) = 0;
  /// Key of a create of what `place` names that ended without knowing whether it was applied; empty: there is none.
  virtual Result<std::string> unsettled(std::string_view place) = 0;
  virtual Result<void> set_unsettled(std::string_view place, std::string_view key) = 0;  // empty: it is settled
  /// What is declared on a target, what is unsettled, and what commands did there goes by its new name from now on.
  virtual Result<void> rename_target(std::string_view was, std::string_view is) = 0;

  // ids of a scan that its filters left out: what the list said of each (a hash) when it was read last
  virtual Result<void> load_filtered(RowId scan,
                                     const std::function<void(const Hash128& id, std::uint64_t listed)>& sink) = 0;
  virtual Result<void> put_filtered(RowId scan, const Hash128& id, std::uint64_t listed) = 0;
  virtual Result<void> drop_filtered(RowId scan, const Hash128& id) = 0;
  virtual Result<void> clear_filtered(RowId scan) = 0;

  // events (the outbox)
  virtual Result<std::uint64_t> append_event(const EventRow& event) = 0;  // the sequence it got
  virtual Result<std::vector<EventRow>> events(std::uint64_t after, std::size_t limit) = 0;
  /// The sequence before that of the first event of `at` or later, also where the clock was set back in between.
  virtual Result<std::uint64_t> sequence_at(WallTime at) = 0;
  virtual Result<std::uint64_t> last_sequence() = 0;
  virtual Result<std::uint64_t> published() = 0;  // last sequence known to be published
  virtual Result<void> set_published(std::uint64_t sequence) = 0;
  /// Drops published events older than `before`, and beyond `max_bytes` of data (0: no limit); at most `limit` rows a
  /// call. Returns how many went.
  virtual Result<std::size_t> prune_events(WallTime before, std::uint64_t max_bytes, std::size_t limit) = 0;

  // runs and manifests
  virtual Result<void> put_run(const RunRow& run) = 0;
  virtual Result<std::optional<RunRow>> run(const RunId& id) = 0;
  /// Newest first; `before` empty for the first page.
  virtual Result<std::vector<RunRow>> runs(const RunId& before, std::size_t limit) = 0;
  virtual Result<std::vector<RunRow>> unfinished_runs() = 0;
  /// Drops all but the newest `keep` runs.
  virtual Result<void> prune_runs(std::size_t keep) = 0;
  virtual Result<void> put_manifest(const ManifestRow& manifest) = 0;
  virtual Result<std::vector<ManifestRow>> manifests() = 0;  // oldest first

  /// Small named values (`prefix`, ...).
  virtual Result<std::optional<std::string>> meta(std::string_view key) = 0;
  virtual Result<void> set_meta(std::string_view key, std::string_view value) = 0;

  virtual Result<void> drop_manifest(std::string_view hash) = 0;  // nothing where there is none
};

}  // namespace muster
