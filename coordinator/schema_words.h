#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace muster {

/// Where the schema library found a fault: its `["<root>", "[a]", "[0]"]` as the JSON pointer `/a/0`.
std::string schema_pointer(const std::vector<std::string>& context);

/// What the schema library says of a fault, as users would say it, with what the schema asks for. Values of the
/// document, which may be secrets, are not in it. What has no better words is returned as it is.
/// `schema`     whole; its `properties` and `items` are followed to the place
/// `document`   that does not fulfil it
std::string in_plain_words(std::string_view description, const std::vector<std::string>& context,
                           const nlohmann::json& schema, const nlohmann::json& document);

}  // namespace muster
