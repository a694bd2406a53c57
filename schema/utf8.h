#pragma once

#include <string_view>

namespace muster {

/// Whether `text` is UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, nothing above U+10FFFF.
/// Thread: any.
bool valid_utf8(std::string_view text);

}  // namespace muster
