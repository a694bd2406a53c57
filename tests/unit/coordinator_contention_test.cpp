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
    request["only"] = {"a"};
    second(request, "");
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

TEST_CASE_METHOD(CommandsFixture, "an observation that was asked for before a change says nothing of it") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  system.list_properties = true;
  // A page of the list that was read before the change arrives after it.
  const auto list_of_boxes = [](const Job& job) {
    return std::holds_alternative<ListJob>(job.operation) && job.type == "NS::Box";
  };
  std::string page;  // as the worker has read it
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!list_of_boxes(job)) return {};
    page = std::get<ListResult>(system.answer(job)).items.at(0).properties;
    return FakeWorker::Hold{};
  };
  const auto lists_before = std::ranges::count_if(worker().jobs, list_of_boxes);
  api("discover");
  wait_until([&] { return !page.empty(); });
  worker().on_job = {};
  SECTION("an update") {
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  }
  SECTION("a deletion") {
    CHECK(apply(stack({}))["state"] == "complete");
  }
  SECTION("a deletion of what was gone already") {
    system.remove("NS::Box", "made-1");
    CHECK(apply(stack({}))["state"] == "complete");
  }
  REQUIRE(Json::parse(page)["size"] == 1);                                           // it is old
  REQUIRE(std::ranges::count_if(worker().jobs, list_of_boxes) == lists_before + 1);  // it is waited for still
  const auto known = count() == 1 ? thing("a") : Json();
  advance(Millis(500));  // for the events of the change
  events();
  worker().release();
  finish_runs();
  CHECK(resource_events().empty());
  CHECK(api("resources", {{"drifted", true}})["items"].empty());
  if (known.is_null()) {
    CHECK(state_of("NS::Box", "made-1") == "vanished");
  } else {
    CHECK(Json::parse(row("NS::Box", "made-1").properties) == known);
  }
}

TEST_CASE_METHOD(CommandsFixture, "what was seen of an object before a deletion found it gone is no news") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  edit("a", "size", 2);
  system.list_properties = true;
  bool listed = false;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    listed = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return listed; });
  worker().on_job = {};
  system.remove("NS::Box", "made-1");
  CHECK(apply(stack({}))["state"] == "complete");
  advance(Millis(500));  // for the events of the change
  events();
  worker().release();
  finish_runs();
  CHECK(resource_events().empty());
  CHECK(state_of("NS::Box", "made-1") == "vanished");
  CHECK(coordinator->status().store_failures == 0);
}

TEST_CASE_METHOD(CommandsFixture, "what an update found gone is gone for a run, unless that sees it come back") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  bool listed = false;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    listed = true;
    return FakeWorker::Hold{};
  };
  const auto gone = [&](int size) {
    edit("a", "size", size);
    api("discover");
    wait_until([&] { return listed; });
    worker().on_job = {};
    const auto things = std::exchange(system.things["NS::Box"], {});
    CHECK(result_of(apply(stack({box("a", {{"size", 2}})})), "a") == "failed NOT_FOUND");
    REQUIRE(state_of("NS::Box", "made-1") == "missing");
    advance(Millis(500));  // for the events of that
    events();
    return things;
  };
  SECTION("it was seen before") {
    system.list_properties = true;
    gone(7);
    worker().release();
    finish_runs();
    CHECK(resource_events().empty());
    CHECK(state_of("NS::Box", "made-1") == "missing");
  }
  SECTION("it is seen once more") {
    const int size = GENERATE(1, 7);
    system.things["NS::Box"] = gone(size);
    worker().release();
    finish_runs();
    CHECK(resource_events() ==
          (size == 1 ? Strings{"discovered:made-1"} : Strings{"discovered:made-1", "drifted:made-1"}));
    CHECK(row("NS::Box", "made-1").properties == system.things["NS::Box"].front().properties);
    CHECK(state_of("NS::Box", "made-1") == "present");
  }
}

TEST_CASE_METHOD(CommandsFixture, "what could not be read before a change is not gone after it") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  advance(Millis(500));
  events();
  const auto there = std::exchange(system.things["NS::Box"], {});
  bool asked = false;  // whether what is not listed is gone
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation)) return {};
    asked = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return asked; });
  worker().on_job = {};
  system.things["NS::Box"] = there;
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  worker().release();
  finish_runs();
  CHECK(resource_events() == Strings{"updated:made-1"});
  CHECK(state_of("NS::Box", "made-1") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "what a run sees of an object while it is changed is no news") {
  start_discovered();
  apply(stack({box("a")}));
  advance(Millis(500));
  events();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));  // and does not answer yet
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({}));
  advance(Millis(200));
  REQUIRE(count() == 0);
  const auto run = api("discover")["run"];
  wait_until([&] { return api("run", {{"run", run}})["state"] == "complete"; });
  CHECK(state_of("NS::Box", "made-1") == "present");
  worker().on_go = {};
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  advance(Millis(500));
  CHECK(resource_events() == Strings{"deleted:made-1"});
}

TEST_CASE_METHOD(CommandsFixture, "what is moved while a command changes it is where a run finds it then") {
  manifest.types[0].parent = "NS::Box";  // as directories lie in each other
  system.list_properties = true;
  system.page = 1;
  start_discovered();
  const auto declared = [](int size) {
    auto inner = box("b", {{"size", size}});
    inner["parent"] = "a";
    return stack({box("a"), inner});
  };
  REQUIRE(apply(declared(1))["state"] == "complete");
  system.add("NS::Box", {"last", R"({"name":"last"})", "uid-last", {}});
  REQUIRE(row("NS::Box", "made-2").parent_native_id == "made-1");
  bool listed = false;  // the first page of what lies in nothing
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    listed = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return listed; });
  worker().on_job = {};
  CHECK(apply(declared(2))["state"] == "complete");
  system.thing("NS::Box", "made-2").parent.clear();
  worker().release();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(row("NS::Box", "made-2").parent_native_id.empty());
  CHECK(state_of("NS::Box", "made-2") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "what a command has made is not missing while its type may take to show it") {
  manifest.types[0].settle = Millis(20'000);
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  const auto things = std::exchange(system.things, {});
  events();
  discover();
  CHECK(state_of("NS::Box", "made-1") == "present");
  CHECK(resource_events().empty());
  const bool shows = GENERATE(true, false);
  if (shows) system.things = things;
  advance(Millis(30'000));
  discover();
  CHECK(state_of("NS::Box", "made-1") == (shows ? "present" : "missing"));
}

TEST_CASE_METHOD(CommandsFixture,
                 "what a command finds there again is told as discovered, as it was told as vanished") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  int reads = 0;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation) || reads++ > 0) return {};
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(200));
  REQUIRE(reads == 1);
  const auto there = std::exchange(system.things, {});
  api("discover");
  advance(Millis(1000));
  REQUIRE(state_of("NS::Box", "made-1") == "missing");
  events();
  system.things = there;
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  advance(Millis(500));
  CHECK(resource_events() == Strings{"discovered:made-1", "updated:made-1"});
  const auto told = api("resource", {{"target", "t"}, {"type", "NS::Box"}, {"native_id", "made-1"}, {"history", true}});
  CHECK(std::ranges::count(told["history"], "discovered", [](const Json& each) { return each["cause"]; }) == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what both a command and a run find there again is discovered once") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  bool held = false;
  const auto hold_one = [&](auto&& is_it) {
    held = false;
    worker().on_job = [&held, is_it](const Job& job) -> FakeWorker::Behaviour {
      if (held || job.type != "NS::Box" || !is_it(job)) return {};
      held = true;
      return FakeWorker::Hold{};
    };
  };
  edit("a", "size", 2);  // as it is to be
  hold_one([](const Job& job) { return std::holds_alternative<ReadJob>(job.operation); });
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  wait_until([&] { return held; });
  const auto there = std::exchange(system.things, {});
  api("discover");
  advance(Millis(1000));
  REQUIRE(state_of("NS::Box", "made-1") == "missing");
  system.things = there;
  hold_one([](const Job& job) { return std::holds_alternative<ListJob>(job.operation); });
  api("discover");
  wait_until([&] { return held; });
  advance(Millis(500));
  events();
  worker().release();  // what the command has read first
  CHECK(end_of(id)["state"] == "complete");
  finish_runs();
  CHECK(resource_events() == Strings{"changed:made-1", "discovered:made-1", "updated:made-1"});
}

TEST_CASE_METHOD(CommandsFixture, "what is told as made when it was seen to have gone is made anew") {
  start_discovered();
  std::optional<JobResult> made;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    made = system.change(job);
    return FakeWorker::Silent{};
  };
  const auto id = begin(stack({box("a")}));
  advance(Millis(100));
  REQUIRE(made);
  api("discover");
  advance(Millis(500));
  REQUIRE(listed("NS::Box") == Strings{"made-1"});
  system.remove("NS::Box", "made-1");
  api("discover");
  advance(Millis(500));
  REQUIRE(state_of("NS::Box", "made-1") == "vanished");
  worker().on_go = {};
  worker().send_late(worker().asked<CreateJob>().at(0), *made);
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what a run sees of an object after a change of it has failed is news") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
  };
  REQUIRE(result_of(apply(stack({box("a", {{"size", 2}})})), "a") == "failed ACCESS_DENIED");
  edit("a", "size", 7);
  discover();
  CHECK(Json::parse(row("NS::Box", "made-1").properties)["size"] == 7);
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
