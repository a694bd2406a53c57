// The inventory of a PostgreSQL server, before, during and after what can happen to it: compared with its catalogs.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "support/parts_fleet.h"
#include "support/postgres_client.h"
#include "support/postgres_server.h"

using muster::test::PartsFleet;
using muster::test::PostgresClient;
using muster::test::PostgresServer;
using Json = nlohmann::json;

namespace {

using Ids = std::set<std::string>;  // `type native id`
using Names = std::vector<std::string>;

constexpr int kTables = 60;  // in each schema
constexpr int kRoles = 20;
constexpr char kPassword[] = "right";  // what the worker's environment says

const std::map<std::string, Names> kSchemas{{"shop", {"sales", "\"Odd Schema\"", "archive"}},
                                            {"stock", {"parts", "moves"}}};

std::string table(int number) {
  return number % 10 == 3 ? "\"Table " + std::to_string(number) + "\"" : "t" + std::to_string(number);
}

/// A server where `scanner` needs a password, and who connects is logged.
struct Server : PostgresServer {
  Server() : PostgresServer({"host all scanner 127.0.0.1/32 scram-sha-256", "log_connections = on\n"}) {
    PostgresClient(dsn()).run(std::string("CREATE ROLE scanner LOGIN PASSWORD '") + kPassword + "'");
  }
};

void populate(const PostgresServer& server) {
  const PostgresClient admin(server.dsn());
  for (int i = 0; i < kRoles; ++i) admin.run("CREATE ROLE " + ("\"Role " + std::to_string(i) + "\""));
  for (const char* database : {"shop", "stock", "bench"}) admin.run(std::string("CREATE DATABASE ") + database);
  for (const auto& [database, schemas] : kSchemas) {
    const PostgresClient db(server.dsn(database));
    for (const auto& schema : schemas) {
      std::string sql = "CREATE SCHEMA " + schema + ";";
      for (int i = 0; i < kTables; ++i) {
        sql += "CREATE TABLE " + schema + "." + table(i) + " (id int PRIMARY KEY, note text DEFAULT 'none');";
      }
      db.run(sql);
    }
  }
  const auto log = server.directory() / "pgbench.log";
  REQUIRE(muster::test::wait_for(muster::test::spawn({{server.programs() / "pgbench", "-i", "-q", "-h", "127.0.0.1",
                                                       "-p", std::to_string(server.port()), "-U", "postgres", "bench"},
                                                      {},
                                                      log,
                                                      log})) == 0);
}

/// One server with a population for all tests; each leaves it running, with the password that it found.
Server& populated() {
  static Server one;
  static const bool done = (populate(one), true);
  static_cast<void>(done);
  return one;
}

/// What the catalogs say is there, less what the plugin's own filters leave out.
Ids catalogs(const PostgresServer& server) {
  Ids ids;
  const auto add = [&](const std::string& type, const Names& names) {
    for (const auto& name : names) ids.insert(type + " " + name);
  };
  const PostgresClient admin(server.dsn());
  add("PG::Role", admin.run("SELECT quote_ident(rolname) FROM pg_authid WHERE rolname !~ '^pg_'"));
  add("PG::Database", admin.run("SELECT quote_ident(datname) FROM pg_database WHERE NOT datistemplate"));
  for (const auto& database : admin.run("SELECT datname FROM pg_database WHERE NOT datistemplate")) {
    const PostgresClient db(server.dsn(database));
    const std::string own = "SELECT quote_ident(current_database()) || '.' || quote_ident(";
    const std::string schemas = "nspname !~ '^pg_' AND nspname <> 'information_schema'";
    add("PG::Schema", db.run(own + "nspname) FROM pg_namespace WHERE " + schemas));
    add("PG::Table", db.run(own +
                            "nspname) || '.' || quote_ident(relname) FROM pg_class JOIN pg_namespace n "
                            "ON n.oid = relnamespace WHERE relkind IN ('r', 'p') AND " +
                            schemas));
    add("PG::Extension", db.run(own + "extname) FROM pg_extension"));
  }
  return ids;
}

struct Inventory : PartsFleet {
  Inventory() {
    start(target("main", here));
    add_worker({"postgres", "--allow-env", "SCANNER_PASSWORD"}, {.environment = {{"SCANNER_PASSWORD", kPassword}}});
    report = discover();
  }

  static std::string target(const std::string& name, const PostgresServer& server, const std::string& more = "") {
    return "  - {name: " + name +
           ", namespace: PG, config: {dsn: \"host=127.0.0.1 port=" + std::to_string(server.port()) +
           " user=scanner password=${env:SCANNER_PASSWORD} dbname=postgres\"}" + more + "}\n";
  }
  void start(const std::string& targets) {
    configure("discovery: {interval: 0s}\nretry: {attempts: 2, base: 20ms, max: 50ms}\ntargets:\n" + targets);
  }

  /// Whether a worker has ever connected to a server.
  static bool read_by_worker(const PostgresServer& server) {
    return muster::test::slurp(server.directory() / "server.log").find("application_name=muster") != std::string::npos;
  }

  [[nodiscard]] Json one(const std::string& id) const { return json({"resource", id, "--history"}); }
  [[nodiscard]] std::string state_of_target(const std::string& name) const {
    for (const auto& target : json({"targets"})) {
      if (target["name"] == name) return target["state"];
    }
    return "none";
  }
  [[nodiscard]] std::map<std::string, std::string> rows() const {  // own id by type and native id
    std::map<std::string, std::string> all;
    for (const auto& row : resources()) {
      const auto key = row["type"].get<std::string>() + " " + row["native_id"].get<std::string>();
      CHECK(all.emplace(key, row["id"].get<std::string>()).second);
    }
    return all;
  }
  /// What is known, all of it in this state.
  [[nodiscard]] Ids known(const std::string& state = "present") const {
    Ids ids;
    for (const auto& row : resources()) {
      CHECK(row["state"] == state);
      ids.insert(row["type"].get<std::string>() + " " + row["native_id"].get<std::string>());
    }
    return ids;
  }
  /// A run that saw nothing new.
  void check_unchanged() {
    const auto before = last_event();
    const auto again = discover();
    CHECK(again["state"] == "complete");
    CHECK(again["problems"].empty());
    for (const auto& scan : again["scans"])
      CHECK(scan["listed"] == scan["unchanged"].get<int>() + scan["filtered"].get<int>());
    CHECK(resource_events(before).empty());
  }
  /// A run that could not look: it says why, and everything that is known stays, stale.
  void check_blind(const std::string& code) {
    const auto rows_before = rows();
    const auto before = last_event();
    const auto blind = discover();
    INFO(blind.dump(1));
    CHECK(blind["state"] == "partial");
    for (const auto& scan : blind["scans"]) CHECK(scan["complete"] == false);
    REQUIRE_FALSE(blind["problems"].empty());
    for (const auto& problem : blind["problems"]) {
      CHECK(problem["code"] == code);
      CHECK(problem["target"] == "main");
      CHECK_FALSE(problem["message"].get<std::string>().empty());
    }
    CHECK(resource_events(before).empty());
    CHECK(rows() == rows_before);
    CHECK_FALSE(known("stale").empty());
  }

  Server& here = populated();
  Json report;  // of the first run
};

/// The data of the only event of its kind about a resource.
Json only(const std::vector<Json>& events, const std::string& what, const std::string& native_id) {
  std::vector<Json> found;
  for (const auto& event : events) {
    if (event["type"] == "muster.resource." + what && event["data"]["native_id"] == native_id) {
      found.push_back(event["data"]);
    }
  }
  REQUIRE(found.size() == 1);
  return found[0];
}

}  // namespace

TEST_CASE_METHOD(Inventory, "what is in the catalogs is in the inventory, and what changes there happens here") {
  INFO(report.dump(1));
  CHECK(report["state"] == "complete");
  CHECK(report["problems"].empty());
  const auto before = known();
  CHECK(before == catalogs(here));
  const auto of_type = [&](const std::string& type) {
    return std::ranges::count_if(before, [&](const auto& id) { return id.starts_with(type + " "); });
  };
  CHECK(of_type("PG::Table") == 300 + 4);
  CHECK(of_type("PG::Role") == kRoles + 2);
  CHECK(of_type("PG::Database") == 4);
  CHECK(resource_events(0).size() == rows().size());  // each was discovered, and nothing else
  check_unchanged();

  const auto rows_before = rows();
  const auto changed = one("main/PG::Table/shop.sales.t1");
  const auto since = last_event();
  {
    const PostgresClient shop(here.dsn("shop"));
    shop.run("ALTER TABLE sales.t1 ADD COLUMN extra numeric(6,2) NOT NULL DEFAULT 1");
    shop.run("DROP TABLE sales.t2");
    shop.run("ALTER TABLE \"Odd Schema\".\"Table 3\" RENAME TO \"Another\"\"Name\"");
    shop.run("DROP SCHEMA archive CASCADE");
  }
  const auto after = discover();
  CHECK(after["state"] == "complete");
  CHECK(known() == catalogs(here));

  Names expected{"changed PG::Table shop.sales.t1", "renamed PG::Table shop.\"Odd Schema\".\"Another\"\"Name\"",
                 "vanished PG::Schema shop.archive", "vanished PG::Table shop.sales.t2"};
  for (int i = 0; i < kTables; ++i) expected.push_back("vanished PG::Table shop.archive." + table(i));
  std::ranges::sort(expected);
  CHECK(resource_events(since) == expected);

  // The patch makes the new properties of the old ones.
  const auto events_since = events(since, "resource.*");
  const auto patched = only(events_since, "changed", "shop.sales.t1");
  const auto now = one("main/PG::Table/shop.sales.t1");
  CHECK(patched["id"] == changed["id"]);
  CHECK(patched["target"] == "main");
  REQUIRE(patched["patch"].size() == 1);
  CHECK(patched["patch"][0]["op"] == "add");
  CHECK(changed["properties"].patch(patched["patch"]) == now["properties"]);
  CHECK(now["properties"]["columns"].back() ==
        Json{{"name", "extra"}, {"type", "numeric(6,2)"}, {"nullable", false}, {"default", "1"}});
  CHECK(now["version"] == changed["version"].get<int>() + 1);
  REQUIRE(now["history"].size() == 2);
  const bool newest_last = now["history"][0]["version"] < now["history"][1]["version"];
  CHECK(now["history"][newest_last ? 1 : 0]["patch"] == patched["patch"]);
  const auto then = json({"resource", "main/PG::Table/shop.sales.t1", "--at", report["finished_at"]});
  CHECK(then["properties"] == changed["properties"]);

  const auto renamed = only(events_since, "renamed", "shop.\"Odd Schema\".\"Another\"\"Name\"");
  CHECK(renamed["was"] == "shop.\"Odd Schema\".\"Table 3\"");
  CHECK(renamed["id"] == rows_before.at("PG::Table shop.\"Odd Schema\".\"Table 3\""));
  CHECK(one(renamed["id"])["native_id"] == "shop.\"Odd Schema\".\"Another\"\"Name\"");
  CHECK(one(renamed["id"])["history"].size() >= 2);

  CHECK(only(events_since, "vanished", "shop.sales.t2")["reason"] == "vanished");
  CHECK(only(events_since, "vanished", "shop.archive")["reason"] == "vanished");
  for (int i = 0; i < kTables; ++i) {
    const auto vanished = only(events_since, "vanished", "shop.archive." + table(i));
    CHECK(vanished["reason"] == "parent");
    CHECK(vanished["id"] == rows_before.at("PG::Table shop.archive." + table(i)));
  }
  const auto gone = one(rows_before.at("PG::Table shop.sales.t2"));
  CHECK(gone["state"] == "vanished");
  CHECK(gone["history"].size() == 2);
  check_unchanged();
}

TEST_CASE_METHOD(Inventory, "unknown is not gone: a server that is down, closed, exchanged or not looked at any more") {
  REQUIRE(report["state"] == "complete");
  const auto all = known();
  const auto ids = rows();
  auto since = last_event();

  here.stop();
  check_blind("SERVICE_UNAVAILABLE");
  CHECK(state_of_target("main") == "unreachable");
  CHECK(muster({"discover", "--wait"}).status == 1);
  CHECK(events(since, "target.*").size() == 1);
  CHECK(events(since, "target.unreachable").size() == 1);

  here.start();
  since = last_event();
  check_unchanged();
  CHECK(events(since, "target.reachable").size() == 1);
  CHECK(known() == all);
  CHECK(rows() == ids);

  PostgresClient(here.dsn()).run("ALTER ROLE scanner PASSWORD 'another'");
  check_blind("ACCESS_DENIED");
  PostgresClient(here.dsn()).run(std::string("ALTER ROLE scanner PASSWORD '") + kPassword + "'");
  check_unchanged();
  CHECK(known() == all);

  since = last_event();
  start("  []\n");
  CHECK(rows() == ids);
  CHECK(known("stale") == all);
  CHECK(events(since, "target.changed").size() == 1);
  CHECK(discover()["scans"].empty());
  start(target("main", here));
  check_unchanged();
  CHECK(rows() == ids);
  CHECK(known() == all);
  CHECK(resource_events(since).empty());

  start(target("other", here, ", renamed_from: main"));
  check_unchanged();
  CHECK(rows() == ids);
  CHECK(known() == all);
  CHECK(resources({"--target", "main"}).empty());
  CHECK(resources({"--target", "other"}).size() == ids.size());
  CHECK(one("other/PG::Role/scanner")["id"] == ids.at("PG::Role scanner"));
  CHECK(one("other/PG::Role/scanner")["history"].size() == 1);
  CHECK(resource_events(since).empty());
}

TEST_CASE_METHOD(Inventory, "another server under the name of a target is not read before it is accepted") {
  REQUIRE(report["state"] == "complete");
  const auto ids = rows();
  const auto since = last_event();
  const Server there;
  start(target("main", there));
  CHECK(events(since, "target.changed").size() == 1);
  CHECK(state_of_target("main") == "changed");
  check_blind("TARGET_CHANGED");
  CHECK(rows() == ids);
  CHECK(resource_events(since).empty());
  CHECK_FALSE(read_by_worker(there));

  REQUIRE(muster({"targets", "accept", "main"}).status == 0);
  CHECK(discover()["state"] == "complete");
  CHECK(read_by_worker(there));
  CHECK(state_of_target("main") == "active");
  CHECK(known() == catalogs(there));
  check_unchanged();
}
