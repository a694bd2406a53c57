#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "coordinator/store.h"

namespace muster::test {

/// A store whose writes fail while `failing` is set; what it reads is right all the time.
class FailingStore final : public Store {
 public:
  explicit FailingStore(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  bool failing = false;
  bool commits_only = false;  // that fail: what is written before is taken
  int failures = 0;
  bool breaks_commands = false;  // once one is written there is a fault of the program
  std::size_t whole_stacks = 0;  // that were read
  std::size_t plans_read = 0;
  std::size_t queries = 0;  // of resources
  std::size_t runs_written = 0;
  std::size_t most_asked_for = 0;  // events or runs, at once
  std::function<void()> on_operation_of = [] {};

  [[nodiscard]] const FleetId& fleet() const override { return store_->fleet(); }
  Result<void> commit() override {
    if (failing) return fail();
    return store_->commit();
  }
  void rollback() override { store_->rollback(); }
  [[nodiscard]] std::size_t uncommitted() const override { return store_->uncommitted(); }
  [[nodiscard]] std::uint64_t state() const override { return store_->state(); }

  Result<std::vector<TargetRow>> targets() override { return store_->targets(); }
  Result<std::vector<TargetRow>> counted_targets() override { return store_->counted_targets(); }
  Result<std::optional<TargetRow>> target(std::string_view name) override { return store_->target(name); }
  Result<void> put_target(const TargetRow& target) override { return write(store_->put_target(target)); }
  Result<void> note_target(const TargetRow& target) override { return write(store_->note_target(target)); }
  Result<ScanRow> scan(const TargetId& target, std::string_view type) override { return store_->scan(target, type); }
  Result<std::vector<ScanRow>> scans(const TargetId& target) override { return store_->scans(target); }
  Result<void> put_scan(const ScanRow& scan) override { return write(store_->put_scan(scan)); }
  Result<std::vector<TypeCount>> counts() override { return store_->counts(); }

  Result<void> load_index(RowId scan, const std::function<void(const IndexEntry&)>& sink) override {
    return store_->load_index(scan, sink);
  }
  Result<Inserted> insert(const NewResource& resource) override { return write(store_->insert(resource)); }
  Result<void> change(RowId row, std::string_view properties, const Hash128& content, std::string_view label,
                      std::string_view uid, std::string_view patch, WallTime at, std::string_view cause) override {
    return write(store_->change(row, properties, content, label, uid, patch, at, cause));
  }
  Result<void> rename(RowId row, std::string_view native_id, std::string_view label, RowId parent,
                      WallTime at) override {
    return write(store_->rename(row, native_id, label, parent, at));
  }
  Result<void> reparent(RowId row, RowId parent) override { return write(store_->reparent(row, parent)); }
  Result<void> leave(RowId row, ResourceState state, std::string_view cause, WallTime at) override {
    return write(store_->leave(row, state, cause, at));
  }
  Result<void> set_stale(RowId row, bool stale) override { return write(store_->set_stale(row, stale)); }
  Result<void> set_uid(RowId row, std::string_view uid) override { return write(store_->set_uid(row, uid)); }
  Result<void> restate(RowId row, std::string_view properties, const Hash128& content) override {
    return write(store_->restate(row, properties, content));
  }
  Result<void> set_label(RowId row, std::string_view label) override { return write(store_->set_label(row, label)); }
  Result<void> come_back(RowId row) override { return write(store_->come_back(row)); }
  Result<void> manage(RowId row, const Claim& claim) override { return write(store_->manage(row, claim)); }
  Result<void> release(RowId row) override { return write(store_->release(row)); }
  Result<void> set_drifted(RowId row, bool drifted) override { return write(store_->set_drifted(row, drifted)); }
  Result<void> set_created(RowId row) override { return write(store_->set_created(row)); }
  Result<std::optional<Claim>> claim(RowId row) override { return store_->claim(row); }
  Result<void> of_stack(std::string_view stack, std::string_view name,
                        const std::function<void(const ManagedView&)>& sink) override {
    if (name.empty()) ++whole_stacks;
    return store_->of_stack(stack, name, sink);
  }
  Result<std::vector<std::pair<std::string, std::uint64_t>>> stacks() override { return store_->stacks(); }
  Result<void> put_command(const CommandRow& command) override {
    auto written = write(store_->put_command(command));
    if (breaks_commands) throw std::logic_error("no such thing");
    return written;
  }
  Result<void> set_command(const CommandRow& command) override { return write(store_->set_command(command)); }
  Result<std::optional<CommandRow>> command(const CommandId& id) override { return store_->command(id); }
  Result<JsonText> plan_of(const CommandId& id) override {
    ++plans_read;
    return store_->plan_of(id);
  }
  Result<std::vector<CommandRow>> commands(const CommandId& before, std::size_t limit) override {
    return store_->commands(before, limit);
  }
  Result<std::vector<CommandRow>> unfinished_commands() override { return store_->unfinished_commands(); }
  Result<void> prune_commands(std::size_t keep, std::uint64_t keep_bytes) override {
    return write(store_->prune_commands(keep, keep_bytes));
  }
  Result<void> put_operation(const OperationRow& operation) override { return write(store_->put_operation(operation)); }
  using Store::operations;
  Result<std::vector<OperationRow>> operations(const CommandId& command, std::size_t first,
                                               std::size_t limit) override {
    return store_->operations(command, first, limit);
  }
  Result<std::string> unsettled(std::string_view place) override { return store_->unsettled(place); }
  Result<void> set_unsettled(std::string_view place, std::string_view key) override {
    return write(store_->set_unsettled(place, key));
  }
  Result<void> rename_target(std::string_view was, std::string_view is) override {
    return write(store_->rename_target(was, is));
  }
  Result<void> put_create_of_replacement(const OperationRow& operation) override {
    return write(store_->put_create_of_replacement(operation));
  }
  Result<std::optional<OperationRow>> operation_of(const JobId& job) override {
    on_operation_of();
    return store_->operation_of(job);
  }
  Result<void> load_filtered(RowId scan, const std::function<void(const Hash128&, std::uint64_t)>& sink) override {
    return store_->load_filtered(scan, sink);
  }
  Result<void> put_filtered(RowId scan, const Hash128& id, std::uint64_t listed) override {
    return write(store_->put_filtered(scan, id, listed));
  }
  Result<void> drop_filtered(RowId scan, const Hash128& id) override { return write(store_->drop_filtered(scan, id)); }
  Result<void> clear_filtered(RowId scan) override { return write(store_->clear_filtered(scan)); }
  Result<void> prune_runs(std::size_t keep) override { return write(store_->prune_runs(keep)); }
  Result<std::vector<RowId>> descendants(RowId row) override { return store_->descendants(row); }
  Result<RowId> find(RowId scan, std::string_view native_id) override { return store_->find(scan, native_id); }
  Result<std::optional<ResourceRecord>> one(RowId row) override { return store_->one(row); }
  Result<std::optional<ResourceRecord>> one(const ResourceId& id) override { return store_->one(id); }
  Result<std::optional<ResourceRecord>> one(std::string_view target, std::string_view type,
                                            std::string_view native_id) override {
    return store_->one(target, type, native_id);
  }
  Result<RowId> query(const ResourceQuery& query, const std::function<bool(const ResourceView&)>& sink) override {
    ++queries;
    return store_->query(query, sink);
  }
  Result<std::vector<HistoryEntry>> history(RowId row) override { return store_->history(row); }
  Result<std::optional<JsonText>> properties_at(RowId row, WallTime at) override {
    return store_->properties_at(row, at);
  }

  Result<std::uint64_t> append_event(const EventRow& event) override { return write(store_->append_event(event)); }
  Result<std::vector<EventRow>> events(std::uint64_t after, std::size_t limit) override {
    most_asked_for = std::max(most_asked_for, limit);
    return store_->events(after, limit);
  }
  Result<std::uint64_t> sequence_at(WallTime at) override { return store_->sequence_at(at); }
  Result<std::uint64_t> last_sequence() override { return store_->last_sequence(); }
  Result<std::uint64_t> published() override { return store_->published(); }
  Result<void> set_published(std::uint64_t sequence) override { return write(store_->set_published(sequence)); }
  Result<std::size_t> prune_events(WallTime before, std::uint64_t max_bytes, std::size_t limit) override {
    return write(store_->prune_events(before, max_bytes, limit));
  }

  Result<void> put_run(const RunRow& run) override {
    ++runs_written;
    return write(store_->put_run(run));
  }
  Result<std::optional<RunRow>> run(const RunId& id) override { return store_->run(id); }
  Result<std::vector<RunRow>> runs(const RunId& before, std::size_t limit) override {
    most_asked_for = std::max(most_asked_for, limit);
    return store_->runs(before, limit);
  }
  Result<std::vector<RunRow>> unfinished_runs() override { return store_->unfinished_runs(); }
  Result<void> put_manifest(const ManifestRow& manifest) override { return write(store_->put_manifest(manifest)); }
  Result<std::vector<ManifestRow>> manifests() override { return store_->manifests(); }
  Result<void> drop_manifest(std::string_view hash) override { return write(store_->drop_manifest(hash)); }
  Result<std::optional<std::string>> meta(std::string_view key) override { return store_->meta(key); }
  Result<void> set_meta(std::string_view key, std::string_view value) override {
    return write(store_->set_meta(key, value));
  }

 private:
  Error fail() {
    ++failures;
    return Error{Errc::kStoreUnavailable, "the disk is full", {}, 0};
  }
  /// What was written, or, while writes fail, the error: as after a real one, only a rollback brings order back.
  template <typename T>
  Result<T> write(Result<T> written) {
    if (failing && !commits_only) return fail();
    return written;
  }

  std::unique_ptr<Store> store_;
};

/// What `store` owns from now on, around what it owned.
inline FailingStore& put_failing_before(std::unique_ptr<Store>& store) {
  auto owned = std::make_unique<FailingStore>(std::move(store));
  auto& failing = *owned;
  store = std::move(owned);
  return failing;
}

}  // namespace muster::test
