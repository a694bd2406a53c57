#include "coordinator/yaml_tree.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <nlohmann/json.hpp>

#include "coordinator/yaml_events.h"
#include "schema/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kMaxDepth = 500;
constexpr std::size_t kMaxRepeated = 1'000'000;  // values that aliases repeat, and one more for each byte of the text

/// Places as the library counts them, in characters, to places in bytes. They come in the order of the text, mostly.
class Places {
 public:
  explicit Places(std::string_view text)
      : text_(text), ascii_(std::ranges::none_of(text, [](char c) { return (c & 0x80) != 0; })) {}

  /// Line and column, from 1.
  std::pair<int, int> operator()(const yaml_mark_t& mark) {
    const int line = static_cast<int>(mark.line) + 1;
    if (ascii_) return {line, static_cast<int>(mark.column) + 1};
    while (line_ < mark.line && begin_ < text_.size()) {
      const auto end = text_.find('\n', begin_);
      if (end == std::string_view::npos) break;
      begin_ = end + 1;
      ++line_;
      characters_ = bytes_ = 0;
    }
    if (line_ != mark.line) return {line, static_cast<int>(mark.column) + 1};  // behind: counted in characters
    if (characters_ > mark.column) characters_ = bytes_ = 0;
    for (; characters_ < mark.column && begin_ + bytes_ < text_.size(); ++characters_) {
      do ++bytes_;
      while (begin_ + bytes_ < text_.size() && (text_[begin_ + bytes_] & 0xC0) == 0x80);
    }
    return {line, static_cast<int>(bytes_) + 1};
  }

  /// What stands there; 0 at the end.
  [[nodiscard]] char at(int line, int column) const {
    std::size_t begin = 0;
    for (; line > 1; --line) begin = std::min(text_.size(), text_.find('\n', begin)) + 1;
    const auto at = begin + static_cast<std::size_t>(column) - 1;
    return at < text_.size() ? text_[at] : '\0';
  }

 private:
  std::string_view text_;
  bool ascii_;
  std::size_t line_ = 0, begin_ = 0;        // of the line that was asked for last, and where it begins
  std::size_t characters_ = 0, bytes_ = 0;  // of that line
};

std::string text_of(const unsigned char* text) {
  return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
}

/// Builds the tree from the parser's events. The library's own tree shares nodes between aliases, so that a few lines
/// can stand for billions.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const YamlItemUse& use)
      : places_(text), events_(text), use_(use), may_repeat_(kMaxRepeated + text.size()) {}

  std::variant<YamlNode, YamlError> build() {
    for (;;) {
      if (!events_.next()) return syntax_error();
      if (events_.event().type == YAML_STREAM_END_EVENT) return std::move(root_);
      take(events_.event());
      if (error_) return *error_;
    }
  }

 private:
  struct Open {
    YamlNode node;
    std::string anchor;
    std::size_t first;      // nodes before this one
    std::size_t taken = 0;  // items that are not kept
  };
  struct Anchored {
    YamlNode node;
    std::size_t nodes = 0;  // 0: it is still open
  };

  void take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (documents_++ > 0) fail(event.start_mark, "a second document begins here: a file holds one");
        break;
      case YAML_ALIAS_EVENT:
        alias(event);
        break;
      case YAML_SCALAR_EVENT:
        scalar(event);
        break;
      case YAML_SEQUENCE_START_EVENT:
        open(YamlNode::Kind::kSequence, event, event.data.sequence_start.tag, event.data.sequence_start.anchor);
        break;
      case YAML_MAPPING_START_EVENT:
        open(YamlNode::Kind::kMap, event, event.data.mapping_start.tag, event.data.mapping_start.anchor);
        break;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        close();
        break;
      default:
        break;
    }
  }

  void fail(const yaml_mark_t& mark, std::string message) {
    const auto [line, column] = places_(mark);
    error_ = YamlError{line, column, std::move(message)};
  }

  YamlError syntax_error() {
    const auto& parser = events_.parser();
    const auto [line, column] = places_(parser.problem_mark);
    if (const auto at = places_.at(line, column); at == '\t') {
      return {line, column, "a tab: lines are indented with spaces"};
    } else if (at == '@' || at == '`' || at == '%') {
      return {line, column, std::string("a value that begins with ") + at + " must be quoted"};
    }
    std::string message = parser.problem == nullptr ? "no YAML" : parser.problem;
    if (parser.context != nullptr) {
      message += " " + std::string(parser.context);
      if (parser.context_mark.line != parser.problem_mark.line)
        message += ", from line " + std::to_string(parser.context_mark.line + 1);
    }
    return {line, column, std::move(message)};
  }

  YamlNode node(YamlNode::Kind kind, const yaml_mark_t& mark) {
    YamlNode made;
    made.kind = kind;
    std::tie(made.line, made.column) = places_(mark);
    return made;
  }

  void count(std::size_t nodes, const yaml_mark_t& mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxYamlNodes) fail(mark, "more than " + std::to_string(kMaxYamlNodes) + " values");
  }

  void alias(const yaml_event_t& event) {
    const auto it = anchors_.find(text_of(event.data.alias.anchor));
    if (it == anchors_.end()) return fail(event.start_mark, "the referenced anchor is not defined");
    if (it->second.nodes == 0) return fail(event.start_mark, "an alias inside of what it names");
    const auto nodes = it->second.nodes;
    if (nodes > may_repeat_) return fail(event.start_mark, "aliases repeat too many values for so short a text");
    may_repeat_ -= nodes;
    count(nodes - 1, event.start_mark);
    if (error_) return;
    YamlNode copy = it->second.node;
    std::tie(copy.line, copy.column) = places_(event.start_mark);
    add(std::move(copy), {}, event.start_mark);
  }

  void scalar(const yaml_event_t& event) {
    const auto& data = event.data.scalar;
    const auto tag = text_of(data.tag);
    if (!tag.empty() && tag != "!" && tag != YAML_STR_TAG)
      return fail(event.start_mark, "the tag " + tag + " is not supported");
    YamlNode made = node(YamlNode::Kind::kScalar, event.start_mark);
    made.text.assign(reinterpret_cast<const char*>(data.value), data.length);
    made.plain = tag.empty() && data.style == YAML_PLAIN_SCALAR_STYLE;
    const auto& text = made.text;
    if (made.plain && (text.empty() || is_null_word(text))) {
      made.kind = YamlNode::Kind::kNull;
      made.text.clear();
    }
    add(std::move(made), text_of(data.anchor), event.start_mark);
  }

  void open(YamlNode::Kind kind, const yaml_event_t& event, const unsigned char* tag, const unsigned char* anchor) {
    if (const auto given = text_of(tag); !given.empty() && given != "!")
      return fail(event.start_mark, "the tag " + given + " is not supported");
    if (open_.size() == kMaxDepth) {
      return fail(event.start_mark, "deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    if (anchor != nullptr) anchors_[text_of(anchor)] = {};
    open_.push_back({node(kind, event.start_mark), text_of(anchor), nodes_});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor, events_.event().start_mark, nodes_ - done.first);
  }

  /// `below`   nodes in it, without itself
  void add(YamlNode child, const std::string& anchor, const yaml_mark_t& mark, std::size_t below = 0) {
    count(1, mark);
    if (!anchor.empty()) anchors_[anchor] = {child, below + 1};
    if (open_.empty()) {
      root_ = std::move(child);
      return;
    }
    if (taken(child)) return;
    YamlNode& parent = open_.back().node;
    const bool is_key = parent.kind == YamlNode::Kind::kMap && parent.keys.size() == parent.items.size();
    if (!is_key && child.kind == YamlNode::Kind::kNull && parent.kind == YamlNode::Kind::kMap &&
        child.line != parent.keys.back().line) {  // `key:` without a value: the parser is already past it
      child.line = parent.keys.back().line;
      child.column = parent.keys.back().column;
    }
    (is_key ? parent.keys : parent.items).push_back(std::move(child));
  }

  /// Whether it is an item that somebody takes at once.
  bool taken(const YamlNode& child) {
    if (!use_ || open_.size() != 2) return false;
    const auto& root = open_.front();
    auto& list = open_.back();
    if (root.node.kind != YamlNode::Kind::kMap || list.node.kind != YamlNode::Kind::kSequence) return false;
    if (root.node.keys.size() == root.node.items.size()) return false;  // the list is a key
    if (!root.anchor.empty() || !list.anchor.empty()) return false;
    if (!use_(root.node, list.node.items.size() + list.taken, child)) return false;
    ++list.taken;
    return true;
  }

  Places places_;
  YamlEvents events_;
  const YamlItemUse& use_;
  std::optional<YamlError> error_;
  YamlNode root_;
  std::vector<Open> open_;
  std::map<std::string, Anchored> anchors_;
  std::size_t nodes_ = 0;
  std::size_t may_repeat_;
  int documents_ = 0;
};

bool control_character(char c) {
  return (c >= '\0' && c < ' ' && c != '\t' && c != '\r') || c == '\x7f';
}

/// The library takes them for line breaks, and blanks beside them away.
constexpr std::string_view kOldBreaks[] = {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};

std::optional<YamlError> check_line(std::string_view line, int number) {
  for (std::size_t i = 0; i < line.size();) {
    std::size_t length = 1;
    while (length <= 4 && !valid_utf8(line.substr(i, length))) ++length;
    const int column = static_cast<int>(i) + 1;
    if (length > 4) return YamlError{number, column, "not UTF-8 text"};
    if (control_character(line[i])) return YamlError{number, column, "a control character"};
    if (std::ranges::find(kOldBreaks, line.substr(i, length)) != std::end(kOldBreaks))
      return YamlError{number, column, "a line break that is none in JSON: write it as an escape in double quotes"};
    i += length;
  }
  return std::nullopt;
}

std::optional<YamlError> check_bytes(std::string_view text) {
  if (text.size() > kMaxYamlBytes) return YamlError{1, 1, "larger than 128 MiB"};
  const auto allowed = [](char c) { return c == '\n' || !control_character(c); };
  const auto absent = [&](std::string_view each) { return text.find(each) == std::string_view::npos; };
  if (valid_utf8(text) && std::ranges::all_of(text, allowed) && std::ranges::all_of(kOldBreaks, absent))
    return std::nullopt;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (auto error = check_line(line, number)) return error;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

/// The character that begins at `at` with an escape for each half of it, as JSON has it; 0: none does.
char32_t escaped_pair(std::string_view json, std::size_t at) {
  const auto half = [&](std::size_t from, unsigned first) -> std::optional<unsigned> {
    unsigned value = 0;
    const auto digits = json.substr(std::min(json.size(), from + 2), 4);
    const bool is = json.substr(std::min(json.size(), from), 2) == "\\u" && digits.size() == 4 &&
                    std::from_chars(digits.data(), digits.data() + 4, value, 16).ptr == digits.data() + 4;
    return is && value >> 10 == first >> 10 ? std::optional(value & 0x3FF) : std::nullopt;
  };
  const auto high = half(at, 0xD800), low = half(at + 6, 0xDC00);
  return high && low ? 0x10000 + (*high << 10) + *low : 0;
}

/// JSON with each such pair as the one escape that YAML knows. What that is shorter stands as blanks behind the string,
/// so that all else keeps its place.
std::string joined_pairs(std::string_view json) {
  std::string joined;
  joined.reserve(json.size());
  bool quoted = false;
  std::size_t blanks = 0;
  for (std::size_t i = 0; i < json.size();) {
    if (const auto character = escaped_pair(json, i); character != 0) {
      joined += fmt::format("\\U{:08X}", static_cast<std::uint32_t>(character));
      blanks += 2;
      i += 12;
      continue;
    }
    const std::size_t length = json[i] == '\\' ? 2 : 1;
    joined += json.substr(i, length);
    if (json[i] == '"') {
      quoted = !quoted;
      if (!quoted) joined.append(std::exchange(blanks, 0), ' ');
    }
    i += length;
  }
  return joined;
}

bool has_pairs(std::string_view text) {
  for (auto at = text.find("\\u"); at != std::string_view::npos; at = text.find("\\u", at + 1)) {
    if (escaped_pair(text, at) != 0) return true;
  }
  return false;
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors put it before the text
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

/// What the library is to read: the text itself, or `joined`, which is JSON without pairs.
std::string_view without_pairs(std::string_view text, std::string& joined) {
  if (!has_pairs(text) || !nlohmann::json::accept(text)) return text;
  joined = joined_pairs(text);
  return joined;
}

}  // namespace

bool has_root_key(std::string_view text, std::initializer_list<std::string_view> wanted) {
  std::string joined;
  YamlEvents events(without_pairs(without_mark(text), joined));
  int depth = 0;
  bool is_key = false;  // what comes next in the outermost mapping
  while (events.next() && events.event().type != YAML_STREAM_END_EVENT) {
    const auto& event = events.event();
    const bool opens = event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SEQUENCE_START_EVENT;
    const bool closes = event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
    const bool single = event.type == YAML_SCALAR_EVENT || event.type == YAML_ALIAS_EVENT;
    if (closes) --depth;
    if (depth == 0 && opens) is_key = event.type == YAML_MAPPING_START_EVENT;
    if (depth == 0 && !is_key && (opens || single)) return false;  // no mapping
    if (depth == 1 && (single || closes)) {
      const bool named = is_key && event.type == YAML_SCALAR_EVENT;
      if (named && std::ranges::find(wanted, text_of(event.data.scalar.value)) != wanted.end()) return true;
      is_key = !is_key;
    }
    if (opens) ++depth;
  }
  return false;
}

bool is_null_word(std::string_view text) {
  return text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::variant<YamlNode, YamlError> parse_yaml(std::string_view text, const YamlItemUse& use) {
  text = without_mark(text);
  if (auto error = check_bytes(text)) return *error;
  std::string joined;
  return TreeBuilder(without_pairs(text, joined), use).build();
}

}  // namespace muster
