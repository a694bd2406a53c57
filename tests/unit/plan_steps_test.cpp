// What a plan says of its steps.
#include "coordinator/plan_basis.h"
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
  SECTION("also where the other one only knows it, or has lost it") {
    auto& other = world.add("PG::Plain", "plain-1", {{"size", 1}});
    other.target = "twin";
    if (GENERATE(true, false)) world.manage(other, wanted, "store").state = ResourceState::kMissing;
    CHECK(messages(planned()).empty());
    CHECK(actions(planned().plan) == Strings{"adopt a"});
  }
  SECTION("and made where it is not there") {
    wanted.native_id = "plain-2";
    CHECK(actions(planned().plan) == Strings{"create a"});
  }
}

TEST_CASE("what cannot be made anew is a mistake where it would have to be") {
  World world;
  auto wanted = role("db", {{"encoding", "LATIN1"}});
  wanted.type = "PG::Database";
  auto& there = world.add("PG::Database", "db-1", {{"name", "db"}, {"encoding", "UTF8"}});
  const auto mistakes = [&] { return messages(make_plan({"shop", {wanted}}, ApplyMode::kReconcile, world)); };
  SECTION("for it is nobody's") {
    CHECK(mistakes() == Strings{"db: db-1 is there and is another: cannot be changed in place: /encoding; "
                                "declare it as it is"});
  }
  SECTION("for nobody can delete it") {
    world.manage(there, wanted);
    CHECK(mistakes().empty());
    world.types["PG::Database"].operations = {Operation::kList, Operation::kRead, Operation::kCreate,
                                              Operation::kUpdate};
    CHECK(mistakes() == Strings{"db: would have to be replaced, and PG::Database cannot be deleted"});
  }
}

TEST_CASE("where two plans differ is said by what either would do") {
  const std::vector<PlanBasis> before{{"shop/a", "update", "1", {}}, {"shop/b", "create", "2", {}}};
  CHECK(moved(before, before).empty());
  CHECK(moved(before, {before[0]}) == Strings{"shop/b was planned as create, and needs nothing now"});
  CHECK(moved({before[0]}, before) == Strings{"shop/b would need create now"});
  CHECK(moved(before, {before[0], {"shop/b", "adopt", "2", {}}}) ==
        Strings{"shop/b was planned as create, and would be adopt now"});
  CHECK(moved(before, {before[0], {"shop/b", "create", "3", {}}}) ==
        Strings{"shop/b differs in other ways than when it was planned"});
  CHECK(moved(before, {before[0], {"shop/b", "create", "3", "/size"}}) ==
        Strings{"shop/b differs in other ways than when it was planned: /size"});
}

TEST_CASE("what a schema asks too much of is planned, and told as unchecked") {
  World world;
  Json schema = {{"properties", {{"name", {{"$ref", "#/$defs/0"}}}}}};
  for (int i = 0; i < 60; ++i) {
    const Json next = {{"$ref", "#/$defs/" + std::to_string(i + 1)}};
    schema["$defs"][std::to_string(i)]["allOf"] = {next, next};
  }
  schema["$defs"]["60"] = true;
  world.types["PG::Role"].schema = schema.dump();
  const auto result = make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world);
  CHECK(messages(result).empty());
  CHECK(result.plan.steps.size() == 1);
  REQUIRE(result.unchecked.size() == 1);
  CHECK_THAT(result.unchecked[0].message, Contains("more of it than there is time"));
}

TEST_CASE("where the schema of a type cannot be used, what is planned is told as unchecked") {
  World world;
  world.types["PG::Role"].schema = R"({"allOf":[{"$ref":"#"}]})";  // refers to itself
  const auto result = make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world);
  CHECK(messages(result).empty());
  CHECK(result.plan.steps.size() == 1);
  REQUIRE(result.unchecked.size() == 1);
  CHECK_THAT(result.unchecked[0].message, Contains("the schema of PG::Role cannot be used"));
}
