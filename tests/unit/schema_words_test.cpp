#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/schema_check.h"

using namespace muster;
using Json = nlohmann::json;

namespace {

/// What is said of `value`, the same as a property and in a list.
std::string said_of(const Json& value, const Json& schema) {
  const auto properties = Json{{"x", schema}, {"xs", {{"type", "array"}, {"items", schema}}}};
  const auto check = SchemaCheck::compile(Json{{"type", "object"}, {"properties", properties}}.dump());
  REQUIRE(check);
  const auto in_list = check->faults(Json{{"xs", Json::array({value})}}, {}).value();
  const auto faults = check->faults(Json{{"x", value}}, {}).value();
  REQUIRE(faults.size() == 1);
  CHECK(faults.front().pointer == "/x");
  REQUIRE(in_list.size() == 1);
  CHECK(in_list.front().pointer == "/xs/0");
  CHECK(in_list.front().message == faults.front().message);
  return faults.front().message;
}

}  // namespace

TEST_CASE("a mistake against a schema is told with what the schema asks for") {
  CHECK(said_of("grene", {{"enum", {"red", "green", 5}}}) == R"(should be `"red"`, `"green"` or `5`)");
  CHECK(said_of("x", {{"enum", {"only"}}}) == R"(should be `"only"`)");
  CHECK(said_of("x", {{"const", true}}) == "should be `true`");
  CHECK(said_of("5", {{"type", "integer"}}) == "is a string, should be an integer");
  CHECK(said_of(Json::object(), {{"type", {"string", "null"}}}) == "is an object, should be a string or null");
  CHECK(said_of(1.5, {{"type", "integer"}}) == "is a number, should be an integer");
  CHECK(said_of(-1, {{"type", "integer"}, {"minimum", 0}}) == "Expected number greater than or equal to 0");
  CHECK(said_of(2.0, {{"type", "number"}, {"maximum", 1.25}}) == "Expected number less than or equal to 1.25");
  CHECK(said_of(200, {{"type", "integer"}, {"maximum", 100}}) == "Expected number less than or equal to 100");
}

TEST_CASE("a long enumeration is cut") {
  auto values = Json::array();
  for (int i = 0; i < 20; ++i) values.push_back(i);
  CHECK(said_of(99, {{"enum", values}}) ==
        "should be `0`, `1`, `2`, `3`, `4`, `5`, `6`, `7`, `8`, `9`, `10`, `11`, or another of 20");
}

TEST_CASE("a property that is unknown among very many is told without what was meant") {
  Json properties;
  for (int i = 0; i < 20'000; ++i) properties["property" + std::to_string(i)] = true;
  const auto schema = Json{{"additionalProperties", false}, {"properties", properties}};
  CHECK(said_of(Json{{std::string(400, 'n'), 1}}, schema) == "unknown property `" + std::string(80, 'n') + "...`");
}
