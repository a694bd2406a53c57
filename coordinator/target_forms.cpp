#include "coordinator/target_forms.h"

#include <nlohmann/json.hpp>

#include "coordinator/json_forms.h"
#include "coordinator/target_reader.h"
#include "schema/nesting.h"
#include "schema/subjects.h"

namespace muster {

using Json = nlohmann::json;

Json to_json(const TargetConfig& target) {
  return {{"name", target.name},
          {"namespace", target.ns},
          {"pool", target.pool},
          {"config", to_json(target.config)},
          {"discover", target.discover},
          {"filters", to_json(target.filters)},
          {"interval_ms", target.interval.count()},
          {"renamed_from", target.renamed_from}};
}

Result<TargetConfig> target_from_json(const Json& json) {
  const auto wrong = [](const std::string& what) { return Error{Errc::kMalformed, "target: " + what, {}, 0}; };
  if (!json.is_object()) return wrong("an object is expected");
  try {
    TargetConfig target;
    target.name = json.at("name");
    target.ns = json.at("namespace");
    target.pool = json.value("pool", target.pool);
    target.discover = json.value("discover", true);
    const auto& interval = json.contains("interval_ms") ? json.at("interval_ms") : Json(0);
    if (!interval.is_number_integer() || !is_interval(Millis(interval.get<std::int64_t>()))) {
      return wrong("interval_ms must be 0 (the fleet's), or 100 to 31536000000");
    }
    target.interval = Millis(interval.get<std::int64_t>());
    if (!valid_target_name(target.name)) return wrong(std::string("name must be ") + kTargetNameWanted.data());
    if (!valid_namespace(target.ns) || !valid_namespace(target.pool)) return wrong("namespace or pool is none");
    target.renamed_from = json.value("renamed_from", std::string());
    if (!target.renamed_from.empty() && !valid_target_name(target.renamed_from)) {
      return wrong(std::string("renamed_from must be ") + kTargetNameWanted.data());
    }
    if (json.contains("config")) {
      auto config = document_from_json(json.at("config"));
      if (!config) return wrong(config.error().message);
      if (nested_too_deep(config->json)) return wrong("config is nested too deep");
      target.config = std::move(*config);
    }
    if (json.contains("filters")) {
      auto filters = filters_from_json(json.at("filters"));
      if (!filters) return wrong(filters.error().message);
      target.filters = std::move(*filters);
    }
    return target;
  } catch (const Json::exception& error) {
    return wrong(error.what());
  }
}

}  // namespace muster
