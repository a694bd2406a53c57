#pragma once

#include <map>
#include <string>

#include "coordinator/cli/output.h"

namespace muster::cli {

/// One JSON Schema for files that `muster apply` takes: what stands around resources, and by the name of its type what
/// a resource's properties are. The same bytes for the same input.
/// `types`     JSON Schema of each type, by name
/// `configs`   JSON Schema of a target's `config`, by namespace
Json editor_schema(const std::map<std::string, Json>& types, const std::map<std::string, Json>& configs);

}  // namespace muster::cli
