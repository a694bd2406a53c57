#include "coordinator/cli/settings.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "worker_sdk/bus/fleet_file.h"

namespace muster::cli {
namespace {

std::string value_of(const Environment& env, const std::string& name) {
  const auto it = env.find(name);
  return it == env.end() ? std::string() : it->second;
}

}  // namespace

Environment process_environment() {
  Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return env;
}

std::string default_data_dir(const Environment& env, bool root) {
  if (root) return "/var/lib/muster";
  const std::string state = value_of(env, "XDG_STATE_HOME");
  if (!state.empty()) return state + "/muster";
  return value_of(env, "HOME") + "/.local/state/muster";
}

std::string default_config(const Environment& env) {
  if (std::string named = value_of(env, "MUSTER_CONFIG"); !named.empty()) return named;
  std::error_code ignored;
  return std::filesystem::exists("muster.yaml", ignored) ? "muster.yaml" : "";
}

ConfigResult settle(const Flags& flags, const Environment& env) {
  ConfigResult result = load_config(flags.config, env);
  Environment given;  // flags obey the rules of the environment's variables
  if (!flags.nats.empty()) given["MUSTER_NATS_URL"] = flags.nats;
  if (!flags.prefix.empty()) given["MUSTER_PREFIX"] = flags.prefix;
  if (!flags.data_dir.empty()) given["MUSTER_DATA_DIR"] = flags.data_dir;
  const ConfigResult from_flags = parse_config("", "", given);
  for (ConfigMistake mistake : from_flags.mistakes) {
    mistake.file = mistake.file == "$MUSTER_NATS_URL" ? "--nats" : "--prefix";
    result.mistakes.push_back(std::move(mistake));
  }
  Config& config = result.config;
  if (!flags.nats.empty()) config.nats.url = from_flags.config.nats.url;
  if (!flags.prefix.empty()) config.prefix = from_flags.config.prefix;
  if (!flags.data_dir.empty()) config.data_dir = flags.data_dir;
  if (config.data_dir.empty()) config.data_dir = default_data_dir(env, geteuid() == 0);
  config.data_dir = std::filesystem::absolute(config.data_dir).lexically_normal();
  return result;
}

Result<void> make_data_dir(const std::string& path) {
  std::error_code error;
  if (std::filesystem::create_directories(path, error)) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  }
  if (error) return Error{Errc::kInternalFailure, path + " cannot be made: " + error.message()};
  return {};
}

std::string fleet_place(Config config) {
  auto& nats = config.nats;
  for (auto* file : {&nats.creds, &nats.nkey_seed, &nats.tls_ca, &nats.tls_cert, &nats.tls_key}) {
    if (!file->empty()) *file = std::filesystem::absolute(*file).lexically_normal();
  }
  std::string lines = nats.url + "\n";
  Config usual;
  for (std::size_t i = 0; const auto& [key, value] : beside_url(config.prefix, nats)) {
    if (*value != *beside_url(usual.prefix, usual.nats)[i++].second) lines += std::string(key) + "=" + *value + "\n";
  }
  return lines;
}

Result<void> find_fleet(Config& config, const Flags& flags, const Environment& env) {
  if (!config.nats.url.empty()) return {};
  Config there, usual;
  if (auto read = read_fleet_file(config.data_dir, there.prefix, there.nats); !read) return read;
  config.nats.url = there.nats.url;
  // One signs in in one way, and a certificate has a key of its own: what is given is not mixed with what is there.
  if (!config.nats.creds.empty() || !config.nats.nkey_seed.empty()) there.nats.creds = there.nats.nkey_seed = {};
  if (!config.nats.tls_cert.empty()) there.nats.tls_cert = there.nats.tls_key = {};
  // Who asks for the usual one by its name does not want another.
  if (!flags.prefix.empty() || !value_of(env, "MUSTER_PREFIX").empty()) there.prefix = config.prefix;
  if (!value_of(env, "MUSTER_NATS_INBOX").empty()) there.nats.inbox = config.nats.inbox;
  for (std::size_t i = 0; const auto& [key, value] : beside_url(config.prefix, config.nats)) {
    if (*value == *beside_url(usual.prefix, usual.nats)[i].second) {
      *value = *beside_url(there.prefix, there.nats)[i].second;
    }
    ++i;
  }
  return {};
}

}  // namespace muster::cli
