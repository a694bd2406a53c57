#include "coordinator/cli/jsonpath_verb.h"

#include <istream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "coordinator/jsonpath.h"

namespace muster {

int run_jsonpath(const std::string& selector, std::istream& in, std::ostream& out, std::ostream& err) {
  const auto path = JsonPath::parse(selector);
  if (!path) {
    err << "selector: " << path.error().message << '\n';
    return 2;
  }
  const std::string text(std::istreambuf_iterator<char>(in), {});
  JsonDocument document;
  if (const auto parsed = document.parse(text); !parsed) {
    err << "input: " << parsed.error().message << '\n';
    return 2;
  }
  const auto matches = path->find(document, std::numeric_limits<std::size_t>::max());
  if (!matches) {
    err << "selector: " << matches.error().message << '\n';
    return 2;
  }
  const char* separator = "[";
  for (const Match& match : *matches) {
    out << separator << R"({"path":)" << nlohmann::json(match.path).dump() << R"(,"value":)" << match.value << '}';
    separator = ",\n ";
  }
  out << (matches->empty() ? "[]\n" : "]\n");
  return 0;
}

}  // namespace muster
