#include "coordinator/cli/apply.h"

namespace muster::cli {
namespace {

void show(std::ostream& out, const Json& answer) {
  for (const Json& each : answer.at("resources")) {
    out << "  " << escape(field(each, "name")) << "  " << escape(field(each, "type")) << " on "
        << escape(field(each, "target")) << "  " << escape(field(each, "native_id"));
    if (const auto state = field(each, "state"); state != "present") out << "  (" << state << ")";
    out << '\n';
  }
  const auto left = answer.at("count").get<std::size_t>() - answer.at("resources").size();
  if (left > 0) out << "  and " << left << " more\n";
}

std::string resources_of(const Json& answer) {
  const auto count = answer.at("count").get<std::size_t>();
  return std::to_string(count) + (count == 1 ? " resource" : " resources") + " of stack " + field(answer, "stack");
}

}  // namespace

int forget(Client& client, Screen& screen, const ForgetOptions& options, const Ask& ask) {
  if (options.all != (options.names.empty() && options.target.empty())) {
    screen.err << "muster: say what the stack is to forget: names of resources, --target T, or all of it with --all"
               << std::endl;
    return 2;
  }
  Json request{{"stack", options.stack}, {"names", options.names}, {"target", options.target}, {"all", options.all}};
  const bool machine = screen.format != Format::kTable;
  if (options.plan_only || !options.yes) {
    request["look_only"] = true;
    const auto found = client.ask("forget", request);
    if (!found) return report(screen, found.error());
    const auto answer = Json::parse(*found);
    if (!machine || !options.plan_only) show(machine ? screen.err : screen.out, answer);
    if (options.plan_only) {
      write_object(screen, answer,
                   [&](const Json&) { screen.out << "would be forgotten: " << escape(resources_of(answer)) << '\n'; });
      return 0;
    }
    const auto question =
        "Forget " + escape(resources_of(answer)) + "? They stay as they are, and nobody manages them.";
    if (const auto status = declined(screen, ask, question)) return *status;
    request["look_only"] = false;
  }
  const auto done = client.ask("forget", request);
  if (!done) return report(screen, done.error());
  write_answer(screen, *done, [&](const Json& answer) {
    screen.out << "forgotten: " << escape(resources_of(answer))
               << "; a file that still declares them takes them back\n";
  });
  return 0;
}

}  // namespace muster::cli
