#pragma once

#include <xxhash.h>

#include <array>
#include <cstdio>
#include <string>

namespace muster::test {

/// Of an object's properties, as preconditions have it.
inline std::string hash_of(const std::string& properties) {
  const auto hash = XXH3_128bits(properties.data(), properties.size());
  std::array<char, 33> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex.data();
}

}  // namespace muster::test
