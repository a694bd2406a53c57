#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "coordinator/jsonpath.h"

using muster::JsonDocument;
using muster::JsonPath;
using nlohmann::json;

namespace {

/// The public compliance suite (cases.json), which is no part of the project: $MUSTER_JSONPATH_CASES, or corpora
/// beside the source directory.
std::filesystem::path suite() {
  if (const char* named = std::getenv("MUSTER_JSONPATH_CASES")) return named;
  const char* source = std::getenv("MUSTER_SOURCE_DIR");
  return std::filesystem::path(source != nullptr ? source : ".") / "../shared/corpora/jsonpath/cases.json";
}

void check(const json& test) {
  INFO(test.at("name") << ": " << test.at("selector"));
  const auto path = JsonPath::parse(test.at("selector").get<std::string>());
  if (test.value("invalid_selector", false)) {
    CHECK_FALSE(path.has_value());
    return;
  }
  INFO((path ? "" : path.error().message));
  REQUIRE(path.has_value());
  JsonDocument document;
  REQUIRE(document.parse(test.at("document").dump()).has_value());
  json values = json::array();
  json paths = json::array();
  const auto matches = path->find(document);
  for (const auto& match : matches.value()) {
    values.push_back(json::parse(match.value));
    paths.push_back(match.path);
  }
  const json allowed = test.contains("results") ? test.at("results") : json::array({test.at("result")});
  CHECK_THAT(allowed.get<std::vector<json>>(), Catch::VectorContains(values));
  if (!test.contains("results_paths") && !test.contains("result_paths")) return;
  const json places =
      test.contains("results_paths") ? test.at("results_paths") : json::array({test.at("result_paths")});
  CHECK_THAT(places.get<std::vector<json>>(), Catch::VectorContains(paths));
}

}  // namespace

TEST_CASE("JSONPath passes the public compliance suite") {
  std::ifstream file(suite());
  if (!file) {
    WARN("skipped: no " << suite().lexically_normal().string());
    return;
  }
  const json cases = json::parse(file).at("tests");
  for (const json& test : cases) check(test);
  WARN(cases.size() << " cases");
}
