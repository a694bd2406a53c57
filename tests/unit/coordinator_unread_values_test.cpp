// Values that nobody can read back, of a change that nobody knows the outcome of.

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;

namespace {

struct UnreadFixture : CommandsFixture {
  static Json with_hole(Json resource, const std::string& pointer, Json parts) {
    resource["properties"][Json::json_pointer(pointer)] = nullptr;
    resource["holes"] = Json::array({{{"pointer", pointer}, {"parts", std::move(parts)}}});
    return resource;
  }
  void lose_answers(bool done) {
    worker().on_go = [this, done](const Job& job) -> FakeWorker::Behaviour {
      if (done) static_cast<void>(system.change(job));
      return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
    };
  }
};

}  // namespace

TEST_CASE_METHOD(UnreadFixture, "nothing is put back without a value that nobody knows") {
  start_discovered();
  const bool secret = GENERATE(false, true);
  const auto declared = [&](const std::string& value) {
    auto resource = box("a", {{"size", 3}});
    resource["on_drift"] = "revert";
    if (!secret) resource["properties"]["login"] = {{"user", "u"}, {"pin", value}};
    return stack({secret ? with_hole(resource, "/password", {{{"env", value}}}) : resource});
  };
  REQUIRE(apply(declared("ONE"))["state"] == "complete");
  lose_answers(false);
  REQUIRE(apply(declared("TWO"))["state"] == "failed");
  worker().on_go = {};
  finish_runs();
  SECTION("it is changed without that") {
    edit("a", "size", 9);
    discover();
    advance(Millis(3000));
    CHECK(thing("a")["size"] == 3);
    CHECK(worker().asked<CreateJob>().size() == 1);
  }
  SECTION("it is not made anew") {
    system.remove("NS::Box", "made-1");
    discover();
    advance(Millis(3000));
    CHECK(count() == 0);
    CHECK(worker().asked<CreateJob>().size() == 1);
  }
  CHECK(apply(declared("ONE"))["state"] == "complete");  // it may be the other one
  const auto last = count() == 1 && worker().asked<CreateJob>().size() == 2
                        ? std::get<CreateJob>(worker().asked<CreateJob>().back().operation).properties
                        : std::get<UpdateJob>(worker().asked<UpdateJob>().back().operation).desired;
  CHECK(last.secrets.size() == (secret ? 1 : 0));
  CHECK((secret || last.json.find("ONE") != std::string::npos));
}

TEST_CASE_METHOD(UnreadFixture, "what a secret refers to outlives it, also where its value is not known") {
  start_discovered();
  const auto declared = [&](const std::string& value) {
    const auto parts = Json::array({{{"env", value}}, {{"resource", "b"}, {"path", "id"}}});
    return stack({box("b"), with_hole(box("a"), "/password", parts)});
  };
  REQUIRE(apply(declared("ONE"))["state"] == "complete");
  lose_answers(false);
  REQUIRE(apply(declared("TWO"))["state"] == "failed");
  worker().on_go = {};
  finish_runs();
  const auto planned = plan(stack({}, "destroy"));
  REQUIRE(planned["steps"].size() == 2);
  CHECK(planned["steps"][0]["name"] == "a");
  CHECK(planned["steps"][1]["after"] == Json{0});
}

TEST_CASE_METHOD(UnreadFixture, "a reference that nobody can read back counts as sent no more when it may be another") {
  start_discovered();
  const auto declared = [&](const std::string& to) {
    const auto parts = Json::array({{{"resource", to}, {"path", "id"}}});
    return stack({box("b"), box("c"), with_hole(box("a", {{"login", {{"user", "u"}}}}), "/login/pin", parts)});
  };
  REQUIRE(apply(declared("b"))["state"] == "complete");
  lose_answers(true);
  REQUIRE(apply(declared("c"))["state"] == "failed");
  worker().on_go = {};
  finish_runs();
  REQUIRE(thing("a")["login"]["pin"] == thing("c")["id"]);
  CHECK(apply(declared("b"))["state"] == "complete");
  CHECK(thing("a")["login"]["pin"] == thing("b")["id"]);
  CHECK(plan(declared("b"))["nothing"] == true);
}
