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

// An operator, an account and a user of it, without limits and for ever, and one that expired in 2023; made for this
// test.
constexpr char kOperatorJwt[] =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJYIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJPRExLTk"
    "1WUUNTQ1hQUEFGWTdHR0xCT1hOVUxGRkdJWEpZQlVMRk0yS0tHVkxDN0lIR1FKS1VBUCIsIm5hbWUiOiJtdXN0ZXItdGVzdCIsInN"
    "1YiI6Ik9ETEtOTVZRQ1NDWFBQQUZZN0dHTEJPWE5VTEZGR0lYSllCVUxGTTJLS0dWTEM3SUhHUUpLVUFQIiwibmF0cyI6eyJ0eXBl"
    "Ijoib3BlcmF0b3IiLCJ2ZXJzaW9uIjoyfX0.at7mmZGkb_MwngdUjrwWXdJxg0vXMgVYMSBTZp1gG6NGT5O49auTAX5iAGqTzQQ1f"
    "ShrAYp6AfbwBi_2Qzr0Ag";
constexpr char kAccount[] = "ABSRIRPVHQDU2CQDW3ZBNSRUEBDEGE3C4SOOXC472IT73XG3FMUB7BMF";
constexpr char kAccountJwt[] =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJYIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJPRExLTk"
    "1WUUNTQ1hQUEFGWTdHR0xCT1hOVUxGRkdJWEpZQlVMRk0yS0tHVkxDN0lIR1FKS1VBUCIsIm5hbWUiOiJmbGVldCIsInN1YiI6IkF"
    "CU1JJUlBWSFFEVTJDUURXM1pCTlNSVUVCREVHRTNDNFNPT1hDNDcySVQ3M1hHM0ZNVUI3Qk1GIiwibmF0cyI6eyJsaW1pdHMiOnsi"
    "c3VicyI6LTEsImRhdGEiOi0xLCJwYXlsb2FkIjotMSwiaW1wb3J0cyI6LTEsImV4cG9ydHMiOi0xLCJ3aWxkY2FyZHMiOnRydWUsI"
    "mNvbm4iOi0xLCJsZWFmIjotMX0sInR5cGUiOiJhY2NvdW50IiwidmVyc2lvbiI6Mn19.GA5PVKIm7wWUbbXNbeTFwO5JuACx3bS9u"
    "tFp8wi9q86srsy_Imk7rvf0YRBDtkZqT_cruR0eWG-5DPf5Bd32CQ";
constexpr char kUserJwt[] =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJYIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJBQlNSSV"
    "JQVkhRRFUyQ1FEVzNaQk5TUlVFQkRFR0UzQzRTT09YQzQ3MklUNzNYRzNGTVVCN0JNRiIsIm5hbWUiOiJmbGVldCIsInN1YiI6IlV"
    "DNVlFSFlWMjRPNFQyUkxGRUJJT0lWTEVHUTVIMzJYWFNOVlJBRkhVQzdYR1RMQTRDVFgzVFNJIiwibmF0cyI6eyJzdWJzIjotMSwi"
    "ZGF0YSI6LTEsInBheWxvYWQiOi0xLCJ0eXBlIjoidXNlciIsInZlcnNpb24iOjJ9fQ.Lu_zFHTRL9uHssfMjBaJNeKcXcsbM5MTOu"
    "r8El9ImN1rNVwbpdJuECU53l7EJPS9NJVvhvw8f2T5uPbk56n3Aw";
constexpr char kExpiredJwt[] =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJYIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJBQlNSSV"
    "JQVkhRRFUyQ1FEVzNaQk5TUlVFQkRFR0UzQzRTT09YQzQ3MklUNzNYRzNGTVVCN0JNRiIsIm5hbWUiOiJmbGVldCIsInN1YiI6IlV"
    "DNVlFSFlWMjRPNFQyUkxGRUJJT0lWTEVHUTVIMzJYWFNOVlJBRkhVQzdYR1RMQTRDVFgzVFNJIiwibmF0cyI6eyJzdWJzIjotMSwi"
    "ZGF0YSI6LTEsInBheWxvYWQiOi0xLCJ0eXBlIjoidXNlciIsInZlcnNpb24iOjJ9LCJleHAiOjE3MDAwMDM2MDB9.ty3kP5ns9c5j"
    "U-hCcEZDH-EaBMWoxKv94UA5s9pA_TRKCrp1jOGEYORyzLhW_es5V125eVn-ySO2ahUP7ZU4DA";
constexpr char kUserSeed[] = "SUAEZUHFJSG3Z7ZPNGZB4WB5VF36BEC6DV2RSLI2ZLEP37LTATDFKP7RK4";

/// A credentials file as `nsc` writes it.
fs::path write_creds(const fs::path& path, const char* jwt) {
  std::ofstream(path) << "-----BEGIN NATS USER JWT-----\n"
                      << jwt << "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n"
                      << kUserSeed << "\n------END USER NKEY SEED------\n";
  return path;
}

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
  const NatsServer server({.config = std::string("operator: ") + kOperatorJwt +
                                     "\nresolver: MEMORY\nresolver_preload: { " + kAccount + ": " + kAccountJwt + " }",
                           .user = {},
                           .password = {}});
  const Variables with{{"MUSTER_NATS_CREDS", write_creds(scratch.path / "fleet.creds", kUserJwt)}};
  UsersFleet fleet(server.url());
  fleet.work(with, with, with);
  CHECK(fleet.ask({"status"}, {}).status == 1);
  const auto expired =
      fleet.ask({"status"}, {{"MUSTER_NATS_CREDS", write_creds(scratch.path / "expired.creds", kExpiredJwt)}});
  CHECK(expired.status == 1);
  CHECK_THAT(expired.err, Catch::Contains("credentials"));
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
