#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "coordinator/checkpointer.h"
#include "coordinator/file_lock.h"
#include "coordinator/resource_id.h"
#include "coordinator/sqlite.h"
#include "coordinator/store.h"

namespace muster {

/// The 64 bits under which a native id of a scan is looked up.
using KeyHash = std::uint64_t (*)(RowId scan, std::string_view native_id);
std::uint64_t xxh3_key(RowId scan, std::string_view native_id);

inline constexpr ResourceState kFirstLeft = ResourceState::kVanished;  // it and the states after it are not listed
inline constexpr ResourceState kAfterAll{5};                           // no state refuses

/// The hash that HashBytes keeps so.
Hash128 hash_from_bytes(std::string_view bytes);

/// A content hash as the row keeps it: big-endian, high half first, so that a store moves between machines.
struct HashBytes {
  explicit HashBytes(const Hash128& hash);
  [[nodiscard]] sqlite::Blob blob() const { return {{bytes.data(), bytes.size()}}; }
  std::array<char, 16> bytes{};
};

/// A Store in one SQLite file. Its members stand in sqlite_store.cpp (life, transactions, named values),
/// sqlite_fleet.cpp (targets, scans, runs, manifests), sqlite_resources.cpp, sqlite_managed.cpp, sqlite_history.cpp and
/// sqlite_events.cpp.
///
/// The first failure of a transaction is kept in `failed_`: what is written after it does nothing, so a member issues
/// its writes one after the other and returns status().
class SqliteStore final : public Store {
 public:
  /// As open_sqlite_store(). `key_hash` is another one only in tests of collisions.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path, const Clock& clock, Random& random,
                                                   KeyHash key_hash = xxh3_key);

  [[nodiscard]] const FleetId& fleet() const override { return fleet_; }
  Result<void> commit() override;
  void rollback() override;
  [[nodiscard]] std::size_t uncommitted() const override { return uncommitted_; }
  [[nodiscard]] std::uint64_t state() const override { return state_; }

  Result<std::vector<TargetRow>> targets() override;
  Result<std::vector<TargetRow>> counted_targets() override;
  Result<std::optional<TargetRow>> target(std::string_view name) override;
  Result<void> put_target(const TargetRow& target) override;
  Result<void> note_target(const TargetRow& target) override;
  Result<ScanRow> scan(const TargetId& target, std::string_view type) override;
  Result<std::vector<ScanRow>> scans(const TargetId& target) override;
  Result<void> put_scan(const ScanRow& scan) override;
  Result<std::vector<TypeCount>> counts() override;

  Result<void> load_index(RowId scan, const std::function<void(const IndexEntry&)>& sink) override;
  Result<Inserted> insert(const NewResource& resource) override;
  Result<void> change(RowId row, std::string_view properties, const Hash128& content, std::string_view label,
                      std::string_view uid, std::string_view patch, WallTime at,
                      std::string_view cause = "changed") override;
  Result<void> restate(RowId row, std::string_view properties, const Hash128& content) override;
  Result<void> rename(RowId row, std::string_view native_id, std::string_view label, RowId parent,
                      WallTime at) override;
  Result<void> reparent(RowId row, RowId parent) override;
  Result<void> leave(RowId row, ResourceState state, std::string_view cause, WallTime at) override;
  Result<void> set_stale(RowId row, bool stale) override;
  Result<void> set_uid(RowId row, std::string_view uid) override;
  Result<void> set_label(RowId row, std::string_view label) override;
  Result<void> come_back(RowId row) override;
  Result<std::vector<RowId>> descendants(RowId row) override;
  Result<RowId> find(RowId scan, std::string_view native_id) override;
  Result<std::optional<ResourceRecord>> one(RowId row) override;
  Result<std::optional<ResourceRecord>> one(const ResourceId& id) override;
  Result<std::optional<ResourceRecord>> one(std::string_view target, std::string_view type,
                                            std::string_view native_id) override;
  Result<RowId> query(const ResourceQuery& query, const std::function<bool(const ResourceView&)>& sink) override;
  Result<std::vector<HistoryEntry>> history(RowId row) override;
  Result<std::optional<JsonText>> properties_at(RowId row, WallTime at) override;

  Result<void> manage(RowId row, const Claim& claim) override;
  Result<void> release(RowId row) override;
  Result<void> set_drifted(RowId row, bool drifted) override;
  Result<void> set_created(RowId row) override;
  Result<std::optional<Claim>> claim(RowId row) override;
  Result<void> of_stack(std::string_view stack, std::string_view name,
                        const std::function<void(const ManagedView&)>& sink) override;
  Result<std::vector<std::pair<std::string, std::uint64_t>>> stacks() override;

  Result<void> put_command(const CommandRow& command) override;
  Result<void> set_command(const CommandRow& command) override;
  Result<std::optional<CommandRow>> command(const CommandId& id) override;
  Result<JsonText> plan_of(const CommandId& id) override;
  Result<std::vector<CommandRow>> commands(const CommandId& before, std::size_t limit) override;
  Result<std::vector<CommandRow>> unfinished_commands() override;
  Result<void> prune_commands(std::size_t keep, std::uint64_t keep_bytes) override;
  Result<void> put_operation(const OperationRow& operation) override;
  Result<std::vector<OperationRow>> operations(const CommandId& command, std::size_t first, std::size_t limit) override;
  Result<std::optional<OperationRow>> operation_of(const JobId& job) override;
  Result<void> put_create_of_replacement(const OperationRow& operation) override;
  Result<void> rename_target(std::string_view was, std::string_view is) override;
  Result<std::string> unsettled(std::string_view place) override;
  Result<void> set_unsettled(std::string_view place, std::string_view key) override;

  Result<void> load_filtered(RowId scan,
                             const std::function<void(const Hash128& id, std::uint64_t listed)>& sink) override;
  Result<void> put_filtered(RowId scan, const Hash128& id, std::uint64_t listed) override;
  Result<void> drop_filtered(RowId scan, const Hash128& id) override;
  Result<void> clear_filtered(RowId scan) override;

  Result<std::uint64_t> append_event(const EventRow& event) override;
  Result<std::vector<EventRow>> events(std::uint64_t after, std::size_t limit) override;
  Result<std::uint64_t> sequence_at(WallTime at) override;
  Result<std::uint64_t> last_sequence() override;
  Result<std::uint64_t> published() override;
  Result<void> set_published(std::uint64_t sequence) override;
  Result<std::size_t> prune_events(WallTime before, std::uint64_t max_bytes, std::size_t limit) override;

  Result<void> put_run(const RunRow& run) override;
  Result<std::optional<RunRow>> run(const RunId& id) override;
  Result<std::vector<RunRow>> runs(const RunId& before, std::size_t limit) override;
  Result<std::vector<RunRow>> unfinished_runs() override;
  Result<void> prune_runs(std::size_t keep) override;
  Result<void> put_manifest(const ManifestRow& manifest) override;
  Result<std::vector<ManifestRow>> manifests() override;
  Result<void> drop_manifest(std::string_view hash) override;

  Result<std::optional<std::string>> meta(std::string_view key) override;
  Result<void> set_meta(std::string_view key, std::string_view value) override;

 private:
  /// The row that a native id of a scan has, listed or the one that left last.
  struct Found {
    RowId row = 0;
    ResourceState state = ResourceState::kVanished;
    WallTime first_seen;
  };
  /// Where the event log stands, so that an append needs no look-up.
  struct Outbox {
    std::uint64_t last = 0;       // sequence
    std::uint64_t published = 0;  // sequence
    std::uint64_t bytes = 0;      // of data of all events up to `last`
    WallTime last_at;
  };

  SqliteStore(FileLock lock, sqlite::Database database, KeyHash key_hash);
  Result<void> start(const Clock& clock, Random& random);
  /// Number of the last migration the file has seen; looks, but writes nothing into what may be another's file.
  Result<std::int64_t> check_version();
  Result<void> migrate(std::int64_t version);
  Result<void> load_fleet(const Clock& clock, Random& random);
  Result<void> load_outbox();

  template <typename... Args>
  sqlite::Rows select(const char* sql, Args&&... args) {
    if (failed_) return database_.nothing(SQLITE_ABORT);
    return database_.select(sql, std::forward<Args>(args)...);
  }

  /// Begins a transaction when none is open.
  void begin();
  /// Writes in the open transaction; returns the number of rows, 0 when this or an earlier write failed.
  template <typename... Args>
  std::int64_t write(const char* sql, const Args&... args) {
    begin();
    if (failed_) return 0;
    auto rows = database_.write(sql, args...);
    if (!rows) {
      failed_ = rows.error();
      return 0;
    }
    uncommitted_ += static_cast<std::size_t>(*rows);
    state_ += static_cast<std::uint64_t>(*rows);
    return *rows;
  }
  /// The failure of this transaction, if there was one.
  [[nodiscard]] Result<void> status() const;

  [[nodiscard]] Inserted inserted(RowId row, WallTime first_seen) const;
  Result<Found> find_any(RowId scan, std::string_view native_id);
  Result<Inserted> adopt(const Found& found, const NewResource& resource);
  /// Writes the history of the change that is about to be made to the row; false when the row is not there, or its
  /// state is `refused` or later.
  bool record(RowId row, std::string_view cause, std::string_view patch, WallTime at, ResourceState refused,
              bool renames = false);
  /// Why record() was false.
  [[nodiscard]] Result<void> refusal(RowId row) const;
  Result<std::optional<JsonText>> rebuild(RowId row, std::int64_t version);

  FileLock lock_;
  sqlite::Database database_;
  KeyHash key_hash_;
  FleetId fleet_;
  std::uint16_t fleet_mark_ = 0;
  std::size_t uncommitted_ = 0;
  std::uint64_t state_ = 0;
  std::optional<Error> failed_;
  Outbox outbox_;
  Outbox committed_outbox_;
  std::unordered_set<RowId> intact_;            // scans that this process has begun, while nothing has left any of them
  std::unique_ptr<Checkpointer> checkpointer_;  // of a file; last: it uses the database
};

}  // namespace muster
