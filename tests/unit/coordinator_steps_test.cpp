// Steps of commands: what holds them up, what ends them, and what the inventory has after them.
#include <string>
#include <utility>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Catch::Contains;

TEST_CASE_METHOD(CommandsFixture, "nothing is deleted when a step has failed, whatever has succeeded after it") {
  start_discovered();
  apply(stack({box("old")}));
  worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
    const auto* create = std::get_if<CreateJob>(&job.operation);
    if (create == nullptr || Json::parse(create->properties.json)["name"] != "a") return {};
    return JobResult(Error{Errc::kInvalidRequest, "no", {}, 0});
  };
  auto last = box("c");
  last["after"] = {"b"};
  const auto ended = apply(stack({box("a"), box("b"), last}));
  CHECK(result_of(ended, "a") == "failed INVALID_REQUEST");
  CHECK(result_of(ended, "c") == "done");
  CHECK(result_of(ended, "old") == "blocked BLOCKED");
  CHECK(count() == 3);
}

TEST_CASE_METHOD(CommandsFixture, "progress is told every two seconds, and only where there is any") {
  start_discovered();
  SECTION("a command that has ended before that") {
    std::vector<Json> chain{box("0")};
    for (int i = 1; i < 5; ++i) {
      chain.push_back(box(std::to_string(i)));
      chain.back()["after"] = {std::to_string(i - 1)};
    }
    CHECK(apply(stack(chain))["state"] == "complete");
    CHECK(events("command.progress").empty());
  }
  SECTION("a command that waits") {
    worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
    begin(stack({box("a")}));
    advance(Millis(20'000));
    const auto told = events("command.progress");
    REQUIRE(told.size() == 1);
    CHECK_FALSE(told[0]["data"].contains("waiting"));  // a worker is at it
  }
}

TEST_CASE_METHOD(CommandsFixture, "what is in progress under one id is not taken for what is told late of another") {
  start_discovered();
  bool ends = false;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request", "made-1", {}, {}, Millis(500)});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    if (!ends) return JobResult(MutationResult{MutationStatus::kInProgress, "request", {}, {}, {}, Millis(500)});
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, {}, {}, thing("a").dump(), {}});
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return !worker().asked<StatusJob>().empty(); });
  worker().send_late(worker().asked<CreateJob>().front(),
                     MutationResult{MutationStatus::kSuccess, {}, "twin", {}, thing("a").dump(), {}});
  settle();
  ends = true;
  CHECK(end_of(id)["state"] == "complete");
  CHECK(row("NS::Box", "made-1").managed);
  CHECK(state_of("NS::Box", "twin") == "absent");
  CHECK(worker().asked<CreateJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what is gone, or another stack's, when its command begins is not adopted") {
  start_discovered();
  system.add("NS::Box", {"found", R"({"name":"a","size":1})", "uid-found", {}});
  discover();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  auto other = stack({box("x")}, "patch"), mine = stack({box("a", {{"size", 1}}), box("z")}, "patch");
  for (auto* request : {&other, &mine}) (*request)["stacks"][0]["stack"] = "store";
  const auto first = begin(other);
  advance(Millis(500));
  const auto second = begin(mine);  // waits for it
  worker().on_go = {};
  SECTION("gone") {
    system.remove("NS::Box", "found");
    api("discover");
    wait_until([&] { return state_of("NS::Box", "found") == "vanished"; });
    worker().release();
    end_of(first);
    CHECK(result_of(end_of(second), "a") == "failed NOT_FOUND");
    CHECK_FALSE(row("NS::Box", "found").managed);
  }
  SECTION("another stack's: then the rest of the command is not begun, either") {
    REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
    worker().release();
    end_of(first);
    const auto refused = end_of(second);
    CHECK(result_of(refused, "a") == "blocked CONFLICT");
    CHECK(result_of(refused, "z") == "blocked CONFLICT");
    CHECK_THAT(message_of(refused, "a"), Contains("store/a belongs to stack shop now"));
    CHECK(row("NS::Box", "found").stack == "shop");
  }
}

TEST_CASE_METHOD(CommandsFixture, "what is only to be noted of a thing that is gone since is not noted") {
  start_discovered();
  apply(stack({box("a")}));
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("x")}, "patch"));
  advance(Millis(500));
  auto noted = box("a");
  noted["protect"] = true;
  const auto second = begin(stack({noted}, "patch"));
  system.remove("NS::Box", "made-1");
  api("discover");
  wait_until([&] { return state_of("NS::Box", "made-1") == "missing"; });
  worker().on_go = {};
  worker().release();
  end_of(first);
  CHECK(result_of(end_of(second), "a") == "failed NOT_FOUND");
}

TEST_CASE_METHOD(CommandsFixture, "what a command has failed to change does not hold up the one behind it") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}}), box("b", {{"size", 1}})}));
  bool refuses = false;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* update = std::get_if<UpdateJob>(&job.operation);
    if (update == nullptr || Json::parse(update->desired.json)["name"] != "b") return {};
    return refuses ? JobResult(Error{Errc::kInvalidRequest, "no", {}, 0})
                   : JobResult(Error{Errc::kThrottling, "later", Millis(2000), 0});
  };
  const auto first = begin(stack({box("a", {{"size", 1}}), box("b", {{"size", 2}})}));
  advance(Millis(500));
  const auto second = begin(stack({box("a", {{"size", 3}}), box("b", {{"size", 1}})}));
  refuses = true;
  CHECK(result_of(end_of(first), "b") == "failed INVALID_REQUEST");
  CHECK(end_of(second)["state"] == "complete");
  CHECK(thing("a")["size"] == 3);
}

TEST_CASE_METHOD(CommandsFixture, "a change that refers to what is gone since it was begun is not sent") {
  start_discovered();
  apply(stack({box("a"), linked("b", "a")}));
  int held = 0;
  const Strings id{thing("b")["id"].get<std::string>()};
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids != id || held++ > 0) return {};
    return FakeWorker::Hold{};
  };
  auto changed = linked("b", "a");
  changed["properties"]["size"] = 2;
  const auto command = begin(stack({box("a"), changed}));
  wait_until([&] { return held == 1; });
  system.remove("NS::Box", "made-1");
  api("discover");
  wait_until([&] { return state_of("NS::Box", "made-1") == "missing"; });
  worker().release();
  const auto failed = end_of(command);
  CHECK(result_of(failed, "b") == "failed INVALID_REQUEST");
  CHECK_THAT(message_of(failed, "b"), Contains("a has no such property"));
  CHECK(worker().asked<UpdateJob>().empty());
}

TEST_CASE_METHOD(CommandsFixture,
                 "a value that turns out to be another is not sent where it cannot be changed in place") {
  start_discovered();
  const auto wanted = [](int size) {
    auto other = box("b", {{"size", size}, {"kind", nullptr}});
    other["holes"] = Json::array({{{"pointer", "/kind"}, {"parts", {{{"resource", "a"}, {"path", "link"}}}}}});
    return stack({box("a", {{"size", size}}), other});
  };
  std::string link = "old";
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    auto* done = std::get_if<MutationResult>(&result);
    if (done == nullptr || done->native_id != "made-1") return result;
    edit("a", "link", link);  // the system sets it
    done->properties = thing("a").dump();
    return result;
  };
  REQUIRE(apply(wanted(1))["state"] == "complete");
  REQUIRE(thing("b")["kind"] == "old");
  link = "new";
  const auto failed = apply(wanted(2));
  CHECK(result_of(failed, "b") == "failed CONFLICT");
  CHECK_THAT(message_of(failed, "b"), Contains("/kind has changed since it was planned"));
  CHECK(thing("b")["kind"] == "old");
}

TEST_CASE_METHOD(CommandsFixture, "an object of which a uid is told at times only is the same object") {
  start_discovered();
  const bool at_first = GENERATE(true, false);
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    auto& there = system.things["NS::Box"].front();
    if (std::holds_alternative<CreateJob>(job.operation) && !at_first) there.uid.clear();
    std::get<MutationResult>(result).uid = there.uid;
    return result;
  };
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  system.thing("NS::Box", "made-1").uid = at_first ? "" : "uid-made-1";
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  CHECK(row("NS::Box", "made-1").uid == "uid-made-1");
}

TEST_CASE_METHOD(CommandsFixture, "the label of what is changed is that of what it is now") {
  manifest.types[0].label_query = "$.link";
  start_discovered();
  apply(stack({box("a", {{"link", "one"}})}));
  CHECK(row("NS::Box", "made-1").label == "one");
  apply(stack({box("a", {{"link", "two"}})}));
  CHECK(row("NS::Box", "made-1").label == "two");
}

TEST_CASE_METHOD(CommandsFixture, "what a change comes to show after a while is in the inventory") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto before = thing("a").dump();
    auto result = system.change(job);
    std::get<MutationResult>(result).properties = before;
    return result;
  };
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  CHECK(Json::parse(row("NS::Box", "made-1").properties)["size"] == 2);
}

TEST_CASE_METHOD(CommandsFixture, "what is told as deleted is not looked at again") {
  start_discovered();
  apply(stack({box("a")}));
  REQUIRE(apply(stack({}))["state"] == "complete");
  CHECK(std::holds_alternative<DeleteJob>(worker().jobs.back().operation));
}

TEST_CASE_METHOD(CommandsFixture, "of a command that has ended nothing is kept but what it did") {
  start_discovered();
  auto resource = box("a", {{"link", "somewhere"}, {"password", nullptr}});
  resource["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", "WORD"}}}}}});
  apply(stack({resource}));
  resource["protect"] = true;
  const auto id = begin(stack({resource}));
  REQUIRE(end_of(id)["state"] == "complete");
  const auto plan = store->plan_of(CommandId(id)).value();
  CHECK_THAT(plan, Contains("unchanged") && !Contains("somewhere") && !Contains("WORD"));
}

TEST_CASE_METHOD(CommandsFixture, "what is not known yet is told of what is planned, once") {
  start_discovered();
  const auto first = plan(stack({box("a"), linked("b", "a"), box("c")}));
  REQUIRE(first["unchecked"].size() == 1);
  auto more = stack({box("d")});
  more["draft"] = first["draft"];
  CHECK(plan(more)["unchecked"].size() == 1);
  auto one = stack({box("a"), linked("b", "a"), box("c")});
  one["only"] = {"c"};
  CHECK(plan(one)["unchecked"].empty());
}

TEST_CASE_METHOD(CommandsFixture, "what a run finds renamed while it waits for its turn is changed under its new id") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}}), box("b", {{"size", 1}})}));
  for (auto& each : system.things["NS::Box"]) each.uid = "u-" + each.id;
  discover();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  auto second = box("b", {{"size", 2}});
  second["after"] = {"a"};
  const bool deletes = GENERATE(false, true);
  std::vector<Json> wanted{box("a", {{"size", 2}})};
  if (!deletes) wanted.push_back(second);
  const auto id = begin(stack(wanted));
  advance(Millis(500));
  const auto was = row("NS::Box", "made-2");
  system.thing("NS::Box", "made-2").id = "renamed";
  api("discover");
  advance(Millis(1000));
  REQUIRE(row("NS::Box", "renamed").id == was.id);
  worker().on_go = {};
  worker().release();
  const auto ended = end_of(id);
  CHECK(result_of(ended, "b") == "done");
  if (deletes) {
    CHECK(count() == 1);
    CHECK(state_of("NS::Box", "renamed") == "vanished");
  } else {
    CHECK(thing("b")["size"] == 2);
    CHECK(state_of("NS::Box", "renamed") == "present");
  }
}

TEST_CASE_METHOD(CommandsFixture, "what a run finds renamed while it is changed is changed under its new id") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  system.thing("NS::Box", "made-1").uid = "u";
  discover();
  const bool deletes = GENERATE(false, true);
  const bool unknown = GENERATE(false, true);
  CAPTURE(deletes, unknown);
  bool begun = false;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    begun = true;
    return FakeWorker::Hold{};
  };
  const auto id = begin(deletes ? stack({}) : stack({box("a", {{"size", 2}})}));
  wait_until([&] { return begun; });
  system.thing("NS::Box", "made-1").id = "renamed";
  api("discover");
  advance(Millis(1000));
  REQUIRE(state_of("NS::Box", "renamed") == "present");
  worker().on_go = {};
  unknown ? restart() : worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == (deletes ? 0 : 1));
  CHECK(state_of("NS::Box", "renamed") == (deletes ? "vanished" : "present"));
  if (!deletes) CHECK(thing("a")["size"] == 2);
}

TEST_CASE_METHOD(CommandsFixture, "what was seen of an object that is told as gone since does not bring it back") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    edit("a", "size", 0);  // it takes a while to be as declared
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), Millis(0)});
  };
  bool held = false;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation) || std::exchange(held, true)) return {};
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a", {{"size", 1}})}));
  wait_until([&] { return held; });
  system.remove("NS::Box", "made-1");
  api("discover");
  advance(Millis(1000));
  REQUIRE(state_of("NS::Box", "made-1") == "missing");
  static_cast<void>(events());
  worker().release();
  CHECK(result_of(end_of(id), "a") == "failed NOT_STABILIZED");
  CHECK(state_of("NS::Box", "made-1") == "missing");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(CommandsFixture, "a change in progress of another object than was asked for has failed") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  const bool deletes = GENERATE(false, true);
  const auto answer = [](MutationStatus status) {
    return JobResult(MutationResult{status, "request-1", "elsewhere", {}, R"({"name":"a","size":2})", Millis(0)});
  };
  worker().on_go = [&](const Job&) { return answer(MutationStatus::kInProgress); };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return answer(MutationStatus::kSuccess);
  };
  const auto failed = apply(deletes ? stack({}) : stack({box("a", {{"size", 2}})}));
  CHECK(result_of(failed, "a") == "failed CONTRACT");
  CHECK_THAT(message_of(failed, "a"), Contains("changed elsewhere instead of made-1"));
  edit("a", "size", 7);
  discover();
  CHECK(Json::parse(row("NS::Box", "made-1").properties)["size"] == 7);  // runs see it as before
}

TEST_CASE_METHOD(CommandsFixture, "a secret is sent as what it is made of, with what it takes from another resource") {
  start_discovered();
  auto resource = box("b", {{"password", nullptr}});
  const auto with = [&](const char* path) {
    resource["holes"] = Json::array({{{"pointer", "/password"},
                                      {"parts",
                                       {{{"literal", "for "}},
                                        {{"resource", "a"}, {"path", path}},
                                        {{"env", "NAME"}},
                                        {{"file", "/run/word"}},
                                        {{"secret", "word"}}}}}});
    return stack({box("a"), resource});
  };
  const auto failed = apply(with("absent"));
  CHECK(result_of(failed, "b") == "failed INVALID_REQUEST");
  CHECK_THAT(message_of(failed, "b"), Contains("/password refers to a.absent, and a has no such property"));
  REQUIRE(apply(with("id"))["state"] == "complete");
  const auto sent = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).properties;
  REQUIRE(sent.secrets.size() == 1);
  CHECK(sent.secrets[0].pointer == "/password");
  using Kind = SecretPart::Kind;
  const std::vector<SecretPart> parts{{Kind::kLiteral, "for "},
                                      {Kind::kLiteral, "made-1"},
                                      {Kind::kEnv, "NAME"},
                                      {Kind::kFile, "/run/word"},
                                      {Kind::kSecret, "word"}};
  CHECK(sent.secrets[0].parts == parts);
}

TEST_CASE_METHOD(CommandsFixture, "what would be too large by what it refers to is not asked for") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    edit("a", "id", std::string(200'000, 'x'));
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), Millis(0)});
  };
  auto twice = linked("b", "a");
  twice["holes"][0]["parts"].push_back(twice["holes"][0]["parts"][0]);
  const auto ended = apply(stack({box("a"), twice}));
  CHECK(result_of(ended, "a") == "done");
  CHECK(result_of(ended, "b") == "failed LIMIT");
  CHECK_THAT(message_of(ended, "b"), Contains("the limit is 262144"));
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what is made in a thing is told by which of its properties that is known") {
  auto& type = manifest.types.at(1);
  type.parent = "NS::Box";
  type.parent_parameters = {{"box", "name"}, {"none", "absent"}};
  start_discovered();
  auto item = box("i", {{"of", nullptr}});
  item["type"] = "NS::Item";
  if (GENERATE(true, false)) {
    item["parent"] = "a";
  } else {  // it lies in the first one of its parent's type that it refers to
    const Json other{{"resource", "h"}, {"path", "id"}};
    const Json first{{"resource", "a"}, {"path", "id"}}, second{{"resource", "b"}, {"path", "id"}};
    const Json text{{"literal", "in "}};
    item["holes"] = Json::array({{{"pointer", "/of"}, {"parts", Json::array({text, other, first, second})}}});
  }
  auto beside = box("h");
  beside["type"] = "NS::Item";
  beside["parent"] = "b";
  item["after"] = Json::array({"h"});
  REQUIRE(apply(stack({box("a"), box("b"), beside, item}))["state"] == "complete");
  const auto parent = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).parent;
  REQUIRE(parent);
  CHECK(parent->native_id == "made-1");
  CHECK(Json::parse(parent->parameters) == Json{{"box", "a"}});
}

TEST_CASE_METHOD(CommandsFixture, "a command is refused where one that waited before it has changed what it leaves") {
  start_discovered();
  const auto sizes = [](int a, int b) { return stack({box("a", {{"size", a}}), box("b", {{"size", b}})}); };
  REQUIRE(apply(sizes(1, 1))["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(sizes(2, 1));
  advance(Millis(300));
  const auto second = begin(sizes(2, 2));
  const auto third = begin(sizes(3, 1));  // planned while b is of size 1
  worker().on_go = {};
  worker().release();
  CHECK(end_of(first)["state"] == "complete");
  CHECK(end_of(second)["state"] == "complete");
  const auto refused = end_of(third);
  CHECK(result_of(refused, "a") == "blocked CONFLICT");
  CHECK_THAT(message_of(refused, "a"), Contains("shop/b has been changed by command " + second));
  CHECK(thing("a")["size"] == 2);
  CHECK(thing("b")["size"] == 2);
}

TEST_CASE_METHOD(CommandsFixture, "a command is refused where one before it has failed with what it leaves changed") {
  start_discovered();
  const auto sizes = [](int a, int b) { return stack({box("a", {{"size", a}}), box("b", {{"size", b}})}); };
  REQUIRE(apply(sizes(1, 1))["state"] == "complete");
  const bool cancels = GENERATE(false, true);
  CAPTURE(cancels);
  bool told = false;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (cancels) static_cast<void>(system.change(job));
    if (cancels || !told) return FakeWorker::Silent{};
    edit("a", "size", 5);
    const auto& there = system.thing("NS::Box", "made-1");
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, there.id, there.uid, there.properties, Millis(0)});
  };
  const auto first = begin(sizes(2, 1));
  advance(Millis(300));
  const auto second = begin(sizes(1, 2));  // planned while a is of size 1
  told = true;
  if (cancels) api("cancel", {{"command", first}, {"force", true}});
  const auto ended = end_of(first);
  CAPTURE(ended.dump());
  worker().on_go = {};
  CHECK(result_of(ended, "a") == (cancels ? "cancelled CANCELLED" : "failed NOT_STABILIZED"));
  REQUIRE(thing("a")["size"] != 1);
  const auto refused = end_of(second);
  CAPTURE(refused.dump());
  CHECK(result_of(refused, "b") == "blocked CONFLICT");
  const std::string changed = cancels ? "may have been changed" : "has been changed";
  CHECK_THAT(message_of(refused, "b"), Contains("shop/a " + changed + " by command " + first));
}

TEST_CASE_METHOD(CommandsFixture,
                 "what waits for several steps is begun by the next coordinator when they have ended") {
  start_discovered();
  worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
    const auto& create = std::get<CreateJob>(job.operation);
    const bool holds = Json::parse(create.properties.json)["name"] == "b";
    return holds ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
  };
  auto last = box("c");
  last["after"] = {"a", "b"};
  const auto id = begin(stack({box("a"), box("b"), last}));
  advance(Millis(1000));
  REQUIRE(thing("a")["name"] == "a");
  crash();
  worker().on_go = {};
  start();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 3);
}

TEST_CASE_METHOD(CommandsFixture, "what is made just now is not taken for destroyed with its target") {
  start_discovered();
  auto resource = box("a");
  resource["target"] = "new";
  auto file = stack({resource});
  file["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}}});
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(file);
  advance(Millis(300));
  file["mode"] = "destroy";
  CHECK(plan(file)["behind"].at(0)["changes"] == Json{"shop/a"});
  const auto refused = api("apply", file)["error"];
  CHECK(refused["code"] == "CONFLICT");
  CHECK_THAT(refused["message"].get<std::string>(), Contains(id + " is changing shop/a: apply again"));
  worker().on_go = {};
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(result_of(apply(file), "a") == "done");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(CommandsFixture, "of the commands that wait the one is cancelled that is named") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("a")}, "patch"));
  advance(Millis(300));
  const auto second = begin(stack({box("b")}, "patch")), third = begin(stack({box("c")}, "patch"));
  api("cancel", {{"command", third}});
  CHECK(end_of(third)["state"] == "cancelled");
  worker().on_go = {};
  worker().release();
  CHECK(end_of(first)["state"] == "complete");
  CHECK(end_of(second)["state"] == "complete");
  CHECK(count() == 2);
  CHECK(thing("c").is_null());
}

TEST_CASE_METHOD(CommandsFixture, "what is told late is evidence for the command that has asked for it") {
  auto schema = Json::parse(kBoxSchema);
  schema.erase("x-muster-identity");
  for (auto& type : manifest.types) type.schema = schema.dump();
  start_discovered();
  std::optional<JobResult> made;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto& create = std::get<CreateJob>(job.operation);
    const bool is_b = Json::parse(create.properties.json)["name"] == "b";
    if (is_b && !made) made = system.change(job);
    return JobResult(Error{Errc::kInternalFailure, "crashed", Millis(20'000), 0});
  };
  auto theirs = stack({box("b")});
  theirs["stacks"][0]["stack"] = "store";
  const auto mine = begin(stack({box("a")})), other = begin(theirs);
  wait_until([&] { return made && worker().asked<CreateJob>().size() == 2; });
  advance(Millis(1000));
  worker().send_late(worker().asked<CreateJob>().back(), *made);
  advance(Millis(1000));
  worker().on_go = {};
  CHECK(end_of(other)["state"] == "complete");
  CHECK(row("NS::Box", "made-1").stack == "store");
  CHECK(end_of(mine)["state"] == "complete");
  CHECK(thing("a")["id"] == "made-2");
}
