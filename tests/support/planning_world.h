#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/plan.h"

namespace muster::test {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

inline constexpr const char* kRoleSchema = R"({"type":"object","x-muster-identity":["name"],"properties":{
  "name":{"type":"string","x-muster-create-only":true},"login":{"type":"boolean","default":false},
  "password":{"type":"string","writeOnly":true,"x-muster-secret":true},
  "note":{"type":"string","writeOnly":true},
  "member_of":{"type":"array","x-muster-unordered":true},"oid":{"type":"integer","readOnly":true}}})";
inline constexpr const char* kDatabaseSchema = R"({"type":"object","x-muster-identity":["name"],"properties":{
  "name":{"type":"string","x-muster-create-only":true},"owner":{"type":"string"},
  "encoding":{"type":"string","x-muster-create-only":true}}})";

class World : public PlanningView {
 public:
  World() {
    add_type("PG::Role", kRoleSchema);
    add_type("PG::Database", kDatabaseSchema);
    add_type("PG::Frozen", kDatabaseSchema).operations = {Operation::kList, Operation::kRead};
  }
  TypeDescriptor& add_type(const std::string& name, const char* schema) {
    auto& type = types[name];
    type.name = name;
    type.schema = schema;
    type.operations = {Operation::kList, Operation::kRead, Operation::kCreate, Operation::kUpdate, Operation::kDelete};
    return type;
  }
  Known& add(const std::string& type, const std::string& id, const Json& properties, RowId parent = 0) {
    Known known;
    known.parent = parent;
    known.row = static_cast<RowId>(rows.size()) + 1;
    known.target = "main";
    known.type = type;
    known.native_id = id;
    known.properties = properties.dump();
    return rows.emplace_back(std::move(known));
  }
  /// As a stack's resource that was applied as `declared`.
  Known& manage(Known& known, const DeclaredResource& declared, const std::string& stack = "shop") {
    known.managed = true;
    known.stack = stack;
    known.name = declared.name;
    known.declared = to_json(declared).dump();
    return known;
  }

  std::vector<Known> of_stack(const std::string& stack) override {
    std::vector<Known> found;
    std::ranges::copy_if(rows, std::back_inserter(found),
                         [&](const Known& row) { return row.managed && row.stack == stack; });
    return found;
  }
  void each(const std::string& target, const std::string& type,
            const std::function<void(const Known&)>& sink) override {
    for (const auto& row : rows) {
      if (row.target == target && row.type == type) sink(row);
    }
  }
  std::optional<Known> find(const std::string& target, const std::string& type, const std::string& id) override {
    for (const auto& row : rows) {
      if (row.target == target && row.type == type && row.native_id == id) return row;
    }
    return std::nullopt;
  }
  const TypeDescriptor* type(const std::string& name) override {
    const auto it = types.find(name);
    return it == types.end() ? nullptr : &it->second;
  }
  std::optional<std::string> target_namespace(const std::string& name) override {
    const auto it = targets.find(name);
    return it == targets.end() ? std::nullopt : std::optional(it->second);
  }
  std::vector<std::string> same_system(const std::string& target) override { return others[target]; }
  void each_within(RowId row, const std::function<void(const Known&)>& sink) override {
    for (const auto& known : rows) {
      if (known.parent != row || !types.at(known.type).contained) continue;
      sink(known);
      each_within(known.row, sink);
    }
  }
  std::optional<Hash128> agreement(RowId row) override {
    return agreements.contains(row) ? std::optional(agreements[row]) : std::nullopt;
  }
  void remember(RowId row, const Hash128& agreement) override { agreements[row] = agreement; }
  std::string digest(const std::string& value) override { return "digest of " + value; }

  std::deque<Known> rows;
  std::map<RowId, Hash128> agreements;
  std::map<std::string, TypeDescriptor> types;
  std::map<std::string, std::string> targets{{"main", "PG"}};  // namespaces by name
  std::map<std::string, Strings> others;                       // targets of one system
};

inline DeclaredResource role(const std::string& name, const Json& properties = {}) {
  DeclaredResource r;
  r.name = name;
  r.type = "PG::Role";
  r.target = "main";
  auto all = properties.is_null() ? Json::object() : properties;
  if (!all.contains("name")) all["name"] = name;
  r.properties = all.dump();
  return r;
}

inline DeclaredResource database(const std::string& name, const std::string& owner) {
  DeclaredResource r;
  r.name = name;
  r.type = "PG::Database";
  r.target = "main";
  r.properties = Json{{"name", name}, {"owner", nullptr}}.dump();
  r.holes = {{"/owner", {{TextPart::Kind::kResource, owner, "name"}}}};
  return r;
}

inline Strings actions(const Plan& plan) {
  Strings all;
  for (const auto& step : plan.steps) all.push_back(std::string(step_action_name(step.action)) + " " + step.name);
  return all;
}

inline const PlanStep& step_of(const Plan& plan, const std::string& name) {
  const auto it = std::ranges::find(plan.steps, name, &PlanStep::name);
  REQUIRE(it != plan.steps.end());
  return *it;
}

inline Strings messages(const PlanResult& result) {
  Strings all;
  for (const auto& mistake : result.mistakes) all.push_back(mistake.resource + ": " + mistake.message);
  return all;
}

}  // namespace muster::test
