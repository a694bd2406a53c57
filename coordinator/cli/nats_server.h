#pragma once

#include <string>

#include "coordinator/cli/child.h"
#include "schema/result.h"

namespace muster::cli {

/// A nats-server of our own: on loopback, with JetStream below the data directory, one user with a random password.
struct NatsServer {
  Command command;
  std::string url;  // with the password
};

/// Writes the server's configuration into `data_dir` and says how to start it. The port is the one it had last time,
/// when that is free within two seconds; else another one. So is the password, unless its file was removed.
/// errors   kNotFound: no nats-server is installed; kInternalFailure: the directory cannot be written
Result<NatsServer> prepare_nats_server(const std::string& data_dir, const Environment& env);

}  // namespace muster::cli
