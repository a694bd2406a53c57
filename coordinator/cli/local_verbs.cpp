#include "coordinator/cli/local_verbs.h"

#include <iostream>
#include <iterator>
#include <sstream>

#include "coordinator/cli/jsonpath_verb.h"
#include "coordinator/declaration_reader.h"

namespace muster::cli {
namespace {

struct Checked {
  std::vector<ConfigMistake> mistakes;
  std::string holds;  // for people
};

Checked check_text(const std::string& file, const std::string& text,
                   const std::map<std::string, std::string>& variables) {
  if (!looks_like_declaration(text)) {
    const ConfigResult result = parse_config(text, file, {});
    return {result.mistakes, std::to_string(result.config.targets.size()) + " targets, " +
                                 std::to_string(result.config.workers.size()) + " kinds of workers"};
  }
  const DeclarationResult result = read_declarations({{file, text}}, variables, nullptr, Cycles::kMistakes);
  std::size_t resources = 0;
  for (const Declaration& stack : result.stacks) resources += stack.resources.size();
  return {result.mistakes,
          std::to_string(resources) + " resources, " + std::to_string(result.targets.size()) + " targets"};
}

}  // namespace

std::string input_name(const std::string& file) {
  return file == "-" ? "(standard input)" : file;
}

Result<std::string> read_input(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  return read_file(file);
}

int report(Screen& screen, const std::vector<ConfigMistake>& mistakes) {
  for (const ConfigMistake& mistake : mistakes) screen.err << escape(to_string(mistake)) << '\n';
  screen.err << std::flush;
  return 2;
}

int check(Screen& screen, const std::string& input, const std::map<std::string, std::string>& variables) {
  const std::string file = input_name(input);
  const auto text = read_input(input);
  const Checked checked = text ? check_text(file, *text, variables) : Checked{{{file, 0, 0, text.error().message}}, {}};
  Json list = Json::array();
  for (const ConfigMistake& one : checked.mistakes) {
    list.push_back({{"file", one.file}, {"line", one.line}, {"column", one.column}, {"message", one.message}});
  }
  const bool good = checked.mistakes.empty();
  const Json answer{{"file", file}, {"ok", good}, {"mistakes", list}};
  write_answer(screen, answer.dump(-1, ' ', false, Json::error_handler_t::replace), [&](const Json&) {
    if (good) screen.out << file << ": good: " << checked.holds << '\n';
  });
  return good ? 0 : report(screen, checked.mistakes);
}

int jsonpath(Screen& screen, const std::string& selector, const std::string& file) {
  auto text = read_input(file);
  if (!text) return report(screen, {{file, 0, 0, text.error().message}});
  const JsonInput input{escape(input_name(file)), std::move(*text)};
  const MatchLayout layout = screen.format == Format::kNdjson ? MatchLayout::kLines : MatchLayout::kArray;
  if (screen.format != Format::kYaml) return run_jsonpath(selector, input, layout, screen.out, screen.err);
  std::ostringstream matches;
  const int status = run_jsonpath(selector, input, layout, matches, screen.err);
  if (status == 0) screen.out << to_yaml(Json::parse(matches.str())) << std::flush;
  return status;
}

}  // namespace muster::cli
