#include "coordinator/cli/local_verbs.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "coordinator/cli/jsonpath_verb.h"

namespace muster::cli {
int report(Screen& screen, const std::vector<ConfigMistake>& mistakes) {
  for (const ConfigMistake& mistake : mistakes) screen.err << escape(to_string(mistake)) << '\n';
  screen.err << std::flush;
  return 2;
}

int check(Screen& screen, const std::string& file) {
  const ConfigResult result = load_config(file, {});
  Json mistakes = Json::array();
  for (const ConfigMistake& one : result.mistakes) {
    mistakes.push_back({{"file", one.file}, {"line", one.line}, {"column", one.column}, {"message", one.message}});
  }
  const bool good = mistakes.empty();
  const Json answer{{"file", file}, {"ok", good}, {"mistakes", mistakes}};
  write_object(screen, answer.dump(-1, ' ', false, Json::error_handler_t::replace), [&](const Json&) {
    if (!good) return;
    screen.out << file << ": good: " << result.config.targets.size() << " targets, " << result.config.workers.size()
               << " kinds of workers\n";
  });
  return good ? 0 : report(screen, result.mistakes);
}

int jsonpath(Screen& screen, const std::string& selector, const std::string& file) {
  if (file == "-") return run_jsonpath(selector, std::cin, screen.out, screen.err);
  std::ifstream in(file, std::ios::binary);
  if (in) return run_jsonpath(selector, in, screen.out, screen.err);
  screen.err << "muster: " << escape(file) << " cannot be read: " << std::strerror(errno) << std::endl;
  return 2;
}

}  // namespace muster::cli
