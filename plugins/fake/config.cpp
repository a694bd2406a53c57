#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "cloud.h"

namespace muster::fake {
namespace {

/// Takes keys off a JSON object and remembers the first mistake.
class Reader {
 public:
  /// `where`   what the object is, for messages: `config`, or a key below it
  explicit Reader(const Json& json, std::string where = "config") : json_(json), where_(std::move(where)) {
    if (!json.is_object()) mistake_ = invalid_request(where_ + ": must be an object");
  }

  template <typename Number>
  void number(const char* key, Number& field, std::uint64_t least, std::uint64_t most) {
    const auto* value = take(key);
    if (value == nullptr) return;
    const bool natural = value->is_number_unsigned() || (value->is_number_integer() && *value >= 0);
    if (!natural || value->get<std::uint64_t>() < least || value->get<std::uint64_t>() > most) {
      return fail(key, "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    field = value->get<Number>();
  }

  void share(const char* key, double& field) {
    const auto* value = take(key);
    if (value == nullptr) return;
    if (!value->is_number() || *value < 0 || *value > 1) return fail(key, "must be a number from 0 to 1");
    field = value->get<double>();
  }

  /// A number of milliseconds, {min, max} or {p50, p99}.
  void latency(const std::string& key, Latency& field) {
    const auto* value = take(key);
    if (value == nullptr) return;
    const auto holds = [&](const char* low, const char* high) {
      return value->size() == 2 && value->contains(low) && value->contains(high);
    };
    if (value->is_number()) {
      millis(key, *value, 0, field.low);
      field.high = field.low;
    } else if (holds("min", "max")) {
      millis(key + ".min", (*value)["min"], 0, field.low);
      millis(key + ".max", (*value)["max"], field.low, field.high);
    } else if (holds("p50", "p99")) {
      field.shape = Latency::Shape::kLognormal;
      millis(key + ".p50", (*value)["p50"], 0.001, field.low);
      millis(key + ".p99", (*value)["p99"], field.low, field.high);
    } else {
      fail(key, "must be a number of milliseconds, {min, max} or {p50, p99}");
    }
  }

  void flag(const char* key, bool& field) {
    const auto* value = take(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return fail(key, "must be true or false");
    field = value->get<bool>();
  }

  void text(const char* key, std::string& field) {
    const auto* value = take(key);
    if (value == nullptr) return;
    if (!value->is_string()) return fail(key, "must be a string");
    field = value->get<std::string>();
  }

  void texts(const char* key, std::vector<std::string>& field) {
    const auto* value = take(key);
    if (value == nullptr) return;
    const auto is_string = [](const Json& element) { return element.is_string(); };
    if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_string)) {
      return fail(key, "must be a list of strings");
    }
    field = value->get<std::vector<std::string>>();
  }

  void code(const std::string& key, Errc& field) {
    const auto* value = take(key);
    if (value == nullptr) return;
    for (auto number = static_cast<std::uint16_t>(Errc::kNotFound); number <= kLastCode; ++number) {
      if (*value == errc_name(Errc{number})) return void(field = Errc{number});
    }
    fail(key, "must be the name of an error code, as SERVICE_UNAVAILABLE");
  }

  /// An object, whose keys `read` takes.
  void object(const std::string& key, const std::function<void(Reader&, const Json&)>& read) {
    const auto* value = take(key);
    if (value == nullptr) return;
    Reader inner(*value, where_ + "." + key);
    read(inner, *value);
    if (auto mistake = inner.mistake(); mistake && !mistake_) mistake_ = std::move(mistake);
  }

  void failures(const std::string& key, std::map<std::string, Failures, std::less<>>& fields) {
    object(key, [&](Reader& reader, const Json&) {
      auto& field = fields[key];
      reader.share("before", field.before);
      reader.share("after", field.after);
      reader.code("code", field.code);
      reader.share("crash_before", field.crash_before);
      reader.share("crash_after", field.crash_after);
      reader.latency("hang_before_ms", field.hang_before_ms);
      reader.latency("hang_after_ms", field.hang_after_ms);
      reader.share("hang_rate", field.hang_rate);
      reader.flag("stubborn", field.stubborn);
    });
  }

  void fail(const std::string& key, const std::string& what) {
    if (!mistake_) mistake_ = invalid_request(where_ + "." + key + ": " + what);
  }

  /// Call it last: what nobody took is a mistake, too.
  std::optional<Error> mistake() {
    if (json_.is_object()) {
      for (const auto& [key, value] : json_.items()) {
        if (!known_.contains(key)) fail(key, "unknown key");
      }
    }
    return mistake_;
  }

 private:
  void millis(const std::string& key, const Json& value, double least, double& field) {
    if (!value.is_number() || value < least || value > kMaxLatencyMs) {
      return fail(key, "must be a number of milliseconds from " + Json(least).dump() + " to 3600000");
    }
    field = value.get<double>();
  }

  const Json* take(const std::string& key) {
    known_.insert(key);
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  static constexpr auto kLastCode = static_cast<std::uint16_t>(Errc::kTargetChanged);

  const Json& json_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> mistake_;
};

}  // namespace

Result<Config> Config::parse(const Json& json) {
  Config config;
  Reader reader(json);
  reader.number("seed", config.seed, 0, std::numeric_limits<std::uint64_t>::max());
  reader.number("resources", config.resources, 0, 100'000'000);
  reader.number("types", config.types, 1, kMaxTypes);
  reader.number("children", config.children, 0, 10'000);
  reader.number("page", config.page, 1, 100'000);
  reader.number("bytes", config.bytes, 0, 1 << 20);
  reader.flag("list_properties", config.list_properties);
  reader.latency("latency_ms", config.latency_ms);
  reader.share("error_rate", config.error_rate);
  reader.share("throttle_rate", config.throttle_rate);
  reader.share("filtered_share", config.filtered_share);
  reader.number("epoch", config.epoch, 0, std::numeric_limits<std::uint32_t>::max());
  reader.share("change_share", config.change_share);
  reader.share("rename_share", config.rename_share);
  reader.share("vanish_share", config.vanish_share);
  reader.share("appear_share", config.appear_share);
  reader.texts("fail_types", config.fail_types);
  reader.text("state", config.state);
  if (!config.state.empty() && config.state.front() != '/') reader.fail("state", "must be an absolute path");
  reader.latency("async_ms", config.async_ms);
  reader.number("consistency_ms", config.consistency_ms, 0, kSettleMs - 1);
  reader.object("fail", [&](Reader& operations, const Json&) {
    for (const auto* operation : {"create", "update", "delete", "status", "read"})
      operations.failures(operation, config.fail);
  });
  reader.object("fail_names", [&](Reader& names, const Json& codes) {
    if (!codes.is_object()) return;
    for (const auto& [name, code] : codes.items()) names.code(name, config.fail_names[name]);
  });
  reader.flag("unique_names", config.unique_names);
  for (const auto* key : {"async_ms", "consistency_ms", "fail", "fail_names", "unique_names"}) {
    if (config.state.empty() && json.contains(key)) reader.fail(key, "needs config.state");
  }
  if (auto mistake = reader.mistake()) return *mistake;
  return config;
}

}  // namespace muster::fake
