// How a plugin's executable finds its fleet.
#include <stdlib.h>

#include <fstream>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include "support/scratch.h"
#include "worker_sdk/src/command_line.h"

using namespace muster;

namespace {

/// What the command line comes to, in a data directory with this `nats.url`.
struct FleetPlace {
  FleetPlace() {
    for (const auto* variable :
         {"MUSTER_NATS_URL", "MUSTER_NATS_CREDS", "MUSTER_NATS_NKEY_SEED", "MUSTER_NATS_INBOX", "MUSTER_NATS_TLS_CA",
          "MUSTER_NATS_TLS_CERT", "MUSTER_NATS_TLS_KEY", "MUSTER_PREFIX", "MUSTER_STATE_DIR", "MUSTER_WORKER_ID"}) {
      ::unsetenv(variable);
    }
    ::setenv("MUSTER_DATA_DIR", scratch.path.c_str(), 1);
  }
  void write(const std::string& text) const { std::ofstream(scratch.path / "nats.url") << text; }
  [[nodiscard]] std::string file(const std::string& name) const {
    std::ofstream(scratch.path / name) << "x";
    return scratch.path / name;
  }
  static WorkerOptions parse(std::vector<const char*> words = {}) {
    words.insert(words.begin(), "muster-plugin-things");
    const Plugin plugin({.name = "things", .ns = "TH", .version = "1.0.0"});
    return std::get<WorkerOptions>(parse_command_line(static_cast<int>(words.size()), words.data(), plugin));
  }

  test::Scratch scratch;
};

}  // namespace

TEST_CASE("a plugin takes from the data directory all that it needs to reach its fleet") {
  const FleetPlace place;
  CHECK(FleetPlace::parse().nats.url == "nats://127.0.0.1:4222");
  place.write(
      "nats://bus:1\nprefix=team.a\ninbox=_INBOX_a\nnkey_seed=/a.nk\ntls_ca=/ca.pem\ntls_cert=/cert.pem\n"
      "tls_key=/key.pem\nof_later=x\n\n=\n");
  const auto options = FleetPlace::parse();
  CHECK(options.nats.url == "nats://bus:1");
  CHECK(options.prefix == "team.a");
  CHECK(options.nats.inbox == "_INBOX_a");
  CHECK(options.nats.nkey_seed == "/a.nk");
  CHECK(options.nats.tls_ca == "/ca.pem");
  CHECK(options.nats.tls_cert == "/cert.pem");
  CHECK(options.nats.tls_key == "/key.pem");
  place.write("nats://bus:1\ncreds=/a.creds\n");
  CHECK(FleetPlace::parse().nats.creds == "/a.creds");
  CHECK(FleetPlace::parse().prefix == "muster");
}

TEST_CASE("what a plugin is given is not mixed with what stands in the data directory") {
  const FleetPlace place;
  place.write("nats://bus:1\nprefix=team.a\ninbox=_INBOX_a\ncreds=/a.creds\ntls_cert=/cert.pem\ntls_key=/key.pem\n");
  const auto mine = place.file("mine");
  const auto given = FleetPlace::parse({"--prefix", "muster", "--inbox", "_INBOX", "--nkey-seed", mine.c_str()});
  CHECK(given.nats.url == "nats://bus:1");
  CHECK(given.prefix == "muster");
  CHECK(given.nats.inbox == "_INBOX");
  CHECK(given.nats.creds.empty());
  CHECK(given.nats.nkey_seed == mine);
  CHECK(given.nats.tls_cert == "/cert.pem");
  ::setenv("MUSTER_NATS_TLS_CERT", mine.c_str(), 1);
  CHECK(FleetPlace::parse().nats.tls_cert == mine);
  CHECK(FleetPlace::parse().nats.tls_key.empty());
  // Another bus is another fleet's.
  const auto other = FleetPlace::parse({"--nats", "nats://other:1"});
  CHECK(other.nats.url == "nats://other:1");
  CHECK(other.prefix == "muster");
  CHECK(other.nats.creds.empty());
}
