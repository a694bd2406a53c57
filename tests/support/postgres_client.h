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

 private:
  PGconn* connection_;
};

}  // namespace muster::test
