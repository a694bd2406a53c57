#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "coordinator/plan.h"
#include "coordinator/registry.h"

namespace muster {

/// The store and the registry as the planner looks at them. Store errors are thrown as StoreFailure.
class InventoryView final : public PlanningView {
 public:
  /// `declared_targets`  that are not in the store yet
  InventoryView(Store& store, Registry& registry, std::set<std::string> declared_targets);

  std::vector<Known> of_stack(const std::string& stack) override;
  void each(const std::string& target, const std::string& type, const std::function<void(const Known&)>& sink) override;
  std::optional<Known> find(const std::string& target, const std::string& type, const std::string& native_id) override;
  const TypeDescriptor* type(const std::string& name) override;
  bool has_target(const std::string& name) override { return targets_.contains(name); }
  std::string digest(const std::string& value) override;

 private:
  Known known_of(const ResourceView& row);

  Store& store_;
  Registry& registry_;
  std::set<std::string> targets_;
  std::map<std::string, std::shared_ptr<const Manifest>> manifests_;  // by namespace
  std::string key_;                                                   // of digests
};

}  // namespace muster
