#pragma once

#include <cstdint>
#include <functional>

#include "muster/worker.h"

/// FAKE: a cloud that is computed, with changes that are stored; for tests, demonstrations and load. Types and
/// configuration: README.md.
namespace muster::fake {

PluginInfo plugin_info();

/// Time of day, in milliseconds since 1970: what processes that share a state have in common.
using WallClock = std::function<std::int64_t()>;
std::int64_t wall_clock();

/// Adds the types and the inspection to a plugin made of plugin_info().
void add_types(Plugin& plugin, WallClock clock = wall_clock);

}  // namespace muster::fake
