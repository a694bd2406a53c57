#pragma once

#include "muster/worker.h"

/// FS: the directories, files and links below one root. Types, configuration and permissions: README.md.
namespace muster::fs {

PluginInfo plugin_info();

/// Adds the types and the inspection to a plugin made of plugin_info().
void add_types(Plugin& plugin);

}  // namespace muster::fs
