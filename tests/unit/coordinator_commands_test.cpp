// What becomes of a declaration: each object is made once, and every command ends.
#include <algorithm>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using namespace nlohmann::literals;
using Strings = std::vector<std::string>;
using Catch::Contains;

TEST_CASE_METHOD(CommandsFixture, "resources are chosen by the stack that declares them") {
  system.add("NS::Box", {.id = "found"});
  start_discovered();
  apply(stack({box("a"), box("b")}));
  auto other = stack({box("c")});
  other["stacks"][0]["stack"] = "other";
  apply(other);
  const auto declared_by = [&](const Json& query) {
    Strings names;
    const auto listed = api("resources", query);
    for (const auto& item : listed["items"]) names.push_back(item["properties"]["name"]);
    return names;
  };
  CHECK(declared_by({{"stack", "shop"}}) == Strings{"a", "b"});
  CHECK(declared_by({{"stack", "other"}, {"type", "NS::Box"}}) == Strings{"c"});
  CHECK(declared_by({{"stack", "none"}}).empty());
}

TEST_CASE_METHOD(CommandsFixture, "what waits for a worker says so, and is not begun once it is cancelled") {
  add_target("far").pool = "elsewhere";
  start_discovered();
  auto there = box("a");
  there["target"] = "far";
  const auto id = begin(stack({there, linked("b", "a")}));
  advance(Millis(3000));
  CHECK(api("command", {{"command", id}})["progress"]["waiting"] == "waiting for a worker of NS/elsewhere");
  const bool forced = GENERATE(false, true);
  api("cancel", {{"command", id}, {"force", forced}});
  const auto ended = end_of(id);
  CHECK(ended["state"] == "cancelled");
  CHECK(result_of(ended, "a") == "cancelled CANCELLED");
  auto& late = add_worker("late");
  late.announcement.pool = "elsewhere";
  advance(Millis(5000));
  CHECK(late.asked<CreateJob>().empty());
  CHECK(count() == 0);
}

TEST_CASE_METHOD(CommandsFixture, "what is declared is made in order, once, and then nothing is left to do") {
  start_discovered();
  events();
  const auto done = apply(stack({linked("b", "a"), box("a", {{"size", 3}})}));
  CHECK(done["state"] == "complete");
  CHECK(count() == 2);
  CHECK(thing("b")["link"] == thing("a")["id"]);
  CHECK(listed("NS::Box").size() == 2);
  const auto line = api("resources", {{"managed", true}})["items"].at(0);
  CHECK(line["stack"] == "shop");
  advance(Millis(500));
  Strings told;
  for (const auto& event : events()) {
    const auto type = event["type"].get<std::string>();
    if (type != "muster.command.progress") told.push_back(type);
    if (type.starts_with("muster.command.")) CHECK(event["data"]["stacks"] == Json{"shop"});
  }
  CHECK(told == Strings{"muster.command.started", "muster.resource.created", "muster.resource.created",
                        "muster.command.finished"});
  CHECK(api("resource", {{"id", line["id"]}, {"history", true}})["history"].at(0)["cause"] == "created");

  const auto jobs = worker().jobs.size();
  const auto again = api("apply", stack({linked("b", "a"), box("a", {{"size", 3}})}));
  CHECK(again["command"].is_null());
  CHECK(worker().jobs.size() == jobs);
  CHECK(discover()["state"] == "complete");
  CHECK(plan(stack({linked("b", "a"), box("a", {{"size", 3}})}))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "a change is made of what is there, guarded by what was read") {
  start_discovered();
  apply(stack({box("a", {{"size", 3}})}));
  events();
  const auto done = apply(stack({box("a", {{"size", 4}})}));
  CHECK(done["state"] == "complete");
  CHECK(thing("a")["size"] == 4);
  const auto update = std::get<UpdateJob>(worker().asked<UpdateJob>().back().operation);
  CHECK(update.patch == R"([{"op":"replace","path":"/size","value":4}])");
  CHECK_FALSE(update.precondition.state_hash.empty());
  advance(Millis(500));
  CHECK(resource_events() == Strings{"updated:made-1"});
  SECTION("what changed in other ways since it was planned is a conflict") {
    auto draft = plan(stack({box("a", {{"size", 5}, {"link", "x"}})}))["draft"];
    edit("a", "size", 5);
    discover();
    const auto refused = api("apply", {{"draft", draft}});
    CHECK_THAT(refused["error"]["message"].get<std::string>(), Contains("has changed"));
    CHECK(thing("a").contains("link") == false);
  }
  SECTION("what was changed behind the inventory's back stays within the plan") {
    edit("a", "kind", "other");
    CHECK(apply(stack({box("a", {{"size", 5}})}))["state"] == "complete");
    CHECK(thing("a")["kind"] == "other");
  }
  SECTION("and nothing else of what is declared is put back with it") {
    apply(stack({box("a", {{"size", 4}, {"link", "x"}})}));
    edit("a", "link", "y");
    const auto refused = apply(stack({box("a", {{"size", 5}, {"link", "x"}})}));
    CHECK_THAT(message_of(refused, "a"), Contains("/link has changed since it was planned"));
    CHECK(thing("a")["size"] == 4);
  }
  SECTION("another object that has its id is neither changed nor deleted") {
    system.things["NS::Box"].front().uid = "another";
    const auto declared = GENERATE(true, false);
    const auto refused = apply(stack(declared ? std::vector<Json>{box("a", {{"size", 5}})} : std::vector<Json>{}));
    CHECK(result_of(refused, "a") == "failed CONFLICT");
    CHECK(thing("a")["size"] == 4);
  }
}

TEST_CASE_METHOD(CommandsFixture,
                 "a create-only change replaces; what is not declared any more goes when all else is done") {
  start_discovered();
  apply(stack({box("a", {{"kind", "x"}}), linked("b", "a"), box("old")}));
  const auto first = thing("a")["id"];
  SECTION("all is well") {
    CHECK(apply(stack({box("a", {{"kind", "y"}}), linked("b", "a")}))["state"] == "complete");
    CHECK(count() == 2);
    CHECK(thing("a")["id"] != first);
    CHECK(thing("b")["link"] == thing("a")["id"]);
    CHECK(state_of("NS::Box", first.get<std::string>()) == "vanished");
  }
  SECTION("the new one first, where it is declared so") {
    auto other = box("a2", {{"kind", "y"}});
    other["name"] = "a";
    other["replace"] = "create-first";
    CHECK(apply(stack({other, linked("b", "a")}))["state"] == "complete");
    CHECK(count() == 2);
    CHECK(state_of("NS::Box", first.get<std::string>()) == "vanished");
  }
  SECTION("something fails: nothing is deleted, what needs it is blocked") {
    worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
      if (std::holds_alternative<CreateJob>(job.operation)) return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
      return {};
    };
    const auto done = apply(stack({box("a", {{"kind", "x"}}), linked("b", "a"), box("c"), linked("d", "c")}));
    CHECK(done["state"] == "failed");
    CHECK(result_of(done, "c") == "failed ACCESS_DENIED");
    CHECK(result_of(done, "d") == "blocked BLOCKED");
    CHECK_THAT(message_of(done, "d"), Contains("waits for c"));
    CHECK(result_of(done, "old") == "blocked BLOCKED");
    CHECK(count() == 3);
  }
  SECTION("destroyed in reverse") {
    Strings order;
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      order.push_back(std::get<DeleteJob>(job.operation).native_id);
      return {};
    };
    const auto id_b = thing("b")["id"].get<std::string>();
    CHECK(apply(stack({}, "destroy"))["state"] == "complete");
    CHECK(count() == 0);
    CHECK(std::ranges::find(order, id_b) < std::ranges::find(order, first.get<std::string>()));
    CHECK(listed("NS::Box").empty());
  }
}

TEST_CASE_METHOD(CommandsFixture,
                 "of write-only values within others only those that are new are sent, and none in a patch") {
  start_discovered();
  const auto with = [](const char* name, const char* pin) {
    return stack({box("a", {{"login", {{"user", name}, {"pin", pin}}}})});
  };
  const auto sent = [&] { return std::get<UpdateJob>(worker().asked<UpdateJob>().back().operation); };
  apply(with("x", "1111"));
  edit("a", "login", {{"user", "x"}});  // as a system that gives it never back
  CHECK(plan(with("x", "1111"))["nothing"] == true);
  apply(with("y", "1111"));
  CHECK(sent().patch == R"([{"op":"replace","path":"/login/user","value":"y"}])");
  CHECK(Json::parse(sent().desired.json)["login"] == Json{{"user", "y"}});
  apply(with("y", "2222"));
  CHECK(sent().patch == R"([{"op":"replace","path":"/login/pin","value":null}])");
  CHECK(Json::parse(sent().desired.json)["login"] == Json{{"user", "y"}, {"pin", "2222"}});

  edit("a", "login", nullptr);
  discover();
  CHECK(apply(with("y", "2222"))["state"] == "complete");
  CHECK(Json::parse(sent().patch).size() == 1);  // it differs, and is not read: sent once
  edit("a", "login", nullptr);
  discover();
  const auto draft = plan(with("y", "2222"))["draft"];
  edit("a", "login", {{"user", "y"}});  // somebody is faster, and cannot have put the pin there
  CHECK(end_of(api("apply", {{"draft", draft}})["command"])["state"] == "complete");
  CHECK(Json::parse(sent().patch)[0]["value"] == Json{{"user", "y"}, {"pin", nullptr}});
  CHECK(Json::parse(sent().desired.json)["login"] == Json{{"user", "y"}, {"pin", "2222"}});
}

TEST_CASE_METHOD(CommandsFixture, "a command can be cancelled") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({box("a"), linked("b", "a")}));
  advance(Millis(200));
  SECTION("what runs ends") {
    CHECK(api("cancel", {{"command", id}})["cancel"] == "graceful");
    advance(Millis(2000));
    CHECK(api("command", {{"command", id}})["state"] == "running");
    worker().release();
    const auto ended = end_of(id);
    CHECK(ended["state"] == "cancelled");
    CHECK(result_of(ended, "a") == "done");
    CHECK(result_of(ended, "b") == "cancelled CANCELLED");
  }
  SECTION("what runs is stopped, and looked for") {
    api("cancel", {{"command", id}, {"force", true}});
    const auto ended = end_of(id);
    CHECK(ended["state"] == "cancelled");
    CHECK(count() == 0);
  }
  SECTION("what is stopped is stopped still when it is asked for less") {
    api("cancel", {{"command", id}, {"force", true}});
    api("cancel", {{"command", id}});
    CHECK(api("command", {{"command", id}, {"brief", true}})["cancel"] == "forced");
    restart();
    CHECK(api("command", {{"command", id}, {"brief", true}})["cancel"] == "forced");
    CHECK(end_of(id)["state"] == "cancelled");
  }
  SECTION("a command of the stack waits, and can be cancelled before it begins") {
    const auto second = begin(stack({box("c")}, "patch"));
    CHECK(api("command", {{"command", second}})["state"] == "queued");
    CHECK(api("apply", {{"stacks", stack({box("d")})["stacks"]}, {"if_busy", "refuse"}})["error"]["code"] ==
          "CONFLICT");
    api("cancel", {{"command", second}});
    CHECK(end_of(second)["state"] == "cancelled");
    worker().on_go = {};
    worker().release();
    CHECK(end_of(id)["state"] == "complete");
    CHECK(api("cancel", {{"command", id}})["error"]["code"] == "CONFLICT");
  }
  SECTION("one that is not there cannot") {
    const auto refused = api("cancel", {{"command", "01BX5ZZKBKACTAV9WEVGEMMVRZ"}})["error"];
    CHECK(refused["code"] == "NOT_FOUND");
    CHECK_THAT(refused["message"].get<std::string>(), Contains("no command 01BX5ZZKBKACTAV9WEVGEMMVRZ"));
    CHECK(api("command", {{"command", id}})["cancel"].is_null());
  }
}

TEST_CASE_METHOD(CommandsFixture, "what is declared after a plan is planned, too, before it is applied") {
  start_discovered();
  auto more = stack({box("b")});
  more["draft"] = plan(stack({box("a")}))["draft"];
  more.erase("mode");  // to say it would be reason enough to plan again
  CHECK(apply(more)["state"] == "complete");
  CHECK(listed("NS::Box").size() == 2);
}

TEST_CASE_METHOD(CommandsFixture, "what is added to a draft that is not there is refused") {
  start_discovered();
  auto more = stack({box("a")});
  more["draft"] = "used-before";
  for (const auto* verb : {"declare", "plan", "apply"}) {
    const auto refused = api(verb, more)["error"];
    CHECK(refused["code"] == "NOT_FOUND");
    CHECK_THAT(refused["message"].get<std::string>(), Contains("no draft used-before"));
  }
  CHECK(count() == 0);
}

TEST_CASE_METHOD(CommandsFixture, "a draft is applied once") {
  start_discovered();
  const Json draft{{"draft", plan(stack({box("a")}))["draft"]}};
  REQUIRE(apply(draft)["state"] == "complete");
  CHECK(api("apply", draft).value("/error/code"_json_pointer, "") == "NOT_FOUND");
  CHECK(api("commands")["items"].size() == 1);
}

TEST_CASE_METHOD(CommandsFixture,
                 "the newest command stands first, also where the clock was set back before a restart") {
  start_discovered();
  const auto first = begin(stack({box("a")}, "patch"));
  REQUIRE(end_of(first)["state"] == "complete");
  clock.set_wall(clock.wall() - std::chrono::hours(1));
  restart();
  const auto second = begin(stack({box("b")}, "patch"));
  CHECK(second > first);
  CHECK(api("commands")["items"].at(0)["command"] == second);
}

TEST_CASE_METHOD(CommandsFixture, "of too many drafts the one that was left alone longest goes") {
  start_discovered();
  std::vector<std::string> drafts;
  const auto code_of = [&](std::size_t draft) {
    return api("plan", {{"draft", drafts.at(draft)}}).value("/error/code"_json_pointer, "");
  };
  const auto add = [&] {
    drafts.push_back(plan(stack({box("a")}))["draft"]);
    advance(Millis(10));
  };
  for (int i = 0; i < 16; ++i) add();
  CHECK(code_of(0).empty());
  advance(Millis(10));
  add();
  CHECK(code_of(1) == "NOT_FOUND");
  for (const std::size_t there : {0, 2, 15, 16}) CHECK(code_of(there).empty());
  SECTION("and in the end all that nobody applies") {
    advance(Millis(15 * 60'000));
    CHECK(code_of(16) == "NOT_FOUND");
  }
}

TEST_CASE_METHOD(CommandsFixture, "drift is told, field by field, and handled as declared") {
  start_discovered();
  auto declared = box("a", {{"size", 3}});
  const std::string on_drift = GENERATE("alert", "observe", "revert", "absorb");
  CAPTURE(on_drift);
  declared["on_drift"] = on_drift;
  apply(stack({declared}));
  events();
  edit("a", "size", 9);
  edit("a", "other", 1);  // not declared: not its business
  discover();
  advance(Millis(2000));
  Json drifted;
  for (const auto& event : events("resource.drifted")) drifted = event;
  const bool marked = !api("resources", {{"drifted", true}})["items"].empty();
  CHECK(marked == (on_drift == "alert"));
  CHECK(drifted.is_null() == (on_drift == "observe"));
  if (!drifted.is_null()) {
    CHECK(drifted["data"]["on_drift"] == on_drift);
    CHECK(drifted["data"]["fields"] == Json::array({{{"path", "/size"}, {"declared", 3}, {"found", 9}}}));
  }
  CHECK(thing("a")["size"] == (on_drift == "revert" ? 3 : 9));
  CHECK(thing("a")["other"] == 1);
  const auto next = plan(stack({declared}))["summary"];
  CHECK(next["update"] == (on_drift == "revert" ? 0 : 1));
}

TEST_CASE_METHOD(CommandsFixture, "what is absorbed of a reference keeps its place in the order of deletions") {
  start_discovered();
  auto uses = linked("b", "a");
  uses["on_drift"] = "absorb";
  apply(stack({box("a"), uses}));
  edit("b", "link", "elsewhere");
  discover();
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  const auto deletions = worker().asked<DeleteJob>();
  REQUIRE(deletions.size() == 2);
  CHECK(std::get<DeleteJob>(deletions[0].operation).native_id == "made-2");
}

TEST_CASE_METHOD(CommandsFixture, "what is absorbed leaves the other references of a resource as they are") {
  start_discovered();
  auto uses = linked("b", "a");
  uses["properties"]["size"] = 3;
  uses["on_drift"] = "absorb";
  apply(stack({box("a"), uses}));
  edit("b", "size", 9);
  discover();
  edit("b", "link", "elsewhere");
  discover();
  const auto drifted = events("resource.drifted");
  REQUIRE(drifted.size() == 2);
  CHECK(drifted[1]["data"]["fields"] ==
        Json::array({{{"path", "/link"}, {"declared", thing("a")["id"]}, {"found", "elsewhere"}}}));
}

TEST_CASE_METHOD(CommandsFixture, "what is managed and gone stays in the list as missing, and is made again") {
  start_discovered();
  auto declared = box("a");
  SECTION("by the next apply") {}
  SECTION("by itself, where it is declared so") {
    declared["on_drift"] = "revert";
  }
  apply(stack({declared}));
  events();
  system.remove("NS::Box", "made-1");
  discover();
  advance(Millis(2000));
  if (declared.contains("on_drift")) {
    CHECK(count() == 1);
  } else {
    CHECK(state_of("NS::Box", "made-1") == "missing");
    CHECK(resource_events() == Strings{"drifted:made-1", "vanished:made-1"});
    discover();
    advance(Millis(500));
    CHECK(resource_events().empty());  // said once
    CHECK(plan(stack({declared}))["summary"]["create"] == 1);
    CHECK(apply(stack({declared}))["state"] == "complete");
  }
  CHECK(count() == 1);
  CHECK(listed("NS::Box") == Strings{"made-2"});
}

TEST_CASE_METHOD(CommandsFixture, "what was told as vanished and is there again is told as discovered") {
  start_discovered();
  apply(stack({box("a")}));
  const auto there = system.things["NS::Box"];
  system.remove("NS::Box", "made-1");
  discover();
  advance(Millis(2000));
  events();
  system.things["NS::Box"] = there;
  SECTION("as it was") {}
  SECTION("changed") {
    edit("a", "size", 9);
  }
  discover();
  advance(Millis(500));
  CHECK(std::ranges::count(resource_events(), "discovered:made-1") == 1);
  CHECK(state_of("NS::Box", "made-1") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "what lies in a deleted object leaves with it") {
  manifest.types[1].parent = "NS::Box";
  start_discovered();
  apply(stack({box("a")}));
  system.add("NS::Item", {.id = "inside", .parent = "made-1"});
  discover();
  REQUIRE(state_of("NS::Item", "inside") == "present");
  apply(stack({}));
  CHECK(state_of("NS::Item", "inside") == "vanished");
}

TEST_CASE_METHOD(CommandsFixture, "a target that may be another system is left alone") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  system.inspection.system = "system-2";
  discover();
  const auto failed = apply(stack({box("a", {{"size", 2}})}));
  CHECK(result_of(failed, "a") == "failed TARGET_CHANGED");
  CHECK_THAT(message_of(failed, "a"), Contains("muster targets accept t"));
  CHECK(worker().asked<UpdateJob>().empty());
}

TEST_CASE_METHOD(CommandsFixture, "secrets travel as references and are kept as such") {
  start_discovered();
  auto resource = box("a", {{"password", nullptr}});
  resource["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", "PG_PASSWORD"}}}}}});
  CHECK(apply(stack({resource}))["state"] == "complete");
  const auto create = std::get<CreateJob>(worker().asked<CreateJob>().back().operation);
  REQUIRE(create.properties.secrets.size() == 1);
  CHECK(create.properties.secrets[0].pointer == "/password");
  CHECK(create.properties.secrets[0].parts[0].kind == SecretPart::Kind::kEnv);
  CHECK(plan(stack({resource}))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what a plugin gives of write-only and secret properties is kept nowhere") {
  start_discovered();
  const auto leak = R"(hunter2)";
  SECTION("in a listing, or a read") {
    const auto* name = GENERATE("password", "p\\u0061ssword");
    system.add("NS::Box", {"leaky", R"({"name":"leaky",")" + std::string(name) + R"(":"hunter2"})"});
    const auto report = discover();
    CHECK(report["state"] == "partial");
    REQUIRE(report["problems"].size() == 1);
    CHECK(report["problems"].at(0)["code"] == "CONTRACT");
    CHECK_THAT(report["problems"].at(0)["message"].get<std::string>(), Contains("/password"));
    CHECK(row("NS::Box", "leaky").properties == R"({"name":"leaky"})");
    CHECK(discover()["scans"].at(0)["changed"] == 0);
  }
  SECTION("in the answer to a change") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      auto result = system.change(job);
      if (auto* done = std::get_if<MutationResult>(&result); done != nullptr && !done->properties.empty()) {
        auto properties = Json::parse(done->properties);
        properties["password"] = leak;
        done->properties = properties.dump();
      }
      return result;
    };
    CHECK(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  }
  for (const auto& verb : {"resources", "events", "commands"}) {
    CHECK(api(verb).dump().find(leak) == std::string::npos);
  }
}

TEST_CASE_METHOD(CommandsFixture, "changes go to workers of the manifest that they are planned by") {
  start_discovered();
  auto newer = manifest;
  newer.version = "2.0.0";
  add_worker("w2", newer);
  add_worker("w3", newer);
  settle();
  std::vector<Json> boxes;
  for (int i = 0; i < 12; ++i) boxes.push_back(box("box-" + std::to_string(i)));
  CHECK(apply(stack(boxes))["state"] == "complete");
  CHECK(worker(0).asked<CreateJob>().empty());
  for (const std::size_t i : {1, 2}) {
    for (const auto& job : worker(i).asked<CreateJob>()) CHECK(job.manifest == worker(i).announcement.manifest);
  }
  CHECK(count() == boxes.size());
}

TEST_CASE_METHOD(CommandsFixture, "what needs no job takes no time, however long a chain of steps is") {
  add_target("u");
  start_discovered();
  std::vector<Json> boxes;
  for (int i = 0; i < 40; ++i) {
    auto& last = boxes.emplace_back(box("box-" + std::to_string(i)));
    last["target"] = i % 2 == 0 ? "u" : "t";
    if (i > 0) last["after"] = {"box-" + std::to_string(i - 1)};
  }
  REQUIRE(apply(stack(boxes))["state"] == "complete");
  for (auto& each : boxes) each["on_drift"] = "absorb";  // is noted, and no more
  const auto jobs = worker().jobs.size();
  const auto began = clock.now();
  const auto id = begin(stack(boxes));
  settle();
  CHECK(api("command", {{"command", id}, {"brief", true}})["state"] == "complete");
  CHECK(clock.now() == began);
  CHECK(worker().jobs.size() == jobs);
}

TEST_CASE_METHOD(CommandsFixture, "an array that refers to what is yet to be made is changed when that is there") {
  const bool unordered = GENERATE(false, true);
  if (unordered) {
    auto schema = Json::parse(kBoxSchema);
    schema["properties"]["links"] = {{"type", "array"}, {"x-muster-unordered", true}};
    manifest.types.at(0).schema = schema.dump();
  }
  start_discovered();
  const auto all_of = [](const Strings& names) {
    auto resource = box("all", {{"links", Json::array()}});
    resource["holes"] = Json::array();
    for (const auto& name : names) {
      const auto pointer = "/links/" + std::to_string(resource["properties"]["links"].size());
      resource["properties"]["links"].push_back(nullptr);
      resource["holes"].push_back({{"pointer", pointer}, {"parts", {{{"resource", name}, {"path", "id"}}}}});
    }
    return resource;
  };
  REQUIRE(apply(stack({box("a"), all_of({"a"})}))["state"] == "complete");
  const auto names = GENERATE(Strings{"a", "b"}, Strings{"b"}, Strings{"b", "a"});
  const auto wanted = stack({box("a"), box("b"), all_of(names)});
  const auto ended = apply(wanted);
  CHECK(message_of(ended, "all").empty());
  CHECK(ended["state"] == "complete");
  auto ids = Json::array();
  for (const auto& name : names) ids.push_back(thing(name)["id"]);
  CHECK(thing("all")["links"] == ids);
  CHECK(plan(wanted)["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture,
                 "what is absorbed together with a reference in it leaves all else as it was declared") {
  start_discovered();
  auto uses = box("b", {{"login", {{"user", nullptr}}}});
  uses["holes"] = Json::array({{{"pointer", "/login/user"}, {"parts", {{{"resource", "a"}, {"path", "id"}}}}}});
  uses["on_drift"] = "absorb";
  uses["protect"] = true;
  REQUIRE(apply(stack({box("a"), uses}))["state"] == "complete");
  edit("b", "login", "nobody");
  discover();
  CHECK(plan(stack({}, "destroy"))["mistakes_total"] == 1);
  edit("b", "login", "somebody");
  events();
  discover();
  CHECK(events("resource.drifted").size() == 1);
}

TEST_CASE_METHOD(CommandsFixture,
                 "what is absorbed of a part of what is referred to leaves all else as it was declared") {
  start_discovered();
  auto uses = box("b", {{"login", nullptr}});
  uses["holes"] = Json::array({{{"pointer", "/login"}, {"parts", {{{"resource", "a"}, {"path", "login"}}}}}});
  uses["on_drift"] = "absorb";
  uses["protect"] = true;
  REQUIRE(apply(stack({box("a", {{"login", {{"user", "u"}}}}), uses}))["state"] == "complete");
  edit("b", "login", {{"user", "v"}});
  discover();
  CHECK(plan(stack({box("a", {{"login", {{"user", "u"}}}})}))["mistakes_total"] == 1);
}
