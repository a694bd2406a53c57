#pragma once

#include <string>
#include <string_view>

namespace muster::postgres {

/// Whether SQL text, put between parentheses or at the end of a statement, is one thing that stays there: its brackets,
/// strings and quoted names end, and outside of them it has no comma, semicolon or comment. More than that is the
/// server's affair. Strings are as with standard_conforming_strings; E'' and $$ are refused, which the catalogs never
/// give back either.
bool is_self_contained(std::string_view sql);

/// What stands in a column's `default`.
struct ColumnDefault {
  enum class Kind { kNone, kExpression, kIdentity, kStored };
  Kind kind = Kind::kNone;
  std::string sql;  // the expression, or ALWAYS or BY DEFAULT of an identity
};
ColumnDefault parse_default(std::string_view text);

}  // namespace muster::postgres
