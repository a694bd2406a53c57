#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <libpq-fe.h>

namespace muster::test {

/// A plain connection to a PostgreSQL server. Throws std::runtime_error with the server's message.
class PostgresClient {
 public:
  explicit PostgresClient(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
    if (PQstatus(connection_) == CONNECTION_OK) return;
    const std::string message = PQerrorMessage(connection_);
    PQfinish(connection_);
    throw std::runtime_error(message);
  }
  PostgresClient(const PostgresClient&) = delete;
  PostgresClient& operator=(const PostgresClient&) = delete;
  ~PostgresClient() { PQfinish(connection_); }

  /// The first column of the last statement's rows.
  std::vector<std::string> run(const std::string& sql) const {
    PGresult* result = PQexec(connection_, sql.c_str());
    std::vector<std::string> rows;
    for (int i = 0; i < PQntuples(result); ++i) rows.emplace_back(PQgetvalue(result, i, 0));
    const auto status = PQresultStatus(result);
    PQclear(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      throw std::runtime_error(sql + ": " + PQerrorMessage(connection_));
    }
    return rows;
  }
  std::string one(const std::string& sql) const { return run(sql).at(0); }

 private:
  PGconn* connection_;
};

inline std::string value_in_dsn(const std::string& value) {
  std::string quoted = "'";
  for (const char c : value) quoted += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return quoted + "'";
}

/// As quote_ident(), for the names of these tests.
inline std::string ident(const std::string& name) {
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == name.npos && name != "select") return name;
  std::string text = "\"";
  for (const char c : name) text += (c == '"' ? "\"" : "") + std::string(1, c);
  return text + "\"";
}

}  // namespace muster::test
