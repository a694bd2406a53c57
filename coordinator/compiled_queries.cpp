#include "coordinator/compiled_queries.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

template <typename T>
Result<std::shared_ptr<const T>> shared(Result<T> compiled) {
  if (!compiled) return compiled.error();
  return std::make_shared<const T>(std::move(*compiled));
}

/// Makes an entry the first one. `at`: end() for one that is not there, which `make` makes.
template <typename Known, typename Make>
const Known& first(std::list<Known>& known, typename std::list<Known>::iterator at, const Make& make) {
  if (at == known.end()) {
    if (known.size() == CompiledQueries::kKept) known.pop_back();
    known.push_front(make());
  } else {
    known.splice(known.begin(), known, at);
  }
  return known.front();
}

}  // namespace

Result<std::shared_ptr<const FilterSet>> CompiledQueries::filters(std::string_view ns,
                                                                  const std::vector<MatchFilter>& filters) {
  const auto version = FilterSet::version_of(filters);
  const auto at =
      std::ranges::find_if(filters_, [&](const auto& one) { return one.ns == ns && one.version == version; });
  return first(filters_, at,
               [&] {
                 return KnownFilters{std::string(ns), version, shared(FilterSet::compile(filters))};
               })
      .compiled;
}

Result<std::shared_ptr<const Labels>> CompiledQueries::labels(const std::shared_ptr<const Manifest>& manifest) {
  const auto at = std::ranges::find_if(labels_, [&](const auto& one) { return one.manifest.lock() == manifest; });
  return first(labels_, at, [&] { return KnownLabels{manifest, shared(Labels::compile(*manifest))}; }).compiled;
}

}  // namespace muster
