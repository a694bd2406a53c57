// Secrets that a target's config refers to are known to its worker and to nobody else, whatever goes wrong there.

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "support/live_fleet.h"
#include "support/nats_client.h"
#include "support/scratch.h"

using muster::test::LiveFleet;
using muster::test::NatsClient;
using muster::test::slurp;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

// What is looked for: words that no quoting or escaping changes.
const std::string kFromEnv = "CANARYenv7d1f";
const std::string kFromFile = "CANARYfile93b2";
const std::string kFromSecret = "CANARYsecret5e60";
// What follows them in a secret: nothing, or what JSON, URLs and shells write in another way.
const std::string kOdd = " \"q\\uoted\"\t<&>%41 \xc3\xa4\n$${env:HOME}";

const std::vector<std::string> kTell{"tell-length", "tell-message", "tell-config",  "tell-exception", "tell-properties",
                                     "tell-id",     "tell-token",   "tell-problem", "tell-inspect"};

/// A directory outside of the fleet's, so that everything in the fleet's can be searched.
struct Secrets : muster::test::Scratch {
  explicit Secrets(const std::string& tail) {
    std::ofstream(path / "secret") << kFromFile << tail << '\n';
    setenv("CANARY_ENV", (kFromEnv + tail).c_str(), 1);
    setenv("CANARY_WORD", kFromEnv.c_str(), 1);
  }
  ~Secrets() {
    unsetenv("CANARY_ENV");
    unsetenv("CANARY_WORD");
  }
};

std::string config_of(const fs::path& secret) {
  std::string targets;
  const std::vector<std::pair<std::string, std::string>> references{
      {"env", "${env:CANARY_ENV}"}, {"file", "${file:" + secret.string() + "}"}, {"named", "${secret:canary}"}};
  for (const auto& [source, reference] : references) {
    for (const auto& behaviour : kTell) {
      targets += "  - {name: " + behaviour + "-" + source + ", namespace: HOSTILE, config: {behaviour: " + behaviour +
                 ", secret: \"" + reference + "\"}}\n";
    }
  }
  // Ways in which plugins of ours fail while they hold a secret.
  targets +=
      "  - {name: pg-down, namespace: PG, config: {dsn: \"host=127.0.0.1 port=1 user=x "
      "password=${env:CANARY_WORD}\"}}\n"
      "  - {name: pg-bad, namespace: PG, config: {dsn: \"host=127.0.0.1 port=1 ${env:CANARY_WORD}\"}}\n"
      "  - {name: pg-host, namespace: PG, config: {dsn: \"postgresql://u:p@${env:CANARY_WORD}.invalid/db\"}}\n"
      "  - {name: pg-uri, namespace: PG, config: {dsn: \"postgresql://u:${env:CANARY_ENV}@127.0.0.1:1/db\"}}\n"
      "  - {name: nats-down, namespace: NATS, config: {url: \"nats://u:${env:CANARY_WORD}@127.0.0.1:1\"}}\n"
      "  - {name: nats-bad, namespace: NATS, config: {url: \"${env:CANARY_ENV}\"}}\n"
      "  - {name: nats-creds, namespace: NATS, config: {creds: \"/nowhere/${env:CANARY_WORD}\"}}\n"
      "  - {name: fs-root, namespace: FS, config: {root: \"/nowhere/${env:CANARY_WORD}\"}}\n"
      "  - {name: fs-bad, namespace: FS, config: {root: \"${env:CANARY_ENV}\"}}\n"
      "  - {name: fs-tree, namespace: FS, config: {root: \"" +
      secret.parent_path().string() +
      "/${env:CANARY_WORD}\"}}\n"
      "  - {name: fs-type, namespace: FS, config: {root: \"/\", hash: \"${env:CANARY_WORD}\"}}\n";
  return "discovery: {interval: 0s}\nretry: {attempts: 2, base: 20ms, max: 50ms}\nlimits: {job_deadline: 20s}\n"
         "workers:\n  - {plugin: hostile, env: {OWN: \"${env:CANARY_ENV}\"}}\n  - {plugin: postgres}\n"
         "  - {plugin: nats}\n  - {plugin: fs}\ntargets:\n" +
         targets;
}

/// Where one of the canaries stands, with what stands around it.
class Search {
 public:
  void look(const std::string& where, const std::string& text) {
    for (const auto& canary : {kFromEnv, kFromFile, kFromSecret}) {
      constexpr std::size_t kBefore = 150;
      constexpr int kEnough = 4;  // from one place
      for (auto at = text.find(canary); at != std::string::npos; at = text.find(canary, at + canary.size())) {
        if (++counts_[where] > kEnough) return;
        const auto from = at < kBefore ? 0 : at - kBefore;
        auto around = where + ": " + text.substr(from, at - from + canary.size() + kBefore / 2);
        for (char& c : around) c = c >= ' ' && c <= '~' ? c : ' ';
        found_.insert(std::move(around));
      }
    }
  }
  void look_into(const fs::path& directory) {
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      look("path", entry.path().string());
      if (entry.is_regular_file()) look(entry.path().filename(), slurp(entry.path()));
    }
  }
  [[nodiscard]] const std::set<std::string>& found() const { return found_; }

 private:
  std::set<std::string> found_;
  std::map<std::string, int> counts_;
};

/// Lets every target be looked at, and then looks everywhere.
std::set<std::string> found_outside(const std::string& tail) {
  const Secrets secrets(tail);
  const auto tree = secrets.path / kFromEnv;  // a path with the secret in it
  fs::create_directories(tree / "sub");
  std::ofstream(tree / "file") << "content";

  LiveFleet fleet(config_of(secrets.path / "secret"));
  const auto named = fleet.directory() / "data" / "secrets" / "canary";
  fs::create_directories(named.parent_path());
  std::ofstream(named) << kFromSecret << tail << '\n';
  fleet.start({"-v"});
  auto url = slurp(fleet.directory() / "data" / "nats.url");
  url.pop_back();
  NatsClient observer(url);
  observer.listen();

  const auto report = fleet.discover();
  CHECK(report["state"] == "partial");
  // They were there to be told.
  for (const auto& source :
       {std::pair("env", kFromEnv), std::pair("file", kFromFile), std::pair("named", kFromSecret)}) {
    const auto length = fleet.json({"resource", std::string("tell-length-") + source.first + "/HOSTILE::Thing/length"});
    CHECK(length["properties"]["length"] == source.second.size() + tail.size());
  }
  std::set<std::string> blamed;
  for (const auto& problem : report["problems"]) blamed.insert(problem["target"].get<std::string>());
  for (const auto* target : {"tell-message-env", "tell-exception-file", "pg-down", "pg-bad", "nats-down", "fs-root"}) {
    CHECK(blamed.count(target) == 1);
  }

  Search search;
  for (const auto& message : observer.heard()) search.look("bus", message);
  for (const std::string verb : {"resources", "events", "runs", "targets", "workers", "status", "plugins", "types"}) {
    search.look(verb, fleet.muster({verb, "-o", "json"}).out);
    search.look(verb + " as text", fleet.muster({verb}).out);
  }
  for (const auto& row : fleet.resources()) {
    search.look("resource", fleet.muster({"resource", row["id"], "--history"}).out);
  }
  for (const auto& process : fleet.processes("")) {
    search.look("command line", slurp("/proc/" + std::to_string(process) + "/cmdline"));
  }
  CHECK(fleet.stop() == 0);
  fs::remove(named);
  search.look_into(fleet.directory());
  return search.found();
}

}  // namespace

TEST_CASE("no secret leaves its worker") {
  CHECK(found_outside("") == std::set<std::string>{});
}

TEST_CASE("no secret leaves its worker in another spelling") {
  CHECK(found_outside(kOdd) == std::set<std::string>{});
}
