#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/schema_check.h"

namespace muster {

// A schema is a plugin's, and what it is asked about a user's: the library that checks one with the other gets neither
// to follow without end.

/// What a `$ref` into the schema itself means; null: nothing that is there.
const nlohmann::json* meant_by(const nlohmann::json& root, const nlohmann::json& ref);

/// Why no document can be checked by the schema, none where one can: it refers to itself without going deeper.
std::optional<std::string> endless_reference(const nlohmann::json& schema);

/// Takes out what the library would do in more than linear time or by recursion over a text (patterns, formats, unique
/// elements), or not survive, and what cannot be judged without these. Formats are notes to people.
void drop_unbounded(nlohmann::json& schema);

/// Whether a pattern stands where a choice depends on it, or elsewhere where guarded_faults() does not look.
bool has_hidden_patterns(const nlohmann::json& schema);
/// Puts the texts of `document` that match in the place of each pattern: for this document, it says the same.
void bind_patterns(nlohmann::json& schema, const nlohmann::json& document);

/// What patterns and `uniqueItems` of `schema` say against `document`, in linear time: those of properties and of
/// elements, at any depth, also behind references. A pattern that RE2 does not know is left to the plugin; nothing is
/// said of what stands at `unknown`.
std::vector<SchemaFault> guarded_faults(const nlohmann::json& schema, const nlohmann::json& document,
                                        const std::vector<std::string>& unknown);

}  // namespace muster
