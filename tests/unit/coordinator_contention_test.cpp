// Commands beside others, beside runs, and on a store that fails: what changes in between is not passed over.
#include <algorithm>

#include "support/commands_fixture.h"
#include "support/failing_store.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Catch::Contains;

namespace {

/// A stack of two, and a command of it whose changes are held while others are planned.
struct OvertakenFixture : CommandsFixture {
  OvertakenFixture() {
    start_discovered();
    apply(stack({box("a", {{"size", 1}}), box("b", {{"size", 1}})}));
  }
  /// Begins it; what is `held` only, by name, or all of it.
  void hold(const std::vector<Json>& wanted, const std::string& held = {}) {
    worker().on_go = [this, held](const Job& job) -> FakeWorker::Behaviour {
      const auto* update = std::get_if<UpdateJob>(&job.operation);
      const bool other = update != nullptr && !held.empty() && Json::parse(update->desired.json)["name"] != held;
      return other ? FakeWorker::Behaviour{} : FakeWorker::Hold{};
    };
    first = begin(stack(wanted));
    advance(Millis(1000));
  }
  void release_all() {
    worker().on_go = {};
    worker().release();
  }
  std::string first;
};

}  // namespace

TEST_CASE_METHOD(CommandsFixture, "nothing is shown of a command that is not durable") {
  auto& failing = test::put_failing_before(store);
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({box("a")}));
  advance(Millis(500));
  failing.commits_only = failing.failing = true;
  const auto asks = broker.connect("asks");
  asks->subscribe_answers(asks->inbox() + ".>").value();
  for (const auto* verb : {"cancel", "command"}) {
    const auto body = Json{{"api", 1}, {"command", id}}.dump();
    asks->publish({Subjects(config.prefix).api(verb), asks->inbox() + ".answer", body, {}}).value();
  }
  settle();
  std::vector<Message> said;
  asks->receive(said, 10);
  CHECK(said.size() == 2);
  for (const auto& answer : said) CHECK(Json::parse(answer.data)["error"]["code"] == "STORE_UNAVAILABLE");
  failing.failing = false;
  advance(Millis(2000));
  CHECK(api("command", {{"command", id}})["cancel"].is_null());
}

TEST_CASE_METHOD(CommandsFixture, "what waited for another command goes on as soon as that has ended") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("a")}, "patch"));
  advance(Millis(300));
  const auto second = begin(stack({box("b")}, "patch"));
  settle();
  worker().release();
  const auto asked = [&] { return worker().asked<CreateJob>().size(); };
  do {
    coordinator->turn();
  } while (coordinator->next_due() <= clock.now());  // nothing else wakes it
  worker().turn();
  CHECK(asked() == 2);
  worker().on_go = {};
  worker().release();
  CHECK(end_of(second)["state"] == "complete");
}

TEST_CASE_METHOD(CommandsFixture, "what waits for workers of a version that leave goes to those of the next one") {
  add_worker().announcement.slots = 1;
  worker().announce();
  start();
  finish_runs();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  std::vector<Json> boxes;
  for (int i = 0; i < 6; ++i) boxes.push_back(box("b" + std::to_string(i)));
  const auto id = begin(stack(boxes));
  settle();
  auto newer = manifest;
  newer.version = "2.0.0";
  add_worker("w2", newer);
  worker().draining = true;
  advance(Millis(2000));
  worker().release();
  advance(Millis(1000));
  remove_worker("w1");
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 6);
}

TEST_CASE_METHOD(CommandsFixture, "a command that waits for one of its stacks keeps its place for all of them") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("a")}));
  advance(Millis(200));
  auto store_too = stack({box("b")}, "patch");
  store_too["stacks"].push_back({{"stack", "store"}, {"resources", {box("c")}}});
  const auto second = begin(store_too);
  auto store_only = stack({box("d")}, "patch");
  store_only["stacks"][0]["stack"] = "store";
  auto impatient = store_only;
  impatient["if_busy"] = "refuse";
  CHECK(api("apply", impatient)["error"]["code"] == "CONFLICT");
  const auto third = begin(store_only);
  advance(Millis(500));
  CHECK(api("command", {{"command", third}})["state"] == "queued");
  worker().on_go = {};
  worker().release();
  for (const auto& id : {first, second, third}) CHECK(end_of(id)["state"] == "complete");
}

TEST_CASE_METHOD(CommandsFixture,
                 "a command that is cancelled while it waits is cancelled, whatever its stack is then") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("a"), linked("b", "a")}));
  advance(Millis(200));
  const auto second = begin(stack({box("a"), box("c")}));
  worker().release();
  advance(Millis(200));
  REQUIRE(count() == 1);  // what the second was planned to make is there
  api("cancel", {{"command", second}});
  const auto ended = end_of(second);
  CHECK(ended["state"] == "cancelled");
  CHECK(result_of(ended, "c") == "cancelled CANCELLED");
}

TEST_CASE_METHOD(CommandsFixture, "deletions are refused where who uses what has changed since they were planned") {
  start_discovered();
  apply(stack({box("a"), linked("b", "a"), box("c")}));
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("a"), linked("b", "c"), linked("c", "a")}));
  advance(Millis(200));
  const auto second = begin(stack({}, "destroy"));
  worker().on_go = {};
  for (int i = 0; i < 5; ++i) {
    worker().release();
    advance(Millis(1000));
  }
  CHECK(end_of(first)["state"] == "complete");
  const auto refused = end_of(second);
  CHECK(refused["state"] == "failed");
  CHECK_THAT(refused.dump(), Contains("shop/c is used by b"));
  CHECK(count() == 3);
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(CommandsFixture, "what is unchanged is said of what is there still, and not of what a command took") {
  start_discovered();
  apply(stack({box("a"), box("b")}));
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("b", {{"size", 1}})}));
  advance(Millis(200));
  auto other = box("a");
  other["on_drift"] = "revert";
  const auto second = begin(stack({other}, "patch"));
  worker().on_go = {};
  for (int i = 0; i < 5; ++i) {
    worker().release();
    advance(Millis(1000));
  }
  CHECK(end_of(first)["state"] == "complete");
  CHECK_THAT(end_of(second).dump(), Contains("shop/a is not the stack's any more"));
  CHECK(state_of("NS::Box", "made-1") == "vanished");
  CHECK(api("resources", {{"managed", true}, {"state", "vanished"}})["items"].empty());
}

TEST_CASE_METHOD(CommandsFixture, "what is left out of a plan is no mistake in it, and what is named must be there") {
  start_discovered();
  auto held = box("held", {{"kind", "old"}});
  held["protect"] = true;
  apply(stack({held, box("goes")}));
  held["properties"]["kind"] = "new";
  auto request = stack({held, box("a")});
  CHECK(plan(request)["mistakes"].size() == 1);
  SECTION("left out") {
    request["exclude"] = {"held"};
    CHECK(plan(request)["mistakes"].empty());
    CHECK(plan(request)["summary"]["delete"] == 1);
    CHECK(apply(request)["state"] == "complete");
    CHECK(thing("held")["kind"] == "old");
    CHECK(count() == 2);
  }
  SECTION("others alone") {
    request["only"] = {"a"};
    CHECK(apply(request)["state"] == "complete");
    CHECK(count() == 3);
  }
  SECTION("what goes is named, too") {
    request["exclude"] = {"held", "goes"};
    CHECK(plan(request)["mistakes"].empty());
    CHECK(plan(request)["summary"]["delete"] == 0);
  }
  SECTION("there is no such resource") {
    for (const auto* field : {"only", "exclude"}) {
      auto unknown = stack({box("a")}, "patch");
      unknown[field] = {"aa"};
      CHECK_THAT(plan(unknown)["mistakes"].dump(), Contains("no resource of the stacks is named 'aa'"));
    }
  }
}

TEST_CASE_METHOD(CommandsFixture, "a reference to a secret stands where nobody reads it back, and nowhere else") {
  start_discovered();
  const auto mistakes = [&](const std::string& pointer, const Json& properties) {
    auto declared = box("a", properties);
    declared["holes"] = Json::array({{{"pointer", pointer}, {"parts", {{{"env", "PIN"}}}}}});
    return plan(stack({declared}))["mistakes"];
  };
  CHECK(mistakes("/password", {{"password", nullptr}}).empty());
  CHECK(mistakes("/login/pin", {{"login", {{"pin", nullptr}}}}).empty());
  for (const auto& refused :
       {mistakes("/link", {{"link", nullptr}}), mistakes("/login/user", {{"login", {{"user", nullptr}}}})}) {
    REQUIRE(refused.size() == 1);
    CHECK_THAT(refused[0]["message"].get<std::string>(), Contains("neither secret nor write-only"));
  }
}

TEST_CASE_METHOD(OvertakenFixture, "a command that waited is refused where another has changed what it leaves alone") {
  const auto second = [&](const Json& request, const std::string& refused) {
    const auto id = begin(request);
    release_all();
    CHECK(end_of(first)["state"] == "complete");
    const auto ended = end_of(id);
    INFO(ended.dump());
    CHECK(ended["state"] == (refused.empty() ? "complete" : "failed"));
    CHECK_THAT(ended.dump(),
               Contains(refused.empty() ? "complete" : refused + " has been changed by command " + first));
  };
  SECTION("it was as declared when it was planned") {
    hold({box("a", {{"size", 1}}), box("b", {{"size", 2}})});
    second(stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})}), "shop/b");
    CHECK(thing("a")["size"] == 1);
  }
  SECTION("it was not there yet, and is not declared") {
    hold({box("a", {{"size", 1}}), box("b", {{"size", 1}}), box("c")});
    second(stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})}), "shop/c");
  }
  SECTION("nor wanted") {
    hold({box("a", {{"size", 1}}), box("b", {{"size", 1}}), box("c")});
    second(stack({}, "destroy"), "shop/c");
    CHECK(count() == 3);
  }
  SECTION("a patch leaves alone what it does not declare") {
    hold({box("a", {{"size", 1}}), box("b", {{"size", 2}})});
    second(stack({box("a", {{"size", 3}})}, "patch"), "");
    CHECK(thing("b")["size"] == 2);
  }
  SECTION("but not what it declares") {
    hold({box("a", {{"size", 1}}), box("b", {{"size", 2}})});
    second(stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})}, "patch"), "shop/b");
  }
  SECTION("nor what it puts back as it was declared before") {
    edit("a", "size", 9);
    discover();
    hold({box("a", {{"size", 2}}), box("b", {{"size", 1}})});
    second(stack({box("a", {{"size", 1}}), box("b", {{"size", 1}})}), "shop/a");
  }
  SECTION("what another puts back is as it was declared") {
    auto reverting = box("a", {{"size", 1}});
    reverting["on_drift"] = "revert";
    apply(stack({reverting, box("b", {{"size", 1}})}));
    edit("a", "size", 9);
    worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
    api("discover");
    wait_until([&] { return api("commands")["items"].at(0)["kind"] == "drift"; });
    first = api("commands")["items"].at(0)["command"];
    second(stack({reverting, box("b", {{"size", 2}})}), "");
    CHECK(thing("a")["size"] == 1);
  }
  SECTION("what is left out on purpose may change") {
    hold({box("a", {{"size", 1}}), box("b", {{"size", 2}})});
    auto request = stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})});
    SECTION("by the names of the others") {
      request["only"] = {"a"};
    }
    SECTION("by its name") {
      request["exclude"] = {"b"};
    }
    second(request, "");
  }
  SECTION("it goes") {
    hold({box("a", {{"size", 1}})});
    second(stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})}), "shop/b");
  }
  SECTION("what it changes of other stacks is theirs") {
    auto both = stack({box("a", {{"size", 1}}), box("b", {{"size", 1}})});
    both["stacks"].push_back({{"stack", "store"}, {"resources", {box("c")}}});
    worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
    first = begin(both);
    advance(Millis(1000));
    second(stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})}), "");
  }
  SECTION("what had been changed when it was planned is as it is") {
    hold({box("a", {{"size", 2}}), box("b", {{"size", 2}})}, "a");
    second(stack({box("a", {{"size", 3}}), box("b", {{"size", 2}})}), "");
  }
  SECTION("after a restart, too") {
    hold({box("a", {{"size", 1}}), box("b", {{"size", 2}})});
    const auto id = begin(stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})}));
    restart();
    release_all();
    CHECK(end_of(first)["state"] == "complete");
    CHECK_THAT(end_of(id).dump(), Contains("shop/b has been changed"));
  }
}

TEST_CASE_METHOD(OvertakenFixture,
                 "a command that waited is refused where another has sent what nobody can read back") {
  const auto with_pin = [](const char* pin, int size) {
    return box("a", {{"size", size}, {"login", {{"user", "u"}, {"pin", pin}}}});
  };
  apply(stack({with_pin("1", 1), box("b", {{"size", 1}})}));
  hold({with_pin("2", 1), box("b", {{"size", 1}})});
  auto wanted = with_pin("1", 1);
  if (GENERATE(false, true)) {
    wanted["properties"]["size"] = 2;
  } else {  // which is only noted
    wanted["protect"] = true;
  }
  const auto second = begin(stack({wanted, box("b", {{"size", 1}})}));
  release_all();
  CHECK(end_of(first)["state"] == "complete");
  const auto refused = end_of(second);
  CHECK(result_of(refused, "a") == "failed CONFLICT");
  CHECK_THAT(message_of(refused, "a"), Contains("/login/pin has changed since it was planned"));
  CHECK(apply(stack({wanted, box("b", {{"size", 1}})}))["state"] == "complete");
  CHECK(thing("a")["login"]["pin"] == "1");
}

TEST_CASE_METHOD(OvertakenFixture, "what another command has come to protect is not deleted by one that waited") {
  const auto b = box("b");
  apply(stack({box("a", {{"size", 1}}), b}));
  auto safe = box("a", {{"size", 2}});
  safe["protect"] = true;
  hold({safe, b});
  const bool destroys = GENERATE(false, true);
  CAPTURE(destroys);
  const auto second = begin(destroys ? stack({}, "destroy") : stack({b}));
  release_all();
  CHECK(end_of(first)["state"] == "complete");
  const auto refused = end_of(second);
  CHECK(result_of(refused, "a") == "blocked CONFLICT");
  CHECK_THAT(message_of(refused, "a"), Contains("shop/a is protected now"));
  CHECK(count() == 2);
}

TEST_CASE_METHOD(OvertakenFixture, "what would change nothing is not told as done while another command changes it") {
  const auto before = stack({box("a", {{"size", 1}}), box("b", {{"size", 1}})});
  hold({box("a", {{"size", 1}}), box("b", {{"size", 2}})});
  const auto plan = api("plan", before);
  CHECK(plan["nothing"] == true);
  CHECK(plan["behind"] == Json{{{"command", first}, {"changes", {"shop/b"}}, {"changes_total", 1}}});
  const auto refused = api("apply", before)["error"];
  CHECK(refused["code"] == "CONFLICT");
  CHECK_THAT(refused["message"].get<std::string>(), Contains("command " + first + " is changing shop/b"));
  SECTION("but what it does not change is") {
    const auto patch = stack({box("a", {{"size", 1}})}, "patch");
    CHECK(api("plan", patch)["behind"].empty());
    CHECK(api("apply", patch)["state"] == "complete");
  }
  SECTION("and is planned anew when it has ended") {
    release_all();
    CHECK(end_of(first)["state"] == "complete");
    const auto then = api("plan", before);
    CHECK(then["nothing"] == false);
    CHECK(then["behind"].empty());
    CHECK(apply(before)["state"] == "complete");
  }
}

TEST_CASE_METHOD(OvertakenFixture, "of another command's changes ten are named, and all are counted") {
  std::vector<Json> boxes{box("a", {{"size", 1}}), box("b", {{"size", 1}})};
  const auto before = stack(boxes);
  for (int i = 0; i < 12; ++i) boxes.push_back(box("new" + std::to_string(i)));
  hold(boxes);
  const auto behind = api("plan", before)["behind"];
  REQUIRE(behind.size() == 1);
  CHECK(behind[0]["changes"].size() == 10);
  CHECK(behind[0]["changes_total"] == 12);
}

TEST_CASE_METHOD(CommandsFixture, "of two stacks that adopt one object at a time one has it") {
  start_discovered();
  system.add("NS::Box", {"found", R"({"name":"a","size":1})", "uid-found"});
  discover();
  auto size = 1;
  SECTION("as it is") {}
  SECTION("and change it") {
    size = 2;
  }
  const auto mine = stack({box("a", {{"size", size}})});
  auto theirs = mine;
  theirs["stacks"][0]["stack"] = "store";
  user->publish({Subjects(config.prefix).api("apply"), user->inbox() + ".first", mine.dump(), {}}).value();
  const auto second = begin(theirs);  // planned when neither has been carried out
  CHECK_THAT(message_of(end_of(second), "a"), Contains("belongs to stack shop"));
  const auto first = api("commands", {{"cursor", second}})["items"].at(0)["command"];
  CHECK(end_of(first)["state"] == "complete");
  CHECK(api("resources", {{"managed", true}})["items"].at(0)["stack"] == "shop");
}

TEST_CASE_METHOD(CommandsFixture, "what has taken the id of a managed object is managed in its place") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  system.thing("NS::Box", "made-1").uid = "another";
  discover();
  CHECK(row("NS::Box", "made-1").uid == "another");
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(CommandsFixture, "what is declared as another type is made where nothing is to be deleted, too") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  auto other = box("a");
  other["type"] = "NS::Item";
  const auto ended = apply(stack({other}, "patch"));
  CHECK(result_of(ended, "a") == "done");
  CHECK(system.things["NS::Item"].size() == 1);
  CHECK(count() == 1);
  CHECK(plan(stack({other}, "patch"))["nothing"] == true);
  CHECK(apply(stack({other}))["state"] == "complete");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(CommandsFixture,
                 "what a command makes of a name is not passed over by one that makes another type of it") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("a")}));
  advance(Millis(200));
  auto other = box("a");
  other["type"] = "NS::Item";
  const auto second = begin(stack({other}));
  worker().on_go = {};
  worker().release();
  CHECK(end_of(first)["state"] == "complete");
  CHECK(result_of(end_of(second), "a") == "blocked CONFLICT");
  CHECK(apply(stack({other}))["state"] == "complete");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(CommandsFixture, "what goes with a deletion before a run lets it leave for its filters has vanished") {
  manifest.types[1].parent = "NS::Box";
  auto part = manifest.types[1];
  part.name = "NS::Part";
  part.parent = "NS::Item";
  manifest.types.push_back(part);
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "small", .properties = R"({"kind":"small"})", .parent = "made-1"});
  system.add("NS::Box", {.id = "other"});
  system.add("NS::Item", {.id = "big", .parent = "other"});
  discover();
  REQUIRE(state_of("NS::Item", "small") == "present");
  system.inspection.filters = {
      {{"NS::Item"}, {PropertyMatch{"$.kind", MatchOp::kEq, R"("small")"}}, FilterAction::kExclude}};
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const bool parts = job.type == "NS::Part" && std::holds_alternative<ListJob>(job.operation);
    return parts ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
  };
  events();
  api("discover");
  advance(Millis(500));
  REQUIRE(apply(stack({}))["state"] == "complete");
  REQUIRE(state_of("NS::Item", "small") == "vanished");
  worker().on_job = {};
  worker().release();
  finish_runs();
  CHECK(state_of("NS::Item", "small") == "vanished");
  for (const auto& event : resource_events()) CHECK(event != "filtered:small");
}

TEST_CASE_METHOD(CommandsFixture, "a target is not dropped while another command makes something on it") {
  start_discovered();
  auto file = stack({});
  file["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}}});
  REQUIRE(apply(file)["state"] == "complete");
  auto resource = box("a");
  resource["target"] = "new";
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin({{"stacks", {{{"stack", "other"}, {"resources", {resource}}}}}});
  advance(Millis(300));
  file["mode"] = "destroy";
  CHECK(apply(file)["state"] == "complete");
  CHECK(store->target("new").value()->state == TargetState::kActive);
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(apply(file)["state"] == "complete");
  CHECK(store->target("new").value()->state == TargetState::kActive);
}

TEST_CASE_METHOD(CommandsFixture, "what is adopted while a run looks is managed when that comes to it") {
  system.add("NS::Box", {.id = "b", .properties = R"({"name":"b","size":1})", .uid = "u-1"});
  start_discovered();
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  static_cast<void>(api("discover"));
  advance(Millis(300));
  REQUIRE(apply(stack({box("b", {{"size", 1}})}))["state"] == "complete");
  std::vector<std::string> told{"changed:b"};
  SECTION("and its drift is told") {
    edit("b", "size", 5);
    told.emplace_back("drifted:b");
  }
  SECTION("and another has taken its place") {
    system.thing("NS::Box", "b").uid = "u-2";
  }
  events();
  worker().on_job = {};
  worker().release();
  finish_runs();
  CHECK(row("NS::Box", "b").drifted == (told.size() == 2));
  CHECK(resource_events() == told);
}

TEST_CASE_METHOD(CommandsFixture, "what one command has adopted is not adopted under another name by the next") {
  system.add("NS::Box", {.id = "x", .properties = R"({"name":"x"})"});
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  begin(stack({box("slow")}, "patch"));
  advance(Millis(300));
  const auto adopt_as = [this](const std::string& name) {
    auto resource = box("x");
    resource["name"] = name;
    return begin(stack({resource}, "patch"));
  };
  const auto first = adopt_as("a"), second = adopt_as("b"), third = adopt_as("a");
  worker().on_go = {};
  worker().release();
  CHECK(result_of(end_of(first), "a") == "done");
  const auto refused = end_of(second);
  CHECK(result_of(refused, "b") == "failed CONFLICT");
  CHECK_THAT(message_of(refused, "b"), Contains("x is resource a of this stack already"));
  CHECK(end_of(third)["state"] == "complete");
  CHECK(store->claim(row("NS::Box", "x").row).value()->name == "a");
}

TEST_CASE_METHOD(CommandsFixture, "what is made on an empty target that gets another configuration is not of that") {
  start_discovered();
  auto file = stack({});
  file["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}}});
  REQUIRE(apply(file)["state"] == "complete");
  finish_runs();
  auto resource = box("a");
  resource["target"] = "new";
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin({{"stacks", {{{"stack", "other"}, {"resources", {resource}}}}}});
  advance(Millis(300));
  file["targets"][0]["config"] = {{"json", R"({"zone":"b"})"}, {"secrets", Json::array()}};
  CHECK_THAT(plan(file)["targets"][0]["reason"].get<std::string>(), Contains("targets accept new"));
  apply(file);
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(state_of("NS::Box", "made-1", "new") == "stale");
  CHECK(store->target("new").value()->state == TargetState::kChanged);
}
