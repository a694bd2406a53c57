#include "coordinator/schema_words.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "coordinator/json_patch.h"
#include "coordinator/suggestion.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxListed = 12;           // values of an enumeration
constexpr std::size_t kMaxCompared = 4'000'000;  // pairs of letters
constexpr std::string_view kUnknownBegin =
    "Object contains a property that could not be validated using 'properties' or 'additionalProperties' "
    "constraints: '";
constexpr std::string_view kUnknownEnd = "'.";

/// The name in a part of a context; none in its root.
std::optional<std::string> name_in(const std::string& part) {
  if (part.size() < 2 || part.front() != '[') return std::nullopt;
  return part.substr(1, part.size() - 2);
}

/// What `schema` says of the place, as far as `properties` and `items` tell; nullptr: nothing.
const Json* schema_of(const std::vector<std::string>& context, const Json& schema) {
  const auto* place = &schema;
  for (const auto& part : context) {
    const auto name = name_in(part);
    if (!name) continue;
    const auto properties = place->find("properties"), items = place->find("items");
    if (properties != place->end() && properties->contains(*name)) {
      place = &(*properties)[*name];
    } else if (items != place->end() && items->is_object()) {
      place = &*items;
    } else {
      return nullptr;
    }
  }
  return place->is_object() ? place : nullptr;
}

const Json* keyword(const Json* place, const char* name) {
  if (place == nullptr) return nullptr;
  const auto found = place->find(name);
  return found == place->end() ? nullptr : &*found;
}

std::string with_article(const std::string& type) {
  if (type == "null") return type;
  return (type == "array" || type == "integer" || type == "object" ? "an " : "a ") + type;
}

/// `items` of an array, each as `say` says it, with `or` before the last.
template <typename Say>
std::string alternatives(const Json& items, Say say) {
  std::string text;
  const auto last = items.size() - 1;
  for (std::size_t i = 0; i < items.size() && i < kMaxListed; ++i) {
    text += (i == 0 ? "" : i == last ? " or " : ", ") + say(items[i]);
  }
  return items.size() > kMaxListed ? text + ", or another of " + std::to_string(items.size()) : text;
}

std::string unknown_property(std::string_view name, const Json* place) {
  std::vector<std::string_view> known;
  std::size_t bytes = 0;
  if (const auto* properties = keyword(place, "properties"); properties != nullptr && properties->is_object()) {
    for (const auto& [property, schema] : properties->items()) {
      known.push_back(property);
      bytes += property.size();
    }
  }
  if (bytes > kMaxCompared / std::max<std::size_t>(1, name.size())) known.clear();  // it takes the product of both
  const auto meant = suggestion(name, known);
  return "unknown property " + shown(name) + (meant.empty() ? "" : "; " + meant);
}

/// Numbers come as `1.500000`.
std::string without_zeros(std::string_view text) {
  const auto end = text.find_last_not_of('0');
  if (text.find('.') == std::string_view::npos || end == std::string_view::npos) return std::string(text);
  return std::string(text.substr(0, text[end] == '.' ? end : end + 1));
}

}  // namespace

std::string schema_pointer(const std::vector<std::string>& context) {
  std::string pointer;
  for (const auto& part : context) {
    const auto name = name_in(part);
    if (!name) continue;
    append_token(pointer, *name);
  }
  return pointer;
}

std::string in_plain_words(std::string_view description, const std::vector<std::string>& context, const Json& schema,
                           const Json& document) {
  const auto* place = schema_of(context, schema);
  const auto begins = [&](std::string_view text) { return description.starts_with(text); };
  if (begins(kUnknownBegin) && description.ends_with(kUnknownEnd)) {
    description.remove_prefix(kUnknownBegin.size());
    description.remove_suffix(kUnknownEnd.size());
    return unknown_property(description, place);
  }
  if (begins("Expected number") || begins("Value should be a multiple")) return without_zeros(description);
  const auto quoted = [](const Json& value) { return shown(value.dump()); };
  if (const auto* values = keyword(place, "enum");
      begins("Failed to match against any enum") && values != nullptr && values->is_array() && !values->empty()) {
    return "should be " + alternatives(*values, quoted);
  }
  if (const auto* value = keyword(place, "const"); begins("Failed to match expected value") && value != nullptr) {
    return "should be " + quoted(*value);
  }
  const Json::json_pointer at(schema_pointer(context));
  const auto* type = keyword(place, "type");
  if (begins("Value type not permitted") && type != nullptr && document.contains(at)) {
    const auto types = type->is_array() ? *type : Json::array({*type});
    const auto named = std::ranges::all_of(types, [](const Json& one) { return one.is_string(); });
    if (named && !types.empty()) {
      return "is " + with_article(document[at].type_name()) + ", should be " +
             alternatives(types, [](const Json& one) { return with_article(one.get<std::string>()); });
    }
  }
  return std::string(description);
}

}  // namespace muster
