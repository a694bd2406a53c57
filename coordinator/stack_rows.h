#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/plan.h"

namespace muster {

/// The managed rows of a stack, to be found by name: several may have one, as what is replaced keeps its own.
class StackRows {
 public:
  using Known = PlanningView::Known;

  /// `rows`   in the order in which those of one name are told
  explicit StackRows(std::vector<Known> rows) : rows_(std::move(rows)) {
    by_name_.reserve(rows_.size());
    for (const auto& row : rows_) by_name_[row.name].push_back(&row);
  }
  StackRows(const StackRows&) = delete;
  StackRows& operator=(const StackRows&) = delete;

  [[nodiscard]] std::span<const Known* const> named(std::string_view name) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return {};
    return found->second;
  }
  /// Those that `wanted(row)` is true of, ordered by name.
  template <typename Wanted>
  [[nodiscard]] std::vector<const Known*> all(Wanted wanted) const {
    std::vector<const Known*> chosen;
    for (const auto& row : rows_) {
      if (wanted(row)) chosen.push_back(&row);
    }
    std::ranges::stable_sort(chosen, {}, [](const Known* row) { return std::string_view(row->name); });
    return chosen;
  }

 private:
  const std::vector<Known> rows_;
  std::unordered_map<std::string_view, std::vector<const Known*>> by_name_;
};

}  // namespace muster
