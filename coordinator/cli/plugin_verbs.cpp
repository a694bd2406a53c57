// The verbs for people who write plugins.

#include <csignal>

#include "coordinator/cli/command_line.h"
#include "coordinator/cli/plugin_test/plugin_test.h"

namespace muster::cli {
namespace {

volatile std::sig_atomic_t interrupts = 0;

/// The first Ctrl-C puts everything in order, the second one ends the process.
void hear_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupts = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

void declare_plugin_verbs(CommandLine& line) {
  CLI::App* const plugin =
      line.verb(line.app, "plugin", "for people who write plugins",
                "muster plugin test ./build/muster-plugin-notes --target target.yaml --fixtures fixtures",
                [](CLI::App&) { return [](Session&) { return 2; }; });
  plugin->require_subcommand(1);
  line.verb(*plugin, "test", "test a plugin's executable against the contract",
            "muster plugin test ./build/muster-plugin-notes --target target.yaml --fixtures fixtures",
            [](CLI::App& verb) {
              const auto options = std::make_shared<PluginTestOptions>();
              verb.add_option("plugin", options->plugin, "path of the executable, or a name")->required();
              verb.add_option("--target", options->target, "what to test it against: a target's config, as YAML")
                  ->required()
                  ->type_name("FILE");
              verb.add_option("--fixtures", options->fixtures, "directory with a YAML file for each type")
                  ->required()
                  ->type_name("DIR");
              verb.add_option("--type", options->types, "only this type; may be repeated")
                  ->type_name("TYPE")
                  ->allow_extra_args(false);
              verb.add_option("--check", options->checks, "only this check of types; may be repeated")
                  ->type_name("NAME")
                  ->allow_extra_args(false);
              return [options](Session& session) {
                hear_interrupts();
                return plugin_test(session.screen, *options, session.env, [] { return interrupts != 0; });
              };
            });
}

}  // namespace muster::cli
