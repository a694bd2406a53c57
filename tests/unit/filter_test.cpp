#include "coordinator/filter.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <utility>

using namespace muster;

namespace {

MatchFilter exclude(std::vector<Condition> conditions, std::vector<std::string> types = {}) {
  return {std::move(types), std::move(conditions), FilterAction::kExclude};
}

MatchFilter include(std::vector<Condition> conditions, std::vector<std::string> types = {}) {
  return {std::move(types), std::move(conditions), FilterAction::kInclude};
}

bool kept(const std::vector<MatchFilter>& filters, const std::string& properties,
          const std::string& type = "PG::Table") {
  const auto set = FilterSet::compile(filters);
  return set.value().judge(type, properties).value();
}

bool matches(const Condition& condition, const std::string& properties) {
  return !kept({exclude({condition})}, properties);
}

bool tag(std::vector<std::string> keys, const std::string& value, const std::string& properties) {
  return matches(TagMatch{std::move(keys), value}, properties);
}

bool property(const std::string& path, MatchOp op, const std::string& value, const std::string& properties) {
  return matches(PropertyMatch{path, op, value}, properties);
}

std::string mistake(const std::vector<MatchFilter>& filters) {
  const auto set = FilterSet::compile(filters);
  return set ? "" : set.error().message;
}

}  // namespace

TEST_CASE("kept = no include applies or one matches, and no exclude matches") {
  const Condition a = PropertyMatch{"$.a", MatchOp::kExists, ""};
  const Condition b = PropertyMatch{"$.b", MatchOp::kExists, ""};
  CHECK(kept({}, "{}"));
  CHECK(kept({exclude({a})}, "{}"));
  CHECK_FALSE(kept({exclude({a})}, R"({"a":1})"));
  CHECK(kept({include({a})}, R"({"a":1})"));
  CHECK_FALSE(kept({include({a})}, R"({"b":1})"));
  CHECK(kept({include({a}), include({b})}, R"({"b":1})"));
  CHECK_FALSE(kept({include({a}), exclude({b})}, R"({"a":1,"b":1})"));
  CHECK_FALSE(kept({exclude({b}), include({a})}, R"({"a":1,"b":1})"));
  CHECK_FALSE(kept({include({a}), exclude({b})}, "{}"));
  CHECK(kept({include({a}), exclude({b})}, R"({"a":1})"));
}

TEST_CASE("a filter speaks of its types only, without types of all") {
  const Condition always = PropertyMatch{"$", MatchOp::kExists, ""};
  const auto of_roles = {exclude({always}, {"PG::Role", "PG::Schema"})};
  CHECK(kept(of_roles, "{}", "PG::Table"));
  CHECK_FALSE(kept(of_roles, "{}", "PG::Schema"));
  CHECK(kept({include({TagMatch{{"x"}, ""}}, {"PG::Role"})}, "{}", "PG::Table"));
  CHECK_FALSE(kept({exclude({always})}, "{}", "anything"));

  const auto set = FilterSet::compile(of_roles);
  CHECK(set->applies("PG::Role"));
  CHECK_FALSE(set->applies("PG::Rol"));
  CHECK_FALSE(FilterSet().applies("PG::Role"));
  CHECK(set->judge("PG::Table", "no JSON, and nobody looks").value());
}

TEST_CASE("conditions are ANDed; none always holds") {
  const Condition a = PropertyMatch{"$.a", MatchOp::kEq, "1"};
  const Condition t = TagMatch{{"Env"}, "tmp"};
  CHECK_FALSE(kept({exclude({a, t})}, R"({"a":1,"Tags":{"Env":"tmp"}})"));
  CHECK(kept({exclude({a, t})}, R"({"a":1})"));
  CHECK(kept({exclude({a, t})}, R"({"Tags":{"Env":"tmp"}})"));
  CHECK_FALSE(kept({exclude({})}, "{}"));
}

TEST_CASE("tags: a list of keys and values in any case, or a map") {
  for (const char* properties :
       {R"({"Tags":[{"Key":"Other","Value":"x"},{"Key":"Env","Value":"tmp"}]})",
        R"({"Tags":[{"key":"Env","value":"tmp"}]})", R"({"tags":[{"KEY":"Env","vALUE":"tmp"}]})",
        R"({"tags":{"Env":"tmp","Other":"x"}})", R"({"Tags":{"Env":"tmp"}})", R"({"Tags":[],"tags":{"Env":"tmp"}})",
        R"({"Tags":{"Env":"prod"},"tags":{"Env":"tmp"}})", R"({"Tags":null,"tags":{"Env":"tmp"}})",
        R"({"Tags":["Env",{"Key":"Env","Value":"prod"},{"Key":"Env","Value":"tmp"}]})"}) {
    INFO(properties);
    CHECK(tag({"Env"}, "tmp", properties));
    CHECK(tag({"Environment", "Env"}, "tmp", properties));
    CHECK(tag({"Env"}, "", properties));
    CHECK_FALSE(tag({"Env"}, "tm", properties));
    CHECK_FALSE(tag({"Env"}, "TMP", properties));
    CHECK_FALSE(tag({"env"}, "tmp", properties));
    CHECK_FALSE(tag({"Stage"}, "", properties));
    CHECK_FALSE(tag({}, "", properties));
  }
}

TEST_CASE("tags: what is no tag does not match") {
  for (const char* properties : {"{}", "[]", "null", R"("Tags")", R"({"Tags":"Env"})", R"({"Tags":["Env"]})",
                                 R"({"Tags":[{"Name":"Env"}]})", R"({"Tags":[{"Key":5}]})", R"({"TAGS":{"Env":"tmp"}})",
                                 R"({"Env":"tmp"})", R"({"x":{"Tags":{"Env":"tmp"}}})"}) {
    INFO(properties);
    CHECK_FALSE(tag({"Env"}, "", properties));
  }
  CHECK(tag({"Env"}, "", R"({"Tags":[{"Key":"Env"}]})"));
  CHECK_FALSE(tag({"Env"}, "x", R"({"Tags":[{"Key":"Env"}]})"));
  CHECK(tag({"Env"}, "", R"({"Tags":{"Env":null}})"));
  CHECK_FALSE(tag({"Env"}, "null", R"({"Tags":{"Env":null}})"));
  CHECK(tag({"Cost"}, "5", R"({"Tags":{"Cost":5}})"));
  CHECK(tag({"Keep"}, "true", R"({"Tags":[{"Key":"Keep","Value":true}]})"));
}

TEST_CASE("property eq compares JSON values") {
  const auto eq = [](const std::string& value, const std::string& actual) {
    return property("$.p", MatchOp::kEq, value, R"({"p":)" + actual + "}");
  };
  CHECK(eq("\"x\"", "\"x\""));
  CHECK_FALSE(eq("\"x\"", "\"xy\""));
  CHECK(eq("1", "1.0"));
  CHECK_FALSE(eq("1", "\"1\""));
  CHECK(eq("false", "false"));
  CHECK_FALSE(eq("false", "null"));
  CHECK(eq(R"({"a":[1,2],"b":null})", R"({"b":null,"a":[1,2]})"));
  CHECK_FALSE(eq(R"([1,2])", R"([2,1])"));
  CHECK_FALSE(property("$.q", MatchOp::kEq, "1", R"({"p":1})"));
}

TEST_CASE("property contains is a substring or an element") {
  const auto contains = [](const std::string& value, const std::string& actual) {
    return property("$.p", MatchOp::kContains, value, R"({"p":)" + actual + "}");
  };
  CHECK(contains("\"mp_\"", "\"tmp_1\""));
  CHECK_FALSE(contains("\"TMP\"", "\"tmp_1\""));
  CHECK(contains("\"a\"", R"(["b","a"])"));
  CHECK_FALSE(contains("\"a\"", R"(["ab"])"));
  CHECK(contains("2", "[1,2.0]"));
  CHECK(contains(R"({"k":1})", R"([{"k":1}])"));
  CHECK_FALSE(contains("1", "\"1\""));
  CHECK_FALSE(contains("\"a\"", R"({"a":1})"));
  CHECK_FALSE(contains("5", "5"));
}

TEST_CASE("property regex is an RE2 search on strings") {
  const auto regex = [](const std::string& value, const std::string& actual) {
    return property("$.p", MatchOp::kRegex, value, R"({"p":)" + actual + "}");
  };
  CHECK(regex(R"("^tmp_")", "\"tmp_1\""));
  CHECK_FALSE(regex(R"("^tmp_")", "\"my_tmp_1\""));
  CHECK(regex(R"("tmp")", "\"my_tmp_1\""));
  CHECK(regex(R"("(?i)TMP\\d+$")", "\"tmp12\""));
  CHECK_FALSE(regex(R"("1")", "1"));
  CHECK_FALSE(regex(R"("a")", R"(["a"])"));
  CHECK_FALSE(regex(R"("null")", "null"));
}

TEST_CASE("property exists, and any operator with an empty value") {
  for (const char* present : {"null", "false", "0", "\"\"", "[]"}) {
    CHECK(property("$.p", MatchOp::kExists, "", std::string(R"({"p":)") + present + "}"));
  }
  CHECK_FALSE(property("$.p", MatchOp::kExists, "", "{}"));
  for (const MatchOp op : {MatchOp::kEq, MatchOp::kContains, MatchOp::kRegex, MatchOp::kExists}) {
    for (const char* empty : {"", "null", "\"\"", " null "}) {
      CHECK(property("$.p", op, empty, R"({"p":[1]})"));
      CHECK_FALSE(property("$.p", op, empty, R"({"q":[1]})"));
    }
  }
}

TEST_CASE("a path that selects several nodes matches when any does") {
  const auto* properties = R"({"columns":[{"name":"id"},{"name":"secret"}],"Tags":[{"Key":"Env","Value":"prod"}]})";
  CHECK(property("$.columns[*].name", MatchOp::kEq, "\"secret\"", properties));
  CHECK_FALSE(property("$.columns[*].name", MatchOp::kEq, "\"other\"", properties));
  CHECK(property("$..name", MatchOp::kRegex, "\"^sec\"", properties));
  CHECK(property("$.Tags[?(@.Key=='Env')].Value", MatchOp::kEq, "\"prod\"", properties));
  CHECK_FALSE(property("$.Tags[?(@.Key=='Stage')].Value", MatchOp::kExists, "", properties));
}

TEST_CASE("a mistake in a filter is told with its place") {
  const Condition good = TagMatch{{"a"}, ""};
  CHECK(mistake({exclude({good}), exclude({good, PropertyMatch{"$.a[", MatchOp::kExists, ""}})}) ==
        "filter 2, condition 2: path $.a[: column 5: expected a selector: a quoted name, '*', an integer, a slice or "
        "'?'");
  CHECK_THAT(mistake({exclude({PropertyMatch{"$.a", MatchOp::kRegex, "\"(\""}})}),
             Catch::StartsWith("filter 1, condition 1: regex: missing )"));
  CHECK(mistake({exclude({PropertyMatch{"$.a", MatchOp::kRegex, "5"}})}) ==
        "filter 1, condition 1: value: a regex is a string");
  CHECK_THAT(mistake({exclude({PropertyMatch{"$.a", MatchOp::kEq, "nonsense"}})}),
             Catch::StartsWith("filter 1, condition 1: value: ") && Catch::Contains("column"));
  CHECK_THAT(mistake({exclude({PropertyMatch{"", MatchOp::kExists, ""}})}), Catch::Contains("column 1"));
}

TEST_CASE("a regular expression has a bound of its own, and is named when it is beyond it") {
  const auto regex = [](const std::string& pattern) {
    return mistake({exclude({PropertyMatch{"$.a", MatchOp::kRegex, '"' + pattern + '"'}})});
  };
  for (const char* usual : {"^tmp_", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "^.{1,255}$", "^[^/]{1,255}$",
                            "(?i)\\\\p{L}+", "\\\\w{1,1000}", "^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.]?)*$"}) {
    CHECK(regex(usual).empty());
  }
  CHECK(regex("^(.{0,900}){0,1}.*b$") ==
        "filter 1, condition 1: regex: the regular expression `^(.{0,900}){0,1}.*b$` is too large: compiled it takes "
        "more than 128 KiB");
  CHECK(regex(std::string(8193, 'x')) ==
        "filter 1, condition 1: regex: a regular expression has at most 8 KiB, which `" + std::string(100, 'x') +
            "...` exceeds");
  const auto in_path = exclude({PropertyMatch{"$[?search(@, '(.{0,900}){0,1}b')]", MatchOp::kExists, ""}});
  CHECK(mistake({in_path}) ==
        "filter 1, condition 1: path $[?search(@, '(.{0,900}){0,1}b')]: column 4: the regular expression "
        "`(?:[^\\n\\r]{0,900}){0,1}b` is too large: compiled it takes more than 128 KiB");
  CHECK(FilterSet::compile({in_path}).error().code == Errc::kTooLarge);
}

TEST_CASE("what all filters of a set cost to compile is bounded") {
  const auto set_of = [](int count, const std::function<PropertyMatch(const std::string&)>& match) {
    std::vector<MatchFilter> filters(1, exclude({}));
    for (int i = 0; i < count; ++i) {
      if (filters.back().conditions.size() == 256) filters.push_back(exclude({}));
      filters.back().conditions.emplace_back(match(std::to_string(i)));
    }
    return filters;
  };
  const auto regex = [](const std::string& i) { return PropertyMatch{"$.a", MatchOp::kRegex, "\"^tmp_" + i + "\""}; };
  const auto unicode = [](const std::string& i) {
    return PropertyMatch{"$.a", MatchOp::kRegex, "\"\\\\p{L}" + i + "\""};
  };
  const auto path = [](const std::string& i) { return PropertyMatch{"$.some.name" + i, MatchOp::kExists, ""}; };
  const auto in_path = [](const std::string& i) {
    return PropertyMatch{"$[?match(@, 'a.{0,90}" + i + "')]", MatchOp::kExists, ""};
  };
  const auto value = [](const std::string& i) { return PropertyMatch{"$.a", MatchOp::kEq, i}; };
  const auto costly = [](const std::string& message) { return Catch::EndsWith(message, Catch::CaseSensitive::Yes); };
  const std::string too_costly = ": too costly to compile, together with what stands before it";

  CHECK(mistake(set_of(256, regex)).empty());
  CHECK(mistake(set_of(257, regex)) == "filter 2, condition 1: regex: more than 256 different regular expressions");
  CHECK(mistake(set_of(50, unicode)).empty());
  CHECK_THAT(mistake(set_of(100, unicode)), costly(too_costly));
  CHECK(mistake(set_of(4000, path)).empty());
  CHECK_THAT(mistake(set_of(40'000, path)), costly(too_costly));
  CHECK_THAT(mistake(set_of(200, in_path)), costly(too_costly));
  CHECK(mistake(set_of(4000, value)).empty());
  CHECK_THAT(mistake(set_of(40'000, value)), costly(too_costly));
  CHECK_THAT(mistake({exclude({}, std::vector<std::string>(60'000, "NS::Box"))}), costly(too_costly));
  CHECK_THAT(mistake({exclude({TagMatch{std::vector<std::string>(60'000, "key"), ""}})}), costly(too_costly));
}

TEST_CASE("what a set says more than once is compiled once") {
  std::vector<MatchFilter> filters;
  for (int i = 0; i < 2000; ++i) {
    filters.push_back(exclude({PropertyMatch{"$.a", MatchOp::kRegex, R"("^\\p{L}{1,5}x")"},
                               PropertyMatch{"$[?search(@, '^\\\\p{L}{1,5}y')]", MatchOp::kContains, "\"long\""}}));
  }
  const auto set = FilterSet::compile(filters).value();
  CHECK(set.judge("PG::Table", R"({"a":"xyz","b":"xyz"})").value());
  CHECK_FALSE(set.judge("PG::Table", R"({"a":"axx","b":"byy long"})").value());
}

TEST_CASE("properties that are no JSON, or a hostile path, are an error and no verdict") {
  const auto set = FilterSet::compile({exclude({PropertyMatch{"$.a", MatchOp::kExists, ""}})});
  CHECK(set->judge("PG::Table", "{").error().code == Errc::kMalformed);
  CHECK(set->judge("PG::Table", "").error().code == Errc::kMalformed);

  std::string numbers = "[0";
  for (int i = 1; i < 5000; ++i) numbers += "," + std::to_string(i);
  numbers += "]";
  const auto hostile = FilterSet::compile({exclude({PropertyMatch{"$[?$[?@<0]]", MatchOp::kExists, ""}})});
  CHECK(hostile->judge("PG::Table", numbers).error().code == Errc::kTooLarge);
}

TEST_CASE("what a filter looks at is counted, however it is written") {
  const auto often = [](std::size_t count, const std::string& what, const std::string& between) {
    std::string text = what;
    for (std::size_t i = 1; i < count; ++i) text += between + what;
    return text;
  };
  std::string members = R"({"a0":1)";
  for (int i = 1; i < 8000; ++i) members += ",\"a" + std::to_string(i) + "\":1";
  members += "}";
  const std::string letters(200'000, 'x');
  std::string properties, path = "$.a";
  MatchOp op = MatchOp::kExists;
  std::string value;
  SECTION("names that are looked for in an object of many members") {
    properties = members;
    path = "$[" + often(16'000, "'b'", ",") + "]";
  }
  SECTION("selectors that select nothing") {
    properties = "[" + often(8000, "[]", ",") + "]";
    path = "$..[" + often(12'000, "9999", ",") + "]";
  }
  SECTION("comparisons of literals") {
    properties = "[" + often(8000, "1", ",") + "]";
    path = "$[?" + often(8000, "1==2", "||") + "]";
  }
  SECTION("a regular expression for a long string") {
    properties = R"({"a":")" + letters + R"("})";
    path = "$[" + often(8000, "'a'", ",") + "]";
    op = MatchOp::kRegex;
    value = R"("y$")";
  }
  SECTION("a regular expression that goes many ways at once") {
    properties = R"({"a":")" + letters + R"("})";
    op = MatchOp::kRegex;
    value = R"("[xy]*x[xy]{990}z")";
  }
  SECTION("one of a path") {
    properties = R"({"a":")" + letters + R"("})";
    path = "$[?search(@,'[xy]*x[xy]{990}z')]";
  }
  SECTION("regular expressions of the properties that are long to compile") {
    for (int i = 0; i < 50; ++i) properties += (i == 0 ? "[" : ",") + ("\"\\\\p{L}{10}" + std::to_string(i) + "\"");
    properties += "]";
    path = "$[?match('x',@)]";
  }
  SECTION("texts of the properties that are no regular expressions") {
    for (int i = 0; i < 4000; ++i) {
      properties += (i == 0 ? "[" : ",") + ("\"" + std::string(3000, 'x') + "\\\\" + std::to_string(i) + "\"");
    }
    properties += "]";
    path = "$[?match('x',@)]";
  }
  SECTION("a text in a long string") {
    properties = R"({"a":")" + letters + R"("})";
    path = "$[" + often(8000, "'a'", ",") + "]";
    op = MatchOp::kContains;
    value = R"("y")";
  }
  const auto set = FilterSet::compile({exclude({PropertyMatch{path, op, value}})});
  const auto kept = set.value().judge("PG::Table", properties);
  REQUIRE_FALSE(kept);
  CHECK(kept.error().code == Errc::kTooLarge);
}

TEST_CASE("tags that are looked for count as well") {
  std::vector<std::string> keys;
  std::string list, object;
  for (int i = 0; i < 10'000; ++i) {
    keys.push_back("k" + std::to_string(i));
    list += std::string(i == 0 ? "" : ",") + R"({"Key":"none"})";
    object += std::string(i == 0 ? "" : ",") + "\"x" + std::to_string(i) + "\":1";
  }
  list += R"(,{"Key":"k9999"})";  // there, but too late to count
  object += R"(,"k9999":1)";
  const auto set = FilterSet::compile({exclude({TagMatch{keys, ""}})});
  for (const auto& tags : {"[" + list + "]", "{" + object + "}"}) {
    const auto kept = set.value().judge("PG::Table", R"({"Tags":)" + tags + "}");
    REQUIRE_FALSE(kept);
    CHECK(kept.error().code == Errc::kTooLarge);
  }
}

TEST_CASE("all filters of a set spend of one budget") {
  const auto numbers = "[1,2,3,4,5,6,7,8,9]";
  const auto one = exclude({PropertyMatch{"$[?@>9]", MatchOp::kExists, ""}});
  JsonDocument document;
  document.parse(numbers).value();
  const auto left_of = [&](const std::vector<MatchFilter>& filters, std::size_t visits) {
    Budget budget(visits);
    const auto set = FilterSet::compile(filters).value();
    const bool judged = set.judge("PG::Table", document, budget).has_value();
    CHECK(judged == !budget.exhausted());
    return budget.left();
  };
  const auto spent = 1000 - left_of({one}, 1000);
  CHECK(spent > 9);
  CHECK(left_of({one, one, one}, 3 * spent) == 0);
  CHECK(left_of({one, one, one}, 3 * spent + 5) == 5);
  CHECK(left_of({one, one, one}, 3 * spent - 1) == 0);
}

TEST_CASE("one parsed document serves several sets") {
  JsonDocument document;
  document.parse(R"({"a":1})").value();
  const auto a = FilterSet::compile({exclude({PropertyMatch{"$.a", MatchOp::kExists, ""}})});
  const auto b = FilterSet::compile({exclude({PropertyMatch{"$.b", MatchOp::kExists, ""}})});
  CHECK_FALSE(a->judge("X::Y", document).value());
  CHECK(b->judge("X::Y", document).value());
}

TEST_CASE("the version follows the content") {
  const auto version = [](const std::vector<MatchFilter>& filters) {
    return FilterSet::compile(filters).value().version();
  };
  const auto base = exclude({TagMatch{{"a", "b"}, "v"}, PropertyMatch{"$.x", MatchOp::kEq, "1"}}, {"T"});
  const std::string first = version({base});
  CHECK(first.size() == 32);
  CHECK(first == version({base}));
  CHECK(first == "5ef8e21f0d9056abc5f31cf736abd8cc");  // the same in every process and version
  CHECK(FilterSet().version() == version({}));

  std::vector<std::string> others{version({}), version({base, base})};
  const auto changed = [&](const auto& change) {
    MatchFilter copy = base;
    change(copy);
    others.push_back(version({copy}));
  };
  changed([](MatchFilter& f) { f.action = FilterAction::kInclude; });
  changed([](MatchFilter& f) { f.types = {}; });
  changed([](MatchFilter& f) { f.types = {"T", "U"}; });
  changed([](MatchFilter& f) { std::swap(f.conditions[0], f.conditions[1]); });
  changed([](MatchFilter& f) { f.conditions.pop_back(); });
  changed([](MatchFilter& f) { f.conditions[0] = TagMatch{{"a"}, "v"}; });
  changed([](MatchFilter& f) { f.conditions[0] = TagMatch{{"ab"}, "v"}; });
  changed([](MatchFilter& f) { f.conditions[0] = TagMatch{{"a", "b"}, ""}; });
  changed([](MatchFilter& f) { f.conditions[1] = PropertyMatch{"$.x", MatchOp::kContains, "1"}; });
  changed([](MatchFilter& f) { f.conditions[1] = PropertyMatch{"$.y", MatchOp::kEq, "1"}; });
  changed([](MatchFilter& f) { f.conditions[1] = PropertyMatch{"$.x", MatchOp::kEq, "2"}; });
  others.push_back(first);
  std::sort(others.begin(), others.end());
  CHECK(std::unique(others.begin(), others.end()) == others.end());
}
