#pragma once

#include <sqlite3.h>
#include <xxhash.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace muster::bench {

/// How the product opens its store.
inline constexpr const char* kProductSettings = R"(
  PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 10000;
  PRAGMA cache_size = -65536; PRAGMA mmap_size = 1073741824; PRAGMA temp_store = MEMORY;)";

/// A SQLite file of a yardstick. Every failure is thrown.
class SqliteFile {
 public:
  explicit SqliteFile(const std::string& path) {
    must(
        sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr));
  }
  ~SqliteFile() {
    while (auto* statement = sqlite3_next_stmt(db_, nullptr)) sqlite3_finalize(statement);
    sqlite3_close_v2(db_);
  }
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  void run(const char* sql) { must(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
  /// The statement lives as long as the file.
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* made = nullptr;
    must(sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr));
    return made;
  }
  [[nodiscard]] std::int64_t last_row() const { return sqlite3_last_insert_rowid(db_); }

  /// Throws std::runtime_error also when the statement has other parameters than these: what is missing would be NULL.
  template <typename... Values>
  void write(sqlite3_stmt* statement, const Values&... values) {
    if (sqlite3_bind_parameter_count(statement) != static_cast<int>(sizeof...(values))) {
      throw std::runtime_error(std::string("not the parameters of ") + sqlite3_sql(statement));
    }
    int at = 0;
    (put(statement, ++at, values), ...);
    if (sqlite3_step(statement) != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(db_));
    sqlite3_reset(statement);
  }

 private:
  static void put(sqlite3_stmt* to, int at, std::int64_t value) { sqlite3_bind_int64(to, at, value); }
  static void put(sqlite3_stmt* to, int at, std::string_view value) {
    sqlite3_bind_text(to, at, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  }
  static void put(sqlite3_stmt* to, int at, const XXH128_canonical_t& value) {
    sqlite3_bind_blob(to, at, value.digest, sizeof value.digest, SQLITE_STATIC);
  }
  void must(int status) const {
    if (status != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db_));
  }

  sqlite3* db_ = nullptr;
};

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace muster::bench
