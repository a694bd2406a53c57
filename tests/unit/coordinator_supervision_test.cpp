// What supervisors of plugins say: muster.api.supervise, the event, and what `plugins` shows of it.
#include "coordinator/supervision.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"

using namespace muster;
using test::CoordinatorFixture;

namespace {

struct SupervisionFixture : CoordinatorFixture {
  static Json plugin(const std::string& state, const Json& workers = Json::array(), const std::string& name = "fs") {
    return {{"plugin", name}, {"path", "/p/" + name}, {"state", state}, {"reason", state == "running" ? "" : "it dies"},
            {"restarts", 3},  {"workers", workers}};
  }
  Json say(const std::vector<Json>& plugins, const std::string& supervisor = "host:1") {
    return api("supervise", {{"api", 1}, {"supervisor", supervisor}, {"host", "host"}, {"plugins", Json(plugins)}});
  }
  /// What `plugins` shows as quarantined.
  Json quarantined() {
    auto found = Json::array();
    const auto all = api("plugins");
    for (const auto& item : all["items"]) {
      if (item["state"] == "quarantined") found.push_back(item);
    }
    return found;
  }
  std::string refused(const Json& request) {
    const auto answer = api("supervise", request);
    return answer.contains("error") ? answer["error"]["code"] : "";
  }
};

}  // namespace

TEST_CASE_METHOD(SupervisionFixture, "a supervisor hears which of its workers the coordinator knows") {
  start();
  add_worker();
  const std::string id = "w1";
  advance(Millis(1500));
  auto answer = say({plugin("running", {id, "another"})});
  REQUIRE(answer["workers"].size() == 1);
  CHECK(answer["workers"][0] ==
        Json({{"worker", id}, {"state", "active"}, {"namespace", "NS"}, {"pool", "default"}, {"jobs", 0}}));
  REQUIRE(answer["pools"].size() == 1);
  CHECK(answer["pools"][0]["namespace"] == "NS");
  CHECK(answer["pools"][0]["slots"] == 4);
  CHECK(say({plugin("running", {"another"})})["pools"].empty());
  workers.clear();
  advance(Millis(4000));
  answer = say({plugin("running", {id, "another"})});
  CHECK(answer["workers"].at(0)["state"] == "lost");
  CHECK(quarantined().empty());
}

TEST_CASE_METHOD(SupervisionFixture, "a plugin in quarantine is shown, and told once as an event") {
  start();
  add_worker();
  const std::string id = "w1";
  advance(Millis(1500));
  events();
  say({plugin("waiting", {id})});
  say({plugin("quarantined")});
  say({plugin("quarantined"), plugin("quarantined", Json::array(), "pg")});
  advance(Millis(1000));
  const auto told = events("worker.quarantined");
  REQUIRE(told.size() == 2);
  CHECK(told[0]["subject"] == "fs");
  CHECK(told[0]["data"] == Json{{"plugin", "fs"},
                                {"reason", "it dies"},
                                {"host", "host"},
                                {"supervisor", "host:1"},
                                {"path", "/p/fs"},
                                {"restarts", 3}});
  CHECK(told[1]["subject"] == "pg");
  std::vector<std::string> subjects;
  for (const auto& message : event_messages) {
    if (message.subject.ends_with("worker.quarantined")) subjects.push_back(message.subject);
  }
  CHECK(subjects ==
        std::vector<std::string>{"muster.event.NS.worker.quarantined", "muster.event.-.worker.quarantined"});

  const auto shown = quarantined();
  REQUIRE(shown.size() == 2);
  CHECK(shown[0]["namespace"] == "NS");
  CHECK(shown[0]["plugin"] == "fs");
  CHECK(shown[0]["reason"] == "it dies");
  CHECK(shown[0]["host"] == "host");
  CHECK(shown[0]["restarts"] == 3);

  say({plugin("running"), plugin("quarantined", Json::array(), "pg")});
  CHECK(quarantined().size() == 1);
  say({plugin("quarantined")});  // it enters that state again
  advance(Millis(1000));
  CHECK(events("worker.quarantined").size() == 1);
}

TEST_CASE_METHOD(SupervisionFixture, "what a supervisor said holds for 15 s") {
  start();
  say({plugin("quarantined")});
  say({plugin("quarantined")}, "host:2");
  advance(Millis(15'000));
  CHECK(quarantined().size() == 2);
  say({plugin("quarantined")}, "host:2");
  advance(Millis(1));
  CHECK(quarantined().size() == 1);
}

TEST_CASE_METHOD(SupervisionFixture, "what a supervisor says is checked and has bounds") {
  start();
  const Json good{{"supervisor", "s"}, {"host", "h"}, {"plugins", Json::array()}};
  CHECK(refused(good).empty());
  const auto with = [&](const char* key, const Json& value) {
    Json request = good;
    request[key] = value;
    return request;
  };
  CHECK(refused(with("supervisor", "")) == "INVALID_REQUEST");
  CHECK(refused(with("supervisor", std::string(301, 's'))) == "INVALID_REQUEST");
  CHECK(refused(with("host", 5)) == "INVALID_REQUEST");
  CHECK(refused(with("plugins", "fs")) == "INVALID_REQUEST");
  CHECK(refused(with("plugins", {5})) == "INVALID_REQUEST");
  CHECK(refused(with("plugins", {plugin("happy")})) == "INVALID_REQUEST");
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{{"plugin", 1},
                                                                            {"path", nullptr},
                                                                            {"reason", std::string(5000, 'r')},
                                                                            {"restarts", -1},
                                                                            {"workers", {1}},
                                                                            {"workers", {std::string(301, 'w')}}}) {
    auto one = plugin("running");
    one[key] = value;
    INFO(key);
    CHECK(refused(with("plugins", {one})) == "INVALID_REQUEST");
  }
  auto large = plugin("quarantined");
  large["reason"] = std::string(4000, 'r');
  CHECK(refused(with("plugins", Json(70, large))) == "LIMIT");
  int taken = 0;
  for (; taken < 1000; ++taken) {
    auto request = with("plugins", Json(50, large));
    request["supervisor"] = std::to_string(taken);
    if (refused(request) == "LIMIT") break;
  }
  CHECK(taken == 2);
  CHECK(api("plugins")["items"].size() == 100);
  advance(Millis(15'001));
  CHECK(refused(with("plugins", Json(50, large))).empty());
}

TEST_CASE_METHOD(SupervisionFixture, "the reports of one namespace leave room for those of another") {
  add_worker("w1");
  add_worker("o1", test::make_manifest({{"OTHER::Box", ""}}, "OTHER"));
  start();
  advance(Millis(1500));
  std::size_t taken = 0;
  const auto say_other = [&](std::size_t number) {
    return !say({plugin("running", {"o1"})}, "other:" + std::to_string(number)).contains("error");
  };
  while (taken < 1000 && say_other(taken)) ++taken;
  REQUIRE(taken == kMaxSupervisors);
  CHECK(say({plugin("quarantined", {"w1"})})["workers"].size() == 1);
  REQUIRE(quarantined().size() == 1);
  CHECK_FALSE(say_other(0));  // the room of the one that was heard of longest ago has gone
  CHECK(say_other(1));
  CHECK(quarantined().size() == 1);
}

TEST_CASE_METHOD(SupervisionFixture, "a lost worker proves nothing") {
  start();
  add_worker("w1");
  add_worker("w2");
  advance(Millis(1500));
  remove_worker("w1");
  advance(Millis(4000));
  for (std::size_t i = 0; i < kMaxSupervisors; ++i) say({plugin("running")}, "made up:" + std::to_string(i));
  const auto answer = say({plugin("running", {"w1"})}, "lost");
  REQUIRE(answer.contains("error"));
  CHECK(answer["error"]["code"] == "LIMIT");
  CHECK(say({plugin("running", {"w1", "w2"})}, "there")["workers"].size() == 2);
}

TEST_CASE_METHOD(SupervisionFixture, "of very many plugins in quarantine some are told, and how many are not") {
  start();
  events();
  for (int i = 0; i < 30; ++i) {
    std::vector<Json> plugins;
    for (int k = 0; k < 50; ++k) plugins.push_back(plugin("quarantined", Json::array(), std::to_string(50 * i + k)));
    say(plugins);
  }
  advance(Millis(500));
  CHECK(events("worker.quarantined").size() == 1000);
  CHECK(api("status")["worker_events_left_out"] == 500);
}

TEST_CASE_METHOD(SupervisionFixture, "a plugin that a report names twice is told once") {
  start();
  events();
  say({plugin("quarantined"), plugin("quarantined")});
  advance(Millis(500));
  CHECK(events("worker.quarantined").size() == 1);
}

TEST_CASE("as many supervisors are remembered as have room") {
  Supervision supervision;
  const TimePoint now{};
  for (std::size_t i = 0; i < kMaxSupervisors; ++i) {
    const Supervision::Report report{std::to_string(i), "h", {}, 1};
    REQUIRE(supervision.take(report, now));
  }
  CHECK(supervision.take({"one more", "h", {}, 1}, now).error().code == Errc::kLimit);
  CHECK(supervision.take({"0", "h", {}, 1}, now));
  supervision.expire(now + kSupervisionHolds);
  CHECK(supervision.reports().size() == kMaxSupervisors);
  supervision.expire(now + kSupervisionHolds + Millis{1});
  CHECK(supervision.reports().empty());
}

TEST_CASE("a supervisor whose workers are known takes the room of those that anybody makes up") {
  Supervision supervision;
  const TimePoint now{};
  const auto report = [](const std::string& supervisor, bool proven) {
    Supervision::Report made{supervisor, "h", {}, 1};
    if (proven) made.proven_by.insert("NS");
    return made;
  };
  for (std::size_t i = 0; i < kMaxSupervisors; ++i) {
    REQUIRE(supervision.take(report("made up " + std::to_string(i), false), now + Millis(i == 7 ? 0 : 1)));
  }
  REQUIRE(supervision.take(report("known", true), now + Millis(2)));
  CHECK(supervision.reports().size() == kMaxSupervisors);
  CHECK_FALSE(supervision.reports().contains("made up 7"));  // heard of longest ago
  for (std::size_t i = 1; i < kMaxSupervisors; ++i) {
    REQUIRE(supervision.take(report("known " + std::to_string(i), true), now + Millis(2)));
  }
  CHECK_FALSE(supervision.take(report("made up", false), now + Millis(3)));
  CHECK_FALSE(supervision.take(report("one more", true), now + Millis(3)));
  REQUIRE(supervision.take(report("known", false), now + Millis(3)));  // its workers have ended: it was known
  CHECK(supervision.reports().at("known").room_of == "NS");
}

TEST_CASE("a namespace takes no more room from another than makes them equal") {
  Supervision supervision;
  const TimePoint now{};
  const auto take = [&](const std::string& supervisor, std::set<std::string> proven_by, std::size_t bytes) {
    Supervision::Report report{supervisor, "h", {}, bytes};
    report.proven_by = std::move(proven_by);
    return static_cast<bool>(supervision.take(std::move(report), now));
  };
  const auto count = [&](const std::string& ns) {
    return std::ranges::count(supervision.reports(), ns, [](const auto& one) { return one.second.room_of; });
  };
  constexpr auto kEighth = kMaxSupervisionBytes / 8;
  for (int i = 0; i < 8; ++i) REQUIRE(take("a" + std::to_string(i), {"A"}, kEighth));
  CHECK_FALSE(take("a8", {"A"}, kEighth));
  for (int i = 0; i < 4; ++i) CHECK(take("b" + std::to_string(i), {"B"}, kEighth));
  CHECK_FALSE(take("b4", {"B"}, kEighth));
  CHECK(count("A") == 4);
  CHECK(count("B") == 4);
  CHECK(take("c0", {"C", "A"}, kEighth));  // the room is that of C
  CHECK(count("C") == 1);
  CHECK(supervision.reports().size() == 8);
  CHECK(take("c0", {"C"}, kEighth));  // in place of its last one
  CHECK(supervision.reports().size() == 8);
}

TEST_CASE_METHOD(SupervisionFixture, "a fleet with a plugin in quarantine is not well") {
  start();
  add_worker();
  finish_runs();
  REQUIRE(api("status")["state"] == "ok");
  say({plugin("quarantined")});
  const auto status = api("status");
  CHECK(status["state"] == "degraded");
  CHECK(std::ranges::any_of(status["checks"], [](const Json& check) {
    return check == Json{{"name", "plugin fs"}, {"ok", false}, {"message", "quarantined on host: it dies"}};
  }));
  say({plugin("running")});
  CHECK(api("status")["state"] == "ok");
}
