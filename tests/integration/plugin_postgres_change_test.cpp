#include "plugins/postgres/postgres.h"

#include <xxhash.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>
#include <tuple>

#include <catch2/catch.hpp>

#include "coordinator/difference.h"
#include "integration/plugin_postgres_db.h"
#include "support/postgres_server.h"
#include "worker_sdk/testing/fake_context.h"

using namespace muster;
using test::Db;
using test::ident;
using test::value_in_dsn;

namespace {

constexpr char kRole[] = "PG::Role";
constexpr char kDatabase[] = "PG::Database";
constexpr char kSchema[] = "PG::Schema";
constexpr char kTable[] = "PG::Table";
constexpr char kExtension[] = "PG::Extension";

test::PostgresServer& server() {
  static test::PostgresServer one{{"host all with_password 127.0.0.1/32 scram-sha-256", "log_statement = all"}};
  return one;
}

Db db(const std::string& name = "postgres") {
  return Db(server().dsn(value_in_dsn(name)) + " client_encoding=UTF8");
}

std::string dsn_of(const std::string& role) {
  return "host=127.0.0.1 dbname=postgres port=" + std::to_string(server().port()) + " user=" + role;
}

std::string hash_of(const std::string& properties) {
  const auto hash = XXH3_128bits(properties.data(), properties.size());
  std::array<char, 33> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex.data();
}

/// The plugin as a coordinator uses it: what is declared is put over what is there.
struct Pg {
  Plugin plugin{postgres::plugin_info()};
  Json config;

  explicit Pg(const std::string& dsn = server().dsn()) : config{{"dsn", dsn}} { postgres::add_types(plugin); }

  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation, JobContext& context) const {
    Job job;
    job.ns = "PG";
    job.type = type;
    job.operation = std::move(operation);
    return plugin.run(job, config, context);
  }
  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation) const {
    testing::FakeContext context;
    return run(type, std::move(operation), context);
  }
  [[nodiscard]] ReadItem read(const std::string& type, const std::string& id) const {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }
  [[nodiscard]] Item item(const std::string& type, const std::string& id) const {
    auto answer = read(type, id);
    if (const auto* error = std::get_if<Error>(&answer)) FAIL(type << " " << id << ": " << error->message);
    return std::get<Item>(answer);
  }
  [[nodiscard]] Json properties(const std::string& type, const std::string& id) const {
    return Json::parse(item(type, id).properties);
  }
  [[nodiscard]] bool is_there(const std::string& type, const std::string& id) const {
    const auto answer = read(type, id);
    if (std::holds_alternative<Item>(answer)) return true;
    CHECK(std::get<Error>(answer).code == Errc::kNotFound);
    return false;
  }
  [[nodiscard]] PropertyRule rules(const std::string& type) const {
    for (const auto& each : plugin.manifest().types) {
      if (each.name == type) return property_rules(each.schema).value();
    }
    return {};
  }

  [[nodiscard]] JobResult try_create(const std::string& type, const Json& declared) const {
    return run(type, CreateJob{"key", {declared.dump(), {}}, std::nullopt});
  }
  [[nodiscard]] Error create_error(const std::string& type, const Json& declared) const {
    const auto result = try_create(type, declared);
    REQUIRE(std::holds_alternative<Error>(result));
    return std::get<Error>(result);
  }
  /// Creates, and checks that it is then as declared.
  std::string create(const std::string& type, const Json& declared) const {
    const auto result = try_create(type, declared);
    if (const auto* error = std::get_if<Error>(&result)) FAIL(type << ": " << error->message);
    const auto& made = std::get<MutationResult>(result);
    check_made(type, made, declared);
    return made.native_id;
  }
  void check_made(const std::string& type, const MutationResult& made, const Json& declared) const {
    CHECK(made.status == MutationStatus::kSuccess);
    const auto there = item(type, made.native_id);
    CHECK(there.properties == made.properties);
    CHECK(there.uid == made.uid);
    CHECK(compare(rules(type), Json::parse(there.properties), declared).patch == Json::array());
  }

  [[nodiscard]] UpdateJob update_job(const std::string& type, const std::string& id, const Json& declared) const {
    const auto there = item(type, id);
    const auto prior = Json::parse(there.properties);
    const auto known = rules(type);
    return {"key",
            id,
            there.properties,
            {merge_declared(known, prior, declared).dump(), {}},
            compare(known, prior, declared).patch.dump(),
            {there.uid, hash_of(there.properties)}};
  }
  [[nodiscard]] Error update_error(const std::string& type, const std::string& id, const Json& declared) const {
    const auto before = item(type, id);
    const auto result = run(type, update_job(type, id, declared));
    REQUIRE(std::holds_alternative<Error>(result));
    CHECK(item(type, id) == before);  // nothing was applied
    return std::get<Error>(result);
  }
  void update(const std::string& type, const std::string& id, const Json& declared) const {
    INFO(declared.dump());
    const auto uid = item(type, id).uid;
    const auto result = run(type, update_job(type, id, declared));
    if (const auto* error = std::get_if<Error>(&result)) FAIL(type << " " << id << ": " << error->message);
    const auto& made = std::get<MutationResult>(result);
    CHECK(made.native_id == id);
    CHECK(made.uid == uid);
    check_made(type, made, declared);
  }

  [[nodiscard]] JobResult try_remove(const std::string& type, const std::string& id) const {
    return run(type, DeleteJob{"key", id, {}});
  }
  void remove(const std::string& type, const std::string& id) const {
    for (int i = 0; i < 2; ++i) {  // the second time it is gone already
      const auto result = try_remove(type, id);
      if (const auto* error = std::get_if<Error>(&result)) FAIL(type << " " << id << ": " << error->message);
      CHECK(std::get<MutationResult>(result).status == MutationStatus::kSuccess);
      CHECK_FALSE(is_there(type, id));
    }
  }
};

/// A job on a thread of its own.
class Going {
 public:
  explicit Going(std::function<JobResult()> job)
      : thread_([this, job = std::move(job)] {
          result_ = job();
          done_ = true;
        }) {}
  /// Returns when the query gives a row: what the job waits for at the server.
  void wait(const Db& admin, const std::string& query) {
    while (!done_ && admin.run(query).empty()) std::this_thread::yield();
    if (done_) FAIL("the job waits for nothing");
  }
  JobResult result() {
    thread_.join();
    return std::move(result_);
  }

 private:
  std::atomic<bool> done_ = false;
  JobResult result_;
  std::jthread thread_;
};

constexpr char kWaitsForLock[] =
    "SELECT 1 FROM pg_stat_activity WHERE application_name = 'muster' AND wait_event_type = 'Lock'";

Json column(const std::string& name, const std::string& type) {
  return {{"name", name}, {"type", type}};
}

/// A database of a test's own.
struct Own {
  std::string name;
  explicit Own(std::string called) : name(std::move(called)) { db().run("CREATE DATABASE " + ident(name)); }
  ~Own() { db().run("DROP DATABASE IF EXISTS " + ident(name) + " WITH (FORCE)"); }
  [[nodiscard]] Json table(const std::string& called, const std::vector<Json>& columns) const {
    return {{"database", name}, {"schema", "public"}, {"name", called}, {"columns", columns}};
  }
};

const std::vector<std::string> kOddNames{
    "Odd Name", "a\"b", "größe", "select", "x; DROP ROLE postgres; --", "it's \\'", std::string(63, 'n'), "$$; $1 %s"};

}  // namespace

TEST_CASE("roles: made, changed in place, removed") {
  const Pg pg;
  const Json groups{"first group", "second"};
  for (const auto& group : groups) pg.create(kRole, {{"name", group}});
  const Json declared{{"name", "app"},      {"login", true},         {"superuser", false},  {"createdb", true},
                      {"createrole", true}, {"connection_limit", 5}, {"member_of", groups}, {"password", nullptr}};
  CHECK(pg.create(kRole, declared) == "app");
  CHECK(pg.create_error(kRole, declared).code == Errc::kAlreadyExists);

  for (const Json& change :
       {Json{{"login", false}}, Json{{"superuser", true}}, Json{{"createdb", false}}, Json{{"createrole", false}},
        Json{{"connection_limit", -1}}, Json{{"member_of", {"second"}}}, Json{{"member_of", Json::array()}},
        Json{{"member_of", {"second", "first group"}}}, Json{{"superuser", nullptr}}, Json{{"member_of", nullptr}},
        Json{{"login", true}, {"connection_limit", 7}, {"member_of", {"second"}}}}) {
    pg.update(kRole, "app", change);
  }
  CHECK(pg.properties(kRole, "app") == Json{{"name", "app"},
                                            {"login", true},
                                            {"superuser", false},
                                            {"createdb", false},
                                            {"createrole", false},
                                            {"connection_limit", 7},
                                            {"member_of", {"second"}}});
  CHECK(pg.update_error(kRole, "app", {{"name", "other"}}).code == Errc::kInvalidRequest);
  CHECK(pg.update_error(kRole, "app", {{"member_of", {"second", "second"}}}).code == Errc::kInvalidRequest);
  CHECK(pg.update_error(kRole, "app", {{"member_of", {"nobody"}}}).code == Errc::kInvalidRequest);  // and not gone
  CHECK(pg.update_error(kRole, "app", {{"member_of", {"app"}}}).code == Errc::kInvalidRequest);
  CHECK(pg.update_error(kRole, "app", {{"connection_limit", -7}}).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kRole, {{"name", "pg_mine"}}).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kRole, {{"name", "in_nothing"}, {"member_of", {"nobody"}}}).code == Errc::kInvalidRequest);
  CHECK_FALSE(pg.is_there(kRole, "in_nothing"));
  for (const char* id : {"app", "second", "\"first group\""}) pg.remove(kRole, id);
}

TEST_CASE("roles: a password logs in, and nobody sees it") {
  const Pg pg;
  // Digits alone also stand in process ids and times of the server's log.
  const std::string mark = "never-to-be-told";
  const std::string canary = "can'ary \\ " + mark + " $$";
  testing::FakeContext context;
  const auto made = std::get<MutationResult>(pg.run(
      kRole, CreateJob{"key", {Json{{"name", "with_password"}, {"login", true}, {"password", canary}}.dump(), {}}, {}},
      context));
  CHECK(made.properties.find(mark) == std::string::npos);
  CHECK_FALSE(Json::parse(made.properties).contains("password"));
  const auto login = [](const std::string& password) {
    return Db(dsn_of("with_password") + " password=" + value_in_dsn(password)).one("SELECT current_user");
  };
  CHECK(login(canary) == "with_password");
  CHECK_THROWS(login("other"));

  const std::string next = canary + " next";
  const Json desired{{"name", "with_password"}, {"login", true}, {"password", next}};
  auto job = pg.update_job(kRole, "with_password", desired);
  const auto result = pg.run(kRole, job, context);
  CHECK(std::get<MutationResult>(result).properties == made.properties);
  CHECK(login(next) == "with_password");
  CHECK_THROWS(login(canary));
  CHECK(context.logged().find(mark) == std::string::npos);
  std::ifstream log(server().directory() / "server.log");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  CHECK(text.find("ALTER ROLE \"with_password\"") != text.npos);  // it does log statements
  CHECK(text.find(mark) == text.npos);
  CHECK(pg.create_error(kRole, {{"name", "empty"}, {"password", ""}}).code == Errc::kInvalidRequest);
  pg.remove(kRole, "with_password");
}

TEST_CASE("databases: made, changed in place, removed") {
  const Pg pg;
  pg.create(kRole, {{"name", "owner_1"}});
  CHECK(pg.create(kDatabase, {{"name", "Shop"}, {"owner", "owner_1"}, {"encoding", "LATIN1"}}) == "\"Shop\"");
  CHECK(pg.create(kDatabase, {{"name", "plain"}}) == "plain");
  CHECK(pg.properties(kDatabase, "plain") == Json{{"name", "plain"}, {"owner", "postgres"}, {"encoding", "UTF8"}});
  CHECK(pg.create_error(kDatabase, {{"name", "plain"}}).code == Errc::kAlreadyExists);
  pg.update(kDatabase, "plain", {{"owner", "owner_1"}});

  CHECK(pg.update_error(kDatabase, "plain", {{"encoding", "LATIN1"}}).code == Errc::kInvalidRequest);
  CHECK(pg.update_error(kDatabase, "plain", {{"owner", "nobody"}}).code == Errc::kInvalidRequest);
  CHECK(pg.update_error(kDatabase, "plain", {{"owner", nullptr}}).code == Errc::kInvalidRequest);
  const auto spelling = pg.create_error(kDatabase, {{"name", "other"}, {"encoding", "utf-8"}});
  CHECK(spelling.code == Errc::kInvalidRequest);
  CHECK_THAT(spelling.message, Catch::Contains("UTF8"));
  CHECK(pg.create_error(kDatabase, {{"name", "other"}, {"owner", nullptr}}).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kDatabase, {{"name", "other"}, {"encoding", "EBCDIC"}}).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kDatabase, {{"name", "other"}, {"owner", "nobody"}}).code == Errc::kNotFound);
  CHECK(pg.create_error(kDatabase, {{"name", std::string(64, 'x')}}).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kDatabase, {{"name", "other"}, {"tablespace", "x"}}).code == Errc::kInvalidRequest);
  CHECK_FALSE(pg.is_there(kDatabase, "other"));

  const auto owned = std::get<Error>(pg.try_remove(kRole, "owner_1"));
  CHECK(owned.code == Errc::kConflict);
  CHECK_THAT(owned.message, Catch::Contains("owner of database plain"));
  {
    const auto guest = db("plain");
    const auto busy = std::get<Error>(pg.try_remove(kDatabase, "plain"));
    CHECK(busy.code == Errc::kConflict);
    CHECK_THAT(busy.message, Catch::Contains("1 other session"));
    CHECK(guest.one("SELECT 1") == "1");
    const auto open = std::get<Error>(pg.try_remove(kDatabase, "postgres"));  // where the target's dsn leads
    CHECK(open.code == Errc::kConflict);
  }
  pg.remove(kDatabase, "plain");
  pg.remove(kDatabase, "\"Shop\"");
  pg.remove(kRole, "owner_1");
}

TEST_CASE("databases: somebody at template1 is in nobody's way") {
  const Pg pg;
  const auto guest = db("template1");
  guest.run("CREATE TABLE left_over (a int)");
  pg.create(kDatabase, {{"name", "fresh"}});
  CHECK_FALSE(pg.is_there(kTable, "fresh.public.left_over"));
  guest.run("DROP TABLE left_over");
  pg.remove(kDatabase, "fresh");
}

TEST_CASE("databases: one that was made and cannot be looked at is not called unmade") {
  const Pg pg;
  pg.create(kRole, {{"name", "blind"}, {"login", true}, {"createdb", true}});
  const Pg blind(dsn_of("blind"));
  db().run("REVOKE SELECT ON pg_database FROM PUBLIC");
  const auto error = blind.create_error(kDatabase, {{"name", "unseen"}});
  db().run("GRANT SELECT ON pg_database TO PUBLIC");
  INFO(error.message);
  CHECK(error_traits(error.code).applied == Applied::kUnknown);
  CHECK(pg.is_there(kDatabase, "unseen"));
  pg.remove(kDatabase, "unseen");
  pg.remove(kRole, "blind");
}

TEST_CASE("schemas and extensions: made, changed in place, removed") {
  const Pg pg;
  const Own own("parts");
  pg.create(kRole, {{"name", "owner_2"}});
  const Json schema{{"database", "parts"}, {"name", "Sales"}, {"owner", "owner_2"}};
  CHECK(pg.create(kSchema, schema) == "parts.\"Sales\"");
  CHECK(pg.create_error(kSchema, schema).code == Errc::kAlreadyExists);
  pg.update(kSchema, "parts.\"Sales\"", {{"owner", "postgres"}});
  CHECK(pg.update_error(kSchema, "parts.\"Sales\"", {{"name", "s"}}).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kSchema, {{"database", "gone"}, {"name", "s"}}).code == Errc::kNotFound);
  CHECK(pg.create_error(kSchema, {{"database", "parts"}, {"name", "pg_s"}}).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kSchema, {{"database", "parts"}}).code == Errc::kInvalidRequest);

  const Json extension{{"database", "parts"}, {"name", "citext"}, {"schema", "Sales"}, {"version", "1.4"}};
  CHECK(pg.create(kExtension, extension) == "parts.citext");
  CHECK(pg.create_error(kExtension, extension).code == Errc::kAlreadyExists);
  pg.update(kExtension, "parts.citext", {{"version", "1.6"}});
  CHECK(pg.update_error(kExtension, "parts.citext", {{"version", "99"}}).code == Errc::kInvalidRequest);
  CHECK(pg.update_error(kExtension, "parts.citext", {{"schema", "public"}}).code == Errc::kInvalidRequest);
  CHECK(pg.create(kExtension, {{"database", "parts"}, {"name", "uuid-ossp"}}) == "parts.\"uuid-ossp\"");
  CHECK(pg.properties(kExtension, "parts.\"uuid-ossp\"")["schema"] == "public");
  CHECK(pg.create_error(kExtension, {{"database", "parts"}, {"name", "no_such"}}).code == Errc::kUnsupported);

  db("parts").run("CREATE TABLE uses (c \"Sales\".citext)");
  for (const auto& [type, id] : {std::pair(kSchema, "parts.\"Sales\""), std::pair(kExtension, "parts.citext")}) {
    const auto error = std::get<Error>(pg.try_remove(type, id));
    CHECK(error.code == Errc::kConflict);
    CHECK_THAT(error.message, Catch::Contains("citext"));
    CHECK(pg.is_there(type, id));
  }
  pg.remove(kTable, "parts.public.uses");
  pg.remove(kExtension, "parts.citext");
  pg.remove(kSchema, "parts.\"Sales\"");
  pg.remove(kRole, "owner_2");
  CHECK(std::holds_alternative<MutationResult>(pg.try_remove(kSchema, "gone.s")));  // with its database
}

TEST_CASE("tables: made with everything that can be declared") {
  const Pg pg;
  const Own own("whole");
  pg.create(kRole, {{"name", "owner_3"}});
  const auto with_default = [](Json made, const Json& value) {
    made["default"] = value;
    return made;
  };
  db("whole").run("CREATE TYPE mood AS ENUM ('sad')");
  auto other = own.table("other", {column("id", "integer")});
  other["constraints"] = {{{"name", "other_pkey"}, {"definition", "PRIMARY KEY (id)"}}};
  pg.create(kTable, other);
  auto declared =
      own.table("all", {with_default(column("id", "bigint"), "generated always as identity"),
                        with_default(column("by", "integer"), "generated by default as identity"),
                        with_default(column("price", "numeric(10,2)"), "1.5"),
                        with_default(column("twice", "numeric"), "generated always as ((price * (2)::numeric)) stored"),
                        with_default(column("at", "timestamp with time zone"), "now()"),
                        with_default(column("said", "text"), "'it''s; (\"x\" -- /* $1, '::text"),
                        with_default(column("m", "public.mood[]"), "'{}'::public.mood[]"),
                        with_default(column("none", "character varying(20)"), nullptr),
                        {{"name", "o"}, {"type", "integer"}, {"nullable", false}, {"default", nullptr}},
                        {{"name", "parent"}, {"type", "bigint"}, {"nullable", true}}});
  declared["owner"] = "owner_3";
  declared["constraints"] = {
      {{"name", "to_other"}, {"type", "FOREIGN KEY"}, {"definition", "FOREIGN KEY (o) REFERENCES public.other(id)"}},
      {{"name", "a_self"}, {"definition", "FOREIGN KEY (parent) REFERENCES public.\"all\"(id) ON DELETE CASCADE"}},
      {{"name", "Key"}, {"type", "PRIMARY KEY"}, {"definition", "PRIMARY KEY (id)"}},
      {{"name", "once"}, {"type", "UNIQUE"}, {"definition", "UNIQUE (price, o)"}},
      {{"name", "positive"}, {"type", "CHECK"}, {"definition", "CHECK ((price > (0)::numeric))"}}};
  CHECK(pg.create(kTable, declared) == "whole.public.\"all\"");
  CHECK(pg.create_error(kTable, declared).code == Errc::kAlreadyExists);
  CHECK(pg.create(kTable, {{"database", "whole"}, {"schema", "public"}, {"name", "bare"}}) == "whole.public.bare");

  const auto used = std::get<Error>(pg.try_remove(kTable, "whole.public.other"));
  CHECK(used.code == Errc::kConflict);
  CHECK_THAT(used.message, Catch::Contains("to_other"));
  for (const char* id : {"whole.public.\"all\"", "whole.public.other", "whole.public.bare"}) pg.remove(kTable, id);
  pg.remove(kRole, "owner_3");
}

TEST_CASE("tables: changed in place") {
  const Pg pg;
  const Own own("inplace");
  const auto admin = db("inplace");
  pg.create(kRole, {{"name", "owner_4"}});
  const auto id =
      pg.create(kTable, own.table("t", {column("a", "integer"), column("b", "text"), column("c", "integer")}));
  admin.run("INSERT INTO t VALUES (1, '10', 3), (2, '20', NULL)");
  const auto columns = [&](const Json& wanted) { pg.update(kTable, id, {{"columns", wanted}}); };
  Json a = column("a", "integer"), b = column("b", "text"), c = column("c", "integer");

  columns({a, b, c, column("d", "date")});  // a column more
  columns({column("e", "text"), b, a, c});  // one for another, in another order
  columns({a, b, c});                       // one less
  CHECK(admin.one("SELECT string_agg(b, ',' ORDER BY a) FROM t") == "10,20");
  a["type"] = "bigint";
  columns({a, b, c});  // by an assignment's cast
  b["type"] = "integer";
  columns({a, b, c});  // by USING
  CHECK(admin.one("SELECT sum(b) FROM t") == "30");
  b["default"] = "7";
  a["nullable"] = false;
  columns({a, b, c});
  b["type"] = "text";
  b["default"] = "'seven'::text";
  columns({a, b, c});  // the default could not be cast
  b["default"] = nullptr;
  a["nullable"] = nullptr;
  columns({a, b, c});
  a["nullable"] = false;
  a["default"] = "generated always as identity";
  columns({a, b, c});
  a["default"] = "generated by default as identity";
  columns({a, b, c});
  a["default"] = "0";
  columns({a, b, c});
  Json sum = column("sum", "bigint");
  sum["default"] = "generated always as ((a + c)) stored";
  columns({a, b, c, sum});
  sum["default"] = nullptr;
  columns({a, b, c, sum});  // what it holds stays
  CHECK(admin.one("SELECT sum FROM t WHERE c = 3") == "4");

  const auto constraint = [](const char* name, const std::string& definition) {
    return Json{{"name", name}, {"definition", definition}};
  };
  const auto key = constraint("t_pkey", "PRIMARY KEY (a)"),
             self = constraint("self", "FOREIGN KEY (c) REFERENCES public.t(a)");
  pg.update(kTable, id, {{"owner", "owner_4"}, {"constraints", {key, constraint("ch", "CHECK ((c > 0))")}}});
  admin.run("UPDATE t SET c = 1");
  pg.update(kTable, id, {{"constraints", {self, constraint("ch", "CHECK ((c > 0))"), key}}});
  pg.update(kTable, id, {{"constraints", {constraint("u", "UNIQUE (a, b)")}}});
  pg.update(kTable, id, {{"constraints", nullptr}, {"columns", {a, b}}});
  CHECK(pg.properties(kTable, id)["owner"] == "owner_4");
  CHECK(pg.properties(kTable, id)["columns"].size() == 2);
  CHECK(pg.properties(kTable, id)["constraints"].empty());
  pg.remove(kTable, id);
  pg.remove(kRole, "owner_4");
}

TEST_CASE("tables: what is not declared of a column stays when its type changes") {
  const Pg pg;
  const Own own("collated");
  const auto admin = db("collated");
  admin.run("CREATE TABLE t (a text COLLATE \"C\", b text)");
  admin.run("CREATE COLLATION \"Odd.C\" FROM \"POSIX\"; ALTER TABLE t ALTER b TYPE text COLLATE \"Odd.C\"");
  const auto collations = [&] {
    return admin.one(
        "SELECT string_agg(l.collname, ' ' ORDER BY attname) FROM pg_attribute JOIN pg_collation l ON "
        "l.oid = attcollation WHERE attrelid = 't'::regclass AND attnum > 0");
  };
  const auto columns = [&](const char* type) {
    pg.update(kTable, "collated.public.t", {{"columns", {column("a", type), column("b", type)}}});
  };
  columns("character varying(20)");
  CHECK(collations() == "C Odd.C");
  columns("integer");  // which has none, and is cast by USING
  columns("text");
  CHECK(collations() == "default default");
}

TEST_CASE("tables: rows are cast as the database says, and printed as all databases are") {
  const Pg pg;
  const Own own("zoned");
  db().run("ALTER DATABASE zoned SET timezone = 'Asia/Tokyo'");
  const auto admin = db("zoned");
  admin.run("CREATE TABLE t (at timestamp)");
  admin.run("INSERT INTO t VALUES ('2020-01-01 00:00:00')");
  Json at = column("at", "timestamp with time zone");
  at["default"] = "'2020-06-01 00:00:00+00'::timestamp with time zone";
  pg.update(kTable, "zoned.public.t", {{"columns", {at}}});
  CHECK(admin.one("SELECT at = '2020-01-01 00:00:00+09' FROM t") == "t");
  Json made = own.table("made", {at});
  pg.create(kTable, made);
}

TEST_CASE("what is in the way of an object and is none of its type is no such object") {
  const Pg pg;
  const Own own("blocked");
  const auto admin = db("blocked");
  const auto table = own.table("t", {column("a", "integer")});
  const Json extension{{"database", "blocked"}, {"name", "hstore"}};
  for (const char* other : {"CREATE VIEW t AS SELECT 1", "CREATE TYPE t AS ENUM ()"}) {
    admin.run(other);
    const auto error = pg.create_error(kTable, table);
    CHECK(error.code == Errc::kInvalidRequest);
    CHECK_THAT(error.message, Catch::Contains("\"t\" already exists"));
    admin.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  }
  admin.run("CREATE TYPE hstore AS ENUM ()");
  CHECK(pg.create_error(kExtension, extension).code == Errc::kInvalidRequest);
  admin.run("DROP TYPE hstore");
  pg.create(kTable, table);
  pg.create(kExtension, extension);
  CHECK(pg.create_error(kTable, table).code == Errc::kAlreadyExists);
  CHECK(pg.create_error(kExtension, extension).code == Errc::kAlreadyExists);
}

TEST_CASE("tables: one whose name something else has now is gone") {
  const Pg pg;
  const Own own("taken");
  const auto admin = db("taken");
  for (const char* other :
       {"CREATE SEQUENCE t", "CREATE VIEW t AS SELECT 1", "CREATE TABLE u (t int); CREATE INDEX t ON u (t)"}) {
    const auto id = pg.create(kTable, own.table("t", {column("a", "integer")}));
    const auto change = pg.update_job(kTable, id, {{"columns", {column("b", "integer")}}});
    admin.run("DROP TABLE t");
    admin.run(other);
    CHECK(std::get<Error>(pg.run(kTable, change)).code == Errc::kNotFound);
    pg.remove(kTable, id);
    admin.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  }
}

TEST_CASE("tables: one with partitions is not deleted, as they are tables of their own") {
  const Pg pg;
  const Own own("parted");
  const auto admin = db("parted");
  admin.run("CREATE TABLE whole (id int) PARTITION BY LIST (id)");
  admin.run("CREATE TABLE part PARTITION OF whole FOR VALUES IN (1)");
  const auto result = pg.try_remove(kTable, "parted.public.whole");
  REQUIRE(std::holds_alternative<Error>(result));
  CHECK(std::get<Error>(result).code == Errc::kConflict);
  CHECK_THAT(std::get<Error>(result).message, Catch::Contains("public.part"));
  REQUIRE(pg.is_there(kTable, "parted.public.part"));
  pg.remove(kTable, "parted.public.part");
  pg.remove(kTable, "parted.public.whole");
}

TEST_CASE("tables: what cannot be done changes nothing") {
  const Pg pg;
  const Own own("refused");
  const auto admin = db("refused");
  const Json a = column("a", "integer"), b = column("b", "text");
  const auto id = pg.create(kTable, own.table("t", {a, b}));
  admin.run("INSERT INTO t VALUES (1, 'text that is long'), (1, NULL); CREATE VIEW v AS SELECT b FROM t");
  const auto refused = [&](const Json& declared) {
    INFO(declared.dump());
    return pg.update_error(kTable, id, declared);
  };
  const auto second = [&](const Json& wanted) {
    INFO(wanted.dump());
    return pg.update_error(kTable, id, {{"columns", {a, wanted}}});
  };
  const auto constraint = [](const std::string& definition) {
    return Json{{"constraints", {{{"name", "k"}, {"definition", definition}}}}};
  };
  CHECK(refused({{"schema", "other"}}).code == Errc::kInvalidRequest);
  CHECK(refused({{"name", "u"}}).code == Errc::kInvalidRequest);
  CHECK(refused({{"owner", "nobody"}}).code == Errc::kInvalidRequest);  // and the table is not gone
  CHECK(refused({{"columns", nullptr}}).code == Errc::kInvalidRequest);
  const auto used = refused({{"columns", {a}}});  // the view needs b
  CHECK(used.code == Errc::kConflict);
  CHECK_THAT(used.message, Catch::Contains("view public.v"));
  admin.run("DROP VIEW v");
  CHECK(second(column("b", "integer")).code == Errc::kInvalidRequest);               // by what it holds
  CHECK(second(column("b", "character varying(3)")).code == Errc::kInvalidRequest);  // nothing is cut off
  CHECK(second({{"name", "b"}, {"type", "text"}, {"nullable", false}}).code == Errc::kInvalidRequest);
  CHECK(second({{"name", "c"}, {"type", "text"}, {"nullable", false}}).code == Errc::kInvalidRequest);
  CHECK(second({{"name", "b"}, {"type", "text"}, {"default", "1 +"}}).code == Errc::kInvalidRequest);
  CHECK(second({{"name", "b"}, {"type", "text"}, {"default", "nothing()"}}).code == Errc::kInvalidRequest);
  CHECK(second({{"name", "b"}, {"type", "text"}, {"default", "generated always as ((a)::text) stored"}}).code ==
        Errc::kInvalidRequest);
  CHECK(second(column("b", "no_such_type")).code == Errc::kInvalidRequest);
  CHECK(second(a).code == Errc::kInvalidRequest);  // twice
  CHECK(refused(constraint("UNIQUE (a)")).code == Errc::kInvalidRequest);
  CHECK(refused(constraint("UNIQUE (nothing)")).code == Errc::kInvalidRequest);
  CHECK(refused(constraint("CHECK ((a > 1))")).code == Errc::kInvalidRequest);
  CHECK(refused(constraint("FOREIGN KEY (a) REFERENCES public.nothing(a)")).code == Errc::kInvalidRequest);
  CHECK(pg.create_error(kTable, {{"database", "refused"}, {"schema", "gone"}, {"name", "t"}}).code == Errc::kNotFound);
  CHECK(pg.create_error(kTable, {{"database", "gone"}, {"schema", "s"}, {"name", "t"}}).code == Errc::kNotFound);
  CHECK(admin.one("SELECT count(*) FROM t") == "2");
}

TEST_CASE("tables: other spellings are refused with PostgreSQL's own") {
  const Pg pg;
  const Own own("spelling");
  const auto said = [&](const Json& wanted, const std::string& canonical) {
    INFO(wanted.dump());
    const auto error = pg.create_error(kTable, own.table("t", {wanted}));
    CHECK(error.code == Errc::kInvalidRequest);
    CHECK_THAT(error.message, Catch::Contains(canonical));
    CHECK_FALSE(pg.is_there(kTable, "spelling.public.t"));
  };
  const auto with_default = [](const std::string& type, const std::string& value) {
    return Json{{"name", "x"}, {"type", type}, {"default", value}};
  };
  said(column("x", "int"), "columns.x.type: \"int\" is \"integer\"");
  said(column("x", "varchar(20)"), "\"character varying(20)\"");
  said(column("x", "timestamptz"), "\"timestamp with time zone\"");
  said(column("x", "numeric(10, 2)"), "\"numeric(10,2)\"");
  said(column("x", "INTEGER"), "\"integer\"");
  said(column("x", "serial"), "there is no type serial");
  said(with_default("text", "'new'"), "\"'new'::text\"");
  said(with_default("timestamp with time zone", "NOW()"), "\"now()\"");
  said(with_default("integer", "1+1"), "\"(1 + 1)\"");

  auto checked = own.table("t", {column("x", "numeric")});
  checked["constraints"] = {{{"name", "c"}, {"definition", "CHECK (x > 0)"}}};
  CHECK_THAT(pg.create_error(kTable, checked).message, Catch::Contains("CHECK ((x > (0)::numeric))"));
  checked["constraints"] = {{{"name", "c"}, {"type", "UNIQUE"}, {"definition", "PRIMARY KEY (x)"}}};
  CHECK_THAT(pg.create_error(kTable, checked).message, Catch::Contains("\"PRIMARY KEY\""));
  checked["constraints"] = {{{"name", "c"}, {"definition", "PRIMARY KEY (x)"}}};
  checked["columns"][0]["nullable"] = true;
  CHECK_THAT(pg.create_error(kTable, checked).message, Catch::Contains("columns.x.nullable"));
  CHECK_FALSE(pg.is_there(kTable, "spelling.public.t"));
}

TEST_CASE("no name breaks out of a statement") {
  const Pg pg;
  for (const auto& name : kOddNames) {
    INFO(name);
    const auto role = pg.create(kRole, {{"name", name}, {"login", true}});
    pg.update(kRole, role, {{"connection_limit", 3}});
    const auto database = pg.create(kDatabase, {{"name", name}, {"owner", name}});
    const auto schema = pg.create(kSchema, {{"database", name}, {"name", name}, {"owner", name}});
    const Json declared{
        {"database", name},
        {"schema", name},
        {"name", name},
        {"owner", name},
        {"columns", {column(name, "integer")}},
        {"constraints",
         {{{"name", name + " "},
           {"definition", "UNIQUE (" + db().one("SELECT quote_ident($quoted$" + name + "$quoted$)") + ")"}}}}};
    auto whole = declared;
    if (name.size() == 63) whole.erase("constraints");
    const auto table = pg.create(kTable, whole);
    pg.update(kTable, table, {{"columns", {column(name, "bigint"), column("another", "text")}}});
    pg.update(kTable, table, {{"owner", "postgres"}});
    pg.remove(kTable, table);
    pg.remove(kSchema, schema);
    pg.remove(kDatabase, database);
    pg.remove(kRole, role);
  }
  CHECK(pg.create_error(kRole, {{"name", std::string("a\0b", 3)}}).code == Errc::kInvalidRequest);
}

TEST_CASE("no expression breaks out of a statement") {
  const Pg pg;
  const Own own("injected");
  const auto admin = db("injected");
  admin.run("CREATE TABLE victim (a int); CREATE TABLE parent (x integer)");
  const auto id = pg.create(kTable, own.table("t", {column("x", "integer")}));
  const auto tried = [&](const Json& wanted) {
    INFO(wanted.dump());
    CHECK(pg.create_error(kTable, own.table("u", {wanted})).code == Errc::kInvalidRequest);
    CHECK(pg.update_error(kTable, id, {{"columns", {wanted}}}).code == Errc::kInvalidRequest);
    CHECK_FALSE(pg.is_there(kTable, "injected.public.u"));
  };
  for (const std::string type :
       {"integer; DROP TABLE victim", "integer) INHERITS (parent", "integer, y integer", "integer DEFAULT 1",
        "integer --", "integer /*", "integer PRIMARY KEY", "integer\" text", "", "integer USING 1, DROP COLUMN x",
        "integer) ; DROP TABLE victim; --", "setof integer", "'integer'"}) {
    tried(column("x", type));
  }
  for (const std::string value :
       {"1; DROP TABLE victim", "1), y integer DEFAULT (2", "1) INHERITS (parent", "1 -- ", "1 /*", "1, 2", "(1", "1)",
        "E'\\'' || '; DROP TABLE victim; --'", "$$1$$", "'", "generated always as (1) stored, y int) stored",
        "generated always as (1)) stored, y integer default ((1) stored", " "}) {
    tried({{"name", "x"}, {"type", "integer"}, {"default", value}});
  }
  for (const std::string definition :
       {"CHECK (true); DROP TABLE victim", "CHECK (true), DROP COLUMN x", "CHECK (true", "CHECK (true) --", "DROP",
        "PRIMARY KEY USING INDEX nothing", "CHECK ((x > 0)), ADD COLUMN y integer"}) {
    INFO(definition);
    auto declared = own.table("u", {column("x", "integer")});
    declared["constraints"] = {{{"name", "c"}, {"definition", definition}}};
    CHECK(pg.create_error(kTable, declared).code == Errc::kInvalidRequest);
    CHECK(pg.update_error(kTable, id, {{"constraints", declared["constraints"]}}).code == Errc::kInvalidRequest);
  }
  CHECK(pg.is_there(kTable, "injected.public.victim"));
}

TEST_CASE("a change that somebody else overtook is a conflict") {
  const Pg pg;
  const Own own("raced");
  pg.create(kRole, {{"name", "raced_role"}});
  const std::vector<std::tuple<std::string, std::string, Json, std::string>> objects{
      {kRole, "raced_role", {{"createdb", true}}, "ALTER ROLE raced_role LOGIN"},
      {kDatabase, "raced", {{"owner", "postgres"}}, "ALTER DATABASE raced OWNER TO raced_role"},
      {kSchema,
       pg.create(kSchema, {{"database", "raced"}, {"name", "s"}}),
       {{"owner", "raced_role"}},
       "ALTER SCHEMA s OWNER TO pg_monitor"},
      {kTable,
       pg.create(kTable, own.table("t", {column("a", "integer")})),
       {{"columns", {column("b", "text")}}},
       "ALTER TABLE t ADD COLUMN z integer"},
      {kExtension,
       pg.create(kExtension, {{"database", "raced"}, {"name", "citext"}, {"version", "1.4"}}),
       {{"version", "1.6"}},
       "ALTER EXTENSION citext UPDATE TO '1.5'"}};
  for (const auto& [type, id, declared, meanwhile] : objects) {
    INFO(type);
    const auto job = pg.update_job(type, id, declared);
    const DeleteJob deletion{"key", id, job.precondition};
    db("raced").run(meanwhile);
    const auto changed = pg.item(type, id);
    CHECK(std::get<Error>(pg.run(type, job)).code == Errc::kConflict);
    CHECK(std::get<Error>(pg.run(type, deletion)).code == Errc::kConflict);
    CHECK(pg.item(type, id) == changed);
    auto other = job;
    other.precondition = {"another uid", ""};
    CHECK(std::get<Error>(pg.run(type, other)).code == Errc::kConflict);
  }
  CHECK(
      std::get<Error>(
          pg.run(kRole, UpdateJob{"key", "no_role", R"({"name":"no_role"})", {R"({"name":"no_role"})", {}}, "[]", {}}))
          .code == Errc::kNotFound);
  db().run("ALTER DATABASE raced OWNER TO postgres");
  db("raced").run("ALTER SCHEMA s OWNER TO postgres; ALTER TABLE t OWNER TO postgres");
  pg.remove(kRole, "raced_role");
}

TEST_CASE("a change that waits for somebody else's sees what that did, or ends with its job") {
  const Pg pg;
  const Own own("waiting");
  const auto id = pg.create(kTable, own.table("t", {column("a", "integer")}));
  const auto admin = db();
  const auto before = pg.item(kTable, id);
  const auto job = pg.update_job(kTable, id, {{"columns", {column("a", "bigint"), column("b", "text")}}});
  const auto blocker = db("waiting");
  blocker.run("BEGIN; ALTER TABLE t ADD COLUMN meanwhile integer");
  testing::FakeContext context;
  SECTION("it is committed: a conflict") {
    Going change([&] { return pg.run(kTable, job, context); });
    change.wait(admin, kWaitsForLock);
    blocker.run("COMMIT");
    CHECK(std::get<Error>(change.result()).code == Errc::kConflict);
    CHECK(pg.properties(kTable, id)["columns"].size() == 2);
  }
  SECTION("the job is stopped") {
    Going change([&] { return pg.run(kTable, job, context); });
    change.wait(admin, kWaitsForLock);
    context.stop();
    CHECK(std::get<Error>(change.result()).code == Errc::kCancelled);
    blocker.run("ROLLBACK");
    CHECK(pg.item(kTable, id) == before);
  }
  SECTION("its deadline comes") {
    context.set_deadline(std::chrono::steady_clock::now() + std::chrono::seconds(3));
    CHECK(std::get<Error>(pg.run(kTable, job, context)).code == Errc::kTimeout);
    blocker.run("ROLLBACK");
    CHECK(pg.item(kTable, id) == before);
  }
}

TEST_CASE("two who change the same at once: the second hears of a conflict") {
  const Pg pg;
  const Own own("overlap");
  const auto admin = db();
  const auto blocker = db("overlap");
  pg.create(kRole, {{"name", "overlapped"}});
  const std::vector<std::tuple<std::string, std::string, Json, std::string>> objects{
      {kRole, "overlapped", {{"createdb", true}}, "ALTER ROLE overlapped LOGIN"},
      {kDatabase, "overlap", {{"owner", "overlapped"}}, "ALTER DATABASE overlap OWNER TO pg_monitor"},
      {kSchema, "overlap.public", {{"owner", "overlapped"}}, "ALTER SCHEMA public OWNER TO pg_monitor"}};
  for (const auto& [type, id, declared, first] : objects) {
    INFO(type);
    const auto job = pg.update_job(type, id, declared);
    blocker.run("BEGIN; " + first);
    Going change([&, &of = type] { return pg.run(of, job); });
    change.wait(admin, kWaitsForLock);
    blocker.run("COMMIT");
    CHECK(std::get<Error>(change.result()).code == Errc::kConflict);
  }
  pg.remove(kRole, "overlapped");
}

TEST_CASE("two who make the same at once: one does, the other hears that it is there") {
  const Pg pg;
  const Own own("twice");
  const auto blocker = db("twice");
  const auto admin = db();
  const std::vector<std::tuple<std::string, Json, std::string>> objects{
      {kRole, {{"name", "twin"}}, "CREATE ROLE twin"},
      {kSchema, {{"database", "twice"}, {"name", "twin"}}, "CREATE SCHEMA twin"},
      {kTable, own.table("twin", {column("a", "integer")}), "CREATE TABLE twin (a integer)"}};
  for (const auto& [type, declared, first] : objects) {
    INFO(type);
    blocker.run("BEGIN; " + first);
    Going create([&, &of = type, &made = declared] { return pg.try_create(of, made); });
    create.wait(admin, kWaitsForLock);
    blocker.run("COMMIT");
    CHECK(std::get<Error>(create.result()).code == Errc::kAlreadyExists);
  }
  pg.remove(kRole, "twin");
}

TEST_CASE("who lacks the right is told so, and nothing changes") {
  const Pg pg;
  const Own own("rights");
  const auto table = pg.create(kTable, own.table("t", {column("a", "integer")}));
  pg.create(kRole, {{"name", "poor"}, {"login", true}});
  const Pg poor(dsn_of("poor"));
  CHECK(poor.create_error(kRole, {{"name", "mine"}}).code == Errc::kAccessDenied);
  CHECK(poor.create_error(kDatabase, {{"name", "mine"}}).code == Errc::kAccessDenied);
  CHECK(poor.create_error(kSchema, {{"database", "rights"}, {"name", "mine"}}).code == Errc::kAccessDenied);
  CHECK(poor.create_error(kTable, own.table("mine", {column("a", "integer")})).code == Errc::kAccessDenied);
  CHECK(poor.create_error(kExtension, {{"database", "rights"}, {"name", "uuid-ossp"}}).code == Errc::kAccessDenied);
  CHECK(poor.update_error(kRole, "poor", {{"createdb", true}}).code == Errc::kAccessDenied);
  CHECK(poor.update_error(kDatabase, "rights", {{"owner", "poor"}}).code == Errc::kAccessDenied);
  CHECK(poor.update_error(kTable, table, {{"owner", "poor"}}).code == Errc::kAccessDenied);
  for (const auto& [type, id] : {std::pair(kRole, std::string("poor")), std::pair(kDatabase, std::string("rights")),
                                 std::pair(kSchema, std::string("rights.public")), std::pair(kTable, table)}) {
    INFO(type);
    const auto result = poor.try_remove(type, id);
    REQUIRE(std::holds_alternative<Error>(result));
    CHECK(std::get<Error>(result).code == Errc::kAccessDenied);
    CHECK(pg.is_there(type, id));
  }

  SECTION("and the rights that the README names are enough") {
    db().run("ALTER ROLE poor CREATEROLE CREATEDB");
    const auto role = poor.create(kRole, {{"name", "made_by_poor"}, {"login", true}, {"password", "long enough"}});
    poor.update(kRole, role, {{"login", false}});
    const auto database = poor.create(kDatabase, {{"name", "of_poor"}});
    const auto schema = poor.create(kSchema, {{"database", "of_poor"}, {"name", "s"}});
    const auto made = poor.create(
        kTable, {{"database", "of_poor"}, {"schema", "s"}, {"name", "t"}, {"columns", {column("a", "integer")}}});
    poor.update(kTable, made, {{"columns", {column("a", "bigint")}}});
    const auto extension = poor.create(kExtension, {{"database", "of_poor"}, {"name", "citext"}});  // a trusted one
    poor.remove(kExtension, extension);
    poor.remove(kTable, made);
    poor.remove(kSchema, schema);
    poor.remove(kDatabase, database);
    poor.remove(kRole, role);
  }
  pg.remove(kRole, "poor");
}

TEST_CASE("a change that is cut off at its commit is unknown, and a read decides") {
  // A commit waits for a standby that is not there.
  test::PostgresServer waits{{"", "synchronous_standby_names = 'nobody'"}};
  const Pg pg(waits.dsn());
  const Db admin(waits.dsn() + " options='-c synchronous_commit=local'");
  testing::FakeContext context;
  const CreateJob job{"key", {R"({"name":"maybe"})", {}}, std::nullopt};
  constexpr char kWaits[] = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
  Going create([&] { return pg.run(kRole, job, context); });
  create.wait(admin, kWaits);
  SECTION("the job is stopped") {
    context.stop();
  }
  SECTION("the server ends the session") {
    admin.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  }
  const auto result = create.result();
  REQUIRE(std::holds_alternative<Error>(result));
  const auto error = std::get<Error>(result);
  INFO(error.message);
  CHECK(error_traits(error.code).applied == Applied::kUnknown);
  // Who is told that it does not last waits no more; then it is there, for a read and for another try.
  while (!admin.run(kWaits).empty()) std::this_thread::yield();
  CHECK(pg.is_there(kRole, "maybe"));
  CHECK(pg.create_error(kRole, {{"name", "maybe"}}).code == Errc::kAlreadyExists);
}
