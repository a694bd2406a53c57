// The verbs of what users declare, as the command line and other clients see them: drafts, plans, commands, exports.
#include <algorithm>
#include <map>

#include "coordinator/command_plan.h"
#include "support/commands_fixture.h"
#include "support/failing_store.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using namespace nlohmann::literals;
using Strings = std::vector<std::string>;
using Catch::Contains;

namespace {

struct KeptFixture : CommandsFixture {
  /// A command as the store has it, which nobody carries out; its id.
  std::string keep(const CommandPlan& plan, const std::string& state = "complete") {
    CommandRow command;
    command.id = CommandId(make_ulid(clock.wall(), random));
    command.kind = "apply";
    command.state = state;
    command.plan = plan.json();
    command.created_at = clock.wall();
    if (state != "running") command.finished_at = clock.wall();
    store->put_command(command).value();
    clock.advance(Millis(10));
    return command.id.value;
  }
};

}  // namespace

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

TEST_CASE_METHOD(CommandsFixture, "a plan that was refused is refused again until it is told anew") {
  start_discovered();
  const auto sized = [](int size) { return stack({box("a", {{"size", size}, {"link", "mine"}})}); };
  REQUIRE(apply(sized(1))["state"] == "complete");
  const auto size = GENERATE(1, 3);  // nothing was to be done, or something else than is by then
  const auto made = plan(sized(size));
  const Json draft{{"draft", made["draft"]}};
  edit("a", "link", "other");
  discover();
  for (int times = 0; times < 2; ++times) {
    const auto refused = api("apply", draft);
    CAPTURE(refused.dump());
    CHECK(refused.value("/error/code"_json_pointer, "") == "CONFLICT");
  }
  REQUIRE(plan(draft)["summary"]["update"] == 1);
  CHECK(apply(draft)["state"] == "complete");
  CHECK(thing("a")["size"] == size);
}

TEST_CASE_METHOD(CommandsFixture, "of a request that breaks off nothing is kept") {
  auto& breaking = test::put_failing_before(store);
  start_discovered();
  breaking.breaks_commands = true;
  CHECK(api("apply", stack({box("a")})).contains("error"));
  breaking.breaks_commands = false;
  finish_runs();
  CHECK(api("commands")["items"].empty());
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(api("commands")["items"].size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "commands are listed page by page") {
  start_discovered();
  std::vector<std::string> made;
  for (const std::string name : {"a", "b", "c"}) made.push_back(begin(stack({box(name)}, "patch")));
  const auto first = api("commands", {{"limit", 2}});
  REQUIRE(first["items"].size() == 2);
  CHECK(first["items"][0]["command"] == made[2]);
  CHECK(first["next"] == made[1]);
  const auto second = api("commands", {{"limit", 2}, {"cursor", first["next"]}});
  REQUIRE(second["items"].size() == 1);
  CHECK(second["items"][0]["command"] == made[0]);
  CHECK(second["next"].is_null());
}

TEST_CASE_METHOD(CommandsFixture, "a command that has ended takes no longer") {
  start_discovered();
  const auto ended = apply(stack({box("a")}));
  advance(Millis(60'000));
  const auto later = api("command", {{"command", ended["command"]}});
  CHECK(later["duration_ms"] == ended["duration_ms"]);
  CHECK(later["duration_ms"] < 60'000);
}

TEST_CASE_METHOD(KeptFixture, "what a command has not begun waits, and is cancelled when that has ended") {
  start_discovered();
  CommandPlan made;
  made.steps.emplace_back().name = "a";
  const std::string state = GENERATE("running", "cancelled");
  const auto id = keep(made, state);
  store->commit().value();
  CHECK(result_of(api("command", {{"command", id}}), "a") == (state == "running" ? "pending" : "cancelled"));
}

TEST_CASE_METHOD(KeptFixture, "what very many steps have come to is told in parts, of one command and another") {
  start_discovered();
  const std::size_t steps = 2100;
  const auto put = [&](const std::string& name) {
    CommandPlan made;
    for (std::size_t i = 0; i < steps; ++i) {
      auto& step = made.steps.emplace_back();
      step.action = StepAction::kDelete;
      step.name = name + std::to_string(i);
    }
    const auto id = keep(made);
    for (std::size_t i = 0; i < steps; ++i) {
      OperationRow operation;
      operation.command = CommandId(id);
      operation.step = i;
      operation.state = "done";
      store->put_operation(operation).value();
    }
    return id;
  };
  const std::map<std::string, std::string> names{{put("a"), "a"}, {put("b"), "b"}};
  store->commit().value();
  std::size_t from = 0, parts = 0;
  for (Json next = "0"; !next.is_null() && parts < 10; ++parts) {
    Json after;
    std::size_t told = 0;
    for (const auto& [id, name] : names) {
      const auto part = api("command", {{"command", id}, {"cursor", next}});
      REQUIRE(part.contains("results"));
      told = part["results"].size();
      for (std::size_t i = 0; i < told; ++i) {
        REQUIRE(part["results"][i]["name"] == name + std::to_string(from + i));
        REQUIRE(part["results"][i]["state"] == "done");
      }
      after = part["next"];
    }
    from += told;
    next = after;
  }
  CHECK(parts > 1);
  CHECK(from == steps);
}

TEST_CASE_METHOD(KeptFixture, "the plan that parts of an answer are made of is let go with the last, or in a minute") {
  auto& counting = test::put_failing_before(store);
  start_discovered();
  CommandPlan made;
  for (int i = 0; i < 2; ++i) {
    auto& step = made.steps.emplace_back();
    step.name = std::to_string(i) + std::string(360'000, 'x');
  }
  const auto id = keep(made);
  store->commit().value();
  const auto plans_read = [&](const Json& cursor) {
    const auto before = counting.plans_read;
    CHECK(api("command", {{"command", id}, {"cursor", cursor}})["results"].size() == 1);
    return counting.plans_read - before;
  };
  CHECK(plans_read("0") == 1);
  advance(Millis(50'000));
  CHECK(plans_read("1") == 0);
  CHECK(plans_read("1") == 1);  // the last part had been told
  CHECK(plans_read("0") == 1);
  CHECK(plans_read("0") == 1);  // it may have changed since
  advance(Millis(61'000));
  CHECK(plans_read("1") == 1);
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

TEST_CASE_METHOD(CommandsFixture, "a run over stacks looks at the types of their resources, and each needs some") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  const auto report = discover({{"stacks", {"shop"}}});
  REQUIRE(report["scans"].size() == 1);
  CHECK(report["scans"][0]["type"] == "NS::Box");
  const auto runs = api("runs")["items"].size();
  for (const Json& stacks : {Json{"none"}, Json{"shop", "none"}}) {
    const auto refused = api("discover", {{"stacks", stacks}})["error"];
    CHECK(refused["code"] == "NOT_FOUND");
    CHECK(refused["message"] == "no stack none has resources");
  }
  CHECK(api("runs")["items"].size() == runs);
}

TEST_CASE_METHOD(CommandsFixture, "that a stack has what cannot be read is told apart from that it has nothing") {
  add_target("u");
  start_discovered();
  auto other = box("b");
  other["target"] = "u";
  REQUIRE(apply(stack({box("a"), other}))["state"] == "complete");
  crash();
  config.targets.pop_back();
  start();
  finish_runs();
  const auto refused = api("discover", {{"stacks", {"shop"}}})["error"];
  CHECK(refused["code"] == "CONFLICT");
  CHECK_THAT(refused["message"].get<std::string>(), Contains("shop") && Contains("target u is declared no more"));
  CHECK(api("discover", {{"stacks", {"shop"}}, {"targets", {"u"}}})["error"]["code"] == "NOT_FOUND");
  CHECK(discover({{"stacks", {"shop"}}, {"targets", {"t"}}})["state"] == "complete");
}

TEST_CASE_METHOD(CommandsFixture, "a run over stacks names the one that lists what it could not find") {
  add_target("u");
  start_discovered();
  auto other = box("b");
  other["target"] = "u";
  REQUIRE(apply(stack({box("a"), other}))["state"] == "complete");
  advance(Millis(60'000));
  CHECK_FALSE(discover({{"stacks", {"shop"}}}).contains("followed_by"));
  system.things["NS::Box"].clear();
  const auto report = discover({{"stacks", {"shop"}}});
  REQUIRE(report.value("followed_by", Json::array()).size() == 1);
  advance(Millis(1000));
  const auto next = api("run", {{"run", report["followed_by"][0]}});
  CHECK(next["trigger"] == "drift");
  CHECK(next["state"] == "complete");
  CHECK(scan_of(next, "NS::Box")["missing"] == 1);
  CHECK_FALSE(next.contains("followed_by"));
}

TEST_CASE_METHOD(CommandsFixture, "a plan says whether the fleet still waits for its first workers") {
  start();
  auto early = plan(stack({box("a")}));
  CHECK(early["awaits_workers"] == true);
  CHECK(early["mistakes_total"] == 1);
  SECTION("which come") {
    add_worker();
    finish_runs();
    CHECK(plan(stack({box("a")}))["mistakes_total"] == 0);
  }
  SECTION("or do not") {
    finish_runs();
    CHECK(plan(stack({box("a")}))["mistakes_total"] == 1);
  }
  CHECK(plan(stack({box("a")}))["awaits_workers"] == false);
}
