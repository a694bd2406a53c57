#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/schema_check.h"

namespace muster {

/// Takes the patterns out of a JSON Schema, and what cannot be judged without them: the library that checks the rest
/// gives them to a matcher whose stack grows with the text and whose time may grow without end. Formats, too: it looks
/// at them in the same way, and they are notes to people.
void drop_patterns(nlohmann::json& schema);

/// What the patterns of `schema` say against `document`, in linear time: those of properties and of elements, at any
/// depth, also behind references. A pattern that RE2 does not know is left to the plugin.
std::vector<SchemaFault> pattern_faults(const nlohmann::json& schema, const nlohmann::json& document);

}  // namespace muster
