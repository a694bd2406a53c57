#pragma once

#include <map>
#include <string>
#include <string_view>

#include "coordinator/config.h"

namespace muster::cli {

using Environment = std::map<std::string, std::string>;
Environment process_environment();

/// The flags that every verb has, as given; empty: not given.
struct Flags {
  std::string nats;
  std::string data_dir;
  std::string prefix;
  std::string config;  // up, coordinator
};

/// Name of the file in the data directory that says where a running `muster up` is.

/// $XDG_STATE_HOME/muster, else ~/.local/state/muster; /var/lib/muster for root.
std::string default_data_dir(const Environment& env, bool root);

/// `$MUSTER_CONFIG`, else `./muster.yaml` where there is one, else nothing.
std::string default_config(const Environment& env);

/// Everything that is configured: file < environment < flags, data_dir filled in and absolute. nats.url stays empty
/// when nobody gave one.
ConfigResult settle(const Flags& flags, const Environment& env);

/// Makes the data directory, for its owner only, where it is not there yet.
Result<void> make_data_dir(const std::string& path);

/// What `muster up` keeps of where its fleet is: a line with the URL, then one `key=value` for the prefix and for each
/// file that one signs in with, where they are not the default.
std::string fleet_place(Config config);

/// Fills in nats.url where it is empty: what `muster up` keeps in the data directory, else the port of NATS on this
/// machine. With the former, what stands beside it holds where nothing else was given.
/// `config`   what settle() made of `flags` and `env`
Result<void> find_fleet(Config& config, const Flags& flags, const Environment& env);

}  // namespace muster::cli
