#pragma once

#include <nlohmann/json_fwd.hpp>

#include "coordinator/config.h"

namespace muster {

/// A declared target as it travels in requests; what to_json() gives, the inverse turns back exactly.
/// errors   kMalformed: not such an object, with the field
nlohmann::json to_json(const TargetConfig& target);
Result<TargetConfig> target_from_json(const nlohmann::json& json);

}  // namespace muster
