#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/execution.h"
#include "schema/mutation.h"

namespace muster {

/// What is kept of a create whose outcome is not known.
struct Unsettled {
  std::string key;
  std::string place;   // native id of what it was to lie in
  std::string values;  // stands for what it was to have and nobody can read back; empty: not known, nor is the place

  [[nodiscard]] bool is_of(const std::string& other) const { return values.empty() || place == other; }
};

/// A step that runs. Shared by the files that implement Execution.
struct Execution::Work {
  enum class Change : std::uint8_t { kCreate, kUpdate, kDelete };

  Work(const CommandStep& the_step, OperationRow operation) : step(the_step), op(std::move(operation)) {}

  /// What is known of the row before anything is done.
  void keep(const ResourceRecord& known) {
    uid = known.uid;
    scan = known.scan;
  }
  /// The same for every attempt of a change, and another for the second half of a replacement.
  [[nodiscard]] std::string key() const {
    if (!inherited_key.empty() && change() == Change::kCreate) return inherited_key;
    const auto attempt = MUSTER_MUTATION("key-per-attempt") ? static_cast<unsigned>(tries) : 0U;
    return op.command.value + "-" + std::to_string(op.step) + "-" + std::to_string(op.epoch + attempt);
  }
  [[nodiscard]] Phase phase() const { return static_cast<Phase>(op.phase & kPhaseBits); }
  void set_phase(Phase phase) {
    op.phase = static_cast<std::uint8_t>((op.phase & ~kPhaseBits) | static_cast<unsigned>(phase));
  }
  [[nodiscard]] bool second_half() const { return (op.phase & kSecondHalf) != 0; }
  [[nodiscard]] Change change() const {
    if (step.action == StepAction::kCreate) return Change::kCreate;
    if (step.action == StepAction::kDelete) return Change::kDelete;
    if (step.action == StepAction::kReplace) return second_half() == create_first ? Change::kDelete : Change::kCreate;
    return Change::kUpdate;
  }
  /// What names the resource of a create beyond this command.
  [[nodiscard]] std::string place() const {
    return nlohmann::json{step.stack, step.name, step.target, step.type}.dump();
  }
  /// The order of a replacement is kept as it was when that began: its type may say another after a restart.
  /// `order`   kAsType: nobody knows the type
  void set_order(ReplaceOrder order) {
    if ((op.phase & kOrdered) == 0 && order != ReplaceOrder::kAsType) {
      op.phase |= kOrdered | (order == ReplaceOrder::kCreateFirst ? kCreateFirst : 0U);
    }
    create_first = (op.phase & kCreateFirst) != 0;
  }
  /// A replacement goes on with its other change.
  void begin_second_half() {
    op.phase |= kSecondHalf;
    set_phase(create_first ? Phase::kReading : Phase::kCreating);
    if (!MUSTER_MUTATION("same-key-for-both-halves")) ++op.epoch;
    op.job = {};
    op.request_id.clear();
    op.uncertain = false;
    op.native_id = create_first ? step.native_id : std::string();
    tries = reads = polls = 0;
    told_at = TimePoint::min();
    precondition = {};
  }

  static constexpr unsigned kPhaseBits = 15, kSecondHalf = 16, kOrdered = 32, kCreateFirst = 64;

  const CommandStep& step;
  OperationRow op;
  TargetRow target;
  std::shared_ptr<const Manifest> manifest;
  const TypeDescriptor* type = nullptr;
  bool create_first = false;         // of a replacement
  bool made_first = false;           // and what replaces is there: what is replaced goes when nobody uses it any more
  TimePoint due = TimePoint::max();  // when its next job is submitted; max: one is under way
  TimePoint deadline;
  JobId job;                  // under way
  std::string inherited_key;  // of a create of an earlier command that nobody knows the outcome of
  Unsettled asked;            // as it is kept where its outcome stays unknown
  bool old_values = false;    // it may have been made with other write-only values than are declared
  int tries = 0;              // of a change whose outcome is not known, or that conflicted
  int reads = 0;              // that did not show what was wanted
  int polls = 0;
  bool cut_off = false;     // a look has been, by force
  bool was_listed = false;  // its row, when it was to be read
  bool recovered = false;   // a worker may have its job still
  bool writing = false;     // WriteLog knows of it
  RowId row = 0;            // of the object that was made
  RowId scan = 0;
  RowId parent = 0;
  std::string uid;
  JsonText prior;  // as read before the change, less what is not to be read back
  Hash128 state;   // of all that was read
  Precondition precondition;
  std::vector<RowId> contents;  // kEmptying: what is to go first, the innermost at the end
  std::string content_id;       // and what is asked to be deleted of it
  bool emptied = false;         // that has been done
  bool emptied_some = false;    // something has been deleted for that
  std::optional<UpdateJob> update;
  std::optional<Item> told;              // what a change was answered with that is to be seen yet
  TimePoint told_at = TimePoint::min();  // when there was a sign last of what is being made
  /// kFinding: a look for what may have been made.
  struct Search {
    std::string page_token;                 // where the listing stands
    std::set<std::string> tokens{};         // that it has given
    bool listed = false;                    // it has come to its end
    int barren_pages = 0;                   // in a row, that brought no id
    std::vector<std::string> candidates{};  // ids that it gave without properties
    std::optional<Error> hidden{};          // why something could not be seen for the time being
    std::string in_the_way{};               // what is to be replaced, and has the name still
    bool refused = false;                   // its key was answered with NOT_FOUND
  } search;
  std::optional<TimePoint> refused_since;  // the first time that it was
};

inline constexpr Millis kFirstPause{250};
inline constexpr int kConvergeReads = 6;  // 250 ms, 500 ms, ...: 8 s until a change must show
/// Before what was asked for so often is asked for once more.
Millis pause_after(int times, Millis first);

/// What has the step's name in its stack, and is of another type or on another target, gives it up: for those that
/// refer to it a name is one thing, also where nothing is deleted. Until it is, it stays the stack's, as what was
/// replaced does.
void rename_others(Store& store, const CommandStep& step);

/// How what is not deleted, since another uses it, can be replaced all the same; empty: nobody knows. Text to be put
/// behind what the plugin says.
std::string way_to_replace(Store& store, const CommandPlan& plan, const CommandStep& replaced);
/// The same of what is not created, since something is there already.
std::string way_to_create(const CommandPlan& plan, const CommandStep& created, bool create_first);

}  // namespace muster
