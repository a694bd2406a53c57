// Texts that the coordinator compares and writes: canonical JSON, RFC 3339 times, replies that came in parts.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/canonical.h"
#include "coordinator/event_log.h"
#include "coordinator/parts.h"
#include "worker_sdk/testing/fake_clock.h"

using namespace muster;
using nlohmann::json;

namespace {

/// What random_json() may put into a document.
enum class Variety : std::uint8_t { kPlain, kAll };  // kPlain: ASCII without escapes, whole numbers

std::string random_text(Random& random, Variety variety) {
  static const std::vector<std::string> kPlain{"a", "b", "Z", "0", " ", "/", "_", "~"};
  static const std::vector<std::string> kAll{"a", "\"", "\\", "\n", "\t", "\b", "\x01", "/", "\x7f", "é", "日", "😀"};
  const auto& alphabet = variety == Variety::kPlain ? kPlain : kAll;
  std::string text;
  for (auto left = random.below(6); left > 0; --left) text += alphabet[random.below(alphabet.size())];
  return text;
}

json random_number(Random& random, Variety variety) {
  const auto whole = static_cast<std::int64_t>(random.below(2'000'000)) - 1'000'000;
  switch (variety == Variety::kPlain ? 0 : random.below(4)) {
    case 0:
      return whole;
    case 1:
      return static_cast<double>(whole) / 1024;
    case 2:
      return random.next();
    default:
      return static_cast<double>(whole) * 1e30;
  }
}

json random_json(Random& random, int depth, Variety variety) {
  switch (random.below(depth > 0 ? 7 : 4)) {
    case 0:
      return nullptr;
    case 1:
      return random.below(2) == 1;
    case 2:
      return random_number(random, variety);
    case 3:
      return random_text(random, variety);
    case 4: {
      auto array = json::array();
      for (auto left = random.below(4); left > 0; --left) array.push_back(random_json(random, depth - 1, variety));
      return array;
    }
    default: {
      auto object = json::object();
      for (auto left = random.below(5); left > 0; --left) {
        object[random_text(random, variety)] = random_json(random, depth - 1, variety);
      }
      return object;
    }
  }
}

json random_object(Random& random, Variety variety) {
  auto object = json::object();
  for (auto left = random.below(6); left > 0; --left) {
    object[random_text(random, variety)] = random_json(random, 4, variety);
  }
  return object;
}

/// The same value in another spelling: members in reverse order, white space between everything.
std::string spell_otherwise(const json& value) {
  if (value.is_array()) {
    std::string text = "[ ";
    for (std::size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "" : " ,\t") + spell_otherwise(value[i]);
    return text + "\n]";
  }
  if (!value.is_object()) return value.dump(-1, ' ', true);  // everything beyond ASCII as \uXXXX
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text = json(key).dump(-1, ' ', true) + " : " + spell_otherwise(member) + (text.empty() ? "" : " , ") + text;
  }
  return "{ " + text + " }";
}

std::string nested(std::size_t depth) {
  std::string text = R"({"a":)";
  text.append(depth - 1, '[').append(depth - 1, ']');
  return text + "}";
}

std::string canonical(std::string_view text) {
  return canonical_object(text).value();
}
Errc refusal(std::string_view text) {
  const auto made = canonical_object(text);
  return made ? Errc{} : made.error().code;
}

}  // namespace

TEST_CASE("the canonical form keeps the value, is stable, and does not depend on the spelling") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    SeededRandom random(seed);
    const auto value = random_object(random, Variety::kAll);
    const auto form = canonical(value.dump());
    CHECK(json::parse(form) == value);
    CHECK(canonical(form) == form);
    CHECK(canonical(spell_otherwise(value)) == form);
  }
}

TEST_CASE("what the quick check calls canonical is what the slow way makes of it") {
  const std::string_view noise = "{}[]\",:\\ \n0-1.eEtnabzfalse";
  std::size_t proven = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    SeededRandom random(seed);
    const auto text = random_object(random, Variety::kPlain).dump();
    CHECK(is_canonical_object(text));  // sorted, unique, compact, whole numbers, no escapes: this much it can prove
    for (int i = 0; i < 40; ++i) {
      auto changed = text;
      for (auto edits = 1 + random.below(2); edits > 0; --edits) {
        const auto at = random.below(changed.size());
        const char with = noise[random.below(noise.size())];
        switch (random.below(3)) {
          case 0:
            changed[at] = with;
            break;
          case 1:
            changed.insert(at, 1, with);
            break;
          default:
            changed.erase(at, 1);
            break;
        }
        if (changed.empty()) changed = "{";
      }
      if (!is_canonical_object(changed)) continue;
      ++proven;
      INFO(changed);
      const auto made = canonical_object(changed);
      REQUIRE(made);
      CHECK(*made == changed);
    }
  }
  CHECK(proven > 100);  // else the property says nothing
}

TEST_CASE("the quick check refuses every other spelling") {
  for (const char* text : {"",
                           "{",
                           "}",
                           "[]",
                           "1",
                           "null",
                           R"("a")",
                           " {}",
                           "{} ",
                           R"({"a": 1})",
                           R"({ "a":1})",
                           R"({"b":1,"a":2})",
                           R"({"a":1,"a":2})",
                           R"({"a":1.0})",
                           R"({"a":1e2})",
                           R"({"a":-0})",
                           R"({"a":01})",
                           R"({"a":+1})",
                           R"({"a":"\u0061"})",
                           R"({"a":"\/"})",
                           "{\"a\":\"\x01\"}",
                           R"({"a":1,})",
                           R"({,"a":1})",
                           R"({"a"})",
                           R"({"a":tru})",
                           R"({"a":[1,]})",
                           R"({"a":[1 ,2]})",
                           R"({"a":123456789012345678901})",
                           R"({"\n":1})"}) {
    INFO(text);
    CHECK_FALSE(is_canonical_object(text));
  }
}

TEST_CASE("two spellings of one object have one canonical form") {
  CHECK(canonical(R"( { "b" : [ 1 , 2 ] , "a" : null } )") == R"({"a":null,"b":[1,2]})");
  CHECK(canonical(R"({"a":"\u0061\/\u00e9"})") == "{\"a\":\"a/é\"}");
  CHECK(canonical(R"({"a":1e2,"b":100.0})") == R"({"a":100.0,"b":100.0})");
  CHECK(canonical(R"({"é":1,"z":2,"Z":3,"":4})") == "{\"\":4,\"Z\":3,\"z\":2,\"é\":1}");  // bytewise
  CHECK(canonical(R"({"a":-0})") == R"({"a":0})");
  CHECK(canonical("{}") == "{}");
}

TEST_CASE("whole numbers keep every digit that 64 bits hold") {
  CHECK(canonical(R"({"a":18446744073709551615,"b":-9223372036854775808})") ==
        R"({"a":18446744073709551615,"b":-9223372036854775808})");
}

TEST_CASE("of a key that stands twice one value is kept, the same in each spelling") {
  const auto form = canonical(R"({"a":1,"a":2})");
  CHECK(canonical(R"({ "a" : 1 , "a" : 2 })") == form);
  CHECK(json::parse(form).size() == 1);
}

TEST_CASE("what is no JSON object is refused") {
  for (const char* text :
       {"", "null", "[]", "1", R"("text")", "{", R"({"a":1}})", R"({"a":1} {})", R"({a:1})", R"({'a':1})",
        R"({"a":NaN})", R"({"a":1e999})", "{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", R"({"a":"\ud800"})",
        "\xff\xfe", "{\"a\":\"\n\"}", R"({"a":1}/*c*/)"}) {
    INFO(text);
    CHECK(refusal(text) == Errc::kMalformed);
  }
}

TEST_CASE("nesting is bounded, and no depth is fatal") {
  CHECK(canonical(nested(60)) == nested(60));
  CHECK(is_canonical_object(nested(60)));
  CHECK(canonical(nested(400)) == nested(400));
  for (const std::size_t depth : {1'000U, 100'000U}) {
    CHECK(refusal(nested(depth)) == Errc::kMalformed);
    CHECK_FALSE(is_canonical_object(nested(depth)));
    CHECK_FALSE(is_canonical_object(std::string(depth, '{')));
    CHECK(refusal(std::string(depth, '[')) == Errc::kMalformed);
  }
}

TEST_CASE("a string is appended as JSON whatever its characters are") {
  for (const std::string& text : {std::string(), std::string("plain"), std::string("q\" b\\ n\n r\r t\t /"),
                                  std::string("\0\x01\x1f\x7f", 4), std::string("é 日 😀")}) {
    std::string out = "x";
    append_json_string(out, text);
    CHECK(json::parse(out.substr(1)) == text);
  }
}

TEST_CASE("times are RFC 3339 in UTC with milliseconds") {
  const WallTime time{std::chrono::milliseconds(1'769'847'330'123)};
  CHECK(rfc3339(time) == "2026-01-31T08:15:30.123Z");
  CHECK(rfc3339(WallTime{}) == "1970-01-01T00:00:00.000Z");
  CHECK(parse_rfc3339("2026-01-31T08:15:30.123Z").value() == time);
  SeededRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    const WallTime any{std::chrono::milliseconds(random.below(4'000'000'000'000))};
    CHECK(parse_rfc3339(rfc3339(any)).value() == any);
  }
}

TEST_CASE("a time before 1970 is written as the time that it is") {
  CHECK(rfc3339(WallTime{std::chrono::milliseconds(-500)}) == "1969-12-31T23:59:59.500Z");
}

TEST_CASE("times are read in every form that RFC 3339 has") {
  const auto time = parse_rfc3339("2026-01-31T08:15:30Z").value();
  CHECK(parse_rfc3339("2026-01-31t08:15:30z").value() == time);
  CHECK(parse_rfc3339("2026-01-31T08:15:30.000000000Z").value() == time);
  CHECK(parse_rfc3339("2026-01-31T09:15:30+01:00").value() == time);
  CHECK(parse_rfc3339("2026-01-31T02:45:30-05:30").value() == time);
  CHECK(parse_rfc3339("2026-01-31T08:15:30.5Z").value() == time + std::chrono::milliseconds(500));
  CHECK(parse_rfc3339("2026-01-31T09:15:30.5+01:00").value() == time + std::chrono::milliseconds(500));
  CHECK(parse_rfc3339("2024-02-29T00:00:00Z"));
}

TEST_CASE("a time beyond what the clock can tell is as far away as can be") {
  const auto now = parse_rfc3339("2026-01-31T08:15:30Z").value();
  for (const char* late : {"9999-12-31T23:59:59.9Z", "2300-01-01T00:00:00-23:59"}) {
    CHECK(parse_rfc3339(late).value() > now + std::chrono::hours(24 * 365 * 200));
  }
  for (const char* early : {"0000-01-01T00:00:00+23:59", "1600-01-01T00:00:00Z"}) {
    CHECK(parse_rfc3339(early).value() < now - std::chrono::hours(24 * 365 * 200));
  }
}

TEST_CASE("what is no time is refused") {
  for (const char* text :
       {"", "now", "2026", "2026-01-31", "2026-01-31T08:15:30", "2026-01-31T08:15Z", "2026-02-30T00:00:00Z",
        "2025-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
        "2026-01-31T24:00:00Z", "2026-01-31T08:60:00Z", "2026-01-31T08:15:30.Z", "2026-01-31T08:15:30Zx",
        "2026-01-31T08:15:30+1", "2026-01-31T08:15:30 Z", "x026-01-31T08:15:30Z", "-01-31T08:15:30Z"}) {
    INFO(text);
    const auto time = parse_rfc3339(text);
    REQUIRE_FALSE(time);
    CHECK(time.error().code == Errc::kMalformed);
  }
}

TEST_CASE("a time with fields out of range or blanks in them is refused") {
  for (const char* text :
       {"2026-01-31T08:15:75Z", "2026- 1-31T08:15:30Z", "2026-01-31T08:15:30+99:99", "2026-01-31T08:15:30+-1:30",
        "2026-01-31T08:15:30+1:30 ", "2026-01-31T08:15:30+:30", "2026--31T08:15:30Z", "2026-01-T08:15:30Z",
        "2026-01-31T:15:30Z", "2026-01-31T08::30Z", "2026-01-31T08:15:Z"}) {
    INFO(text);
    CHECK_FALSE(parse_rfc3339(text));
  }
}

TEST_CASE("parts make the whole in whatever order they come") {
  for (const auto& order : {std::vector<std::uint32_t>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    PartAssembler parts;
    const std::vector<Bytes> data{"ab", "", "cde"};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto whole = parts.add({order[i], 3, data[order[i]]}).value();
      CHECK(whole.has_value() == (i == 2));
      if (whole) CHECK(*whole == "abcde");
    }
    CHECK(parts.bytes() == 5);
  }
}

TEST_CASE("a part that does not belong to the others is refused, and harms none of them") {
  PartAssembler parts;
  REQUIRE(parts.add({0, 2, "a"}));
  for (const auto& part : {Part{2, 2, "beyond"}, Part{1, 3, "another count"}, Part{1, 0, "none"}}) {
    const auto whole = parts.add(part);
    REQUIRE_FALSE(whole);
    CHECK(whole.error().code == Errc::kMalformed);
  }
  CHECK(parts.add({1, 2, "b"}).value() == Bytes("ab"));
}

TEST_CASE("a part that comes again takes the place of the one before") {
  PartAssembler parts;
  REQUIRE(parts.add({0, 2, "what was"}));
  CHECK_FALSE(parts.add({0, 2, "a"}).value());
  CHECK(parts.bytes() == 1);
  CHECK(parts.add({1, 2, "b"}).value() == Bytes("ab"));
}

TEST_CASE("parts are bounded in number and in bytes") {
  CHECK_FALSE(PartAssembler().add({0, static_cast<std::uint32_t>(kMaxParts) + 1, "a"}));
  PartAssembler parts;
  const Bytes large(16U << 20U, 'x');
  for (std::uint32_t i = 0; i < 4; ++i) REQUIRE(parts.add({i, 6, large}));
  const auto beyond = parts.add({4, 6, "x"});
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == Errc::kTooLarge);
}
