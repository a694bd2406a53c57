#include "change.h"

#include <algorithm>

#include "declared.h"
#include "native_id.h"
#include "table.h"

namespace muster::postgres {
namespace {

constexpr std::string_view kNoTable = "42809";  // something else, which cannot be locked, has its name

/// The names that find an object, and the database that it is in.
struct Address {
  std::string database, scope, name;
};

Result<Address> address_of(const Kind& kind, const std::string& native_id) {
  const auto names = parse_native_id(native_id);
  if (!names || names->size() != kind.names()) {
    return invalid_request("no native id of a " + std::string(kind.type) + ": " + native_id);
  }
  return Address{kind.home == Home::kServer ? "" : names->front(), kind.home == Home::kSchema ? (*names)[1] : "",
                 names->back()};
}

Address declared_address(const Kind& kind, const Json& declared) {
  const auto text = [&](const char* key) { return declared.at(key).get<std::string>(); };
  return {kind.home == Home::kServer ? "" : text("database"), kind.home == Home::kSchema ? text("schema") : "",
          text("name")};
}

/// A session for a change, and where its object is.
struct Open {
  std::unique_ptr<Session> session;
  Place place;
};

Result<Open> open(const Kind& kind, const TargetInfo& target, const std::string& database, Session::Mode mode,
                  JobContext& context) {
  const auto dsn = parse_config(target.config);
  if (!dsn) return dsn.error();
  auto session = Session::open(*dsn, database, mode, context);
  if (!session) return session.error();
  if (*session == nullptr) {
    return database.empty() ? invalid_request("config.dsn: its database takes no connections")
                            : unsupported("database " + database + " takes no connections");
  }
  Open opened{std::move(*session), {}};
  if (kind.home == Home::kServer) return opened;
  auto part = opened.session->query("SELECT quote_ident(current_database())");
  if (!part) return part.error();
  opened.place = {database, part->front().front()};
  return opened;
}

/// PostgreSQL makes and drops databases in no transaction.
Session::Mode mode_of(const Kind& kind) {
  return &kind == &kDatabase ? Session::Mode::kSingle : Session::Mode::kChange;
}

/// The object as the precondition wants it; locked where it is a table, until the session ends.
Result<Resource> hold(const Kind& kind, const Open& opened, const Address& at, const std::string& native_id,
                      const Precondition& precondition) {
  const auto can_be = can_name(*opened.session, at.scope + at.name);
  if (!can_be) return can_be.error();
  if (!*can_be) return not_found(native_id + " has characters that its database has not");
  if (&kind == &kTable) {
    const auto locked = opened.session->query("LOCK TABLE ONLY " + table_name(*opened.session, at.scope, at.name) +
                                              " IN ACCESS EXCLUSIVE MODE");
    if (!locked && opened.session->sqlstate() == kNoTable) return not_found(native_id + " is no table any more");
    if (!locked) return locked.error();
  }
  auto there = find(kind, *opened.session, opened.place, at.scope, at.name);
  if (!there) return there.error();
  if (!*there) return not_found("no " + std::string(kind.type) + " " + native_id);
  if ((*there)->native_id != native_id) {
    return invalid_request(native_id + " is " + (*there)->native_id + " at this server");
  }
  if (violates(precondition, **there)) return conflict(native_id + " is not as it was when this was planned");
  return std::move(**there);
}

/// A partition would go with its table unasked.
Result<void> check_no_partitions(const Open& opened, const Address& at, const std::string& native_id) {
  const auto partition = opened.session->query(
      "SELECT quote_ident(n.nspname) || '.' || quote_ident(p.relname) FROM pg_inherits i JOIN pg_class p ON p.oid = "
      "i.inhrelid JOIN pg_namespace n ON n.oid = p.relnamespace WHERE p.relispartition AND i.inhparent = $1::regclass "
      "ORDER BY 1 LIMIT 1",
      {table_name(*opened.session, at.scope, at.name)});
  if (!partition) return partition.error();
  if (partition->empty()) return {};
  return conflict(native_id + " has partitions, which are tables that are not deleted along with it: " +
                  partition->front().front());
}

/// Beside what was to be changed everything is as before: nobody else changed the object meanwhile.
bool untouched(const Json& before, const Json& after, const Json& wanted) {
  return std::ranges::all_of(before.items(), [&](const auto& property) {
    return wanted.contains(property.key()) || after.value(property.key(), Json()) == property.value();
  });
}

/// Runs `act`. What it finds there already may be something else that has the name, or one that the object brings
/// along; what it misses may be something else too, as where an event trigger does more: then nothing is said of the
/// object. `told`  kAlreadyExists or kNotFound: what is believed of an error only when a look at the object shows the
/// same
template <typename Act>
Result<void> attempt(const Kind& kind, const Open& opened, const Address& at, Errc told, Act act) {
  auto& session = *opened.session;
  const bool in_transaction = mode_of(kind) == Session::Mode::kChange;
  if (in_transaction) {
    if (auto set = session.query("SAVEPOINT attempt"); !set) return set.error();
  }
  Result<void> done = act();
  if (done || done.error().code != told) return done;
  if (in_transaction) {
    if (auto back = session.query("ROLLBACK TO SAVEPOINT attempt"); !back) return back.error();
  }
  const auto there = find(kind, session, opened.place, at.scope, at.name);
  if (!there) return there.error();
  const bool holds = there->has_value() == (told == Errc::kAlreadyExists);
  return holds ? done : invalid_request(done.error().message);
}

Result<void> drop(const Kind& kind, const Open& opened, const Address& at) {
  auto& session = *opened.session;
  const auto name = kind.home == Home::kSchema ? table_name(session, at.scope, at.name) : session.identifier(at.name);
  if (auto dropped = session.query("DROP " + std::string(kind.noun) + " " + name); !dropped) return dropped.error();
  return {};
}

}  // namespace

Result<Mutation> create(const Kind& kind, const CreateRequest& request, JobContext& context) {
  const auto declared = checked_declaration(Json::parse(kind.schema), request.properties);
  if (!declared) return declared.error();
  const auto at = declared_address(kind, *declared);
  auto opened = open(kind, request.target, at.database, mode_of(kind), context);
  if (!opened) return opened.error();
  const bool stays = mode_of(kind) == Session::Mode::kSingle;  // whatever comes once it is made
  const auto made =
      attempt(kind, *opened, at, Errc::kAlreadyExists, [&] { return kind.create(*opened->session, *declared); });
  if (!made) return made.error();
  auto there = find(kind, *opened->session, opened->place, at.scope, at.name);
  if (!there) return stays ? not_stabilized("was made, and then: " + there.error().message) : there.error();
  if (!*there) return failure(Errc::kInternalFailure, "what was made is not there");
  if (auto other = mismatch(*declared, (*there)->properties.json()); !other.empty()) {
    return stays ? not_stabilized(other) : invalid_request(other);
  }
  if (auto committed = opened->session->commit(); !committed) return committed.error();
  return Mutation(std::move(**there));
}

Result<Mutation> update(const Kind& kind, const UpdateRequest& request, JobContext& context) {
  const auto wanted = changes_of(Json::parse(kind.schema), request.prior, request.desired);
  if (!wanted) return wanted.error();
  const auto at = address_of(kind, request.native_id);
  if (!at) return at.error();
  auto opened = open(kind, request.target, at->database, Session::Mode::kChange, context);
  if (!opened) return opened.error();
  const auto before = hold(kind, *opened, *at, request.native_id, request.precondition);
  if (!before) return before.error();
  const auto properties = before->properties.json();
  if (auto changed = kind.change(*opened->session, properties, *wanted); !changed) return changed.error();
  auto there = find(kind, *opened->session, opened->place, at->scope, at->name);
  if (!there) return there.error();
  if (!*there || (*there)->uid != before->uid) return conflict(request.native_id + " became another meanwhile");
  const auto after = (*there)->properties.json();
  if (auto other = mismatch(*wanted, after); !other.empty()) return invalid_request(other);
  // A table is locked, and its parts hang together: a primary key makes columns NOT NULL.
  if (&kind != &kTable && !untouched(properties, after, *wanted)) {
    return conflict(request.native_id + " was changed meanwhile");
  }
  if (auto committed = opened->session->commit(); !committed) return committed.error();
  return Mutation(std::move(**there));
}

Result<Mutation> remove(const Kind& kind, const DeleteRequest& request, JobContext& context) {
  const auto at = address_of(kind, request.native_id);
  if (!at) return at.error();
  auto opened = open(kind, request.target, at->database, mode_of(kind), context);
  if (!opened) return opened.error();
  if (const auto there = hold(kind, *opened, *at, request.native_id, request.precondition); !there) {
    return there.error();
  }
  if (&kind == &kTable) {
    if (auto alone = check_no_partitions(*opened, *at, request.native_id); !alone) return alone.error();
  }
  const auto dropped = attempt(kind, *opened, *at, Errc::kNotFound, [&] { return drop(kind, *opened, *at); });
  if (!dropped) return dropped.error();
  if (auto committed = opened->session->commit(); !committed) return committed.error();
  return Mutation::deleted();
}

}  // namespace muster::postgres
