// Changes beside somebody else's, and changes that are cut off.
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "support/postgres_changes.h"

using namespace muster;
using namespace muster::test;

namespace {

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

/// An update of the plugin's, and what somebody else does just before it.
struct Crossed {
  std::string type, id;
  Json declared;
  std::string first;
};

void conflicts(const Pg& pg, const Db& admin, const Db& other, const Crossed& crossed) {
  INFO(crossed.type << ' ' << crossed.first);
  const auto job = pg.update_job(crossed.type, crossed.id, crossed.declared);
  other.run("BEGIN; " + crossed.first);
  Going change([&] { return pg.run(crossed.type, job); });
  change.wait(admin, kWaitsForLock);
  other.run("COMMIT");
  CHECK(std::get<Error>(change.result()).code == Errc::kConflict);
}

}  // namespace

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

TEST_CASE("a change that is stopped behind a cast that was asked for is cancelled, not an outage") {
  const Pg pg;
  const Own own("casting");
  const std::string id = "casting.public.t";
  db("casting").run("CREATE TABLE r (id integer UNIQUE); CREATE TABLE t (a text, b integer REFERENCES r (id))");
  const auto before = pg.item(kTable, id);
  const auto job = pg.update_job(kTable, id, {{"columns", {column("a", "integer"), column("b", "bigint")}}});
  const auto admin = db();
  const auto blocker = db("casting");
  blocker.run("BEGIN; LOCK TABLE r IN ACCESS EXCLUSIVE MODE");
  testing::FakeContext context;
  Going change([&] { return pg.run(kTable, job, context); });
  change.wait(admin, kWaitsForLock);
  context.stop();
  CHECK(std::get<Error>(change.result()).code == Errc::kCancelled);
  blocker.run("ROLLBACK");
  CHECK(pg.item(kTable, id) == before);
}

TEST_CASE("two who change the same at once: the second hears of a conflict") {
  const Pg pg;
  const Own own("overlap");
  const auto admin = db();
  const auto blocker = db("overlap");
  pg.create(kRole, {{"name", "overlapped"}});
  const std::vector<Crossed> objects{
      {kRole, "overlapped", {{"createdb", true}}, "ALTER ROLE overlapped LOGIN"},
      {kDatabase, "overlap", {{"owner", "overlapped"}}, "ALTER DATABASE overlap OWNER TO pg_monitor"},
      {kSchema, "overlap.public", {{"owner", "overlapped"}}, "ALTER SCHEMA public OWNER TO pg_monitor"}};
  for (const auto& change : objects) conflicts(pg, admin, blocker, change);
  pg.remove(kRole, "overlapped");
}

TEST_CASE("what somebody else gives, takes or drops at the same moment is a conflict") {
  const Pg pg;
  const Own own("crossed");
  const auto admin = db();
  const auto blocker = db("crossed");
  pg.create(kRole, {{"name", "crossed_group"}});
  pg.create(kRole, {{"name", "crossed"}});
  pg.create(kSchema, {{"database", "crossed"}, {"name", "s"}});
  const std::vector<Crossed> changes{
      {kRole, "crossed", {{"member_of", {"crossed_group"}}}, "GRANT crossed_group TO crossed"},
      {kRole, "crossed", {{"member_of", Json::array()}}, "REVOKE crossed_group FROM crossed"},
      {kRole, "crossed", {{"createdb", true}}, "DROP ROLE crossed"},
      {kSchema, "crossed.s", {{"owner", "crossed_group"}}, "DROP SCHEMA s"}};
  for (const auto& change : changes) conflicts(pg, admin, blocker, change);
  pg.remove(kRole, "crossed_group");
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
