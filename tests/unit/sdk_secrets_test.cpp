#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "schema/nesting.h"
#include "support/scratch.h"
#include "worker_sdk/src/secrets.h"

using namespace muster;
namespace fs = std::filesystem;
using Kind = SecretPart::Kind;

namespace {

struct TempDir : test::Scratch {
  std::string file(const std::string& name, const std::string& content) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << content;
    return (path / name).string();
  }
};

Result<std::string> value_of(Kind kind, const std::string& text, const SecretPolicy& policy) {
  const Document document{R"({"x":null})", {{"/x", {{kind, text}}}}};
  auto resolved = resolve(document, policy);
  if (!resolved) return resolved.error();
  return resolved->value.at("x").get<std::string>();
}

}  // namespace

TEST_CASE("names match patterns with any number of stars") {
  CHECK(matches_wildcard("PG_*", "PG_PASSWORD"));
  CHECK(matches_wildcard("PG_*", "PG_"));
  CHECK(matches_wildcard("*", ""));
  CHECK(matches_wildcard("*_KEY_*", "A_KEY_B_KEY_C"));
  CHECK(matches_wildcard("A*B*C", "AxxBxBxC"));
  CHECK(matches_wildcard("EXACT", "EXACT"));
  CHECK_FALSE(matches_wildcard("PG_*", "XPG_A"));
  CHECK_FALSE(matches_wildcard("*_KEY", "A_KEY_"));
  CHECK_FALSE(matches_wildcard("EXACT", "EXACTLY"));
  CHECK_FALSE(matches_wildcard("", "A"));
}

TEST_CASE("a reference is put together from its parts, and its values are listed") {
  ::setenv("MUSTER_T_USER", "alice", 1);
  ::setenv("MUSTER_T_PASS", "p4ss", 1);
  const Document document{R"({"list":[{"dsn":null}],"text":"${env:MUSTER_T_PASS}"})",
                          {{"/list/0/dsn",
                            {{Kind::kLiteral, "pg://"},
                             {Kind::kEnv, "MUSTER_T_USER"},
                             {Kind::kLiteral, ":"},
                             {Kind::kEnv, "MUSTER_T_PASS"},
                             {Kind::kLiteral, "@h"}}}}};
  const auto resolved = resolve(document, {.env = {"MUSTER_T_*"}, .files = {}, .secret_dir = {}}).value();
  CHECK(resolved.value["list"][0]["dsn"] == "pg://alice:p4ss@h");
  CHECK(resolved.value["text"] == "${env:MUSTER_T_PASS}");  // text is text
  CHECK(resolved.secrets == std::vector<std::string>{"alice", "p4ss"});
}

TEST_CASE("what the operator does not allow is denied, by name and without value") {
  ::setenv("MUSTER_T_PASS", "p4ss-value", 1);
  const auto denied = [](Kind kind, const std::string& text, const SecretPolicy& policy) {
    const auto value = value_of(kind, text, policy);
    REQUIRE_FALSE(value);
    CHECK(value.error().code == Errc::kAccessDenied);
    CHECK_THAT(value.error().message, Catch::Contains(text) && !Catch::Contains("p4ss-value"));
  };
  denied(Kind::kEnv, "MUSTER_T_PASS", {});
  denied(Kind::kEnv, "MUSTER_T_PASS", {.env = {"PG_*"}, .files = {}, .secret_dir = {}});
  denied(Kind::kEnv, "MUSTER_T_UNSET", {.env = {"*"}, .files = {}, .secret_dir = {}});
  denied(Kind::kFile, "/etc/hostname", {});
  denied(Kind::kSecret, "name", {});
}

TEST_CASE("files are read from allowed directories alone, wherever links lead") {
  const TempDir temp;
  const std::string inside = temp.file("allowed/deep/key", "value\n");
  const std::string outside = temp.file("private/key", "hidden");
  temp.file("allowed-too/key", "hidden");
  fs::create_symlink(outside, temp.path / "allowed/escape");
  fs::create_directory_symlink(temp.path / "private", temp.path / "allowed/escape-dir");
  fs::create_symlink(inside, temp.path / "allowed/link");
  fs::create_directory_symlink(temp.path / "allowed", temp.path / "alias");
  const SecretPolicy policy{.env = {}, .files = {temp.path / "allowed"}, .secret_dir = {}};
  const auto read = [&](const fs::path& path) { return value_of(Kind::kFile, path.string(), policy); };

  CHECK(read(inside).value() == "value");
  CHECK(read(temp.path / "allowed/link").value() == "value");
  CHECK(read(temp.path / "alias/deep/key").value() == "value");
  for (const char* path :
       {"private/key", "allowed/escape", "allowed/escape-dir/key", "allowed-too/key", "allowed/../private/key",
        "allowed/deep/../deep/key", "allowed/missing", "allowed/deep", "allowed"}) {
    INFO(path);
    const auto value = read(temp.path / path);
    REQUIRE_FALSE(value);
    CHECK(value.error().code == Errc::kAccessDenied);
  }
  CHECK_FALSE(value_of(Kind::kFile, "relative/key", policy));
  CHECK_FALSE(read(temp.file("allowed/large", std::string(64 * 1024 + 1, 'x'))));
  CHECK(read(temp.file("allowed/limit", std::string(64 * 1024, 'x'))).value().size() == 64 * 1024);
  CHECK(read(temp.file("allowed/lines", "a\nb\n\n")).value() == "a\nb\n");
  CHECK(read(temp.file("allowed/empty", "")).value().empty());
  CHECK_FALSE(value_of(Kind::kFile, "/dev/null", {.env = {}, .files = {"/dev"}, .secret_dir = {}}));  // may not end
}

TEST_CASE("a secret is a file of its name in the secret directory") {
  const TempDir temp;
  temp.file("secrets/name", "value\n");
  temp.file("other", "hidden");
  const SecretPolicy policy{.env = {}, .files = {}, .secret_dir = temp.path / "secrets"};
  CHECK(value_of(Kind::kSecret, "name", policy).value() == "value");
  for (const char* name : {"", ".", "..", "../other", "/etc/hostname", "missing", "./name"}) {
    INFO(name);
    CHECK_FALSE(value_of(Kind::kSecret, name, policy));
  }
  const auto nowhere = value_of(Kind::kSecret, "name", {});
  REQUIRE_FALSE(nowhere);
  CHECK_THAT(nowhere.error().message, Catch::Contains("no secret directory"));
}

TEST_CASE("a document that its references do not fit is refused") {
  ::setenv("MUSTER_T_PASS", "p4ss", 1);
  const SecretPolicy policy{.env = {"*"}, .files = {}, .secret_dir = {}};
  const std::vector<SecretPart> parts{{Kind::kEnv, "MUSTER_T_PASS"}};
  for (const Document& document :
       {Document{"{", {}}, Document{"{}", {{"/x", parts}}}, Document{R"({"x":1})", {{"/x", parts}}},
        Document{R"({"x":null})", {{"no pointer", parts}}}, Document{"[null]", {{"/7", parts}}}}) {
    const auto resolved = resolve(document, policy);
    REQUIRE_FALSE(resolved);
    CHECK(resolved.error().code == Errc::kInvalidRequest);
  }
  CHECK(resolve({"null", {{"", parts}}}, policy)->value == "p4ss");
}

TEST_CASE("text is redacted, longest secret first, short ones not at all") {
  const Redactor redactor({"pass", "password", "abc", ""});
  std::string text = "password=password; pass; abc";
  redactor.redact(text);
  CHECK(text == "***=***; ***; abc");
  CHECK(Redactor({"abc"}).empty());
  text = percent_encode("bytes \xff\xfe\xfd\xfc!");
  Redactor({"\xff\xfe\xfd\xfc"}).redact(text);
  CHECK(text == "bytes ***!");
  text = percent_encode("what a plugin says: p\xff \"ss/word");  // where only what is no UTF-8 is encoded
  Redactor({"p\xff \"ss/word"}).redact(text);
  CHECK(text == "what a plugin says: ***");
}

TEST_CASE("a secret is redacted as JSON quotes it, and as JSON that quotes that does") {
  const std::string secret = "p\u00e4\"ss\\word";
  for (const bool ascii_only : {false, true}) {
    const Json once{{"refused", secret}};
    const Json twice{{"refused", once.dump(-1, ' ', ascii_only)}};
    for (const auto& json : {once, twice}) {
      std::string text = "400: " + json.dump(-1, ' ', ascii_only);
      INFO(text);
      Redactor({secret}).redact(text);
      CHECK_THAT(text, Catch::Contains("***") && !Catch::Contains("word"));
    }
  }
}

TEST_CASE("a secret is redacted as URLs, headers and JSON encoders have it") {
  const auto redacted = [](const std::string& secret, std::string text) {
    Redactor({secret}).redact(text);
    return text;
  };
  CHECK(redacted("p@ss/w\u00f6rd", "GET /?token=p%40ss%2Fw%C3%B6rd&x") == "GET /?token=***&x");
  CHECK(redacted("p\u00e4ss", R"(refused: {"password":"p\u00e4ss"})") == R"(refused: {"password":"***"})");
  // Authorization: Basic, of `user`, `user1` and `user12` with that password: what is encoded along with the characters
  // beside it stays, and tells little.
  CHECK(redacted("s3cretPass", "Basic dXNlcjpzM2NyZXRQYXNz") == "Basic dXNlcjp***");
  CHECK(redacted("s3cretPass", "Basic dXNlcjE6czNjcmV0UGFzcw==") == "Basic dXNlcjE6***w==");
  CHECK(redacted("s3cretPass", "Basic dXNlcjEyOnMzY3JldFBhc3M=") == "Basic dXNlcjEyOn***M=");
  CHECK(redacted("\u00fb\u00ff\u00fe?\?>", "Bearer w7vDv8O-Pz8-") == "Bearer ***");
}

TEST_CASE("JSON is redacted as values, however they are escaped, and stays JSON") {
  const auto redacted = [](const std::string& secret, JsonText json) {
    Redactor({secret}).redact_json(json);
    return json;
  };
  CHECK(redacted("s3cret", R"({"a":"x s3cret y","b":["s3cret"]})") == R"({"a":"x *** y","b":["***"]})");
  CHECK(redacted("a\"b\\c", R"({"x":"a\"b\\c"})") == R"({"x":"***"})");
  CHECK(redacted("s3cret", R"({"x":"\u00733cret"})") == R"({"x":"***"})");
  CHECK(redacted("line\nline", R"({"x":"line\nline"})") == R"({"x":"***"})");
  CHECK(redacted("12345678", R"({"port":12345678,"s":"12345678"})") == R"({"port":"***","s":"***"})");
  CHECK(redacted("s3cret", R"({"key s3cret":{"s3cret":1}})") == R"({"key ***":{"***":1}})");
  CHECK(redacted(R"({"a":1})", R"({"a":1})") == R"({"a":1})");  // structure is no value
  CHECK(redacted("s3cret", R"({"path":"C:\\dir"})") == R"({"path":"C:\\dir"})");
  CHECK(redacted("s3cret", "broken s3cret") == "broken ***");
}

TEST_CASE("of JSON that is nested too deep to be looked at nothing stays but that it is") {
  constexpr std::size_t kDeep = 100'000;
  const auto redacted = [](const std::string& inner) {
    JsonText json = R"({"a":)" + std::string(kDeep, '[') + inner + std::string(kDeep, ']') + "}";
    Redactor({"s3cret"}).redact_json(json);
    return json;
  };
  for (const char* inner : {R"("s3cret")", R"("\u00733cret")", R"("a\nb")"}) {
    const auto left = redacted(inner);
    CHECK(left.find_first_not_of('[') == std::string::npos);
    CHECK(nested_too_deep(left));
  }
  CHECK(redacted("1").size() > kDeep);  // what holds none leaves as it is
}

TEST_CASE("nothing in a result holds a secret, and no id is altered") {
  const Redactor redactor({"s3cret"});
  JobResult result = Error{.code = Errc::kNetwork, .message = "s3cret!"};
  redactor.redact(result);
  CHECK(std::get<Error>(result).message == "***!");

  result = ListResult{{{"a", "s3cret", R"({"x":"s3cret"})"}, {"id s3cret", "", ""}},
                      "next",
                      {{"p s3cret", failure(Errc::kNetwork, "s3cret")}},
                      0};
  redactor.redact(result);
  const auto& page = std::get<ListResult>(result);
  CHECK(page.items == std::vector<Item>{{"a", "", R"({"x":"***"})"}});
  REQUIRE(page.problems.size() == 2);
  CHECK(page.problems[0].native_id == "p ***");
  CHECK(page.problems[0].failure.message == "***");
  CHECK(page.problems[1].native_id == "id ***");
  CHECK(page.problems[1].failure.code == Errc::kAccessDenied);

  result = ListResult{{}, "token s3cret", {}, 0};
  redactor.redact(result);
  CHECK(std::get<Error>(result).code == Errc::kAccessDenied);

  result = ReadResult{{Item{"a", "s3cret", R"({"x":"s3cret"})"}, not_found("s3cret")}};
  redactor.redact(result);
  CHECK(std::get<ReadResult>(result).items == std::vector<ReadItem>{Item{"a", "", R"({"x":"***"})"}, not_found("***")});

  result = InspectResult{"sys s3cret",
                         {{{},
                           {TagMatch{{"s3cret"}, "s3cret"}, PropertyMatch{"$.s3cret", MatchOp::kEq, R"("s3cret")"}},
                           FilterAction::kExclude}},
                         {}};
  redactor.redact(result);
  CHECK(
      std::get<InspectResult>(result) ==
      InspectResult{
          "sys ***",
          {{{}, {TagMatch{{"***"}, "***"}, PropertyMatch{"$.***", MatchOp::kEq, R"("***")"}}, FilterAction::kExclude}},
          {}});

  result = MutationResult{MutationStatus::kSuccess, "", "id", "s3cret", R"({"x":"s3cret"})", Millis{0}};
  redactor.redact(result);
  CHECK(std::get<MutationResult>(result).properties == R"({"x":"***"})");
  result = CallResult{R"({"x":"s3cret"})", false};
  redactor.redact(result);
  CHECK(std::get<CallResult>(result).output == R"({"x":"***"})");
}
