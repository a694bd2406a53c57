#include "schema/shown_text.h"

#include <algorithm>
#include <cstdint>

#include "schema/utf8.h"

namespace muster {
namespace {

/// At least two digits.
std::string hex_digits(std::uint32_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (; number > 0 || text.size() < 2; number >>= 4U) text.insert(text.begin(), kDigits[number & 0xFU]);
  return text;
}

/// Characters that move, hide or reorder what stands beside them.
bool is_unsafe(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x2069) || code == 0xFEFF;
}

std::string escaped_character(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x80 ? "\\x" + hex_digits(code) : "\\u{" + hex_digits(code) + "}";
  }
}

}  // namespace

std::string shown_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t length = decode_character(text, code);
    if (length == 0) {
      out += "\\x" + hex_digits(static_cast<unsigned char>(text.front()));
    } else if (is_unsafe(code)) {
      out += escaped_character(code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace muster
