#include "coordinator/config.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "coordinator/secret_text.h"
#include "coordinator/target_reader.h"
#include "coordinator/yaml_reader.h"
#include "schema/subjects.h"

namespace muster {
namespace {

constexpr Millis kYear{365LL * 24 * 3600 * 1000};
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits = "0123456789";

bool only(std::string_view text, std::string_view extra) {
  const auto in = [](char c, std::string_view set) { return set.find(c) != std::string_view::npos; };
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [&](char c) { return in(c, kLetters) || in(c, kDigits) || in(c, extra); });
}

bool begins_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool valid_variable(std::string_view text) {
  return only(text, "_") && kDigits.find(text.front()) == std::string_view::npos;
}
bool valid_pattern(std::string_view text) {
  return only(text, "_*");
}
bool valid_directory(std::string_view text) {
  return begins_with(text, "/");
}

bool valid_store(std::string_view text) {
  return (begins_with(text, "sqlite:") && text != "sqlite:") || begins_with(text, "postgresql://") ||
         begins_with(text, "postgres://");
}

/// What stands behind the host, if anything does; `[::1]` is a host.
bool valid_port(std::string_view server) {
  const auto colon = server.rfind(':');
  if (colon == std::string_view::npos || server.find_first_of("]@", colon) != std::string_view::npos) return true;
  const auto digits = server.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() && port > 0;
}

bool valid_nats_url(std::string_view text) {
  const std::string_view one = text.substr(0, text.find(','));
  const bool known = (begins_with(one, "nats://") || begins_with(one, "tls://")) && one.back() != '/' &&
                     valid_port(one.substr(one.find("//") + 2));
  return known && (one.size() == text.size() || valid_nats_url(text.substr(one.size() + 1)));
}

/// The schema of muster.yaml: design section 9.
class ConfigReader {
 public:
  ConfigReader(std::string file, ConfigResult& result)
      : config_(result.config), yaml_(std::move(file), result.mistakes) {}

  void document(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull) return;
    const auto interval_of = [this](Millis& out) {
      return [this, &out](const YamlNode& node) { yaml_.fields(node, {{"interval", interval(out)}}); };
    };
    yaml_.fields(root, {{"nats", [this](const YamlNode& node) { nats(node); }},
                        {"prefix", prefix()},
                        {"data_dir", yaml_.text(config_.data_dir)},
                        {"store", store()},
                        {"workers", yaml_.list([this](const YamlNode& node) { worker(node); })},
                        {"targets",
                         yaml_.list([this](const YamlNode& node) { config_.targets.push_back(targets_.read(node)); })},
                        {"discovery", interval_of(config_.discovery_interval)},
                        {"drift", interval_of(config_.drift_interval)},
                        {"retry", [this](const YamlNode& node) { retry(node); }},
                        {"limits", [this](const YamlNode& node) { limits(node); }}});
  }

  void environment(const std::map<std::string, std::string>& env) {
    const std::vector<std::pair<std::string, YamlReader::Handler>> overrides{
        {"MUSTER_NATS_URL", nats_url()},
        {"MUSTER_NATS_CREDS", yaml_.text(config_.nats.creds)},
        {"MUSTER_NATS_NKEY_SEED", yaml_.text(config_.nats.nkey_seed)},
        {"MUSTER_NATS_INBOX", inbox()},
        {"MUSTER_NATS_TLS_CA", yaml_.text(config_.nats.tls_ca)},
        {"MUSTER_NATS_TLS_CERT", yaml_.text(config_.nats.tls_cert)},
        {"MUSTER_NATS_TLS_KEY", yaml_.text(config_.nats.tls_key)},
        {"MUSTER_PREFIX", prefix()},
        {"MUSTER_DATA_DIR", yaml_.text(config_.data_dir)},
        {"MUSTER_STORE", store()},
        {"MUSTER_DISCOVERY_INTERVAL", interval(config_.discovery_interval)},
        {"MUSTER_DRIFT_INTERVAL", interval(config_.drift_interval)},
    };
    for (const auto& [name, handler] : overrides) {
      const auto it = env.find(name);
      if (it == env.end() || it->second.empty()) continue;
      YamlNode value;
      value.kind = YamlNode::Kind::kScalar;
      value.line = value.column = 0;
      value.text = it->second;
      yaml_.set_file("$" + name);
      handler(value);
    }
    const auto given = [&](const char* name) { return env.contains(name) && !env.at(name).empty(); };
    // One signs in in one way: what the environment gives is not mixed with what the file has.
    const bool creds = given("MUSTER_NATS_CREDS"), seed = given("MUSTER_NATS_NKEY_SEED");
    if (seed && !creds) config_.nats.creds.clear();
    if (creds && !seed) config_.nats.nkey_seed.clear();
    const bool files = given("MUSTER_NATS_TLS_CERT") || given("MUSTER_NATS_TLS_KEY");
    if (files && config_.nats.tls_cert.empty() != config_.nats.tls_key.empty()) {
      YamlNode nowhere;
      nowhere.line = nowhere.column = 0;
      yaml_.set_file("$MUSTER_NATS_TLS_CERT");
      yaml_.mistake(nowhere, "it and $MUSTER_NATS_TLS_KEY belong together");
    }
  }

 private:
  YamlReader::Handler interval(Millis& out) { return interval_handler(yaml_, out); }

  YamlReader::Handler nats_url() {
    return url(config_.nats.url, valid_nats_url, "nats://host:port or tls://host:port (several: with commas)");
  }
  /// As YamlReader::text(), but for the password of a URL that is refused.
  YamlReader::Handler url(std::string& out, YamlReader::Check valid, std::string_view wanted) {
    return [this, wanted, handler = yaml_.text(out, valid, wanted), valid](const YamlNode& node) {
      if (node.kind != YamlNode::Kind::kScalar || mentions_secret(node.text) || valid(node.text)) return handler(node);
      yaml_.mistake(node, "expected " + std::string(wanted) + ", found " + shown(redact_url(node.text)));
    };
  }
  YamlReader::Handler inbox() {
    return yaml_.text(config_.nats.inbox, valid_prefix, "dot-separated words of letters, digits, _ and -");
  }
  YamlReader::Handler prefix() {
    return yaml_.text(config_.prefix, valid_prefix, "dot-separated words of letters, digits, _ and -");
  }
  YamlReader::Handler store() { return url(config_.store, valid_store, "sqlite:PATH or postgresql://..."); }

  void nats(const YamlNode& node) {
    NatsOptions& nats = config_.nats;
    const auto tls = [&](const YamlNode& files) {
      yaml_.fields(
          files,
          {{"ca", yaml_.text(nats.tls_ca)}, {"cert", yaml_.text(nats.tls_cert)}, {"key", yaml_.text(nats.tls_key)}});
      if (nats.tls_cert.empty() != nats.tls_key.empty()) yaml_.mistake(files, "`cert` and `key` belong together");
    };
    yaml_.fields(node, {{"url", nats_url()},
                        {"creds", yaml_.text(nats.creds)},
                        {"nkey_seed", yaml_.text(nats.nkey_seed)},
                        {"inbox", inbox()},
                        {"tls", tls}});
  }

  void retry(const YamlNode& node) {
    RetryConfig& retry = config_.retry;
    yaml_.fields(node, {{"attempts", yaml_.number(retry.attempts, 1, 100)},
                        {"base", yaml_.duration(retry.base, Millis{1}, Millis{3'600'000}, "1ms to 1h")},
                        {"max", yaml_.duration(retry.max, Millis{1}, Millis{86'400'000}, "1ms to 1d")}});
    if (retry.max < retry.base) yaml_.mistake(node, "`max` is less than `base`");
  }

  void limits(const YamlNode& node) {
    LimitsConfig& limits = config_.limits;
    yaml_.fields(
        node, {{"requests_per_second", yaml_.number(limits.requests_per_second, 0.0, 1e6)},
               {"event_bytes", yaml_.number<std::uint64_t>(limits.event_bytes, 1ULL << 20, 1ULL << 50)},
               {"event_age", yaml_.duration(limits.event_age, Millis{60'000}, 10 * kYear, "1m to 3650d")},
               {"jobs_in_flight", yaml_.number(limits.jobs_in_flight, 1, 100'000)},
               {"resources_per_type", yaml_.number<std::uint64_t>(limits.resources_per_type, 1, 1'000'000'000)},
               {"run_deadline", yaml_.duration(limits.run_deadline, Millis{1000}, kYear, "1s to 365d")},
               {"job_deadline", yaml_.duration(limits.job_deadline, Millis{100}, Millis{86'400'000}, "100ms to 1d")}});
  }

  void worker(const YamlNode& node) {
    WorkerConfig worker;
    const auto allow = [&](const YamlNode& lists) {
      yaml_.fields(lists, {{"env", yaml_.texts(worker.allow_env, valid_pattern, "a name or pattern like PG_*")},
                           {"files", yaml_.texts(worker.allow_files, valid_directory, "an absolute directory")}});
    };
    const YamlNode* verify = nullptr;
    const auto checksums = [&](const YamlNode& value) {
      verify = &value;
      yaml_.word({"if-listed", "required"},
                 [&](std::size_t index) { worker.verify = index == 1 ? Verify::kRequired : Verify::kIfListed; })(value);
    };
    yaml_.fields(node, {{"plugin", yaml_.text(worker.plugin)},
                        {"folder", yaml_.text(worker.folder)},
                        {"verify", checksums},
                        {"limits", [&](const YamlNode& limits) { process_limits(limits, worker.limits); }},
                        {"pool", yaml_.text(worker.pool, valid_namespace, kPoolWanted)},
                        {"count", yaml_.number(worker.count, 0, 256)},
                        {"min", yaml_.number(worker.count, 1, 256)},
                        {"max", yaml_.number(worker.max, 1, 256)},
                        {"slots", yaml_.number(worker.slots, 1, 1024)},
                        {"env", [&](const YamlNode& env) { worker_env(env, worker.env); }},
                        {"allow", allow}});
    if (node.kind == YamlNode::Kind::kMap && has(node, "plugin") == has(node, "folder")) {
      yaml_.mistake(node, has(node, "plugin") ? "`plugin` and `folder` exclude each other: write an entry for each"
                                              : "`plugin` or `folder` is missing");
    } else if (verify != nullptr && has(node, "plugin")) {
      yaml_.mistake(*verify, "`verify` is about a `folder`");
    }
    if (has(node, "count") && (has(node, "min") || has(node, "max"))) {
      yaml_.mistake(node, "`count` is a fixed number: write it, or `min` and `max`");
    } else if (worker.max != 0 && worker.max < worker.count) {
      yaml_.mistake(node, "`max` is less than `min`");
    } else if (has(node, "min") && worker.max == 0) {
      yaml_.mistake(node, "`min` needs a `max`: jobs that wait get more workers up to that");
    }
    config_.workers.push_back(std::move(worker));
  }

  /// Whether a map has something behind that key.
  static bool has(const YamlNode& node, std::string_view key) {
    const auto it =
        std::find_if(node.keys.begin(), node.keys.end(), [&](const YamlNode& one) { return one.text == key; });
    if (it == node.keys.end()) return false;
    return node.items[static_cast<std::size_t>(it - node.keys.begin())].kind != YamlNode::Kind::kNull;
  }

  void process_limits(const YamlNode& node, ProcessLimits& out) {
    const auto memory = [&](const YamlNode& value) {
      const auto bytes = value.kind == YamlNode::Kind::kScalar ? parse_bytes(value.text) : std::nullopt;
      if (!bytes || *bytes < kLeastMemory || *bytes > kMostMemory) {
        yaml_.mistake(value, "expected bytes like 512MiB, from 16MiB to 1024TiB");
      } else {
        out.memory = *bytes;
      }
    };
    yaml_.fields(node, {{"memory", memory}, {"cpu", yaml_.number(out.cpu, kLeastCpu, kMostCpu)}});
  }

  void worker_env(const YamlNode& node, std::map<std::string, std::string>& out) {
    if (!yaml_.expect(node, YamlNode::Kind::kMap, "a mapping of names to values")) return;
    yaml_.each_key(node, [&](const YamlNode& key, const YamlNode& value) {
      const YamlReader::Step step(yaml_, "." + key.text);
      if (!valid_variable(key.text)) {
        yaml_.mistake(key, "not a name of an environment variable");
      } else if (yaml_.expect(value, YamlNode::Kind::kScalar, "text")) {
        if (const auto parts = parse_secret_text(value.text); !parts) yaml_.mistake(value, parts.error().message);
        out[key.text] = value.text;
      }
    });
  }

  Config& config_;
  YamlReader yaml_;
  TargetReader targets_{yaml_};
};

}  // namespace

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Errc::kNotFound, std::string("cannot be read: ") + std::strerror(errno)};
  std::string text;
  try {
    in.exceptions(std::ios::badbit);  // a directory opens, and fails when it is read
    std::array<char, 64 * 1024> part{};
    while (in.read(part.data(), part.size()), in.gcount() > 0) {
      text.append(part.data(), static_cast<std::size_t>(in.gcount()));
    }
  } catch (const std::ios::failure&) {
    return Error{Errc::kNotFound, "cannot be read: is it a file?"};
  }
  return text;
}

std::string to_string(const ConfigMistake& mistake) {
  if (mistake.line == 0) return (mistake.file.empty() ? "muster" : mistake.file) + ": " + mistake.message;
  return mistake.file + ":" + std::to_string(mistake.line) + ":" + std::to_string(mistake.column) + ": " +
         mistake.message;
}

std::optional<Millis> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{
      {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty() && text == "0") return Millis{0};
  for (const auto& [name, factor] : kUnits) {
    // A million years is where arithmetic with times is still safe.
    if (unit == name && number <= 1'000'000 * kYear.count() / factor) return Millis{number * factor};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 5> kUnits{
      {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, shift] : kUnits) {
    if (unit == name && number <= (~std::uint64_t{0} >> shift)) return number << shift;
  }
  return std::nullopt;
}

ConfigResult parse_config(const std::string& yaml, const std::string& file,
                          const std::map<std::string, std::string>& env) {
  ConfigResult result;
  ConfigReader reader(file, result);
  const auto tree = parse_yaml(yaml);
  if (const auto* error = std::get_if<YamlError>(&tree)) {
    result.mistakes.push_back({file, error->line, error->column, error->message});
  } else {
    reader.document(std::get<YamlNode>(tree));
  }
  std::stable_sort(result.mistakes.begin(), result.mistakes.end(), [](const ConfigMistake& a, const ConfigMistake& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  reader.environment(env);
  return result;
}

ConfigResult load_config(const std::string& path, const std::map<std::string, std::string>& env) {
  if (path.empty()) return parse_config("", "", env);
  const auto text = read_file(path);
  if (text) return parse_config(*text, path, env);
  ConfigResult result;
  result.mistakes.push_back({path, 0, 0, text.error().message});
  return result;
}

}  // namespace muster
