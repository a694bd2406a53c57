#include "coordinator/cli/command_line.h"

#include <utility>

namespace muster::cli {
namespace {

const CLI::Validator kDuration{
    [](std::string& text) {
      const auto value = parse_duration(text);
      return value && value->count() > 0 ? std::string() : "expected a duration like 500ms or 5s, found " + text;
    },
    "DURATION"};

}  // namespace

const CLI::Validator kAtLeastOne{
    [](std::string& text) {
      std::uint64_t number = 0;
      const bool whole = text.find('-') == std::string::npos && CLI::detail::lexical_cast(text, number);
      return whole && number > 0 ? std::string() : "expected a whole number from 1 on, found " + text;
    },
    ""};

CommandLine::CommandLine() : app("Takes inventory of systems and manages them, by workers on a NATS bus.", "muster") {
  app.require_subcommand(1);
  app.footer("Example:\n  muster up -c muster.yaml\nDetails of a verb: muster VERB --help");
  add_common(app);
  declare_process_verbs(*this);
  declare_fleet_verbs(*this);
  declare_plugin_verbs(*this);
  declare_auth_verbs(*this);
}

void CommandLine::add_common(CLI::App& to) {
  const std::string group = "Common options";
  to.set_version_flag("--version", std::string("muster ") + MUSTER_VERSION);
  to.add_option("--nats", common.flags.nats, "where the fleet is; else $MUSTER_NATS_URL, DATA_DIR/nats.url, localhost")
      ->type_name("URL")
      ->group(group);
  to.add_option("--data-dir", common.flags.data_dir, "what a fleet on this machine keeps")
      ->type_name("DIR")
      ->group(group);
  to.add_option("--prefix", common.flags.prefix, "first part of all subjects (default muster)")
      ->type_name("PREFIX")
      ->group(group);
  to.add_option("-o,--output", common.format, "of the answer (default table)")
      ->check(CLI::IsMember({"table", "json", "ndjson", "yaml"}))
      ->type_name("FORMAT")
      ->group(group);
  to.add_option("--timeout", common.timeout, "how long to wait for an answer (default 5s)")
      ->check(kDuration)
      ->group(group);
  to.add_flag("-v,--verbose", common.verbose, "say more on stderr")->group(group);
  to.add_flag("-q,--quiet", common.quiet, "say less on stderr")->group(group);
}

CLI::App* CommandLine::verb(CLI::App& parent, const std::string& name, const std::string& description,
                            const std::string& example, const std::function<Action(CLI::App&)>& declare) {
  CLI::App* const made = parent.add_subcommand(name, description);
  made->footer("Example:\n  " + example);
  Action run = declare(*made);
  add_common(*made);
  made->callback([this, made, run = std::move(run)] {
    if (made->get_subcommands().empty()) action = run;  // a verb below it has said what to do
  });
  return made;
}

}  // namespace muster::cli
