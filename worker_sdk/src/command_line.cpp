#include "command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "manifest_json.h"
#include "schema/subjects.h"
#include "worker_sdk/bus/fleet_file.h"

namespace muster {
namespace {

constexpr Millis kConnectTimeout{2000};  // of one try; the worker tries again
constexpr std::size_t kMaxIdLetters = 64;

std::filesystem::path default_data_dir() {
  if (geteuid() == 0) return "/var/lib/muster";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0') {
    return std::filesystem::path(state) / "muster";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "." : home) / ".local/state/muster";
}

/// What `muster up` says of its fleet in the data directory. What was given is not mixed with it: one signs in in one
/// way, and a certificate has a key of its own.
Result<void> find_fleet(const CLI::App& app, const std::filesystem::path& data_dir, WorkerOptions& options) {
  auto there = options.nats;
  auto prefix = options.prefix;
  if (auto read = read_fleet_file(data_dir, prefix, there); !read) return read;
  const auto given = [&](const char* name) { return app.get_option(name)->count() > 0; };
  auto& nats = options.nats;
  if (given("--inbox")) there.inbox = nats.inbox;
  if (given("--tls-ca")) there.tls_ca = nats.tls_ca;
  if (given("--creds") || given("--nkey-seed")) {
    there.creds = nats.creds;
    there.nkey_seed = nats.nkey_seed;
  }
  if (given("--tls-cert") || given("--tls-key")) {
    there.tls_cert = nats.tls_cert;
    there.tls_key = nats.tls_key;
  }
  if (!given("--prefix")) options.prefix = prefix;
  nats = std::move(there);
  return {};
}

/// It also names a file.
bool valid_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxIdLetters &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
}

CLI::Validator check(bool (*valid)(std::string_view), const char* what) {
  return {[valid, what](std::string& text) { return valid(text) ? std::string() : "'" + text + "' is no " + what; },
          ""};
}

std::string about(const PluginInfo& plugin, const std::string& program) {
  return (plugin.description.empty() ? "Worker of namespace " + plugin.ns : plugin.description) +
         "\n\nServes the types of " + plugin.ns +
         " to a Muster fleet: announces itself on NATS, runs the jobs it is sent, "
         "drains on SIGTERM.\n\nExample:\n  " +
         program + " --nats nats://bus.example:4222 --slots 8 --allow-env 'PG_*'";
}

}  // namespace

std::variant<WorkerOptions, int> parse_command_line(int argc, const char* const* argv, const Plugin& plugin) {
  WorkerOptions options;
  options.prefix = "muster";
  options.pool = kDefaultPool;
  options.nats.connect_timeout = kConnectTimeout;
  std::filesystem::path data_dir = default_data_dir();
  bool verbose = false, quiet = false, print_manifest = false;

  const std::string program = "muster-plugin-" + plugin.info().name;
  CLI::App app(about(plugin.info(), program), program);
  app.set_version_flag("--version", program + " " + plugin.info().version);
  app.add_option("--nats", options.nats.url, "NATS server; else nats.url in the data directory, else localhost")
      ->envname("MUSTER_NATS_URL");
  app.add_option("--prefix", options.prefix, "First token of all subjects")
      ->envname("MUSTER_PREFIX")
      ->capture_default_str()
      ->check(check(valid_prefix, "prefix"));
  app.add_option("--pool", options.pool, "Pool of workers that stand in the same place")
      ->capture_default_str()
      ->check(check(valid_namespace, "pool"));
  const auto add_file = [&app](const char* name, const char* variable, std::string& path, const char* help) {
    app.add_option(name, path, help)->envname(variable)->check(CLI::ExistingFile);
  };
  app.add_option("--slots", options.slots, "Jobs to run at once")->capture_default_str()->check(CLI::Range(1, 1024));
  app.add_option("--data-dir", data_dir, "Where nats.url is looked for, and what the worker keeps")
      ->envname("MUSTER_DATA_DIR")
      ->capture_default_str();
  app.add_option("--state-dir", options.state_dir,
                 "Where results of changes wait until a coordinator has them; else `workers` in the data directory")
      ->envname("MUSTER_STATE_DIR");
  add_file("--creds", "MUSTER_NATS_CREDS", options.nats.creds, "NATS credentials file");
  add_file("--nkey-seed", "MUSTER_NATS_NKEY_SEED", options.nats.nkey_seed, "File with an NKey seed");
  app.add_option("--inbox", options.nats.inbox, "What the subjects begin with on which answers come")
      ->envname("MUSTER_NATS_INBOX")
      ->capture_default_str()
      ->check(check(valid_prefix, "inbox"));
  add_file("--tls-ca", "MUSTER_NATS_TLS_CA", options.nats.tls_ca, "PEM file of the certificate authority");
  add_file("--tls-cert", "MUSTER_NATS_TLS_CERT", options.nats.tls_cert, "PEM file of the client certificate");
  add_file("--tls-key", "MUSTER_NATS_TLS_KEY", options.nats.tls_key, "PEM file of its key");
  app.add_option("--allow-env", options.secrets.env, "Variables that configuration may refer to; * matches any text");
  app.add_option("--allow-file", options.secrets.files,
                 "Files, or directories with files, that configuration may refer to");
  app.add_option("--secret-dir", options.secrets.secret_dir, "Directory of ${secret:NAME}")
      ->check(CLI::ExistingDirectory);
  app.add_option("--id", options.id, "Id by which its supervisor knows it; another one at each start")
      ->envname("MUSTER_WORKER_ID")
      ->check(check(valid_id, "id: 1 to 64 letters and digits"));
  app.add_flag("--manifest", print_manifest, "Print what the plugin announces as JSON, and exit");
  app.add_flag("-v,--verbose", verbose, "Log each message");
  app.add_flag("-q,--quiet", quiet, "Log warnings and errors only")->excludes("--verbose");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (print_manifest) {
    std::cout << to_json(plugin.manifest()).dump(2) << '\n' << std::flush;
    return std::cout ? 0 : 1;
  }
  if (options.nats.url.empty()) {
    if (auto found = find_fleet(app, data_dir, options); !found) {
      std::cerr << program << ": " << found.error().message << '\n';
      return 1;
    }
  }
  if (options.state_dir.empty()) options.state_dir = data_dir / "workers";
  options.nats.name = program + " " + options.pool;
  options.log_level = verbose ? spdlog::level::debug : quiet ? spdlog::level::warn : spdlog::level::info;
  return options;
}

}  // namespace muster
