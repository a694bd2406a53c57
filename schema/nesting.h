#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

inline constexpr std::size_t kMaxNesting = 512;  // levels of JSON that others wrote

/// Whether `text`, were it JSON, would be nested deeper than that: what recurses per level could not follow. Thread:
/// any.
bool nested_too_deep(std::string_view text);

}  // namespace muster
