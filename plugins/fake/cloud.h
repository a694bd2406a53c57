#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/job.h"

/// The cloud that does not exist: everything in it is computed from the target's config, nothing is stored.
namespace muster::fake {

inline constexpr std::uint32_t kMaxTypes = 16;
inline constexpr char kPartType[] = "FAKE::Cloud::Part";
std::string thing_type(std::uint32_t type);
inline constexpr double kMaxLatencyMs = 3'600'000;

/// How long calls take, in milliseconds. Uniform from `low` to `high` (equal ones: always as long), or lognormal with
/// half of the calls below `low` and 99 of 100 below `high`.
struct Latency {
  enum class Shape : std::uint8_t { kUniform, kLognormal };
  Shape shape = Shape::kUniform;
  double low = 0;
  double high = 0;

  /// Of the call that `hash` stands for; the same for the same hash.
  [[nodiscard]] std::chrono::microseconds of(std::uint64_t hash) const;
};

inline constexpr std::uint32_t kSettleMs = 2'000;  // what the types announce; a config's consistency_ms is below it

/// How calls of one operation go wrong; each rate is drawn for itself, anew for each call.
struct Failures {
  double before = 0, after = 0;  // an error, without having acted or after it
  Errc code = Errc::kServiceUnavailable;
  double crash_before = 0, crash_after = 0;  // the worker process kills itself
  Latency hang_before_ms, hang_after_ms;
  double hang_rate = 1;   // of both
  bool stubborn = false;  // hangs on when the call is stopped
};

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
  Latency latency_ms;
  double error_rate = 0;
  double throttle_rate = 0;
  double filtered_share = 0;
  std::uint32_t epoch = 0;
  double change_share = 0;
  double rename_share = 0;
  double vanish_share = 0;
  double appear_share = 0;
  std::vector<std::string> fail_types;
  std::string state;
  Latency async_ms;
  std::uint32_t consistency_ms = 0;
  std::map<std::string, Failures, std::less<>> fail;  // by operation: create, update, delete, status, read
  std::map<std::string, Errc, std::less<>> fail_names;
  bool unique_names = true;
};

/// The `index`-th thing of a type that there ever was.
struct Thing {
  std::uint32_t type = 0;
  std::uint64_t index = 0;
};

/// What there is at the config's epoch. Cheap enough to serve as a load generator: over 500'000 resources a second on
/// one core.
class Cloud {
 public:
  explicit Cloud(Config config);

  /// The things of each type are those with an index from first() to end() - 1: the oldest vanish, new ones appear
  /// behind the last.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }

  /// `thing0-00000042`, or `thing0-00000042-3` once it has been renamed twice.
  [[nodiscard]] std::string thing_id(Thing thing) const;
  /// None when there is no such thing, any more or yet, or it has another id by now.
  [[nodiscard]] std::optional<Thing> find_thing(std::string_view id) const;
  [[nodiscard]] Resource thing(Thing thing) const;
  [[nodiscard]] std::string thing_name(Thing thing) const;

  /// `thing0-00000042/part-0003`: below things of type 0.
  [[nodiscard]] std::optional<std::pair<Thing, std::uint32_t>> find_part(std::string_view id) const;
  [[nodiscard]] Resource part(Thing parent, std::uint32_t index) const;

  /// The thing or part of that type and id.
  [[nodiscard]] std::optional<Resource> find(std::string_view type, std::string_view id) const;

 private:
  struct Shape;
  [[nodiscard]] std::uint64_t hash_of(Thing thing) const;
  [[nodiscard]] std::uint64_t per_epoch(double share) const;
  [[nodiscard]] std::uint64_t revision(Thing thing) const;
  [[nodiscard]] std::uint64_t times_renamed(Thing thing) const;
  [[nodiscard]] bool filtered(Thing thing) const;
  [[nodiscard]] std::string properties(const Shape& shape) const;

  Config config_;
  std::uint64_t first_;
  std::uint64_t end_;
};

/// A well mixed hash of two numbers (splitmix64).
std::uint64_t mix(std::uint64_t a, std::uint64_t b);
/// Of a hash and a text (FNV-1a): the same in every process.
std::uint64_t mix_text(std::uint64_t hash, std::string_view text);
/// Of a hash, a number in [0, 1).
double unit(std::uint64_t hash);

}  // namespace muster::fake
