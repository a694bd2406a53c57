// What users see of the changes that a plan makes.
#include "coordinator/shown_patch.h"

#include <catch2/catch.hpp>

#include "coordinator/secret_text.h"

using namespace muster;
using Json = nlohmann::json;

namespace {

PropertyRule rules() {
  return property_rules(R"({"properties":{"name":{},"size":{},"content":{"writeOnly":true},
      "login":{"properties":{"user":{},"pin":{"writeOnly":true}}}}})")
      .value();
}

Hole hole(const std::string& pointer, const std::string& text) {
  return {pointer, parse_reference_text(text, {}).value()};
}

}  // namespace

TEST_CASE("a creation shows all that is declared, what is not shown with its reason") {
  DeclaredResource declared;
  declared.properties =
      R"({"content":"long","gone":null,"login":{"pin":null,"user":"u"},"name":null,"plain":null,"size":[1,2]})";
  declared.holes = {hole("/name", "${resource:db.name}-$${x}${env:A}"), hole("/login/pin", "${secret:pin}")};
  PlanStep step;
  step.action = StepAction::kCreate;
  CHECK(shown_patch(step, &declared, {}, rules()) == Json::parse(R"([
      {"op":"add","path":"/content","value":null,"hidden":true},
      {"op":"add","path":"/login","value":{"pin":null,"user":"u"}},
      {"op":"add","path":"/login/pin","value":null,"reference":"${secret:pin}"},
      {"op":"add","path":"/name","value":null,"reference":"${resource:db.name}-$${x}${env:A}"},
      {"op":"add","path":"/size","value":[1,2]}])"));
}

TEST_CASE("a change shows where a value comes from that is not known, and which is not shown") {
  DeclaredResource declared;
  declared.properties = R"({"content":"long","name":null})";
  declared.holes = {hole("/name", "${resource:all[0].name}")};
  PlanStep step;
  step.action = StepAction::kUpdate;
  step.patch = R"([{"op":"replace","path":"/content","value":null},{"op":"replace","path":"/name","value":null},
                   {"op":"replace","path":"/size","value":4},{"op":"replace","path":"/plain","value":null},
                   {"op":"remove","path":"/login"}])";
  CHECK(shown_patch(step, &declared, {}, rules()) == Json::parse(R"([
      {"op":"replace","path":"/content","value":null,"hidden":true},
      {"op":"replace","path":"/name","value":null,"reference":"${resource:all[0].name}"},
      {"op":"replace","path":"/size","value":4},{"op":"replace","path":"/plain","value":null},
      {"op":"remove","path":"/login"}])"));
  step.action = StepAction::kDelete;
  step.patch = "[]";
  CHECK(shown_patch(step, nullptr, {}, rules()) == Json::array());
}

TEST_CASE("a change shows what it takes the place of, where that is known and short") {
  PlanStep step;
  step.action = StepAction::kUpdate;
  step.patch = R"([{"op":"remove","path":"/list/0"},{"op":"replace","path":"/list/0","value":"B"},
                   {"op":"add","path":"/more","value":1},{"op":"replace","path":"/long","value":""},
                   {"op":"replace","path":"/content","value":null}])";
  DeclaredResource declared;
  declared.properties = R"({"content":"new"})";
  const auto there = Json{{"list", {"a", "b"}}, {"long", std::string(2000, 'x')}}.dump();
  CHECK(shown_patch(step, &declared, there, rules()) == Json::parse(R"([
      {"op":"remove","path":"/list/0","was":"a"},
      {"op":"replace","path":"/list/0","value":"B","was":"b"},
      {"op":"add","path":"/more","value":1},
      {"op":"replace","path":"/long","value":""},
      {"op":"replace","path":"/content","value":null,"hidden":true}])"));
  const auto changed = shown_patch(step, &declared, R"({"list":["a"],"content":1})", rules());
  CHECK(changed[0]["was"] == "a");
  CHECK_FALSE(changed[1].contains("was"));
}
