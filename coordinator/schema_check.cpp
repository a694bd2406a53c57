#include "coordinator/schema_check.h"

#include <algorithm>

#include <nlohmann/json.hpp>

// The library declares members that hide others.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#pragma GCC diagnostic pop

namespace muster {
namespace {

using Json = nlohmann::json;

/// `["<root>", "[a]", "[0]"]` as `/a/0`.
std::string pointer_of(const std::vector<std::string>& context) {
  std::string pointer;
  for (const auto& part : context) {
    if (part.size() < 2 || part.front() != '[') continue;
    pointer += '/';
    for (const char c : part.substr(1, part.size() - 2)) {
      pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    }
  }
  return pointer;
}

/// What only the system sets cannot be asked of a declaration.
void drop_read_only(Json& schema) {
  if (!schema.is_object() || !schema.contains("properties") || !schema["properties"].is_object()) return;
  for (auto& [name, property] : schema["properties"].items()) {
    if (property.is_object() && property.value("readOnly", Json()) == true && schema.contains("required") &&
        schema["required"].is_array()) {
      auto& required = schema["required"];
      required.erase(std::remove(required.begin(), required.end(), Json(name)), required.end());
    }
    drop_read_only(property);
  }
  if (schema.contains("required") && schema["required"].empty()) schema.erase("required");
}

}  // namespace

struct SchemaCheck::Compiled {
  valijson::Schema schema;
};

SchemaCheck::SchemaCheck(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
SchemaCheck::SchemaCheck(SchemaCheck&&) noexcept = default;
SchemaCheck& SchemaCheck::operator=(SchemaCheck&&) noexcept = default;
SchemaCheck::~SchemaCheck() = default;

Result<SchemaCheck> SchemaCheck::compile(const JsonText& text) {
  auto schema = Json::parse(text, nullptr, false);
  if (!schema.is_object()) return Error{Errc::kMalformed, "the schema is no JSON object", {}, 0};
  drop_read_only(schema);
  try {
    auto compiled = std::make_unique<Compiled>();
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled->schema);
    return SchemaCheck(std::move(compiled));
  } catch (const std::exception& error) {  // how the library says that it is no schema
    return Error{Errc::kMalformed, std::string("the schema cannot be used: ") + error.what(), {}, 0};
  }
}

std::vector<SchemaFault> SchemaCheck::faults(const Json& document) const {
  valijson::Validator validator;
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter adapter(document);
  std::vector<SchemaFault> found;
  if (validator.validate(compiled_->schema, adapter, &results)) return found;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    // Each fault is told again for everything that it is in: the innermost says what is wrong.
    if (error.description.find("Failed to validate against schema") == 0) continue;
    found.push_back({pointer_of(error.context), error.description});
  }
  if (found.empty()) found.push_back({{}, "is not as its schema says"});
  return found;
}

}  // namespace muster
