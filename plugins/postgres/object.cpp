#include "object.h"

#include <algorithm>

#include "catalog.h"
#include "ddl.h"
#include "schemas.h"
#include "table.h"

namespace muster::postgres {
namespace {

/// With replacement characters where bytes are not UTF-8.
std::string utf8_of(const std::string& bytes) {
  return Json::parse(Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

const Kind kRole{"PG::Role", "ROLE", kRoles, kRoleSchema, Home::kServer, create_role, change_role};
const Kind kDatabase{"PG::Database", "DATABASE",      kDatabases,     kDatabaseSchema,
                     Home::kServer,  create_database, change_database};
const Kind kSchema{"PG::Schema", "SCHEMA", kSchemas, kSchemaSchema, Home::kDatabase, create_schema, change_schema};
const Kind kTable{"PG::Table", "TABLE", kTables, kTableSchema, Home::kSchema, create_table, change_table};
const Kind kExtension{"PG::Extension", "EXTENSION",      kExtensions,     kExtensionSchema,
                      Home::kDatabase, create_extension, change_extension};

Result<std::string> parse_config(const Json& json) {
  if (!json.is_object()) return invalid_request("config: must be an object");
  for (const auto& [key, value] : json.items()) {
    if (key != "dsn") return invalid_request("config." + key + ": unknown key");
  }
  const auto dsn = json.find("dsn");
  if (dsn == json.end()) return invalid_request("config.dsn: is missing");
  if (!dsn->is_string() || dsn->get_ref<const std::string&>().empty()) {
    return invalid_request("config.dsn: must be a connection string");
  }
  return dsn->get<std::string>();
}

bool is_text(const std::string& bytes) {
  return utf8_of(bytes) == bytes;
}

/// The rows after the one that the page token names, one more than the page takes.
std::string list_sql(const Kind& kind) {
  const std::string_view below = kind.home == Home::kSchema
                                     // A schema that is gone is an error there, and no empty schema.
                                     ? " AND v.namespace = quote_ident($3)::regnamespace"
                                     : "";
  return "SELECT v.native_id, v.uid, v.properties FROM (" + std::string(kind.catalog) +
         ") v WHERE v.native_id COLLATE \"C\" > $1" + std::string(below) +
         " ORDER BY v.native_id COLLATE \"C\" LIMIT $2::bigint";
}

std::string read_sql(const Kind& kind) {
  return "SELECT v.native_id, v.uid, v.properties FROM (" + std::string(kind.catalog) +
         ") v WHERE (v.scope, v.name) IN (SELECT w->>0, w->>1 FROM json_array_elements($1::json) w)";
}

Resource resource_of(const Place& place, const std::vector<std::string>& row) {
  auto properties = Json::parse(row[2], nullptr, false);
  if (properties.is_discarded()) properties = Json::parse(utf8_of(row[2]));
  if (place.part.empty()) return {row[0], properties, row[1]};
  properties["database"] = place.database;
  return {place.part + "." + row[0], properties, row[1]};
}

Result<bool> can_name(Session& session, const std::string& text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; })) return true;
  const auto known = session.query("SELECT $1::text", {text});
  if (known) return true;
  if (session.sqlstate() != kUntranslatable) return known.error();
  return false;
}

Result<std::optional<Resource>> find(const Kind& kind, Session& session, const Place& place, const std::string& scope,
                                     const std::string& name) {
  auto rows = session.query(read_sql(kind), {Json::array({Json::array({scope, name})}).dump()});
  if (!rows) {
    // Only rows that are missing say that something is gone, never a catalog that is.
    if (rows.error().code == Errc::kNotFound) rows.error().code = Errc::kUnsupported;
    return rows.error();
  }
  if (rows->empty()) return std::optional<Resource>();
  return std::optional(resource_of(place, rows->front()));
}

}  // namespace muster::postgres
