#include <filesystem>
#include <ostream>
#include <utility>

#include <spdlog/logger.h>

#include "coordinator/cli/command_line.h"
#include "coordinator/cli/completion.h"
#include "coordinator/cli/local_verbs.h"
#include "coordinator/cli/plugin_path.h"
#include "coordinator/cli/up.h"
#include "coordinator/cli/worker_command.h"
#include "coordinator/cli/worker_folder.h"
#include "schema/subjects.h"
#include "worker_sdk/bus/stderr_log.h"

namespace muster::cli {
namespace {

int refuse(Session& session, const std::string& message, int status) {
  session.screen.err << "muster: " << escape(message) << std::endl;
  return status;
}

/// The configuration of a verb that reads one: -c, $MUSTER_CONFIG, ./muster.yaml.
ConfigResult read_config(Session& session) {
  Flags& flags = session.common.flags;
  if (flags.config.empty()) flags.config = default_config(session.env);
  return settle(flags, session.env);
}

void add_config_option(CLI::App& verb, std::string& file) {
  verb.add_option("-c,--config", file, "the configuration; else $MUSTER_CONFIG, ./muster.yaml")->type_name("FILE");
}

std::shared_ptr<spdlog::logger> make_logger(const Session& session) {
  return stderr_log("coordinator",
                    session.common.verbose ? spdlog::level::debug
                    : session.common.quiet ? spdlog::level::warn
                                           : spdlog::level::info,
                    session.env.count("NO_COLOR") > 0);
}

int run_coordinator(Session& session) {
  ConfigResult settings = read_config(session);
  if (!settings.mistakes.empty()) return report(session.screen, settings.mistakes);
  Config& config = settings.config;
  if (auto found = find_fleet(config, session.common.flags, session.env); !found)
    return refuse(session, found.error().message, 1);
  if (auto made = make_data_dir(config.data_dir); !made) return refuse(session, made.error().message, 1);
  if (config.store.empty()) config.store = "sqlite:" + (std::filesystem::path(config.data_dir) / "muster.db").string();
  return session.coordinator(config, make_logger(session));
}

int run_up(Session& session, bool once) {
  const ConfigResult settings = read_config(session);
  if (session.common.flags.config.empty()) {
    return refuse(session, "no configuration: give -c FILE, set $MUSTER_CONFIG or write ./muster.yaml", 2);
  }
  if (!settings.mistakes.empty()) return report(session.screen, settings.mistakes);
  return up({settings.config, session.common.flags, session.env, *parse_duration(session.common.timeout), once},
            session.screen);
}

/// Becomes the plugin: returns only when that fails.
int become_worker(Session& session, Command command) {
  const std::string name = command.name;
  return refuse(session, name + " cannot be started: " + replace_process(std::move(command)).message, 1);
}

/// What `muster worker` is asked for besides how a worker is started.
struct WorkerOptions {
  WorkerStart start;
  std::string folder;
  bool require_checksums = false;
  int count = 1;
  int max = 0;
  std::string memory;
};

int run_worker(Session& session, WorkerOptions options) {
  WorkerStart& start = options.start;
  if (start.executable.empty() == options.folder.empty()) {
    return refuse(session, "either a plugin is expected or --folder DIR", 2);
  }
  if (options.require_checksums && options.folder.empty()) {
    return refuse(session, "--require-checksums is about a --folder", 2);
  }
  if (options.max != 0 && options.max < options.count) return refuse(session, "--max is less than --count", 2);
  ConfigResult settings = settle(session.common.flags, session.env);
  if (!settings.mistakes.empty()) return report(session.screen, settings.mistakes);
  if (auto found = find_fleet(settings.config, session.common.flags, session.env); !found)
    return refuse(session, found.error().message, 1);
  if (options.folder.empty()) {
    const auto executable = find_plugin(start.executable, own_directory(), session.env);
    if (!executable) return refuse(session, executable.error().message, 2);
    start.executable = *executable;
  }
  if (!options.memory.empty()) start.limits.memory = *parse_bytes(options.memory);
  Command command = worker_command(start, settings.config, session.screen.verbosity, session.env);
  const bool alone = options.folder.empty() && options.count == 1 && options.max == 0 && start.limits.cpu == 0;
  if (alone) return become_worker(session, std::move(command));
  return host_plugins(
      {start.executable, options.folder, options.require_checksums ? Verify::kRequired : Verify::kIfListed,
       options.count, options.max, start.slots, std::move(command)},
      settings.config, session.screen);
}

void declare_parts(CommandLine& line) {
  line.verb(line.app, "up", "run everything on this machine", "muster up -c muster.yaml", [&line](CLI::App& verb) {
    const auto once = std::make_shared<bool>(false);
    add_config_option(verb, line.common.flags.config);
    verb.add_flag("--once", *once, "one discovery of everything, print the summary, stop");
    return [once](Session& session) { return run_up(session, *once); };
  });
  line.verb(line.app, "coordinator", "run a coordinator", "muster coordinator -c muster.yaml --nats nats://bus:4222",
            [&line](CLI::App& verb) {
              add_config_option(verb, line.common.flags.config);
              return run_coordinator;
            });
  line.verb(line.app, "worker", "run a worker", "muster worker fs --pool site-b --slots 8", [](CLI::App& verb) {
    const auto options = std::make_shared<WorkerOptions>();
    WorkerStart* const start = &options->start;
    const CLI::Validator pool(
        [](std::string& text) {
          return valid_namespace(text) ? std::string() : "expected letters, digits, _ and -, found " + text;
        },
        "");
    verb.add_option("plugin", start->executable, "a name (fs: muster-plugin-fs) or a path");
    verb.add_option("--folder", options->folder, "instead: each executable in it is a plugin")->type_name("DIR");
    verb.add_flag("--require-checksums", options->require_checksums,
                  "of the folder: nothing starts without SHA256SUMS");
    verb.add_option("--count", options->count, "processes of each plugin (default 1)")
        ->check(CLI::Range(1, 256))
        ->type_name("N");
    verb.add_option("--max", options->max,
                    "as many of them as jobs that wait need, up to that, and no fewer than --count")
        ->check(CLI::Range(1, 256))
        ->type_name("N");
    const CLI::Validator memory(
        [](std::string& text) {
          const auto bytes = parse_bytes(text);
          return bytes && *bytes >= kLeastMemory && *bytes <= kMostMemory
                     ? std::string()
                     : "expected bytes like 512MiB, from 16MiB to 1024TiB, found " + text;
        },
        "");
    verb.add_option("--memory", options->memory, "what a process may write to, such as 512MiB (default: no limit)")
        ->check(memory)
        ->type_name("BYTES");
    verb.add_option("--cpu", start->limits.cpu, "processors of a process, such as 0.5 (default: no limit)")
        ->check(CLI::Range(kLeastCpu, kMostCpu))
        ->type_name("N");
    verb.add_option("--pool", start->pool, "where it stands (default: default)")->check(pool)->type_name("P");
    verb.add_option("--slots", start->slots, "jobs at once (default 4)")->check(CLI::Range(1, 1024))->type_name("N");
    verb.add_option("--allow-env", start->allow_env, "variables that configuration may refer to; may be repeated")
        ->type_name("NAME")
        ->allow_extra_args(false);
    verb.add_option("--allow-file", start->allow_files, "files or directories that it may refer to; may be repeated")
        ->type_name("PATH")
        ->allow_extra_args(false);
    verb.add_option("--secret-dir", start->secret_dir, "where ${secret:NAME} is a file")->type_name("DIR");
    verb.add_option(
            "--state-dir", start->state_dir,
            "where results of changes wait until a coordinator has them (default: `workers` in the data directory)")
        ->type_name("DIR");
    return [options](Session& session) { return run_worker(session, *options); };
  });
}

void declare_tools(CommandLine& line) {
  line.verb(line.app, "check", "validate a configuration or declaration", "muster check muster.yaml",
            [](CLI::App& verb) {
              struct Options {
                std::string file;
                std::vector<std::string> variables;
              };
              const auto options = std::make_shared<Options>();
              verb.add_option("file", options->file, "the configuration or declaration; - for stdin")->required();
              verb.add_option("--var", options->variables, "value of ${var:K}; may be repeated")
                  ->type_name("K=V")
                  ->allow_extra_args(false)
                  ->check([](const std::string& text) {
                    const std::size_t equals = text.find('=');
                    return equals > 0 && equals != std::string::npos ? std::string() : "K=V is expected, not " + text;
                  });
              return [options](Session& session) {
                std::map<std::string, std::string> variables;
                for (const std::string& one : options->variables) {
                  const std::size_t equals = one.find('=');
                  variables[one.substr(0, equals)] = one.substr(equals + 1);
                }
                return check(session.screen, options->file, variables);
              };
            });
  line.verb(line.app, "jsonpath", "show what a JSONPath selects",
            "echo '{\"Tags\":[{\"Key\":\"Env\"}]}' | muster jsonpath '$.Tags[*].Key'", [](CLI::App& verb) {
              struct Options {
                std::string selector, file = "-";
              };
              const auto options = std::make_shared<Options>();
              verb.add_option("selector", options->selector, "RFC 9535")->required();
              verb.add_option("file", options->file, "JSON; - or nothing: standard input");
              return [options](Session& session) { return jsonpath(session.screen, options->selector, options->file); };
            });
  line.verb(line.app, "completion", "print a shell's completion script", "source <(muster completion bash)",
            [&line](CLI::App& verb) {
              const auto shell = std::make_shared<std::string>();
              verb.add_option("shell", *shell, "bash, zsh or fish")
                  ->required()
                  ->check(CLI::IsMember({"bash", "zsh", "fish"}));
              return [&line, shell](Session& session) {
                session.screen.out << completion_script(line.app, *shell) << std::flush;
                return 0;
              };
            });
}

}  // namespace

void declare_process_verbs(CommandLine& line) {
  declare_parts(line);
  declare_tools(line);
}

}  // namespace muster::cli
