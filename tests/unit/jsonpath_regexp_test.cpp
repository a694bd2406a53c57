#include "coordinator/jsonpath_regexp.h"

#include <re2/re2.h>

#include <catch2/catch.hpp>
#include <string>

using muster::jsonpath::compile_iregexp;

namespace {

bool matches(const std::string& pattern, const std::string& text) {
  muster::QueryCompiler compiler;
  const auto compiled = compile_iregexp(pattern, compiler).value();
  return compiled != nullptr && re2::RE2::FullMatch(text, *compiled);
}

bool valid(const std::string& pattern) {
  muster::QueryCompiler compiler;
  return compile_iregexp(pattern, compiler).value() != nullptr;
}

}  // namespace

TEST_CASE("I-Regexp: what the grammar has") {
  for (const char* pattern : {"",
                              "a",
                              "a|b",
                              "a||b",
                              "|",
                              "(a)",
                              "(a|b)*c",
                              "()",
                              "((a))",
                              "a*",
                              "a+",
                              "a?",
                              "a{2}",
                              "a{2,}",
                              "a{2,3}",
                              "a{0}",
                              ".",
                              ".*",
                              "[abc]",
                              "[^abc]",
                              "[a-z]",
                              "[a-zA-Z0-9_]",
                              "[-a]",
                              "[a-]",
                              "[-]",
                              "[^-]",
                              "[-a-]",
                              "[a^]",
                              "[\\]]",
                              "[\\[\\\\\\^\\-]",
                              "[.*+?(){}|$]",
                              "\\(\\)\\*\\+\\-\\.\\?\\[\\\\\\]\\^\\n\\r\\t\\{\\|\\}",
                              "\\p{L}",
                              "\\p{Lu}",
                              "\\P{Nd}",
                              "[\\p{L}\\P{Zs}]",
                              "[\\p{L}a-z]",
                              "\\p{C}",
                              "\\P{C}",
                              "\\p{Cn}",
                              "\\P{Cn}",
                              "[\\P{Cn}]",
                              "[\\p{C}]",
                              "☺",
                              "[☺-𝄞]",
                              "^a$",
                              "-",
                              ",",
                              "/",
                              "&",
                              "~",
                              "a{1000}"}) {
    INFO(pattern);
    CHECK(valid(pattern));
  }
}

TEST_CASE("I-Regexp: what other dialects have") {
  for (const char* pattern : {"*",         "+a",       "?",          "a**",        "a+?",
                              "a*?",       "a??",      "a{2}{3}",    "a{",         "a{}",
                              "a{,3}",     "a{a}",     "a{1",        "a{1,2",      "a{-1}",
                              "a{3,2}",    "{1}",      "}",          "a}",         "(",
                              ")",         "(a",       "a)",         "(?:a)",      "(?i)a",
                              "(?=a)",     "(?P<n>a)", "[",          "]",          "[]",
                              "[^]",       "[a",       "[]a]",       "[[a]",       "[[:alpha:]]",
                              "[a-z-9]",   "[z-a]",    "[a--]",      "[\\d]",      "\\",
                              "\\d",       "\\D",      "\\w",        "\\s",        "\\b",
                              "\\A",       "\\z",      "\\Q",        "\\0",        "\\1",
                              "\\x41",     "\\u0041",  "\\$",        "\\/",        "\\a",
                              "\\f",       "\\p",      "\\pL",       "\\p{",       "\\p{}",
                              "\\p{X}",    "\\p{Lx}",  "\\p{Latin}", "\\p{Greek}", "\\p{IsBasicLatin}",
                              "\\p{^L}",   "\\p{lu}",  "\\p{LU}",    "\\p{Cs}",    "\\p{LC}",
                              "[\\p{Cn}]", "a{1001}"}) {
    INFO(pattern);
    CHECK_FALSE(valid(pattern));
  }
}

TEST_CASE("I-Regexp: a dot is any character but line feed and carriage return") {
  CHECK(matches("a.b", "a\u2029b"));
  CHECK(matches("a.b", "a\u2028b"));
  CHECK(matches("a.b", "a\u0085b"));
  CHECK(matches("a.b", "a𝄞b"));
  CHECK(matches("a.b", std::string("a\0b", 3)));
  CHECK_FALSE(matches("a.b", "a\nb"));
  CHECK_FALSE(matches("a.b", "a\rb"));
  CHECK_FALSE(matches("a\\.b", "axb"));
  CHECK(matches("[.]", "."));
  CHECK_FALSE(matches("[.]", "x"));
  CHECK(matches("a[^x]b", "a\nb"));
}

TEST_CASE("I-Regexp: classes") {
  CHECK(matches("[-a]+", "a-"));
  CHECK(matches("[a-]+", "a-"));
  CHECK_FALSE(matches("[a-]", "b"));
  CHECK(matches("[\\^a]", "^"));
  CHECK(matches("[a^]", "^"));
  CHECK(matches("[\\]]", "]"));
  CHECK(matches("[\\n-\\r]", "\r"));
  CHECK(matches("[$]", "$"));
  CHECK(matches("[α-ω]+", "λογος"));
  CHECK_FALSE(matches("[^☺]", "☺"));
}

TEST_CASE("I-Regexp: categories") {
  CHECK(matches("\\p{Lu}", "É"));
  CHECK_FALSE(matches("\\p{Lu}", "é"));
  CHECK(matches("\\P{Lu}", "é"));
  CHECK(matches("\\p{Nd}", "٣"));
  CHECK(matches("[\\p{Lu}\\p{Nd}]+", "ÉA3"));
  CHECK(matches("[^\\p{L}]", "3"));
  CHECK(matches("\\p{C}", "\u0001"));
  CHECK(matches("\\p{C}", "\U000E0FFF"));  // unassigned
  CHECK_FALSE(matches("\\p{C}", "a"));
  CHECK(matches("\\p{Cn}", "\U000E0FFF"));
  CHECK_FALSE(matches("\\p{Cn}", "\u0001"));
  CHECK(matches("\\P{C}", "a"));
  CHECK(matches("[x\\P{Cn}]", "a"));
  CHECK_FALSE(matches("[\\P{C}]", "\u0001"));
}

TEST_CASE("I-Regexp: hostile patterns end early") {
  CHECK_FALSE(valid(std::string(8'000, '(')));
  CHECK_FALSE(valid(std::string(2'000, '(') + std::string(2'000, ')')));
  CHECK_FALSE(valid("((((a{1000}){1000}){1000}){1000})"));
}

TEST_CASE("I-Regexp: what takes too much is refused, whether or not it is one") {
  const auto code = [](const std::string& pattern) {
    muster::QueryCompiler compiler;
    return compile_iregexp(pattern, compiler).error().code;
  };
  CHECK(code(".{900}") == muster::Errc::kTooLarge);
  CHECK(code(std::string(8193, '(')) == muster::Errc::kTooLarge);
  muster::Budget little(5'000);
  muster::QueryCompiler compiler(little);
  CHECK(compile_iregexp("a", compiler).value() != nullptr);
  CHECK_FALSE(compile_iregexp("b", compiler));
  CHECK(compile_iregexp("a", compiler).value() != nullptr);
}
