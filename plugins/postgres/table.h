#pragma once

#include <string>

#include "muster/properties.h"
#include "session.h"

namespace muster::postgres {

/// `"schema"."table"`, as statements have it.
std::string table_name(Session& session, const std::string& schema, const std::string& table);

// As those of ddl.h. Types, defaults and definitions go into statements as they are declared: types only after the
// server has read them as types, the others only when they are self-contained (expression.h).

Result<void> create_table(Session& session, const Json& declared);
/// Drops first and adds last: constraints, then columns, then what changes in columns, then constraints again. A column
/// takes another type where PostgreSQL can cast what it holds.
Result<void> change_table(Session& session, const Json& before, const Json& wanted);

}  // namespace muster::postgres
