// What is special to the store in a SQLite file: the file, its owner, its version, its failures.
#include <csignal>
#include <fstream>
#include <thread>

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "coordinator/sqlite_store.h"
#include "coordinator/sqlite_store_impl.h"
#include "support/store_fixture.h"

using namespace muster;

namespace {

constexpr std::int64_t kVersion = 8;  // of the newest migration

class SqliteFixture {
 public:
  std::string path() { return (directory_.path / "deep" / "folder" / "store.db").string(); }
  Result<std::unique_ptr<Store>> open() { return open_sqlite_store(path(), clock_, random_); }

  /// Runs SQL on the file from outside; returns the first column of the last row.
  std::int64_t outside(const std::string& sql) {
    sqlite3* connection = nullptr;
    REQUIRE(sqlite3_open(path().c_str(), &connection) == SQLITE_OK);
    std::int64_t value = 0;
    const auto take = [](void* into, int, char** columns, char**) {
      *static_cast<std::int64_t*>(into) = columns[0] == nullptr ? 0 : std::atoll(columns[0]);
      return 0;
    };
    CHECK(sqlite3_exec(connection, sql.c_str(), take, &value, nullptr) == SQLITE_OK);
    sqlite3_close(connection);
    return value;
  }

  test::Scratch directory_;
  FakeClock clock_;
  SeededRandom random_{7};
};

/// Runs `body` in a child process, which ends by SIGKILL when it returns true, and waits for it.
int in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (body()) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

RowId put(Store& store, RowId scan, std::string_view native_id, std::string_view properties = "{}") {
  return store
      .insert({.scan = scan, .native_id = native_id, .label = native_id, .properties = properties, .at = WallTime{}})
      .value()
      .row;
}

RowId make_scan(Store& store) {
  TargetRow target;
  target.id = TargetId("T");
  target.name = "t";
  store.put_target(target).value();
  return store.scan(target.id, "A::B").value().id;
}

}  // namespace

TEST_CASE_METHOD(SqliteFixture, "a new file is made with its folders, for its owner alone, at the last version") {
  auto store = std::move(open().value());
  make_scan(*store);
  store->commit().value();
  for (const auto* suffix : {"", "-wal", ".lock"}) {
    struct stat status {};
    REQUIRE(::stat((path() + suffix).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  store.reset();
  CHECK(outside("PRAGMA user_version") == kVersion);
  CHECK(outside("PRAGMA application_id") == 0x4d757374);
  CHECK(outside("SELECT count(*) FROM pragma_table_info('runs') WHERE name IN ('owner', 'epoch')") == 2);
  CHECK(outside("SELECT count(*) FROM pragma_table_info('targets') WHERE name IN ('owner', 'epoch')") == 2);
}

TEST_CASE_METHOD(SqliteFixture, "a file has one owner, whatever links lead to it") {
  const auto store = std::move(open().value());
  const auto link = directory_.path / "link.db";
  std::filesystem::create_symlink(path(), link);
  const auto second = open_sqlite_store(link.string(), clock_, random_);
  REQUIRE_FALSE(second);
  CHECK(second.error().message.find("store.db.lock is held by process " + std::to_string(::getpid())) !=
        std::string::npos);
}

TEST_CASE_METHOD(SqliteFixture, "a store in memory needs no file and no lock") {
  auto first = std::move(open_sqlite_store(":memory:", clock_, random_).value());
  auto second = std::move(open_sqlite_store(":memory:", clock_, random_).value());
  put(*first, make_scan(*first), "a");
  first->commit().value();
  CHECK(second->targets().value().empty());
  CHECK(first->fleet() != second->fleet());
}

TEST_CASE_METHOD(SqliteFixture, "what is committed comes into the file while the store is open") {
  const std::string properties = R"({"text":")" + std::string(100'000, 'x') + R"("})";
  constexpr int kRows = 300;  // 30 MB, which no commit would copy by itself
  auto store = std::move(open().value());
  const auto scan = make_scan(*store);
  for (int i = 0; i < kRows; ++i) {
    put(*store, scan, "row-" + std::to_string(i), properties);
    if (i % 10 == 9) store->commit().value();
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto copied = [&] { return std::filesystem::file_size(path()) > kRows / 2 * properties.size(); };
  while (!copied() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK(copied());
  put(*store, scan, "last");
  store->commit().value();
  store.reset();
  CHECK(outside("SELECT count(*) FROM resources") == kRows + 1);
  CHECK(outside("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") == 1);
}

TEST_CASE_METHOD(SqliteFixture, "a file has one owner at a time") {
  auto store = std::move(open().value());
  const auto refused = open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::kStoreUnavailable);
  CHECK(refused.error().message.find("process " + std::to_string(::getpid())) != std::string::npos);
  store.reset();
  CHECK(open());
}

TEST_CASE_METHOD(SqliteFixture, "a file is owned also where there is no room to say by whom") {
  std::filesystem::create_directories(std::filesystem::path(path()).parent_path());
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit nothing{0, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &nothing);
    const auto lock = FileLock::acquire(path() + ".lock");
    const auto second = FileLock::acquire(path() + ".lock");
    return lock && !second && second.error().message == path() + ".lock is held by another process";
  });
  CHECK(WIFSIGNALED(status));  // as it does when all is right
}

TEST_CASE_METHOD(SqliteFixture, "a file of another kind is refused and left alone") {
  std::filesystem::create_directories(std::filesystem::path(path()).parent_path());
  SECTION("a database of somebody else") {
    const auto version = GENERATE(0, 4);
    outside("CREATE TABLE theirs (x); PRAGMA user_version = " + std::to_string(version));
    const auto opened = open();
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == Errc::kStoreUnavailable);
    CHECK(outside("SELECT count(*) FROM sqlite_schema") == 1);
    CHECK(std::filesystem::exists(path() + "-wal") == false);
  }
  SECTION("no database") {
    const std::string text(20'000, 'x');
    std::ofstream(path()) << text;
    const auto opened = open();
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == Errc::kStoreUnavailable);
    CHECK(opened.error().message.find(path()) == 0);
    std::ifstream file(path());
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == text);
  }
  SECTION("a folder") {
    std::filesystem::create_directory(path());
    CHECK(open().error().code == Errc::kStoreUnavailable);
  }
  SECTION("a place where no folder can be made") {
    std::ofstream((directory_.path / "file").string()) << "x";
    const auto opened = open_sqlite_store((directory_.path / "file" / "store.db").string(), clock_, random_);
    CHECK(opened.error().code == Errc::kStoreUnavailable);
  }
}

TEST_CASE_METHOD(SqliteFixture, "a store of a newer version is refused, and opens again when it is none") {
  { auto store = std::move(open().value()); }
  outside("PRAGMA user_version = 99");
  const auto refused = open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::kIncompatible);
  CHECK(refused.error().message.find("newer") != std::string::npos);
  outside("PRAGMA user_version = " + std::to_string(kVersion));
  CHECK(open());
}

TEST_CASE_METHOD(SqliteFixture, "a store of the first version is brought up to date, with what it holds") {
  RowId scan = 0;
  {
    auto store = std::move(open().value());
    scan = make_scan(*store);
    put(*store, scan, "kept");
    store->commit().value();
  }
  for (const char* undo : {"DROP TABLE commands", "DROP TABLE operations", "DROP TABLE creates_of_replacements",
                           "DROP TABLE unsettled", "DROP INDEX resources_stack",
                           "ALTER TABLE resources DROP COLUMN name", "ALTER TABLE resources DROP COLUMN declared",
                           "ALTER TABLE resources DROP COLUMN created", "ALTER TABLE targets DROP COLUMN applied",
                           "DROP TABLE filtered", "DROP TABLE clock_steps", "ALTER TABLE history DROP COLUMN was"}) {
    outside(undo);
  }
  outside("ALTER TABLE scans DROP COLUMN runs");
  outside("PRAGMA user_version = 1");
  auto store = std::move(open().value());
  CHECK(store->find(scan, "kept").value() != 0);
  store->put_filtered(scan, hash128("x"), 7).value();
  store->commit().value();
  store.reset();
  CHECK(outside("PRAGMA user_version") == kVersion);
  CHECK(outside("SELECT listed FROM filtered") == 7);
}

TEST_CASE_METHOD(SqliteFixture, "operations of a former version learn of their steps from the plans") {
  {
    auto store = std::move(open().value());
    const auto put_command = [&](const std::string& id, const std::string& plan) {
      CommandRow command;
      command.id = CommandId(id);
      command.kind = "apply";
      command.state = "complete";
      command.plan = plan;
      store->put_command(command).value();
      for (const std::size_t step : {0, 1, 2}) {
        OperationRow operation;
        operation.command = command.id;
        operation.step = step;
        operation.state = "done";
        operation.job = JobId(id + std::to_string(step));
        store->put_operation(operation).value();
      }
    };
    put_command("01A", R"({"steps":[{"name":"a","target":"t","type":"A::B","action":"create"},
                                    {"name":"b","target":"u","type":"A::C","action":"update"}]})");
    put_command("01B", "no plan");
    store->commit().value();
  }
  for (const auto* column : {"name", "target", "type", "creates"}) {
    outside(std::string("ALTER TABLE operations DROP COLUMN ") + column);
  }
  for (const auto* undo :
       {"DROP TABLE creates_of_replacements", "DROP INDEX commands_ended", "ALTER TABLE commands DROP COLUMN bytes"}) {
    outside(undo);
  }
  outside("PRAGMA user_version = 5");
  auto store = std::move(open().value());
  const auto told = [&](const std::string& job) {
    const auto operation = store->operation_of(JobId(job)).value();
    REQUIRE(operation);
    return std::tuple(operation->name, operation->target, operation->type, operation->creates);
  };
  CHECK(told("01A0") == std::tuple("a", "t", "A::B", true));
  CHECK(told("01A1") == std::tuple("b", "u", "A::C", false));
  CHECK(told("01A2") == std::tuple("", "", "", false));  // it has no such step
  CHECK(told("01B0") == std::tuple("", "", "", false));
  CHECK(outside("SELECT bytes FROM commands WHERE id = '01B'") == 7);
}

TEST_CASE_METHOD(SqliteFixture, "an empty file becomes a store") {
  std::filesystem::create_directories(std::filesystem::path(path()).parent_path());
  std::ofstream(path()).close();
  auto store = std::move(open().value());
  CHECK(store->fleet().value.size() == 26);
}

TEST_CASE_METHOD(SqliteFixture, "what is committed survives kill -9, what is not does not, and the lock is free") {
  const int status = in_child([&] {
    auto store = std::move(open().value());
    const auto scan = make_scan(*store);
    for (int i = 0; i < 1000; ++i) put(*store, scan, std::to_string(i));
    store->append_event({.at = WallTime{}, .ns = "", .what = "a.a", .subject = "", .data = "{}"}).value();
    if (!store->commit()) return false;
    put(*store, scan, "lost");
    store->append_event({.at = WallTime{}, .ns = "", .what = "b.b", .subject = "", .data = "{}"}).value();
    ::raise(SIGKILL);
    return false;
  });
  REQUIRE(WIFSIGNALED(status));
  auto store = std::move(open().value());
  CHECK(store->counted_targets().value().at(0).resources == 1000);
  CHECK(store->last_sequence().value() == 1);
  put(*store, 1, "next");
  store->commit().value();
}

TEST_CASE_METHOD(SqliteFixture, "a disk that is full fails the transaction, and nothing else") {
  // The limit on file sizes stands for the disk; a child process has it to itself.
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    auto store = std::move(open().value());
    const auto scan = make_scan(*store);
    put(*store, scan, "kept");
    store->commit().value();
    const rlimit small{1 << 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string large(100'000, 'x');
    Result<void> committed;
    for (int i = 0; i < 100 && committed; ++i) {
      for (int k = 0; k < 10; ++k) put(*store, scan, "big" + std::to_string(i * 10 + k), large);
      committed = store->commit();
    }
    if (committed || committed.error().code != Errc::kStoreUnavailable) return false;
    store->rollback();
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &none);
    const auto before = store->counted_targets().value().at(0).resources;
    put(*store, scan, "after");
    store->commit().value();
    return store->counted_targets().value().at(0).resources == before + 1;
  });
  REQUIRE(WIFSIGNALED(status));
  auto store = std::move(open().value());
  CHECK(store->find(1, "kept").value() != 0);
  CHECK(store->find(1, "after").value() != 0);
}

TEST_CASE_METHOD(SqliteFixture, "a damaged file is an error, not an answer") {
  {
    auto store = std::move(open().value());
    const auto scan = make_scan(*store);
    for (int i = 0; i < 2000; ++i) put(*store, scan, std::to_string(i), R"({"some":"text"})");
    store->commit().value();
  }
  const auto size = std::filesystem::file_size(path());
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file << std::string(static_cast<std::size_t>(size / 4), '\x5a');
  }
  auto store = open();
  REQUIRE(store);
  const auto result = (*store)->query({.limit = 10'000}, [](const ResourceView&) { return true; });
  CHECK(result.error().code == Errc::kStoreUnavailable);
}

TEST_CASE_METHOD(SqliteFixture, "a target that cannot be understood is an error that names it") {
  {
    auto store = std::move(open().value());
    make_scan(*store);
    store->commit().value();
  }
  outside("UPDATE targets SET " + std::string(GENERATE("config", "filters", "plugin_filters")) + " = '{'");
  auto store = open();
  REQUIRE(store);
  const auto targets = (*store)->targets();
  REQUIRE_FALSE(targets);
  CHECK(targets.error().code == Errc::kStoreUnavailable);
  CHECK_THAT(targets.error().message, Catch::Contains("target t: "));
}

TEST_CASE_METHOD(SqliteFixture, "a writer from outside delays, and does not break") {
  auto store = std::move(open().value());
  const auto scan = make_scan(*store);
  store->commit().value();
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(path().c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto refused =
      store->insert({.scan = scan, .native_id = "a", .label = "a", .properties = "{}", .at = WallTime{}});
  CHECK(refused.error().code == Errc::kStoreUnavailable);
  CHECK(refused.error().message.find("locked") != std::string::npos);
  CHECK(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(other);
  store->rollback();
  put(*store, scan, "a");
  store->commit().value();
}

TEST_CASE_METHOD(SqliteFixture, "native ids whose hashes collide stay apart") {
  auto store = std::move(SqliteStore::open(":memory:", clock_, random_, [](RowId, std::string_view) -> std::uint64_t {
                           return 1;
                         }).value());
  const auto first = make_scan(*store);
  const auto second = store->scan(TargetId("T"), "A::C").value().id;
  std::vector<RowId> rows;
  for (const auto scan : {first, second}) {
    for (const auto* id : {"a", "b", "c"}) rows.push_back(put(*store, scan, id));
  }
  CHECK(rows == std::vector<RowId>{1, 2, 3, 4, 5, 6});
  CHECK(store->find(first, "b").value() == 2);
  CHECK(store->find(second, "c").value() == 6);
  CHECK(store->find(second, "d").value() == 0);
  store->leave(2, ResourceState::kVanished, "vanished", WallTime{}).value();
  CHECK(store->find(first, "b").value() == 0);
  CHECK(put(*store, first, "b") == 2);
  store->rename(3, "d", "d", 0, WallTime{}).value();
  CHECK(store->find(first, "d").value() == 3);
  CHECK(store->find(first, "c").value() == 0);
}

TEST_CASE("resource ids are ULIDs of first sight, fleet and row") {
  const auto at = WallTime{std::chrono::milliseconds(0x0123'4567'89AB)};
  ResourceId id;
  format_resource_id(resource_key(at, 0xCDEF, 0x7FFF'FFFF'FFFF'FFFF), id);
  CHECK(id.value == "014D2PF2DBSQQQZZZZZZZZZZZZ");
  CHECK(parse_resource_id(id.value) == ResourceKey{0x0123'4567'89AB, 0xCDEF, 0x7FFF'FFFF'FFFF'FFFF});
  for (const auto* bad : {"", "014D2PF2DBSQQQZZZZZZZZZZZ", "814D2PF2DBSQQQZZZZZZZZZZZZ", "014D2PF2DBSQQQZZZZZZZZZZZU",
                          "014D2PF2DBSQQQZZZZZZZZZZZ\xff"}) {
    CHECK_FALSE(parse_resource_id(bad));
  }
  CHECK(fleet_mark(FleetId("a")) != fleet_mark(FleetId("b")));
}

TEST_CASE("the ids of two fleets differ, whatever they are given and when") {
  const auto first_id = [](std::uint64_t seed) {
    FakeClock clock;
    SeededRandom random(seed);
    const auto store = std::move(open_sqlite_store(":memory:", clock, random).value());
    return store->one(put(*store, make_scan(*store), "a")).value().value().id;
  };
  CHECK(first_id(1) != first_id(2));
}

TEST_CASE("hashes and names") {
  CHECK(hex(hash128("")) == "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing, as its authors publish it
  CHECK(hash128("a") != hash128("b"));
  CHECK(resource_state_name(ResourceState::kPresent) == "present");
  CHECK(resource_state_name(ResourceState::kFiltered) == "filtered");
}
