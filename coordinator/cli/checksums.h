#pragma once

#include <map>
#include <string>
#include <string_view>

#include "schema/result.h"

namespace muster::cli {

/// Name of a folder's list of checksums.
inline constexpr std::string_view kChecksums = "SHA256SUMS";

/// File name -> SHA-256 in hexadecimal.
using Checksums = std::map<std::string, std::string>;

/// Reads what `sha256sum FILE...` writes: 64 hexadecimal digits, a blank, a blank or `*`, the name. A name may begin
/// with `./`; empty lines and lines with `#` are left out.
/// errors   kMalformed: the line that is none of this, or names a file twice with different sums
Result<Checksums> parse_checksums(std::string_view text);

/// SHA-256 of all that an open file holds, in hexadecimal. Reads by position: the descriptor's offset stays.
/// `limit`   bytes
/// errors    kLimit: it is larger; kInternalFailure: it cannot be read
Result<std::string> sha256_of(int descriptor, std::uint64_t limit);

}  // namespace muster::cli
