#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/filter.h"
#include "coordinator/json_forms.h"

using namespace muster;
using nlohmann::json;

TEST_CASE("a filter has the form of the configuration") {
  const MatchFilter filter{{"PG::Table"},
                           {TagMatch{{"Env"}, "tmp"}, PropertyMatch{"$.name", MatchOp::kRegex, R"("^tmp_")"}},
                           FilterAction::kInclude};
  CHECK(to_json(filter) == json::parse(R"({"types":["PG::Table"],"action":"include","conditions":[
      {"tag":{"keys":["Env"],"value":"tmp"}},{"property":{"path":"$.name","op":"regex","value":"^tmp_"}}]})"));
}

TEST_CASE("filters and documents come back exactly") {
  for (const auto* value :
       {"", "null", "\"\"", "1", "1.0", "1e2", " 1 ", R"("\u00e9")", R"({"b":1,"a":2})", "[1, 2]", "{"}) {
    INFO(value);
    const MatchFilter filter{{}, {PropertyMatch{"$.a", MatchOp::kEq, value}}, FilterAction::kExclude};
    CHECK(filter_from_json(to_json(filter)).value() == filter);
  }
  const std::vector<MatchFilter> filters{{}, {{"A::B", "A::C"}, {TagMatch{{"k", "K"}, ""}}, FilterAction::kInclude}};
  CHECK(filters_from_json(to_json(filters)).value() == filters);
  const Document document{R"({ "a" : null })",
                          {{"/a",
                            {{SecretPart::Kind::kLiteral, "x"},
                             {SecretPart::Kind::kEnv, "NAME"},
                             {SecretPart::Kind::kFile, "/run/s"},
                             {SecretPart::Kind::kSecret, "pw"}}}}};
  CHECK(document_from_json(json::parse(to_json(document).dump())).value() == document);
}

TEST_CASE("a filter whose value is nested too deep is kept as it is, and cannot be used") {
  constexpr std::size_t kDeep = 100'000;
  const MatchFilter filter{{},
                           {PropertyMatch{"$.a", MatchOp::kEq, std::string(kDeep, '[') + std::string(kDeep, ']')}},
                           FilterAction::kExclude};
  const auto stored = json::parse(to_json(filter).dump());
  CHECK(filter_from_json(stored).value() == filter);
  CHECK_FALSE(FilterSet::compile({filter}));
}

TEST_CASE("what is no filter or document is malformed") {
  for (const auto* text :
       {"null", "[]", "{}", R"({"types":[1],"action":"exclude","conditions":[]})",
        R"({"types":[],"action":"drop","conditions":[]})", R"({"types":[],"action":"exclude"})",
        R"({"types":[],"action":"exclude","conditions":[{}]})", R"({"types":[],"action":"exclude","conditions":[7]})",
        R"({"types":[],"action":"exclude","conditions":[{"tag":{"keys":"a","value":""}}]})",
        R"({"types":[],"action":"exclude","conditions":[{"property":{"path":"$","op":"like"}}]})",
        R"({"types":[],"action":"exclude","conditions":[{"property":{"path":"$","op":"eq","value_text":1}}]})"}) {
    INFO(text);
    CHECK(filter_from_json(json::parse(text)).error().code == Errc::kMalformed);
  }
  CHECK(filters_from_json(json::parse("{}")).error().code == Errc::kMalformed);
  CHECK(filters_from_json(json::parse("[{}]")).error().code == Errc::kMalformed);
  for (const auto* text : {"[]", "{}", R"({"json":"{}"})", R"({"json":"{}","secrets":[{}]})",
                           R"({"json":"{}","secrets":[{"pointer":"/a"}]})",
                           R"({"json":"{}","secrets":[{"pointer":"/a","parts":[{"what":"x"}]}]})",
                           R"({"json":"{}","secrets":[{"pointer":"/a","parts":[{"env":1}]}]})"}) {
    INFO(text);
    CHECK(document_from_json(json::parse(text)).error().code == Errc::kMalformed);
  }
}
