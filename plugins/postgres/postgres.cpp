#include "postgres.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "change.h"
#include "native_id.h"
#include "object.h"
#include "schemas.h"
#include "session.h"

namespace muster::postgres {
namespace {

constexpr std::uint32_t kPageSize = 500;
constexpr std::string_view kNoSchema = "3F000";

constexpr char kTableExample[] = R"js({
  "database": "shop", "schema": "sales", "name": "orders", "owner": "app",
  "columns": [{"name": "id", "type": "bigint", "nullable": false, "default": "generated always as identity"},
              {"name": "customer", "type": "character varying(20)", "nullable": false},
              {"name": "total", "type": "numeric(10,2)", "default": "0"},
              {"name": "placed", "type": "timestamp with time zone", "default": "now()"}],
  "constraints": [{"name": "orders_pkey", "type": "PRIMARY KEY", "definition": "PRIMARY KEY (id)"},
                  {"name": "orders_total", "type": "CHECK", "definition": "CHECK ((total >= (0)::numeric))"}]
})js";

Result<std::string> parent_parameter(const ListRequest& request, const char* name) {
  if (request.parent && request.parent->parameters.is_object()) {
    const auto found = request.parent->parameters.find(name);
    if (found != request.parent->parameters.end() && found->is_string() && *found != "")
      return found->get<std::string>();
  }
  return invalid_request(request.type + " is listed below a parent: the list parameter `" + name + "` is missing");
}

Result<Place> place_of(const Kind& kind, const ListRequest& request) {
  if (kind.home == Home::kServer) return Place{};
  auto database = parent_parameter(request, "database");
  if (!database) return database.error();
  const auto part = first_part(request.parent->native_id);
  if (part.empty()) return invalid_request("no native id of a parent: " + request.parent->native_id);
  return Place{std::move(*database), std::string(part)};
}

/// Where a page of these rows ends: behind one with an id that can be its token, the last of `limit` ones or else the
/// next; before the last row, which only says that there are more.
Rows::const_iterator page_end(const Rows& rows, std::size_t limit) {
  const auto named = [](const auto& row) { return is_text(row.front()); };
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(limit);
  const auto last = std::find_if(std::make_reverse_iterator(middle), rows.rend(), named);
  if (last != rows.rend()) return last.base();
  const auto next = std::find_if(middle, std::prev(rows.end()), named);
  return next == std::prev(rows.end()) ? rows.end() : std::next(next);
}

ListPage page_of(const Place& place, Rows::const_iterator begin, Rows::const_iterator end) {
  ListPage page;
  for (auto row = begin; row != end; ++row) {
    if (is_text(row->front())) {
      page.items.push_back(resource_of(place, *row));
    } else {
      const auto id = (place.part.empty() ? "" : place.part + ".") + percent_encode(row->front());
      page.problems.push_back({id, unsupported("its name is no UTF-8 in the database that was asked")});
    }
  }
  return page;
}

Result<ListPage> list(const Kind& kind, const ListRequest& request, JobContext& context) {
  const auto dsn = parse_config(request.target.config);
  if (!dsn) return dsn.error();
  const auto limit = request.page_size == 0 ? kPageSize : std::min(request.page_size, kPageSize);
  std::vector<std::string> parameters{request.page_token, ""};
  const auto place = place_of(kind, request);
  if (!place) return place.error();
  if (kind.home == Home::kSchema) {
    auto schema = parent_parameter(request, "schema");
    if (!schema) return schema.error();
    parameters.push_back(std::move(*schema));
  }
  const auto session = Session::open(*dsn, place->database, Session::Mode::kRead, context);
  if (!session) return session.error();
  if (*session == nullptr) {
    if (place->database.empty()) return invalid_request("config.dsn: its database takes no connections");
    return ListPage{};  // nobody can look into it
  }
  for (std::size_t most = limit;; most *= 2) {
    parameters[1] = std::to_string(most + 1);
    auto rows = (*session)->query(list_sql(kind), parameters);
    if (!rows) {
      // That the schema is gone says that nothing is in it; that a catalog is missing says nothing.
      const bool gone = (*session)->sqlstate() == kNoSchema;
      if (rows.error().code == Errc::kNotFound && !gone) rows.error().code = Errc::kUnsupported;
      return rows.error();
    }
    if (rows->size() <= most) return page_of(*place, rows->begin(), rows->end());
    if (const auto end = page_end(*rows, limit); end != rows->end()) {
      auto page = page_of(*place, rows->begin(), end);
      page.next_page_token = std::prev(end)->front();
      return page;
    }
  }
}

/// Those of `wanted` that can be there: for a name that the database's encoding has no characters for the server
/// refuses the others, too.
Result<Json> nameable(const std::string& dsn, const Place& place, const Json& wanted, JobContext& context) {
  const auto session = Session::open(dsn, place.database, Session::Mode::kSingle, context);
  if (!session) return session.error();
  if (*session == nullptr) return wanted;
  Json possible = Json::array();
  for (const auto& each : wanted) {
    const auto can = can_name(**session, each.dump());
    if (!can) return can.error();
    if (*can) possible.push_back(each);
  }
  return possible;
}

/// The resources of one place among those that `wanted`, a JSON array of [scope, name], names.
Result<std::unordered_map<std::string, Resource>> read_from(const Kind& kind, const std::string& dsn,
                                                            const Place& place, const Json& wanted,
                                                            JobContext& context) {
  const auto session = Session::open(dsn, place.database, Session::Mode::kRead, context);
  if (!session) return session.error();
  if (*session == nullptr) {
    return unsupported(place.database.empty() ? "config.dsn: its database takes no connections"
                                              : "database " + place.database + " takes no connections");
  }
  auto rows = (*session)->query(read_sql(kind), {wanted.dump()});
  if (!rows && (*session)->sqlstate() == kUntranslatable) {
    const auto possible = nameable(dsn, place, wanted, context);
    if (!possible) return possible.error();
    if (possible->size() < wanted.size()) return read_from(kind, dsn, place, *possible, context);
  }
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
  const auto session = Session::open(*dsn, "", Session::Mode::kRead, context);
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

/// `kind` is one of the constants.
void add_type(Plugin& plugin, const Kind& kind, const char* description, const char* example) {
  TypeInfo info;
  info.name = kind.type;
  info.description = description;
  info.schema = kind.schema;
  info.examples = {example};
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
      .list([&kind](const ListRequest& request, JobContext& context) { return list(kind, request, context); })
      .read_many(
          [&kind](const ReadManyRequest& request, JobContext& context) { return read_many(kind, request, context); })
      .create([&kind](const CreateRequest& request, JobContext& context) { return create(kind, request, context); })
      .update([&kind](const UpdateRequest& request, JobContext& context) { return update(kind, request, context); })
      .remove([&kind](const DeleteRequest& request, JobContext& context) { return remove(kind, request, context); });
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
  add_type(plugin, kRole, "A role: a user or a group",
           R"({"name":"app","login":true,"connection_limit":20,"member_of":["readers"]})");
  add_type(plugin, kDatabase, "A database", R"({"name":"shop","owner":"app","encoding":"UTF8"})");
  add_type(plugin, kSchema, "A schema of a database", R"({"database":"shop","name":"sales","owner":"app"})");
  add_type(plugin, kTable, "A table, ordinary or partitioned; partitions are tables too", kTableExample);
  add_type(plugin, kExtension, "An installed extension", R"({"database":"shop","name":"citext","schema":"public"})");
  plugin.inspect(inspect);
}

}  // namespace muster::postgres
