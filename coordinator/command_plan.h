#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/json_object.h"
#include "coordinator/plan.h"

namespace muster {

/// A step with what it takes to carry it out without the files that it came from.
struct CommandStep : PlanStep {
  std::optional<DeclaredResource> resource;  // none: a deletion, or the command has ended
};

/// What a command does. Steps that change nothing stand in the summary only.
struct CommandPlan {
  std::map<StepAction, std::size_t> summary;
  std::vector<CommandStep> steps;
  std::vector<std::string> drop_targets;  // when all is done: targets that were declared beside what is destroyed

  /// Another command of the stacks, under way when this one was planned.
  struct Other {
    CommandId command;
    std::map<std::size_t, std::string> steps;  // that had not ended, and are not this one's: STACK/NAME
  };
  std::vector<Other> behind;  // looked at when this one begins

  /// Of a whole plan; `resource_of` gives the declared resource of a step.
  static CommandPlan of(const Plan& plan, const std::function<const DeclaredResource&(const PlanStep&)>& resource_of);

  /// A target has another name from now on.
  void rename_target(const std::string& was, const std::string& is);

  /// As it is kept; without() leaves out what is needed only while it is carried out.
  [[nodiscard]] JsonText json() const;
  [[nodiscard]] CommandPlan without_resources() const;
  /// errors   kMalformed
  static Result<CommandPlan> parse(const JsonText& json);
};

/// As users see them: design section 8.
/// `patch`   RFC 6902, as it may be shown; more members may follow
JsonObject shown(const PlanStep& step, std::string_view patch);
nlohmann::json shown(const std::map<StepAction, std::size_t>& summary);

}  // namespace muster
