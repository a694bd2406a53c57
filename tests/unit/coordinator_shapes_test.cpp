// Types of other shapes than boxes with items: trees, parameters of parents, things that outlive their parents; and
// targets that cannot be looked at.
#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"

using namespace muster;
using test::CoordinatorFixture;
using test::FakeWorker;
using Strings = std::vector<std::string>;

namespace {

struct ShapesFixture : CoordinatorFixture {
  ShapesFixture() {
    system.add("NS::Box", {.id = "a", .properties = R"({"name":"A"})", .uid = "u-a"});
    system.add("NS::Box", {.id = "c", .properties = R"({"name":"C"})", .uid = "u-c"});
  }
};

}  // namespace

TEST_CASE_METHOD(ShapesFixture, "a label that is the native id follows a rename") {
  start_discovered();
  system.thing("NS::Box", "a").id = "z";
  discover();
  CHECK(row("NS::Box", "z").label == "z");
}

TEST_CASE_METHOD(ShapesFixture, "what cannot be listed was not seen") {
  start_discovered();
  const auto before = row("NS::Box", "a").last_seen;
  advance(Millis(5000));
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
  };
  discover();
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(row("NS::Box", "a").last_seen == before);
}

TEST_CASE_METHOD(ShapesFixture, "a target without rows may become another system") {
  system.things.clear();
  system.inspection.system = "one";
  start_discovered();
  crash();
  config.targets[0].config = {R"({"root":"/elsewhere"})", {}};
  system.inspection.system = "two";
  start();
  finish_runs();
  CHECK(api("targets")["items"].at(0).at("state") == "active");
  CHECK(last_report()["state"] == "complete");
}

TEST_CASE_METHOD(ShapesFixture, "each child type gets its parameters") {
  manifest = test::make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}, {"NS::Part", "NS::Box"}});
  manifest.types[1].parent_parameters = {{"box", "name"}};
  start_discovered();
  int asked = 0;
  for (const auto& job : workers[0]->asked<ListJob>()) {
    if (job.type != "NS::Item") continue;
    ++asked;
    CHECK(std::get<ListJob>(job.operation).parent->parameters != "{}");
  }
  CHECK(asked == 2);
}

TEST_CASE_METHOD(ShapesFixture, "what is below a directory that is there and not listed is judged, too") {
  manifest = test::make_manifest({{"NS::Dir", "NS::Dir"}});
  system.add("NS::Dir", {.id = "/", .parent = ""});
  system.add("NS::Dir", {.id = "/a", .parent = "/"});
  system.add("NS::Dir", {.id = "/a/b", .parent = "/a"});
  system.add("NS::Dir", {.id = "/a/c", .parent = "/a"});
  start_discovered();
  CHECK(listed("NS::Dir").size() == 4);
  system.remove("NS::Dir", "/a/c");
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (list == nullptr || !list->parent || list->parent->native_id != "/") return {};
    return JobResult(ListResult{{}, {}, {}, 0});
  };
  discover();
  CHECK(state_of("NS::Dir", "/a") == "present");
  CHECK(state_of("NS::Dir", "/a/b") == "present");
  CHECK(state_of("NS::Dir", "/a/c") == "vanished");
}

TEST_CASE_METHOD(ShapesFixture, "what lies in something that outlives its parent is there with it") {
  manifest = test::make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}, {"NS::Part", "NS::Item"}});
  manifest.types[1].contained = false;
  system.add("NS::Item", {.id = "i", .parent = "a"});
  system.add("NS::Part", {.id = "p", .parent = "i"});
  start_discovered();
  events();
  system.remove("NS::Box", "a");
  discover();
  CHECK(state_of("NS::Item", "i") == "present");
  CHECK(state_of("NS::Part", "p") == "present");
  CHECK(resource_events() == Strings{"vanished:a"});
}
