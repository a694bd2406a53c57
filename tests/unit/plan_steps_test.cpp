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

TEST_CASE("what is declared with an id is adopted by it, on one target of a system") {
  World world;
  world.add_type("PG::Plain", R"({"type":"object"})");
  world.targets["twin"] = "PG";
  world.others = {{"main", {"twin"}}, {"twin", {"main"}}};
  world.add("PG::Plain", "plain-1", {{"size", 1}});
  auto wanted = role("a", {{"size", 1}});
  wanted.type = "PG::Plain";
  wanted.native_id = "plain-1";
  const auto planned = [&] { return make_plan({"shop", {wanted}}, ApplyMode::kReconcile, world); };
  CHECK(actions(planned().plan) == Strings{"adopt a"});
  SECTION("unless the other one has it") {
    auto& other = world.manage(world.add("PG::Plain", "plain-1", {{"size", 1}}), wanted, "store");
    other.target = "twin";
    REQUIRE(messages(planned()).size() == 1);
    CHECK_THAT(messages(planned())[0], Contains("plain-1 is resource a of stack store already, on target twin"));
  }
  SECTION("and made where it is not there") {
    wanted.native_id = "plain-2";
    CHECK(actions(planned().plan) == Strings{"create a"});
  }
}
