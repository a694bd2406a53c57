#include "coordinator/cli/plugin_test/plan.h"
#include "coordinator/claim.h"
#include "schema/subjects.h"

#include <nlohmann/json.hpp>

namespace muster::cli::conformance {
namespace {

/// An inventory of one object.
class OneObject final : public PlanningView {
 public:
  OneObject(const TypeDescriptor& type, Known row) : type_(type), row_(std::move(row)) {}

  std::vector<Known> of_stack(const std::string&) override {
    return row_.managed ? std::vector<Known>{row_} : std::vector<Known>{};
  }
  void each(const std::string&, const std::string&, const std::function<void(const Known&)>& sink) override {
    sink(row_);
  }
  std::optional<Known> find(const std::string&, const std::string&, const std::string& native_id) override {
    return native_id == row_.native_id ? std::optional(row_) : std::nullopt;
  }
  const TypeDescriptor* type(const std::string& name) override { return name == type_.name ? &type_ : nullptr; }
  std::optional<std::string> target_namespace(const std::string&) override {
    return std::string(namespace_of(type_.name));
  }
  std::string digest(const std::string& value) override { return hex(hash128(value)); }

 private:
  const TypeDescriptor& type_;
  Known row_;
};

DeclaredResource resource_of(const TypeDescriptor& type, const Document& declared) {
  DeclaredResource resource;
  resource.name = "it";
  resource.type = type.name;
  resource.target = "test";
  resource.properties = declared.json;
  for (const auto& secret : declared.secrets) {
    Hole hole{secret.pointer, {}};
    for (const auto& part : secret.parts)
      hole.parts.push_back({static_cast<TextPart::Kind>(part.kind), part.text, {}});  // of the same order
    resource.holes.push_back(std::move(hole));
  }
  return resource;
}

}  // namespace

std::string to_string(const Planned& planned) {
  std::string text = std::string(step_action_name(planned.action)) + " " + planned.patch;
  for (const auto& mistake : planned.mistakes) text += "; " + mistake;
  return text;
}

std::vector<std::string> pointers_of(const Document& document) {
  std::vector<std::string> pointers;
  for (const auto& secret : document.secrets) pointers.push_back(secret.pointer);
  return pointers;
}

Planned plan(const TypeDescriptor& type, const Item& there, const Document& declared, const Document* before) {
  PlanningView::Known row;
  row.row = 1;
  row.target = "test";
  row.type = type.name;
  row.native_id = there.native_id;
  row.properties = there.properties;
  row.content = hash128(there.properties);
  auto resource = resource_of(type, declared);
  if (before == nullptr) {
    resource.native_id = there.native_id;
  } else {
    const auto rules = property_rules(type.schema);
    row.managed = true;
    row.stack = "test";
    row.name = resource.name;
    row.declared = claim_text(resource_of(type, *before), rules ? *rules : PropertyRule(),
                              [](const auto& value) { return hex(hash128(value)); });
  }
  OneObject view(type, std::move(row));
  auto result = make_plan({"test", {std::move(resource)}}, ApplyMode::kReconcile, view);
  Planned planned;
  for (auto& mistake : result.mistakes) planned.mistakes.push_back(std::move(mistake.message));
  for (auto& step : result.plan.steps) {
    planned.action = step.action;
    planned.patch = std::move(step.patch);
  }
  return planned;
}

}  // namespace muster::cli::conformance
