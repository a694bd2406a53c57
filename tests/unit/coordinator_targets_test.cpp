// Targets that files declare: when they are looked at, and when they leave.
#include <algorithm>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;

namespace {

struct TargetsFixture : CommandsFixture {
  /// A file that declares a box, and the target that it is on.
  static Json file(const std::string& stack = "shop") {
    auto resource = box(stack);
    resource["target"] = "new";
    Json request{{"stacks", {{{"stack", stack}, {"resources", {resource}}}}}, {"mode", "reconcile"}};
    request["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}, {"discover", true}}});
    return request;
  }
  std::string target_state() {
    const auto row = store->target("new").value();
    return !row ? "absent" : row->state == TargetState::kRemoved ? "removed" : "there";
  }
  /// How often it was looked at.
  std::ptrdiff_t looks() {
    return std::ranges::count_if(worker().asked<InspectJob>(), [](const Job& job) { return job.target.name == "new"; });
  }
};

}  // namespace

TEST_CASE_METHOD(TargetsFixture, "of the targets of a file those are looked at that are new and to be discovered") {
  start_discovered();
  auto request = file();
  const bool discovers = GENERATE(true, false);
  request["targets"][0]["discover"] = discovers;
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(looks() == (discovers ? 1 : 0));
  request["stacks"][0]["resources"][0]["properties"]["size"] = 2;
  CHECK(apply(request)["state"] == "complete");
  finish_runs();
  CHECK(looks() == (discovers ? 1 : 0));
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file that is not to be discovered any more is looked at no more") {
  start_discovered();
  auto request = file();
  request["targets"][0]["interval_ms"] = 10'000;
  CHECK(apply(request)["state"] == "complete");
  advance(Millis(35'000));
  finish_runs();
  CHECK(looks() == 4);
  request["targets"][0]["discover"] = false;
  CHECK(apply(request)["state"] == "complete");
  advance(Millis(60'000));
  finish_runs();
  CHECK(looks() == 4);
}

TEST_CASE_METHOD(TargetsFixture, "a target is looked at as often as before when its file is applied again") {
  start_discovered();
  auto request = file();
  request["targets"][0]["interval_ms"] = 10'000;
  CHECK(apply(request)["state"] == "complete");
  advance(Millis(35'000));
  finish_runs();
  CHECK(looks() == 4);
  request["stacks"][0]["resources"][0]["properties"]["size"] = 2;
  SECTION("as it was") {}
  SECTION("with another interval") {
    request["targets"][0]["interval_ms"] = 2'000;
  }
  CHECK(apply(request)["state"] == "complete");
  const auto before = looks();
  advance(Millis(20'000));
  finish_runs();
  CHECK(looks() - before == (request["targets"][0]["interval_ms"] == 2'000 ? 10 : 2));
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file is looked at once it is to be discovered") {
  start_discovered();
  auto request = file();
  request["targets"][0]["discover"] = false;
  CHECK(apply(request)["state"] == "complete");
  request["targets"][0]["discover"] = true;
  apply(request);
  finish_runs();
  CHECK(looks() == 1);
}

TEST_CASE_METHOD(TargetsFixture, "a target of a file stays while something of another stack is on it") {
  start_discovered();
  for (const auto* stack : {"shop", "store"}) CHECK(apply(file(stack))["state"] == "complete");
  auto shop = file("shop"), other = file("store");
  for (auto* request : {&shop, &other}) (*request)["mode"] = "destroy";
  CHECK(apply(shop)["state"] == "complete");
  settle();
  CHECK(count() == 1);
  CHECK(target_state() == "there");
  CHECK(apply(other)["state"] == "complete");
  settle();
  CHECK(target_state() == "removed");
}
