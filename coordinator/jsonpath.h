#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schema/result.h"

namespace simdjson::dom {
class element;
}

namespace muster {

class QueryCompiler;

namespace jsonpath {
struct Query;
}

/// A value inside a JsonDocument; jsonpath_value.h completes it.
using JsonNode = simdjson::dom::element;

/// Levels of arrays and objects that a document may have; deeper ones are refused.
inline constexpr int kMaxJsonDepth = 1024;

/// Nodes that one evaluation looks at unless it is told otherwise: some hundredths of a second.
inline constexpr std::size_t kMaxVisits = 10'000'000;

/// Nodes that the queries for a JSON text of that size may look at as a matter of course: dozens of times all of them,
/// and some milliseconds at most.
constexpr std::size_t usual_visits(std::size_t text_bytes) {
  return 20'000 + std::min<std::size_t>(8 * text_bytes, 400'000);
}

/// What is left of the work that evaluations may do, in nodes looked at; spent once, it stays spent.
class Budget {
 public:
  explicit Budget(std::size_t units) : left_(units) {}

  /// False when `units` are more than what is left.
  bool spend(std::size_t units = 1) {
    exhausted_ = exhausted_ || units > left_;
    left_ -= exhausted_ ? left_ : units;
    return !exhausted_;
  }
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  std::size_t left_;
  bool exhausted_ = false;
};

/// A parsed JSON text, which any number of queries read. One object serves many texts in turn: it keeps its buffers.
/// thread   one writer; queries on the same document may run side by side
class JsonDocument {
 public:
  JsonDocument();
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;

  /// Replaces what the document holds; nodes of the text before die. `text` may be freed after the call.
  /// errors   kMalformed: no JSON, and where it goes wrong; kTooLarge: deeper than kMaxJsonDepth or over 4 GiB.
  ///          The document then holds nothing
  Result<void> parse(std::string_view text);
  /// Frees the buffers that only parse() needs, which are most of a small document.
  void free_parser();

  /// Throws std::logic_error where no text has been parsed: asking is a bug.
  [[nodiscard]] const JsonNode& root() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Match {
  std::string path;   // normalised: $['a'][0]
  std::string value;  // JSON text without white space
  bool operator==(const Match&) const = default;
};

/// A JSONPath query (RFC 9535) with its regular expressions (RFC 9485) compiled. Immutable, cheap to copy.
/// thread   any
class JsonPath {
 public:
  /// As one of the queries that `compiler` compiles, which bounds their regular expressions; without one, for itself.
  /// errors   kMalformed: not well-formed or not valid; the message begins with `column N`, counted from 1 in
  /// characters.
  ///          kTooLarge: over 64 KiB, 1024 segments or 64 levels of brackets and parentheses; or
  ///          regular expressions beyond what QueryCompiler compiles
  static Result<JsonPath> parse(std::string_view selector, QueryCompiler& compiler);
  static Result<JsonPath> parse(std::string_view selector);

  [[nodiscard]] const std::string& text() const { return text_; }

  /// All matches in the order that the RFC asks for; object members come in the order of the text.
  /// errors   kTooLarge: more than `max_visits` nodes were looked at
  [[nodiscard]] Result<std::vector<Match>> find(const JsonDocument& document,
                                                std::size_t max_visits = kMaxVisits) const;

  /// Whether some match satisfies `wanted`; stops at the first one and builds no paths.
  /// errors   kTooLarge: more nodes were to be looked at than `budget` has left, kMaxVisits without one
  [[nodiscard]] Result<bool> any(const JsonDocument& document, const std::function<bool(const JsonNode&)>& wanted,
                                 Budget& budget) const;
  [[nodiscard]] Result<bool> any(const JsonDocument& document,
                                 const std::function<bool(const JsonNode&)>& wanted) const;
  [[nodiscard]] Result<bool> any(const JsonDocument& document) const;

 private:
  JsonPath(std::string text, std::shared_ptr<const jsonpath::Query> query)
      : text_(std::move(text)), query_(std::move(query)) {}

  std::string text_;
  std::shared_ptr<const jsonpath::Query> query_;
};

}  // namespace muster
