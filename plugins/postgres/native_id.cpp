#include "native_id.h"

namespace muster::postgres {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes the plain name that `rest` begins with; empty when there is none.
std::string take_plain(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && (is_letter(rest[end]) || (end > 0 && is_digit(rest[end])))) ++end;
  std::string name(rest.substr(0, end));
  rest.remove_prefix(end);
  return name;
}

/// Takes the name between the quotes that `rest` begins with; empty when they don't end.
std::string take_quoted(std::string_view& rest) {
  std::string name;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      if (i + 1 == rest.size() || rest[i + 1] != '"') {
        rest.remove_prefix(i + 1);
        return name;
      }
      ++i;  // a doubled quote is one of the name
    }
    name += rest[i];
  }
  return "";
}

}  // namespace

std::optional<std::vector<std::string>> parse_native_id(std::string_view id) {
  if (id.find('\0') != id.npos) return std::nullopt;
  std::vector<std::string> names;
  for (;;) {
    auto name = id.starts_with('"') ? take_quoted(id) : take_plain(id);
    if (name.empty()) return std::nullopt;
    names.push_back(std::move(name));
    if (id.empty()) return names;
    if (!id.starts_with('.')) return std::nullopt;
    id.remove_prefix(1);
  }
}

std::string_view first_part(std::string_view id) {
  auto rest = id;
  const auto name = id.starts_with('"') ? take_quoted(rest) : take_plain(rest);
  return name.empty() ? std::string_view{} : id.substr(0, id.size() - rest.size());
}

}  // namespace muster::postgres
