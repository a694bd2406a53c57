// The verbs of what users declare, as the command line and other clients see them: drafts, plans, exports.
#include <algorithm>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using namespace nlohmann::literals;
using Strings = std::vector<std::string>;
using Catch::Contains;

TEST_CASE_METHOD(CommandsFixture, "what is to be done of a draft may be said when it is applied") {
  start_discovered();
  const auto sized = [](int size) { return std::vector{box("a", {{"size", size}}), box("b", {{"size", size}})}; };
  REQUIRE(apply(stack(sized(1)))["state"] == "complete");
  SECTION("another mode") {
    const auto draft = plan(stack({box("a", {{"size", 1}})}))["draft"];
    CHECK(api("apply", {{"draft", draft}, {"mode", "patch"}})["command"].is_null());
    CHECK(count() == 2);
  }
  SECTION("a part") {
    const auto draft = plan(stack(sized(2)))["draft"];
    const bool only = GENERATE(true, false);
    const Json request = only ? Json{{"draft", draft}, {"only", {"a"}}} : Json{{"draft", draft}, {"exclude", {"b"}}};
    REQUIRE(apply(request)["state"] == "complete");
    CHECK(thing("a")["size"] == 2);
    CHECK(thing("b")["size"] == 1);
  }
}

TEST_CASE_METHOD(CommandsFixture, "a plan is made of what is there when its first part is asked for") {
  start_discovered();
  const auto wanted = stack({box("a"), box("b")});
  const auto draft = api("declare", wanted)["draft"];
  const auto second = plan({{"draft", draft}, {"cursor", "1"}});
  CHECK(second["summary"]["create"] == 2);
  REQUIRE(second["steps"].size() == 1);
  CHECK(second["steps"][0]["name"] == "b");
  REQUIRE(plan({{"draft", draft}})["nothing"] == false);
  REQUIRE(apply(wanted)["state"] == "complete");
  CHECK(plan({{"draft", draft}})["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "a plan that nobody wants to apply is not kept") {
  start_discovered();
  auto wanted = stack({box("a")});
  wanted["keep"] = false;
  const auto made = plan(wanted);
  CHECK(made["summary"]["create"] == 1);
  CHECK(plan({{"draft", made["draft"]}}).value("/error/code"_json_pointer, "") == "NOT_FOUND");
}

TEST_CASE_METHOD(CommandsFixture, "of what does not change a plan of changes shows what it says something of") {
  start_discovered();
  REQUIRE(apply(stack({box("a"), box("b")}))["state"] == "complete");
  auto renamed = box("b");
  renamed["name"] = "c";
  auto wanted = stack({box("a"), renamed});
  wanted["changes"] = true;
  const auto steps = plan(wanted)["steps"];
  REQUIRE(steps.size() == 1);
  CHECK(steps[0]["name"] == "c");
  CHECK(steps[0]["action"] == "unchanged");
  CHECK(steps[0]["reason"] == "was b");
}

TEST_CASE_METHOD(CommandsFixture, "of many mistakes a plan tells a thousand, and the answer to an apply a hundred") {
  start_discovered();
  std::vector<Json> wrong;
  for (int i = 0; i < 1100; ++i) wrong.push_back(box("w" + std::to_string(i), {{"size", "?"}}));
  const auto told = plan(stack(wrong));
  CHECK(told["mistakes_total"] == 1100);
  CHECK(told["mistakes"].size() == 1000);
  const auto refused = api("apply", {{"draft", told["draft"]}})["error"];
  CHECK(refused["code"] == "INVALID_REQUEST");
  CHECK_THAT(refused["message"].get<std::string>(), Contains("w99: ") && !Contains("w100: "));
}

TEST_CASE_METHOD(CommandsFixture, "what had nothing to change is not told as done when it has changed since") {
  start_discovered();
  const auto wanted = stack({box("a", {{"size", 1}})});
  REQUIRE(apply(wanted)["state"] == "complete");
  const auto made = plan(wanted);
  REQUIRE(made["nothing"] == true);
  edit("a", "size", 2);
  discover();
  const auto refused = api("apply", {{"draft", made["draft"]}})["error"];
  CHECK(refused["code"] == "CONFLICT");
  CHECK_THAT(refused["message"].get<std::string>(), Contains("what it was planned on has changed"));
}

TEST_CASE_METHOD(CommandsFixture, "what is exported can be declared: without what is the system's own") {
  manifest.types[0].schema = R"({"type":"object","x-muster-identity":["name"],"properties":{
    "name":{"type":"string"},"size":{"type":"integer"},"id":{"type":"string","readOnly":true},
    "login":{"type":"object","properties":{"user":{"type":"string"},"note":{"type":"string"},
      "session":{"type":"string","readOnly":true}}}}})";
  manifest.types[1].schema = R"({"type":"object"})";
  system.add("NS::Box", {.id = "1", .properties = R"({"name":"a","id":"1","size":null,
    "login":{"user":"u","note":null,"session":"s"},"tags":{"x":1}})"});
  system.add("NS::Item", {.id = "2", .properties = R"({"n":1})"});
  start_discovered();
  const auto items = api("export")["items"];
  REQUIRE(items.size() == 2);
  CHECK(items[0]["properties"] == Json{{"name", "a"}, {"login", {{"user", "u"}}}, {"tags", {{"x", 1}}}});
  CHECK_FALSE(items[0].contains("native_id"));  // its name says which it is
  CHECK(items[1]["properties"] == Json{{"n", 1}});
  CHECK(items[1]["native_id"] == "2");
}

TEST_CASE_METHOD(CommandsFixture, "an export comes in pages, and leaves out what is missing") {
  start_discovered();
  REQUIRE(apply(stack({box("a"), box("b"), box("c")}))["state"] == "complete");
  std::erase_if(system.things["NS::Box"], [](const auto& each) { return Json::parse(each.properties)["name"] == "b"; });
  advance(Millis(60'000));
  discover();
  REQUIRE(api("resources", {{"state", "missing"}})["items"].size() == 1);
  Strings names;
  Json request{{"limit", 2}};
  int pages = 0;
  for (Json next = ""; !next.is_null() && pages < 5; ++pages) {
    const auto page = api("export", request);
    for (const auto& item : page["items"]) names.push_back(item["properties"]["name"]);
    next = page["next"];
    request["cursor"] = next;
  }
  CHECK(names == Strings{"a", "c"});
  CHECK(pages == 2);
}
