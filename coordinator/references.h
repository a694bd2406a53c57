#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "coordinator/declaration.h"

namespace muster {

/// The value at a dotted path like `name` or `columns[0].name`; none when nothing is there.
std::optional<nlohmann::json> value_at(const nlohmann::json& object, const std::string& path);

/// The same as a JSON pointer: `/columns/0/name`.
std::string pointer_to(std::string_view path);

/// Value of a declared resource's property, none while it is not known.
using ReferenceLookup =
    std::function<std::optional<nlohmann::json>(const std::string& resource, const std::string& path)>;

/// The value of a hole: that of the property where it is one reference, a text where it is several parts. None while
/// some part is not known, or null within a text, or when a worker has to resolve it.
std::optional<nlohmann::json> resolve(const Hole& hole, const ReferenceLookup& lookup);

}  // namespace muster
