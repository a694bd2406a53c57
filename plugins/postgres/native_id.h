#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::postgres {

/// The names that a native id (`db."Odd.Schema".t`) is made of: parts between dots, each quoted as quote_ident() does.
/// Which plain words are quoted too is the server's affair (its keywords), so both forms of a plain word are taken.
/// returns   nullopt for what no server writes: empty parts, plain parts of other than a-z, 0-9 and _, NUL bytes
std::optional<std::vector<std::string>> parse_native_id(std::string_view id);

/// The first part as it stands there, quotes and all; empty for what is no native id.
std::string_view first_part(std::string_view id);

}  // namespace muster::postgres
