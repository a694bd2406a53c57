#pragma once

#include "muster/properties.h"
#include "schema/messages.h"

namespace muster {

/// A manifest as people read it: --manifest.
Json to_json(const Manifest& manifest);

}  // namespace muster
