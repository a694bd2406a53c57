#include "coordinator/resource_id.h"

#include <array>

#include <xxhash.h>

namespace muster {
namespace {

constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";  // Crockford base32
constexpr std::size_t kLength = 26;

constexpr std::array<std::int8_t, 256> digits() {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    const char upper = kAlphabet[i];
    const char lower = upper >= 'A' ? static_cast<char>(upper - 'A' + 'a') : upper;
    table[static_cast<unsigned char>(upper)] = static_cast<std::int8_t>(i);
    table[static_cast<unsigned char>(lower)] = static_cast<std::int8_t>(i);
  }
  return table;
}

}  // namespace

ResourceKey resource_key(WallTime first_seen, std::uint16_t fleet, RowId row) {
  const auto millis = std::chrono::floor<Millis>(first_seen.time_since_epoch()).count();
  return {static_cast<std::uint64_t>(millis) & 0xFFFF'FFFF'FFFFULL, fleet, row};
}

std::uint16_t fleet_mark(const FleetId& fleet) {
  return static_cast<std::uint16_t>(XXH3_64bits(fleet.value.data(), fleet.value.size()));
}

void format_resource_id(const ResourceKey& key, ResourceId& id) {
  std::uint64_t high = key.millis << 16 | key.fleet;
  auto low = static_cast<std::uint64_t>(key.row);
  id.value.resize(kLength);
  for (std::size_t i = kLength; i-- > 0;) {
    id.value[i] = kAlphabet[low & 31];
    low = low >> 5 | high << 59;
    high >>= 5;
  }
}

std::optional<ResourceKey> parse_resource_id(std::string_view text) {
  static constexpr auto kDigits = digits();
  if (text.size() != kLength || kDigits[static_cast<unsigned char>(text[0])] > 7) return std::nullopt;
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  for (const char c : text) {
    const auto digit = kDigits[static_cast<unsigned char>(c)];
    if (digit < 0) return std::nullopt;
    high = high << 5 | low >> 59;
    low = low << 5 | static_cast<std::uint64_t>(digit);
  }
  return ResourceKey{high >> 16, static_cast<std::uint16_t>(high), static_cast<RowId>(low)};
}

}  // namespace muster
