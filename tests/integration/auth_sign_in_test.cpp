// Every way of signing in, of each process, on a real bus.

#include <cstdlib>
#include <fstream>

#include "support/nats_server.h"
#include "support/scratch.h"
#include "support/users_fleet.h"

using muster::test::NatsServer;
using muster::test::Scratch;
using muster::test::UsersFleet;
using muster::test::Variables;
namespace fs = std::filesystem;

namespace {

/// Leaf certificates of an authority of our own, by common name: NAME.pem and NAME.key, ca.pem.
void make_certificates(const fs::path& dir, const std::vector<std::string>& names) {
  const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes ";
  const std::string in = "cd '" + dir.string() + "' && ";
  const auto run = [](const std::string& command) { REQUIRE(std::system((command + " 2>/dev/null").c_str()) == 0); };
  run(in + "openssl req -x509 -subj /CN=authority -days 1 -keyout ca.key -out ca.pem" + key);
  std::ofstream(dir / "names") << "subjectAltName=DNS:localhost\n";
  for (const auto& name : names) {
    run(in + "openssl req -subj /CN=" + name + " -keyout " + name + ".key -out " + name + ".csr" + key);
    run(in + "openssl x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out " + name +
        ".pem" + (name == "server" ? " -extfile names" : ""));
  }
}

// An operator, an account and a user of it, without limits and for ever; made for this test.
constexpr char kOperatorJwt[] =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJYIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJPRFNEU"
    "UhGS09NVFFZWkNSWklQQUZRQ1FKQkRLV0ZBNEVJNExaQlBSNDZCNEQ2MzRFSjQ3VUdEUSIsIm5hbWUiOiJtdXN0ZXItdGVzdCIsI"
    "nN1YiI6Ik9EU0RRSEZLT01UUVlaQ1JaSVBBRlFDUUpCREtXRkE0RUk0TFpCUFI0NkI0RDYzNEVKNDdVR0RRIiwibmF0cyI6eyJ0e"
    "XBlIjoib3BlcmF0b3IiLCJ2ZXJzaW9uIjoyfX0.OxPuwPrmd384k4rIOaeCW7B_PH-HBJ1SWoRUsBYRzwsTBXFT3pa7UXCbTRt-l"
    "wrlSIZu63881VUbarkaUR1HAA";
constexpr char kAccount[] = "ACEP5YSJCZOR4RHSMAXJJDDEPQ6DKEHACXIKP2DDUHZFOPN7AJFZ2Y3I";
constexpr char kAccountJwt[] =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJYIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJPRFNEU"
    "UhGS09NVFFZWkNSWklQQUZRQ1FKQkRLV0ZBNEVJNExaQlBSNDZCNEQ2MzRFSjQ3VUdEUSIsIm5hbWUiOiJmbGVldCIsInN1YiI6I"
    "kFDRVA1WVNKQ1pPUjRSSFNNQVhKSkRERVBRNkRLRUhBQ1hJS1AyRERVSFpGT1BON0FKRloyWTNJIiwibmF0cyI6eyJsaW1pdHMiO"
    "nsic3VicyI6LTEsImRhdGEiOi0xLCJwYXlsb2FkIjotMSwiaW1wb3J0cyI6LTEsImV4cG9ydHMiOi0xLCJ3aWxkY2FyZHMiOnRyd"
    "WUsImNvbm4iOi0xLCJsZWFmIjotMX0sInR5cGUiOiJhY2NvdW50IiwidmVyc2lvbiI6Mn19.WJYkZCAanVzZTqoDHLPBYG3dd23U"
    "305ZDQTfMr17uLVi90-Z5fCwaZ-1OvJ-LCDRPkSz0WcHiWcMVWgDAOugDg";
constexpr char kUserJwt[] =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJYIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJBQ0VQN"
    "VlTSkNaT1I0UkhTTUFYSkpEREVQUTZES0VIQUNYSUtQMkREVUhaRk9QTjdBSkZaMlkzSSIsIm5hbWUiOiJmbGVldCIsInN1YiI6I"
    "lVBRUJPSkFYWkU0VkxDSEI3QkRMT0dTS0M3QTVXT0VVR01EVFBEUDRSN1NPWk40N0ZQVk5TRVM3IiwibmF0cyI6eyJzdWJzIjotM"
    "SwiZGF0YSI6LTEsInBheWxvYWQiOi0xLCJ0eXBlIjoidXNlciIsInZlcnNpb24iOjJ9fQ.nxRMfl5RyCARa6bgd6sGdIk7nUHuQJ"
    "Hs77LT7D6kvsYa48dRxW7wsTRBl6avk6zX1q1zjJq7qSlCwuq11OdRAw";
constexpr char kUserSeed[] = "SUAMWDUASNAIRDX4FGU6QYAAJAGGYVFJS6W3XIYAL66SUUBNWXF3PEKJOY";

}  // namespace

TEST_CASE("user and password, of each process") {
  const NatsServer server(
      {.config =
           "accounts { FLEET { users: [{user: c, password: cc}, {user: w, password: ww}, {user: m, password: mm}] } }",
       .user = {},
       .password = {}});
  const auto url = [&](const std::string& login) {
    return Variables{{"MUSTER_NATS_URL", "nats://" + login + "@127.0.0.1:" + std::to_string(server.port())}};
  };
  UsersFleet fleet("");
  fleet.work(url("c:cc"), url("w:ww"), url("m:mm"));
  CHECK(fleet.ask({"status"}, url("m:wrong")).status == 1);
}

TEST_CASE("JWT credentials, of each process") {
  const Scratch scratch;
  const auto creds = scratch.path / "fleet.creds";
  std::ofstream(creds) << "-----BEGIN NATS USER JWT-----\n"
                       << kUserJwt << "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n"
                       << kUserSeed << "\n------END USER NKEY SEED------\n";
  const NatsServer server({.config = std::string("operator: ") + kOperatorJwt +
                                     "\nresolver: MEMORY\nresolver_preload: { " + kAccount + ": " + kAccountJwt + " }",
                           .user = {},
                           .password = {}});
  const Variables with{{"MUSTER_NATS_CREDS", creds}};
  UsersFleet fleet(server.url());
  fleet.work(with, with, with);
  CHECK(fleet.ask({"status"}, {}).status == 1);
}

TEST_CASE("a certificate of its own signs each process in") {
  const Scratch scratch;
  const auto dir = scratch.path.string() + "/";
  make_certificates(scratch.path, {"server", "coordinator", "worker", "cli", "stranger"});
  const NatsServer server(
      {.config = "tls { cert_file: \"" + dir + "server.pem\", key_file: \"" + dir + "server.key\", ca_file: \"" + dir +
                 "ca.pem\", verify_and_map: true }\naccounts { FLEET { users: [{user: \"CN=coordinator\"}, {user: "
                 "\"CN=worker\"}, {user: \"CN=cli\"}] } }",
       .user = {},
       .password = {}});
  const auto certificate = [&](const std::string& name) {
    return Variables{{"MUSTER_NATS_TLS_CA", dir + "ca.pem"},
                     {"MUSTER_NATS_TLS_CERT", dir + name + ".pem"},
                     {"MUSTER_NATS_TLS_KEY", dir + name + ".key"}};
  };
  UsersFleet fleet("tls://localhost:" + std::to_string(server.port()));
  fleet.work(certificate("coordinator"), certificate("worker"), certificate("cli"));
  CHECK(fleet.ask({"status"}, certificate("stranger")).status == 1);
  CHECK(fleet.ask({"status"}, {{"MUSTER_NATS_TLS_CA", dir + "ca.pem"}}).status != 0);
}
