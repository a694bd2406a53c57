#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/job.h"

/// The cloud that does not exist: everything in it is computed from the target's config, nothing is stored.
namespace muster::fake {

inline constexpr std::uint32_t kMaxTypes = 16;

/// A target's config; meaning and bounds of each key stand in its JSON Schema (schemas.h).
struct Config {
  /// errors   kInvalidRequest, naming the key
  static Result<Config> parse(const Json& json);

  std::uint64_t seed = 1;
  std::uint64_t resources = 100;
  std::uint32_t types = 1;
  std::uint32_t children = 0;
  std::uint32_t page = 1000;
  std::uint32_t bytes = 600;
  bool list_properties = true;
  std::uint32_t latency_ms = 0;
  double error_rate = 0;
  double throttle_rate = 0;
  double filtered_share = 0;
  std::uint32_t epoch = 0;
  double churn = 0;
  double churn_ids = 0;
  std::vector<std::string> fail_types;
  std::string state;
};

/// A thing's place: slot `index` of type `type`. When things are replaced (churn_ids), the slot gets the next one.
struct Thing {
  std::uint32_t type = 0;
  std::uint64_t index = 0;
};

/// What stands in each slot. Cheap enough to serve as a load generator: over 500'000 resources a second on one core.
class Cloud {
 public:
  explicit Cloud(Config config) : config_(std::move(config)) {}

  /// `thing0-00000042`, or `thing0-00000042-2` for the second one that replaced another in the slot.
  [[nodiscard]] std::string thing_id(Thing thing) const;
  /// The slot of an id; none when no such thing exists (any more).
  [[nodiscard]] std::optional<Thing> find_thing(std::string_view id) const;
  [[nodiscard]] Resource thing(Thing thing) const;
  [[nodiscard]] std::string thing_name(Thing thing) const;

  /// `thing0-00000042/part-0003`: below things of type 0.
  [[nodiscard]] std::optional<std::pair<Thing, std::uint32_t>> find_part(std::string_view id) const;
  [[nodiscard]] Resource part(Thing parent, std::uint32_t index) const;

 private:
  struct Shape;
  [[nodiscard]] std::uint64_t slot_hash(Thing thing) const;
  [[nodiscard]] std::uint64_t generation(Thing thing) const;
  [[nodiscard]] std::string properties(const Shape& shape) const;

  Config config_;
};

/// A well mixed hash of two numbers (splitmix64).
std::uint64_t mix(std::uint64_t a, std::uint64_t b);
/// Of a hash, a number in [0, 1).
double unit(std::uint64_t hash);

}  // namespace muster::fake
