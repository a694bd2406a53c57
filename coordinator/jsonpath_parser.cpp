#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "coordinator/jsonpath_ast.h"
#include "coordinator/jsonpath_regexp.h"

namespace muster::jsonpath {
namespace {

constexpr std::size_t kMaxSelectorBytes = 64 * 1024;
constexpr std::size_t kMaxSegments = 1024;
constexpr int kMaxNesting = 64;
constexpr std::int64_t kMaxInteger = (std::int64_t{1} << 53) - 1;  // I-JSON's exact range

enum class Parameter : std::uint8_t { kNone, kValue, kNodes };
enum class Returns : std::uint8_t { kValue, kLogical };

struct Signature {
  std::string_view name;
  Function function;
  std::array<Parameter, 2> parameters;
  Returns returns;
};

constexpr Signature kSignatures[] = {
    {"length", Function::kLength, {Parameter::kValue, Parameter::kNone}, Returns::kValue},
    {"count", Function::kCount, {Parameter::kNodes, Parameter::kNone}, Returns::kValue},
    {"value", Function::kValue, {Parameter::kNodes, Parameter::kNone}, Returns::kValue},
    {"match", Function::kMatch, {Parameter::kValue, Parameter::kValue}, Returns::kLogical},
    {"search", Function::kSearch, {Parameter::kValue, Parameter::kValue}, Returns::kLogical},
};

const Signature& signature_of(Function function) {
  return *std::find_if(std::begin(kSignatures), std::end(kSignatures),
                       [&](const Signature& one) { return one.function == function; });
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_name_first(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_' || (c & '\x80') != 0;
}
bool is_name_char(char c) {
  return is_name_first(c) || is_digit(c);
}
bool is_continuation(char c) {
  return (c & '\xc0') == '\x80';
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

/// Recursive descent over the RFC's grammar: a function per production, which consumes it and returns true, or
/// records the first mistake and returns false.
class Parser {
 public:
  Parser(std::string_view text, QueryCompiler& compiler) : text_(text), compiler_(compiler) {}

  Result<Query> run() {
    Query query;
    if (!take("$")) {
      fail("a JSONPath begins with $");
    } else if (segments(query) && pos_ < text_.size()) {
      fail(is_blank(peek()) ? "blank space at the end" : "expected a segment: '.', '..' or '['");
    }
    if (error_) return *error_;
    return query;
  }

 private:
  [[nodiscard]] char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  bool take(std::string_view token) {
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    return true;
  }

  void skip_blanks() {
    while (is_blank(peek())) ++pos_;
  }

  /// Takes `token` and the blanks before it, or nothing.
  bool take_after_blanks(std::string_view token) {
    const std::size_t before = pos_;
    skip_blanks();
    if (take(token)) return true;
    pos_ = before;
    return false;
  }

  bool fail(const std::string& what) { return fail_at(pos_, what); }

  bool fail_at(std::size_t pos, const std::string& what, Errc code = Errc::kMalformed) {
    if (error_) return false;
    const auto characters_before = std::count_if(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(pos),
                                                 [](char c) { return !is_continuation(c); });
    error_ = Error{code, "column " + std::to_string(characters_before + 1) + ": " + what};
    return false;
  }

  /// Counts the levels that the parser, and later the evaluation, recurses through.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) { ++parser_.nesting_; }
    ~Level() { --parser_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    [[nodiscard]] bool fits() const {
      return parser_.nesting_ <= kMaxNesting ||
             parser_.fail_at(parser_.pos_, "nested deeper than " + std::to_string(kMaxNesting) + " levels",
                             Errc::kTooLarge);
    }

   private:
    Parser& parser_;
  };

  // ---- segments and selectors

  bool segments(Query& query) {
    for (;;) {
      const std::size_t before = pos_;
      skip_blanks();
      if (peek() != '.' && peek() != '[') {
        pos_ = before;
        return true;
      }
      if (++segments_ > kMaxSegments) return fail_at(pos_, "more than 1024 segments", Errc::kTooLarge);
      query.segments.emplace_back();
      if (!segment(query, query.segments.back())) return false;
    }
  }

  bool segment(Query& query, Segment& out) {
    if (take("..")) {
      out.reach = Reach::kDescendants;
      query.singular = false;
      return peek() == '[' ? bracketed(query, out) : shorthand(query, out);
    }
    return take(".") ? shorthand(query, out) : bracketed(query, out);
  }

  bool shorthand(Query& query, Segment& out) {
    if (take("*")) {
      query.singular = false;
      out.selectors.emplace_back(Wildcard{});
      return true;
    }
    const std::size_t start = pos_;
    if (!is_name_first(peek())) return fail("expected a name or '*'");
    while (is_name_char(peek())) ++pos_;
    out.selectors.emplace_back(Name{std::string(text_.substr(start, pos_ - start))});
    return true;
  }

  bool bracketed(Query& query, Segment& out) {
    const Level level(*this);
    if (!level.fits()) return false;
    const std::size_t start = ++pos_;
    do {
      skip_blanks();
      out.selectors.emplace_back();
      if (!selector(out.selectors.back())) return false;
    } while (take_after_blanks(","));
    if (!take_after_blanks("]")) return fail("expected ',' or ']'");
    // The grammar of singular queries, unlike that of others, has no blanks inside brackets.
    const bool blanks = is_blank(text_[start]) || is_blank(text_[pos_ - 2]);
    const Selector& first = out.selectors.front();
    if (out.selectors.size() > 1 || blanks ||
        !(std::holds_alternative<Name>(first) || std::holds_alternative<Index>(first))) {
      query.singular = false;
    }
    return true;
  }

  bool selector(Selector& out) {
    if (peek() == '"' || peek() == '\'') return string(out.emplace<Name>().name);
    if (take("*")) {
      out = Wildcard{};
      return true;
    }
    if (take("?")) {
      skip_blanks();
      auto condition = std::make_shared<Expression>();
      if (!logical_or(*condition)) return false;
      out = Filter{std::move(condition)};
      return true;
    }
    return index_or_slice(out);
  }

  [[nodiscard]] bool at_integer() const { return peek() == '-' || is_digit(peek()); }

  bool index_or_slice(Selector& out) {
    Slice slice;
    if (at_integer() && !integer(slice.start)) return false;
    if (!take_after_blanks(":")) {
      if (!slice.start) return fail("expected a selector: a quoted name, '*', an integer, a slice or '?'");
      out = Index{*slice.start};
      return true;
    }
    skip_blanks();
    if (at_integer() && !integer(slice.end)) return false;
    if (take_after_blanks(":")) {
      skip_blanks();
      std::optional<std::int64_t> step;
      if (at_integer() && !integer(step)) return false;
      slice.step = step.value_or(1);
    }
    out = slice;
    return true;
  }

  bool integer(std::optional<std::int64_t>& out) {
    const std::size_t start = pos_;
    if (!integer_digits()) return false;
    const std::string_view digits = text_.substr(start, pos_ - start);
    if (digits == "-0") return fail_at(start, "-0 is no integer");
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(digits.begin(), digits.end(), value);
    if (failure != std::errc{} || value > kMaxInteger || value < -kMaxInteger) {
      return fail_at(start, "an integer lies between -(2^53-1) and 2^53-1");
    }
    out = value;
    return true;
  }

  bool integer_digits() {
    take("-");
    if (!is_digit(peek())) return fail("expected a digit");
    if (take("0")) return !is_digit(peek()) || fail("a number has no leading zero");
    while (is_digit(peek())) ++pos_;
    return true;
  }

  bool string(std::string& out) {
    const char quote = text_[pos_++];
    for (;;) {
      if (pos_ == text_.size()) return fail("the string has no end");
      const char c = text_[pos_];
      if (static_cast<unsigned char>(c) < 0x20) return fail("a control character in a string is written as an escape");
      ++pos_;
      if (c == quote) return true;
      if (c != '\\') {
        out += c;
      } else if (!escape(quote, out)) {
        return false;
      }
    }
  }

  bool escape(char quote, std::string& out) {
    const std::size_t start = pos_ - 1;
    constexpr std::string_view kNames = "bfnrt/\\", kMeanings = "\b\f\n\r\t/\\";
    const char c = peek();
    ++pos_;
    if (c == 'u') return unicode_escape(start, out);
    const std::size_t known = kNames.find(c);
    if (c != quote && known == std::string_view::npos) return fail_at(start, "no such escape in a string");
    out += c == quote ? quote : kMeanings[known];
    return true;
  }

  bool unicode_escape(std::size_t start, std::string& out) {
    const auto surrogate = [&] { return fail_at(start, "a surrogate stands alone"); };
    std::uint32_t code = 0;
    if (!hex4(code)) return false;
    if (code >= 0xdc00 && code < 0xe000) return surrogate();
    if (code >= 0xd800 && code < 0xdc00) {
      std::uint32_t low = 0;
      if (!take("\\u")) return surrogate();
      if (!hex4(low)) return false;
      if (low < 0xdc00 || low >= 0xe000) return surrogate();
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, code);
    return true;
  }

  bool hex4(std::uint32_t& code) {
    const std::string_view digits = text_.substr(pos_, 4);
    const auto [end, failure] = std::from_chars(digits.begin(), digits.end(), code, 16);
    if (digits.size() < 4 || failure != std::errc{} || end != digits.end()) return fail("expected four hex digits");
    pos_ += 4;
    return true;
  }

  // ---- filter expressions

  bool logical_or(Expression& out) { return chain<Or>("||", out, &Parser::logical_and); }
  bool logical_and(Expression& out) { return chain<And>("&&", out, &Parser::basic); }

  template <typename Node>
  bool chain(std::string_view token, Expression& out, bool (Parser::*production)(Expression&)) {
    std::vector<Expression> operands;
    do {
      skip_blanks();
      operands.emplace_back();
      if (!(this->*production)(operands.back())) return false;
    } while (take_after_blanks(token));
    if (operands.size() == 1) {
      Expression only = std::move(operands.front());
      out = std::move(only);
    } else {
      out.node = Node{std::move(operands)};
    }
    return true;
  }

  bool basic(Expression& out) {
    if (take("!")) {
      skip_blanks();
      auto negated = std::make_shared<Expression>();
      if (peek() == '(' ? !parenthesised(*negated) : !test(*negated)) return false;
      out.node = Not{std::move(negated)};
      return true;
    }
    if (peek() == '(') return parenthesised(out);
    const std::size_t start = pos_;
    Comparison comparison;
    if (!operand(comparison.left)) return false;
    if (!comparator(comparison.comparator)) return as_test(start, std::move(comparison.left), out);
    if (!comparable(start, comparison.left)) return false;
    skip_blanks();
    const std::size_t right = pos_;
    if (!operand(comparison.right) || !comparable(right, comparison.right)) return false;
    out.node = std::move(comparison);
    return true;
  }

  bool parenthesised(Expression& out) {
    const Level level(*this);
    if (!level.fits()) return false;
    ++pos_;
    skip_blanks();
    return logical_or(out) && (take_after_blanks(")") || fail("expected ')'"));
  }

  bool test(Expression& out) {
    const std::size_t start = pos_;
    Operand subject;
    return operand(subject) && as_test(start, std::move(subject), out);
  }

  bool as_test(std::size_t start, Operand subject, Expression& out) {
    if (auto* query = std::get_if<Query>(&subject.value)) {
      out.node = std::move(*query);
      return true;
    }
    auto* call = std::get_if<Call>(&subject.value);
    if (call == nullptr) return fail_at(start, "a literal has to be compared");
    const Signature& signature = signature_of(call->function);
    if (signature.returns != Returns::kLogical) {
      return fail_at(start, "the result of " + std::string(signature.name) + "() has to be compared");
    }
    out.node = std::move(*call);
    return true;
  }

  bool comparator(Comparator& out) {
    static constexpr std::pair<std::string_view, Comparator> kComparators[] = {
        {"==", Comparator::kEqual},          {"!=", Comparator::kNotEqual}, {"<=", Comparator::kLessOrEqual},
        {">=", Comparator::kGreaterOrEqual}, {"<", Comparator::kLess},      {">", Comparator::kGreater}};
    for (const auto& [token, meaning] : kComparators) {
      if (!take_after_blanks(token)) continue;
      out = meaning;
      return true;
    }
    return false;
  }

  /// Checks that an operand has a value: what comparisons and parameters of ValueType take.
  bool comparable(std::size_t start, const Operand& side) {
    if (const auto* query = std::get_if<Query>(&side.value); query != nullptr && !query->singular) {
      return fail_at(start,
                     "only a singular query has a value: one name or index in each segment, no blanks in brackets");
    }
    if (const auto* call = std::get_if<Call>(&side.value)) {
      const Signature& signature = signature_of(call->function);
      if (signature.returns != Returns::kValue) {
        return fail_at(start, "the result of " + std::string(signature.name) + "() is no value");
      }
    }
    return true;
  }

  bool operand(Operand& out) {
    if (peek() == '"' || peek() == '\'') return string(literal(out).emplace<std::string>());
    if (at_integer()) return number(literal(out).emplace<long double>());
    if (peek() == '@' || peek() == '$') {
      Query& query = out.value.emplace<Query>();
      query.start = take("$") ? Start::kRoot : Start::kCurrent;
      if (query.start == Start::kCurrent) ++pos_;
      return segments(query);
    }
    const std::size_t start = pos_;
    if (is_lower(peek())) {
      while (is_lower(peek()) || is_digit(peek()) || peek() == '_') ++pos_;
    }
    const std::string_view word = text_.substr(start, pos_ - start);
    if (peek() == '(' && !word.empty()) return call(start, word, out.value.emplace<Call>());
    if (word == "null") {
      literal(out) = nullptr;
    } else if (word == "true" || word == "false") {
      literal(out) = word == "true";
    } else {
      return fail_at(start, "expected a query, a literal, a function, '!' or '('");
    }
    return true;
  }

  static Literal& literal(Operand& out) { return out.value.emplace<Literal>(); }

  bool number(long double& out) {
    const std::size_t start = pos_;
    if (!integer_digits()) return false;
    bool whole = true;
    if (take(".")) {
      whole = false;
      if (!digits()) return false;
    }
    if (take("e") || take("E")) {
      whole = false;
      if (!take("-")) take("+");
      if (!digits()) return false;
    }
    const std::string text(text_.substr(start, pos_ - start));
    out = whole ? whole_number(text) : std::strtod(text.c_str(), nullptr);
    return true;
  }

  bool digits() {
    if (!is_digit(peek())) return fail("expected a digit");
    while (is_digit(peek())) ++pos_;
    return true;
  }

  /// Exact where a document's number would be: within 64 bits.
  static long double whole_number(const std::string& text) {
    std::int64_t integer = 0;
    std::uint64_t natural = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, integer).ec == std::errc{}) return static_cast<long double>(integer);
    if (std::from_chars(text.data(), end, natural).ec == std::errc{}) return static_cast<long double>(natural);
    return std::strtod(text.c_str(), nullptr);
  }

  // ---- functions

  bool call(std::size_t start, std::string_view name, Call& out) {
    const Level level(*this);
    if (!level.fits()) return false;
    const auto* known = std::find_if(std::begin(kSignatures), std::end(kSignatures),
                                     [&](const Signature& one) { return one.name == name; });
    if (known == std::end(kSignatures)) return fail_at(start, "no function " + std::string(name) + "()");
    out.function = known->function;
    ++pos_;
    skip_blanks();
    if (peek() != ')') {
      do {
        if (!argument(*known, out)) return false;
      } while (take_after_blanks(","));
    }
    const bool complete = out.arguments.size() == 2 || known->parameters[out.arguments.size()] == Parameter::kNone;
    if (!take_after_blanks(")")) return fail("expected ',' or ')'");
    if (!complete) return fail_at(start, std::string(name) + "() takes more arguments");
    return known->returns != Returns::kLogical || compile_pattern(start, out);
  }

  bool argument(const Signature& signature, Call& out) {
    const std::string name(signature.name);
    skip_blanks();
    const std::size_t start = pos_;
    const std::size_t position = out.arguments.size();
    if (position == 2 || signature.parameters[position] == Parameter::kNone) {
      return fail(name + "() takes fewer arguments");
    }
    Operand& added = out.arguments.emplace_back();
    if (!operand(added)) return false;
    if (signature.parameters[position] == Parameter::kValue) return comparable(start, added);
    return std::holds_alternative<Query>(added.value) || fail_at(start, name + "() takes a query");
  }

  bool compile_pattern(std::size_t start, Call& call) {
    const auto* pattern = std::get_if<Literal>(&call.arguments[1].value);
    if (pattern == nullptr) return true;
    call.literal_pattern = true;
    const auto* text = std::get_if<std::string>(pattern);
    if (text == nullptr) return true;
    auto compiled = compile_iregexp(*text, compiler_);
    if (!compiled) return fail_at(start, compiled.error().message, compiled.error().code);
    call.pattern = std::move(*compiled);
    return true;
  }

  std::string_view text_;
  QueryCompiler& compiler_;
  std::size_t pos_ = 0;
  std::size_t segments_ = 0;
  int nesting_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Query> parse_query(std::string_view selector, QueryCompiler& compiler) {
  if (selector.size() > kMaxSelectorBytes) {
    return Error{Errc::kTooLarge, "column 1: a JSONPath has at most " + std::to_string(kMaxSelectorBytes) + " bytes"};
  }
  if (!simdjson::validate_utf8(selector)) return Error{Errc::kMalformed, "column 1: not UTF-8"};
  return Parser(selector, compiler).run();
}

}  // namespace muster::jsonpath
