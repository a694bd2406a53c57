// The verb that writes a nats-server's users.

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <spdlog/fmt/fmt.h>

#include "coordinator/cli/auth.h"
#include "coordinator/cli/command_line.h"
#include "coordinator/cli/local_verbs.h"
#include "coordinator/cli/replace_file.h"
#include "worker_sdk/bus/nkey.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

struct AuthOptions {
  fs::path out;
  std::vector<std::string> workers;  // NS or NS/POOL
};

int refuse(Session& session, const std::string& message, int status) {
  session.screen.err << "muster: " << escape(message) << std::endl;
  return status;
}

WorkerPlace parse_place(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return {text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

/// The public key of a user. Its seed is made where there is none, so that users keep their keys.
Result<std::string> key_of(const fs::path& seed_file) {
  std::error_code ignored;
  std::string seed;
  if (fs::exists(seed_file, ignored)) {
    const Result<std::string> kept = read_file(seed_file);
    if (!kept) return Error{kept.error().code, seed_file.string() + ": " + kept.error().message};
    seed = *kept;
  } else {
    seed = make_nkey_seed() + "\n";
    if (auto written = replace_file(seed_file, seed, kPrivate); !written) return written.error();
  }
  Result<std::string> key = nkey_public_of_seed(seed);
  if (!key) return Error{key.error().code, seed_file.string() + ": " + key.error().message};
  return key;
}

/// As a shell and systemd read it in a file of variables: in quotes only where it needs them, which others would keep.
std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain = "/._-+:@%,";
  const bool plain = std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') out += '\\';
    out += c;
  }
  return out + '"';
}

/// What a process of the user wants in its environment.
std::string environment_of(const BusUser& user, const fs::path& seed_file, const std::string& prefix) {
  return fmt::format("MUSTER_NATS_NKEY_SEED={}\nMUSTER_NATS_INBOX={}\nMUSTER_PREFIX={}\n", quoted(seed_file.string()),
                     user.inbox, prefix);
}

std::string server_conf(const fs::path& directory) {
  return fmt::format(
      "# Yours to change: `muster auth nats-conf` writes this file only where there is none.\n"
      "listen: \"127.0.0.1:4222\"  # another address only with `tls`\n"
      "jetstream {{ store_dir: {} }}\n"
      "write_deadline: \"2s\"\n"
      "include users.conf\n",
      Json((directory / "jetstream").string()).dump());
}

/// Writes it all and tells of each user.
Result<Json> write_users(const fs::path& directory, const Subjects& subjects, const std::vector<BusUser>& users) {
  std::error_code error;
  const mode_t mask = umask(0);
  umask(mask | S_IWGRP | S_IWOTH);  // who can write there could put another list of users in its place
  fs::create_directories(directory, error);
  umask(mask);
  if (error) return Error{Errc::kInternalFailure, directory.string() + " cannot be made: " + error.message()};
  std::map<std::string, std::string> keys;
  Json rows = Json::array();
  for (const BusUser& user : users) {
    const fs::path seed_file = directory / (user.name + ".nk");
    Result<std::string> key = key_of(seed_file);
    if (!key) return key.error();
    auto written =
        replace_file(directory / (user.name + ".env"), environment_of(user, seed_file, subjects.prefix()), kPublic);
    if (!written) return written.error();
    rows.push_back({{"user", user.name},
                    {"nkey", *key},
                    {"seed", seed_file.string()},
                    {"inbox", user.inbox},
                    {"publish", user.publish},
                    {"subscribe", user.subscribe}});
    keys[user.name] = std::move(*key);
  }
  const std::string users_text = "# Made by `muster auth nats-conf`; another run writes it anew and keeps the keys.\n" +
                                 accounts_conf(subjects, users, keys);
  if (auto written = replace_file(directory / "users.conf", users_text, kPublic); !written) return written.error();
  if (const fs::path server = directory / "nats.conf"; !fs::exists(server, error)) {
    if (auto written = replace_file(server, server_conf(directory), kPublic); !written) return written.error();
  }
  return rows;
}

int nats_conf(Session& session, const AuthOptions& options) {
  Flags& flags = session.common.flags;
  if (flags.config.empty()) flags.config = default_config(session.env);
  const ConfigResult settings = settle(flags, session.env);
  if (!settings.mistakes.empty()) return report(session.screen, settings.mistakes);
  std::set<WorkerPlace> places;
  for (const TargetConfig& target : settings.config.targets) places.insert({target.ns, target.pool});
  for (const std::string& text : options.workers) places.insert(parse_place(text));
  if (places.empty()) {
    return refuse(session, "no workers: give --worker NS or NS/POOL, or a configuration with targets", 2);
  }
  const Subjects subjects(settings.config.prefix);
  const auto users = bus_users(subjects, places);
  if (!users) return refuse(session, users.error().message, 2);
  std::error_code ignored;
  const auto rows = write_users(fs::absolute(options.out, ignored).lexically_normal(), subjects, *users);
  if (!rows) return refuse(session, rows.error().message, 1);
  ListWriter list(session.screen, {column("USER", "user"), column("SEED", "seed"), column("INBOX", "inbox")},
                  "no users");
  for (const Json& row : *rows) list.add(row.dump());
  return list.finish() ? 0 : 1;
}

}  // namespace

void declare_auth_verbs(CommandLine& line) {
  CLI::App* const auth = line.verb(line.app, "auth", "who may do what on the bus",
                                   "muster auth nats-conf -c muster.yaml --out /etc/muster/auth",
                                   [](CLI::App&) { return [](Session&) { return 2; }; });
  auth->require_subcommand(1);
  line.verb(*auth, "nats-conf",
            "write a nats-server's configuration: a user with an NKey of its own for the coordinator, for each "
            "namespace and pool of workers, for operators and for observers",
            "muster auth nats-conf -c muster.yaml --worker FS --worker PG/site-b --out /etc/muster/auth",
            [&line](CLI::App& verb) {
              const auto options = std::make_shared<AuthOptions>();
              const CLI::Validator place(
                  [](std::string& text) {
                    const WorkerPlace one = parse_place(text);
                    return valid_namespace(one.ns) && valid_namespace(one.pool)
                               ? std::string()
                               : "expected NAMESPACE or NAMESPACE/POOL, found " + text;
                  },
                  "");
              verb.add_option("-c,--config", line.common.flags.config,
                              "whose targets' namespaces and pools get users; else $MUSTER_CONFIG, ./muster.yaml")
                  ->type_name("FILE");
              verb.add_option("--worker", options->workers, "workers that get a user, too; may be repeated")
                  ->check(place)
                  ->type_name("NS[/POOL]")
                  ->allow_extra_args(false);
              verb.add_option("--out", options->out,
                              "where users.conf, nats.conf, and of each user a seed (.nk, mode 0600) and an "
                              "environment (.env) are written; seeds and nats.conf that are there are kept")
                  ->required()
                  ->type_name("DIR");
              return [options](Session& session) { return nats_conf(session, *options); };
            });
}

}  // namespace muster::cli
