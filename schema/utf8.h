#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

/// Whether `text` is UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, nothing above U+10FFFF.
/// Thread: any.
bool valid_utf8(std::string_view text);

/// The longest beginning of `text`, which is UTF-8, of at most `max_bytes` that cuts no character in two. Thread: any.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes);

/// Length in bytes of the character at the start of `text`, 0 when it is no UTF-8; `code` gets its code point.
/// Thread: any.
std::size_t decode_character(std::string_view text, std::uint32_t& code);

}  // namespace muster
