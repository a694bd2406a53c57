#include "coordinator/cli/verbs.h"

#include <fstream>

#include <catch2/catch.hpp>

#include "coordinator/cli/apply.h"
#include "coordinator/cli/saved_plan.h"
#include "coordinator/schema_check.h"
#include "support/scratch.h"
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

TEST_CASE("nothing is planned where what is there could not be read again") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "shop.yaml").string();
  std::ofstream(file) << "stack: shop\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n";
  ApplyOptions options;
  options.files = {file};
  options.refresh = true;
  FakeClient client;
  client.answer("discover", R"({"run":"R","merged":false})");
  client.answer("run", R"({"run":"R","state":"partial","finished_at":"2026-01-01T00:00:00Z","scans":[],)"
                       R"("problems":[{"target":"etc","type":"","code":"ACCESS_DENIED","message":"no"}]})");
  TestScreen test;
  CHECK(apply(
            client, test.screen, options, [](const std::string&) { return std::optional(true); }, kNever) == 1);
  CHECK(test.err.str().find("not read again: etc : ACCESS_DENIED: no") != std::string::npos);
  CHECK(test.err.str().find("without --refresh") != std::string::npos);
  CHECK(test.out.str().empty());
}

TEST_CASE("nothing is planned before what was not there any more has been listed") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "shop.yaml").string();
  std::ofstream(file) << "stack: shop\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n";
  ApplyOptions options;
  options.files = {file};
  options.refresh = true;
  FakeClient client;
  client.answer("discover", R"({"run":"R","merged":false})");
  client.answer("run", R"({"run":"R","state":"complete","finished_at":"2026-01-01T00:00:00Z","scans":[],"problems":[],)"
                       R"("followed_by":["S"]})");
  client.answer("run", R"({"run":"S","state":"running","finished_at":null,"scans":[],"problems":[]})");
  client.answer("run", R"({"run":"S","state":"partial","finished_at":"2026-01-01T00:00:01Z","scans":[],)"
                       R"("problems":[{"target":"etc","type":"","code":"ACCESS_DENIED","message":"no"}]})");
  TestScreen test;
  apply(
      client, test.screen, options, [](const std::string&) { return std::optional(true); }, kNever);
  CHECK(test.err.str().find("not read again: etc : ACCESS_DENIED: no") != std::string::npos);
  REQUIRE(client.requests.size() > 4);  // what it cannot see of a row, that row says
  CHECK(client.requests[1].body["run"] == "R");
  CHECK(client.requests[2].body["run"] == "S");
  CHECK(client.requests[3].body["run"] == "S");
  CHECK(client.requests[4].verb != "run");
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

TEST_CASE("an apply that finds nothing to do while a command changes the stack waits for it, and plans again") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "shop.yaml").string();
  std::ofstream(file) << "stack: shop\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n";
  ApplyOptions options;
  options.files = {file};
  options.yes = true;
  const auto never_asks = [](const std::string&) { return std::optional<bool>(); };
  const auto plan = [](const std::string& behind) {
    return R"({"draft":"D","summary":{"unchanged":1},"nothing":true,"mistakes":[],"unchecked":[],"steps":[],"next":null,)"
           R"("behind":[)" +
           behind + "]}";
  };
  const std::string other = R"({"command":"C","changes":["shop/a"],"changes_total":2})";
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer("plan", plan(other));
  SECTION("until it has ended") {
    client.answer("command", R"({"command":"C","state":"complete","finished_at":"2026-01-01T00:00:00Z"})");
    client.answer("command", R"({"command":"C","state":"complete","plan":{"steps":[]},"results":[],"next":null})");
    client.answer("declare", R"({"draft":"E","resources":1,"targets":0})");
    client.answer("plan", plan(""));
    CHECK(apply(client, test.screen, options, never_asks, kNever) == 0);
    CHECK(test.out.str() == "plan: 1 unchanged\nnothing to do: all is as declared\n");
    CHECK(test.err.str() ==
          "nothing to do as of now, and command C is changing shop/a and 1 more: waiting for its end\n");
  }
  SECTION("or the user does not want to wait") {
    CHECK(apply(client, test.screen, options, never_asks, [] { return true; }) == 1);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
  }
  SECTION("or is not to wait") {
    options.refuse_busy = true;
    CHECK(apply(client, test.screen, options, never_asks, kNever) == 1);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
    CHECK(test.err.str() == "command C is changing shop/a and 1 more: what is to do may be otherwise then\n");
  }
  SECTION("or only looks") {
    options.plan_only = true;
    CHECK(apply(client, test.screen, options, never_asks, kNever) == 0);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
    CHECK(test.err.str() == "command C is changing shop/a and 1 more: what is to do may be otherwise then\n");
  }
}

TEST_CASE("an apply whose answer does not come says where to look for the command") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "shop.yaml").string();
  std::ofstream(file) << "stack: shop\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n";
  ApplyOptions options;
  options.files = {file};
  options.yes = true;
  const auto never_asks = [](const std::string&) { return std::optional<bool>(); };
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer("plan", R"({"draft":"D","summary":{"create":1},"mistakes":[],"unchecked":[],"steps":[],"next":null})");
  SECTION("where it may have been begun") {
    client.answer("apply", Error{Errc::kNoResponders, "no answer within 60000 ms"});
    CHECK(apply(client, test.screen, options, never_asks, kNever) == 3);
    CHECK(test.err.str() ==
          "`muster commands` shows whether it was begun all the same\nmuster: no answer within 60000 ms\n");
  }
  SECTION("and not where it was refused") {
    client.answer("apply", Error{Errc::kConflict, "plan again"});
    CHECK(apply(client, test.screen, options, never_asks, kNever) == 1);
    CHECK(test.err.str() == "muster: plan again\n");
  }
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

TEST_CASE("an apply waits for the workers of a fleet that has just started") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "w.yaml").string();
  std::ofstream(file) << "stack: w\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n";
  ApplyOptions options;
  options.files = {file};
  options.plan_only = true;
  const auto never_asks = [](const std::string&) { return std::optional<bool>(); };
  const std::string early = R"({"draft":"D","summary":{},"nothing":false,"mistakes":[{"stack":"w","resource":"a",)"
                            R"("pointer":"","message":"no plugin serves it"}],"awaits_workers":true,"steps":[]})";
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer("plan", early);
  SECTION("until they are there") {
    client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
    client.answer("plan", R"({"draft":"D","summary":{"unchanged":1},"nothing":true,"mistakes":[],"unchecked":[],)"
                          R"("awaits_workers":false,"steps":[],"behind":[]})");
    CHECK(apply(client, test.screen, options, never_asks, kNever) == 0);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
    CHECK(test.err.str() == "the fleet has just started: waiting for its workers\n");
  }
  SECTION("or the user does not want to wait") {
    CHECK(apply(client, test.screen, options, never_asks, [] { return true; }) == 2);
    CHECK(test.err.str() == file + ":3:5: a: no plugin serves it\n");
  }
}

TEST_CASE("an apply names what is too large for a message") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "z.yaml").string();
  std::ofstream(file) << "stack: z\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n"
                         "  - {name: b, type: FS::File, target: etc, properties: {path: b, content: much}}\n";
  ApplyOptions options;
  options.files = {file};
  FakeClient client;
  TestScreen test;
  client.answer("declare", Error{Errc::kTooLarge, "9 bytes, the bus takes 8"});
  CHECK(apply(
            client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNever) == 1);
  CHECK(test.err.str() ==
        "muster: z/b declares too much for one message: 9 bytes, the bus takes 8; raise max_payload of nats-server\n");
}

TEST_CASE("a plan shows what is there beside what takes its place") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "s.yaml").string();
  std::ofstream(file) << "stack: s\nresources:\n  - {name: f, type: FS::File, target: t, properties: {path: /f}}\n";
  ApplyOptions options;
  options.files = {file};
  options.plan_only = true;
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer("plan", R"({"draft":"D","summary":{"update":1},"nothing":false,"mistakes":[],"unchecked":[],"steps":[{
      "action":"update","stack":"s","name":"f","target":"t","type":"FS::File","native_id":"/f","reason":"","patch":[
      {"op":"replace","path":"/mode","value":"0755","was":"0777"},{"op":"remove","path":"/old","was":[1]},
      {"op":"add","path":"/gid","value":0}]}],"next":null,"behind":[]})");
  CHECK(apply(
            client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNever) == 0);
  CHECK(test.out.str() == R"(~ update s/f  FS::File on t  /f
      replace /mode = "0755" (was "0777")
      remove /old (was [1])
      add /gid = 0
plan: 1 to update
)");
}

TEST_CASE("an apply shows what becomes of targets, and asks first") {
  const test::Scratch scratch;
  const auto file = (scratch.path / "z.yaml").string();
  std::ofstream(file) << "stack: z\ntargets:\n  - {name: g, namespace: FAKE, config: {resources: 1}}\n";
  ApplyOptions options;
  options.files = {file};
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":0,"targets":0})");
  client.answer("declare", R"({"draft":"D","resources":0,"targets":1})");
  client.answer("plan", R"({"draft":"D","summary":{},"nothing":false,"mistakes":[],"unchecked":[],"steps":[],)"
                        R"("targets":[{"action":"create","target":"g","namespace":"FAKE","reason":"","hash":"1"}],)"
                        R"("next":null,"behind":[]})");
  const std::string shown = "+ create target g  FAKE\nplan: 1 target\n";
  SECTION("without a terminal that is bad usage") {
    CHECK(apply(
              client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNever) == 2);
    CHECK(test.out.str() == shown);
  }
  SECTION("and does nothing without a yes") {
    CHECK(apply(
              client, test.screen, options, [](const std::string&) { return std::optional(false); }, kNever) == 1);
    CHECK(test.err.str() == "nothing was done\n");
  }
  SECTION("and saves it with the plan") {
    options.plan_out = (scratch.path / "plan").string();
    CHECK(apply(
              client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNever) == 0);
    ApplyOptions again;
    again.plan_in = options.plan_out;
    again.yes = true;
    client.answer("declare", R"({"draft":"E","resources":0,"targets":0})");
    client.answer("declare", R"({"draft":"E","resources":0,"targets":1})");
    client.answer("plan", R"({"draft":"E","summary":{},"nothing":false,"mistakes":[],"unchecked":[],"steps":[],)"
                          R"("targets":[{"action":"update","target":"g","namespace":"FAKE","reason":"","hash":"2"}],)"
                          R"("next":null,"behind":[]})");
    CHECK(apply(
              client, test.screen, again, [](const std::string&) { return std::optional<bool>(); }, kNever) == 1);
    CHECK_THAT(test.err.str(), Contains("target g was planned as create, and would be update now"));
  }
}

TEST_CASE("a saved plan of which a name is made as another type holds while its steps are the same") {
  const Json made{{"stack", "z"}, {"name", "a"}, {"action", "create"}, {"hash", "1"}};
  const Json goes{{"stack", "z"}, {"name", "a"}, {"action", "delete"}, {"hash", "2"}};
  const auto moved_to = [&](const Json& steps) { return moved(Json::array({made, goes}), Json{{"steps", steps}}); };
  CHECK(moved_to(Json::array({made, goes})).empty());
  CHECK(moved_to(Json::array({made})) == std::vector<std::string>{"z/a was planned as delete, and needs nothing now"});
  auto other = made;
  other["hash"] = "3";
  const auto said = moved_to(Json::array({other, goes}));
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Contains("z/a differs in other ways"));
}

TEST_CASE("what is wrong with a user's words is said without a fleet") {
  const test::Scratch scratch;
  int connections = 0;
  LateClient client([&]() -> Result<std::unique_ptr<Client>> {
    ++connections;
    return Error{Errc::kNoResponders, "nobody", {}, 0};
  });
  TestScreen test;
  const auto refused = [&](const ApplyOptions& options) {
    return apply(
        client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNever);
  };
  ApplyOptions options;
  options.files = {(scratch.path / "absent").string()};
  CHECK(refused(options) == 2);
  options.files.clear();
  options.plan_in = (scratch.path / "plan").string();
  CHECK(refused(options) == 2);
  for (const auto* damaged :
       {"", "{", R"({"muster_plan":1})", R"({"muster_plan":"x"})", R"({"muster_plan":2})", "[1]",
        R"({"muster_plan":1,"stacks":5,"targets":[],"basis":[],"mode":"","only":[],"exclude":[]})",
        R"({"muster_plan":1,"stacks":[],"targets":[],"basis":5,"mode":"","only":[],"exclude":[]})"}) {
    std::ofstream(options.plan_in, std::ios::trunc) << damaged;
    INFO(damaged);
    CHECK(refused(options) == 2);
  }
  CHECK(resource(client, test.screen, "a/b", false, "") == 2);
  CHECK(connections == 0);
  CHECK(run(client, test.screen, "R") == 3);
  CHECK(connections == 1);
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
    CHECK(events(client, test.screen, options, [&] { return client.all_heard(); }) == 0);
    CHECK(sequences(test) == "1 ");
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
      "kind":{"type":"string","enum":["a","b"]},"ids":{"type":"array","items":{"type":"integer"}}}})");
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
