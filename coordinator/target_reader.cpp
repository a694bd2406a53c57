#include "coordinator/target_reader.h"

#include <algorithm>
#include <cctype>

#include "coordinator/filter.h"
#include "coordinator/jsonpath.h"
#include "coordinator/query_compiler.h"
#include "schema/subjects.h"

namespace muster {
namespace {

constexpr Millis kShortestInterval{100};
constexpr Millis kLongestInterval{365LL * 24 * 3600 * 1000};

bool empty_text(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar && node.text.empty();
}

bool segment(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '_' || c == '-');
  });
}

}  // namespace

bool valid_type(std::string_view text) {
  if (text.size() > 196 || !valid_namespace(namespace_of(text))) return false;
  std::size_t segments = 0;
  for (std::size_t at = 0; at <= text.size(); ++segments) {
    const std::size_t end = std::min(text.find("::", at), text.size());
    if (!segment(text.substr(at, end - at))) return false;
    at = end + 2;
  }
  return segments >= 2;
}

bool is_interval(Millis every) {
  return every.count() == 0 || (every >= kShortestInterval && every <= kLongestInterval);
}

YamlReader::Handler interval_handler(YamlReader& yaml, Millis& out) {
  return [&yaml, &out](const YamlNode& node) {
    Millis value = out;
    yaml.duration(value, Millis{0}, kLongestInterval, "a duration up to 365d")(node);
    if (!is_interval(value)) {
      yaml.mistake(node, "expected 0s (off) or at least 100ms, found " + shown(node.text));
    } else {
      out = value;
    }
  };
}

TargetConfig TargetReader::read(const YamlNode& node) {
  TargetConfig target;
  const auto name = [&](const YamlNode& one) {
    yaml_.text(target.name, valid_target_name, kTargetNameWanted)(one);
    if (!target.name.empty() && !names_.insert(target.name).second) {
      yaml_.mistake(one, "another target has the name " + shown(target.name));
    }
  };
  const auto config = [&](const YamlNode& map) {
    if (!yaml_.expect(map, YamlNode::Kind::kMap, "a mapping")) return;
    target.config.json = yaml_.json(map, &target.config.secrets);
  };
  const YamlNode* filters = nullptr;
  yaml_.fields(
      node, {{"name", name, YamlReader::Need::kRequired},
             {"namespace", yaml_.text(target.ns, valid_namespace, "a namespace like PG"), YamlReader::Need::kRequired},
             {"pool", yaml_.text(target.pool, valid_namespace, kPoolWanted)},
             {"config", config},
             {"discover", yaml_.boolean(target.discover)},
             {"filters", [&](const YamlNode& list) { filters = &list; }},
             {"interval", interval_handler(yaml_, target.interval)},
             {"renamed_from", yaml_.text(target.renamed_from, valid_target_name, kTargetNameWanted)}});
  if (filters != nullptr) {  // read last: their types are checked against the namespace
    const YamlReader::Step step(yaml_, ".filters");
    const std::size_t mistakes = yaml_.mistakes();
    yaml_.list([&](const YamlNode& one) { filter(one, target); })(*filters);
    if (yaml_.mistakes() == mistakes) {  // each is right in itself
      if (const auto set = FilterSet::compile(target.filters); !set) yaml_.mistake(*filters, set.error().message);
    }
  }
  return target;
}

void TargetReader::filter(const YamlNode& node, TargetConfig& target) {
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

void TargetReader::condition(const YamlNode& node, MatchFilter& filter) {
  const std::size_t conditions = filter.conditions.size();
  const std::size_t mistakes = yaml_.mistakes();
  yaml_.fields(node, {{"tag", [&](const YamlNode& tag) { tag_match(tag, filter); }},
                      {"property", [&](const YamlNode& property) { property_match(property, filter); }}});
  if (yaml_.mistakes() == mistakes && filter.conditions.size() != conditions + 1) {
    yaml_.mistake(node, "a condition is either a `tag` or a `property`");
  }
}

void TargetReader::tag_match(const YamlNode& node, MatchFilter& filter) {
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

void TargetReader::property_match(const YamlNode& node, MatchFilter& filter) {
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
  yaml_.fields(
      node,
      {{"path", path, YamlReader::Need::kRequired}, {"op", op}, {"value", [&](const YamlNode& one) { value = &one; }}});
  if (value != nullptr && !empty_text(*value)) {
    if (!has_op && yaml_.mistakes() == mistakes) yaml_.mistake(node, "`op` is missing: how is the value compared?");
    property_value(*value, match);
  }
  filter.conditions.emplace_back(std::move(match));
}

void TargetReader::property_value(const YamlNode& node, PropertyMatch& match) {
  const YamlReader::Step step(yaml_, ".value");
  if (match.op != MatchOp::kRegex) {
    match.value = yaml_.json(node, nullptr);
    return;
  }
  std::string pattern;
  yaml_.text(pattern)(node);
  if (const auto regex = QueryCompiler().regex(pattern); !regex) {
    const bool malformed = regex.error().code == Errc::kMalformed;
    yaml_.mistake(node, (malformed ? "not a regular expression (RE2): " : "") + regex.error().message);
  }
  match.value = nlohmann::json(pattern).dump();
}

}  // namespace muster
