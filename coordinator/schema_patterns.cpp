#include "coordinator/schema_patterns.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/suggestion.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;

const Json* member(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

bool drop(Json& schema);

bool drop_each(Json& schema, const char* keyword) {
  bool dropped = false;
  if (schema.contains(keyword) && schema[keyword].is_structured()) {
    for (auto& inner : schema[keyword]) dropped = drop(inner) || dropped;
  }
  return dropped;
}

/// Whether something is left out now, or may be behind a reference, so that the schema allows more than it did.
bool drop(Json& schema) {
  if (!schema.is_object()) return false;
  bool dropped = schema.contains("$ref");
  for (const char* keyword : {"pattern", "format"}) dropped = schema.erase(keyword) > 0 || dropped;
  if (schema.erase("patternProperties") > 0) {
    schema.erase("additionalProperties");
    dropped = true;
  }
  if (schema.contains("items") && schema["items"].is_array()) dropped = drop_each(schema, "items") || dropped;
  for (const char* keyword : {"properties", "definitions", "$defs", "allOf", "anyOf"}) {
    dropped = drop_each(schema, keyword) || dropped;
  }
  for (const char* keyword : {"items", "additionalItems", "additionalProperties", "contains", "propertyNames"}) {
    if (schema.contains(keyword)) dropped = drop(schema[keyword]) || dropped;
  }
  // Of these, one that allows more would make the whole allow less.
  for (const char* keyword : {"oneOf", "dependencies"}) {
    if (!drop_each(schema, keyword)) continue;
    schema.erase(keyword);
    dropped = true;
  }
  if (schema.contains("not") && drop(schema["not"])) dropped = schema.erase("not") > 0;
  const bool branches = schema.contains("if") && drop(schema["if"]);
  for (const char* keyword : {"then", "else"}) {
    if (schema.contains(keyword)) dropped = drop(schema[keyword]) || dropped;
  }
  if (branches) {
    for (const char* keyword : {"if", "then", "else"}) dropped = schema.erase(keyword) > 0 || dropped;
  }
  return dropped;
}

class PatternWalk {
 public:
  explicit PatternWalk(const Json& root) : root_(root) {}

  void look(const Json& schema, const Json& value, const Json::json_pointer& at, int depth = 0) {
    if (depth > kMaxDepth || !schema.is_object()) return;
    if (const auto* ref = member(schema, "$ref"); ref != nullptr && ref->is_string()) {
      if (const auto* meant = resolve(ref->get<std::string>())) look(*meant, value, at, depth + 1);
      return;
    }
    if (const auto* pattern = member(schema, "pattern"); pattern != nullptr && pattern->is_string()) {
      const auto* const text = value.get_ptr<const std::string*>();
      if (text != nullptr && !matches(pattern->get<std::string>(), *text).value_or(true)) {
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

  /// Of references into the schema itself.
  [[nodiscard]] const Json* resolve(const std::string& ref) const {
    if (!ref.starts_with('#')) return nullptr;
    try {
      const Json::json_pointer pointer(ref.substr(1));
      return root_.contains(pointer) ? &root_.at(pointer) : nullptr;
    } catch (const Json::exception&) {  // no pointer
      return nullptr;
    }
  }

  const Json& root_;
  std::map<std::string, std::unique_ptr<const re2::RE2>> patterns_;
  std::vector<SchemaFault> found_;
};

}  // namespace

void drop_patterns(Json& schema) {
  drop(schema);
}

std::vector<SchemaFault> pattern_faults(const Json& schema, const Json& document) {
  PatternWalk walk(schema);
  walk.look(schema, document, Json::json_pointer());
  return walk.take();
}

}  // namespace muster
