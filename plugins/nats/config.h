#pragma once

#include <string>
#include <string_view>

#include "muster/worker.h"

namespace muster::nats {

/// What a target's config says.
struct Config {
  BusAccess server;
  std::string domain;  // of JetStream; empty: the one of the server's account
};

/// `own`    how the worker reaches its own bus: holds where `json` names no url; `creds` or `nkey_seed` and `tls` of
/// the
///          target replace its login and its certificates also then
/// errors   kInvalidRequest, which names the key
Result<Config> parse_config(const Json& json, const BusAccess& own);

/// Identity of the JetStream behind a target: `nats:host:port[,...]`, in lower case and sorted, then `/domain` where
/// there is one. Never a user or a password.
std::string system_of(const BusAccess& server, std::string_view domain);

/// Whether `text` can stand as one token of a subject and be the name of a stream or consumer (1..255 bytes).
bool valid_name(std::string_view text);

}  // namespace muster::nats
