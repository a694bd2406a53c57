#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/filter.h"
#include "coordinator/label.h"
#include "schema/messages.h"

namespace muster {

/// Filters and labels that were compiled lately, or why they cannot be: the targets of a plugin tend to share them, and
/// a target's runs do. Who holds them keeps them. Thread: loop thread only.
class CompiledQueries {
 public:
  static constexpr std::size_t kKept = 16;  // of each: dozens of MiB at the very most

  /// `ns`     whose filters these are: what one namespace makes, no other is given
  /// errors   those of FilterSet::compile
  Result<std::shared_ptr<const FilterSet>> filters(std::string_view ns, const std::vector<MatchFilter>& filters);
  /// errors   those of Labels::compile
  Result<std::shared_ptr<const Labels>> labels(const std::shared_ptr<const Manifest>& manifest);

 private:
  struct KnownFilters {
    std::string ns, version;
    Result<std::shared_ptr<const FilterSet>> compiled;
  };
  struct KnownLabels {
    std::weak_ptr<const Manifest> manifest;
    Result<std::shared_ptr<const Labels>> compiled;
  };
  std::list<KnownFilters> filters_;  // used last in front
  std::list<KnownLabels> labels_;
};

}  // namespace muster
