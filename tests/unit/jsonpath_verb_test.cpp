#include "coordinator/cli/jsonpath_verb.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome run(const std::string& selector, const std::string& input,
            muster::MatchLayout layout = muster::MatchLayout::kArray) {
  std::ostringstream out, err;
  const int code = muster::run_jsonpath(selector, {"x.json", input}, layout, out, err);
  return {code, out.str(), err.str()};
}

}  // namespace

TEST_CASE("muster jsonpath writes matches as a JSON array") {
  const auto outcome = run("$..['a b']", R"({"a b":[1,{"a b":"\"x\""}]})");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(nlohmann::json::parse(outcome.out) == nlohmann::json::parse(R"([{"path":"$['a b']","value":[1,{"a b":"\"x\""}]},
                                  {"path":"$['a b'][1]['a b']","value":"\"x\""}])"));
  CHECK(nlohmann::json::parse(run("$.*", R"({"\\\"'\n":1})").out)[0]["path"] == "$['\\\\\"\\'\\n']");
  CHECK(run("$.none", "{}").out == "[]\n");
  CHECK(run("$.none", "{}").code == 0);
  const auto lines = muster::MatchLayout::kLines;
  CHECK(run("$.*", "[1,2]", lines).out == "{\"path\":\"$[0]\",\"value\":1}\n{\"path\":\"$[1]\",\"value\":2}\n");
  CHECK(run("$.*", "[]", lines).out.empty());
}

TEST_CASE("muster jsonpath exits 2 on bad input and says where") {
  const auto selector = run("$[?@.a=1]", "{}");
  CHECK(selector.code == 2);
  CHECK(selector.out.empty());
  CHECK_THAT(selector.err, Catch::StartsWith("selector: column "));
  const auto input = run("$.a", "{\n \"a\": }");
  CHECK(input.code == 2);
  CHECK(input.out.empty());
  CHECK_THAT(input.err, Catch::StartsWith("x.json:2:7: syntax error"));
}
