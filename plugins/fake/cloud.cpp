#include "cloud.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

namespace muster::fake {
namespace {

// Second arguments of mix(): what a draw is for.
enum Purpose : std::uint64_t { kIdentity = 1, kEnvironment, kRegion, kSize, kPart, kSecondDraw, kPayload };

constexpr std::array<std::string_view, 4> kEnvironments = {"dev", "prod", "staging", "test"};
constexpr std::array<std::string_view, 6> kRegions = {"ap-south-1", "eu-central-1", "eu-west-1",
                                                      "sa-east-1",  "us-east-1",    "us-west-2"};
constexpr std::array<std::string_view, 8> kWords = {"amber", "birch", "cedar", "delta",
                                                    "ember", "fjord", "grove", "heron"};

template <std::size_t N>
std::string_view pick(const std::array<std::string_view, N>& words, std::uint64_t hash) {
  return words[hash % N];
}

void append_number(std::string& text, std::uint64_t number, std::size_t width = 1) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const auto size = static_cast<std::size_t>(end - digits.data());
  if (size < width) text.append(width - size, '0');
  text.append(digits.data(), size);
}

constexpr std::size_t kHexDigits = 16;

/// The digits of each byte: what large properties cost is the writing of their payload.
constexpr auto kHexOfByte = [] {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::array<char, 2>, 256> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {kDigits[i >> 4], kDigits[i & 0xF]};
  return pairs;
}();

void write_hex(char* to, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8, to += 2) std::memcpy(to, kHexOfByte[number >> shift & 0xFF].data(), 2);
}

std::string hex(std::uint64_t number) {
  std::string text(kHexDigits, '0');
  write_hex(text.data(), number);
  return text;
}

/// What the names of a thing that has been renamed end with.
void append_names(std::string& text, std::uint64_t times_renamed) {
  if (times_renamed == 0) return;
  text += '-';
  append_number(text, times_renamed + 1);
}

/// Reads a number off the front of `text`; none when it doesn't begin with one.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + (b + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::uint64_t mix_text(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mix(hash, text.size());
}

double unit(std::uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1.0p-53;
}

std::string thing_type(std::uint32_t type) {
  return "FAKE::Cloud::Thing" + std::to_string(type);
}

std::chrono::microseconds Latency::of(std::uint64_t hash) const {
  double millis = low + (high - low) * unit(hash);
  if (shape == Shape::kLognormal) {
    constexpr double kPercentile99 = 2.3263478740408408;  // of the normal distribution, in standard deviations
    const double radius = std::sqrt(-2 * std::log(1 - unit(hash)));
    const double normal = radius * std::cos(2 * std::numbers::pi * unit(mix(hash, kSecondDraw)));
    millis = low * std::exp(std::log(high / low) / kPercentile99 * normal);
  }
  return std::chrono::microseconds(std::llround(1000 * std::min(millis, kMaxLatencyMs)));
}

/// What properties are written from.
struct Cloud::Shape {
  std::uint64_t hash = 0;  // of this very thing
  std::uint64_t index = 0;
  std::uint64_t revision = 0;  // grows when the thing changes
  std::string name;
  std::string thing;  // of a part: its parent's name
  bool filtered = false;
};

Cloud::Cloud(Config config)
    : config_(std::move(config)),
      first_(per_epoch(config_.vanish_share) * config_.epoch),
      end_(config_.resources + per_epoch(config_.appear_share) * config_.epoch) {}

std::uint64_t Cloud::per_epoch(double share) const {
  return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(config_.resources)));
}

std::uint64_t Cloud::hash_of(Thing thing) const {
  return mix(mix(config_.seed, thing.type), thing.index);
}

// Changes and renamings each go round, from higher indexes to lower ones: an epoch meets the next ones of a circle of
// `resources` indexes. Renaming begins half a circle away, so that few epochs meet the same things.

std::uint64_t Cloud::revision(Thing thing) const {
  return (thing.index % config_.resources + per_epoch(config_.change_share) * config_.epoch) / config_.resources;
}

std::uint64_t Cloud::times_renamed(Thing thing) const {
  const auto place = (thing.index + config_.resources / 2) % config_.resources;
  return (place + per_epoch(config_.rename_share) * config_.epoch) / config_.resources;
}

/// Spread evenly: exactly the share of any `resources` things in a row.
bool Cloud::filtered(Thing thing) const {
  const auto count = per_epoch(config_.filtered_share);
  const auto place = thing.index % config_.resources;
  return (place + 1) * count / config_.resources > place * count / config_.resources;
}

std::string Cloud::thing_id(Thing thing) const {
  std::string id = "thing";
  append_number(id, thing.type);
  id += '-';
  append_number(id, thing.index, 8);
  append_names(id, times_renamed(thing));
  return id;
}

std::optional<Thing> Cloud::find_thing(std::string_view id) const {
  auto rest = id;
  if (!take_prefix(rest, "thing")) return std::nullopt;
  const auto type = take_number(rest);
  if (!type || *type >= config_.types || !take_prefix(rest, "-")) return std::nullopt;
  const auto index = take_number(rest);
  if (!index || *index < first_ || *index >= end_) return std::nullopt;
  const Thing thing{static_cast<std::uint32_t>(*type), *index};
  if (thing_id(thing) != id) return std::nullopt;  // renamed since, or no id of ours
  return thing;
}

std::string Cloud::thing_name(Thing thing) const {
  std::string name(pick(kWords, hash_of(thing)));
  name += '-';
  append_number(name, thing.index);
  append_names(name, times_renamed(thing));
  return name;
}

Resource Cloud::thing(Thing thing) const {
  const auto hash = mix(hash_of(thing), kIdentity);
  Resource resource{thing_id(thing), {}, hex(hash)};
  resource.properties = Properties::from_canonical(
      properties({hash, thing.index, revision(thing), thing_name(thing), {}, filtered(thing)}));
  return resource;
}

std::optional<std::pair<Thing, std::uint32_t>> Cloud::find_part(std::string_view id) const {
  const auto slash = id.find("/part-");
  if (slash == std::string_view::npos) return std::nullopt;
  const auto parent = find_thing(id.substr(0, slash));
  if (!parent || parent->type != 0) return std::nullopt;
  auto rest = id.substr(slash + 6);
  const auto index = take_number(rest);
  if (!index || *index >= config_.children) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(*index);
  if (part(*parent, number).native_id != id) return std::nullopt;
  return std::pair{*parent, number};
}

Resource Cloud::part(Thing parent, std::uint32_t index) const {
  Resource resource{thing_id(parent) + "/part-", {}, {}};
  append_number(resource.native_id, index, 4);
  const auto hash = mix(mix(hash_of(parent), kPart), index);
  resource.uid = hex(hash);
  std::string name = "part-";
  append_number(name, index);
  resource.properties =
      Properties::from_canonical(properties({hash, index, 0, std::move(name), thing_name(parent), filtered(parent)}));
  return resource;
}

std::optional<Resource> Cloud::find(std::string_view type, std::string_view id) const {
  if (type == kPartType) {
    const auto part_found = find_part(id);
    return part_found ? std::optional(part(part_found->first, part_found->second)) : std::nullopt;
  }
  const auto found = find_thing(id);
  return found && thing_type(found->type) == type ? std::optional(thing(*found)) : std::nullopt;
}

std::string Cloud::properties(const Shape& shape) const {
  std::string text;
  text.reserve(std::max<std::size_t>(config_.bytes, 400));
  text += R"({"Tags":[{"Key":"Env","Value":")";
  text += pick(kEnvironments, mix(shape.hash, kEnvironment));
  text += R"("},{"Key":"Name","Value":")";
  text += shape.name;
  if (shape.filtered) text += R"("},{"Key":"Temp","Value":"true)";
  text += R"("}],"index":)";
  append_number(text, shape.index);
  text += R"(,"name":")";
  text += shape.name;

  std::string tail = R"(","region":")";  // after the payload, whose length depends on it
  tail += pick(kRegions, mix(shape.hash, kRegion));
  tail += R"(","revision":)";
  append_number(tail, shape.revision);
  tail += R"(,"size":)";
  append_number(tail, mix(shape.hash, kSize) % 1'000'000);
  if (!shape.thing.empty()) {
    tail += R"(,"thing":")";
    tail += shape.thing;
    tail += '"';
  }
  tail += '}';

  text += R"(","payload":")";
  const auto end = std::max(text.size() + tail.size(), std::size_t{config_.bytes}) - tail.size();
  auto at = text.size();
  text.resize(end + kHexDigits);
  for (std::uint64_t block = 0; at < end; ++block, at += kHexDigits) {
    write_hex(text.data() + at, mix(shape.hash, kPayload + block));
  }
  text.resize(end);
  text += tail;
  return text;
}

}  // namespace muster::fake
