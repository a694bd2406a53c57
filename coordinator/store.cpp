#include "coordinator/store.h"

#include <xxhash.h>

namespace muster {

Hash128 hash128(std::string_view bytes) {
  const auto hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string hex(const Hash128& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[15 - i] = kDigits[hash.high >> (4 * i) & 15];
    text[31 - i] = kDigits[hash.low >> (4 * i) & 15];
  }
  return text;
}

std::string_view resource_state_name(ResourceState state) {
  switch (state) {
    case ResourceState::kPresent:
      return "present";
    case ResourceState::kStale:
      return "stale";
    case ResourceState::kMissing:
      return "missing";
    case ResourceState::kVanished:
      return "vanished";
    case ResourceState::kFiltered:
      return "filtered";
  }
  return "present";
}

}  // namespace muster
