#pragma once

#include "muster/worker.h"

/// FAKE: a cloud that is computed, not stored; for tests, demonstrations and load. Types and configuration: README.md.
namespace muster::fake {

PluginInfo plugin_info();

/// Adds the types and the inspection to a plugin made of plugin_info().
void add_types(Plugin& plugin);

}  // namespace muster::fake
