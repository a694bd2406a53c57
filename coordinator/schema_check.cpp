#include "coordinator/schema_check.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <regex>
#include <string_view>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/schema_graph.h"
#include "coordinator/schema_guard.h"
#include "coordinator/schema_words.h"
#include "schema/nesting.h"

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
#include <valijson/validation_visitor.hpp>
#pragma GCC diagnostic pop

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxSteps = 2'000'000;  // of one document
constexpr int kMaxDepth = 1024;               // schemas that are asked within each other
constexpr std::size_t kBytesOfNameStep = 64;
constexpr std::size_t kStepsOfError = 8;

using RegexCache = std::unordered_map<std::string, std::regex>;

/// What the library takes along through a validation, as the cache that it has no use for here.
struct Validation : RegexCache {
  explicit Validation(CheckBudget& of) : budget(of) {}
  CheckBudget& budget;
  int depth = 0;
};

/// The steps of going through what a constraint lists.
std::size_t listed_in(const valijson::constraints::Constraint& constraint) {
  using namespace valijson::constraints;
  std::size_t listed = 0;
  const auto count = [&](const auto&...) {
    ++listed;
    return true;
  };
  const auto& kind = typeid(constraint);
  if (kind == typeid(EnumConstraint)) static_cast<const EnumConstraint&>(constraint).applyToValues(count);
  if (kind == typeid(RequiredConstraint)) {
    static_cast<const RequiredConstraint&>(constraint).applyToRequiredProperties(count);
  }
  if (kind == typeid(PropertiesConstraint)) {
    static_cast<const PropertiesConstraint&>(constraint).applyToProperties(count);
  }
  if (kind == typeid(DependenciesConstraint)) {
    const auto& dependencies = static_cast<const DependenciesConstraint&>(constraint);
    dependencies.applyToSchemaDependencies(count);
    dependencies.applyToPropertyDependencies([&](const auto&, const auto& names) {
      listed += 1 + names.size();
      return true;
    });
  }
  return 1 + listed;
}

template <typename Target>
std::size_t size_of(const Target& value) {
  std::size_t size = 1;
  if (value.isString()) size += value.asString().size() / kBytesOfNameStep;
  if (value.isArray()) {
    for (const auto each : value.asArray()) size += size_of(each);
  }
  if (value.isObject()) {
    for (const auto each : value.asObject()) size += size_of(each.second);
  }
  return size;
}

/// What a constraint looks at of a value beside what it asks other schemas about.
template <typename Target>
std::size_t looked_at(const valijson::constraints::Constraint& constraint, const Target& value) {
  using namespace valijson::constraints;
  const auto& kind = typeid(constraint);
  if (kind == typeid(PropertiesConstraint)) return 1 + (value.isObject() ? value.asObject().size() : 0);
  const bool all = kind == typeid(EnumConstraint) || kind == typeid(ConstConstraint) ||
                   kind == typeid(MinLengthConstraint) || kind == typeid(MaxLengthConstraint);
  return all ? size_of(value) : 0;
}

/// Whether the faults of other schemas are copied into those of the constraint, or there is one for each that it lists.
bool tells_many(const valijson::constraints::Constraint& constraint) {
  using namespace valijson::constraints;
  const auto& kind = typeid(constraint);
  return kind == typeid(AnyOfConstraint) || kind == typeid(OneOfConstraint) || kind == typeid(ConditionalConstraint) ||
         kind == typeid(RequiredConstraint);
}

/// What the library does at each schema that it asks about a value, with a bound on all of it.
template <typename Target>
bool validate_within(valijson::constraints::ConstraintVisitor& visitor, const valijson::Subschema& schema,
                     const Target& value, const std::vector<std::string>& context, valijson::ValidationResults* results,
                     RegexCache& cache) {
  auto& validation = static_cast<Validation&>(cache);
  std::size_t step = 1 + context.size() / 8;  // the context is copied for each part of the value, and for each fault
  for (const auto& part : context) step += part.size() / kBytesOfNameStep;
  validation.budget.take(step);
  if (schema.getAlwaysInvalid()) return false;
  if (++validation.depth > kMaxDepth) throw CheckBudget::Spent();
  valijson::Subschema::ApplyFunction ask = [&](const auto& constraint) {
    validation.budget.take(step * (listed_in(constraint) + looked_at(constraint, value)));
    const auto before = results == nullptr ? 0 : results->numErrors();
    const bool fits = constraint.accept(visitor);
    if (results != nullptr && !fits) {
      validation.budget.take(step * kStepsOfError * (tells_many(constraint) ? results->numErrors() - before : 1));
    }
    return fits;
  };
  const bool fits = results == nullptr ? schema.applyStrict(ask) : schema.apply(ask);
  --validation.depth;
  return fits;
}

}  // namespace
}  // namespace muster

namespace valijson {

// Each validation here brings a muster::Validation: no other file has any.
template <>
bool ValidationVisitor<adapters::NlohmannJsonAdapter>::validateSchema(const Subschema& schema) {
  return muster::validate_within(*this, schema, m_target, m_context, m_results, m_regexesCache);
}
template <>
bool ValidationVisitor<adapters::StdStringAdapter>::validateSchema(const Subschema& schema) {  // names of members
  return muster::validate_within(*this, schema, m_target, m_context, m_results, m_regexesCache);
}

}  // namespace valijson

namespace muster {
namespace {

/// What only the system sets cannot be asked of a declaration.
class ReadOnly {
 public:
  explicit ReadOnly(const Json& root) : root_(root) {}

  /// Takes it out of what the schema requires, wherever that stands. `schema` has what the root has.
  void drop(Json& schema) {
    constexpr std::array kByName{"properties", "patternProperties", "dependencies", "$defs", "definitions"};
    constexpr std::array kAround{
        "items", "additionalItems", "additionalProperties", "contains", "allOf", "anyOf", "oneOf", "not", "if", "then",
        "else"};
    if (schema.is_array()) {
      for (auto& each : schema) drop(each);
    }
    if (!schema.is_object()) return;
    drop_required(schema);
    for (const char* keyword : kByName) {
      const auto found = schema.find(keyword);
      if (found == schema.end() || !found->is_object()) continue;
      for (auto& each : *found) {
        if (each.is_object()) drop(each);
      }
    }
    for (const char* keyword : kAround) {
      if (const auto found = schema.find(keyword); found != schema.end()) drop(*found);
    }
  }

 private:
  void drop_required(Json& schema) {
    const auto properties = schema.find("properties"), required = schema.find("required");
    if (properties == schema.end() || !properties->is_object()) return;
    if (required == schema.end() || !required->is_array()) return;
    const auto is_set = [&](const Json& name) {
      const auto* const text = name.get_ptr<const std::string*>();
      const auto found = text == nullptr ? properties->end() : properties->find(*text);
      return found != properties->end() && marked(*found);
    };
    required->erase(std::remove_if(required->begin(), required->end(), is_set), required->end());
    if (required->empty()) schema.erase(required);
  }

  /// Whether a schema, or another that holds as well, says so. None leads back to itself.
  bool marked(const Json& schema) {
    if (!schema.is_object()) return false;
    if (schema.value("readOnly", Json()) == true) return true;
    const auto ref = schema.find("$ref"), all = schema.find("allOf");
    if (ref != schema.end() && refers_to_marked(*ref)) return true;
    return all != schema.end() && all->is_array() &&
           std::ranges::any_of(*all, [&](const Json& each) { return marked(each); });
  }

  bool refers_to_marked(const Json& ref) {
    const auto* const meant = meant_by(root_, ref);
    if (meant == nullptr) return false;
    if (const auto known = known_.find(meant); known != known_.end()) return known->second;
    return known_[meant] = marked(*meant);
  }

  const Json& root_;
  std::unordered_map<const Json*, bool> known_;  // of what is referred to
};

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
  std::size_t steps = kMaxSteps;  // that a document may take
};

SchemaCheck::SchemaCheck(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
SchemaCheck::SchemaCheck(SchemaCheck&&) noexcept = default;
SchemaCheck& SchemaCheck::operator=(SchemaCheck&&) noexcept = default;
SchemaCheck::~SchemaCheck() = default;

Result<SchemaCheck> SchemaCheck::compile(const JsonText& text) {
  if (nested_too_deep(text)) return Error{Errc::kMalformed, "the schema is nested too deep", {}, 0};
  auto schema = Json::parse(text, nullptr, false);
  if (!schema.is_object()) return Error{Errc::kMalformed, "the schema is no JSON object", {}, 0};
  if (auto why = why_not_followed(schema)) return Error{Errc::kMalformed, std::move(*why), {}, 0};
  ReadOnly(Json(schema)).drop(schema);
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

Result<std::vector<SchemaFault>> SchemaCheck::faults(const Json& document,
                                                     const std::vector<std::string>& unknown) const {
  CheckBudget budget(compiled_->steps);
  try {
    auto found = structure_faults(document, unknown, budget);
    for (auto& fault : guarded_faults(compiled_->source, document, unknown, budget)) {
      if (std::ranges::find(found, fault.pointer, &SchemaFault::pointer) == found.end() || fault.pointer.empty()) {
        found.push_back(std::move(fault));
      }
    }
    return found;
  } catch (const CheckBudget::Spent&) {
    compiled_->steps /= 2;  // there may be many documents
    return Error{Errc::kTooLarge, "its schema asks more of it than there is time to check", {}, 0};
  }
}

/// What the library says.
std::vector<SchemaFault> SchemaCheck::structure_faults(const Json& document, const std::vector<std::string>& unknown,
                                                       CheckBudget& budget) const {
  Validation validation(budget);
  valijson::ValidationResults results;
  std::vector<SchemaFault> found;
  try {
    std::optional<valijson::Schema> bound;
    if (compiled_->hidden_patterns) {
      auto schema = compiled_->source;
      bind_patterns(schema, document, budget);
      drop_unbounded(schema);
      valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), bound.emplace());
    }
    valijson::ValidationVisitor<valijson::adapters::NlohmannJsonAdapter> visitor(document, {"<root>"}, true, &results,
                                                                                 validation);
    if (visitor.validateSchema(bound ? *bound : compiled_->schema)) return found;
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
      if (found.size() == kMaxFaults) continue;
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
