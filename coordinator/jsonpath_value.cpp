#include "coordinator/jsonpath_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

namespace muster {

using simdjson::dom::element_type;

static_assert(std::numeric_limits<long double>::digits >= 64, "as_number() would round 64-bit integers");

namespace {

constexpr std::size_t kCountSaturates = 0xFFFFFF;  // simdjson keeps the size of an array or object in 24 bits

template <typename Container>
std::size_t size_of(const Container& container) {
  const std::size_t size = container.size();
  if (size < kCountSaturates) return size;
  return static_cast<std::size_t>(std::distance(container.begin(), container.end()));
}

bool scalars_equal(const JsonNode& a, const JsonNode& b, Budget& budget) {
  if (is_number(a)) return is_number(b) && as_number(a) == as_number(b);
  if (a.type() != b.type()) return false;
  if (a.type() == element_type::BOOL) return as_bool(a) == as_bool(b);
  if (a.type() == element_type::STRING) return budget.spend(as_string(a).size() / 64) && as_string(a) == as_string(b);
  return a.is_null();
}

using Pairs = std::vector<std::pair<JsonNode, JsonNode>>;

bool pair_elements(const JsonNode& a, const JsonNode& b, Pairs& pairs) {
  auto right = as_array(b).begin();
  for (const JsonNode left : as_array(a)) {
    pairs.emplace_back(left, *right);
    ++right;
  }
  return true;
}

std::vector<std::pair<std::string_view, JsonNode>> sorted_members(const JsonNode& node) {
  std::vector<std::pair<std::string_view, JsonNode>> members;
  for (const auto field : as_object(node)) members.emplace_back(field.key, field.value);
  std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return members;
}

bool pair_members(const JsonNode& a, const JsonNode& b, Pairs& pairs) {
  const auto left = sorted_members(a);
  const auto right = sorted_members(b);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].first != right[i].first) return false;
    pairs.emplace_back(left[i].second, right[i].second);
  }
  return true;
}

/// The same document with integers over 64 bits written as floating point, which is how simdjson takes them.
Result<std::string> without_big_integers(std::string_view text) {
  bool too_deep = false;
  const auto watch_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep = too_deep || depth >= kMaxJsonDepth;
    return !too_deep;
  };
  try {
    const auto tree = nlohmann::json::parse(text, watch_depth);
    if (too_deep) return Error{Errc::kTooLarge, "JSON nested deeper than " + std::to_string(kMaxJsonDepth) + " levels"};
    return tree.dump();
  } catch (const nlohmann::json::exception& failure) {
    const std::string_view what = failure.what();
    return Error{Errc::kMalformed, std::string(what.substr(std::min(what.size(), what.find("] ") + 2)))};
  }
}

}  // namespace

// ---- JsonDocument

struct JsonDocument::State {
  std::optional<simdjson::dom::parser> parser;
  simdjson::dom::document document;
  JsonNode root;
  bool parsed = false;
};

JsonDocument::JsonDocument() : state_(std::make_unique<State>()) {}
JsonDocument::~JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;

Result<void> JsonDocument::parse(std::string_view text) {
  state_->parsed = false;
  if (!state_->parser) state_->parser.emplace();
  auto failure = state_->parser->parse_into_document(state_->document, text.data(), text.size()).get(state_->root);
  if (failure == simdjson::DEPTH_ERROR || failure == simdjson::CAPACITY || failure == simdjson::MEMALLOC) {
    return Error{Errc::kTooLarge, std::string("JSON too large: ") + simdjson::error_message(failure)};
  }
  if (failure) {  // simdjson does not say where, nor does it take every number
    const auto again = without_big_integers(text);
    if (!again) return again.error();
    failure = state_->parser->parse_into_document(state_->document, *again).get(state_->root);
  }
  if (failure) return Error{Errc::kMalformed, simdjson::error_message(failure)};
  state_->parsed = true;
  return {};
}

void JsonDocument::free_parser() {
  state_->parser.reset();
}

const JsonNode& JsonDocument::root() const {
  if (!state_->parsed) throw std::logic_error("JsonDocument: nothing parsed");
  return state_->root;
}

// ---- values

long double as_number(const JsonNode& node) {
  switch (node.type()) {
    case element_type::INT64:
      return static_cast<long double>(node.get_int64().value_unsafe());
    case element_type::UINT64:
      return static_cast<long double>(node.get_uint64().value_unsafe());
    default:
      return static_cast<long double>(node.get_double().value_unsafe());
  }
}

std::optional<JsonNode> member(const JsonNode& node, std::string_view name) {
  JsonNode found;
  if (node.type() != element_type::OBJECT || as_object(node).at_key(name).get(found)) return std::nullopt;
  return found;
}

std::size_t child_count(const JsonNode& node) {
  if (node.type() == element_type::ARRAY) return size_of(as_array(node));
  return node.type() == element_type::OBJECT ? size_of(as_object(node)) : 0;
}

std::optional<std::string> scalar_text(const JsonNode& node) {
  switch (node.type()) {
    case element_type::STRING:
      return std::string(as_string(node));
    case element_type::BOOL:
      return as_bool(node) ? "true" : "false";
    case element_type::INT64:
      return std::to_string(node.get_int64().value_unsafe());
    case element_type::UINT64:
      return std::to_string(node.get_uint64().value_unsafe());
    case element_type::DOUBLE: {
      std::array<char, 32> text{};
      const auto end = std::to_chars(text.begin(), text.end(), node.get_double().value_unsafe()).ptr;
      return std::string(text.begin(), end);
    }
    default:
      return std::nullopt;
  }
}

bool json_equal(const JsonNode& a, const JsonNode& b, Budget& budget) {
  if (!is_container(a)) return budget.spend() && scalars_equal(a, b, budget);
  Pairs pairs{{a, b}};  // those yet to be compared; a stack of our own, since documents may be deep
  while (!pairs.empty()) {
    const auto [left, right] = pairs.back();
    pairs.pop_back();
    if (!budget.spend()) return false;
    if (!is_container(left)) {
      if (!scalars_equal(left, right, budget)) return false;
      continue;
    }
    const std::size_t children = child_count(left);
    if (left.type() != right.type() || children != child_count(right) || !budget.spend(children)) return false;
    if (!(left.type() == element_type::ARRAY ? pair_elements(left, right, pairs) : pair_members(left, right, pairs))) {
      return false;
    }
  }
  return true;
}

}  // namespace muster
