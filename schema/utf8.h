#pragma once

#include <string_view>

namespace muster {

/// Whether `text` is UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, nothing above U+10FFFF.
/// Thread: any.
bool valid_utf8(std::string_view text);

/// The longest beginning of `text`, which is UTF-8, of at most `max_bytes` that cuts no character in two. Thread: any.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes);

}  // namespace muster
