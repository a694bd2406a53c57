#include "coordinator/cli/jsonpath_verb.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "coordinator/jsonpath.h"

namespace muster {
namespace {

/// The number behind `word` in a message, 0 where there is none.
std::size_t number_behind(std::string_view message, std::string_view word) {
  std::size_t number = 0;
  const std::size_t at = message.find(word);
  if (at != std::string_view::npos) {
    std::from_chars(message.data() + at + word.size(), message.data() + message.size(), number);
  }
  return number;
}

/// The parser's `parse error at line 1, column 2: what` as `name:1:2: what`, like every mistake in a file.
std::string placed(const std::string& name, std::string_view message) {
  const std::size_t line = number_behind(message, "line ");
  if (line == 0) return name + ": " + std::string(message);
  const std::size_t what = std::min(message.find(": "), message.size());
  return name + ":" + std::to_string(line) + ":" + std::to_string(number_behind(message, "column ")) +
         std::string(message.substr(what));
}

}  // namespace

int run_jsonpath(const std::string& selector, const JsonInput& input, MatchLayout layout, std::ostream& out,
                 std::ostream& err) {
  const auto path = JsonPath::parse(selector);
  if (!path) {
    err << "selector: " << path.error().message << '\n';
    return 2;
  }
  JsonDocument document;
  if (const auto parsed = document.parse(input.text); !parsed) {
    err << placed(input.name, parsed.error().message) << '\n';
    return 2;
  }
  const auto matches = path->find(document, std::numeric_limits<std::size_t>::max());
  if (!matches) {
    err << "selector: " << matches.error().message << '\n';
    return 2;
  }
  const bool lines = layout == MatchLayout::kLines;
  const char* separator = lines ? "" : "[";
  for (const Match& match : *matches) {
    out << separator << R"({"path":)" << nlohmann::json(match.path).dump() << R"(,"value":)" << match.value << '}';
    separator = lines ? "\n" : ",\n ";
  }
  if (!lines) out << (matches->empty() ? "[]\n" : "]\n");
  if (lines && !matches->empty()) out << '\n';
  return 0;
}

}  // namespace muster
