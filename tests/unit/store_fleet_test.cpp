// Targets, scans, counts, runs, manifests and named values of a Store.
#include <catch2/catch.hpp>

#include "support/store_fixture.h"

using namespace muster;
using test::StoreFixture;

namespace {

TargetRow full_target(StoreFixture& f) {
  TargetRow row = f.make_target("quoted \"name\"");
  row.pool = "site-b";
  row.config = {R"({"dsn":null,"é":"ü\n"})",
                {{"/dsn", {{SecretPart::Kind::kLiteral, "pass="}, {SecretPart::Kind::kEnv, "PG_PW"}}}}};
  row.discover = false;
  row.interval = Millis(90'000);
  row.system = "system 7";
  row.state = TargetState::kChanged;
  row.filters = {{{"PG::Table"}, {TagMatch{{"Env", "env"}, "tmp"}}, FilterAction::kInclude}};
  row.plugin_filters = {{{}, {PropertyMatch{"$.name", MatchOp::kRegex, R"("^tmp_")"}}, FilterAction::kExclude}};
  row.inspected = true;
  row.reachable = false;
  row.last_run = RunId("01RUN");
  return row;
}

}  // namespace

TEST_CASE_METHOD(StoreFixture, "a target comes back as it was put") {
  const auto row = full_target(*this);
  store().put_target(row).value();
  store().commit().value();
  reopen();
  const auto rows = store().targets().value();
  REQUIRE(rows.size() == 2);
  const auto& found = rows[0];  // in the order of names
  CHECK(found.id == row.id);
  CHECK(found.name == row.name);
  CHECK(found.ns == row.ns);
  CHECK(found.pool == row.pool);
  CHECK(found.config == row.config);
  CHECK(found.discover == row.discover);
  CHECK(found.interval == row.interval);
  CHECK(found.system == row.system);
  CHECK(found.state == row.state);
  CHECK(found.filters == row.filters);
  CHECK(found.plugin_filters == row.plugin_filters);
  CHECK(found.inspected == row.inspected);
  CHECK(found.reachable == row.reachable);
  CHECK(found.last_run == row.last_run);
  CHECK(found.resources == 0);
}

TEST_CASE_METHOD(StoreFixture, "a target is put by its id, so it can change its name and keep its rows") {
  const auto row = insert(tables, "a");
  target.name = "renamed";
  store().put_target(target).value();
  CHECK(store().targets().value().size() == 1);
  CHECK(one(row).target == "renamed");
  CHECK(store().one("renamed", "PG::Table", "a").value().value().row == row);
  CHECK_FALSE(store().one("t", "PG::Table", "a").value());
}

TEST_CASE_METHOD(StoreFixture, "a target's resources are its present and stale rows") {
  const auto gone = insert(tables, "gone");
  const auto missing = insert(tables, "missing");
  const auto stale = insert(schemas, "stale");
  insert(schemas, "present");
  store().leave(gone, ResourceState::kVanished, "vanished", at(1)).value();
  store().leave(missing, ResourceState::kMissing, "missing", at(1)).value();
  store().set_stale(stale, true).value();
  CHECK(store().counted_targets().value()[0].resources == 2);
}

TEST_CASE_METHOD(StoreFixture, "a scan is made once and keeps what it is told") {
  const auto fresh = store().scan(target.id, "PG::View").value();
  CHECK(fresh.target == target.id);
  CHECK(fresh.type == "PG::View");
  auto row = store().scan(target.id, "PG::Table").value();
  CHECK(row.id == tables);
  CHECK(row.target == target.id);
  CHECK(row.type == "PG::Table");
  CHECK_FALSE(row.stale);
  CHECK_FALSE(row.last_complete);
  row.stale = true;
  row.last_complete = at(5);
  row.last_run = RunId("01RUN");
  row.filters = "f1";
  store().put_scan(row).value();
  store().commit().value();
  reopen();
  const auto rows = store().scans(target.id).value();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].type == "PG::Schema");
  CHECK(rows[1].id == tables);
  CHECK(rows[1].stale);
  CHECK(rows[1].last_complete == at(5));
  CHECK(rows[1].last_run == RunId("01RUN"));
  CHECK(rows[1].filters == "f1");
}

TEST_CASE_METHOD(StoreFixture, "a scan of a target that is not there is refused, and nothing is lost by it") {
  insert(tables, "a");
  CHECK(store().scan(TargetId("nobody"), "PG::Table").error().code == Errc::kNotFound);
  CHECK(store()
            .put_scan({.id = 999, .target = {}, .type = {}, .last_complete = {}, .last_run = {}, .filters = {}})
            .error()
            .code == Errc::kNotFound);
  store().commit().value();
  reopen();
  CHECK(query().size() == 1);
}

TEST_CASE_METHOD(StoreFixture, "counts come by target and type, in the order of names") {
  auto other = make_target("a");
  store().put_target(other).value();
  auto down = store().scan(other.id, "PG::Role").value();
  insert(down.id, "r1");
  insert(down.id, "r2");
  down.stale = true;
  store().put_scan(down).value();
  const auto stale = insert(tables, "x");
  insert(tables, "y");
  store().leave(insert(tables, "z"), ResourceState::kFiltered, "filtered", at(1)).value();
  store().leave(insert(tables, "gone"), ResourceState::kMissing, "vanished", at(1)).value();
  store().set_stale(stale, true).value();
  const auto counts = store().counts().value();
  REQUIRE(counts.size() == 3);
  CHECK(counts[0].target == "a");
  CHECK(counts[0].type == "PG::Role");
  CHECK(counts[0].resources == 2);
  CHECK(counts[0].stale == 2);
  CHECK(counts[1].type == "PG::Schema");
  CHECK(counts[1].resources == 0);
  CHECK(counts[2].type == "PG::Table");
  CHECK(counts[2].resources == 2);
  CHECK(counts[2].stale == 1);
}

TEST_CASE_METHOD(StoreFixture, "runs come newest first, by pages") {
  for (const auto* id : {"01A", "01B", "01C", "01D"}) {
    store().put_run({RunId(id), "queued", "user", R"({"targets":[]})", {}, {}, "{}"}).value();
  }
  store().put_run({RunId("01B"), "complete", "user", "{}", at(1), at(2), R"({"run":"01B"})"}).value();
  store().put_run({RunId("01C"), "running", "interval", "{}", at(3), {}, "{}"}).value();
  store().commit().value();
  reopen();

  const auto first = store().runs({}, 3).value();
  REQUIRE(first.size() == 3);
  CHECK(first[0].id == RunId("01D"));
  CHECK(first[2].id == RunId("01B"));
  const auto second = store().runs(first.back().id, 3).value();
  REQUIRE(second.size() == 1);
  CHECK(second[0].id == RunId("01A"));

  const auto run = store().run(RunId("01B")).value().value();
  CHECK(run.state == "complete");
  CHECK(run.trigger == "user");
  CHECK(run.scope == "{}");
  CHECK(run.started_at == at(1));
  CHECK(run.finished_at == at(2));
  CHECK(run.report == R"({"run":"01B"})");
  CHECK_FALSE(store().run(RunId("01X")).value());

  const auto open = store().unfinished_runs().value();
  REQUIRE(open.size() == 3);
  CHECK(open[0].id == RunId("01A"));
  CHECK(open[1].id == RunId("01C"));
  CHECK(open[1].finished_at == std::nullopt);
}

TEST_CASE_METHOD(StoreFixture, "a command and its operations come back as they were put") {
  CommandRow command;
  command.id = CommandId("01A");
  command.kind = "apply";
  command.state = "running";
  command.cancel = Cancelled::kGraceful;
  command.stacks = {"one", "é \"two\""};
  command.plan = R"({"steps":[]})";
  command.created_at = at(1);
  command.started_at = at(2);
  store().put_command(command).value();
  OperationRow operation;
  operation.command = command.id;
  operation.step = 3;
  operation.state = "failed";
  operation.phase = 4;
  operation.job = JobId("job");
  operation.epoch = 5;
  operation.uncertain = true;
  operation.request_id = "request";
  operation.native_id = "native";
  operation.code = "CONFLICT";
  operation.message = "because";
  operation.name = "shop";
  operation.target = "t";
  operation.type = "A::B";
  operation.creates = true;
  store().put_operation(operation).value();
  store().commit().value();
  reopen();

  const auto open = store().unfinished_commands().value();
  REQUIRE(open.size() == 1);
  CHECK(open[0].id == command.id);
  CHECK(open[0].kind == command.kind);
  CHECK(open[0].state == command.state);
  CHECK(open[0].cancel == command.cancel);
  CHECK(open[0].stacks == command.stacks);
  CHECK(open[0].plan == command.plan);
  CHECK(open[0].created_at == command.created_at);
  CHECK(open[0].started_at == command.started_at);
  CHECK_FALSE(open[0].finished_at);
  command.state = "failed";
  command.finished_at = at(3);
  store().put_command(command).value();
  CHECK(store().unfinished_commands().value().empty());
  const auto ended = store().commands({}, 10).value();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].started_at == command.started_at);
  CHECK(ended[0].finished_at == command.finished_at);

  const auto found = store().operations(command.id).value();
  REQUIRE(found.size() == 1);
  CHECK(found[0].command == command.id);
  CHECK(found[0].step == operation.step);
  CHECK(found[0].state == operation.state);
  CHECK(found[0].phase == operation.phase);
  CHECK(found[0].job == operation.job);
  CHECK(found[0].epoch == operation.epoch);
  CHECK(found[0].uncertain == operation.uncertain);
  CHECK(found[0].request_id == operation.request_id);
  CHECK(found[0].native_id == operation.native_id);
  CHECK(found[0].code == operation.code);
  CHECK(found[0].message == operation.message);
  CHECK(found[0].name == operation.name);
  CHECK(found[0].target == operation.target);
  CHECK(found[0].type == operation.type);
  CHECK(found[0].creates);
}

TEST_CASE_METHOD(StoreFixture, "old commands go with their operations, and none that has not ended") {
  const bool many = GENERATE(true, false);  // or large
  for (const auto* id : {"1", "2", "3", "4", "5"}) {
    CommandRow command;
    command.id = CommandId(id);
    command.kind = "apply";
    const bool waits = command.id.value == "5";  // with all that is to be made, and in nobody's way
    command.state = waits ? "queued" : command.id.value == "1" ? "running" : "complete";
    command.plan = many ? "{}" : std::string(waits ? 10'000 : 1000, ' ');
    store().put_command(command).value();
    OperationRow operation;
    operation.command = command.id;
    operation.state = "done";
    operation.job = JobId("job-" + command.id.value);
    store().put_operation(operation).value();
    operation.job = JobId("create-" + command.id.value);
    operation.native_id = "made";
    store().put_create_of_replacement(operation).value();
  }
  store().prune_commands(many ? 2 : 100, many ? 100 : 2999).value();
  std::vector<std::string> left;
  for (const auto& command : store().commands({}, 10).value()) left.push_back(command.id.value);
  CHECK(left == std::vector<std::string>{"5", "4", "3", "1"});
  CHECK(store().operations(CommandId("1")).value().size() == 1);
  CHECK(store().operations(CommandId("2")).value().empty());
  CHECK_FALSE(store().operation_of(JobId("job-2")).value());
  CHECK(store().operation_of(JobId("job-3")).value());
  CHECK_FALSE(store().operation_of(JobId("create-2")).value());
  const auto made = store().operation_of(JobId("create-3")).value();
  REQUIRE(made);
  CHECK(made->state == "done");
  CHECK(made->native_id == "made");
  CHECK(made->creates);
}

TEST_CASE_METHOD(StoreFixture, "manifests come oldest first; one that is known is not written again") {
  Manifest manifest{.plugin = "postgres", .ns = "PG", .version = "1.0.0"};
  manifest.types = {{.name = "PG::Table", .schema = "{}"}};
  store().put_manifest({"hash2", manifest, at(1)}).value();
  store().put_manifest({"hash1", manifest, at(2)}).value();
  store().put_manifest({"hash2", manifest, at(3)}).value();
  store().commit().value();
  reopen();
  const auto rows = store().manifests().value();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].hash == "hash2");
  CHECK(rows[0].first_seen == at(1));
  CHECK(rows[0].manifest == manifest);
  CHECK(rows[1].hash == "hash1");
}

TEST_CASE_METHOD(StoreFixture, "a manifest that is dropped is gone for good, or comes again as the newest") {
  const Manifest manifest{.plugin = "postgres", .ns = "PG", .version = "1.0.0"};
  store().put_manifest({"hash1", manifest, at(1)}).value();
  store().put_manifest({"hash2", manifest, at(2)}).value();
  store().drop_manifest("hash1").value();
  store().drop_manifest("hash3").value();
  store().commit().value();
  reopen();
  REQUIRE(store().manifests().value().size() == 1);
  CHECK(store().manifests().value()[0].hash == "hash2");
  store().put_manifest({"hash1", manifest, at(3)}).value();
  CHECK(store().manifests().value().back().hash == "hash1");
}

TEST_CASE_METHOD(StoreFixture, "what was seen of writes that were taken back is another state") {
  store().set_meta("prefix", "muster").value();
  const auto state = store().state();
  store().rollback();
  CHECK(store().state() != state);
}

TEST_CASE_METHOD(StoreFixture, "named values") {
  CHECK_FALSE(store().meta("prefix").value());
  store().set_meta("prefix", "muster").value();
  store().set_meta("prefix", "other").value();
  store().set_meta("empty", "").value();
  store().commit().value();
  const auto fleet = store().fleet();
  CHECK(fleet.value.size() == 26);
  reopen();
  CHECK(store().meta("prefix").value() == "other");
  CHECK(store().meta("empty").value() == "");
  CHECK(store().fleet() == fleet);
}
