#include "coordinator/references.h"

#include <charconv>

namespace muster {
namespace {

using Json = nlohmann::json;

/// The member or element that the front of `path` names, and the rest of the path.
const Json* step(const Json& at, std::string_view& path) {
  if (path.front() == '[') {
    const auto end = path.find(']');
    std::size_t index = 0;
    const auto digits = path.substr(1, end == std::string_view::npos ? end : end - 1);
    const auto [stopped, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (end == std::string_view::npos || failed != std::errc() || stopped != digits.data() + digits.size())
      return nullptr;
    path.remove_prefix(end + 1);
    return at.is_array() && index < at.size() ? &at[index] : nullptr;
  }
  if (path.front() == '.') path.remove_prefix(1);
  const auto end = std::min(path.find_first_of(".["), path.size());
  const auto name = std::string(path.substr(0, end));
  path.remove_prefix(end);
  if (!at.is_object()) return nullptr;
  const auto it = at.find(name);
  return it == at.end() ? nullptr : &*it;
}

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::optional<Json> value_at(const Json& object, const std::string& path) {
  const Json* at = &object;
  for (std::string_view rest = path; at != nullptr && !rest.empty();) at = step(*at, rest);
  return at == nullptr ? std::nullopt : std::optional(*at);
}

std::string pointer_to(std::string_view path) {
  std::string pointer = "/";
  for (const char c : path) {
    if (c == '.' || (c == '[' && pointer.size() > 1)) {
      pointer += '/';
    } else if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else if (c != '[' && c != ']') {
      pointer += c;
    }
  }
  return pointer;
}

std::optional<Json> resolve(const Hole& hole, const ReferenceLookup& lookup) {
  std::string text;
  for (const auto& part : hole.parts) {
    if (part.kind == TextPart::Kind::kLiteral) {
      text += part.text;
      continue;
    }
    if (part.kind != TextPart::Kind::kResource) return std::nullopt;
    auto value = lookup(part.text, part.path);
    if (!value || hole.parts.size() == 1) return value;
    if (value->is_null()) return std::nullopt;  // no text says that there is nothing
    text += as_text(*value);
  }
  return text;
}

}  // namespace muster
