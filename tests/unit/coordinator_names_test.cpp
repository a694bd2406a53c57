// What has a name in its stack: of another type, replaced, or gone, and who refers to it.
#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Catch::Contains;

TEST_CASE_METHOD(CommandsFixture, "of two objects of one name the next apply deletes the older one") {
  start_discovered();
  apply(stack({box("a")}));
  system.things["NS::Box"].push_back({"twin", R"({"id":"twin","name":"a"})", "uid-twin", {}});
  discover();
  const auto scan = store->scan(store->target("t").value()->id, "NS::Box").value().id;
  const auto first = store->claim(store->find(scan, "made-1").value()).value().value();
  REQUIRE(store->manage(store->find(scan, "twin").value(), first));
  REQUIRE(store->commit());
  const auto ended = apply(stack({box("a")}));
  CAPTURE(ended.dump());
  CHECK(ended["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"twin"});
}

TEST_CASE_METHOD(CommandsFixture, "what another made in place of what is gone is adopted, and has the name alone") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 3}}), linked("b", "a")}))["state"] == "complete");
  const auto size = GENERATE(3, 4);  // as it is declared, or to be changed
  auto& there = system.thing("NS::Box", "made-1");
  there.id = "other";
  there.uid = "uid-other";
  there.properties = Json{{"id", "other"}, {"name", "a"}, {"size", size}}.dump();
  discover();
  REQUIRE(row("NS::Box", "made-1").state == ResourceState::kMissing);
  const auto wanted = stack({box("a", {{"size", 3}}), linked("b", "a")}, GENERATE("reconcile", "patch"));
  const auto ended = apply(wanted);
  CAPTURE(ended.dump());
  CHECK(ended["state"] == "complete");
  CHECK(thing("a")["size"] == 3);
  CHECK(thing("b")["link"] == "other");
  CHECK(row("NS::Box", "made-1").state == ResourceState::kVanished);
  CHECK_FALSE(row("NS::Box", "made-1").managed);
  CHECK(row("NS::Box", "other").managed);
  CHECK(plan(wanted)["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what is gone is made anew under another name, and leaves the old one") {
  system.names_are_ids = GENERATE(false, true);
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.things["NS::Box"].clear();
  discover();
  auto renamed = box("a");
  renamed["name"] = "b";
  const auto ended = apply(stack({renamed}));
  CAPTURE(ended.dump());
  CHECK(ended["state"] == "complete");
  CHECK(count() == 1);
  CHECK(plan(stack({renamed}))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what is gone is made anew though another is being adopted under its name") {
  system.names_are_ids = true;
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}})}))["state"] == "complete");
  system.things["NS::Box"] = {{"b", R"({"id":"b","name":"b","size":2})", "uid-b", {}}};
  discover();
  auto made = box("a", {{"size", 1}});
  made["name"] = "b";
  auto adopted = box("b", {{"size", 1}});
  adopted["name"] = "a";
  const auto swapped = stack({made, adopted});
  const auto ended = apply(swapped);
  CAPTURE(ended.dump());
  CHECK(ended["state"] == "complete");
  CHECK(count() == 2);
  CHECK(plan(swapped)["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what replaces a thing may get the id of what is gone, and is not deleted for that") {
  system.names_are_ids = true;
  start_discovered();
  const auto named = [](const char* resource, const char* name, const char* kind) {
    auto made = box(name, {{"kind", kind}});
    made["name"] = resource;
    return made;
  };
  REQUIRE(apply(stack({named("a", "x", "1"), named("b", "y", "1")}))["state"] == "complete");
  system.remove("NS::Box", "x");
  discover();
  std::vector<Json> wanted{named("b", "x", "2"), linked("c", "b")};
  const bool leaves = GENERATE(true, false);  // or is made anew under another name
  CAPTURE(leaves);
  if (!leaves) wanted.push_back(named("a", "z", "1"));
  if (!leaves) wanted.back()["after"] = {"b"};
  const auto ended = apply(stack(wanted));
  CAPTURE(ended.dump());
  CHECK(ended["state"] == "complete");
  CHECK(thing("x")["kind"] == "2");
  CHECK(thing("c")["link"] == "x");
  CHECK(count() == wanted.size());
  CHECK(row("NS::Box", "x").managed);
  CHECK(plan(stack(wanted))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "a thing is not deleted with what was made in it under the id of what was to go") {
  manifest.types[1].parent = "NS::Box";
  system.names_are_ids = true;
  start_discovered();
  const auto named = [](const char* resource, const char* name, const char* kind) {
    auto made = box(name, {{"kind", kind}});
    made["name"] = resource;
    made["type"] = "NS::Item";
    return made;
  };
  auto inner = named("a", "x", "1");
  inner["parent"] = "o";
  REQUIRE(apply(stack({box("o"), inner, named("b", "y", "1"), box("z", {{"size", 1}})}))["state"] == "complete");
  system.remove("NS::Item", "x");
  discover();
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<CreateJob>(job.operation)) return {};
    auto result = std::get<MutationResult>(system.change(job));
    system.thing("NS::Item", result.native_id).parent = "o";  // where the system makes it
    return JobResult(std::move(result));
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    const bool is_held = read != nullptr && read->native_ids == Strings{"z"};
    return is_held ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
  };
  const auto id = begin(stack({named("b", "x", "2"), box("z", {{"size", 2}})}));
  advance(Millis(1000));
  REQUIRE(system.thing("NS::Item", "x").parent == "o");
  REQUIRE(store->reparent(row("NS::Item", "x").row, row("NS::Box", "o").row));  // as a run would find it
  worker().on_job = {};
  worker().release();
  const auto ended = end_of(id);
  CAPTURE(ended.dump());
  CHECK(result_of(ended, "a") == "done");
  CHECK(result_of(ended, "o") == "failed CONFLICT");
  CHECK_THAT(message_of(ended, "o"), Contains("x lies in it, and is resource b of stack shop"));
  CHECK(listed("NS::Item") == Strings{"x"});
}

TEST_CASE_METHOD(CommandsFixture, "a resource that is declared as another type is made anew, and the old one goes") {
  start_discovered();
  apply(stack({box("a")}));
  auto other = box("a");
  other["type"] = "NS::Item";
  CHECK(apply(stack({other}))["state"] == "complete");
  CHECK(count() == 0);
  CHECK(system.things["NS::Item"].size() == 1);
  CHECK(plan(stack({other}))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what is adopted as it is has its name for itself, also where the old one stays") {
  manifest.types.at(1).parent.clear();
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  system.add("NS::Item", {.id = "item", .properties = R"({"id":"item","name":"a"})"});
  discover();
  auto other = box("a");
  other["type"] = "NS::Item";
  REQUIRE(apply(stack({other}, "patch"))["state"] == "complete");
  const auto name_of = [&](const std::string& type, const std::string& id) {
    const auto scan = store->scan(store->target("t").value()->id, type).value().id;
    return store->claim(store->find(scan, id).value()).value().value().name;
  };
  CHECK(name_of("NS::Item", "item") == "a");
  CHECK(name_of("NS::Box", "made-1") != "a");
}

TEST_CASE_METHOD(CommandsFixture, "what is replaced goes when those that used it have turned away") {
  start_discovered();
  auto used = box("a", {{"kind", "x"}});
  if (GENERATE(false, true)) used["replace"] = "create-first";
  REQUIRE(apply(stack({used, linked("b", "a")}))["state"] == "complete");
  used["properties"]["kind"] = "y";
  used["properties"]["name"] = "z";
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const bool updates = std::holds_alternative<UpdateJob>(job.operation);
    return updates ? FakeWorker::Behaviour(FakeWorker::Silent{}) : FakeWorker::Behaviour();
  };
  const auto id = begin(stack({used, box("b", {{"link", "elsewhere"}})}));
  advance(Millis(500));
  CHECK(worker().asked<DeleteJob>().empty());
  worker().on_job = {};
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<DeleteJob>().size() == 1);
}

TEST_CASE_METHOD(CommandsFixture,
                 "a value that changes with what it is taken from is taken over with what was planned") {
  start_discovered();
  REQUIRE(apply(stack({box("a", {{"size", 1}}), linked("b", "a")}))["state"] == "complete");
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<UpdateJob>(job.operation)) return {};
    static_cast<void>(system.change(job));
    edit("a", "id", "another");  // the system sets it at each change
    const auto& operation = std::get<UpdateJob>(job.operation);
    const auto& there = system.thing("NS::Box", operation.native_id);
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, there.id, there.uid, there.properties, Millis(0)});
  };
  auto other = linked("b", "a");
  other["properties"]["size"] = 5;
  const auto changed = stack({box("a", {{"size", 2}}), other});
  const auto ended = apply(changed);
  INFO(message_of(ended, "b"));
  CHECK(ended["state"] == "complete");
  CHECK(thing("b")["link"] == "another");
  CHECK(plan(changed)["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what cannot be replaced for what is to be deleted says how it can") {
  start_discovered();
  auto used = box("a", {{"kind", "x"}});
  REQUIRE(apply(stack({used, linked("b", "a")}))["state"] == "complete");
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    const auto* deletion = std::get_if<DeleteJob>(&job.operation);
    const auto by = thing("b");
    if (deletion == nullptr || by.is_null() || by["link"] != deletion->native_id) return {};
    return JobResult(Error{Errc::kConflict, "it is used", {}, 0});
  };
  used["properties"]["kind"] = "y";
  const auto changed = stack({used});
  CHECK_THAT(message_of(apply(changed), "a"), Contains("b, which uses it") && Contains("`--exclude a`"));
  auto before = changed;
  before["exclude"] = {"a"};
  CHECK(apply(before)["state"] == "complete");
  CHECK(apply(changed)["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what cannot be replaced for what would turn to the new one says how it can") {
  start_discovered();
  auto used = box("a", {{"kind", "x"}});
  REQUIRE(apply(stack({used, linked("b", "a")}))["state"] == "complete");
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    const auto* deletion = std::get_if<DeleteJob>(&job.operation);
    if (deletion == nullptr || thing("b")["link"] != deletion->native_id) return {};
    return JobResult(Error{Errc::kConflict, "it is used", {}, 0});
  };
  used["properties"]["kind"] = "y";
  const auto said = message_of(apply(stack({used, linked("b", "a")})), "a");
  CHECK_THAT(said, Contains("it is used (b, which uses it") && Contains("`lifecycle: {replace: create-first}` of a"));
  used["replace"] = "create-first";
  used["properties"]["name"] = "z";
  CHECK(apply(stack({used, linked("b", "a")}))["state"] == "complete");
  CHECK(count() == 2);
}

TEST_CASE_METHOD(CommandsFixture, "what cannot be made for what had its name says how it can") {
  start_discovered();
  REQUIRE(apply(stack({box("a"), box("c")}))["state"] == "complete");
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    const bool creates = std::holds_alternative<CreateJob>(job.operation);
    if (!creates || thing("a").is_null()) return {};
    return JobResult(Error{Errc::kAlreadyExists, "it is there", {}, 0});
  };
  auto other = box("a");
  other["type"] = "NS::Item";
  const auto changed = stack({other, box("c")});
  const auto said = message_of(apply(changed), "a");
  CHECK_THAT(said, Contains("the NS::Box that was a") && Contains("apply once without a") && !Contains("discover"));
  CHECK(apply(stack({box("c")}))["state"] == "complete");
  CHECK(apply(changed)["state"] == "complete");
  CHECK(system.things["NS::Item"].size() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what cannot be made beside what it replaces says how it can") {
  start_discovered();
  auto wanted = box("a", {{"kind", "x"}});
  REQUIRE(apply(stack({wanted}))["state"] == "complete");
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    const bool creates = std::holds_alternative<CreateJob>(job.operation);
    if (!creates || thing("a").is_null()) return {};
    return JobResult(Error{Errc::kAlreadyExists, "there is one named a", {}, 0});
  };
  wanted["properties"]["kind"] = "y";
  wanted["replace"] = "create-first";
  const auto said = message_of(apply(stack({wanted})), "a");
  CHECK_THAT(said, Contains("which it replaces, is deleted only when it has been made") && !Contains("discover"));
  wanted["replace"] = "delete-first";
  CHECK(apply(stack({wanted}))["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what refers to a name that another type has now refers to that") {
  system.add("NS::Item", {"i", R"({"id":"i","name":"a"})", "u", {}});
  start_discovered();
  const bool adopted = GENERATE(true, false);
  if (!adopted) system.remove("NS::Item", "i");
  if (!adopted) discover();
  REQUIRE(apply(stack({box("a"), box("c")}))["state"] == "complete");
  auto other = box("a");
  other["type"] = "NS::Item";
  other["on_drift"] = "revert";
  other["properties"]["size"] = 1;
  REQUIRE(apply(stack({other, linked("b", "a")}, "patch"))["state"] == "complete");
  const auto& item = system.things["NS::Item"].front();
  CHECK(thing("b")["link"] == item.id);
  CHECK(plan(stack({other, linked("b", "a")}, "patch"))["nothing"] == true);

  SECTION("and is put back like any other") {
    auto& edited = system.things["NS::Item"].front();
    edited.properties = Json{{"id", edited.id}, {"name", "a"}, {"size", 7}}.dump();
    discover();
    advance(Millis(3000));
    CHECK(Json::parse(system.things["NS::Item"].front().properties)["size"] == 1);
  }
  SECTION("and what had the name goes with the next apply") {
    CHECK(apply(stack({other, linked("b", "a")}))["state"] == "complete");
    CHECK(count() == 1);
  }
  SECTION("and what had the name has it again when it is declared") {
    CHECK(apply(stack({box("a"), box("c")}))["state"] == "complete");
    CHECK(count() == 2);
    CHECK(system.things["NS::Item"].empty());
  }
}

TEST_CASE_METHOD(CommandsFixture, "a plan of which a name is made as another type holds while nothing of it changes") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  auto other = box("a");
  other["type"] = "NS::Item";
  const auto looked = plan(stack({other}));
  REQUIRE(looked["steps"].size() == 2);
  CHECK(looked["steps"][0]["hash"] != looked["steps"][1]["hash"]);
  system.add("NS::Box", {"other", R"({"name":"other"})", {}, {}});
  discover();  // of no concern to the stack
  CHECK(apply({{"draft", looked["draft"]}})["state"] == "complete");

  const auto draft = plan(stack({box("a")}))["draft"];
  REQUIRE(apply(stack({}, "destroy"))["state"] == "complete");
  const auto refused = api("apply", {{"draft", draft}});
  CHECK_THAT(refused.value("/error/message"_json_pointer, ""),
             Contains("shop/a was planned as delete, and needs nothing now"));
}

TEST_CASE_METHOD(CommandsFixture, "what refers to what has come to be null has not drifted") {
  start_discovered();
  REQUIRE(apply(stack({box("a"), linked("b", "a")}))["state"] == "complete");
  edit("a", "id", nullptr);  // nobody knows what it is to be
  edit("b", "size", 5);      // so that it is judged
  discover();
  CHECK(api("resources", {{"drifted", true}})["items"].empty());
}

TEST_CASE_METHOD(CommandsFixture, "a reference is to what has the name now, and not to what is to go") {
  manifest.types.at(1).parent.clear();
  system.add("NS::Item", {.id = "item", .properties = R"({"id":"item","name":"x"})"});
  start_discovered();
  REQUIRE(apply(stack({box("x"), linked("b", "x")}))["state"] == "complete");
  auto other = box("x");
  other["type"] = "NS::Item";
  const auto ended = apply(stack({other, linked("b", "x")}));
  CHECK(ended["state"] == "complete");
  CHECK(thing("b")["link"] == "item");
}

TEST_CASE_METHOD(CommandsFixture, "what cannot be replaced is not laid to what stays, nor to another stack") {
  start_discovered();
  auto used = box("a", {{"kind", "x"}});
  auto theirs = box("theirs");
  theirs["name"] = "a";
  const auto both = [&](const std::vector<Json>& ours, const std::vector<Json>& others) {
    return Json{{"stacks", {{{"stack", "shop"}, {"resources", ours}}, {{"stack", "store"}, {"resources", others}}}}};
  };
  REQUIRE(apply(both({used, linked("b", "a")}, {theirs, linked("c", "a")}))["state"] == "complete");
  worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<DeleteJob>(job.operation)) return {};
    return JobResult(Error{Errc::kConflict, "it is used", {}, 0});
  };
  used["properties"]["kind"] = "y";
  std::vector<Json> ours{used, linked("b", "a")};
  SECTION("deleted first") {}
  SECTION("deleted last, when there is another already") {
    used["properties"]["name"] = "a2";
    used["replace"] = "create-first";
    ours = {used};
  }
  const auto failed = apply(both(ours, {theirs}));
  CHECK(result_of(failed, "a") == "failed CONFLICT");
  CHECK_THAT(message_of(failed, "a"), Contains("it is used") && !Contains("--exclude"));
}

TEST_CASE_METHOD(CommandsFixture, "what is declared on another target is made where nothing is to be deleted, too") {
  add_target("t2");
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  auto moved = box("a2");
  moved["name"] = "a";
  moved["target"] = "t2";
  CHECK(apply(stack({moved}, "patch"))["state"] == "complete");
  CHECK(count() == 2);
}

TEST_CASE_METHOD(CommandsFixture, "what is made in place of another is asked for without the other's id") {
  start_discovered();
  auto wanted = box("a", {{"kind", "x"}});
  apply(stack({wanted}));
  SECTION("the new one comes first") {
    wanted = box("a2", {{"kind", "y"}});
    wanted["name"] = "a";
    wanted["replace"] = "create-first";
  }
  SECTION("the old one goes first") {
    wanted = box("a", {{"kind", "y"}});
    wanted["replace"] = "delete-first";
  }
  SECTION("the old one is gone") {
    system.remove("NS::Box", "made-1");
    discover();
  }
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<CreateJob>(job.operation)) return {};
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    CHECK(status->native_id.empty());
    const auto made = thing(wanted["properties"]["name"]).dump();
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-2", {}, made, {}});
  };
  CHECK(apply(stack({wanted}))["state"] == "complete");
  CHECK(worker().asked<StatusJob>().size() == 1);
  CHECK(listed("NS::Box") == Strings{"made-2"});
}

TEST_CASE_METHOD(CommandsFixture, "what was replaced and could not be deleted goes with the next apply") {
  start_discovered();
  auto before = box("a", {{"kind", "x"}});
  before["protect"] = true;  // which is over
  apply(stack({before, linked("b", "a")}));
  const auto first = thing("a")["id"].get<std::string>();
  auto wanted = box("a2", {{"kind", "y"}});
  wanted["name"] = "a";
  wanted["replace"] = "create-first";
  worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<DeleteJob>(job.operation)) return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
    return {};
  };
  const auto failed = apply(stack({wanted}));
  CHECK(result_of(failed, "a") == "failed ACCESS_DENIED");
  CHECK(state_of("NS::Box", first) == "present");
  edit("a", "kind", "z");  // nobody is told of drift of what is to go
  discover();
  CHECK(events("resource.drifted").empty());
  const auto plan = this->plan(stack({wanted}));
  CHECK(plan["summary"]["unchanged"] == 1);
  const auto& last = plan["steps"].back();  // after what was linked to it
  CHECK(last["name"] == "a (replaced)");
  CHECK(last["action"] == "delete");
  CHECK(last["reason"] == "it was replaced");
  restart();
  worker().on_go = {};
  CHECK(apply(stack({wanted}))["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{thing("a2")["id"].get<std::string>()});
}
