#include "coordinator/cli/checksums.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
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

FileSum::FileSum(int descriptor, std::uint64_t limit) : descriptor_(descriptor), limit_(limit) {
  struct stat status {};
  if (fstat(descriptor, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
  crypto_hash_sha256_init(&state_);
}

std::uint64_t FileSum::left() const {
  return size_ > offset_ ? size_ - offset_ : 0;
}

std::uint64_t FileSum::read_on(std::uint64_t bytes) {
  std::vector<unsigned char> block(static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, bytes)));
  const std::uint64_t begin = offset_;
  while (!result_ && offset_ - begin < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), bytes - (offset_ - begin)));
    const ssize_t count = pread(descriptor_, block.data(), wanted, static_cast<off_t>(offset_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      result_ = Error{Errc::kInternalFailure, std::string("cannot be read: ") + std::strerror(errno)};
    } else if (count == 0) {
      std::array<unsigned char, crypto_hash_sha256_BYTES> sum{};
      crypto_hash_sha256_final(&state_, sum.data());
      std::array<char, kDigits + 1> text{};
      sodium_bin2hex(text.data(), text.size(), sum.data(), sum.size());
      result_ = std::string(text.data(), kDigits);
    } else {
      offset_ += static_cast<std::uint64_t>(count);
      crypto_hash_sha256_update(&state_, block.data(), static_cast<unsigned long long>(count));
      if (offset_ > limit_) {
        result_ = Error{Errc::kLimit, "is larger than " + std::to_string(limit_ >> 20U) + " MiB"};
      }
    }
  }
  return offset_ - begin;
}

Result<std::string> sha256_of(int descriptor, std::uint64_t limit) {
  FileSum sum(descriptor, limit);
  while (!sum.result()) sum.read_on(std::numeric_limits<std::uint64_t>::max());
  return *sum.result();
}

}  // namespace muster::cli
