#include "worker_sdk/bus/clock.h"

#include <sodium.h>

#include <array>
#include <stdexcept>

namespace muster {
namespace {

constexpr char kCrockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kDigits = 26;  // 26 digits of 5 bits hold 128 bits

std::string base32(std::uint64_t high, std::uint64_t low) {
  std::string text(kDigits, '0');
  for (std::size_t i = kDigits; i-- > 0;) {
    text[i] = kCrockford[low & 31U];
    low = (low >> 5U) | (high << 59U);
    high >>= 5U;
  }
  return text;
}

}  // namespace

std::uint64_t SystemRandom::next() {
  static const bool ready = sodium_init() >= 0;
  if (!ready) throw std::runtime_error("libsodium cannot reach the kernel's random bytes");
  // A job takes four: what the kernel gives is the seed of many.
  thread_local std::array<std::uint64_t, 512> values;
  thread_local std::size_t left = 0;
  if (left == 0) {
    std::array<unsigned char, randombytes_SEEDBYTES> seed{};
    randombytes_buf(seed.data(), seed.size());
    randombytes_buf_deterministic(values.data(), sizeof values, seed.data());
    left = values.size();
  }
  return values[--left];
}

std::string make_ulid(WallTime now, Random& random) {
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::uint64_t time = static_cast<std::uint64_t>(millis) & 0xFFFF'FFFF'FFFFU;
  return base32((time << 16U) | (random.next() & 0xFFFFU), random.next());
}

std::string make_token(Random& random) {
  const std::uint64_t high = random.next();
  return base32(high, random.next());
}

}  // namespace muster
