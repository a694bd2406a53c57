// What would have to change in an object for it to be as declared.
#include <catch2/catch.hpp>

#include "coordinator/difference.h"
#include "coordinator/references.h"

using namespace muster;
using Json = nlohmann::json;

namespace {

PropertyRule rules(const char* properties) {
  return property_rules(std::string(R"({"type":"object","properties":)") + properties + "}").value();
}

Json patch(const char* schema, const char* there, const char* declared) {
  return compare(rules(schema), Json::parse(there), Json::parse(declared)).patch;
}

}  // namespace

TEST_CASE("only declared fields count") {
  CHECK(patch("{}", R"({"a":1,"b":2})", R"({"a":1})").empty());
  CHECK(patch("{}", R"({"a":{"x":1,"y":2}})", R"({"a":{"x":1}})").empty());
  CHECK(patch("{}", R"({"a":{"x":1,"y":2}})", R"({"a":{"x":3}})") ==
        Json::parse(R"([{"op":"replace","path":"/a/x","value":3}])"));
  CHECK(patch("{}", R"({})", R"({"a":1})") == Json::parse(R"([{"op":"add","path":"/a","value":1}])"));
  CHECK(patch("{}", R"({"a":1})", R"({"a":null})")[0]["op"] == "remove");
  CHECK(patch("{}", R"({})", R"({"a":null})").empty());
}

TEST_CASE("what stands there just as it is declared differs nowhere, whatever its type says") {
  const auto* const document =
      R"({"a":null,"b":[3,1,{"x":null,"y":[]}],"c":{"d":{"e":1.5,"f":null}},"g":"{\"h\":1}","i":[[2,1],[1,2]],"j":{}})";
  const auto* const property = GENERATE(
      R"({})", R"({"default":7})", R"({"readOnly":true})", R"({"x-muster-create-only":true})",
      R"({"type":"array","uniqueItems":true})", R"({"type":"array","x-muster-unordered":true})",
      R"({"type":"array","x-muster-unordered":true,"x-muster-key":"x"})",
      R"({"type":"array","x-muster-unordered":true,"items":{"properties":{"x":{"readOnly":true},"y":{"default":[1]}}}})",
      R"({"properties":{"d":{"x-muster-create-only":true,"properties":{"f":{"default":2}}}},"additionalProperties":false})",
      R"({"type":"string","contentMediaType":"application/json"})");
  CAPTURE(property);
  auto properties = Json::object();
  const auto whole = Json::parse(document);
  for (const auto& [name, value] : whole.items()) properties[name] = Json::parse(property);
  const auto found = compare(rules(properties.dump().c_str()), whole, whole);
  CHECK(found.patch.empty());
  CHECK(found.create_only.empty());
}

TEST_CASE("what the system sets, or never gives back, is left alone") {
  constexpr const char* kSchema = R"({"id":{"readOnly":true},"password":{"writeOnly":true}})";
  CHECK(patch(kSchema, R"({"id":1})", R"({"id":2,"password":"x"})").empty());
}

TEST_CASE("what tells objects of a type apart is a list of names, and nothing else") {
  const auto identity = [](const char* schema) { return property_rules(schema).value().identity; };
  CHECK(identity(R"({"x-muster-identity":["name","zone"]})") == std::vector<std::string>{"name", "zone"});
  CHECK(identity(R"({"x-muster-identity":["name",1,null]})") == std::vector<std::string>{"name"});
  CHECK(identity(R"({"x-muster-identity":"name"})").empty());
  CHECK(identity("{}").empty());
}

TEST_CASE("a default counts as there") {
  constexpr const char* kSchema = R"({"login":{"default":false},"size":{"x-muster-default":3,"default":4}})";
  CHECK(patch(kSchema, R"({})", R"({"login":false,"size":3})").empty());
  CHECK(patch(kSchema, R"({"login":null})", R"({"login":false,"size":3})").empty());
  CHECK(patch(kSchema, R"({})", R"({"login":true})").size() == 1);
  CHECK(patch(kSchema, R"({"login":false})", R"({"login":null})").empty());
}

TEST_CASE("an object that is not there is as one that declares nothing beyond its absence") {
  constexpr const char* kSchema =
      R"({"login":{"properties":{"user":{},"level":{"default":1},"pin":{"writeOnly":true},"in":{"properties":{}}}}})";
  CHECK(patch(kSchema, R"({})", R"({"login":{"user":null,"level":1,"pin":"1","in":{"x":null}}})").empty());
  CHECK(patch(kSchema, R"({})", R"({"login":{"user":null,"level":2}})").size() == 1);
  CHECK(patch(kSchema, R"({})", R"({"login":{}})").size() == 1);
  const auto secret = R"({"login":{"pin":null}})";
  CHECK(compare(rules(kSchema), Json::object(), Json::parse(secret), {"/login/pin"}).patch.empty());
  const auto open = compare(rules(kSchema), Json::object(), Json::parse(R"({"login":{"user":null}})"), {"/login/user"});
  CHECK(open.patch.size() == 1);
}

TEST_CASE("elements of a set of which only a part is declared are told apart by what is there") {
  constexpr const char* kSchema = R"({"set":{"x-muster-unordered":true}})";
  const auto differs = [&](const char* there, const char* declared) {
    return !patch(kSchema, (std::string(R"({"set":)") + there + "}").c_str(),
                  (std::string(R"({"set":)") + declared + "}").c_str())
                .empty();
  };
  CHECK_FALSE(differs(R"([{"n":1,"x":5},{"n":2},{"n":1,"x":6}])", R"([{"n":2},{"n":1},{"n":1}])"));
  CHECK_FALSE(differs(R"([{"n":1,"x":5},{"n":1,"x":6}])", R"([{"n":1},{"n":1,"x":5}])"));
  CHECK_FALSE(differs(R"([{"n":1,"x":5,"y":1},{"n":1,"x":6},{"n":1,"x":5}])", R"([{"n":1},{"n":1,"x":5},{"y":1}])"));
  CHECK(differs(R"([{"n":1,"x":5},{"n":1,"x":6}])", R"([{"n":1,"x":5},{"n":1,"x":5}])"));
  CHECK(differs(R"([{"n":1},{"n":2}])", R"([{"n":1},{"n":1}])"));
}

TEST_CASE("a set of very many elements compares in whatever order it comes") {
  const auto set = rules(R"({"set":{"x-muster-unordered":true}})");
  auto there = Json::array(), wanted = Json::array();
  for (int i = 0; i < 20'000; ++i) there.push_back(i % 3 == 0 ? Json(i / 2) : Json("10." + std::to_string(i / 2)));
  for (auto it = there.rbegin(); it != there.rend(); ++it) wanted.push_back(*it);
  CHECK(compare(set, {{"set", there}}, {{"set", wanted}}).patch.empty());
  wanted[7] = wanted[8] = "one of which there is no other";
  CHECK(compare(set, {{"set", there}}, {{"set", wanted}}).patch.size() == 1);
}

TEST_CASE("arrays compare as sets, by key, or in order") {
  constexpr const char* kSchema =
      R"({"set":{"x-muster-unordered":true},"list":{},
          "tags":{"x-muster-unordered":true,"x-muster-key":"Key","items":{"properties":{"at":{"readOnly":true}}}}})";
  CHECK(patch(kSchema, R"({"set":["a","b"]})", R"({"set":["b","a"]})").empty());
  CHECK(patch(kSchema, R"({"set":["a","b"]})", R"({"set":["b"]})").size() == 1);
  CHECK(patch(kSchema, R"({"list":["a","b"]})", R"({"list":["b","a"]})").size() == 2);
  CHECK(patch(kSchema, R"({"list":[{"x":1,"y":2},3]})", R"({"list":[{"x":1},3]})").empty());
  CHECK(patch(kSchema, R"({"list":[{"x":1},3]})", R"({"list":[{"x":2},3]})") ==
        Json::parse(R"([{"op":"replace","path":"/list/0/x","value":2}])"));
  CHECK(patch(kSchema, R"({"tags":[{"Key":"b","Value":"2","at":9},{"Key":"a","Value":"1"}]})",
              R"({"tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2","at":7}]})")
            .empty());
  CHECK(patch(kSchema, R"({"tags":[{"Key":"a","Value":"1"}]})", R"({"tags":[{"Key":"a","Value":"2"}]})").size() == 1);
  CHECK(patch(kSchema, R"({"tags":[{"Key":"a"},{"Key":"b"}]})", R"({"tags":[{"Key":"a"},{"Key":"a"}]})").size() == 1);
}

TEST_CASE("numbers compare by value, and strings that hold JSON as JSON") {
  CHECK(patch("{}", R"({"a":1})", R"({"a":1.0})").empty());
  constexpr const char* kSchema = R"({"policy":{"contentMediaType":"application/json"}})";
  CHECK(patch(kSchema, R"({"policy":"{\"a\":1,\"b\":2}"})", R"({"policy":"{ \"b\": 2, \"a\": 1 }"})").empty());
  CHECK(patch(kSchema, R"({"policy":"{\"a\":1}"})", R"({"policy":"{\"a\":2}"})").size() == 1);
  CHECK(patch(kSchema, R"({"policy":{"a":1}})", R"({"policy":"{\"a\":1}"})").size() == 1);
  CHECK(patch(kSchema, R"({"policy":"{\"a\":1}"})", R"({"policy":{"a":1}})").size() == 1);
}

TEST_CASE("a value and a list of it are not the same") {
  const auto whole = [](const char* value) {
    return Json::array({{{"op", "replace"}, {"path", "/a"}, {"value", Json::parse(value)}}});
  };
  CHECK(patch("{}", R"({"a":"x"})", R"({"a":["x"]})") == whole(R"(["x"])"));
  CHECK(patch("{}", R"({"a":["x"]})", R"({"a":"x"})") == whole(R"("x")"));
  CHECK(patch("{}", R"({"a":1})", R"({"a":[2]})") == whole("[2]"));
  CHECK(patch("{}", R"({"a":null})", R"({"a":[2]})") == whole("[2]"));
  CHECK(merge_declared(rules("{}"), {{"a", "x"}}, {{"a", {"y"}}}) == Json{{"a", {"y"}}});
}

TEST_CASE("create-only properties are named, also deep down") {
  const auto difference = compare(rules(R"({"spec":{"x-muster-create-only":true}})"),
                                  Json::parse(R"({"spec":{"zone":"a"}})"), Json::parse(R"({"spec":{"zone":"b"}})"));
  CHECK(difference.create_only == std::vector<std::string>{"/spec/zone"});
}

TEST_CASE("values that are not known yet are not compared") {
  CHECK(compare({}, Json::parse(R"({"a":1,"l":[1]})"), Json::parse(R"({"a":null,"l":[null]})"), {"/a", "/l/0"})
            .patch.empty());
}

TEST_CASE("a patch turns what is there into what is wanted") {
  const auto there = Json::parse(R"({"a/b":{"x~y":1},"list":[1,{"k":2}],"gone":1})");
  const auto declared = Json::parse(R"({"a/b":{"x~y":2,"n":[]},"list":[1,{"k":3}],"gone":null})");
  const auto difference = compare({}, there, declared);
  const auto after = there.patch(difference.patch);
  CHECK(compare({}, after, declared).patch.empty());
}

TEST_CASE("the whole of what is wanted keeps what is not declared, less what only the system sets") {
  const auto rule = rules(R"({"id":{"readOnly":true}})");
  CHECK(merge_declared(rule, Json::parse(R"({"id":1,"a":{"x":1},"b":2,"c":3})"),
                       Json::parse(R"({"a":{"y":2},"b":5,"c":null})")) == Json::parse(R"({"a":{"x":1,"y":2},"b":5})"));
}

TEST_CASE("of an element of a list that changes in its place the rest stays as well") {
  const auto rule = rules(R"({"list":{"items":{"properties":{"at":{"readOnly":true}}}}})");
  const auto there = Json::parse(R"({"list":[{"n":1,"x":5,"at":7,"in":[{"a":1,"b":2}]},2]})");
  const auto declared = Json::parse(R"({"list":[{"n":3,"in":[{"a":4}]},2]})");
  CHECK(merge_declared(rule, there, declared) == Json::parse(R"({"list":[{"n":3,"x":5,"in":[{"a":4,"b":2}]},2]})"));
  CHECK(merge_declared(rule, there, Json::parse(R"({"list":[{"n":3}]})")) == Json::parse(R"({"list":[{"n":3}]})"));
}

TEST_CASE("a reference keeps the type of its value where it is the whole, and makes a text of several parts") {
  const auto object = Json::parse(R"({"name":"shop","port":5432,"columns":[{"name":"id"}]})");
  CHECK(value_at(object, "name").value() == "shop");
  CHECK(value_at(object, "columns[0].name").value() == "id");
  CHECK(pointer_to("columns[0].a/b") == "/columns/0/a~1b");
  CHECK(pointer_to("a~b") == "/a~0b");
  for (const auto* path : {"columns[1]", "columns[x]", "columns[0x]", "columns[99999999999999999999]", "columns[0",
                           "none", "name.x", "columns.name", "[0]"}) {
    CHECK_FALSE(value_at(object, path));
  }
  const auto lookup = [&](const std::string& name, const std::string& path) -> std::optional<Json> {
    return name == "db" ? value_at(object, path) : std::nullopt;
  };
  using Part = TextPart::Kind;
  CHECK(resolve({"/a", {{Part::kResource, "db", "port"}}}, lookup).value() == 5432);
  CHECK(resolve({"/a", {{Part::kLiteral, "port-"}, {Part::kResource, "db", "port"}}}, lookup).value() == "port-5432");
  CHECK(resolve({"/a", {{Part::kLiteral, "of "}, {Part::kResource, "db", "name"}}}, lookup).value() == "of shop");
  CHECK_FALSE(resolve({"/a", {{Part::kResource, "other", "port"}}}, lookup));
  const auto empty = [](const std::string&, const std::string&) { return std::optional(Json()); };
  CHECK(resolve({"/a", {{Part::kResource, "db", "port"}}}, empty).value().is_null());
  CHECK_FALSE(resolve({"/a", {{Part::kLiteral, "port-"}, {Part::kResource, "db", "port"}}}, empty));
  CHECK_FALSE(resolve({"/a", {{Part::kEnv, "X"}}}, lookup));
}
