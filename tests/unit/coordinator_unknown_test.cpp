// Unknown is not gone: listings that fail, targets that are down, plugins that break their contract.
#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"

using namespace muster;
using test::CoordinatorFixture;
using test::FakeWorker;
using Strings = std::vector<std::string>;
using Catch::Contains;

namespace {

struct TroubleFixture : CoordinatorFixture {
  TroubleFixture() {
    system.add("NS::Box", {.id = "a", .properties = R"({"n":1})"});
    system.add("NS::Box", {.id = "b", .properties = R"({"n":2})"});
    system.add("NS::Box", {.id = "c", .properties = R"({"n":3})"});
    system.add("NS::Item", {.id = "a1", .parent = "a"});
    system.add("NS::Item", {.id = "b1", .parent = "b"});
  }
  /// The worker answers jobs of that operation and type with `result`, where `applies` says so.
  template <typename Operation, typename Applies>
  void answer(const std::string& type, JobResult result, Applies applies) {
    workers.at(0)->on_job = [=](const Job& job) -> FakeWorker::Behaviour {
      const auto* operation = std::get_if<Operation>(&job.operation);
      if (operation == nullptr || job.type != type || !applies(*operation)) return {};
      return result;
    };
  }
  template <typename Operation>
  void answer(const std::string& type, JobResult result) {
    answer<Operation>(type, std::move(result), [](const Operation&) { return true; });
  }
  static Error denied() { return {Errc::kAccessDenied, "not for you", {}, 0}; }
  static bool has_problem(const Json& report, const std::string& code, const std::string& part) {
    for (const auto& problem : report.at("problems")) {
      if (problem.at("code") == code && problem.at("message").get<std::string>().find(part) != std::string::npos)
        return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE_METHOD(TroubleFixture, "a listing that fails on a later page judges nothing") {
  start_discovered();
  events();
  answer<ListJob>("NS::Box", denied(), [](const ListJob& list) { return !list.page_token.empty(); });
  system.remove("NS::Box", "a");  // so that the first page is b and c
  system.page = 1;
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(has_problem(report, "ACCESS_DENIED", "not for you"));
  CHECK(scan_of(report, "NS::Box")["complete"] == false);
  CHECK(scan_of(report, "NS::Box")["missing"] == 0);
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(state_of("NS::Box", "b") == "present");
  CHECK(state_of("NS::Box", "c") == "stale");
  CHECK(resource_events().empty());
  workers[0]->on_job = nullptr;
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "c") == "present");
  CHECK(resource_events() == Strings{"vanished:a", "vanished:a1"});
}

TEST_CASE_METHOD(TroubleFixture, "a scan that is not complete does not count as having seen its rows") {
  start_discovered();
  const auto before = row("NS::Box", "c").last_seen;
  advance(Millis(5000));
  answer<ListJob>("NS::Box", denied(), [](const ListJob& list) { return !list.page_token.empty(); });
  discover();
  CHECK(row("NS::Box", "c").last_seen == before);
}

TEST_CASE_METHOD(TroubleFixture, "below a parent whose listing failed rows go stale") {
  start_discovered();
  events();
  answer<ListJob>("NS::Item", denied(),
                  [](const ListJob& list) { return list.parent && list.parent->native_id == "a"; });
  system.things["NS::Item"].clear();
  const auto report = discover();
  CHECK(scan_of(report, "NS::Box")["complete"] == true);
  CHECK(scan_of(report, "NS::Item")["complete"] == false);
  CHECK(has_problem(report, "ACCESS_DENIED", "a"));
  CHECK(state_of("NS::Item", "a1") == "stale");
  CHECK(state_of("NS::Item", "b1") == "stale");  // only a complete scan proves absence
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(TroubleFixture, "children below parents that could not be listed are not judged") {
  start_discovered();
  events();
  answer<ListJob>("NS::Box", denied());
  const auto report = discover();
  CHECK(scan_of(report, "NS::Item")["complete"] == false);
  for (const auto* id : {"a1", "b1"}) CHECK(state_of("NS::Item", id) == "stale");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(TroubleFixture, "a problem that a page states leaves the scan incomplete") {
  start_discovered();
  events();
  answer<ListJob>("NS::Box", ListResult{{{"a", "", {}}}, {}, {{"b", denied()}}, 2});
  const auto report = discover();
  CHECK(scan_of(report, "NS::Box")["complete"] == false);
  CHECK(scan_of(report, "NS::Box")["skipped"] == 2);
  CHECK(has_problem(report, "ACCESS_DENIED", "b"));
  CHECK(state_of("NS::Box", "b") == "stale");
  CHECK(state_of("NS::Box", "c") == "stale");
}

TEST_CASE_METHOD(TroubleFixture, "a target that is down keeps its rows, stale, and says so once") {
  start_discovered();
  events();
  workers[0]->on_job = [](const Job&) { return JobResult(Error{Errc::kNetwork, "no route", {}, 0}); };
  auto report = discover();
  CHECK(report["state"] == "partial");
  for (const auto& scan : report["scans"]) CHECK(scan["complete"] == false);
  for (const auto* id : {"a", "b", "c"}) CHECK(state_of("NS::Box", id) == "stale");
  CHECK(api("targets")["items"][0]["state"] == "unreachable");
  discover();
  const auto seen = events("target.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["type"] == "muster.target.unreachable");
  workers[0]->on_job = nullptr;
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "a") == "present");
  CHECK(api("targets")["items"][0]["state"] == "active");
  CHECK(events("target.")[0]["type"] == "muster.target.reachable");
}

TEST_CASE_METHOD(TroubleFixture, "a target is not unreachable for want of a worker that would ask it") {
  config.discovery_interval = Millis(0);
  config.limits.requests_per_second = 1;
  start_discovered();
  advance(Millis(30'000));
  events();
  SECTION("it dies as the run begins") {
    remove_worker("w1");
    api("discover");
  }
  SECTION("it dies when it has inspected the target") {
    workers[0]->jobs.clear();
    api("discover");
    wait_until([&] { return !workers[0]->jobs.empty(); });
    REQUIRE(workers[0]->asked<ListJob>().empty());
    remove_worker("w1");
  }
  finish_runs();
  const auto report = last_report();
  CHECK(report["state"] == "partial");
  CHECK(has_problem(report, "NO_WORKER", ""));
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(events("target.").empty());
  CHECK(store->target("t").value()->reachable);
}

TEST_CASE_METHOD(TroubleFixture, "a target that was down from the beginning is unreachable as well") {
  auto& worker = add_worker();
  worker.on_job = [](const Job&) { return JobResult(Error{Errc::kNetwork, "no route", {}, 0}); };
  start();
  finish_runs();
  CHECK(last_report()["state"] == "partial");
  CHECK(api("targets")["items"][0]["state"] == "unreachable");
  CHECK(api("status")["state"] == "degraded");
  discover();
  const auto seen = events("target.");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["type"] == "muster.target.unreachable");
  worker.on_job = nullptr;
  CHECK(discover()["state"] == "complete");
  CHECK(api("targets")["items"][0]["state"] == "active");
  CHECK(api("status")["state"] == "ok");
  CHECK(events("target.")[0]["type"] == "muster.target.reachable");
}

TEST_CASE_METHOD(TroubleFixture, "without a worker the scans are skipped, reported, and their rows stale") {
  start_discovered();
  events();
  remove_worker("w1");
  advance(Millis(4000));
  const auto report = discover();
  CHECK(report["state"] == "partial");
  REQUIRE(report["scans"].size() == 2);
  for (const auto& scan : report["scans"]) CHECK(scan["complete"] == false);
  CHECK(has_problem(report, "NO_WORKER", "NS/default"));
  CHECK(state_of("NS::Box", "a") == "stale");
  CHECK(state_of("NS::Item", "a1") == "stale");
  CHECK(resource_events().empty());
  add_worker("w2");
  settle();
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "a") == "present");
}

TEST_CASE_METHOD(TroubleFixture, "a worker of one namespace does not serve the other's targets") {
  add_target("other", "OTHER");
  auto& worker = add_worker();
  start();
  advance(Millis(11'000));
  finish_runs();
  const auto report = last_report();
  CHECK(report["state"] == "partial");
  CHECK(scan_of(report, "NS::Box")["complete"] == true);
  for (const auto& problem : report["problems"]) CHECK(problem["target"] == "other");
  for (const auto& job : worker.jobs) CHECK(job.target.name == "t");
}

TEST_CASE_METHOD(TroubleFixture, "a worker that is lost in the middle of a run costs nothing but time") {
  auto& worker = add_worker("w1");
  worker.on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<InspectJob>(job.operation)) return {};
    return FakeWorker::Hold{};
  };
  start();
  advance(Millis(1000));
  worker.alive = false;
  add_worker("w2");
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
  std::map<std::string, int> discovered;
  for (const auto& event : resource_events()) ++discovered[event];
  for (const auto& [event, times] : discovered) CHECK(times == 1);
  CHECK(discovered.size() == 5);
}

TEST_CASE_METHOD(TroubleFixture, "an id that is listed twice is one resource, and a problem") {
  start_discovered();
  events();
  answer<ListJob>("NS::Box",
                  ListResult{{{"a", "", {}}, {"d", "", {}}, {"b", "", {}}, {"a", "", {}}, {"c", "", {}}}, {}, {}, 0});
  system.add("NS::Box", {.id = "d"});
  const auto report = discover();
  CHECK(scan_of(report, "NS::Box")["listed"] == 4);
  CHECK(scan_of(report, "NS::Box")["errors"] == 1);
  CHECK(has_problem(report, "DUPLICATE_ID", "a"));
  CHECK(listed("NS::Box") == Strings{"a", "b", "c", "d"});
  CHECK(resource_events() == Strings{"discovered:d"});
}

TEST_CASE_METHOD(TroubleFixture,
                 "what goes away after it is listed, and comes back on a later page, is not listed twice") {
  manifest.types[0].read_batch = 1;  // each is read as soon as it is listed
  start_discovered();
  system.add("NS::Box", {.id = "d"});
  bool gone = false;
  workers.at(0)->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (job.type != "NS::Box") return {};
    if (const auto* list = std::get_if<ListJob>(&job.operation)) {
      if (list->page_token.empty()) return JobResult(ListResult{{{"d", "", {}}}, "more", {}, 0});
      if (!gone) return Busy{};
      return JobResult(ListResult{{{"a", "", {}}, {"b", "", {}}, {"c", "", {}}, {"d", "", {}}}, {}, {}, 0});
    }
    if (std::exchange(gone, true)) return {};
    return JobResult(ReadResult{{Error{Errc::kNotFound, "no such thing", {}, 0}}});
  };
  const auto report = discover();
  REQUIRE(gone);
  CHECK(report["state"] == "complete");
  CHECK(report["problems"].empty());
  CHECK(listed("NS::Box") == Strings{"a", "b", "c", "d"});
}

TEST_CASE_METHOD(TroubleFixture, "a page token that comes again ends the listing as a problem of the plugin") {
  start_discovered();
  events();
  answer<ListJob>("NS::Box", ListResult{{{"a", "", {}}}, "again", {}, 0});
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(has_problem(report, "CONTRACT", "page token"));
  CHECK(scan_of(report, "NS::Box")["complete"] == false);
  CHECK(state_of("NS::Box", "b") == "stale");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(TroubleFixture, "pages without end that bring nothing end too") {
  start_discovered();
  int pages = 0;
  workers[0]->on_job = [&pages](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    return JobResult(ListResult{{}, std::to_string(++pages), {}, 0});
  };
  const auto report = discover();
  CHECK(has_problem(report, "CONTRACT", "pages"));
  CHECK(state_of("NS::Box", "a") == "stale");
}

TEST_CASE_METHOD(TroubleFixture, "properties that are no JSON object are reported by name, and lose nothing") {
  start_discovered();
  events();
  const auto text = GENERATE(as<std::string>(), "{broken", "[1,2]", "null", R"("text")", "{}{}");
  system.thing("NS::Box", "b").properties = text;
  const auto report = discover();
  CHECK(scan_of(report, "NS::Box")["errors"] == 1);
  CHECK(has_problem(report, "CONTRACT", "b"));
  CHECK(state_of("NS::Box", "b") != "vanished");
  CHECK(row("NS::Box", "b").properties == R"({"n":2})");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(TroubleFixture, "properties that are too large are reported by name, and lose nothing") {
  system.page = 10;
  system.list_properties = GENERATE(false, true);
  start_discovered();
  events();
  system.thing("NS::Box", "b").properties = Json{{"text", std::string(kMaxPropertiesBytes, 'x')}}.dump();
  system.thing("NS::Box", "c").properties = R"({"n":30})";
  const auto report = discover();
  CHECK(has_problem(report, "LIMIT", "b"));
  CHECK(state_of("NS::Box", "b") != "vanished");
  CHECK(row("NS::Box", "b").properties == R"({"n":2})");
  CHECK(row("NS::Box", "c").properties == R"({"n":30})");  // its neighbours are not to blame
}

TEST_CASE_METHOD(TroubleFixture, "a read that answers for other ids, or not for all, is a problem of the plugin") {
  start_discovered();
  events();
  SECTION("fewer") {
    answer<ReadJob>("NS::Box", ReadResult{{Item{"a", "", "{}"}}});
  }
  SECTION("others") {
    answer<ReadJob>("NS::Box", ReadResult{{Item{"x", "", "{}"}, Item{"y", "", "{}"}, Item{"z", "", "{}"}}});
  }
  SECTION("something else") {
    answer<ReadJob>("NS::Box", ListResult{});
  }
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(has_problem(report, "CONTRACT", "a"));
  CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
  CHECK(row("NS::Box", "a").properties == R"({"n":1})");
  CHECK(resource_events().empty());
}

TEST_CASE_METHOD(TroubleFixture, "a list that is answered with something else is a problem of the plugin") {
  start_discovered();
  answer<ListJob>("NS::Box", ReadResult{});
  const auto report = discover();
  CHECK(has_problem(report, "CONTRACT", ""));
  CHECK(state_of("NS::Box", "a") == "stale");
}

TEST_CASE_METHOD(TroubleFixture, "an object that goes away between list and read was not there") {
  add_worker();
  answer<ListJob>("NS::Box", ListResult{{{"ghost", "", {}}, {"a", "", {}}}, {}, {}, 0});
  start();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"a"});
}

TEST_CASE_METHOD(TroubleFixture, "a known object that goes away between list and read has vanished in that run") {
  start_discovered();
  REQUIRE(state_of("NS::Box", "a") == "present");
  workers[0]->on_job = [this](const Job& job) -> FakeWorker::Behaviour {
    if (std::holds_alternative<ReadJob>(job.operation)) system.remove("NS::Box", "a");
    return {};
  };
  CHECK(scan_of(discover(), "NS::Box")["missing"] == 1);
  CHECK(state_of("NS::Box", "a") == "vanished");
}

TEST_CASE_METHOD(TroubleFixture, "a parent that goes away between its listing and its children's has none") {
  start_discovered();
  events();
  answer<ListJob>("NS::Item", Error{Errc::kNotFound, "no such box", {}, 0},
                  [](const ListJob& list) { return list.parent && list.parent->native_id == "a"; });
  CHECK(discover()["state"] == "complete");
}

TEST_CASE_METHOD(TroubleFixture, "an item of a batch that is throttled is read again") {
  int refused = 2;
  auto& worker = add_worker();
  worker.on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || job.type != "NS::Box" || refused == 0) return {};
    --refused;
    ReadResult result;
    for (std::size_t i = 0; i < read->native_ids.size(); ++i) {
      result.items.emplace_back(Error{Errc::kThrottling, "slow down", Millis(100), 0});
    }
    return JobResult(std::move(result));
  };
  start();
  finish_runs();
  CHECK(last_report()["state"] == "complete");
  CHECK(listed("NS::Box") == Strings{"a", "b", "c"});
}

TEST_CASE_METHOD(TroubleFixture, "a reply that cannot be decoded ends its job long before the job's deadline") {
  start_discovered();
  answer<ListJob>("NS::Box", ListResult{{{std::string(kMaxNativeIdBytes + 1, 'x'), "", {}}}, {}, {}, 0});
  const auto began = clock.now();
  const auto report = discover();
  CHECK(clock.now() - began < Millis(60'000));
  CHECK_FALSE(has_problem(report, "NO_WORKER", ""));  // there is one, and it breaks the protocol
}

TEST_CASE_METHOD(TroubleFixture, "a stream that takes in jobs does not answer for their workers") {
  start_discovered();
  system.add("NS::Box", {"d"});
  const auto malformed = coordinator->status().malformed;
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto reply = Subjects().reply("NS", coordinator->status().id, job.token);
    user->publish({reply, {}, R"({"stream":"ALL", "seq":1})", {}}).value();
    return {};
  };
  CHECK(discover()["state"] == "complete");
  CHECK(state_of("NS::Box", "d") == "present");
  CHECK(coordinator->status().malformed > malformed);  // for the status to tell
}

TEST_CASE_METHOD(TroubleFixture, "what is answered for another id says nothing of an object that was not listed") {
  start_discovered();
  events();
  workers[0]->on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || job.type != "NS::Box") return {};
    auto answer = std::get<ReadResult>(system.answer(job));
    for (std::size_t i = 0; i < read->native_ids.size(); ++i) {
      if (read->native_ids[i] == "c") answer.items[i] = Item{"x", "", "{}"};
    }
    return JobResult(std::move(answer));
  };
  system.remove("NS::Box", "b");
  system.remove("NS::Box", "c");
  const auto report = discover();
  CHECK(report["state"] == "partial");
  CHECK(scan_of(report, "NS::Box")["complete"] == false);
  CHECK(scan_of(report, "NS::Box")["errors"] == 1);
  CHECK(has_problem(report, "CONTRACT", "c was not listed, and cannot be read: the plugin read x instead"));
  CHECK(state_of("NS::Box", "b") == "vanished");  // that was asked for with it
  CHECK(state_of("NS::Box", "c") == "stale");
  CHECK(state_of("NS::Box", "x") == "absent");
}
