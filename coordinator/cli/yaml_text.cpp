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

/// What YAML takes for a line break, a mark, or nothing that may stand in a file: in UTF-8, and escaped.
std::string escape_unprintable(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOthers{
      {{"\x7f", "\\u007f"}, {"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}, {"\xef\xbb\xbf", "\\ufeff"}}};
  for (const auto& [raw, escaped] : kOthers) {
    for (auto at = text.find(raw); at != std::string::npos; at = text.find(raw, at + escaped.size())) {
      text.replace(at, raw.size(), escaped);
    }
  }
  for (auto at = text.find('\xc2'); at != std::string::npos; at = text.find('\xc2', at + 1)) {
    const auto second = static_cast<unsigned char>(text[at + 1]);
    constexpr std::string_view kHex = "0123456789abcdef";
    if (second < 0xa0) text.replace(at, 2, std::string("\\u00") + kHex[second >> 4U] + kHex[second & 15U]);
  }
  return text;
}

std::string scalar(const Json& value) {
  if (value.is_string() && bare(value.get_ref<const std::string&>())) return value.get<std::string>();
  if (value.is_array()) return "[]";
  if (value.is_object()) return "{}";
  // A JSON string is a double-quoted YAML one; without ASCII-only escapes, as those split characters in two.
  return escape_unprintable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string key_text(const std::string& key) {
  return scalar(Json(key));
}

}  // namespace

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
