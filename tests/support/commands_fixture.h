#pragma once

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"

namespace muster::test {

inline constexpr const char* kBoxSchema = R"({"type":"object","x-muster-identity":["name"],"properties":{
  "name":{"type":"string"},"size":{"type":"integer"},"link":{"type":"string"},
  "kind":{"type":"string","x-muster-create-only":true},
  "login":{"type":"object","properties":{"user":{"type":"string"},"pin":{"type":"string","writeOnly":true}}},
  "id":{"type":"string","readOnly":true},"password":{"type":"string","writeOnly":true,"x-muster-secret":true}}})";

/// A coordinator whose one type, NS::Box, can be declared; `box` and `stack` make what is applied.
struct CommandsFixture : CoordinatorFixture {
  CommandsFixture() {
    for (auto& type : manifest.types) {
      type.schema = kBoxSchema;
      type.parent.clear();
      type.operations = {Operation::kList,   Operation::kRead,   Operation::kCreate,
                         Operation::kUpdate, Operation::kDelete, Operation::kStatus};
    }
    config.retry = {5, Millis(10), Millis(50)};
  }

  static Json box(const std::string& name, Json properties = Json::object()) {
    properties["name"] = name;
    return {{"name", name}, {"type", "NS::Box"}, {"target", "t"}, {"properties", properties}};
  }
  /// Refers to another one's id.
  static Json linked(const std::string& name, const std::string& to) {
    auto resource = box(name, {{"link", nullptr}});
    resource["holes"] = Json::array({{{"pointer", "/link"}, {"parts", {{{"resource", to}, {"path", "id"}}}}}});
    return resource;
  }
  static Json stack(const std::vector<Json>& resources, const std::string& mode = "reconcile") {
    return {{"stacks", {{{"stack", "shop"}, {"resources", resources}}}}, {"mode", mode}};
  }
  std::string begin(const Json& request) {
    const auto answer = api("apply", request);
    INFO(answer.dump());
    REQUIRE(answer.contains("command"));
    return answer["command"].is_string() ? answer["command"].get<std::string>() : "";
  }
  Json end_of(const std::string& id) {
    wait_until(
        [&] {
          return !api("command", {{"command", id}, {"brief", true}})["finished_at"].is_null();
        },
        Millis(4'000'000));
    return api("command", {{"command", id}});
  }
  Json apply(const Json& request) {
    const auto id = begin(request);
    return id.empty() ? Json{{"state", "complete"}, {"results", Json::array()}} : end_of(id);
  }
  static std::string result_of(const Json& command, const std::string& name) {
    for (const auto& result : command["results"]) {
      if (result["name"] == name) {
        return result["state"].get<std::string>() +
               (result["code"].is_null() ? "" : " " + result["code"].get<std::string>());
      }
    }
    return "absent";
  }
  static std::string message_of(const Json& command, const std::string& name) {
    for (const auto& result : command["results"]) {
      if (result["name"] == name && result["message"].is_string()) return result["message"];
    }
    return {};
  }
  Json plan(const Json& request) { return api("plan", request); }
  std::size_t count() { return system.things["NS::Box"].size(); }
  Json thing(const std::string& name) {
    for (const auto& each : system.things["NS::Box"]) {
      auto properties = Json::parse(each.properties);
      if (properties["name"] == name) return properties;
    }
    return {};
  }
  void edit(const std::string& name, const std::string& field, const Json& value) {
    for (auto& each : system.things["NS::Box"]) {
      auto properties = Json::parse(each.properties);
      if (properties["name"] != name) continue;
      properties[field] = value;
      each.properties = properties.dump();
    }
  }
  /// The first box is made, and whoever made it never tells; every change is told as failed.
  void make_and_crash() {
    worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
      if (count() == 0) static_cast<void>(system.change(job));
      return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
    };
  }
  FakeWorker& worker(std::size_t index = 0) { return *workers.at(index); }
};

}  // namespace muster::test
