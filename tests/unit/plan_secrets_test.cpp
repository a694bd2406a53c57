// What a plan says of values that nobody reads back, and of secrets.
#include "support/planning_world.h"

using namespace muster;
using namespace muster::test;
using Catch::Contains;

TEST_CASE("write-only values are compared with what was declared, never with what is there") {
  World world;
  auto before = role("owner", {{"note", "digest of \"hello\""}});
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), before);
  auto now = role("owner", {{"note", "hello"}});
  CHECK(make_plan({"shop", {now}}, ApplyMode::kReconcile, world).plan.empty());
  now = role("owner", {{"note", "other"}});
  const auto plan = make_plan({"shop", {now}}, ApplyMode::kReconcile, world).plan;
  CHECK(step_of(plan, "owner").action == StepAction::kUpdate);
  CHECK_THAT(step_of(plan, "owner").patch, !Contains("other"));
}

TEST_CASE("write-only values within others are compared and kept as those at the top") {
  World world;
  world.add_type("PG::Link", R"({"type":"object","x-muster-identity":["name"],"properties":{
    "name":{"type":"string"},
    "login":{"type":"object","properties":{"user":{"type":"string"},"pin":{"type":"string","writeOnly":true}}},
    "keys":{"type":"array","items":{"type":"object","properties":{
      "id":{"type":"string"},"key":{"type":"string","writeOnly":true}}}}}})");
  auto link = role(
      "link", {{"login", {{"user", "a"}, {"pin", "1234"}}}, {"keys", Json::array({{{"id", "k"}, {"key", "sesame"}}})}});
  link.type = "PG::Link";
  const auto made = make_plan({"shop", {link}}, ApplyMode::kReconcile, world).plan;
  CHECK_THAT(step_of(made, "link").claim, Contains("digest of") && !Contains("\"1234\"") && !Contains("\"sesame\""));

  auto& known = world.add("PG::Link", "link",
                          {{"name", "link"}, {"login", {{"user", "a"}}}, {"keys", Json::array({{{"id", "k"}}})}});
  world.manage(known, link);
  known.declared = step_of(made, "link").claim;
  CHECK(make_plan({"shop", {link}}, ApplyMode::kReconcile, world).plan.empty());

  auto rotated = link;
  rotated.properties = Json{{"name", "link"},
                            {"login", {{"user", "a"}, {"pin", "9999"}}},
                            {"keys", Json::array({{{"id", "k"}, {"key", "open"}}})}}
                           .dump();
  const auto plan = make_plan({"shop", {rotated}}, ApplyMode::kReconcile, world).plan;
  CHECK(Json::parse(step_of(plan, "link").patch) ==
        Json::parse(R"([{"op":"replace","path":"/keys","value":[{"id":"k","key":null}]},
                        {"op":"replace","path":"/login/pin","value":null}])"));

  known.properties = R"({"name":"link"})";
  world.agreements.clear();
  CHECK_THAT(step_of(make_plan({"shop", {link}}, ApplyMode::kReconcile, world).plan, "link").patch,
             Contains("\"user\"") && !Contains("1234") && !Contains("sesame"));
}

TEST_CASE("another value of what is never read back and cannot be changed takes another object") {
  World world;
  world.add_type("PG::Copy", R"({"type":"object","x-muster-identity":["name"],"properties":{"name":{"type":"string"},
    "from":{"type":"string","writeOnly":true,"x-muster-create-only":true}}})");
  auto copy = role("copy", {{"from", "monday"}});
  copy.type = "PG::Copy";
  auto& known = world.add("PG::Copy", "copy", {{"name", "copy"}});
  world.manage(known, copy);
  known.declared = step_of(make_plan({"other", {copy}}, ApplyMode::kReconcile, world).plan, "copy").claim;
  const auto planned = [&] { return actions(make_plan({"shop", {copy}}, ApplyMode::kReconcile, world).plan); };
  CHECK(planned() == Strings{"unchanged copy"});
  copy.properties = R"({"from":"tuesday","name":"copy"})";
  CHECK(planned() == Strings{"replace copy"});
}

TEST_CASE("what is a secret is not missed in what is there") {
  World world;
  world.add_type("PG::Link", R"({"type":"object","x-muster-identity":["name"],"properties":{"name":{"type":"string"},
    "token":{"type":"string","x-muster-secret":true}}})");
  auto link = role("link", {{"token", nullptr}});
  link.type = "PG::Link";
  link.holes = {{"/token", {{TextPart::Kind::kResource, "owner", "name"}}}};
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), role("owner"));
  world.manage(world.add("PG::Link", "link", {{"name", "link"}}), link);
  CHECK(make_plan({"shop", {role("owner"), link}}, ApplyMode::kReconcile, world).plan.empty());
}

TEST_CASE("beside a secret in an array all else is compared") {
  World world;
  world.add_type("PG::Link", R"({"type":"object","x-muster-identity":["name"],"properties":{"name":{"type":"string"},
    "keys":{"type":"array","items":{"type":"object","properties":{
      "id":{"type":"string"},"key":{"type":"string","writeOnly":true,"x-muster-secret":true}}}}}})");
  auto link = role("link", {{"keys", {{{"id", "k"}, {"key", nullptr}}, {{"id", "l"}}}}});
  link.type = "PG::Link";
  link.holes = {{"/keys/0/key", {{TextPart::Kind::kEnv, "KEY"}}}};
  auto& known = world.add("PG::Link", "link", {{"name", "link"}, {"keys", {{{"id", "k"}}, {{"id", "l"}}}}});
  world.manage(known, link);
  const auto planned = [&] {
    const auto result = make_plan({"shop", {link}}, ApplyMode::kReconcile, world);
    REQUIRE(messages(result).empty());
    return result.plan;
  };
  CHECK(planned().empty());
  SECTION("with what is declared") {
    link.properties = R"({"keys":[{"id":"k","key":null},{"id":"m"}],"name":"link"})";
  }
  SECTION("with what is there") {
    known.properties = R"({"keys":[{"id":"k"},{"id":"m"}],"name":"link"})";
  }
  const auto plan = planned();
  REQUIRE(actions(plan) == Strings{"update link"});
  CHECK(Json::parse(plan.steps[0].patch)[0]["path"] == "/keys");  // and the secret with it
}

TEST_CASE("a secret takes a reference only, wherever it stands") {
  World world;
  world.add_type("PG::Link", R"({"type":"object","x-muster-identity":["name"],"properties":{"name":{"type":"string"},
    "login":{"type":"object","properties":{"pin":{"type":"string","x-muster-secret":true}}},
    "keys":{"type":"array","items":{"type":"object","properties":{
      "key":{"type":"string","writeOnly":true,"x-muster-secret":true}}}}}})");
  auto link = role("link", {{"login", {{"pin", "1234"}}}, {"keys", {{{"key", nullptr}}, {{"key", "sesame"}}}}});
  link.type = "PG::Link";
  link.holes = {{"/keys/0/key", {{TextPart::Kind::kEnv, "KEY"}}}};
  const auto mistakes = make_plan({"shop", {link}}, ApplyMode::kReconcile, world).mistakes;
  REQUIRE(mistakes.size() == 2);
  CHECK(mistakes[0].pointer == "/keys/1/key");
  CHECK(mistakes[1].pointer == "/login/pin");
  CHECK_THAT(mistakes[1].message, Contains("is a secret"));
}

TEST_CASE("a write-only value taken from another resource is a change when that changes") {
  World world;
  auto owner = role("owner");
  auto user = role("user", {{"note", nullptr}});
  user.holes = {{"/note", {{TextPart::Kind::kResource, "owner", "name"}}}};
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), owner);
  world.manage(world.add("PG::Role", "user", {{"name", "user"}}), user);
  CHECK(make_plan({"shop", {owner, user}}, ApplyMode::kReconcile, world).plan.empty());
  owner.properties = R"({"name":"owner","login":true})";
  CHECK(actions(make_plan({"shop", {owner, user}}, ApplyMode::kReconcile, world).plan) ==
        Strings{"update owner", "update user"});
}

TEST_CASE("a secret reference is a change only when it is another reference") {
  World world;
  auto declared = role("owner", {{"password", nullptr}});
  declared.holes = {{"/password", {{TextPart::Kind::kEnv, "PG_PASSWORD"}}}};
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), declared);
  CHECK(make_plan({"shop", {declared}}, ApplyMode::kReconcile, world).plan.empty());
  declared.holes[0].parts[0].text = "PG_OTHER";
  CHECK(actions(make_plan({"shop", {declared}}, ApplyMode::kReconcile, world).plan) == Strings{"update owner"});
}

TEST_CASE("a secret that holds another resource's value is sent again when that is made anew") {
  World world;
  auto owner = role("owner");
  auto user = role("user", {{"password", nullptr}});
  user.holes = {{"/password", {{TextPart::Kind::kResource, "owner", "name"}, {TextPart::Kind::kEnv, "PG_PASSWORD"}}}};
  world.manage(world.add("PG::Role", "owner", {{"name", "owner"}}), owner);
  world.manage(world.add("PG::Role", "user", {{"name", "user"}}), user);
  CHECK(make_plan({"shop", {owner, user}}, ApplyMode::kReconcile, world).plan.empty());
  owner.properties = R"({"name":"other"})";
  CHECK(actions(make_plan({"shop", {owner, user}}, ApplyMode::kReconcile, world).plan) ==
        Strings{"replace owner", "update user"});
}

TEST_CASE("a reference to what is never read back is a mistake of the plan") {
  World world;
  auto db = database("db", "owner");
  db.holes = {{"/owner", {{TextPart::Kind::kResource, "owner", "note"}}}};
  const auto result = make_plan({"shop", {role("owner", {{"note", "hush"}}), db}}, ApplyMode::kReconcile, world);
  REQUIRE(messages(result) == Strings{"db: owner.note is never read back, so that nothing can refer to it"});
  CHECK(result.mistakes[0].pointer == "/owner");
  for (const auto& step : result.plan.steps) CHECK_THAT(step.patch, !Contains("hush"));
}

TEST_CASE("what could not be read back for its size is a mistake of the plan, but for what is never read back") {
  World world;
  const std::string long_text(300'000, 'x');
  CHECK(messages(make_plan({"shop", {role("a", {{"note", long_text}})}}, ApplyMode::kReconcile, world)).empty());
  const auto all = messages(
      make_plan({"shop", {role("a", {{"member_of", Json::array({long_text})}})}}, ApplyMode::kReconcile, world));
  REQUIRE(all.size() == 1);
  CHECK_THAT(all.front(), Contains("a: properties of 300") && Contains("the limit is 262144"));
}

TEST_CASE("a reference that goes through more than any object holds is looked at, and soon") {
  std::string path = "nothing";
  for (int i = 0; i < 100'000; ++i) path += ".a";
  World world;
  auto db = database("db", "owner");
  db.holes = {{"/owner", {{TextPart::Kind::kResource, "owner", path}}}};
  const auto result = make_plan({"shop", {role("owner"), db}}, ApplyMode::kReconcile, world);
  REQUIRE_FALSE(result.unchecked.empty());
  CHECK_THAT(result.unchecked[0].message, Contains("says nothing of a property 'nothing'"));
}
