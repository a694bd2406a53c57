#include "coordinator/canonical.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "schema/nesting.h"

namespace muster {
namespace {

constexpr int kMaxScanDepth = 64;  // of our own

/// One pass over the text; every member returns false at the first thing that is not canonical.
class CanonicalScanner {
 public:
  explicit CanonicalScanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool whole_object() { return peek() == '{' && object(0) && at_ == end_; }

 private:
  [[nodiscard]] char peek() const { return at_ < end_ ? *at_ : '\0'; }
  bool take(char expected) {
    if (peek() != expected) return false;
    ++at_;
    return true;
  }
  bool literal(std::string_view word) {
    if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool value(int depth) {
    switch (peek()) {
      case '{':
        return object(depth + 1);
      case '[':
        return array(depth + 1);
      case '"':
        return string();
      case 't':
        return literal("true");
      case 'f':
        return literal("false");
      case 'n':
        return literal("null");
      default:
        return integer();
    }
  }

  bool object(int depth) {
    if (depth > kMaxScanDepth || !take('{')) return false;
    if (take('}')) return true;
    std::string_view before;
    for (bool first = true;; first = false) {
      const char* begin = at_ + 1;
      if (!string()) return false;
      const std::string_view key(begin, static_cast<std::size_t>(at_ - 1 - begin));
      // An escape would make the order of the bytes differ from the order of the keys.
      if (key.find('\\') != std::string_view::npos || (!first && key <= before)) return false;
      before = key;
      if (!take(':') || !value(depth)) return false;
      if (take('}')) return true;
      if (!take(',')) return false;
    }
  }

  bool array(int depth) {
    if (depth > kMaxScanDepth || !take('[')) return false;
    if (take(']')) return true;
    for (;;) {
      if (!value(depth)) return false;
      if (take(']')) return true;
      if (!take(',')) return false;
    }
  }

  bool string() {
    if (!take('"')) return false;
    while (at_ < end_) {
      const char c = *at_++;
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\') {
        const char escaped = peek();
        if (escaped != '"' && escaped != '\\' && escaped != 'b' && escaped != 'f' && escaped != 'n' && escaped != 'r' &&
            escaped != 't') {
          return false;
        }
        ++at_;
      }
    }
    return false;
  }

  bool integer() {
    const bool negative = take('-');
    const char* begin = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    const auto digits = at_ - begin;
    if (digits == 0 || digits > 18) return false;
    if (*begin == '0' && (digits > 1 || negative)) return false;
    const char next = peek();
    return next != '.' && next != 'e' && next != 'E';
  }

  const char* at_;
  const char* end_;
};

}  // namespace

bool is_canonical_object(std::string_view text) {
  return CanonicalScanner(text).whole_object();
}

Result<JsonText> canonical_object(std::string_view text) {
  if (nested_too_deep(text)) {
    return Error{Errc::kMalformed, "nested more than " + std::to_string(kMaxNesting) + " levels deep"};
  }
  try {
    const auto json = nlohmann::json::parse(text);
    if (!json.is_object()) return Error{Errc::kMalformed, std::string("not an object but ") + json.type_name()};
    return json.dump();
  } catch (const std::exception& e) {  // the library reports bad text by exception; here it is an expected outcome
    return Error{Errc::kMalformed, e.what()};
  }
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr std::array<char, 16> kHex = {'0', '1', '2', '3', '4', '5', '6', '7',
                                                '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; };
  out += '"';
  for (auto rest = text; !rest.empty();) {
    const auto end = std::ranges::find_if_not(rest, plain);
    out.append(rest.begin(), end);
    if (end == rest.end()) break;
    switch (const char c = *end) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[static_cast<unsigned char>(c) >> 4];
        out += kHex[c & 15];
    }
    rest = {end + 1, rest.end()};
  }
  out += '"';
}

}  // namespace muster
