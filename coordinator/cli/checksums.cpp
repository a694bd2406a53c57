#include "coordinator/cli/checksums.h"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace muster::cli {
namespace {

constexpr std::size_t kDigits = 2 * crypto_hash_sha256_BYTES;
constexpr std::size_t kBlock = 256 * 1024;

/// One line; false when it is none.
bool take_line(std::string_view line, Checksums& sums) {
  if (line.size() < kDigits + 3 || line[kDigits] != ' ') return false;
  if (line[kDigits + 1] != ' ' && line[kDigits + 1] != '*') return false;
  std::string sum(line.substr(0, kDigits));
  if (sum.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return false;
  std::transform(sum.begin(), sum.end(), sum.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string name(line.substr(kDigits + 2));
  if (name.starts_with("./")) name.erase(0, 2);
  const auto [known, added] = sums.emplace(std::move(name), sum);
  return added || known->second == sum;
}

}  // namespace

Result<Checksums> parse_checksums(std::string_view text) {
  Checksums sums;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#' || take_line(line, sums)) continue;
    return Error{Errc::kMalformed, std::string(kChecksums) + ":" + std::to_string(number) +
                                       ": expected a line as `sha256sum` writes it, one for each file"};
  }
  return sums;
}

Result<std::string> sha256_of(int descriptor, std::uint64_t limit) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  std::vector<unsigned char> block(kBlock);
  std::uint64_t offset = 0;
  while (true) {
    const ssize_t count = pread(descriptor, block.data(), block.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{Errc::kInternalFailure, std::string("cannot be read: ") + std::strerror(errno)};
    if (count == 0) break;
    offset += static_cast<std::uint64_t>(count);
    if (offset > limit) return Error{Errc::kLimit, "is larger than " + std::to_string(limit >> 20U) + " MiB"};
    crypto_hash_sha256_update(&state, block.data(), static_cast<unsigned long long>(count));
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> sum{};
  crypto_hash_sha256_final(&state, sum.data());
  std::array<char, kDigits + 1> text{};
  sodium_bin2hex(text.data(), text.size(), sum.data(), sum.size());
  return std::string(text.data(), kDigits);
}

}  // namespace muster::cli
