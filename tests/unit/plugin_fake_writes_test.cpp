#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "plugins/fake/fake.h"
#include "support/scratch.h"
#include "worker_sdk/testing/fake_context.h"

namespace stdfs = std::filesystem;
using namespace muster;

namespace {

constexpr const char* kThing = "FAKE::Cloud::Thing0";
constexpr const char* kPart = "FAKE::Cloud::Part";

/// A file for one test's cloud, gone at the end.
class StateFile {
 public:
  /// What a user sees with `sqlite3`: the first column of each row.
  [[nodiscard]] std::vector<std::string> query(const std::string& sql) const {
    sqlite3* raw = nullptr;
    sqlite3_open(path.c_str(), &raw);
    sqlite3_busy_timeout(raw, 30'000);  // the plugin may be closing the file
    std::vector<std::string> rows;
    const auto take = [](void* to, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(values[0] == nullptr ? "NULL" : values[0]);
      return 0;
    };
    const int status = sqlite3_exec(raw, sql.c_str(), take, &rows, nullptr);
    const std::string error = sqlite3_errmsg(raw);
    sqlite3_close(raw);
    if (status != SQLITE_OK) throw std::runtime_error(error);
    return rows;
  }
  [[nodiscard]] int count(const std::string& sql) const { return std::stoi(query(sql).at(0)); }
  /// Everything that stands in the file and its journal.
  [[nodiscard]] std::string bytes() const {
    std::string all;
    for (const auto& entry : stdfs::directory_iterator(scratch_.path)) {
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }

 private:
  const test::Scratch scratch_;

 public:
  const std::string path = scratch_.path / "cloud.db";
};

/// One worker's plugin, with a clock that is moved.
struct Cloud {
  std::atomic<std::int64_t> now = 1'700'000'000'000;
  Plugin plugin{fake::plugin_info()};
  Json config;

  explicit Cloud(const StateFile& file, Json more = Json::object()) : config(std::move(more)) {
    config["state"] = file.path;
    if (!config.contains("resources")) config["resources"] = 0;
    fake::add_types(plugin, [this] { return now.load(); });
  }

  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation, JobContext& context) const {
    Job job;
    job.ns = "FAKE";
    job.type = type;
    job.target = Target{TargetId("test"), "test", {}};
    job.operation = std::move(operation);
    return plugin.run(job, config, context);
  }
  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation) const {
    testing::FakeContext context;
    return run(type, std::move(operation), context);
  }
  [[nodiscard]] JobResult create(const std::string& key, const Json& properties, const char* type = kThing) const {
    return run(type, CreateJob{key, {properties.dump(), {}}, std::nullopt});
  }
  [[nodiscard]] JobResult update(const std::string& key, const std::string& id, const Json& desired,
                                 Precondition precondition = {}, const char* type = kThing) const {
    return run(type, UpdateJob{key, id, "{}", {desired.dump(), {}}, "[]", std::move(precondition)});
  }
  [[nodiscard]] JobResult remove(const std::string& key, const std::string& id, Precondition precondition = {},
                                 const char* type = kThing) const {
    return run(type, DeleteJob{key, id, std::move(precondition)});
  }
  [[nodiscard]] ReadItem read(const std::string& id, const char* type = kThing) const {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }
  [[nodiscard]] std::vector<std::string> list(std::uint32_t page_size = 100) const {
    std::vector<std::string> ids;
    for (const auto& item : testing::list_all(plugin, kThing, config, std::nullopt, page_size).items) {
      ids.push_back(item.native_id);
    }
    return ids;
  }
};

MutationResult done(const JobResult& result) {
  if (const auto* error = std::get_if<Error>(&result)) throw std::runtime_error(error->message);
  return std::get<MutationResult>(result);
}

Errc code(const JobResult& result) {
  const auto* error = std::get_if<Error>(&result);
  return error == nullptr ? Errc{0} : error->code;
}

bool there(const ReadItem& answer) {
  return std::holds_alternative<Item>(answer);
}

/// How a process ended that ran `act`.
template <typename Act>
int status_of_process(Act act) {
  const auto child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("without a state nothing can be written, and the answer says what to do") {
  const StateFile file;
  Cloud worker(file);
  worker.config.erase("state");
  for (const auto& result : {worker.create("k", {{"name", "a"}}), worker.update("k", "x", {{"name", "a"}}),
                             worker.remove("k", "x"), worker.run(kThing, StatusJob{"r", ""})}) {
    CHECK(code(result) == Errc::kUnsupported);
    CHECK(std::get<Error>(result).message.find("config.state") != std::string::npos);
  }
  CHECK_FALSE(stdfs::exists(file.path));
}

TEST_CASE("what is created is read, listed, updated and deleted") {
  const StateFile file;
  const Cloud worker(file);
  const Json wanted = {{"name", "web"},
                       {"region", "eu"},
                       {"owner", "me"},
                       {"document", R"({ "b": 1, "a": [ ] })"},
                       {"Tags", {{{"Key", "Z"}, {"Value", "1"}}, {{"Key", "A"}, {"Value", "2"}}}}};
  const auto made = done(worker.create("k1", wanted));
  CHECK(made.native_id.find("thing0-w-") == 0);
  CHECK_FALSE(made.uid.empty());
  const auto properties = Json::parse(made.properties);
  CHECK(properties.dump() == made.properties);
  CHECK(properties["id"] == made.native_id);
  CHECK(properties["endpoint"] == "https://" + made.native_id + ".fake.invalid");
  CHECK(properties["created_at"] == "2023-11-14T22:13:20.000Z");
  CHECK(properties["revision"] == 0);
  CHECK(properties["size"] == 0);
  CHECK(properties["notes"] == "");
  CHECK(properties["document"] == R"({"a":[],"b":1})");
  CHECK(properties["Tags"][0]["Key"] == "A");
  CHECK(std::get<Item>(worker.read(made.native_id)) == Item{made.native_id, made.uid, made.properties});
  CHECK(worker.list() == std::vector{made.native_id});
  CHECK_FALSE(there(worker.read(made.native_id, "FAKE::Cloud::Thing1")));

  auto desired = wanted;
  desired["size"] = 7;
  desired["owner"] = nullptr;
  desired["name"] = "www";
  const auto changed = Json::parse(done(worker.update("k2", made.native_id, desired)).properties);
  CHECK(changed["size"] == 7);
  CHECK(changed["name"] == "www");
  CHECK(changed["region"] == "eu");
  CHECK(changed["revision"] == 1);
  CHECK_FALSE(changed.contains("owner"));
  CHECK(changed["endpoint"] == properties["endpoint"]);
  CHECK(std::get<Item>(worker.read(made.native_id)).properties == changed.dump());

  CHECK(done(worker.remove("k3", made.native_id)).native_id == made.native_id);
  CHECK_FALSE(there(worker.read(made.native_id)));
  CHECK(worker.list().empty());
  CHECK(done(worker.remove("k3", made.native_id)).status == MutationStatus::kSuccess);
  CHECK(done(worker.remove("k4", made.native_id)).status == MutationStatus::kSuccess);
  CHECK(code(worker.update("k5", made.native_id, wanted)) == Errc::kNotFound);
  CHECK(file.query("SELECT operation || ' ' || outcome FROM calls ORDER BY seq") ==
        std::vector<std::string>{"create applied", "update applied", "delete applied", "delete again", "delete absent",
                                 "update NOT_FOUND"});
  CHECK(file.count("SELECT count(*) FROM objects WHERE deleted") == 1);
}

TEST_CASE("one key makes one object, in whatever worker") {
  const StateFile file;
  const Cloud first(file), second(file);
  const auto made = done(first.create("k", {{"name", "a"}}));
  CHECK(done(second.create("k", {{"name", "a"}})) == made);
  CHECK(code(second.create("other", {{"name", "a"}})) == Errc::kAlreadyExists);
  CHECK(file.count("SELECT count(*) FROM objects") == 1);
}

TEST_CASE("workers that begin at once make each object once") {
  const StateFile file;
  std::vector<std::thread> threads;
  std::set<std::string> ids;
  std::mutex mutex;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&] {
      const Cloud mine(file);
      for (int i = 0; i < 10; ++i) {
        const auto made = done(mine.create("k" + std::to_string(i), {{"name", std::to_string(i)}}));
        const std::lock_guard lock(mutex);
        ids.insert(made.native_id);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(ids.size() == 10);
  CHECK(file.count("SELECT count(*) FROM objects") == 10);
  CHECK(file.count("SELECT count(*) FROM calls WHERE outcome = 'applied'") == 10);
  CHECK(file.count("SELECT count(*) FROM calls WHERE outcome = 'again'") == 30);
}

TEST_CASE("a key whose object was deleted makes no other one") {
  const StateFile file;
  const Cloud worker(file);
  const auto made = done(worker.create("k", {{"name", "a"}}));
  done(worker.remove("k2", made.native_id));
  CHECK(code(worker.create("k", {{"name", "a"}})) == Errc::kNotFound);
  CHECK(done(worker.create("k3", {{"name", "a"}})).native_id != made.native_id);
}

TEST_CASE("a cloud without unique names makes doubles") {
  const StateFile file;
  const Cloud worker(file, {{"unique_names", false}});
  const auto one = done(worker.create("k1", {{"name", "a"}}));
  CHECK(done(worker.create("k2", {{"name", "a"}})).native_id != one.native_id);
  CHECK(done(worker.create("k1", {{"name", "a"}})).native_id == one.native_id);
  CHECK(file.query("SELECT name FROM objects GROUP BY name HAVING count(*) > 1") == std::vector<std::string>{"a"});
}

TEST_CASE("an update counts once for a key") {
  const StateFile file;
  const Cloud worker(file);
  const auto id = done(worker.create("k", {{"name", "a"}})).native_id;
  const auto revision = [](const JobResult& result) { return Json::parse(done(result).properties)["revision"]; };
  const Precondition before{"", "not the hash of anything"};
  CHECK(revision(worker.update("u1", id, {{"name", "a"}, {"size", 1}})) == 1);
  CHECK(revision(worker.update("u1", id, {{"name", "a"}, {"size", 1}}, before)) == 1);
  CHECK(revision(worker.update("u2", id, {{"name", "a"}, {"size", 2}})) == 2);
  // The present state, whoever changed it since.
  CHECK(Json::parse(done(worker.update("u1", id, {{"name", "a"}, {"size", 1}})).properties)["size"] == 2);
  CHECK(file.count("SELECT count(*) FROM calls WHERE operation = 'update' AND outcome = 'applied'") == 2);
}

TEST_CASE("a precondition is that of the object as it is") {
  const StateFile file;
  const Cloud worker(file);
  const auto made = done(worker.create("k", {{"name", "a"}}));
  const Json desired = {{"name", "a"}, {"size", 1}};
  for (const auto& wrong : {Precondition{"another", ""}, Precondition{"", std::string(32, '0')}}) {
    CHECK(code(worker.update("u", made.native_id, desired, wrong)) == Errc::kConflict);
    CHECK(code(worker.remove("d", made.native_id, wrong)) == Errc::kConflict);
  }
  CHECK(std::get<Item>(worker.read(made.native_id)).properties == made.properties);
  CHECK(done(worker.update("u", made.native_id, desired, {made.uid, ""})).native_id == made.native_id);
  CHECK(done(worker.remove("d", made.native_id, {made.uid, ""})).native_id == made.native_id);
}

TEST_CASE("what no thing can be is refused, and names the property") {
  const StateFile file;
  const Cloud worker(file);
  const std::vector<std::pair<Json, std::string>> mistakes = {
      {Json::object(), "properties.name"},
      {{{"name", ""}}, "properties.name"},
      {{{"name", 1}}, "properties.name"},
      {{{"name", "a"}, {"size", -1}}, "properties.size"},
      {{{"name", "a"}, {"size", 1.5}}, "properties.size"},
      {{{"name", "a"}, {"Tags", "x"}}, "properties.Tags"},
      {{{"name", "a"}, {"Tags", {{{"Key", "x"}}}}}, "properties.Tags"},
      {{{"name", "a"}, {"document", "{"}}, "properties.document"},
      {{{"name", "a"}, {"secret", 12345}}, "properties.secret"},
      {{{"name", "a"}, {"thing", "x"}}, "properties.thing"},
      {{{"name", "a"}, {"id", "x"}}, "properties.id"},
      {{{"name", "a"}, {"nmae", "x"}}, "properties.nmae"},
  };
  for (const auto& [properties, key] : mistakes) {
    const auto result = worker.create("k", properties);
    CHECK(code(result) == Errc::kInvalidRequest);
    CHECK(std::get<Error>(result).message.find(key) == 0);
  }
  CHECK(code(worker.create("k", {{"name", "a"}}, "FAKE::Cloud::Thing1")) == Errc::kInvalidRequest);
  const auto id = done(worker.create("k", {{"name", "a"}, {"region", "eu"}})).native_id;
  CHECK(code(worker.update("u", id, {{"name", "a"}, {"region", "us"}})) == Errc::kInvalidRequest);
  done(worker.create("k2", {{"name", "b"}}));
  CHECK(code(worker.update("u", id, {{"name", "b"}})) == Errc::kAlreadyExists);
}

TEST_CASE("changes take their time, and any worker knows how they go") {
  const StateFile file;
  Cloud first(file, {{"async_ms", 1000}}), second(file, {{"async_ms", 1000}});
  const auto begun = done(first.create("k", {{"name", "a"}}));
  CHECK(begun.status == MutationStatus::kInProgress);
  CHECK(begun.properties.empty());
  CHECK(done(second.create("k", {{"name", "a"}})) == begun);
  CHECK_FALSE(there(second.read(begun.native_id)));
  second.now += 999;
  CHECK(done(second.run(kThing, StatusJob{begun.request_id, ""})) == begun);
  second.now += 1;
  const auto made = done(second.run(kThing, StatusJob{begun.request_id, begun.native_id}));
  CHECK(made.status == MutationStatus::kSuccess);
  CHECK(std::get<Item>(second.read(begun.native_id)).properties == made.properties);
  CHECK(done(second.create("k", {{"name", "a"}})) == made);
  CHECK(code(second.run(kThing, StatusJob{"create-0", ""})) == Errc::kNotFound);
  first.now = second.now.load();

  const auto changing = done(first.update("u", made.native_id, {{"name", "a"}, {"size", 1}}));
  CHECK(changing.status == MutationStatus::kInProgress);
  CHECK(changing.request_id != begun.request_id);
  first.now += 1000;
  CHECK(Json::parse(done(first.run(kThing, StatusJob{changing.request_id, ""})).properties)["size"] == 1);

  const auto going = done(first.remove("d", made.native_id));
  CHECK(going.status == MutationStatus::kInProgress);
  CHECK(there(first.read(made.native_id)));
  CHECK(done(first.remove("d", made.native_id)) == going);
  CHECK(code(first.remove("d2", made.native_id)) == Errc::kConflict);
  CHECK(code(first.update("u2", made.native_id, {{"name", "a"}})) == Errc::kConflict);
  first.now += 1000;
  CHECK(done(first.run(kThing, StatusJob{going.request_id, made.native_id})).properties.empty());
  CHECK_FALSE(there(first.read(made.native_id)));
  CHECK(code(first.run(kThing, StatusJob{changing.request_id, ""})) == Errc::kNotFound);
}

TEST_CASE("reads are behind creations for as long as the config says") {
  const StateFile file;
  Cloud worker(file, {{"consistency_ms", 500}});
  const auto id = done(worker.create("k", {{"name", "a"}})).native_id;
  CHECK_FALSE(there(worker.read(id)));
  CHECK(worker.list().empty());
  CHECK(code(worker.create("k2", {{"name", "a"}})) == Errc::kAlreadyExists);
  worker.now += 500;
  CHECK(there(worker.read(id)));
  CHECK(worker.list() == std::vector{id});
}

TEST_CASE("a listing gives computed and written things, each once, at any size of page") {
  const StateFile file;
  const Cloud worker(file, {{"resources", 3}});
  std::set<std::string> wanted = {"thing0-00000000", "thing0-00000001", "thing0-00000002"};
  for (int i = 0; i < 6; ++i) {
    const auto number = std::to_string(i);
    const auto id = done(worker.create("k" + number, {{"name", number}})).native_id;
    if (i % 3 == 0) {
      done(worker.remove("d" + number, id));
    } else {
      wanted.insert(id);
    }
  }
  for (const std::uint32_t size : {1U, 2U, 3U, 4U, 6U, 7U, 100U}) {
    const auto ids = worker.list(size);
    CHECK(ids.size() == wanted.size());
    CHECK(std::set(ids.begin(), ids.end()) == wanted);
  }
  const auto page = std::get<ListResult>(worker.run(kThing, ListJob{std::nullopt, "", 4}));
  CHECK(page.items.size() == 4);
  CHECK(page.next_page_token.find('w') == 0);
  CHECK(code(worker.run(kThing, ListJob{std::nullopt, "wx", 4})) == Errc::kInvalidRequest);
  CHECK(code(worker.run(kThing, ListJob{std::nullopt, "v1", 4})) == Errc::kInvalidRequest);
}

TEST_CASE("computed things can be changed and deleted") {
  const StateFile file;
  const Cloud worker(file, {{"resources", 2}, {"children", 1}});
  const auto before = std::get<Item>(worker.read("thing0-00000001"));
  auto desired = Json::parse(before.properties);
  desired["size"] = 4;
  const auto changed = done(worker.update("u", before.native_id, desired, {before.uid, ""}));
  const auto properties = Json::parse(changed.properties);
  CHECK(properties["size"] == 4);
  CHECK(properties["revision"] == 1);
  CHECK(properties["index"] == 1);
  CHECK(properties["payload"] == desired["payload"]);
  CHECK(std::get<Item>(worker.read(before.native_id)) == Item{before.native_id, before.uid, changed.properties});
  const auto page = testing::list_all(worker.plugin, kThing, worker.config, std::nullopt, 1);
  REQUIRE(page.items.size() == 2);
  CHECK(page.items[1].properties == changed.properties);

  CHECK(there(worker.read("thing0-00000001/part-0000", kPart)));
  done(worker.remove("d", before.native_id, {before.uid, ""}));
  CHECK(worker.list() == std::vector<std::string>{"thing0-00000000"});
  CHECK_FALSE(there(worker.read(before.native_id)));
  CHECK_FALSE(there(worker.read("thing0-00000001/part-0000", kPart)));
  CHECK(there(worker.read("thing0-00000000/part-0000", kPart)));
  CHECK(code(worker.run(kPart, ListJob{Parent{kThing, before.native_id, "{}"}, "", 10})) == Errc::kNotFound);
}

TEST_CASE("parts are made below written and computed things, and go with them") {
  const StateFile file;
  const Cloud worker(file, {{"resources", 1}, {"children", 2}});
  const auto thing = done(worker.create("t", {{"name", "a"}})).native_id;
  const auto parts_of = [&](const std::string& id, const std::string& parameters) {
    std::vector<std::string> ids;
    for (const auto& item :
         testing::list_all(worker.plugin, kPart, worker.config, Parent{kThing, id, parameters}, 2).items) {
      ids.push_back(item.native_id);
    }
    return ids;
  };
  const auto part = done(worker.create("p", {{"name", "x"}, {"thing", thing}}, kPart));
  CHECK(part.native_id.find(thing + "/part-w-") == 0);
  CHECK(Json::parse(part.properties)["thing"] == thing);
  CHECK(done(worker.create("p", {{"name", "x"}, {"thing", thing}}, kPart)) == part);
  CHECK(parts_of(thing, R"({"thing":"a"})") == std::vector{part.native_id});
  CHECK(code(worker.create("q", {{"name", "x"}}, kPart)) == Errc::kInvalidRequest);
  CHECK(code(worker.create("q", {{"name", "x"}, {"thing", "gone"}}, kPart)) == Errc::kInvalidRequest);
  CHECK(code(worker.create("q", {{"name", "x"}, {"thing", thing}}, kPart)) == Errc::kAlreadyExists);

  const auto name = Json::parse(std::get<Item>(worker.read("thing0-00000000")).properties)["name"];
  const auto below = done(worker.create("c", {{"name", "x"}, {"thing", "thing0-00000000"}}, kPart)).native_id;
  CHECK(parts_of("thing0-00000000", Json{{"thing", name}}.dump()).size() == 3);
  CHECK(parts_of("thing0-00000000", Json{{"thing", name}}.dump()).back() == below);

  done(worker.remove("d", thing));
  CHECK_FALSE(there(worker.read(part.native_id, kPart)));
  CHECK(file.count("SELECT count(*) FROM objects WHERE NOT deleted") == 1);
}

TEST_CASE("a secret never comes back and stands nowhere") {
  const StateFile file;
  const Cloud worker(file);
  const std::string secret = "canary-of-the-fake-cloud";
  std::string answers;
  const auto made = done(worker.create("k", {{"name", "a"}, {"secret", secret}}));
  answers += made.properties;
  answers += done(worker.update("u", made.native_id, {{"name", "a"}, {"secret", secret + "2"}})).properties;
  answers += std::get<Item>(worker.read(made.native_id)).properties;
  answers += std::get<Error>(worker.create("k2", {{"name", "a"}, {"secret", secret}})).message;
  answers += std::get<ListResult>(worker.run(kThing, ListJob{})).items.at(0).properties;
  CHECK(answers.find("canary") == std::string::npos);
  CHECK(answers.find("secret") == std::string::npos);
  CHECK(file.bytes().find("canary") == std::string::npos);
  CHECK(file.bytes().find(made.native_id) != std::string::npos);
  const auto hash = file.query("SELECT secret_hash FROM objects");
  CHECK(hash.at(0).size() == 64);
  done(worker.update("u2", made.native_id, {{"name", "a"}}));  // not given: it stays
  CHECK(file.query("SELECT secret_hash FROM objects") == hash);
}

TEST_CASE("what was written belongs to the target, by its id or its name") {
  const StateFile file;
  const Cloud worker(file);
  done(worker.create("k", {{"name", "a"}}));
  const auto seen = [&](const char* id, const char* name) {
    Job job;
    job.ns = "FAKE";
    job.type = kThing;
    job.target = Target{TargetId(id), name, {}};
    job.operation = ListJob{};
    testing::FakeContext context;
    return std::get<ListResult>(worker.plugin.run(job, worker.config, context)).items.size();
  };
  CHECK(seen("test", "renamed") == 1);
  CHECK(seen("new", "test") == 1);
  CHECK(seen("new", "other") == 0);
}

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
