#include "coordinator/command_plan.h"

#include <charconv>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Json = nlohmann::json;

std::optional<StepAction> action_named(const std::string& name) {
  for (const auto action : kStepActions) {
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
  std::string all;
  for (const auto& step : steps) {
    auto object = shown(step, step.patch);
    object.number("row", step.row).text("content", hex(step.content));
    if (!step.claim.empty()) object.text("claim", step.claim);
    if (step.resource) object.raw("resource", declared_text(*step.resource));
    all.append(all.empty() ? "" : ",").append(object.take());
  }
  JsonObject plan;
  plan.raw("summary", shown(summary).dump())
      .raw("steps", "[" + all + "]")
      .raw("drop_targets", Json(drop_targets).dump());
  auto others = Json::array();
  for (const auto& other : behind) others.push_back({{"command", other.command.value}, {"steps", other.steps}});
  if (!others.empty()) plan.raw("behind", others.dump());
  return plan.take();
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
    for (const auto action : kStepActions) {
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

JsonObject shown(const PlanStep& step, std::string_view patch) {
  JsonObject object;
  const auto text_or_null = [&](std::string_view key, std::string_view value) {
    value.empty() ? object.raw(key, "null") : object.text(key, value);
  };
  object.text("action", step_action_name(step.action))
      .raw("after", step.after.empty() ? "[]" : Json(step.after).dump())
      .text("name", step.name);
  text_or_null("native_id", step.native_id);
  object.raw("patch", patch);
  text_or_null("reason", step.reason);
  object.text("stack", step.stack).text("target", step.target).text("type", step.type);
  return object;
}

Json shown(const std::map<StepAction, std::size_t>& summary) {
  Json counts;
  for (const auto action : kStepActions) {
    const auto it = summary.find(action);
    counts[std::string(step_action_name(action))] = it == summary.end() ? 0 : it->second;
  }
  return counts;
}

}  // namespace muster
