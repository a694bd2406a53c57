#pragma once

#include <string>

#include "muster/properties.h"

namespace muster::nats {

// What is declared, beside the JSON Schema of its type. Of each property `type`, `enum`, `minimum`, `minItems`,
// `pattern` (that of a name, but where there is a `format`), `not: {const}`, `default`, `readOnly`, `items` and the
// `properties` inside are looked at; what these do not name there is the server's affair.

/// What is declared, less its nulls: null is what the server takes where nothing is said.
/// errors   kInvalidRequest, which names the property
Result<Json> checked_declaration(const Json& schema, const Json& declared);

/// The properties that differ between an object and how it is wanted; null: as the server takes it by itself.
/// errors   kInvalidRequest: as above, or something cannot be changed in place
Result<Json> changes_of(const Json& schema, const Json& prior, const Json& desired);

/// Names of what is declared and is not so, with commas; empty when all is. Servers leave out what they do not know.
std::string not_kept(const Json& schema, const Json& declared, const Json& there);

}  // namespace muster::nats
