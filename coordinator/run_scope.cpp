#include "coordinator/run_scope.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "schema/subjects.h"

namespace muster {
namespace {

constexpr std::size_t kMaxScopeParts = 64;

bool holds(const std::vector<std::string>& values, const std::string& value) {
  return std::ranges::find(values, value) != values.end();
}

void add_missing(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const auto& value : from) {
    if (!holds(to, value)) to.push_back(value);
  }
}

}  // namespace

void RunScope::add(ScopePart part) {
  if (std::ranges::find(parts_, part) != parts_.end()) return;
  parts_.push_back(std::move(part));
  if (parts_.size() <= kMaxScopeParts) return;
  std::vector<ScopePart> wide(1);
  bool all = false;
  for (const auto& each : parts_) {
    add_missing(wide.front().targets, each.targets);
    all = all || each.targets.empty();
  }
  if (wide.front().targets.empty()) wide.clear();
  if (all) wide.emplace_back();
  parts_ = std::move(wide);
}

void RunScope::add(const RunScope& other) {
  for (const auto& part : other.parts_) add(part);
}

void RunScope::rename_target(const std::string& was, const std::string& is) {
  for (auto& part : parts_) std::ranges::replace(part.targets, was, is);
}

std::optional<RunScope::TargetScope> RunScope::of(const TargetRow& target) const {
  std::optional<TargetScope> found;
  bool all_types = false, all_stacks = false;
  for (const auto& part : parts_) {
    if (part.targets.empty() ? !target.discover : !holds(part.targets, target.name)) continue;
    const auto here = [&](const auto& type) { return namespace_of(type) == target.ns; };
    if (!part.types.empty() && std::ranges::none_of(part.types, here)) continue;
    if (!found) found.emplace();
    if (part.look == Look::kDiscover) found->look = Look::kDiscover;
    all_types = all_types || part.types.empty();
    add_missing(found->types, part.types);
    all_stacks = all_stacks || part.stacks.empty();
    add_missing(found->stacks, part.stacks);
  }
  if (found && all_types) found->types.clear();
  if (found && all_stacks) found->stacks.clear();
  return found;
}

JsonText RunScope::json() const {
  auto json = nlohmann::json::array();
  for (const auto& part : parts_) {
    json.push_back({{"targets", part.targets},
                    {"types", part.types},
                    {"look", part.look == Look::kDiscover ? "discover" : "reread"},
                    {"stacks", part.stacks}});
  }
  return json.dump();
}

RunScope RunScope::parse(const JsonText& text) {
  RunScope scope;
  auto json = nlohmann::json::parse(text);
  if (!json.is_array()) json = nlohmann::json::array({json});  // as one part was written at first
  for (const auto& part : json) {
    scope.add({part.value("targets", std::vector<std::string>{}), part.value("types", std::vector<std::string>{}),
               part.value("look", "") == "reread" ? Look::kReread : Look::kDiscover,
               part.value("stacks", std::vector<std::string>{})});
  }
  return scope;
}

}  // namespace muster
