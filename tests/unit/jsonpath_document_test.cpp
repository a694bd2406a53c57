#include <catch2/catch.hpp>

#include <string>

#include "coordinator/jsonpath.h"

using muster::Errc;
using muster::JsonDocument;
using muster::JsonPath;

namespace {

std::string only_value(const std::string& selector, const std::string& text) {
  JsonDocument document;
  document.parse(text).value();
  const auto matches = JsonPath::parse(selector).value().find(document);
  REQUIRE(matches.value().size() == 1);
  return matches->front().value;
}

}  // namespace

TEST_CASE("values come back as they were written, without white space") {
  CHECK(only_value("$", R"( { "b" : [ 1 , 2.5 , "x\ty" ] , "a" : null } )") == R"({"b":[1,2.5,"x\ty"],"a":null})");
  CHECK(only_value("$.n", R"({"n":18446744073709551615})") == "18446744073709551615");
  CHECK(only_value("$.n", R"({"n":-9223372036854775808})") == "-9223372036854775808");
  CHECK(only_value("$.n", R"({"n":1.0})") == "1.0");
}

TEST_CASE("integers over 64 bits are taken as floating point") {
  CHECK(only_value("$[0]", "[18446744073709551616, \"x\"]") == "1.8446744073709552e+19");
  CHECK(only_value("$[1]", "[-9223372036854775809, \"x\"]") == "\"x\"");
}

TEST_CASE("text that is no JSON is refused with its place") {
  JsonDocument document;
  for (const char* text :
       {"", " ", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"\xff\"", "[1e999]", "'a'", "\"\\ud800\""}) {
    INFO(text);
    const auto parsed = document.parse(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code == Errc::kMalformed);
    CHECK_FALSE(parsed.error().message.empty());
  }
  CHECK_THAT(document.parse("{\"a\": 1,\n  oops}").error().message, Catch::Contains("line 2, column 3"));
}

TEST_CASE("deep documents are refused") {
  JsonDocument document;
  CHECK_FALSE(document.parse(std::string(200'000, '[')).has_value());
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  CHECK(document.parse(deep).error().code == Errc::kTooLarge);
  CHECK(document.parse("[18446744073709551616," + deep + "]").error().code == Errc::kTooLarge);
}

TEST_CASE("one document serves many texts; a bad one leaves it empty") {
  JsonDocument document;
  const auto path = JsonPath::parse("$.a").value();
  CHECK_THROWS_AS(document.root(), std::logic_error);
  document.parse(R"({"a":1})").value();
  CHECK(path.any(document).value());
  document.parse(R"({"b":")" + std::string(100'000, 'x') + "\"}").value();
  CHECK_FALSE(path.any(document).value());
  CHECK_FALSE(document.parse("{").has_value());
  CHECK_THROWS_AS(path.any(document), std::logic_error);
  document.parse(R"({"a":2})").value();
  const JsonDocument moved = std::move(document);
  CHECK(path.any(moved).value());
}
