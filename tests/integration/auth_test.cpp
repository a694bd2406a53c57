// Who may do what on a real bus: the users that `muster auth nats-conf` makes.

#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <nats/nats.h>
#include <catch2/catch.hpp>

#include "schema/codec.h"
#include "schema/subjects.h"
#include "support/nats_server.h"
#include "support/scratch.h"
#include "support/users_fleet.h"
#include "worker_sdk/bus/nats_handles.h"
#include "worker_sdk/bus/nkey.h"

using muster::test::Answer;
using muster::test::built;
using muster::test::FleetClient;
using muster::test::NatsServer;
using muster::test::Scratch;
using muster::test::slurp;
using muster::test::UsersFleet;
using muster::test::Variables;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

const Names kUsers{"coordinator",         "operator",          "observer",         "worker.FS.default",
                   "worker.FAKE.default", "worker.FAKE.north", "worker.FAKE.south"};

/// A directory with what the command made for two namespaces and three pools.
class Users {
 public:
  explicit Users(fs::path directory) : directory_(std::move(directory)) {
    fs::create_directories(directory_);
    const auto config = directory_ / "muster.yaml";
    std::ofstream(config) << "targets:\n  - {name: tree, namespace: FS}\n"
                             "  - {name: cloud, namespace: FAKE, pool: north}\n";
    answer = make({"-c", config, "--worker", "FAKE/south", "--worker", "FAKE"});
  }

  /// `muster auth nats-conf ARGS`.
  [[nodiscard]] Answer make(const std::vector<std::string>& args) const {
    std::vector<std::string> words{built("muster"), "auth", "nats-conf", "--out", auth()};
    words.insert(words.end(), args.begin(), args.end());
    const auto out = directory_ / "made", err = directory_ / "made-err";
    fs::remove(out);
    fs::remove(err);
    Answer made;
    made.status = muster::test::wait_for(muster::test::spawn({words, {}, out, err}));
    made.out = slurp(out);
    made.err = slurp(err);
    return made;
  }

  [[nodiscard]] fs::path auth() const { return directory_ / "auth"; }
  [[nodiscard]] std::string conf() const { return slurp(auth() / "users.conf"); }
  [[nodiscard]] std::string seed(const std::string& user) const { return auth() / (user + ".nk"); }
  /// What the user's process has in its environment.
  [[nodiscard]] Variables environment(const std::string& user) const {
    Variables all;
    std::ifstream file(auth() / (user + ".env"));
    for (std::string line; std::getline(file, line);) {
      const auto equals = line.find('=');
      all[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return all;
  }

  Answer answer;

 private:
  fs::path directory_;
};

/// A connection of one user that looks what the server lets it do.
class Probe {
 public:
  Probe(const std::string& url, const std::string& seed_file) {
    const auto key = muster::nkey_public_of_seed(slurp(seed_file));
    natsOptions* raw = nullptr;
    REQUIRE(natsOptions_Create(&raw) == NATS_OK);
    const muster::OptionsPtr options(raw);
    REQUIRE(natsOptions_SetURL(raw, url.c_str()) == NATS_OK);
    REQUIRE(natsOptions_SetNKeyFromSeed(raw, key.value().c_str(), seed_file.c_str()) == NATS_OK);
    natsStatus status = NATS_CONNECTION_AUTH_FAILED;
    natsConnection* connection = nullptr;
    // The library drops one signature in 256.
    for (int i = 0; i < 8 && status != NATS_OK; ++i) status = natsConnection_Connect(&connection, raw);
    REQUIRE(status == NATS_OK);
    connection_.reset(connection);
  }

  [[nodiscard]] bool may_publish(const std::string& subject) const {
    REQUIRE(natsConnection_PublishString(connection_.get(), subject.c_str(), "probe") == NATS_OK);
    return !refused("Publish to \"" + subject + "\"");
  }

  /// `what`   SUBJECT or SUBJECT GROUP
  [[nodiscard]] bool may_subscribe(const std::string& what) const {
    const auto space = what.find(' ');
    const auto subject = what.substr(0, space);
    const auto group = space == std::string::npos ? "" : what.substr(space + 1);
    natsSubscription* raw = nullptr;
    const natsStatus status =
        group.empty() ? natsConnection_SubscribeSync(&raw, connection_.get(), subject.c_str())
                      : natsConnection_QueueSubscribeSync(&raw, connection_.get(), subject.c_str(), group.c_str());
    REQUIRE(status == NATS_OK);
    const muster::SubscriptionPtr subscription(raw);
    return !refused("Subscription to \"" + subject + "\"" + (group.empty() ? "" : " using queue \"" + group + "\""));
  }

  muster::SubscriptionPtr listen(const std::string& subject) const {
    natsSubscription* raw = nullptr;
    REQUIRE(natsConnection_SubscribeSync(&raw, connection_.get(), subject.c_str()) == NATS_OK);
    flush();
    return muster::SubscriptionPtr(raw);
  }
  void publish(const std::string& subject, const std::string& reply, const std::string& data) const {
    REQUIRE(natsConnection_PublishRequest(connection_.get(), subject.c_str(), reply.c_str(), data.data(),
                                          static_cast<int>(data.size())) == NATS_OK);
    flush();
  }
  /// What the server knows so far has come, and is counted.
  [[nodiscard]] int heard(const muster::SubscriptionPtr& subscription) const {
    flush();
    int count = 0;
    REQUIRE(natsSubscription_GetPending(subscription.get(), &count, nullptr) == NATS_OK);
    return count;
  }
  void flush() const { REQUIRE(natsConnection_FlushTimeout(connection_.get(), 30'000) == NATS_OK); }

 private:
  /// The server says so before it answers the flush.
  [[nodiscard]] bool refused(const std::string& what) const {
    flush();
    const char* text = nullptr;
    natsConnection_GetLastError(connection_.get(), &text);
    const std::string said = text == nullptr ? "" : text;
    return said.find("Permissions Violation for " + what) != std::string::npos;
  }

  muster::ConnectionPtr connection_;
};

/// Subjects, each once for each place that it can be about.
Names everywhere(const std::set<std::string>& patterns) {
  Names all;
  for (const auto& pattern : patterns) {
    const auto at = pattern.find("NS");
    for (const std::string ns : {"FS", "FAKE", "PG"}) {
      all.insert(at == std::string::npos ? pattern : std::string(pattern).replace(at, 2, ns));
    }
  }
  return all;
}

/// All that somebody might want to say.
Names said() {
  Names all =
      everywhere({"muster.job.NS", "muster.job.NS.north", "muster.job.NS.south", "muster.worker.NS.w.job",
                  "muster.worker.NS.w.control", "muster.worker.NS.w.other", "muster.reply.NS.c.t", "muster.reply.NS.c",
                  "muster.reply.NS.c.t.more", "muster.result.NS", "muster.result.NS.more", "muster.announce.NS",
                  "muster.heartbeat.NS", "muster.event.NS.resource.created", "muster.eventlog.NS.resource.created",
                  "_INBOX_worker.NS.default.x.1", "_INBOX_worker.NS.north.x.1", "_INBOX_worker.NS.south.x.1"});
  all.merge(Names{"muster.rollcall", "muster.api.status", "muster.api.apply", "muster.api.workers-drain",
                  "muster.api.supervise", "muster.event.-.run.started", "muster.eventlog.-.run.started", "other.job.FS",
                  "other.api.status", "muster", "muster.new", "new", "_INBOX.x.1", "_INBOX_coordinator.x.1",
                  "_INBOX_coordinator.x.fleet", "_INBOX_operator.x.1", "_INBOX_operator.micro.x.1",
                  "_INBOX_observer.x.1", "_INBOX_other.x.1"});
  for (const std::string verb : {"PING", "INFO", "STATS"}) {
    all.merge(Names{"$SRV." + verb, "$SRV." + verb + ".muster-fs", "$SRV." + verb + ".muster-fs.w"});
  }
  for (const std::string what : {"INFO",
                                 "STREAM.LIST",
                                 "STREAM.NAMES",
                                 "STREAM.CREATE.MUSTER_EVENTS",
                                 "STREAM.CREATE.OTHER",
                                 "STREAM.UPDATE.MUSTER_EVENTS",
                                 "STREAM.UPDATE.OTHER",
                                 "STREAM.INFO.MUSTER_EVENTS",
                                 "STREAM.INFO.OTHER",
                                 "STREAM.DELETE.MUSTER_EVENTS",
                                 "STREAM.PURGE.MUSTER_EVENTS",
                                 "STREAM.MSG.GET.MUSTER_EVENTS",
                                 "STREAM.MSG.DELETE.MUSTER_EVENTS",
                                 "STREAM.SNAPSHOT.MUSTER_EVENTS",
                                 "STREAM.RESTORE.MUSTER_EVENTS",
                                 "STREAM.PEER.REMOVE.MUSTER_EVENTS",
                                 "STREAM.LEADER.STEPDOWN.MUSTER_EVENTS",
                                 "STREAM.TEMPLATE.CREATE.T",
                                 "CONSUMER.CREATE.MUSTER_EVENTS",
                                 "CONSUMER.CREATE.MUSTER_EVENTS.c",
                                 "CONSUMER.DURABLE.CREATE.MUSTER_EVENTS.c",
                                 "CONSUMER.LIST.MUSTER_EVENTS",
                                 "CONSUMER.NAMES.MUSTER_EVENTS",
                                 "CONSUMER.INFO.MUSTER_EVENTS.c",
                                 "CONSUMER.DELETE.MUSTER_EVENTS.c",
                                 "CONSUMER.MSG.NEXT.MUSTER_EVENTS.c",
                                 "DIRECT.GET.MUSTER_EVENTS",
                                 "META.LEADER.STEPDOWN",
                                 "SERVER.REMOVE",
                                 "ACCOUNT.PURGE.MUSTER"}) {
    all.insert(std::string("$JS.API.") + what);
  }
  all.merge(Names{"$JS.ACK.MUSTER_EVENTS.c.1.1.1.1.0", "$JS.EVENT.ADVISORY.API", "$SYS.REQ.SERVER.PING",
                  "$SYS.REQ.ACCOUNT.MUSTER.CONNZ", "$SYS.ACCOUNT.MUSTER.CONNECT", "$KV.b.k", "$O.b.C.x"});
  return all;
}

/// All that somebody might want to hear: `SUBJECT` or `SUBJECT GROUP`.
Names listened() {
  Names all = everywhere({"muster.job.NS",
                          "muster.job.NS other",
                          "muster.job.NS workers",
                          "muster.job.NS.north",
                          "muster.job.NS.north other",
                          "muster.job.NS.north workers",
                          "muster.job.NS.south",
                          "muster.job.NS.south workers",
                          "muster.job.NS.>",
                          "muster.job.NS.> workers",
                          "muster.job.NS.*",
                          "muster.job.NS.* workers",
                          "muster.worker.NS.w.job",
                          "muster.worker.NS.w.control",
                          "muster.worker.NS.*.job",
                          "muster.worker.NS.*.control",
                          "muster.worker.NS.>",
                          "muster.worker.NS.*.*",
                          "muster.reply.NS.c.t",
                          "muster.reply.NS.>",
                          "muster.result.NS",
                          "muster.result.NS coordinators",
                          "muster.announce.NS",
                          "muster.heartbeat.NS",
                          "muster.event.NS.>",
                          "muster.eventlog.NS.>",
                          "_INBOX_worker.NS.default.x.>",
                          "_INBOX_worker.NS.north.x.>",
                          "_INBOX_worker.NS.south.x.>",
                          "_INBOX_worker.NS.default.>",
                          "_INBOX_worker.NS.north.>",
                          "_INBOX_worker.NS.>"});
  all.merge(Names{">",
                  "*",
                  "*.>",
                  "*.job.>",
                  "muster.>",
                  "muster.*.>",
                  "muster.job.>",
                  "muster.job.> workers",
                  "muster.job.*",
                  "muster.job.* workers",
                  "muster.job.*.*",
                  "muster.job.*.* workers",
                  "muster.worker.>",
                  "muster.worker.*.*.job",
                  "muster.worker.*.w.control",
                  "muster.reply.>",
                  "muster.reply.*.c.*",
                  "muster.result.>",
                  "muster.result.*",
                  "muster.result.* coordinators",
                  "muster.announce.*",
                  "muster.announce.>",
                  "muster.heartbeat.*",
                  "muster.heartbeat.>",
                  "muster.rollcall",
                  "muster.rollcall workers",
                  "muster.api.status",
                  "muster.api.status coordinators",
                  "muster.api.>",
                  "muster.api.> coordinators",
                  "muster.api.> other",
                  "muster.event.>",
                  "muster.event.-.>",
                  "muster.eventlog.>",
                  "_INBOX.>",
                  "_INBOX.x.>",
                  "_INBOX_coordinator.>",
                  "_INBOX_coordinator.x.>",
                  "_INBOX_operator.>",
                  "_INBOX_operator.x.>",
                  "_INBOX_operator.micro.x.>",
                  "_INBOX_observer.>",
                  "_INBOX_observer.x.>",
                  "_INBOX_worker.>",
                  "other.>",
                  "$SRV.>",
                  "$SRV.PING",
                  "$SRV.INFO.muster-fs",
                  "$SRV.STATS.muster-fs.w",
                  "$JS.>",
                  "$JS.API.>",
                  "$JS.API.STREAM.CREATE.MUSTER_EVENTS",
                  "$JS.ACK.>",
                  "$JS.EVENT.>",
                  "$SYS.>",
                  "$SYS.REQ.>",
                  "$SYS.ACCOUNT.>",
                  "$KV.>"});
  return all;
}

Names questions() {
  Names all;
  for (const std::string verb : {"PING", "INFO", "STATS"}) {
    all.merge(Names{"$SRV." + verb, "$SRV." + verb + ".muster-fs", "$SRV." + verb + ".muster-fs.w"});
  }
  return all;
}
const Names kHeardQuestions{"$SRV.PING", "$SRV.INFO.muster-fs", "$SRV.STATS.muster-fs.w"};
const Names kEvents{"muster.event.>", "muster.event.-.>", "muster.event.FS.>", "muster.event.FAKE.>",
                    "muster.event.PG.>"};

struct Rights {
  Names says, hears;
};

Rights rights_of_worker(const std::string& ns, const std::string& pool) {
  const auto job = "muster.job." + ns + (pool == "default" ? "" : "." + pool) + " workers";
  const auto worker = "muster.worker." + ns;
  const auto inbox = "_INBOX_worker." + ns + "." + pool;
  Rights rights{{"muster.reply." + ns + ".c.t", "muster.result." + ns, "muster.announce." + ns,
                 "muster.heartbeat." + ns, "muster.api.supervise", "_INBOX_observer.x.1", "_INBOX_operator.micro.x.1"},
                {job, worker + ".w.job", worker + ".w.control", worker + ".*.job", worker + ".*.control",
                 "muster.rollcall", "muster.rollcall workers", inbox + ".x.>"}};
  if (pool != "south") rights.hears.insert(inbox + ".>");  // which is not among what is tried
  rights.hears.insert(kHeardQuestions.begin(), kHeardQuestions.end());
  return rights;
}

Rights rights_of(const std::string& user) {
  if (user.starts_with("worker.")) {
    const auto dot = user.rfind('.');
    return rights_of_worker(user.substr(7, dot - 7), user.substr(dot + 1));
  }
  Rights rights;
  if (user == "coordinator") {
    rights.says = everywhere({"muster.job.NS", "muster.job.NS.north", "muster.job.NS.south", "muster.worker.NS.w.job",
                              "muster.worker.NS.w.control", "muster.event.NS.resource.created",
                              "muster.eventlog.NS.resource.created", "_INBOX_worker.NS.default.x.1",
                              "_INBOX_worker.NS.north.x.1", "_INBOX_worker.NS.south.x.1"});
    rights.says.merge(Names{"muster.rollcall", "muster.api.status", "muster.event.-.run.started",
                            "muster.eventlog.-.run.started", "$JS.API.STREAM.CREATE.MUSTER_EVENTS",
                            "$JS.API.STREAM.INFO.MUSTER_EVENTS", "$JS.API.STREAM.UPDATE.MUSTER_EVENTS",
                            "_INBOX_coordinator.x.fleet", "_INBOX_operator.x.1", "_INBOX_operator.micro.x.1",
                            "_INBOX_observer.x.1"});
    rights.hears = everywhere(
        {"muster.reply.NS.c.t", "muster.result.NS coordinators", "muster.announce.NS", "muster.heartbeat.NS"});
    rights.hears.merge(Names{"muster.reply.*.c.*", "muster.result.* coordinators", "muster.announce.*",
                             "muster.heartbeat.*", "muster.api.status coordinators", "muster.api.> coordinators",
                             "_INBOX_coordinator.>", "_INBOX_coordinator.x.>"});
    rights.hears.insert(kHeardQuestions.begin(), kHeardQuestions.end());
    return rights;
  }
  rights.says = questions();
  rights.hears = kEvents;
  rights.hears.merge(Names{"_INBOX_" + user + ".>", "_INBOX_" + user + ".x.>"});
  if (user == "operator") {
    rights.says.merge(
        Names{"muster.api.status", "muster.api.apply", "muster.api.workers-drain", "muster.api.supervise"});
    rights.hears.insert("_INBOX_operator.micro.x.>");
  }
  return rights;
}

/// A server with these users, whose configuration is that of the command.
NatsServer server_of(const Users& users) {
  return NatsServer({.config = users.conf(), .user = {}, .password = {}, .jetstream = true});
}

}  // namespace

TEST_CASE("nats-conf: the same users again with the same keys, one more, and what it refuses") {
  const Scratch scratch;
  const Users users(scratch.path);
  INFO(users.answer.err);
  REQUIRE(users.answer.status == 0);
  Names made;
  for (const auto& user : kUsers) {
    const auto mode = fs::status(users.seed(user)).permissions();
    CHECK(mode == (fs::perms::owner_read | fs::perms::owner_write));
    CHECK(users.answer.out.find(users.seed(user)) != std::string::npos);
    const auto seed = slurp(users.seed(user));
    CHECK(muster::nkey_public_of_seed(seed));
    made.insert(seed);
    // A secret stands in its own file and nowhere else.
    CHECK(users.conf().find(seed.substr(0, seed.size() - 1)) == std::string::npos);
    CHECK(users.answer.out.find(seed.substr(0, seed.size() - 1)) == std::string::npos);
  }
  CHECK(made.size() == kUsers.size());
  const auto conf = users.conf();
  CHECK(conf.find("deny") == std::string::npos);
  CHECK(conf.find("allow_responses") == std::string::npos);

  const std::vector<std::string> all{"--worker", "FS",         "--worker", "FAKE/north",
                                     "--worker", "FAKE/south", "--worker", "FAKE"};
  std::ofstream(users.auth() / "nats.conf") << "# mine\n";
  CHECK(users.make(all).status == 0);
  CHECK(users.conf() == conf);
  CHECK(slurp(users.auth() / "nats.conf") == "# mine\n");
  auto more = all;
  more.insert(more.end(), {"--worker", "PG/site-b", "-o", "json"});
  const auto grown = users.make(more);
  REQUIRE(grown.status == 0);
  CHECK(FleetClient::Json::parse(grown.out).size() == kUsers.size() + 1);
  CHECK(users.conf().find("worker.PG.site-b") != std::string::npos);
  CHECK(made.contains(slurp(users.seed("coordinator"))));

  CHECK(users.make({}).status == 2);
  CHECK(users.make({"--worker", "a.b"}).status == 2);
  CHECK(users.make({"--worker", "A/*"}).status == 2);
  CHECK(users.make({"--worker", std::string(30, 'n') + "/" + std::string(30, 'p')}).status == 2);
  std::ofstream(users.seed("observer")) << "SUdamaged\n";
  CHECK(users.make(all).status == 1);
}

TEST_CASE("nobody else can write to the directory that nats-conf makes") {
  const Scratch scratch;
  const auto before = umask(0);
  const auto directory = scratch.path / "new" / "deep";
  const auto status = muster::test::wait_for(
      muster::test::spawn({{built("muster"), "auth", "nats-conf", "--worker", "FS", "--out", directory / "auth"},
                           {},
                           "/dev/null",
                           "/dev/null"}));
  umask(before);
  REQUIRE(status == 0);
  const auto others = fs::perms::group_write | fs::perms::others_write;
  for (const auto& made : {directory.parent_path(), directory, directory / "auth"}) {
    CHECK((fs::status(made).permissions() & others) == fs::perms::none);
  }
}

TEST_CASE("a shell reads what nats-conf writes for a process, whatever the directory is called") {
  const Scratch scratch;
  for (const std::string name : {"plain", "with a space", "a\"b", "a$HOME", "a\\b`c", "it's; here", "\u00e9"}) {
    INFO(name);
    const Users users(scratch.path / name);
    REQUIRE(users.answer.status == 0);
    const auto said = scratch.path / name / "said";
    const auto read = ". \"$0\" && printf %s \"$MUSTER_NATS_NKEY_SEED\"";
    const auto shell =
        muster::test::spawn({{"/bin/sh", "-c", read, users.auth() / "operator.env"}, {}, said, "/dev/null"});
    CHECK(muster::test::wait_for(shell) == 0);
    CHECK(slurp(said) == users.seed("operator"));
  }
}

TEST_CASE("what nats-conf writes starts a server, and lets nobody in without a key") {
  const Scratch scratch;
  const Users users(scratch.path);
  // Its command line says where it listens; what it includes is looked for beside its own configuration.
  const NatsServer server(
      {.config = "include \"../" + scratch.path.filename().string() + "/auth/nats.conf\"", .user = {}, .password = {}});
  for (const std::string login : {"", "coordinator@", "coordinator:x@"}) {
    natsConnection* connection = nullptr;
    const auto url = "nats://" + login + "127.0.0.1:" + std::to_string(server.port());
    CHECK(natsConnection_ConnectTo(&connection, url.c_str()) == NATS_CONNECTION_AUTH_FAILED);
  }
  const Probe probe(server.url(), users.seed("coordinator"));
  probe.flush();
}

TEST_CASE("each user may do what its process does, and nothing else") {
  const Scratch scratch;
  const Users users(scratch.path);
  REQUIRE(users.answer.status == 0);
  const NatsServer server = server_of(users);
  const Names all_said = said(), all_listened = listened();
  for (const auto& user : kUsers) {
    INFO(user);
    const Probe probe(server.url(), users.seed(user));
    Names says, hears;
    for (const auto& subject : all_said) {
      if (probe.may_publish(subject)) says.insert(subject);
    }
    for (const auto& what : all_listened) {
      if (probe.may_subscribe(what)) hears.insert(what);
    }
    const auto rights = rights_of(user);
    if (user == "coordinator") {  // some servers take `>` for the token that `*` stands for: nobody may speak below it
      hears.erase("muster.announce.>");
      hears.erase("muster.heartbeat.>");
    }
    CHECK(says == rights.says);
    CHECK(hears == rights.hears);
  }
}

TEST_CASE("a fleet in which each process is a user of its own does all its work") {
  const Scratch scratch;
  const Users users(scratch.path);
  REQUIRE(users.answer.status == 0);
  const NatsServer server = server_of(users);
  UsersFleet fleet(server.url());
  const auto cli = users.environment("operator");
  const Probe observer(server.url(), users.seed("observer"));
  const auto events = observer.listen("muster.event.>");
  fleet.start_coordinator(users.environment("coordinator"), cli,
                          "  - {name: north, namespace: FAKE, pool: north, config: {resources: 3, state: \"" +
                              (fleet.directory() / "cloud.db").string() +
                              "\"}}\n  - {name: south, namespace: FAKE, pool: south, config: {resources: 2}}\n");
  fleet.start("worker-fs", {"worker", "fs"}, users.environment("worker.FS.default"));
  fleet.start("worker-north", {"worker", "fake", "--pool", "north"}, users.environment("worker.FAKE.north"));
  auto south = users.environment("worker.FAKE.south");
  south["MUSTER_NATS_URL"] = server.url();
  fleet.start_plugin("fake", {"--pool", "south"}, south);  // without `muster`
  fleet.await_workers(3, cli);

  CHECK(fleet.ask_json({"discover", "--wait"}, cli)["state"] == "complete");
  CHECK(fleet.ask_json({"resources"}, cli).size() == 2 + 3 + 2);
  const auto stack = fleet.directory() / "stack.yaml";
  std::ofstream(stack) << "stack: demo\nresources:\n  - {name: web, target: north, type: \"FAKE::Cloud::Thing0\", "
                          "properties: {name: web}}\n";
  const auto applied = fleet.ask_json({"apply", stack, "--yes"}, cli);
  CHECK(applied["state"] == "complete");
  CHECK(fleet.ask_json({"resources", "--managed"}, cli).size() == 1);
  CHECK(fleet.ask_json({"events", "--type", "resource.created"}, cli).size() == 1);
  CHECK(fleet.ask({"status", "-o", "json"}, cli).out.find("stream MUSTER_EVENTS") != std::string::npos);

  // $SRV reaches the asker: four processes answer the observer, and the operator where it hears them.
  for (const auto& [user, inbox] :
       Variables{{"observer", "_INBOX_observer.a.1"}, {"operator", "_INBOX_operator.micro.a.1"}}) {
    const Probe asker(server.url(), users.seed(user));
    const auto answers = asker.listen(inbox);
    asker.publish("$SRV.PING", inbox, "");
    CHECK(FleetClient::eventually([&] { return asker.heard(answers) == 4; }));
  }
  CHECK(FleetClient::eventually([&] { return observer.heard(events) > 0; }));

  const auto workers = fleet.ask_json({"workers"}, cli);
  CHECK(fleet.ask({"workers", "drain", workers.at(0).at("id")}, cli).status == 0);
  fleet.await_workers(2, cli);
  // Another fleet's coordinator hears that the prefix is taken.
  UsersFleet second(server.url());
  second.start("coordinator", {"coordinator"}, users.environment("coordinator"));
  CHECK(FleetClient::eventually([&] { return second.log().find("answers on prefix 'muster'") != std::string::npos; }));
  // Nobody tried what it may not.
  CHECK(fleet.log().find("iolation") == std::string::npos);
  CHECK(slurp(server.directory() / "server.log").find("iolation") == std::string::npos);

  CHECK(fleet.ask({"status"}, {}).status == 1);  // no key
  const auto other = fleet.ask({"status", "--timeout", "10s"}, users.environment("observer"));
  CHECK(other.status == 1);  // its question is not let through, and the server says so
  CHECK(other.err.find("iolation") != std::string::npos);
}

TEST_CASE("nobody says through the coordinator what it may not say itself") {
  const Scratch scratch;
  const Users users(scratch.path);
  const NatsServer server = server_of(users);
  UsersFleet fleet(server.url());
  const auto cli = users.environment("operator");
  fleet.start_coordinator(users.environment("coordinator"), cli);
  const Probe observer(server.url(), users.seed("observer"));
  const Probe victim(server.url(), users.seed("worker.FAKE.north"));
  const auto events = observer.listen("muster.event.FAKE.resource.created");
  const auto control = victim.listen("muster.worker.FAKE.*.control");

  const Probe worker(server.url(), users.seed("worker.FS.default"));
  muster::Announcement announcement;
  announcement.ns = "FS";
  worker.publish("muster.announce.FS", "muster.worker.FAKE.w.control", muster::encode(announcement));
  const Probe user(server.url(), users.seed("operator"));
  user.publish("muster.api.status", "muster.event.FAKE.resource.created", "{}");
  // What came before this question is answered before it.
  REQUIRE(fleet.ask({"status"}, cli).status != 3);
  CHECK(victim.heard(control) == 0);
  CHECK(observer.heard(events) == 0);
}
