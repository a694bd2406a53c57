#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/config.h"
#include "coordinator/discovery.h"
#include "coordinator/execution.h"
#include "coordinator/inventory_view.h"
#include "coordinator/late_looks.h"
#include "coordinator/plan_basis.h"

namespace muster {

/// What becomes of a target that a file declares.
struct TargetChange {
  StepAction action = StepAction::kCreate;  // or kUpdate, kDelete
  std::string target, ns, reason;
  std::string hash;  // of what it was planned from
};

/// What a user declares, as it comes in parts, and the plan that was made of it. Kept in memory for a while only.
struct Draft {
  std::string id;
  std::vector<Declaration> stacks;
  std::vector<TargetConfig> targets;
  ApplyMode mode = ApplyMode::kReconcile;
  std::set<std::string> only, excluded;  // names of resources
  std::size_t bytes = 0;
  TimePoint touched;
  bool planned = false;
  std::uint64_t planned_at = 0;  // state of the store
  bool nothing = false;          // to do, nor to note
  bool of_claims = false;        // what is declared is what claims say: of write-only values only digests are known
  Plan plan;
  std::vector<TargetChange> target_changes;
  std::vector<std::size_t> stack_of;  // by step: index into stacks
  std::vector<PlanMistake> mistakes;
  std::vector<PlanMistake> unchecked;          // what the schemas could not be asked about yet
  std::optional<std::vector<PlanBasis>> told;  // of the plan before this one, where nobody has been told of this one
};

/// Which resources of a stack are to be managed by nobody any more: of a target, those named, or both; all where
/// neither is given.
struct ForgetRequest {
  std::string stack;
  std::set<std::string> names;  // as declared
  std::string target;           // name; empty: on any
  bool look_only = false;
};

struct Forgotten {
  RowId row = 0;
  std::string name, target, type, native_id;
  ResourceState state = ResourceState::kPresent;  // that it had
};

/// What users ask for: drafts become commands, commands of one stack run one after the other.
/// Store errors are thrown as StoreFailure. Thread: loop thread only.
class Commands {
 public:
  /// `left_out`   counts late successes that the log does not have
  Commands(CommandServices services, Discovery& discovery, Random& random, std::uint64_t& left_out)
      : s_(services), discovery_(discovery), random_(random), late_looks_(left_out) {}

  /// Takes up what did not end.
  void start(TimePoint now);

  /// Adds to a draft; `id` empty: a new one.
  /// errors   kInvalidRequest; kNotFound: no such draft; kTooLarge
  Result<Draft*> declare(const std::string& id, std::vector<Declaration> stacks, std::vector<TargetConfig> targets,
                         std::size_t bytes, TimePoint now);
  Result<Draft*> draft(const std::string& id, TimePoint now);
  void discard(const std::string& id);
  /// Plans, or plans anew.
  void plan(Draft& draft);
  [[nodiscard]] static PlanBasis basis(const PlanStep& step);
  [[nodiscard]] static std::vector<PlanBasis> basis(const Draft& draft);

  enum class IfBusy : std::uint8_t { kWait, kRefuse };
  /// Makes a command of a draft that was planned; the draft is gone then.
  /// errors   kConflict: what it was planned on has changed, or a command of the stack is under way
  Result<CommandId> apply(Draft& draft, IfBusy if_busy, TimePoint now);
  /// errors   kNotFound; kConflict: it has ended
  Result<Cancelled> cancel(const CommandId& id, Cancelled how, TimePoint now, Effects& effects);

  /// Lets go of resources; those that are missing leave the inventory with it. No system is asked for anything.
  /// errors   kNotFound: one that is named, or any; then none is let go. kConflict: a command of the stack is under way
  Result<std::vector<Forgotten>> forget(const ForgetRequest& request);

  [[nodiscard]] static bool owns(std::uint64_t owner) { return owner >= kFirstOwner; }
  void take(JobOutcome outcome, TimePoint now);
  void tick(TimePoint now, Effects& effects);
  [[nodiscard]] TimePoint next_due() const;
  [[nodiscard]] bool idle() const { return running_.empty() && queued_.empty(); }

  /// The result of a change whose attempt nobody waits for any more.
  /// `ns`   whose subject it came on: it speaks for that namespace only
  Verdict evidence(const JobReply& reply, std::string_view ns, TimePoint now, Effects& effects);
  /// Whether a run is to be begun because of one.
  [[nodiscard]] bool wants_a_look() const { return late_looks_.next_due() != TimePoint::max(); }

  /// One that runs; nullptr: it does not.
  [[nodiscard]] const Execution* running(const CommandId& id) const;
  [[nodiscard]] const CommandRow* queued(const CommandId& id) const;
  /// Plans again where something was written since.
  /// errors   kConflict: the plan is another one now; kInvalidRequest: there can be none any more
  Result<void> check_plan(Draft& draft);
  /// Of a draft that would change no resource: other commands, under way, that change what it leaves as it is, and of
  /// what they do `STACK/NAME`. What is declared last is not so when they have ended.
  [[nodiscard]] std::vector<CommandPlan::Other> changing(const Draft& draft) const;
  [[nodiscard]] std::size_t active() const { return running_.size() + queued_.size(); }

 private:
  static std::map<std::string, std::string> renamed_in(const Draft& draft, const std::vector<TargetRow>& rows);
  [[nodiscard]] std::vector<TargetChange> changes_of(const Draft& draft, const std::vector<TargetRow>& rows) const;
  struct Queued {
    CommandRow row;
    CommandPlan plan;
    std::size_t bytes = 0;  // of the plan's JSON
  };

  /// Why no other command can wait.
  [[nodiscard]] std::optional<Error> full() const;

  [[nodiscard]] bool busy(const std::vector<std::string>& stacks) const;
  void begin_queued(TimePoint now);
  void begin(Queued queued, TimePoint now);
  [[nodiscard]] std::vector<std::string> moved(const CommandPlan& plan) const;
  [[nodiscard]] std::vector<CommandPlan::Other> overtaken(const Draft& draft, const std::vector<std::string>& stacks,
                                                          const CommandPlan& made) const;
  void add_overtaken(const CommandPlan& plan, std::vector<std::string>& said) const;
  void add_reordered(const CommandPlan& plan, std::vector<std::string>& said) const;
  void drop_targets(std::vector<std::string> names);
  [[nodiscard]] Millis settle_of(const std::string& type);
  /// Whether it is told, too.
  bool look_late_at(const OperationRow& operation, std::string_view ns, TimePoint now);
  void look_late(TimePoint now);
  void revert(TimePoint now);
  std::set<std::string> waits_for_values(const Plan& plan, const Declaration& declaration);
  [[nodiscard]] bool plan_put_back(Draft& draft);
  [[nodiscard]] bool put_back(const std::string& stack, const std::set<std::string>& names);
  void put_back_later(const Execution& ended, TimePoint now);
  CommandId new_id();
  CommandId enqueue(const char* kind, std::vector<std::string> stacks, CommandPlan plan);

  CommandServices s_;
  Discovery& discovery_;
  Random& random_;
  std::map<std::string, std::unique_ptr<Draft>> drafts_;
  std::size_t draft_bytes_ = 0;
  InventoryView::Agreements agreements_;
  std::map<std::uint64_t, std::unique_ptr<Execution>> running_;  // by owner
  static constexpr std::size_t kMaxQueued = 256;
  static constexpr std::size_t kMaxQueuedBytes = 64ULL << 20;  // of their plans; the last one may be larger
  std::deque<Queued> queued_;
  std::map<std::string, std::set<std::string>> to_put_back_;  // names, by stack
  TimePoint put_back_at_{};                                   // not before
  /// What could not be put back, of a stack.
  struct PutBackLater {
    std::set<std::string> names;
    TimePoint at{};
    Millis pause{0};  // that it waited for
  };
  std::map<std::string, PutBackLater> put_back_later_;
  LateLooks late_looks_;
  CommandId newest_;
  static constexpr std::uint64_t kFirstOwner = 1ULL << 32;  // runs have the numbers below
  std::uint64_t next_owner_ = kFirstOwner;
};

}  // namespace muster
