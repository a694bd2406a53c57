#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/cli/output.h"

namespace muster::cli {
namespace {

/// Whether the text can stand without quotes: it then reads as text to YAML 1.1 and 1.2 parsers alike.
bool bare(std::string_view text) {
  constexpr std::array<std::string_view, 9> kWords{"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  const auto lower = [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); };
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), lower);
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto fine = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || std::string_view("_-./ ").find(c) != std::string_view::npos;
  };
  return !text.empty() && (letter(small.front()) || text.front() == '/') && text.back() != ' ' &&
         std::all_of(small.begin(), small.end(), fine) &&
         std::find(kWords.begin(), kWords.end(), small) == kWords.end();
}

std::string scalar(const Json& value) {
  if (value.is_string() && bare(value.get_ref<const std::string&>())) return value.get<std::string>();
  if (value.is_array()) return "[]";
  if (value.is_object()) return "{}";
  // A JSON string is a double-quoted YAML one; without ASCII-only escapes, as those split characters in two.
  return portable_json(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string key_text(const std::string& key) {
  return scalar(Json(key));
}

/// Whether all of it is ASCII, and no DEL: as most text is, which is looked at many bytes at a time.
bool is_plain(std::string_view text) {
  unsigned char marks = 0;
  for (const char c : text) marks |= static_cast<unsigned char>(c | (c + 1));
  return marks < 0x80;
}

}  // namespace

std::string portable_json(std::string_view json) {
  std::string made;
  append_portable_json(made, json);
  return made;
}

void append_portable_json(std::string& out, std::string_view json) {
  if (is_plain(json)) {
    out += json;
    return;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kOthers{
      {{"\x7f", "\\u007f"},
       {"\xe2\x80\xa8", "\\u2028"},
       {"\xe2\x80\xa9", "\\u2029"},
       {"\xef\xbb\xbf", "\\ufeff"},
       // What turns the direction of what follows: it would show another text than is there.
       {"\xe2\x80\xaa", "\\u202a"},
       {"\xe2\x80\xab", "\\u202b"},
       {"\xe2\x80\xac", "\\u202c"},
       {"\xe2\x80\xad", "\\u202d"},
       {"\xe2\x80\xae", "\\u202e"},
       {"\xe2\x81\xa6", "\\u2066"},
       {"\xe2\x81\xa7", "\\u2067"},
       {"\xe2\x81\xa8", "\\u2068"},
       {"\xe2\x81\xa9", "\\u2069"}}};
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto begins_other = [](char c) { return c == '\x7f' || c == '\xc2' || c == '\xe2' || c == '\xef'; };
  for (std::string_view rest = json; !rest.empty();) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if(rest, begins_other) - rest.begin());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    const auto* const other =
        std::find_if(kOthers.begin(), kOthers.end(), [&](const auto& each) { return rest.starts_with(each.first); });
    if (other != kOthers.end()) {
      out += other->second;
      rest.remove_prefix(other->first.size());
    } else if (rest.size() > 1 && rest[0] == '\xc2' && static_cast<unsigned char>(rest[1]) < 0xa0) {
      const auto second = static_cast<unsigned char>(rest[1]);
      out += {'\\', 'u', '0', '0', kHex[second >> 4U], kHex[second & 15U]};
      rest.remove_prefix(2);
    } else {
      out += rest.substr(0, 1);
      rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
    }
  }
}

std::string to_yaml(const Json& value, std::size_t indent) {
  const std::string blanks(indent, ' ');
  if (value.empty() || value.is_primitive()) return blanks + scalar(value) + "\n";
  std::string out;
  for (auto it = value.begin(); it != value.end(); ++it) {
    const bool flat = it->is_primitive() || it->empty();
    if (value.is_object()) {
      out += blanks + key_text(it.key()) + ":" + (flat ? " " + scalar(*it) + "\n" : "\n" + to_yaml(*it, indent + 2));
    } else {
      const std::string item = flat ? scalar(*it) + "\n" : to_yaml(*it, indent + 2).substr(indent + 2);
      out += blanks + "- " + item;
    }
  }
  return out;
}

}  // namespace muster::cli
