#pragma once

#include <string>
#include <string_view>

#include "schema/messages.h"

namespace muster {

/// Goes on to the member `name` in a JSON Pointer (RFC 6901): `/` before it, and `~` and `/` in it written as they
/// must.
void append_token(std::string& pointer, std::string_view name);

/// RFC 6902, from one JSON object to another; a long one that is longer than `to` is all of that in place of the old.
/// Quick where both are in the canonical form.
JsonText patch_between(std::string_view from, std::string_view to);

/// Whether `object` has each member of the object `members`, with an equal value. Also false where that cannot be told
/// quickly: of what is not in the canonical form.
bool has_members(std::string_view object, std::string_view members);

}  // namespace muster
