#include <catch2/catch.hpp>

#include "jsonpath_query.h"

using muster::Errc;
using muster::JsonPath;
using namespace muster::testing;
using namespace std::string_literals;

namespace {

void all_valid(const std::vector<std::string>& selectors) {
  for (const std::string& selector : selectors) {
    INFO(selector);
    CHECK(mistake(selector) == "");
  }
}

void all_invalid(const std::vector<std::string>& selectors) {
  for (const std::string& selector : selectors) {
    INFO(selector);
    const auto path = JsonPath::parse(selector);
    CHECK_FALSE(path.has_value());
    if (!path) CHECK(path.error().code == Errc::kMalformed);
  }
}

/// The selector around one filter expression.
std::vector<std::string> in_filter(std::vector<std::string> expressions) {
  for (std::string& expression : expressions) expression = "$[?" + expression + "]";
  return expressions;
}

}  // namespace

TEST_CASE("segments") {
  all_valid({"$", "$.a", "$._", "$.a1_Z", "$.ü", "$.☺", "$.𝄞", "$['a']", "$[\"a\"]", "$.*", "$[*]", "$..a", "$..*",
             "$..[0]", "$..['a',\"b\"]", "$[0,1:2,*,'x',?@]", "$.a.b..c[0]", "$.true", "$.null"});
  all_invalid({"",        " ",        " $",      "$ ",     "$\n",   "a",      "@",       "@.a",        "$a",    "$.",
               "$..",     "$...a",    "$..a.",   "$.1",    "$.1a",  "$.-a",   "$.a-b",   "$.a b",      "$.&",   "$.'a'",
               "$.\"a\"", "$.[0]",    "$.['a']", "$..'a'", "$[]",   "$[ ]",   "$[a]",    "$['a'",      "$['a",  "$[",
               "$]",      "$['a']]",  "$['a']b", "$[0,]",  "$[,0]", "$[0 1]", "$[0,,1]", "$['a' 'b']", "$[**]", "$.**",
               "$.*a",    "$[$.a]",   "$[@.a]",  "$$",     "$.$",   "$.@",    "$..**",   "$.a..",      "$.a[",  "$(",
               "$.a()",   "$[('a')]", "$.a$b",   "$[.a]",  "$#",    "$/a"});
}

TEST_CASE("blank space in segments and selectors") {
  for (const std::string blank : {" ", "\t", "\n", "\r", " \t\r\n "}) {
    for (const std::string selector :
         {"$_.a",        "$_['a']",     "$_..a",     "$.a_.b",   "$['a']_['b']", "$[_'a']",  "$['a'_]",
          "$['a'_,'b']", "$['a',_'b']", "$[_*_]",    "$[_0_]",   "$[_1:2]",      "$[1_:2]",  "$[1:_2]",
          "$[1:2_:3]",   "$[1:2:_3]",   "$[1:2:3_]", "$[_:_:_]", "$[_?@.a_]",    "$[?_@.a]", "$..[_0_,_1_]"}) {
      std::string spaced = selector;
      for (std::size_t at = 0; (at = spaced.find('_', at)) != std::string::npos; at += blank.size())
        spaced.replace(at, 1, blank);
      INFO(spaced);
      CHECK(mistake(spaced) == "");
    }
    all_invalid({"$." + blank + "a", "$.." + blank + "a", "$." + blank + "*", "$.." + blank + "*",
                 "$.." + blank + "[0]", "$" + blank, blank + "$", "$.a" + blank, "$[- 1]", "$[1" + blank + "2]",
                 "$." + blank + ".a"});
  }
  all_invalid({"$\v.a", "$\f.a", "$\u00a0.a", "$[\u00a00]", "$\u2003.a"});
}

TEST_CASE("names in quotes") {
  all_valid({"$['']",
             "$[\"\"]",
             "$['\"']",
             "$[\"'\"]",
             "$['\\'']",
             "$[\"\\\"\"]",
             "$['\\b\\f\\n\\r\\t\\/\\\\']",
             "$['\x7f']",
             "$['\\u0000']",
             "$['\\u000A']",
             "$['\\u00e9']",
             "$['\\uFFFF']",
             "$['\\uD7FF']",
             "$['\\uE000']",
             "$['\\ud834\\udd1e']",
             "$['\\uDBFF\\uDFFF']",
             "$['\\uD834\\uDD1E\\u0061']",
             "$['a]b']",
             "$['$.a']",
             "$['☺𝄞']"});
  all_invalid({"$['\\\"']",
               "$[\"\\'\"]",
               "$['\\a']",
               "$['\\v']",
               "$['\\0']",
               "$['\\x41']",
               "$['\\ ']",
               "$['\\']",
               "$['\\u']",
               "$['\\u1']",
               "$['\\u12']",
               "$['\\u123']",
               "$['\\u123g']",
               "$['\\u+123']",
               "$['\\u-123']",
               "$['\\u 123']",
               "$['\\U0041']",
               "$['\\u{41}']",
               "$['\\uD800']",
               "$['\\uDBFF']",
               "$['\\uDC00']",
               "$['\\uDFFF']",
               "$['\\uD800\\uD800']",
               "$['\\uD800\\u0041']",
               "$['\\uD800a']",
               "$['\\uD800\\n']",
               "$['\\uDC00\\uD800']",
               "$['\\uD800\\uDC0']",
               "$['a\"]",
               "$['a''b']",
               "$['a\\'",
               "$['a\\",
               "$['\\uD834'\\uDD1E']"});
  for (char c = 0; c < 0x20; ++c) {
    all_invalid({"$['"s + c + "']", "$[\""s + c + "\"]", "$[?@ == '"s + c + "']"});
  }
  CHECK(values("$['\\uD834\\uDD1E\\u263a\\/\\'\\\\\\t']", R"({"𝄞☺/'\\\t":1})") == nlohmann::json::array({1}));
  CHECK(values("$['\\u0000']", R"({"\u0000":1})") == nlohmann::json::array({1}));
}

TEST_CASE("a selector is UTF-8") {
  all_invalid({"$.\xff", "$['\xc3']", "$['\xed\xa0\x80']", "$['\xc0\x80']", "$['\xf4\x90\x80\x80']", "$.a\x80"});
}

TEST_CASE("integers") {
  all_valid({"$[0]", "$[-1]", "$[10]", "$[9007199254740991]", "$[-9007199254740991]",
             "$[9007199254740991:-9007199254740991:9007199254740991]", "$[0:0:0]", "$[:]", "$[::]", "$[1:]", "$[:1]",
             "$[::1]", "$[1::]", "$[:1:]", "$[1:2:]", "$[-1:-2:-3]"});
  all_invalid({"$[-0]",
               "$[00]",
               "$[01]",
               "$[-01]",
               "$[+1]",
               "$[--1]",
               "$[-]",
               "$[1.0]",
               "$[1e0]",
               "$[1E2]",
               "$[0x1]",
               "$[1_0]",
               "$[9007199254740992]",
               "$[-9007199254740992]",
               "$[99999999999999999999]",
               "$[1:2:3:4]",
               "$[:::]",
               "$[1:-0]",
               "$[-0:]",
               "$[::-0]",
               "$[01:]",
               "$[:01]",
               "$[::01]",
               "$[1:9007199254740992]",
               "$[::9007199254740992]",
               "$[-9007199254740992:]",
               "$['1':2]",
               "$[1:'2']",
               "$[1:*]",
               "$[1,:,]",
               "$[१]"});
}

TEST_CASE("filter expressions") {
  all_valid(in_filter({"@",
                       "@.a",
                       "!@.a",
                       "! @.a",
                       "$",
                       "$.a",
                       "!$",
                       "@.*",
                       "@..a",
                       "@[?@.b]",
                       "@[?@[?@.c]]",
                       "(@.a)",
                       "((@.a))",
                       "!(@.a)",
                       "! ( @.a )",
                       "!(!@.a)",
                       "(!(@.a))",
                       "@.a&&@.b",
                       "@.a||@.b",
                       "@.a && !@.b || (@.c || @.d) && @.e",
                       "@.a==1",
                       "1==@.a",
                       "1==1",
                       "'a'=='b'",
                       "@==@",
                       "@==$",
                       "$.x==@.y",
                       "true==false",
                       "null==null",
                       "@.a=='x'&&@.b<2",
                       "@['a']==1",
                       "@[0]==1",
                       "@[-1]==1",
                       "@.a[0]['b'].c==1",
                       "$['a'][0]==@",
                       "@.a[?@.b==1]",
                       "@.a\n.b\t[0]==1",
                       "(@.a==1)",
                       "!(@.a==1)",
                       "@.a ==1",
                       "@.a== 1",
                       "@.a\t==\n1",
                       "@.a<1",
                       "@.a<=1",
                       "@.a>1",
                       "@.a>=1",
                       "@.a!=1",
                       "@.a,?@.b",
                       "@.a , 0",
                       "@['a','b']",
                       "@[0,1]",
                       "@[0:1]",
                       "@[ 'a' ]"}));
  all_invalid(in_filter({"",
                         " ",
                         "!",
                         "!!@.a",
                         "()",
                         "(",
                         "(@.a",
                         "@.a)",
                         "(@.a))",
                         "@.a &&",
                         "&& @.a",
                         "@.a & @.b",
                         "@.a | @.b",
                         "@.a ||",
                         "@.a and @.b",
                         "@.a=1",
                         "@.a===1",
                         "@.a<>1",
                         "@.a=~'x'",
                         "@.a= =1",
                         "@.a< =1",
                         "@.a! =1",
                         "@.a==",
                         "==1",
                         "@.a==1==1",
                         "@.a<1<2",
                         "(@.a)==1",
                         "1==(@.a)",
                         "!@.a==1",
                         "@.a==!@.b",
                         "@.a&&&@.b",
                         "@.a||| @.b",
                         "true",
                         "false",
                         "null",
                         "1",
                         "'a'",
                         "!true",
                         "@.a && true",
                         "true || @.a",
                         "@.a == 1 && 2",
                         "(1)",
                         "a",
                         "a==1",
                         ".a",
                         "['a']",
                         "@a",
                         "@ a",
                         "@.a @.b",
                         "@.a==[]",
                         "@.a=={}",
                         "@.a==[1]",
                         "@.a in 1",
                         "@.a==undefined",
                         "@.a==True",
                         "@.a==NULL",
                         "@.a==nulL",
                         "@.a==nulls",
                         "@.a==true1",
                         "@.a=='b",
                         "@.a+1==2",
                         "@.a==-@.b",
                         "@.a.==1",
                         "@.a..==1",
                         "@.*==1",
                         "@..a==1",
                         "@[*]==1",
                         "@[0:1]==1",
                         "@[0,1]==1",
                         "@['a','a']==1",
                         "@[?@.a]==1",
                         "$.*==1",
                         "1==@.*",
                         "@.a[*].b==1",
                         "@.a==@..b",
                         "?@.a",
                         "@.a,@.b",
                         "@.a,",
                         "@.a;"}));
}

TEST_CASE("a singular query has no blanks inside its brackets") {
  all_valid(in_filter({"@['a'] [0]==1", "@ ['a']==1", "@[ 'a' ]", "count(@[ 'a' ])==1"}));
  all_invalid(in_filter({"@[ 'a']==1", "@['a' ]==1", "1==$[ 0 ]", "length(@[\t0])==1"}));
}

TEST_CASE("numbers in filters") {
  all_valid(in_filter({"@==0",     "@==-0",     "@==1",
                       "@==-1",    "@==10",     "@==0.0",
                       "@==-0.0",  "@==0.10",   "@==1.5",
                       "@==1e0",   "@==1E0",    "@==1e+1",
                       "@==1e-1",  "@==1E+01",  "@==-1.5e-007",
                       "@==0e0",   "@==-0e-0",  "@==123456789012345678901234567890",
                       "@==1e999", "@==1e-999", "@==9007199254740993"}));
  all_invalid(in_filter({"@==+1",       "@==.5",    "@==5.",    "@==-.5",  "@==-",   "@==--1",   "@==00",
                         "@==01",       "@==-01",   "@==1.e1",  "@==1e",   "@==1e+", "@==1e-",   "@==1e1.5",
                         "@==1ee1",     "@==1e+-1", "@==1 e1",  "@==1. 5", "@==- 1", "@==1_000", "@==0x1F",
                         "@==Infinity", "@==NaN",   "@==1.2.3", "@==1f",   "@==١"}));
}

TEST_CASE("functions are well-typed") {
  all_valid(in_filter({"length(@)==1",
                       "length(@.a)>=1",
                       "1<length('abc')",
                       "length(1)==1",
                       "length(length(@.a))==1",
                       "length(value(@..a))==1",
                       "length(count(@.*))==1",
                       "length($.a[0])==1",
                       "length(true)==null",
                       "count(@)==1",
                       "count(@.*)>2",
                       "count($..*)==1",
                       "count(@[?@.a])==1",
                       "count(@['a','b'])==0",
                       "value(@.*)==1",
                       "value(@..a)=='x'",
                       "value($)==@",
                       "match(@.a,'x')",
                       "!match(@.a,'x')",
                       "! match(@.a,'x')",
                       "search(@.a,$.p)",
                       "search('a','b')",
                       "match(@.a,1)",
                       "match(1,true)",
                       "match(value(@..a),'x')",
                       "match(length(@),'x')",
                       "(match(@.a,'x'))",
                       "match(@.a,'x')&&search(@.b,'y')||@.c",
                       "length(@)==length(@)",
                       "count(@.*)==value(@.a)",
                       "match( @.a , 'x' )",
                       "length(\n@.a\r)\t==1",
                       "@[?match(@,'x')]"}));
  all_invalid(in_filter({"length(@)",
                         "count(@)",
                         "value(@)",
                         "!length(@)",
                         "length(@)&&@.a",
                         "length()==1",
                         "length(@,@)==1",
                         "length(@.*)==1",
                         "length(@..a)==1",
                         "length(@[0,1])==1",
                         "length(@[0:1])==1",
                         "length(@[?@.a])==1",
                         "length(match(@.a,'x'))==1",
                         "length(@.a==1)==1",
                         "length(@.a&&@.b)==1",
                         "length((@.a))==1",
                         "length(!@.a)==1",
                         "count()==1",
                         "count(1)==1",
                         "count('a')==1",
                         "count(true)==1",
                         "count(null)==1",
                         "count(@,@)==1",
                         "count(length(@))==1",
                         "count(count(@.*))==1",
                         "count(value(@.a))==1",
                         "count((@.a))==1",
                         "value()==1",
                         "value(1)==1",
                         "value(@,@)==1",
                         "value(value(@))==1",
                         "value(length(@))==1",
                         "match(@.a)",
                         "match(@.a,'x','y')",
                         "match()",
                         "match(@.a,'x')==true",
                         "true==match(@.a,'x')",
                         "match(@.*,'x')",
                         "match(@.a,@.*)",
                         "match(@.a,search(@.a,'x'))",
                         "search(@.a)",
                         "search(@.a,'x')!=false",
                         "match(@.a,'x')==match(@.b,'x')",
                         "match(@.a,@.b==1)",
                         "unknown(@)",
                         "unknown(@)==1",
                         "Length(@)==1",
                         "LENGTH(@)==1",
                         "len(@)==1",
                         "_f(@)",
                         "1f(@)",
                         "length (@)==1",
                         "length\n(@)==1",
                         "length(@ @)==1",
                         "length(,@)==1",
                         "length(@,)==1",
                         "length(@",
                         "length(@==1",
                         "length@==1",
                         "length==1",
                         "length",
                         "true(@)",
                         "length)@(==1",
                         "@.length()==1",
                         "length(@).a==1",
                         "match(@.a,'x'",
                         "match @.a,'x'"}));
}

TEST_CASE("a mistake is told with its column, counted in characters") {
  CHECK(mistake("") == "column 1: a JSONPath begins with $");
  CHECK(mistake("$.a.") == "column 5: expected a name or '*'");
  CHECK(mistake("$ ") == "column 2: blank space at the end");
  CHECK(mistake("$['☺𝄞', x]") == "column 9: expected a selector: a quoted name, '*', an integer, a slice or '?'");
  CHECK(mistake("$[?@.a == 'x") == "column 13: the string has no end");
  CHECK(mistake("$[?@.a == @.*]") ==
        "column 11: only a singular query has a value: one name or index in each segment, no blanks in brackets");
  CHECK(mistake("$[?length(@.a)]") == "column 4: the result of length() has to be compared");
  CHECK(mistake("$[?match(@.a)]") == "column 4: match() takes more arguments");
  CHECK(mistake("$[?size(@.a) == 1]") == "column 4: no function size()");
  CHECK(mistake("$['\\uD834']") == "column 4: a surrogate stands alone");
}

TEST_CASE("hostile selectors meet a limit, not the end of the stack") {
  const auto repeat = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const auto code = [](const std::string& selector) { return JsonPath::parse(selector).error().code; };
  CHECK(code("$[?" + repeat("(", 20'000)) == Errc::kTooLarge);
  CHECK(code("$" + repeat("[?@", 20'000)) == Errc::kTooLarge);
  CHECK(code("$[?" + repeat("length(", 9'000)) == Errc::kTooLarge);
  CHECK(code("$[?" + repeat("!(", 20'000)) == Errc::kTooLarge);
  CHECK(code("$" + repeat(".a", 1025)) == Errc::kTooLarge);
  CHECK(code("$." + repeat("a", 70'000)) == Errc::kTooLarge);
  CHECK(code("$[?" + repeat("!", 60'000)) == Errc::kMalformed);
  CHECK(valid("$" + repeat(".a", 1024)));
  CHECK(valid("$[?" + repeat("(", 60) + "@" + repeat(")", 60) + "]"));
  CHECK(valid("$[?@" + repeat("||@", 10'000) + "]"));
}
