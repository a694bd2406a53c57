#include "muster/properties.h"

#include <cctype>
#include <stdexcept>

#include "schema/utf8.h"

namespace muster {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

int hex_value(char c) {
  return c <= '9' ? c - '0' : std::toupper(static_cast<unsigned char>(c)) - 'A' + 10;
}

/// Whether a `%XX` stands at the begin of `text`.
bool begins_escaped(std::string_view text) {
  return text.size() >= 3 && text[0] == '%' && is_hex(text[1]) && is_hex(text[2]);
}

void append_escaped(std::string& out, char byte) {
  const auto value = static_cast<unsigned char>(byte);
  out += {'%', kHex[value >> 4], kHex[value & 0xF]};
}

/// Bytes of the UTF-8 character that `text`, which is not empty, begins with; 0 when it begins with none.
std::size_t character_size(std::string_view text) {
  for (std::size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    if (valid_utf8(text.substr(0, size))) return size;
  }
  return 0;
}

Json object_of(std::initializer_list<Json> pairs) {
  if (pairs.size() == 1 && pairs.begin()->is_object()) return *pairs.begin();  // Properties{json}
  Json object = Json::object();
  for (const Json& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) {
      throw std::invalid_argument("properties are pairs {name, value}, not " + pair.dump());
    }
    object[pair[0].get_ref<const std::string&>()] = pair[1];
  }
  return object;
}

}  // namespace

Properties::Properties(const Json& object) {
  if (!object.is_object()) throw std::invalid_argument("properties are a JSON object, not " + object.dump());
  text_ = object.dump();
}

Properties::Properties(std::initializer_list<Json> pairs) : Properties(object_of(pairs)) {}

Properties Properties::from_canonical(std::string text) {
  Properties properties;
  properties.text_ = std::move(text);
  return properties;
}

std::string percent_encode(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t size = begins_escaped(bytes) ? 0 : character_size(bytes);
    if (size == 0) {
      append_escaped(out, bytes[0]);
    } else {
      out += bytes.substr(0, size);
    }
    bytes.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

Result<std::string> text_of(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return std::string();
  if (!it->is_string()) return invalid_request(std::string(name) + " must be a text, not " + it->type_name());
  return it->get<std::string>();
}

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const bool escaped = begins_escaped(text);
    out += escaped ? static_cast<char>(hex_value(text[1]) * 16 + hex_value(text[2])) : text[0];
    text.remove_prefix(escaped ? 3 : 1);
  }
  return out;
}

}  // namespace muster
