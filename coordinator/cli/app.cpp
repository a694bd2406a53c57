#include "coordinator/cli/app.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <iostream>

#include "coordinator/cli/command_line.h"
#include "worker_sdk/bus/stderr_log.h"

namespace muster::cli {
namespace {

Format format_named(const std::string& name) {
  constexpr std::array<std::string_view, 4> kNames{"table", "json", "ndjson", "yaml"};
  return static_cast<Format>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

std::size_t terminal_width(int terminal) {
  winsize size{};
  return ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Screen make_screen(const CommonFlags& common, const Environment& env) {
  const auto set = [&](const char* name) {
    const auto it = env.find(name);
    return it != env.end() && !it->second.empty();
  };
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  Screen screen{std::cout, std::cerr};
  screen.format = format_named(common.format);
  screen.verbosity = common.quiet ? Verbosity::kQuiet : common.verbose ? Verbosity::kVerbose : Verbosity::kNormal;
  screen.width = terminal ? terminal_width(STDOUT_FILENO) : 0;
  screen.colour = terminal && !set("NO_COLOR");
  screen.progress = isatty(STDERR_FILENO) == 1;
  screen.progress_width = screen.progress ? terminal_width(STDERR_FILENO) : 0;
  return screen;
}

/// What is wrong with the arguments, on one line.
std::string usage_mistake(const CommandLine& line, const CLI::ParseError& error) {
  const CLI::App* verb = &line.app;
  std::string name = "muster";
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    name += " " + verb->get_name();
  }
  const std::string see = " (see " + name + " --help)";
  const bool is_group = verb->get_require_subcommand_min() > 0;
  if (!is_group || (verb != &line.app && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ValidationError)))
    return error.what() + see;
  const auto words = line.app.remaining(true);
  for (const std::string& word : words) {
    if (word.front() != '-') return "unknown verb " + word + see;
  }
  return (words.empty() ? "a verb is needed" : "unknown option " + words.front()) + see;
}

int bad_usage(const CommandLine& line, const CLI::ParseError& error) {
  std::string message = usage_mistake(line, error);
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cerr << "muster: " << escape(message) << std::endl;
  return 2;
}

/// Whether nobody reads the answer any more, as after `| head`.
bool reader_left() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

int perform(CommandLine& line, CoordinatorMain coordinator) {
  if (line.common.quiet && line.common.verbose) {
    std::cerr << "muster: -q and -v contradict each other" << std::endl;
    return 2;
  }
  const Environment env = process_environment();
  Screen screen = make_screen(line.common, env);
  Session session{line.common, env, screen, coordinator};
  const int status = line.action(session);
  std::cout << std::flush;
  if (std::cout) return status;
  if (!reader_left()) std::cerr << "muster: the answer cannot be written" << std::endl;
  return std::max(status, 1);
}

}  // namespace

int run(int argc, char** argv, CoordinatorMain coordinator) {
  hold_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away (`| head`) is a failed write
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that would be larger than a process may write
  int status = 1;
  try {
    CommandLine line;
    try {
      line.app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return error.get_exit_code() == 0 ? line.app.exit(error) : bad_usage(line, error);
    }
    status = perform(line, coordinator);
  } catch (const std::exception& error) {
    std::cerr << "muster: " << error.what() << std::endl;
  }
  nats_library_close();
  return status;
}

}  // namespace muster::cli
