#include "coordinator/api_request.h"

#include "schema/nesting.h"

namespace muster {

Result<ApiRequest> ApiRequest::parse(std::string_view body) {
  if (nested_too_deep(body)) return Error{Errc::kInvalidRequest, "the request is nested too deep", {}, 0};
  auto json = body.empty() ? nlohmann::json::object() : nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return Error{Errc::kInvalidRequest, "the request is no JSON object", {}, 0};
  if (json.contains("api") && json["api"] != 1) {
    return Error{Errc::kInvalidRequest, "this coordinator speaks api 1, the request another", {}, 0};
  }
  ApiRequest request(std::move(json));
  request.bytes_ = body.size();
  return request;
}

const nlohmann::json* ApiRequest::find(const char* name) const {
  const auto it = json_.find(name);
  return it == json_.end() || it->is_null() ? nullptr : &*it;
}

void ApiRequest::blame(const char* name, std::string_view expected) {
  if (!fault_) fault_ = Error{Errc::kInvalidRequest, std::string(name) + " must be " + std::string(expected), {}, 0};
}

std::string ApiRequest::text(const char* name) {
  const auto* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  blame(name, "a string");
  return {};
}

std::string ApiRequest::required_text(const char* name) {
  auto value = text(name);
  if (value.empty()) blame(name, "given");
  return value;
}

std::vector<std::string> ApiRequest::texts(const char* name) {
  std::vector<std::string> values;
  const auto* list = find(name);
  if (list == nullptr) return values;
  if (!list->is_array()) {
    blame(name, "an array of strings");
    return values;
  }
  for (const auto& value : *list) {
    if (value.is_string()) {
      values.push_back(value.get<std::string>());
    } else {
      blame(name, "an array of strings");
    }
  }
  return values;
}

std::optional<bool> ApiRequest::flag(const char* name) {
  const auto* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  blame(name, "true or false");
  return std::nullopt;
}

std::uint64_t ApiRequest::number(const char* name, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) {
  const auto* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_number_unsigned()) {
    const auto number = value->get<std::uint64_t>();
    if (number >= least && number <= most) return number;
  }
  blame(name, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  return otherwise;
}

}  // namespace muster
