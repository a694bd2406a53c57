#pragma once

#include "muster/worker.h"

/// NATS: the streams, consumers and key-value buckets of a JetStream account. Types, configuration and permissions:
/// README.md.
namespace muster::nats {

PluginInfo plugin_info();

/// Adds the types and the inspection to a plugin made of plugin_info().
/// `own`  how the worker reaches its own bus, for targets that name no other; read at each job, so it must outlive them
void add_types(Plugin& plugin, const BusAccess& own);

}  // namespace muster::nats
