#include "coordinator/label.h"

#include <catch2/catch.hpp>

using namespace muster;

namespace {

Labels labels(const std::string& query, const std::vector<std::pair<std::string, std::string>>& overrides = {}) {
  Manifest manifest;
  manifest.plugin = "postgres";
  manifest.label_query = query;
  for (const auto& [type, own] : overrides) {
    TypeDescriptor& descriptor = manifest.types.emplace_back();
    descriptor.name = type;
    descriptor.label_query = own;
  }
  return Labels::compile(manifest).value();
}

std::string label(const std::string& query, const std::string& properties) {
  return labels(query).label("T", properties, "id");
}

}  // namespace

TEST_CASE("a label is the text of the first scalar that the query selects") {
  CHECK(label("$.name", R"({"name":"orders"})") == "orders");
  CHECK(label("$.name", R"({"name":42})") == "42");
  CHECK(label("$.name", R"({"name":-1})") == "-1");
  CHECK(label("$.name", R"({"name":18446744073709551615})") == "18446744073709551615");
  CHECK(label("$.name", R"({"name":1.5})") == "1.5");
  CHECK(label("$.name", R"({"name":false})") == "false");
  CHECK(label("$.*", R"({"a":null,"b":[1],"c":{},"d":"","e":"x","f":"y"})") == "x");
  CHECK(label("$.Tags[?@.Key=='Name'].Value", R"({"Tags":[{"Key":"Env","Value":"p"},{"Key":"Name","Value":"web"}]})") ==
        "web");
  CHECK(label("$['b','a']", R"({"a":1,"b":2})") == "2");
}

TEST_CASE("without a scalar the label is the native id") {
  for (const char* properties :
       {"{}", R"({"name":null})", R"({"name":[]})", R"({"name":{}})", R"({"name":""})", "[]", "no JSON", ""}) {
    INFO(properties);
    CHECK(label("$.name", properties) == "id");
  }
}

TEST_CASE("a type's own query wins over the plugin's") {
  const auto both = labels("$.name", {{"PG::Table", "$.table"}, {"PG::Role", ""}});
  const auto* properties = R"({"name":"n","table":"t"})";
  CHECK(both.label("PG::Table", properties, "id") == "t");
  CHECK(both.label("PG::Role", properties, "id") == "n");
  CHECK(both.label("PG::Other", properties, "id") == "n");
  CHECK(both.label("PG::Table", R"({"name":"n"})", "id") == "id");

  const auto own_only = labels("", {{"PG::Table", "$.table"}});
  CHECK(own_only.applies("PG::Table"));
  CHECK_FALSE(own_only.applies("PG::Role"));
  CHECK(own_only.label("PG::Role", properties, "id") == "id");
  CHECK_FALSE(Labels().applies("PG::Table"));
  CHECK(Labels().label("PG::Table", "nobody parses this", "id") == "id");
}

TEST_CASE("a label is cut to 256 bytes between two characters") {
  const auto cut = [](const std::string& text) { return Labels().label("T", "", text); };
  const std::string full(256, 'x');
  CHECK(cut(full) == full);
  CHECK(cut(full + "y") == full);
  CHECK(cut(std::string(255, 'x') + "é") == std::string(255, 'x'));
  CHECK(cut(std::string(254, 'x') + "é!") == std::string(254, 'x') + "é");
  CHECK(cut(std::string(253, 'x') + "𝄞") == std::string(253, 'x'));
  CHECK(cut(std::string(252, 'x') + "𝄞𝄞") == std::string(252, 'x') + "𝄞");
  CHECK(label("$.n", R"({"n":")" + std::string(1000, 'n') + "\"}") == std::string(256, 'n'));
}

TEST_CASE("a query that looks at too much for its text gives the native id") {
  std::string numbers = "[0";
  for (int i = 1; i < 1000; ++i) numbers += "," + std::to_string(i);
  const auto properties = R"({"l":)" + numbers + R"(],"n":"name"})";
  CHECK(label("$[?$.l[?@<0],'n']", properties) == "name");
  CHECK(label("$[?$.l[?$.l[?@<0]],'n']", properties) == "id");
}

TEST_CASE("a bad query is named") {
  Manifest manifest;
  manifest.plugin = "postgres";
  manifest.label_query = "name";
  CHECK(Labels::compile(manifest).error().message == "label query of postgres: column 1: a JSONPath begins with $");
  manifest.label_query.clear();
  manifest.types.emplace_back().name = "PG::Table";
  manifest.types.back().label_query = "$.";
  CHECK_THAT(Labels::compile(manifest).error().message, Catch::StartsWith("label query of PG::Table: column 3"));
}

TEST_CASE("what all label queries cost to compile is bounded") {
  const auto with = [](int types, const std::string& before, const std::string& after) {
    Manifest manifest;
    for (int i = 0; i < types; ++i) {
      auto& type = manifest.types.emplace_back();
      type.name = "NS::T" + std::to_string(i);
      type.label_query = before + std::to_string(i) + after;
    }
    return Labels::compile(manifest);
  };
  CHECK(with(4000, "$.name", ""));
  CHECK(with(50, "$[?search(@, '^name.*", "')]"));
  const auto costly = with(4000, "$[?search(@, '(.{0,90}){0,1}.*b", "')]");
  REQUIRE_FALSE(costly);
  CHECK(costly.error().code == Errc::kTooLarge);
  CHECK_THAT(costly.error().message, Catch::StartsWith("label query of NS::T") &&
                                         Catch::EndsWith("too costly to compile, together with what stands before it"));
}
