#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "coordinator/cli/command_line.h"
#include "coordinator/cli/completion.h"
#include "coordinator/cli/local_verbs.h"
#include "coordinator/cli/plugin_path.h"
#include "coordinator/cli/worker_command.h"
#include "support/scratch.h"
#include "unit/cli_screen.h"

using namespace muster;
using namespace muster::cli;
namespace fs = std::filesystem;

namespace {

/// A directory of our own that goes with the object.
class Directory {
 public:
  std::string file(const std::string& name, const std::string& content, fs::perms mode = fs::perms::owner_all) const {
    const fs::path path = scratch_.path / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
    fs::permissions(path, mode);
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name = "") const { return scratch_.path / name; }

 private:
  test::Scratch scratch_;
};

/// Whether a shell accepts a script's syntax.
bool parses(const std::string& shell, const std::string& script) {
  const Directory directory;
  const std::string file = directory.file("script", script);
  return std::system((shell + " -n " + file).c_str()) == 0;
}

}  // namespace

TEST_CASE("the plugin of a name is looked for in order, a path is taken as it is") {
  const Directory at;
  const std::string beside = at.path("bin");
  const Environment env{{"MUSTER_PLUGIN_PATH", at.path("own1") + ":" + at.path("own2")}, {"PATH", at.path("usr")}};
  const auto found = [&] { return find_plugin("x", beside, env); };
  const std::string name = "muster-plugin-x";
  REQUIRE_FALSE(found());
  CHECK(found().error().message.find("muster-plugin-x") != std::string::npos);
  for (const char* directory : {"usr/", "own2/", "own1/", "libexec/muster/", "bin/"}) {
    const std::string path = at.file(directory + name, "");
    REQUIRE(found());
    CHECK(*found() == path);
  }
  fs::permissions(at.path("bin/" + name), fs::perms::owner_read);
  CHECK(*found() == at.path("libexec/muster/" + name));
  CHECK(*find_plugin(at.path("usr/" + name), beside, env) == at.path("usr/" + name));
  CHECK_FALSE(find_plugin(at.path("bin/" + name), beside, env));
  CHECK_FALSE(find_plugin(at.path("bin"), beside, env));
}

TEST_CASE("muster jsonpath in the formats of an answer") {
  const Directory at;
  const std::string file = at.file("a.json", "[1]");
  const auto said = [&](Format format, const std::string& name) {
    test::TestScreen test(format);
    const int status = jsonpath(test.screen, "$[0]", name);
    return std::to_string(status) + " " + test.out.str() + test.err.str();
  };
  CHECK(said(Format::kTable, file) == "0 [{\"path\":\"$[0]\",\"value\":1}]\n");
  CHECK(said(Format::kNdjson, file) == "0 {\"path\":\"$[0]\",\"value\":1}\n");
  CHECK(said(Format::kYaml, file) == "0 - path: \"$[0]\"\n  value: 1\n");
  CHECK(said(Format::kTable, at.path()).rfind("2 " + at.path() + ": cannot be read", 0) == 0);
}

TEST_CASE("where the data is") {
  const Environment plain{{"HOME", "/home/u"}};
  CHECK(default_data_dir(plain, true) == "/var/lib/muster");
  CHECK(default_data_dir(plain, false) == "/home/u/.local/state/muster");
  CHECK(default_data_dir({{"HOME", "/home/u"}, {"XDG_STATE_HOME", "/s"}}, false) == "/s/muster");
  const Environment env{{"MUSTER_DATA_DIR", "/env"}};
  CHECK(settle({}, env).config.data_dir == "/env");
  CHECK(settle({"", "/flag/../flag2", "", ""}, env).config.data_dir == "/flag2");
}

TEST_CASE("where the fleet is: flag, environment, what `up` left in the data directory, this machine") {
  const Directory at;
  const auto url = [&](const std::string& flag, const Environment& env) {
    const Flags flags{flag, at.path(), "", ""};
    Config config = settle(flags, env).config;
    REQUIRE(find_fleet(config, flags, env));
    return config.nats.url;
  };
  CHECK(url("", {}) == "nats://127.0.0.1:4222");
  at.file("nats.url", "nats://muster:secret@127.0.0.1:5\n");
  CHECK(url("", {}) == "nats://muster:secret@127.0.0.1:5");
  CHECK(url("", {{"MUSTER_NATS_URL", "nats://env:1"}}) == "nats://env:1");
  CHECK(url("nats://flag:1", {{"MUSTER_NATS_URL", "nats://env:1"}}) == "nats://flag:1");
}

TEST_CASE("what `up` left says how to sign in where that is not given") {
  const Directory at;
  Config of_fleet;
  of_fleet.nats.url = "tls://host:1";
  CHECK(fleet_place(of_fleet) == "tls://host:1\n");
  of_fleet.prefix = "team.x";
  of_fleet.nats.inbox = "_INBOX_x";
  of_fleet.nats.creds = "/fleet.creds";
  of_fleet.nats.tls_ca = "ca.pem";
  of_fleet.nats.tls_cert = "/cert.pem";
  of_fleet.nats.tls_key = "/key.pem";
  at.file("nats.url", fleet_place(of_fleet));
  const auto found = [&](const Flags& flags, const Environment& env) {
    Config config = settle(flags, env).config;
    REQUIRE(find_fleet(config, flags, env));
    return config;
  };
  auto config = found({"", at.path(), "", ""}, {});
  CHECK(config.nats.url == "tls://host:1");
  CHECK(config.prefix == "team.x");
  CHECK(config.nats.inbox == "_INBOX_x");
  CHECK(config.nats.creds == "/fleet.creds");
  CHECK(config.nats.tls_ca == std::filesystem::absolute("ca.pem"));
  CHECK(config.nats.tls_cert == "/cert.pem");
  CHECK(config.nats.tls_key == "/key.pem");

  config = found({"", at.path(), "mine", ""}, {{"MUSTER_NATS_NKEY_SEED", "/my.seed"}});
  CHECK(config.prefix == "mine");
  CHECK(config.nats.creds.empty());
  CHECK(config.nats.nkey_seed == "/my.seed");
  CHECK(found({"", at.path(), "muster", ""}, {}).prefix == "muster");  // though that is the usual one
  CHECK(found({"", at.path(), "", ""}, {{"MUSTER_PREFIX", "muster"}}).prefix == "muster");
  CHECK(found({"", at.path(), "", ""}, {{"MUSTER_NATS_INBOX", "_INBOX"}}).nats.inbox == "_INBOX");
  config = found({"nats://other:1", at.path(), "", ""}, {});
  CHECK(config.prefix == "muster");
  CHECK(config.nats.creds.empty());
}

TEST_CASE("flags win over the environment, which wins over the file; wrong ones are named") {
  const Directory at;
  const std::string file = at.file("m.yaml", "prefix: file\nstore: sqlite:/file\n");
  const Environment env{{"MUSTER_PREFIX", "env"}};
  CHECK(settle({"", "", "flag", file}, env).config.prefix == "flag");
  CHECK(settle({"", "", "", file}, env).config.prefix == "env");
  CHECK(settle({"", "", "", file}, {}).config.prefix == "file");
  const auto wrong = settle({"host", "", "a b", file}, {});
  REQUIRE(wrong.mistakes.size() == 2);
  CHECK(wrong.mistakes[0].file == "--nats");
  CHECK(wrong.mistakes[1].file == "--prefix");
}

TEST_CASE("a configured worker may resolve what its entry allows and what targets name") {
  const Directory at;
  const std::string plugin = at.file("muster-plugin-x", "");
  const ConfigResult parsed = parse_config(
      "workers: [{plugin: " + plugin +
          ", pool: p, slots: 2, allow: {env: [OWN_*]}, env: {A: '${env:IN}-b', B: '${file:" +
          at.file("f", "content\n") +
          "}'}}]\n"
          "targets: [{name: t, namespace: X, config: {k: '${env:NAMED}${file:/run/s}', l: '${env:NAMED}'}}]\n",
      "f", {});
  REQUIRE(parsed.mistakes.empty());
  Config config = parsed.config;
  config.data_dir = at.path();
  config.nats.url = "nats://muster:pw@127.0.0.1:1";
  const auto command = configured_worker(config.workers[0], config, Verbosity::kQuiet, {{"IN", "in"}});
  REQUIRE(command);
  CHECK(command->name == "worker x");
  CHECK(command->argv == std::vector<std::string>{plugin, "--prefix", "muster", "--pool", "p", "--slots", "2",
                                                  "--data-dir", at.path(), "--allow-env", "OWN_*", "--allow-env",
                                                  "NAMED", "--allow-file", "/run/s", "-q"});
  CHECK(
      command->env ==
      Environment{{"A", "in-b"}, {"B", "content"}, {"IN", "in"}, {"MUSTER_NATS_URL", "nats://muster:pw@127.0.0.1:1"}});
  const auto unset = configured_worker(config.workers[0], config, Verbosity::kQuiet, {});
  REQUIRE_FALSE(unset);
  CHECK(unset.error().message == "worker " + plugin + ", env A: ${env:IN} is not set");
  config.workers[0].env = {{"A", "${file:" + at.path() + "}"}};
  const auto directory = configured_worker(config.workers[0], config, Verbosity::kQuiet, {});
  REQUIRE_FALSE(directory);
  CHECK(directory.error().message == "worker " + plugin + ", env A: " + at.path() + " cannot be read: is it a file?");
}

TEST_CASE("completion scripts parse and know the verbs") {
  CommandLine line;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(line.app, shell);
    for (const char* word : {"discover", "drain", "wait", "output"}) CHECK(script.find(word) != std::string::npos);
    // A shell that is not installed is not asked.
    if (!find_executable(shell, std::getenv("PATH")).empty()) CHECK(parses(shell, script));
  }
  CHECK(parses("bash", completion_script(line.app, "bash")));
}

TEST_CASE("every verb has help with an example and takes the common flags before and after it") {
  CommandLine declared;
  for (const CLI::App* verb : declared.app.get_subcommands([](const CLI::App*) { return true; })) {
    CAPTURE(verb->get_name());
    CHECK(verb->get_footer().find("Example:\n  ") == 0);
    CHECK(verb->get_option_no_throw("--output") != nullptr);
  }
  CommandLine line;
  line.app.parse("--prefix a runs -o json --limit 3 --data-dir /d", false);
  CHECK(line.common.format == "json");
  CHECK(line.common.flags.prefix == "a");
  CHECK(line.common.flags.data_dir == "/d");
  CHECK(line.action);
}

TEST_CASE("bad usage is refused") {
  for (const char* text : {"", "fly", "runs --limit 0", "runs -o xml", "resources --managed --unmanaged", "resource",
                           "status --timeout soon", "status extra", "targets accept", "worker fs --slots 0",
                           "worker fs --pool a.b", "completion tcsh"}) {
    CAPTURE(text);
    CommandLine line;
    CHECK_THROWS_AS(line.app.parse(text, false), CLI::ParseError);
  }
}

TEST_CASE("check tells the mistakes of a file") {
  const Directory at;
  const std::string bad = at.file("bad.yaml", "prefix: '!'\n");
  test::TestScreen test(Format::kJson);
  CHECK(check(test.screen, bad) == 2);
  CHECK(Json::parse(test.out.str())["mistakes"][0]["column"] == 9);
  CHECK(test.err.str().find(bad + ":1:9: prefix: ") == 0);
  test::TestScreen well;
  CHECK(check(well.screen, at.file("good.yaml", "prefix: a\n")) == 0);
  CHECK(well.err.str().empty());
}

TEST_CASE("check reads standard input") {
  std::istringstream given("prefix: '!'\n");
  auto* const before = std::cin.rdbuf(given.rdbuf());
  test::TestScreen test;
  CHECK(check(test.screen, "-") == 2);
  std::cin.rdbuf(before);
  CHECK(test.err.str().find("(standard input):1:9: prefix: ") == 0);
}

TEST_CASE("the verbs that keep a folder of plugins") {
  const Directory at;
  const std::string folder = fs::path(at.file("plugins/README", "", fs::perms::owner_read)).parent_path();
  const std::string file = at.file("muster-plugin-x", "abc");
  test::TestScreen screen(Format::kNdjson);
  const auto muster = [&](const std::string& arguments) {
    CommandLine line;
    line.app.parse("plugin " + arguments + " --folder " + folder);
    Session session{line.common, {}, screen.screen};
    screen.out.str({});
    return line.action(session);
  };
  CHECK(muster("install " + file + " --sha256 " + std::string(64, '0')) == 2);
  CHECK_THROWS_AS(muster("install " + file + " --sha256 abc"), CLI::ValidationError);
  const std::string sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(muster("install " + file + " --sha256 " + sum) == 0);
  at.file("muster-plugin-x", "abcd");
  CHECK(muster("install " + file) == 0);
  CHECK(muster("rollback x") == 0);
  CHECK(muster("list") == 0);
  const auto row = Json::parse(screen.out.str());
  CHECK(row["plugin"] == "x");
  CHECK(row["file"] == "muster-plugin-x");
  CHECK(row["state"] == "enabled");
  CHECK(row["sha256"] == sum);
  CHECK(row["previous"].get<std::string>().size() == 64);
  CHECK(row["checksum"] == "listed");
  CHECK(row["reason"] == "");
  CHECK(muster("disable x") == 0);
  CHECK(muster("list") == 0);
  CHECK(Json::parse(screen.out.str())["state"] == "disabled");
  CHECK(muster("enable x") == 0);
  at.file("plugins/SHA256SUMS", "rubbish", fs::perms::owner_read);
  CHECK(muster("list") == 0);
  CHECK(Json::parse(screen.out.str())["state"] == "refused");
  CHECK(muster("rollback x") == 1);  // done, and it is not started
  CHECK_THAT(screen.err.str(), Catch::Contains("and is not started: SHA256SUMS:1: expected"));
  CHECK(muster("remove x") == 0);
  CHECK(muster("remove x") == 2);
}
