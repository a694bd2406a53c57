#include <unistd.h>

#include <csignal>
#include <iostream>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "coordinator/cli/apply.h"
#include "coordinator/cli/command_line.h"
#include "coordinator/cli/local_verbs.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/event_log.h"
#include "schema/subjects.h"

namespace muster::cli {
namespace {

volatile std::sig_atomic_t interrupts = 0;  // what a signal handler may touch

/// While it lives, SIGINT and SIGTERM are a wish to stop waiting; the second one ends the process.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupts = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }
  static bool came() { return interrupts != 0; }
};

using FleetAction = std::function<int(Client&, Screen&)>;

/// Makes it a time. What is wrong with it; empty: nothing.
std::string make_time(std::string& text) {
  auto time = time_before(text, SystemClock().wall());
  if (!time) return time.error().message;
  text = std::move(*time);
  return {};
}

const CLI::Validator kTime(make_time, "");
const CLI::Validator kTimeOrSequence(
    [](std::string& text) {
      return text.find_first_not_of("0123456789") == std::string::npos ? std::string() : make_time(text);
    },
    "");

std::string not_a_stack(const std::string& text) {
  return valid_namespace(text) ? std::string() : "'" + text + "' is no name: letters, digits, `_` and `-`, at most 64";
}

const CLI::Validator kStackName(not_a_stack, "");

/// An action that needs a connection to the fleet, once it asks for something.
Action with_fleet(FleetAction use) {
  return [use = std::move(use)](Session& session) {
    ConfigResult settings = settle(session.common.flags, session.env);
    if (!settings.mistakes.empty()) return report(session.screen, settings.mistakes);
    if (auto found = find_fleet(settings.config, session.common.flags, session.env); !found)
      return report(session.screen, found.error());
    auto log = std::make_shared<spdlog::logger>("muster");
    if (session.common.verbose) log->sinks().push_back(std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    settings.config.nats.name = "muster command line";
    LateClient client([&]() -> Result<std::unique_ptr<Client>> {
      auto connected = NatsClient::connect(settings.config.nats, settings.config.prefix,
                                           *parse_duration(session.common.timeout), log);
      if (!connected) return connected.error();
      (*connected)->stop_when(Interrupts::came);
      return std::unique_ptr<Client>(std::move(*connected));
    });
    try {
      return use(client, session.screen);
    } catch (const Json::exception& error) {  // by a version that knows other fields, or by no coordinator
      return report(session.screen, Error{Errc::kMalformed,
                                          "the answer is none that this version understands: the coordinator is of "
                                          "another version, or something else answers (" +
                                              std::string(error.what()) + ")"});
    }
  };
}

void declare_inventory(CommandLine& line) {
  line.verb(
      line.app, "resources", "show the inventory", "muster resources nginx --type FS::File -o ndjson",
      [](CLI::App& verb) {
        const auto options = std::make_shared<ResourcesOptions>();
        verb.add_option("query", options->text, "part of the label or native id, in any case");
        verb.add_option("--target", options->target, "only of this target")->type_name("T");
        verb.add_option("--type", options->type, "only of this type")->type_name("TYPE");
        verb.add_option("--stack", options->stack, "only what this stack declares")->type_name("NAME");
        CLI::Option* const managed = verb.add_flag_callback(
            "--managed", [options] { options->managed = true; }, "only declared ones");
        verb.add_flag_callback(
                "--unmanaged", [options] { options->managed = false; }, "only discovered ones")
            ->excludes(managed);
        verb.add_flag("--drifted", options->drifted, "only those that differ from their declaration");
        verb.add_option("--state", options->state, "present, stale, missing, vanished or filtered")
            ->check(CLI::IsMember({"present", "stale", "missing", "vanished", "filtered"}))
            ->type_name("S");
        verb.add_option("--limit", options->limit, "at most so many")->check(kAtLeastOne)->type_name("N");
        return with_fleet([options](Client& client, Screen& screen) { return resources(client, screen, *options); });
      });
  line.verb(line.app, "resource", "show one resource", "muster resource etc/FS::File//etc/hostname --history",
            [](CLI::App& verb) {
              struct Options {
                std::string which, at;
                bool history = false;
              };
              const auto options = std::make_shared<Options>();
              verb.add_option("id", options->which, "ID, or TARGET/TYPE/NATIVE-ID")->required();
              verb.add_flag("--history", options->history, "with all its changes");
              verb.add_option("--at", options->at, "as it was at that time (RFC 3339), or so long ago (10m)")
                  ->transform(kTime)
                  ->type_name("TIME");
              return with_fleet([options](Client& client, Screen& screen) {
                return resource(client, screen, options->which, options->history, options->at);
              });
            });
}

void declare_runs(CommandLine& line) {
  line.verb(line.app, "discover", "start a discovery run", "muster discover --target etc --wait", [](CLI::App& verb) {
    const auto options = std::make_shared<DiscoverOptions>();
    verb.add_option("--target", options->targets, "only this target; may be repeated")
        ->type_name("T")
        ->allow_extra_args(false);
    verb.add_option("--type", options->types, "only this type; may be repeated")
        ->type_name("TYPE")
        ->allow_extra_args(false);
    verb.add_option("--stack", options->stacks, "read again what this stack has, and list nothing; may be repeated")
        ->type_name("NAME");
    verb.add_flag("--wait", options->wait, "wait for its end and show its report");
    return with_fleet([options](Client& client, Screen& screen) {
      const Interrupts interrupts_heard;
      return discover(client, screen, *options, Interrupts::came);
    });
  });
  line.verb(line.app, "runs", "show the latest runs", "muster runs --limit 5", [](CLI::App& verb) {
    const auto limit = std::make_shared<std::uint64_t>(20);
    verb.add_option("--limit", *limit, "how many (default 20)")->check(kAtLeastOne)->type_name("N");
    return with_fleet([limit](Client& client, Screen& screen) { return runs(client, screen, *limit); });
  });
  line.verb(line.app, "run", "show the report of a run", "muster run 01J9Z3K8Q4T5V6W7X8Y9Z0A1B2", [](CLI::App& verb) {
    const auto id = std::make_shared<std::string>();
    verb.add_option("id", *id, "of the run")->required();
    return with_fleet([id](Client& client, Screen& screen) { return run(client, screen, *id); });
  });
  line.verb(line.app, "events", "show the event log", "muster events --follow --type 'resource.*'", [](CLI::App& verb) {
    const auto options = std::make_shared<EventsOptions>();
    verb.add_option("--since", options->since, "a time (RFC 3339), how long ago (10m), or a sequence number")
        ->transform(kTimeOrSequence)
        ->type_name("TIME|SEQ");
    verb.add_option("--type", options->type, "only types like this pattern")->type_name("GLOB");
    verb.add_option("--limit", options->limit, "at most so many")->check(kAtLeastOne)->type_name("N");
    verb.add_flag("--follow", options->follow, "go on with what happens from now on");
    return with_fleet([options](Client& client, Screen& screen) {
      const Interrupts interrupts_heard;
      return events(client, screen, *options, Interrupts::came);
    });
  });
}

/// The user's word, on the terminal.
std::optional<bool> ask_terminal(const std::string& question) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return std::nullopt;
  std::cerr << question << std::flush;
  std::string answer;
  return std::getline(std::cin, answer) && answer == "yes";
}

/// `K=V`, as often as there are variables.
void add_variables(CLI::App& verb, std::vector<std::string>& given) {
  verb.add_option("--var", given, "value of ${var:K}; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const bool good = text.find('=') != std::string::npos && text.front() != '=';
        return good ? std::string() : "--var wants K=V, found " + text;
      });
}

std::map<std::string, std::string> variables_of(const std::vector<std::string>& given) {
  std::map<std::string, std::string> variables;
  for (const auto& text : given) variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  return variables;
}

void declare_apply(CommandLine& line) {
  struct Options {
    ApplyOptions apply;
    std::vector<std::string> variables;
    const CLI::Option* mode = nullptr;  // of apply
  };
  const auto common = [](CLI::App& verb, const std::shared_ptr<Options>& options, bool destroys) {
    add_variables(verb, options->variables);
    verb.add_option("--target", options->apply.only,
                    destroys ? "only this resource and what needs it; may be repeated"
                             : "only this resource and what it needs; may be repeated")
        ->type_name("NAME")
        ->allow_extra_args(false);
    verb.add_option("--exclude", options->apply.exclude,
                    destroys ? "not this resource, nor what it needs; may be repeated"
                             : "not this resource, nor what needs it; may be repeated")
        ->type_name("NAME")
        ->allow_extra_args(false);
    verb.add_flag("--refresh", options->apply.refresh, "read again what the stacks have before planning");
    verb.add_flag("--plan", options->apply.plan_only, "show the plan only");
    verb.add_option("--plan-out", options->apply.plan_out, "save the plan, and do nothing else")->type_name("F");
    verb.add_flag("-y,--yes", options->apply.yes, "do not ask");
    verb.add_flag("--no-wait", options->apply.refuse_busy, "refuse when a command of the stack is under way");
    return with_fleet([options](Client& client, Screen& screen) {
      if (options->apply.files.empty() == options->apply.plan_in.empty()) {
        screen.err << "muster: either files or --plan-in are needed (see --help)" << std::endl;
        return 2;
      }
      const bool chosen =
          !options->variables.empty() || !options->apply.only.empty() || !options->apply.exclude.empty();
      if (!options->apply.plan_in.empty() && chosen) {
        screen.err << "muster: a saved plan holds what it is of already: --target, --exclude and --var go with "
                      "--plan-out"
                   << std::endl;
        return 2;
      }
      if (!options->apply.plan_in.empty() && options->mode->count() > 0) {
        screen.err << "muster: a saved plan has its mode already: --mode goes with --plan-out" << std::endl;
        return 2;
      }
      options->apply.variables = variables_of(options->variables);
      const Interrupts interrupts_heard;
      return apply(client, screen, options->apply, ask_terminal, Interrupts::came);
    });
  };
  line.verb(line.app, "apply", "make what is declared so", "muster apply shop.yaml --plan", [&](CLI::App& verb) {
    const auto options = std::make_shared<Options>();
    verb.add_option("files", options->apply.files, "declarations; - is standard input");
    options->mode = verb.add_option("--mode", options->apply.mode,
                                    "reconcile: what is not declared any more is deleted; patch: nothing is deleted")
                        ->check(CLI::IsMember({"reconcile", "patch"}))
                        ->capture_default_str();
    verb.add_option("--plan-in", options->apply.plan_in, "carry out exactly this saved plan, or refuse")
        ->type_name("F");
    return common(verb, options, false);
  });
  line.verb(line.app, "destroy", "delete what the stacks of the files have", "muster destroy shop.yaml --plan",
            [&](CLI::App& verb) {
              const auto options = std::make_shared<Options>();
              options->apply.mode = "destroy";
              verb.add_option("files", options->apply.files, "declarations; - is standard input")->required();
              return common(verb, options, true);
            });
  line.verb(line.app, "commands", "show what was asked for", "muster commands --limit 5", [](CLI::App& verb) {
    const auto limit = std::make_shared<std::uint64_t>(20);
    verb.add_option("--limit", *limit, "how many (default 20)")->check(kAtLeastOne)->type_name("N");
    return with_fleet([limit](Client& client, Screen& screen) { return commands(client, screen, *limit); });
  });
  line.verb(line.app, "command", "show one command, and how it goes", "muster command 01J9Z3K8Q4T5V6W7X8Y9Z0A1B2",
            [](CLI::App& verb) {
              const auto id = std::make_shared<std::string>();
              verb.add_option("id", *id, "of the command")->required();
              return with_fleet([id](Client& client, Screen& screen) { return command(client, screen, *id); });
            });
  line.verb(
      line.app, "cancel", "end a command early", "muster cancel 01J9Z3K8Q4T5V6W7X8Y9Z0A1B2 --force",
      [](CLI::App& verb) {
        const auto id = std::make_shared<std::string>();
        const auto force = std::make_shared<bool>(false);
        verb.add_option("id", *id, "of the command")->required();
        verb.add_flag("--force", *force, "also stop what runs");
        return with_fleet([id, force](Client& client, Screen& screen) { return cancel(client, screen, *id, *force); });
      });
  line.verb(
      line.app, "forget", "let a stack's resources stay, managed by nobody", "muster forget shop orders-db",
      [](CLI::App& verb) {
        const auto options = std::make_shared<ForgetOptions>();
        verb.add_option("stack", options->stack, "that has them")->required()->check(kStackName);
        verb.add_option("names", options->names, "of resources, as declared");
        verb.add_option("--target", options->target, "only what is on this target, which may be gone")->type_name("T");
        verb.add_flag("--all", options->all, "all that the stack has");
        verb.add_flag("--plan", options->plan_only, "show what it would be only");
        verb.add_flag("-y,--yes", options->yes, "do not ask");
        return with_fleet(
            [options](Client& client, Screen& screen) { return forget(client, screen, *options, ask_terminal); });
      });
  line.verb(line.app, "export", "write resources as declarations",
            "muster export --target db1 --type PG::Role > roles.yaml", [](CLI::App& verb) {
              const auto options = std::make_shared<ResourcesOptions>();
              const auto stack = std::make_shared<std::string>("exported");
              verb.add_option("query", options->text, "part of the label or native id, in any case");
              verb.add_option("--target", options->target, "only of this target")->type_name("T");
              verb.add_option("--type", options->type, "only of this type")->type_name("TYPE");
              verb.add_flag_callback(
                  "--unmanaged", [options] { options->managed = false; }, "only what no stack has");
              verb.add_option("--stack", *stack, "name of the stack (default: exported)")
                  ->type_name("NAME")
                  ->check(kStackName);
              return with_fleet([options, stack](Client& client, Screen& screen) {
                return export_resources(client, screen, *options, *stack);
              });
            });
}

void declare_fleet(CommandLine& line) {
  CLI::App* const of_targets = line.verb(
      line.app, "targets", "show the systems that are looked at", "muster targets",
      [](CLI::App&) { return with_fleet([](Client& client, Screen& screen) { return targets(client, screen); }); });
  line.verb(
      *of_targets, "accept", "accept that a target is another system than before", "muster targets accept db1",
      [](CLI::App& verb) {
        const auto name = std::make_shared<std::string>();
        verb.add_option("target", *name, "its name")->required();
        return with_fleet([name](Client& client, Screen& screen) { return accept_target(client, screen, *name); });
      });
  line.verb(line.app, "plugins", "show what the workers can do", "muster plugins FS", [](CLI::App& verb) {
    const auto ns = std::make_shared<std::string>();
    verb.add_option("namespace", *ns, "only of this namespace");
    return with_fleet([ns](Client& client, Screen& screen) { return plugins(client, screen, *ns); });
  });
  CLI::App* const of_workers = line.verb(line.app, "workers", "show the workers", "muster workers", [](CLI::App&) {
    return with_fleet([](Client& client, Screen& screen) { return workers(client, screen); });
  });
  line.verb(*of_workers, "pools", "show how busy each namespace and pool is", "muster workers pools",
            [](CLI::App&) { return with_fleet([](Client& client, Screen& screen) { return pools(client, screen); }); });
  line.verb(*of_workers, "drain", "let a worker end its jobs and take no more", "muster workers drain 2MFJ0Q3E7R",
            [](CLI::App& verb) {
              const auto id = std::make_shared<std::string>();
              verb.add_option("id", *id, "of the worker")->required();
              return with_fleet([id](Client& client, Screen& screen) { return drain_worker(client, screen, *id); });
            });
  line.verb(line.app, "types", "show the types of resources", "muster types FS", [](CLI::App& verb) {
    const auto ns = std::make_shared<std::string>();
    verb.add_option("namespace", *ns, "only of this namespace");
    return with_fleet([ns](Client& client, Screen& screen) { return types(client, screen, *ns); });
  });
  line.verb(line.app, "schema", "show the JSON Schema of a type, or of what `apply` takes, for editors",
            "muster schema > muster.schema.json", [](CLI::App& verb) {
              const auto type = std::make_shared<std::string>();
              verb.add_option("type", *type, "of a resource");
              return with_fleet([type](Client& client, Screen& screen) { return schema(client, screen, *type); });
            });
  line.verb(line.app, "status", "is all well? (exit status 0 or 1)", "muster status", [](CLI::App&) {
    return with_fleet([](Client& client, Screen& screen) { return status(client, screen); });
  });
}

}  // namespace

void declare_fleet_verbs(CommandLine& line) {
  declare_inventory(line);
  declare_runs(line);
  declare_apply(line);
  declare_fleet(line);
}

}  // namespace muster::cli
