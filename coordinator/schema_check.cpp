#include "coordinator/schema_check.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/canonical.h"
#include "coordinator/schema_guard.h"
#include "coordinator/schema_words.h"

#define VALIJSON_USE_EXCEPTIONS 1  // else it ends the process at a schema that is none

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

bool repeats(std::string_view description) {
  return description.starts_with("Failed to validate against schema") ||
         description.starts_with("Failed to validate item #");
}

/// Whether it is of which members there are, and not of their values.
bool is_of_members(std::string_view description) {
  constexpr std::array<std::string_view, 6> kBegins{"Missing required",       "Missing dependency",
                                                    "Object contains a prop", "Object should have",
                                                    "Array contains more",    "Array should contain"};
  return std::ranges::any_of(kBegins, [&](auto begin) { return description.starts_with(begin); });
}

/// Whether a JSON pointer is `outer`, or of something in it.
bool is_within(std::string_view pointer, std::string_view outer) {
  return pointer.starts_with(outer) && (pointer.size() == outer.size() || pointer[outer.size()] == '/');
}

}  // namespace

struct SchemaCheck::Compiled {
  Json source;
  bool hidden_patterns = false;
  valijson::Schema schema;
};

SchemaCheck::SchemaCheck(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
SchemaCheck::SchemaCheck(SchemaCheck&&) noexcept = default;
SchemaCheck& SchemaCheck::operator=(SchemaCheck&&) noexcept = default;
SchemaCheck::~SchemaCheck() = default;

Result<SchemaCheck> SchemaCheck::compile(const JsonText& text) {
  if (nested_too_deep(text)) return Error{Errc::kMalformed, "the schema is nested too deep", {}, 0};
  auto schema = Json::parse(text, nullptr, false);
  if (!schema.is_object()) return Error{Errc::kMalformed, "the schema is no JSON object", {}, 0};
  if (auto endless = endless_reference(schema)) return Error{Errc::kMalformed, std::move(*endless), {}, 0};
  drop_read_only(schema);
  try {
    auto compiled = std::make_unique<Compiled>();
    valijson::SchemaParser parser;
    compiled->source = schema;
    compiled->hidden_patterns = has_hidden_patterns(schema);
    drop_unbounded(schema);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled->schema);
    return SchemaCheck(std::move(compiled));
  } catch (const std::exception& error) {  // how the library says that it is no schema
    return Error{Errc::kMalformed, std::string("the schema cannot be used: ") + error.what(), {}, 0};
  }
}

std::vector<SchemaFault> SchemaCheck::faults(const Json& document, const std::vector<std::string>& unknown) const {
  auto found = structure_faults(document, unknown);
  for (auto& fault : guarded_faults(compiled_->source, document, unknown)) {
    if (std::ranges::find(found, fault.pointer, &SchemaFault::pointer) == found.end() || fault.pointer.empty()) {
      found.push_back(std::move(fault));
    }
  }
  return found;
}

/// What the library says.
std::vector<SchemaFault> SchemaCheck::structure_faults(const Json& document,
                                                       const std::vector<std::string>& unknown) const {
  valijson::Validator validator;
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter adapter(document);
  std::vector<SchemaFault> found;
  try {
    std::optional<valijson::Schema> bound;
    if (compiled_->hidden_patterns) {
      auto schema = compiled_->source;
      bind_patterns(schema, document);
      drop_unbounded(schema);
      valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), bound.emplace());
    }
    if (validator.validate(bound ? *bound : compiled_->schema, adapter, &results)) return found;
  } catch (const std::exception&) {  // the schema asks for what it cannot do: that is left to the plugin
    return found;
  }
  std::vector<std::string> undecided;  // places of which one of several schemas may hold
  bool any = false;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    // Each fault is told again for everything that it is in: the innermost says what is wrong.
    if (repeats(error.description)) continue;
    any = true;
    auto pointer = schema_pointer(error.context);
    const bool holds_unknown = std::ranges::any_of(unknown, [&](const auto& at) { return is_within(at, pointer); });
    if (!holds_unknown || is_of_members(error.description)) {
      found.push_back(
          {std::move(pointer), in_plain_words(error.description, error.context, compiled_->source, document)});
    } else if (error.description.starts_with("Failed to validate")) {
      undecided.push_back(std::move(pointer));
    }
  }
  std::erase_if(found, [&](const auto& fault) {
    return std::ranges::any_of(undecided, [&](const auto& at) { return is_within(fault.pointer, at); });
  });
  if (!any) found.push_back({{}, "is not as its schema says"});
  return found;
}

}  // namespace muster
