#pragma once

#include <cstddef>
#include <string>

#include "schema/result.h"

namespace muster {

/// The whole of a file that one signs in with. It is asked for again at each connection: nothing but a regular file
/// will do, and none can hold its reader up. Thread: any.
/// `most`   bytes
/// errors   kInvalidRequest: it cannot be read, and why, or is larger than such a file is; the message begins with its
///          path
Result<std::string> read_sign_in_file(const std::string& path, std::size_t most = std::size_t{64} << 10U);

}  // namespace muster
