#include "schema/codec.h"

#include "schema/subjects.h"
#include "schema/utf8.h"
#include "schema/wire.h"

namespace muster::wire {
namespace {

std::string_view view(capnp::Text::Reader value) {
  return {value.begin(), value.size()};
}

/// The little-endian number that begins at `at`.
std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return number;
}

}  // namespace

const char* frame_problem(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) return "message: longer than 64 MiB";
  if (bytes.empty() || bytes.size() % sizeof(capnp::word) != 0) return "message: truncated";
  // A table of 32-bit numbers, padded to whole words: how many segments less one, and the words of each.
  constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
  const std::uint64_t words = bytes.size() / sizeof(capnp::word);
  const std::uint64_t segments = std::uint64_t{number_at(bytes, 0)} + 1;
  std::uint64_t needed = segments / 2 + 1;
  if (needed > words) return "message: truncated";
  for (std::uint64_t i = 1; i <= segments && needed <= words; ++i) needed += number_at(bytes, i * kNumber);
  if (needed > words) return "message: truncated";
  if (needed < words) return "message: trailing bytes";
  return number_at(bytes, kNumber) == 0 ? "message: empty" : nullptr;
}

Malformed::Malformed(std::string_view field, std::string_view problem)
    : std::runtime_error(std::string(field).append(": ").append(problem)) {}

std::uint32_t millis(Millis value) {
  constexpr Millis::rep kMax = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<Millis::rep>(value.count(), 0, kMax));
}

kj::ArrayPtr<capnp::word> Frame::first_segment() {
  if (bytes_.empty()) return {reinterpret_cast<capnp::word*>(small_.data()), small_.size()};
  return {reinterpret_cast<capnp::word*>(bytes_.data() + kHeader), (bytes_.size() - kHeader) / sizeof(capnp::word)};
}

kj::ArrayPtr<capnp::word> Frame::allocateSegment(unsigned minimum) {
  const auto first = first_segment();
  if (!first_used_ && minimum <= first.size()) {
    first_used_ = true;
    return first;
  }
  auto& segment = more_.emplace_back(std::max<std::size_t>(minimum, first.size()));
  return {reinterpret_cast<capnp::word*>(segment.data()), segment.size()};
}

Bytes Frame::take() {
  const auto segments = getSegmentsForOutput();
  if (segments.size() > 1 || !first_used_) {
    const auto flat = capnp::messageToFlatArray(segments);
    return {flat.asChars().begin(), flat.asChars().size()};
  }
  const auto used = static_cast<std::uint32_t>(segments[0].size());
  const std::size_t size = kHeader + used * sizeof(capnp::word);
  std::array<char, kHeader> header{};
  for (std::size_t i = 0; i < sizeof used; ++i) header[4 + i] = static_cast<char>(used >> (8 * i));
  if (!bytes_.empty()) {
    std::ranges::copy(header, bytes_.begin());
    bytes_.resize(size);
    return std::move(bytes_);
  }
  Bytes small;
  small.reserve(size);
  small.append(header.data(), header.size());
  small.append(reinterpret_cast<const char*>(small_.data()), size - kHeader);
  return small;
}

std::string get_text(capnp::Text::Reader value, std::string_view field) {
  if (!valid_utf8(view(value))) throw Malformed(field, "not UTF-8");
  return std::string(view(value));
}

std::string get_text(capnp::Text::Reader value, std::string_view field, std::size_t min_bytes, std::size_t max_bytes) {
  if (value.size() < min_bytes) throw Malformed(field, "empty");
  if (value.size() > max_bytes) throw Malformed(field, "too long");
  return get_text(value, field);
}

std::string get_token(capnp::Text::Reader value, std::string_view field) {
  if (!valid_token(view(value))) throw Malformed(field, "not a subject token");
  return get_text(value, field);
}

std::string get_token_or_empty(capnp::Text::Reader value, std::string_view field) {
  return value.size() == 0 ? std::string() : get_token(value, field);
}

std::string get_namespace(capnp::Text::Reader value, std::string_view field) {
  if (!valid_namespace(view(value))) throw Malformed(field, "not [A-Za-z0-9][A-Za-z0-9_-]{0,63}");
  return std::string(view(value));
}

std::vector<std::string> get_texts(capnp::List<capnp::Text>::Reader values, std::string_view field,
                                   std::size_t max_bytes) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const auto value : values) texts.push_back(get_text(value, field, 0, max_bytes));
  return texts;
}

}  // namespace muster::wire
