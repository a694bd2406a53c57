#pragma once

#include <string>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include "coordinator/difference.h"
#include "support/postgres_plugin.h"
#include "support/postgres_server.h"
#include "support/properties_hash.h"

namespace muster::test {

inline constexpr char kRole[] = "PG::Role";
inline constexpr char kDatabase[] = "PG::Database";
inline constexpr char kSchema[] = "PG::Schema";
inline constexpr char kTable[] = "PG::Table";
inline constexpr char kExtension[] = "PG::Extension";

inline PostgresServer& server() {
  static PostgresServer one{{"host all with_password 127.0.0.1/32 scram-sha-256", "log_statement = all"}};
  return one;
}

inline Db db(const std::string& name = "postgres") {
  return Db(server().dsn(value_in_dsn(name)) + " client_encoding=UTF8");
}

inline std::string dsn_of(const std::string& role) {
  return "host=127.0.0.1 dbname=postgres port=" + std::to_string(server().port()) + " user=" + role;
}

/// The plugin as a coordinator uses it: what is declared is put over what is there.
struct Pg : PostgresPlugin {
  explicit Pg(const std::string& dsn = server().dsn()) : PostgresPlugin(dsn) {}

  [[nodiscard]] bool is_there(const std::string& type, const std::string& id) const {
    const auto answer = read(type, id);
    if (std::holds_alternative<Item>(answer)) return true;
    CHECK(std::get<Error>(answer).code == Errc::kNotFound);
    return false;
  }
  [[nodiscard]] PropertyRule rules(const std::string& type) const {
    for (const auto& each : plugin.manifest().types) {
      if (each.name == type) return property_rules(each.schema).value();
    }
    return {};
  }

  [[nodiscard]] JobResult try_create(const std::string& type, const Json& declared) const {
    return run(type, CreateJob{"key", {declared.dump(), {}}, std::nullopt});
  }
  [[nodiscard]] Error create_error(const std::string& type, const Json& declared) const {
    const auto result = try_create(type, declared);
    REQUIRE(std::holds_alternative<Error>(result));
    return std::get<Error>(result);
  }
  /// Creates, and checks that it is then as declared.
  std::string create(const std::string& type, const Json& declared) const {
    const auto result = try_create(type, declared);
    if (const auto* error = std::get_if<Error>(&result)) FAIL(type << ": " << error->message);
    const auto& made = std::get<MutationResult>(result);
    check_made(type, made, declared);
    return made.native_id;
  }
  void check_made(const std::string& type, const MutationResult& made, const Json& declared) const {
    CHECK(made.status == MutationStatus::kSuccess);
    const auto there = item(type, made.native_id);
    CHECK(there.properties == made.properties);
    CHECK(there.uid == made.uid);
    CHECK(compare(rules(type), Json::parse(there.properties), declared).patch == Json::array());
  }

  [[nodiscard]] UpdateJob update_job(const std::string& type, const std::string& id, const Json& declared) const {
    const auto there = item(type, id);
    const auto prior = Json::parse(there.properties);
    const auto known = rules(type);
    return {"key",
            id,
            there.properties,
            {merge_declared(known, prior, declared).dump(), {}},
            compare(known, prior, declared).patch.dump(),
            {there.uid, hash_of(there.properties)}};
  }
  [[nodiscard]] Error update_error(const std::string& type, const std::string& id, const Json& declared) const {
    const auto before = item(type, id);
    const auto result = run(type, update_job(type, id, declared));
    REQUIRE(std::holds_alternative<Error>(result));
    CHECK(item(type, id) == before);  // nothing was applied
    return std::get<Error>(result);
  }
  void update(const std::string& type, const std::string& id, const Json& declared) const {
    INFO(declared.dump());
    const auto uid = item(type, id).uid;
    const auto result = run(type, update_job(type, id, declared));
    if (const auto* error = std::get_if<Error>(&result)) FAIL(type << " " << id << ": " << error->message);
    const auto& made = std::get<MutationResult>(result);
    CHECK(made.native_id == id);
    CHECK(made.uid == uid);
    check_made(type, made, declared);
  }

  [[nodiscard]] JobResult try_remove(const std::string& type, const std::string& id) const {
    return run(type, DeleteJob{"key", id, {}});
  }
  void remove(const std::string& type, const std::string& id) const {
    for (int i = 0; i < 2; ++i) {  // the second time it is gone already
      const auto result = try_remove(type, id);
      if (const auto* error = std::get_if<Error>(&result)) FAIL(type << " " << id << ": " << error->message);
      CHECK(std::get<MutationResult>(result).status == MutationStatus::kSuccess);
      CHECK_FALSE(is_there(type, id));
    }
  }
};

inline Json column(const std::string& name, const std::string& type) {
  return {{"name", name}, {"type", type}};
}

/// A database of a test's own.
struct Own : OwnDatabase {
  explicit Own(const std::string& called) : OwnDatabase(server().dsn(), called) {}
  [[nodiscard]] Json table(const std::string& called, const std::vector<Json>& columns) const {
    return {{"database", name}, {"schema", "public"}, {"name", called}, {"columns", columns}};
  }
};

}  // namespace muster::test
