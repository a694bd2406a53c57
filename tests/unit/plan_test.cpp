// What is to be done so that the inventory is as declared.
#include "support/planning_world.h"

using namespace muster;
using namespace muster::test;
using Catch::Contains;

TEST_CASE("what is not there is created, after what it refers to") {
  World world;
  const auto result = make_plan({"shop", {database("db", "owner"), role("owner")}}, ApplyMode::kReconcile, world);
  REQUIRE(result.mistakes.empty());
  CHECK(actions(result.plan) == Strings{"create owner", "create db"});
  CHECK(step_of(result.plan, "db").after == std::vector<std::size_t>{0});
  CHECK(result.plan.summary().at(StepAction::kCreate) == 2);
}

TEST_CASE("what is as declared needs nothing") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}, {"login", false}, {"oid", 5}}), role("owner"));
  world.manage(world.add("PG::Database", "db", {{"name", "db"}, {"owner", "owner"}, {"encoding", "UTF8"}}),
               database("db", "owner"));
  const auto result =
      make_plan({"shop", {database("db", "owner"), role("owner", {{"login", false}})}}, ApplyMode::kReconcile, world);
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"unchanged owner", "unchanged db"});
  CHECK(step_of(result.plan, "db").claim.empty());
  CHECK_FALSE(step_of(result.plan, "owner").claim.empty());  // it is declared in other words: that is noted
  CHECK_FALSE(result.plan.empty());
  CHECK(make_plan({"shop", {database("db", "owner"), role("owner")}}, ApplyMode::kReconcile, world).plan.empty());
}

TEST_CASE("a target is of the namespace of what is declared there, and of what that lies in") {
  World world;
  world.targets["files"] = "FS";
  world.targets["other"] = "PG";
  auto misplaced = role("owner");
  misplaced.target = "files";
  auto inner = database("db", "first");
  inner.parent = "first";
  auto outer = role("first");
  outer.target = "other";
  const auto result = make_plan({"shop", {misplaced, outer, inner}}, ApplyMode::kReconcile, world);
  CHECK(messages(result) == Strings{"owner: target files is of namespace FS, and has no PG::Role",
                                    "db: cannot lie in first, which is on target other"});
}

TEST_CASE("a resource under another name in its stack is the same object") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("old"));
  const auto result = make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world);
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"unchanged owner"});
  CHECK(result.plan.steps[0].claim == to_json(role("owner")).dump());
}

TEST_CASE("what only the system sets stays known through an update") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}, {"login", false}, {"oid", 5}}), role("owner"));
  auto user = role("user", {{"login", nullptr}});
  user.holes = {{"/login", {{TextPart::Kind::kResource, "owner", "oid"}}}};
  world.manage(world.add("PG::Role", "user", {{"name", "user"}, {"login", 5}}), user);
  const auto result = make_plan({"shop", {role("owner", {{"login", true}}), user}}, ApplyMode::kReconcile, world);
  REQUIRE(messages(result).empty());
  CHECK(actions(result.plan) == Strings{"update owner", "unchanged user"});
}

TEST_CASE("a plan can be restricted to some resources and what they need, or to all but some") {
  World world;
  const Declaration all{"shop", {role("owner"), database("db", "owner"), role("other")}};
  const auto restricted = [&](const std::set<std::string>& only, const std::set<std::string>& excluded) {
    auto plan = make_plan(all, ApplyMode::kReconcile, world).plan;
    plan.restrict_to(only, excluded);
    return plan;
  };
  CHECK(actions(restricted({"db"}, {})) == Strings{"create owner", "create db"});
  CHECK(step_of(restricted({"db"}, {}), "db").after == std::vector<std::size_t>{0});
  CHECK(actions(restricted({}, {"owner"})) == Strings{"create other"});
  CHECK(actions(restricted({}, {"other"})) == Strings{"create owner", "create db"});
}

TEST_CASE("a change in place is an update with the smallest patch") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}, {"login", false}, {"member_of", {"a", "b"}}}),
               role("owner"));
  const auto result =
      make_plan({"shop", {role("owner", {{"login", true}, {"member_of", {"b", "a"}}})}}, ApplyMode::kReconcile, world);
  REQUIRE(messages(result).empty());
  const auto& step = step_of(result.plan, "owner");
  CHECK(step.action == StepAction::kUpdate);
  CHECK(Json::parse(step.patch) == Json::parse(R"([{"op":"replace","path":"/login","value":true}])"));
  CHECK(step.native_id == "owner");
  CHECK(step.row == 1);
}

TEST_CASE("another value of a create-only property replaces the object, unless it is protected") {
  World world;
  auto declared = role("owner", {{"name", "boss"}});
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("owner"));
  SECTION("replaced") {
    const auto result = make_plan({"shop", {declared}}, ApplyMode::kReconcile, world);
    REQUIRE(messages(result).empty());
    CHECK(step_of(result.plan, "owner").action == StepAction::kReplace);
    CHECK_THAT(step_of(result.plan, "owner").reason, Contains("/name"));
  }
  SECTION("protected") {
    declared.protect = true;
    CHECK(make_plan({"shop", {declared}}, ApplyMode::kReconcile, world).mistakes.size() == 1);
  }
}

TEST_CASE("a value that is not known yet replaces the object where any part of it cannot be changed") {
  World world;
  world.add_type("PG::Zone", R"({"type":"object","x-muster-identity":["name"],"properties":{"name":{"type":"string"},
    "spec":{"type":"object","properties":{"at":{"x-muster-create-only":true},"size":{}}}}})");
  const auto zone = [&](const char* at) {
    auto made = role("zone", {{"spec", {{at, nullptr}}}});
    made.type = "PG::Zone";
    made.holes = {{std::string("/spec/") + at, {{TextPart::Kind::kResource, "owner", "oid"}}}};
    return made;
  };
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}, {"oid", 1}}), role("owner"));
  world.manage(world.add("PG::Zone", "zone", {{"name", "zone"}, {"spec", {{"at", 1}, {"size", 1}}}}), zone("at"));
  const auto planned = [&](const char* at) {
    const auto boss = role("owner", {{"name", "boss"}});
    return actions(make_plan({"shop", {boss, zone(at)}}, ApplyMode::kReconcile, world).plan);
  };
  CHECK(planned("at") == Strings{"replace owner", "replace zone"});
  CHECK(planned("size") == Strings{"replace owner", "update zone"});
}

TEST_CASE("a dependent of what is replaced sees the value that it will have") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("owner"));
  world.manage(world.add("PG::Database", "db", {{"name", "db"}, {"owner", "owner"}}), database("db", "owner"));
  const auto result =
      make_plan({"shop", {role("owner", {{"name", "boss"}}), database("db", "owner")}}, ApplyMode::kReconcile, world);
  REQUIRE(messages(result).empty());
  const auto& step = step_of(result.plan, "db");
  CHECK(step.action == StepAction::kUpdate);
  CHECK(Json::parse(step.patch) == Json::parse(R"([{"op":"replace","path":"/owner","value":"boss"}])"));
}

TEST_CASE("what used something that is replaced turns away from it first") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("owner"));
  world.manage(world.add("PG::Role", "other", {{"name", "other"}}), role("other"));
  world.manage(world.add("PG::Database", "db", {{"name", "db"}, {"owner", "owner"}}), database("db", "owner"));
  const auto plan = [&](const std::vector<DeclaredResource>& resources) {
    const auto result = make_plan({"shop", resources}, ApplyMode::kReconcile, world);
    REQUIRE(messages(result).empty());
    return result.plan;
  };
  const auto boss = role("owner", {{"name", "boss"}});
  SECTION("to something else") {
    const auto made = plan({boss, role("other"), database("db", "other")});
    CHECK(actions(made) == Strings{"unchanged other", "update db", "replace owner"});
    CHECK(made.steps[2].after == std::vector<std::size_t>{1});
  }
  SECTION("but for what it is needed by in turn") {
    auto later = boss;
    later.after = {"db"};
    const auto made = plan({later, role("other"), database("db", "other")});
    CHECK(actions(made) == Strings{"unchanged other", "update db", "replace owner"});
    CHECK(made.steps[2].after == std::vector<std::size_t>{1});
  }
  SECTION("unless it needs it by way of another") {
    auto other = role("other");
    other.after = {"owner"};
    const auto made = plan({boss, other, database("db", "other")});
    CHECK(actions(made) == Strings{"replace owner", "unchanged other", "update db"});
    CHECK(made.steps[0].after.empty());
  }
  SECTION("which holds up nothing that stays") {
    const auto made = plan({role("owner", {{"login", true}}), role("other"), database("db", "other")});
    CHECK(step_of(made, "owner").after.empty());
  }
}

TEST_CASE("what is there already is adopted, with what differs") {
  World world;
  world.add("PG::Role", "owner", {{"name", "owner"}, {"login", true}});
  SECTION("by what identifies it") {
    const auto result =
        make_plan({"shop", {role("mine", {{"name", "owner"}, {"login", false}})}}, ApplyMode::kReconcile, world);
    REQUIRE(messages(result).empty());
    const auto& step = step_of(result.plan, "mine");
    CHECK(step.action == StepAction::kAdopt);
    CHECK(step.native_id == "owner");
    CHECK(Json::parse(step.patch).size() == 1);
  }
  SECTION("by its native id") {
    auto declared = role("mine", {{"name", "owner"}});
    declared.native_id = "owner";
    CHECK(step_of(make_plan({"shop", {declared}}, ApplyMode::kReconcile, world).plan, "mine").action ==
          StepAction::kAdopt);
  }
  SECTION("another stack has it") {
    world.manage(world.rows[0], role("theirs"), "other");
    const auto result = make_plan({"shop", {role("mine", {{"name", "owner"}})}}, ApplyMode::kReconcile, world);
    REQUIRE(result.mistakes.size() == 1);
    CHECK_THAT(result.mistakes[0].message, Contains("stack other"));
  }
}

TEST_CASE("two resources that are one object are a mistake") {
  World world;
  const Declaration twice{"shop", {role("first", {{"name", "owner"}}), role("second", {{"name", "owner"}})}};
  const auto said = [&] { return messages(make_plan(twice, ApplyMode::kReconcile, world)); };
  SECTION("that is not there") {
    CHECK(said() == Strings{R"(second: is the same object as resource first of stack shop: ["owner"])"});
  }
  SECTION("that is there") {
    world.add("PG::Role", "owner", {{"name", "owner"}});
    CHECK(said() == Strings{"second: owner is resource first of this stack already"});
  }
  SECTION("that the stack has, whichever of them is looked at first") {
    const auto index = GENERATE(0U, 1U);
    world.manage(world.add("PG::Role", "owner", {{"name", "owner"}, {"login", false}}), twice.resources[index]);
    CHECK(said() == Strings{"second: owner is resource first of this stack already"});
    CHECK(said() ==
          Strings{"second: owner is resource first of this stack already"});  // nor where it was as declared before
  }
  SECTION("of two stacks that are planned together") {
    PlanClaims claims;
    CHECK(make_plan({"shop", {role("first", {{"name", "owner"}})}}, ApplyMode::kReconcile, world, claims)
              .mistakes.empty());
    const auto other = make_plan({"desk", {role("owner")}}, ApplyMode::kReconcile, world, claims);
    CHECK(messages(other) == Strings{R"(owner: is the same object as resource first of stack shop: ["owner"])"});
  }
}

TEST_CASE("of two targets that are one system one manages an object") {
  World world;
  world.targets["second"] = "PG";
  world.others = {{"main", {"second"}}, {"second", {"main"}}};
  auto moved = role("owner");
  moved.target = "second";
  const auto plan = [&](const std::string& stack) {
    return messages(make_plan({stack, {moved}}, ApplyMode::kReconcile, world));
  };
  CHECK(plan("shop").empty());
  const std::string said =
      " is resource owner of stack shop already, on target main, which is the same system as "
      "second: declare it there";
  world.manage(world.add("PG::Role", "id of it", {{"name", "owner"}}), role("owner"));
  CHECK(plan("shop") == Strings{"owner: id of it" + said});  // by what identifies it
  CHECK(plan("store") == Strings{"owner: id of it" + said});
  auto& there = world.add("PG::Role", "id of it", {{"name", "owner"}});
  there.target = "second";
  CHECK(plan("store") == Strings{"owner: id of it" + said});  // by its id
  moved.native_id = "id of it";
  CHECK(plan("store") == Strings{"owner: id of it" + said});
  world.others.clear();
  CHECK(plan("store").empty());

  world.others = {{"main", {"second"}}, {"second", {"main"}}};
  auto twice = role("other");
  auto again = role("again", {{"name", "other"}});
  again.target = "second";
  CHECK(messages(make_plan({"store", {twice, again}}, ApplyMode::kReconcile, world)).size() == 1);
}

TEST_CASE("what is managed and gone is created again") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("owner")).state = ResourceState::kMissing;
  const auto result = make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world);
  CHECK(step_of(result.plan, "owner").action == StepAction::kCreate);
  CHECK(step_of(result.plan, "owner").row == 1);
}

TEST_CASE("what is managed and gone is adopted as what nobody manages and is there instead") {
  World world;
  const auto declared = role("owner");
  world.manage(world.add("PG::Role", "first", {{"name", "owner"}}), declared).state = ResourceState::kMissing;
  auto& other = world.add("PG::Role", "second", {{"name", "owner"}});
  const auto mode = GENERATE(ApplyMode::kReconcile, ApplyMode::kPatch);
  const auto planned = [&] { return make_plan({"shop", {declared, database("db", "owner")}}, mode, world); };
  SECTION("as the one that identifies it") {
    CHECK(messages(planned()).empty());
    CHECK(actions(planned().plan) == Strings{"adopt owner", "create db"});
    CHECK(planned().plan.steps[0].row == other.row);
    CHECK_FALSE(planned().plan.steps[0].claim.empty());
  }
  SECTION("where it is the row that is found first") {
    std::swap(world.rows[0], world.rows[1]);
    CHECK(actions(planned().plan) == Strings{"adopt owner", "create db"});
    CHECK(planned().plan.steps[0].native_id == "second");
  }
  SECTION("unless it is managed, or gone as well") {
    if (GENERATE(true, false)) {
      world.manage(other, declared, "store");
    } else {
      other.state = ResourceState::kMissing;
    }
    CHECK(actions(planned().plan) == Strings{"create owner", "create db"});
    CHECK(planned().plan.steps[0].row == 1);
  }
}

TEST_CASE("what is gone is made anew under the name that declares it now, where its own has come to another") {
  World world;
  world.manage(world.add("PG::Role", "gone", {{"name", "gone"}}), role("first", {{"name", "gone"}})).state =
      ResourceState::kMissing;
  world.add("PG::Role", "there", {{"name", "there"}});
  Declaration both{"shop", {role("first", {{"name", "there"}}), role("second", {{"name", "gone"}})}};
  if (GENERATE(false, true)) std::swap(both.resources[0], both.resources[1]);
  const auto result = make_plan(both, ApplyMode::kReconcile, world);
  CHECK(messages(result).empty());
  CHECK(step_of(result.plan, "first").action == StepAction::kAdopt);
  CHECK(step_of(result.plan, "second").action == StepAction::kCreate);
  CHECK(result.plan.steps.size() == 2);
}

TEST_CASE("what is replaced does not become what another resource of the stack is, or becomes") {
  World world;
  for (const auto* name : {"a", "b"}) {
    world.manage(world.add("PG::Role", name, {{"name", name}}), role(name));
  }
  const auto said = [&](const char* a, const char* b) {
    return messages(
        make_plan({"shop", {role("a", {{"name", a}}), role("b", {{"name", b}})}}, ApplyMode::kReconcile, world));
  };
  CHECK(said("b", "b") ==
        Strings{"a: would be replaced, and be the same object as resource b of this stack: declare it once"});
  CHECK(said("b", "a").empty());
  CHECK(said("c", "c") ==
        Strings{"a: would be replaced, and be the same object as resource b of this stack: declare it once",
                "b: would be replaced, and be the same object as resource a of this stack: declare it once"});
  const auto result =
      make_plan({"shop", {role("new"), role("a", {{"name", "new"}}), role("b")}}, ApplyMode::kReconcile, world);
  CHECK(messages(result) ==
        Strings{"a: would be replaced, and be the same object as resource new of this stack: declare it once"});
}

TEST_CASE("what would be replaced by what is there already is a mistake, and not deleted for it") {
  World world;
  world.manage(world.add("PG::Role", "old", {{"name", "old"}}), role("owner", {{"name", "old"}}));
  auto& other = world.add("PG::Role", "new", {{"name", "new"}});
  const auto plan = [&] {
    return make_plan({"shop", {role("owner", {{"name", "new"}})}}, ApplyMode::kReconcile, world);
  };
  SECTION("of no stack") {
    CHECK(messages(plan()) == Strings{"owner: would be replaced, and new is there already: declare it under another "
                                      "name beside owner, or forget owner first"});
  }
  SECTION("of another stack") {
    world.manage(other, role("theirs", {{"name", "new"}}), "desk");
    other.state = GENERATE(ResourceState::kPresent, ResourceState::kMissing);  // where it is theirs all the same
    CHECK(messages(plan()) ==
          Strings{"owner: would be replaced, and new belongs to stack desk, as theirs: declare another than that"});
  }
  SECTION("but not where the new one comes first, which may be that") {
    auto first = role("owner", {{"name", "new"}});
    if (GENERATE(false, true)) {
      first.replace = ReplaceOrder::kCreateFirst;
    } else {
      auto schema = Json::parse(kRoleSchema);
      schema["x-muster-replace"] = "create-first";
      world.types["PG::Role"].schema = schema.dump();
    }
    CHECK(messages(make_plan({"shop", {first}}, ApplyMode::kReconcile, world)).empty());
  }
  SECTION("but not what leaves the stack, or is gone") {
    world.manage(other, role("other", {{"name", "new"}}));
    CHECK(messages(plan()).empty());
    other.state = ResourceState::kMissing;
    CHECK(messages(plan()).empty());
  }
}

TEST_CASE("of two rows of one name the newest that is there counts, and the other leaves") {
  World world;
  const auto add = [&](const std::string& id, ResourceState state) {
    world.manage(world.add("PG::Role", id, {{"name", "owner"}, {"login", false}}), role("owner")).state = state;
  };
  const auto kept = GENERATE(0U, 1U);
  CAPTURE(kept);
  add("first", kept == 0 ? ResourceState::kPresent : ResourceState::kMissing);
  add("second", kept == 1 ? ResourceState::kPresent : ResourceState::kMissing);
  const auto plan = make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world).plan;
  CHECK(actions(plan) == Strings{"unchanged owner", "delete owner"});
  CHECK(plan.steps[0].row == world.rows[kept].row);
  CHECK(plan.steps[1].row == world.rows[1 - kept].row);
}

TEST_CASE("what a stack no longer declares is deleted, its users first; patch mode leaves it") {
  World world;
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("owner"));
  world.manage(world.add("PG::Database", "db", {{"name", "db"}, {"owner", "owner"}}), database("db", "owner"));
  SECTION("reconcile") {
    const auto plan = make_plan({"shop", {}}, ApplyMode::kReconcile, world).plan;
    CHECK(actions(plan) == Strings{"delete db", "delete owner"});
    CHECK(plan.steps[1].after == std::vector<std::size_t>{0});
  }
  SECTION("patch") {
    CHECK(make_plan({"shop", {}}, ApplyMode::kPatch, world).plan.steps.empty());
  }
  SECTION("destroy") {
    const auto plan = make_plan({"shop", {role("owner"), database("db", "owner")}}, ApplyMode::kDestroy, world).plan;
    CHECK(actions(plan) == Strings{"delete db", "delete owner"});
  }
  SECTION("destroy of something protected") {
    auto declared = role("owner");
    declared.protect = true;
    world.manage(world.rows[0], declared);
    CHECK(messages(make_plan({"shop", {}}, ApplyMode::kDestroy, world)) ==
          Strings{"owner: is protected, and would be deleted: apply it without `protect` first"});
  }
}

TEST_CASE("what was made twice leaves twice when its stack is destroyed") {
  World world;
  world.manage(world.add("PG::Role", "one", {{"name", "owner"}}), role("owner"));
  world.manage(world.add("PG::Role", "two", {{"name", "owner"}}), role("owner"));
  world.manage(world.add("PG::Database", "db", {{"name", "db"}, {"owner", "owner"}}), database("db", "owner"));
  const auto plan = make_plan({"shop", {}}, ApplyMode::kDestroy, world).plan;
  REQUIRE(plan.steps.size() == 3);
  CHECK(plan.steps[0].native_id == "db");
  CHECK(std::set{plan.steps[1].native_id, plan.steps[2].native_id} == std::set<std::string>{"one", "two"});
  CHECK(plan.steps[1].after == std::vector<std::size_t>{0});
  CHECK(plan.steps[2].after == std::vector<std::size_t>{0});
}

TEST_CASE("all mistakes come together, with the resource they are about") {
  World world;
  auto unknown_type = role("a");
  unknown_type.type = "PG::Nothing";
  auto unknown_target = role("b");
  unknown_target.target = "elsewhere";
  auto read_only = role("c", {{"oid", 3}});
  auto secret = role("d", {{"password", "hunter2"}});
  auto frozen = database("e", "a");
  frozen.type = "PG::Frozen";
  const auto result =
      make_plan({"shop", {unknown_type, unknown_target, read_only, secret, frozen, role("a"), database("f", "nobody")}},
                ApplyMode::kReconcile, world);
  CHECK(result.plan.steps.empty());
  const auto all = messages(result);
  for (const auto* part : {"a: no plugin serves", "b: no target", "c: /oid", "d: /password", "e: PG::Frozen cannot",
                           "a: the name stands twice", "f: no resource is named 'nobody'"}) {
    INFO(part);
    CHECK(std::ranges::any_of(all, [&](const std::string& message) { return message.starts_with(part); }));
  }
  for (const auto& message : all) CHECK_THAT(message, !Contains("hunter2"));
  const auto about_b = [](const std::string& message) { return message.starts_with("b: "); };
  CHECK(std::ranges::count_if(all, about_b) == 1);  // a target that is not there has no namespace
}

TEST_CASE("a reference to a property that the other's type does not have is a mistake of the plan") {
  World world;
  auto db = database("db", "owner");
  const auto refer_to = [&](const std::string& path) {
    db.holes = {{"/owner", {{TextPart::Kind::kResource, "owner", path}}}};
    return make_plan({"shop", {role("owner"), db}}, ApplyMode::kReconcile, world);
  };
  CHECK(refer_to("nam").mistakes.empty());         // the type may have more than it describes
  REQUIRE(refer_to("nam").unchecked.size() == 2);  // nor is its value known
  CHECK(refer_to("nam").unchecked[0].message == "owner is PG::Role, whose type says nothing of a property 'nam'");
  auto schema = Json::parse(kRoleSchema);
  schema["additionalProperties"] = false;
  const auto closed = schema.dump();
  world.add_type("PG::Role", closed.c_str());
  CHECK(messages(refer_to("nam")) ==
        Strings{"db: owner is PG::Role, whose type says nothing of a property 'nam'; did you mean `name`?"});
  CHECK(refer_to("nam").mistakes[0].pointer == "/owner");
  CHECK(messages(refer_to("name")).empty());
  CHECK(messages(refer_to("member_of[0].name")).empty());
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}, {"nam", "as it is"}}), role("owner"));
  CHECK(messages(refer_to("nam")).empty());
}

TEST_CASE("a text of which a part is not known yet is not known") {
  World world;
  auto first = database("first", "owner"), second = database("second", "owner");
  first.holes = second.holes = {{"/owner", {{TextPart::Kind::kResource, "owner", "oid"}}}};
  auto one = role("one", {{"name", nullptr}}), two = role("two", {{"name", nullptr}});
  one.holes = {{"/name", {{TextPart::Kind::kLiteral, "x-"}, {TextPart::Kind::kResource, "first", "owner"}}}};
  two.holes = {{"/name", {{TextPart::Kind::kLiteral, "x-"}, {TextPart::Kind::kResource, "second", "owner"}}}};
  const auto result = make_plan({"shop", {role("owner"), first, second, one, two}}, ApplyMode::kReconcile, world);
  CHECK(messages(result).empty());
}

TEST_CASE("what could not be looked at lately is planned as it was, which is said") {
  World world;
  auto& known = world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("owner"));
  known.state = ResourceState::kStale;
  const auto result = make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world);
  CHECK(actions(result.plan) == Strings{"unchanged owner"});
  REQUIRE(result.unchecked.size() == 1);
  CHECK_THAT(result.unchecked[0].message, Contains("may be another by now") && Contains("its target changed"));
  // Nor is that forgotten when it was found to be as declared before.
  CHECK(make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world).unchecked.size() == 1);
  known.state = ResourceState::kPresent;
  CHECK(make_plan({"shop", {role("owner")}}, ApplyMode::kReconcile, world).unchecked.empty());
}

TEST_CASE("a cycle is printed as a cycle") {
  World world;
  auto a = role("a"), b = role("b"), c = role("c"), d = role("d");
  a.after = {"b"};
  b.after = {"c"};
  c.after = {"b"};
  const auto result = make_plan({"shop", {a, b, c, d}}, ApplyMode::kReconcile, world);
  REQUIRE(result.mistakes.size() == 1);
  CHECK_THAT(result.mistakes[0].message, Contains("b -> c -> b") || Contains("c -> b -> c"));
  CHECK(result.mistakes[0].resource == result.mistakes[0].message.substr(result.mistakes[0].message.size() - 1));
}

TEST_CASE("a cycle through all of a large stack is found, and soon") {
  constexpr std::size_t kResources = 300'000;
  std::vector<DeclaredResource> ring(kResources);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    ring[i].name = std::to_string(i);
    ring[i].after = {std::to_string((i + 1) % ring.size())};
  }
  const auto cycle = cycle_of(ring);
  REQUIRE(cycle.size() == ring.size() + 1);
  CHECK(cycle.front() == cycle.back());
}

TEST_CASE("declarations come back from JSON as they were") {
  auto full = database("db", "owner");
  full.after = {"x"};
  full.native_id = "db";
  full.parent = "p";
  full.protect = true;
  full.replace = ReplaceOrder::kCreateFirst;
  full.on_drift = OnDrift::kRevert;
  auto values = Json::parse(full.properties);
  values["a/b"] = nullptr;
  full.properties = values.dump();
  full.holes.push_back({"/a~1b", {{TextPart::Kind::kLiteral, "x-"}, {TextPart::Kind::kEnv, "E"}}});
  const Declaration declaration{"shop", {full, role("owner")}};
  CHECK(declaration_from_json(to_json(declaration)).value() == declaration);
  CHECK(full.holes[1].secret());
  CHECK_FALSE(full.holes[0].secret());
  for (const auto* bad : {R"([])", R"({"stack":1})", R"({"stack":"s","resources":[{}]})",
                          R"({"stack":"s","resources":[{"name":"a","type":"t","target":"x","holes":[{}]}]})",
                          R"({"stack":"s","resources":[{"name":"a","type":"t","target":"x","on_drift":"x"}]})"}) {
    CHECK_FALSE(declaration_from_json(Json::parse(bad)));
  }
}

TEST_CASE("what was found to be as declared is not compared again while nothing has changed") {
  World world;
  auto& owner = world.manage(world.add("PG::Role", "owner", {{"name", "owner"}, {"oid", 5}}), role("owner"));
  const auto shelf = world.add("PG::Role", "shelf", {{"name", "shelf"}}).row;
  const auto other_shelf = world.add("PG::Role", "other_shelf", {{"name", "other_shelf"}}).row;
  auto& db = world.manage(world.add("PG::Database", "db", {{"name", "db"}, {"owner", "owner"}}, shelf),
                          database("db", "owner"));
  owner.content = {1, 1};
  db.content = {2, 2};
  const Declaration declared{"shop", {role("owner"), database("db", "owner")}};
  const auto planned = [&](const Declaration& wanted) {
    return actions(make_plan(wanted, ApplyMode::kReconcile, world).plan);
  };
  REQUIRE(planned(declared) == Strings{"unchanged owner", "unchanged db"});
  REQUIRE(world.agreements.size() == 2);

  // From here on a comparison would find something else.
  db.properties = R"({"name":"db","owner":"other"})";
  CHECK(planned(declared) == Strings{"unchanged owner", "unchanged db"});

  SECTION("its own content") {
    db.content = {2, 3};
  }
  SECTION("that of what it refers to") {
    owner.content = {1, 2};
  }
  SECTION("where it lies") {
    db.parent = other_shelf;
  }
  SECTION("what its type says") {
    world.types["PG::Database"].schema += " ";
  }
  SECTION("what is declared") {
    auto wanted = declared;
    wanted.resources[1].properties = R"({"encoding":"UTF8","name":"db","owner":null})";
    CHECK(planned(wanted) == Strings{"unchanged owner", "replace db"});
    return;
  }
  SECTION("what it refers to changes in this plan") {
    auto wanted = declared;
    wanted.resources[0].properties = R"({"login":true,"name":"owner"})";
    CHECK(planned(wanted) == Strings{"update owner", "update db"});
    return;
  }
  CHECK(planned(declared) == Strings{"unchanged owner", "update db"});
}
