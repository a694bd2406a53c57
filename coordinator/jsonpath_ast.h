#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schema/result.h"

namespace re2 {
class RE2;
}

namespace muster {
class QueryCompiler;
}

/// What a JSONPath says, as plain values; the words are those of RFC 9535.
namespace muster::jsonpath {

struct Expression;

struct Name {
  std::string name;
};
struct Wildcard {};
struct Index {
  std::int64_t index = 0;
};
struct Slice {
  std::optional<std::int64_t> start, end;
  std::int64_t step = 1;
};
struct Filter {
  std::shared_ptr<const Expression> condition;
};
using Selector = std::variant<Name, Wildcard, Index, Slice, Filter>;

enum class Reach : std::uint8_t { kChildren, kDescendants };

struct Segment {
  Reach reach = Reach::kChildren;
  std::vector<Selector> selectors;
};

enum class Start : std::uint8_t { kRoot, kCurrent };  // $ or @

struct Query {
  Start start = Start::kRoot;
  std::vector<Segment> segments;
  bool singular = true;  // yields one node at most, by the grammar's `singular-query`
};

using Literal = std::variant<std::nullptr_t, bool, long double, std::string>;

enum class Function : std::uint8_t { kLength, kCount, kValue, kMatch, kSearch };

struct Operand;

struct Call {
  Function function = Function::kLength;
  std::vector<Operand> arguments;
  bool literal_pattern = false;             // of match and search: `pattern` is the second argument, compiled
  std::shared_ptr<const re2::RE2> pattern;  // null: not an I-Regexp, nothing matches
};

struct Operand {
  std::variant<Literal, Query, Call> value;
};

enum class Comparator : std::uint8_t { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

struct Comparison {
  Operand left;
  Comparator comparator = Comparator::kEqual;
  Operand right;
};
struct Or {
  std::vector<Expression> operands;
};
struct And {
  std::vector<Expression> operands;
};
struct Not {
  std::shared_ptr<const Expression> operand;
};

/// A Query stands for "selects something", a Call for a function of logical type.
struct Expression {
  std::variant<Or, And, Not, Comparison, Query, Call> node;
};

/// Parses by the RFC's grammar and checks that functions are well-typed. Errors as of JsonPath::parse.
Result<Query> parse_query(std::string_view selector, QueryCompiler& compiler);

}  // namespace muster::jsonpath
