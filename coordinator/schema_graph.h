#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace muster {

/// What a `$ref` into the schema itself means, and how to say that without doubt.
struct SchemaReference {
  const nlohmann::json* meant = nullptr;  // null: nothing that is there
  std::string pointer;                    // RFC 6901
  std::string text;                       // as a reference, in one spelling for all that mean the same
};

/// Reads names as the library for schemas does: percent-encoded ones too, and slashes too many are none.
SchemaReference reference_of(const nlohmann::json& root, const nlohmann::json& ref);

const nlohmann::json* meant_by(const nlohmann::json& root, const nlohmann::json& ref);

/// Why a schema cannot be followed, none where it can: it refers to itself without going deeper into the document, or
/// leads too far with its references followed. What follows it by recursion is safe then.
/// `schema`   nested_too_deep() was asked
std::optional<std::string> why_not_followed(const nlohmann::json& schema);

}  // namespace muster
