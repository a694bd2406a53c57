#include "coordinator/schema_graph.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/json_patch.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Edges = std::vector<std::vector<std::uint32_t>>;

constexpr std::size_t kMaxReference = 4096;  // bytes of a `$ref`
constexpr std::size_t kMaxLevels = 256;      // schemas on one way; the stack has room for some times as many
// What the library makes of a schema: one thing for each schema that it meets, with its path; what is referred to, and
// lies in what is referred to, is met again.
constexpr std::size_t kMaxMade = 16 * 1024 * 1024;
constexpr std::size_t kMadeOfOne = 256;

constexpr std::array<const char*, 8> kBeside{"allOf", "anyOf", "oneOf", "dependencies", "not", "if", "then", "else"};
constexpr std::array<const char*, 7> kInner{
    "items", "additionalItems", "additionalProperties", "patternProperties", "contains", "propertyNames", "properties"};
constexpr std::array<std::string_view, 5> kNamed{"dependencies", "properties", "patternProperties", "$defs",
                                                 "definitions"};  // schemas by names

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned value = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() < 2 || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

/// A name in a pointer as it is, or written for one in a reference.
std::string replaced(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string_view>> by) {
  std::string made;
  while (!text.empty()) {
    const auto* const found = std::ranges::find_if(by, [&](const auto& each) { return text.starts_with(each.first); });
    made += found == by.end() ? text.substr(0, 1) : found->second;
    text.remove_prefix(found == by.end() ? 1 : found->first.size());
  }
  return made;
}

/// The member or element of this name.
const Json* inside(const Json& value, const std::string& name) {
  if (value.is_object()) {
    const auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool plain = error == std::errc() && end == name.data() + name.size() && std::to_string(index) == name;
  return value.is_array() && plain && index < value.size() ? &value[index] : nullptr;
}

/// A schema that is referred to, and how deep in it, without another such, something stands.
using Row = std::pair<std::uint32_t, std::size_t>;

/// The longest way through a graph: of what leads back to itself, each row may lie on it.
class Ways {
 public:
  Ways(const Edges& next, const std::vector<Row>& rows) : next_(next), rows_(rows), state_(next.size()) {
    for (std::uint32_t node = 0; node < next.size(); ++node) {
      if (state_[node].found == 0) search(node);
    }
  }
  [[nodiscard]] std::size_t longest() const { return longest_; }
  [[nodiscard]] bool has_loop() const { return has_loop_; }

 private:
  struct State {
    std::uint32_t found = 0;  // when; 0: not yet
    std::uint32_t low = 0;    // the first found that it leads back to
    std::uint32_t looked = 0;
    std::size_t levels = 0;  // of the longest way from here; 0: not known yet
  };

  /// Tarjan's search for strongly connected components, which come with those first that others lead to.
  void search(std::uint32_t first) {
    open(first);
    while (!way_.empty()) {
      const auto node = way_.back();
      auto& own = state_[node];
      if (own.looked < next_[node].size()) {
        const auto& other = state_[next_[node][own.looked]];
        if (other.found == 0) {
          open(next_[node][own.looked]);
        } else {
          if (other.levels == 0) own.low = std::min(own.low, other.found);
          ++own.looked;
        }
        continue;
      }
      way_.pop_back();
      if (own.low == own.found) close(node);
      if (!way_.empty() && own.levels == 0) state_[way_.back()].low = std::min(state_[way_.back()].low, own.low);
    }
  }

  void open(std::uint32_t node) {
    state_[node].found = state_[node].low = ++found_;
    way_.push_back(node);
    waiting_.push_back(node);
  }

  void close(std::uint32_t node) {
    const auto begin = std::find(waiting_.rbegin(), waiting_.rend(), node).base() - 1;
    std::size_t below = 0;
    for (auto each = begin; each != waiting_.end(); ++each) {
      for (const auto other : next_[*each]) {
        below = std::max(below, state_[other].levels);
        has_loop_ = has_loop_ || other == *each;
      }
    }
    has_loop_ = has_loop_ || waiting_.end() - begin > 1;
    std::set<Row> rows;
    std::transform(begin, waiting_.end(), std::inserter(rows, rows.end()), [&](auto each) { return rows_[each]; });
    for (auto each = begin; each != waiting_.end(); ++each) state_[*each].levels = below + rows.size();
    longest_ = std::max(longest_, below + rows.size());
    waiting_.erase(begin, waiting_.end());
  }

  const Edges& next_;
  const std::vector<Row>& rows_;
  std::vector<State> state_;
  std::vector<std::uint32_t> way_, waiting_;
  std::uint32_t found_ = 0;
  std::size_t longest_ = 0;
  bool has_loop_ = false;
};

/// The schemas that can be reached in one, and which leads to which.
class SchemaGraph {
 public:
  explicit SchemaGraph(const Json& root) : root_(root) {
    refer(root);
    for (std::size_t i = 0; i < entries_.size() && !too_much(); ++i) meet(*entries_[i], 0);
  }

  [[nodiscard]] bool too_much() const { return made_ > kMaxMade; }
  [[nodiscard]] const Edges& beside() const { return beside_; }
  [[nodiscard]] const Edges& all() const { return all_; }
  [[nodiscard]] std::vector<Row> rows() const {
    std::vector<Row> rows(around_.size());
    for (std::uint32_t node = 0; node < rows.size(); ++node) {
      auto at = node;
      for (; !referred_[at]; at = around_[at]) ++rows[node].second;
      rows[node].first = at;
    }
    return rows;
  }

 private:
  std::uint32_t number(const Json& schema) {
    const auto [it, fresh] = numbers_.try_emplace(&schema, static_cast<std::uint32_t>(numbers_.size()));
    if (fresh) {
      beside_.emplace_back();
      all_.emplace_back();
      around_.push_back(it->second);
      referred_.push_back(false);
    }
    return it->second;
  }

  void refer(const Json& schema) {
    const auto own = number(schema);
    if (!referred_[own]) entries_.push_back(&schema);
    referred_[own] = true;
  }

  /// `path`   bytes of the way here from what was referred to
  void meet(const Json& schema, std::size_t path) {
    made_ += kMadeOfOne + path;
    if (!schema.is_object() || too_much()) return;
    const auto own = number(schema);
    const bool fresh = met_.insert(&schema).second;
    const auto lead = [&](const Json& to, bool is_beside) {
      const auto other = number(to);
      all_[own].push_back(other);
      if (is_beside) beside_[own].push_back(other);
      return other;
    };
    const auto lead_in = [&](const Json& to, std::size_t longer, bool is_beside) {
      if (fresh && to.is_object()) around_[lead(to, is_beside)] = own;
      meet(to, path + longer);
    };
    const auto ref = schema.find("$ref");
    if (const auto* const meant = fresh && ref != schema.end() ? meant_by(root_, *ref) : nullptr) {
      if (meant->is_object()) lead(*meant, true);
      refer(*meant);
    }
    for (const char* keyword : kBeside) {
      each_of(schema, keyword, [&](const Json& to, std::size_t longer) { lead_in(to, longer, true); });
    }
    for (const char* keyword : kInner) {
      each_of(schema, keyword, [&](const Json& to, std::size_t longer) { lead_in(to, longer, false); });
    }
    for (const char* keyword : {"$defs", "definitions"}) {
      each_of(schema, keyword, [&](const Json& to, std::size_t) {
        if (!fresh || !to.is_object()) return;
        lead(to, false);
        refer(to);
      });
    }
  }

  /// Calls `use` with each schema that the keyword has, and the bytes that its path is longer.
  template <typename Use>
  static void each_of(const Json& schema, const char* keyword, const Use& use) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return;
    const auto length = std::string_view(keyword).size() + 2;
    const bool named = std::ranges::find(kNamed, keyword) != kNamed.end();
    if (found->is_object() && named) {
      for (const auto& [name, to] : found->items()) use(to, length + name.size());
    } else if (found->is_array()) {
      for (const auto& to : *found) use(to, length + 5);
    } else {
      use(*found, length);
    }
  }

  const Json& root_;
  std::unordered_map<const Json*, std::uint32_t> numbers_;
  std::unordered_set<const Json*> met_;
  std::vector<const Json*> entries_;  // the root, and what is referred to
  std::vector<bool> referred_;
  std::vector<std::uint32_t> around_;  // what a schema stands in
  Edges beside_;                       // to what is asked of the same value
  Edges all_;
  std::size_t made_ = 0;
};

}  // namespace

SchemaReference reference_of(const Json& root, const Json& ref) {
  const auto* const whole = ref.get_ptr<const std::string*>();
  if (whole == nullptr || whole->size() > kMaxReference) return {};
  std::string_view text = *whole;
  if (const auto id = root.find("id"); id != root.end() && id->is_string()) {
    const auto own = id->get<std::string>() + '#';
    if (text.starts_with(own)) text.remove_prefix(own.size() - 1);
  }
  const auto pointer = text.starts_with('#') ? percent_decoded(text.substr(1)) : std::nullopt;
  if (!pointer || (!pointer->empty() && pointer->front() != '/')) return {};
  SchemaReference made{&root, {}, "#"};
  for (std::string_view rest = *pointer; !rest.empty();) {
    rest.remove_prefix(1);
    const auto written = rest.substr(0, rest.find('/'));
    rest.remove_prefix(written.size());
    if (written.empty()) continue;
    const auto name = replaced(written, {{"~1", "/"}, {"~0", "~"}});
    made.meant = inside(*made.meant, name);
    if (made.meant == nullptr) return {};
    append_token(made.pointer, name);
  }
  made.text += replaced(made.pointer, {{"%", "%25"}});
  return made;
}

const Json* meant_by(const Json& root, const Json& ref) {
  return reference_of(root, ref).meant;
}

std::optional<std::string> why_not_followed(const Json& schema) {
  const SchemaGraph graph(schema);
  if (graph.too_much()) return "the schema is too large where its references are followed";
  const auto rows = graph.rows();
  if (Ways(graph.beside(), rows).has_loop()) return "the schema refers to itself without an end";
  if (Ways(graph.all(), rows).longest() > kMaxLevels) {
    return "the schema leads more than " + std::to_string(kMaxLevels) +
           " levels deep where its references are followed";
  }
  return std::nullopt;
}

}  // namespace muster
