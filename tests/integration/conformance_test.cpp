#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>

#include "support/fleet_client.h"

// `muster plugin test` with a plugin that is sound, or not: it finds the fault, and nothing else.

using namespace muster;
using namespace muster::test;
namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

/// Where things are kept, and the test's inputs.
class Kit : public FleetClient {
 public:
  explicit Kit(const Json& faults = Json::array()) {
    for (const char* name : {"things", "more-things"}) fs::create_directory(directory() / name);
    Json config{{"directory", things()}, {"faults", faults}, {"password", "right"}};
    Json config2 = config;
    config2["directory"] = (directory() / "more-things").string();
    Json bad = config;
    bad["password"] = "wrong";
    std::ofstream(directory() / "target.yaml")
        << Json{{"namespace", "CARELESS"}, {"config", config}, {"config2", config2}, {"bad", {{"config", bad}}}};
  }

  [[nodiscard]] std::string things() const { return directory() / "things"; }
  [[nodiscard]] static fs::path fixtures() {
    return fs::path(std::getenv("MUSTER_SOURCE_DIR")) / "tests/conformance/careless/fixtures";
  }
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more,
                                               const fs::path& fixtures = Kit::fixtures()) const {
    std::vector<std::string> all{
        "plugin",     "test",  built("muster-plugin-careless"), "--target", directory() / "target.yaml",
        "--fixtures", fixtures};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Names of things; drafts of killed workers are none.
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const char* place : {"things", "more-things"}) {
      for (const auto& entry : fs::directory_iterator(directory() / place)) {
        if (const auto name = entry.path().filename().string(); name.front() != '.') names.push_back(name);
      }
    }
    return names;
  }
  pid_t start(const std::vector<std::string>& more, const fs::path& fixtures) const {
    return spawn({command(words(more, fixtures)), {}, directory() / "out", directory() / "err"});
  }
};

/// Names of the rows with that result.
std::set<std::string> rows(const Answer& answer, const std::string& result) {
  std::set<std::string> names;
  for (const auto& row : Json::parse(answer.out)) {
    if (row.at("result") == result) names.insert(row.at("check"));
  }
  return names;
}

}  // namespace

TEST_CASE("a sound plugin passes, and nothing is left of the test") {
  const Kit kit;
  const auto answer = kit.muster(kit.words({"-o", "json"}));
  INFO(answer.out << answer.err);
  CHECK(answer.status == 0);
  CHECK(rows(answer, "failed").empty());
  CHECK(rows(answer, "skipped") == std::set<std::string>{"child-list", "edit", "missing-parent", "remove"});
  CHECK(kit.left().empty());
}

TEST_CASE("each fault fails its checks") {
  struct Fault {
    const char* name;
    std::vector<std::string> checks;  // that are run, beside those of the plugin as a whole
    std::set<std::string> failed;
  };
  const auto fault = GENERATE(values<Fault>({
      {"keys", {"create-read", "same-key", "killed"}, {"same-key", "killed"}},
      {"loses", {"create-read", "list"}, {"list"}},
      {"repeats", {"create-read", "list"}, {"list"}},
      {"unread", {"create-read", "write-only"}, {"create-read", "write-only"}},
      {"prints", {"write-only"}, {"write-only"}},
      {"invents", {"create-read", "unknown-id", "delete"}, {"unknown-id", "delete"}},
      {"forgets", {"create-read", "update", "delete"}, {"update"}},
      {"careless-update", {"update", "precondition"}, {"precondition"}},
      {"crashes", {"create-read", "update", "list"}, {"update"}},
      {"deletes-once", {"create-read", "delete"}, {"delete"}},
      {"takes-anything", {"create-read", "wrong-type"}, {"wrong-type"}},
      {"tries-again", {"create-read"}, {"credentials"}},
  }));
  const Kit kit(Json::array({fault.name}));
  std::vector<std::string> more{"-o", "json"};
  for (const auto& check : fault.checks) more.insert(more.end(), {"--check", check});
  const auto answer = kit.muster(kit.words(more));
  INFO(fault.name << ": " << answer.out << answer.err);
  CHECK(answer.status == 1);
  CHECK(rows(answer, "failed") == fault.failed);
  CHECK(kit.left().empty());
}

TEST_CASE("a test that is stopped deletes what it has made") {
  const Kit kit;
  const auto fixtures = kit.directory() / "fixtures";
  fs::create_directory(fixtures);
  std::ofstream(fixtures / "Thing.yaml")  // so many that the test is not over when it is stopped
      << slurp(Kit::fixtures() / "CARELESS.Thing.yaml") << "many: 1000\n";
  const auto pid = kit.start({"--check", "list", "--check", "many", "--check", "killed"}, fixtures);
  REQUIRE(FleetClient::eventually([&] { return !kit.left().empty(); }));
  ::kill(pid, SIGINT);
  CHECK(wait_for(pid) == 1);
  INFO(slurp(kit.directory() / "out") << slurp(kit.directory() / "err"));
  CHECK(slurp(kit.directory() / "out").find("interrupted") != std::string::npos);
  CHECK(kit.left().empty());
}

TEST_CASE("mistakes in the input are told with their place") {
  const Kit kit;
  const auto fixtures = kit.directory() / "fixtures";
  fs::create_directory(fixtures);
  const auto told = [&](const std::string& fixture) {
    std::ofstream(fixtures / "Thing.yaml") << fixture;
    const auto answer = kit.muster(kit.words({"-q"}, fixtures));
    CHECK(answer.status == 2);
    CHECK(answer.out.empty());
    return answer.err.substr(std::min(answer.err.find("Thing.yaml"), answer.err.size()));
  };
  CHECK(told("type: CARELESS::Thing\n") == "Thing.yaml:1:1: `create` is missing\n");
  CHECK(told("type: CARELESS::Thing\ncreate: {name: \"${nobody.name}\"}\n").starts_with("Thing.yaml:2:16: create"));
  CHECK(told("type: CARELESS::Thing\ncreate: {name: a}\nneeds: [Other]\n") ==
        "Thing.yaml:3:9: needs[0]: no fixture has the name `Other`\n");
  CHECK(told("type: CARELESS::Other\ncreate: {name: a}\n") ==
        "Thing.yaml:1:7: the plugin has no type CARELESS::Other\n");
  CHECK(told("type: CARELESS::Thing\ncreate:\n  name: a\n  size: big\n").starts_with("Thing.yaml:4:9: /size: "));
}
