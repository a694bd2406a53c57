#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/job.h"
#include "session.h"

namespace muster::postgres {

enum class Home : std::uint8_t { kServer, kDatabase, kSchema };

/// One type of the plugin. `names` is the number of parts of a native id, the database's name first but for kServer.
struct Kind {
  const char* type;
  const char* noun;     // in SQL
  const char* catalog;  // SELECT of catalog.h
  const char* schema;   // JSON Schema
  Home home;
  Result<void> (*create)(Session& session, const Json& declared);
  Result<void> (*change)(Session& session, const Json& before, const Json& wanted);

  [[nodiscard]] std::size_t names() const { return static_cast<std::size_t>(home) + 1; }
};

extern const Kind kRole, kDatabase, kSchema, kTable, kExtension;

/// The dsn of a target's config.
/// errors   kInvalidRequest, which names the key
Result<std::string> parse_config(const Json& json);

/// Where objects are looked for. Both are empty for those of the server.
struct Place {
  std::string database;
  std::string part;  // the database's part of native ids, quoted where it must be
};

/// Columns of an object: what it is made of, and what finds it again.
std::string list_sql(const Kind& kind);
std::string read_sql(const Kind& kind);

/// Whether bytes are UTF-8. Names of roles and databases need not be: the server keeps those of all its databases as
/// they are, and one of LATIN1 has others. Nor need anything in a database of SQL_ASCII.
bool is_text(const std::string& bytes);

/// Of a row that one of these gave, whose id is text; what is none in its properties is replaced.
Resource resource_of(const Place& place, const std::vector<std::string>& row);

/// Whether the encoding of the session's database has characters for a text: else nothing in it has that name. Where it
/// has not, the transaction is over.
Result<bool> can_name(Session& session, const std::string& text);

/// The object of that name as it is now, if it is there.
/// `scope`  the schema of a table; else empty
Result<std::optional<Resource>> find(const Kind& kind, Session& session, const Place& place, const std::string& scope,
                                     const std::string& name);

}  // namespace muster::postgres
