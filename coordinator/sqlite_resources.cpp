#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include <xxhash.h>

#include "coordinator/sqlite_store_impl.h"
#include "sql/statements.h"

namespace muster {
namespace {

constexpr std::size_t kMaxCursors = 32;

// Columns of the view `resource`, in its order.
enum Column : int {
  kRow,
  kTarget,
  kType,
  kNativeId,
  kUid,
  kLabel,
  kStack,
  kManaged,
  kState,
  kDrifted,
  kProperties,
  kParentType,
  kParentNativeId,
  kFirstSeen,
  kLastSeen,
  kChangedAt,
  kVersion,
  kScan,
  kParent
};

/// Fills `view` from the row; its id's text is written over.
void read_view(const sqlite::Rows& rows, std::uint16_t fleet, ResourceView& view) {
  view.row = rows.integer(kRow);
  view.target = rows.text(kTarget);
  view.type = rows.text(kType);
  view.native_id = rows.text(kNativeId);
  view.uid = rows.text(kUid);
  view.label = rows.text(kLabel);
  view.stack = rows.text(kStack);
  view.managed = rows.flag(kManaged);
  view.state = static_cast<ResourceState>(rows.integer(kState));
  view.drifted = rows.flag(kDrifted);
  view.properties = rows.text(kProperties);
  view.parent_type = rows.text(kParentType);
  view.parent_native_id = rows.text(kParentNativeId);
  view.parent = rows.integer(kParent);
  view.first_seen = rows.time(kFirstSeen);
  view.last_seen = rows.time(kLastSeen);
  view.changed_at = rows.time(kChangedAt);
  view.version = static_cast<std::uint64_t>(rows.integer(kVersion));
  format_resource_id(resource_key(view.first_seen, fleet, view.row), view.id);
}

/// Copies what the views point to, so that the record outlives the row.
void own(ResourceRecord& record) {
  const std::array views{&record.target,     &record.type,        &record.native_id,
                         &record.uid,        &record.label,       &record.stack,
                         &record.properties, &record.parent_type, &record.parent_native_id};
  record.storage.reserve(views.size());
  for (auto* view : views) *view = record.storage.emplace_back(*view);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::int64_t bit(ResourceState state) {
  return std::int64_t{1} << static_cast<int>(state);
}

/// Gives the rows of all cursors to `sink` in the order of their numbers.
/// `after`   row before the first
/// returns   the last that was taken, for `limit` or `sink` ended it; 0: all were
Result<RowId> merge(std::vector<sqlite::Rows>& cursors, RowId after, std::size_t limit, std::uint16_t fleet,
                    const std::function<bool(const ResourceView&)>& sink) {
  constexpr RowId kEnd = std::numeric_limits<RowId>::max();
  std::vector<RowId> heads(cursors.size());
  const auto advance = [&](std::size_t i) -> Result<void> {
    heads[i] = cursors[i].next() ? cursors[i].integer(kRow) : kEnd;
    return cursors[i].result();
  };
  if (limit == 0) return after;
  for (std::size_t i = 0; i < cursors.size(); ++i) {
    if (auto done = advance(i); !done) return done.error();
  }
  ResourceView view;
  for (std::size_t taken = 0;;) {
    const auto lowest = static_cast<std::size_t>(std::ranges::min_element(heads) - heads.begin());
    if (heads[lowest] == kEnd) return RowId{0};
    read_view(cursors[lowest], fleet, view);
    if (!sink(view)) return after;
    after = heads[lowest];
    if (++taken == limit) return after;
    if (auto done = advance(lowest); !done) return done.error();
  }
}

}  // namespace

Hash128 hash_from_bytes(std::string_view bytes) {
  XXH128_canonical_t canonical{};
  std::ranges::copy(bytes.substr(0, sizeof canonical.digest), canonical.digest);
  const auto hash = XXH128_hashFromCanonical(&canonical);
  return {hash.high64, hash.low64};
}

HashBytes::HashBytes(const Hash128& hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, {hash.low, hash.high});
  std::ranges::copy(canonical.digest, bytes.begin());
}

std::uint64_t xxh3_key(RowId scan, std::string_view native_id) {
  return XXH3_64bits_withSeed(native_id.data(), native_id.size(), static_cast<std::uint64_t>(scan));
}

Result<void> SqliteStore::load_index(RowId scan, const std::function<void(const IndexEntry&)>& sink) {
  auto rows = select(sql::select_index, scan);
  while (rows.next()) {
    const auto uid = rows.text(3);
    sink({.row = rows.integer(0),
          .key = hash128(rows.text(1)),
          .content = hash_from_bytes(rows.text(2)),
          .uid = uid.empty() ? 0 : hash128(uid).low,
          .parent = rows.integer(4),
          .stale = rows.integer(5) == static_cast<std::int64_t>(ResourceState::kStale),
          .managed = rows.flag(6),
          .missing = rows.integer(5) == static_cast<std::int64_t>(ResourceState::kMissing)});
  }
  return rows.result();
}

Result<SqliteStore::Found> SqliteStore::find_any(RowId scan, std::string_view native_id) {
  auto rows = select(sql::find_resource, key_hash_(scan, native_id), scan, native_id);
  Found best;
  auto left_at = std::numeric_limits<std::int64_t>::min();
  while (rows.next()) {
    const auto state = static_cast<ResourceState>(rows.integer(1));
    const bool listed = state < kFirstLeft;
    if (!listed && rows.integer(2) < left_at) continue;
    best = {rows.integer(0), state, rows.time(3)};
    left_at = rows.integer(2);
    if (listed) break;
  }
  if (auto done = rows.result(); !done) return done.error();
  return best;
}

Inserted SqliteStore::inserted(RowId row, WallTime first_seen) const {
  Inserted result{.row = row, .id = {}};
  format_resource_id(resource_key(first_seen, fleet_mark_, row), result.id);
  return result;
}

Result<Inserted> SqliteStore::insert(const NewResource& resource) {
  if (!resource.unlisted || !intact_.contains(resource.scan)) {
    const auto found = find_any(resource.scan, resource.native_id);
    if (!found) return found.error();
    if (found->row != 0) return adopt(*found, resource);
  }
  const HashBytes content(resource.content);
  write(sql::insert_resource, key_hash_(resource.scan, resource.native_id), resource.scan, resource.parent, resource.at,
        content.blob(), resource.native_id, resource.uid, resource.label, resource.properties);
  if (failed_) return *failed_;
  return inserted(database_.last_row(), resource.at);
}

Result<void> SqliteStore::change(RowId row, std::string_view properties, const Hash128& content, std::string_view label,
                                 std::string_view uid, std::string_view patch, WallTime at, std::string_view cause) {
  if (!record(row, cause, patch, at, kFirstLeft)) return refusal(row);
  write(sql::change_resource, row, at, HashBytes(content).blob(), uid, label, properties);
  write(sql::mark_present, row);
  write(sql::trim_history, row);
  return status();
}

Result<void> SqliteStore::restate(RowId row, std::string_view properties, const Hash128& content) {
  const HashBytes hash(content);
  write(sql::restate_resource, row, hash.blob(), properties);
  return status();
}

Result<void> SqliteStore::rename(RowId row, std::string_view native_id, std::string_view label, RowId parent,
                                 WallTime at) {
  auto rows = select(sql::find_scan, row);
  const RowId scan = rows.next() ? rows.integer(0) : 0;
  if (auto done = rows.result(); !done) return done;
  if (!record(row, "renamed", "[]", at, kFirstLeft, true)) return refusal(row);
  write(sql::rename_resource, row, at, key_hash_(scan, native_id), native_id, label, parent);
  write(sql::mark_present, row);
  write(sql::trim_history, row);
  return status();
}

Result<void> SqliteStore::reparent(RowId row, RowId parent) {
  write(sql::reparent_resource, row, parent);
  return status();
}

Result<void> SqliteStore::leave(RowId row, ResourceState state, std::string_view cause, WallTime at) {
  if (record(row, cause, "[]", at, state == ResourceState::kMissing ? state : kFirstLeft)) {
    write(sql::leave_resource, row, at, state);
    intact_.clear();
    write(sql::trim_history, row);
  }
  return status();
}

Result<void> SqliteStore::set_stale(RowId row, bool stale) {
  write(stale ? sql::mark_stale : sql::unmark_stale, row);
  return status();
}

Result<void> SqliteStore::come_back(RowId row) {
  write(sql::mark_present, row);
  return status();
}

Result<void> SqliteStore::set_uid(RowId row, std::string_view uid) {
  write(sql::set_uid, row, uid);
  return status();
}

Result<void> SqliteStore::set_label(RowId row, std::string_view label) {
  write(sql::set_label, row, label);
  return status();
}

Result<void> SqliteStore::load_filtered(RowId scan,
                                        const std::function<void(const Hash128& id, std::uint64_t listed)>& sink) {
  auto rows = select(sql::select_filtered, scan);
  while (rows.next()) sink(hash_from_bytes(rows.text(0)), static_cast<std::uint64_t>(rows.integer(1)));
  return rows.result();
}

Result<void> SqliteStore::put_filtered(RowId scan, const Hash128& id, std::uint64_t listed) {
  write(sql::put_filtered, scan, HashBytes(id).blob(), listed);
  return status();
}

Result<void> SqliteStore::drop_filtered(RowId scan, const Hash128& id) {
  write(sql::drop_filtered, scan, HashBytes(id).blob());
  return status();
}

Result<void> SqliteStore::clear_filtered(RowId scan) {
  write(sql::clear_filtered, scan);
  return status();
}

Result<std::vector<RowId>> SqliteStore::descendants(RowId row) {
  std::vector<RowId> found;
  std::unordered_set<RowId> known{row};  // parents that a system reports in a circle must not keep this going
  for (std::size_t next = 0;; ++next) {
    auto rows = select(sql::find_children, row);
    while (rows.next()) {
      if (known.insert(rows.integer(0)).second) found.push_back(rows.integer(0));
    }
    if (auto done = rows.result(); !done) return done.error();
    if (next == found.size()) return found;
    row = found[next];
  }
}

Result<RowId> SqliteStore::find(RowId scan, std::string_view native_id) {
  const auto found = find_any(scan, native_id);
  if (!found) return found.error();
  return found->state < kFirstLeft ? found->row : RowId{0};
}

Result<std::optional<ResourceRecord>> SqliteStore::one(RowId row) {
  auto rows = select(sql::select_resource, row);
  std::optional<ResourceRecord> found;
  if (rows.next()) {
    found.emplace();
    read_view(rows, fleet_mark_, *found);
    found->scan = rows.integer(kScan);
    own(*found);
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<std::optional<ResourceRecord>> SqliteStore::one(const ResourceId& id) {
  const auto key = parse_resource_id(id.value);
  if (!key) return std::optional<ResourceRecord>();
  auto found = one(key->row);
  if (!found || !*found || resource_key((*found)->first_seen, fleet_mark_, key->row) == *key) return found;
  return std::optional<ResourceRecord>();
}

Result<std::optional<ResourceRecord>> SqliteStore::one(std::string_view target, std::string_view type,
                                                       std::string_view native_id) {
  if (target.empty() || type.empty()) return std::optional<ResourceRecord>();
  auto rows = select(sql::find_scans, target, type);
  const RowId scan = rows.next() ? rows.integer(0) : 0;
  if (auto done = rows.result(); !done) return done.error();
  const auto found = find_any(scan, native_id);
  if (!found) return found.error();
  return one(found->row);
}

Result<RowId> SqliteStore::query(const ResourceQuery& query, const std::function<bool(const ResourceView&)>& sink) {
  using enum ResourceState;
  const auto states = query.state ? bit(*query.state) : bit(kPresent) | bit(kStale) | bit(kMissing);
  const int managed = query.managed ? static_cast<int>(*query.managed) : -1;
  std::string text = query.text;
  std::ranges::transform(text, text.begin(), lower);

  auto highest = select(sql::last_resource);
  const RowId last = highest.next() ? highest.integer(0) : 0;
  if (auto done = highest.result(); !done) return done.error();
  const bool all = last - std::min(last, query.after) <= query.most_seen;
  const RowId end = all ? last : query.after + query.most_seen;

  // One cursor over all rows or, where names choose few of them, one per scan; the lowest row of all cursors is next.
  std::vector<RowId> chosen;
  if (!query.target.empty() || !query.type.empty()) {
    auto rows = select(sql::find_scans, query.target, query.type);
    while (rows.next()) chosen.push_back(rows.integer(0));
    if (auto done = rows.result(); !done) return done.error();
    if (chosen.empty()) return RowId{0};
  }
  std::vector<sqlite::Rows> cursors;
  if (chosen.empty() || chosen.size() > kMaxCursors || states >= bit(kFirstLeft)) {
    cursors.push_back(select(sql::query_all, query.after, end, states, managed, query.drifted_only, text, query.stack,
                             query.target, query.type));
  } else {
    for (const RowId scan : chosen) {
      cursors.push_back(
          select(sql::query_scan, query.after, end, states, managed, query.drifted_only, text, query.stack, scan));
    }
  }
  const auto next = merge(cursors, query.after, query.limit, fleet_mark_, sink);
  return !next || *next > 0 || all ? next : Result<RowId>(end);
}

}  // namespace muster
