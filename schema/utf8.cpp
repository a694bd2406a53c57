#include "schema/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace muster {
namespace {

using Byte = unsigned char;

constexpr bool in_range(Byte byte, Byte low, Byte high) {
  return low <= byte && byte <= high;
}

/// Length of the well-formed sequence at `at`, 0 when there is none. The table is that of Unicode, section 3.9.
std::size_t sequence_length(const Byte* at, std::size_t left) {
  const Byte lead = at[0];
  if (lead < 0x80) return 1;
  if (left < 2 || !in_range(lead, 0xc2, 0xf4)) return 0;
  const Byte low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const Byte high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (!in_range(at[1], low, high)) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (left < length) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!in_range(at[i], 0x80, 0xbf)) return 0;
  }
  return length;
}

}  // namespace

bool valid_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const Byte*>(text.data());
  const Byte* const end = at + text.size();
  while (at != end) {
    // Most text is ASCII: eight bytes at a time, and only the rest by the table.
    while (end - at >= 8) {
      std::uint64_t chunk = 0;
      std::memcpy(&chunk, at, sizeof chunk);
      if ((chunk & 0x8080808080808080U) != 0) break;
      at += 8;
    }
    if (at == end) break;
    const auto length = sequence_length(at, static_cast<std::size_t>(end - at));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<Byte>(text[max_bytes]) & 0xc0U) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

std::size_t decode_character(std::string_view text, std::uint32_t& code) {
  constexpr std::array<std::uint32_t, 5> kLeadBits{0, 0x7f, 0x1f, 0x0f, 0x07};
  const auto* at = reinterpret_cast<const Byte*>(text.data());
  const auto length = text.empty() ? 0 : sequence_length(at, text.size());
  if (length == 0) return 0;
  code = at[0] & kLeadBits.at(length);
  for (std::size_t i = 1; i < length; ++i) code = (code << 6U) | (at[i] & 0x3fU);
  return length;
}

}  // namespace muster
