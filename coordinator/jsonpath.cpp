#include "coordinator/jsonpath.h"

#include <re2/re2.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "coordinator/jsonpath_ast.h"
#include "coordinator/jsonpath_regexp.h"
#include "coordinator/jsonpath_value.h"
#include "coordinator/query_compiler.h"

namespace muster {
namespace jsonpath {
namespace {

using simdjson::dom::element_type;

enum class Flow : bool { kContinue, kStop };

/// What an evaluation remembers of the way to a node: nothing,
struct NoTrace {
  [[nodiscard]] NoTrace member(std::string_view) const { return {}; }
  [[nodiscard]] NoTrace element(std::size_t) const { return {}; }
};

/// or its steps, from which the normalised path is written.
struct Step {
  const Step* parent = nullptr;
  std::optional<std::string_view> name;  // none: an array's element
  std::size_t index = 0;
};

struct PathTrace {
  std::deque<Step>* steps;
  const Step* last = nullptr;

  [[nodiscard]] PathTrace member(std::string_view name) const {
    return {steps, &steps->emplace_back(Step{last, name})};
  }
  [[nodiscard]] PathTrace element(std::size_t index) const {
    return {steps, &steps->emplace_back(Step{last, std::nullopt, index})};
  }
};

void append_name(std::string& out, std::string_view name) {
  constexpr std::string_view kEscaped = "\b\t\n\f\r'\\", kLetters = "btnfr'\\";
  out += "['";
  for (const char c : name) {
    if (const std::size_t known = kEscaped.find(c); known != std::string_view::npos) {
      out += '\\';
      out += kLetters[known];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += c < 0x10 ? "\\u000" : "\\u001";
      out += "0123456789abcdef"[c & 0x0f];
    } else {
      out += c;
    }
  }
  out += "']";
}

std::string normalised_path(const Step* last) {
  std::vector<const Step*> steps;
  for (; last != nullptr; last = last->parent) steps.push_back(last);
  std::string path = "$";
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if ((*step)->name) {
      append_name(path, *(*step)->name);
    } else {
      path += '[' + std::to_string((*step)->index) + ']';
    }
  }
  return path;
}

/// One side of a comparison, or an argument: "Nothing", or a value of a literal, a function or the document.
struct Comparand {
  enum class Kind : std::uint8_t { kNothing, kNull, kBool, kNumber, kString, kContainer };
  Kind kind = Kind::kNothing;
  bool boolean = false;
  long double number = 0;
  std::string_view string;
  JsonNode container;
};

Comparand comparand(const JsonNode& node) {
  using Kind = Comparand::Kind;
  switch (node.type()) {
    case element_type::NULL_VALUE:
      return {.kind = Kind::kNull};
    case element_type::BOOL:
      return {.kind = Kind::kBool, .boolean = as_bool(node)};
    case element_type::STRING:
      return {.kind = Kind::kString, .string = as_string(node)};
    case element_type::ARRAY:
    case element_type::OBJECT:
      return {.kind = Kind::kContainer, .container = node};
    default:
      return {.kind = Kind::kNumber, .number = as_number(node)};
  }
}

Comparand comparand(std::size_t number) {
  return {.kind = Comparand::Kind::kNumber, .number = static_cast<long double>(number)};
}

Comparand comparand(const Literal& literal) {
  using Kind = Comparand::Kind;
  if (const auto* string = std::get_if<std::string>(&literal)) return {.kind = Kind::kString, .string = *string};
  if (const auto* number = std::get_if<long double>(&literal)) return {.kind = Kind::kNumber, .number = *number};
  if (const auto* boolean = std::get_if<bool>(&literal)) return {.kind = Kind::kBool, .boolean = *boolean};
  return {.kind = Kind::kNull};
}

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & '\xc0') != '\x80'; }));
}

/// Walks a query depth-first, which meets the nodes in the order of the RFC's nodelists without building them. Every
/// node looked at costs budget; once that is gone all walks stop.
class Evaluator {
 public:
  Evaluator(const JsonNode& root, Budget& budget) : root_(root), budget_(budget) {}

  /// Hands each node that `query` selects to `sink(node, trace)` until that says kStop.
  template <typename Trace, typename Sink>
  Flow walk(const Query& query, const JsonNode& current, Trace trace, Sink sink) {
    return walk_from(query, 0, query.start == Start::kRoot ? root_ : current, trace, sink);
  }

 private:
  template <typename Trace, typename Sink>
  Flow walk_from(const Query& query, std::size_t position, const JsonNode& node, Trace trace, Sink& sink) {
    if (!budget_.spend()) return Flow::kStop;
    if (position == query.segments.size()) return sink(node, trace);
    const Segment& segment = query.segments[position];
    const auto next = [&](const JsonNode& child, Trace at) { return walk_from(query, position + 1, child, at, sink); };
    return segment.reach == Reach::kChildren ? select(segment, node, trace, next) : descend(segment, node, trace, next);
  }

  /// Applies a segment to a node and everything below it, nodes before their children. The stack is on the heap, since
  /// documents may be deep.
  template <typename Trace, typename Next>
  Flow descend(const Segment& segment, const JsonNode& node, Trace trace, const Next& next) {
    std::vector<std::pair<JsonNode, Trace>> pending{{node, trace}};
    while (!pending.empty()) {
      const auto [top, at] = pending.back();
      pending.pop_back();
      if (select(segment, top, at, next) == Flow::kStop) return Flow::kStop;
      const auto first_child = static_cast<std::ptrdiff_t>(pending.size());
      const Flow flow = for_each_child(top, at, [&](const JsonNode& child, Trace child_at) {
        if (is_container(child)) pending.emplace_back(child, child_at);
        return Flow::kContinue;
      });
      if (flow == Flow::kStop) return Flow::kStop;
      std::reverse(pending.begin() + first_child, pending.end());
    }
    return Flow::kContinue;
  }

  template <typename Trace, typename Next>
  Flow select(const Segment& segment, const JsonNode& node, Trace trace, const Next& next) {
    if (!budget_.spend(segment.selectors.size() - 1)) return Flow::kStop;
    for (const Selector& selector : segment.selectors) {
      const Flow flow = std::visit([&](const auto& one) { return apply(one, node, trace, next); }, selector);
      if (flow == Flow::kStop) return Flow::kStop;
    }
    return Flow::kContinue;
  }

  template <typename Trace, typename Visit>
  Flow for_each_child(const JsonNode& node, Trace trace, const Visit& visit) {
    if (node.type() == element_type::ARRAY) {
      std::size_t index = 0;
      for (const JsonNode child : as_array(node)) {
        if (!budget_.spend() || visit(child, trace.element(index++)) == Flow::kStop) return Flow::kStop;
      }
    } else if (node.type() == element_type::OBJECT) {
      for (const auto field : as_object(node)) {
        if (!budget_.spend() || visit(field.value, trace.member(field.key)) == Flow::kStop) return Flow::kStop;
      }
    }
    return Flow::kContinue;
  }

  // ---- selectors

  template <typename Trace, typename Next>
  Flow apply(const Name& selector, const JsonNode& node, Trace trace, const Next& next) {
    if (!budget_.spend(child_count(node) / 8)) return Flow::kStop;  // simdjson compares one name after the other
    const auto child = member(node, selector.name);
    return child ? next(*child, trace.member(selector.name)) : Flow::kContinue;
  }

  template <typename Trace, typename Next>
  Flow apply(const Wildcard&, const JsonNode& node, Trace trace, const Next& next) {
    return for_each_child(node, trace, next);
  }

  template <typename Trace, typename Next>
  Flow apply(const Index& selector, const JsonNode& node, Trace trace, const Next& next) {
    if (node.type() != element_type::ARRAY) return Flow::kContinue;
    const auto size = static_cast<std::int64_t>(child_count(node));
    const std::int64_t index = selector.index < 0 ? size + selector.index : selector.index;
    if (index < 0 || index >= size) return Flow::kContinue;
    const auto at = static_cast<std::size_t>(index);
    if (!budget_.spend(at)) return Flow::kStop;  // simdjson walks to it
    return next(as_array(node).at(at).value_unsafe(), trace.element(at));
  }

  template <typename Trace, typename Next>
  Flow apply(const Slice& slice, const JsonNode& node, Trace trace, const Next& next) {
    if (node.type() != element_type::ARRAY || slice.step == 0) return Flow::kContinue;
    std::vector<JsonNode> elements;
    for (const JsonNode element : as_array(node)) elements.push_back(element);
    if (!budget_.spend(elements.size())) return Flow::kStop;
    const auto size = static_cast<std::int64_t>(elements.size());
    const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t absent, std::int64_t low) {
      const std::int64_t position = given ? (*given < 0 ? size + *given : *given) : absent;
      return std::clamp(position, low, size + low);
    };
    const bool up = slice.step > 0;
    const std::int64_t low = up ? 0 : -1;
    const std::int64_t end = bound(slice.end, up ? size : -1, low);
    for (std::int64_t i = bound(slice.start, up ? 0 : size - 1, low); up ? i < end : i > end; i += slice.step) {
      const auto at = static_cast<std::size_t>(i);
      if (next(elements[at], trace.element(at)) == Flow::kStop) return Flow::kStop;
    }
    return Flow::kContinue;
  }

  template <typename Trace, typename Next>
  Flow apply(const Filter& filter, const JsonNode& node, Trace trace, const Next& next) {
    return for_each_child(node, trace, [&](const JsonNode& child, Trace at) {
      return holds(*filter.condition, child) ? next(child, at) : Flow::kContinue;
    });
  }

  // ---- filter expressions

  bool holds(const Expression& expression, const JsonNode& current) {
    return budget_.spend() && std::visit([&](const auto& node) { return test(node, current); }, expression.node);
  }

  bool test(const Or& expression, const JsonNode& current) {
    return std::any_of(expression.operands.begin(), expression.operands.end(),
                       [&](const Expression& operand) { return holds(operand, current); });
  }

  bool test(const And& expression, const JsonNode& current) {
    return std::all_of(expression.operands.begin(), expression.operands.end(),
                       [&](const Expression& operand) { return holds(operand, current); });
  }

  bool test(const Not& expression, const JsonNode& current) { return !holds(*expression.operand, current); }

  bool test(const Query& query, const JsonNode& current) {
    bool found = false;
    walk(query, current, NoTrace{}, [&](const JsonNode&, NoTrace) {
      found = true;
      return Flow::kStop;
    });
    return found;
  }

  bool test(const Comparison& comparison, const JsonNode& current) {
    const Comparand left = value(comparison.left, current);
    const Comparand right = value(comparison.right, current);
    switch (comparison.comparator) {
      case Comparator::kEqual:
        return equal(left, right);
      case Comparator::kNotEqual:
        return !equal(left, right);
      case Comparator::kLess:
        return less(left, right);
      case Comparator::kLessOrEqual:
        return less(left, right) || equal(left, right);
      case Comparator::kGreater:
        return less(right, left);
      case Comparator::kGreaterOrEqual:
        return less(right, left) || equal(left, right);
    }
    return false;
  }

  bool equal(const Comparand& a, const Comparand& b) {
    using Kind = Comparand::Kind;
    if (a.kind != b.kind) return false;
    switch (a.kind) {
      case Kind::kBool:
        return a.boolean == b.boolean;
      case Kind::kNumber:
        return a.number == b.number;
      case Kind::kString:
        return budget_.spend(a.string.size() / 64) && a.string == b.string;
      case Kind::kContainer:
        return json_equal(a.container, b.container, budget_);
      case Kind::kNothing:
      case Kind::kNull:
        break;
    }
    return true;
  }

  /// Strings by Unicode code points, which is the order of UTF-8's bytes.
  bool less(const Comparand& a, const Comparand& b) {
    if (a.kind != b.kind) return false;
    if (a.kind == Comparand::Kind::kNumber) return a.number < b.number;
    return a.kind == Comparand::Kind::kString && budget_.spend(a.string.size() / 64) && a.string < b.string;
  }

  Comparand value(const Operand& operand, const JsonNode& current) {
    if (const auto* literal = std::get_if<Literal>(&operand.value)) return comparand(*literal);
    if (const auto* query = std::get_if<Query>(&operand.value)) return single_value(*query, current);
    return value(std::get<Call>(operand.value), current);
  }

  /// The value of the only node that `query` selects; Nothing when it selects none or several.
  Comparand single_value(const Query& query, const JsonNode& current) {
    std::optional<JsonNode> only;
    const Flow flow = walk(query, current, NoTrace{}, [&](const JsonNode& node, NoTrace) {
      if (only) return Flow::kStop;
      only = node;
      return Flow::kContinue;
    });
    return only && flow == Flow::kContinue ? comparand(*only) : Comparand{};
  }

  // ---- functions

  Comparand value(const Call& call, const JsonNode& current) {
    const Operand& argument = call.arguments.front();
    switch (call.function) {
      case Function::kLength:
        return length(value(argument, current));
      case Function::kValue:
        return single_value(std::get<Query>(argument.value), current);
      case Function::kCount: {
        std::size_t nodes = 0;
        walk(std::get<Query>(argument.value), current, NoTrace{}, [&](const JsonNode&, NoTrace) {
          ++nodes;
          return Flow::kContinue;
        });
        return comparand(nodes);
      }
      case Function::kMatch:
      case Function::kSearch:
        break;  // of logical type: the parser does not let them stand here
    }
    return {};
  }

  Comparand length(const Comparand& argument) {
    if (argument.kind == Comparand::Kind::kContainer) return comparand(child_count(argument.container));
    if (argument.kind != Comparand::Kind::kString) return {};
    budget_.spend(argument.string.size() / 64);
    return comparand(code_points(argument.string));
  }

  bool test(const Call& call, const JsonNode& current) {
    const Comparand text = value(call.arguments[0], current);
    if (text.kind != Comparand::Kind::kString) return false;
    const re2::RE2* pattern = call.literal_pattern ? call.pattern.get() : pattern_from(call.arguments[1], current);
    if (pattern == nullptr || !budget_.spend(1 + match_cost(*pattern, text.string.size()))) return false;
    const auto anchor = call.function == Function::kMatch ? re2::RE2::ANCHOR_BOTH : re2::RE2::UNANCHORED;
    return pattern->Match({text.string.data(), text.string.size()}, 0, text.string.size(), anchor, nullptr, 0);
  }

  /// A pattern that the document gives; the last one is kept, since all elements of an array tend to ask for the same.
  const re2::RE2* pattern_from(const Operand& operand, const JsonNode& current) {
    const Comparand text = value(operand, current);
    if (text.kind != Comparand::Kind::kString) return nullptr;
    if (last_pattern_text_ != text.string) {
      if (!budget_.spend(kPatternCost + text.string.size())) return nullptr;  // also of one that is none
      QueryCompiler compiler(budget_);
      auto compiled = compile_iregexp(text.string, compiler);
      last_pattern_ = compiled ? std::move(*compiled) : nullptr;
      last_pattern_text_ = text.string;
    }
    return last_pattern_.get();
  }

  static constexpr std::size_t kPatternCost = 500;  // in nodes looked at

  const JsonNode root_;
  Budget& budget_;
  std::optional<std::string_view> last_pattern_text_;
  std::shared_ptr<const re2::RE2> last_pattern_;
};

Error over_budget(std::size_t visits) {
  return {Errc::kTooLarge, "the query looks at more than " + std::to_string(visits) + " nodes"};
}

}  // namespace
}  // namespace jsonpath

Result<JsonPath> JsonPath::parse(std::string_view selector) {
  QueryCompiler compiler;
  return parse(selector, compiler);
}

Result<JsonPath> JsonPath::parse(std::string_view selector, QueryCompiler& compiler) {
  auto query = jsonpath::parse_query(selector, compiler);
  if (!query) return query.error();
  return JsonPath(std::string(selector), std::make_shared<const jsonpath::Query>(std::move(*query)));
}

Result<std::vector<Match>> JsonPath::find(const JsonDocument& document, std::size_t max_visits) const {
  Budget budget(max_visits);
  std::deque<jsonpath::Step> steps;
  std::vector<Match> matches;
  jsonpath::Evaluator(document.root(), budget)
      .walk(*query_, document.root(), jsonpath::PathTrace{&steps},
            [&](const JsonNode& node, jsonpath::PathTrace trace) {
              matches.push_back({jsonpath::normalised_path(trace.last), simdjson::minify(node)});
              return jsonpath::Flow::kContinue;
            });
  if (budget.exhausted()) return jsonpath::over_budget(max_visits);
  return matches;
}

Result<bool> JsonPath::any(const JsonDocument& document, const std::function<bool(const JsonNode&)>& wanted,
                           Budget& budget) const {
  const auto visits = budget.left();
  bool found = false;
  jsonpath::Evaluator(document.root(), budget)
      .walk(*query_, document.root(), jsonpath::NoTrace{}, [&](const JsonNode& node, jsonpath::NoTrace) {
        found = wanted(node);
        return found ? jsonpath::Flow::kStop : jsonpath::Flow::kContinue;
      });
  if (budget.exhausted()) return jsonpath::over_budget(visits);
  return found;
}

Result<bool> JsonPath::any(const JsonDocument& document, const std::function<bool(const JsonNode&)>& wanted) const {
  Budget budget(kMaxVisits);
  return any(document, wanted, budget);
}

Result<bool> JsonPath::any(const JsonDocument& document) const {
  return any(document, [](const JsonNode&) { return true; });
}

}  // namespace muster
