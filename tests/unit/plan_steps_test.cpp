// What a plan says of its steps, and of what schemas say against them.
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

TEST_CASE("declared properties are asked of their schemas, with examples where they are not known") {
  World world;
  auto& role_type = world.types["PG::Role"];
  role_type.examples = {R"({"name":"example","login":true})"};
  const auto wrong = [&](const DeclaredResource& resource) {
    return messages(make_plan({"shop", {resource, role("owner")}}, ApplyMode::kReconcile, world));
  };
  CHECK(wrong(role("good", {{"login", true}})).empty());
  const auto typed = wrong(role("bad", {{"login", "yes"}, {"oid", 5}}));
  REQUIRE(typed.size() == 2);  // together
  CHECK_THAT(typed[0], Contains("set by the system"));
  CHECK_THAT(typed[1], Contains("/login"));
  SECTION("a property that the schema does not know") {
    role_type.schema = R"({"type":"object","additionalProperties":false,"properties":{"name":{"type":"string"},
        "login":{"type":"boolean"},"rules":{"type":"array","items":{"type":"object","additionalProperties":false,
        "properties":{"level":{"type":"integer"}}}}}})";
    CHECK(wrong(role("bad", {{"logn", true}})) ==
          std::vector<std::string>{"bad: unknown property `logn`; did you mean `login`?"});
    CHECK(wrong(role("bad", {{"colour", "red"}})) ==
          std::vector<std::string>{"bad: unknown property `colour`; known are login, name, rules"});
    CHECK_THAT(wrong(role("bad", {{"rules", {{{"levl", 1}}}}})).at(0),
               Contains("/rules/0: unknown property `levl`; did you mean `level`?"));
  }
  SECTION("what is not known yet, inside of something") {
    role_type.schema = R"({"type":"object","additionalProperties":false,"properties":{"name":{"type":"string"},
        "oid":{"type":"integer","readOnly":true},
        "members":{"type":"array","uniqueItems":true,"items":{"type":"string"},"minItems":1},
        "grants":{"type":"array","items":{"anyOf":[{"type":"object","required":["on"],"additionalProperties":false,
          "properties":{"on":{"type":"string"}}},{"type":"object","required":["to"],
          "additionalProperties":false,"properties":{"to":{"type":"string"}}}]}}}})";
    auto user = role("user", {{"members", {nullptr, "b", nullptr}}, {"grants", {{{"to", nullptr}}}}});
    for (const auto* at : {"/members/0", "/members/2", "/grants/0/to"}) {
      user.holes.push_back({at, {{TextPart::Kind::kResource, "owner", "oid"}}});
    }
    const auto planned = [&] { return make_plan({"shop", {role("owner"), user}}, ApplyMode::kReconcile, world); };
    CHECK(messages(planned()).empty());
    CHECK(planned().unchecked.size() == 3);
    user.properties = R"({"name":"user","members":[null,5,null],"grants":[{"to":null}],"memers":[]})";
    const auto inside = messages(planned());
    REQUIRE(inside.size() == 2);
    CHECK_THAT(inside[0] + inside[1], Contains("/members/1") && Contains("did you mean `members`"));
  }
  SECTION("patterns") {
    role_type.schema = R"({"type":"object","additionalProperties":false,"patternProperties":{"^x-":{"type":"string"}},
        "properties":{"name":{"type":"string"},"code":{"type":"string","pattern":"^[a-z]+$"},
        "word":{"type":"string","pattern":"^\\p{L}+$"},"ahead":{"type":"string","pattern":"^(?=a)b$"},
        "either":{"oneOf":[{"pattern":"^a"},{"pattern":"^b"}]},"none":{"not":{"pattern":"^a"}},
        "codes":{"type":"array","items":{"$ref":"#/properties/code"}},
        "level":{"anyOf":[{"type":"integer"},{"type":"string","pattern":"^(low|high)$"}]}}})";
    CHECK(wrong(role("good", {{"code", std::string(60'000, 'a')},
                              {"word", "\u00e9t\u00e9"},
                              {"x-note", "n"},
                              {"codes", {"a", "b"}},
                              {"either", "a"},
                              {"level", "low"},
                              {"none", "b"},
                              {"ahead", "b"}}))
              .empty());
    const auto faults = wrong(role("bad", {{"code", "A1"}, {"word", "1"}, {"y-note", "n"}, {"codes", {"a", "1"}}}));
    REQUIRE(faults.size() == 4);
    CHECK(faults[0] == "bad: /code: `A1` does not match the pattern ^[a-z]+$");
    CHECK(faults[1] == "bad: /codes/1: `1` does not match the pattern ^[a-z]+$");
    CHECK_THAT(faults[2], Contains("/word"));
    CHECK(faults[3] == "bad: unknown property `y-note`");
    CHECK_FALSE(wrong(role("bad", {{"level", "medium"}})).empty());
    CHECK_FALSE(wrong(role("bad", {{"either", "c"}})).empty());
    CHECK_FALSE(wrong(role("bad", {{"none", "a"}})).empty());
    auto open = role("open", {{"code", nullptr}});
    open.holes.push_back({"/code", {{TextPart::Kind::kResource, "owner", "oid"}}});
    CHECK(messages(make_plan({"shop", {role("owner"), open}}, ApplyMode::kReconcile, world)).empty());
  }
  SECTION("schemas that cannot be used, or only in part") {
    std::string deep = "{}";
    for (int i = 0; i < 30'000; ++i) deep = R"({"not":)" + std::move(deep) + "}";
    for (const std::string& odd : {
             std::string(R"({"type":"strnig"})"),
             std::string(R"({"type":"object","required":"yes"})"),
             std::string(R"({"enum":"x"})"),
             std::string(R"({"items":5})"),
             std::string(R"({"properties":[1]})"),
             std::string(R"({"properties":{"code":{"$ref":"#/$defs/none"}}})"),
             std::string(R"({"properties":{"code":{"$ref":"file:///etc/passwd"}}})"),
             std::string(R"({"$ref":"#"})"),
             std::string(
                 R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}})"),
             std::string(R"({"properties":{"code":{"multipleOf":0},"login":{"multipleOf":-1}}})"),
             std::string(R"({"properties":{"code":{"pattern":"["}},"patternProperties":{"(":{}}})"),
             deep,
         }) {
      INFO(odd.substr(0, 200));
      role_type.schema = odd;
      CHECK_NOTHROW(wrong(role("any", {{"code", 5}, {"login", std::numeric_limits<std::int64_t>::min()}})));
    }
    role_type.schema = R"({"properties":{"name":{},"below":{"$ref":"#"}},"additionalProperties":false})";
    CHECK(wrong(role("tree", {{"below", {{"below", {{"name", "x"}}}}}})).empty());
    CHECK(wrong(role("tree", {{"below", {{"below", {{"nam", "x"}}}}}})).size() == 1);
  }
  SECTION("elements that are the same") {
    role_type.schema = R"({"properties":{"name":{},"codes":{"type":"array","uniqueItems":true}}})";
    auto codes = Json::array();
    for (int i = 0; i < 30'000; ++i) codes.push_back(i);
    CHECK(wrong(role("all", {{"codes", codes}})).empty());
    codes.push_back(7);
    CHECK(wrong(role("all", {{"codes", codes}})) ==
          std::vector<std::string>{"all: /codes: elements 7 and 30000 are the same"});
  }
  SECTION("a property of a long name that is not ASCII") {
    std::string name = "x";
    for (int i = 0; i < 100; ++i) name += "\u00e9";
    role_type.schema = R"({"type":"object","additionalProperties":false,"properties":{"name":{"type":"string"}}})";
    const auto faults = wrong(role("bad", {{name, 1}}));
    REQUIRE(faults.size() == 1);
    CHECK_NOTHROW(nlohmann::json(faults[0]).dump());
  }
  SECTION("a reference whose example is of another type") {
    auto user = role("user", {{"login", nullptr}});
    user.holes = {{"/login", {{TextPart::Kind::kResource, "owner", "name"}}}};
    world.types["PG::Role"].schema = kRoleSchema;
    auto made = role("made");
    made.properties = R"({"name":null})";
    made.holes = {{"/name", {{TextPart::Kind::kResource, "owner", "oid"}}}};  // no example has it
    const auto result = make_plan({"shop", {role("owner"), made}}, ApplyMode::kReconcile, world);
    CHECK(messages(result).empty());
    REQUIRE(result.unchecked.size() == 1);
    CHECK(result.unchecked[0].pointer == "/name");
    CHECK_THAT(messages(make_plan({"shop", {role("owner"), user}}, ApplyMode::kReconcile, world)).at(0),
               Contains("/login"));
  }
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

TEST_CASE("an id of another object than the one that has the name is a mistake") {
  World world;
  world.add_type("PG::Plain", R"({"type":"object"})");
  const auto plain = [](const std::string& name, const std::string& id) {
    auto r = role(name, {{"size", 1}});
    r.type = "PG::Plain";
    r.native_id = id;
    return r;
  };
  world.manage(world.add("PG::Plain", "plain-1", {{"name", "a"}, {"size", 1}}), plain("a", "plain-1"));
  auto& other = world.add("PG::Plain", "plain-2", {{"name", "a"}, {"size", 1}});
  const auto planned = [&] { return make_plan({"shop", {plain("a", "plain-2")}}, ApplyMode::kReconcile, world); };
  const Strings said{
      "a: is plain-1 on main, and not plain-2, which is there as well: give that another name, or "
      "forget a first"};
  SECTION("also where the other would be deleted, being named no more") {
    if (GENERATE(true, false)) world.manage(other, plain("b", "plain-2"));
    CHECK(messages(planned()) == said);
  }
  SECTION("unless it is what the one has taken the place of") {
    world.manage(other, plain("a (replaced)", "plain-2"));
    CHECK(messages(planned()).empty());
    CHECK(actions(planned().plan) == Strings{"unchanged a", "delete a (replaced)"});
  }
  SECTION("unless one of them is gone") {
    if (GENERATE(true, false)) {
      world.rows[0].state = ResourceState::kMissing;
    } else {
      world.manage(other, plain("b", "plain-2"), "store").state = ResourceState::kMissing;
    }
    CHECK(messages(planned()).empty());
  }
  SECTION("unless it was applied like that") {
    world.manage(world.rows[0], plain("a", "plain-2"));
    CHECK(messages(planned()).empty());
  }
}

TEST_CASE("what is spelled in another way than declared is referred to as it is there") {
  World world;
  world.add_type("PG::Plain", R"({"type":"object","x-muster-identity":["name"],"properties":{"name":{"type":"string"},
      "list":{"type":"array","x-muster-unordered":true},"owner":{},"note":{"type":"string","default":""},
      "text":{"type":"string","contentMediaType":"application/json"}}})");
  auto used = role("used", {{"text", R"({"a":1})"}, {"list", {1, 2}}, {"note", ""}});
  auto user = role("user", {{"owner", nullptr}});
  used.type = user.type = "PG::Plain";
  const auto* const path = GENERATE("text", "list[0]");
  user.holes = {{"/owner", {{TextPart::Kind::kResource, "used", path}}}};
  world.add("PG::Plain", "used", {{"name", "used"}, {"text", R"({"a": 1})"}, {"list", {2, 1}}});
  const Json owner = path == std::string("text") ? Json(R"({"a": 1})") : Json(2);
  world.add("PG::Plain", "user", {{"name", "user"}, {"owner", owner}});
  const auto planned = [&] { return make_plan({"shop", {used, user}}, ApplyMode::kReconcile, world).plan; };
  CHECK(step_of(planned(), "user").patch == "[]");  // as they are adopted
  world.manage(world.rows[0], used);
  world.manage(world.rows[1], user);
  CHECK(actions(planned()) == Strings{"unchanged used", "unchanged user"});
  CHECK(actions(planned()) == Strings{"unchanged used", "unchanged user"});  // by what is remembered
}
