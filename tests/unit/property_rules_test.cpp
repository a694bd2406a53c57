// Where a schema may mark what is secret or never read back, and what becomes of it.
#include <catch2/catch.hpp>

#include "coordinator/unread.h"

using namespace muster;
using Json = nlohmann::json;
using Pointers = std::vector<std::string>;

namespace {

/// What is kept of an object of a type with this schema.
Json kept(const char* schema, const char* object) {
  const UnreadProperties unread(property_rules(schema).value());
  if (!unread.may_be_in(object)) return Json::parse(object);
  Pointers dropped;
  return Json::parse(unread.drop_from(object, dropped).value());
}

}  // namespace

TEST_CASE("a secret is known wherever its schema marks it") {
  struct Case {
    const char* schema;
    const char* object;
    const char* kept;
    const char* pointer;  // of the secret
  };
  const auto& one = GENERATE(
      Case{R"({"properties":{"env":{"additionalProperties":{"x-muster-secret":true}}}})",
           R"({"env":{"A":"hush"},"name":"n"})", R"({"env":{},"name":"n"})", "/env/A"},
      Case{R"({"properties":{"env":{"properties":{"B":{}},"additionalProperties":{"x-muster-secret":true}}}})",
           R"({"env":{"A":"hush","B":"plain"}})", R"({"env":{"B":"plain"}})", "/env/A"},
      Case{R"({"properties":{"env":{"patternProperties":{"^PW_":{"x-muster-secret":true}}}}})",
           R"({"env":{"PW_A":"hush"}})", R"({"env":{}})", "/env/PW_A"},
      Case{R"({"properties":{"users":{"additionalProperties":{"properties":{"pin":{"writeOnly":true}}}}}})",
           R"({"users":{"a":{"name":"a","pin":"hush"}}})", R"({"users":{"a":{"name":"a"}}})", "/users/a/pin"},
      Case{R"({"properties":{"pin":{"$ref":"#/$defs/pin"}},"$defs":{"pin":{"x-muster-secret":true}}})",
           R"({"name":"n","pin":"hush"})", R"({"name":"n"})", "/pin"},
      Case{R"({"properties":{"pin":{"$ref":"#/$defs/of~1pins/0"}},"$defs":{"of/pins":[{"writeOnly":true}]}})",
           R"({"pin":"hush"})", "{}", "/pin"},
      Case{R"({"properties":{"logins":{"items":{"$ref":"#/definitions/login"}}},
               "definitions":{"login":{"properties":{"pin":{"writeOnly":true}}}}})",
           R"({"logins":[{"pin":"hush","user":"u"}]})", R"({"logins":[{"user":"u"}]})", "/logins/0/pin"},
      Case{R"({"properties":{"pair":{"items":[{"type":"string"},{"writeOnly":true}]}}})", R"({"pair":["a","hush"]})",
           "{}", "/pair"},
      Case{R"({"allOf":[{"properties":{"pin":{"x-muster-secret":true}}},{"properties":{"name":{}}}]})",
           R"({"name":"n","pin":"hush"})", R"({"name":"n"})", "/pin"},
      Case{R"({"properties":{"login":{"oneOf":[{"properties":{"key":{"writeOnly":true}}},{"type":"string"}]}}})",
           R"({"login":{"key":"hush"}})", R"({"login":{}})", "/login/key"},
      Case{R"({"if":{"required":["a"]},"then":{"properties":{"pin":{"writeOnly":true}}}})", R"({"pin":"hush"})", "{}",
           "/pin"},
      Case{R"({"properties":{"node":{"$ref":"#/$defs/node"}},"$defs":{"node":{"properties":{"pin":{"writeOnly":true},
               "left":{"$ref":"#/$defs/node"},"right":{"$ref":"#/$defs/node"}}}}})",
           R"({"node":{"left":{"pin":"hush"},"name":"n","pin":"hush"}})", R"({"node":{"left":{},"name":"n"}})",
           "/node/left/pin"});
  INFO(one.schema);
  CHECK(kept(one.schema, one.object) == Json::parse(one.kept));
  const auto rules = property_rules(one.schema).value();
  CHECK(is_confidential(rules, one.pointer));
  CHECK(without_write_only(rules, Json::parse(one.object)).dump().find("hush") == std::string::npos);
}

TEST_CASE("of a tree whose schema has no end no secret is kept, however deep it lies") {
  constexpr const char* kSchema = R"({"properties":{"name":{},"pin":{"writeOnly":true},"next":{"$ref":"#"}}})";
  Json tree{{"name", "last"}, {"pin", "hush"}};
  for (int i = 0; i < 40; ++i) tree = {{"name", "n"}, {"next", tree}};
  const auto rest = kept(kSchema, tree.dump().c_str());
  CHECK(rest.dump().find("hush") == std::string::npos);
  CHECK(rest["next"]["next"]["name"] == "n");
}

TEST_CASE("what a schema says elsewhere of a property counts as what it says there") {
  const auto rules = property_rules(R"({"properties":{"id":{"$ref":"#/$defs/id"},
    "tags":{"additionalProperties":{"x-muster-create-only":true}},"tree":{"$ref":"#"}},
    "$defs":{"id":{"readOnly":true}}})")
                         .value();
  CHECK(rules.of("id").read_only);
  CHECK(rules.of("tags").of("any").create_only);
  CHECK_FALSE(rules.holds_write_only);  // and none of a tree without secrets is held back
  CHECK_FALSE(rules.of("nothing").create_only);
  // One of several says what may be, not what is.
  CHECK_FALSE(property_rules(R"({"anyOf":[{"properties":{"id":{"readOnly":true}}},{}]})").value().of("id").read_only);
}

TEST_CASE("a schema of any shape has rules, and soon") {
  Json schema{{"$defs", Json::object()},
              {"properties", {{"pin", {{"writeOnly", true}}}, {"a", {{"$ref", "#/$defs/0"}}}}}};
  constexpr int kTypes = 40;  // each refers to all
  for (int i = 0; i < kTypes; ++i) {
    auto& properties = schema["$defs"][std::to_string(i)]["properties"];
    for (int j = 0; j < kTypes; ++j) properties["p" + std::to_string(j)]["$ref"] = "#/$defs/" + std::to_string(j);
  }
  const auto rules = property_rules(schema.dump()).value();
  CHECK(rules.of("pin").write_only);
  CHECK(rules.of("a").holds_write_only);  // somewhere in there the rest is not looked at
  for (const auto* odd : {R"({"$ref":"#"})", R"({"$ref":"#/nowhere"})", R"({"$ref":"http://x/"})", R"({"$ref":1})",
                          R"({"allOf":[{"$ref":"#"}]})", R"({"allOf":1,"items":true,"properties":[]})"}) {
    CHECK(property_rules(odd));
  }
}
