#include "coordinator/json_patch.h"

#include <simdjson.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

bool equal_scalars(const element& a, const element& b) {
  if (a.type() == element_type::DOUBLE || b.type() == element_type::DOUBLE) {  // 1 and 1.0 are one number
    double left = 0, right = 0;
    return a.get(left) == simdjson::SUCCESS && b.get(right) == simdjson::SUCCESS && left == right;
  }
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case element_type::INT64:
      return a.get_int64().value_unsafe() == b.get_int64().value_unsafe();
    case element_type::UINT64:
      return a.get_uint64().value_unsafe() == b.get_uint64().value_unsafe();
    case element_type::BOOL:
      return a.get_bool().value_unsafe() == b.get_bool().value_unsafe();
    case element_type::STRING:
      return a.get_string().value_unsafe() == b.get_string().value_unsafe();
    default:
      return a.is_null();
  }
}

bool is_container(const element& value) {
  return value.is_object() || value.is_array();
}

/// Compares two documents side by side, which takes that the members of each object are sorted by name. What it finds
/// is what nlohmann::json::diff() does.
class PatchWriter {
 public:
  /// None where the members of an object are not sorted.
  std::optional<JsonText> compare(const element& from, const element& to) {
    if (!value(from, to)) return std::nullopt;
    return '[' + std::move(text_) + ']';
  }

 private:
  bool value(const element& from, const element& to) {
    const auto type = to.type();
    if (from.type() == type && type == element_type::OBJECT) {
      return object(from.get_object().value_unsafe(), to.get_object().value_unsafe());
    }
    if (from.type() == type && type == element_type::ARRAY) {
      return array(from.get_array().value_unsafe(), to.get_array().value_unsafe());
    }
    if (is_container(from) || is_container(to) || !equal_scalars(from, to)) change("replace", &to);
    return true;
  }

  bool object(const simdjson::dom::object& from, const simdjson::dom::object& to) {
    if (!is_sorted(from) || !is_sorted(to)) return false;
    std::vector<std::pair<std::string_view, element>> added;
    auto right = to.begin();
    for (const auto field : from) {
      for (; right != to.end() && right.key() < field.key; ++right) added.emplace_back(right.key(), right.value());
      const auto outer = enter(field.key);
      if (right == to.end() || right.key() != field.key) {
        change("remove", nullptr);
      } else {
        if (!value(field.value, right.value())) return false;
        ++right;
      }
      path_.resize(outer);
    }
    for (; right != to.end(); ++right) added.emplace_back(right.key(), right.value());
    for (const auto& [name, member] : added) {
      const auto outer = enter(name);
      change("add", &member);
      path_.resize(outer);
    }
    return true;
  }

  bool array(const simdjson::dom::array& from, const simdjson::dom::array& to) {
    auto left = from.begin(), right = to.begin();
    std::size_t index = 0;
    for (; left != from.end() && right != to.end(); ++left, ++right, ++index) {
      const auto outer = enter(std::to_string(index));
      if (!value(*left, *right)) return false;
      path_.resize(outer);
    }
    auto end = index;
    for (; left != from.end(); ++left) ++end;
    for (; end > index; --end) {  // the last first: the places of the others stay
      const auto outer = enter(std::to_string(end - 1));
      change("remove", nullptr);
      path_.resize(outer);
    }
    const auto outer = enter("-");
    for (; right != to.end(); ++right) {
      const element added = *right;
      change("add", &added);
    }
    path_.resize(outer);
    return true;
  }

  static bool is_sorted(const simdjson::dom::object& object) {
    std::optional<std::string_view> before;
    for (const auto field : object) {
      if (before && field.key <= *before) return false;
      before = field.key;
    }
    return true;
  }

  /// Its length before is what path_ is to have again.
  std::size_t enter(std::string_view token) {
    const auto outer = path_.size();
    append_token(path_, token);
    return outer;
  }

  void change(std::string_view operation, const element* value) {
    text_.append(text_.empty() ? R"({"op":")" : R"(,{"op":")").append(operation);
    text_.append(R"(","path":)").append(nlohmann::json(path_).dump());
    if (value != nullptr) text_.append(R"(,"value":)").append(simdjson::minify(*value));
    text_ += '}';
  }

  std::string path_, text_;
};

/// Both as they stand until the next call; false: one is no JSON that is understood at once.
bool parse_both(std::string_view a, std::string_view b, element& first, element& second) {
  static thread_local simdjson::dom::parser left, right;
  return left.parse(a.data(), a.size()).get(first) == simdjson::SUCCESS &&
         right.parse(b.data(), b.size()).get(second) == simdjson::SUCCESS;
}

/// None where one is no JSON that is understood at once, or not in the canonical form.
std::optional<JsonText> quick_patch(std::string_view from, std::string_view to) {
  element source, target;
  return parse_both(from, to, source, target) ? PatchWriter().compare(source, target) : std::nullopt;
}

/// Takes that the members of each object are sorted: false where equal ones are not.
bool equal(const element& a, const element& b) {
  simdjson::dom::object members, others;
  if (a.get(members) == simdjson::SUCCESS && b.get(others) == simdjson::SUCCESS) {
    return std::ranges::equal(members, others, [](const auto& left, const auto& right) {
      return left.key == right.key && equal(left.value, right.value);
    });
  }
  simdjson::dom::array items, their_items;
  if (a.get(items) == simdjson::SUCCESS && b.get(their_items) == simdjson::SUCCESS) {
    return std::ranges::equal(items, their_items, equal);
  }
  return !is_container(a) && !is_container(b) && equal_scalars(a, b);
}

JsonText any_patch(std::string_view from, std::string_view to) {
  const auto source = nlohmann::json::parse(from, nullptr, false);
  const auto target = nlohmann::json::parse(to, nullptr, false);
  return nlohmann::json::diff(source, target).dump();
}

}  // namespace

void append_token(std::string& pointer, std::string_view name) {
  pointer += '/';
  for (const char c : name) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
}

bool has_members(std::string_view object, std::string_view members) {
  element whole, part;
  simdjson::dom::object all, some;
  if (!parse_both(object, members, whole, part)) return false;
  if (whole.get(all) != simdjson::SUCCESS || part.get(some) != simdjson::SUCCESS) return false;
  auto at = all.begin();
  for (const auto wanted : some) {
    while (at != all.end() && at.key() < wanted.key) ++at;
    if (at == all.end() || at.key() != wanted.key || !equal(at.value(), wanted.value)) return false;
    ++at;
  }
  return true;
}

JsonText patch_between(std::string_view from, std::string_view to) {
  constexpr std::size_t kLongPatch = 16 * 1024;  // up to here what has changed is worth more than the bytes
  constexpr std::string_view kBegin = R"([{"op":"replace","path":"","value":)", kEnd = "}]";
  auto quick = quick_patch(from, to);
  auto patch = quick ? std::move(*quick) : any_patch(from, to);
  if (patch.size() <= std::max(kLongPatch, kBegin.size() + to.size() + kEnd.size())) return patch;
  return JsonText(kBegin).append(to).append(kEnd);
}

}  // namespace muster
