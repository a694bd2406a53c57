#include "coordinator/jsonpath_regexp.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>

namespace muster::jsonpath {
namespace {

constexpr int kMaxGroups = 100;  // nested ones

// RE2's \p{C} lacks the unassigned code points (Cn), which is why C and Cn are told by what they are not.
constexpr std::string_view kAssigned = "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Z}";
constexpr std::string_view kOther = "\\p{C}";

bool is_category(std::string_view name) {
  constexpr std::string_view kSubclasses[] = {"Llmotu", "Mcen", "Ndlo", "Pcdefios", "Zlps", "Sckmo", "Ccfno"};
  for (const std::string_view row : kSubclasses) {
    if (name.empty() || name[0] != row[0]) continue;
    return name.size() == 1 || (name.size() == 2 && row.substr(1).find(name[1]) != std::string_view::npos);
  }
  return false;
}

/// Checks a pattern against the grammar and writes it in RE2's syntax. Each function consumes one production and says
/// whether it was there.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  bool run() { return alternatives() && at_end(); }
  [[nodiscard]] const std::string& re2() const { return out_; }

 private:
  [[nodiscard]] bool at_end() const { return pos_ == in_.size(); }
  [[nodiscard]] bool next_is(char c) const { return !at_end() && in_[pos_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++pos_;
    return true;
  }
  bool copy(char c) {
    if (!take(c)) return false;
    out_ += c;
    return true;
  }

  bool alternatives() {
    do {
      while (!at_end() && !next_is('|') && !next_is(')')) {
        if (!piece()) return false;
      }
    } while (copy('|'));
    return true;
  }

  bool piece() {
    if (!atom()) return false;
    if (copy('*') || copy('+') || copy('?')) return true;
    return !copy('{') || range_quantifier();
  }

  bool range_quantifier() {
    if (!digits()) return false;
    if (copy(',')) digits();
    return copy('}');
  }

  bool digits() {
    const std::size_t start = pos_;
    while (!at_end() && in_[pos_] >= '0' && in_[pos_] <= '9') out_ += in_[pos_++];
    return pos_ > start;
  }

  bool atom() {
    if (take('(')) return group();
    if (take('[')) return char_class();
    if (take('.')) {
      out_ += "[^\\n\\r]";
      return true;
    }
    if (take('\\')) return escape();
    if (std::string_view("*+?]{|})").find(in_[pos_]) != std::string_view::npos) return false;
    return plain_char();
  }

  bool plain_char() {
    if (take('\0')) {
      out_ += "\\x00";
      return true;
    }
    do {
      out_ += in_[pos_++];
    } while (!at_end() && (in_[pos_] & '\xc0') == '\x80');
    return true;
  }

  bool group() {
    if (++groups_ > kMaxGroups) return false;
    out_ += "(?:";
    const bool closed = alternatives() && copy(')');
    --groups_;
    return closed;
  }

  bool escape() {
    if (at_end()) return false;
    if (take('p')) return category(Sense::kIs, Place::kAtom);
    if (take('P')) return category(Sense::kIsNot, Place::kAtom);
    return single_escape();
  }

  bool single_escape() {
    if (at_end() || std::string_view("()*+-.?[\\]^nrt{|}").find(in_[pos_]) == std::string_view::npos) return false;
    out_ += '\\';
    out_ += in_[pos_++];
    return true;
  }

  bool char_class() {
    out_ += '[';
    copy('^');
    if (take('-')) {
      out_ += "\\-";
    } else if (!class_member()) {
      return false;
    }
    while (!at_end() && !next_is(']')) {
      if (take('-')) {
        out_ += "\\-";
        break;  // only the last one may be a plain dash
      }
      if (!class_member()) return false;
    }
    return copy(']');
  }

  bool class_member() {
    if (in_.substr(pos_).starts_with("\\p") || in_.substr(pos_).starts_with("\\P")) {
      pos_ += 2;
      return category(in_[pos_ - 1] == 'p' ? Sense::kIs : Sense::kIsNot, Place::kClass);
    }
    if (!class_char()) return false;
    if (!next_is('-') || in_.substr(pos_).starts_with("-]")) return true;
    return copy('-') && class_char();
  }

  bool class_char() {
    if (take('\\')) return single_escape();
    if (at_end() || std::string_view("-[]").find(in_[pos_]) != std::string_view::npos) return false;
    if (next_is('^')) out_ += '\\';
    return plain_char();
  }

  enum class Sense { kIs, kIsNot };
  enum class Place { kAtom, kClass };

  bool category(Sense sense, Place place) {
    const std::size_t end = in_.find('}', pos_);
    if (!take('{') || end == std::string_view::npos) return false;
    const std::string name(in_.substr(pos_, end - pos_));
    pos_ = end + 1;
    if (!is_category(name)) return false;
    if (name != "C" && name != "Cn") {
      out_ += (sense == Sense::kIs ? "\\p{" : "\\P{") + name + '}';
      return true;
    }
    const std::string rest = std::string(kAssigned) + std::string(name == "Cn" ? kOther : "");
    if (place == Place::kAtom) {
      out_ += (sense == Sense::kIs ? "[^" : "[") + rest + ']';
      return true;
    }
    if (sense == Sense::kIsNot) {
      out_ += rest;
      return true;
    }
    out_ += kOther;
    return name == "C";  // without the unassigned ones, which RE2 cannot name inside brackets
  }

  std::string_view in_;
  std::size_t pos_ = 0;
  std::string out_;
  int groups_ = 0;
};

}  // namespace

Result<std::shared_ptr<const re2::RE2>> compile_iregexp(std::string_view pattern, QueryCompiler& compiler) {
  if (pattern.size() > kMaxRegexBytes) return compiler.regex(pattern);  // which refuses it
  Translator translator(pattern);
  if (!translator.run()) return std::shared_ptr<const re2::RE2>();
  auto compiled = compiler.regex(translator.re2());
  if (!compiled && compiled.error().code == Errc::kMalformed) return std::shared_ptr<const re2::RE2>();
  return compiled;
}

std::size_t match_cost(const re2::RE2& pattern, std::size_t text_bytes) {
  const auto ways = std::min(static_cast<std::size_t>(pattern.ProgramSize()), text_bytes);
  return text_bytes / 16 + text_bytes * ways / 8;
}

}  // namespace muster::jsonpath
