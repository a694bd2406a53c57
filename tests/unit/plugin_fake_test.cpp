#include "plugins/fake/fake.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "plugins/fake/cloud.h"
#include "worker_sdk/testing/fake_context.h"

using namespace muster;

namespace {

struct Fake {
  Plugin plugin{fake::plugin_info()};
  Json config;

  explicit Fake(Json target_config = Json::object()) : config(std::move(target_config)) { fake::add_types(plugin); }

  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation) const {
    testing::FakeContext context;
    return run(type, std::move(operation), context);
  }
  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation, JobContext& context) const {
    Job job;
    job.ns = "FAKE";
    job.type = type;
    job.operation = std::move(operation);
    return plugin.run(job, config, context);
  }

  [[nodiscard]] std::vector<Item> things(std::uint32_t type = 0, std::uint32_t page_size = 100'000) const {
    return testing::list_all(plugin, "FAKE::Cloud::Thing" + std::to_string(type), config, std::nullopt, page_size)
        .items;
  }
  [[nodiscard]] std::vector<Item> parts(const Item& thing) const {
    const Json parameters = {{"thing", Json::parse(thing.properties)["name"]}};
    const Parent parent{"FAKE::Cloud::Thing0", thing.native_id, parameters.dump()};
    return testing::list_all(plugin, "FAKE::Cloud::Part", config, parent, 7).items;
  }
  [[nodiscard]] ReadItem read(const std::string& type, const std::string& id) const {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }
};

std::set<std::string> ids_of(const std::vector<Item>& items) {
  std::set<std::string> ids;
  for (const auto& item : items) ids.insert(item.native_id);
  return ids;
}

/// How two epochs of a cloud differ.
struct Difference {
  std::size_t changed = 0, renamed = 0, vanished = 0, appeared = 0;
  bool operator==(const Difference&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Difference& d) {
  return out << d.changed << " changed, " << d.renamed << " renamed, " << d.vanished << " vanished, " << d.appeared
             << " appeared";
}

Difference difference(const std::vector<Item>& before, const std::vector<Item>& after) {
  std::map<std::string, const Item*> old;
  for (const auto& item : before) old[item.uid] = &item;
  Difference d;
  for (const auto& item : after) {
    const auto found = old.find(item.uid);
    if (found == old.end()) {
      ++d.appeared;
      continue;
    }
    const auto& was = *found->second;
    if (was.native_id != item.native_id) {
      ++d.renamed;
    } else if (was.properties != item.properties) {
      ++d.changed;
    }
    old.erase(found);
  }
  d.vanished = old.size();
  return d;
}

bool has_temp_tag(const Item& item) {
  const auto properties = Json::parse(item.properties);
  for (const auto& tag : properties["Tags"]) {
    if (tag == Json{{"Key", "Temp"}, {"Value", "true"}}) return true;
  }
  return false;
}

/// The share of `calls` lists that fail with `code`.
double failing_share(const Json& config, Errc code, int calls) {
  const Fake fake(config);
  int failed = 0;
  for (int i = 0; i < calls; ++i) {
    const auto result = fake.run("FAKE::Cloud::Thing0", ListJob{});
    const auto* error = std::get_if<Error>(&result);
    if (error != nullptr && error->code == code) ++failed;
  }
  return static_cast<double>(failed) / calls;
}

}  // namespace

TEST_CASE("the manifest holds together") {
  const auto manifest = Fake().plugin.manifest();
  CHECK(manifest.ns == "FAKE");
  REQUIRE(manifest.types.size() == 17);
  CHECK(manifest.types[15].name == "FAKE::Cloud::Thing15");
  const auto& part = manifest.types[16];
  CHECK(part.parent == "FAKE::Cloud::Thing0");
  CHECK(part.parent_parameters == std::vector{ParentParameter{"thing", "name"}});
  for (const auto& type : manifest.types) CHECK(Json::accept(type.schema));
  CHECK(Json::accept(manifest.config_schema));
}

TEST_CASE("the config alone decides what there is") {
  const Json config = {{"seed", 7}, {"resources", 50}};
  const auto things = Fake(config).things();
  CHECK(Fake(config).things() == things);
  CHECK(Fake(Json{{"seed", 8}, {"resources", 50}}).things() != things);
  CHECK(things.size() == 50);
  CHECK(ids_of(things).size() == 50);
  CHECK(things[42].native_id == "thing0-00000042");
  std::set<std::string> uids;
  for (const auto& item : things) uids.insert(item.uid);
  CHECK(uids.size() == 50);

  const auto properties = Json::parse(things[42].properties);
  CHECK(properties["index"] == 42);
  CHECK(properties["Tags"][0]["Key"] == "Env");
  CHECK(properties["Tags"][1] == Json{{"Key", "Name"}, {"Value", properties["name"]}});
  CHECK(properties.contains("region"));
  CHECK(properties.contains("size"));
  CHECK(Fake().things().size() == 100);
}

TEST_CASE("properties are canonical and as large as wanted") {
  for (const std::uint32_t bytes : {400U, 401U, 600U, 5000U, 200'000U}) {
    for (const auto& item : Fake(Json{{"resources", 5}, {"bytes", bytes}, {"filtered_share", 0.5}}).things()) {
      CHECK(item.properties.size() == bytes);
      CHECK(Json::parse(item.properties).dump() == item.properties);
    }
  }
  for (const auto& item : Fake(Json{{"bytes", 0}}).things())
    CHECK(Json::parse(item.properties).dump() == item.properties);
}

TEST_CASE("pages of any size give the same things, each once") {
  const auto all = Fake(Json{{"resources", 103}}).things();
  for (const std::uint32_t page : {1U, 2U, 50U, 102U, 103U, 104U}) {
    CHECK(Fake(Json{{"resources", 103}, {"page", page}}).things() == all);
    CHECK(Fake(Json{{"resources", 103}}).things(0, page) == all);
  }
  const Fake fake(Json{{"resources", 103}, {"page", 10}});
  const auto page = std::get<ListResult>(fake.run("FAKE::Cloud::Thing0", ListJob{std::nullopt, "", 1000}));
  CHECK(page.items.size() == 10);
  CHECK(page.next_page_token == "10");
  CHECK(std::get<Error>(fake.run("FAKE::Cloud::Thing0", ListJob{std::nullopt, "x", 10})).code == Errc::kInvalidRequest);
  // A page stays of a size that can be sent.
  const Fake heavy(Json{{"resources", 100}, {"bytes", 1 << 20}});
  CHECK(std::get<ListResult>(heavy.run("FAKE::Cloud::Thing0", ListJob{})).items.size() < 5);
}

TEST_CASE("only as many types have things as the config says") {
  const Fake fake(Json{{"types", 3}, {"resources", 10}});
  for (std::uint32_t type = 0; type < 16; ++type) CHECK(fake.things(type).size() == (type < 3 ? 10 : 0));
  CHECK(fake.things(2)[0].native_id == "thing2-00000000");
  const auto types = [](const Json& config) {
    return std::get<InspectResult>(Fake(config).run("", InspectJob{})).types;
  };
  CHECK(types({{"types", 2}}) == std::vector<std::string>{"FAKE::Cloud::Thing0", "FAKE::Cloud::Thing1"});
  CHECK(types({{"children", 1}}) == std::vector<std::string>{"FAKE::Cloud::Thing0", "FAKE::Cloud::Part"});
  CHECK(Fake(Json{{"resources", 0}}).things().empty());
}

TEST_CASE("a read gives what the list gives, for the ids that exist") {
  const Fake fake(Json{{"resources", 20}, {"types", 2}, {"children", 3}});
  for (const auto& item : fake.things(1))
    CHECK(std::get<Item>(fake.read("FAKE::Cloud::Thing1", item.native_id)) == item);
  for (const auto* id :
       {"thing0-00000020", "thing0-5", "thing0-000000005", "thing1-00000005", "thing2-00000000", "thing0-00000005-2",
        "thing0-00000005/part-0000", "thing0-", "thing", "x", "thing-1-00000000"}) {
    CHECK(std::get<Error>(fake.read("FAKE::Cloud::Thing0", id)).code == Errc::kNotFound);
    CHECK(std::get<Error>(fake.read("FAKE::Cloud::Part", std::string(id) + "/part-0003")).code == Errc::kNotFound);
  }
  const auto answers = testing::read_all(fake.plugin, "FAKE::Cloud::Thing0", fake.config, {"thing0-00000001", "gone"});
  CHECK(std::get<Item>(answers.at(0)).native_id == "thing0-00000001");
  CHECK(std::get<Error>(answers.at(1)).code == Errc::kNotFound);
}

TEST_CASE("with list_properties off a list gives ids only") {
  const Fake fake(Json{{"list_properties", false}, {"children", 2}});
  const auto full = Fake(Json{{"children", 2}}).things();
  const auto bare = fake.things();
  REQUIRE(ids_of(bare) == ids_of(full));
  for (const auto& item : bare) CHECK(item.properties.empty());
  CHECK(std::get<Item>(fake.read("FAKE::Cloud::Thing0", full[3].native_id)) == full[3]);
  for (const auto& item : fake.parts(full[3])) CHECK(item.properties.empty());
}

TEST_CASE("parts stand below things of the first type") {
  const Fake fake(Json{{"resources", 4}, {"types", 2}, {"children", 20}});
  const auto thing = fake.things()[2];
  const auto parts = fake.parts(thing);
  CHECK(ids_of(parts).size() == 20);
  CHECK(parts[3].native_id == "thing0-00000002/part-0003");
  CHECK(Json::parse(parts[3].properties)["thing"] == Json::parse(thing.properties)["name"]);
  CHECK(Json::parse(parts[3].properties).dump() == parts[3].properties);
  for (const auto& part : parts) CHECK(std::get<Item>(fake.read("FAKE::Cloud::Part", part.native_id)) == part);

  const auto code = [&](const Parent& parent) {
    return std::get<Error>(fake.run("FAKE::Cloud::Part", ListJob{parent, "", 10})).code;
  };
  CHECK(code({"FAKE::Cloud::Thing0", "thing0-00000099", "{}"}) == Errc::kNotFound);
  CHECK(code({"FAKE::Cloud::Thing0", "thing1-00000000", "{}"}) == Errc::kNotFound);
  CHECK(code({"FAKE::Cloud::Thing0", "thing0-00000001", "{}"}) == Errc::kInvalidRequest);  // without its parameter
  CHECK(std::get<Error>(fake.run("FAKE::Cloud::Part", ListJob{})).code == Errc::kInvalidRequest);
}

TEST_CASE("an epoch differs from the one before by its shares") {
  const auto at = [](std::uint32_t epoch) {
    return Fake(Json{{"resources", 1'000},
                     {"bytes", 0},
                     {"change_share", 0.03},
                     {"rename_share", 0.02},
                     {"vanish_share", 0.01},
                     {"appear_share", 0.01},
                     {"epoch", epoch}});
  };
  auto before = at(0).things();
  for (std::uint32_t epoch = 1; epoch <= 10; ++epoch) {
    const auto now = at(epoch);
    const auto after = now.things();
    INFO("epoch " << epoch);
    CHECK(after.size() == 1'000);
    CHECK(difference(before, after) == Difference{30, 20, 10, 10});
    const auto ids = ids_of(after);
    const auto old_ids = ids_of(before);
    const std::vector<std::string> asked(old_ids.begin(), old_ids.end());
    const auto answers = testing::read_all(now.plugin, "FAKE::Cloud::Thing0", now.config, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (std::holds_alternative<Item>(answers.at(i)) != ids.contains(asked[i])) FAIL(asked[i]);
    }
    before = after;
  }
  CHECK(at(7).things() == at(7).things());
  CHECK(difference(at(0).things(), at(10).things()) == Difference{300, 200, 100, 100});
}

TEST_CASE("which things an epoch meets is what the README says") {
  const auto thing = [](std::uint32_t epoch, std::uint64_t index) {
    const Fake fake(Json{{"resources", 10}, {"change_share", 0.2}, {"rename_share", 0.1}, {"epoch", epoch}});
    const auto item = fake.things().at(index);
    return item.native_id + " r" + Json::parse(item.properties)["revision"].dump();
  };
  CHECK(thing(0, 9) == "thing0-00000009 r0");
  CHECK(thing(1, 9) == "thing0-00000009 r1");
  CHECK(thing(1, 8) == "thing0-00000008 r1");
  CHECK(thing(1, 7) == "thing0-00000007 r0");
  CHECK(thing(2, 7) == "thing0-00000007 r1");
  CHECK(thing(6, 9) == "thing0-00000009-2 r2");
  CHECK(thing(1, 4) == "thing0-00000004-2 r0");
  CHECK(thing(1, 3) == "thing0-00000003 r0");
  CHECK(thing(10, 3) == "thing0-00000003-2 r2");
  CHECK(thing(11, 4) == "thing0-00000004-3 r2");
}

TEST_CASE("a cloud grows and shrinks as its shares say") {
  const auto ids = [](const Json& config) { return ids_of(Fake(config).things()); };
  CHECK(ids({{"resources", 4}, {"vanish_share", 0.25}, {"epoch", 3}}) == std::set<std::string>{"thing0-00000003"});
  CHECK(ids({{"resources", 4}, {"vanish_share", 0.25}, {"epoch", 4}}).empty());
  CHECK(ids({{"resources", 4}, {"vanish_share", 0.25}, {"epoch", 4294967295U}}).empty());
  CHECK(ids({{"resources", 0}, {"appear_share", 1}, {"epoch", 9}}).empty());
  CHECK(ids({{"resources", 2}, {"appear_share", 0.5}, {"epoch", 1}}) ==
        std::set<std::string>{"thing0-00000000", "thing0-00000001", "thing0-00000002"});
  const Json late{{"resources", 2}, {"appear_share", 1}, {"vanish_share", 1}, {"epoch", 4294967295U}};
  CHECK(ids(late) == std::set<std::string>{"thing0-8589934590", "thing0-8589934591"});
  CHECK(Fake(late).things(0, 1) == Fake(late).things());
  CHECK(std::get<Item>(Fake(late).read("FAKE::Cloud::Thing0", "thing0-8589934590")).native_id == "thing0-8589934590");
}

TEST_CASE("a page token of an older epoch goes on where there is something") {
  const Fake fake(Json{{"resources", 10}, {"vanish_share", 0.5}, {"appear_share", 0.5}, {"epoch", 1}});
  const auto page = std::get<ListResult>(fake.run("FAKE::Cloud::Thing0", ListJob{std::nullopt, "2", 3}));
  REQUIRE(page.items.size() == 3);
  CHECK(page.items[0].native_id == "thing0-00000005");
  CHECK(page.next_page_token == "8");
  const auto behind = std::get<ListResult>(fake.run("FAKE::Cloud::Thing0", ListJob{std::nullopt, "99", 3}));
  CHECK(behind.items.empty());
  CHECK(behind.next_page_token.empty());
}

TEST_CASE("parts go with their thing and do not change by themselves") {
  const auto at = [](std::uint32_t epoch) {
    return Fake(Json{{"resources", 10},
                     {"children", 2},
                     {"filtered_share", 0.5},
                     {"change_share", 1},
                     {"rename_share", 0.1},
                     {"epoch", epoch}});
  };
  const auto before = at(0).things();
  const auto after = at(1).things();
  CHECK(difference(before, after) == Difference{9, 1, 0, 0});
  CHECK(difference(at(0).parts(before[0]), at(1).parts(after[0])) == Difference{});
  CHECK(after[4].native_id == "thing0-00000004-2");
  const auto parts = at(1).parts(after[4]);
  CHECK(difference(at(0).parts(before[4]), parts) == Difference{0, 2, 0, 0});
  CHECK(parts[1].native_id == "thing0-00000004-2/part-0001");
  CHECK(Json::parse(parts[1].properties)["thing"] == Json::parse(after[4].properties)["name"]);
  for (const auto& thing : after) {
    for (const auto& part : at(1).parts(thing)) CHECK(has_temp_tag(part) == has_temp_tag(thing));
  }
}

TEST_CASE("the announced filter is about the share of things that carry its tag") {
  for (const double share : {0.25, 0.29, 0.001, 1.0}) {
    const Fake fake(Json{{"resources", 2'000}, {"bytes", 0}, {"filtered_share", share}, {"seed", 5}});
    const auto things = fake.things();
    CHECK(std::count_if(things.begin(), things.end(), has_temp_tag) == std::lround(2'000 * share));
    const auto inspection = std::get<InspectResult>(fake.run("", InspectJob{}));
    CHECK(inspection.system == "fake:5");
    CHECK(inspection.filters == std::vector{MatchFilter{{}, {TagMatch{{"Temp"}, "true"}}, FilterAction::kExclude}});
  }
  const Fake plain;
  CHECK(std::get<InspectResult>(plain.run("", InspectJob{})).filters.empty());
  for (const auto& item : plain.things()) CHECK_FALSE(has_temp_tag(item));
}

TEST_CASE("rates are shares of the calls, and a failed call can succeed when repeated") {
  CHECK(failing_share({}, Errc::kServiceUnavailable, 100) == 0);
  CHECK(failing_share({{"error_rate", 1}}, Errc::kServiceUnavailable, 100) == 1);
  CHECK(failing_share({{"throttle_rate", 1}, {"error_rate", 1}}, Errc::kThrottling, 100) == 1);
  CHECK(failing_share({{"error_rate", 0.2}, {"resources", 1}}, Errc::kServiceUnavailable, 2'000) ==
        Approx(0.2).margin(0.04));
  CHECK(failing_share({{"throttle_rate", 0.2}, {"resources", 1}}, Errc::kThrottling, 2'000) ==
        Approx(0.2).margin(0.04));
  const auto error = std::get<Error>(Fake(Json{{"throttle_rate", 1}}).run("FAKE::Cloud::Thing0", ListJob{}));
  CHECK(error.retry_after == Millis{100});

  const Fake down(Json{{"error_rate", 1}});
  CHECK(std::get<Error>(down.run("", InspectJob{})).code == Errc::kServiceUnavailable);
  CHECK(std::get<Error>(down.read("FAKE::Cloud::Thing0", "thing0-00000000")).code == Errc::kServiceUnavailable);
}

TEST_CASE("which calls fail is decided by the seed, whatever the order") {
  const auto failing = [](std::uint64_t seed, const std::vector<int>& pages) {
    const Fake fake(Json{{"seed", seed}, {"error_rate", 0.5}});
    std::set<int> failed;
    for (const auto page : pages) {
      const auto result = fake.run("FAKE::Cloud::Thing0", ListJob{std::nullopt, std::to_string(page), 1});
      if (std::holds_alternative<Error>(result)) failed.insert(page);
    }
    return failed;
  };
  const auto failed = failing(1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK_FALSE(failed.empty());
  CHECK(failed.size() < 10);
  CHECK(failing(1, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}) == failed);
  CHECK(failing(2, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) != failed);
  const Fake fake(Json{{"error_rate", 0.9}});
  int tries = 1;
  while (std::holds_alternative<Error>(fake.run("FAKE::Cloud::Thing0", ListJob{})) && tries < 1'000) ++tries;
  CHECK(tries > 1);
  CHECK(tries < 1'000);
}

TEST_CASE("latencies are distributed as the config says") {
  const auto latencies = [](const Json& config) {
    const auto latency = fake::Config::parse(Json{{"latency_ms", config}})->latency_ms;
    std::vector<double> millis;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      const auto one = latency.of(fake::mix(1, i));
      if (one != latency.of(fake::mix(1, i))) FAIL("not the same for the same call");
      millis.push_back(static_cast<double>(one.count()) / 1000);
    }
    std::sort(millis.begin(), millis.end());
    return millis;
  };
  CHECK(latencies(2.5).front() == 2.5);
  CHECK(latencies(2.5).back() == 2.5);
  CHECK(latencies(0).back() == 0);
  const auto uniform = latencies({{"min", 10}, {"max", 30}});
  CHECK(uniform.front() >= 10);
  CHECK(uniform.back() <= 30);
  CHECK(uniform[5'000] == Approx(20).margin(0.5));
  CHECK(uniform[1'000] == Approx(12).margin(0.5));
  const auto lognormal = latencies({{"p50", 20}, {"p99", 200}});
  CHECK(lognormal.front() > 0);
  CHECK(lognormal[5'000] == Approx(20).epsilon(0.05));
  CHECK(lognormal[9'900] == Approx(200).epsilon(0.15));
  CHECK(latencies({{"p50", 5}, {"p99", 5}}).back() == 5);
  CHECK(latencies({{"p50", 3'000'000}, {"p99", 3'600'000}}).back() == 3'600'000);
}

TEST_CASE("types that the account may not list") {
  const Fake fake(Json{{"types", 2}, {"fail_types", {"FAKE::Cloud::Thing1"}}});
  CHECK(std::get<Error>(fake.run("FAKE::Cloud::Thing1", ListJob{})).code == Errc::kAccessDenied);
  CHECK(fake.things(0).size() == 100);
  CHECK(std::holds_alternative<Item>(fake.read("FAKE::Cloud::Thing1", "thing1-00000000")));
}

TEST_CASE("latency ends with the job") {
  const Fake fake(Json{{"latency_ms", 3'600'000}});
  testing::FakeContext context;
  JobResult result;
  std::thread job([&] { result = fake.run("FAKE::Cloud::Thing0", ListJob{}, context); });
  context.stop();
  job.join();
  CHECK(std::get<Error>(result).code == Errc::kCancelled);
}

TEST_CASE("mistakes in the config name the key") {
  const std::vector<std::pair<Json, std::string>> mistakes = {
      {{{"seed", -1}}, "config.seed"},
      {{{"resources", "many"}}, "config.resources"},
      {{{"types", 0}}, "config.types"},
      {{{"types", 17}}, "config.types"},
      {{{"page", 0}}, "config.page"},
      {{{"bytes", 1.5}}, "config.bytes"},
      {{{"list_properties", 1}}, "config.list_properties"},
      {{{"error_rate", 1.1}}, "config.error_rate"},
      {{{"throttle_rate", -0.1}}, "config.throttle_rate"},
      {{{"change_share", "0.1"}}, "config.change_share"},
      {{{"rename_share", 2}}, "config.rename_share"},
      {{{"vanish_share", -1}}, "config.vanish_share"},
      {{{"appear_share", nullptr}}, "config.appear_share"},
      {{{"filtered_share", 1.5}}, "config.filtered_share"},
      {{{"latency_ms", -1}}, "config.latency_ms:"},
      {{{"latency_ms", 3'600'001}}, "config.latency_ms:"},
      {{{"latency_ms", "fast"}}, "config.latency_ms:"},
      {{{"latency_ms", {{"min", 1}}}}, "config.latency_ms:"},
      {{{"latency_ms", {{"min", 1}, {"max", 2}, {"p50", 1}}}}, "config.latency_ms:"},
      {{{"latency_ms", {{"min", 3}, {"max", 2}}}}, "config.latency_ms.max:"},
      {{{"latency_ms", {{"min", "a"}, {"max", 2}}}}, "config.latency_ms.min:"},
      {{{"latency_ms", {{"p50", 0}, {"p99", 2}}}}, "config.latency_ms.p50:"},
      {{{"latency_ms", {{"p50", 3}, {"p99", 2}}}}, "config.latency_ms.p99:"},
      {{{"epoch", 4294967296U}}, "config.epoch"},
      {{{"fail_types", "FAKE::Cloud::Thing0"}}, "config.fail_types"},
      {{{"fail_types", {1}}}, "config.fail_types"},
      {{{"state", true}}, "config.state"},
      {{{"ressources", 1}}, "config.ressources"},
      {Json::array(), "config"},
  };
  for (const auto& [config, key] : mistakes) {
    const auto error = std::get<Error>(Fake(config).run("FAKE::Cloud::Thing0", ListJob{}));
    CHECK(error.code == Errc::kInvalidRequest);
    CHECK(error.message.find(key) == 0);
  }
  CHECK(Fake(Json{{"seed", 18446744073709551615U}, {"epoch", 1}}).things().size() == 100);
}
