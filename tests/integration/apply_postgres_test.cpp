// Declarations carried out on a PostgreSQL server, compared with its catalogs; edits by hand are drift.

#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/parts_fleet.h"
#include "support/postgres_client.h"
#include "support/postgres_server.h"

using Catch::Contains;
using muster::test::PartsFleet;
using muster::test::PostgresClient;
using muster::test::PostgresServer;
using Json = nlohmann::json;
using Names = std::vector<std::string>;

namespace {

constexpr const char* kShop = R"(stack: shop
targets: [{name: main, namespace: PG, config: {dsn: "${env:PG_DSN}"}, discover: true}]
resources:
  - {name: owner, type: PG::Role,     target: main, properties: {name: shop_owner, login: true, password: "${env:PG_SECRET}"}}
  - {name: db,    type: PG::Database, target: main, properties: {name: shop, owner: "${resource:owner.name}"}}
  - {name: sales, type: PG::Schema,   target: main, properties: {database: "${resource:db.name}", name: sales}}
  - name: orders
    type: PG::Table
    target: main
    properties:
      database: "${resource:sales.database}"
      schema: "${resource:sales.name}"
      name: orders
      columns:
        - {name: id, type: bigint, nullable: false}
        - {name: note, type: text}
)";

class Shop : public PartsFleet {
 public:
  Shop() {
    configure("discovery: {interval: 0s}\n");
    add_worker({"postgres", "--allow-env", "PG_*"},
               {.environment = {{"PG_DSN", server.dsn()}, {"PG_SECRET", "canary-4711"}}, .as_nobody = false});
    write(kShop);
  }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
  [[nodiscard]] std::string file() const { return directory() / "shop.yaml"; }
  [[nodiscard]] Json applied(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args{"apply", file(), "--yes", "-o", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const auto answer = muster(args);
    INFO(answer.out << answer.err);
    return Json::parse(answer.out, nullptr, false);
  }
  [[nodiscard]] Json summary() const { return json({"apply", file(), "--plan"})["summary"]; }
  [[nodiscard]] Names ask(const std::string& sql, const std::string& database = "postgres") const {
    return PostgresClient(server.dsn(database)).run(sql);
  }

  PostgresServer server;
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

}  // namespace

TEST_CASE("what is declared stands in the catalogs, then nothing is left to do, then it is gone") {
  const Shop fleet;
  const auto planned = fleet.json({"apply", fleet.file(), "--plan"});
  CHECK(planned["summary"]["create"] == 4);
  CHECK(fleet.ask("SELECT 1 FROM pg_database WHERE datname = 'shop'").empty());

  const auto done = fleet.applied();
  CHECK(done["state"] == "complete");
  CHECK(done["plan"]["summary"]["create"] == 4);
  CHECK(done["results"].size() == 4);
  CHECK(fleet.ask("SELECT rolcanlogin::text FROM pg_roles WHERE rolname = 'shop_owner'") == Names{"true"});
  CHECK(fleet.ask("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'shop'") == Names{"shop_owner"});
  CHECK(fleet.ask("SELECT column_name || ' ' || data_type || ' ' || is_nullable FROM information_schema.columns "
                  "WHERE table_schema = 'sales' AND table_name = 'orders' ORDER BY ordinal_position",
                  "shop") == Names{"id bigint NO", "note text YES"});
  CHECK(fleet.summary()["unchanged"] == 4);
  const auto before = fleet.last_event();
  CHECK(fleet.applied()["state"] == "complete");
  CHECK(fleet.last_event() == before);  // nothing to do: nothing done
  CHECK(fleet.discover()["state"] == "complete");
  CHECK(fleet.summary()["unchanged"] == 4);
  CHECK(fleet.resources({"--managed"}).size() == 4);
  CHECK(fleet.log().find("canary-4711") == std::string::npos);
  CHECK(fleet.muster({"events"}).out.find("canary-4711") == std::string::npos);

  SECTION("a column is added and one dropped, in place") {
    fleet.write(replaced(kShop, "{name: note, type: text}",
                         "{name: paid, type: boolean, nullable: false, default: \"false\"}"));
    const auto changed = fleet.applied();
    CHECK(changed["state"] == "complete");
    CHECK(changed["plan"]["summary"]["update"] == 1);
    CHECK(fleet.ask("SELECT column_name FROM information_schema.columns WHERE table_name = 'orders' ORDER BY 1",
                    "shop") == Names{"id", "paid"});
    CHECK(fleet.summary()["unchanged"] == 4);
  }
  SECTION("edits by hand are drift, told field by field, and put back by the next apply") {
    static_cast<void>(fleet.ask("ALTER ROLE shop_owner NOLOGIN CREATEDB"));
    CHECK(fleet.summary()["unchanged"] == 4);  // the inventory does not know yet
    const auto refreshed = fleet.json({"apply", fleet.file(), "--plan", "--refresh"});
    CHECK(refreshed["summary"]["update"] == 1);
    CHECK(refreshed["summary"]["unchanged"] == 3);
    static_cast<void>(fleet.ask("DROP TABLE sales.orders", "shop"));
    CHECK(fleet.discover()["state"] == "complete");
    const auto drifted = fleet.resources({"--drifted"});
    REQUIRE(drifted.size() == 2);
    bool told = false;
    for (const auto& event : fleet.events(before, "resource.drifted")) {
      if (event["data"]["name"] != "owner") continue;
      told = true;
      CHECK(event["data"]["fields"] == Json::array({{{"path", "/login"}, {"declared", true}, {"found", false}}}));
    }
    CHECK(told);
    const auto put_back = fleet.applied();
    CHECK(put_back["state"] == "complete");
    CHECK(put_back["plan"]["summary"]["update"] == 1);
    CHECK(put_back["plan"]["summary"]["create"] == 1);
    CHECK(fleet.ask("SELECT rolcanlogin::text || rolcreatedb::text FROM pg_roles WHERE rolname = 'shop_owner'") ==
          Names{"truetrue"});  // only what is declared
    CHECK(fleet.ask("SELECT 1 FROM pg_tables WHERE tablename = 'orders'", "shop").size() == 1);
    CHECK(fleet.resources({"--drifted"}).empty());
  }
  SECTION("a saved plan is carried out as it is, or not at all") {
    const std::string plan = fleet.directory() / "plan";
    fleet.write(replaced(kShop, "login: true", "login: false"));
    CHECK(fleet.muster({"apply", fleet.file(), "--plan-out", plan}).status == 0);
    static_cast<void>(fleet.ask("ALTER DATABASE shop OWNER TO postgres"));
    CHECK(fleet.discover()["state"] == "complete");
    const auto refused = fleet.muster({"apply", "--plan-in", plan, "--yes"});
    CHECK(refused.status == 1);
    CHECK_THAT(refused.err, Contains("shop/db"));
    static_cast<void>(fleet.ask("ALTER DATABASE shop OWNER TO shop_owner"));
    CHECK(fleet.discover()["state"] == "complete");
    const auto taken = fleet.muster({"apply", "--plan-in", plan, "--yes"});
    CHECK(taken.status == 0);
    CHECK(fleet.ask("SELECT rolcanlogin::text FROM pg_roles WHERE rolname = 'shop_owner'") == Names{"false"});
  }
  SECTION("what exists is adopted by what was exported of it") {
    static_cast<void>(fleet.ask("CREATE ROLE elder CREATEDB"));
    CHECK(fleet.discover()["state"] == "complete");
    const auto exported = fleet.muster({"export", "elder", "--type", "PG::Role", "--stack", "old"});
    INFO(exported.err);
    CHECK(exported.status == 0);
    fleet.write(exported.out);
    const auto plan = fleet.summary();
    CHECK(plan["adopt"] == 1);
    CHECK(plan["update"] == 0);
    CHECK(fleet.applied()["state"] == "complete");
    CHECK(fleet.summary()["unchanged"] == 1);
    CHECK(fleet.ask("SELECT rolcreatedb::text FROM pg_roles WHERE rolname = 'elder'") == Names{"true"});
  }
  SECTION("without a terminal nobody is asked") {
    fleet.write(replaced(kShop, "login: true", "login: false"));
    const auto refused = fleet.muster({"apply", fleet.file()});
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, Contains("--yes"));
  }
  if (fleet.ask("SELECT 1 FROM pg_roles WHERE rolname = 'elder'").empty()) {
    const auto destroyed = fleet.muster({"destroy", fleet.file(), "--yes", "-o", "json"});
    INFO(destroyed.out << destroyed.err);
    CHECK(destroyed.status == 0);
    CHECK(fleet.ask("SELECT 1 FROM pg_database WHERE datname = 'shop'").empty());
    CHECK(fleet.ask("SELECT 1 FROM pg_roles WHERE rolname = 'shop_owner'").empty());
    CHECK(fleet.resources({"--managed"}).empty());
  }
}

TEST_CASE("mistakes are told all together, with their places, and nothing is touched") {
  const Shop fleet;
  fleet.write(R"(stack: shop
targets: [{name: main, namespace: PG, config: {dsn: "${env:PG_DSN}"}}]
resources:
  - {name: a, type: PG::Role, target: main, properties: {name: a, login: "maybe"}}
  - {name: b, type: PG::Rule, target: main, properties: {name: b}}
  - {name: c, type: PG::Role, target: elsewhere, properties: {name: c, password: plain}}
  - {name: d, type: PG::Role, target: main, properties: {name: d}, depends_on: [e]}
  - {name: e, type: PG::Role, target: main, properties: {name: e}, depends_on: [d]}
)");
  const auto answer = fleet.muster({"apply", fleet.file(), "--yes"});
  CHECK(answer.status == 2);
  CHECK_THAT(answer.err, Contains("shop.yaml:4:") && Contains("/login"));
  CHECK_THAT(answer.err, Contains("shop.yaml:5:") && Contains("PG::Rule"));
  CHECK_THAT(answer.err, Contains("shop.yaml:6:") && Contains("elsewhere") && Contains("is a secret"));
  CHECK_THAT(answer.err, Contains("shop.yaml:7:") && Contains("the references make a cycle: d -> e -> d"));
  CHECK(fleet.ask("SELECT rolname FROM pg_roles WHERE rolname IN ('a', 'b', 'c', 'd', 'e')").empty());
  CHECK(fleet.json({"targets"}).empty());
}
