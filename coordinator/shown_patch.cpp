#include "coordinator/shown_patch.h"

#include <algorithm>

#include "coordinator/secret_text.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxWas = 1024;  // bytes of a value that is shown beside what takes its place

Json addition(const std::string& path, Json value) {
  return {{"op", "add"}, {"path", path}, {"value", std::move(value)}};
}

Json additions(const DeclaredResource& declared, const PropertyRule& rules) {
  auto patch = Json::array();
  const auto properties = Json::parse(declared.properties);
  for (const auto& [name, value] : properties.items()) {
    const auto path = (Json::json_pointer() / name).to_string();
    const bool is_hole = std::ranges::find(declared.holes, path, &Hole::pointer) != declared.holes.end();
    if (!value.is_null() || is_hole) patch.push_back(addition(path, without_write_only(rules.of(name), value)));
    for (const auto& hole : declared.holes) {
      if (hole.pointer != path && within(hole.pointer, path)) patch.push_back(addition(hole.pointer, nullptr));
    }
  }
  return patch;
}

/// Says of each change what it finds: paths in arrays are those that the changes before it leave.
void add_what_was(Json& patch, std::string_view there) {
  auto document = Json::parse(there, nullptr, false);
  for (auto& change : patch) {
    const Json::json_pointer path(change.at("path").get_ref<const std::string&>());
    const auto once = Json::array({change});
    if (change.at("op") != "add" && document.contains(path)) {
      if (const auto& was = document.at(path); was.dump().size() <= kMaxWas) change["was"] = was;
    }
    try {
      document.patch_inplace(once);
    } catch (const Json::exception&) {  // it has changed since: what the others find is not known
      return;
    }
  }
}

}  // namespace

Json shown_patch(const PlanStep& step, const DeclaredResource* declared, std::string_view there,
                 const PropertyRule& rules) {
  auto patch =
      step.action == StepAction::kCreate && declared != nullptr ? additions(*declared, rules) : Json::parse(step.patch);
  for (auto& change : patch) {
    const auto value = change.find("value");
    if (declared == nullptr || value == change.end() || !value->is_null()) continue;
    const auto& path = change.at("path").get_ref<const std::string&>();
    const auto hole = std::ranges::find(declared->holes, path, &Hole::pointer);
    if (hole != declared->holes.end()) {
      change["reference"] = reference_text(hole->parts);
    } else if (rule_at(rules, path).holds_write_only) {
      change["hidden"] = true;
    }
  }
  if (!there.empty()) add_what_was(patch, there);
  return patch;
}

}  // namespace muster
