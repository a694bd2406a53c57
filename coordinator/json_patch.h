#pragma once

#include <string_view>

#include "schema/messages.h"

namespace muster {

/// RFC 6902, from one JSON object to another; a long one that is longer than `to` is all of that in place of the old.
/// Quick where both are in the canonical form.
JsonText patch_between(std::string_view from, std::string_view to);

}  // namespace muster
