#pragma once

#include <string>
#include <string_view>

namespace muster {

/// SHA-256 as 64 lower case hexadecimal digits: what a manifest is called on the bus.
std::string sha256_hex(std::string_view bytes);

}  // namespace muster
