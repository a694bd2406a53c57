#include "coordinator/cli/apply.h"

#include <fstream>

#include <catch2/catch.hpp>

#include "coordinator/cli/client.h"
#include "coordinator/cli/saved_plan.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/declaration_reader.h"
#include "support/scratch.h"
#include "unit/cli_screen.h"

using namespace muster;
using namespace muster::cli;
using Catch::Contains;
using test::FakeClient;
using test::TestScreen;

namespace {

const Interrupted kNobodyStops = [] { return false; };

const std::string kShop =
    "stack: shop\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n";

/// An apply of a file that says `text`.
ApplyOptions apply_of(const test::Scratch& scratch, const std::string& text) {
  const auto file = (scratch.path / "declared.yaml").string();
  std::ofstream(file) << text;
  ApplyOptions options;
  options.files = {file};
  return options;
}

}  // namespace

TEST_CASE("nothing is planned where what is there could not be read again") {
  const test::Scratch scratch;
  ApplyOptions options = apply_of(scratch, kShop);
  options.refresh = true;
  FakeClient client;
  client.answer("discover", R"({"run":"R","merged":false})");
  client.answer("run", R"({"run":"R","state":"partial","finished_at":"2026-01-01T00:00:00Z","scans":[],)"
                       R"("problems":[{"target":"etc","type":"","code":"ACCESS_DENIED","message":"no"}]})");
  TestScreen test;
  CHECK(apply(
            client, test.screen, options, [](const std::string&) { return std::optional(true); }, kNobodyStops) == 1);
  CHECK(test.err.str().find("not read again: etc : ACCESS_DENIED: no") != std::string::npos);
  CHECK(test.err.str().find("without --refresh") != std::string::npos);
  CHECK(test.out.str().empty());
}

TEST_CASE("nothing is planned where a stack has what nobody can read, as there is where it has nothing") {
  const test::Scratch scratch;
  ApplyOptions options = apply_of(scratch, kShop);
  options.refresh = true;
  const bool nothing = GENERATE(false, true);
  FakeClient client;
  client.answer("discover", Error{nothing ? Errc::kNotFound : Errc::kConflict, "why", {}, 0});
  TestScreen test;
  apply(
      client, test.screen, options, [](const std::string&) { return std::optional(true); }, kNobodyStops);
  CHECK((test.err.str().find("why") == std::string::npos) == nothing);
  REQUIRE(client.requests.size() == (nothing ? 2 : 1));
}

TEST_CASE("nothing is planned before what was not there any more has been listed") {
  const test::Scratch scratch;
  ApplyOptions options = apply_of(scratch, kShop);
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
      client, test.screen, options, [](const std::string&) { return std::optional(true); }, kNobodyStops);
  CHECK(test.err.str().find("not read again: etc : ACCESS_DENIED: no") != std::string::npos);
  REQUIRE(client.requests.size() > 4);  // what it cannot see of a row, that row says
  CHECK(client.requests[1].body["run"] == "R");
  CHECK(client.requests[2].body["run"] == "S");
  CHECK(client.requests[3].body["run"] == "S");
  CHECK(client.requests[4].verb != "run");
}

TEST_CASE("an apply that finds nothing to do while a command changes the stack waits for it, and plans again") {
  const test::Scratch scratch;
  ApplyOptions options = apply_of(scratch, kShop);
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
    CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 0);
    CHECK(test.out.str() == "plan: 1 unchanged\nnothing to do: all is as declared\n");
    CHECK(test.err.str() ==
          "no resource to change as of now, and command C is changing shop/a and 1 more: waiting for its end\n");
  }
  SECTION("or the user does not want to wait") {
    CHECK(apply(client, test.screen, options, never_asks, [] { return true; }) == 1);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
  }
  SECTION("or is not to wait") {
    options.refuse_busy = true;
    CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 1);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
    CHECK(test.err.str() == "command C is changing shop/a and 1 more: what is to do may be otherwise then\n");
  }
  SECTION("or only looks") {
    options.plan_only = true;
    CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 0);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
    CHECK(test.err.str() == "command C is changing shop/a and 1 more: what is to do may be otherwise then\n");
  }
}

TEST_CASE("a plan has the steps of all its pages") {
  const test::Scratch scratch;
  ApplyOptions options = apply_of(scratch, kShop);
  options.plan_only = true;
  const auto never_asks = [](const std::string&) { return std::optional<bool>(); };
  const auto page = [](const std::string& name, const std::string& next) {
    return R"({"draft":"D","summary":{"unchanged":3},"nothing":true,"mistakes":[],"unchecked":[],"targets":[],)"
           R"("steps":[{"name":")" +
           name + R"(","action":"unchanged"}],"next":)" + next + R"(,"behind":[]})";
  };
  FakeClient client;
  TestScreen test;
  test.screen.format = Format::kJson;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer("plan", page("a", R"("1")"));
  client.answer("plan", page("b", R"("2")"));
  client.answer("plan", page("c", "null"));
  CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 0);
  const auto plan = Json::parse(test.out.str());
  REQUIRE(plan.at("steps").size() == 3);
  CHECK(plan.at("steps")[0].at("name") == "a");
  CHECK(plan.at("steps")[2].at("name") == "c");
  Json cursors = Json::array(), ahead = Json::array();
  for (const auto& [verb, body] : client.requests) {
    if (verb == "plan") cursors.push_back(body.value("cursor", body.contains("mode") ? "first" : "none"));
  }
  for (const auto& [verb, body] : client.asked_ahead) ahead.push_back(body.at("cursor"));
  CHECK(cursors == Json{"first", "1", "2"});
  CHECK(ahead == Json{"1", "2"});  // they come while the page before is read
}

TEST_CASE("an apply whose answer does not come says where to look for the command") {
  const test::Scratch scratch;
  ApplyOptions options = apply_of(scratch, kShop);
  options.yes = true;
  const auto never_asks = [](const std::string&) { return std::optional<bool>(); };
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer("plan", R"({"draft":"D","summary":{"create":1},"mistakes":[],"unchecked":[],"steps":[],"next":null})");
  SECTION("where it may have been begun") {
    client.answer("apply", Error{Errc::kNoResponders, "no answer within 60000 ms"});
    CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 3);
    CHECK(test.err.str() ==
          "`muster commands` shows whether it was begun all the same\nmuster: no answer within 60000 ms\n");
  }
  SECTION("and not where it was refused") {
    client.answer("apply", Error{Errc::kConflict, "plan again"});
    CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 1);
    CHECK(test.err.str() == "muster: plan again\n");
  }
}

TEST_CASE("an apply tells how its command went though the coordinator is away when that is asked for") {
  const test::Scratch scratch;
  ApplyOptions options = apply_of(scratch, kShop);
  options.yes = true;
  const auto never_asks = [](const std::string&) { return std::optional<bool>(); };
  const std::string ended = R"({"command":"C","state":"complete","finished_at":"2026-01-01T00:00:00Z"})";
  const std::string whole = R"({"command":"C","state":"complete","finished_at":"2026-01-01T00:00:00Z",)"
                            R"("plan":{"steps":[]},"results":[{"name":"a","action":"create","state":"done"}],)";
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer(
      "plan",
      R"({"draft":"D","summary":{"create":1},"mistakes":[],"unchecked":[],"steps":[],"next":null,"behind":[]})");
  client.answer("apply", R"({"command":"C"})");
  client.answer("command", ended);
  SECTION("at once") {
    client.answer("command", Error{Errc::kNoResponders, "away", {}, 0});
  }
  SECTION("or for a later part of it") {
    client.answer("command", whole + R"("next":"1"})");
    client.answer("command", Error{Errc::kStoreUnavailable, "away", {}, 0});
  }
  client.answer("command", ended);
  client.answer("command", whole + R"("next":null})");
  CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 0);
  CHECK(test.err.str().empty());
  CHECK(test.out.str().ends_with("command C: complete, 1 create done\n"));
}

TEST_CASE("an apply waits for the workers of a fleet that has just started") {
  const test::Scratch scratch;
  ApplyOptions options =
      apply_of(scratch, "stack: w\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n");
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
    CHECK(apply(client, test.screen, options, never_asks, kNobodyStops) == 0);
    CHECK(test.out.str() == "plan: 1 unchanged\n");
    CHECK(test.err.str() == "the fleet has just started: waiting for its workers\n");
  }
  SECTION("or the user does not want to wait") {
    CHECK(apply(client, test.screen, options, never_asks, [] { return true; }) == 2);
    CHECK(test.err.str() == options.files.front() + ":3:5: a: no plugin serves it\n");
  }
}

TEST_CASE("an apply names what is too large for a message") {
  const test::Scratch scratch;
  ApplyOptions options =
      apply_of(scratch,
               "stack: z\nresources:\n  - {name: a, type: FS::File, target: etc, properties: {path: a}}\n"
               "  - {name: b, type: FS::File, target: etc, properties: {path: b, content: much}}\n");
  FakeClient client;
  TestScreen test;
  client.answer("declare", Error{Errc::kTooLarge, "9 bytes, the bus takes 8"});
  CHECK(apply(
            client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNobodyStops) == 1);
  CHECK(test.err.str() ==
        "muster: z/b declares too much for one message: 9 bytes, the bus takes 8; raise max_payload of nats-server\n");
}

TEST_CASE("a plan shows what is there beside what takes its place") {
  const test::Scratch scratch;
  ApplyOptions options =
      apply_of(scratch, "stack: s\nresources:\n  - {name: f, type: FS::File, target: t, properties: {path: /f}}\n");
  options.plan_only = true;
  FakeClient client;
  TestScreen test;
  client.answer("declare", R"({"draft":"D","resources":1,"targets":0})");
  client.answer("plan", R"({"draft":"D","summary":{"update":1},"nothing":false,"mistakes":[],"unchecked":[],"steps":[{
      "action":"update","stack":"s","name":"f","target":"t","type":"FS::File","native_id":"/f","reason":"","patch":[
      {"op":"replace","path":"/mode","value":"0755","was":"0777"},{"op":"remove","path":"/old","was":[1]},
      {"op":"add","path":"/gid","value":0}]}],"next":null,"behind":[]})");
  CHECK(apply(
            client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNobodyStops) == 0);
  CHECK(test.out.str() == R"(~ update s/f  FS::File on t  /f
      replace /mode = "0755" (was "0777")
      remove /old (was [1])
      add /gid = 0
plan: 1 to update
)");
}

TEST_CASE("an apply shows what becomes of targets, and asks first") {
  const test::Scratch scratch;
  ApplyOptions options =
      apply_of(scratch, "stack: z\ntargets:\n  - {name: g, namespace: FAKE, config: {resources: 1}}\n");
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
              client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNobodyStops) ==
          2);
    CHECK(test.out.str() == shown);
  }
  SECTION("and does nothing without a yes") {
    CHECK(apply(
              client, test.screen, options, [](const std::string&) { return std::optional(false); }, kNobodyStops) ==
          1);
    CHECK(test.err.str() == "nothing was done\n");
  }
  SECTION("and saves it with the plan, but not in the place of anything else") {
    options.plan_out = (scratch.path / "mine.yaml").string();
    const auto text = [&] {
      std::ifstream file(options.plan_out);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    std::ofstream(options.plan_out) << "stack: z\n";
    CHECK(apply(
              client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNobodyStops) ==
          1);
    CHECK_THAT(test.err.str(), Contains("mine.yaml is no saved plan, and stays as it is"));
    CHECK(text() == "stack: z\n");
  }
  SECTION("and saves it with the plan") {
    options.plan_out = (scratch.path / "plan").string();
    CHECK(apply(
              client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNobodyStops) ==
          0);
    ApplyOptions again;
    again.plan_in = options.plan_out;
    again.yes = true;
    client.answer("declare", R"({"draft":"E","resources":0,"targets":0})");
    client.answer("declare", R"({"draft":"E","resources":0,"targets":1})");
    client.answer("plan", R"({"draft":"E","summary":{},"nothing":false,"mistakes":[],"unchecked":[],"steps":[],)"
                          R"("targets":[{"action":"update","target":"g","namespace":"FAKE","reason":"","hash":"2"}],)"
                          R"("next":null,"behind":[]})");
    CHECK(apply(
              client, test.screen, again, [](const std::string&) { return std::optional<bool>(); }, kNobodyStops) == 1);
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
        client, test.screen, options, [](const std::string&) { return std::optional<bool>(); }, kNobodyStops);
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

TEST_CASE("what a stack is to forget is said, shown and asked for") {
  const std::string two =
      R"({"stack":"shop","count":102,"resources":[{"name":"a","type":"FS::File","target":"etc",)"
      R"("native_id":"a.txt","state":"present"},{"name":"b","type":"FS::File","target":"etc","native_id":"b.txt",)"
      R"("state":"missing"}]})";
  FakeClient client;
  TestScreen test;
  std::string question;
  const auto answers = [&](std::optional<bool> answer) {
    return [&question, answer](const std::string& asked) {
      question = asked;
      return answer;
    };
  };
  ForgetOptions options;
  options.stack = "shop";
  SECTION("without saying what, nobody is asked") {
    CHECK(forget(client, test.screen, options, answers(true)) == 2);
    options.all = true;
    options.target = "etc";
    CHECK(forget(client, test.screen, options, answers(true)) == 2);
    CHECK(client.requests.empty());
  }
  options.all = options.target.empty();
  SECTION("yes") {
    client.answer("forget", two);
    client.answer("forget", two);
    CHECK(forget(client, test.screen, options, answers(true)) == 0);
    REQUIRE(client.requests.size() == 2);
    CHECK(client.requests[0].body["look_only"] == true);
    CHECK(client.requests[1].body["look_only"] == false);
    CHECK_THAT(question, Contains("Forget 102 resources of stack shop?"));
    CHECK_THAT(test.out.str(), Contains("  b  FS::File on etc  b.txt  (missing)\n  and 100 more\n"));
    CHECK_THAT(test.out.str(), Contains("forgotten: 102 resources of stack shop"));
  }
  SECTION("no, or nobody to ask") {
    const auto answer = GENERATE(std::optional(false), std::optional<bool>());
    client.answer("forget", two);
    CHECK(forget(client, test.screen, options, answers(answer)) == (answer ? 1 : 2));
    CHECK(client.requests.size() == 1);
  }
  SECTION("a look") {
    options.plan_only = true;
    client.answer("forget", two);
    CHECK(forget(client, test.screen, options, answers({})) == 0);
    CHECK_THAT(test.out.str(), Contains("would be forgotten: 102 resources of stack shop"));
  }
  SECTION("without a question") {
    options.yes = true;
    client.answer("forget", Error{Errc::kConflict, "a command of stack shop is under way", {}, 0});
    CHECK(forget(client, test.screen, options, answers({})) == 1);
    CHECK_THAT(test.err.str(), Contains("a command of stack shop is under way"));
    CHECK(client.requests.at(0).body["names"] == Json::array());
  }
}

TEST_CASE("what is exported is a declaration, whatever its labels and texts are") {
  FakeClient client;
  TestScreen test(GENERATE(Format::kTable, Format::kJson, Format::kNdjson));
  Json items = Json::array();
  const std::string text = "\u2028 \u2029 \u0085 \x7f \ufeff \xc3\xa4 ${env:X}";
  for (const auto* label : {"_migrations", "_", "__", "-x", ".", "", "_migrations", "m igrations"}) {
    items.push_back({{"label", label}, {"type", "PG::Table"}, {"target", "main"}, {"properties", {{"note", text}}}});
  }
  client.answer("export", Json{{"items", items}, {"next", nullptr}}.dump());
  CHECK(export_resources(client, test.screen, {}, "exported") == 0);
  const auto read = read_declarations({{"exported.yaml", test.out.str()}}, {});
  CHECK(read.mistakes.empty());
  REQUIRE(read.stacks.size() == 1);
  REQUIRE(read.stacks[0].resources.size() == 8);
  CHECK(Json::parse(read.stacks[0].resources[0].properties)["note"] == text);
}
