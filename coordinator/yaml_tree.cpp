#include "coordinator/yaml_tree.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "schema/utf8.h"

namespace muster {
namespace {

/// Builds the tree from the parser's events. The library's own tree forgets what was quoted and shares nodes between
/// aliases, so that a few lines can stand for billions.
class TreeBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) fail(mark, "a second document begins here: a file holds one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(node(YamlNode::Kind::kNull, mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) fail(mark, "an alias inside of what it names");
    count(it->second.second, mark);
    YamlNode copy = it->second.first;
    copy.line = mark.line + 1;
    copy.column = mark.column + 1;
    add(std::move(copy), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:str") fail(mark, "the tag " + tag + " is not supported");
    YamlNode scalar = node(YamlNode::Kind::kScalar, mark);
    scalar.text = text;
    scalar.plain = tag == "?";
    add(std::move(scalar), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(YamlNode::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  YamlNode take() { return std::move(root_); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    std::size_t first;  // nodes before this one
  };

  [[noreturn]] static void fail(const YAML::Mark& mark, const std::string& message) {
    throw YAML::ParserException(mark, message);
  }

  static YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode made;
    made.kind = kind;
    made.line = mark.line + 1;
    made.column = mark.column + 1;
    return made;
  }

  void count(std::size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxYamlNodes) fail(mark, "more than " + std::to_string(kMaxYamlNodes) + " values");
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (tag != "?" && tag != "!") fail(mark, "the tag " + tag + " is not supported");
    open_.push_back({node(kind, mark), anchor, nodes_});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor, nodes_ - done.first);
  }

  /// `below`   nodes in it, without itself
  void add(YamlNode child, YAML::anchor_t anchor, std::size_t below = 0) {
    count(1, YAML::Mark::null_mark());
    if (anchor != 0) anchors_[anchor] = {child, below + 1};
    if (open_.empty()) {
      root_ = std::move(child);
      return;
    }
    YamlNode& parent = open_.back().node;
    const bool is_key = parent.kind == YamlNode::Kind::kMap && parent.keys.size() == parent.items.size();
    if (!is_key && child.kind == YamlNode::Kind::kNull && parent.kind == YamlNode::Kind::kMap &&
        child.line != parent.keys.back().line) {  // `key:` without a value: the parser is already past it
      child.line = parent.keys.back().line;
      child.column = parent.keys.back().column;
    }
    (is_key ? parent.keys : parent.items).push_back(std::move(child));
  }

  YamlNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::pair<YamlNode, std::size_t>> anchors_;  // with the number of nodes
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

bool control_character(char c) {
  return (c >= '\0' && c < ' ' && c != '\t' && c != '\r') || c == '\x7f';
}

std::optional<YamlError> check_line(std::string_view line, int number) {
  for (std::size_t i = 0; i < line.size();) {
    std::size_t length = 1;
    while (length <= 4 && !valid_utf8(line.substr(i, length))) ++length;
    const int column = static_cast<int>(i) + 1;
    if (length > 4) return YamlError{number, column, "not UTF-8 text"};
    if (control_character(line[i])) return YamlError{number, column, "a control character"};
    i += length;
  }
  return std::nullopt;
}

std::optional<YamlError> check_bytes(std::string_view text) {
  if (text.size() > kMaxYamlBytes) return YamlError{1, 1, "larger than 40 MiB"};
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (auto error = check_line(line, number)) return error;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

std::variant<YamlNode, YamlError> parse_yaml(std::string_view text) {
  if (auto error = check_bytes(text)) return *error;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const YAML::Exception& error) {  // how the library, and TreeBuilder with it, reports what is wrong
    const auto from_one = [](int zero_based) { return std::max(zero_based, 0) + 1; };
    return YamlError{from_one(error.mark.line), from_one(error.mark.column), error.msg};
  }
}

}  // namespace muster
