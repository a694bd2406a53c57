#include "coordinator/drift.h"

#include <nlohmann/json.hpp>

#include "coordinator/difference.h"
#include "coordinator/must.h"
#include "coordinator/references.h"
#include "schema/mutation.h"
#include "schema/subjects.h"

namespace muster {
namespace {

using Json = nlohmann::json;

JsonObject identity(const ResourceRecord& row, const Claim& claim) {
  JsonObject data;
  data.text("id", row.id.value)
      .text("target", row.target)
      .text("type", row.type)
      .text("native_id", row.native_id)
      .text("stack", claim.stack)
      .text("name", claim.name);
  return data;
}

/// What differs, field by field.
Json fields_of(const Json& patch, const Json& there) {
  auto fields = Json::array();
  for (const auto& change : patch) {
    const auto pointer = Json::json_pointer(change.at("path").get<std::string>());
    fields.push_back({{"path", change.at("path")},
                      {"declared", change.value("value", Json())},
                      {"found", there.contains(pointer) ? there.at(pointer) : Json()}});
  }
  return fields;
}

}  // namespace

Json declared_values(const DeclaredResource& resource, const std::string& stack, Store& store,
                     std::vector<std::string>& unknown) {
  auto values = Json::parse(resource.properties);
  for (const auto& hole : resource.holes) {
    auto value = resolve(hole, [&](const std::string& name, const std::string& path) {
      std::optional<Json> found;
      must(store.of_stack(stack, name, [&](const ManagedView& row) {
        if (row.state != ResourceState::kMissing) found = value_at(Json::parse(row.properties), path);
      }));
      return found;
    });
    if (value && !value->is_null()) {
      values[Json::json_pointer(hole.pointer)] = std::move(*value);
    } else {
      unknown.push_back(hole.pointer);
    }
  }
  return values;
}

const PropertyRule* Drift::rules_of(std::string_view type) {
  const auto served = registry_.type(type);
  if (!served) return nullptr;
  if (const auto known = rules_.find(type); known != rules_.end() && known->second.of == served.manifest) {
    return &known->second.rule;
  }
  auto rules = property_rules(served.type->schema);
  return rules ? &(rules_[std::string(type)] = {served.manifest, std::move(*rules)}).rule : nullptr;
}

struct Drift::Found {
  Claim claim;
  DeclaredResource resource;
  Json there, patch;
};

std::optional<Drift::Found> Drift::look(const ResourceRecord& row) {
  auto claim = must(store_.claim(row.row));
  const auto* rules = rules_of(row.type);
  if (!claim || !rules) return std::nullopt;
  auto resource = declared_resource_from_json(Json::parse(claim->declared, nullptr, false));
  if (!resource || resource->on_drift == OnDrift::kObserve) return std::nullopt;
  std::vector<std::string> unknown;
  const auto declared = declared_values(*resource, claim->stack, store_, unknown);
  auto there = Json::parse(row.properties);
  auto patch = compare(*rules, there, declared, unknown).patch;
  return Found{std::move(*claim), std::move(*resource), std::move(there), std::move(patch)};
}

void Drift::unmark(const ResourceRecord& row) {
  const auto found = look(row);
  if (found && found->patch.empty()) must(store_.set_drifted(row.row, false));
}

void Drift::judge(const ResourceRecord& row) {
  auto found = look(row);
  if (!found) return;
  auto& [claim, resource, there, changes] = *found;
  if (changes.empty()) {
    must(store_.set_drifted(row.row, false));
    return;
  }
  if (resource.on_drift == OnDrift::kAbsorb) {
    auto kept = Json::parse(resource.properties);
    for (const auto& change : changes) {
      auto path = change.at("path").get<std::string>();
      for (const auto& hole : resource.holes) {
        if (within(path, hole.pointer)) path = hole.pointer;  // of what it referred to no part can stay
      }
      const Json::json_pointer at(path);
      kept[at] = there.contains(at) ? there.at(at) : Json();
      std::erase_if(resource.holes, [&, &resource = resource](const Hole& hole) {
        if (!within(hole.pointer, path)) return false;
        // What it referred to may be what it uses still: the order of deletions must not forget that.
        for (const auto& part : hole.parts) {
          if (part.kind == TextPart::Kind::kResource) resource.after.push_back(part.text);
        }
        return true;
      });
    }
    resource.properties = kept.dump();
    must(store_.manage(row.row, {claim.stack, claim.name, declared_text(resource)}));
  } else {
    must(store_.set_drifted(row.row, true));
    if (resource.on_drift == OnDrift::kRevert) reversions_.push_back({claim.stack, claim.name});
  }
  auto data = identity(row, claim);
  data.text("on_drift", on_drift_name(resource.on_drift));
  const auto patch = changes.dump();
  const auto fields = fields_of(changes, there).dump();
  if (patch.size() + fields.size() > kMaxPatchBytes) {
    data.flag("patch_left_out", true);
  } else {
    data.raw("patch", patch).raw("fields", fields);
  }
  if (MUSTER_MUTATION("drift-untold")) return;
  events_.emit(namespace_of(row.type), "resource.drifted", row.id.value, data.take());
}

void Drift::gone(const ResourceRecord& row) {
  const auto claim = must(store_.claim(row.row));
  if (!claim) return;
  const auto resource = declared_resource_from_json(Json::parse(claim->declared, nullptr, false));
  if (!resource || resource->on_drift == OnDrift::kObserve) return;
  must(store_.set_drifted(row.row, true));
  if (resource->on_drift == OnDrift::kRevert) reversions_.push_back({claim->stack, claim->name});
  auto data = identity(row, *claim);
  data.text("on_drift", on_drift_name(resource->on_drift)).text("reason", "missing");
  events_.emit(namespace_of(row.type), "resource.drifted", row.id.value, data.take());
}

}  // namespace muster
