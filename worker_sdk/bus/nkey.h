#pragma once

#include <string>
#include <string_view>

#include "schema/result.h"

namespace muster {

/// A new user seed (`SU…`), from the kernel's random bytes. Thread: any.
std::string make_nkey_seed();

/// Public key (`U…`) of the user seed (`SU…`) that stands somewhere in `text`, as in an NKey file. The C client asks
/// for both and derives neither.
/// errors   kInvalidRequest (no seed, or a damaged one); the message never holds the seed
Result<std::string> nkey_public_of_seed(std::string_view text);

}  // namespace muster
