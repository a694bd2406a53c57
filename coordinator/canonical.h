#pragma once

#include <string>
#include <string_view>

#include "schema/messages.h"

namespace muster {

/// Whether `text` is a JSON object in canonical form that this check can prove in one pass: keys sorted and unique, no
/// white space, integers only, no escapes that a plain character could replace. A `false` proves nothing.
bool is_canonical_object(std::string_view text);

/// The canonical form of a JSON object: keys sorted bytewise, no white space, numbers and escapes in one spelling.
/// errors   kMalformed: no JSON, or no object; the message says where
Result<JsonText> canonical_object(std::string_view text);

/// `text` as a JSON string with its quotes, as the canonical form spells it, appended to `out`. `text` is UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace muster
