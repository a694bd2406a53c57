#pragma once

#include "muster/worker.h"

/// PG: roles, databases, schemas, tables and extensions of a PostgreSQL server. Types, configuration and permissions:
/// README.md.
namespace muster::postgres {

PluginInfo plugin_info();

/// Adds the types and the inspection to a plugin made of plugin_info().
void add_types(Plugin& plugin);

}  // namespace muster::postgres
