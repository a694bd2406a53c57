#include "worker_sdk/bus/nkey.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace muster {
namespace {

// A seed is base32 of: two bytes that hold prefix and key type, 32 bytes of ed25519 seed, 2 bytes of CRC-16, low first.
// A public key is base32 of: one byte of type, 32 bytes of key, the CRC.
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::size_t kSeedText = 58;
constexpr std::size_t kSeedOffset = 2, kKeyBytes = 32, kCrcBytes = 2;
constexpr std::uint8_t kSeedType = 18U << 3U;  // encodes as 'S'
constexpr std::uint8_t kUserType = 20U << 3U;  // encodes as 'U'

std::uint16_t crc16(const std::uint8_t* data, std::size_t size) {
  std::uint16_t crc = 0;
  for (std::size_t i = 0; i < size; ++i) {
    crc = static_cast<std::uint16_t>(crc ^ (data[i] << 8U));
    for (int bit = 0; bit < 8; ++bit)
      crc = static_cast<std::uint16_t>((crc << 1U) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0));
  }
  return crc;
}

std::vector<std::uint8_t> base32_decode(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  std::uint32_t buffer = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return {};
    buffer = (buffer << 5U) | static_cast<std::uint32_t>(digit);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::uint8_t>(buffer >> bits));
    }
  }
  return bytes;
}

std::string base32_encode(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  std::uint32_t buffer = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    buffer = (buffer << 8U) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += kAlphabet[(buffer >> (bits - 5)) & 31U];
  }
  if (bits > 0) text += kAlphabet[(buffer << (5 - bits)) & 31U];
  return text;
}

void append_crc(std::vector<std::uint8_t>& bytes) {
  const std::uint16_t crc = crc16(bytes.data(), bytes.size());
  bytes.push_back(static_cast<std::uint8_t>(crc & 0xFFU));
  bytes.push_back(static_cast<std::uint8_t>(crc >> 8U));
}

}  // namespace

std::string make_nkey_seed() {
  if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialized");
  // The three high bits of the key's type end the first byte, the low ones begin the second.
  std::vector<std::uint8_t> seed{kSeedType | kUserType >> 5U, static_cast<std::uint8_t>(kUserType << 3U)};
  seed.resize(kSeedOffset + kKeyBytes);
  randombytes_buf(seed.data() + kSeedOffset, kKeyBytes);
  append_crc(seed);
  std::string text = base32_encode(seed);
  sodium_memzero(seed.data(), seed.size());
  return text;
}

Result<std::string> nkey_public_of_seed(std::string_view text) {
  const std::size_t start = text.find("SU");
  if (start == std::string_view::npos) return Error{Errc::kInvalidRequest, "the NKey file holds no user seed (SU…)"};
  std::vector<std::uint8_t> seed = base32_decode(text.substr(start, kSeedText));
  const std::size_t signed_bytes = kSeedOffset + kKeyBytes;
  const bool intact = seed.size() == signed_bytes + kCrcBytes &&
                      crc16(seed.data(), signed_bytes) == (seed[signed_bytes] | seed[signed_bytes + 1] << 8U);
  if (!intact) return Error{Errc::kInvalidRequest, "the NKey file's seed is damaged"};

  std::array<std::uint8_t, crypto_sign_PUBLICKEYBYTES> key{};
  std::array<std::uint8_t, crypto_sign_SECRETKEYBYTES> secret{};
  crypto_sign_seed_keypair(key.data(), secret.data(), seed.data() + kSeedOffset);
  sodium_memzero(secret.data(), secret.size());
  sodium_memzero(seed.data(), seed.size());

  std::vector<std::uint8_t> encoded{kUserType};
  encoded.insert(encoded.end(), key.begin(), key.end());
  append_crc(encoded);
  return base32_encode(encoded);
}

}  // namespace muster
