#include "coordinator/yaml_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include <re2/re2.h>

#include "coordinator/canonical.h"
#include "coordinator/secret_text.h"

namespace muster {
namespace {

std::string_view kind_name(const YamlNode& node) {
  constexpr std::array<std::string_view, 4> kNames{"nothing", "a single value", "a list", "a mapping"};
  return kNames.at(static_cast<std::size_t>(node.kind));
}

bool is_plain(const YamlNode& node, std::initializer_list<std::string_view> words) {
  return node.kind == YamlNode::Kind::kScalar && node.plain &&
         std::find(words.begin(), words.end(), node.text) != words.end();
}

std::optional<bool> as_bool(const YamlNode& node) {
  if (is_plain(node, {"true", "True", "TRUE"})) return true;
  if (is_plain(node, {"false", "False", "FALSE"})) return false;
  return std::nullopt;
}

std::optional<nlohmann::json> whole_number(std::string_view digits, int base) {
  const char* const end = digits.data() + digits.size();
  std::int64_t number = 0;
  if (std::from_chars(digits.data(), end, number, base).ec == std::errc{}) return number;
  std::uint64_t large = 0;
  if (std::from_chars(digits.data(), end, large, base).ec == std::errc{}) return large;
  return std::nullopt;
}

/// Whether a scalar is text at the first look.
bool is_text(const YamlNode& node) {
  if (!node.plain || node.text.empty()) return true;
  if (std::string_view("+-.0123456789").find(node.text.front()) != std::string_view::npos) return false;
  return !as_bool(node) && !is_null_word(node.text);
}

}  // namespace

std::optional<nlohmann::json> typed_scalar(const YamlNode& node) {
  if (is_text(node)) return node.text;
  static const re2::RE2 kDecimal("[-+]?[0-9]+");
  static const re2::RE2 kRadix("0o[0-7]+|0x[0-9a-fA-F]+");
  static const re2::RE2 kFloat("[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?");
  static const re2::RE2 kNoNumber("[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");
  const std::string& text = node.text;
  if (const auto boolean = as_bool(node)) return *boolean;
  if (is_null_word(text)) return nlohmann::json();  // a variable's value: others are no scalars
  if (re2::RE2::FullMatch(text, kDecimal)) {
    return whole_number(std::string_view(text).substr(text.front() == '+' ? 1 : 0), 10);
  }
  if (re2::RE2::FullMatch(text, kRadix)) return whole_number(std::string_view(text).substr(2), text[1] == 'x' ? 16 : 8);
  if (re2::RE2::FullMatch(text, kFloat)) {
    const double number = std::strtod(text.c_str(), nullptr);
    return std::isfinite(number) ? std::optional<nlohmann::json>(number) : std::nullopt;
  }
  if (re2::RE2::FullMatch(text, kNoNumber)) return std::nullopt;
  return text;
}

void YamlReader::mistake(const YamlNode& at, const std::string& what) {
  mistakes_.push_back({file_, at.line, at.column, path_.empty() ? what : path_ + ": " + what});
}

bool YamlReader::expect(const YamlNode& node, YamlNode::Kind kind, std::string_view wanted) {
  if (node.kind == kind) return true;
  mistake(node, "expected " + std::string(wanted) + ", found " + std::string(kind_name(node)));
  return false;
}

void YamlReader::each_key(const YamlNode& node,
                          const std::function<void(const YamlNode& key, const YamlNode& value)>& use) {
  constexpr std::size_t kFew = 16;  // so many are compared one by one
  std::set<std::string_view> seen;
  const auto seen_before = [&](std::size_t at) {
    if (node.keys.size() > kFew) return !seen.insert(node.keys[at].text).second;
    const auto is_same = [&](const YamlNode& other) {
      return other.kind == YamlNode::Kind::kScalar && other.text == node.keys[at].text;
    };
    return std::any_of(node.keys.begin(), node.keys.begin() + static_cast<std::ptrdiff_t>(at), is_same);
  };
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& key = node.keys[i];
    if (key.kind != YamlNode::Kind::kScalar) {
      mistake(key, "a key must be a single word");
    } else if (key.plain && key.text == "<<") {
      mistake(key, "merge keys are not supported: write the keys out");
    } else if (seen_before(i)) {
      mistake(key, "the key " + shown(key.text) + " stands here twice");
    } else {
      use(key, node.items[i]);
    }
  }
}

void YamlReader::fields(const YamlNode& node, const std::vector<Field>& known) {
  if (!expect(node, YamlNode::Kind::kMap, "a mapping")) return;
  std::set<std::string_view> given;
  each_key(node, [&](const YamlNode& key, const YamlNode& value) {
    const auto field = std::find_if(known.begin(), known.end(), [&](const Field& one) { return one.key == key.text; });
    if (field == known.end()) {
      std::vector<std::string_view> keys;
      for (const Field& one : known) keys.push_back(one.key);
      mistake(key, "unknown key " + shown(key.text) + "; " + suggestion(key.text, keys));
      return;
    }
    if (value.kind == YamlNode::Kind::kNull) return;  // `pool:` with nothing after it is as good as absent
    given.insert(field->key);
    const Step step(*this, "." + std::string(field->key));
    field->handler(value);
  });
  for (const Field& field : known) {
    if (field.need == Need::kRequired && given.count(field.key) == 0) mistake(node, shown(field.key) + " is missing");
  }
}

YamlReader::Handler YamlReader::list(Handler each) {
  return [this, each = std::move(each)](const YamlNode& node) {
    if (!expect(node, YamlNode::Kind::kSequence, "a list")) return;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Step step(*this, "[" + std::to_string(i) + "]");
      each(node.items[i]);
    }
  };
}

YamlReader::Handler YamlReader::text(std::string& out, Check valid, std::string_view wanted) {
  return [this, &out, valid, wanted](const YamlNode& node) {
    if (!expect(node, YamlNode::Kind::kScalar, wanted)) return;
    if (mentions_secret(node.text)) {
      mistake(node, "a secret reference may stand in a target's config and a worker's env only");
    } else if (node.text.empty() || (valid != nullptr && !valid(node.text))) {
      mistake(node, "expected " + std::string(wanted) + ", found " + shown(node.text));
    } else {
      out = node.text;
    }
  };
}

YamlReader::Handler YamlReader::texts(std::vector<std::string>& out, Check valid, std::string_view wanted) {
  return list([this, &out, valid, wanted](const YamlNode& node) {
    std::string one;
    text(one, valid, wanted)(node);
    if (!one.empty()) out.push_back(std::move(one));
  });
}

YamlReader::Handler YamlReader::boolean(bool& out) {
  return [this, &out](const YamlNode& node) {
    if (const auto value = as_bool(node)) {
      out = *value;
    } else {
      mistake(node, "expected true or false");
    }
  };
}

YamlReader::Handler YamlReader::duration(Millis& out, Millis low, Millis high, std::string_view wanted) {
  return [this, &out, low, high, wanted](const YamlNode& node) {
    const auto value = node.kind == YamlNode::Kind::kScalar ? parse_duration(node.text) : std::nullopt;
    if (!value) {
      mistake(node, "expected a duration like 250ms, 10s, 5m, 1h or 7d");
    } else if (*value < low || *value > high) {
      mistake(node, "expected " + std::string(wanted) + ", found " + shown(node.text));
    } else {
      out = *value;
    }
  };
}

YamlReader::Handler YamlReader::word(std::vector<std::string_view> words, std::function<void(std::size_t)> chosen) {
  return [this, words = std::move(words), chosen = std::move(chosen)](const YamlNode& node) {
    const auto it = std::find(words.begin(), words.end(), node.text);
    if (it != words.end()) return chosen(static_cast<std::size_t>(it - words.begin()));
    std::string wanted;
    for (const auto one : words)
      wanted += (wanted.empty() ? "" : one == words.back() ? " or " : ", ") + std::string(one);
    mistake(node,
            "expected " + wanted + ", found " + (node.text.empty() ? std::string(kind_name(node)) : shown(node.text)));
  };
}

std::optional<YamlReader::Json> YamlReader::number_between(const YamlNode& node, const Json& low, const Json& high,
                                                           bool fractions) {
  auto value = node.kind == YamlNode::Kind::kScalar && node.plain ? typed_scalar(node) : std::nullopt;
  const bool right = value && (fractions ? value->is_number() : value->is_number_integer());
  if (right && *value >= low && *value <= high) return value;
  mistake(node, std::string("expected a ") + (fractions ? "" : "whole ") + "number from " + low.dump() + " to " +
                    high.dump());
  return std::nullopt;
}

JsonText YamlReader::json(const YamlNode& node, const TextUse& text) {
  JsonText out;
  write(out, node, Place{}, text);
  return out;
}

JsonText YamlReader::json(const YamlNode& node, std::vector<Secret>* secrets) {
  return json(node, [&](const YamlNode& text, const Json::json_pointer& at) -> Json {
    if (secrets != nullptr) return secret_text(text, at, *secrets);
    if (mentions_secret(text.text)) {
      mistake(text, "a secret reference may stand in a target's config and a worker's env only");
    }
    return text.text;
  });
}

YamlReader::Json::json_pointer YamlReader::Place::pointer() const {
  if (above == nullptr) return Json::json_pointer();
  return key != nullptr ? above->pointer() / *key : above->pointer() / index;
}

void YamlReader::write(std::string& out, const YamlNode& node, const Place& at, const TextUse& text) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      out += "null";
      break;
    case YamlNode::Kind::kScalar:
      write_scalar(out, node, at, text);
      break;
    case YamlNode::Kind::kSequence:
      out += '[';
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (i > 0) out += ',';
        write(out, node.items[i], {&at, nullptr, i}, text);
      }
      out += ']';
      break;
    case YamlNode::Kind::kMap:
      write_map(out, node, at, text);
      break;
  }
}

void YamlReader::write_map(std::string& out, const YamlNode& node, const Place& at, const TextUse& text) {
  struct Member {
    std::string_view key;
    std::size_t begin, end;  // of its text
  };
  std::vector<Member> members;
  members.reserve(node.keys.size());
  const auto begin = out.size();
  out += '{';
  each_key(node, [&](const YamlNode& key, const YamlNode& value) {
    if (mentions_secret(key.text)) mistake(key, "a secret reference may not stand in a key");
    if (!members.empty()) out += ',';
    const auto at_key = out.size();
    append_json_string(out, key.text);
    out += ':';
    write(out, value, {&at, &key.text, 0}, text);
    members.push_back({key.text, at_key, out.size()});
  });
  out += '}';
  if (std::ranges::is_sorted(members, {}, &Member::key)) return;
  std::ranges::sort(members, {}, &Member::key);
  std::string sorted;
  for (const Member& member : members) {
    sorted += sorted.empty() ? '{' : ',';
    sorted.append(out, member.begin, member.end - member.begin);
  }
  out.replace(begin, std::string::npos, sorted + '}');
}

YamlReader::Json YamlReader::scalar(const YamlNode& node) {
  auto value = typed_scalar(node);
  if (value) return std::move(*value);
  mistake(node, "the number " + shown(node.text) + " is out of range: quote it to make it text");
  return nullptr;
}

void YamlReader::write_scalar(std::string& out, const YamlNode& node, const Place& at, const TextUse& text) {
  const bool refers = node.text.find("${") != std::string::npos;
  if (is_text(node) && !refers) return append_json_string(out, node.text);
  const auto value = scalar(node);
  out += value.is_string() && refers ? text(node, at.pointer()).dump() : value.dump();
}

YamlReader::Json YamlReader::secret_text(const YamlNode& node, const Json::json_pointer& at,
                                         std::vector<Secret>& secrets) {
  auto parts = parse_secret_text(node.text);
  if (!parts) {
    mistake(node, parts.error().message);
    return nullptr;
  }
  if (parts->size() == 1 && parts->front().kind == SecretPart::Kind::kLiteral) return parts->front().text;
  secrets.push_back({at.to_string(), std::move(*parts)});
  return nullptr;
}

}  // namespace muster
