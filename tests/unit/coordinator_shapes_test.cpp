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

TEST_CASE_METHOD(ShapesFixture, "of a type of which nothing can be read a whole listing tells what is gone") {
  manifest.types[0].operations = {Operation::kList};
  system.list_properties = true;
  start_discovered();
  const auto c = row("NS::Box", "c").id;
  events();
  system.remove("NS::Box", "a");
  system.thing("NS::Box", "c").id = "z";
  system.add("NS::Box", {.id = "d"});
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    CHECK((job.type != "NS::Box" || std::holds_alternative<ListJob>(job.operation)));
    return {};
  };
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Box", "z").id == c);
  CHECK(resource_events() == Strings{"discovered:d", "renamed:z", "vanished:a"});
}

TEST_CASE_METHOD(ShapesFixture, "of a type of which nothing can be read a part of a listing tells nothing") {
  manifest.types[0].operations = {Operation::kList};
  system.list_properties = true;
  system.add("NS::Box", {.id = "e"});
  start_discovered();
  events();
  system.remove("NS::Box", "a");
  system.thing("NS::Box", "c").id = "z";
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (list == nullptr || job.type != "NS::Box") return {};
    ListResult page;
    page.items = {{"z", "u-c", "{}"}};
    page.problems = {{"", Error{Errc::kAccessDenied, "the rest is not for you", {}, 0}}};
    return JobResult(page);
  };
  CHECK(discover()["state"] == "partial");
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(state_of("NS::Box", "c") == "stale");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(ShapesFixture, "what lies in its own kind and outlives it is judged by a read of its own") {
  manifest = test::make_manifest({{"NS::Dir", "NS::Dir"}});
  manifest.types[0].contained = false;
  system.add("NS::Dir", {.id = "/", .parent = ""});
  system.add("NS::Dir", {.id = "/a", .parent = "/"});
  system.add("NS::Dir", {.id = "/a/b", .parent = "/a"});
  start_discovered();
  events();
  system.remove("NS::Dir", "/a");
  const bool gone = GENERATE(false, true);
  if (gone) system.remove("NS::Dir", "/a/b");
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Dir", "/a/b") == (gone ? "vanished" : "present"));
  CHECK(resource_events() == (gone ? Strings{"vanished:/a", "vanished:/a/b"} : Strings{"vanished:/a"}));
}

TEST_CASE_METHOD(ShapesFixture, "a type that nobody serves any more is not known to be as it was") {
  system.add("NS::Item", {.id = "i", .parent = "a"});
  start_discovered();
  const bool here = GENERATE(false, true);
  if (here) {
    system.inspection.types = {"NS::Box"};  // there is none of the other on this target any more
  } else {
    auto newer = test::make_manifest({{"NS::Box", ""}});
    newer.version = "2";
    remove_worker("w1");
    add_worker("w2", newer);
    advance(Millis(20'000));
  }
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "a") == "present");
  CHECK(state_of("NS::Item", "i") == "stale");
  system.inspection.types.clear();
  remove_worker(here ? "w1" : "w2");
  add_worker("w3", manifest);
  advance(Millis(20'000));
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Item", "i") == "present");
}

TEST_CASE_METHOD(ShapesFixture, "what lies in something that cannot be looked at was not all listed") {
  start_discovered();
  system.thing("NS::Box", "a").properties = "no object";
  system.add("NS::Item", {.id = "i", .parent = "a"});
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(scan_of(report, "NS::Box")["complete"] == false);
  CHECK(scan_of(report, "NS::Item")["complete"] == false);
}

TEST_CASE_METHOD(ShapesFixture, "the same number in other digits is no change") {
  system.thing("NS::Box", "a").properties = R"({"size":1})";
  start_discovered();
  events();
  system.thing("NS::Box", "a").properties = R"({"size":1.0})";
  for (int runs = 0; runs < 2; ++runs) {
    const auto report = discover();
    CHECK(scan_of(report, "NS::Box")["changed"] == 0);
    CHECK(scan_of(report, "NS::Box")["unchanged"] == 2);
  }
  CHECK(row("NS::Box", "a").version == 1);
  CHECK(resource_events().empty());
}
