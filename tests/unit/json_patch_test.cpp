#include "coordinator/json_patch.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

using namespace muster;
using nlohmann::json;

namespace {

/// As the library finds it, which takes numbers of the same bits for equal: -1 is 18446744073709551615 there.
json expected(const std::string& from, const std::string& to) {
  return json::diff(json::parse(from), json::parse(to));
}

void check(const std::string& from, const std::string& to) {
  INFO(from);
  INFO(to);
  const auto patch = json::parse(patch_between(from, to));
  CHECK(patch == expected(from, to));
  CHECK(json::parse(from).patch(patch) == json::parse(to));
}

/// Documents that have much in common, now and then.
class Documents {
 public:
  explicit Documents(std::uint32_t seed) : random_(seed) {}

  json value(int depth) {
    static const json kScalars = json::parse(
        R"([null, true, false, 0, 1, -1, 1.0, 1.5, -0.0, 1e300, 9223372036854775807, 9223372036854775808,
            "", "a", "1", "\u0000\"\\\n/~", "é", "\ud83d\ude00"])");
    const auto kind = below(depth > 0 ? 4 : 2);
    if (kind < 2) return kScalars[below(kScalars.size())];
    if (kind == 3) return object(depth - 1);
    auto array = json::array();
    for (auto count = below(4); count > 0; --count) array.push_back(value(depth - 1));
    return array;
  }
  json object(int depth) {
    static const std::vector<std::string> kNames{"", "a", "a/b", "a~b", "~1", "b", "\"", "é", "z\n"};
    auto made = json::object();
    for (auto count = below(5); count > 0; --count) made[kNames[below(kNames.size())]] = value(depth);
    return made;
  }
  json like(const json& other) {
    if (below(4) == 0) return value(2);
    auto made = other;
    if (made.is_structured() && !made.empty()) {
      auto at = std::next(made.begin(), static_cast<std::ptrdiff_t>(below(made.size())));
      below(3) == 0 ? void(made.erase(at)) : void(*at = like(*at));
    }
    return made;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("a patch tells what has changed") {
  check(R"({"a":1,"b":2})", R"({"a":1,"b":2})");
  check(R"({"a":1,"b":2})", R"({"a":1,"b":3})");
  check(R"({"b":{"c":[1,2,3]}})", R"({"b":{"c":[1,3]}})");
  check(R"({"b":[]})", R"({"b":[1,{"x":null}]})");
  check(R"({"b":[1,2,3,4]})", R"({"b":[4]})");
  check(R"({"a":1,"c":1,"e":1})", R"({"b":1,"c":2,"d":1})");
  check(R"({"a/b":{"~":1}})", R"({"a/b":{"~":2}})");
  check(R"({"a":{}})", R"({"a":[]})");
  check(R"({"a":{}})", R"({"a":null})");
  CHECK(patch_between(R"({"a":1})", R"({"a":1.0})") == "[]");
  CHECK(patch_between(R"({"a":-1})", R"({"a":18446744073709551615})") ==  // of the same bits
        R"([{"op":"replace","path":"/a","value":18446744073709551615}])");
  CHECK(patch_between(R"({"a":1})", R"({"a":"1","b":[true]})") ==
        R"([{"op":"replace","path":"/a","value":"1"},{"op":"add","path":"/b","value":[true]}])");
}

TEST_CASE("a patch is the same for all that is compared at once, and for what is not") {
  check(R"({"b":1,"a":{"d":1,"c":2}})", R"({"a":{"c":3,"d":1},"b":2})");        // another order
  check(R"( { "a" : [ 1 , 2 ] } )", R"({"a":[1,2.5]})");                        // blanks
  check(R"({"a":123456789012345678901234567890})", R"({"a":12345678901234})");  // an integer over 64 bits
  std::string deep(1500, '['), other = deep + "1";
  deep.append(1500, ']');
  other.append(1500, ']');
  CHECK(json::parse(patch_between(R"({"a":)" + deep + "}", R"({"a":)" + other + "}")).size() == 1);
  // Of what is no JSON, nothing is known but what there is now.
  CHECK(json::parse(patch_between("", R"({"a":1})")) == json::parse(R"([{"op":"replace","path":"","value":{"a":1}}])"));
}

TEST_CASE("a patch that is longer than what it leads to is all of that") {
  auto from = json::object(), to = json::object();
  for (int i = 0; i < 1000; ++i) from["a long name of a member " + std::to_string(i)] = i;
  to["b"] = std::string(100, 'x');
  CHECK(json::parse(patch_between(from.dump(), to.dump())) ==
        json::array({{{"op", "replace"}, {"path", ""}, {"value", to}}}));
}

TEST_CASE("whatever two documents are, the patch leads from one to the other") {
  Documents documents(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto from = documents.object(3);
    auto to = i % 2 == 0 ? documents.object(3) : documents.like(from);
    if (!to.is_object()) to = json{{"a", to}};
    check(from.dump(), to.dump());
  }
}

TEST_CASE("members that an object has are told from those that it has not") {
  const char* const object = R"({"a":1,"b":{"c":[1,2],"d":null},"z":"\u0041"})";
  for (const auto* const has : {"{}", R"({"a":1})", R"({"a":1.0})", R"({"b":{"c":[1,2],"d":null}})", R"({"z":"A"})",
                                R"({"a":1,"z":"A"})", object}) {
    INFO(has);
    CHECK(has_members(object, has));
  }
  for (const auto* const has_not :
       {R"({"a":2})", R"({"a":null})", R"({"c":1})", R"({"zz":1})", R"({"b":{"c":[1,2]}})", R"({"b":{"c":[2,1]}})",
        R"({"b":{"c":[1],"d":null}})", R"({"b":{"c":[1,2,3],"d":null}})", R"({"b":[]})", "[]", "", "{"}) {
    INFO(has_not);
    CHECK_FALSE(has_members(object, has_not));
  }
  CHECK_FALSE(has_members("[]", "{}"));
  CHECK_FALSE(has_members("", "{}"));
}

TEST_CASE("whatever two documents are, one has the members of the other or not") {
  Documents documents(2);
  int have = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto object = documents.object(3);
    auto members = i % 2 == 0 ? object : documents.like(object);
    if (!members.is_object()) members = json{{"a", members}};
    if (i % 4 == 0 && !members.empty()) members.erase(members.begin());
    bool expected = true;
    for (const auto& [name, value] : members.items()) {
      expected = expected && object.contains(name) && object[name] == value;
    }
    INFO(object);
    INFO(members);
    CHECK(has_members(object.dump(), members.dump()) == expected);
    have += expected ? 1 : 0;
  }
  CHECK(have > 5'000);
  CHECK(have < 18'000);
}
