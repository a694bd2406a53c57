#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/declaration.h"
#include "coordinator/store.h"

namespace muster {

enum class StepAction : std::uint8_t { kCreate, kUpdate, kReplace, kDelete, kAdopt, kUnchanged };
inline constexpr std::array kStepActions{StepAction::kCreate, StepAction::kUpdate, StepAction::kReplace,
                                         StepAction::kDelete, StepAction::kAdopt,  StepAction::kUnchanged};
std::string_view step_action_name(StepAction action);

/// One thing to be done for one resource.
struct PlanStep {
  StepAction action = StepAction::kUnchanged;
  std::string stack, name, target, type;
  std::string native_id;                // as far as it is known
  JsonText patch = "[]";                // RFC 6902, of an update or replacement: from what is there to what is wanted
  std::string reason;                   // for people: why it is replaced, deleted, adopted
  std::vector<std::size_t> after;       // indices of the steps that come first
  std::optional<std::size_t> with;      // index of the step that replaces what it lies in, and takes it along
  bool moves = false;                   // of a replacement: what replaces it lies in another thing than it
  RowId row = 0;                        // in the inventory; 0: none
  Hash128 content;                      // of what was there when it was planned
  std::optional<std::size_t> declared;  // index into Declaration::resources; none: a deletion
  JsonText claim;                       // what the row's claim will say, where that differs from what it says
};

struct Plan {
  std::vector<PlanStep> steps;  // in an order in which they can be done
  [[nodiscard]] std::map<StepAction, std::size_t> summary() const;
  [[nodiscard]] bool empty() const;  // nothing would be done, not even noted
  /// Adds the steps of another stack.
  void append(Plan other);
  /// Keeps the steps of the given names, what these need and what they take along; all when there are none. Then drops
  /// the excluded ones and what needs them.
  /// returns  the names of which no step is left
  std::set<std::string> restrict_to(const std::set<std::string>& names, const std::set<std::string>& excluded);
};

/// A mistake in what is declared that only shows beside the inventory and the types; `resource` may be empty.
struct PlanMistake {
  std::string stack{}, resource{};
  std::string pointer{};  // of the property; empty: the resource as a whole
  std::string message{};
  bool operator==(const PlanMistake&) const = default;
};

enum class ApplyMode : std::uint8_t {
  kReconcile,  // what the stack no longer declares is deleted
  kPatch,      // only ensures what is declared
  kPutBack,    // so does this, but for changes of what is declared to be left as it drifts
  kDestroy,    // everything of the stack is deleted
};

/// What the planner looks at, all of it as of one moment.
class PlanningView {
 public:
  virtual ~PlanningView() = default;
  struct Known {
    RowId row = 0;
    std::string target, type, native_id, stack, name;
    bool managed = false;
    ResourceState state = ResourceState::kPresent;
    JsonText properties;
    JsonText declared;  // DeclaredResource that it was last applied as; empty: none
    Hash128 content;
    RowId parent = 0;
  };
  /// Managed resources of a stack, in the order of their rows.
  virtual std::vector<Known> of_stack(const std::string& stack) = 0;
  /// Calls `sink` for each row of the type on the target that is listed.
  virtual void each(const std::string& target, const std::string& type,
                    const std::function<void(const Known&)>& sink) = 0;
  virtual std::optional<Known> find(const std::string& target, const std::string& type,
                                    const std::string& native_id) = 0;
  /// The type as the target's plugin describes it; nullptr: nobody serves it.
  virtual const TypeDescriptor* type(const std::string& name) = 0;
  /// Namespace of a target; none: no target has that name.
  virtual std::optional<std::string> target_namespace(const std::string& name) = 0;
  /// Other targets that are known to be the same system.
  virtual std::vector<std::string> same_system(const std::string& /*target*/) { return {}; }
  /// Calls `sink` for each listed row that goes when `row` goes: what lies in it, at any depth, outer
  /// ones first.
  virtual void each_within(RowId /*row*/, const std::function<void(const Known&)>& /*sink*/) {}
  /// What was remembered of a row when it was found to be as declared; none: nothing.
  virtual std::optional<Hash128> agreement(RowId) { return std::nullopt; }
  virtual void remember(RowId, const Hash128& /*agreement*/) {}
  /// What stands for a write-only value where it is kept: the same for the same value, and of no use to a thief.
  virtual std::string digest(const std::string& value) = 0;
};

struct PlanResult {
  Plan plan;
  std::vector<PlanMistake> mistakes;   // empty: the plan can be carried out
  std::vector<PlanMistake> unchecked;  // what the schemas could not be asked about, because it is not known yet
};

/// What the stacks that are planned together would make or adopt, and which of their resources would.
using PlanClaims = std::unordered_map<std::string, std::string>;

/// Decides what is to be done so that the inventory is as declared. Linear in resources and references. Steps that
/// delete what is declared no more come last; that all others have succeeded first is for who carries the plan out.
/// Two resources that are one object are a mistake, also those of stacks that share `claims`.
PlanResult make_plan(const Declaration& declaration, ApplyMode mode, PlanningView& view, PlanClaims& claims);
inline PlanResult make_plan(const Declaration& declaration, ApplyMode mode, PlanningView& view) {
  PlanClaims claims;
  return make_plan(declaration, mode, view, claims);
}

}  // namespace muster
