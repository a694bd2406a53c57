#include <algorithm>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "support/postgres_plugin.h"
#include "support/postgres_server.h"

using namespace muster;
using test::Db;
using test::ident;
using test::value_in_dsn;

namespace {

using Names = std::vector<std::string>;

constexpr char kOddDatabase[] = R"(Odd.Db "1")";

/// One server with a population for all tests; those that change something do it in a database of their own.
struct Fleet {
  test::PostgresServer server{{"host all locked 127.0.0.1/32 scram-sha-256", ""}};

  Fleet() {
    const auto admin = db("postgres");
    for (const char* sql :
         {"CREATE ROLE readers NOLOGIN", "CREATE ROLE \"Odd.Role\" CREATEDB CREATEROLE CONNECTION LIMIT 7",
          "CREATE ROLE \"größe\"", "CREATE ROLE \"user\"", "CREATE ROLE \"a\"\"b\"",
          "CREATE ROLE locked LOGIN PASSWORD 'right'", "CREATE ROLE app LOGIN IN ROLE readers, \"Odd.Role\", \"user\"",
          "CREATE ROLE full LOGIN CONNECTION LIMIT 0", "ALTER ROLE app SET search_path = sales, public",
          "ALTER ROLE app SET quote_all_identifiers = on", "CREATE DATABASE shop OWNER app",
          "CREATE DATABASE \"Odd.Db \"\"1\"\"\"", "CREATE DATABASE \"größe\" ENCODING 'LATIN1' TEMPLATE template0",
          "CREATE DATABASE private", "REVOKE CONNECT ON DATABASE private FROM PUBLIC",
          "CREATE DATABASE closed ALLOW_CONNECTIONS false"}) {
      admin.run(sql);
    }
    for (const char* name : {"shop", kOddDatabase, "größe"}) populate(db(name));
  }

  static void populate(const Db& db) {
    int number = 0;
    for (const std::string schema : {"sales", "\"Odd.Schema\"", "\"select\"", "\"größe\"", "\"a\"\"b\""}) {
      db.run("CREATE SCHEMA " + schema + " AUTHORIZATION app");
      for (const std::string table : {"plain", "\"table\"", "\"Dotted.Name\"", "\"qu\"\"ote\"", "\"ünï\"", "\"1st\"",
                                      "_x", "\"UPPER\"", "\"with space\"", "\"a\"\".\"\"b\""}) {
        const auto name = schema + "." + table;
        db.run("CREATE TABLE " + name + " (id int PRIMARY KEY, \"Odd \"\"c\" text DEFAULT 'it''s')");
        if (++number % 2 == 0) db.run("ALTER TABLE " + name + " OWNER TO app");
      }
      db.run("CREATE TABLE " + schema + ".parted (day date NOT NULL) PARTITION BY RANGE (day)");
      db.run("CREATE TABLE " + schema + ".parted_2026 PARTITION OF " + schema +
             ".parted FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')");
      db.run("CREATE VIEW " + schema + ".no_table AS SELECT 1; CREATE SEQUENCE " + schema + ".no_table_either");
    }
    db.run("CREATE EXTENSION citext; CREATE EXTENSION \"uuid-ossp\"");
  }

  [[nodiscard]] Db db(const std::string& name) const {
    return Db(server.dsn(value_in_dsn(name)) + " client_encoding=UTF8");
  }
};

Fleet& fleet() {
  static Fleet one;
  return one;
}

struct Own : test::OwnDatabase {
  explicit Own(const std::string& called) : OwnDatabase(fleet().server.dsn(), called) {}
};

/// Tries a statement again until it succeeds; a minute at most.
void run_at_last(const Db& db, const std::string& sql) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (;;) {
    try {
      db.run(sql);
      return;
    } catch (const std::runtime_error& error) {
      if (std::chrono::steady_clock::now() > end) FAIL(error.what());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

struct Pg : test::PostgresPlugin {
  explicit Pg(const std::string& dsn = fleet().server.dsn()) : PostgresPlugin(dsn) {}

  [[nodiscard]] Errc list_error(const std::string& type, const std::optional<Parent>& parent = std::nullopt) const {
    return std::get<Error>(run(type, ListJob{parent, "", 10})).code;
  }
  [[nodiscard]] std::vector<Item> list(const std::string& type, const std::optional<Parent>& parent = std::nullopt,
                                       std::uint32_t size = 100) const {
    auto listed = testing::list_all(plugin, type, config, parent, size);
    CHECK(listed.problems.empty());
    return std::move(listed.items);
  }
  [[nodiscard]] Errc read_error(const std::string& type, const std::string& id) const {
    return std::get<Error>(read(type, id)).code;
  }
};

/// As the coordinator makes it of the parent.
Parent in_database(const std::string& name) {
  return {"PG::Database", ident(name), Json{{"database", name}}.dump()};
}
Parent in_schema(const std::string& database, const std::string& schema) {
  return {"PG::Schema", ident(database) + "." + ident(schema), Json{{"database", database}, {"schema", schema}}.dump()};
}

Names ids(const std::vector<Item>& items) {
  Names found;
  for (const auto& item : items) found.push_back(item.native_id);
  return found;
}

Names below(const std::string& database, Names names) {
  for (auto& name : names) name = ident(database) + "." + name;
  return names;
}

Names sorted(Names names) {
  std::sort(names.begin(), names.end());
  return names;
}

/// Pages of every size give the same, in the order of ids; reading gives what listing gave.
void check_type(const Pg& pg, const std::string& type, const std::optional<Parent>& parent, const Names& expected) {
  INFO(type);
  const auto items = pg.list(type, parent);
  CHECK(ids(items) == sorted(expected));
  for (const std::uint32_t size : {1U, 2U, 0U}) CHECK(pg.list(type, parent, size) == items);
  const auto answers = testing::read_all(pg.plugin, type, pg.config, ids(items));
  REQUIRE(answers.size() == items.size());
  std::set<std::string> uids;
  for (std::size_t i = 0; i < items.size(); ++i) {
    CHECK(std::get<Item>(answers[i]) == items[i]);
    CHECK(Json::parse(items[i].properties).dump() == items[i].properties);  // canonical
    CHECK(uids.insert(items[i].uid).second);
  }
}

}  // namespace

TEST_CASE("roles and databases are those of the catalogs") {
  const Pg pg;
  const auto admin = fleet().db("postgres");
  check_type(pg, "PG::Role", std::nullopt, admin.run("SELECT format('%I', rolname) FROM pg_authid"));
  check_type(pg, "PG::Database", std::nullopt, admin.run("SELECT format('%I', datname) FROM pg_database"));
  CHECK(pg.properties("PG::Role", "\"Odd.Role\"") == Json{{"name", "Odd.Role"},
                                                          {"login", false},
                                                          {"superuser", false},
                                                          {"createdb", true},
                                                          {"createrole", true},
                                                          {"connection_limit", 7},
                                                          {"member_of", Json::array()}});
  CHECK(pg.properties("PG::Role", "app")["member_of"] == Json{"Odd.Role", "readers", "user"});
  CHECK(pg.properties("PG::Role", "app")["login"] == true);
  CHECK(pg.properties("PG::Role", "postgres")["superuser"] == true);
  CHECK(pg.properties("PG::Database", "\"größe\"") ==
        Json{{"name", "größe"}, {"owner", "postgres"}, {"encoding", "LATIN1"}});
  CHECK(pg.properties("PG::Database", "shop")["owner"] == "app");
  const auto item = std::get<Item>(pg.read("PG::Database", "shop"));
  CHECK(item.uid == "db:" + admin.one("SELECT oid FROM pg_database WHERE datname = 'shop'"));
}

TEST_CASE("schemas, tables and extensions are those of the catalogs") {
  const Pg pg;
  std::set<std::string> uids;
  for (const std::string database : {"shop", kOddDatabase, "größe"}) {
    const auto db = fleet().db(database);
    check_type(pg, "PG::Schema", in_database(database),
               below(database, db.run("SELECT format('%I', nspname) FROM pg_namespace")));
    check_type(pg, "PG::Extension", in_database(database),
               below(database, db.run("SELECT format('%I', extname) FROM pg_extension")));
    std::size_t tables = 0;
    for (const std::string schema : {"sales", "Odd.Schema", "select", "größe", "a\"b", "public"}) {
      check_type(
          pg, "PG::Table", in_schema(database, schema),
          below(database, db.run("SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables "
                                 "WHERE table_type = 'BASE TABLE' AND table_schema = '" +
                                 schema + "'")));
      const auto items = pg.list("PG::Table", in_schema(database, schema));
      tables += items.size();
      for (const auto& item : items) CHECK(uids.insert(item.uid).second);
    }
    CHECK(tables == 60);
  }
  CHECK(pg.properties("PG::Schema", "shop.sales") == Json{{"database", "shop"}, {"name", "sales"}, {"owner", "app"}});
  CHECK(pg.properties("PG::Extension", "shop.\"uuid-ossp\"") ==
        Json{{"database", "shop"},
             {"name", "uuid-ossp"},
             {"schema", "public"},
             {"version", fleet().db("shop").one("SELECT extversion FROM pg_extension WHERE extname = 'uuid-ossp'")}});
  // The catalogs' own schemas are listed too: leaving them out is the filters' affair.
  CHECK(pg.list("PG::Table", in_schema("shop", "pg_catalog")).size() > 50);
}

TEST_CASE("a table's columns and constraints") {
  const Pg pg;
  const Own own("columns");
  const auto db = fleet().db("columns");
  db.run(
      "CREATE EXTENSION btree_gist; CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE other (id int PRIMARY KEY);"
      "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY, gone int, price numeric(10,2) DEFAULT 1.5 CHECK (price "
      "> 0),"
      " \"Name\" varchar(20) NOT NULL, m mood[] DEFAULT '{}', twice numeric GENERATED ALWAYS AS (price * 2) STORED,"
      " n int DEFAULT nextval(pg_get_serial_sequence('t', 'id')), o int REFERENCES other, s serial,"
      " PRIMARY KEY (id), CONSTRAINT \"U.1\" UNIQUE (\"Name\", o), CONSTRAINT ex EXCLUDE USING gist (o WITH =));"
      "ALTER TABLE t DROP COLUMN gone; CREATE TEMP TABLE passing (a int); CREATE TABLE nothing ()");
  const auto column = [](const char* name, const char* type, bool nullable, const Json& value) {
    return Json{{"name", name}, {"type", type}, {"nullable", nullable}, {"default", value}};
  };
  const auto constraint = [](const char* name, const char* type, const char* definition) {
    return Json{{"name", name}, {"type", type}, {"definition", definition}};
  };
  const Json expected{
      {"database", "columns"},
      {"schema", "public"},
      {"name", "t"},
      {"owner", "postgres"},
      {"columns",
       {column("id", "bigint", false, "generated always as identity"), column("price", "numeric(10,2)", true, "1.5"),
        column("Name", "character varying(20)", false, nullptr),
        column("m", "public.mood[]", true, "'{}'::public.mood[]"),
        column("twice", "numeric", true, "generated always as ((price * (2)::numeric)) stored"),
        column("n", "integer", true, "nextval((pg_get_serial_sequence('t'::text, 'id'::text))::regclass)"),
        column("o", "integer", true, nullptr), column("s", "integer", false, "nextval('public.t_s_seq'::regclass)")}},
      {"constraints",
       {constraint("U.1", "UNIQUE", "UNIQUE (\"Name\", o)"),
        constraint("ex", "EXCLUDE", "EXCLUDE USING gist (o WITH =)"),
        constraint("t_o_fkey", "FOREIGN KEY", "FOREIGN KEY (o) REFERENCES public.other(id)"),
        constraint("t_pkey", "PRIMARY KEY", "PRIMARY KEY (id)"),
        constraint("t_price_check", "CHECK", "CHECK ((price > (0)::numeric))")}}};
  CHECK(pg.properties("PG::Table", "columns.public.t") == expected);
  const auto empty = pg.properties("PG::Table", "columns.public.nothing");
  CHECK(empty["columns"] == Json::array());
  CHECK(empty["constraints"] == Json::array());
  const auto temporary = db.one("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()");
  CHECK(pg.list("PG::Table", in_schema("columns", temporary)).empty());
}

TEST_CASE("the settings of the worker's role change nothing") {
  const Pg super;
  const Pg app("host=127.0.0.1 user=app dbname=shop port=" + std::to_string(fleet().server.port()));
  CHECK(app.list("PG::Table", in_schema("shop", "sales")) == super.list("PG::Table", in_schema("shop", "sales")));
  CHECK(app.list("PG::Role") == super.list("PG::Role"));
}

TEST_CASE("what a session prints of values is the same whatever its role, database and environment say") {
  const auto admin = fleet().db("postgres");
  const Own own("words");
  const auto db = fleet().db("words");
  db.run(
      "CREATE TABLE t (at timestamptz DEFAULT '2020-01-31 00:00:00+00' CHECK (at > '2019-01-31 00:00:00+00'), "
      "span interval DEFAULT '1 day 2 hours', bytes bytea DEFAULT '\\x01ff')");
  const Pg pg;
  const auto before = pg.properties("PG::Table", "words.public.t");
  for (const char* setting : {"timezone = 'Europe/Berlin'", "datestyle = 'German'", "intervalstyle = 'iso_8601'",
                              "bytea_output = 'escape'"}) {
    admin.run("ALTER DATABASE words SET " + std::string(setting));
  }
  CHECK(pg.properties("PG::Table", "words.public.t") == before);
  CHECK(before["columns"][0]["default"] == "'2020-01-31 00:00:00+00'::timestamp with time zone");
}

TEST_CASE("a foreign key to a partitioned table is one constraint, however many partitions that has") {
  const Own own("parts");
  const auto db = fleet().db("parts");
  db.run("CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY LIST (id)");
  db.run("CREATE TABLE user_of (id int CONSTRAINT to_whole REFERENCES whole)");
  const Pg pg;
  const auto before = pg.item("PG::Table", "parts.public.user_of");
  for (const std::string id : {"1", "2"}) {
    db.run("CREATE TABLE part_" + id + " PARTITION OF whole FOR VALUES IN (" + id + ")");
  }
  CHECK(pg.item("PG::Table", "parts.public.user_of") == before);
  db.run("CREATE TABLE users (id int CONSTRAINT to_whole REFERENCES whole) PARTITION BY LIST (id)");
  db.run("CREATE TABLE users_1 PARTITION OF users FOR VALUES IN (1)");
  for (const char* id : {"parts.public.users", "parts.public.users_1"}) {
    CHECK(pg.properties("PG::Table", id)["constraints"].size() == 1);
  }
}

TEST_CASE("a name that is no text here hides nobody else") {
  const auto admin = fleet().db("postgres");
  const auto latin = fleet().db("größe");  // a database of LATIN1: what is made here is stored so
  latin.run("CREATE ROLE \"früh\"");
  const Pg pg;
  for (const std::uint32_t size : {1U, 2U, 100U}) {
    const auto listed = testing::list_all(pg.plugin, "PG::Role", pg.config, std::nullopt, size);
    REQUIRE(listed.problems.size() == 1);
    CHECK(listed.problems[0].failure.code == Errc::kUnsupported);
    CHECK(listed.items.size() + 1 == std::stoul(admin.one("SELECT count(*) FROM pg_roles")));
  }
  CHECK(std::holds_alternative<Item>(pg.read("PG::Role", "app")));
  latin.run("DROP ROLE \"früh\"");
}

TEST_CASE("in a database without an encoding, bytes that are no text hide nobody else") {
  fleet().db("postgres").run("CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
  const auto db = fleet().db("bytes");
  db.run("CREATE TABLE \"größe\" (a int)");
  db.run(
      "DO $$BEGIN EXECUTE format('CREATE TABLE %I (a int); CREATE TABLE other (a text DEFAULT %1$L)', "
      "'t' || convert_from('\\xe9', 'SQL_ASCII')); END$$");
  const Pg pg;
  const auto listed = testing::list_all(pg.plugin, "PG::Table", pg.config, in_schema("bytes", "public"), 1);
  CHECK(ids(listed.items) == Names{"bytes.public.\"größe\"", "bytes.public.other"});
  REQUIRE(listed.problems.size() == 1);
  CHECK(listed.problems[0].native_id == "bytes.public.\"t%E9\"");
  CHECK(pg.item("PG::Table", "bytes.public.\"größe\"") == listed.items[0]);
  CHECK(pg.properties("PG::Table", "bytes.public.other")["columns"][0]["default"] == "'t\ufffd'::text");
}

TEST_CASE("changes: columns, names, owners, removals") {
  const Pg pg;
  const auto admin = fleet().db("postgres");
  admin.run("CREATE DATABASE changes");
  {
    const auto db = fleet().db("changes");
    db.run("CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int)");
    const auto before = std::get<Item>(pg.read("PG::Table", "changes.s.t"));
    db.run("ALTER TABLE s.t ADD COLUMN b text");
    auto after = std::get<Item>(pg.read("PG::Table", "changes.s.t"));
    CHECK(after.uid == before.uid);
    CHECK(Json::parse(after.properties)["columns"].size() == 2);
    db.run("ALTER TABLE s.t RENAME TO \"T.2\"");
    CHECK(pg.read_error("PG::Table", "changes.s.t") == Errc::kNotFound);
    after = std::get<Item>(pg.read("PG::Table", "changes.s.\"T.2\""));
    CHECK(after.uid == before.uid);
    db.run("DROP TABLE s.\"T.2\"; CREATE TABLE s.t (a int)");
    CHECK(std::get<Item>(pg.read("PG::Table", "changes.s.t")).uid != before.uid);
    CHECK(ids(pg.list("PG::Table", in_schema("changes", "s"))) == Names{"changes.s.t", "changes.s.u"});

    // A page token goes on behind its name, though that is gone.
    const auto page = std::get<ListResult>(pg.run("PG::Table", ListJob{in_schema("changes", "s"), "", 1}));
    db.run("DROP TABLE s.t");
    const auto rest =
        std::get<ListResult>(pg.run("PG::Table", ListJob{in_schema("changes", "s"), page.next_page_token, 9}));
    CHECK(ids(rest.items) == Names{"changes.s.u"});
    db.run("DROP SCHEMA s CASCADE");
    CHECK(pg.list_error("PG::Table", in_schema("changes", "s")) == Errc::kNotFound);
    CHECK(pg.read_error("PG::Table", "changes.s.u") == Errc::kNotFound);
  }
  const auto uid = std::get<Item>(pg.read("PG::Database", "changes")).uid;
  CHECK_FALSE(pg.list("PG::Schema", in_database("changes")).empty());
  // No connection of the plugin stands in the way; the server may take its time to end those that are closed.
  run_at_last(admin, "ALTER DATABASE changes RENAME TO changed");
  CHECK(std::get<Item>(pg.read("PG::Database", "changed")).uid == uid);
  admin.run("DROP DATABASE changed WITH (FORCE)");
  CHECK(pg.read_error("PG::Database", "changed") == Errc::kNotFound);
  CHECK(pg.read_error("PG::Schema", "changed.public") == Errc::kNotFound);
  CHECK(pg.list_error("PG::Schema", in_database("changed")) == Errc::kNotFound);
}

TEST_CASE("one read of many databases answers each id in its place") {
  const Pg pg;
  testing::FakeContext context;
  const ReadJob job{{"shop.sales.plain", "gone.a.b", "shop.sales.gone", "no id", "\"größe\".\"größe\".\"ünï\"",
                     "shop.\"sales\".plain", "private.public.t", "shop.sales.plain", "shop.sales.no_table"}};
  const auto answers = std::get<ReadResult>(pg.run("PG::Table", job, context)).items;
  CHECK(std::get<Item>(answers[0]).native_id == job.native_ids[0]);
  CHECK(std::get<Error>(answers[1]).code == Errc::kNotFound);
  CHECK(std::get<Error>(answers[2]).code == Errc::kNotFound);
  CHECK(std::get<Error>(answers[3]).code == Errc::kInvalidRequest);
  CHECK(std::get<Item>(answers[4]).native_id == job.native_ids[4]);
  CHECK(std::get<Error>(answers[5]).code == Errc::kNotFound);  // not how the server writes it
  CHECK(std::get<Error>(answers[6]).code == Errc::kNotFound);
  CHECK(std::get<Item>(answers[7]) == std::get<Item>(answers[0]));
  CHECK(std::get<Error>(answers[8]).code == Errc::kNotFound);
  CHECK(context.calls() == 3);  // a query in each of shop, größe and private
}

TEST_CASE("databases without connections are listed, and nothing below") {
  const Pg pg;
  const auto all = ids(pg.list("PG::Database"));
  for (const char* database : {"closed", "template0"}) {
    CHECK(std::count(all.begin(), all.end(), database) == 1);
    CHECK(pg.list("PG::Schema", in_database(database)).empty());
    CHECK(pg.list("PG::Extension", in_database(database)).empty());
    CHECK(pg.list("PG::Table", in_schema(database, "public")).empty());
    CHECK(pg.read_error("PG::Schema", database + std::string(".public")) == Errc::kUnsupported);  // and not gone
  }
}

TEST_CASE("the system is the cluster; unknown where it may not be asked for") {
  const auto admin = fleet().db("postgres");
  const Pg pg(fleet().server.dsn("shop"));
  const auto system = admin.one("SELECT system_identifier FROM pg_control_system()");
  CHECK(std::get<InspectResult>(pg.run("", InspectJob{})).system == system);
  admin.run("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
  const Pg app("host=127.0.0.1 user=app dbname=postgres port=" + std::to_string(fleet().server.port()));
  CHECK(std::get<InspectResult>(app.run("", InspectJob{})).system.empty());
}

TEST_CASE("refusals have their codes, and never the password") {
  const auto port = std::to_string(fleet().server.port());
  const auto refused = [&](const std::string& dsn, const std::optional<Parent>& parent = std::nullopt) {
    const auto error = std::get<Error>(
        Pg("host=127.0.0.1 port=" + port + " " + dsn).run(parent ? "PG::Schema" : "PG::Role", ListJob{parent, "", 10}));
    CHECK(error.message.find("canary") == std::string::npos);
    CHECK_FALSE(error.message.empty());
    return error.code;
  };
  CHECK(refused("user=locked dbname=shop password=canary") == Errc::kAccessDenied);
  CHECK(refused("user=locked dbname=shop passfile=/nonexistent") == Errc::kAccessDenied);  // no password
  CHECK(refused("user=gone dbname=shop password=canary") == Errc::kAccessDenied);
  CHECK(refused("user=app dbname=private password=canary") == Errc::kAccessDenied);
  CHECK(refused("user=app dbname=shop password=canary", in_database("private")) == Errc::kAccessDenied);
  CHECK(refused("user=full dbname=shop password=canary") == Errc::kThrottling);
  CHECK(refused("user=app dbname=gone password=canary") == Errc::kInvalidRequest);  // nothing below it is gone
  CHECK(refused("user=app dbname=closed password=canary") == Errc::kInvalidRequest);
  // Nor does it say that a database is gone that the server misses something else.
  CHECK(refused("user=app dbname=shop options='-c no_such_setting=1'", in_database("shop")) == Errc::kInvalidRequest);
  CHECK_FALSE(Pg("host=127.0.0.1 user=locked password=right dbname=shop port=" + port).list("PG::Role").empty());
  CHECK_FALSE(Pg("postgresql://locked:right@127.0.0.1:" + port + "/shop").list("PG::Role").empty());
}

TEST_CASE("a catalog that a server lacks is none that is empty") {
  const Own own("other_kind");
  const auto db = fleet().db("other_kind");
  db.run("SET allow_system_table_mods = on; ALTER TABLE pg_catalog.pg_extension RENAME TO pg_extension_renamed");
  const Pg pg;
  CHECK(pg.list_error("PG::Extension", in_database("other_kind")) == Errc::kUnsupported);
  CHECK(pg.read_error("PG::Extension", "other_kind.plpgsql") == Errc::kUnsupported);
  CHECK(pg.list_error("PG::Table", in_schema("other_kind", "gone")) == Errc::kNotFound);
}

TEST_CASE("a database whose files are not there, as of a disk that is not mounted, is not gone") {
  const auto admin = fleet().db("postgres");
  admin.run("CREATE DATABASE unmounted");
  admin.run("CHECKPOINT");
  const auto oid = admin.one("SELECT oid FROM pg_database WHERE datname = 'unmounted'");
  std::string files;
  for (const auto& each : std::filesystem::recursive_directory_iterator(fleet().server.directory())) {
    if (each.is_directory() && each.path().filename() == oid && each.path().parent_path().filename() == "base") {
      files = each.path();
    }
  }
  const Pg pg;
  std::filesystem::rename(files, files + ".elsewhere");
  CHECK(pg.list_error("PG::Schema", in_database("unmounted")) == Errc::kServiceUnavailable);
  CHECK(pg.read_error("PG::Schema", "unmounted.public") == Errc::kServiceUnavailable);
  std::filesystem::rename(files + ".elsewhere", files);
  CHECK(pg.item("PG::Schema", "unmounted.public").native_id == "unmounted.public");
  admin.run("DROP DATABASE unmounted");
  CHECK(pg.read_error("PG::Schema", "unmounted.public") == Errc::kNotFound);
}

TEST_CASE("a stopped job ends at once, at the server too") {
  const auto admin = fleet().db("postgres");
  const Own own("blocked");
  const auto blocker = fleet().db("blocked");
  blocker.run("BEGIN; LOCK TABLE pg_catalog.pg_extension IN ACCESS EXCLUSIVE MODE");
  const Pg pg;
  testing::FakeContext context;
  JobResult result;
  std::thread job([&] { result = pg.run("PG::Extension", ListJob{in_database("blocked"), "", 10}, context); });
  const std::string waiting =
      "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'muster' AND datname = 'blocked'";
  while (admin.one(waiting + " AND wait_event_type = 'Lock'") != "1") std::this_thread::yield();
  context.stop();
  job.join();
  CHECK(std::get<Error>(result).code == Errc::kCancelled);
  while (admin.one(waiting) != "0") std::this_thread::yield();  // though the lock is still held
  context.stop();
  CHECK(std::get<Error>(pg.run("PG::Role", ListJob{}, context)).code == Errc::kCancelled);
}

TEST_CASE("a stopped job ends at once, whether its server hears of it or hangs") {
  auto& server = fleet().server;
  const auto admin = fleet().db("postgres");
  const auto blocker = fleet().db("shop");
  blocker.run("BEGIN; LOCK TABLE pg_catalog.pg_extension IN ACCESS EXCLUSIVE MODE");
  const Pg pg;
  testing::FakeContext context;
  JobResult result;
  std::thread job([&] { result = pg.run("PG::Extension", ListJob{in_database("shop"), "", 10}, context); });
  const std::string waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'muster' AND datname = 'shop'";
  while (admin.run(waiting + " AND wait_event_type = 'Lock'").empty()) std::this_thread::yield();
  server.pause();
  context.stop();
  job.join();
  CHECK(std::get<Error>(result).code == Errc::kCancelled);
  server.resume();
  while (!admin.run(waiting).empty()) std::this_thread::yield();  // though the lock is still held
}

TEST_CASE("a job's deadline ends its statement") {
  const auto blocker = fleet().db("shop");
  blocker.run("BEGIN; LOCK TABLE pg_catalog.pg_extension IN ACCESS EXCLUSIVE MODE");
  testing::FakeContext context;
  context.set_deadline(std::chrono::steady_clock::now() + std::chrono::seconds(3));
  const auto result = Pg().run("PG::Extension", ListJob{in_database("shop"), "", 10}, context);
  CHECK(std::get<Error>(result).code == Errc::kTimeout);
}

TEST_CASE("a server that hangs, is stopped, comes back") {
  auto& server = fleet().server;
  const Pg pg;
  server.pause();
  CHECK(Pg(server.dsn() + " connect_timeout=2").list_error("PG::Role") == Errc::kServiceUnavailable);
  server.resume();
  CHECK_FALSE(pg.list("PG::Role").empty());
  server.stop();
  CHECK(pg.list_error("PG::Role") == Errc::kServiceUnavailable);
  CHECK(pg.read_error("PG::Table", "shop.sales.plain") == Errc::kServiceUnavailable);
  CHECK(std::get<Error>(pg.run("", InspectJob{})).code == Errc::kServiceUnavailable);
  server.start();
  CHECK_FALSE(pg.list("PG::Role").empty());
}
