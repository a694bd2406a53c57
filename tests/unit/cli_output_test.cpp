#include "coordinator/cli/output.h"
#include "coordinator/cli/output_limit.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include <spdlog/logger.h>
#include <catch2/catch.hpp>

#include "support/fleet_client.h"
#include "support/scratch.h"
#include "unit/cli_screen.h"
#include "worker_sdk/bus/stderr_log.h"

using namespace muster;
using namespace muster::cli;
using test::TestScreen;

namespace {

std::vector<Column> two_columns() {
  return {column("NAME", "name"), column("SIZE", "size", Align::kRight)};
}

std::string listed(Format format, const std::vector<std::string>& items, std::size_t width = 0) {
  TestScreen test(format);
  test.screen.width = width;
  ListWriter list(test.screen, two_columns(), "nothing here");
  for (const std::string& item : items) list.add(item);
  REQUIRE(list.finish());
  return test.out.str() + test.err.str();
}

}  // namespace

TEST_CASE("nothing that a resource is called can move the cursor or break a line") {
  CHECK(escape("plain, é, 漢, 😀") == "plain, é, 漢, 😀");
  CHECK(escape("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(escape("\x1b[31mred\x07") == "\\x1b[31mred\\x07");
  CHECK(escape(std::string("\0x", 2)) == "\\x00x");
  CHECK(escape("\x7f\xc2\x9b") == "\\x7f\\u{9b}");
  CHECK(escape("a\xe2\x80\xae"
               "b") == "a\\u{202e}b");
  CHECK(escape("a\xff\xc3") == "a\\xff\\xc3");
  CHECK(listed(Format::kTable, {R"({"name":"a\nb\u001b[2J","size":1})"}) == "NAME         SIZE\na\\nb\\x1b[2J     1\n");
}

TEST_CASE("a list in each format") {
  const std::vector<std::string> items{R"({"name":"a","size":1})", R"({"name":"long name","size":123.50,"x":null})"};
  CHECK(listed(Format::kTable, items) == "NAME        SIZE\na              1\nlong name  123.5\n");
  CHECK(listed(Format::kJson, items) == "[" + items[0] + ",\n" + items[1] + "]\n");
  CHECK(listed(Format::kNdjson, items) == items[0] + "\n" + items[1] + "\n");
  CHECK(listed(Format::kYaml, items) == "- name: a\n  size: 1\n- name: long name\n  size: 123.5\n  x: null\n");
}

TEST_CASE("a list without items") {
  CHECK(listed(Format::kTable, {}) == "nothing here\n");
  CHECK(listed(Format::kJson, {}) == "[]\n");
  CHECK(listed(Format::kNdjson, {}).empty());
  CHECK(listed(Format::kYaml, {}) == "[]\n");
}

TEST_CASE("a table is cut to the terminal, not elsewhere") {
  const std::vector<std::string> items{R"({"name":"ééééééééééééééééééééé","size":1})"};
  CHECK(listed(Format::kTable, items, 20) == "NAME            SIZE\nééééééééééééé…     1\n");
  CHECK(listed(Format::kTable, items) == "NAME                   SIZE\nééééééééééééééééééééé     1\n");
}

TEST_CASE("what is as wide as two columns, or as none, breaks no table") {
  const std::vector<std::string> items{R"({"name":"漢字","size":1})", R"({"name":"😀x","size":2})",
                                       R"({"name":"e\u0301e\u0301","size":3})", R"({"name":"plain","size":4})"};
  CHECK(listed(Format::kTable, items) ==
        "NAME   SIZE\n漢字      1\n😀x       2\ne\u0301e\u0301        3\nplain     4\n");
  CHECK(listed(Format::kTable, {R"({"name":"漢字漢字漢字漢字","size":1})"}, 15) ==
        "NAME       SIZE\n漢字漢字…     1\n");
  CHECK(listed(Format::kTable, {R"({"name":"漢字漢字漢字漢字","size":1})"}, 14) == "NAME      SIZE\n漢字漢…      1\n");
}

TEST_CASE("an id is never cut: other commands take it") {
  TestScreen test;
  test.screen.width = 20;
  write_table(test.screen, {column("NAME", "name"), id_column("ID", "id")},
              Json::parse(R"([{"name":"a long name","id":"01M8DGBHZ2JMFG00001"}])"));
  CHECK(test.out.str() == "NAME      ID\na long …  01M8DGBHZ2JMFG00001\n");
}

TEST_CASE("a table has one header however many pages it has") {
  TestScreen test;
  ListWriter list(test.screen, two_columns(), "");
  list.add(R"({"name":"a","size":1})");
  REQUIRE(list.flush());
  list.add(R"({"name":"longer","size":2})");
  REQUIRE(list.finish());
  CHECK(test.out.str() == "NAME  SIZE\na        1\nlonger     2\n");
}

TEST_CASE("a reader that went away stops the list") {
  TestScreen test(Format::kNdjson);
  ListWriter list(test.screen, {}, "");
  test.out.setstate(std::ios::badbit);
  list.add("{}");
  CHECK_FALSE(list.flush());
}

TEST_CASE("YAML quotes what would not be read as the same text") {
  const Json value = Json::parse(R"({"a":"yes","b":"1","c":"x: y","d":"","e":"-","f":"#","g":"null","h":"/etc/passwd",
    "i":"é\n","j":[[1,"two"],[],{}],"k":{"l":{"m":true}},"n o":" x"})");
  CHECK(to_yaml(value) ==
        "a: \"yes\"\nb: \"1\"\nc: \"x: y\"\nd: \"\"\ne: \"-\"\nf: \"#\"\ng: \"null\"\nh: /etc/passwd\n"
        "i: \"é\\n\"\nj:\n  - - 1\n    - two\n  - []\n  - {}\nk:\n  l:\n    m: true\nn o: \" x\"\n");
}

TEST_CASE("YAML escapes what may not stand in a file, or would be taken for a line break") {
  const std::string odd = "\xc2\x9b \xc2\x85 \xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\x7f \xc2\xa0\xc3\x9b";
  CHECK(to_yaml(Json{{"a", "\xe2\x80\xaez\xe2\x81\xa6"}}) == "a: \"\\u202ez\\u2066\"\n");
  CHECK(to_yaml(Json{{"a", odd}}) == "a: \"\\u009b \\u0085 \\u2028\\u2029\\ufeff\\u007f \xc2\xa0\xc3\x9b\"\n");
}

TEST_CASE("no JSON has what a terminal obeys, or what some take for the end of a line") {
  const std::string odd = "{\"name\":\"\xc2\x9b\x7f\xc2\x85\xe2\x80\xa8\"}",
                    told = R"({"name":"\u009b\u007f\u0085\u2028"})";
  CHECK(listed(Format::kJson, {odd}) == "[" + told + "]\n");
  CHECK(listed(Format::kNdjson, {odd}) == told + "\n");
  const auto written = [&](Format format) {
    TestScreen test(format);
    write_answer(test.screen, odd, [](const Json&) {});
    write_object(test.screen, Json::parse(odd), [](const Json&) {});
    return test.out.str();
  };
  CHECK(written(Format::kNdjson) == told + "\n" + told + "\n");
  CHECK(written(Format::kJson) ==
        "{\n  \"name\": \"\\u009b\\u007f\\u0085\\u2028\"\n}\n{\n  \"name\": \"\\u009b\\u007f\\u0085\\u2028\"\n}\n");
}

TEST_CASE("one object in each format") {
  const auto written = [](Format format) {
    TestScreen test(format);
    write_answer(test.screen, R"({"b":1,"a":[2]})",
                 [&](const Json& object) { test.out << object.size() << " fields\n"; });
    return test.out.str();
  };
  CHECK(written(Format::kTable) == "2 fields\n");
  CHECK(written(Format::kJson) == "{\n  \"b\": 1,\n  \"a\": [\n    2\n  ]\n}\n");
  CHECK(written(Format::kNdjson) == "{\"b\":1,\"a\":[2]}\n");
  CHECK(written(Format::kYaml) == "b: 1\na:\n  - 2\n");
}

TEST_CASE("colour is for terminals, and for states") {
  TestScreen test;
  test.screen.colour = true;
  write_table(test.screen, {column("STATE", "state")}, Json::parse(R"([{"state":"failed"},{"state":"other"}])"));
  CHECK(test.out.str() == "\x1b[1mSTATE\x1b[0m\n\x1b[31mfailed\x1b[0m\nother\n");
}

TEST_CASE("progress is a line that is written anew on a terminal, and silent elsewhere") {
  TestScreen terminal;
  terminal.screen.progress = true;
  {
    Progress progress(terminal.screen);
    progress.show("one");
    progress.show("two");
    terminal.screen.progress_width = 10;
    progress.show("as wide 10");
    progress.show("wider than that");
  }
  CHECK(terminal.err.str() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[Kas wide 10\r\x1b[Kwider tha…\r\x1b[K");
  TestScreen file;
  Progress(file.screen).show("one");
  CHECK(file.err.str().empty());
}

TEST_CASE("a line of a process stays one line under its own name, whatever either holds") {
  CHECK(log_line("worker fs", "[INF] ready") == "worker fs: [INF] ready");
  CHECK(log_line("worker a\nnats-server", "\x1b[2J\rgone\tée") == "worker a\\nnats-server: \\x1b[2J\\rgone\\tée");
}

TEST_CASE("of what a process writes without end 64 KiB a second are passed on, after 1 MiB") {
  OutputLimit limit;
  TimePoint now{std::chrono::hours(1)};
  const auto write = [&](std::size_t lines, std::size_t size) {
    std::size_t passed = 0;
    for (std::size_t i = 0; i < lines; ++i) passed += limit.admit(size, now) ? size : 0;
    return passed;
  };
  SECTION("long lines") {
    const auto first = write(1000, 10'000);
    CHECK(first > 1'000'000);
    CHECK(first <= (1 << 20) + 10'000);
    CHECK(limit.take_left_out() == 1000 * 10'001 - first - first / 10'000);
    CHECK(limit.take_left_out() == 0);
    std::size_t later = 0, times = 0;
    for (int i = 0; i < 1000; ++i) {
      now += Millis(100);
      const auto passed = write(100, 10'000);
      later += passed;
      times += passed > 0 ? 1 : 0;
    }
    CHECK(later > 100 * 60'000);
    CHECK(later < 100 * 70'000);
    CHECK(times <= 100);  // so often is told how much was left out
  }
  SECTION("empty lines") {
    std::size_t passed = 0;
    for (int i = 0; i < 100'000; ++i) passed += limit.admit(0, now) ? 1 : 0;
    CHECK(passed == (1 << 20) / 64);
  }
  SECTION("one who pauses begins afresh") {
    write(1000, 10'000);
    now += std::chrono::minutes(1);
    CHECK(write(100, 10'000) == 1'000'000);
  }
  SECTION("little for ever is passed on whole") {
    for (int i = 0; i < 100'000; ++i) {
      now += Millis(10);
      if (!limit.admit(500, now)) FAIL(i);
    }
    CHECK(limit.take_left_out() == 0);
  }
}

TEST_CASE("what a log says of others is one line that no terminal obeys") {
  const test::Scratch scratch;
  const auto file = scratch.path / "log";
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO), to = open(file.c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(to, STDERR_FILENO);
  stderr_log("it", spdlog::level::info, true)->warn("{}", "a\nb \x1b[31m \xc2\x9b\x33m \x9b\x34m \xe2\x80\xae é");
  dup2(before, STDERR_FILENO);
  close(before);
  close(to);
  CHECK_THAT(test::slurp(file), Catch::EndsWith("Z warning it a\\nb \\x1b[31m \\u{9b}3m \\x9b4m \\u{202e} é\n"));
}
