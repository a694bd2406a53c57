#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/command_plan.h"
#include "coordinator/compiled_queries.h"
#include "coordinator/difference.h"
#include "coordinator/dispatcher.h"
#include "coordinator/drift.h"
#include "coordinator/event_log.h"
#include "coordinator/registry.h"
#include "coordinator/store.h"
#include "coordinator/unread.h"
#include "coordinator/write_log.h"

namespace muster {

/// What commands work with. All of it outlives them.
struct CommandServices {
  const Config& config;
  Store& store;
  Registry& registry;
  Dispatcher& dispatcher;
  EventLog& events;
  WriteLog& writes;
  Drift& drift;
  CompiledQueries& queries;
  const Clock& clock;
  spdlog::logger& log;
};

struct Unsettled;

/// Carries one command out. Each step is written before a job of it is published and when it ends, so that another
/// coordinator goes on where this one stopped. What came of a change that nobody answered for is found out by its
/// status, a read, or the same key again, never assumed.
/// Store errors are thrown as StoreFailure. Thread: loop thread only.
class Execution {
 public:
  Execution(CommandServices services, CommandRow row, CommandPlan plan, std::uint64_t owner);
  ~Execution();

  /// Begins, or goes on with what `operations` say.
  void start(const std::vector<OperationRow>& operations, TimePoint now);
  void take(JobOutcome outcome, TimePoint now);
  /// Begins what can be begun, and ends the command when nothing is left.
  void advance(TimePoint now);
  void cancel(Cancelled how, TimePoint now, Effects& effects);

  /// An earlier attempt of a change whose outcome is being found out has succeeded. False: it has made another object
  /// than the one that the step has.
  bool hint(std::size_t step, const MutationResult& result);

  /// Targets and types of which something may have been made that is not in the inventory.
  [[nodiscard]] const std::set<std::pair<std::string, std::string>>& unsure() const { return unsure_; }
  /// Names of what may succeed when it is tried again later, and of what waited for that. Not kept across a restart.
  [[nodiscard]] std::set<std::string> to_try_again() const;
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] TimePoint next_due() const;
  [[nodiscard]] const CommandRow& row() const { return row_; }
  [[nodiscard]] const CommandPlan& plan() const { return plan_; }
  [[nodiscard]] bool has_ended(std::size_t step) const { return over(states_[step]); }
  /// Of a step that has ended: whether it has changed something, or may have.
  [[nodiscard]] static bool may_have_changed(const OperationRow& operation);
  [[nodiscard]] std::uint64_t owner() const { return owner_; }
  /// Counts of steps by state, for events and progress lines.
  [[nodiscard]] JsonText progress() const;

 private:
  enum class State : std::uint8_t { kPending, kRunning, kDone, kFailed, kBlocked, kCancelled };
  static std::string_view state_name(State state);
  /// What the job is that a running step waits for. Kept in the store: the numbers stay.
  enum class Phase : std::uint8_t {
    kReading = 0,  // what is there, before it is changed
    kCreating = 1,
    kUpdating = 2,
    kDeleting = 3,
    kPolling = 4,     // a change in progress
    kSettling = 5,    // a read that tells how a change went
    kConverging = 6,  // a read of what was changed, which is not yet as declared
    kFinding = 7,     // what of the name is there already, after a create of unknown outcome
    kEmptying = 8,    // what lies in what is replaced, and goes with it, is deleted first
  };
  struct Work;

  bool begin_ready(TimePoint now);
  bool has_room(const std::string& target);
  static bool over(State state);
  void begin(std::size_t step, TimePoint now);
  void note_drift(const CommandStep& step, RowId seen, State ended);
  void end(std::size_t step, State state, std::string_view code = {}, const std::string& message = {});
  static std::string_view half_done(const Work& work);
  void note_end(OperationRow operation, std::size_t step, State state, std::string_view code,
                const std::string& message);
  void fail(Work& work, const Error& error);
  void leave_unsure(const Work& work);
  void release(std::size_t step);
  /// What was replaced by what is made goes once those that refer to it have turned to that.
  void replace_used(TimePoint now);
  void block_dependents(std::size_t step);
  void count_ended(std::size_t step, State state);
  void finish();

  /// What is due, as far as there is room for it.
  void submit_waiting(TimePoint now);
  void submit_due(Work& work, TimePoint now);
  static Priority priority_of(const Work& work);
  /// `type`   of what the job is for, where that is not the step's own
  void submit(Work& work, JobOperation operation, TimePoint now, std::string_view type = {});
  /// Not after the step's deadline: what is not over then is ended by what its last job says.
  void go_on(Work& work, Phase phase, TimePoint now, Millis pause = Millis{0});
  /// Of a forced cancel: nothing more is changed, and what may have been done is looked for.
  void stop(Work& work, TimePoint now);
  void take_back_unsent();
  /// What it waits for, for people; empty when it moves.
  [[nodiscard]] std::string waiting() const;
  void begin_write(Work& work);
  void end_write(Work& work);
  [[nodiscard]] bool take_new_id(Work& work);

  // execution_names.cpp: who has a name, when another takes it
  void each_named(const std::string& stack, const std::string& name,
                  const std::function<void(const ManagedView&)>& sink) const;
  void rename_replaced(RowId row);
  void release_gone(const CommandStep& adopted);
  [[nodiscard]] bool is_gone_as_another(const CommandStep& step) const;
  [[nodiscard]] bool is_anothers(const CommandStep& step) const;

  // execution_inputs.cpp: what a step works with
  void find_made(Work& work);
  /// Of what is read in the step's phase.
  static RowId read_row(const Work& work);
  /// Told as there, and not as gone since.
  [[nodiscard]] bool is_listed(RowId row) const;
  Result<void> find_target(Work& work);
  bool still_serves(Work& work);
  /// Finds the step's target and type, or why nothing can be done there.
  Result<void> locate(Work& work);
  const PropertyRule& rules_of(const TypeDescriptor& type);
  /// The declared properties, with references to resources filled in and secrets as marked fields.
  Result<Document> document(const CommandStep& step);
  [[nodiscard]] std::optional<nlohmann::json> reference(const std::string& stack, const std::string& name,
                                                        const std::string& path);
  std::optional<Parent> parent_of(Work& work);
  /// Whether what it is declared to lie in has left the stack since it was planned.
  [[nodiscard]] bool lacks_parent(const Work& work) const;
  /// Why nothing can be said of a step's row any more: it has left, or is another's, since it was planned for.
  std::optional<Error> lost_row(const CommandStep& step);

  // execution_keys.cpp: creates whose outcome is not known
  void inherit_key(Work& work);
  void leave_key(Work& work);
  std::pair<std::string, JsonText> unread_of(const Work& work);
  [[nodiscard]] bool made_with_old_values(const Work& work);
  std::optional<std::string> unread_moved(const Work& work);
  void forget_unread(const Work& work);
  [[nodiscard]] std::vector<Unsettled> unsettled(const Work& work) const;
  void settle_key(const Work& work, const std::string& place);
  std::string place_of(RowId row) const;
  void spend_key(Work& work);

  // execution_deletions.cpp: what goes with what is deleted
  std::optional<Error> held_by(const Work& work);
  /// Why what is to be made anew is not to be deleted for that.
  std::optional<Error> spared_by(const Work& work);
  /// Whether something differs from what is declared that takes another object; none: nobody can tell.
  [[nodiscard]] std::optional<bool> calls_for_another(const Work& work, const nlohmann::json& there);
  static std::function<bool(std::string_view)> outlives(const Work& work);
  void deleted(Work& work, TimePoint now);
  [[nodiscard]] bool goes(const ResourceRecord& row) const;
  [[nodiscard]] bool is_to_go(const ResourceRecord& row) const;
  /// Whether there is something in what refuses to be deleted that this command makes anew elsewhere: that goes first.
  bool begin_emptying(Work& work, TimePoint now);
  void empty_more(Work& work, TimePoint now);
  void end_write_of_content(const Work& work);
  void take_emptying(Work& work, const JobOutcome& outcome, TimePoint now);
  void leave(const Work& work, const ResourceRecord& row, std::string_view reason, std::string_view event);
  void leave_contents(const Work& work, RowId row);

  // execution_settling.cpp: what is not found, or is another
  /// Of the step's object, and of what else a change needs: how much longer NOT_FOUND proves nothing.
  [[nodiscard]] Millis time_to_show(const Work& work, TimePoint now) const;
  [[nodiscard]] Millis needs_time_to_show(const Work& work) const;
  [[nodiscard]] Millis row_time_to_show(const Work& work, std::string_view type, ResourceState state,
                                        WallTime changed_at) const;
  /// NOT_FOUND counts for nothing for so long: asks once more, in a while. False: the time is over, and it counts.
  bool ask_until_settled(Work& work, Phase phase, Millis left, TimePoint now);
  [[nodiscard]] bool may_be_gone(const Work& work, const std::string& native_id);
  void take_nothing_there(Work& work, TimePoint now);
  void gone(Work& work);
  bool is_as_declared(const Work& work, const Item& item);

  // execution_converging.cpp: what was made or changed, until it is as declared
  Result<Difference> differs(const Work& work, const nlohmann::json& there);
  static Error unconfirmed(const Work& work, const Error& why);
  void converge(Work& work, const nlohmann::json& there, TimePoint now);
  void take_converging(Work& work, const ReadItem& answer, TimePoint now);

  // execution_outcomes.cpp: what answers mean
  /// Force has ended a look as well: it is taken once more, for how the change went is not known without.
  [[nodiscard]] bool is_cut_off(Work& work, const JobOutcome& outcome) const;
  void take_reading(Work& work, const ReadItem& answer, TimePoint now);
  void take_change(Work& work, JobResult result, TimePoint now);
  void take_failure(Work& work, const Error& error, TimePoint now);
  void take_poll_failure(Work& work, const Error& error, TimePoint now);
  void take_settling(Work& work, const ReadItem& answer, TimePoint now);
  void take_finding(Work& work, JobResult result, TimePoint now);
  /// Those of the candidates that are read next, together.
  static std::vector<std::string> first_candidates(const Work& work);
  bool is_replaced(const Work& work, const Item& item);
  bool is_wanted(Work& work, const Item& item);
  void found(Work& work, const Item& item, TimePoint now);
  /// Once more, in a while; fails the step when that has been tried often enough.
  [[nodiscard]] bool is_last_try(const Work& work, const Error& why, TimePoint now) const;
  void again(Work& work, Phase phase, const Error& why, TimePoint now);
  void plan_update(Work& work, const nlohmann::json& there, TimePoint now);
  static std::optional<Error> changes_another(const Work& work, const std::string& native_id);
  void succeeded(Work& work, const MutationResult& result, TimePoint now);
  void created(Work& work, const Item& item, TimePoint now);
  void updated(Work& work, const Item& item, TimePoint now);
  /// Canonical, and without what is not to be read back. The step's `state` stands for all of it.
  Result<JsonText> kept_form(Work& work, const Item& item);
  /// Writes what was read; false, with the step failed, when it is no JSON object.
  bool observe(Work& work, RowId row, const Item& item, std::string_view cause, std::string_view event);
  [[nodiscard]] JsonObject identity(const ResourceRecord& row) const;

  CommandServices s_;
  CommandRow row_;
  CommandPlan plan_;
  std::uint64_t owner_;
  std::vector<State> states_;
  std::vector<std::size_t> open_;                           // steps that come first and have not ended
  std::vector<std::vector<std::size_t>> dependents_;        // steps that wait for this one
  std::map<std::string, std::deque<std::size_t>> ready_;    // by target
  std::map<std::string, std::pair<Lane, TargetId>> lanes_;  // of targets
  std::vector<std::size_t> deletions_;                      // ready but for what is no deletion
  std::size_t others_left_ = 0;                             // steps that are no deletions and have not ended
  bool others_failed_ = false;
  std::size_t left_ = 0;                  // steps that have not ended
  std::set<std::size_t> failed_for_now_;  // of what may pass
  std::set<std::pair<std::string, std::string>> unsure_;
  std::map<std::size_t, std::unique_ptr<Work>> running_;
  std::set<std::size_t> made_first_;  // of these: which wait for others to end
  std::unordered_map<JobId, std::size_t> jobs_;
  std::map<std::string, PropertyRule> rules_;       // by type
  std::map<std::string, UnreadProperties> unread_;  // likewise
  std::unordered_map<RowId, std::size_t> to_go_;    // by row: the step that deletes it, or makes it anew
  std::unordered_set<RowId> deleted_;               // of these: the former
  TimePoint advanced_at_;                           // the last time; none: not yet
  TimePoint next_progress_;
  JsonText last_progress_;
  bool finished_ = false;
};

}  // namespace muster
