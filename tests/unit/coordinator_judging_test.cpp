// What a run makes of objects that are not where they were: gone, renamed, hidden, or another's by now.
#include <algorithm>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Strings = std::vector<std::string>;

namespace {

/// Boxes that filters tell apart by their kind.
struct JudgingFixture : CoordinatorFixture {
  JudgingFixture() {
    manifest = make_manifest({{"NS::Box", ""}});
    for (const auto* id : {"a", "b"}) {
      system.add("NS::Box", {.id = id, .properties = R"({"kind":"big"})", .uid = std::string("u-") + id});
    }
  }
  /// How a read of just this id is answered from now on.
  void when_read(const std::string& id, std::function<FakeWorker::Behaviour()> answer) {
    workers.at(0)->on_job = [id, answer = std::move(answer)](const Job& job) -> FakeWorker::Behaviour {
      const auto* read = std::get_if<ReadJob>(&job.operation);
      return read != nullptr && read->native_ids == Strings{id} ? answer() : FakeWorker::Behaviour();
    };
  }
  /// From now on the list leaves this one out.
  void hide(const std::string& id) {
    workers.at(0)->on_job = [this, id](const Job& job) -> FakeWorker::Behaviour {
      if (!std::holds_alternative<ListJob>(job.operation)) return {};
      ListResult page;
      for (const auto& each : system.things["NS::Box"]) {
        if (each.id != id) page.items.push_back({each.id, each.uid, {}});
      }
      return JobResult(std::move(page));
    };
  }
  /// The ids that each read asked for, since the last call.
  std::vector<Strings> reads() {
    std::vector<Strings> ids;
    for (const auto& job : workers.at(0)->asked<ReadJob>()) ids.push_back(std::get<ReadJob>(job.operation).native_ids);
    workers.at(0)->jobs.clear();
    return ids;
  }
  void add_first(FakeSystem::Thing thing) {
    auto& boxes = system.things["NS::Box"];
    boxes.insert(boxes.begin(), std::move(thing));
  }
};

}  // namespace

TEST_CASE_METHOD(JudgingFixture, "an object whose read fails for now is asked for again before it is judged") {
  start_discovered();
  events();
  system.remove("NS::Box", "b");
  int reads = 0;
  when_read("b", [&]() -> FakeWorker::Behaviour {
    if (reads++ > 0) return {};
    return JobResult(ReadResult{{Error{Errc::kServiceUnavailable, "not now", {}, 0}}});
  });
  CHECK(discover()["state"] == "complete");
  CHECK(reads == 2);
  CHECK(state_of("NS::Box", "b") == "vanished");
}

TEST_CASE_METHOD(JudgingFixture, "what is hidden from the list is seen as it is, also where its uid was not known") {
  const bool known = GENERATE(false, true);
  if (!known) system.thing("NS::Box", "b").uid.clear();
  start_discovered();
  events();
  system.thing("NS::Box", "b") = {.id = "b", .properties = R"({"kind":"huge"})", .uid = "u-b"};
  hide("b");
  CHECK(discover()["state"] == "complete");
  CHECK(resource_events() == Strings{"changed:b"});
  CHECK(row("NS::Box", "b").properties == R"({"kind":"huge"})");
  CHECK(row("NS::Box", "b").uid == "u-b");
}

TEST_CASE_METHOD(JudgingFixture, "an id that can be read is not renamed, though the answer names no uid") {
  system.list_properties = true;
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  add_first({.id = "link", .uid = "u-a"});
  when_read("a", [] { return JobResult(ReadResult{{Item{"a", "", "{}"}}}); });
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Box", "a").id == before);
  CHECK(resource_events() == Strings{"discovered:link"});
}

TEST_CASE_METHOD(JudgingFixture, "of a type that cannot be read, what is listed under its old id is not renamed") {
  manifest.types[0].operations = {Operation::kList};
  system.list_properties = true;
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  SECTION("listed") {
    add_first({.id = "link", .uid = "u-a"});
    CHECK(discover()["state"] == "complete");
    CHECK(row("NS::Box", "a").id == before);
    CHECK(resource_events() == Strings{"discovered:link"});
  }
  SECTION("not listed any more") {
    system.thing("NS::Box", "a").id = "z";
    const auto report = discover();
    CHECK(report["state"] == "complete");
    CHECK(scan_of(report, "NS::Box")["renamed"] == 1);
    CHECK(row("NS::Box", "z").id == before);
    CHECK(resource_events() == Strings{"renamed:z"});
  }
}

TEST_CASE_METHOD(JudgingFixture, "another id of what the filters leave out in the same run is an object of its own") {
  system.list_properties = true;
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  system.inspection.filters = {
      {{"NS::Box"}, {PropertyMatch{"$.kind", MatchOp::kEq, "\"small\""}}, FilterAction::kExclude}};
  system.thing("NS::Box", "a").properties = R"({"kind":"small"})";
  add_first({.id = "z", .properties = R"({"kind":"big"})", .uid = "u-a"});
  when_read("a", [this]() -> FakeWorker::Behaviour {
    system.remove("NS::Box", "a");
    return {};
  });
  CHECK(discover()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"b", "z"});
  CHECK(row("NS::Box", "z").id != before);
  CHECK(resource_events() == Strings{"discovered:z", "filtered:a"});
}

TEST_CASE_METHOD(JudgingFixture,
                 "what nobody manages is gone at once, also where its type may take to show what is made") {
  manifest.types[0].settle = std::chrono::minutes(10);
  start_discovered();
  system.remove("NS::Box", "b");
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "b") == "vanished");
}

TEST_CASE_METHOD(JudgingFixture,
                 "what outlived the last object that things of its type lay in is judged all the same") {
  manifest = make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}});
  manifest.types[1].contained = false;
  system.add("NS::Item", {.id = "there", .parent = "a"});
  system.add("NS::Item", {.id = "gone", .parent = "b"});
  start_discovered();
  system.things["NS::Box"].clear();
  system.remove("NS::Item", "gone");
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Item", "there") == "present");
  CHECK(state_of("NS::Item", "gone") == "vanished");
}

TEST_CASE_METHOD(JudgingFixture, "objects that come while others go are not taken for those") {
  for (int i = 0; i < 16; ++i) {
    const auto id = "old" + std::to_string(i);
    system.add("NS::Box", {.id = id, .uid = "u-" + id});
  }
  start_discovered();
  events();
  Strings expected;
  for (int i = 0; i < 16; ++i) {
    const auto id = "new" + std::to_string(i);
    system.thing("NS::Box", "old" + std::to_string(i)) = {.id = id, .uid = "u-" + id};
    expected.push_back("discovered:" + id);
    expected.push_back("vanished:old" + std::to_string(i));
  }
  CHECK(discover()["state"] == "complete");
  std::ranges::sort(expected);
  CHECK(resource_events() == expected);
}

TEST_CASE_METHOD(JudgingFixture, "old ids of what was renamed are asked for together") {
  system.list_properties = true;
  system.page = 1;
  start_discovered();
  reads();
  for (auto& box : system.things["NS::Box"]) box.id += "-new";
  discover();
  const auto asked = reads();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].size() == 2);
}

TEST_CASE_METHOD(JudgingFixture, "of a tree that is missing the top is asked for, and the rest goes with it") {
  manifest = make_manifest({{"NS::Dir", "NS::Dir"}});
  system.list_properties = true;
  system.add("NS::Dir", {.id = "/"});
  system.add("NS::Dir", {.id = "/x", .parent = "/"});
  for (const auto* id : {"/x/1", "/x/2", "/x/3", "/x/4"}) system.add("NS::Dir", {.id = id, .parent = "/x"});
  start_discovered();
  events();
  reads();
  system.things["NS::Dir"].resize(1);
  CHECK(discover()["state"] == "complete");
  CHECK(reads() == std::vector<Strings>{{"/x"}});
  for (const auto& event : events("resource.")) {
    CHECK(event["data"]["reason"] == (event["data"]["native_id"] == "/x" ? "vanished" : "parent"));
  }
}

TEST_CASE_METHOD(CommandsFixture,
                 "what was renamed to an id is not renamed any more when a command made another of it") {
  system.names_are_ids = true;
  system.list_properties = true;
  system.add("NS::Box", {.id = "a", .properties = R"({"name":"a"})", .uid = "u-a"});
  start_discovered();
  const auto before = row("NS::Box", "a").row;
  system.things["NS::Box"].front() = {.id = "z", .properties = R"({"name":"z"})", .uid = "u-a"};
  bool held = false;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (held || read == nullptr || read->native_ids != Strings{"a"}) return {};
    held = true;
    return FakeWorker::Hold{};
  };
  api("discover");
  wait_until([&] { return held; });
  system.remove("NS::Box", "z");
  REQUIRE(apply(stack({box("z")}))["state"] == "complete");
  worker().release();
  finish_runs();
  CHECK(row("NS::Box", "z").uid == "uid-z");
  CHECK(row("NS::Box", "z").managed);
  CHECK(row("NS::Box", "z").row != before);
  CHECK(state_of("NS::Box", "a") == "vanished");
}

TEST_CASE_METHOD(JudgingFixture, "what may be gone or renamed is read in batches that the plugin can answer") {
  manifest.types[0].read_batch = 2;
  system.list_properties = true;
  for (const auto* id : {"c", "d", "e"}) system.add("NS::Box", {.id = id, .uid = std::string("u-") + id});
  start_discovered();
  events();
  reads();
  const bool renamed = GENERATE(false, true);
  if (renamed) {
    for (auto& box : system.things["NS::Box"]) box.id += "-new";
  } else {
    system.things["NS::Box"].clear();
  }
  const auto report = discover();
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "NS::Box")[renamed ? "renamed" : "missing"] == 5);
  const auto asked = reads();
  CHECK(asked.size() == 3);
  for (const auto& ids : asked) CHECK(ids.size() <= 2);
}

TEST_CASE_METHOD(JudgingFixture, "an old id whose read fails for now is asked for again before it is judged") {
  start_discovered();
  events();
  system.thing("NS::Box", "a").id = "z";
  int reads = 0;
  when_read("a", [&]() -> FakeWorker::Behaviour {
    if (reads++ > 0) return {};
    return JobResult(ReadResult{{Error{Errc::kServiceUnavailable, "not now", {}, 0}}});
  });
  CHECK(discover()["state"] == "complete");
  CHECK(reads == 2);
  CHECK(resource_events() == Strings{"renamed:z"});
}

TEST_CASE_METHOD(JudgingFixture, "what is throttled, one of a batch, is asked for when the plugin says") {
  start_discovered();
  system.remove("NS::Box", "b");
  std::vector<TimePoint> reads;
  when_read("b", [&]() -> FakeWorker::Behaviour {
    reads.push_back(clock.now());
    if (reads.size() > 1) return {};
    return JobResult(ReadResult{{Error{Errc::kThrottling, "slowly", Millis(5000), 0}}});
  });
  CHECK(discover()["state"] == "complete");
  REQUIRE(reads.size() == 2);
  CHECK(reads[1] - reads[0] >= Millis(5000));
}

TEST_CASE_METHOD(JudgingFixture, "what can be read is not gone, though the answer names no uid") {
  start_discovered();
  events();
  hide("b");
  const auto listing = workers[0]->on_job;
  workers[0]->on_job = [listing](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids != Strings{"b"}) return listing(job);
    return JobResult(ReadResult{{Item{"b", "", R"({"kind":"big"})"}}});
  };
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "b") == "present");
  CHECK(row("NS::Box", "b").uid == "u-b");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(JudgingFixture,
                 "the id that a renamed object had is another's, and that is one, listed twice or not") {
  system.list_properties = true;
  system.page = 1;
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  auto& boxes = system.things["NS::Box"];
  boxes = {{.id = "a", .uid = "u-new"}, {.id = "z", .uid = "u-a"}, {.id = "a", .uid = "u-new"}, boxes[1]};
  const auto report = discover();
  CHECK(row("NS::Box", "z").id == before);
  CHECK(resource_events() == Strings{"discovered:a", "renamed:z"});
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["code"] == "DUPLICATE_ID");
}

TEST_CASE_METHOD(JudgingFixture, "where all ids move on by one, each object is what it was, and the last is gone") {
  system.list_properties = true;
  manifest.types.resize(1);
  constexpr int kBoxes = 3000;  // a way over all of them for each would not end
  system.things = {};
  for (int i = 0; i < kBoxes; ++i) system.add("NS::Box", {.id = std::to_string(i), .uid = "u-" + std::to_string(i)});
  start_discovered();
  events();
  const auto first = row("NS::Box", "0").id, middle = row("NS::Box", "1500").id;
  for (int i = 0; i < kBoxes; ++i) system.things["NS::Box"][i].uid = "u-" + std::to_string(i - 1);
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Box", "1").id == first);
  CHECK(row("NS::Box", "1501").id == middle);
  const auto counts = scan_of(last_report(), "NS::Box");
  CHECK(counts["renamed"] == kBoxes - 1);
  CHECK(counts["new"] == 1);
  CHECK(counts["missing"] == 1);
}

// Of hard links, and of what a careless plugin says, one uid has several ids.
TEST_CASE_METHOD(JudgingFixture, "a run ends where ids have gone round, and one object has two of them") {
  system.list_properties = GENERATE(false, true);
  system.add("NS::Box", {.id = "c", .uid = "u-c"});
  start_discovered();
  const auto b = row("NS::Box", "b").id, c = row("NS::Box", "c").id;
  system.thing("NS::Box", "a").uid = "u-b";
  system.thing("NS::Box", "b").uid = "u-c";
  system.thing("NS::Box", "c").uid = "u-b";
  CHECK(discover()["state"] == "complete");
  CHECK(row("NS::Box", "c").id == b);  // of its two ids that with which the ring closes
  CHECK(row("NS::Box", "b").id == c);
  CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
}

TEST_CASE_METHOD(JudgingFixture, "what is listed elsewhere does not go with what it lay in, though it cannot be read") {
  config.retry.attempts = 1;
  manifest = make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}});
  system.add("NS::Item", {.id = "moves", .parent = "b"});
  start_discovered();
  system.remove("NS::Box", "b");
  system.thing("NS::Item", "moves").parent = "a";
  when_read("moves", [] { return JobResult(ReadResult{{Error{Errc::kAccessDenied, "no", {}, 0}}}); });
  CHECK(discover()["state"] == "partial");
  CHECK(state_of("NS::Box", "b") == "vanished");
  CHECK(state_of("NS::Item", "moves") == "present");
}

TEST_CASE_METHOD(CommandsFixture, "what cannot be read is not gone for a list that a command was faster than") {
  manifest.types.resize(1);
  std::erase(manifest.types[0].operations, Operation::kRead);
  system.names_are_ids = system.list_properties = true;
  system.page = 1;
  for (const auto* id : {"a", "b"}) system.add("NS::Box", {.id = id});
  start_discovered();
  REQUIRE(apply(stack({box("x", {{"size", 1}})}))["state"] == "complete");
  system.remove("NS::Box", "x");
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (list == nullptr) return {};
    if (list->page_token.empty()) return FakeWorker::Hold{};
    return JobResult(ListResult{{Item{"b", "", "{}"}}});  // of the same moment as the first page
  };
  api("discover");
  advance(Millis(200));
  const auto wanted = stack({box("x", {{"size", 2}})});
  REQUIRE(result_of(apply(wanted), "x") == "failed NOT_FOUND");
  REQUIRE(apply(wanted)["state"] == "complete");  // made anew
  REQUIRE(thing("x")["size"] == 2);
  worker().release();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(state_of("NS::Box", "x") == "present");
}

TEST_CASE_METHOD(JudgingFixture, "what has taken a renamed object's id is judged and named by its own properties") {
  system.list_properties = true;
  system.page = 1000;
  system.things.clear();
  manifest.label_query = "$.name";
  constexpr std::size_t kLongest = 200;
  const auto properties = [](const std::string& name, std::size_t length) {  // in another order than they are kept in
    std::string list = "[0";
    for (std::size_t i = 1; i < length; ++i) list += ",0";
    return R"({"name":")" + name + R"(","list":)" + list + "]}";
  };
  for (std::size_t n = 1; n < kLongest; ++n) {
    const auto id = std::to_string(n);
    system.add("NS::Box", {.id = id, .properties = properties("one", n), .uid = "u-" + id});
  }
  start_discovered();
  for (std::size_t n = 1; n < kLongest; ++n) {
    const auto id = std::to_string(n);
    system.thing("NS::Box", id).id = "moved-" + id;
    system.add("NS::Box", {.id = id, .properties = properties("two", n), .uid = "new-" + id});
  }
  CHECK(discover()["state"] == "complete");
  Strings misnamed;
  for (std::size_t n = 1; n < kLongest; ++n) {
    const auto id = std::to_string(n);
    if (row("NS::Box", id).label != "two") misnamed.push_back(id);
    if (row("NS::Box", "moved-" + id).label != "one") misnamed.push_back("moved-" + id);
  }
  CHECK(misnamed == Strings{});
}

TEST_CASE_METHOD(JudgingFixture, "properties are too large by what is kept of them, however short they came") {
  std::string list = "[1e14";
  for (int i = 0; i < 40'000; ++i) list += ",1e14";  // as 100000000000000.0 each
  system.thing("NS::Box", "a").properties = R"({"list":)" + list + "]}";
  start_discovered();
  CHECK(listed("NS::Box") == Strings{"b"});
  const auto report = last_report();
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["code"] == "LIMIT");
  CHECK_THAT(report["problems"][0]["message"].get<std::string>(),
             Catch::StartsWith("a: properties of ") && Catch::EndsWith(" bytes, the limit is 262144"));
}

TEST_CASE_METHOD(JudgingFixture, "what lies in an object of which a run learns nothing is looked at all the same") {
  manifest = make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}});
  manifest.types[1].operations = {Operation::kList};
  system.list_properties = true;
  system.add("NS::Item", {.id = "known", .parent = "b"});
  start_discovered();
  system.add("NS::Item", {.id = "fresh", .parent = "b"});
  const auto boxes_are_read = [this](const std::function<JobResult(const ReadJob&)>& answer) {
    workers.at(0)->on_job = [this, answer](const Job& job) -> FakeWorker::Behaviour {
      if (job.type != "NS::Box") return {};
      if (const auto* read = std::get_if<ReadJob>(&job.operation)) return answer(*read);
      ListResult page;
      for (const auto& each : system.things["NS::Box"]) page.items.push_back({each.id, each.uid, {}});
      return JobResult(std::move(page));
    };
  };
  SECTION("its properties cannot be taken") {
    system.thing("NS::Box", "b").properties = "[]";
  }
  SECTION("it cannot be read") {
    boxes_are_read([](const ReadJob& read) {
      return JobResult(ReadResult{{read.native_ids.size(), Error{Errc::kAccessDenied, "not for you", {}, 0}}});
    });
  }
  SECTION("another one is read in its place") {
    boxes_are_read([](const ReadJob& read) {
      return JobResult(ReadResult{{read.native_ids.size(), Item{"other", {}, "{}"}}});
    });
  }
  SECTION("nothing is read") {
    boxes_are_read([](const ReadJob&) { return JobResult(Error{Errc::kAccessDenied, "not for you", {}, 0}); });
  }
  CHECK(discover()["state"] == "partial");
  CHECK(state_of("NS::Item", "known") == "present");
  CHECK(state_of("NS::Item", "fresh") == "present");
}

TEST_CASE_METHOD(JudgingFixture, "what lies in an object that no list shows, and that is there, is looked at") {
  manifest = make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}, {"NS::Part", "NS::Item"}});
  SECTION("and can be read") {}
  SECTION("and can only be listed") {
    manifest.types[1].operations = manifest.types[2].operations = {Operation::kList};
    system.list_properties = true;
  }
  system.add("NS::Item", {.id = "known", .parent = "b"});
  system.add("NS::Part", {.id = "part", .parent = "known"});
  start_discovered();
  system.add("NS::Item", {.id = "fresh", .parent = "b"});
  system.add("NS::Part", {.id = "new", .parent = "fresh"});
  workers.at(0)->on_job = [this](const Job& job) -> FakeWorker::Behaviour {
    if (job.type != "NS::Box" || !std::holds_alternative<ListJob>(job.operation)) return {};
    return JobResult(ListResult{{{"a", system.thing("NS::Box", "a").uid, {}}}, {}, {}, {}});
  };
  CHECK(discover()["state"] == "complete");
  for (const auto* id : {"known", "fresh"}) CHECK(state_of("NS::Item", id) == "present");
  for (const auto* id : {"part", "new"}) CHECK(state_of("NS::Part", id) == "present");
}
