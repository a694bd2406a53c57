#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "coordinator/plan.h"
#include "coordinator/registry.h"

namespace muster {

/// Calls `sink` for each listed row that goes when `row` goes: what lies in it, at any depth, but for types that
/// outlive what they lie in, and what lies in these. Store errors are thrown as StoreFailure.
void each_within(Store& store, RowId row, const std::function<bool(std::string_view type)>& outlives,
                 const std::function<void(const ResourceRecord&)>& sink);

/// The store and the registry as the planner looks at them. Store errors are thrown as StoreFailure.
class InventoryView final : public PlanningView {
 public:
  /// Rows that were found to be as declared, by what this was seen in. Bounded: forgets all when it is full.
  using Agreements = std::unordered_map<RowId, Hash128>;

  /// `declared_targets`  that are not in the store yet: namespaces by name
  /// `renamed`           targets that get another name before the plan is carried out: the old one by the new one
  /// `agreements`        kept from plan to plan
  InventoryView(Store& store, Registry& registry, std::map<std::string, std::string> declared_targets,
                std::map<std::string, std::string> renamed, Agreements& agreements);

  std::vector<Known> of_stack(const std::string& stack) override;
  void each(const std::string& target, const std::string& type, const std::function<void(const Known&)>& sink) override;
  std::optional<Known> find(const std::string& target, const std::string& type, const std::string& native_id) override;
  const TypeDescriptor* type(const std::string& name) override;
  std::optional<std::string> target_namespace(const std::string& name) override;
  std::vector<std::string> same_system(const std::string& target) override;
  void each_within(RowId row, const std::function<void(const Known&)>& sink) override;
  std::optional<Hash128> agreement(RowId row) override;
  void remember(RowId row, const Hash128& agreement) override;
  std::string digest(const std::string& value) override;
  /// From now on what is declared has digests already where it has write-only values.
  void take_digests() { digests_given_ = true; }

 private:
  Known known_of(const ResourceView& row);
  [[nodiscard]] std::string kept_name(const std::string& target) const;  // in the store
  [[nodiscard]] std::string name_of(std::string_view target) const;      // as it will be

  Store& store_;
  Registry& registry_;
  std::map<std::string, std::string> targets_;  // namespaces by name
  std::map<std::string, std::string> renamed_;  // old names by new ones
  std::map<std::string, std::string> systems_;  // by name
  std::map<std::string, ServedType> types_;     // by name
  Agreements& agreements_;
  std::string key_;  // of digests
  bool digests_given_ = false;
};

}  // namespace muster
