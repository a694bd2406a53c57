#include "coordinator/plan.h"

#include <algorithm>

namespace muster {

std::string_view step_action_name(StepAction action) {
  constexpr std::string_view kNames[] = {"create", "update", "replace", "delete", "adopt", "unchanged"};
  return kNames[static_cast<std::size_t>(action)];
}

std::map<StepAction, std::size_t> Plan::summary() const {
  std::array<std::size_t, kStepActions.size()> counts{};
  for (const auto& step : steps) ++counts[static_cast<std::size_t>(step.action)];
  std::map<StepAction, std::size_t> those_there_are;
  for (const auto action : kStepActions) {
    if (const auto count = counts[static_cast<std::size_t>(action)]; count > 0) those_there_are[action] = count;
  }
  return those_there_are;
}

bool Plan::empty() const {
  return std::ranges::all_of(
      steps, [](const PlanStep& step) { return step.action == StepAction::kUnchanged && step.claim.empty(); });
}

void Plan::append(Plan other) {
  const auto offset = steps.size();
  for (auto& step : other.steps) {
    for (auto& before : step.after) before += offset;
    if (step.with) *step.with += offset;
    steps.push_back(std::move(step));
  }
}

std::set<std::string> Plan::restrict_to(const std::set<std::string>& names, const std::set<std::string>& excluded) {
  if (names.empty() && excluded.empty()) return {};
  std::vector<bool> kept(steps.size(), names.empty());
  for (std::size_t i = 0; i < steps.size(); ++i) kept[i] = kept[i] || names.contains(steps[i].name);
  for (bool more = !names.empty(); more;) {
    for (auto i = steps.size(); i-- > 0;) {  // steps stand behind what they need
      if (!kept[i]) continue;
      for (const auto before : steps[i].after) kept[before] = true;
    }
    more = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (kept[i] || !steps[i].with || !kept[*steps[i].with]) continue;
      kept[i] = more = true;
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool needs_dropped = std::ranges::any_of(steps[i].after, [&](std::size_t before) { return !kept[before]; });
    if (excluded.contains(steps[i].name) || (kept[i] && needs_dropped)) kept[i] = false;
  }
  std::vector<std::size_t> moved(steps.size());
  std::vector<PlanStep> rest;
  std::set<std::string> dropped;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!kept[i]) {
      dropped.insert(std::move(steps[i].name));
      continue;
    }
    moved[i] = rest.size();
    auto& step = rest.emplace_back(std::move(steps[i]));
    for (auto& before : step.after) before = moved[before];
    if (step.with) step.with = moved[*step.with];
  }
  steps = std::move(rest);
  for (const auto& step : steps) dropped.erase(step.name);
  return dropped;
}

}  // namespace muster
