#include <catch2/catch.hpp>

#include "jsonpath_query.h"

using muster::Errc;
using muster::JsonDocument;
using muster::JsonPath;
using nlohmann::json;
using namespace muster::testing;

using Paths = std::vector<std::string>;

namespace {

/// Whether `condition` holds for the value `json_value`.
bool holds(const std::string& condition, const std::string& json_value) {
  return !paths("$[?" + condition + "]", "[" + json_value + "]").empty();
}

constexpr const char* kDigits = "[0,1,2,3,4,5,6,7,8,9]";

}  // namespace

TEST_CASE("names, wildcards and indices") {
  const auto* document = R"({"a":{"b":[10,20,30]},"":1,"☺":2,"0":3})";
  CHECK(values("$", "7") == json{7});
  CHECK(values("$.a.b[1]", document) == json{20});
  CHECK(values("$['a']['b'][-1]", document) == json{30});
  CHECK(values("$['']", document) == json{1});
  CHECK(values("$.☺", document) == json{2});
  CHECK(values("$['0']", document) == json{3});
  CHECK(values("$[0]", document) == json::array());
  CHECK(values("$.a.b['1']", document) == json::array());
  CHECK(values("$.a.b.length", document) == json::array());
  CHECK(values("$.a.b[3]", document) == json::array());
  CHECK(values("$.a.b[-4]", document) == json::array());
  CHECK(values("$.a.b[-3]", document) == json{10});
  CHECK(values("$.a.b[9007199254740991,-9007199254740991]", document) == json::array());
  CHECK(values("$.a.b.*", document) == json({10, 20, 30}));
  CHECK(values("$.*.*", "[[1],[],{\"x\":2},3]") == json({1, 2}));
  CHECK(values("$.*", "\"text\"") == json::array());
  CHECK(values("$.a", "null") == json::array());
  CHECK(values("$.a", R"({"A":1})") == json::array());
  CHECK(values("$.\u00e9", "{\"e\u0301\":1}") == json::array());  // no normalisation
}

TEST_CASE("several selectors give their matches one after the other, also twice") {
  CHECK(values("$[0,0]", "[1]") == json({1, 1}));
  CHECK(values("$[2,0,'x',-1]", "[1,2,3]") == json({3, 1, 3}));
  CHECK(values("$[*,1]", "[1,2]") == json({1, 2, 2}));
  CHECK(values("$['b','a','b']", R"({"a":1,"b":2})") == json({2, 1, 2}));
  CHECK(values("$[1:,0]", "[1,2,3]") == json({2, 3, 1}));
  CHECK(values("$[?@>1,0]", "[1,2,3]") == json({2, 3, 1}));
  CHECK(values("$[0,1].a", R"([{"a":1},{"a":2}])") == json({1, 2}));
}

TEST_CASE("slices") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"$[:]", kDigits},
      {"$[::]", kDigits},
      {"$[1:3]", "[1,2]"},
      {"$[1:6:2]", "[1,3,5]"},
      {"$[::3]", "[0,3,6,9]"},
      {"$[7:]", "[7,8,9]"},
      {"$[:2]", "[0,1]"},
      {"$[-2:]", "[8,9]"},
      {"$[:-8]", "[0,1]"},
      {"$[-3:-1]", "[7,8]"},
      {"$[2:2]", "[]"},
      {"$[3:2]", "[]"},
      {"$[20:]", "[]"},
      {"$[:-20]", "[]"},
      {"$[-20:2]", "[0,1]"},
      {"$[8:20]", "[8,9]"},
      {"$[::-1]", "[9,8,7,6,5,4,3,2,1,0]"},
      {"$[::-4]", "[9,5,1]"},
      {"$[3::-1]", "[3,2,1,0]"},
      {"$[:7:-1]", "[9,8]"},
      {"$[5:1:-2]", "[5,3]"},
      {"$[1:5:-1]", "[]"},
      {"$[-1:-4:-1]", "[9,8,7]"},
      {"$[20:7:-1]", "[9,8]"},
      {"$[0::-1]", "[0]"},
      {"$[0:-20:-1]", "[0]"},
      {"$[-20::-1]", "[]"},
      {"$[:0:-5]", "[9,4]"},
      {"$[0:10:0]", "[]"},
      {"$[::0]", "[]"},
      {"$[1:2:9007199254740991]", "[1]"},
      {"$[::9007199254740991]", "[0]"},
      {"$[::-9007199254740991]", "[9]"},
      {"$[-9007199254740991:9007199254740991]", kDigits},
      {"$[9007199254740991:-9007199254740991:-5]", "[9,4]"}};
  for (const auto& [selector, expected] : cases) {
    INFO(selector);
    CHECK(values(selector, kDigits) == json::parse(expected));
    CHECK(values(selector, "[]") == json::array());
    CHECK(values(selector, R"({"a":1,":":2})") == json::array());
    CHECK(values(selector, "\"0123456789\"") == json::array());
  }
  CHECK(paths("$[1:4:2]", kDigits) == Paths{"$[1]", "$[3]"});
}

TEST_CASE("a descendant segment visits a node before what is below it, and elements in order") {
  const auto* document = R"({"a":[{"a":1},[{"a":2}]],"b":{"a":{"a":3}}})";
  CHECK(paths("$..a", document) ==
        Paths{"$['a']", "$['a'][0]['a']", "$['a'][1][0]['a']", "$['b']['a']", "$['b']['a']['a']"});
  CHECK(paths("$..*", "[[1],[2,[3]]]") == Paths{"$[0]", "$[1]", "$[0][0]", "$[1][0]", "$[1][1]", "$[1][1][0]"});
  CHECK(paths("$..[0]", "[[1],[2,[3]]]") == Paths{"$[0]", "$[0][0]", "$[1][0]", "$[1][1][0]"});
  CHECK(paths("$..[1,0]", "[[1],[2,3]]") == Paths{"$[1]", "$[0]", "$[0][0]", "$[1][1]", "$[1][0]"});
  CHECK(values("$..a", "1") == json::array());
  CHECK(values("$..a..a", R"({"a":{"a":{"a":1}}})").size() == 3);  // the innermost twice: below both
  CHECK(values("$..[?@.x].x", R"([{"x":1},{"y":{"x":2}}])") == json({1, 2}));
  CHECK(values("$.b..[?@>2]", document) == json{3});
}

TEST_CASE("an existence test looks for nodes, not at values") {
  for (const char* value : {"null", "false", "0", "\"\"", "[]", "{}"}) {
    INFO(value);
    CHECK(holds("@.a", std::string(R"({"a":)") + value + "}"));
    CHECK(holds("@", value));
  }
  CHECK_FALSE(holds("@.a", R"({"b":1})"));
  CHECK(holds("!@.a", R"({"b":1})"));
  CHECK_FALSE(holds("@.*", "[]"));
  CHECK(holds("@[0:2]", "[1]"));
  CHECK_FALSE(holds("@[1:2]", "[1]"));
  CHECK(holds("@..z", R"({"a":[{"z":null}]})"));
  CHECK(holds("@[?@.a==1]", R"([{"a":1}])"));
  CHECK(values("$[?@.a]", R"({"x":{"a":1},"y":{"b":1},"z":5})") == json::array({json::object({{"a", 1}})}));
  CHECK(values("$[?@.a]", "5") == json::array());
  CHECK(values("$.v[?@>$.min]", R"({"v":[1,5,9],"min":4})") == json({5, 9}));
  CHECK(values("$.v[?$.flag]", R"({"v":[1],"flag":false})") == json{1});
}

TEST_CASE("logical operators and their precedence") {
  const auto* document = R"([{"a":1},{"b":1},{"c":1},{"a":1,"c":1},{"b":1,"c":1}])";
  CHECK(paths("$[?@.a||@.b&&@.c]", document) == Paths{"$[0]", "$[3]", "$[4]"});
  CHECK(paths("$[?(@.a||@.b)&&@.c]", document) == Paths{"$[3]", "$[4]"});
  CHECK(paths("$[?!@.a&&!@.b]", document) == Paths{"$[2]"});
  CHECK(paths("$[?!(@.a||@.b)]", document) == Paths{"$[2]"});
  CHECK(paths("$[?!(@.a&&@.c)&&@.c]", document) == Paths{"$[2]", "$[4]"});
  CHECK(paths("$[?!(!@.a)]", document) == Paths{"$[0]", "$[3]"});
}

TEST_CASE("comparisons as the RFC's table has them") {
  const auto* object = R"({"obj":{"x":"y"},"arr":[2,3]})";
  const std::vector<std::pair<const char*, bool>> cases = {{"$.absent1 == $.absent2", true},
                                                           {"$.absent1 <= $.absent2", true},
                                                           {"$.absent1 >= $.absent2", true},
                                                           {"$.absent1 < $.absent2", false},
                                                           {"$.absent1 > $.absent2", false},
                                                           {"$.absent1 != $.absent2", false},
                                                           {"$.absent == 'g'", false},
                                                           {"$.absent != 'g'", true},
                                                           {"$.absent == null", false},
                                                           {"$.absent < 1", false},
                                                           {"1 <= 2", true},
                                                           {"1 > 2", false},
                                                           {"13 == '13'", false},
                                                           {"13 < '14'", false},
                                                           {"13 != '13'", true},
                                                           {"'a' <= 'b'", true},
                                                           {"'a' > 'b'", false},
                                                           {"'a' < 'aa'", true},
                                                           {"'Z' < 'a'", true},
                                                           {"'' < 'a'", true},
                                                           {"$.obj == $.arr", false},
                                                           {"$.obj != $.arr", true},
                                                           {"$.obj == $.obj", true},
                                                           {"$.obj != $.obj", false},
                                                           {"$.arr == $.arr", true},
                                                           {"$.arr != $.arr", false},
                                                           {"$.obj == 17", false},
                                                           {"$.obj != 17", true},
                                                           {"$.obj <= $.arr", false},
                                                           {"$.obj < $.arr", false},
                                                           {"$.obj <= $.obj", true},
                                                           {"$.arr >= $.arr", true},
                                                           {"$.arr < $.arr", false},
                                                           {"1 <= $.arr", false},
                                                           {"1 >= $.arr", false},
                                                           {"1 > $.arr", false},
                                                           {"1 < $.arr", false},
                                                           {"true <= true", true},
                                                           {"true > true", false},
                                                           {"true >= false", false},
                                                           {"false < true", false},
                                                           {"null <= null", true},
                                                           {"null < null", false},
                                                           {"null == false", false},
                                                           {"0 == false", false},
                                                           {"'' == null", false}};
  for (const auto& [condition, expected] : cases) {
    INFO(condition);
    CHECK(values(std::string("$.arr[?") + condition + "]", object).empty() != expected);
  }
}

TEST_CASE("numbers are compared by value") {
  CHECK(holds("@==1", "1.0"));
  CHECK(holds("@==1.0", "1"));
  CHECK(holds("@==100", "1e2"));
  CHECK(holds("@==1e2", "100"));
  CHECK(holds("@==1.10", "1.1"));
  CHECK(holds("@==0.1", "1e-1"));
  CHECK(holds("@==-0", "0"));
  CHECK(holds("@==0", "-0.0"));
  CHECK(holds("@==18446744073709551615", "18446744073709551615"));
  CHECK_FALSE(holds("@==18446744073709551614", "18446744073709551615"));
  CHECK(holds("@>18446744073709551614", "18446744073709551615"));
  CHECK(holds("@>-1", "18446744073709551615"));
  CHECK(holds("@<0", "-9223372036854775808"));
  CHECK_FALSE(holds("@==9007199254740993.0", "9007199254740993"));  // the literal is 9007199254740992
  CHECK(holds("@>9007199254740992.0", "9007199254740993"));
  CHECK(holds("@==123456789012345678901234567890", "123456789012345678901234567890"));
  CHECK(holds("@<1e999", "1e308"));
  CHECK(holds("@>-1e999", "-1e308"));
  CHECK(holds("@>1e-999", "1e-300"));
  CHECK(values("$[?@<3.5]", "[3,3.5,4,\"3\",true,null]") == json{3});
  CHECK(values("$.x[?@==$.y]", R"({"x":[1,1.0,2],"y":1})").size() == 2);
}

TEST_CASE("strings are compared by code points") {
  CHECK(holds("@<'\\uFB01'", "\"\u00e9\""));
  CHECK(holds("@>'\\uFFFF'", "\"\U0001d11e\""));  // UTF-16 would have it the other way round
  CHECK(holds("@=='\\u00e9'", "\"\u00e9\""));
  CHECK_FALSE(holds("@=='e\\u0301'", "\"\u00e9\""));
  CHECK(holds("@=='a\\u0000b'", R"("a\u0000b")"));
  CHECK_FALSE(holds("@=='a'", R"("a\u0000b")"));
  CHECK(holds("@=='quoted\\' literal'", "\"quoted' literal\""));
}

TEST_CASE("arrays and objects are compared in depth") {
  const auto equal = [](const std::string& a, const std::string& b) {
    return !values("$.l[?@==$.r]", R"({"l":[)" + a + R"(],"r":)" + b + "}").empty();
  };
  CHECK(equal("[]", "[]"));
  CHECK(equal("{}", "{}"));
  CHECK_FALSE(equal("[]", "{}"));
  CHECK(equal(R"({"a":1,"b":[1,{"c":null}]})", R"({"b":[1.0,{"c":null}],"a":1})"));
  CHECK_FALSE(equal(R"({"a":1,"b":2})", R"({"a":1,"c":2})"));
  CHECK_FALSE(equal(R"({"a":1})", R"({"a":1,"b":2})"));
  CHECK_FALSE(equal("[1,2]", "[2,1]"));
  CHECK_FALSE(equal("[1]", "[1,2]"));
  CHECK_FALSE(equal(R"([{"a":false}])", R"([{"a":true}])"));
  CHECK_FALSE(equal(R"(["1"])", "[1]"));
  CHECK(equal("[[[[\"x\"]]]]", "[[[[\"x\"]]]]"));
}

TEST_CASE("length, count and value") {
  CHECK(holds("length(@)==3", "\"☺𝄞é\""));
  CHECK(holds("length(@)==0", "\"\""));
  CHECK(holds("length(@)==2", "[1,[2,3]]"));
  CHECK(holds("length(@)==2", R"({"a":1,"b":{"c":1}})"));
  for (const char* value : {"1", "true", "null"}) CHECK_FALSE(holds("length(@)>=0", value));
  CHECK(holds("length(@.a)==length(@.b)", "{}"));  // Nothing is equal to Nothing
  CHECK(holds("length(@.a)!=0", "{}"));
  CHECK(holds("length('abc')==3", "0"));
  CHECK(holds("count(@.*)==3", "[1,2,3]"));
  CHECK(holds("count(@.*)==0", "1"));
  CHECK(holds("count(@['a','a'])==2", R"({"a":1})"));
  CHECK(holds("count(@..*)==4", "[[1,2],3]"));
  CHECK(holds("count(@)==1", "null"));
  CHECK(holds("value(@.*)==4", "[4]"));
  CHECK_FALSE(holds("value(@.*)==4", "[4,4]"));
  CHECK(holds("value(@.*)==@.absent", "[4,4]"));
  CHECK(holds("value(@..a)==1", R"({"b":{"a":1}})"));
  CHECK(holds("length(value(@.*))==2", "[\"ab\"]"));
}

TEST_CASE("match is anchored, search is not") {
  CHECK(holds("match(@,'a.c')", "\"abc\""));
  CHECK_FALSE(holds("match(@,'a.c')", "\"xabc\""));
  CHECK(holds("search(@,'a.c')", "\"xabcx\""));
  CHECK(holds("match(@,'a|abc')", "\"abc\""));
  CHECK_FALSE(holds("match(@,'a|b')", "\"ab\""));
  CHECK(holds("match(@,'')", "\"\""));
  CHECK(holds("search(@,'')", "\"abc\""));
  CHECK_FALSE(holds("match(@,'[')", "\"[\""));
  CHECK(holds("!match(@,'[')", "\"[\""));
  for (const char* value : {"1", "null", "[]", "{}", "true"}) CHECK_FALSE(holds("search(@,'')", value));
  CHECK_FALSE(holds("match(@,1)", "\"1\""));
  CHECK_FALSE(holds("match(@.absent,'.*')", "{}"));
  CHECK(values("$.v[?match(@,$.p)]", R"({"v":["ab","b",1],"p":"a."})") == json{"ab"});
  CHECK(values("$.v[?search(@.s,@.p)]",
               R"({"v":[{"s":"xay","p":"a"},{"s":"b","p":"a"},{"s":"c","p":"("},{"s":"d","p":5}]})")
            .size() == 1);
}

TEST_CASE("normalised paths") {
  CHECK(paths("$", "1") == Paths{"$"});
  CHECK(paths("$.a[0].b[-1]", R"({"a":[{"b":[1,2]}]})") == Paths{"$['a'][0]['b'][1]"});
  CHECK(paths("$.*", R"({"'":1})") == Paths{"$['\\'']"});
  CHECK(paths("$.*", R"({"\"":1})") == Paths{"$['\"']"});
  CHECK(paths("$.*", R"({"\\":1})") == Paths{"$['\\\\']"});
  CHECK(paths("$.*", R"({"/":1})") == Paths{"$['/']"});
  CHECK(paths("$.*", R"({"\b\f\n\r\t":1})") == Paths{"$['\\b\\f\\n\\r\\t']"});
  CHECK(paths("$.*", R"({"\u0000\u000b\u001F":1})") == Paths{"$['\\u0000\\u000b\\u001f']"});
  CHECK(paths("$.*", "{\"\x7f☺𝄞\":1}") == Paths{"$['\x7f☺𝄞']"});
  CHECK(paths("$.*", R"({"":1})") == Paths{"$['']"});
}

TEST_CASE("every normalised path selects its own node again") {
  const std::string document = R"({"a'b":[{"\\":[1]},"x"],"\n":{"\u0001":{"\"":null}},"":[[[]]]})";
  for (const std::string& path : paths("$..*", document)) {
    INFO(path);
    CHECK(paths(path, document) == Paths{path});
  }
}

TEST_CASE("an evaluation ends at its budget") {
  JsonDocument document;
  document.parse("[1,2,3,4,5,6,7,8,9]").value();
  const auto path = JsonPath::parse("$[?$[?$[?$[?@>0]]]]").value();
  CHECK(path.find(document).value().size() == 9);
  CHECK(path.find(document, 20).error().code == Errc::kTooLarge);

  const auto hostile = JsonPath::parse(
                           "$[?count($[?count($[?count($[?count($[?count($[?count($[?count($[?count($.*)==0])==0])==0])"
                           "==0])==0])==0])==0])==0]")
                           .value();
  CHECK(hostile.any(document, [](const auto&) { return false; }).error().code == Errc::kTooLarge);
}

TEST_CASE("deep documents and long selectors do not need the stack") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  const std::string deep = nested(1000);
  CHECK(values("$..*", deep).size() == 999);
  CHECK(values("$..[?@==@]", deep).size() == 999);
  std::string selector = "$";
  for (int i = 0; i < 999; ++i) selector += "[0]";
  CHECK(values(selector, deep) == json::array({json::array()}));
  selector = "$";
  for (int i = 0; i < 1000; ++i) selector += "[*]";
  CHECK(values(selector, deep) == json::array());
}
