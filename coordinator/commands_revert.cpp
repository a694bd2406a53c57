// What has drifted and is to be as declared: the commands that put it back.

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/commands.h"
#include "coordinator/discovery.h"
#include "coordinator/must.h"
#include "coordinator/property_rules.h"

namespace muster {

using Json = nlohmann::json;

namespace {

constexpr Millis kFirstPutBackPause{60'000};  // until what failed is tried again; twice as long each time
constexpr Millis kLongestPutBackPause{3'600'000};
constexpr Millis kPutBackPause{1000};  // until what cannot be planned yet is tried again

}  // namespace

/// What has drifted and is to be put back becomes a command of its own, one for each stack: when none of the stack is
/// under way, for that may change it, or put it back itself.
void Commands::revert(TimePoint now) {
  for (auto& each : s_.drift.take_reversions()) {
    to_put_back_[each.stack].insert(std::move(each.name));
    put_back_at_ = now;
  }
  for (auto& [stack, later] : put_back_later_) {
    if (later.names.empty() || now < later.at) continue;
    to_put_back_[stack].merge(later.names);
    later.names.clear();
    put_back_at_ = now;
  }
  if (to_put_back_.empty() || now < put_back_at_) return;
  put_back_at_ = now + kPutBackPause;
  std::erase_if(to_put_back_, [&](const auto& each) {
    const auto& [stack, names] = each;
    return !busy({stack}) && put_back(stack, names);
  });
}

/// Nobody need ever look at it again, and it is to be as declared: what failed of something that may pass is tried
/// until it is, ever more seldom.
void Commands::put_back_later(const Execution& ended, TimePoint now) {
  if (ended.row().kind != "drift") return;
  const auto& stack = ended.row().stacks.front();
  auto names = ended.to_try_again();
  auto& later = put_back_later_[stack];
  if (names.empty()) {
    if (later.names.empty()) put_back_later_.erase(stack);  // else those wait still
    return;
  }
  if (later.names.empty()) {
    if (now > later.at + kLongestPutBackPause) later.pause = Millis{0};  // that was another time
    later.pause = std::clamp(later.pause * 2, kFirstPutBackPause, kLongestPutBackPause);
    later.at = now + later.pause;
  }
  later.names.merge(names);
  s_.log.warn("stack={} could not all be put back: {} resources are tried again in {} s", stack, later.names.size(),
              (later.at - now) / std::chrono::seconds(1));
}

/// Names of what cannot be put back without write-only values, of which claims have only digests.
std::set<std::string> Commands::waits_for_values(const Plan& plan, const Declaration& declaration) {
  std::set<std::string> waiting;
  std::map<std::string, PropertyRule> rules;  // by type
  for (const auto& step : plan.steps) {
    if (step.action == StepAction::kUnchanged || !step.declared) continue;
    const auto& resource = declaration.resources[*step.declared];
    const auto [it, fresh] = rules.try_emplace(step.type);
    if (fresh) {
      const auto served = s_.registry.type(step.type);
      auto parsed = served ? property_rules(served.type->schema) : Result<PropertyRule>(Error{});
      if (parsed) it->second = std::move(*parsed);
    }
    const auto patch = Json::parse(step.patch);
    const bool whole = step.action == StepAction::kCreate || step.action == StepAction::kReplace;
    for (const auto& pointer : write_only_in(it->second, Json::parse(resource.properties))) {
      if (std::ranges::find(resource.holes, pointer, &Hole::pointer) != resource.holes.end()) continue;
      const bool sent = whole || std::ranges::any_of(patch, [&](const Json& change) {
                          return within(pointer, change.at("path").get_ref<const std::string&>());
                        });
      if (sent) waiting.insert(step.name);
    }
  }
  return waiting;
}

/// Plans what can be put back: what is a mistake by now, and what needs that, is left out of the declaration. False:
/// nothing is left.
bool Commands::plan_put_back(Draft& draft) {
  const auto& stack = draft.stacks.front().stack;
  auto& resources = draft.stacks.front().resources;
  for (;;) {
    const auto is_gone = [&](const std::string& name) {
      return std::ranges::find(resources, name, &DeclaredResource::name) == resources.end();
    };
    std::erase_if(draft.only, is_gone);
    std::erase_if(draft.excluded, is_gone);
    if (draft.only.empty()) return false;
    plan(draft);
    if (draft.mistakes.empty()) return true;
    std::set<std::string> mistaken;
    for (const auto& mistake : draft.mistakes) {
      s_.log.warn("stack={} cannot be put back: {}: {}", stack, mistake.resource, mistake.message);
      mistaken.insert(mistake.resource);
    }
    const auto goes = [&](const DeclaredResource& resource) {
      const auto is_mistaken = [&](const std::string& name) { return mistaken.contains(name); };
      if (!is_mistaken(resource.name) && std::ranges::none_of(resource.needs(), is_mistaken)) return false;
      mistaken.insert(resource.name);
      return true;
    };
    const auto count = resources.size();
    while (std::erase_if(resources, goes) > 0) {
    }
    if (resources.size() == count) return false;
  }
}

/// False: it cannot be planned yet.
bool Commands::put_back(const std::string& stack, const std::set<std::string>& names) {
  if (full()) return false;
  Declaration declaration;
  declaration.stack = stack;
  must(s_.store.of_stack(stack, {}, [&](const ManagedView& row) {
    auto resource = declared_resource_from_json(Json::parse(row.declared, nullptr, false));
    if (resource) declaration.resources.push_back(std::move(*resource));
  }));
  const auto served = [&](const DeclaredResource& resource) {
    return s_.registry.latest_manifest(namespace_of(resource.type)).second != nullptr;
  };
  if (!std::ranges::all_of(declaration.resources, served)) return false;
  Draft draft;  // nobody else's: those that users have are left alone
  draft.stacks.push_back(std::move(declaration));
  draft.mode = ApplyMode::kPutBack;
  draft.only = names;
  draft.of_claims = true;
  if (!plan_put_back(draft)) return true;
  if (auto waiting = waits_for_values(draft.plan, draft.stacks.front()); !waiting.empty()) {
    for (const auto& name : waiting) {
      s_.log.warn("stack={} {} cannot be put back: it has a write-only value, which only the next apply knows", stack,
                  name);
    }
    draft.excluded = std::move(waiting);
    if (!plan_put_back(draft)) return true;
  }
  const auto excluded = draft.excluded.size();
  for (const auto& step : draft.plan.steps) {
    const auto on_drift = draft.stacks.front().resources[*step.declared].on_drift;
    const bool comes = step.action == StepAction::kCreate || step.action == StepAction::kAdopt;
    const bool unasked = comes && on_drift != OnDrift::kRevert;
    if (step.action != StepAction::kReplace && !unasked) continue;  // nobody has asked for the end of what is there
    s_.log.warn("stack={} {} is not put back: {}; `muster apply` does that", stack, step.name, step.reason);
    draft.excluded.insert(step.name);
  }
  if (draft.excluded.size() > excluded && !plan_put_back(draft)) return true;
  if (!draft.plan.empty()) {
    auto command = CommandPlan::of(draft.plan, [&](const PlanStep& step) -> const DeclaredResource& {
      return draft.stacks.front().resources[*step.declared];
    });
    enqueue("drift", {stack}, std::move(command));
  }
  return true;
}

}  // namespace muster
