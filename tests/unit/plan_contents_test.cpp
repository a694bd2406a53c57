// What lies in an object that a plan deletes or makes anew goes with it.
#include "coordinator/contents.h"
#include "support/planning_world.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr const char* kSchemaSchema = R"({"type":"object","properties":{"name":{"type":"string"},
  "note":{"type":"string"},"database":{"type":"string"}}})";

DeclaredResource declared(const std::string& type, const std::string& name, const Json& properties,
                          const std::string& parent = {}) {
  DeclaredResource r;
  r.name = name;
  r.type = type;
  r.target = "main";
  r.parent = parent;
  r.properties = properties.dump();
  return r;
}

DeclaredResource app(const std::string& encoding = "UTF8") {
  return declared("PG::Database", "app", {{"name", "app"}, {"encoding", encoding}});
}
DeclaredResource schema(const std::string& parent = "app") {
  return declared("PG::Schema", "schema", {{"name", "schema"}}, parent);
}
DeclaredResource table() {
  return declared("PG::Table", "table", {{"name", "table"}}, "schema");
}

/// Stack `shop` has a database, a schema in it, and a table in that.
struct Nested : World {
  Nested() {
    add_type("PG::Schema", kSchemaSchema).parent = "PG::Database";
    add_type("PG::Table", kSchemaSchema).parent = "PG::Schema";
    manage(add("PG::Database", "app", Json::parse(app().properties)), app());
    manage(add("PG::Schema", "app.schema", Json::parse(schema().properties), 1), schema());
    manage(add("PG::Table", "app.schema.table", Json::parse(table().properties), 2), table());
  }
  /// Another database has the name now; what lies in the old one is there still.
  void replace_app() {
    auto old = app();
    old.name = "app (replaced)";
    manage(rows[0], old);
    manage(add("PG::Database", "app-2", Json::parse(app().properties)), app());
  }
  PlanResult plan(const std::vector<DeclaredResource>& resources, ApplyMode mode = ApplyMode::kReconcile,
                  const std::set<std::string>& only = {}, const std::set<std::string>& excluded = {}) {
    auto result = make_plan({"shop", resources}, mode, *this);
    result.plan.restrict_to(only, excluded);
    std::ranges::move(judge_contents(result.plan, *this), std::back_inserter(result.mistakes));
    return result;
  }
};

}  // namespace

TEST_CASE("what lies in a thing that is made anew is made anew behind it") {
  Nested world;
  const auto result = world.plan({table(), schema(), app("LATIN1")});
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"replace app", "replace schema", "replace table"});
  CHECK(result.plan.steps[1].reason == "lies in app, which is replaced");
  CHECK(result.plan.steps[2].after == std::vector<std::size_t>{1});
  SECTION("also where only that is asked for") {
    CHECK(actions(world.plan({table(), schema(), app("LATIN1")}, ApplyMode::kReconcile, {"app"}).plan) ==
          Strings{"replace app", "replace schema", "replace table"});
  }
  SECTION("unless it is left out") {
    const auto excluded = world.plan({table(), schema(), app("LATIN1")}, ApplyMode::kReconcile, {}, {"table"});
    CHECK(messages(excluded) == Strings{"schema: would be replaced, and app.schema.table with it, which is resource "
                                        "table of stack shop"});
  }
  SECTION("unless it is protected") {
    auto safe = table();
    safe.protect = true;
    CHECK(messages(world.plan({safe, schema(), app("LATIN1")})) ==
          Strings{"table: is protected, and would have to be replaced: lies in schema, which is "
                  "replaced; declare it as it is, or apply it without `protect` first"});
  }
  SECTION("unless it outlives it") {
    world.types["PG::Schema"].contained = false;
    world.types["PG::Table"].contained = false;
    CHECK(actions(make_plan({"shop", {table(), schema(), app("LATIN1")}}, ApplyMode::kReconcile, world).plan) ==
          Strings{"replace app", "unchanged schema", "unchanged table"});
  }
  SECTION("which is no longer so once it is as declared") {
    CHECK(actions(world.plan({table(), schema(), app()}).plan) ==
          Strings{"unchanged app", "unchanged schema", "unchanged table"});
  }
}

TEST_CASE("what lies in a thing that is made anew, and does not say so, is a mistake") {
  Nested world;
  auto loose = schema("");
  world.manage(world.rows[1], loose);
  CHECK(messages(world.plan({loose, table(), app("LATIN1")})) ==
        Strings{"schema: lies in app, which would be replaced: give it `parent: app`, or refer to it"});
}

TEST_CASE("what lies in a thing that is declared no more goes before it, or is a mistake") {
  Nested world;
  auto loose = schema("");
  world.manage(world.rows[1], loose);
  SECTION("all go, the innermost first") {
    const auto result = world.plan({});
    REQUIRE(messages(result).empty());
    CHECK(actions(result.plan) == Strings{"delete table", "delete schema", "delete app"});
    CHECK(result.plan.steps[2].after == std::vector<std::size_t>{1});
  }
  SECTION("some are to stay") {
    CHECK(messages(world.plan({loose, table()})) ==
          Strings{"schema: lies in app, which would be deleted: declare both, or none"});
  }
  SECTION("some are of another stack") {
    world.manage(world.rows[2], table(), "other");
    CHECK(messages(world.plan({}, ApplyMode::kDestroy)) ==
          Strings{"schema: would be deleted, and app.schema.table with it, which is resource table of stack other"});
  }
  SECTION("some are in no stack") {
    world.rows[2].managed = false;
    world.add("PG::Table", "app.schema.more", {{"name", "more"}}, 2);
    const auto result = world.plan({}, ApplyMode::kDestroy);
    REQUIRE(messages(result).empty());
    CHECK(step_of(result.plan, "schema").reason == "the stack is destroyed; 2 more go with it");
  }
}

TEST_CASE("what is to lie in another thing than before is made anew, once") {
  Nested world;
  auto other = declared("PG::Database", "other", {{"name", "other"}, {"encoding", "UTF8"}});
  const std::vector<DeclaredResource> moved{app(), other, schema("other"), table()};
  const auto result = world.plan(moved);
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"unchanged app", "create other", "replace schema", "replace table"});
  CHECK(step_of(result.plan, "schema").reason == "is to lie in other");
  SECTION("not where the thing only has another name") {
    auto renamed = app();
    renamed.name = "main";
    world.manage(world.rows[0], renamed);
    const auto same = world.plan({renamed, schema("main"), table()});
    REQUIRE(messages(same).empty());
    CHECK(actions(same.plan) == Strings{"unchanged main", "unchanged schema", "unchanged table"});
  }
  SECTION("not where it was declared like this before: then it lies where the system says") {
    world.manage(world.rows[1], schema("other"));
    world.manage(world.add("PG::Database", "other", Json::parse(other.properties)), other);
    const auto same = world.plan(moved);
    CHECK(step_of(same.plan, "schema").action == StepAction::kUnchanged);
  }
  SECTION("also where it was declared like this before, and that thing is not the stack's any more") {
    world.manage(world.rows[1], schema("other"));
    CHECK(actions(world.plan(moved).plan) ==
          Strings{"unchanged app", "create other", "replace schema", "replace table"});
  }
}

TEST_CASE("what lies in what was replaced, and is there still, is made anew in what replaces it") {
  Nested world;
  world.replace_app();
  const auto result = world.plan({table(), schema(), app()});
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"unchanged app", "replace schema", "replace table", "delete app (replaced)"});
  CHECK(step_of(result.plan, "schema").reason == "lies in another app, which goes");
}

TEST_CASE("what is to lie elsewhere does not hold up what becomes of the thing that it lay in") {
  Nested world;
  auto other = declared("PG::Database", "other", {{"name", "other"}, {"encoding", "UTF8"}});
  SECTION("replaced") {
    const auto result = world.plan({app("LATIN1"), other, schema("other"), table()});
    REQUIRE(messages(result).empty());
    CHECK(actions(result.plan) == Strings{"replace app", "create other", "replace schema", "replace table"});
  }
  SECTION("deleted") {
    const auto result = world.plan({other, schema("other"), table()});
    REQUIRE(messages(result).empty());
    CHECK(actions(result.plan) == Strings{"create other", "replace schema", "replace table", "delete app"});
  }
}

TEST_CASE("what lies in a thing goes with it whatever is in between, and where it was found by its identity") {
  Nested world;
  world.rows[1].managed = false;  // the schema that each database has
  auto literal = table();
  literal.parent.clear();
  literal.after = {"app"};
  world.manage(world.rows[2], literal);
  const auto result = world.plan({literal, app("LATIN1")});
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"replace app", "replace table"});
  CHECK(step_of(result.plan, "app").reason == "cannot be changed in place: /encoding; 1 more goes with it");
  SECTION("a parent of another type says nothing of where it lies") {
    auto named = literal;
    named.parent = "app";
    CHECK(step_of(world.plan({named, app()}).plan, "table").action == StepAction::kUnchanged);
  }
}

TEST_CASE("what was found to be as declared is looked at again when something else is where it lies") {
  Nested world;
  REQUIRE(world.plan({table(), schema(), app()}).mistakes.empty());  // remembered
  world.replace_app();
  const auto result = world.plan({table(), schema(), app()});
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"unchanged app", "replace schema", "replace table", "delete app (replaced)"});
}

TEST_CASE("what moves out of a thing that goes with another is not held up by that thing") {
  World world;
  world.add_type("PG::Folder", kDatabaseSchema).parent = "PG::Folder";
  const auto folder = [](const std::string& name, const std::string& parent, const std::string& encoding = "UTF8") {
    return declared("PG::Folder", name, {{"name", name}, {"encoding", encoding}}, parent);
  };
  const std::vector<DeclaredResource> before{folder("top", ""), folder("mid", "top"), folder("low", "mid"),
                                             folder("leaf", "low")};
  for (std::size_t row = 0; row < before.size(); ++row) {
    world.manage(
        world.add("PG::Folder", before[row].name, Json::parse(before[row].properties), static_cast<RowId>(row)),
        before[row]);
  }
  const auto plan = [&](const std::vector<DeclaredResource>& resources) {
    auto result = make_plan({"shop", resources}, ApplyMode::kReconcile, world);
    std::ranges::move(judge_contents(result.plan, world), std::back_inserter(result.mistakes));
    return result;
  };
  SECTION("the one that it lies in goes with what is replaced") {
    const auto result = plan({folder("top", "", "LATIN1"), folder("one", "top"), folder("low", "one"),
                              folder("two", "one"), folder("mid", "two"), folder("leaf", "mid")});
    REQUIRE(messages(result).empty());
    CHECK(actions(result.plan) ==
          Strings{"replace top", "create one", "replace low", "create two", "replace mid", "replace leaf"});
  }
  SECTION("all of them move") {
    const auto result = plan(
        {folder("top", ""), folder("one", "top"), folder("low", "top"), folder("mid", "one"), folder("leaf", "one")});
    REQUIRE(messages(result).empty());
    CHECK(actions(result.plan) == Strings{"unchanged top", "create one", "replace low", "replace mid", "replace leaf"});
  }
}

TEST_CASE("what lies in a thing whose name another type has now is made anew") {
  World world;
  world.add_type("PG::Schema", kSchemaSchema).parent = "PG::Database";
  auto inside = declared("PG::Schema", "schema", {{"name", "schema"}, {"database", nullptr}});
  inside.holes = {{"/database", {{TextPart::Kind::kResource, "app", "name"}}}};
  world.manage(world.add("PG::Database", "app", Json::parse(app().properties)), app());
  world.manage(world.add("PG::Schema", "app.schema", {{"name", "schema"}, {"database", "app"}}, 1), inside);
  const auto result = make_plan({"shop", {role("app"), inside}}, ApplyMode::kReconcile, world);
  CHECK(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"create app", "replace schema", "delete app"});
  CHECK(step_of(result.plan, "schema").reason == "lies in another app, which goes");
  CHECK(result.plan.steps.back().reason == "another has its name");
}

TEST_CASE("what lies in a thing whose name another has now stays in it where nothing goes") {
  const bool renamed = GENERATE(false, true);  // the name has been taken by an earlier apply
  const bool other_target = GENERATE(false, true);
  World world;
  world.targets.emplace("other", "PG");
  world.add_type("PG::Schema", kSchemaSchema).parent = "PG::Database";
  auto inside = declared("PG::Schema", "schema", {{"name", "schema"}, {"database", nullptr}});
  inside.holes = {{"/database", {{TextPart::Kind::kResource, "app", "name"}}}};
  auto old = app();
  if (renamed) old.name = "app (replaced)";
  auto taker = other_target ? app() : role("app");
  if (other_target) taker.target = "other";
  world.manage(world.add("PG::Database", "app", Json::parse(app().properties)), old);
  world.manage(world.add("PG::Schema", "app.schema", {{"name", "schema"}, {"database", "app"}}, 1), inside);
  const auto plan = [&](ApplyMode mode) { return make_plan({"shop", {taker, inside}}, mode, world); };
  for (const auto mode : {ApplyMode::kPatch, ApplyMode::kPutBack}) {
    CHECK(actions(plan(mode).plan) == Strings{"create app", "unchanged schema"});
  }
  CHECK(actions(plan(ApplyMode::kReconcile).plan).at(1) == "replace schema");
}

TEST_CASE("what lies in a thing that is made anew waits for that, though it does not name it") {
  Nested world;
  const auto result = make_plan({"shop", {app("LATIN1"), schema(""), table()}}, ApplyMode::kReconcile, world);
  CHECK(messages(result).empty());
  REQUIRE(actions(result.plan) == Strings{"replace app", "replace schema", "replace table"});
  CHECK(step_of(result.plan, "schema").after == std::vector<std::size_t>{0});
}

TEST_CASE("what is chosen takes along what lies in what is made anew for it, and in nothing else") {
  Nested world;
  const std::vector all{app("LATIN1"), schema(), table(), role("x")};
  const auto chosen = [&](const std::string& name) {
    auto plan = make_plan({"shop", all}, ApplyMode::kReconcile, world).plan;
    plan.restrict_to({name}, {});
    return actions(plan);
  };
  CHECK(chosen("app") == Strings{"replace app", "replace schema", "replace table"});
  CHECK(chosen("x") == Strings{"create x"});
}
