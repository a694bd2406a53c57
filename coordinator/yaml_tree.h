#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace muster {

/// A YAML document as plain values that know where they stand. Lines and columns count from 1; columns are bytes.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 1;
  int column = 1;
  std::string text;             // of a scalar
  bool plain = false;           // a scalar that is typed by its look (`5`, `true`); quoted ones are strings
  std::vector<YamlNode> keys;   // of a map, in the order of the text; duplicates are kept
  std::vector<YamlNode> items;  // of a sequence, or the map's values beside its keys
};

struct YamlError {
  int line = 1;
  int column = 1;
  std::string message;
};

inline constexpr std::size_t kMaxYamlBytes = 128U << 20;
inline constexpr std::size_t kMaxYamlNodes = 8'000'000;  // what aliases repeat counts again

/// Whether a scalar that is typed by its look is null.
bool is_null_word(std::string_view text);

/// Whether the mapping that a document is has one of these keys. Nothing behind the first of them is looked at, so that
/// it may be no YAML at all.
bool has_root_key(std::string_view text, std::initializer_list<std::string_view> wanted);

/// Takes an item of a list while the text is still being read, so that it need not be kept: a long list takes ten
/// times the memory of its text. The list is the value of the last key of `root`, which has what stands before it.
/// `index`   of the item in its list
/// returns   whether it was taken; otherwise it stays in the document
using YamlItemUse = std::function<bool(const YamlNode& root, std::size_t index, const YamlNode& item)>;

/// Parses one document of YAML or JSON; an empty text is a null node. Aliases become copies of what they name.
/// `use`     for the items of lists right below the outermost mapping, but for lists with an anchor
/// errors   syntax, text that is not UTF-8, a second document, tags other than !!str, the limits above; what `use` has
///          taken by then comes from no document
std::variant<YamlNode, YamlError> parse_yaml(std::string_view text, const YamlItemUse& use = {});

}  // namespace muster
