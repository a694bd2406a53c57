#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include "schema/result.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sqlite {

struct StatementDeleter {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementDeleter>;

struct ConnectionDeleter {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};

/// Bytes that go into a BLOB column; text goes as string_view.
struct Blob {
  std::string_view bytes;
};

inline std::int64_t from_time(WallTime at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}
inline WallTime to_time(std::int64_t nanoseconds) {
  return WallTime{std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds{nanoseconds})};
}

// Text and blobs are not copied: they must live until the statement is reset.
template <typename T>
int bind_value(sqlite3_stmt* statement, int index, const T& value) {
  if constexpr (std::is_same_v<T, WallTime>) {
    return sqlite3_bind_int64(statement, index, from_time(value));
  } else if constexpr (std::is_same_v<T, Blob>) {
    return sqlite3_bind_blob64(statement, index, value.bytes.data(), value.bytes.size(), nullptr);
  } else if constexpr (std::is_enum_v<T>) {
    return sqlite3_bind_int64(statement, index, static_cast<std::int64_t>(value));
  } else if constexpr (std::integral<T>) {
    return sqlite3_bind_int64(statement, index, static_cast<sqlite3_int64>(value));
  } else {
    const std::string_view text = value;
    return sqlite3_bind_text64(statement, index, text.data() == nullptr ? "" : text.data(), text.size(), nullptr,
                               SQLITE_UTF8);
  }
}

template <typename T>
int bind_value(sqlite3_stmt* statement, int index, const std::optional<T>& value) {
  return value ? bind_value(statement, index, *value) : sqlite3_bind_null(statement, index);
}

/// The rows a statement gives, one at a time. Several may be open on one connection, also of one statement text.
class Rows {
 public:
  Rows(Statement statement, std::vector<Statement>& home, sqlite3* connection, int status)
      : statement_(std::move(statement)), home_(&home), connection_(connection), status_(status) {}
  Rows(Rows&& other) noexcept = default;
  Rows& operator=(Rows&&) = delete;
  /// Gives the statement back for its next use.
  ~Rows();

  /// Goes to the next row; false at the end and after a failure.
  bool next();
  /// The failure that ended the rows, if there was one.
  [[nodiscard]] Result<void> result() const;

  // Columns of the row, from 0. Views live until next().
  [[nodiscard]] bool null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] bool flag(int column) const { return integer(column) != 0; }
  [[nodiscard]] std::string_view text(int column) const;  // of text and blobs; empty for NULL
  [[nodiscard]] std::string string(int column) const { return std::string(text(column)); }
  [[nodiscard]] WallTime time(int column) const { return to_time(integer(column)); }
  [[nodiscard]] std::optional<WallTime> optional_time(int column) const;

 private:
  Statement statement_;
  std::vector<Statement>* home_;
  sqlite3* connection_;
  int status_;  // SQLITE_OK or SQLITE_ROW: there may be more
};

/// One connection. Statements are prepared at their first use and kept, by the address of their text, for its life.
/// Errors are kStoreUnavailable with SQLite's own message. Thread: one.
class Database {
 public:
  /// Opens the file, making it when it is not there.
  static Result<Database> open(const std::string& path);

  /// Runs any number of statements that give no rows.
  Result<void> script(const char* text);

  /// `sql`   a literal that outlives the database
  template <typename... Args>
  Rows select(const char* sql, Args&&... args) {
    static_assert(!(std::is_same_v<Args, std::string> || ...), "text is bound without a copy");
    auto& home = statements_[sql];
    int status = SQLITE_OK;
    Statement statement = take(home, sql, status);
    int index = 0;
    ((status = status == SQLITE_OK ? bind_value(statement.get(), ++index, args) : status), ...);
    return Rows(std::move(statement), home, connection_.get(), status);
  }

  /// No rows, with `status` (of SQLite) as the reason.
  Rows nothing(int status) { return Rows(nullptr, statements_[nullptr], connection_.get(), status); }

  /// Runs one statement to its end; returns how many rows it wrote.
  template <typename... Args>
  Result<std::int64_t> write(const char* sql, const Args&... args) {
    const auto before = sqlite3_total_changes64(connection_.get());
    auto rows = select(sql, args...);
    while (rows.next()) {
    }
    if (auto done = rows.result(); !done) return done.error();
    return sqlite3_total_changes64(connection_.get()) - before;
  }

  [[nodiscard]] std::int64_t last_row() const { return sqlite3_last_insert_rowid(connection_.get()); }
  /// For what has no statement.
  [[nodiscard]] sqlite3* handle() const { return connection_.get(); }
  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(connection_.get()) == 0; }

 private:
  explicit Database(sqlite3* connection) : connection_(connection) {}
  Statement take(std::vector<Statement>& home, const char* sql, int& status);

  std::unique_ptr<sqlite3, ConnectionDeleter> connection_;
  std::unordered_map<const char*, std::vector<Statement>> statements_;  // those that nobody uses at the moment
};

}  // namespace muster::sqlite
