#include "ddl.h"

#include <algorithm>
#include <array>

namespace muster::postgres {
namespace {

std::string name_in(Session& session, const Json& object, const char* key = "name") {
  return session.identifier(object.at(key).get<std::string>());
}

/// What differs between `before` and `wanted`.
Json news(const Json& before, const Json& wanted) {
  Json changed = Json::object();
  for (const auto& [name, value] : wanted.items()) {
    if (before.value(name, Json()) != value) changed[name] = value;
  }
  return changed;
}

/// Only what is said: some of these words are for superusers, whatever their value.
Result<std::string> role_options(Session& session, const std::string& role, const Json& wanted) {
  static constexpr std::array<std::pair<const char*, const char*>, 4> kFlags{
      {{"login", "LOGIN"}, {"superuser", "SUPERUSER"}, {"createdb", "CREATEDB"}, {"createrole", "CREATEROLE"}}};
  std::string options;
  for (const auto& [key, word] : kFlags) {
    if (wanted.contains(key)) options += (wanted[key] == true ? " " : " NO") + std::string(word);
  }
  if (wanted.contains("connection_limit")) options += " CONNECTION LIMIT " + wanted["connection_limit"].dump();
  if (wanted.contains("password")) {
    const auto verifier = session.verifier(wanted["password"].get<std::string>(), role);
    if (!verifier) return verifier.error();
    options += " PASSWORD " + session.literal(*verifier);
  }
  return options;
}

void change_memberships(Statements& run, Session& session, const std::string& role, const Json& before,
                        const Json& wanted) {
  const auto each_not_in = [&](const Json& some, const Json& others, const std::string& verb, const char* word) {
    for (const auto& group : some) {
      if (std::ranges::find(others, group) != others.end()) continue;
      run.run(verb + session.identifier(group.get<std::string>()) + word + session.identifier(role));
    }
  };
  each_not_in(before, wanted, "REVOKE ", " FROM ");
  each_not_in(wanted, before, "GRANT ", " TO ");
}

Result<void> change_owner(Session& session, const char* noun, const Json& before, const Json& wanted) {
  Statements run(session);
  run.made();
  if (news(before, wanted).contains("owner")) {
    run.run("ALTER " + std::string(noun) + " " + name_in(session, before) + " OWNER TO " +
            name_in(session, wanted, "owner"));
  }
  return run.result();
}

}  // namespace

void Statements::run(const std::string& sql) {
  if (!result_) return;
  auto done = session_.query(sql);
  if (!done) return refuse(std::move(done.error()));
  made_ = true;
}

void Statements::refuse(Error error) {
  if (!result_) return;
  const bool other = error.code == Errc::kAlreadyExists || error.code == Errc::kNotFound;
  // Not there before the statement, and there before its end: somebody else did the same.
  const bool raced = error.code == Errc::kAlreadyExists && session_.sqlstate() == kUniqueViolation;
  if (made_ && other) error.code = raced ? Errc::kConflict : Errc::kInvalidRequest;
  result_ = std::move(error);
}

Result<void> create_role(Session& session, const Json& declared) {
  const auto name = declared.at("name").get<std::string>();
  const auto options = role_options(session, name, declared);
  if (!options) return options.error();
  Statements run(session);
  run.run("CREATE ROLE " + session.identifier(name) + *options);
  change_memberships(run, session, name, Json::array(), declared.value("member_of", Json::array()));
  return run.result();
}

Result<void> change_role(Session& session, const Json& before, const Json& wanted) {
  const auto name = before.at("name").get<std::string>();
  const auto changed = news(before, wanted);
  const auto options = role_options(session, name, changed);
  if (!options) return options.error();
  Statements run(session);
  run.made();
  if (!options->empty()) run.run("ALTER ROLE " + session.identifier(name) + *options);
  if (changed.contains("member_of")) {
    change_memberships(run, session, name, before.at("member_of"), changed["member_of"]);
  }
  return run.result();
}

/// Of template0: nobody can be connected to it, which would make this fail, and what somebody left in template1 does
/// not come along.
Result<void> create_database(Session& session, const Json& declared) {
  auto sql = "CREATE DATABASE " + name_in(session, declared) + " TEMPLATE template0";
  if (declared.contains("owner")) sql += " OWNER " + name_in(session, declared, "owner");
  if (declared.contains("encoding")) {
    const auto encoding = declared["encoding"].get<std::string>();
    const auto rows = session.query("SELECT pg_encoding_to_char(pg_char_to_encoding($1::name))", {encoding});
    if (!rows) return rows.error();
    const auto& known = rows->front().front();
    if (known != encoding) {
      return invalid_request(known.empty() ? "encoding: there is no " + encoding
                                           : "encoding: declare " + known + ", which is PostgreSQL's name of it");
    }
    sql += " ENCODING " + session.literal(encoding);
  }
  Statements run(session);
  run.run(sql);
  return run.result();
}

Result<void> change_database(Session& session, const Json& before, const Json& wanted) {
  return change_owner(session, "DATABASE", before, wanted);
}

Result<void> create_schema(Session& session, const Json& declared) {
  auto sql = "CREATE SCHEMA " + name_in(session, declared);
  if (declared.contains("owner")) sql += " AUTHORIZATION " + name_in(session, declared, "owner");
  Statements run(session);
  run.run(sql);
  return run.result();
}

Result<void> change_schema(Session& session, const Json& before, const Json& wanted) {
  return change_owner(session, "SCHEMA", before, wanted);
}

/// Into `public` where nothing is said: the session's own search_path has no schema for it.
Result<void> create_extension(Session& session, const Json& declared) {
  auto sql = "CREATE EXTENSION " + name_in(session, declared);
  if (declared.contains("schema")) sql += " SCHEMA " + name_in(session, declared, "schema");
  if (declared.contains("version")) sql += " VERSION " + session.literal(declared["version"].get<std::string>());
  if (auto set = session.query("SET LOCAL search_path = public"); !set) return set.error();
  Statements run(session);
  run.run(sql);
  return run.result();
}

Result<void> change_extension(Session& session, const Json& before, const Json& wanted) {
  Statements run(session);
  run.made();
  if (const auto changed = news(before, wanted); changed.contains("version")) {
    run.run("ALTER EXTENSION " + name_in(session, before) + " UPDATE TO " +
            session.literal(changed["version"].get<std::string>()));
  }
  return run.result();
}

}  // namespace muster::postgres
