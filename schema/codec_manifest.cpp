#include "schema/wire.h"

namespace muster {
namespace wire {

// An empty element of a list costs a word on the wire, and ten times as much in memory.
constexpr std::size_t kMaxConditions = 256;
constexpr std::size_t kMaxKeys = 256;
constexpr std::size_t kMaxParentParameters = 64;
constexpr std::size_t kMaxOperations = 64;
constexpr std::size_t kMaxExamples = 256;
constexpr std::size_t kMaxFunctions = 4096;

static_assert(static_cast<int>(FilterAction::INCLUDE) == static_cast<int>(muster::FilterAction::kInclude));
static_assert(static_cast<int>(MatchOp::EXISTS) == static_cast<int>(muster::MatchOp::kExists));
static_assert(static_cast<int>(ListGives::PROPERTIES) == static_cast<int>(muster::ListGives::kProperties));
static_assert(static_cast<int>(Operation::DIFF) == static_cast<int>(muster::Operation::kDiff));

void put(const muster::Condition& value, Condition::Builder to) {
  if (const auto* match = std::get_if<muster::TagMatch>(&value)) {
    auto tag = to.initTag();
    put_texts(match->keys, tag.initKeys(count(match->keys)));
    tag.setValue(text(match->value));
    return;
  }
  const auto& match = std::get<muster::PropertyMatch>(value);
  auto property = to.initProperty();
  property.setPath(text(match.path));
  property.setOp(static_cast<MatchOp>(match.op));
  property.setValue(text(match.value));
}

muster::Condition get(Condition::Reader from) {
  switch (from.which()) {
    case Condition::TAG: {
      const auto tag = from.getTag();
      return muster::TagMatch{get_texts(at_most(kMaxKeys, tag.getKeys(), "TagMatch.keys"), "TagMatch.keys"),
                              get_text(tag.getValue(), "TagMatch.value")};
    }
    case Condition::PROPERTY: {
      const auto property = from.getProperty();
      return muster::PropertyMatch{get_text(property.getPath(), "PropertyMatch.path"),
                                   get_enum(property.getOp(), muster::MatchOp::kExists, "PropertyMatch.op"),
                                   get_text(property.getValue(), "PropertyMatch.value")};
    }
  }
  throw Malformed("Condition", "unknown kind");
}

void put(const muster::ParentParameter& value, ParentParameter::Builder to) {
  to.setName(text(value.name));
  to.setProperty(text(value.property));
}

muster::ParentParameter get(ParentParameter::Reader from) {
  return {get_text(from.getName(), "ParentParameter.name"), get_text(from.getProperty(), "ParentParameter.property")};
}

void put(const muster::TypeDescriptor& value, TypeDescriptor::Builder to) {
  to.setName(text(value.name));
  to.setDescription(text(value.description));
  to.setSchema(text(value.schema));
  to.setParent(text(value.parent));
  put_all(value.parent_parameters, to.initParentParameters(count(value.parent_parameters)));
  to.setListGives(static_cast<ListGives>(value.list_gives));
  to.setContained(value.contained);
  auto operations = to.initOperations(count(value.operations));
  for (unsigned i = 0; i < operations.size(); ++i) operations.set(i, static_cast<Operation>(value.operations[i]));
  to.setLabelQuery(text(value.label_query));
  to.setDiscoverable(value.discoverable);
  to.setSettleMs(millis(value.settle));
  to.setPageSize(value.page_size);
  to.setReadBatch(value.read_batch);
  put_texts(value.examples, to.initExamples(count(value.examples)));
}

muster::TypeDescriptor get(TypeDescriptor::Reader from) {
  muster::TypeDescriptor type;
  type.name = get_text(from.getName(), "TypeDescriptor.name");
  type.description = get_text(from.getDescription(), "TypeDescriptor.description");
  type.schema = get_text(from.getSchema(), "TypeDescriptor.schema");
  type.parent = get_text(from.getParent(), "TypeDescriptor.parent");
  type.parent_parameters =
      get_all(at_most(kMaxParentParameters, from.getParentParameters(), "TypeDescriptor.parentParameters"));
  type.list_gives = get_enum(from.getListGives(), muster::ListGives::kProperties, "TypeDescriptor.listGives");
  type.contained = from.getContained();
  for (const auto operation : at_most(kMaxOperations, from.getOperations(), "TypeDescriptor.operations")) {
    type.operations.push_back(get_enum(operation, muster::Operation::kDiff, "TypeDescriptor.operations"));
  }
  type.label_query = get_text(from.getLabelQuery(), "TypeDescriptor.labelQuery");
  type.discoverable = from.getDiscoverable();
  type.settle = Millis{from.getSettleMs()};
  type.page_size = from.getPageSize();
  type.read_batch = from.getReadBatch();
  type.examples =
      get_texts(at_most(kMaxExamples, from.getExamples(), "TypeDescriptor.examples"), "TypeDescriptor.examples");
  return type;
}

void put(const muster::Function& value, Function::Builder to) {
  to.setKind(text(value.kind));
  to.setName(text(value.name));
  to.setInputSchema(text(value.input_schema));
  to.setReturns(text(value.returns));
}

muster::Function get(Function::Reader from) {
  return {get_text(from.getKind(), "Function.kind"), get_text(from.getName(), "Function.name"),
          get_text(from.getInputSchema(), "Function.inputSchema"), get_text(from.getReturns(), "Function.returns")};
}

void put(const muster::Manifest& value, Manifest::Builder to) {
  to.setPlugin(text(value.plugin));
  to.setNamespace(text(value.ns));
  to.setVersion(text(value.version));
  to.setDescription(text(value.description));
  put_all(value.types, to.initTypes(count(value.types)));
  to.setLabelQuery(text(value.label_query));
  put_all(value.filters, to.initFilters(count(value.filters)));
  to.setConfigSchema(text(value.config_schema));
  put_all(value.functions, to.initFunctions(count(value.functions)));
}

muster::Manifest get(Manifest::Reader from) {
  muster::Manifest manifest;
  manifest.plugin = get_text(from.getPlugin(), "Manifest.plugin");
  manifest.ns = get_namespace(from.getNamespace(), "Manifest.namespace");
  manifest.version = get_text(from.getVersion(), "Manifest.version");
  manifest.description = get_text(from.getDescription(), "Manifest.description");
  manifest.types = get_all(at_most(kMaxTypes, from.getTypes(), "Manifest.types"));
  manifest.label_query = get_text(from.getLabelQuery(), "Manifest.labelQuery");
  manifest.filters = get_all(at_most(kMaxFilters, from.getFilters(), "Manifest.filters"));
  manifest.config_schema = get_text(from.getConfigSchema(), "Manifest.configSchema");
  manifest.functions = get_all(at_most(kMaxFunctions, from.getFunctions(), "Manifest.functions"));
  return manifest;
}

void put(const muster::MatchFilter& value, MatchFilter::Builder to) {
  put_texts(value.types, to.initTypes(count(value.types)));
  put_all(value.conditions, to.initConditions(count(value.conditions)));
  to.setAction(static_cast<FilterAction>(value.action));
}

muster::MatchFilter get(MatchFilter::Reader from) {
  return {get_texts(at_most(kMaxTypes, from.getTypes(), "MatchFilter.types"), "MatchFilter.types"),
          get_all(at_most(kMaxConditions, from.getConditions(), "MatchFilter.conditions")),
          get_enum(from.getAction(), muster::FilterAction::kInclude, "MatchFilter.action")};
}

}  // namespace wire

Bytes encode(const Manifest& message) {
  return wire::encode_as<wire::Manifest>(message);
}

template <>
Result<Manifest> decode(std::string_view bytes) {
  return wire::decode_as<wire::Manifest>(bytes);
}

}  // namespace muster
