#include "coordinator/schema_guard.h"

#include <re2/re2.h>

#include <algorithm>
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

constexpr int kMaxDepth = 64;

const Json* member(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

/// What a reference into the schema itself means; null: nothing that is there.
const Json* resolve(const Json& root, const Json& ref) {
  const auto* const text = ref.get_ptr<const std::string*>();
  if (text == nullptr || !text->starts_with('#')) return nullptr;
  try {
    const Json::json_pointer pointer(text->substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {  // no pointer
    return nullptr;
  }
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
      const auto* meant = resolve(root_, *ref);
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
  for (const char* keyword : {"pattern", "format", "uniqueItems"}) dropped = schema.erase(keyword) > 0 || dropped;
  const auto* const step = member(schema, "multipleOf");
  if (step != nullptr && !(step->is_number() && *step > 0)) dropped = schema.erase("multipleOf") > 0;
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

class GuardedWalk {
 public:
  GuardedWalk(const Json& root, const std::vector<std::string>& unknown)
      : root_(root), unknown_(unknown.begin(), unknown.end()) {}

  void look(const Json& schema, const Json& value, const Json::json_pointer& at, int depth = 0) {
    if (depth > kMaxDepth || !schema.is_object()) return;
    if (const auto* ref = member(schema, "$ref")) {
      if (const auto* meant = resolve(root_, *ref)) look(*meant, value, at, depth + 1);
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

std::optional<std::string> endless_reference(const Json& schema) {
  if (LoopSearch(schema).finds(schema)) return "the schema refers to itself without an end";
  return std::nullopt;
}

void drop_unbounded(Json& schema) {
  drop(schema);
}

std::vector<SchemaFault> guarded_faults(const Json& schema, const Json& document,
                                        const std::vector<std::string>& unknown) {
  GuardedWalk walk(schema, unknown);
  walk.look(schema, document, Json::json_pointer());
  return walk.take();
}

}  // namespace muster
