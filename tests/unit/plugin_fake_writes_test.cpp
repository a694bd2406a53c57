// What is written to the fake cloud is there, once, for as long as it should be.
#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "plugin_fake_cloud.h"

using namespace muster;
using namespace muster::fake::test_cloud;

TEST_CASE("without a state nothing can be written, and the answer says what to do") {
  const StateFile file;
  Cloud worker(file);
  worker.config.erase("state");
  for (const auto& result : {worker.create("k", {{"name", "a"}}), worker.update("k", "x", {{"name", "a"}}),
                             worker.remove("k", "x"), worker.run(kThing, StatusJob{"r", ""})}) {
    CHECK(code(result) == Errc::kUnsupported);
    CHECK(std::get<Error>(result).message.find("config.state") != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(file.path));
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
