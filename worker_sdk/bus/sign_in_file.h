#pragma once

#include <string>

#include "schema/result.h"

namespace muster {

/// The whole of a file that one signs in with. Thread: any.
/// errors   kInvalidRequest: it cannot be read, and why, or is larger than such a file is; the message begins with its
///          path
Result<std::string> read_sign_in_file(const std::string& path);

}  // namespace muster
