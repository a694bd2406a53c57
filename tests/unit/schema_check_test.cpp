// Schemas that are made to cost the coordinator its stack or its time.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/property_rules.h"
#include "coordinator/schema_check.h"

using namespace muster;
using Json = nlohmann::json;
using Catch::Matchers::Contains;

namespace {

Json ref_to(const std::string& name) {
  return {{"$ref", "#/$defs/" + name}};
}

/// A schema whose property `p` is the first of `length` definitions, each made of a reference to the next.
template <typename Link>
std::string chain(int length, const Link& link, Json end = {{"type", "string"}}) {
  Json schema = {{"properties", {{"p", ref_to("0")}}}};
  auto& definitions = schema["$defs"];
  for (int i = 0; i < length; ++i) definitions[std::to_string(i)] = link(ref_to(std::to_string(i + 1)));
  definitions[std::to_string(length)] = std::move(end);
  return schema.dump();
}

std::string refusal(const std::string& schema) {
  const auto check = SchemaCheck::compile(schema);
  return check ? std::string() : check.error().message;
}

/// How many faults are told; -1: it was too much to check.
int faults_of(const std::string& schema, const Json& document) {
  const auto check = SchemaCheck::compile(schema);
  INFO(schema.substr(0, 200));
  REQUIRE(check);
  const auto faults = check->faults(document);
  if (!faults) CHECK(faults.error().code == Errc::kTooLarge);
  return faults ? static_cast<int>(faults->size()) : -1;
}

/// `levels` times {"x": ...}.
Json nested(int levels) {
  Json made = "end";
  for (int i = 0; i < levels; ++i) made = Json{{"x", std::move(made)}};
  return made;
}

}  // namespace

TEST_CASE("a schema that leads too far where its references are followed is refused") {
  using Link = Json (*)(Json);
  const std::vector<Link> links{
      [](Json next) { return next; },
      [](Json next) {
        return Json{{"allOf", {std::move(next)}}};
      },
      [](Json next) {
        return Json{{"anyOf", {true, std::move(next)}}};
      },
      [](Json next) {
        return Json{{"oneOf", {std::move(next), false}}};
      },
      [](Json next) {
        return Json{{"properties", {{"a", std::move(next)}}}};
      },
      [](Json next) {
        return Json{{"patternProperties", {{"a", std::move(next)}}}};
      },
      [](Json next) {
        return Json{{"additionalProperties", std::move(next)}};
      },
      [](Json next) {
        return Json{{"items", std::move(next)}};
      },
      [](Json next) {
        return Json{{"items", {true, std::move(next)}}};
      },
      [](Json next) {
        return Json{{"items", Json::array()}, {"additionalItems", std::move(next)}};
      },
      [](Json next) {
        return Json{{"contains", std::move(next)}};
      },
      [](Json next) {
        return Json{{"propertyNames", std::move(next)}};
      },
      [](Json next) {
        return Json{{"dependencies", {{"a", std::move(next)}}}};
      },
      [](Json next) {
        return Json{{"not", std::move(next)}};
      },
      [](Json next) {
        return Json{{"if", std::move(next)}};
      },
      [](Json next) {
        return Json{{"if", true}, {"then", std::move(next)}};
      },
      [](Json next) {
        return Json{{"if", true}, {"else", std::move(next)}};
      },
      [](Json next) {
        return Json{{"$defs", {{"a", std::move(next)}}}};
      },
  };
  for (const auto& link : links) {
    const auto schema = chain(2'000, link);
    INFO(link(ref_to("next")));
    CHECK_THAT(refusal(schema), Contains("levels deep"));
    CHECK_NOTHROW(property_rules(schema));
    CHECK(refusal(chain(100, link)).empty());
  }
}

TEST_CASE("a schema that leads as far as it may can be checked") {
  const auto inside = [](Json next) { return Json{{"properties", {{"x", std::move(next)}}}}; };
  const auto beside = [](Json next) { return Json{{"allOf", {std::move(next)}}}; };
  CHECK(faults_of(chain(120, inside), {{"p", nested(120)}}) == 0);
  CHECK(faults_of(chain(120, inside), {{"p", nested(121)}}) == 1);
  CHECK(faults_of(chain(120, beside), {{"p", "text"}}) == 0);
  CHECK(faults_of(chain(120, beside), {{"p", 1}}) > 0);
}

TEST_CASE("a schema of what holds its like goes as deep as the document") {
  const std::string tree =
      R"({"$ref":"#/$defs/node","$defs":{"node":{"additionalProperties":false,"properties":{"x":{"anyOf":[
         {"type":"string"},{"$ref":"#/$defs/node"}]},"below":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}})";
  CHECK(faults_of(tree, nested(60)) == 0);
  CHECK(faults_of(tree, Json::parse(R"({"below":[{"x":"a"},{"below":[{"y":1}]}]})")) > 0);
  CHECK(faults_of(R"({"properties":{"x":{"$ref":"#"}}})", nested(450)) == 0);
  CHECK(faults_of(R"({"properties":{"x":{"allOf":[{"not":{"not":{"$ref":"#"}}}]}}})", nested(450)) == -1);
}

TEST_CASE("many definitions that refer to each other are no long way") {
  Json schema = {{"properties", {{"p", ref_to("0")}}}};
  for (int i = 0; i < 100; ++i) {
    auto& definition = schema["$defs"][std::to_string(i)];
    for (int j = 0; j < 30; ++j) definition["properties"][std::to_string(j)] = ref_to(std::to_string((i + j) % 100));
  }
  CHECK(faults_of(schema.dump(), {{"p", {{"0", {{"1", 2}}}}}}) == 0);
}

TEST_CASE("a document that its schema asks too much of is not checked") {
  const auto doubled = [](const char* keyword) {
    return [keyword](const Json& next) { return Json{{keyword, {next, next}}}; };
  };
  const Json document = {{"p", "text"}, {"x", "text"}};
  CHECK(faults_of(chain(60, doubled("allOf")), document) == -1);
  CHECK(faults_of(chain(60, doubled("anyOf"), {{"type", "integer"}}), document) == -1);
  CHECK(faults_of(chain(60, [](const Json& next) { return Json{{"if", next}, {"then", next}}; }), document) == -1);
  CHECK(faults_of(chain(60,
                        [](const Json& next) {
                          return Json{{"not", {{"anyOf", {{{"not", next}}, {{"not", next}}}}}}};
                        }),
                  document) == -1);
  CHECK(faults_of(chain(60,
                        [](const Json& next) {
                          return Json{{"dependencies", {{"a", next}, {"b", next}}}};
                        }),
                  {{"p", {{"a", 1}, {"b", 2}}}}) == -1);
  CHECK(faults_of(R"({"propertyNames":{"$ref":"#/$defs/0"},)" + chain(60, doubled("allOf")).substr(1), {{"q", 1}}) ==
        -1);
}

TEST_CASE("what a schema asks more often the deeper the document is has its bound as well") {
  const auto twice = [](const char* keyword) {
    const Json inner = {{"properties", {{"x", ref_to("n")}}}};
    return Json{{"$ref", "#/$defs/n"}, {"$defs", {{"n", {{keyword, {inner, inner}}}}}}}.dump();
  };
  CHECK(faults_of(twice("allOf"), nested(50)) == -1);
  CHECK(faults_of(twice("allOf"), nested(5)) == 0);
}

TEST_CASE("a document with much in it is checked against all that its schema lists") {
  auto values = Json::array(), names = Json::array(), all = Json::array();
  for (int i = 0; i < 200; ++i) values.push_back("value " + std::to_string(i));
  for (int i = 0; i < 2'000; ++i) all.push_back("value " + std::to_string(i % 200));
  const auto schema = Json{{"properties", {{"p", {{"items", {{"enum", values}}}}}}}}.dump();
  CHECK(faults_of(schema, {{"p", all}}) == 0);
  all.push_back("other");
  CHECK(faults_of(schema, {{"p", all}}) == 1);

  for (int i = 0; i < 20'000; ++i) names.push_back("name " + std::to_string(i));
  const auto each = Json{{"properties", {{"p", {{"items", {{"required", names}}}}}}}}.dump();
  CHECK(faults_of(each, {{"p", Json::array({Json::object()})}}) == 100);
  CHECK(faults_of(each, {{"p", Json(2'000, Json::object())}}) == -1);
}

TEST_CASE("patterns are asked about texts within the same bound") {
  auto patterns = Json::array(), texts = Json::array();
  for (int i = 0; i < 3'000; ++i) patterns.push_back({{"pattern", std::to_string(i)}});
  for (int i = 0; i < 3'000; ++i) texts.push_back("a" + std::to_string(i));
  CHECK(faults_of(Json{{"properties", {{"p", {{"items", {{"anyOf", patterns}}}}}}}}.dump(), {{"p", texts}}) == -1);
  auto large = Json::array();
  for (int i = 0; i < 2'000; ++i) large.push_back({{"pattern", "\\pL{1000}" + std::to_string(i)}});
  CHECK(faults_of(Json{{"properties", {{"p", {{"allOf", large}}}}}}.dump(), {{"p", "text"}}) == -1);
}

TEST_CASE("the next document has half the time of one that was too much") {
  const auto twice = [](const Json& next) { return Json{{"allOf", {next, next}}}; };
  auto schema = Json::parse(chain(60, twice));
  schema["properties"]["q"] = ref_to("44");  // 2^16 times the last, which takes more than half of the time
  const auto check = SchemaCheck::compile(schema.dump());
  REQUIRE(check);
  CHECK(check->faults({{"q", "text"}}));
  CHECK_FALSE(check->faults({{"p", "text"}}));
  CHECK_FALSE(check->faults({{"q", "text"}}));
  CHECK(check->faults({{"r", "text"}}));
}

TEST_CASE("a reference means the same in each spelling") {
  const Json document = {{"a b", 1}, {"c", 1}};
  for (const auto* ref : {"#/$defs/a%20b", "#/%24defs/a b", "#/$defs//a b/", "http://a.test/s#/$defs/a%20b"}) {
    INFO(ref);
    const auto schema = Json{{"id", "http://a.test/s"},
                             {"properties", {{"c", {{"$ref", ref}}}}},
                             {"$defs", {{"a b", {{"type", "string"}}}}}};
    CHECK(faults_of(schema.dump(), document) == 1);
  }
  for (const auto* ref : {"#/%70roperties/p", "#/properties/p/", "#//properties//p", "http://a.test/s#/properties/p"}) {
    INFO(ref);
    CHECK_THAT(refusal(Json{{"id", "http://a.test/s"}, {"properties", {{"p", {{"$ref", ref}}}}}}.dump()),
               Contains("without an end"));
  }
  const auto far = [](std::string ref) {
    return refusal(Json{{"properties", {{"p", {{"$ref", std::move(ref)}}}}}}.dump());
  };
  CHECK_FALSE(far('#' + std::string(500'000, '/')).empty());
  CHECK_FALSE(far("urn:name:" + std::string(500'000, 'a')).empty());
  CHECK_FALSE(far("").empty());
  CHECK_FALSE(far("#/properties/q").empty());
}

TEST_CASE("an id within a schema does not change what its references mean") {
  CHECK(faults_of(R"({"$ref":"#/$defs/n","$defs":{"n":{"id":"n/","properties":{"x":{"$ref":"#/$defs/n"}}}}})",
                  nested(3)) == 0);
}

TEST_CASE("patterns are read in linear time wherever a schema keeps them") {
  const std::string schema = R"({"properties":{"p":{"$ref":"#/x-defs/word"},"q":{"anyOf":[{"$ref":"#/x-defs/word"}]}},
      "x-defs":{"word":{"type":"string","pattern":"^(a|b)*$"}}})";
  CHECK(faults_of(schema, {{"p", std::string(300'000, 'a')}, {"q", "ab"}}) == 0);
  CHECK(faults_of(schema, {{"p", "c"}}) > 0);
  CHECK(faults_of(schema, {{"q", "c"}}) > 0);
}

TEST_CASE("what a schema says again and again of the same is read once for each reference") {
  auto wide = Json::array();
  for (int i = 0; i < 40'000; ++i) wide.push_back(true);
  Json schema = {{"allOf", wide}};
  for (int i = 0; i < 100; ++i) schema = Json{{"not", std::move(schema)}};
  std::string at = "#";
  for (int i = 0; i < 100; ++i) {
    at += "/not";
    schema["properties"]["p" + std::to_string(100 + i)]["$ref"] = at;
  }
  CHECK_THAT(refusal(schema.dump()), Contains("too large"));
  CHECK_THAT(refusal(Json{{"properties", {{std::string(400'000, 'a'), {{"allOf", wide}}}}}}.dump()),
             Contains("too large"));
}

TEST_CASE("what only the system sets is asked of no declaration, wherever the schema says so") {
  const std::string element = R"({"type":"object","required":["name","oid"],"properties":{"name":{"type":"string"},
      "oid":{"type":"integer","readOnly":true}}})";
  const Json document{{"it", {{"name", "a"}}}};
  CHECK(faults_of(R"({"properties":{"it":)" + element + "}}", document) == 0);
  CHECK(faults_of(R"({"properties":{"it":{"$ref":"#/$defs/it"}},"$defs":{"it":)" + element + "}}", document) == 0);
  CHECK(faults_of(R"({"properties":{"it":{"allOf":[)" + element + "]}}}", document) == 0);
  CHECK(faults_of(R"({"additionalProperties":)" + element + "}", document) == 0);
  const std::string list = R"({"properties":{"list":{"type":"array","items":)" + element + "}}}";
  CHECK(faults_of(list, {{"list", {{{"name", "a"}}}}}) == 0);
  CHECK(faults_of(list, {{"list", {{{"oid", 1}}}}}) > 0);
  const std::string referred = R"({"required":["id","other"],"properties":{"id":{"$ref":"#/$defs/id"},
      "other":{"allOf":[{"$ref":"#/$defs/id"}]}},"$defs":{"id":{"type":"string","readOnly":true}}})";
  CHECK(faults_of(referred, Json::object()) == 0);
  CHECK(faults_of(R"({"properties":{"it":{"const":)" + element + "}}}", {{"it", Json::parse(element)}}) == 0);
  CHECK(faults_of(R"({"required":["properties"],"properties":{"properties":{"type":"string"}}})", Json::object()) > 0);
}
