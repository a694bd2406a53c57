#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/compiled_queries.h"
#include "coordinator/dispatcher.h"
#include "coordinator/drift.h"
#include "coordinator/event_log.h"
#include "coordinator/jsonpath.h"
#include "coordinator/registry.h"
#include "coordinator/run_scope.h"
#include "coordinator/scan.h"
#include "coordinator/store.h"
#include "coordinator/write_log.h"

namespace muster {

/// What a run works with. All of it outlives the run.
struct RunServices {
  const Config& config;
  Store& store;
  Registry& registry;
  Dispatcher& dispatcher;
  Limiter& limiter;
  EventLog& events;
  WriteLog& writes;
  Drift& drift;
  CompiledQueries& queries;
  const Clock& clock;
  spdlog::logger& log;
};

/// `job` and `plugin` (name and version) are empty where no answer of a plugin is to blame.
struct RunProblem {
  std::string target, type, code, message, job, plugin;
};

/// Nothing is known of what a target has now: its rows stay as they are, stale.
void mark_stale(Store& store, const TargetId& target);

/// One discovery of a set of targets: lists, reads, compares, judges what is missing. It submits jobs as the dispatcher
/// has room, takes their outcomes, and writes into the store's open transaction; nothing here waits.
/// Store errors are thrown as StoreFailure. Thread: loop thread only.
class Run {
 public:
  Run(RunServices services, RunRow row, RunScope scope, std::uint64_t owner);
  ~Run();

  /// Takes in the given targets (those of the scope that are to be discovered); advance() begins with them.
  void start(std::vector<TargetRow> targets, TimePoint now);
  /// Asks for the page after one that came, before take() stores that: the worker makes it meanwhile. False: there is
  /// none to ask for yet.
  bool look_ahead(const JobOutcome& outcome, TimePoint now);
  void take(JobOutcome outcome);
  /// Whether a target is still being looked at by another run.
  using IsTaken = std::function<bool(const TargetId&)>;
  /// Begins with targets that are free, submits what there is room for, and ends what can be ended.
  void advance(TimePoint now, const IsTaken& is_taken);
  /// The target is another one from now on, or none: nothing more is taken of what was asked for here.
  void outdate(const TargetId& target);
  /// What it tells of that target, and has looked at after it, goes by its new name.
  void rename_target(const std::string& was, const std::string& is);
  /// Ends what is open of such targets.
  void give_up_outdated(Effects& effects);
  /// Gives up: what is open ends as incomplete, with this problem.
  void abort(std::string_view code, const std::string& why, Effects& effects);

  [[nodiscard]] bool finished() const { return finished_; }
  /// Whether it has not done with that target yet.
  [[nodiscard]] bool looks_at(const TargetId& target) const;
  [[nodiscard]] std::size_t open_targets() const;
  /// Of WriteLog, when it began.
  [[nodiscard]] std::uint64_t begun_at() const { return begun_at_; }
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  [[nodiscard]] const RunRow& row() const { return row_; }
  [[nodiscard]] std::uint64_t owner() const { return owner_; }
  /// What is to be listed after this run: an object that is known was not found when it was read again, and only a
  /// whole listing tells whether it is gone or has another id now.
  [[nodiscard]] const std::vector<ScopePart>& follow_up() const { return follow_up_; }
  /// Has the report of a finished run name those that look at its follow_up().
  void set_followed_by(std::vector<RunId> runs);
  /// What it waits for, for people; empty when it moves.
  [[nodiscard]] std::string waiting() const;
  /// The contract's report object, also while it runs.
  [[nodiscard]] JsonText report() const;
  /// Sums over all scans, for events and progress lines.
  [[nodiscard]] JsonText progress() const;

 private:
  struct TargetRun;
  struct Pending;  // what a submitted job is for

  /// Takes what the store has of a target whose turn has come: others may have written it since the run began.
  void look_up(TargetRun& target);
  void begin_target(TargetRun& target, TimePoint now);
  /// A few inspections at once for each slot; those that take none for now are not counted.
  void begin_targets(TimePoint now, const IsTaken& is_taken);
  void skip_target(TargetRun& target, std::string_view code, const std::string& why);
  void take_inspection(TargetRun& target, JobResult result);
  bool accept_system(TargetRun& target, const std::string& system);
  bool compile_queries(TargetRun& target);
  void make_scans(TargetRun& target);
  /// Nobody looks at what the plugin serves no more, or not here: its rows are stale.
  void mark_unserved(const TargetRun& target);

  void advance_target(TargetRun& target, TimePoint now);
  void begin_scan(const TargetRun& target, Scan& scan);
  bool list_more(TargetRun& target, Scan& scan, TimePoint now);
  bool reread_more(TargetRun& target, Scan& scan, TimePoint now);
  [[nodiscard]] ParentRef parent_ref(const Scan& scan, RowId row);
  bool submit_reads(TargetRun& target, Scan& scan, TimePoint now);
  bool submit_page(TargetRun& target, Scan& scan, std::shared_ptr<Listing> listing, std::string token, TimePoint now);
  static Priority priority_of(const TargetRun& target);
  bool has_room(const TargetRun& target);
  JobSpec job(const TargetRun& target, const Scan& scan, JobOperation operation) const;
  JobId submit(JobSpec spec, Pending pending, TimePoint now);

  void take_page(TargetRun& target, Scan& scan, const std::shared_ptr<Listing>& listing, bool continued,
                 JobResult result);
  /// Whether as much has been listed as a run lists.
  [[nodiscard]] bool overflows(const Scan& scan) const;
  bool continues(Scan& scan, Listing& listing, const std::string& token, TargetRun& target);
  void take_reads(TargetRun& target, Scan& scan, std::vector<PendingRead> asked, JobResult result);
  bool note_listed(TargetRun& target, Scan& scan, const Item& item);
  enum class Seen : std::uint8_t { kKept, kFiltered, kRefused };
  Seen observe(TargetRun& target, Scan& scan, const Item& item, RowId parent);
  [[nodiscard]] bool is_managed(RowId row) const;
  /// For an id under which the store has another object than `item`: false when that has made room for the item, true
  /// when the item waits, or its target is listed again. `indexed`: the entry is of the scan's index, not a copy.
  bool observe_successor(TargetRun& target, Scan& scan, ScanIndex::Entry& entry, bool indexed, const Item& item,
                         RowId parent);
  void observe_released(TargetRun& target, Scan& scan);
  /// Nothing more of this type comes: what has lost its id to another, and was not found elsewhere, is gone. False:
  /// there was none.
  bool replace_taken(TargetRun& target, Scan& scan);
  /// Known objects that were to be read again are not what they were: only a listing tells what became of them.
  void list_again(const TargetRun& target);
  void give_up_rest(TargetRun& target);
  [[nodiscard]] std::optional<ScanIndex::Entry> written_entry(const Scan& scan, std::string_view native_id);
  /// What the store has under another id of an object of that uid, and has not been observed in this run.
  static ScanIndex::Entry* of_uid(const TargetRun& target, Scan& scan, std::string_view uid);
  /// An id that the store does not have: new, or the new name of something that it has. `filtered`: only that, if it
  /// is managed.
  void observe_unknown(TargetRun& target, Scan& scan, const Item& item, RowId parent, std::string_view text,
                       const Hash128& content, bool filtered);
  void observe_new(TargetRun& target, Scan& scan, const Item& item, RowId parent, std::string_view text,
                   const Hash128& content);
  void observe_known(TargetRun& target, Scan& scan, ScanIndex::Entry& entry, const Item& item, RowId parent,
                     std::string_view text, const Hash128& content);
  /// Writes new properties and returns what an event says of them.
  std::string record_change(TargetRun& target, Scan& scan, const ResourceRecord& old, const Item& item,
                            std::string_view text, const Hash128& content, const JsonText& patch);
  void filter_out(TargetRun& target, Scan& scan, const ScanIndex::Entry* entry);
  /// Whether the id was filtered out before, when the list said the same of it, and its turn to be read has not come.
  bool remembered_filtered(Scan& scan, const Item& item);
  void remember(Scan& scan, const PendingRead& asked, Seen seen);
  void queue_children(Scan& scan, RowId row);
  /// What lies in a thing that is there is listed, also when the look at the thing itself says nothing.
  void queue_children(Scan& scan, std::string_view native_id);
  /// Label of the item that is being observed; its properties are parsed at most once, for filters and label together.
  std::string label_of(const TargetRun& target, const Scan& scan, std::string_view text, std::string_view native_id);
  /// Whether properties of that size are more than a resource may have, which is told.
  bool too_large(const TargetRun& target, Scan& scan, const std::string& native_id, std::size_t bytes);
  /// What was seen, in canonical form: as it came, or `made`. Nothing: it is no JSON object, or too large a one, which
  /// is told.
  std::optional<std::string_view> canonical_of(TargetRun& target, Scan& scan, const Item& item, JsonText& made);
  /// What the filters say. Nothing: they cannot judge it, which is told.
  std::optional<bool> keeps(TargetRun& target, Scan& scan, const std::string& native_id, std::string_view text);
  Result<void> parse(std::string_view text);

  // run_judge.cpp: what was renamed, what is missing
  void settle(TargetRun& target, Scan& scan);
  bool ask_old_ids(TargetRun& target, Scan& scan, TimePoint now);
  /// Of a type of which nothing can be read, the listing says whether an old id is there still.
  bool resolve_by_listing(TargetRun& target, Scan& scan);
  void take_old_ids(TargetRun& target, Scan& scan, const std::vector<PendingConfirmation>& asked,
                    const std::vector<std::string>& ids, JobResult result);
  bool confirm_more(TargetRun& target, Scan& scan, TimePoint now);
  void take_confirmations(TargetRun& target, Scan& scan, const std::vector<PendingConfirmation>& asked,
                          const std::vector<std::string>& ids, JobResult result);
  /// Whether an object that failed so often is asked for once more.
  [[nodiscard]] bool again(const TargetRun& target, const Error& error, int& failures) const;
  void take_old_id(TargetRun& target, Scan& scan, RowId row, const std::string& id, const ReadItem& answer);
  void take_missing(TargetRun& target, Scan& scan, RowId row, const std::string& id, const ReadItem& answer);
  /// Asks whether it is there all the same; where nothing of its type can be read, the listing has said it.
  void judge_unlisted(TargetRun& target, Scan& scan, RowId row);
  /// What lay in something of its own type that was not listed is judged in its own right.
  void judge_below(TargetRun& target, Scan& scan, RowId row);
  enum class OldId : std::uint8_t { kGone, kThere };
  void resolve(TargetRun& target, Scan& scan, RowId row, OldId old);
  void rename(TargetRun& target, Scan& scan, RowId row, const Deferred& deferred);
  /// Each of `rows` has the id that the one before it had.
  void rename_circle(TargetRun& target, Scan& scan, const std::vector<RowId>& rows);
  /// What waited is no other name of anything: it is new, unless the filters leave it out.
  void observe_waiting(TargetRun& target, Scan& scan, const Deferred& deferred);
  void leave(TargetRun& target, RowId row, ResourceState state, std::string_view reason);
  void leave_tree(TargetRun& target, RowId row, ResourceState state, std::string_view reason);
  /// What filters leave out that may have had something below it, and what lay in a thing that was replaced: when all
  /// is listed, and it is known what has moved.
  void leave_late(TargetRun& target);
  void finish_scan(TargetRun& target, Scan& scan);
  void vouch(const TargetRun& target, Scan& scan);
  void finish_target(TargetRun& target);
  void finish();

  void problem(const TargetRun& target, std::string_view type, std::string_view code, std::string message);
  void fail_scan(TargetRun& target, Scan& scan, const Error& error, const std::string& doing);
  /// With further `members` of the object, of which there is one at least.
  [[nodiscard]] JsonText identity(const TargetRun& target, std::string_view type, const ResourceId& id,
                                  std::string_view native_id, std::string_view members) const;

  RunServices s_;
  RunRow row_;
  RunScope scope_;
  std::uint64_t owner_ = 0;
  TimePoint deadline_;
  WallTime started_wall_;
  std::uint64_t begun_at_ = 0;
  bool finished_ = false;
  bool aborted_ = false;
  bool waits_for_others_ = false;  // some of its targets were taken at the last advance()
  std::vector<std::unique_ptr<TargetRun>> targets_;
  std::unordered_map<JobId, Pending> pending_;
  std::vector<RunProblem> problems_;
  std::size_t problem_bytes_ = 0;
  std::uint64_t more_problems_ = 0;  // beyond what is kept
  JobId taking_;                     // the job whose answer is being taken, empty otherwise
  std::uint64_t position_ = 0;       // of WriteLog, when that job was submitted
  std::vector<ScopePart> follow_up_;
  std::vector<RunId> followed_by_;
  JsonDocument document_;    // of the item that is being observed
  std::string_view parsed_;  // the text it was parsed from, empty before
};

}  // namespace muster
