#pragma once

#include <string>

#include "muster/properties.h"

namespace muster::postgres {

// What is declared, beside the JSON Schema of its type: `type`, `enum`, `properties` (no others), `required`, `items`,
// `default`, and `maxLength`, in bytes, as PostgreSQL counts the length of names, which it cuts silently.

/// The declaration with the defaults that its nulls stand for.
/// errors   kInvalidRequest, which names the place; also of a null where there is no default
Result<Json> checked_declaration(const Json& schema, const Json& declared);

/// The properties that differ between an object and how it is wanted, with their wanted values. Absence is the default.
/// errors   kInvalidRequest: as above; something cannot be changed in place, or not be absent
Result<Json> changes_of(const Json& schema, const Json& prior, const Json& desired);

/// The first thing that is declared and is not so; empty when all is. Arrays have no order; objects in them are told
/// apart by `name`. A `password` is not there to be compared.
std::string mismatch(const Json& declared, const Json& there);

}  // namespace muster::postgres
