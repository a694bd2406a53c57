// What filters leave out, of a plugin and newly, with what lies in it.
#include <algorithm>
#include <functional>

#include <catch2/catch.hpp>

#include "coordinator/compiled_queries.h"
#include "coordinator/filter.h"
#include "support/commands_fixture.h"
#include "support/identity_fixture.h"

using namespace muster;
using test::CommandsFixture;
using test::FakeWorker;
using test::IdentityFixture;
using Strings = std::vector<std::string>;

namespace {

struct ForgottenFixture : CommandsFixture {
  /// The stack lets go of all that it has while such a job of a run is held.
  void forget_during(const std::function<bool(const Job&)>& is_held) {
    bool held = false;
    worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
      if (!is_held(job)) return {};
      held = true;
      return FakeWorker::Hold{};
    };
    api("discover");
    wait_until([&] { return held; });
    REQUIRE(api("forget", {{"stack", "shop"}, {"all", true}}).contains("count"));
    worker().on_job = {};
    worker().release();
    finish_runs();
  }
};

}  // namespace

TEST_CASE_METHOD(IdentityFixture, "what a filter of the plugin excludes is counted and not stored") {
  SECTION("of the manifest") {
    manifest.filters = {kind_filter(FilterAction::kExclude, "small")};
  }
  SECTION("of the target") {
    system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  }
  SECTION("of the configuration") {
    config.targets[0].filters = {kind_filter(FilterAction::kExclude, "small")};
  }
  SECTION("by what is included") {
    config.targets[0].filters = {kind_filter(FilterAction::kInclude, "big")};
  }
  start_discovered();
  const auto report = last_report();
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "NS::Box")["filtered"] == 1);
  CHECK(scan_of(report, "NS::Box")["new"] == 1);
  CHECK(listed("NS::Box") == Strings{"a"});
  CHECK(listed("NS::Item") == Strings{"a1"});  // children of a filtered parent are filtered
  CHECK(resource_events() == Strings{"discovered:a", "discovered:a1"});
}

TEST_CASE_METHOD(IdentityFixture, "an object whose id one in a place that is left out has taken is gone") {
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  system.thing("NS::Item", "a1").uid = "u-old";
  start_discovered();
  events();
  system.remove("NS::Item", "a1");
  system.add("NS::Item", {.id = "a1", .uid = "u-new", .parent = "b"});
  for (int i = 0; i < 2; ++i) CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Item", "a1") == "vanished");
  CHECK(resource_events() == Strings{"vanished:a1"});
}

TEST_CASE_METHOD(IdentityFixture, "what filters look at beyond the size of resources is counted for the whole target") {
  std::string list = "[0";
  for (int i = 1; i < 1500; ++i) list += "," + std::to_string(i);
  const auto many = R"({"kind":"big","list":)" + list + "]}";
  for (int i = 0; i < 20; ++i) system.add("NS::Box", {.id = "many" + std::to_string(i), .properties = many});
  // Each alone is within what one evaluation may look at.
  const PropertyMatch squared{"$.list[?$.list[?@<0]]", MatchOp::kExists, ""};
  CHECK(FilterSet::compile({{{}, {squared}, FilterAction::kExclude}}).value().judge("NS::Box", many).value());
  system.inspection.filters = {{{"NS::Box"}, {squared}, FilterAction::kExclude},
                               kind_filter(FilterAction::kExclude, "small")};
  start_discovered();
  const auto report = last_report();
  CHECK(report["state"] == "partial");
  CHECK(scan_of(report, "NS::Box")["errors"] == 19);
  CHECK(listed("NS::Box") == Strings{"a", "many0"});  // and what is small is judged as ever
  REQUIRE(report["problems"].size() == 2);
  CHECK(report["problems"][0]["code"] == "TOO_LARGE");
  CHECK_THAT(report["problems"][0]["message"].get<std::string>(), Catch::StartsWith("many1: filter: "));
  CHECK(report["problems"][1]["message"] == "18 more could not be judged by the filters");
}

TEST_CASE_METHOD(IdentityFixture, "filters that are too costly to compile end a run as partial, and say so") {
  MatchFilter costly{{}, {}, FilterAction::kExclude};
  for (int i = 0; i < 256; ++i) {
    costly.conditions.emplace_back(
        PropertyMatch{"$.kind", MatchOp::kRegex, "\"^(.{0,90}){0,1}.*b" + std::to_string(i) + "$\""});
  }
  SECTION("of the manifest") {
    manifest.filters = {costly};
  }
  SECTION("of the target") {
    system.inspection.filters = {costly};
  }
  start_discovered();
  const auto report = last_report();
  CHECK(report["state"] == "partial");
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["code"] == "INVALID_REQUEST");
  const auto message = report["problems"][0]["message"].get<std::string>();
  CHECK_THAT(message, Catch::StartsWith("a filter cannot be used: filter 1, condition ") &&
                          Catch::EndsWith(": too costly to compile, together with what stands before it"));
}

TEST_CASE_METHOD(IdentityFixture, "what is said of a filter that cannot be used is bounded, however long that is") {
  const std::string endless(500'000, 'a');
  PropertyMatch match{"$.kind", MatchOp::kEq, "\"small\""};
  SECTION("its path") {
    match.path = endless;
  }
  SECTION("its value") {
    match.value = "\"" + endless;
  }
  system.inspection.filters = {{{"NS::Box"}, {match}, FilterAction::kExclude}};
  start_discovered();
  const auto report = last_report();
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["code"] == "INVALID_REQUEST");
  const auto message = report["problems"][0]["message"].get<std::string>();
  CHECK_THAT(message, Catch::StartsWith("a filter cannot be used: filter 1, condition 1: "));
  CHECK(message.size() <= 32 * 1024);
}

TEST_CASE_METHOD(IdentityFixture, "label queries that are too costly to compile leave the native ids, and say so") {
  manifest.label_query = "$[?search(@, '.{900}')]";
  start_discovered();
  const auto report = last_report();
  CHECK(listed("NS::Box") == Strings{"a", "b"});
  REQUIRE(report["problems"].size() == 1);
  CHECK_THAT(report["problems"][0]["message"].get<std::string>(),
             Catch::StartsWith("a label query cannot be used: label query of ") && Catch::Contains("128 KiB"));
}

TEST_CASE("filters and labels are compiled once for all who share them") {
  const auto of = [](const std::string& kind) {
    return std::vector<MatchFilter>{IdentityFixture::kind_filter(FilterAction::kExclude, kind)};
  };
  CompiledQueries queries;
  const auto first = queries.filters("NS", of("small")).value();
  CHECK(queries.filters("NS", of("small")).value() == first);
  CHECK(queries.filters("NS", of("big")).value() != first);
  CHECK(queries.filters("OTHER", of("small")).value() != first);
  CHECK(queries.filters("NS", of("small")).value() == first);
  for (std::size_t i = 0; i < CompiledQueries::kKept; ++i) queries.filters("NS", of(std::to_string(i))).value();
  CHECK(queries.filters("NS", of("small")).value() != first);
  CHECK_FALSE(first->judge("NS::Box", R"({"kind":"small"})").value());  // who holds it keeps it

  const auto manifest = std::make_shared<const Manifest>(IdentityFixture::with_parts());
  const auto labels = queries.labels(manifest).value();
  CHECK(queries.labels(manifest).value() == labels);
  CHECK(queries.labels(std::make_shared<const Manifest>(*manifest)).value() != labels);
}

TEST_CASE_METHOD(IdentityFixture, "what a filter newly excludes leaves as filtered, with what is below it") {
  start_discovered();
  events();
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(state_of("NS::Box", "b") == "filtered");
  CHECK(state_of("NS::Item", "b1") == "filtered");
  CHECK(listed("NS::Box") == Strings{"a"});
  CHECK(scan_of(report, "NS::Box")["missing"] == 0);
  CHECK(resource_events() == Strings{"filtered:b", "filtered:b1"});
  discover();
  CHECK(resource_events().empty());  // once
  system.inspection.filters.clear();
  discover();
  CHECK(resource_events() == Strings{"discovered:b", "discovered:b1"});
  CHECK(listed("NS::Item") == Strings{"a1", "b1"});
}

TEST_CASE_METHOD(IdentityFixture, "what gets a name that a filter excludes leaves as filtered, and has not vanished") {
  system.list_properties = GENERATE(false, true);
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  start_discovered();
  events();
  const auto a = row("NS::Box", "a").row;
  auto& box = system.thing("NS::Box", "a");
  box.id = "z";
  box.properties = R"({"kind":"small"})";
  system.thing("NS::Item", "a1").parent = "z";
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(listed("NS::Box").empty());
  CHECK(store->one(a).value()->state == ResourceState::kFiltered);
  CHECK(resource_events() == Strings{"filtered:a", "filtered:a1"});
  CHECK(scan_of(report, "NS::Box")["missing"] == 0);
  CHECK(scan_of(report, "NS::Box")["filtered"] == 2);
  for (int i = 0; i < 2; ++i) CHECK(discover()["state"] == "complete");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(IdentityFixture, "what is below what a filter newly excludes leaves when its type is not looked at") {
  start_discovered();
  events();
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  discover({{"types", {"NS::Box"}}});
  CHECK(state_of("NS::Item", "b1") == "filtered");
  CHECK(resource_events() == Strings{"filtered:b", "filtered:b1"});
}

TEST_CASE_METHOD(IdentityFixture, "what filters left out is not read again because a listing failed") {
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  start_discovered();
  workers.at(0)->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "not for you", {}, 0});
  };
  REQUIRE(discover()["state"] == "partial");
  workers.at(0)->on_job = {};
  workers.at(0)->jobs.clear();
  REQUIRE(discover()["state"] == "complete");
  for (const auto& job : workers.at(0)->asked<ReadJob>()) {
    const auto& ids = std::get<ReadJob>(job.operation).native_ids;
    CHECK(std::ranges::find(ids, "b") == ids.end());
  }
}

TEST_CASE_METHOD(IdentityFixture, "what new filters have not judged, for it could not be read, they judge later") {
  config.retry.attempts = 1;
  start_discovered();
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || job.type != "NS::Box") return {};
    return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
  };
  CHECK(discover()["state"] == "partial");
  CHECK(listed("NS::Box") == Strings{"a", "b"});
  workers[0]->on_job = {};
  discover();
  CHECK(listed("NS::Box") == Strings{"a"});
}

TEST_CASE_METHOD(IdentityFixture, "what a run that was cut short has taken in is judged by the filters of before") {
  system.list_properties = GENERATE(false, true);
  if (system.list_properties) manifest.types[0].list_gives = ListGives::kProperties;
  system.page = 2;
  system.add("NS::Box", {.id = "c", .properties = R"({"kind":"big"})"});
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  start_discovered();
  REQUIRE(listed("NS::Box") == Strings{"a", "c"});
  system.inspection.filters.clear();
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (list == nullptr || job.type != "NS::Box" || list->page_token.empty()) return {};
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return listed("NS::Box") == Strings{"a", "b", "c"}; });
  advance(Millis(1'000));  // and committed
  workers[0]->on_job = {};
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  restart();
  discover();
  CHECK(listed("NS::Box") == Strings{"a", "c"});
}

TEST_CASE_METHOD(IdentityFixture, "what was filtered and is kept again is read at each run from then on") {
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  start_discovered();
  REQUIRE(listed("NS::Box") == Strings{"a"});
  SECTION("for other filters are asked") {
    system.inspection.filters = {kind_filter(FilterAction::kExclude, "tiny")};
    discover();
  }
  SECTION("for it has changed, which is seen after some runs") {
    system.thing("NS::Box", "b").properties = R"({"kind":"big"})";
    for (int i = 0; i < 16; ++i) discover();
  }
  REQUIRE(listed("NS::Box") == Strings{"a", "b"});
  for (int i = 0; i < 3; ++i) {
    const auto properties = R"({"kind":"big","n":)" + std::to_string(i) + "}";
    system.thing("NS::Box", "b").properties = properties;
    discover();
    CHECK(row("NS::Box", "b").properties == properties);
  }
}

TEST_CASE_METHOD(IdentityFixture, "children of a parent that is filtered are filtered, contained or not") {
  manifest.types[1].contained = false;
  start_discovered();
  events();
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  discover();
  CHECK(state_of("NS::Item", "b1") == "filtered");
}

TEST_CASE_METHOD(IdentityFixture, "an object that moves away from a parent that is filtered stays") {
  system.page = 1;
  system.add("NS::Box", {.id = "c", .properties = R"({"kind":"big"})", .uid = "u-c"});
  system.add("NS::Item", {.id = "c1", .parent = "c"});
  start_discovered();
  events();
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  system.thing("NS::Item", "b1").parent = "c";
  discover();
  CHECK(row("NS::Item", "b1").parent_native_id == "c");
  CHECK(state_of("NS::Item", "b1") == "present");
}

TEST_CASE_METHOD(IdentityFixture, "what lies in an object that moves away from a parent that is filtered stays") {
  manifest = with_parts();
  manifest.types[0].read_batch = 1;
  start_moving();
  bool seen = false;  // below its new parent, while nothing is known of the old one
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr) return {};
    const auto asks_for = [&](const char* id) { return std::ranges::count(read->native_ids, id) > 0; };
    seen = seen || asks_for("b1");
    return asks_for("b") || asks_for("b1") ? FakeWorker::Behaviour(FakeWorker::Hold{}) : std::monostate{};
  };
  SECTION("when all is looked at") {
    api("discover");
  }
  SECTION("when its own type is not looked at") {
    api("discover", {{"types", {"NS::Item"}}});
  }
  wait_until([&] { return seen; });
  workers[0]->on_job = {};
  workers[0]->release();
  finish_runs();
  CHECK(row("NS::Item", "b1").parent_native_id == "c");
  CHECK(state_of("NS::Part", "part") == "present");
  CHECK(resource_events() == Strings{"filtered:b"});
}

TEST_CASE_METHOD(IdentityFixture, "an object whose change makes a filter exclude it leaves") {
  config.targets[0].filters = {kind_filter(FilterAction::kExclude, "secret")};
  start_discovered();
  events();
  system.thing("NS::Box", "b").properties = R"({"kind":"secret"})";
  discover();
  CHECK(state_of("NS::Box", "b") == "filtered");
  CHECK(row("NS::Box", "b").properties == R"({"kind":"small"})");
}

TEST_CASE_METHOD(IdentityFixture, "when the filters cannot be asked for, the last ones hold and the run says so") {
  system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
  system.inspection.system.clear();  // a plugin that does not say which it is
  start_discovered();
  events();
  workers[0]->on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<InspectJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "no filters for you", {}, 0});
  };
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(report["problems"][0]["code"] == "ACCESS_DENIED");
  CHECK(listed("NS::Box") == Strings{"a"});
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(IdentityFixture, "a target whose filters were never known is not scanned") {
  auto& worker = add_worker();
  worker.on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<InspectJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "no filters for you", {}, 0});
  };
  start();
  finish_runs();
  CHECK(last_report()["state"] == "partial");
  CHECK(worker.asked<ListJob>().empty());
  CHECK(listed("NS::Box").empty());
}

TEST_CASE_METHOD(IdentityFixture,
                 "a filter that cannot be used stops the target's scan instead of letting all through") {
  system.inspection.filters = {{{}, {PropertyMatch{"$.[", MatchOp::kExists, {}}}, FilterAction::kExclude}};
  start_discovered();
  CHECK(last_report()["state"] == "partial");
  CHECK(last_report()["problems"][0]["message"].get<std::string>().find("filter") != std::string::npos);
  CHECK(listed("NS::Box").empty());
}

TEST_CASE_METHOD(IdentityFixture, "what a filter cannot judge is neither taken in nor left out") {
  system.inspection.filters = {
      {{"NS::Box"}, {PropertyMatch{"$.n[?$..no]", MatchOp::kExists, ""}}, FilterAction::kExclude}};
  start_discovered();
  events();
  auto n = Json::array();
  for (int i = 0; i < 3500; ++i) n.push_back(1);  // each of them has all of them looked at
  for (const auto* id : {"b", "new"}) {
    if (state_of("NS::Box", id) == "absent") system.add("NS::Box", {.id = id});
    system.thing("NS::Box", id).properties = Json{{"n", n}}.dump();
  }
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(scan_of(report, "NS::Box")["errors"] == 2);
  REQUIRE(report["problems"].size() >= 2);
  CHECK(report["problems"][0]["code"] == "TOO_LARGE");
  CHECK(row("NS::Box", "b").properties == R"({"kind":"small"})");
  CHECK(state_of("NS::Box", "b") == "present");
  CHECK(state_of("NS::Box", "new") == "absent");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(IdentityFixture, "what a label query cannot be used for has its id for a label, and the run says so") {
  manifest.types[0].label_query = "$[";
  start_discovered();
  const auto report = last_report();
  REQUIRE(report["problems"].size() == 1);
  CHECK_THAT(report["problems"][0]["message"].get<std::string>(), Catch::Contains("a label query cannot be used"));
  CHECK(row("NS::Box", "a").label == "a");
}

TEST_CASE_METHOD(CommandsFixture, "a filtered object with the uid of a managed one that is there stays left out") {
  start_discovered();
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  system.things["NS::Box"].front().uid = "u-a";
  system.inspection.filters = {
      {{"NS::Box"}, {PropertyMatch{"$.name", MatchOp::kEq, "\"hidden\""}}, FilterAction::kExclude}};
  discover();
  system.add("NS::Box", {.id = "0", .properties = R"({"name":"hidden"})", .uid = "u-a"});
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "NS::Box")["filtered"] == 1);
  CHECK(state_of("NS::Box", "0") == "absent");
}

TEST_CASE_METHOD(CommandsFixture, "what is managed no more is judged by the filters like all else") {
  system.list_properties = GENERATE(false, true);
  start_discovered();
  apply(stack({box("a"), box("b")}));
  system.inspection.filters = {{{"NS::Box"}, {PropertyMatch{"$.name", MatchOp::kEq, "\"a\""}}, FilterAction::kExclude}};
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box").size() == 2);
  for (const auto& thing : system.things["NS::Box"]) store->release(row("NS::Box", thing.id).row).value();
  events();
  const auto report = discover();
  CHECK(scan_of(report, "NS::Box")["filtered"] == 1);
  CHECK(scan_of(report, "NS::Box")["changed"] == 0);
  CHECK(listed("NS::Box").size() == 1);
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box").size() == 1);
}

TEST_CASE_METHOD(ForgottenFixture,
                 "what is forgotten while a run looks, and has changed, is judged by the filters, too") {
  system.list_properties = true;
  start_discovered();
  apply(stack({box("a"), box("b")}));
  system.inspection.filters = {{{"NS::Box"}, {PropertyMatch{"$.name", MatchOp::kEq, "\"a\""}}, FilterAction::kExclude}};
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box").size() == 2);
  for (auto& thing : system.things["NS::Box"]) {
    auto properties = Json::parse(thing.properties);
    properties["note"] = "changed by hand";
    thing.properties = properties.dump();
  }
  forget_during([](const Job& job) { return std::holds_alternative<ListJob>(job.operation) && job.type == "NS::Box"; });
  discover();
  CHECK(listed("NS::Box").size() == 1);
}

TEST_CASE_METHOD(ForgottenFixture,
                 "what is forgotten before it is known to be renamed leaves where filters exclude it") {
  system.list_properties = true;
  start_discovered();
  apply(stack({box("a")}));
  auto& thing = system.things["NS::Box"].front();
  thing.uid = "u-a";
  system.inspection.filters = {
      {{"NS::Box"}, {PropertyMatch{"$.name", MatchOp::kEq, "\"hidden\""}}, FilterAction::kExclude}};
  discover();
  const auto known = row("NS::Box", thing.id).row;
  thing.id = "z";
  thing.properties = R"({"name":"hidden"})";
  forget_during([](const Job& job) { return std::holds_alternative<ReadJob>(job.operation); });
  CHECK(store->one(known).value()->state == ResourceState::kFiltered);
  discover();
  CHECK(listed("NS::Box").empty());
}

TEST_CASE_METHOD(IdentityFixture, "labels follow a plugin's new query") {
  manifest.types[0].label_query = "$.kind";
  start_discovered();
  CHECK(row("NS::Box", "a").label == "big");
  events();
  auto newer = manifest;
  newer.version = "2";
  newer.types[0].label_query = GENERATE("$.name", "");
  for (auto* id : {"a", "b"}) {
    INFO(id);
    REQUIRE(row("NS::Box", id).version == 1);
  }
  remove_worker("w1");
  add_worker("w2", newer);
  advance(Millis(20'000));
  discover();
  CHECK(row("NS::Box", "a").label == "a");
  CHECK(row("NS::Box", "a").version == 1);
  CHECK(resource_events().empty());
}
