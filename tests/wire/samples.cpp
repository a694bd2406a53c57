#include "wire/samples.h"

namespace muster::testing {
namespace {

const FleetId kFleet{"01J9ZQ8C5W3V7N2K4M6P8R0T1X"};
const JobId kJob{"01J9ZR0D3E5F7G9H1J3K5M7N9P"};
const Token kToken{"q5w7e9r1t3y5u7i9o1p3a5s7d9"};
const WorkerId kWorker{"w-4f2a9c"};
const CoordinatorId kCoordinator{"c-81d0e7"};
const std::string kHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

Document config_with_secrets() {
  using Kind = SecretPart::Kind;
  return {R"({"dsn":null,"tls":{"key":null},"token":null})",
          {{"/dsn", {{Kind::kLiteral, "postgresql://app:"}, {Kind::kEnv, "PG_PASSWORD"}, {Kind::kLiteral, "@db/"}}},
           {"/tls/key", {{Kind::kFile, "/run/secrets/key.pem"}}},
           {"/token", {{Kind::kSecret, "token"}}}}};
}

Job job(JobOperation operation) {
  Job job;
  job.fleet = kFleet;
  job.id = kJob;
  job.token = kToken;
  job.attempt = 2;
  job.ns = "PG";
  job.pool = "site-b";
  job.target = {TargetId{"01J9ZQ9A1B2C3D4E5F6G7H8J9K"}, "orders.db", config_with_secrets()};
  job.type = "PG::Table";
  job.manifest = kHash;
  job.lease = Millis{10'000};
  job.deadline = Millis{120'000};
  job.priority = Priority::kCommand;
  job.operation = std::move(operation);
  return job;
}

Parent schema_parent() {
  return {"PG::Schema", "app.public", R"({"database":"app","name":"public"})"};
}

std::vector<MatchFilter> filters() {
  return {{{"PG::Role"}, {PropertyMatch{"$.name", MatchOp::kRegex, R"("^pg_")"}}, FilterAction::kExclude},
          {{},
           {TagMatch{{"Env", "Stage"}, "tmp"}, PropertyMatch{"$.size", MatchOp::kEq, "3"},
            PropertyMatch{"$.owner", MatchOp::kContains, R"("app")"}, PropertyMatch{"$.name", MatchOp::kExists, ""}},
           FilterAction::kInclude}};
}

JobReply reply(decltype(JobReply::body) body) {
  return {kFleet, kJob, kToken, kWorker, 2, 3, std::move(body)};
}

Item table(std::string name) {
  return {"app.public." + name, "16402", R"({"database":"app","name":")" + name + R"(","schema":"public"})"};
}

Error throttled() {
  return {Errc::kThrottling, "quota of 10/s used up", Millis{1500}, 0};
}

}  // namespace

template <>
std::vector<Sample<Job>> samples() {
  auto root = job(ListJob{std::nullopt, "", 0});
  root.pool = "default";
  root.attempt = 1;
  root.priority = Priority::kDiscovery;
  root.target.config = {R"({"root":"/srv"})", {}};
  auto inspect = job(InspectJob{});
  inspect.type.clear();
  inspect.priority = Priority::kDrift;
  auto status = job(StatusJob{"req-77", "app.public.orders"});
  status.priority = Priority::kStatus;
  auto waits = job(ReadJob{{"app.public.orders"}});
  waits.wait = Millis{50};
  return {
      {"list", std::move(root)},
      {"list-below-parent", job(ListJob{schema_parent(), "after:orders", 64, 16})},
      {"read", job(ReadJob{{"app.public.orders", "app.public.größe"}})},
      {"read-waits", std::move(waits)},
      {"create", job(CreateJob{"op-1/1", {R"({"name":"audit"})", {}}, schema_parent()})},
      {"create-root", job(CreateJob{"op-2/1", config_with_secrets(), std::nullopt})},
      {"update", job(UpdateJob{"op-3/2",
                               "app.public.orders",
                               R"({"owner":"a"})",
                               {R"({"owner":"b"})", {}},
                               R"([{"op":"replace","path":"/owner","value":"b"}])",
                               {"16402", "0123456789abcdef0123456789abcdef"}})},
      {"delete", job(DeleteJob{"op-4/1", "app.public.orders", {"16402", ""}})},
      {"status", std::move(status)},
      {"inspect", std::move(inspect)},
      {"call", job(CallJob{CallKind::kInvoke, "rotate", {R"({"length":32})", {}}, "op-5/1"})},
  };
}

template <>
std::vector<Sample<JobReply>> samples() {
  auto manifest = reply(ManifestBytes{std::string("\0\1\xff manifest", 12)});
  manifest.job = {};
  return {
      {"accepted", reply(Accepted{})},
      {"busy", reply(Busy{})},
      {"failure", reply(throttled())},
      {"list", reply(ListResult{{table("orders"), {"app.public.größe", "", ""}},
                                "after:orders",
                                {{"app.secret", {Errc::kAccessDenied, "permission denied", {}, 0}}, {"", throttled()}},
                                5})},
      {"list-empty", reply(ListResult{})},
      {"read", reply(ReadResult{{table("orders"), Error{Errc::kNotFound, "no such table", {}, 0}}})},
      {"mutation", reply(MutationResult{MutationStatus::kInProgress, "req-77", "app.public.audit", "16500",
                                        R"({"name":"audit"})", Millis{2500}})},
      {"mutation-success", reply(MutationResult{MutationStatus::kSuccess, "", "app.public.audit", "", "", {}})},
      {"inspect", reply(InspectResult{"7301245871234567890", filters(), {"PG::Role", "PG::Table"}})},
      {"call", reply(CallResult{R"({"error":"length is too short"})", true})},
      {"part", reply(Part{1, 3, std::string("\0\1\2\xfe\xff", 5)})},
      {"manifest", std::move(manifest)},
  };
}

template <>
std::vector<Sample<ResultAck>> samples() {
  return {{"committed", {kJob, kToken, Verdict::kCommitted, ""}},
          {"superseded", {kJob, kToken, Verdict::kSuperseded, ""}},
          {"refused", {kJob, kToken, Verdict::kRefused, "no such job"}},
          {"later", {kJob, kToken, Verdict::kLater, ""}}};
}

template <>
std::vector<Sample<Announcement>> samples() {
  Announcement first;
  first.worker = kWorker;
  first.ns = "PG";
  first.plugin = "postgres";
  first.version = "0.1.0";
  first.manifest = kHash;
  first.slots = 4;
  first.host = "db-7";
  first.pid = 4711;
  auto again = first;
  again.pool = "site-b";
  again.features = {"compressed", "sealed"};
  again.max_requests_per_second = 12.5;
  again.running = {{kJob, kToken}};
  again.fleet = kFleet;
  return {{"first", std::move(first)}, {"again", std::move(again)}};
}

template <>
std::vector<Sample<AnnouncementReply>> samples() {
  return {{"accepted", {kFleet, kCoordinator, std::nullopt, {"compressed"}}},
          {"rejected",
           {kFleet, kCoordinator, Rejection{"PROTOCOL", "speaks major version 2, this fleet speaks 1", true}, {}}}};
}

template <>
std::vector<Sample<Heartbeat>> samples() {
  Heartbeat idle;
  idle.worker = kWorker;
  idle.ns = "PG";
  idle.free_slots = 4;
  Heartbeat ill{kWorker, "PG", "site-b", 0, {{kJob, kToken}, {JobId{"j2"}, Token{"t2"}}}, true, 1, false, "disk full"};
  return {{"idle", std::move(idle)}, {"ill", std::move(ill)}};
}

template <>
std::vector<Sample<RollCall>> samples() {
  return {{"start", {kFleet, kCoordinator}}};
}

template <>
std::vector<Sample<Control>> samples() {
  return {{"go", {kFleet, Go{{kJob, kToken}}}},
          {"cancel", {kFleet, Cancel{{kJob, kToken}}}},
          {"drain", {kFleet, Drain{}}},
          {"send-manifest", {kFleet, SendManifest{kHash}}}};
}

template <>
std::vector<Sample<Manifest>> samples() {
  TypeDescriptor schema;
  schema.name = "PG::Schema";
  schema.operations = {Operation::kList, Operation::kRead};
  TypeDescriptor table_type;
  table_type.name = "PG::Table";
  table_type.description = "A table";
  table_type.schema = R"({"type":"object"})";
  table_type.parent = "PG::Schema";
  table_type.parent_parameters = {{"database", "database"}, {"schema", "name"}};
  table_type.list_gives = ListGives::kProperties;
  table_type.contained = false;
  table_type.operations = {Operation::kList,   Operation::kRead,   Operation::kCreate, Operation::kUpdate,
                           Operation::kDelete, Operation::kStatus, Operation::kCheck,  Operation::kDiff};
  table_type.label_query = "$.name";
  table_type.discoverable = false;
  table_type.settle = Millis{750};
  table_type.page_size = 200;
  table_type.read_batch = 50;
  table_type.examples = {R"({"name":"orders"})"};
  Manifest full;
  full.plugin = "postgres";
  full.ns = "PG";
  full.version = "0.1.0";
  full.description = "PostgreSQL";
  full.types = {std::move(schema), std::move(table_type)};
  full.label_query = "$.title";
  full.filters = filters();
  full.config_schema = R"({"properties":{"dsn":{"type":"string","x-muster-secret":true}},"type":"object"})";
  full.functions = {{"invoke", "rotate", R"({"type":"object"})", "PG::Role"}};
  Manifest small;
  small.ns = "FS";
  return {{"full", std::move(full)}, {"small", std::move(small)}};
}

}  // namespace muster::testing
