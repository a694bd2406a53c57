// Answers that no message has room for come in pages, and nothing is left out or told twice.
#include <algorithm>
#include <array>
#include <set>

#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"
#include "support/failing_store.h"

using namespace muster;
using test::CoordinatorFixture;

namespace {

struct PagesFixture : CoordinatorFixture {
  /// A run that has ended, with this report, as the store has it.
  RunRow keep_run(Json report) {
    RunRow run;
    run.id = RunId(make_ulid(clock.wall(), random));
    run.state = "complete";
    run.trigger = "user";
    run.scope = "[]";
    run.finished_at = clock.wall();
    report["run"] = run.id.value;
    run.report = report.dump();
    store->put_run(run).value();
    clock.advance(Millis(10));
    return run;
  }
};

/// Counts what the store is asked for.
struct CountingFixture : PagesFixture {
  void start_counting(int boxes) {
    for (int i = 0; i < boxes; ++i) system.add("NS::Box", {"box" + std::to_string(i), "{}"});
    start_discovered();
    advance(Millis(500));
  }
  /// Gets the next page of a list: how many were made meanwhile.
  auto made(Json& request) {
    const auto before = counting.queries;
    request["cursor"] = api("resources", request).at("next");
    return counting.queries - before;
  }

  const test::FailingStore& counting = test::put_failing_before(store);
};

}  // namespace

TEST_CASE_METHOD(PagesFixture, "large runs and events come in pages that a message has room for") {
  for (int i = 0; i < 100; ++i) {
    const auto report = keep_run({{"text", std::string(15'000, 'x')}}).report;
    store->append_event({0, clock.wall(), "NS", "resource.changed", "x", report}).value();
  }
  store->commit().value();
  start_discovered();
  advance(Millis(500));
  const std::string verb = GENERATE("runs", "events");
  CAPTURE(verb);
  std::set<std::string> seen;
  std::size_t items = 0;
  int pages = 0;
  Json request{{"api", 1}, {"limit", 1000}};
  for (Json next = ""; !next.is_null() && pages < 20; ++pages) {
    const auto text = api_text(verb, request.dump());
    REQUIRE(text.size() < 750'000);
    const auto page = Json::parse(text);
    for (const auto& one : page.at("items")) seen.insert(one.value("run", one.value("id", "")));
    items += page["items"].size();
    next = page["next"];
    request["cursor"] = next;
  }
  CHECK(pages > 1);
  CHECK(items > 100);
  CHECK(seen.size() == items);
}

TEST_CASE_METHOD(PagesFixture, "pages are no larger than what the bus takes") {
  constexpr std::size_t kLargest = 64 * 1024;
  const std::string text(3000, 'x');
  for (int i = 0; i < 100; ++i) system.add("NS::Box", {"many" + std::to_string(i), R"({"text":")" + text + "\"}"});
  start_discovered();
  for (int i = 0; i < 8; ++i) {
    const auto size = static_cast<std::size_t>(i % 2 == 0 ? 20'000 : 50'000);
    const auto data = JsonObject().text("text", std::string(size, 'x')).take();
    store->append_event({0, clock.wall(), "NS", "resource.changed", "x", data}).value();
  }
  store->commit().value();
  broker.set_max_payload(kLargest);
  const auto [verb, least] =
      GENERATE(table<std::string, std::size_t>({{"resources", 100}, {"export", 100}, {"events", 8}}));
  CAPTURE(verb);
  std::size_t items = 0;
  int pages = 0;
  Json request{{"api", 1}, {"limit", 1000}};
  for (Json next = ""; !next.is_null() && pages < 50; ++pages) {
    const auto answer = api_text(verb, request.dump());
    CHECK(answer.size() <= kLargest);
    const auto page = Json::parse(answer);
    REQUIRE(page.contains("items"));
    items += page["items"].size();
    next = page["next"];
    request["cursor"] = next;
  }
  CHECK(pages < 50);
  CHECK(items >= least);
}

TEST_CASE_METHOD(PagesFixture, "a page that was read ahead tells nothing that is no longer so") {
  for (int i = 0; i < 30; ++i) system.add("NS::Box", {"box" + std::to_string(i), R"({"n":1})"});
  start_discovered();
  Json request{{"limit", 5}};
  const auto page = [&] {
    const auto answer = api("resources", request);
    request["cursor"] = answer.at("next");
    return answer.at("items");
  };
  for (int i = 0; i < 3; ++i) CHECK(page().front()["properties"]["n"] == 1);  // the fourth waits to be asked for
  for (int i = 0; i < 30; ++i) system.thing("NS::Box", "box" + std::to_string(i)).properties = R"({"n":2})";
  discover();
  std::size_t left = 15;
  for (int i = 3; i < 6; ++i) {
    const auto items = page();
    for (const auto& item : items) CHECK(item["properties"]["n"] == 2);
    left -= items.size();
  }
  CHECK(left == 0);
}

TEST_CASE_METHOD(CountingFixture, "the page that is asked for next is made before, and none is made twice") {
  start_counting(28);
  Json first{{"limit", 5}}, second{{"limit", 6}};
  CHECK(made(first) == 1);  // nobody knows whether there will be more to it
  CHECK(made(first) == 2);
  CHECK(made(first) == 1);   // the fourth
  CHECK(made(second) == 1);  // the fourth of the first waits
  CHECK(made(second) == 1);
  CHECK(made(first) == 1);
  CHECK(made(first) == 1);
  CHECK(made(first) == 0);  // was the last
  CHECK(first["cursor"].is_null());
  CHECK(made(second) == 2);
}

TEST_CASE_METHOD(CountingFixture, "a page waits for its list, however late, until another list wants its place") {
  start_counting(40);
  Json first{{"limit", 5}}, second{{"limit", 6}};
  CHECK(made(first) == 1);
  CHECK(made(first) == 2);
  advance(Millis(5'000));
  CHECK(made(first) == 1);  // the fourth
  advance(Millis(5'000));
  CHECK(made(second) == 1);
  CHECK(made(second) == 2);  // has the place now
  CHECK(made(first) == 1);   // the fourth, again
  CHECK(made(second) == 1);
}

TEST_CASE_METHOD(PagesFixture, "lists that are read at the same time have their own pages") {
  for (int i = 0; i < 40; ++i) system.add(i % 2 == 0 ? "NS::Box" : "NS::Crate", {"thing" + std::to_string(i), "{}"});
  manifest.types.push_back(manifest.types.front());
  manifest.types.back().name = "NS::Crate";
  start_discovered();
  struct List {
    Json request;
    std::multiset<std::string> seen;
  };
  std::vector<List> lists{{{{"limit", 3}}, {}},
                          {{{"limit", 3}, {"type", "NS::Box"}}, {}},
                          {{{"limit", 3}, {"type", "NS::Crate"}}, {}},
                          {{{"limit", 4}}, {}}};
  for (int i = 0; i < 20; ++i) {
    for (auto& list : lists) {
      if (list.request.contains("cursor") && list.request["cursor"].is_null()) continue;
      const auto answer = api("resources", list.request);
      CHECK(answer.at("items").size() <= list.request["limit"]);
      for (const auto& item : answer["items"]) list.seen.insert(item["native_id"]);
      list.request["cursor"] = answer.at("next");
    }
  }
  const std::array<std::size_t, 4> expected{40, 20, 20, 40};
  for (std::size_t i = 0; i < lists.size(); ++i) {
    CAPTURE(i);
    CHECK(lists[i].seen.size() == expected[i]);
    CHECK(std::set(lists[i].seen.begin(), lists[i].seen.end()).size() == expected[i]);
  }
}

TEST_CASE_METHOD(PagesFixture, "the problems of a report that comes in parts stand in the first one") {
  start_discovered();
  const Json scans(3000, Json{{"target", std::string(300, 't')}, {"type", "NS::Box"}});
  const auto run = keep_run({{"scans", scans}, {"problems", {{{"target", "t"}, {"code", "THROTTLING"}}}}});
  store->commit().value();
  std::vector<std::size_t> problems;
  std::size_t told = 0;
  Json request{{"run", run.id.value}};
  for (Json next = ""; !next.is_null() && problems.size() < 20;) {
    const auto part = api("run", request);
    problems.push_back(part["problems"].size());
    told += part["scans"].size();
    next = part["next"];
    request["cursor"] = next;
  }
  CHECK(told == 3000);
  REQUIRE(problems.size() > 1);
  CHECK(problems.front() == 1);
  CHECK(std::ranges::count(problems, 0) == static_cast<std::ptrdiff_t>(problems.size() - 1));
}

TEST_CASE_METHOD(PagesFixture, "who leaves or comes between two pages of a list moves none of the others") {
  start();
  const auto join = [&](int number) {
    const auto id = "w" + std::to_string(number);
    auto& worker = *workers.emplace_back(std::make_unique<test::FakeWorker>(broker, clock, id, manifest, system));
    auto& said = worker.announcement;
    said.host = said.plugin = said.version = std::string(256, '\x01');  // which takes six bytes of an answer each
    worker.announce();
  };
  std::vector<std::string> all, names;
  for (int i = 101; i < 300; ++i) {
    join(i);
    all.push_back("w" + std::to_string(i));
  }
  settle();
  const auto take = [&](const Json& page) {
    for (const auto& worker : page["items"]) names.push_back(worker["id"]);
    return page["next"];
  };
  auto next = take(api("workers"));
  REQUIRE_FALSE(names.empty());
  REQUIRE(names.size() < all.size());
  SECTION("one leaves") {
    workers.front()->draining = true;
    advance(Millis(1500));
    workers.front()->alive = false;
    advance(Millis(4000));
  }
  SECTION("one comes") {
    join(100);
    settle();
  }
  while (!next.is_null()) next = take(api("workers", {{"cursor", next}}));
  CHECK(names == all);
}

TEST_CASE_METHOD(PagesFixture, "a cursor of a list is one that a page of it has given") {
  start();
  for (const char* cursor : {"5", "x", "[]", "[1]", "[[[["}) {
    CAPTURE(cursor);
    CHECK(api("workers", {{"cursor", cursor}})["error"]["code"] == "INVALID_REQUEST");
  }
  CHECK_FALSE(api("workers", {{"cursor", R"(["a"])"}}).contains("error"));
}
