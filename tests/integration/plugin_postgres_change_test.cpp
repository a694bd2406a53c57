// Roles, databases, schemas and extensions: made, changed in place and removed, by whoever may.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/postgres_changes.h"

using namespace muster;
using namespace muster::test;

namespace {

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
