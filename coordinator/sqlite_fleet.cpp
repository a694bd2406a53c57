#include <nlohmann/json.hpp>

#include "coordinator/json_forms.h"
#include "coordinator/sqlite_store_impl.h"
#include "schema/codec.h"
#include "sql/statements.h"

namespace muster {
namespace {

Result<TargetRow> target_of(const sqlite::Rows& rows) {
  auto config = document_from_json(nlohmann::json::parse(rows.text(4), nullptr, false));
  auto filters = filters_from_json(nlohmann::json::parse(rows.text(9), nullptr, false));
  auto plugin_filters = filters_from_json(nlohmann::json::parse(rows.text(10), nullptr, false));
  for (const Error* error : {config ? nullptr : &config.error(), filters ? nullptr : &filters.error(),
                             plugin_filters ? nullptr : &plugin_filters.error()}) {
    if (error != nullptr) {
      return Error{.code = Errc::kStoreUnavailable, .message = "target " + rows.string(1) + ": " + error->message};
    }
  }
  return TargetRow{.id = TargetId(rows.string(0)),
                   .name = rows.string(1),
                   .ns = rows.string(2),
                   .pool = rows.string(3),
                   .config = std::move(*config),
                   .discover = rows.flag(5),
                   .interval = Millis(rows.integer(6)),
                   .system = rows.string(7),
                   .state = static_cast<TargetState>(rows.integer(8)),
                   .filters = std::move(*filters),
                   .plugin_filters = std::move(*plugin_filters),
                   .inspected = rows.flag(11),
                   .reachable = rows.flag(12),
                   .last_run = RunId(rows.string(13)),
                   .applied = rows.flag(14),
                   .resources = static_cast<std::uint64_t>(rows.integer(15))};
}

ScanRow scan_of(const sqlite::Rows& rows) {
  return {.id = rows.integer(0),
          .target = TargetId(rows.string(1)),
          .type = rows.string(2),
          .stale = rows.flag(3),
          .last_complete = rows.optional_time(4),
          .last_run = RunId(rows.string(5)),
          .filters = rows.string(6),
          .runs = static_cast<std::uint64_t>(rows.integer(7))};
}

Result<std::vector<ScanRow>> scans_of(sqlite::Rows rows) {
  std::vector<ScanRow> found;
  while (rows.next()) found.push_back(scan_of(rows));
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<std::vector<RunRow>> runs_of(sqlite::Rows rows) {
  std::vector<RunRow> found;
  while (rows.next()) {
    found.push_back({.id = RunId(rows.string(0)),
                     .state = rows.string(1),
                     .trigger = rows.string(2),
                     .scope = rows.string(3),
                     .started_at = rows.optional_time(4),
                     .finished_at = rows.optional_time(5),
                     .report = rows.string(6)});
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<std::vector<TargetRow>> all_targets(sqlite::Rows rows) {
  std::vector<TargetRow> found;
  while (rows.next()) {
    auto target = target_of(rows);
    if (!target) return target.error();
    found.push_back(std::move(*target));
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

}  // namespace

Result<std::vector<TargetRow>> SqliteStore::targets() {
  return all_targets(select(sql::select_targets));
}

Result<std::vector<TargetRow>> SqliteStore::counted_targets() {
  return all_targets(select(sql::select_counted_targets));
}

Result<std::optional<TargetRow>> SqliteStore::target(std::string_view name) {
  auto rows = select(sql::select_target, name);
  std::optional<TargetRow> found;
  if (rows.next()) {
    auto target = target_of(rows);
    if (!target) return target.error();
    found = std::move(*target);
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<void> SqliteStore::put_target(const TargetRow& target) {
  write(sql::put_target, target.id.value, target.name, target.ns, target.pool, to_json(target.config).dump(),
        target.discover, target.interval.count(), target.system, target.state, to_json(target.filters).dump(),
        to_json(target.plugin_filters).dump(), target.inspected, target.reachable, target.last_run.value,
        target.applied);
  return status();
}

Result<void> SqliteStore::note_target(const TargetRow& target) {
  write(sql::note_target, target.id.value, target.system, target.state, to_json(target.plugin_filters).dump(),
        target.inspected, target.reachable, target.last_run.value);
  return status();
}

Result<ScanRow> SqliteStore::scan(const TargetId& target, std::string_view type) {
  auto found = scans_of(select(sql::select_scans, target.value, type));
  if (!found) return found.error();
  if (!found->empty()) return std::move(found->front());
  const auto made = write(sql::insert_scan, target.value, type);
  if (failed_) return *failed_;
  if (made == 0) return Error{.code = Errc::kNotFound, .message = "no target " + target.value};
  ScanRow fresh;
  fresh.id = database_.last_row();
  intact_.insert(fresh.id);
  fresh.target = target;
  fresh.type = type;
  return fresh;
}

Result<std::vector<ScanRow>> SqliteStore::scans(const TargetId& target) {
  return scans_of(select(sql::select_scans, target.value, ""));
}

Result<void> SqliteStore::put_scan(const ScanRow& scan) {
  const auto written =
      write(sql::put_scan, scan.id, scan.stale, scan.last_complete, scan.last_run.value, scan.filters, scan.runs);
  if (!failed_ && written == 0) return Error{.code = Errc::kNotFound, .message = "no scan " + std::to_string(scan.id)};
  return status();
}

Result<std::vector<TypeCount>> SqliteStore::counts() {
  auto rows = select(sql::count_resources);
  std::vector<TypeCount> found;
  while (rows.next()) {
    const auto seen = static_cast<std::uint64_t>(rows.integer(3) - rows.integer(5));
    found.push_back({.target = rows.string(0),
                     .type = rows.string(1),
                     .resources = seen,
                     .stale = rows.flag(2) ? seen : static_cast<std::uint64_t>(rows.integer(4))});
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<void> SqliteStore::put_run(const RunRow& run) {
  write(sql::put_run, run.id.value, run.state, run.trigger, run.scope, run.started_at, run.finished_at, run.report);
  return status();
}

Result<std::optional<RunRow>> SqliteStore::run(const RunId& id) {
  auto found = runs_of(select(sql::select_run, id.value));
  if (!found) return found.error();
  if (found->empty()) return std::optional<RunRow>();
  return std::optional(std::move(found->front()));
}

Result<std::vector<RunRow>> SqliteStore::runs(const RunId& before, std::size_t limit) {
  return runs_of(select(sql::select_runs, before.value, limit));
}

Result<std::vector<RunRow>> SqliteStore::unfinished_runs() {
  return runs_of(select(sql::select_unfinished_runs));
}

Result<void> SqliteStore::prune_runs(std::size_t keep) {
  write(sql::prune_runs, keep);
  return status();
}

Result<void> SqliteStore::put_manifest(const ManifestRow& manifest) {
  const auto encoded = encode(manifest.manifest);
  write(sql::put_manifest, manifest.hash, sqlite::Blob{encoded}, manifest.first_seen);
  return status();
}

Result<void> SqliteStore::drop_manifest(std::string_view hash) {
  write(sql::drop_manifest, hash);
  return status();
}

Result<std::vector<ManifestRow>> SqliteStore::manifests() {
  auto rows = select(sql::select_manifests);
  std::vector<ManifestRow> found;
  while (rows.next()) {
    auto manifest = decode<Manifest>(rows.text(1));
    if (!manifest) {
      return Error{.code = Errc::kStoreUnavailable,
                   .message = "manifest " + rows.string(0) + ": " + manifest.error().message};
    }
    found.push_back({.hash = rows.string(0), .manifest = std::move(*manifest), .first_seen = rows.time(2)});
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

}  // namespace muster
