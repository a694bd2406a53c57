#pragma once

// What the guard and the micro benchmarks work on: always the same.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/canonical.h"
#include "coordinator/filter.h"
#include "coordinator/plan.h"
#include "coordinator/store.h"
#include "schema/codec.h"
#include "schema/subjects.h"

namespace muster::bench {

inline constexpr std::size_t kPage = 64;

/// Of one resource: some 600 bytes of canonical JSON.
inline std::string properties(std::size_t index) {
  const auto number = std::to_string(1'000'000 + index);
  return R"({"Tags":[{"Key":"Env","Value":"prod"},{"Key":"Name","Value":"amber-)" + number + R"("}],"index":)" +
         number + R"(,"name":"amber-)" + number + R"(","payload":")" + std::string(440, 'x') +
         R"(","region":"eu-west-1","revision":0,"size":123})";
}

/// A page of a listing, as it is on the bus.
inline Bytes page(std::size_t count = kPage) {
  ListResult list;
  for (std::size_t i = 0; i < count; ++i) {
    list.items.push_back({"thing0-" + std::to_string(10'000'000 + i), "0123456789abcdef", properties(i)});
  }
  JobReply reply;
  reply.fleet = FleetId("F");
  reply.job = JobId("J");
  reply.token = Token("T");
  reply.worker = WorkerId("W");
  reply.body = JobResult(std::move(list));
  return encode(reply);
}

inline std::vector<Item> items_of(const Bytes& bytes) {
  auto reply = decode<JobReply>(bytes).value();
  return std::get<ListResult>(std::get<JobResult>(reply.body)).items;
}

inline FilterSet two_filters() {
  return FilterSet::compile({{{}, {TagMatch{{"Temp"}, "true"}}, FilterAction::kExclude},
                             {{}, {PropertyMatch{"$.name", MatchOp::kRegex, R"("^tmp_")"}}, FilterAction::kExclude}})
      .value();
}

inline Declaration roles(int count) {
  Declaration declaration{"shop", {}};
  for (int i = 0; i < count; ++i) {
    DeclaredResource resource;
    resource.name = "role" + std::to_string(10'000 + i);
    resource.type = "PG::Role";
    resource.target = "main";
    resource.properties = R"({"login":true,"name":")" + resource.name + R"("})";
    declaration.resources.push_back(std::move(resource));
  }
  return declaration;
}

/// An inventory in which everything is as it was declared.
class Agreed final : public PlanningView {
 public:
  explicit Agreed(const Declaration& declaration) {
    type_.name = "PG::Role";
    type_.schema = R"({"type":"object","x-muster-identity":["name"],"properties":{"name":{"type":"string"},
                       "login":{"type":"boolean","default":false}}})";
    type_.operations = {Operation::kList, Operation::kRead, Operation::kCreate, Operation::kUpdate, Operation::kDelete};
    for (const auto& resource : declaration.resources) {
      Known known;
      known.row = static_cast<RowId>(rows_.size()) + 1;
      known.target = resource.target;
      known.type = resource.type;
      known.native_id = resource.name;
      known.properties = resource.properties;
      known.managed = true;
      known.stack = declaration.stack;
      known.name = resource.name;
      known.declared = to_json(resource).dump();
      rows_.push_back(std::move(known));
    }
  }
  std::vector<Known> of_stack(const std::string&) override { return rows_; }
  void each(const std::string&, const std::string&, const std::function<void(const Known&)>& sink) override {
    for (const auto& row : rows_) sink(row);
  }
  std::optional<Known> find(const std::string&, const std::string&, const std::string&) override {
    return std::nullopt;
  }
  const TypeDescriptor* type(const std::string&) override { return &type_; }
  std::optional<std::string> target_namespace(const std::string&) override {
    return std::string(namespace_of(type_.name));
  }
  std::string digest(const std::string& value) override { return value; }

 private:
  std::vector<Known> rows_;
  TypeDescriptor type_;
};

}  // namespace muster::bench
