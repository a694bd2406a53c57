// What is told of drift: whoever has seen it, a run or a command.
#include <algorithm>

#include "support/drift_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Catch::Contains;

TEST_CASE_METHOD(DriftFixture, "drift that is gone again is no drift") {
  start_discovered();
  apply(stack({box("a", {{"size", 3}})}));
  edit("a", "size", 9);
  discover();
  CHECK(drifted() == 1);
  edit("a", "size", 3);
  discover();
  CHECK(drifted() == 0);
}

TEST_CASE_METHOD(DriftFixture, "only what is to be put back is put back") {
  start_discovered();
  auto other = box("b", {{"size", 3}});
  other["on_drift"] = GENERATE("alert", "observe");
  auto reverts = reverting(GENERATE(false, true) ? linked("a", "b") : box("a"));  // what it refers to is left, too
  reverts["properties"]["size"] = 3;
  REQUIRE(apply(stack({reverts, other}))["state"] == "complete");
  edit("a", "size", 9);
  edit("b", "size", 9);
  discover();
  advance(Millis(2000));
  CHECK(thing("a")["size"] == 3);
  CHECK(thing("b")["size"] == 9);
}

// No run finds it changed once more: the inventory has what the command has seen.
TEST_CASE_METHOD(DriftFixture, "what a command sees drifted, and does not put right, is told as drift") {
  start_discovered();
  auto declared = box("a", {{"size", 3}, {"link", "x"}});
  const bool reverts = GENERATE(false, true);
  if (reverts) declared = reverting(declared);
  apply(stack({declared}));
  edit("a", "link", "y");
  events();
  auto changed = declared;
  changed["properties"]["size"] = 4;
  const auto refused = apply(stack({changed}));
  CHECK_THAT(message_of(refused, "a"), Contains("/link has changed since it was planned"));
  advance(Millis(2000));
  CHECK(told("resource.drifted"));
  CHECK(drifted() == (reverts ? 0 : 1));
  CHECK(thing("a")["link"] == (reverts ? "x" : "y"));
}

TEST_CASE_METHOD(DriftFixture, "what a command has put right is no drift, whatever was heard of it") {
  config.retry.attempts = 1;
  start_discovered();
  apply(stack({box("a", {{"size", 3}})}));
  edit("a", "size", 9);
  discover();
  REQUIRE(drifted() == 1);
  const bool cancelled = GENERATE(false, true);
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  const auto id = begin(stack({box("a", {{"size", 3}})}));
  if (cancelled) api("cancel", {{"command", id}, {"force", true}});
  CHECK(end_of(id)["state"] == (cancelled ? "cancelled" : "complete"));
  CHECK(thing("a")["size"] == 3);
  CHECK(drifted() == 0);
}

TEST_CASE_METHOD(DriftFixture, "what a command follows until it is as declared is no drift, whatever a run has seen") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    edit("a", "size", 8);
    std::get<MutationResult>(result).properties = thing("a").dump();
    return result;
  };
  worker().on_job = [reads = 0](const Job& job) mutable -> FakeWorker::Behaviour {
    if (std::holds_alternative<ReadJob>(job.operation) && reads++ == 0) return FakeWorker::Hold{};
    return {};
  };
  const auto id = begin(stack({box("a", {{"size", 3}})}));
  wait_until([&] { return worker().asked<ReadJob>().size() == 1; });
  edit("a", "size", 9);
  api("discover");
  wait_until([&] { return drifted() == 1; });
  edit("a", "size", 3);
  worker().on_job = {};
  worker().release();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(drifted() == 0);
}

TEST_CASE_METHOD(DriftFixture, "what is gone is drift where somebody is to hear of it") {
  start_discovered();
  auto resource = box("a");
  const std::string on_drift = GENERATE("alert", "observe");
  resource["on_drift"] = on_drift;
  const auto done = apply(stack({resource}));
  CHECK(done["kind"] == "apply");
  events();
  system.things.clear();
  discover();
  CHECK(told("resource.drifted") == (on_drift == "alert"));
  CHECK(drifted() == (on_drift == "alert" ? 1 : 0));
  CHECK(state_of("NS::Box", "made-1") == "missing");
  CHECK(apply(stack({}, "destroy"))["kind"] == "destroy");
}

TEST_CASE_METHOD(DriftFixture, "what has another name by hand is drift, and nothing is made anew for that") {
  auto schema = Json::parse(kBoxSchema);
  schema["properties"]["name"]["x-muster-create-only"] = true;
  manifest.types.front().schema = schema.dump();
  system.names_are_ids = true;
  start_discovered();
  auto declared = box("a", {{"size", 3}});
  const bool reverts = GENERATE(false, true);
  if (reverts) declared = reverting(declared);
  apply(stack({declared}));
  auto& there = system.thing("NS::Box", "a");
  there.uid = "u-1";
  discover();
  there.id = "z";
  there.properties = R"({"name":"z","size":3})";
  events();
  discover();
  advance(Millis(2000));
  CHECK(told("resource.drifted"));
  CHECK(drifted() == 1);
  CHECK(count() == 1);
  CHECK(state_of("NS::Box", "z") == "present");
}

TEST_CASE_METHOD(DriftFixture, "what was gone and is there again as it was has this in its history") {
  start_discovered();
  const auto declared = box("a");
  apply(stack({declared}));
  const auto things = system.things;
  system.things.clear();
  discover();
  const auto was = row("NS::Box", "made-1");
  REQUIRE(was.state == ResourceState::kMissing);
  system.things = things;
  SECTION("found by a run") {
    discover();
  }
  SECTION("found by a command") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      return std::holds_alternative<CreateJob>(job.operation)
                 ? FakeWorker::Behaviour(JobResult(Error{Errc::kAlreadyExists, "it is there", {}, 0}))
                 : FakeWorker::Behaviour();
    };
    apply(stack({declared}));
    discover();
  }
  const auto is = row("NS::Box", "made-1");
  CHECK(is.state == ResourceState::kPresent);
  CHECK(is.version == was.version + 1);
  const auto history = store->history(is.row).value();
  CHECK(history.back().cause == "discovered");
  CHECK(history.back().patch == "[]");
  CHECK(store->properties_at(is.row, clock.wall()).value() == is.properties);
}

TEST_CASE_METHOD(DriftFixture, "what a command finds gone is told as drift") {
  start_discovered();
  const auto declared = reverting(box("a", {{"size", 3}}));
  apply(stack({declared}));
  system.things["NS::Box"].clear();
  events();
  auto changed = declared;
  changed["properties"]["size"] = 4;
  CHECK(result_of(apply(stack({changed})), "a") == "failed NOT_FOUND");
  advance(Millis(2000));
  CHECK(told("resource.drifted"));
  CHECK(thing("a")["size"] == 3);  // as it was declared last
}

TEST_CASE_METHOD(DriftFixture, "a claim that is planned before a drift does not hide it") {
  start_discovered();
  auto declared = box("a", {{"size", 3}});
  apply(stack({declared}));
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<CreateJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  const auto first = begin(stack({box("x")}, "patch"));  // is under way
  declared["on_drift"] = "alert";
  declared["protect"] = true;
  const auto second = begin(stack({declared}, "patch"));  // waits
  edit("a", "size", 9);
  api("discover");
  advance(Millis(3000));
  CHECK(drifted() == 1);
  worker().on_job = {};
  worker().release();
  end_of(first);
  end_of(second);
  CHECK(drifted() == 1);
}

TEST_CASE_METHOD(DriftFixture, "what is absorbed after it was planned to be changed is declared as it was planned") {
  start_discovered();
  auto declared = box("a", {{"size", 3}});
  declared["on_drift"] = "absorb";
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    edit("a", "size", 9);
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  const auto first = begin(stack({declared}));
  settle();
  worker().on_go = {};
  wait_until([&] { return listed("NS::Box").size() == 1; });
  const auto second = begin(stack({declared}));  // the claim says so already
  CHECK(result_of(end_of(first), "a") == "failed NOT_STABILIZED");
  CHECK(told("resource.drifted"));
  CHECK(end_of(second)["state"] == "complete");
  CHECK(thing("a")["size"] == 3);
  CHECK(plan(stack({declared}))["nothing"] == true);
}

TEST_CASE_METHOD(DriftFixture, "what drifts while its stack is being changed is put back afterwards") {
  start_discovered();
  apply(stack({reverting(box("a", {{"size", 3}}))}));
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<CreateJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  const auto first = begin(stack({box("x")}, "patch"));
  edit("a", "size", 9);
  api("discover");
  advance(Millis(3000));
  CHECK(thing("a")["size"] == 9);
  const bool restarted = GENERATE(false, true);
  worker().on_job = {};
  if (restarted) {
    crash();
    start();
  }
  worker().release();
  end_of(first);
  advance(Millis(5000));
  CHECK(thing("a")["size"] == 3);
  CHECK(drifted() == 0);
}

TEST_CASE_METHOD(DriftFixture, "what a command is about to put right is not put back beside it") {
  start_discovered();
  auto declared = reverting(box("a", {{"size", 3}}));
  apply(stack({declared}));
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<CreateJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  declared["properties"]["size"] = 4;
  declared["after"] = {"x"};
  const auto first = begin(stack({box("x"), declared}));
  edit("a", "size", 9);
  api("discover");
  advance(Millis(3000));
  CHECK(drifted() == 1);
  worker().on_job = {};
  worker().release();
  CHECK(end_of(first)["state"] == "complete");
  advance(Millis(2000));
  CHECK(thing("a")["size"] == 4);
  CHECK(drifted() == 0);
  const auto commands = api("commands")["items"];
  CHECK(commands.size() == 2);
  for (const auto& command : commands) CHECK(command["state"] == "complete");
}

TEST_CASE_METHOD(DriftFixture, "what has come back is not made a second time") {
  start_discovered();
  apply(stack({box("a")}));
  const auto was = system.things["NS::Box"].front();
  system.remove("NS::Box", was.id);
  discover();
  CHECK(state_of("NS::Box", was.id) == "missing");
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<CreateJob>(job.operation)) return FakeWorker::Hold{};
    return {};
  };
  const auto first = begin(stack({box("x")}, "patch"));
  const auto second = begin(stack({box("a")}, "patch"));  // waits
  system.things["NS::Box"].push_back(was);
  api("discover");
  advance(Millis(3000));
  CHECK(state_of("NS::Box", was.id) == "present");
  worker().on_job = {};
  worker().release();
  end_of(first);
  CHECK(result_of(end_of(second), "a") == "blocked CONFLICT");
}

TEST_CASE_METHOD(DriftFixture, "of drift that is too large for an event only that it is there is told") {
  start_discovered();
  apply(stack({box("a", {{"link", "x"}})}));
  events();
  edit("a", "link", std::string(20'000, 'y'));
  discover();
  advance(Millis(500));
  const auto all = events("resource.drifted");
  REQUIRE(all.size() == 1);
  const auto& data = all[0]["data"];
  CHECK(data["patch_left_out"] == true);
  CHECK_FALSE(data.contains("patch"));
  CHECK_FALSE(data.contains("fields"));
  CHECK(data["name"] == "a");
}

TEST_CASE_METHOD(DriftFixture, "of write-only values only digests are kept, and none is ever sent for a value") {
  start_discovered();
  const auto declared = stack({reverting(box("a", {{"size", 3}, {"login", {{"user", "u"}, {"pin", "1234"}}}})),
                               reverting(box("b", {{"size", 3}}))});
  apply(declared);
  worker().jobs.clear();
  SECTION("a change goes without it") {
    edit("a", "size", 9);
    discover();
    advance(Millis(2000));
    CHECK(thing("a")["size"] == 3);
    CHECK(plan(declared)["nothing"] == true);  // the value counts as sent still
  }
  SECTION("what is to be made anew waits for who knows it") {
    for (const auto* name : {"a", "b"}) system.remove("NS::Box", thing(name)["id"]);
    discover();
    advance(Millis(2000));
    CHECK(thing("a").is_null());
    CHECK(thing("b")["size"] == 3);
    CHECK(apply(declared)["state"] == "complete");
    CHECK(thing("a")["login"]["pin"] == "1234");
  }
  SECTION("so does what has lost what the value lay in") {
    edit("a", "login", nullptr);
    edit("b", "size", 9);
    discover();
    advance(Millis(2000));
    CHECK(thing("a")["login"].is_null());
    CHECK(thing("b")["size"] == 3);
    CHECK(apply(declared)["state"] == "complete");
    CHECK(thing("a")["login"] == Json{{"user", "u"}, {"pin", "1234"}});
  }
  for (const auto& job : worker().jobs) {
    if (const auto* create = std::get_if<CreateJob>(&job.operation)) {
      CHECK(create->properties.json.find("digest") == std::string::npos);
    }
    if (const auto* update = std::get_if<UpdateJob>(&job.operation)) {
      CHECK(update->desired.json.find("digest") == std::string::npos);
    }
  }
}

TEST_CASE_METHOD(DriftFixture, "what has a secret is put back with its reference") {
  start_discovered();
  auto resource = reverting(box("a", {{"size", 3}, {"password", nullptr}}));
  resource["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", "PG_PASSWORD"}}}}}});
  apply(stack({resource}));
  SECTION("changed") {
    edit("a", "size", 9);
  }
  SECTION("made anew") {
    system.remove("NS::Box", "made-1");
  }
  discover();
  advance(Millis(2000));
  CHECK(thing("a")["size"] == 3);
  CHECK(plan(stack({resource}))["nothing"] == true);
}

TEST_CASE_METHOD(DriftFixture, "what is managed keeps its place when its new name is one that filters leave out") {
  system.list_properties = GENERATE(false, true);
  start_discovered();
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  const auto was = system.things["NS::Box"].front().id;
  system.thing("NS::Box", was).uid = "u-a";
  discover();
  const auto id = row("NS::Box", was).id;
  system.inspection.filters = {
      {{"NS::Box"}, {PropertyMatch{"$.name", MatchOp::kEq, "\"hidden\""}}, FilterAction::kExclude}};
  system.add("NS::Box", {.id = "other", .properties = R"({"name":"hidden"})", .uid = "u-other"});
  edit("a", "name", "hidden");
  system.thing("NS::Box", was).id = "renamed";
  events();
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "NS::Box")["filtered"] == 1);
  CHECK(row("NS::Box", "renamed").id == id);
  CHECK(state_of("NS::Box", was) == "absent");
  CHECK(state_of("NS::Box", "other") == "absent");
  CHECK(count() == 2);
}

TEST_CASE_METHOD(DriftFixture, "what is managed is seen to drift, also where filters leave out what it becomes") {
  start_discovered();
  CHECK(apply(stack({box("a", {{"size", 3}})}))["state"] == "complete");
  system.inspection.filters = {{{"NS::Box"}, {PropertyMatch{"$.size", MatchOp::kEq, "9"}}, FilterAction::kExclude}};
  discover();
  edit("a", "size", 9);
  const auto report = discover();
  CHECK(scan_of(report, "NS::Box")["filtered"] == 0);
  CHECK(scan_of(report, "NS::Box")["changed"] == 1);
  CHECK(drifted() == 1);
}

TEST_CASE_METHOD(DriftFixture, "what was gone and is there again as another is told with what has changed of it") {
  start_discovered();
  CHECK(apply(stack({box("a", {{"size", 3}})}))["state"] == "complete");
  const auto kept = system.things["NS::Box"];
  system.things["NS::Box"].clear();
  discover();
  CHECK(state_of("NS::Box", "made-1") == "missing");
  system.things["NS::Box"] = kept;
  edit("a", "size", 9);
  events();
  discover();
  const auto told = events("resource.discovered");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["data"]["patch"] == Json::parse(R"([{"op":"replace","path":"/size","value":9}])"));
}

TEST_CASE_METHOD(DriftFixture, "what was made again by hand is told, also where it is as it was") {
  start_discovered();
  CHECK(apply(stack({box("a", {{"size", 3}})}))["state"] == "complete");
  const auto was = row("NS::Box", "made-1");
  system.things["NS::Box"].front().uid = "another";
  const bool changes = GENERATE(false, true);
  if (changes) edit("a", "size", 9);
  events();
  discover();
  const auto told = events("resource.changed");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["data"]["replaced"] == true);
  CHECK(told[0]["data"]["patch"].size() == (changes ? 1 : 0));
  CHECK(drifted() == (changes ? 1 : 0));
  const auto is = row("NS::Box", "made-1");
  CHECK(is.uid == "another");
  CHECK(is.version == was.version + 1);
  CHECK(is.managed);
  discover();
  CHECK(events("resource.changed").empty());
}

TEST_CASE_METHOD(DriftFixture,
                 "drift that was told is not told once more by a command that may have changed something") {
  start_discovered();
  const auto with = [](const char* pin) {
    return stack({box("a", {{"size", 1}, {"login", {{"user", "u"}, {"pin", pin}}}})});
  };
  REQUIRE(apply(with("1"))["state"] == "complete");
  edit("a", "size", 7);
  discover();
  REQUIRE(drifted() == 1);
  events();
  bool asked = false;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    asked = true;
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const bool settles = asked && std::holds_alternative<ReadJob>(job.operation);
    return settles ? FakeWorker::Behaviour(Error{Errc::kAccessDenied, "not yours", {}, 0}) : FakeWorker::Behaviour();
  };
  REQUIRE(result_of(apply(with("2")), "a") == "failed ACCESS_DENIED");
  CHECK(drifted() == 1);
  CHECK_FALSE(told("resource.drifted"));
}
