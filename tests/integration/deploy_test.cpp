// What deploy/ holds, checked as far as a machine without systemd as its first process and without containers can.

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <yaml-cpp/yaml.h>
#include <catch2/catch.hpp>

#include "support/fleet_client.h"
#include "support/scratch.h"

using muster::test::built;
using muster::test::slurp;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;
using Words = std::vector<std::string>;

const fs::path& source() {
  static const fs::path dir = [] {
    const char* given = std::getenv("MUSTER_SOURCE_DIR");
    if (given == nullptr) throw std::runtime_error("MUSTER_SOURCE_DIR is not set: run the test with ctest");
    return fs::path(given);
  }();
  return dir;
}
fs::path deploy() {
  return source() / "deploy";
}

/// Path of a program that may be missing, empty then.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream places(std::string(path == nullptr ? "" : path) + ":/usr/bin:/usr/sbin:/usr/local/bin");
  for (std::string place; std::getline(places, place, ':');) {
    if (::access((place + "/" + name).c_str(), X_OK) == 0) return place + "/" + name;
  }
  return {};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

Words split(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// A directory for copies, and for what programs say.
struct Scratch : muster::test::Scratch {
  /// Runs a program; what it said, and its status.
  [[nodiscard]] muster::test::Answer run(const Words& argv, const std::map<std::string, std::string>& env = {}) const {
    const auto out = path / "said";
    fs::remove(out);
    muster::test::Answer answer;
    answer.status = muster::test::wait_for(muster::test::spawn({argv, env, out, out}));
    answer.out = slurp(out);
    return answer;
  }
  void make_users(const Words& args) const {
    Words words{built("muster"), "auth", "nats-conf", "--out", path / "auth"};
    words.insert(words.end(), args.begin(), args.end());
    const auto made = run(words);
    INFO(made.out);
    REQUIRE(made.status == 0);
  }
};

std::vector<fs::path> files(const fs::path& dir, const std::string& ending) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(ending)) all.push_back(entry.path());
  }
  REQUIRE_FALSE(all.empty());
  return all;
}

/// The help of `muster VERB` knows each option of a command line.
void check_words(const Words& words) {
  REQUIRE_FALSE(words.empty());
  static const Scratch scratch;
  Words verb{words.front()};
  if (words.front() == "auth") verb.push_back(words.at(1));
  Words ask{built("muster")};
  ask.insert(ask.end(), verb.begin(), verb.end());
  ask.emplace_back("--help");
  const auto help = scratch.run(ask);
  INFO(help.out);
  REQUIRE(help.status == 0);
  for (const auto& word : words) {
    if (!word.starts_with("-")) continue;
    INFO(word);
    CHECK(std::regex_search(help.out, std::regex("(^|[\\s,])" + word + "([\\s,]|$)")));
  }
}

/// Each `MUSTER_…=` or `MUSTER_…:` of a text is a variable that something of ours reads.
void check_variables(const std::string& text, const Names& own) {
  const std::string readers =
      slurp(source() / "coordinator/config.cpp") + slurp(source() / "worker_sdk/src/command_line.cpp");
  const std::regex variable("(MUSTER_[A-Z_]+)[=:]");
  for (std::sregex_iterator it(text.begin(), text.end(), variable), end; it != end; ++it) {
    const std::string name = (*it)[1];
    INFO(name);
    CHECK((own.contains(name) || readers.find('"' + name + '"') != std::string::npos));
  }
}

/// Inbox of each user by name, as `muster auth nats-conf` says.
std::string inbox_of(const fs::path& auth, const std::string& user) {
  std::smatch found;
  const auto text = slurp(auth / (user + ".env"));
  REQUIRE(std::regex_search(text, found, std::regex("MUSTER_NATS_INBOX=(\\S+)")));
  return found[1];
}

/// The keys of a service with those that it takes over by `<<`.
std::map<std::string, YAML::Node> merged(const YAML::Node& map) {
  std::map<std::string, YAML::Node> all;
  if (map["<<"]) all = merged(map["<<"]);
  for (const auto& entry : map) all[entry.first.as<std::string>()] = entry.second;
  all.erase("<<");
  return all;
}

YAML::Node part(const std::map<std::string, YAML::Node>& service, const std::string& key) {
  const auto found = service.find(key);
  return found == service.end() ? YAML::Node() : found->second;
}

Names keys(const YAML::Node& map) {
  Names all;
  for (const auto& entry : map) all.insert(entry.first.as<std::string>());
  return all;
}

}  // namespace

TEST_CASE("nats-server takes each of its configurations") {
  const auto server = find_program("nats-server");
  REQUIRE_FALSE(server.empty());
  const Scratch scratch;
  scratch.make_users({"--worker", "FS", "--worker", "PG/site-b"});
  const auto tls = scratch.path / "tls";
  fs::create_directories(tls);
  const auto pem = (tls / "server.pem").string();
  const auto made =
      scratch.run({find_program("openssl"), "req", "-x509", "-subj", "/CN=server", "-addext",
                   "subjectAltName=DNS:localhost", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                   "-nodes", "-days", "1", "-keyout", tls / "server.key", "-out", pem});
  INFO(made.out);
  REQUIRE(made.status == 0);
  fs::copy_file(pem, tls / "ca.pem");
  auto all = files(deploy() / "nats", ".conf");
  all.push_back(deploy() / "compose" / "nats.conf");
  for (const auto& file : all) {
    INFO(file);
    auto text = replaced(slurp(file), "/etc/muster", scratch.path.string());
    text = replaced(text, "\"/var/lib/nats\"", "\"" + (scratch.path / "jetstream").string() + "\"");
    const auto copy = scratch.path / "auth" / file.filename();  // beside users.conf
    const std::map<std::string, std::string> env{
        {"NATS_NAME", "nats-1"}, {"SITE_B_PASSWORD", "abc123"}, {"HUB_URL", "tls://site-b:abc123@nats-1.example:7422"}};
    std::ofstream(copy) << text;
    const auto good = scratch.run({server, "-t", "-c", copy}, env);
    INFO(good.out);
    CHECK(good.status == 0);
    std::ofstream(copy) << replaced(text, "write_deadline", "write_dead_line");
    CHECK(scratch.run({server, "-t", "-c", copy}, env).status != 0);  // so the check is one
  }
}

TEST_CASE("systemd takes the units, and finds them closed") {
  const auto analyze = find_program("systemd-analyze");
  if (analyze.empty()) {
    WARN("skipped: no systemd-analyze");
    return;
  }
  const Scratch scratch;
  const auto dir = scratch.path / "units";
  fs::copy(deploy() / "systemd", dir, fs::copy_options::recursive);
  fs::copy_file(dir / "muster-worker@.service", dir / "muster-worker@fs.service");
  fs::copy_file(dir / "muster-worker@.service", dir / "muster-worker@postgres.service");
  fs::remove(dir / "muster-worker@.service");
  for (const auto& unit : files(dir, ".service")) {
    INFO(unit);
    auto text = replaced(slurp(unit), "/usr/local/bin/muster", built("muster"));
    text = replaced(text, "/usr/sbin/nats-server", find_program("nats-server"));
    std::ofstream(unit) << text;
    const auto verified = scratch.run({analyze, "verify", "--man=no", unit});
    INFO(verified.out);
    CHECK(verified.status == 0);
    // What it does not know is a warning only; other units of this machine are none of ours.
    CHECK(verified.out.find(unit.filename().string()) == std::string::npos);
    // Tenths of its measure of exposure; a worker that is to see the whole machine is closed less.
    const bool sees_all = unit.filename() == "muster-worker@fs.service";
    const auto rated = scratch.run({analyze, "security", "--no-pager", "--offline=yes",
                                    std::string("--threshold=") + (sees_all ? "40" : "20"), unit});
    INFO(rated.out);
    CHECK(rated.status == 0);
  }
}

TEST_CASE("units start what there is, as users that there are") {
  const Scratch scratch;
  scratch.make_users({"--worker", "PG"});
  for (const auto& unit : files(deploy() / "systemd", ".service")) {
    INFO(unit);
    const auto text = slurp(unit);
    check_variables(text, {"MUSTER_WORKER_OPTIONS"});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view kStart = "ExecStart=/usr/local/bin/muster ";
      if (line.starts_with(kStart)) check_words(split(line.substr(kStart.size())));
      std::smatch found;
      if (std::regex_search(line, found, std::regex("MUSTER_WORKER_OPTIONS=\"([^\"]*)\""))) {
        check_words(split("worker " + found[1].str()));
      }
      if (std::regex_match(line, found, std::regex("LoadCredential=nkey:/etc/muster/(auth/.*)"))) {
        CHECK(fs::exists(scratch.path / found[1].str()));
      }
    }
  }
  CHECK(slurp(deploy() / "systemd/muster-coordinator.service")
            .find("MUSTER_NATS_INBOX=" + inbox_of(scratch.path / "auth", "coordinator")) != std::string::npos);
  CHECK(slurp(deploy() / "systemd/muster-worker@.service")
            .find("MUSTER_NATS_INBOX=" + inbox_of(scratch.path / "auth", "worker.PG.default")) != std::string::npos);
}

TEST_CASE("the compose file: known keys, things that are there, users of the bus") {
  const auto dir = deploy() / "compose";
  const auto text = slurp(dir / "compose.yaml");
  const auto root = YAML::Load(text);
  const Scratch scratch;
  const auto checked = scratch.run({built("muster"), "check", dir / "muster.yaml"});
  INFO(checked.out);
  CHECK(checked.status == 0);
  scratch.make_users({"-c", dir / "muster.yaml"});
  check_variables(text, {"MUSTER_UID", "MUSTER_GID"});

  for (const auto& key : keys(root)) {
    INFO(key);
    CHECK((Names{"name", "services", "networks", "volumes", "secrets", "configs"}.contains(key) ||
           key.starts_with("x-")));
  }
  const Names known{"build",      "cap_add",    "cap_drop",     "command",           "configs",
                    "depends_on", "entrypoint", "env_file",     "environment",       "healthcheck",
                    "image",      "networks",   "ports",        "profiles",          "read_only",
                    "restart",    "secrets",    "security_opt", "stop_grace_period", "tmpfs",
                    "user",       "volumes"};
  const Names services = keys(root["services"]), secrets = keys(root["secrets"]), networks = keys(root["networks"]);
  const Names made_by_users{"auth", "bus", "data", "workers", "inventory"};
  for (const auto& entry : root["services"]) {
    const auto name = entry.first.as<std::string>();
    INFO(name);
    const auto service = merged(entry.second);
    for (const auto& [key, value] : service) {
      INFO(key);
      CHECK(known.contains(key));
    }
    CHECK((service.contains("image") || service.contains("build")));
    CHECK_FALSE(service.contains("ports"));  // without TLS nothing leaves the network
    for (const auto& one : part(service, "depends_on")) CHECK(services.contains(one.as<std::string>()));
    for (const auto& one : part(service, "networks")) CHECK(networks.contains(one.as<std::string>()));
    for (const auto& one : part(service, "secrets")) CHECK(secrets.contains(one.as<std::string>()));
    for (const auto& one : part(service, "volumes")) {
      const auto volume = one.as<std::string>();
      INFO(volume);
      REQUIRE(std::regex_match(volume, std::regex("\\./[^:]+:/[^:]+(:ro)?")));
      const auto host = volume.substr(2, volume.find(':') - 2);
      CHECK((made_by_users.contains(host) || fs::exists(dir / host) || fs::exists(scratch.path / host)));
    }
    if (part(service, "image").as<std::string>() == "muster" && service.contains("command")) {
      check_words(part(service, "command").as<Words>());
    }
    if (!service.contains("secrets")) continue;
    // It has the seed and the inbox of one user.
    const auto secret = part(service, "secrets")[0].as<std::string>();
    const auto environment = part(service, "environment");
    CHECK(environment["MUSTER_NATS_NKEY_SEED"].as<std::string>() == "/run/secrets/" + secret);
    const fs::path seed = root["secrets"][secret]["file"].as<std::string>();
    CHECK(fs::exists(scratch.path / seed));
    CHECK(environment["MUSTER_NATS_INBOX"].as<std::string>() == inbox_of(scratch.path / "auth", seed.stem().string()));
  }
  for (const auto& name : made_by_users) CHECK(text.find(" " + name) != std::string::npos);
  const auto build = root["services"]["setup"]["build"];
  CHECK(fs::equivalent(dir / build["context"].as<std::string>(), source()));
  CHECK(fs::exists(source() / build["dockerfile"].as<std::string>()));
}

TEST_CASE("the container file copies what there is") {
  std::istringstream lines(slurp(deploy() / "Containerfile"));
  Names stages;
  int copies = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto words = split(line);
    if (words.empty()) continue;
    INFO(line);
    if (words[0] == "FROM" && words.size() == 4) stages.insert(words[3]);
    if (words[0] != "COPY") continue;
    ++copies;
    if (words[1].starts_with("--from=")) {
      CHECK(stages.contains(words[1].substr(7)));
      continue;
    }
    for (std::size_t i = 1; i + 1 < words.size(); ++i) CHECK(fs::exists(source() / words[i]));
  }
  CHECK(copies > 5);
}
