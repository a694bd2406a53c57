#include "postgres.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "catalog.h"
#include "native_id.h"
#include "schemas.h"
#include "session.h"

namespace muster::postgres {
namespace {

constexpr std::uint32_t kPageSize = 500;

enum class Home : std::uint8_t { kServer, kDatabase, kSchema };

/// One type of the plugin. `names` is the number of parts of a native id, the database's name first but for kServer.
struct Kind {
  const char* type;
  const char* catalog;  // SELECT of catalog.h
  Home home;

  [[nodiscard]] std::size_t names() const { return static_cast<std::size_t>(home) + 1; }
};

constexpr Kind kRole{"PG::Role", kRoles, Home::kServer};
constexpr Kind kDatabase{"PG::Database", kDatabases, Home::kServer};
constexpr Kind kSchema{"PG::Schema", kSchemas, Home::kDatabase};
constexpr Kind kTable{"PG::Table", kTables, Home::kSchema};
constexpr Kind kExtension{"PG::Extension", kExtensions, Home::kDatabase};

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

Result<std::string> parent_parameter(const ListRequest& request, const char* name) {
  if (request.parent && request.parent->parameters.is_object()) {
    const auto found = request.parent->parameters.find(name);
    if (found != request.parent->parameters.end() && found->is_string() && *found != "")
      return found->get<std::string>();
  }
  return invalid_request(request.type + " is listed below a parent: the list parameter `" + name + "` is missing");
}

/// Where objects are looked for. Both are empty for those of the server.
struct Place {
  std::string database;
  std::string part;  // the database's part of native ids, quoted where it must be
};

Resource resource_of(const Place& place, const std::vector<std::string>& row) {
  auto properties = Json::parse(row[2]);
  if (place.part.empty()) return {row[0], properties, row[1]};
  properties["database"] = place.database;
  return {place.part + "." + row[0], properties, row[1]};
}

Result<Place> place_of(const Kind& kind, const ListRequest& request) {
  if (kind.home == Home::kServer) return Place{};
  auto database = parent_parameter(request, "database");
  if (!database) return database.error();
  const auto part = first_part(request.parent->native_id);
  if (part.empty()) return invalid_request("no native id of a parent: " + request.parent->native_id);
  return Place{std::move(*database), std::string(part)};
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

Result<ListPage> list(const Kind& kind, const ListRequest& request, JobContext& context) {
  const auto dsn = parse_config(request.target.config);
  if (!dsn) return dsn.error();
  const auto limit = request.page_size == 0 ? kPageSize : std::min(request.page_size, kPageSize);
  std::vector<std::string> parameters{request.page_token, std::to_string(limit + 1)};
  const auto place = place_of(kind, request);
  if (!place) return place.error();
  if (kind.home == Home::kSchema) {
    auto schema = parent_parameter(request, "schema");
    if (!schema) return schema.error();
    parameters.push_back(std::move(*schema));
  }
  const auto session = Session::open(*dsn, place->database, context);
  if (!session) return session.error();
  if (*session == nullptr) {
    if (place->database.empty()) return invalid_request("config.dsn: its database takes no connections");
    return ListPage{};  // nobody can look into it
  }
  auto rows = (*session)->query(list_sql(kind), parameters);
  if (!rows) return rows.error();

  ListPage page;
  if (rows->size() > limit) {
    rows->resize(limit);
    page.next_page_token = rows->back().front();
  }
  for (const auto& row : *rows) page.items.push_back(resource_of(*place, row));
  return page;
}

/// The resources of one place among those that `wanted`, a JSON array of [scope, name], names.
Result<std::unordered_map<std::string, Resource>> read_from(const Kind& kind, const std::string& dsn,
                                                            const Place& place, const Json& wanted,
                                                            JobContext& context) {
  const auto session = Session::open(dsn, place.database, context);
  if (!session) return session.error();
  if (*session == nullptr) {
    return unsupported(place.database.empty() ? "config.dsn: its database takes no connections"
                                              : "database " + place.database + " takes no connections");
  }
  auto rows = (*session)->query(read_sql(kind), {wanted.dump()});
  if (!rows) {
    // Only rows that are missing say that something is gone, never a catalog that is.
    if (rows.error().code == Errc::kNotFound) rows.error().code = Errc::kUnsupported;
    return rows.error();
  }
  std::unordered_map<std::string, Resource> found;
  for (const auto& row : *rows) {
    auto resource = resource_of(place, row);
    auto id = resource.native_id;
    found.emplace(std::move(id), std::move(resource));
  }
  return found;
}

struct Batch {
  Place place;
  std::vector<std::size_t> places;  // in the request
  Json wanted = Json::array();
};

std::vector<Result<Resource>> read_many(const Kind& kind, const ReadManyRequest& request, JobContext& context) {
  const auto& ids = request.native_ids;
  const auto dsn = parse_config(request.target.config);
  if (!dsn) return {ids.size(), Result<Resource>(dsn.error())};
  std::vector<Result<Resource>> answers(ids.size(), Result<Resource>(not_found()));
  std::map<std::string, Batch> batches;  // by the database's part of the id
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto names = parse_native_id(ids[i]);
    if (!names || names->size() != kind.names()) {
      answers[i] = invalid_request("no native id of a " + request.type + ": " + ids[i]);
      continue;
    }
    Place place;
    if (kind.home != Home::kServer) place = {names->front(), std::string(first_part(ids[i]))};
    auto& batch = batches[place.part];
    batch.place = std::move(place);
    batch.places.push_back(i);
    batch.wanted.push_back({kind.home == Home::kSchema ? (*names)[1] : "", names->back()});
  }
  for (const auto& [part, batch] : batches) {
    const auto found = read_from(kind, *dsn, batch.place, batch.wanted, context);
    for (const auto i : batch.places) {
      if (!found) {
        answers[i] = found.error();
      } else if (const auto it = found->find(ids[i]); it != found->end()) {
        answers[i] = it->second;
      } else {
        answers[i] = not_found("no " + request.type + " " + ids[i]);
      }
    }
  }
  return answers;
}

Result<Inspection> inspect(const InspectRequest& request, JobContext& context) {
  const auto dsn = parse_config(request.target.config);
  if (!dsn) return dsn.error();
  const auto session = Session::open(*dsn, "", context);
  if (!session) return session.error();
  if (*session == nullptr) return invalid_request("config.dsn: its database takes no connections");
  auto rows = (*session)->query("SELECT system_identifier FROM pg_control_system()");
  Inspection inspection;
  if (rows && !rows->empty()) inspection.system = rows->front().front();
  const bool closed = !rows && (rows.error().code == Errc::kAccessDenied || rows.error().code == Errc::kUnsupported);
  if (!rows && !closed) return rows.error();
  return inspection;  // some services close that function: the system is unknown then
}

/// Leaves out what has a name that matches `regex`.
MatchFilter without(const char* type, const char* regex) {
  return {{type}, {PropertyMatch{"$.name", MatchOp::kRegex, Json(regex).dump()}}, FilterAction::kExclude};
}

TypeInfo type_info(const char* description, const char* schema, const char* example) {
  TypeInfo info;
  info.description = description;
  info.schema = schema;
  info.examples = {example};
  return info;
}

void add_type(Plugin& plugin, const Kind& kind, TypeInfo info) {
  info.name = kind.type;
  info.list_gives = ListGives::kProperties;
  info.page_size = kPageSize;
  info.read_batch = kPageSize;
  if (kind.home == Home::kDatabase) {
    info.parent = kDatabase.type;
    info.parent_parameters = {{"database", "name"}};
  } else if (kind.home == Home::kSchema) {
    info.parent = kSchema.type;
    info.parent_parameters = {{"database", "database"}, {"schema", "name"}};
  }
  plugin.type(std::move(info))
      .list([kind](const ListRequest& request, JobContext& context) { return list(kind, request, context); })
      .read_many(
          [kind](const ReadManyRequest& request, JobContext& context) { return read_many(kind, request, context); });
}

}  // namespace

PluginInfo plugin_info() {
  PluginInfo info;
  info.name = "postgres";
  info.ns = "PG";
  info.version = "0.1.0";
  info.description = "Roles, databases, schemas, tables and extensions of a PostgreSQL server";
  info.label_query = "$.name";
  info.filters = {without("PG::Role", "^pg_"), without("PG::Database", "^template[01]$"),
                  without("PG::Schema", "^(pg_|information_schema$)")};
  info.config_schema = kConfigSchema;
  return info;
}

void add_types(Plugin& plugin) {
  add_type(
      plugin, kRole,
      type_info("A role: a user or a group", kRoleSchema, R"({"name":"app","login":true,"member_of":["readers"]})"));
  add_type(plugin, kDatabase, type_info("A database", kDatabaseSchema, R"({"name":"shop","owner":"app"})"));
  add_type(plugin, kSchema,
           type_info("A schema of a database", kSchemaSchema, R"({"database":"shop","name":"sales","owner":"app"})"));
  add_type(
      plugin, kTable,
      type_info("A table, ordinary or partitioned; partitions are tables too", kTableSchema,
                R"({"database":"shop","schema":"sales","name":"orders","columns":[{"name":"id","type":"bigint"}]})"));
  add_type(plugin, kExtension,
           type_info("An installed extension", kExtensionSchema, R"({"database":"shop","name":"citext"})"));
  plugin.inspect(inspect);
}

}  // namespace muster::postgres
