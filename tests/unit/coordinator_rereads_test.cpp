// What a run does not read, and what is read without a listing: ids that were filtered out before, and drift.
#include <algorithm>

#include "support/commands_fixture.h"
#include "support/failing_store.h"

using namespace muster;
using test::CommandsFixture;
using test::CoordinatorFixture;
using Strings = std::vector<std::string>;

namespace {

struct RereadsFixture : CoordinatorFixture {
  RereadsFixture() {
    system.add("NS::Box", {.id = "a", .properties = R"({"kind":"big"})", .uid = "u-a"});
    system.add("NS::Box", {.id = "b", .properties = R"({"kind":"small"})", .uid = "u-b"});
  }
  void leave_out(const std::string& kind) {
    config.targets[0].filters = {
        {{"NS::Box"}, {PropertyMatch{"$.kind", MatchOp::kEq, "\"" + kind + "\""}}, FilterAction::kExclude}};
  }
  /// Native ids that were asked for since the last call, sorted.
  Strings read_ids() {
    Strings ids;
    for (const auto& job : workers.at(0)->asked<ReadJob>()) {
      const auto& asked = std::get<ReadJob>(job.operation).native_ids;
      ids.insert(ids.end(), asked.begin(), asked.end());
    }
    workers.at(0)->jobs.clear();
    std::ranges::sort(ids);
    return ids;
  }
  std::size_t jobs_of_list() { return workers.at(0)->asked<ListJob>().size(); }
  Json next_run_of(const std::string& trigger) {
    wait_until([&] {
      const auto newest = last_report();
      return newest["trigger"] == trigger && newest["finished_at"].is_string();
    });
    return last_report();
  }
};

}  // namespace

TEST_CASE_METHOD(RereadsFixture, "what the filters left out is not read again in each run, but it is after some") {
  leave_out("small");
  start_discovered();
  CHECK(read_ids() == Strings{"a", "b"});
  int reads = 0;
  constexpr int kRuns = 32;
  for (int i = 0; i < kRuns; ++i) {
    const auto report = discover();
    CHECK(scan_of(report, "NS::Box")["filtered"] == 1);
    CHECK(scan_of(report, "NS::Box")["listed"] == 2);
    const auto ids = read_ids();
    reads += static_cast<int>(std::ranges::count(ids, "b"));
    CHECK(std::ranges::count(ids, "a") == 1);
  }
  CHECK(reads == 2);
}

TEST_CASE_METHOD(RereadsFixture, "another object under an id that was filtered out is read at once") {
  leave_out("small");
  start_discovered();
  discover();
  read_ids();
  system.thing("NS::Box", "b") = {.id = "b", .properties = R"({"kind":"big"})", .uid = "u-new"};
  discover();
  CHECK(read_ids() == Strings{"a", "b"});
  CHECK(listed("NS::Box") == Strings{"a", "b"});
  discover();
  CHECK(read_ids() == Strings{"a", "b"});
}

TEST_CASE_METHOD(RereadsFixture,
                 "what was filtered out is forgotten when it is gone, and when the filters are others") {
  leave_out("small");
  start_discovered();
  SECTION("gone, and back as it was") {
    system.remove("NS::Box", "b");
    discover();
    system.add("NS::Box", {.id = "b", .properties = R"({"kind":"big"})", .uid = "u-b"});
    discover();
    CHECK(listed("NS::Box") == Strings{"a", "b"});
  }
  SECTION("gone while other filters are asked for, and back as it was") {
    discover();  // so that what is remembered has not its turn at the end
    const auto b = system.thing("NS::Box", "b");
    system.remove("NS::Box", "b");
    leave_out("big");
    restart();
    finish_runs();
    system.add("NS::Box", b);
    discover();
    CHECK(listed("NS::Box") == Strings{"b"});
  }
  SECTION("other filters, and the first ones again") {
    discover();  // so that what is remembered has not its turn at the end
    leave_out("big");
    restart();
    finish_runs();
    CHECK(listed("NS::Box") == Strings{"b"});
    system.thing("NS::Box", "b").properties = R"({"kind":"huge"})";
    leave_out("small");
    restart();
    finish_runs();
    CHECK(listed("NS::Box") == Strings{"a", "b"});
    read_ids();
    discover();
    CHECK(read_ids() == Strings{"a", "b"});
  }
}

TEST_CASE_METHOD(RereadsFixture, "what was filtered out of one system is read on another that has its ids") {
  leave_out("small");
  system.thing("NS::Box", "b").uid.clear();
  const bool empty = GENERATE(false, true);  // nothing is known of the target but what was filtered out
  if (empty) system.remove("NS::Box", "a");
  start_discovered();
  discover();  // so that what is remembered has not its turn at the end
  system.thing("NS::Box", "b").properties = R"({"kind":"big"})";
  crash();
  config.targets[0].config = {R"({"root":"/elsewhere"})", {}};
  if (!empty && GENERATE(false, true)) {  // which its configuration does not tell
    config.targets[0].config = {};
    system.inspection.system = "system-2";
  }
  start();
  finish_runs();
  if (!empty) {
    REQUIRE(api("targets")["items"].at(0).at("state") == "changed");
    api("targets-accept", {{"target", "t"}});
    finish_runs();
  }
  CHECK(listed("NS::Box") == (empty ? Strings{"b"} : Strings{"a", "b"}));
}

TEST_CASE_METHOD(RereadsFixture, "drift is found by reading what is known, without a listing") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  start_discovered();
  events();
  workers[0]->jobs.clear();
  system.thing("NS::Box", "a").properties = R"({"kind":"huge"})";
  system.add("NS::Box", {.id = "c"});
  const auto report = next_run_of("drift");
  CHECK(report["state"] == "complete");
  CHECK(scan_of(report, "NS::Box")["read"] == 2);
  CHECK(scan_of(report, "NS::Box")["changed"] == 1);
  CHECK(scan_of(report, "NS::Box")["listed"] == 0);
  CHECK(jobs_of_list() == 0);
  for (const auto& job : workers[0]->asked<ReadJob>()) CHECK(job.priority == Priority::kDrift);
  CHECK(resource_events() == Strings{"changed:a"});
}

TEST_CASE_METHOD(RereadsFixture,
                 "what is not found of two targets is listed again once, in whatever order that shows") {
  auto& store_now = test::put_failing_before(store);
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  manifest.types.resize(1);
  manifest.types[0].read_batch = 1;
  add_target("u");
  for (int i = 0; i < 20; ++i) system.add("NS::Box", {.id = "x" + std::to_string(i)});
  start_discovered();
  system.things.clear();
  store_now.runs_written = 0;
  next_run_of("drift");
  finish_runs();
  CHECK(listed("NS::Box").empty());
  CHECK(store_now.runs_written < 10);  // of two runs, and not once for each time that one of the targets had its turn
}

TEST_CASE_METHOD(RereadsFixture, "all rows of a target are stale when any look finds another system there") {
  const bool reread = GENERATE(false, true);
  config.discovery_interval = Millis(0);
  if (reread) config.drift_interval = Millis(60'000);
  system.add("NS::Item", {.id = "a1", .parent = "a"});
  start_discovered();
  system.inspection.system = "system-2";
  const auto report = reread ? next_run_of("drift") : discover({{"types", {"NS::Box"}}});
  REQUIRE(report["problems"].at(0)["code"] == "TARGET_CHANGED");
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(state_of("NS::Item", "a1") == "stale");
}

TEST_CASE_METHOD(RereadsFixture, "drift is looked for once at a time, however long that takes") {
  config.drift_interval = Millis(10'000);
  start_discovered();
  workers[0]->on_job = [](const Job& job) -> test::FakeWorker::Behaviour {
    if (std::holds_alternative<ReadJob>(job.operation)) return test::FakeWorker::Hold{};
    return {};
  };
  advance(Millis(35'000));
  CHECK(store->unfinished_runs().value().size() == 1);
}

TEST_CASE_METHOD(RereadsFixture, "drift is looked for where nobody is looking already") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  const bool others = GENERATE(false, true);
  if (others) add_target("other");
  start_discovered();
  workers[0]->on_job = [](const Job& job) -> test::FakeWorker::Behaviour {
    if (job.target.name == "t" && std::holds_alternative<ListJob>(job.operation)) return test::FakeWorker::Hold{};
    return {};
  };
  api("discover", {{"targets", {"t"}}});
  advance(Millis(60'500));
  CHECK(store->unfinished_runs().value().size() == 1);
  const auto newest = last_report();
  CHECK(newest["trigger"] == (others ? "drift" : "user"));
  for (const auto& scan : newest["scans"]) CHECK(scan["target"] == (others ? "other" : "t"));
}

TEST_CASE_METHOD(RereadsFixture, "a target that is only read again is reachable where that is answered") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  const auto state = [&] { return api("targets")["items"][0]["state"]; };
  SECTION("it answers, then it does not, then it does") {
    start_discovered();
    next_run_of("drift");
    CHECK(state() == "active");
    workers[0]->on_job = [](const Job&) { return JobResult(Error{Errc::kNetwork, "no route", {}, 0}); };
    wait_until([&] { return state() == "unreachable"; });
    workers[0]->on_job = nullptr;
    wait_until([&] { return state() == "active"; });
    CHECK(events("target.").size() == 2);
  }
  SECTION("nothing is known of it") {
    system.remove("NS::Box", "a");
    system.remove("NS::Box", "b");
    start_discovered();
    CHECK(next_run_of("drift")["state"] == "complete");
    CHECK(state() == "active");
    CHECK(events("target.").empty());
  }
}

TEST_CASE_METHOD(RereadsFixture, "what drift does not find is judged by a listing: it may have another name") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  start_discovered();
  events();
  system.thing("NS::Box", "a").id = "z";
  system.remove("NS::Box", "b");
  next_run_of("drift");
  finish_runs();
  CHECK(resource_events() == Strings{"renamed:z", "vanished:b"});
  CHECK(listed("NS::Box") == Strings{"z"});
}

TEST_CASE_METHOD(RereadsFixture, "what is known to be missing is looked for, and no reason to list") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  start_discovered();
  const auto a = store->one("t", "NS::Box", "a").value().value().row;
  REQUIRE(store->manage(a, {"shop", "box", "{}"}));
  REQUIRE(store->commit());
  system.remove("NS::Box", "a");
  next_run_of("drift");
  finish_runs();
  CHECK(store->one("t", "NS::Box", "a").value().value().state == ResourceState::kMissing);
  workers[0]->jobs.clear();
  const auto before = last_report()["run"];
  wait_until([&] { return last_report()["run"] != before && last_report()["finished_at"].is_string(); });
  finish_runs();
  CHECK(last_report()["trigger"] == "drift");
  CHECK(jobs_of_list() == 0);
  CHECK(read_ids() == Strings{"a", "b"});
}

TEST_CASE_METHOD(RereadsFixture, "nor does drift judge what has another in its place") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  for (auto& box : system.things["NS::Box"]) box.uid = "u-" + box.id;
  start_discovered();
  events();
  const auto before = row("NS::Box", "a").id;
  system.thing("NS::Box", "a").id = "z";
  system.add("NS::Box", {.id = "a", .uid = "u-new"});
  CHECK(next_run_of("drift")["state"] == "complete");
  finish_runs();
  CHECK(resource_events() == Strings{"discovered:a", "renamed:z"});
  CHECK(row("NS::Box", "z").id == before);
}

TEST_CASE_METHOD(RereadsFixture, "what drift finds left out by a filter goes with all that is below it") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  leave_out("small");
  system.thing("NS::Box", "b").properties = R"({"kind":"big"})";
  system.add("NS::Item", {.id = "in-a", .uid = "u-in-a", .parent = "a"});
  system.add("NS::Item", {.id = "in-b", .uid = "u-in-b", .parent = "b"});
  system.add("NS::Item", {.id = "moved", .uid = "u-moved", .parent = "b"});
  start_discovered();
  events();
  system.thing("NS::Box", "b").properties = R"({"kind":"small"})";
  system.thing("NS::Item", "moved").parent = "a";
  CHECK(next_run_of("drift")["state"] == "complete");
  finish_runs();
  CHECK(resource_events() == Strings{"filtered:b", "filtered:in-b"});
  CHECK(listed("NS::Box") == Strings{"a"});
  CHECK(listed("NS::Item") == Strings{"in-a", "moved"});
}

TEST_CASE_METHOD(RereadsFixture, "a drift run that cannot read leaves everything as it is") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  config.retry.attempts = 1;
  start_discovered();
  events();
  workers[0]->on_job = [](const Job& job) -> test::FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation)) return {};
    return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
  };
  const auto report = next_run_of("drift");
  CHECK(report["state"] == "partial");
  CHECK(listed("NS::Box") == Strings{"a", "b"});
  CHECK(state_of("NS::Box", "a") == "present");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(RereadsFixture, "a drift run leaves out types that cannot be read") {
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(60'000);
  system.list_properties = true;
  manifest.types[0].list_gives = ListGives::kProperties;
  manifest.types[0].operations = {Operation::kList};
  start_discovered();
  const auto report = next_run_of("drift");
  CHECK(report["state"] == "complete");
  for (const auto& scan : report["scans"]) CHECK(scan["type"] != "NS::Box");
  CHECK(read_ids().empty());
}

TEST_CASE_METHOD(RereadsFixture,
                 "what a drift run cannot read of what it asked for is an error, and no reason to list") {
  config.drift_interval = Millis(60'000);
  start_discovered();
  workers[0]->on_job = [](const Job& job) -> test::FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation)) return {};
    const Error denied{Errc::kAccessDenied, "no", {}, 0};
    return JobResult(ReadResult{{denied, denied}});
  };
  workers[0]->jobs.clear();
  const auto report = next_run_of("drift");
  CHECK(report["state"] == "partial");
  CHECK(scan_of(report, "NS::Box")["errors"] == 2);
  finish_runs();
  CHECK(jobs_of_list() == 0);
}

TEST_CASE_METHOD(RereadsFixture, "a target that has answered no read until the deadline of the run is not reachable") {
  config.drift_interval = Millis(60'000);
  config.limits.run_deadline = Millis(5000);
  start_discovered();
  REQUIRE(store->target("t").value()->reachable);
  workers[0]->on_job = [](const Job& job) -> test::FakeWorker::Behaviour {
    if (std::holds_alternative<ReadJob>(job.operation)) return test::FakeWorker::Hold{};
    return {};
  };
  next_run_of("drift");
  CHECK_FALSE(store->target("t").value()->reachable);
}

TEST_CASE_METHOD(CommandsFixture, "of the resources of a stack those are read again, and nothing is listed") {
  system.add("NS::Box", {.id = "other"});
  start_discovered();
  REQUIRE(apply(stack({box("a"), box("b")}))["state"] == "complete");
  worker().jobs.clear();
  CHECK(discover({{"stacks", {"shop"}}})["state"] == "complete");
  CHECK(worker().asked<ListJob>().empty());
  const auto reads = worker().asked<ReadJob>();
  REQUIRE(reads.size() == 1);
  auto ids = std::get<ReadJob>(reads[0].operation).native_ids;
  std::ranges::sort(ids);
  CHECK(ids == Strings{"made-1", "made-2"});
}

TEST_CASE_METHOD(RereadsFixture, "a uid that comes later is taken in, and is no change") {
  system.thing("NS::Box", "a").uid.clear();
  start_discovered();
  events();
  const auto before = row("NS::Box", "a");
  system.thing("NS::Box", "a").uid = "u-a";
  discover();
  CHECK(resource_events().empty());
  CHECK(row("NS::Box", "a").version == before.version);
  CHECK(row("NS::Box", "a").uid == "u-a");
  system.thing("NS::Box", "a").id = "z";
  discover();
  CHECK(row("NS::Box", "z").id == before.id);
}

TEST_CASE_METHOD(RereadsFixture, "rereads do not put off that all is listed again") {
  config.discovery_interval = Millis(60'000);
  config.drift_interval = Millis(20'000);
  start_discovered();
  const auto before = listed("NS::Box").size();
  system.add("NS::Box", {.id = "late", .properties = R"({"name":"late"})"});
  advance(Millis(120'000));
  CHECK(listed("NS::Box").size() == before + 1);
}

TEST_CASE_METHOD(RereadsFixture, "what was filtered is read again in its turn, also beside rereads") {
  const bool rereads = GENERATE(false, true);
  config.discovery_interval = Millis(0);
  config.drift_interval = Millis(rereads ? 61'000 : 0);
  for (auto& type : manifest.types) type.list_gives = ListGives::kIds;
  system.list_properties = false;
  system.inspection.filters = {
      {{"NS::Box"}, {PropertyMatch{"$.kind", MatchOp::kEq, "\"tmp\""}}, FilterAction::kExclude}};
  for (int i = 0; i < 64; ++i) {
    system.add("NS::Box", {.id = "x" + std::to_string(i), .properties = R"({"kind":"tmp"})"});
  }
  start_discovered();
  const auto before = listed("NS::Box").size();
  for (int i = 0; i < 64; ++i) system.thing("NS::Box", "x" + std::to_string(i)).properties = R"({"kind":"kept"})";
  for (int i = 0; i < 20; ++i) {
    discover();
    if (rereads) advance(Millis(61'000));
  }
  CHECK(listed("NS::Box").size() == before + 64);
}

namespace {

/// A box that is managed is deleted by a command while it is read again; its system shows it for a while after that.
struct DeletedMeanwhile : CommandsFixture {
  DeletedMeanwhile() {
    config.discovery_interval = Millis(0);
    config.drift_interval = Millis(60'000);
  }
  void delete_it() {
    CHECK(apply(stack({}))["state"] == "complete");
    REQUIRE(state_of("NS::Box", "made-1") == "vanished");
    advance(Millis(500));
    events();
  }
  static bool rereads(const Job& job) {
    return job.priority == Priority::kDrift && std::holds_alternative<ReadJob>(job.operation);
  }
  static bool asks_for(const Job& job, const std::string& id) {
    return std::ranges::count(std::get<ReadJob>(job.operation).native_ids, id) > 0;
  }
};

}  // namespace

TEST_CASE_METHOD(DeletedMeanwhile, "a drift run ends though what has just been deleted is shown to it still") {
  start_discovered();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  const Item shown{"made-1", "uid-made-1", row("NS::Box", "made-1").properties.data()};
  int asked = 0;
  worker().on_job = [&](const Job& job) -> test::FakeWorker::Behaviour {
    if (!rereads(job) || !asks_for(job, "made-1")) return {};
    switch (++asked) {
      case 1:
        return test::FakeWorker::Silent{};  // the job was asked for before the deletion
      case 2:
        return JobResult(ReadResult{{Error{Errc::kNetwork, "no route", {}, 0}}});
      default:
        return JobResult(ReadResult{{shown}});
    }
  };
  wait_until([&] { return asked == 1; });
  const auto run = last_report()["run"];
  delete_it();
  advance(Millis(5000));
  worker().on_job = {};
  finish_runs();
  CHECK(api("run", {{"run", run}})["state"] == "complete");
  CHECK(state_of("NS::Box", "made-1") == "vanished");
}

TEST_CASE_METHOD(DeletedMeanwhile, "what a command has deleted before its turn came is not read again") {
  for (auto& type : manifest.types) type.read_batch = 1;
  system.next_id = 5;  // whose turn comes late
  for (int i = 0; i < 40; ++i) system.add("NS::Box", {.id = "wild-" + std::to_string(i)});
  add_worker().announcement.slots = 1;
  workers[0]->announce();
  start();
  finish_runs();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  const Item shown{"made-5", "", row("NS::Box", "made-5").properties.data()};
  int asked = 0;
  bool holds = true;
  worker().on_job = [&](const Job& job) -> test::FakeWorker::Behaviour {
    if (!rereads(job)) return {};
    ++asked;
    if (asks_for(job, "made-5")) return JobResult(ReadResult{{shown}});
    return holds ? test::FakeWorker::Behaviour(test::FakeWorker::Hold{}) : test::FakeWorker::Behaviour();
  };
  wait_until([&] { return asked == 1; });
  const auto command = begin(stack({}));
  for (int i = 0; i < 8; ++i) {
    worker().release();
    advance(Millis(100));
  }
  end_of(command);
  advance(Millis(500));
  events();
  holds = false;
  worker().release();
  finish_runs();
  CHECK(asked == 40);
  CHECK(resource_events().empty());
  CHECK(last_report()["trigger"] == "drift");
  CHECK(state_of("NS::Box", "made-5") == "vanished");
}
