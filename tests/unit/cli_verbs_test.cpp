#include "coordinator/cli/verbs.h"

#include <catch2/catch.hpp>

#include "coordinator/cli/editor_schema.h"
#include "coordinator/schema_check.h"
#include "unit/cli_screen.h"

using namespace muster;
using namespace muster::cli;
using Catch::Contains;
using test::FakeClient;
using test::TestScreen;

namespace {

const Interrupted kNever = [] { return false; };

std::string event(int sequence, const std::string& what = "resource.changed") {
  return R"({"id":"e)" + std::to_string(sequence) + R"(","type":"muster.)" + what + R"(","sequence":")" +
         std::to_string(sequence) + "\"}";
}

std::string list_of(const std::vector<std::string>& items, const std::string& next = "null") {
  std::string text = R"({"items":[)";
  for (const std::string& item : items) text += (&item == &items.front() ? "" : ",") + item;
  return text + "],\"next\":" + next + "}";
}

/// The sequence numbers that a run of `events` printed.
std::string sequences(const TestScreen& test) {
  std::istringstream lines(test.out.str());
  std::string text;
  for (std::string line; std::getline(lines, line);) text += field(Json::parse(line), "sequence") + " ";
  return text;
}

}  // namespace

TEST_CASE("a list goes on from page to page, its items as the coordinator wrote them") {
  FakeClient client;
  const std::string first = R"({"id":"1","properties":{"n":123456789012345678901234567890,"z":1.50,"a":[ ]}})";
  client.answer("resources", list_of({first}, "\"c1\""));
  client.answer("resources", list_of({R"({"id":"2"})"}));
  TestScreen test(Format::kNdjson);
  CHECK(resources(client, test.screen, {"ngi", "etc", "FS::File", "shop", "stale", true, true, 0}) == 0);
  CHECK(test.out.str() == first + "\n{\"id\":\"2\"}\n");
  REQUIRE(client.requests.size() == 2);
  CHECK(client.requests[0].body == Json::parse(R"({"text":"ngi","target":"etc","type":"FS::File","stack":"shop",
      "state":"stale","managed":true,"drifted":true})"));
  CHECK(client.requests[1].body["cursor"] == "c1");
}

TEST_CASE("the pages of a long list are asked for ahead, none after the last") {
  FakeClient client;
  client.answer("resources", list_of({R"({"id":"1"})"}, "\"c1\""));
  client.answer("resources", list_of({R"({"id":"2"})"}, "\"c2\""));
  client.answer("resources", list_of({R"({"id":"3"})"}));
  TestScreen test(Format::kNdjson);
  CHECK(resources(client, test.screen, {}) == 0);
  REQUIRE(client.requests.size() == 3);
  REQUIRE(client.asked_ahead.size() == 1);
  CHECK(client.asked_ahead[0].verb == "resources");
  CHECK(client.asked_ahead[0].body == client.requests[2].body);
}

TEST_CASE("--limit ends a list in the middle of a page") {
  FakeClient client;
  client.answer("resources", list_of({"{\"id\":\"1\"}", "{\"id\":\"2\"}"}, "\"c\""));
  TestScreen test(Format::kJson);
  ResourcesOptions options;
  options.limit = 1;
  CHECK(resources(client, test.screen, options) == 0);
  CHECK(test.out.str() == "[{\"id\":\"1\"}]\n");
}

TEST_CASE("an empty inventory says what to do, on stderr") {
  FakeClient client;
  client.answer("resources", list_of({}));
  TestScreen test;
  CHECK(resources(client, test.screen, {}) == 0);
  CHECK(test.out.str().empty());
  CHECK(test.err.str() == "no resources yet: `muster discover --wait` takes an inventory\n");
}

TEST_CASE("exit status tells refused, bad input and nobody there apart") {
  const auto status_of = [](Error error) {
    FakeClient client;
    client.answer("status", std::move(error));
    TestScreen test;
    const int exit = status(client, test.screen);
    CHECK(test.out.str().empty());
    CHECK(test.err.str() == "muster: why\n");
    return exit;
  };
  CHECK(status_of({Errc::kNotFound, "why"}) == 1);
  CHECK(status_of({Errc::kInternalFailure, "why"}) == 1);
  CHECK(status_of({Errc::kInvalidRequest, "why"}) == 2);
  CHECK(status_of({Errc::kNoResponders, "why"}) == 3);
  CHECK(status_of({Errc::kDisconnected, "why"}) == 3);
}

TEST_CASE("a resource is named by id or by target, type and native id") {
  FakeClient client;
  for (int i = 0; i < 2; ++i) client.answer("resource", R"({"id":"R1","properties":{"a":1}})");
  TestScreen test;
  CHECK(resource(client, test.screen, "R1", false, "") == 0);
  CHECK(client.requests[0].body == Json{{"id", "R1"}});
  CHECK(test.out.str() == "id:          R1\nproperties:\n  a: 1\n");
  CHECK(resource(client, test.screen, "etc/FS::File//etc/a/b", true, "2024-01-01T00:00:00Z") == 0);
  CHECK(client.requests[1].body ==
        Json::parse(R"({"target":"etc","type":"FS::File","native_id":"/etc/a/b","history":true,
                                                   "at":"2024-01-01T00:00:00Z"})"));
  CHECK(resource(client, test.screen, "etc/FS::File", false, "") == 2);
  CHECK(client.requests.size() == 2);
}

TEST_CASE("status is 0 only when all is well") {
  FakeClient client;
  client.answer(
      "status",
      R"({"state":"ok","fleet":"F","checks":[{"name":"store","ok":true,"message":"fine"}],"runs":{"running":1}})");
  client.answer("status", R"({"state":"degraded","checks":[{"name":"store","ok":false,"message":"full"}]})");
  TestScreen well;
  CHECK(status(client, well.screen) == 0);
  CHECK(well.out.str() ==
        "state         ok\nfleet         F\nruns          running 1\n\n"
        "CHECK  STATE  MESSAGE\nstore  ok     fine\n");
  TestScreen ill;
  CHECK(status(client, ill.screen) == 1);
}

TEST_CASE("discover --wait polls the run and ends with its report") {
  const std::string running =
      R"({"run":"R","state":"running","scans":[{"target":"etc","type":"FS::File","listed":3}]})";
  const std::string done =
      R"({"run":"R","state":"partial","duration_ms":1234,"scans":[{"target":"etc","type":"FS::File","listed":5,"read":5,)"
      R"("filtered":0,"new":5,"changed":0,"unchanged":0,"missing":0,"errors":1,"complete":false}],)"
      R"("problems":[{"target":"etc","type":"FS::File","code":"ACCESS_DENIED","message":"/etc/x",)"
      R"("plugin":"fs 1.2","job":"J"}]})";
  FakeClient client;
  client.answer("discover", R"({"run":"R","merged":false})");
  client.answer("run", running);
  client.answer("run", Error{Errc::kNoResponders, "away"});
  client.answer("run", done);
  TestScreen test(Format::kJson);
  CHECK(discover(client, test.screen, {{"etc"}, {}, true}, kNever) == 1);
  CHECK(Json::parse(test.out.str()) == Json::parse(done));
  CHECK(client.requests[0].body == Json::parse(R"({"targets":["etc"],"types":[],"trigger":"user"})"));
  client.answer("run", done);
  TestScreen table;
  CHECK(run(client, table.screen, "R") == 0);
  CHECK(table.out.str() ==
        "run R: partial after 1.2 s\n"
        "TARGET  TYPE      LISTED  READ  FILTERED  NEW  CHANGED  UNCHANGED  MISSING  ERRORS  COMPLETE\n"
        "etc     FS::File       5     5         0    5        0          0        0       1  no\n"
        "\nproblems:\n"
        "TARGET  TYPE      CODE           PLUGIN  JOB  MESSAGE\n"
        "etc     FS::File  ACCESS_DENIED  fs 1.2  J    /etc/x\n");
}

TEST_CASE("a run that another one has taken in is waited for as that") {
  FakeClient client;
  client.answer("discover", R"({"run":"R","merged":false})");
  client.answer("run", R"({"run":"R","state":"failed","merged_into":"S","finished_at":"2026-01-01T00:00:00Z",)"
                       R"("scans":[],"problems":[{"code":"MERGED"}]})");
  client.answer("run",
                R"({"run":"S","state":"complete","finished_at":"2026-01-01T00:00:01Z","scans":[],"problems":[]})");
  TestScreen test(Format::kJson);
  CHECK(discover(client, test.screen, {{}, {}, true}, kNever) == 0);
  CHECK(Json::parse(test.out.str())["run"] == "S");
}

TEST_CASE("discover --wait waits for those that list what was not found, and fails with them") {
  FakeClient client;
  client.answer("discover", R"({"run":"R","merged":false})");
  client.answer("run", R"({"run":"R","state":"complete","finished_at":"2026-01-01T00:00:00Z","scans":[],"problems":[],)"
                       R"("followed_by":["S"]})");
  client.answer("run",
                R"({"run":"S","state":"partial","finished_at":"2026-01-01T00:00:01Z","scans":[],"problems":[]})");
  TestScreen test(Format::kJson);
  DiscoverOptions options;
  options.stacks = {"shop"};
  options.wait = true;
  CHECK(discover(client, test.screen, options, kNever) == 1);
  CHECK(Json::parse(test.out.str())["run"] == "R");
  CHECK_THAT(test.err.str(), Contains("muster run S"));
}

TEST_CASE("a run says what was renamed, if anything was") {
  FakeClient client;
  client.answer("run", R"({"run":"R","state":"complete","scans":[)"
                       R"({"target":"etc","type":"FS::File","listed":2,"read":0,"filtered":0,"new":0,"changed":0,)"
                       R"("renamed":1,"unchanged":1,"missing":0,"errors":0,"complete":true}]})");
  TestScreen test;
  CHECK(run(client, test.screen, "R") == 0);
  CHECK(test.out.str() ==
        "run R: complete\n"
        "TARGET  TYPE      LISTED  READ  FILTERED  NEW  CHANGED  RENAMED  UNCHANGED  MISSING  ERRORS  COMPLETE\n"
        "etc     FS::File       2     0         0    0        0        1          1        0       0  yes\n");
}

TEST_CASE("a history is shown whole, from however many answers") {
  FakeClient client;
  TestScreen test;
  client.answer("resource", R"({"id":"R1","history":[{"version":1,"cause":"discovered","patch":[]}],"next":"1"})");
  client.answer("resource", R"({"id":"R1","history":[{"version":2,"cause":"renamed","was":"old","patch":[]}]})");
  CHECK(resource(client, test.screen, "R1", true, "") == 0);
  CHECK(client.requests.at(1).body["cursor"] == "1");
  CHECK_THAT(test.out.str(), Catch::Contains("discovered") && Catch::Contains("renamed from old"));
}

TEST_CASE("an answer of several lines is one as ndjson") {
  TestScreen test;
  test.screen.format = Format::kNdjson;
  write_answer(test.screen, "{\n  \"b\": 1,\n  \"a\": 1.50\n}", [](const Json&) {});
  CHECK(test.out.str() == "{\"b\":1,\"a\":1.5}\n");
}

TEST_CASE("runs whose reports come in parts are summed up as a whole") {
  FakeClient client;
  client.answer("runs", R"({"items":[{"run":"R","state":"complete","scans":[{"listed":3}],"next":"1"}],"next":null})");
  client.answer("run", R"({"run":"R","state":"complete","scans":[{"listed":4}],"next":null})");
  TestScreen test;
  CHECK(runs(client, test.screen, 10) == 0);
  CHECK_THAT(test.out.str(), Contains(" 7 "));
}

TEST_CASE("who stops waiting is told that the run goes on") {
  FakeClient client;
  client.answer("discover", R"({"run":"R","merged":false})");
  TestScreen test;
  CHECK(discover(client, test.screen, {{}, {}, true}, [] { return true; }) == 1);
  CHECK(test.out.str().empty());
  CHECK(test.err.str() == "stopped waiting; the run goes on: muster run R\n");
}

TEST_CASE("event types match shell patterns with or without the leading word") {
  CHECK(matches_event_type("muster.resource.changed", "muster.resource.changed"));
  CHECK(matches_event_type("resource.*", "muster.resource.changed"));
  CHECK(matches_event_type("*.changed", "muster.target.changed"));
  CHECK(matches_event_type("muster.*", "muster.run.started"));
  CHECK_FALSE(matches_event_type("resource.*", "muster.run.started"));
  CHECK_FALSE(matches_event_type("resource", "muster.resource.changed"));
}

TEST_CASE("a time may be said as how long ago it was") {
  const WallTime now{std::chrono::seconds(1'900'000'000)};
  CHECK(time_before("2026-01-31T08:15:30Z", now).value() == "2026-01-31T08:15:30Z");
  CHECK(time_before("90s", now).value() == "2030-03-17T17:45:10.000Z");
  CHECK(time_before("1000y", now).error().message ==
        "'1000y' is no RFC 3339 time like 2026-01-31T08:15:30Z, and no duration like 10m");
  CHECK(time_before("100000000d", now).value() == "1970-01-01T00:00:00.000Z");
}

TEST_CASE("events that are followed come once each, in order, whatever the bus does") {
  FakeClient client;
  client.answer("events", list_of({event(5), event(6)}));  // catching up
  client.hear({event(6), event(7)});                       // one was in the log already
  client.hear({"[" + event(8) + "," + event(9) + "]"});    // a batch
  client.hear({event(9)});                                 // twice
  client.hear({event(12)});                                // two are lost: read from the log
  client.answer("events", list_of({event(10), event(11), event(12), event(13)}));
  client.hear({event(13), event(14), "no JSON"});
  TestScreen test(Format::kNdjson);
  EventsOptions options;
  options.since = "4";
  options.follow = true;
  CHECK(events(client, test.screen, options, [&] { return client.all_heard(); }) == 0);
  CHECK(sequences(test) == "5 6 7 8 9 10 11 12 13 14 ");
  REQUIRE(client.requests.size() == 3);
  CHECK(client.requests[0].verb == "listen");  // before the log is read
  CHECK(client.requests[1].body == Json{{"since", "4"}});
  CHECK(client.requests[2].body == Json{{"since", "9"}});
}

TEST_CASE("a gap stays open while no coordinator answers") {
  FakeClient client;
  client.answer("status", "{}");
  client.hear({event(1)});
  client.hear({event(3)});
  client.answer("events", Error{Errc::kNoResponders, "away"});
  client.hear({event(4)});
  client.answer("events", list_of({event(2), event(3), event(4)}));
  TestScreen test(Format::kNdjson);
  EventsOptions options;
  options.follow = true;
  CHECK(events(client, test.screen, options, [&] { return client.all_heard(); }) == 0);
  CHECK(sequences(test) == "1 2 3 4 ");
}

TEST_CASE("what was told without a connection is followed up, though nothing happens since") {
  FakeClient client;
  client.answer("status", R"({"events":{"last":1}})");
  client.answer("events", list_of({}));
  const bool heard = GENERATE(true, false);
  if (heard) client.hear({event(2)});
  const bool away = GENERATE(false, true);  // the coordinator is, for a moment
  if (away) client.answer("events", Error{Errc::kNoResponders, "away"});
  client.answer("events", heard ? list_of({event(3), event(4)}) : list_of({event(2), event(3), event(4)}));
  TestScreen test(Format::kNdjson);
  EventsOptions options;
  options.follow = true;
  int idle = 0;
  const auto interrupted = [&] {
    if (!client.all_heard()) return false;
    client.connected = 2;
    return idle++ == (away ? 2 : 1);
  };
  CHECK(events(client, test.screen, options, interrupted) == 0);
  CHECK(sequences(test) == "2 3 4 ");
}

TEST_CASE("events are followed of a coordinator that is there, or may not be asked") {
  FakeClient client;
  client.hear({event(1)});
  TestScreen test(Format::kNdjson);
  EventsOptions options;
  options.follow = true;
  SECTION("nobody is there") {
    CHECK(events(client, test.screen, options, [&] { return client.all_heard(); }) == 3);
    CHECK(test.err.str() == "muster: no answer to status\n");
  }
  SECTION("who may only listen") {
    client.answer("status", Error{Errc::kAccessDenied, "not for you"});
    client.hear({event(2)});
    const auto interrupted = [&] {
      ++client.connected;
      client.answer("events", Error{Errc::kAccessDenied, "not for you"});
      return client.all_heard();
    };
    CHECK(events(client, test.screen, options, interrupted) == 0);
    CHECK(sequences(test) == "1 2 ");
  }
}

TEST_CASE("events are filtered by type and limited") {
  FakeClient client;
  client.answer("events", list_of({event(1), event(2, "run.started"), event(3), event(4)}));
  TestScreen test(Format::kNdjson);
  EventsOptions options;
  options.type = "resource.*";
  options.limit = 2;
  CHECK(events(client, test.screen, options, kNever) == 0);
  CHECK(sequences(test) == "1 3 ");
}

TEST_CASE("plugins are asked for by namespace") {
  FakeClient client;
  client.answer("plugins", list_of({R"({"namespace":"FS","plugin":"fs"})"}));
  TestScreen test(Format::kNdjson);
  CHECK(plugins(client, test.screen, "FS") == 0);
  CHECK(client.requests[0].body == Json{{"namespace", "FS"}});
}

TEST_CASE("one schema for editors takes what apply takes") {
  FakeClient client;
  client.answer("types", list_of({R"({"type":"PG::Role"})", R"({"type":"FS::File"})"}));
  client.answer("schema", R"({"type":"object","required":["path"],"properties":{"path":{"type":"string"}}})");
  client.answer("schema", R"({"type":"object","required":["name","oid"],"properties":{
      "name":{"type":"string"},"oid":{"type":"integer","readOnly":true},"login":{"type":"boolean"},
      "kind":{"type":"string","enum":["a","b"]},"ids":{"type":"array","items":{"type":"integer"}},
      "old":{"type":"object","required":true,"properties":{"at":{"type":"integer","readOnly":true}}}}})");
  client.answer("schema", R"({"type":"object","properties":{"root":{"type":"string"}}})");
  client.answer("schema", R"({"type":"object","required":["dsn"],"properties":{"dsn":{"type":"string"}}})");
  TestScreen test(Format::kJson);
  CHECK(schema(client, test.screen, "") == 0);
  CHECK(client.requests[1].body == Json{{"type", "FS::File"}});
  CHECK(client.requests[3].body == Json{{"namespace", "FS"}});

  const auto check = SchemaCheck::compile(test.out.str());
  REQUIRE(check);
  const auto faults = [&](const std::string& resource, const std::string& target = R"("namespace":"FS")") {
    return check
        ->faults(nlohmann::json::parse(R"({"stack":"s","targets":[{"name":"t",)" + target +
                                       R"(}],"resources":[{"name":"r","target":"t",)" + resource + "}]}"))
        .value()
        .size();
  };
  CHECK(faults(R"("type":"FS::File","properties":{"path":"/a"})") == 0);
  CHECK(faults(R"("type":"FS::File","properties":{})") > 0);
  CHECK(faults(R"("type":"FS::Else","properties":{"path":"/a"})") > 0);
  CHECK(faults(R"("type":"FS::File","size":1,"properties":{"path":"/a"})") > 0);
  const std::string role = R"("type":"PG::Role","properties":{"name":"a")";
  CHECK(faults(role + R"(,"login":"${var:may}","kind":"${resource:o.kind}","ids":[1,"${resource:o.id}"]})") == 0);
  CHECK(faults(role + R"(,"login":"yes"})") > 0);
  CHECK(faults(role + R"(,"kind":"c"})") > 0);
  CHECK(faults(role + "}", R"("namespace":"PG","config":{"dsn":"${env:DSN}"})") == 0);
  CHECK(faults(role + "}", R"("namespace":"PG","config":{})") > 0);
  CHECK(faults(role + R"(},"depends_on":["o-1"])") == 0);
  CHECK(faults(role + R"(},"depends_on":["-o"])") > 0);  // as `muster check` has it
  CHECK(faults(role + "}", R"("namespace":"FS","renamed_from":"a.b")") == 0);
  CHECK(faults(role + "}", R"("namespace":"FS","renamed_from":".b")") > 0);
}

TEST_CASE("in a schema for editors a type's own definitions are found, and take references") {
  const Json type = Json::parse(R"({"type":"object","additionalProperties":false,
      "properties":{"tag":{"$ref":"#/$defs/tag"},"tags":{"type":"array","items":{"$ref":"#/$defs/tag"}},
                    "below":{"$ref":"#"},"$ref":{"enum":[{"$ref":"#/$defs/tag"},"x"]}},
      "$defs":{"tag":{"type":"object","properties":{"key":{"$ref":"#/$defs/odd~1name"},
                                                    "of":{"type":"string","readOnly":true}}},
               "odd/name":{"type":"integer"}}})");
  const auto check = SchemaCheck::compile(editor_schema({{"A::B", type}}, {{"A", type}}).dump());
  REQUIRE(check);
  const auto faults = [&](const std::string& properties) {
    std::size_t count = 0;
    for (const std::string& config : {properties, std::string("{}")}) {
      const auto file = R"({"stack":"s","targets":[{"name":"t","namespace":"A","config":)" + config +
                        R"(}],"resources":[{"name":"r","target":"t","type":"A::B","properties":)" +
                        (config == "{}" ? properties : "{}") + "}]}";
      count += check->faults(Json::parse(file)).value().empty() ? 0 : 1;
    }
    return count;
  };
  CHECK(faults(R"({"tag":{"key":1},"tags":[{"key":2}],"below":{"tag":{"key":3}}})") == 0);
  CHECK(faults(R"({"tag":{"key":"${resource:o.id}"},"tags":["${resource:o.tag}"]})") == 0);
  CHECK(faults(R"({"$ref":{"$ref":"#/$defs/tag"}})") == 0);  // a value
  CHECK(faults(R"({"tag":{"key":"x"}})") == 2);
  CHECK(faults(R"({"below":{"tags":[{"key":"x"}]}})") == 2);
  CHECK(faults(R"({"below":{"unknown":1}})") == 2);
}
