#pragma once

// Shared by the codec_*.cpp files only: together they are what sees Cap'n Proto. Their functions stand beside the
// generated types, in muster::wire and in no unnamed namespace, so that the templates below find them by argument;
// domain structs are written muster::X.
//
//   put(value, builder)   writes a domain struct
//   get(reader)           checks and copies into one; throws Malformed or kj::Exception, which decode() turns
//                         into an Error

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "manifest.capnp.h"
#include "reply.capnp.h"
#include "schema/codec.h"

namespace muster::wire {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxNameBytes = 256;  // of what is named for people and other programs
inline constexpr std::size_t kMaxFeatures = 64;
inline constexpr std::size_t kMaxFilters = 4096;  // of a manifest, or a target

/// A field breaks the protocol. `what()` names it as the .capnp file does.
struct Malformed : std::runtime_error {
  Malformed(std::string_view field, std::string_view problem);
};

inline constexpr std::uint16_t kFirstLocalCode = 1000;  // of Errc: these and above never travel

// ---- writing

inline capnp::Text::Reader text(const std::string& value) {
  return {value.data(), value.size()};
}
inline capnp::Data::Reader data(const Bytes& value) {
  return {reinterpret_cast<const capnp::byte*>(value.data()), value.size()};
}

/// Whole milliseconds that a UInt32 can hold; a negative or longer duration becomes the nearest.
std::uint32_t millis(Millis value);

inline void put_texts(const std::vector<std::string>& values, capnp::List<capnp::Text>::Builder to) {
  for (unsigned i = 0; i < to.size(); ++i) to.set(i, text(values[i]));
}

template <typename T, typename List>
void put_all(const std::vector<T>& values, List to) {
  for (unsigned i = 0; i < to.size(); ++i) put(values[i], to[i]);
}

template <typename T>
unsigned count(const std::vector<T>& values) {
  return static_cast<unsigned>(values.size());
}

inline constexpr std::size_t kSmallMessageWords = 256;

/// A message that is built where it will be sent from: its first segment lies in the result, behind the frame header.
/// A small one is built on the stack and copied: a result of the right size is cheaper than one that is cut down.
class Frame final : public capnp::MessageBuilder {
 public:
  /// `words`   estimate of the content; more than it holds costs one more copy
  explicit Frame(std::size_t words) {
    if (words > small_.size()) bytes_.resize(kHeader + words * sizeof(capnp::word), '\0');
  }

  /// The finished message; the builder is spent.
  Bytes take();

 private:
  static constexpr std::size_t kHeader = 8;  // segment count less one, size of the only segment
  kj::ArrayPtr<capnp::word> allocateSegment(unsigned minimum) override;
  [[nodiscard]] kj::ArrayPtr<capnp::word> first_segment();

  std::array<std::uint64_t, kSmallMessageWords> small_{};
  Bytes bytes_;  // empty: a small message
  bool first_used_ = false;
  std::vector<std::vector<std::uint64_t>> more_;
};

/// Words that a text or data field takes beside its pointer.
inline std::size_t words(std::string_view value) {
  return value.size() / sizeof(capnp::word) + 1;
}

template <typename Root, typename T>
Bytes encode_as(const T& message, std::size_t estimate = kSmallMessageWords) {
  Frame frame(estimate);
  put(message, frame.initRoot<Root>());
  return frame.take();
}

// ---- reading

std::string get_text(capnp::Text::Reader value, std::string_view field);
std::string get_text(capnp::Text::Reader value, std::string_view field, std::size_t min_bytes, std::size_t max_bytes);
std::string get_token(capnp::Text::Reader value, std::string_view field);
std::string get_token_or_empty(capnp::Text::Reader value, std::string_view field);
std::string get_namespace(capnp::Text::Reader value, std::string_view field);  // or pool: the same syntax
/// `max_bytes`   of each: a list of a bounded number of texts is bounded by it
std::vector<std::string> get_texts(capnp::List<capnp::Text>::Reader values, std::string_view field,
                                   std::size_t max_bytes = kMaxMessageBytes);
inline std::string get_native_id(capnp::Text::Reader value, std::string_view field) {
  return get_text(value, field, 1, kMaxNativeIdBytes);
}
inline Bytes get_data(capnp::Data::Reader value) {
  return {value.asChars().begin(), value.size()};
}

/// `last`   the highest enumerator; domain enums have the numbers of the wire's
template <typename E, typename W>
E get_enum(W value, E last, std::string_view field) {
  const auto number = static_cast<std::uint16_t>(value);
  if (number > static_cast<std::uint16_t>(last)) throw Malformed(field, "unknown value");
  return static_cast<E>(number);
}

template <typename List>
auto get_all(List from) {
  std::vector<decltype(get(from[0]))> values;
  values.reserve(std::min<std::size_t>(from.size(), 4096));  // a size is only a claim until its elements are seen
  for (const auto element : from) values.push_back(get(element));
  return values;
}

/// A list is asked for once: each time counts its words anew, and a message's may be read only once.
template <typename List>
List at_most(std::size_t max, List list, std::string_view field) {
  if (list.size() > max) throw Malformed(field, "too many");
  return list;
}

/// What is wrong with the frame of a message, none when it is that of one complete message. Garbage comes in floods,
/// and nearly all of it is no frame: an exception for each would cost more than all else that is done with it.
const char* frame_problem(std::string_view bytes);

/// The root of one complete message, read from aligned words.
template <typename Root>
auto get_message(std::string_view bytes) {
  const auto with = [](kj::ArrayPtr<const capnp::word> words_of_message) {
    // Every object is read once at most, so content that is shared to blow a message up runs into the limit.
    const capnp::ReaderOptions limits{words_of_message.size() + 1024, 16};
    capnp::FlatArrayMessageReader message(words_of_message, limits);
    return get(message.getRoot<Root>());
  };
  const auto count_of_words = bytes.size() / sizeof(capnp::word);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(capnp::word) == 0) {
    return with({reinterpret_cast<const capnp::word*>(bytes.data()), count_of_words});
  }
  if (count_of_words <= kSmallMessageWords) {
    std::array<std::uint64_t, kSmallMessageWords> aligned{};
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    return with({reinterpret_cast<const capnp::word*>(aligned.data()), count_of_words});
  }
  auto aligned = kj::heapArray<capnp::word>(count_of_words);
  std::memcpy(aligned.asBytes().begin(), bytes.data(), bytes.size());
  return with(aligned);
}

/// What decode<T>() is for the message that `Root` stands for.
template <typename Root>
auto decode_as(std::string_view bytes) -> Result<decltype(get(typename Root::Reader()))> {
  if (const char* problem = frame_problem(bytes)) return Error{Errc::kMalformed, problem, {}, 0};
  try {
    return get_message<Root>(bytes);
  } catch (const Malformed& problem) {
    return Error{Errc::kMalformed, problem.what(), {}, 0};
  } catch (const kj::Exception& problem) {
    return Error{Errc::kMalformed, problem.getDescription().cStr(), {}, 0};
  }
}

// ---- what the parts of the codec share

void put(const muster::MatchFilter& value, MatchFilter::Builder to);
muster::MatchFilter get(MatchFilter::Reader from);

}  // namespace muster::wire
