#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "schema/result.h"

namespace muster {

using Json = nlohmann::json;

/// What a resource is made of: one JSON object, kept as canonical text (keys sorted, no white space).
class Properties {
 public:
  Properties() = default;
  /// `object`   a JSON object; anything else throws std::invalid_argument (a bug of the plugin, reported by name)
  Properties(const Json& object);                 // NOLINT(google-explicit-constructor)
  Properties(std::initializer_list<Json> pairs);  // {{"name", "x"}, {"size", 3}}

  /// Takes text that is already a canonical JSON object; it is not looked at. For plugins that make many.
  static Properties from_canonical(std::string text);

  [[nodiscard]] const std::string& text() const& { return text_; }
  [[nodiscard]] std::string text() && { return std::move(text_); }
  [[nodiscard]] Json json() const { return Json::parse(text_); }
  bool operator==(const Properties&) const = default;

 private:
  std::string text_ = "{}";
};

/// One object of the target's system.
/// `native_id`   the system's own name for it: 1 byte to 16 KiB of UTF-8; percent_encode() helps with other bytes.
///               In the answer to a read it may stay empty: the id asked for
/// `uid`         what survives renaming (oid, inode, UUID); empty when there is nothing of the kind
struct Resource {
  std::string native_id{};
  Properties properties{};
  std::string uid{};
};

/// The text `name` of a declared object, empty when there is none or a null, which stands for absence; INVALID_REQUEST
/// when it is something else.
Result<std::string> text_of(const Json& object, const char* name);

/// Bytes that are not UTF-8, and `%` before two hex digits, as %XX: reversible, and the identity for ordinary names.
std::string percent_encode(std::string_view bytes);
std::string percent_decode(std::string_view text);

// Errors a plugin answers with; the message is for people and names what was tried.
Error not_found(std::string message = "not found");
Error already_exists(std::string message);
Error invalid_request(std::string message);
Error unsupported(std::string message);
Error access_denied(std::string message);
Error throttled(std::string message, Millis retry_after = Millis{0});
Error unavailable(std::string message);
Error conflict(std::string message);
Error limit(std::string message);
/// The change was made, or begun, and the object is not yet as wanted: it is read again.
Error not_stabilized(std::string message);
Error failure(Errc code, std::string message);
/// From errno, by the protocol's error table (ENOENT: NOT_FOUND, EACCES: ACCESS_DENIED, ...).
Error from_errno(int number, std::string_view what);

}  // namespace muster
