#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/dispatcher.h"
#include "coordinator/event_log.h"
#include "coordinator/jsonpath.h"
#include "coordinator/registry.h"
#include "coordinator/scan.h"
#include "coordinator/store.h"

namespace muster {

/// What a run works with. All of it outlives the run.
struct RunServices {
  const Config& config;
  Store& store;
  Registry& registry;
  Dispatcher& dispatcher;
  Limiter& limiter;
  EventLog& events;
  const Clock& clock;
  spdlog::logger& log;
};

/// Which targets and types a run looks at; empty: all.
struct RunScope {
  std::vector<std::string> targets;
  std::vector<std::string> types;

  void merge(const RunScope& other);
  [[nodiscard]] JsonText json() const;
  static RunScope parse(const JsonText& json);
  bool operator==(const RunScope&) const = default;
};

struct RunProblem {
  std::string target, type, code, message;
};

/// One discovery of a set of targets: lists, reads, compares, judges what is missing. It submits jobs as the dispatcher
/// has room, takes their outcomes, and writes into the store's open transaction; nothing here waits.
/// Store errors are thrown as StoreFailure. Thread: loop thread only.
class Run {
 public:
  Run(RunServices services, RunRow row, RunScope scope, std::uint64_t owner);
  ~Run();

  /// Begins with the given targets (those of the scope that are to be discovered).
  void start(std::vector<TargetRow> targets, TimePoint now);
  void take(JobOutcome outcome);
  /// Submits what there is room for, and ends what can be ended.
  void advance(TimePoint now);
  /// Gives up: what is open ends as incomplete, with this problem.
  void abort(std::string_view code, const std::string& why, Effects& effects);

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  [[nodiscard]] const RunRow& row() const { return row_; }
  [[nodiscard]] std::uint64_t owner() const { return owner_; }
  [[nodiscard]] const RunScope& scope() const { return scope_; }
  /// What it waits for, for people; empty when it moves.
  [[nodiscard]] std::string waiting() const;
  /// The contract's report object, also while it runs.
  [[nodiscard]] JsonText report() const;
  /// Sums over all scans, for events and progress lines.
  [[nodiscard]] JsonText progress() const;

 private:
  struct TargetRun;
  struct Pending;  // what a submitted job is for

  void begin_target(TargetRun& target, TimePoint now);
  void skip_target(TargetRun& target, std::string_view code, const std::string& why);
  void take_inspection(TargetRun& target, JobResult result);
  bool accept_system(TargetRun& target, const std::string& system);
  bool compile_queries(TargetRun& target);
  void make_scans(TargetRun& target);

  void advance_target(TargetRun& target, TimePoint now);
  void begin_scan(Scan& scan);
  bool list_more(TargetRun& target, Scan& scan, TimePoint now);
  bool submit_reads(TargetRun& target, Scan& scan, TimePoint now);
  bool submit_page(TargetRun& target, Scan& scan, std::shared_ptr<Listing> listing, std::string token, TimePoint now);
  JobSpec job(const TargetRun& target, const Scan& scan, JobOperation operation) const;
  void submit(JobSpec spec, Pending pending, TimePoint now);

  void take_page(TargetRun& target, Scan& scan, const std::shared_ptr<Listing>& listing, JobResult result);
  bool continues(Scan& scan, Listing& listing, const std::string& token, bool barren, TargetRun& target);
  void take_reads(TargetRun& target, Scan& scan, std::vector<PendingRead> asked, JobResult result);
  bool note_listed(TargetRun& target, Scan& scan, const Item& item);
  void observe(TargetRun& target, Scan& scan, const Item& item, RowId parent);
  void observe_new(TargetRun& target, Scan& scan, const Item& item, RowId parent, std::string_view text,
                   const Hash128& content);
  void observe_known(TargetRun& target, Scan& scan, ScanIndex::Entry& entry, const Item& item, RowId parent,
                     std::string_view text, const Hash128& content);
  /// Writes new properties and returns what an event says of them.
  std::string record_change(TargetRun& target, Scan& scan, const ResourceRecord& old, const Item& item,
                            std::string_view text, const Hash128& content);
  void filter_out(TargetRun& target, Scan& scan, const ScanIndex::Entry* entry);
  /// Label of the item that is being observed; its properties are parsed at most once, for filters and label together.
  std::string label_of(const TargetRun& target, const Scan& scan, std::string_view text, std::string_view native_id);
  Result<bool> keeps(const TargetRun& target, const Scan& scan, std::string_view text);
  Result<void> parse(std::string_view text);
  void queue_children(Scan& scan, RowId row, std::string_view native_id, std::string_view text);

  // run_judge.cpp: what was renamed, what is missing
  void settle(TargetRun& target, Scan& scan);
  bool confirm_more(TargetRun& target, Scan& scan, TimePoint now);
  void take_confirmations(TargetRun& target, Scan& scan, const std::vector<PendingConfirmation>& asked,
                          const std::vector<std::string>& ids, JobResult result);
  /// Whether an object that failed so often is asked for once more.
  [[nodiscard]] bool again(const TargetRun& target, const Error& error, int& failures) const;
  void take_old_id(TargetRun& target, Scan& scan, RowId row, const std::string& id, const ReadItem& answer);
  void take_missing(TargetRun& target, Scan& scan, RowId row, const std::string& id, const ReadItem& answer);
  void rename(TargetRun& target, Scan& scan, RowId row, const Deferred& deferred);
  void leave(TargetRun& target, RowId row, ResourceState state, std::string_view reason);
  void leave_tree(TargetRun& target, RowId row, ResourceState state, std::string_view reason);
  void finish_scan(TargetRun& target, Scan& scan);
  void finish_target(TargetRun& target);
  void finish();

  void problem(const TargetRun& target, std::string_view type, std::string_view code, std::string message);
  void fail_scan(TargetRun& target, Scan& scan, const Error& error, const std::string& doing);
  [[nodiscard]] JsonText identity(const TargetRun& target, const Scan& scan, const ResourceId& id,
                                  std::string_view native_id, std::string_view extra) const;

  RunServices s_;
  RunRow row_;
  RunScope scope_;
  std::uint64_t owner_ = 0;
  TimePoint started_, deadline_;
  WallTime started_wall_;
  bool finished_ = false;
  bool aborted_ = false;
  std::vector<std::unique_ptr<TargetRun>> targets_;
  std::unordered_map<JobId, Pending> pending_;
  std::vector<RunProblem> problems_;
  std::uint64_t more_problems_ = 0;  // beyond what is kept
  JsonDocument document_;            // of the item that is being observed
  std::string_view parsed_;          // the text it was parsed from, empty before
};

}  // namespace muster
