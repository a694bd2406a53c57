// The verbs of plugins on this machine.

#include <algorithm>
#include <cctype>
#include <csignal>

#include "coordinator/cli/command_line.h"
#include "coordinator/cli/plugin_folder.h"
#include "coordinator/cli/plugin_install.h"
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

int refuse(Screen& screen, const Error& error) {
  screen.err << "muster: " << escape(error.message) << std::endl;
  return error.code == Errc::kNotFound || error.code == Errc::kInvalidRequest ? 2 : 1;
}

std::string short_sum(const Json& row, const char* name) {
  return field(row, name).substr(0, 12);
}

int list_plugins(Screen& screen, const std::string& folder) {
  const auto plugins = installed_plugins(folder);
  if (!plugins) return refuse(screen, plugins.error());
  ListWriter list(screen,
                  {column("PLUGIN", "plugin"),
                   column("STATE", "state"),
                   {"VERSION", [](const Json& row) { return short_sum(row, "sha256"); }},
                   {"BEFORE", [](const Json& row) { return short_sum(row, "previous"); }},
                   column("CHECKSUM", "checksum"),
                   column("REASON", "reason")},
                  "no plugins");
  for (const InstalledPlugin& plugin : *plugins) {
    const bool starts = plugin.refusal.empty();
    list.add(Json{{"plugin", plugin_name(plugin.file)},
                  {"file", plugin.file},
                  {"state", plugin.disabled ? "disabled"
                            : starts        ? "enabled"
                                            : "refused"},
                  {"sha256", plugin.version.empty() ? Json() : Json(plugin.version)},
                  {"previous", plugin.previous.empty() ? Json() : Json(plugin.previous)},
                  {"checksum", plugin.verified   ? "listed"
                               : plugin.disabled ? ""
                                                 : "not listed"},
                  {"reason", plugin.disabled ? "" : plugin.refusal}}
                 .dump());
  }
  return list.finish() ? 0 : 1;
}

int tell(Screen& screen, const Result<std::string>& done, const std::string& what) {
  if (!done) return refuse(screen, done.error());
  note(screen, plugin_name(*done) + " is " + what);
  return 0;
}

/// The same of what is to be started now, and what keeps it from that.
int tell_started(Screen& screen, const std::string& folder, const Result<std::string>& done, const std::string& what) {
  if (const int status = tell(screen, done, what); status != 0) return status;
  const auto plugins = installed_plugins(folder);
  if (!plugins) return refuse(screen, plugins.error());
  const auto plugin = std::ranges::find(*plugins, *done, &InstalledPlugin::file);
  if (plugin == plugins->end()) return refuse(screen, {Errc::kConflict, "and somebody has taken it away since"});
  if (!plugin->refusal.empty()) return refuse(screen, {Errc::kConflict, "and is not started: " + plugin->refusal});
  if (!plugin->verified) {
    note(screen, "nobody verifies it: the folder has no list of checksums (`sha256sum muster-plugin-* > SHA256SUMS`)");
  }
  return 0;
}

std::string lower_sum(std::string& sum) {
  for (char& c : sum) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool good = sum.size() == 64 && sum.find_first_not_of("0123456789abcdef") == std::string::npos;
  return good ? std::string() : "expected 64 hexadecimal digits, as `sha256sum` prints them";
}

struct FolderOptions {
  std::string folder, plugin, sha256;
};

void take_file(CLI::App& verb, FolderOptions& options) {
  verb.add_option("plugin", options.plugin, "path of the executable")->required();
  verb.add_option("--sha256", options.sha256, "what it must have: 64 hexadecimal digits")
      ->type_name("SUM")
      ->transform(CLI::Validator(lower_sum, ""));
}

void take_name(CLI::App& verb, FolderOptions& options) {
  verb.add_option("plugin", options.plugin, "a name (fs: muster-plugin-fs)")->required();
}

/// `take`   adds what the verb takes beside the folder; none: nothing
void declare_folder_verb(CommandLine& line, CLI::App& plugin, const std::string& name, const std::string& description,
                         const std::string& arguments, void (*take)(CLI::App&, FolderOptions&),
                         int (*act)(Screen&, const FolderOptions&)) {
  const std::string example = "muster plugin " + name + arguments + " --folder /opt/muster/plugins";
  line.verb(plugin, name, description, example, [take, act](CLI::App& verb) {
    const auto options = std::make_shared<FolderOptions>();
    if (take != nullptr) take(verb, *options);
    verb.add_option("--folder", options->folder, "that `muster worker --folder` runs")->required()->type_name("DIR");
    return [options, act](Session& session) { return act(session.screen, *options); };
  });
}

void declare_folder_verbs(CommandLine& line, CLI::App& plugin) {
  declare_folder_verb(line, plugin, "install", "put a plugin, or another version of it, into a folder",
                      " ./muster-plugin-notes --sha256 SUM", take_file, [](Screen& screen, const FolderOptions& to) {
                        return tell_started(screen, to.folder, install_plugin(to.folder, to.plugin, to.sha256),
                                            "installed");
                      });
  declare_folder_verb(line, plugin, "list", "show the plugins of a folder, and why one is not started", "", nullptr,
                      [](Screen& screen, const FolderOptions& of) { return list_plugins(screen, of.folder); });
  declare_folder_verb(line, plugin, "rollback", "put the version before in a plugin's place; again: back", " notes",
                      take_name, [](Screen& screen, const FolderOptions& of) {
                        return tell_started(screen, of.folder, roll_back_plugin(of.folder, of.plugin),
                                            "the version before again");
                      });
  declare_folder_verb(line, plugin, "enable", "have a disabled plugin started again", " notes", take_name,
                      [](Screen& screen, const FolderOptions& of) {
                        return tell_started(screen, of.folder, enable_plugin(of.folder, of.plugin), "enabled");
                      });
  declare_folder_verb(line, plugin, "disable", "have a folder's plugin started no more", " notes", take_name,
                      [](Screen& screen, const FolderOptions& of) {
                        return tell(screen, disable_plugin(of.folder, of.plugin), "disabled");
                      });
  declare_folder_verb(line, plugin, "remove", "take a plugin and the version before it out of a folder", " notes",
                      take_name, [](Screen& screen, const FolderOptions& of) {
                        return tell(screen, remove_plugin(of.folder, of.plugin), "removed");
                      });
}

}  // namespace

void declare_plugin_verbs(CommandLine& line) {
  CLI::App* const plugin = line.verb(line.app, "plugin", "put plugins into a folder, and test them",
                                     "muster plugin install ./muster-plugin-notes --folder /opt/muster/plugins",
                                     [](CLI::App&) { return [](Session&) { return 2; }; });
  plugin->require_subcommand(1);
  declare_folder_verbs(line, *plugin);
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
