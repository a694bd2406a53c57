#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <cstdint>
#include <map>
#include <optional>
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

/// SHA-256 of all that an open file holds, taken in portions. Reads by position: the descriptor's offset stays.
class FileSum {
 public:
  /// `descriptor`   stays open as long as this is used
  /// `limit`        bytes
  FileSum(int descriptor, std::uint64_t limit);

  /// Reads at most so many bytes more; how many it were. Nothing once there is a result.
  std::uint64_t read_on(std::uint64_t bytes);
  /// How many there are still to read, as far as the file's size says.
  [[nodiscard]] std::uint64_t left() const;
  /// In hexadecimal; none: not all is read.
  /// errors   kLimit: it is larger; kInternalFailure: it cannot be read
  [[nodiscard]] const std::optional<Result<std::string>>& result() const { return result_; }

 private:
  int descriptor_;
  std::uint64_t limit_;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
  crypto_hash_sha256_state state_{};
  std::optional<Result<std::string>> result_;
};

/// The same at once.
Result<std::string> sha256_of(int descriptor, std::uint64_t limit);

}  // namespace muster::cli
