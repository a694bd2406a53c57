#include "table.h"

#include <algorithm>

#include "ddl.h"
#include "expression.h"

namespace muster::postgres {
namespace {

using Kind = ColumnDefault::Kind;

constexpr std::string_view kNoAutomaticCast = "42804";

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

const Json* by_name(const Json& objects, const Json& wanted) {
  const auto found =
      std::ranges::find_if(objects, [&](const Json& object) { return object.at("name") == wanted.at("name"); });
  return found == objects.end() ? nullptr : &*found;
}

bool is_generated(const Json& column) {
  return text_of(column, "default").starts_with("generated always as (");
}

/// The server says of each type whether it is one, before any statement is made of it.
Result<void> check_types(Session& session, const Json& columns) {
  Json types = Json::array();
  for (const auto& column : columns) types.push_back(column.at("type"));
  const auto unknown = session.query(
      "SELECT t FROM json_array_elements_text($1::json) AS t WHERE to_regtype(t) IS NULL LIMIT 1", {types.dump()});
  if (!unknown) {
    auto error = unknown.error();
    if (error.code == Errc::kNotFound) error.code = Errc::kInvalidRequest;
    return error;
  }
  if (!unknown->empty()) {
    return invalid_request("columns: there is no type " + unknown->front().front() +
                           "; those of other schemas than pg_catalog need their schema's name");
  }
  return {};
}

Result<void> check(Session& session, const Json& table) {
  for (const auto& column : table.value("columns", Json::array())) {
    const auto value = parse_default(text_of(column, "default"));
    if (value.kind == Kind::kNone || value.kind == Kind::kIdentity || is_self_contained(value.sql)) continue;
    return invalid_request("columns." + text_of(column, "name") + ".default: must be one expression");
  }
  for (const auto& constraint : table.value("constraints", Json::array())) {
    if (is_self_contained(text_of(constraint, "definition"))) continue;
    return invalid_request("constraints." + text_of(constraint, "name") + ".definition: must be one definition");
  }
  return check_types(session, table.value("columns", Json::array()));
}

/// One table's ALTER TABLE.
class Alteration {
 public:
  Alteration(Session& session, const Json& table)
      : session_(session),
        run_(session),
        name_(table_name(session, text_of(table, "schema"), text_of(table, "name"))) {}

  void create(const Json& columns) {
    std::string list;
    for (const auto& column : columns) list += (list.empty() ? "" : ", ") + definition(column);
    run_.run("CREATE TABLE " + name_ + " (" + list + ")");
  }

  void change() { run_.made(); }

  void owner(const std::string& owner) { alter("OWNER TO " + session_.identifier(owner)); }

  /// Foreign keys go before what they refer to.
  void drop_constraints(const Json& before, const Json& wanted) {
    each(before, wanted, ForeignKeys::kFirst,
         [&](const Json& constraint) { alter("DROP CONSTRAINT " + session_.identifier(text_of(constraint, "name"))); });
  }

  void add_constraints(const Json& before, const Json& wanted) {
    each(wanted, before, ForeignKeys::kLast, [&](const Json& constraint) {
      alter("ADD CONSTRAINT " + session_.identifier(text_of(constraint, "name")) + " " +
            text_of(constraint, "definition"));
    });
  }

  /// Generated columns stand in the way of what they are computed of: they go, and lose their expression, before it
  /// does, and are added behind it.
  void columns(const Json& before, const Json& wanted) {
    for (const bool generated : {true, false}) {
      for (const auto& column : before) {
        if (is_generated(column) == generated && by_name(wanted, column) == nullptr) {
          alter("DROP COLUMN " + session_.identifier(text_of(column, "name")));
        }
      }
      for (const auto& column : wanted) {
        const auto* there = by_name(before, column);
        if (there != nullptr && is_generated(*there) == generated) alter_column(*there, column);
      }
    }
    for (const bool generated : {false, true}) {
      for (const auto& column : wanted) {
        if (is_generated(column) == generated && by_name(before, column) == nullptr) {
          alter("ADD COLUMN " + definition(column));
        }
      }
    }
  }

  [[nodiscard]] Result<void> result() const { return run_.result(); }

 private:
  enum class ForeignKeys { kFirst, kLast };

  void alter(const std::string& what) { run_.run("ALTER TABLE " + name_ + " " + what); }

  /// Calls `act` for each of `some` that `others` has not, or has with another definition.
  template <typename Act>
  static void each(const Json& some, const Json& others, ForeignKeys order, Act act) {
    for (const bool foreign : {order == ForeignKeys::kFirst, order == ForeignKeys::kLast}) {
      for (const auto& constraint : some) {
        if (text_of(constraint, "definition").starts_with("FOREIGN KEY") != foreign) continue;
        const auto* other = by_name(others, constraint);
        if (other == nullptr || other->at("definition") != constraint.at("definition")) act(constraint);
      }
    }
  }

  std::string definition(const Json& column) {
    auto sql = session_.identifier(text_of(column, "name")) + " " + text_of(column, "type");
    const auto value = parse_default(text_of(column, "default"));
    if (value.kind == Kind::kExpression) sql += " DEFAULT (" + value.sql + ")";
    if (value.kind == Kind::kIdentity) sql += " GENERATED " + value.sql + " AS IDENTITY";
    if (value.kind == Kind::kStored) sql += " GENERATED ALWAYS AS (" + value.sql + ") STORED";
    if (column.value("nullable", Json()) == false) sql += " NOT NULL";
    return sql;
  }

  void alter_column(const Json& before, const Json& wanted) {
    const auto column = "ALTER COLUMN " + session_.identifier(text_of(wanted, "name")) + " ";
    const bool retyped = wanted.at("type") != before.at("type");
    const auto was = parse_default(text_of(before, "default"));
    const auto value = parse_default(text_of(wanted, "default"));
    const bool said = wanted.contains("default");
    // A default that stays may not fit the new type: it is set again.
    const bool fresh = said && (text_of(wanted, "default") != text_of(before, "default") ||
                                (retyped && value.kind == Kind::kExpression));
    if (fresh) drop_default(column, was, value);
    if (retyped) retype(column, wanted, fresh ? Kind::kNone : was.kind);
    if (wanted.contains("nullable") && wanted["nullable"] != before.at("nullable")) {
      alter(column + (wanted["nullable"] == true ? "DROP" : "SET") + " NOT NULL");
    }
    if (fresh) set_default(column, was, value);
  }

  void drop_default(const std::string& column, const ColumnDefault& was, const ColumnDefault& value) {
    if (was.kind == Kind::kExpression) alter(column + "DROP DEFAULT");
    if (was.kind == Kind::kStored) alter(column + "DROP EXPRESSION");
    if (was.kind == Kind::kIdentity && value.kind != Kind::kIdentity) alter(column + "DROP IDENTITY");
  }

  void set_default(const std::string& column, const ColumnDefault& was, const ColumnDefault& value) {
    if (value.kind == Kind::kExpression) alter(column + "SET DEFAULT (" + value.sql + ")");
    if (value.kind == Kind::kIdentity) {
      alter(column + (was.kind == Kind::kIdentity ? "SET GENERATED " + value.sql
                                                  : "ADD GENERATED " + value.sql + " AS IDENTITY"));
    }
    if (value.kind == Kind::kStored) {
      run_.refuse(invalid_request("columns: PostgreSQL makes no generated column of another; drop it and add it anew"));
    }
  }

  /// By itself PostgreSQL casts as in an assignment, which refuses to cut a text off; asked to, it casts whatever it
  /// can.
  void retype(const std::string& column, const Json& wanted, Kind kind) {
    const auto name = text_of(wanted, "name"), type = text_of(wanted, "type");
    const auto statement = column + "TYPE " + type + collation(name, type);
    if (kind == Kind::kStored) return alter(statement);
    if (run_.failed()) return;
    run_.run("SAVEPOINT retype");
    if (run_.failed()) return;
    auto done = session_.query("ALTER TABLE " + name_ + " " + statement);
    if (done) return;
    if (session_.sqlstate() != kNoAutomaticCast) return run_.refuse(std::move(done.error()));
    run_.run("ROLLBACK TO SAVEPOINT retype");
    alter(statement + " USING " + session_.identifier(name) + "::" + type);
  }

  /// That of a column which has another than its type; with a new type it would be lost, unless that has none.
  std::string collation(const std::string& name, const std::string& type) {
    if (run_.failed()) return "";
    const auto rows = session_.query(
        "SELECT ' COLLATE ' || quote_ident(n.nspname) || '.' || quote_ident(l.collname) FROM pg_attribute a "
        "JOIN pg_type t ON t.oid = a.atttypid JOIN pg_collation l ON l.oid = a.attcollation "
        "JOIN pg_namespace n ON n.oid = l.collnamespace JOIN pg_type w ON w.oid = to_regtype($3) "
        "WHERE a.attrelid = $1::regclass AND a.attname = $2 "
        "AND l.oid <> t.typcollation AND w.typcollation <> 0",
        {name_, name, type});
    if (!rows) {
      run_.refuse(rows.error());
      return "";
    }
    return rows->empty() ? "" : rows->front().front();
  }

  Session& session_;
  Statements run_;
  std::string name_;
};

}  // namespace

std::string table_name(Session& session, const std::string& schema, const std::string& table) {
  return session.identifier(schema) + "." + session.identifier(table);
}

Result<void> create_table(Session& session, const Json& declared) {
  if (auto good = check(session, declared); !good) return good;
  if (auto set = session.spell(Session::Spelling::kOfRole); !set) return set;
  Alteration table(session, declared);
  table.create(declared.value("columns", Json::array()));
  table.add_constraints(Json::array(), declared.value("constraints", Json::array()));
  if (declared.contains("owner")) table.owner(text_of(declared, "owner"));
  return table.result() ? session.spell(Session::Spelling::kFixed) : table.result();
}

Result<void> change_table(Session& session, const Json& before, const Json& wanted) {
  if (auto good = check(session, wanted); !good) return good;
  if (auto set = session.spell(Session::Spelling::kOfRole); !set) return set;
  Alteration table(session, before);
  table.change();
  const auto constraints = wanted.value("constraints", before.at("constraints"));
  table.drop_constraints(before.at("constraints"), constraints);
  if (wanted.contains("columns")) table.columns(before.at("columns"), wanted["columns"]);
  table.add_constraints(before.at("constraints"), constraints);
  if (wanted.contains("owner") && wanted["owner"] != before.at("owner")) table.owner(text_of(wanted, "owner"));
  return table.result() ? session.spell(Session::Spelling::kFixed) : table.result();
}

}  // namespace muster::postgres
