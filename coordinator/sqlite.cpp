#include "coordinator/sqlite.h"

namespace muster::sqlite {
namespace {

Error unavailable(sqlite3* connection, int status) {
  std::string message = "store: ";
  message += sqlite3_errcode(connection) == status ? sqlite3_errmsg(connection) : sqlite3_errstr(status);
  return {.code = Errc::kStoreUnavailable, .message = std::move(message)};
}

}  // namespace

Rows::~Rows() {
  if (!statement_) return;
  sqlite3_reset(statement_.get());
  home_->push_back(std::move(statement_));
}

bool Rows::next() {
  if (status_ != SQLITE_OK && status_ != SQLITE_ROW) return false;
  status_ = sqlite3_step(statement_.get());
  return status_ == SQLITE_ROW;
}

Result<void> Rows::result() const {
  if (status_ == SQLITE_OK || status_ == SQLITE_ROW || status_ == SQLITE_DONE) return {};
  return unavailable(connection_, status_);
}

bool Rows::null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Rows::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Rows::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  return {bytes == nullptr ? "" : bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::optional<WallTime> Rows::optional_time(int column) const {
  return null(column) ? std::nullopt : std::optional(time(column));
}

Result<Database> Database::open(const std::string& path) {
  sqlite3* connection = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &connection,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(connection);
  if (status != SQLITE_OK) return unavailable(connection, status);
  sqlite3_extended_result_codes(connection, 1);
  return database;
}

Result<void> Database::script(const char* text) {
  const int status = sqlite3_exec(connection_.get(), text, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) return unavailable(connection_.get(), status);
  return {};
}

Statement Database::take(std::vector<Statement>& home, const char* sql, int& status) {
  if (!home.empty()) {
    Statement statement = std::move(home.back());
    home.pop_back();
    return statement;
  }
  sqlite3_stmt* statement = nullptr;
  status = sqlite3_prepare_v3(connection_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  return Statement(statement);
}

}  // namespace muster::sqlite
