#include "coordinator/sqlite_store.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <fcntl.h>
#include <unistd.h>

#include "coordinator/sqlite_store_impl.h"
#include "sql/statements.h"

namespace muster {
namespace {

constexpr const char* kMemory = ":memory:";
constexpr std::int64_t kApplicationId = 0x4d757374;  // `Must`, as the first migration sets it
constexpr auto kVersion = static_cast<std::int64_t>(std::size(sql::migrations));

// What is committed survives the process with synchronous NORMAL; syncs happen at checkpoints, which are rare because
// random keys make every transaction touch many pages. Pages of 8 KiB hold a dozen rows and take a fifth less time to
// fill than those of 4 KiB.
constexpr const char* kSettings = R"(
  PRAGMA busy_timeout = 250;
  PRAGMA page_size = 8192;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 10000;
  PRAGMA cache_size = -65536;
  PRAGMA temp_store = MEMORY;
)";

Error no_store(std::string message) {
  return {.code = Errc::kStoreUnavailable, .message = std::move(message)};
}

Result<void> make_folders(const std::string& path) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return no_store(folder.string() + ": " + error.message());
  return {};
}

/// Readable for the owner alone; SQLite gives its other files the same mode.
Result<void> make_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return no_store(path + ": " + std::strerror(errno));
  ::close(descriptor);
  return {};
}

/// The lock lies beside the file itself: links lead others to the same one.
Result<FileLock> own_file(const std::string& path) {
  std::error_code error;
  const auto file = std::filesystem::canonical(path, error);
  if (error) return no_store(path + ": " + error.message());
  auto lock = FileLock::acquire(file.string() + ".lock");
  if (!lock) return no_store(lock.error().message);
  return lock;
}

Result<std::int64_t> single(sqlite::Database& database, const char* sql) {
  auto rows = database.select(sql);
  const std::int64_t value = rows.next() ? rows.integer(0) : 0;
  if (auto done = rows.result(); !done) return done.error();
  return value;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, const Clock& clock, Random& random) {
  auto store = SqliteStore::open(path, clock, random);
  if (!store) return store.error();
  return std::unique_ptr<Store>(std::move(*store));
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, const Clock& clock, Random& random,
                                                       KeyHash key_hash) {
  FileLock lock;
  if (path != kMemory) {
    if (auto made = make_folders(path); !made) return made.error();
    if (auto made = make_file(path); !made) return made.error();
    auto own = own_file(path);
    if (!own) return own.error();
    lock = std::move(*own);
  }
  auto database = sqlite::Database::open(path);
  if (!database) return database.error();
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(lock), std::move(*database), key_hash));
  if (auto started = store->start(clock, random); !started) {
    return Error{.code = started.error().code, .message = path + ": " + started.error().message};
  }
  if (path != kMemory) store->checkpointer_ = Checkpointer::start(store->database_, path);
  return store;
}

SqliteStore::SqliteStore(FileLock lock, sqlite::Database database, KeyHash key_hash)
    : lock_(std::move(lock)), database_(std::move(database)), key_hash_(key_hash) {}

Result<void> SqliteStore::start(const Clock& clock, Random& random) {
  const auto version = check_version();
  if (!version) return version.error();
  if (auto done = database_.script(kSettings); !done) return done;
  if (auto done = migrate(*version); !done) return done;
  if (auto done = database_.script(sql::create_resource_view); !done) return done;
  if (auto done = load_fleet(clock, random); !done) return done;
  return load_outbox();
}

Result<std::int64_t> SqliteStore::check_version() {
  const auto version = single(database_, "PRAGMA user_version");
  const auto application = single(database_, "PRAGMA application_id");
  const auto objects = single(database_, "SELECT count(*) FROM sqlite_schema");
  for (const auto* found : {&version, &application, &objects}) {
    if (!*found) return found->error();
  }
  if (*objects > 0 && *application != kApplicationId) return no_store("a database, but not a store of Muster");
  if (*version > kVersion) {
    return Error{.code = Errc::kIncompatible,
                 .message = "written by a newer version: its schema is " + std::to_string(*version) +
                            ", this version knows " + std::to_string(kVersion)};
  }
  return *version;
}

Result<void> SqliteStore::migrate(std::int64_t version) {
  for (auto next = version + 1; next <= kVersion; ++next) {
    const auto step = std::string("BEGIN IMMEDIATE;") + sql::migrations[next - 1] +
                      "PRAGMA user_version = " + std::to_string(next) + "; COMMIT;";
    if (auto done = database_.script(step.c_str()); !done) return done;
  }
  return {};
}

Result<void> SqliteStore::load_fleet(const Clock& clock, Random& random) {
  constexpr std::string_view kKey = "fleet";
  auto stored = meta(kKey);
  if (!stored) return stored.error();
  fleet_ = FleetId(*stored ? **stored : make_ulid(clock.wall(), random));
  fleet_mark_ = fleet_mark(fleet_);
  if (*stored) return {};
  if (auto done = set_meta(kKey, fleet_.value); !done) return done;
  return commit();
}

void SqliteStore::begin() {
  if (failed_ || database_.in_transaction()) return;
  if (auto begun = database_.write("BEGIN IMMEDIATE"); !begun) failed_ = begun.error();
}

Result<void> SqliteStore::status() const {
  if (failed_) return *failed_;
  return {};
}

Result<void> SqliteStore::commit() {
  if (failed_) return *failed_;
  if (database_.in_transaction()) {
    if (auto done = database_.write("COMMIT"); !done) {
      rollback();
      return done.error();
    }
  }
  uncommitted_ = 0;
  committed_outbox_ = outbox_;
  return {};
}

void SqliteStore::rollback() {
  // A failed ROLLBACK leaves nothing to undo: SQLite ends the transaction by itself where it cannot go on with it.
  if (database_.in_transaction()) (void)database_.write("ROLLBACK");
  failed_.reset();
  uncommitted_ = 0;
  ++state_;
  outbox_ = committed_outbox_;
  intact_.clear();
}

Result<std::optional<std::string>> SqliteStore::meta(std::string_view key) {
  auto rows = select(sql::select_meta, key);
  std::optional<std::string> value;
  if (rows.next()) value = rows.string(0);
  if (auto done = rows.result(); !done) return done.error();
  return value;
}

Result<void> SqliteStore::set_meta(std::string_view key, std::string_view value) {
  write(sql::put_meta, key, value);
  return status();
}

}  // namespace muster
