#include "coordinator/schema_guard.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/suggestion.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kMaxSchemaDepth = 64;
const std::set<std::string> kHidden{"anyOf",        "oneOf",    "not",           "if",    "then",       "else",
                                    "dependencies", "contains", "propertyNames", "$defs", "definitions"};

const Json* member(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

/// Looks for a way from a schema to itself that asks only about the same value.
class LoopSearch {
 public:
  explicit LoopSearch(const Json& root) : root_(root) {}

  bool finds(const Json& node) {
    if (!node.is_structured()) return false;
    if (node.is_object() && loops(node)) return true;
    return std::ranges::any_of(node, [&](const Json& inner) { return finds(inner); });
  }

 private:
  bool loops(const Json& schema) {
    if (!schema.is_object()) return false;
    const auto [it, fresh] = seen_.try_emplace(&schema, false);
    if (!fresh) return !it->second;  // on the way that leads here
    bool found = false;
    if (const auto* ref = member(schema, "$ref")) {
      const auto* meant = meant_by(root_, *ref);
      found = meant != nullptr && loops(*meant);
    }
    for (const char* keyword : {"allOf", "anyOf", "oneOf", "dependencies"}) {
      const auto* several = member(schema, keyword);
      if (several == nullptr || !several->is_structured()) continue;
      found = found || std::ranges::any_of(*several, [&](const Json& each) { return loops(each); });
    }
    for (const char* keyword : {"not", "if", "then", "else"}) {
      const auto* one = member(schema, keyword);
      found = found || (one != nullptr && loops(*one));
    }
    seen_[&schema] = true;
    return found;
  }

  const Json& root_;
  std::unordered_map<const Json*, bool> seen_;  // whether all that it leads to has been looked at
};

/// Takes out what is unbounded. What it allows afterwards is what it allowed, and more.
class Loosening {
 public:
  /// `original`   the schema as it was, for references
  explicit Loosening(const Json& original) : original_(original) {}

  void drop(Json& schema) {
    if (!schema.is_object()) return;
    for (const char* keyword : {"pattern", "format", "uniqueItems"}) schema.erase(keyword);
    if (const auto* step = member(schema, "multipleOf"); step != nullptr && !is_step(*step)) schema.erase("multipleOf");
    if (schema.erase("patternProperties") > 0) schema.erase("additionalProperties");
    // Where these allow more, the whole would allow less.
    if (const auto* no = member(schema, "not"); no != nullptr && is_loosened(*no)) schema.erase("not");
    if (const auto* condition = member(schema, "if"); condition != nullptr && is_loosened(*condition)) {
      for (const char* keyword : {"if", "then", "else"}) schema.erase(keyword);
    }
    if (const auto* one = member(schema, "oneOf");
        one != nullptr && std::ranges::any_of(*one, [&](const Json& each) { return is_loosened(each); })) {
      schema["allOf"].push_back({{"anyOf", std::move(schema["oneOf"])}});
      schema.erase("oneOf");
    }
    for (const char* keyword : kOfOne) {
      if (schema.contains(keyword)) drop(schema[keyword]);
    }
    for (const char* keyword : kOfMany) {
      if (!schema.contains(keyword) || !schema[keyword].is_structured()) continue;
      for (auto& inner : schema[keyword]) drop(inner);
    }
  }

 private:
  static constexpr std::array<const char*, 9> kOfOne{
      "items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"};
  static constexpr std::array<const char*, 8> kOfMany{"items", "properties", "definitions", "$defs",
                                                      "allOf", "anyOf",      "oneOf",       "dependencies"};

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
};

bool contains_pattern(const Json& node) {
  if (!node.is_structured()) return false;
  if (const auto* pattern = member(node, "pattern"); pattern != nullptr && pattern->is_string()) return true;
  return std::ranges::any_of(node, contains_pattern);
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

/// `hidden`   in what guarded_faults() does not look at
void put_texts(Json& node, const std::set<std::string>& texts, bool hidden) {
  if (!node.is_structured()) return;
  if (node.is_object()) {
    for (auto& [name, inner] : node.items()) put_texts(inner, texts, hidden || kHidden.contains(name));
  } else {
    for (auto& inner : node) put_texts(inner, texts, hidden);
  }
  if (!hidden) return;
  const auto* pattern = member(node, "pattern");
  if (pattern == nullptr || !pattern->is_string()) return;
  const re2::RE2 regex(pattern->get<std::string>(), re2::RE2::Quiet);
  node.erase("pattern");
  if (!regex.ok()) return;
  auto matching = Json::array();
  for (const auto& text : texts) {
    if (re2::RE2::PartialMatch(text, regex)) matching.push_back(text);
  }
  auto either = Json::array({{{"not", {{"type", "string"}}}}});
  if (!matching.empty()) either.push_back({{"enum", std::move(matching)}});
  node["allOf"].push_back(Json{{"anyOf", std::move(either)}});
}

class GuardedWalk {
 public:
  GuardedWalk(const Json& root, const std::vector<std::string>& unknown)
      : root_(root), unknown_(unknown.begin(), unknown.end()) {}

  void look(const Json& schema, const Json& value, const Json::json_pointer& at, int depth = 0) {
    if (depth > kMaxSchemaDepth || !schema.is_object()) return;
    if (const auto* ref = member(schema, "$ref")) {
      if (const auto* meant = meant_by(root_, *ref)) look(*meant, value, at, depth + 1);
      return;
    }
    if (const auto* pattern = member(schema, "pattern"); pattern != nullptr && pattern->is_string()) {
      const auto* const text = value.get_ptr<const std::string*>();
      if (text != nullptr && is_known(at) && !matches(pattern->get<std::string>(), *text).value_or(true)) {
        found_.push_back({at.to_string(), shown(*text) + " does not match the pattern " + pattern->get<std::string>()});
      }
    }
    if (value.is_object()) look_at_members(schema, value, at, depth);
    if (value.is_array()) look_at_elements(schema, value, at, depth);
    if (const auto* all = member(schema, "allOf"); all != nullptr && all->is_array()) {
      for (const auto& each : *all) look(each, value, at, depth + 1);
    }
  }
  std::vector<SchemaFault> take() { return std::move(found_); }

 private:
  void look_at_members(const Json& schema, const Json& value, const Json::json_pointer& at, int depth) {
    const auto* named = member(schema, "properties");
    const auto* patterns = member(schema, "patternProperties");
    const auto* others = member(schema, "additionalProperties");
    for (const auto& [name, inner] : value.items()) {
      const auto* own = named == nullptr ? nullptr : member(*named, name.c_str());
      if (own != nullptr) look(*own, inner, at / name, depth + 1);
      bool known = own != nullptr;
      if (patterns != nullptr && patterns->is_object()) {
        for (const auto& [pattern, each] : patterns->items()) {
          const auto match = matches(pattern, name);
          known = known || match.value_or(true);
          if (match.value_or(false)) look(each, inner, at / name, depth + 1);
        }
      }
      if (known || others == nullptr) continue;
      if (*others == false && patterns != nullptr)
        found_.push_back({at.to_string(), "unknown property " + shown(name)});
      look(*others, inner, at / name, depth + 1);
    }
  }

  void look_at_elements(const Json& schema, const Json& value, const Json::json_pointer& at, int depth) {
    if (const auto* unique = member(schema, "uniqueItems"); unique != nullptr && *unique == true) {
      std::map<std::string, std::size_t> seen;
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (!is_known(at / i)) continue;
        const auto [it, fresh] = seen.emplace(value[i].dump(-1, ' ', false, Json::error_handler_t::replace), i);
        if (fresh) continue;
        found_.push_back(
            {at.to_string(), "elements " + std::to_string(it->second) + " and " + std::to_string(i) + " are the same"});
        break;
      }
    }
    const auto* items = member(schema, "items");
    if (items == nullptr) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (items->is_array() && i >= items->size()) return;
      look(items->is_array() ? (*items)[i] : *items, value[i], at / i, depth + 1);
    }
  }

  /// None: it is no pattern that can be told.
  std::optional<bool> matches(const std::string& pattern, const std::string& text) {
    const auto [it, made] = patterns_.try_emplace(pattern);
    if (made) it->second = std::make_unique<const re2::RE2>(pattern, re2::RE2::Quiet);
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
};

}  // namespace

const Json* meant_by(const Json& root, const Json& ref) {
  const auto* const text = ref.get_ptr<const std::string*>();
  if (text == nullptr || !text->starts_with('#')) return nullptr;
  try {
    const Json::json_pointer pointer(text->substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {  // no pointer
    return nullptr;
  }
}

std::optional<std::string> endless_reference(const Json& schema) {
  if (LoopSearch(schema).finds(schema)) return "the schema refers to itself without an end";
  return std::nullopt;
}

void drop_unbounded(Json& schema) {
  const auto original = schema;
  Loosening(original).drop(schema);
}

bool has_hidden_patterns(const Json& schema) {
  if (!schema.is_structured()) return false;
  for (const auto& keyword : kHidden) {
    if (const auto* inner = member(schema, keyword.c_str()); inner != nullptr && contains_pattern(*inner)) return true;
  }
  return std::ranges::any_of(schema, has_hidden_patterns);
}

void bind_patterns(Json& schema, const Json& document) {
  std::set<std::string> texts;
  collect_texts(document, texts);
  put_texts(schema, texts, false);
}

std::vector<SchemaFault> guarded_faults(const Json& schema, const Json& document,
                                        const std::vector<std::string>& unknown) {
  GuardedWalk walk(schema, unknown);
  walk.look(schema, document, Json::json_pointer());
  return walk.take();
}

}  // namespace muster
