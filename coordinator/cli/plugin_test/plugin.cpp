// What holds for a plugin as a whole.

#include <algorithm>

#include "coordinator/cli/plugin_test/checks.h"
#include "coordinator/cli/plugin_test/plan.h"
#include "coordinator/difference.h"
#include "coordinator/filter.h"
#include "coordinator/label.h"
#include "coordinator/registry.h"
#include "coordinator/schema_check.h"

namespace muster::cli::conformance {

bool is_root(const TypeDescriptor& type) {
  return type.parent.empty() || type.parent == type.name;
}

bool Case::can(Operation operation) const {
  return std::ranges::find(type.operations, operation) != type.operations.end();
}

void Case::need(Operation operation) const {
  if (can(operation)) return;
  constexpr const char* kNames[] = {"list", "read", "create", "update", "delete", "status", "check", "diff"};
  throw CheckSkipped(std::string("the type has no ") + kNames[static_cast<std::size_t>(operation)]);
}

std::vector<std::string> Case::difference(const Object& object) const {
  std::vector<std::string> texts;
  const auto difference = compare(bench.rules(type.name), Json::parse(object.item.properties),
                                  Json::parse(object.declared.json), pointers_of(object.declared));
  for (const auto& change : difference.patch) texts.push_back(change.dump());
  return texts;
}

Below Case::other_parent() const {
  if (type.parent.empty()) throw CheckSkipped("the type has no parent");
  const auto* const parent = bench.fixture(fixture.parent);
  if (parent == nullptr) throw CheckSkipped("the fixture's parent is no fixture");
  if (parent->many < 2) throw CheckSkipped("there can be only one parent");
  Below below{bench.make(*parent, scope), scope};
  for (auto& each : below.scope.objects) {
    if (each.fixture == parent) each = below.parent;
  }
  return below;
}

std::string check_manifest(Bench& bench) {
  const auto& manifest = bench.fleet().manifest();
  if (const auto fault = manifest_fault(manifest, manifest.ns)) throw CheckFailed(*fault);
  if (const auto schema = SchemaCheck::compile(manifest.config_schema); !schema) {
    throw CheckFailed("the schema of a target's config: " + schema.error().message);
  }
  if (const auto filters = FilterSet::compile(manifest.filters); !filters) throw CheckFailed(filters.error().message);
  if (const auto labels = Labels::compile(manifest); !labels) throw CheckFailed(labels.error().message);
  for (const auto& type : manifest.types) {
    if (const auto schema = SchemaCheck::compile(type.schema); !schema) {
      throw CheckFailed("the schema of " + type.name + ": " + schema.error().message);
    }
    const auto schema = Json::parse(type.schema);
    const auto known = schema.value("properties", Json::object());
    for (const auto& name : schema.value("x-muster-identity", Json::array())) {
      if (!name.is_string() || !known.contains(name.get<std::string>()))
        throw CheckFailed("x-muster-identity of " + type.name + " names what is no property: " + name.dump());
    }
    const auto has = [&](Operation operation) {
      return std::ranges::find(type.operations, operation) != type.operations.end();
    };
    const bool changes = has(Operation::kCreate) || has(Operation::kUpdate) || has(Operation::kDelete);
    if (changes && !has(Operation::kRead)) throw CheckFailed(type.name + " can be changed, and not read");
  }
  return std::to_string(manifest.types.size()) + " types";
}

std::string check_examples(const TypeDescriptor& type) {
  const auto schema = SchemaCheck::compile(type.schema);
  if (!schema) throw CheckFailed(schema.error().message);
  for (const auto& text : type.examples) {
    const auto example = Json::parse(text, nullptr, false);
    if (!example.is_object()) throw CheckFailed("no JSON object: " + text);
    const auto faults = schema->faults(example);
    if (!faults) throw CheckFailed(faults.error().message);
    for (const auto& fault : *faults) throw CheckFailed(fault.pointer + ": " + fault.message);
  }
  return std::to_string(type.examples.size());
}

std::string check_inspect(Bench& bench) {
  std::string seen;
  for (const auto& system : bench.systems()) {
    std::string before;
    for (int i = 0; i < 2; ++i) {
      const auto result = bench.fleet().run(system.target, "", InspectJob{});
      const auto* answer = std::get_if<InspectResult>(&result);
      if (answer == nullptr) throw CheckFailed("inspect was answered with " + to_string(result));
      if (i > 0 && answer->system != before)
        throw CheckFailed("inspect names another system the second time: " + before + ", " + answer->system);
      if (const auto filters = FilterSet::compile(answer->filters); !filters)
        throw CheckFailed(filters.error().message);
      for (const auto& type : answer->types) {
        if (bench.type(type) == nullptr) throw CheckFailed("inspect names a type that the manifest does not: " + type);
      }
      before = answer->system;
    }
    seen += (seen.empty() ? "" : "; ") + (before.empty() ? std::string("the system is not known") : before);
  }
  return seen;
}

std::string check_credentials(Bench& bench, const std::vector<System>& bad) {
  if (bad.empty()) throw CheckSkipped("the target file has no `bad`");
  std::string seen;
  for (const auto& type : bench.fleet().manifest().types) {
    const bool lists = std::ranges::find(type.operations, Operation::kList) != type.operations.end();
    if (!is_root(type) || !lists) continue;
    const auto dispatch = bench.fleet().send(bad.front().target, type.name, ListJob{{}, {}, 10});
    const auto& result = bench.fleet().wait(dispatch);
    const auto* error = std::get_if<Error>(&result);
    const auto what = "list of " + type.name + " with the target file's `bad`";
    if (error == nullptr) throw CheckFailed(what + " was answered as if it were good");
    if (error_traits(error->code).retry != Retry::kNever)
      throw CheckFailed(what + " was answered with " + to_string(*error) + ", which says to try again");
    if (dispatch->calls > 1)
      throw CheckFailed(what + " cost " + std::to_string(dispatch->calls) + " calls: the plugin tries again itself");
    seen = to_string(*error);
  }
  if (seen.empty()) throw CheckSkipped("there is no type that is listed below nothing");
  return seen;
}

}  // namespace muster::cli::conformance
