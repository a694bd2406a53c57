#include "coordinator/command_plan.h"

#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::array kActions{StepAction::kCreate, StepAction::kUpdate, StepAction::kReplace,
                              StepAction::kDelete, StepAction::kAdopt,  StepAction::kUnchanged};

std::optional<StepAction> action_named(const std::string& name) {
  for (const auto action : kActions) {
    if (step_action_name(action) == name) return action;
  }
  return std::nullopt;
}

Hash128 hash_of(const std::string& text) {
  Hash128 hash;
  if (text.size() != 32) return hash;
  std::from_chars(text.data(), text.data() + 16, hash.high, 16);
  std::from_chars(text.data() + 16, text.data() + 32, hash.low, 16);
  return hash;
}

}  // namespace

CommandPlan CommandPlan::of(const Plan& plan,
                            const std::function<const DeclaredResource&(const PlanStep&)>& resource_of) {
  CommandPlan made;
  made.summary = plan.summary();
  constexpr auto kDropped = static_cast<std::size_t>(-1);
  std::vector<std::size_t> moved(plan.steps.size(), kDropped);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    if (step.action == StepAction::kUnchanged && step.claim.empty()) continue;
    moved[i] = made.steps.size();
    auto& kept = made.steps.emplace_back();
    static_cast<PlanStep&>(kept) = step;
    if (step.declared) kept.resource = resource_of(step);
    kept.after.clear();
    for (const auto before : step.after) {
      if (moved[before] != kDropped) kept.after.push_back(moved[before]);
    }
  }
  return made;
}

JsonText CommandPlan::json() const {
  Json all{{"summary", shown(summary)}, {"steps", Json::array()}, {"drop_targets", drop_targets}};
  for (const auto& step : steps) {
    auto object = shown(step);
    object["row"] = step.row;
    object["content"] = hex(step.content);
    if (!step.claim.empty()) object["claim"] = step.claim;
    if (step.resource) object["resource"] = to_json(*step.resource);
    all["steps"].push_back(std::move(object));
  }
  for (const auto& other : behind) all["behind"].push_back({{"command", other.command.value}, {"steps", other.steps}});
  return all.dump();
}

void CommandPlan::rename_target(const std::string& was, const std::string& is) {
  for (auto& step : steps) {
    if (step.target != was) continue;
    step.target = is;
    if (step.resource) step.resource->target = is;
    auto claim = declared_resource_from_json(Json::parse(step.claim, nullptr, false));
    if (!claim) continue;
    claim->target = is;
    step.claim = declared_text(*claim);
  }
}

CommandPlan CommandPlan::without_resources() const {
  CommandPlan bare = *this;
  bare.behind.clear();
  for (auto& step : bare.steps) {
    step.resource.reset();
    step.claim.clear();
  }
  return bare;
}

Result<CommandPlan> CommandPlan::parse(const JsonText& text) {
  try {
    const auto json = Json::parse(text);
    CommandPlan plan;
    for (const auto action : kActions) {
      const auto count = json.at("summary").value(std::string(step_action_name(action)), std::size_t{0});
      if (count > 0) plan.summary[action] = count;
    }
    plan.drop_targets = json.value("drop_targets", std::vector<std::string>());
    for (const auto& object : json.value("behind", Json::array())) {
      plan.behind.push_back({CommandId(object.at("command").get<std::string>()),
                             object.at("steps").get<std::map<std::size_t, std::string>>()});
    }
    for (const auto& object : json.at("steps")) {
      auto& step = plan.steps.emplace_back();
      const auto action = action_named(object.at("action"));
      if (!action) return Error{Errc::kMalformed, "a step without an action that is known", {}, 0};
      step.action = *action;
      step.stack = object.at("stack");
      step.name = object.at("name");
      step.target = object.at("target");
      step.type = object.at("type");
      if (object.at("native_id").is_string()) step.native_id = object.at("native_id");
      step.patch = object.at("patch").dump();
      if (object.at("reason").is_string()) step.reason = object.at("reason");
      for (const auto& before : object.at("after")) {
        step.after.push_back(before);
        if (step.after.back() + 1 >= plan.steps.size()) {
          return Error{Errc::kMalformed, "a step that comes after a later one", {}, 0};
        }
      }
      step.row = object.value("row", RowId{0});
      step.content = hash_of(object.value("content", ""));
      step.claim = object.value("claim", "");
      if (const auto resource = object.find("resource"); resource != object.end()) {
        auto parsed = declared_resource_from_json(*resource);
        if (!parsed) return parsed.error();
        step.resource = std::move(*parsed);
      }
    }
    return plan;
  } catch (const Json::exception& error) {
    return Error{Errc::kMalformed, std::string("no plan: ") + error.what(), {}, 0};
  }
}

Json shown(const PlanStep& step) {
  const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
  return {{"action", step_action_name(step.action)},
          {"stack", step.stack},
          {"name", step.name},
          {"target", step.target},
          {"type", step.type},
          {"native_id", text(step.native_id)},
          {"patch", Json::parse(step.patch)},
          {"reason", text(step.reason)},
          {"after", step.after}};
}

Json shown(const std::map<StepAction, std::size_t>& summary) {
  Json counts;
  for (const auto action : kActions) {
    const auto it = summary.find(action);
    counts[std::string(step_action_name(action))] = it == summary.end() ? 0 : it->second;
  }
  return counts;
}

}  // namespace muster
