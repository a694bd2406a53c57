#include "coordinator/difference.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "coordinator/json_patch.h"

namespace muster {
namespace {

using Json = nlohmann::json;

bool same_json_text(const Json& a, const Json& b) {
  if (!a.is_string() || !b.is_string()) return false;
  const auto left = Json::parse(a.get_ref<const std::string&>(), nullptr, false);
  const auto right = Json::parse(b.get_ref<const std::string&>(), nullptr, false);
  return !left.is_discarded() && left == right;
}

constexpr auto kNone = static_cast<std::size_t>(-1);  // no place in an array

class Comparison {
 public:
  explicit Comparison(const std::vector<std::string>& left_out) : left_out_(left_out) {}

  void object(const PropertyRule& rules, const Json& there, const Json& declared, const std::string& at,
              bool create_only) {
    for (const auto& [name, wanted] : declared.items()) {
      const auto& rule = rules.of(name);
      auto pointer = at;
      append_token(pointer, name);
      if (rule.read_only || rule.write_only || unknown(pointer)) continue;
      const auto it = there.find(name);
      const bool fixed = create_only || rule.create_only;
      if (it == there.end() || it->is_null()) {
        absent(rule, wanted, pointer, fixed, it != there.end());
      } else if (wanted.is_null()) {
        if (!rule.otherwise || *rule.otherwise != *it) add("remove", rule, pointer, nullptr, fixed);
      } else {
        value(rule, *it, wanted, pointer, fixed);
      }
    }
  }

  Difference result;

 private:
  [[nodiscard]] bool unknown(const std::string& pointer) const {
    return std::ranges::find(left_out_, pointer) != left_out_.end();
  }

  /// Whether something in a value is not known yet, but for what is never compared.
  [[nodiscard]] bool holds_unknown(const PropertyRule& rule, const std::string& pointer) const {
    return std::ranges::any_of(left_out_, [&](const std::string& each) {
      return each.starts_with(pointer + '/') && !is_confidential(rule, each.substr(pointer.size()));
    });
  }

  /// A patch is kept and shown: write-only values are not in it.
  void add(const char* operation, const PropertyRule& rule, const std::string& pointer, const Json* wanted,
           bool create_only) {
    Json change{{"op", operation}, {"path", pointer}};
    if (wanted != nullptr) change["value"] = without_write_only(rule, *wanted);
    result.patch.push_back(std::move(change));
    if (create_only) result.create_only.push_back(pointer);
  }

  void absent(const PropertyRule& rule, const Json& wanted, const std::string& pointer, bool create_only, bool null) {
    if (wanted.is_null() || (rule.otherwise && *rule.otherwise == wanted)) return;
    if (wanted.is_object() && !holds_unknown(rule, pointer) && as_if_absent(rule, wanted)) return;
    add(null ? "replace" : "add", rule, pointer, &wanted, create_only);
  }

  /// Whether an object declares only what its absence says as well, or what could not be read back.
  static bool as_if_absent(const PropertyRule& rule, const Json& wanted) {
    return !wanted.empty() && compare(rule, Json::object(), wanted).patch.empty();
  }

  void value(const PropertyRule& rule, const Json& there, const Json& wanted, const std::string& pointer,
             bool create_only) {
    if (there.is_object() && wanted.is_object()) {
      object(rule, there, wanted, pointer, create_only);
    } else if (there.is_array() && wanted.is_array()) {
      array(rule, there, wanted, pointer, create_only);
    } else if (there != wanted && !(rule.json_text && same_json_text(there, wanted))) {
      add("replace", rule, pointer, &wanted, create_only);
    }
  }

  void array(const PropertyRule& rule, const Json& there, const Json& wanted, const std::string& pointer,
             bool create_only) {
    if (holds_unknown(rule, pointer)) return;  // an element is not known yet, and nothing can be said of the whole
    if (there.size() == wanted.size() && (rule.unordered ? as_set(rule, there, wanted) : in_order(rule, there, wanted)))
      return;
    // What is not read back of its elements goes with the whole: nothing tells which of them has it.
    if (!rule.unordered && !rule.holds_write_only && there.size() == wanted.size()) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        value(rule.of_items(), there[i], wanted[i], pointer + "/" + std::to_string(i), create_only);
      }
    } else {
      add("replace", rule, pointer, &wanted, create_only);
    }
  }

  /// Whether an element that is there is as declared.
  static bool matches(const PropertyRule& rule, const Json& there, const Json& wanted) {
    static const std::vector<std::string> kNothing;
    Comparison inner(kNothing);
    inner.value(rule.of_items(), there, wanted, "", false);
    return inner.result.patch.empty();
  }

  static bool in_order(const PropertyRule& rule, const Json& there, const Json& wanted) {
    return std::ranges::equal(there, wanted, [&](const Json& a, const Json& b) { return matches(rule, a, b); });
  }

  static bool as_set(const PropertyRule& rule, const Json& there, const Json& wanted) {
    if (rule.key.empty()) return paired(rule, there, wanted);
    const auto key = [&](const Json& element) {
      return element.is_object() ? element.value(rule.key, Json()) : Json();
    };
    std::map<Json, const Json*> by_key;
    for (const auto& element : there) by_key[key(element)] = &element;
    if (by_key.size() < there.size()) return paired(rule, there, wanted);  // it does not tell them apart
    return std::ranges::all_of(wanted, [&](const Json& element) {
      const auto node = by_key.extract(key(element));  // a key stands for one element only
      return !node.empty() && matches(rule, *node.mapped(), element);
    });
  }

  /// Gives elements that have none the free ones that they equal: who looks for the others compares each with each.
  static void pair_equal(const Json& there, const Json& wanted, std::vector<std::size_t>& takers,
                         std::vector<std::size_t>& places) {
    std::map<Json, std::vector<std::size_t>> free;
    for (std::size_t at = 0; at < takers.size(); ++at) {
      if (takers[at] == kNone) free[there[at]].push_back(at);
    }
    for (std::size_t one = 0; one < places.size(); ++one) {
      if (places[one] != kNone) continue;
      const auto equal = free.find(wanted[one]);
      if (equal == free.end() || equal->second.empty()) continue;
      places[one] = equal->second.back();
      takers[places[one]] = one;
      equal->second.pop_back();
    }
  }

  /// Whether each element that is wanted has one of its own among those that are there. Only what is declared of it
  /// counts, so that several may do for one that is wanted: who has taken one makes room where another does as well.
  static bool paired(const PropertyRule& rule, const Json& there, const Json& wanted) {
    const auto count = wanted.size();
    std::vector<std::size_t> takers(count, kNone), places(count, kNone);
    for (std::size_t i = 0; i < count; ++i) {  // mostly they stand in the same order
      if (matches(rule, there[i], wanted[i])) takers[i] = places[i] = i;
    }
    pair_equal(there, wanted, takers, places);
    for (std::size_t next = 0; next < count; ++next) {
      if (places[next] != kNone) continue;
      std::vector<std::size_t> reached_by(count, kNone);
      auto free = kNone;
      for (std::deque<std::size_t> open{next}; free == kNone && !open.empty(); open.pop_front()) {
        const auto one = open.front();
        for (std::size_t at = 0; at < count && free == kNone; ++at) {
          if (reached_by[at] != kNone || !matches(rule, there[at], wanted[one])) continue;
          reached_by[at] = one;
          takers[at] == kNone ? void(free = at) : open.push_back(takers[at]);
        }
      }
      if (free == kNone) return false;
      for (auto at = free; at != kNone;) {
        const auto one = takers[at] = reached_by[at];
        at = std::exchange(places[one], at);
      }
    }
    return true;
  }

  const std::vector<std::string>& left_out_;
};

void strip_read_only(const PropertyRule& rules, Json& there) {
  for (auto it = there.begin(); it != there.end();) {
    const auto& rule = rules.of(it.key());
    if (rule.read_only) {
      it = there.erase(it);
      continue;
    }
    if (it->is_object()) strip_read_only(rule, *it);
    ++it;
  }
}

void put_over(const PropertyRule& rules, Json& there, const Json& declared);

/// What a value becomes when another is declared. As in a patch, the elements of an ordered array are changed each in
/// its place where there are as many of them.
void put_value(const PropertyRule& rule, Json& there, const Json& wanted) {
  if (there.is_object() && wanted.is_object()) {
    put_over(rule, there, wanted);
  } else if (there.is_array() && wanted.is_array() && !rule.unordered && there.size() == wanted.size()) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (there[i].is_object()) strip_read_only(rule.of_items(), there[i]);
      put_value(rule.of_items(), there[i], wanted[i]);
    }
  } else {
    there = wanted;
  }
}

void put_over(const PropertyRule& rules, Json& there, const Json& declared) {
  for (const auto& [name, wanted] : declared.items()) {
    const auto& rule = rules.of(name);
    if (rule.read_only) continue;
    put_value(rule, there[name], wanted);
  }
  for (auto it = there.begin(); it != there.end();) {
    it = it->is_null() && declared.contains(it.key()) ? there.erase(it) : std::next(it);
  }
}

}  // namespace

Difference compare(const PropertyRule& rules, const Json& there, const Json& declared,
                   const std::vector<std::string>& left_out) {
  Comparison comparison(left_out);
  comparison.object(rules, there, declared, "", false);
  return std::move(comparison.result);
}

bool is_create_only(const PropertyRule& rules, const std::string& pointer) {
  bool fixed = false;
  for (Json::json_pointer at(pointer); !fixed && !at.empty(); at.pop_back()) {
    fixed = rule_at(rules, at.to_string()).create_only;
  }
  return fixed;
}

void Difference::put_anew(const PropertyRule& rules, const Json& declared, const std::string& pointer,
                          const std::string& whole) {
  if (is_create_only(rules, pointer)) create_only.push_back(pointer);
  const bool is_put = std::ranges::any_of(
      patch, [&](const Json& change) { return within(whole, change.at("path").get_ref<const std::string&>()); });
  if (is_put) return;
  auto shown = without_write_only(rule_at(rules, whole), declared[Json::json_pointer(whole)]);
  patch.push_back({{"op", "replace"}, {"path", whole}, {"value", std::move(shown)}});
}

std::string outermost_array(const Json& document, const std::string& pointer) {
  auto whole = pointer;
  for (auto around = Json::json_pointer(pointer).parent_pointer(); !around.empty(); around = around.parent_pointer()) {
    if (document[around].is_array()) whole = around.to_string();
  }
  return whole;
}

Json merge_declared(const PropertyRule& rules, const Json& there, const Json& declared) {
  Json whole = there.is_object() ? there : Json::object();
  strip_read_only(rules, whole);
  put_over(rules, whole, declared);
  return whole;
}

void put_declared(const PropertyRule& rules, Json& object, const Json& declared, std::string_view patch,
                  const std::vector<std::string>& unknown) {
  bool stays = patch == "[]" && unknown.empty();  // as most objects do, of which there may be very many
  for (auto it = declared.begin(); stays && it != declared.end(); ++it) stays = object.contains(it.key());
  if (stays) return;
  const auto changes = Json::parse(patch);
  const auto merged = merge_declared(rules, object, declared);
  for (const auto& [name, value] : merged.items()) {
    const auto at = (Json::json_pointer() / name).to_string();
    const bool is_changed = std::ranges::any_of(
        changes, [&](const Json& change) { return within(change.at("path").get_ref<const std::string&>(), at); });
    const auto is_in_it = [&](const std::string& pointer) { return within(pointer, at); };
    if (is_changed || !object.contains(name) || std::ranges::any_of(unknown, is_in_it)) object[name] = value;
  }
  for (const auto& pointer : unknown) object[Json::json_pointer(pointer)] = nullptr;
}

}  // namespace muster
