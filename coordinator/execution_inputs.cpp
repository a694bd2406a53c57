// What a step works with: its row, its target and type, what it declares, what it lies in.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "coordinator/claim.h"
#include "coordinator/execution_work.h"
#include "coordinator/must.h"
#include "coordinator/references.h"

namespace muster {

using Json = nlohmann::json;

/// What the step has made or changed already: its row, which has what the change was answered with.
void Execution::find_made(Work& work) {
  each_named(work.step.stack, work.step.name, [&](const ManagedView& row) {
    if (row.type != work.step.type || row.target != work.step.target) return;
    work.row = row.row;
    work.prior = row.properties;
  });
}

RowId Execution::read_row(const Work& work) {
  return work.phase() == Phase::kConverging ? work.row : work.step.row;
}

bool Execution::is_listed(RowId row) const {
  const auto known = row == 0 ? std::nullopt : must(s_.store.one(row));
  return known && (known->state == ResourceState::kPresent || known->state == ResourceState::kStale);
}

/// As it is now: it may have become another while the step was under way.
Result<void> Execution::find_target(Work& work) {
  const auto& name = work.step.target;
  const auto target = must(s_.store.target(name));
  if (target) work.target = *target;
  if (!target || target->state == TargetState::kRemoved) {
    return Error{Errc::kNotFound, "no target is named '" + name + "' any more", {}, 0};
  }
  if (target->state == TargetState::kChanged) {
    return Error{Errc::kTargetChanged,
                 "target " + name + " is another system, or has another configuration, than before: look, " +
                     "then `muster targets accept " + name + "`",
                 {},
                 0};
  }
  return {};
}

Result<void> Execution::locate(Work& work) {
  const auto& step = work.step;
  const auto row = step.row != 0 ? must(s_.store.one(step.row)) : std::nullopt;
  if (row) work.keep(*row);
  const auto there = find_target(work);
  if (!work.target.ns.empty()) {
    work.manifest = s_.registry.manifest_of({work.target.ns, work.target.pool}).second;
    if (!work.manifest) work.manifest = s_.registry.latest_manifest(work.target.ns).second;
  }
  if (work.manifest) {
    const auto type = std::ranges::find(work.manifest->types, step.type, &TypeDescriptor::name);
    if (type != work.manifest->types.end()) work.type = &*type;
  }
  if (step.action == StepAction::kReplace) {
    auto order = step.resource ? step.resource->replace : ReplaceOrder::kAsType;
    if (order == ReplaceOrder::kAsType && work.type != nullptr) {
      order = rules_of(*work.type).create_first ? ReplaceOrder::kCreateFirst : ReplaceOrder::kDeleteFirst;
    }
    work.set_order(order);
  }
  // Known before anything speaks against it: the key must not be lost.
  if (work.change() == Work::Change::kCreate) inherit_key(work);
  if (!there) return there;
  if (work.type == nullptr) return Error{Errc::kUnsupported, "no plugin serves type '" + step.type + "' now", {}, 0};
  if (work.scan == 0) work.scan = must(s_.store.scan(work.target.id, step.type)).id;
  return {};
}

const PropertyRule& Execution::rules_of(const TypeDescriptor& type) {
  const auto [it, made] = rules_.try_emplace(type.name);
  if (made) {
    if (auto rules = property_rules(type.schema)) it->second = std::move(*rules);
  }
  return it->second;
}

std::optional<Json> Execution::reference(const std::string& stack, const std::string& name, const std::string& path) {
  std::optional<Json> found;
  each_named(stack, name, [&](const ManagedView& row) {
    if (row.state != ResourceState::kMissing) found = value_at(Json::parse(row.properties), path);
  });
  return found;
}

Result<Document> Execution::document(const CommandStep& step) {
  const auto& resource = *step.resource;
  auto values = Json::parse(resource.properties);
  Document document;
  for (const auto& hole : resource.holes) {
    std::optional<Error> missing;
    const auto lookup = [&](const std::string& name, const std::string& path) {
      auto value = reference(step.stack, name, path);
      if (!value) {
        missing = Error{Errc::kInvalidRequest,
                        hole.pointer + " refers to " + name + "." + path + ", and " + name + " has no such property",
                        {},
                        0};
      }
      return value;
    };
    if (!hole.secret()) {
      auto value = resolve(hole, lookup);
      if (!value) return missing.value_or(Error{Errc::kInvalidRequest, hole.pointer + " has no value", {}, 0});
      values[Json::json_pointer(hole.pointer)] = std::move(*value);
      continue;
    }
    Secret secret{hole.pointer, {}};
    for (const auto& part : hole.parts) {
      using enum TextPart::Kind;
      auto text = part.text;
      if (part.kind == kResource) {
        const auto value = resolve(Hole{hole.pointer, {part, {kLiteral, {}, {}}}}, lookup);
        if (!value) return missing.value_or(Error{Errc::kInvalidRequest, hole.pointer + " has no value", {}, 0});
        text = value->get<std::string>();
      }
      const auto kind = part.kind == kEnv      ? SecretPart::Kind::kEnv
                        : part.kind == kFile   ? SecretPart::Kind::kFile
                        : part.kind == kSecret ? SecretPart::Kind::kSecret
                                               : SecretPart::Kind::kLiteral;
      secret.parts.push_back({kind, std::move(text)});
    }
    document.secrets.push_back(std::move(secret));
  }
  document.json = values.dump();
  return document;
}

/// The resource that it is declared in, or else the one of the parent's type that it refers to.
std::optional<Parent> Execution::parent_of(Work& work) {
  const auto& step = work.step;
  if (!step.resource || work.type->parent.empty()) return std::nullopt;
  std::optional<Parent> found;
  const auto take = [&](const std::string& name) {
    each_named(step.stack, name, [&](const ManagedView& row) {
      if (row.type != work.type->parent || row.target != step.target) return;
      work.parent = row.row;
      const auto properties = Json::parse(row.properties);
      auto parameters = Json::object();
      for (const auto& parameter : work.type->parent_parameters) {
        if (properties.contains(parameter.property)) parameters[parameter.name] = properties[parameter.property];
      }
      found = Parent{std::string(row.type), std::string(row.native_id), parameters.dump()};
    });
  };
  if (!step.resource->parent.empty()) {
    take(step.resource->parent);
    return found;
  }
  for (const auto& hole : step.resource->holes) {
    for (const auto& part : hole.parts) {
      if (!found && part.kind == TextPart::Kind::kResource) take(part.text);
    }
  }
  return found;
}

bool Execution::lacks_parent(const Work& work) const {
  const auto& parent = work.step.resource->parent;
  if (parent.empty()) return false;  // and no name would be each name of the stack
  bool there = false;
  must(s_.store.of_stack(work.step.stack, parent, [&](const ManagedView&) { there = true; }));
  return !there;
}

std::optional<Error> Execution::lost_row(const CommandStep& step) {
  const auto row = must(s_.store.one(step.row));
  if (!row || (row->state != ResourceState::kPresent && row->state != ResourceState::kStale)) {
    return Error{Errc::kNotFound, "it is gone: apply again, and it is made anew", {}, 0};
  }
  const auto claim = must(s_.store.claim(step.row));
  if (claim && claim->stack != step.stack) {
    return Error{Errc::kConflict,
                 std::string(row->native_id) + " belongs to stack " + claim->stack + ", as " + claim->name +
                     ": declare it in one of them",
                 {},
                 0};
  }
  if (claim && step.action == StepAction::kAdopt && declared_name(claim->name) != step.name) {
    return Error{
        Errc::kConflict, std::string(row->native_id) + " is resource " + claim->name + " of this stack already", {}, 0};
  }
  if (!claim && step.action != StepAction::kAdopt) {
    return Error{Errc::kConflict, std::string(row->native_id) + " is not the stack's any more: apply again", {}, 0};
  }
  return std::nullopt;
}

}  // namespace muster
