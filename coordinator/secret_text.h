#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/declaration.h"
#include "schema/messages.h"

namespace muster {

/// Splits a text of a declaration at its references: those of parse_secret_text(), `${resource:NAME.PATH}`, and
/// `${var:NAME}` or `${var:NAME:-DEFAULT}`, whose value comes from `variables` and is taken as it is.
/// errors   kInvalidRequest: something that begins with `${` is none of these; a variable without a value
Result<std::vector<TextPart>> parse_reference_text(std::string_view text,
                                                   const std::map<std::string, std::string>& variables);

/// The text that was split into these parts; a variable stands as its value.
std::string reference_text(const std::vector<TextPart>& parts);

/// Splits a user's text at its secret references: `${env:NAME}`, `${file:/absolute/path}`, `${secret:NAME}`; `$${` is a
/// literal `${`. Text without references gives at most one literal part.
/// errors   kInvalidRequest: something that begins with `${` is none of these
Result<std::vector<SecretPart>> parse_secret_text(std::string_view text);

/// Whether the text holds what looks like a reference, well-formed or not: it may stand in few places only.
bool mentions_secret(std::string_view text);

}  // namespace muster
