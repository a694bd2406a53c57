// What becomes of commands when the coordinator is started with other targets.

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Catch::Matchers::Contains;

namespace {

struct SettingsFixture : CommandsFixture {
  void rename(const std::string& name) {
    crash();
    config.targets[0].renamed_from = std::exchange(config.targets[0].name, name);
    start();
  }
  static Json box_on(const std::string& target, Json properties = Json::object()) {
    auto resource = box("a", std::move(properties));
    resource["target"] = target;
    return resource;
  }
};

}  // namespace

TEST_CASE_METHOD(SettingsFixture, "what is declared on a target stays when the target is renamed") {
  start_discovered();
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  rename("u");
  finish_runs();
  CHECK(plan(stack({box_on("u")}))["nothing"] == true);
  CHECK(apply(stack({box_on("u", {{"size", 2}})}))["state"] == "complete");
  CHECK(thing("a")["size"] == 2);
  CHECK(apply(stack({}, "destroy"))["state"] == "complete");
  CHECK(count() == 0);
}

TEST_CASE_METHOD(SettingsFixture, "a command goes on when its target is renamed") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Silent{}; };
  const auto id = begin(stack({box("a"), linked("b", "a")}));
  settle();
  worker().on_go = {};
  rename("u");
  const auto ended = end_of(id);
  CHECK(ended["state"] == "complete");
  CHECK(count() == 2);
  CHECK(plan(stack({box_on("u")}, "patch"))["nothing"] == true);
}

TEST_CASE_METHOD(SettingsFixture, "what may have been made on a target is asked for with its key under another name") {
  config.retry = {1, Millis(10), Millis(50)};
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  CHECK(apply(stack({box("a")}))["state"] == "failed");
  const auto key = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key;
  worker().on_go = {};
  rename("u");
  finish_runs();
  CHECK(apply(stack({box_on("u")}))["state"] == "complete");
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key == key);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(SettingsFixture, "what was made after all is looked for on the target that has another name since") {
  config.retry = {1, Millis(10), Millis(50)};
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  CHECK(apply(stack({box("a")}))["state"] == "failed");
  worker().on_go = {};
  rename("u");
  finish_runs();
  const auto late = worker().asked<CreateJob>().back();
  worker().send_late(late, system.change(late));
  settle();
  finish_runs();
  CHECK(listed("NS::Box").size() == 1);
}

TEST_CASE_METHOD(SettingsFixture, "what was made after all is looked for where nothing else is discovered") {
  config.retry = {1, Millis(10), Millis(50)};
  config.targets[0].discover = false;
  add_target("v");
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  auto on_v = box_on("v");
  on_v["name"] = "b";
  on_v["properties"]["name"] = "b";
  CHECK(apply(stack({box("a"), on_v}))["state"] == "failed");
  finish_runs();
  worker().on_go = {};
  const auto late = worker().asked<CreateJob>();
  REQUIRE(late.size() == 2);
  std::string name = "t";
  SECTION("under its new name") {
    rename(name = "u");
  }
  SECTION("though another target is no more") {
    crash();
    config.targets.pop_back();
    start();
  }
  finish_runs();
  for (const auto& job : late) worker().send_late(job, system.change(job));
  settle();
  finish_runs();
  CHECK(state_of("NS::Box", "made-1", name) == "present");
}

TEST_CASE_METHOD(SettingsFixture,
                 "what was done on a target that is no more is told as done, and what it is as drift") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = std::get<MutationResult>(system.change(job));
    edit("a", "size", 3);
    result.properties = thing("a").dump();
    return JobResult(std::move(result));
  };
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(100));
  REQUIRE(count() == 1);
  crash();
  config.targets.clear();
  start();
  const auto ended = end_of(id);
  CHECK(result_of(ended, "a") == "failed NOT_STABILIZED");
  CHECK_THAT(message_of(ended, "a"), Contains("done, and") && Contains("no target is named 't' any more"));
  CHECK(events("resource.drifted").size() == 1);
}

TEST_CASE_METHOD(SettingsFixture, "what is managed and gone is not taken to be what has its id on another system") {
  start_discovered();
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  const auto made = std::exchange(system.things["NS::Box"], {});
  discover();
  REQUIRE(state_of("NS::Box", "made-1") == "missing");
  crash();
  config.targets[0].config = {R"({"root":"/elsewhere"})", {}};
  system.inspection.system = "system-2";
  system.things["NS::Box"] = made;
  start();
  finish_runs();
  CHECK(api("targets")["items"].at(0).at("state") == "changed");
  CHECK(state_of("NS::Box", "made-1") == "missing");
  apply(stack({}, "destroy"));
  CHECK(count() == 1);
}

TEST_CASE_METHOD(SettingsFixture, "what is to be left out of one system says nothing of another that cannot be asked") {
  const bool accepted = GENERATE(false, true);
  if (accepted) system.add("NS::Box", {.id = "1"});
  start_discovered();
  crash();
  config.targets[0].config = {R"({"root":"/elsewhere"})", {}};
  system.add("NS::Box", {.id = "2"});
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<InspectJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "not yet", {}, 0});
  };
  start();
  finish_runs();
  if (accepted) {
    api("targets-accept", {{"target", "t"}});
    finish_runs();
  }
  REQUIRE(last_report()["problems"].at(0)["code"] == "ACCESS_DENIED");
  CHECK(state_of("NS::Box", "2") == "absent");  // its plugin may leave it out
  worker().on_job = {};
  discover();
  CHECK(state_of("NS::Box", "2") == "present");
}

TEST_CASE_METHOD(SettingsFixture,
                 "a target that was another one, and of which nothing is known, is what is declared next") {
  start_discovered();
  system.inspection.system = "system-2";
  discover();
  REQUIRE(api("targets")["items"].at(0).at("state") == "changed");
  system.add("NS::Box", {.id = "1"});
  crash();
  config.targets[0].config = {R"({"root":"/elsewhere"})", {}};
  start();
  finish_runs();
  CHECK(api("targets")["items"].at(0).at("state") == "active");
  CHECK(state_of("NS::Box", "1") == "present");
}

TEST_CASE_METHOD(SettingsFixture, "what is being made on a target is not taken to be on what that is after a restart") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({box("a")}));
  settle();
  crash();
  config.targets[0].config = {R"({"root":"/elsewhere"})", {}};
  start();
  worker().on_go = {};
  advance(Millis(2000));
  worker().release();
  const auto ended = end_of(id);
  finish_runs();
  CHECK(api("targets")["items"].at(0).at("state") == "changed");
  CHECK(result_of(ended, "a") == "failed TARGET_CHANGED");
  CHECK_THAT(message_of(ended, "a"), Contains("is not known"));
}

TEST_CASE_METHOD(CommandsFixture,
                 "a command makes all on a target that may be asked seldom, however many slots there are") {
  config.limits.requests_per_second = 1;
  add_worker().announcement.slots = 64;
  worker().announce();
  start();
  finish_runs();
  std::vector<Json> boxes;
  for (int i = 0; i < 150; ++i) boxes.push_back(box("b" + std::to_string(i)));
  CHECK(apply(stack(boxes))["state"] == "complete");
  CHECK(count() == 150);
}

TEST_CASE_METHOD(CommandsFixture, "a command asks no more often than the limit says, whether a run looks or not") {
  config.limits.requests_per_second = 1;
  const auto boxes = [](const std::string& target) {
    std::vector<Json> all;
    for (int i = 0; i < 30; ++i) {
      all.push_back(box("b" + std::to_string(i)));
      all.back()["target"] = target;
    }
    return stack(all);
  };
  SECTION("of a target that is not to be discovered") {
    start_discovered();
    auto request = boxes("new");
    request["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}, {"discover", false}}});
    begin(request);
    advance(Millis(5000));
    CHECK(count() <= 6);
  }
  SECTION("after a restart, while the first run waits for workers") {
    config.workers.emplace_back().count = 2;  // one of them does not come
    start_discovered();
    begin(boxes("t"));
    advance(Millis(1500));
    const auto before = count();
    restart();
    advance(Millis(5000));
    CHECK(count() <= before + 6);
  }
}

TEST_CASE_METHOD(SettingsFixture,
                 "what was begun on an empty target is not asked for again where that is another one") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({box("a")}));
  advance(Millis(300));
  crash();
  config.targets[0].config.json = R"({"zone":"b"})";
  start();
  CHECK(result_of(end_of(id), "a") == "failed TARGET_CHANGED");
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(store->target("t").value()->state == TargetState::kChanged);
}

TEST_CASE_METHOD(SettingsFixture,
                 "a target that was the configuration's may be a file's under another name, as it is") {
  add_target("u");
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  crash();
  config.targets.erase(config.targets.begin());
  start();
  finish_runs();
  REQUIRE(store->target("t").value()->state == TargetState::kRemoved);
  auto file = stack({box_on("new")});
  file["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}, {"renamed_from", "t"}}});
  const auto planned = plan(file);
  CHECK(planned["summary"]["create"] == 0);
  CHECK(planned["summary"]["unchanged"] == 1);
  CHECK(planned["targets"][0]["reason"] == "is t now");
  CHECK(apply(file)["state"] == "complete");
  finish_runs();
  CHECK(count() == 1);
  CHECK(row("NS::Box", "made-1", "new").managed);
  CHECK_FALSE(store->target("t").value());
  CHECK(plan(file)["nothing"] == true);
}
