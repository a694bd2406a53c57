#pragma once

#include <string>
#include <string_view>

namespace muster {

/// `text` for a terminal or a log: characters that move, hide or reorder what stands beside them, of which a new line
/// is one, and bytes that are no UTF-8, as escapes. Thread: any.
std::string shown_text(std::string_view text);

}  // namespace muster
