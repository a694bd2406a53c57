// Calls of the fake cloud that fail, hang or kill their worker, as its config says.
#include <algorithm>
#include <csignal>
#include <memory>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "plugin_fake_cloud.h"

using namespace muster;
using namespace muster::fake::test_cloud;

TEST_CASE("calls fail before they act or after it, and can succeed when repeated") {
  const StateFile file;
  const Cloud good(file);
  const auto failing = [&](const char* operation, const Json& how) {
    return std::make_unique<Cloud>(file, Json{{"fail", {{operation, how}}}});
  };
  const auto live = [&] { return file.count("SELECT count(*) FROM objects WHERE NOT deleted"); };
  const auto outcome = [&] { return file.query("SELECT outcome FROM calls ORDER BY seq DESC").at(0); };

  CHECK(code(failing("create", {{"before", 1}})->create("k", {{"name", "a"}})) == Errc::kServiceUnavailable);
  CHECK(live() == 0);
  CHECK(outcome() == "SERVICE_UNAVAILABLE");
  CHECK(code(failing("create", {{"after", 1}, {"code", "TIMEOUT"}})->create("k", {{"name", "a"}})) == Errc::kTimeout);
  CHECK(live() == 1);
  CHECK(outcome() == "applied, then TIMEOUT");
  const auto made = done(good.create("k", {{"name", "a"}}));
  CHECK(live() == 1);

  const Json desired = {{"name", "a"}, {"size", 1}};
  CHECK(code(failing("update", {{"before", 1}})->update("u", made.native_id, desired)) == Errc::kServiceUnavailable);
  CHECK(file.count("SELECT revision FROM objects") == 0);
  CHECK(code(failing("update", {{"after", 1}})->update("u", made.native_id, desired)) == Errc::kServiceUnavailable);
  CHECK(Json::parse(done(good.update("u", made.native_id, desired)).properties)["revision"] == 1);

  CHECK(code(failing("status", {{"before", 1}})->run(kThing, StatusJob{"r", ""})) == Errc::kServiceUnavailable);
  const auto slow = failing("read", {{"before", 1}, {"code", "THROTTLING"}})->read(made.native_id);
  CHECK(std::get<Error>(slow).code == Errc::kThrottling);
  CHECK(std::get<Error>(slow).retry_after == Millis{100});
  CHECK(std::get<Error>(failing("read", {{"after", 1}})->read(made.native_id)).code == Errc::kServiceUnavailable);

  CHECK(code(failing("delete", {{"before", 1}})->remove("d", made.native_id)) == Errc::kServiceUnavailable);
  CHECK(live() == 1);
  CHECK(code(failing("delete", {{"after", 1}})->remove("d", made.native_id)) == Errc::kServiceUnavailable);
  CHECK(live() == 0);
  CHECK(done(good.remove("d", made.native_id)).status == MutationStatus::kSuccess);
}

TEST_CASE("each try is drawn anew, and the same in every worker") {
  const auto tries = [](std::uint64_t seed) {
    const StateFile file;
    std::vector<int> needed;
    for (int i = 0; i < 20; ++i) {
      int count = 1;
      // Every try is that of another worker, as after a crash.
      const auto failed = [&] {
        const Cloud worker(file, {{"seed", seed}, {"fail", {{"create", {{"before", 0.6}}}}}});
        return code(worker.create("k" + std::to_string(i), {{"name", std::to_string(i)}})) != Errc{0};
      };
      while (failed() && count < 100) ++count;
      needed.push_back(count);
    }
    return needed;
  };
  const auto needed = tries(1);
  CHECK(std::set(needed.begin(), needed.end()).size() > 2);
  CHECK(*std::max_element(needed.begin(), needed.end()) < 100);
  CHECK(tries(1) == needed);
  CHECK(tries(2) != needed);
}

TEST_CASE("names that fail always do") {
  const StateFile file;
  const Cloud worker(file, {{"fail_names", {{"bad", "ACCESS_DENIED"}}}});
  CHECK(code(worker.create("k", {{"name", "bad"}})) == Errc::kAccessDenied);
  const auto id = done(worker.create("k", {{"name", "good"}})).native_id;
  CHECK(code(worker.update("u", id, {{"name", "bad"}})) == Errc::kAccessDenied);
  CHECK(file.query("SELECT name FROM objects") == std::vector<std::string>{"good"});
}

TEST_CASE("a worker kills itself before or after the effect") {
  const StateFile file;
  const auto killed_by = [&](const char* when) {
    return status_of_process([&] {
      const Cloud worker(file, {{"fail", {{"create", {{when, 1}}}}}});
      done(worker.create("k", {{"name", "a"}}));
    });
  };
  auto status = killed_by("crash_before");
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(file.count("SELECT count(*) FROM objects") == 0);
  status = killed_by("crash_after");
  CHECK(WIFSIGNALED(status));
  CHECK(file.count("SELECT count(*) FROM objects") == 1);
  CHECK(file.query("SELECT outcome FROM calls ORDER BY seq") ==
        std::vector<std::string>{"killed", "applied, then killed"});
  done(Cloud(file).create("k", {{"name", "a"}}));
  CHECK(file.count("SELECT count(*) FROM objects") == 1);
}

TEST_CASE("a hanging call ends when it is stopped, unless it is stubborn") {
  const StateFile file;
  done(Cloud(file).create("first", {{"name", "first"}}));
  const auto stopped = [&](const std::string& key, const Json& how) {
    const Cloud worker(file, {{"fail", {{"create", how}}}});
    testing::FakeContext context;
    JobResult result;
    std::thread job([&] {
      result = worker.run(kThing, CreateJob{key, {Json{{"name", key}}.dump(), {}}, std::nullopt}, context);
    });
    while (file.count("SELECT count(*) FROM calls WHERE name = '" + key + "'") == 0) std::this_thread::yield();
    context.stop();
    job.join();
    return result;
  };
  const auto outcome = [&] { return file.query("SELECT outcome FROM calls ORDER BY seq DESC").at(0); };
  CHECK(code(stopped("a", {{"hang_before_ms", 3'600'000}})) == Errc::kCancelled);
  CHECK(outcome() == "CANCELLED");
  CHECK(code(stopped("b", {{"hang_after_ms", 3'600'000}})) == Errc::kCancelled);
  CHECK(outcome() == "applied");
  CHECK(done(stopped("c", {{"hang_before_ms", 100}, {"hang_after_ms", 1}, {"stubborn", true}})).status ==
        MutationStatus::kSuccess);
  CHECK(file.query("SELECT name FROM objects ORDER BY seq") == std::vector<std::string>{"first", "b", "c"});
}

TEST_CASE("mistakes in what writes need name the key") {
  const StateFile file;
  const std::vector<std::pair<Json, std::string>> mistakes = {
      {{{"consistency_ms", 2000}}, "config.consistency_ms"},
      {{{"async_ms", -1}}, "config.async_ms"},
      {{{"unique_names", 1}}, "config.unique_names"},
      {{{"fail", 1}}, "config.fail:"},
      {{{"fail", {{"list", Json::object()}}}}, "config.fail.list:"},
      {{{"fail", {{"create", 1}}}}, "config.fail.create:"},
      {{{"fail", {{"create", {{"before", 2}}}}}}, "config.fail.create.before:"},
      {{{"fail", {{"create", {{"befor", 1}}}}}}, "config.fail.create.befor:"},
      {{{"fail", {{"create", {{"code", "OOPS"}}}}}}, "config.fail.create.code:"},
      {{{"fail", {{"delete", {{"hang_after_ms", "x"}}}}}}, "config.fail.delete.hang_after_ms:"},
      {{{"fail_names", {{"a", 1}}}}, "config.fail_names.a:"},
      {{{"fail_names", "a"}}, "config.fail_names:"},
      {{{"state", "relative"}}, "config.state:"},
  };
  for (const auto& [config, key] : mistakes) {
    Cloud worker(file);
    worker.config.update(config);
    const auto error = std::get<Error>(worker.run(kThing, ListJob{}));
    CHECK(error.code == Errc::kInvalidRequest);
    CHECK(error.message.find(key) == 0);
  }
  Cloud worker(file);
  worker.config["state"] = file.path + "/no/such/directory";
  CHECK(std::get<Error>(worker.run(kThing, ListJob{})).message.find("config.state:") == 0);
  worker.config = {{"async_ms", 5}};
  CHECK(std::get<Error>(worker.run(kThing, ListJob{})).message.find("config.async_ms: needs") == 0);
}
