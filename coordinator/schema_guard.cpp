#include "coordinator/schema_guard.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/schema_graph.h"
#include "coordinator/suggestion.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kMaxSchemaDepth = 64;
constexpr std::size_t kBytesOfStep = 16;
constexpr std::size_t kStepsOfPattern = 64;  // at least, to read one
constexpr std::size_t kStepsOfSchema = 32;   // that is made again with the texts that match
const std::set<std::string> kSeen{"properties", "patternProperties", "additionalProperties", "items", "allOf"};
const std::set<std::string> kHidden{"anyOf",        "oneOf",    "not",           "if",    "then",       "else",
                                    "dependencies", "contains", "propertyNames", "$defs", "definitions"};

const Json* member(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

/// Takes out what is unbounded. What it allows afterwards is what it allowed, and more.
class Loosening {
 public:
  /// `original`   the schema as it was, for references
  explicit Loosening(const Json& original) : original_(original) {}

  void drop(Json& schema) {
    drop(schema, original_);
    while (!references_.empty()) {  // wherever it stands
      const Json::json_pointer at(references_.back());
      references_.pop_back();
      if (schema.contains(at)) drop(schema.at(at), original_.at(at));
    }
  }

 private:
  static constexpr std::array<const char*, 9> kOfOne{
      "items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"};
  static constexpr std::array<const char*, 8> kOfMany{"items", "properties", "definitions", "$defs",
                                                      "allOf", "anyOf",      "oneOf",       "dependencies"};

  void drop(Json& schema, const Json& original) {
    if (!schema.is_object() || !original.is_object()) return;
    for (const char* keyword : kOfOne) {
      if (schema.contains(keyword) && original.contains(keyword)) drop(schema[keyword], original[keyword]);
    }
    for (const char* keyword : kOfMany) {
      if (schema.contains(keyword) && original.contains(keyword)) drop_each(schema[keyword], original[keyword]);
    }
    for (const char* keyword : {"pattern", "format", "uniqueItems"}) schema.erase(keyword);
    if (const auto* step = member(schema, "multipleOf"); step != nullptr && !is_step(*step)) schema.erase("multipleOf");
    if (schema.erase("patternProperties") > 0) schema.erase("additionalProperties");
    // Where these allow more, the whole would allow less.
    if (const auto* no = member(original, "not"); no != nullptr && is_loosened(*no)) schema.erase("not");
    if (const auto* condition = member(original, "if"); condition != nullptr && is_loosened(*condition)) {
      for (const char* keyword : {"if", "then", "else"}) schema.erase(keyword);
    }
    if (const auto* one = member(original, "oneOf");
        schema.contains("oneOf") && std::ranges::any_of(*one, [&](const Json& each) { return is_loosened(each); })) {
      schema["allOf"].push_back({{"anyOf", std::move(schema["oneOf"])}});
      schema.erase("oneOf");
    }
    refer(schema, original);
  }

  void drop_each(Json& schemas, const Json& originals) {
    if (schemas.is_object() && originals.is_object()) {
      for (auto& [name, inner] : schemas.items()) drop(inner, originals[name]);
    } else if (schemas.is_array() && originals.is_array()) {
      for (std::size_t i = 0; i < schemas.size() && i < originals.size(); ++i) drop(schemas[i], originals[i]);
    }
  }

  /// The library is left with no other way to read a reference, and with no `id` that would change what they mean.
  void refer(Json& schema, const Json& original) {
    if (const auto* id = member(schema, "id"); id != nullptr && id->is_string()) schema.erase("id");
    const auto* const ref = member(original, "$ref");
    if (ref == nullptr || !ref->is_string()) return;
    auto reference = reference_of(original_, *ref);
    schema["$ref"] = reference.meant == nullptr ? "nothing:" + ref->get<std::string>() : reference.text;
    if (reference.meant != nullptr && referred_.insert(reference.meant).second) {
      references_.push_back(std::move(reference.pointer));
    }
  }

  static bool is_step(const Json& value) { return value.is_number() && value > 0; }

  /// Whether something is taken out of a schema, or of what it refers to.
  bool is_loosened(const Json& schema) {
    if (!schema.is_object()) return false;
    const auto [it, fresh] = loosened_.try_emplace(&schema, false);
    if (!fresh) return it->second;
    const auto has = [&](const char* keyword) { return schema.contains(keyword); };
    bool found = has("pattern") || has("format") || has("uniqueItems") || has("patternProperties") ||
                 (has("multipleOf") && !is_step(schema["multipleOf"]));
    if (const auto* ref = member(schema, "$ref")) {
      const auto* meant = meant_by(original_, *ref);
      found = found || (meant != nullptr && is_loosened(*meant));
    }
    for (const char* keyword : kOfOne) found = found || (has(keyword) && is_loosened(schema[keyword]));
    for (const char* keyword : kOfMany) {
      if (!has(keyword) || !schema[keyword].is_structured()) continue;
      found = found || std::ranges::any_of(schema[keyword], [&](const Json& inner) { return is_loosened(inner); });
    }
    return loosened_[&schema] = found;
  }

  const Json& original_;
  std::unordered_map<const Json*, bool> loosened_;
  std::unordered_set<const Json*> referred_;
  std::vector<std::string> references_;  // pointers to what is not looked at yet
};

/// Whether guarded_faults() does not look at a member of a schema or of what is in one.
bool hides(const Json& root, const Json& node, const std::string& name) {
  return &node == &root ? !kSeen.contains(name) : kHidden.contains(name);
}

bool has_hidden(const Json& root, const Json& node, bool hidden) {
  if (!node.is_structured()) return false;
  if (const auto* pattern = member(node, "pattern"); hidden && pattern != nullptr && pattern->is_string()) return true;
  if (node.is_array())
    return std::ranges::any_of(node, [&](const Json& each) { return has_hidden(root, each, hidden); });
  const auto members = node.items();
  return std::any_of(members.begin(), members.end(), [&](const auto& each) {
    return has_hidden(root, each.value(), hidden || hides(root, node, each.key()));
  });
}

/// The names of members and the texts in a document.
void collect_texts(const Json& value, std::set<std::string>& texts) {
  if (value.is_string()) texts.insert(value.get<std::string>());
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) texts.insert(name);
  }
  if (!value.is_structured()) return;
  for (const auto& inner : value) collect_texts(inner, texts);
}

std::size_t steps_to_read(const re2::RE2& regex) {
  constexpr std::size_t kOfLarge = 100'000;
  if (regex.error_code() == re2::RE2::ErrorPatternTooLarge) return kOfLarge;
  const auto length = regex.pattern().size() / kBytesOfStep;
  return kStepsOfPattern + length + (regex.ok() ? static_cast<std::size_t>(regex.ProgramSize()) / 2 : 0);
}

std::size_t steps_of(std::string_view text) {
  return 1 + text.size() / kBytesOfStep;
}

class PatternBinding {
 public:
  PatternBinding(const Json& root, const Json& document, CheckBudget& budget) : root_(root), budget_(budget) {
    collect_texts(document, texts_);
  }

  /// `hidden`   in what guarded_faults() does not look at
  void put_texts(Json& node, bool hidden) {
    if (!node.is_structured()) return;
    if (node.is_object()) {
      budget_.take(kStepsOfSchema);
      for (auto& [name, inner] : node.items()) put_texts(inner, hidden || hides(root_, node, name));
    } else {
      for (auto& inner : node) put_texts(inner, hidden);
    }
    if (!hidden) return;
    const auto* pattern = member(node, "pattern");
    if (pattern == nullptr || !pattern->is_string()) return;
    const re2::RE2 regex(pattern->get<std::string>(), re2::RE2::Quiet);
    budget_.take(steps_to_read(regex));
    node.erase("pattern");
    if (!regex.ok()) return;
    auto matching = Json::array();
    for (const auto& text : texts_) {
      budget_.take(steps_of(text));
      if (re2::RE2::PartialMatch(text, regex)) matching.push_back(text);
    }
    auto either = Json::array({{{"not", {{"type", "string"}}}}});
    if (!matching.empty()) either.push_back({{"enum", std::move(matching)}});
    node["allOf"].push_back(Json{{"anyOf", std::move(either)}});
  }

 private:
  const Json& root_;
  std::set<std::string> texts_;
  CheckBudget& budget_;
};

/// A place in a document, and how far the schema has been followed.
struct GuardedPlace {
  Json::json_pointer at;
  std::size_t bytes = 0;  // of the names in `at`, which are copied for each place in it
  int depth = 0;

  [[nodiscard]] GuardedPlace beside() const { return {at, bytes, depth + 1}; }
  [[nodiscard]] GuardedPlace of(const std::string& name) const { return {at / name, bytes + name.size(), depth + 1}; }
  [[nodiscard]] GuardedPlace of(std::size_t index) const { return {at / index, bytes, depth + 1}; }
};

class GuardedWalk {
 public:
  GuardedWalk(const Json& root, const std::vector<std::string>& unknown, CheckBudget& budget)
      : root_(root), unknown_(unknown.begin(), unknown.end()), budget_(budget) {}

  void look(const Json& schema, const Json& value, const GuardedPlace& place) {
    budget_.take(1 + static_cast<std::size_t>(place.depth) / 8 + place.bytes / kBytesOfStep);
    if (place.depth > kMaxSchemaDepth || !schema.is_object() || found_.size() == kMaxFaults) return;
    if (const auto* ref = member(schema, "$ref")) {
      if (const auto* text = ref->get_ptr<const std::string*>()) budget_.take(1 + steps_of(*text));
      if (const auto* meant = meant_by(root_, *ref)) look(*meant, value, place.beside());
      return;
    }
    if (const auto* pattern = member(schema, "pattern"); pattern != nullptr && pattern->is_string()) {
      const auto* const text = value.get_ptr<const std::string*>();
      if (text != nullptr && is_known(place.at) && !matches(pattern->get<std::string>(), *text).value_or(true)) {
        tell(place, shown(*text) + " does not match the pattern " + pattern->get<std::string>());
      }
    }
    if (value.is_object()) look_at_members(schema, value, place);
    if (value.is_array()) look_at_elements(schema, value, place);
    if (const auto* all = member(schema, "allOf"); all != nullptr && all->is_array()) {
      for (const auto& each : *all) look(each, value, place.beside());
    }
  }
  std::vector<SchemaFault> take() { return std::move(found_); }

 private:
  void tell(const GuardedPlace& place, std::string message) {
    if (found_.size() < kMaxFaults) found_.push_back({place.at.to_string(), std::move(message)});
  }

  void look_at_members(const Json& schema, const Json& value, const GuardedPlace& place) {
    const auto* named = member(schema, "properties");
    const auto* patterns = member(schema, "patternProperties");
    const auto* others = member(schema, "additionalProperties");
    if (named == nullptr && patterns == nullptr && others == nullptr) return;
    for (const auto& [name, inner] : value.items()) {
      budget_.take(1);
      const auto* own = named == nullptr ? nullptr : member(*named, name.c_str());
      if (own != nullptr) look(*own, inner, place.of(name));
      bool known = own != nullptr;
      if (patterns != nullptr && patterns->is_object()) {
        for (const auto& [pattern, each] : patterns->items()) {
          const auto match = matches(pattern, name);
          known = known || match.value_or(true);
          if (match.value_or(false)) look(each, inner, place.of(name));
        }
      }
      if (known || others == nullptr) continue;
      if (*others == false && patterns != nullptr) tell(place, "unknown property " + shown(name));
      look(*others, inner, place.of(name));
    }
  }

  void look_at_elements(const Json& schema, const Json& value, const GuardedPlace& place) {
    if (const auto* unique = member(schema, "uniqueItems"); unique != nullptr && *unique == true) {
      std::map<std::string, std::size_t> seen;
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (!is_known(place.at / i)) continue;
        const auto [it, fresh] = seen.emplace(value[i].dump(-1, ' ', false, Json::error_handler_t::replace), i);
        budget_.take(steps_of(it->first));
        if (fresh) continue;
        tell(place, "elements " + std::to_string(it->second) + " and " + std::to_string(i) + " are the same");
        break;
      }
    }
    const auto* items = member(schema, "items");
    if (items == nullptr) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (items->is_array() && i >= items->size()) return;
      look(items->is_array() ? (*items)[i] : *items, value[i], place.of(i));
    }
  }

  /// None: it is no pattern that can be told.
  std::optional<bool> matches(const std::string& pattern, const std::string& text) {
    const auto [it, made] = patterns_.try_emplace(pattern);
    if (made) {
      it->second = std::make_unique<const re2::RE2>(pattern, re2::RE2::Quiet);
      budget_.take(steps_to_read(*it->second));
    }
    budget_.take(steps_of(pattern) + steps_of(text));
    if (!it->second->ok()) return std::nullopt;
    return re2::RE2::PartialMatch(text, *it->second);
  }

  [[nodiscard]] bool is_known(const Json::json_pointer& at) const {
    return unknown_.empty() || !unknown_.contains(at.to_string());
  }

  const Json& root_;
  const std::set<std::string> unknown_;
  std::map<std::string, std::unique_ptr<const re2::RE2>> patterns_;
  std::vector<SchemaFault> found_;
  CheckBudget& budget_;
};

}  // namespace

void drop_unbounded(Json& schema) {
  const auto original = schema;
  Loosening(original).drop(schema);
}

bool has_hidden_patterns(const Json& schema) {
  return has_hidden(schema, schema, false);
}

void bind_patterns(Json& schema, const Json& document, CheckBudget& budget) {
  PatternBinding(schema, document, budget).put_texts(schema, false);
}

std::vector<SchemaFault> guarded_faults(const Json& schema, const Json& document,
                                        const std::vector<std::string>& unknown, CheckBudget& budget) {
  GuardedWalk walk(schema, unknown, budget);
  walk.look(schema, document, GuardedPlace());
  return walk.take();
}

}  // namespace muster
