// What a plan says of its steps.
#include "support/planning_world.h"

using namespace muster;
using namespace muster::test;
using Catch::Contains;

TEST_CASE("what differs and cannot be changed is a mistake, unless it is made anew") {
  World world;
  world.types["PG::Role"].operations = {Operation::kList, Operation::kRead, Operation::kCreate, Operation::kDelete};
  world.manage(world.add("PG::Role", "a", {{"name", "a"}, {"login", true}}), role("a"));
  const auto mistakes = [&](const Json& properties) {
    auto wanted = role("a", properties);
    return messages(make_plan({"shop", {wanted}}, ApplyMode::kReconcile, world));
  };
  CHECK(mistakes({{"login", true}}).empty());
  CHECK(mistakes({{"name", "b"}}).empty());
  const auto refused = mistakes({{"login", false}});
  REQUIRE(refused.size() == 1);
  CHECK_THAT(refused[0], Contains("a: PG::Role cannot be changed, and differs") && Contains("/login"));
}

TEST_CASE("a value that an example stands for is not told as unchecked") {
  World world;
  world.types["PG::Role"].examples = {R"({"name":"example"})"};
  auto owner = role("owner");
  owner.properties = R"({"name":null})";
  owner.holes = {{"/name", {{TextPart::Kind::kResource, "first", "oid"}}}};
  const auto result =
      make_plan({"shop", {role("first"), owner, database("db", "owner")}}, ApplyMode::kReconcile, world);
  CHECK(messages(result).empty());
  REQUIRE(result.unchecked.size() == 1);  // no example has an `oid`
  CHECK(result.unchecked[0].resource == "owner");
}
