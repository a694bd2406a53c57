#include "coordinator/cli/worker_command.h"

#include <algorithm>
#include <filesystem>

#include "coordinator/cli/plugin_folder.h"
#include "coordinator/cli/plugin_path.h"
#include "coordinator/secret_text.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

void add_flag(std::vector<std::string>& argv, const std::string& name, const std::string& value) {
  if (value.empty()) return;
  argv.push_back(name);
  argv.push_back(value);
}

Result<std::string> value_of(const SecretPart& part, const Environment& env, const std::string& secret_dir) {
  if (part.kind == SecretPart::Kind::kLiteral) return part.text;
  if (part.kind == SecretPart::Kind::kEnv) {
    const auto it = env.find(part.text);
    if (it == env.end()) return Error{Errc::kAccessDenied, "${env:" + part.text + "} is not set"};
    return it->second;
  }
  const std::string path = part.kind == SecretPart::Kind::kFile ? part.text : secret_dir + "/" + part.text;
  auto text = read_file(path);
  if (!text) return Error{Errc::kAccessDenied, path + " " + text.error().message};
  if (!text->empty() && text->back() == '\n') text->pop_back();
  return text;
}

/// The value of an `env` entry with its references resolved: this process runs where the worker will.
Result<std::string> resolve(const std::string& text, const Environment& env, const std::string& secret_dir) {
  const auto parts = parse_secret_text(text);
  if (!parts) return parts.error();
  std::string value;
  for (const SecretPart& part : *parts) {
    const auto piece = value_of(part, env, secret_dir);
    if (!piece) return piece.error();
    value += *piece;
  }
  return value;
}

/// Adds what the targets' configs refer to.
void allow_what_targets_name(const Config& config, WorkerStart& start) {
  const auto add = [](std::vector<std::string>& list, const std::string& text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  };
  for (const TargetConfig& target : config.targets) {
    for (const Secret& secret : target.config.secrets) {
      for (const SecretPart& part : secret.parts) {
        if (part.kind == SecretPart::Kind::kEnv) add(start.allow_env, part.text);
        if (part.kind == SecretPart::Kind::kFile) add(start.allow_files, part.text);
      }
    }
  }
}

}  // namespace

Command worker_command(const WorkerStart& start, const Config& config, Verbosity verbosity, Environment env) {
  Command command;
  command.limits = start.limits;
  command.env = std::move(env);
  // What signs it in is the configuration's, and not what this process was given for a bus of its own.
  std::erase_if(command.env, [](const auto& variable) { return variable.first.starts_with("MUSTER_NATS_"); });
  command.env["MUSTER_NATS_URL"] = config.nats.url;
  std::vector<std::string>& argv = command.argv;
  argv = {"",           "--prefix",     config.prefix, "--pool", start.pool, "--slots", std::to_string(start.slots),
          "--data-dir", config.data_dir};
  set_executable(command, start.executable);
  add_flag(argv, "--creds", config.nats.creds);
  add_flag(argv, "--nkey-seed", config.nats.nkey_seed);
  if (config.nats.inbox != NatsOptions{}.inbox) add_flag(argv, "--inbox", config.nats.inbox);
  add_flag(argv, "--tls-ca", config.nats.tls_ca);
  add_flag(argv, "--tls-cert", config.nats.tls_cert);
  add_flag(argv, "--tls-key", config.nats.tls_key);
  for (const std::string& name : start.allow_env) add_flag(argv, "--allow-env", name);
  for (const std::string& path : start.allow_files) add_flag(argv, "--allow-file", path);
  add_flag(argv, "--secret-dir", start.secret_dir);
  add_flag(argv, "--state-dir", start.state_dir);
  if (verbosity == Verbosity::kVerbose) argv.emplace_back("-v");
  if (verbosity == Verbosity::kQuiet) argv.emplace_back("-q");
  return command;
}

void set_executable(Command& command, const std::string& executable) {
  command.argv.front() = executable;
  command.name = "worker " + plugin_name(fs::path(executable).filename().string());
}

Result<Command> configured_worker(const WorkerConfig& worker, const Config& config, Verbosity verbosity,
                                  const Environment& env) {
  auto executable = worker.folder.empty() ? find_plugin(worker.plugin, own_directory(), env) : worker.folder;
  if (!executable) return executable.error();
  WorkerStart start{*executable,        worker.pool, worker.slots, worker.allow_env,
                    worker.allow_files, {},          {},           worker.limits};
  allow_what_targets_name(config, start);
  std::error_code ignored;
  if (const fs::path secrets = fs::path(config.data_dir) / "secrets"; fs::is_directory(secrets, ignored)) {
    start.secret_dir = secrets;
  }
  Environment full = env;
  for (const auto& [name, text] : worker.env) {
    auto value = resolve(text, env, start.secret_dir);
    if (!value) {
      value.error().message =
          "worker " + worker.plugin + worker.folder + ", env " + name + ": " + value.error().message;
      return value.error();
    }
    full[name] = std::move(*value);
  }
  return worker_command(start, config, verbosity, std::move(full));
}

}  // namespace muster::cli
