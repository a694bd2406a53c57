#include <catch2/catch.hpp>

#include "support/fleet_client.h"
#include "support/nats_server.h"
#include "support/postgres_server.h"

// `muster plugin test` over the plugins that need a server.

using namespace muster;
using namespace muster::test;
namespace fs = std::filesystem;

namespace {

class Kit : public FleetClient {
 public:
  /// The plugin's test with its inputs in tests/conformance.
  [[nodiscard]] int test(const std::string& plugin, const std::map<std::string, std::string>& environment) const {
    const auto inputs = fs::path(std::getenv("MUSTER_SOURCE_DIR")) / "tests/conformance" / plugin;
    const auto words = command({"plugin", "test", built("muster-plugin-" + plugin), "--target", inputs / "target.yaml",
                                "--fixtures", inputs / "fixtures"});
    return wait_for(spawn({words, environment, directory() / "out", directory() / "err"}));
  }
  [[nodiscard]] std::string said() const { return slurp(directory() / "out") + slurp(directory() / "err"); }
};

}  // namespace

TEST_CASE("the plugin for PostgreSQL keeps its contract") {
  const PostgresServer server;
  const Kit kit;
  const int status = kit.test("postgres", {{"CONFORMANCE_DSN", server.dsn()},
                                           {"CONFORMANCE_BAD_DSN", server.dsn() + " user=is_not_there"},
                                           {"PATH", server.programs().string() + ":" + std::getenv("PATH")}});
  INFO(kit.said());
  CHECK(status == 0);
}

TEST_CASE("the plugin for NATS keeps its contract") {
  NatsServerOptions options;
  options.user = "muster";
  options.password = "secret-of-one";
  options.jetstream = true;
  const NatsServer one(options), two(options);
  const Kit kit;
  const auto port = std::to_string(one.port());
  const int status = kit.test("nats", {{"CONFORMANCE_URL", one.url()},
                                       {"CONFORMANCE_URL2", two.url()},
                                       {"CONFORMANCE_BAD_URL", "nats://muster:is-not-it@127.0.0.1:" + port}});
  INFO(kit.said());
  CHECK(status == 0);
}
