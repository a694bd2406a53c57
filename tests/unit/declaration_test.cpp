// Declarations: what users write, and every mistake in it with its place.
#include <algorithm>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/declaration_reader.h"
#include "coordinator/secret_text.h"

using namespace muster;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Kind = TextPart::Kind;

namespace {

constexpr const char* kShop = R"(
stack: shop
targets:
  - {name: main, namespace: PG, config: {dsn: "${env:PG_DSN}"}, discover: true}
resources:
  - {name: owner, type: PG::Role,     target: main, properties: {name: shop_owner, login: true}}
  - {name: db,    type: PG::Database, target: main, properties: {name: shop, owner: "${resource:owner.name}"}}
  - name: sales
    type: PG::Schema
    target: main
    depends_on: [owner]
    lifecycle: {protect: true, replace: create-first}
    on_drift: revert
    properties:
      database: "${resource:db.name}"
      name: "${var:SCHEMA:-sales}"
      note: "at ${var:PLACE} of ${resource:db.columns[0].name}, $${literal}"
)";

DeclarationResult read(const std::string& text, const std::map<std::string, std::string>& variables = {}) {
  return read_declarations({{"shop.yaml", text}}, variables);
}

Strings texts(const DeclarationResult& result) {
  Strings all;
  for (const auto& mistake : result.mistakes) all.push_back(to_string(mistake));
  return all;
}

bool has(const Strings& all, const std::string& start, const std::string& part) {
  return std::ranges::any_of(
      all, [&](const std::string& one) { return one.starts_with(start) && one.find(part) != std::string::npos; });
}

std::string resource(const std::string& more) {
  return "stack: s\nresources:\n  - {name: a, type: PG::Role, target: main, properties: {" + more + "}}\n";
}

}  // namespace

TEST_CASE("a byte order mark before a declaration is none of its text") {
  CHECK(texts(read(std::string("\xEF\xBB\xBF") + kShop)) == texts(read(kShop)));
  CHECK(has(texts(read("\xEF\xBB\xBFstak: s\n")), "shop.yaml:1:1: ", "stak"));
}

TEST_CASE("a variable that is not quoted is what its value would be in its place") {
  const auto result = read(
      "stack: s\nresources:\n- name: a\n  type: PG::Role\n  target: main\n  properties:\n"
      "    limit: ${var:N}\n    login: ${var:L:-true}\n    quoted: \"${var:N}\"\n"
      "    name: ${var:P}-${var:N}\n    more: ${var:P}\n    none: ${var:O:-~}\n    word: \"${var:O:-null}\"\n",
      {{"N", "5"}, {"P", "${env:X}: [a]"}});
  REQUIRE(texts(result).empty());
  CHECK(Json::parse(result.stacks[0].resources[0].properties) == Json{{"limit", 5},
                                                                      {"login", true},
                                                                      {"quoted", "5"},
                                                                      {"name", "${env:X}: [a]-5"},
                                                                      {"more", "${env:X}: [a]"},
                                                                      {"none", nullptr},
                                                                      {"word", "null"}});
  const std::string one = "stack: s\nresources:\n- name: a\n  type: PG::Role\n  target: main\n  properties:\n    x: ";
  CHECK(has(texts(read(one + "${var:N}", {{"N", "1e999"}})), "shop.yaml:7:", "out of range"));
}

TEST_CASE("properties are JSON in the order of their names, however they are written") {
  const auto properties = [](const std::string& written) {
    const auto result = read(resource(written));
    REQUIRE(texts(result).empty());
    return result.stacks.front().resources.front().properties;
  };
  CHECK(properties("") == "{}");
  CHECK(properties("a: 1, b: [x, {d: 2, c: [], e: {}}], c: ~") ==
        R"({"a":1,"b":["x",{"c":[],"d":2,"e":{}}],"c":null})");
  CHECK(properties("c: {z: 1, y: {b: 1, a: 2}}, a: 1, b: 2") == R"({"a":1,"b":2,"c":{"y":{"a":2,"b":1},"z":1}})");
  CHECK(properties(R"(b: "\x01\b\f\t\"\\ \x7f é \U0001F600", "\"a\"": '1', a: '')") ==
        "{\"\\\"a\\\"\":\"1\",\"a\":\"\",\"b\":\"\\u0001\\b\\f\\t\\\"\\\\ \x7f é \U0001F600\"}");
  CHECK(
      properties("a: True, b: 0x10, c: 1.50, d: -7, e: +7, f: .5e1, g: 'true', h: 1a, i: -, j: 18446744073709551615") ==
      R"({"a":true,"b":16,"c":1.5,"d":-7,"e":7,"f":5.0,"g":"true","h":"1a","i":"-","j":18446744073709551615})");
}

TEST_CASE("a declaration is read with its references") {
  const auto result = read(kShop, {{"PLACE", "${env:X}"}});
  REQUIRE(texts(result).empty());
  REQUIRE(result.stacks.size() == 1);
  const auto& [stack, resources] = result.stacks[0];
  CHECK(stack == "shop");
  REQUIRE(resources.size() == 3);
  CHECK(resources[0].name == "owner");
  CHECK(Json::parse(resources[0].properties) == Json::parse(R"({"name":"shop_owner","login":true})"));
  CHECK(resources[0].on_drift == OnDrift::kAlert);
  CHECK(Json::parse(resources[1].properties) == Json::parse(R"({"name":"shop","owner":null})"));
  CHECK(resources[1].holes == std::vector<Hole>{{"/owner", {{Kind::kResource, "owner", "name"}}}});
  const auto& sales = resources[2];
  CHECK(sales.after == Strings{"owner"});
  CHECK(sales.protect);
  CHECK(sales.replace == ReplaceOrder::kCreateFirst);
  CHECK(sales.on_drift == OnDrift::kRevert);
  CHECK(Json::parse(sales.properties)["name"] == "sales");
  REQUIRE(sales.holes.size() == 2);
  // The value of a variable is text: what looks like a reference in it is none.
  CHECK(sales.holes[1] == Hole{"/note",
                               {{Kind::kLiteral, "at ${env:X} of "},
                                {Kind::kResource, "db", "columns[0].name"},
                                {Kind::kLiteral, ", ${literal}"}}});
  REQUIRE(result.targets.size() == 1);
  CHECK(result.targets[0].config.secrets.size() == 1);
}

TEST_CASE("files of one stack are one declaration, and refer to each other") {
  const auto result =
      read_declarations({{"a.yaml", resource("name: a")},
                         {"b.yaml", "stack: s\nresources: [{name: b, type: PG::Role, target: main, depends_on: [a]}]"},
                         {"c.yaml", "stack: other\nresources: [{name: a, type: PG::Role, target: main}]"}},
                        {});
  REQUIRE(texts(result).empty());
  REQUIRE(result.stacks.size() == 2);
  CHECK(result.stacks[0].resources.size() == 2);
  CHECK(result.stacks[1].stack == "other");
}

TEST_CASE("keys of a declaration may stand in any order") {
  const std::string stack = "stack: s\n", drift = "on_drift: revert\n",
                    target = "targets: [{name: t, namespace: PG}]\n",
                    resources =
                        "resources:\n- {name: a, type: PG::Role, target: t}\n"
                        "- {name: b, type: PG::Role, target: t, on_drift: observe, parent: a}\n";
  const auto first = read(stack + drift + target + resources);
  REQUIRE(texts(first).empty());
  REQUIRE(first.stacks.size() == 1);
  REQUIRE(first.stacks[0].resources.size() == 2);
  CHECK(first.stacks[0].resources[0].on_drift == OnDrift::kRevert);
  CHECK(first.stacks[0].resources[1].on_drift == OnDrift::kObserve);
  for (const auto& text : {stack + resources + drift + target, resources + stack + target + drift,
                           target + resources + drift + stack, drift + stack + resources + target}) {
    INFO(text);
    const auto other = read(text);
    CHECK(texts(other).empty());
    CHECK(other.stacks == first.stacks);
    CHECK(other.targets.size() == 1);
  }
}

TEST_CASE("what the settings of one file say is not of another file's resources") {
  const auto file = [](const char* name, const char* drift) {
    return std::string("stack: s\nresources: [{name: ") + name + ", type: PG::Role, target: t}]\n" + drift;
  };
  const auto result = read_declarations(
      {{"1", file("a", "on_drift: revert\n")}, {"2", file("b", "")}, {"3", file("c", "on_drift: absorb\n")}}, {});
  REQUIRE(texts(result).empty());
  REQUIRE(result.stacks.size() == 1);
  std::vector<OnDrift> drifts;
  for (const auto& one : result.stacks[0].resources) drifts.push_back(one.on_drift);
  CHECK(drifts == std::vector{OnDrift::kRevert, OnDrift::kAlert, OnDrift::kAbsorb});
}

TEST_CASE("anchors reach from one resource to the next, and lists may have them") {
  const std::string role = "{name: a, type: PG::Role, target: t, properties: &p {login: true}}";
  for (const auto& list :
       {"resources: [" + role + ", {name: b, type: PG::Role, target: t, properties: *p}]\n",
        "resources: &all [&one " + role + ", {name: b, type: PG::Role, target: t, properties: *p}]\n"}) {
    INFO(list);
    const auto result = read("stack: s\n" + list);
    REQUIRE(texts(result).empty());
    REQUIRE(result.stacks[0].resources.size() == 2);
    CHECK(result.stacks[0].resources[1].properties == R"({"login":true})");
  }
  const auto twice = read("stack: s\nresources: [&one " + role + ", *one]\n");
  CHECK(has(texts(twice), "shop.yaml:2:", "another resource of stack s has the name"));
}

TEST_CASE("a text that breaks off tells that, and no more of what stands before") {
  const auto broken = texts(
      read("stack: s\nresources:\n- {name: a, type: PG::Role, target: t, parent: later, nme: x}\n- {name: [later\n"));
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].starts_with("shop.yaml:5:"));
  const auto both = texts(read_declarations({{"broken", "stack: s\nresources:\n- {name: a, nme: x}\n- ]\n"},
                                             {"good", "stack: s\nresources: [{name: b, nme: x}]\n"}},
                                            {}));
  CHECK(std::ranges::count_if(both, [](const auto& one) { return one.starts_with("broken:"); }) == 1);
  CHECK(std::ranges::all_of(both,
                            [](const auto& one) { return one.starts_with("broken:") || one.starts_with("good:"); }));
  const std::string circle =
      "- {name: a, type: PG::Role, target: t, parent: b}\n- {name: b, type: PG::Role, target: t, parent: a}\n";
  CHECK(texts(read_declarations({{"broken", "stack: s\nresources:\n" + circle + "- ]\n"}}, {}, nullptr,
                                Cycles::kMistakes))
            .size() == 1);
  CHECK(has(both, "good:2:", "nme"));
}

TEST_CASE("the places of mistakes are the same wherever the stack's name stands") {
  const std::string list =
      "resources:\n- {name: a, typ: PG::Role, target: t}\n- 5\n- {name: a, type: PG::Role, target: t, parent: gone}\n";
  const auto before = texts(read(list + "stack: s\n"));
  auto after = texts(read("# line\nstack: s\n" + list));
  REQUIRE(before.size() == after.size());
  REQUIRE(before.size() > 3);
  CHECK(has(before, "shop.yaml:2:13: resources[0]", "typ"));
  CHECK(has(after, "shop.yaml:4:13: resources[0]", "typ"));
  CHECK(has(before, "shop.yaml:3:3: resources[1]", "mapping"));
  CHECK(has(after, "shop.yaml:5:3: resources[1]", "mapping"));
  const auto twice = texts(read("stack: s\nresources: [{name: a, type: PG::Role, target: t}]\nresources: []\n"));
  REQUIRE(twice.size() == 1);
  CHECK(has(twice, "shop.yaml:3:1: ", "twice"));
}

TEST_CASE("every mistake is told, with its place") {
  const auto result = read(R"(stack: shop
resources:
  - {name: a, type: PG::Role, target: main, properties: {x: "${resource:nobody.name}"}}
  - {name: a, type: Role, target: "a b", colour: red}
  - {name: b, type: PG::Role, target: main, depends_on: [c], on_drift: panic}
  - {name: d, type: PG::Role, target: main, properties: {x: "${var:MISSING}", y: "${oops}", z: "${env:1}"}}
  - {type: PG::Role, target: main, properties: [1]}
)");
  const auto all = texts(result);
  CHECK(has(all, "shop.yaml:3:", "nobody"));
  CHECK(has(all, "shop.yaml:4:", "`a`"));
  CHECK(has(all, "shop.yaml:4:", "a type like"));
  CHECK(has(all, "shop.yaml:4:", "colour"));
  CHECK(has(all, "shop.yaml:5:", "no resource is named `c`"));
  CHECK(has(all, "shop.yaml:5:", "observe"));
  CHECK(has(all, "shop.yaml:6:", "--var MISSING="));
  CHECK(has(all, "shop.yaml:6:", "${oops}"));
  CHECK(has(all, "shop.yaml:6:", "${env:1}"));
  CHECK(has(all, "shop.yaml:7:", "`name` is missing"));
  CHECK(has(all, "shop.yaml:7:", "a mapping"));
  CHECK(std::ranges::is_sorted(result.mistakes, {},
                               [](const ConfigMistake& one) { return std::pair(one.line, one.column); }));
}

TEST_CASE("references that go in a circle are told with the place of one of them") {
  const auto checked = [](const std::string& text) {
    return read_declarations({{"shop.yaml", text}}, {}, nullptr, Cycles::kMistakes);
  };
  const auto line = [](const std::string& name, const std::string& more) {
    return "  - {name: " + name + ", type: PG::Role, target: main, " + more + "}\n";
  };
  const std::string begin = "stack: shop\nresources:\n";
  const auto three =
      texts(checked(begin + line("a", R"(properties: {owner: "${resource:b.name}"})") +
                    line("b", "depends_on: [d, c]") + line("c", "parent: a") + line("d", "properties: {}")));
  REQUIRE(three.size() == 1);
  CHECK(has(three, "shop.yaml:3:", "the references make a cycle: a -> b -> c -> a"));
  const auto own = texts(checked(begin + line("u", "depends_on: [u]")));
  REQUIRE(own.size() == 1);
  CHECK(has(own, "shop.yaml:3:", "u -> u"));
  CHECK(texts(checked(begin + line("a", "depends_on: [b]") + line("b", "properties: {}"))).empty());
}

TEST_CASE("a declared target has its place, too") {
  DeclarationPlaces places;
  const std::string text = "stack: shop\ntargets:\n  - {name: main, namespace: PG}\n";
  REQUIRE(read_declarations({{"shop.yaml", text}}, {}, &places).mistakes.empty());
  const auto place = places.find({}, {}, target_pointer("main"));
  REQUIRE(place);
  CHECK(place->file == "shop.yaml");
  CHECK(place->line == 3);
}

TEST_CASE("documents that are none are refused with their place") {
  CHECK(has(texts(read("stack: s\nresources:\n\t- x")), "shop.yaml:3:", ""));
  CHECK(has(texts(read("stack: s\nstack: t")), "shop.yaml:2:1", "twice"));
  CHECK(has(texts(read("resources: []")), "shop.yaml:1:1", "`stack` is missing"));
  CHECK(has(texts(read("")), "shop.yaml:1:1", ""));
  CHECK(has(texts(read(resource("x: 1, x: 2"))), "shop.yaml:3:", "twice"));
}

TEST_CASE("a reference is complete or a mistake") {
  for (const auto* bad : {"${resource:}", "${resource:a}", "${resource:a.}", "${resource:.x}", "${var:}", "${var:1}",
                          "${", "${x", "${resource}"}) {
    INFO(bad);
    CHECK_FALSE(parse_reference_text(bad, {}));
  }
  const auto index = parse_reference_text("${resource:a[0]}", {});
  REQUIRE(index);
  CHECK(index->front().path == "[0]");
  CHECK(parse_reference_text("${var:A:-}", {}).value().empty());
  CHECK(parse_reference_text("$x $", {}).value() == std::vector<TextPart>{{Kind::kLiteral, "$x $"}});
}

TEST_CASE("a declaration is told from a configuration") {
  CHECK(looks_like_declaration(kShop));
  CHECK(looks_like_declaration("resources: []"));
  CHECK(looks_like_declaration("targets: [{stack: a}]\n? [stack, a]\n: &b [1, {c: d}]\n*b : stack\nstack: s"));
  CHECK(looks_like_declaration("\xEF\xBB\xBF{\"targets\":{\"a\":[]},\"stack\":\"s\"}"));
  CHECK(looks_like_declaration(R"({"note":"\ud83d\ude00","stack":"s"})"));  // which YAML does not know, and JSON does
  CHECK(looks_like_declaration("stack: s\nresources: [\n"));                // a mistake of a declaration
  for (const auto* other : {"", "targets: []", "]", "stack", "[stack, a]", "[{stack: a}]", "targets: {stack: a}",
                            "targets: stack", "[stack]: a", "a: [\nstack: s"}) {
    INFO(other);
    CHECK_FALSE(looks_like_declaration(other));
  }
}
