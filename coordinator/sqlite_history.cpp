#include <nlohmann/json.hpp>

#include "coordinator/json_patch.h"
#include "coordinator/sqlite_store_impl.h"
#include "sql/statements.h"

namespace muster {
namespace {

using nlohmann::json;

Error damaged(RowId row, std::int64_t version) {
  return {.code = Errc::kStoreUnavailable,
          .message = "history of resource row " + std::to_string(row) + " cannot be followed from version " +
                     std::to_string(version)};
}

}  // namespace

bool SqliteStore::record(RowId row, std::string_view cause, std::string_view patch, WallTime at, ResourceState refused,
                         bool renames) {
  return write(sql::record_history, row, at, cause, patch.empty() ? "[]" : patch, refused, renames) > 0;
}

Result<void> SqliteStore::refusal(RowId row) const {
  if (failed_) return *failed_;
  return Error{.code = Errc::kNotFound, .message = "no listed resource in row " + std::to_string(row)};
}

/// The row that has the native id already takes what was found: there again if it had gone, changed if it differs.
Result<Inserted> SqliteStore::adopt(const Found& found, const NewResource& resource) {
  const bool had_gone = found.state >= ResourceState::kMissing;
  const HashBytes content(resource.content);
  JsonText patch = "[]";
  {
    auto rows = select(sql::select_properties, found.row);
    if (rows.next() && rows.text(1) != content.blob().bytes) patch = patch_between(rows.text(0), resource.properties);
    if (auto done = rows.result(); !done) return done.error();
  }
  if (had_gone || patch != "[]") {
    std::string uid(resource.uid);
    if (uid.empty() && !had_gone) {  // of what was not gone it is known, whoever does not tell it
      const auto known = one(found.row);
      if (!known) return known.error();
      if (*known) uid = (*known)->uid;
    }
    const std::string_view cause = resource.made ? "created" : had_gone ? "discovered" : "changed";
    record(found.row, cause, patch, resource.at, kAfterAll);
    write(sql::change_resource, found.row, resource.at, content.blob(), uid, resource.label, resource.properties);
  }
  write(sql::take_back, found.row, resource.parent);
  write(sql::trim_history, found.row);
  if (failed_) return *failed_;
  return inserted(found.row, found.first_seen);
}

Result<std::vector<HistoryEntry>> SqliteStore::history(RowId row) {
  std::vector<HistoryEntry> entries;
  auto resource = select(sql::select_properties, row);
  if (resource.next()) entries.push_back({1, resource.time(2), resource.flag(4) ? "created" : "discovered", "[]", {}});
  if (auto done = resource.result(); !done) return done.error();
  auto rows = select(sql::select_history, row);
  while (rows.next()) {
    entries.push_back({static_cast<std::uint64_t>(rows.integer(0)), rows.time(1), rows.string(2), rows.string(3),
                       rows.null(4) ? std::string() : rows.string(4)});
  }
  if (auto done = rows.result(); !done) return done.error();
  return entries;
}

Result<std::optional<JsonText>> SqliteStore::properties_at(RowId row, WallTime at) {
  using Answer = std::optional<JsonText>;
  auto resource = select(sql::select_properties, row);
  const bool known = resource.next() && resource.time(2) <= at;
  if (auto done = resource.result(); !done) return done.error();
  if (!known) return Answer();
  auto versions = select(sql::version_at, row, at);
  versions.next();
  if (auto done = versions.result(); !done) return done.error();
  const std::int64_t first_kept = versions.integer(1);  // 0: it has had no other than its first
  const std::int64_t version = versions.null(0) ? 1 : versions.integer(0);
  if (version == resource.integer(3)) return Answer(resource.string(0));
  if (version < first_kept - 1) return Answer();  // older than what is kept
  return rebuild(row, version);
}

/// Properties as they were in `version`, which is not the present one: from the last snapshot before it, by the patches
/// since.
Result<std::optional<JsonText>> SqliteStore::rebuild(RowId row, std::int64_t version) {
  auto snapshot = select(sql::select_snapshot, row, version);
  if (!snapshot.next()) {
    if (auto done = snapshot.result(); !done) return done.error();
    return damaged(row, version);
  }
  const std::int64_t first_patch = snapshot.integer(0);
  if (first_patch > version) return std::optional(snapshot.string(1));
  try {
    auto properties = json::parse(snapshot.text(1));
    auto patches = select(sql::select_patches, row, first_patch, version);
    while (patches.next()) properties.patch_inplace(json::parse(patches.text(0)));
    if (auto done = patches.result(); !done) return done.error();
    return std::optional(properties.dump());
  } catch (const json::exception&) {  // how the library says that a patch does not fit
    return damaged(row, version);
  }
}

}  // namespace muster
