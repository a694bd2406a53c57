#include "state.h"

#include <stdexcept>

#include <unistd.h>

#include "cloud.h"

namespace muster::fake {
namespace {

constexpr int kBusyMs = 10'000;
constexpr std::int64_t kVersion = 1;

// `id` of seq: rows are never numbered anew, so that a page token stays behind what it has seen.
constexpr const char* kTables[] = {
    R"(CREATE TABLE IF NOT EXISTS objects(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, target_id TEXT NOT NULL, type TEXT NOT NULL,
  parent TEXT NOT NULL, native_id TEXT NOT NULL, uid TEXT NOT NULL, idempotency_key TEXT NOT NULL, name TEXT NOT NULL,
  properties TEXT NOT NULL, secret_hash TEXT NOT NULL, revision INTEGER NOT NULL, created_at_ms INTEGER NOT NULL,
  visible_at_ms INTEGER NOT NULL, gone_at_ms INTEGER NOT NULL, computed INTEGER NOT NULL, deleted INTEGER NOT NULL))",
    "CREATE INDEX IF NOT EXISTS objects_by_id ON objects(native_id)",
    "CREATE INDEX IF NOT EXISTS objects_by_key ON objects(idempotency_key)",
    "CREATE INDEX IF NOT EXISTS objects_by_name ON objects(type, name)",
    "CREATE INDEX IF NOT EXISTS objects_by_parent ON objects(type, parent, computed, seq)",
    "CREATE INDEX IF NOT EXISTS objects_computed ON objects(type) WHERE computed",
    R"(CREATE TABLE IF NOT EXISTS calls(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, operation TEXT NOT NULL, type TEXT NOT NULL,
  native_id TEXT NOT NULL, name TEXT NOT NULL, idempotency_key TEXT NOT NULL, outcome TEXT NOT NULL,
  pid INTEGER NOT NULL))",
    "CREATE INDEX IF NOT EXISTS calls_by_key ON calls(idempotency_key, operation)",
    R"(CREATE TABLE IF NOT EXISTS requests(
  id TEXT PRIMARY KEY, operation TEXT NOT NULL, type TEXT NOT NULL, native_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL, ready_at_ms INTEGER NOT NULL))",
    "CREATE INDEX IF NOT EXISTS requests_by_key ON requests(idempotency_key)",
};

// A `+` keeps SQLite from the indices that do not tell objects apart.
#define OBJECT                                                                                           \
  "SELECT seq, type, parent, native_id, uid, idempotency_key, name, properties, secret_hash, revision, " \
  "created_at_ms, visible_at_ms, gone_at_ms, computed, deleted FROM objects WHERE (target = ?1 OR target_id = ?2) "
#define REQUEST "SELECT id, operation, type, native_id, ready_at_ms FROM requests WHERE "

}  // namespace

void State::fail(std::string_view what) const {
  throw std::runtime_error("the cloud's state: " + std::string(sqlite3_errmsg(connection_.get())) + " (" +
                           std::string(what.substr(0, 40)) + ")");
}

bool State::step(const Statement& statement) {
  const int status = sqlite3_step(statement.get());
  if (status != SQLITE_ROW && status != SQLITE_DONE) fail(sqlite3_sql(statement.get()));
  return status == SQLITE_ROW;
}

std::string State::text(const Statement& statement, int column) {
  const auto* bytes = sqlite3_column_blob(statement.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), column));
  return size == 0 ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

Result<State> State::open(const std::string& path, const TargetInfo& target) {
  sqlite3* raw = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  State state(raw, target);
  if (status != SQLITE_OK) {
    return invalid_request("config.state: cannot open " + path + ": " + sqlite3_errmsg(raw));
  }
  sqlite3_busy_timeout(raw, kBusyMs);
  state.set_up();
  return state;
}

/// Not synchronous: what is committed outlives every process, as long as the machine runs.
void State::set_up() {
  run("PRAGMA synchronous = OFF");
  // The journal's files stay when the last connection closes: they are not made anew for each call.
  int keep = 1;
  sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
  const auto version = [&] {
    const auto statement = prepare("PRAGMA user_version");
    return step(statement) ? sqlite3_column_int64(statement.get(), 0) : 0;
  };
  if (version() == kVersion) return;
  run("PRAGMA journal_mode = WAL");
  transaction([&] {
    for (const auto* sql : kTables) run(sql);
    run("PRAGMA user_version = 1");
    return true;
  });
}

Object State::object(const Statement& statement) {
  const auto number = [&](int column) { return sqlite3_column_int64(statement.get(), column); };
  Object found;
  found.seq = number(0);
  found.type = text(statement, 1);
  found.parent = text(statement, 2);
  found.native_id = text(statement, 3);
  found.uid = text(statement, 4);
  found.idempotency_key = text(statement, 5);
  found.name = text(statement, 6);
  found.properties = text(statement, 7);
  found.secret_hash = text(statement, 8);
  found.revision = number(9);
  found.created_at = number(10);
  found.visible_at = number(11);
  found.gone_at = number(12);
  found.computed = number(13) != 0;
  found.deleted = number(14) != 0;
  return found;
}

std::optional<Object> State::first(const Statement& statement) {
  if (!step(statement)) return std::nullopt;
  return object(statement);
}

std::optional<Object> State::find(std::string_view type, std::string_view native_id) {
  return first(prepare(OBJECT "AND +type = ?3 AND native_id = ?4", target_, target_id_, type, native_id));
}

std::optional<Object> State::made_with(std::string_view type, std::string_view idempotency_key) {
  if (idempotency_key.empty()) return std::nullopt;
  return first(prepare(OBJECT "AND +type = ?3 AND idempotency_key = ?4", target_, target_id_, type, idempotency_key));
}

std::optional<Object> State::named(std::string_view type, std::string_view parent, std::string_view name) {
  return first(prepare(OBJECT "AND type = ?3 AND +parent = ?4 AND name = ?5 AND NOT deleted", target_, target_id_, type,
                       parent, name));
}

std::vector<Object> State::list(std::int64_t now, std::int64_t after, std::string_view type, std::string_view parent,
                                std::size_t limit) {
  const auto statement = prepare(OBJECT
                                 "AND type = ?3 AND parent = ?4 AND computed = 0 AND seq > ?5 AND visible_at_ms <= ?6 "
                                 "AND (NOT deleted OR gone_at_ms > ?6) ORDER BY seq LIMIT ?7",
                                 target_, target_id_, type, parent, after, now, limit);
  std::vector<Object> found;
  while (step(statement)) found.push_back(object(statement));
  return found;
}

bool State::overlays(std::string_view type) {
  return step(prepare("SELECT 1 FROM objects WHERE (target = ?1 OR target_id = ?2) AND type = ?3 AND computed LIMIT 1",
                      target_, target_id_, type));
}

void State::save(const Object& object) {
  run("INSERT INTO objects(seq, target, target_id, type, parent, native_id, uid, idempotency_key, name, properties, "
      "secret_hash, revision, created_at_ms, visible_at_ms, gone_at_ms, computed, deleted) "
      "VALUES(nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) "
      "ON CONFLICT(seq) DO UPDATE SET name = ?9, properties = ?10, secret_hash = ?11, revision = ?12, "
      "gone_at_ms = ?15, deleted = ?17",
      object.seq, target_, target_id_, object.type, object.parent, object.native_id, object.uid, object.idempotency_key,
      object.name, object.properties, object.secret_hash, object.revision, object.created_at, object.visible_at,
      object.gone_at, object.computed, object.deleted);
}

void State::remove_parts(std::string_view parent, std::int64_t gone_at) {
  run("UPDATE objects SET deleted = 1, gone_at_ms = ?4 "
      "WHERE (target = ?1 OR target_id = ?2) AND type = ?5 AND parent = ?3 AND NOT deleted",
      target_, target_id_, parent, gone_at, kPartType);
}

std::int64_t State::begin_call(std::int64_t now, std::string_view operation, std::string_view type,
                               std::string_view native_id, std::string_view name, std::string_view idempotency_key) {
  run("INSERT INTO calls(at_ms, operation, type, native_id, name, idempotency_key, outcome, pid) "
      "VALUES(?1, ?2, ?3, ?4, ?5, ?6, 'begun', ?7)",
      now, operation, type, native_id, name, idempotency_key, getpid());
  return sqlite3_last_insert_rowid(connection_.get());
}

std::int64_t State::calls(std::string_view operation, std::string_view idempotency_key) {
  const auto statement =
      prepare("SELECT count(*) FROM calls WHERE idempotency_key = ?1 AND operation = ?2", idempotency_key, operation);
  return step(statement) ? sqlite3_column_int64(statement.get(), 0) : 0;
}

bool State::applied(std::string_view operation, std::string_view idempotency_key, std::string_view native_id) {
  if (idempotency_key.empty()) return false;
  return step(
      prepare("SELECT 1 FROM calls WHERE idempotency_key = ?1 AND operation = ?2 AND native_id = ?3 "
              "AND outcome LIKE 'applied%' LIMIT 1",
              idempotency_key, operation, native_id));
}

void State::end_call(std::int64_t call, std::string_view outcome, std::string_view native_id) {
  run("UPDATE calls SET outcome = ?2, native_id = ?3 WHERE seq = ?1", call, outcome, native_id);
}

void State::save(const Request& request, std::string_view idempotency_key) {
  run("INSERT INTO requests(id, operation, type, native_id, idempotency_key, ready_at_ms) "
      "VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
      request.id, request.operation, request.type, request.native_id, idempotency_key, request.ready_at);
}

std::optional<Request> State::first_request(const Statement& statement) {
  if (!step(statement)) return std::nullopt;
  return Request{text(statement, 0), text(statement, 1), text(statement, 2), text(statement, 3),
                 sqlite3_column_int64(statement.get(), 4)};
}

std::optional<Request> State::request(std::string_view id) {
  return first_request(prepare(REQUEST "id = ?1", id));
}

std::optional<Request> State::request_of(std::string_view operation, std::string_view idempotency_key,
                                         std::string_view native_id) {
  return first_request(prepare(REQUEST "idempotency_key = ?1 AND operation = ?2 AND native_id = ?3", idempotency_key,
                               operation, native_id));
}

}  // namespace muster::fake
