#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "schema/messages.h"

namespace muster {

/// Domain values as JSON, for the store and for answers. A filter has the form of the configuration file; a document is
/// its text and its references (no secret is in either). What to_json() gives, the inverse turns back exactly.
/// errors   kMalformed: not such an object
nlohmann::json to_json(const MatchFilter& filter);
nlohmann::json to_json(const std::vector<MatchFilter>& filters);
nlohmann::json to_json(const Document& document);

Result<MatchFilter> filter_from_json(const nlohmann::json& json);
Result<std::vector<MatchFilter>> filters_from_json(const nlohmann::json& json);
Result<Document> document_from_json(const nlohmann::json& json);

}  // namespace muster
