// What has drifted and is put back.
#include "support/drift_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;

TEST_CASE_METHOD(DriftFixture, "what is put back in many stacks at a time takes no draft of a user away") {
  start_discovered();
  constexpr int kStacks = 20;  // more than there may be drafts
  const auto name = [](int i) { return "box-" + std::to_string(i); };
  auto stacks = Json::array();
  for (int i = 0; i < kStacks; ++i) {
    stacks.push_back(
        {{"stack", "stack-" + std::to_string(i)}, {"resources", {reverting(box(name(i), {{"size", 3}}))}}});
  }
  REQUIRE(apply({{"stacks", stacks}})["state"] == "complete");
  const auto draft = plan(stack({box("a")}))["draft"];
  advance(Millis(1000));  // it is the oldest
  for (int i = 0; i < kStacks; ++i) edit(name(i), "size", 9);
  discover();
  advance(Millis(5000));
  for (int i = 0; i < kStacks; ++i) CHECK(thing(name(i))["size"] == 3);
  CHECK(apply({{"draft", draft}})["state"] == "complete");
}

TEST_CASE_METHOD(DriftFixture, "what is put back takes no draft away where users have as many as there may be") {
  start_discovered();
  REQUIRE(apply(stack({reverting(box("a", {{"size", 3}}))}))["state"] == "complete");
  std::vector<std::string> drafts;
  for (int i = 0; i < 16; ++i) {
    drafts.push_back(plan({{"stacks", {{{"stack", "other"}, {"resources", {box("b")}}}}}})["draft"]);
    advance(Millis(10));
  }
  edit("a", "size", 9);
  discover();
  advance(Millis(5000));
  CHECK(thing("a")["size"] == 3);
  for (const auto& draft : drafts) CHECK_FALSE(plan({{"draft", draft}}).contains("error"));
}

TEST_CASE_METHOD(DriftFixture, "what does not become as declared is marked, and not put back over and over") {
  start_discovered();
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    edit("a", "size", 1);
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, {}, Millis(0)});
  };
  CHECK(result_of(apply(stack({reverting(box("a", {{"size", 2}}))})), "a") == "failed NOT_STABILIZED");
  CHECK(row("NS::Box", "made-1").drifted);
  advance(Millis(60'000));
  CHECK(api("commands")["items"].size() == 1);
}

TEST_CASE_METHOD(DriftFixture, "what has no target any more does not keep the rest of its stack from being put back") {
  add_target("u");
  start_discovered();
  auto elsewhere = box("b");
  elsewhere["target"] = "u";
  REQUIRE(apply(stack({reverting(box("a", {{"size", 3}})), elsewhere}))["state"] == "complete");
  crash();
  config.targets.pop_back();
  start();
  finish_runs();
  edit("a", "size", 9);
  discover();
  advance(Millis(3000));
  CHECK(thing("a")["size"] == 3);
}

TEST_CASE_METHOD(DriftFixture, "what stands twice in a stack does not keep the rest of it from being put back") {
  start_discovered();
  REQUIRE(apply(stack({box("b"), reverting(box("a", {{"size", 3}}))}))["state"] == "complete");
  auto other = box("b");
  other["type"] = "NS::Item";
  REQUIRE(apply(stack({other, reverting(box("a", {{"size", 3}}))}, "patch"))["state"] == "complete");
  edit("a", "size", 9);
  discover();
  advance(Millis(3000));
  CHECK(thing("a")["size"] == 3);
}

TEST_CASE_METHOD(DriftFixture, "what is put back makes nothing anew that nobody asked to have back") {
  start_discovered();
  auto reverts = reverting(linked("a", "b"));
  reverts["properties"]["size"] = 3;
  REQUIRE(apply(stack({reverts, box("b"), reverting(box("c", {{"size", 3}}))}))["state"] == "complete");
  for (const auto* name : {"a", "c"}) edit(name, "size", 9);
  system.remove("NS::Box", thing("b")["id"]);
  discover();
  advance(Millis(2000));
  CHECK(thing("b").is_null());
  CHECK(thing("c")["size"] == 3);
}

TEST_CASE_METHOD(DriftFixture, "what cannot be put back while its system is out of reach is put back later") {
  config.retry = {1, Millis(10), Millis(10)};
  start_discovered();
  REQUIRE(apply(stack({reverting(box("a", {{"size", 3}}))}))["state"] == "complete");
  const auto asked = worker().asked<UpdateJob>().size();
  const auto error = GENERATE(Errc::kServiceUnavailable, Errc::kInvalidRequest);
  worker().on_go = [error](const Job&) -> FakeWorker::Behaviour { return JobResult(Error{error, "not now", {}, 0}); };
  edit("a", "size", 9);
  discover();
  advance(Millis(3'600'000));
  const auto tries = worker().asked<UpdateJob>().size() - asked;
  worker().on_go = {};
  advance(Millis(3'600'000));
  if (error == Errc::kServiceUnavailable) {
    CHECK(tries > 3);
    CHECK(tries < 30);
    CHECK(thing("a")["size"] == 3);
  } else {  // it was refused: the same again is of no use
    CHECK(tries == 1);
    CHECK(thing("a")["size"] == 9);
  }
}

TEST_CASE_METHOD(DriftFixture, "what is to be put back waits for a worker of its type") {
  start_discovered();
  REQUIRE(apply(stack({reverting(box("a", {{"size", 3}}))}))["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kInvalidRequest, "not now", {}, 0});
  };
  edit("a", "size", 9);
  discover();
  advance(Millis(3000));
  REQUIRE(thing("a")["size"] == 9);
  remove_worker("w1");
  restart();
  advance(Millis(5000));
  add_worker("w2");
  advance(Millis(5000));
  CHECK(thing("a")["size"] == 3);
}

TEST_CASE_METHOD(DriftFixture, "what is put back takes nothing over that nobody asked to have back") {
  start_discovered();
  auto reverts = reverting(linked("a", "b"));
  reverts["properties"]["size"] = 3;
  REQUIRE(apply(stack({reverts, box("b", {{"size", 3}}), reverting(box("c", {{"size", 3}}))}))["state"] == "complete");
  system.remove("NS::Box", thing("b")["id"]);
  const auto size = GENERATE(3, 4);  // as it is declared, or to be changed
  system.add("NS::Box", {"other", Json{{"id", "other"}, {"name", "b"}, {"size", size}}.dump(), "uid-other"});
  discover();
  for (const auto* name : {"a", "c"}) edit(name, "size", 9);
  discover();
  advance(Millis(2000));
  CHECK(thing("b")["size"] == size);
  CHECK_FALSE(row("NS::Box", "other").managed);
  CHECK(thing("c")["size"] == 3);
}

TEST_CASE_METHOD(DriftFixture, "what is put back refers to what is left as it is") {
  start_discovered();
  auto reverts = reverting(linked("a", "b"));
  reverts["holes"][0]["parts"][0]["path"] = "link";
  reverts["properties"]["size"] = 3;
  REQUIRE(apply(stack({reverts, box("b", {{"link", "old"}})}))["state"] == "complete");
  edit("b", "link", "new");
  if (GENERATE(false, true)) discover();
  edit("a", "size", 9);
  discover();
  advance(Millis(2000));
  CHECK(thing("a")["size"] == 3);
  CHECK(thing("a")["link"] == "new");
  CHECK(thing("b")["link"] == "new");
}

TEST_CASE_METHOD(DriftFixture, "what is put back at once takes nothing from what waits to be put back later") {
  config.retry = {1, Millis(10), Millis(10)};
  start_discovered();
  const auto both = stack({reverting(box("a", {{"size", 3}})), reverting(box("b", {{"size", 3}}))});
  REQUIRE(apply(both)["state"] == "complete");
  const std::string a = thing("a")["id"];
  bool reachable = false;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* update = std::get_if<UpdateJob>(&job.operation);
    if (reachable || update == nullptr || update->native_id != a) return {};
    return JobResult(Error{Errc::kServiceUnavailable, "not now", {}, 0});
  };
  edit("a", "size", 9);
  discover();
  advance(Millis(30'000));
  edit("b", "size", 9);
  discover();
  advance(Millis(20'000));
  CHECK(thing("b")["size"] == 3);
  REQUIRE(thing("a")["size"] == 9);
  reachable = true;
  advance(Millis(60'000));
  CHECK(thing("a")["size"] == 3);
}
