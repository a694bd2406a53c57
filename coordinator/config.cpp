#include "coordinator/config.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <re2/re2.h>

#include "coordinator/jsonpath.h"
#include "coordinator/secret_text.h"
#include "coordinator/yaml_reader.h"
#include "schema/subjects.h"

namespace muster {
namespace {

constexpr Millis kYear{365LL * 24 * 3600 * 1000};
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kPool = "a pool: letters, digits, _ and -, at most 64";
constexpr std::string_view kTargetName = "a name: letters, digits, `.`, `_` and `-`, at most 64";

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

bool valid_nats_url(std::string_view text) {
  const std::string_view one = text.substr(0, text.find(','));
  const bool known = (begins_with(one, "nats://") || begins_with(one, "tls://")) && one.back() != '/';
  return known && (one.size() == text.size() || valid_nats_url(text.substr(one.size() + 1)));
}

/// `NS::Segment`, two or more segments.
bool valid_type(std::string_view text) {
  if (text.size() > 196 || !valid_namespace(namespace_of(text))) return false;
  std::size_t segments = 0;
  for (std::size_t at = 0; at <= text.size(); ++segments) {
    const std::size_t end = std::min(text.find("::", at), text.size());
    if (!only(text.substr(at, end - at), "_-")) return false;
    at = end + 2;
  }
  return segments >= 2;
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
                        {"targets", yaml_.list([this](const YamlNode& node) { target(node); })},
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
  }

 private:
  /// Of runs: a second at least, or 0s for off.
  YamlReader::Handler interval(Millis& out) {
    return [this, &out](const YamlNode& node) {
      Millis value = out;
      yaml_.duration(value, Millis{0}, kYear, "a duration up to 365d")(node);
      if (value.count() > 0 && value < Millis{1000}) {
        yaml_.mistake(node, "expected 0s (off) or at least 1s, found " + shown(node.text));
      } else {
        out = value;
      }
    };
  }

  YamlReader::Handler nats_url() {
    return yaml_.text(config_.nats.url, valid_nats_url, "nats://host:port or tls://host:port (several: with commas)");
  }
  YamlReader::Handler inbox() {
    return yaml_.text(config_.nats.inbox, valid_prefix, "dot-separated words of letters, digits, _ and -");
  }
  YamlReader::Handler prefix() {
    return yaml_.text(config_.prefix, valid_prefix, "dot-separated words of letters, digits, _ and -");
  }
  YamlReader::Handler store() { return yaml_.text(config_.store, valid_store, "sqlite:PATH or postgresql://..."); }

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
               {"run_deadline", yaml_.duration(limits.run_deadline, Millis{1000}, kYear, "1s to 365d")},
               {"job_deadline", yaml_.duration(limits.job_deadline, Millis{100}, Millis{86'400'000}, "100ms to 1d")}});
  }

  void worker(const YamlNode& node) {
    WorkerConfig worker;
    const auto allow = [&](const YamlNode& lists) {
      yaml_.fields(lists, {{"env", yaml_.texts(worker.allow_env, valid_pattern, "a name or pattern like PG_*")},
                           {"files", yaml_.texts(worker.allow_files, valid_directory, "an absolute directory")}});
    };
    yaml_.fields(node, {{"plugin", yaml_.text(worker.plugin), YamlReader::Need::kRequired},
                        {"pool", yaml_.text(worker.pool, valid_namespace, kPool)},
                        {"count", yaml_.number(worker.count, 0, 256)},
                        {"slots", yaml_.number(worker.slots, 1, 1024)},
                        {"env", [&](const YamlNode& env) { worker_env(env, worker.env); }},
                        {"allow", allow}});
    config_.workers.push_back(std::move(worker));
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

  void target(const YamlNode& node) {
    TargetConfig target;
    const auto name = [&](const YamlNode& one) {
      yaml_.text(target.name, valid_target_name, kTargetName)(one);
      if (!target.name.empty() && !target_names_.insert(target.name).second) {
        yaml_.mistake(one, "another target has the name " + shown(target.name));
      }
    };
    const auto config = [&](const YamlNode& map) {
      if (!yaml_.expect(map, YamlNode::Kind::kMap, "a mapping")) return;
      target.config.json = yaml_.json(map, &target.config.secrets).dump();
    };
    const YamlNode* filters = nullptr;
    yaml_.fields(node, {{"name", name, YamlReader::Need::kRequired},
                        {"namespace", yaml_.text(target.ns, valid_namespace, "a namespace like PG"),
                         YamlReader::Need::kRequired},
                        {"pool", yaml_.text(target.pool, valid_namespace, kPool)},
                        {"config", config},
                        {"discover", yaml_.boolean(target.discover)},
                        {"filters", [&](const YamlNode& list) { filters = &list; }},
                        {"interval", interval(target.interval)},
                        {"renamed_from", yaml_.text(target.renamed_from, valid_target_name, kTargetName)}});
    if (filters != nullptr) {  // read last: their types are checked against the namespace
      const YamlReader::Step step(yaml_, ".filters");
      yaml_.list([&](const YamlNode& one) { filter(one, target); })(*filters);
    }
    config_.targets.push_back(std::move(target));
  }

  void filter(const YamlNode& node, TargetConfig& target) {
    MatchFilter filter;
    const auto type = [&](const YamlNode& one) {
      std::string name;
      yaml_.text(name, valid_type, "a type like PG::Table")(one);
      if (name.empty()) return;
      if (!target.ns.empty() && namespace_of(name) != target.ns) {
        yaml_.mistake(one, shown(name) + " is not a type of the target's namespace " + target.ns);
      }
      filter.types.push_back(std::move(name));
    };
    yaml_.fields(node, {{"types", yaml_.list(type)},
                        {"action", yaml_.word({"exclude", "include"},
                                              [&](std::size_t i) { filter.action = static_cast<FilterAction>(i); })},
                        {"conditions", yaml_.list([&](const YamlNode& one) { condition(one, filter); })}});
    target.filters.push_back(std::move(filter));
  }

  void condition(const YamlNode& node, MatchFilter& filter) {
    const std::size_t conditions = filter.conditions.size();
    const std::size_t mistakes = yaml_.mistakes();
    yaml_.fields(node, {{"tag", [&](const YamlNode& tag) { tag_match(tag, filter); }},
                        {"property", [&](const YamlNode& property) { property_match(property, filter); }}});
    if (yaml_.mistakes() == mistakes && filter.conditions.size() != conditions + 1) {
      yaml_.mistake(node, "a condition is either a `tag` or a `property`");
    }
  }

  void tag_match(const YamlNode& node, MatchFilter& filter) {
    TagMatch tag;
    const std::size_t mistakes = yaml_.mistakes();
    const auto value = [&](const YamlNode& one) {
      if (!empty_text(one)) yaml_.text(tag.value)(one);
    };
    yaml_.fields(node, {{"keys", yaml_.texts(tag.keys, nullptr, "the key of a tag"), YamlReader::Need::kRequired},
                        {"value", value}});
    if (yaml_.mistakes() == mistakes && tag.keys.empty()) yaml_.mistake(node, "`keys` is empty");
    filter.conditions.emplace_back(std::move(tag));
  }

  void property_match(const YamlNode& node, MatchFilter& filter) {
    PropertyMatch match;
    const auto path = [&](const YamlNode& one) {
      yaml_.text(match.path)(one);
      if (match.path.empty()) return;
      if (const auto parsed = JsonPath::parse(match.path); !parsed) yaml_.mistake(one, parsed.error().message);
    };
    bool has_op = false;
    const auto op = yaml_.word({"eq", "contains", "regex", "exists"}, [&](std::size_t i) {
      match.op = static_cast<MatchOp>(i);
      has_op = true;
    });
    const YamlNode* value = nullptr;
    const std::size_t mistakes = yaml_.mistakes();
    yaml_.fields(node, {{"path", path, YamlReader::Need::kRequired}, {"op", op}, {"value", [&](const YamlNode& one) {
                                                                                    value = &one;
                                                                                  }}});
    if (value != nullptr && !empty_text(*value)) {
      if (!has_op && yaml_.mistakes() == mistakes) yaml_.mistake(node, "`op` is missing: how is the value compared?");
      property_value(*value, match);
    }
    filter.conditions.emplace_back(std::move(match));
  }

  void property_value(const YamlNode& node, PropertyMatch& match) {
    const YamlReader::Step step(yaml_, ".value");
    if (match.op != MatchOp::kRegex) {
      match.value = yaml_.json(node, nullptr).dump();
      return;
    }
    std::string pattern;
    yaml_.text(pattern)(node);
    re2::RE2::Options quiet;
    quiet.set_log_errors(false);
    if (const re2::RE2 regex(pattern, quiet); !regex.ok()) {
      yaml_.mistake(node, "not a regular expression (RE2): " + regex.error());
    }
    match.value = nlohmann::json(pattern).dump();
  }

  static bool empty_text(const YamlNode& node) { return node.kind == YamlNode::Kind::kScalar && node.text.empty(); }

  Config& config_;
  YamlReader yaml_;
  std::set<std::string> target_names_;
};

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  try {
    in.exceptions(std::ios::badbit);  // a directory opens, and fails when it is read
    if (in) text.assign(std::istreambuf_iterator<char>(in), {});
  } catch (const std::ios::failure&) {
    return Error{Errc::kNotFound, "cannot be read: is it a file?"};
  }
  if (!in) return Error{Errc::kNotFound, std::string("cannot be read: ") + std::strerror(errno)};
  return text;
}

}  // namespace

std::string to_string(const ConfigMistake& mistake) {
  if (mistake.line == 0) return mistake.file + ": " + mistake.message;
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
