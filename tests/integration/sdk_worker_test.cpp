#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "muster/properties.h"
#include "schema/codec.h"
#include "schema/subjects.h"
#include "support/nats_server.h"
#include "worker_sdk/bus/nats_bus.h"

using namespace muster;
using namespace std::chrono_literals;
using test::NatsServer;

namespace {

constexpr auto kPatience = 30s;  // until a test calls something lost; never waited for when all is well
const FleetId kFleet("fleet");
const CoordinatorId kCoordinator("c1");
const Subjects kSubjects("muster");

std::string slurp(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// muster-plugin-probe with its output in files, and its state in the server's directory; ends with this object.
class WorkerProcess {
 public:
  WorkerProcess(const NatsServer& server, std::vector<std::string> arguments,
                std::map<std::string, std::string> environment = {})
      : out_(server.directory() / "worker.out"), log_(server.directory() / "worker.log") {
    arguments.insert(arguments.begin(), std::string(std::getenv("MUSTER_BIN_DIR")) + "/muster-plugin-probe");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::setenv("PROBE_SECRET", "s3cret-value", 1);
    environment.emplace("MUSTER_STATE_DIR", state_of(server).string());
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    pid_ = ::fork();
    if (pid_ != 0) {
      for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(::open(out_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDOUT_FILENO);
    ::dup2(::open(log_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~WorkerProcess() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  static std::filesystem::path state_of(const NatsServer& server) { return server.directory() / "state"; }
  void signal(int number) const { ::kill(pid_, number); }
  /// Its exit status; -1 when it does not end, or was killed.
  int wait() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return -1;
      std::this_thread::sleep_for(10ms);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void wait_for_log(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (log().find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("not in the log: " + text);
      std::this_thread::sleep_for(10ms);
    }
  }
  [[nodiscard]] std::string out() const { return slurp(out_); }
  [[nodiscard]] std::string log() const { return slurp(log_); }

 private:
  std::filesystem::path out_, log_;
  pid_t pid_ = -1;
};

/// The coordinator's end of the bus.
class Coordinator {
 public:
  explicit Coordinator(const NatsServer& server) {
    NatsOptions options;
    options.url = server.url();
    options.reconnect_wait = 5ms;
    options.reconnect_wait_max = 50ms;
    auto log = std::make_shared<spdlog::logger>("bus", std::make_shared<spdlog::sinks::null_sink_mt>());
    bus_ = std::move(NatsBus::connect(options, log).value());
    for (const std::string& subject :
         {kSubjects.announces(), kSubjects.heartbeats(), kSubjects.replies(kCoordinator), bus_->inbox() + ".>"}) {
      bus_->subscribe(subject).value();
    }
    bus_->subscribe(kSubjects.results(), kCoordinatorsGroup).value();
    bus_->flush(kPatience).value();
  }

  /// The next message on `subject` that is decoded and wanted; what comes before it is dropped.
  template <typename T>
  T next(
      const std::string& subject, const std::function<bool(const T&)>& wanted = [](const T&) { return true; }) {
    std::optional<T> found;
    until([&](const Message& message) {
      if (message.subject != subject) return false;
      auto decoded = decode<T>(message.data).value();
      if (!wanted(decoded)) return false;
      last_reply_ = message.reply;
      last_data_ = message.data;
      found = std::move(decoded);
      return true;
    });
    return std::move(*found);
  }
  /// Waits for a worker and takes it in.
  Announcement accept() {
    auto said = next<Announcement>(kSubjects.announce("PROBE"));
    publish(last_reply_, encode(AnnouncementReply{kFleet, kCoordinator, {}, {}}));
    worker_ = said.worker;
    next<Heartbeat>(kSubjects.heartbeat("PROBE"));  // by then it is in the group
    return said;
  }
  void dispatch(const std::string& token, JobOperation operation, Document config = {},
                const std::string& type = "PROBE::Thing") {
    Job job;
    job.fleet = kFleet;
    job.id = JobId("job-" + token);
    job.token = Token(token);
    job.ns = "PROBE";
    job.target = Target{TargetId("t"), "target", std::move(config)};
    job.type = type;
    job.lease = Millis{30'000};
    job.deadline = Millis{60'000};
    job.operation = std::move(operation);
    publish(kSubjects.job("PROBE", "default"), encode(job), reply_subject(token));
  }
  /// Lets a mutation that the worker has claimed begin.
  void go(const std::string& token) {
    const auto claimed = next<JobReply>(reply_subject(token));
    if (!std::holds_alternative<Accepted>(claimed.body)) throw std::runtime_error("no claim of " + token);
    publish(kSubjects.worker_control("PROBE", worker_), encode(Control{kFleet, Go{{claimed.job, claimed.token}}}));
  }
  JobResult result(const std::string& token) {
    const auto reply = next<JobReply>(reply_subject(token),
                                      [](const JobReply& it) { return std::holds_alternative<JobResult>(it.body); });
    return std::get<JobResult>(reply.body);
  }
  /// The results that come next, by token.
  std::map<std::string, JobResult> results(std::size_t count) {
    std::map<std::string, JobResult> found;
    until([&](const Message& message) {
      if (!message.subject.starts_with("muster.reply.")) return false;
      const auto reply = decode<JobReply>(message.data).value();
      if (const auto* result = std::get_if<JobResult>(&reply.body)) found.emplace(reply.token.value, *result);
      return found.size() == count;
    });
    return found;
  }
  Json ask(const std::string& subject) {
    const std::string inbox = bus_->inbox() + ".ask";
    publish(subject, "{}", inbox);
    Json answer;
    until([&](const Message& message) {
      if (message.subject != inbox) return false;
      answer = Json::parse(message.data);
      return true;
    });
    return answer;
  }
  void publish(const std::string& subject, Bytes data, const std::string& reply = {}) {
    bus_->publish({subject, reply, std::move(data), {}}).value();
    bus_->flush(kPatience).value();
  }
  static std::string reply_subject(const std::string& token) {
    return kSubjects.reply("PROBE", kCoordinator, Token(token));
  }
  [[nodiscard]] const WorkerId& worker() const { return worker_; }
  [[nodiscard]] const std::string& last_reply() const { return last_reply_; }  // of what next() gave
  [[nodiscard]] const std::string& last_data() const { return last_data_; }

 private:
  /// Turns the loop until a message satisfies; throws when patience ends.
  template <typename Predicate>
  void until(Predicate satisfied) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (arrived_.empty()) {
        bus_->wait(std::chrono::steady_clock::now() + 100ms);
        bus_->receive(arrived_, 100);
      }
      while (!arrived_.empty()) {
        const Message message = std::move(arrived_.front());
        arrived_.erase(arrived_.begin());
        if (satisfied(message)) return;
      }
    }
    throw std::runtime_error("what the test waits for does not come");
  }

  std::unique_ptr<NatsBus> bus_;
  std::vector<Message> arrived_;
  std::string last_reply_, last_data_;
  WorkerId worker_;
};

}  // namespace

TEST_CASE("a worker process announces itself, runs jobs, is seen by $SRV and drains on SIGTERM") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url(), "--slots", "3", "--allow-env", "PROBE_*"});
  const Announcement said = coordinator.accept();
  CHECK(said.plugin == "probe");
  CHECK(said.slots == 3);
  CHECK(said.pid != 0);
  CHECK_FALSE(said.host.empty());

  coordinator.dispatch("list", ListJob{});
  const auto page = std::get<ListResult>(coordinator.result("list"));
  CHECK(page.items == std::vector<Item>{{"one", "", R"({"n":1})"}});

  const Document config{R"({"secret":null})", {{"/secret", {{SecretPart::Kind::kEnv, "PROBE_SECRET"}}}}};
  coordinator.dispatch("read", ReadJob{{"x"}}, config);
  const auto read = std::get<ReadResult>(coordinator.result("read"));
  CHECK(std::get<Item>(read.items.front()).properties == R"({"secret":"***"})");

  const Json info = coordinator.ask("$SRV.INFO.muster-probe");
  CHECK(info["id"] == said.worker.value);
  CHECK(info["endpoints"][0]["subject"] == "muster.job.PROBE");
  CHECK(coordinator.ask("$SRV.STATS")["endpoints"][0]["num_requests"] == 2);

  coordinator.dispatch("slow", ReadJob{{"a-while"}});
  const auto accepted = coordinator.next<JobReply>(Coordinator::reply_subject("slow"));
  CHECK(std::holds_alternative<Accepted>(accepted.body));
  process.signal(SIGTERM);
  coordinator.next<Heartbeat>(kSubjects.heartbeat("PROBE"), [](const Heartbeat& beat) { return beat.draining; });
  CHECK(std::holds_alternative<ReadResult>(coordinator.result("slow")));
  CHECK(process.wait() == 0);

  CHECK(process.out().empty());  // what plugin code prints goes to the log
  CHECK_THAT(process.log(), Catch::Contains("printed by plugin code") &&
                                Catch::Contains("job=job-list token=list target=target listing") &&
                                Catch::Contains("function=cleanup cleans up") && Catch::Contains("printed by cleanup"));
  CHECK_THAT(process.log(), !Catch::Contains("s3cret"));
}

TEST_CASE("asynchronous jobs are answered from wherever their answers come") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url(), "--slots", "16"});
  coordinator.accept();
  const auto read = [&](const std::string& id) { coordinator.dispatch(id, ReadJob{{id}}, {}, "PROBE::Remote"); };
  const std::vector<std::string> ways{"after", "block", "thread", "at-once"};
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 16; ++i) read(ways[i % ways.size()] + "-" + std::to_string(round * 16 + i));
    for (const auto& [token, result] : coordinator.results(16)) {
      const auto& item = std::get<ReadResult>(result).items.front();
      CHECK(std::get<Item>(item).properties == R"({"id":")" + token + R"("})");
    }
  }
  CHECK(coordinator.ask("$SRV.STATS")["endpoints"][0]["num_requests"] == 320);

  read("until-stopped");
  const auto accepted = coordinator.next<JobReply>(Coordinator::reply_subject("until-stopped"));
  CHECK(std::holds_alternative<Accepted>(accepted.body));
  coordinator.publish(kSubjects.worker_control("PROBE", coordinator.worker()),
                      encode(Control{kFleet, Cancel{{accepted.job, accepted.token}}}));
  CHECK(std::get<Error>(coordinator.result("until-stopped")).code == Errc::kCancelled);
  process.signal(SIGTERM);
  CHECK(process.wait() == 0);
  CHECK_THAT(process.log(), Catch::Contains("token=after-0 target=target answers after-0"));
}

TEST_CASE("a worker started before its server and its coordinator waits for both") {
  NatsServer server;
  const std::string url = server.url();
  server.stop();
  WorkerProcess process(server, {"--nats", url});
  process.wait_for_log("cannot connect");
  server.start();
  Coordinator coordinator(server);
  CHECK(coordinator.accept().plugin == "probe");
  process.signal(SIGINT);
  CHECK(process.wait() == 0);
}

TEST_CASE("a worker survives its server, and announces the job that it still runs") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url()});
  coordinator.accept();
  coordinator.dispatch("long", ReadJob{{"until-stopped"}});
  CHECK(std::holds_alternative<Accepted>(coordinator.next<JobReply>(Coordinator::reply_subject("long")).body));
  server.kill();
  server.start();
  const auto said = coordinator.next<Announcement>(kSubjects.announce("PROBE"));
  CHECK(said.running == std::vector<Running>{{JobId("job-long"), Token("long")}});
  coordinator.publish(kSubjects.worker_control("PROBE", coordinator.worker()),
                      encode(Control{kFleet, Cancel{{JobId("job-long"), Token("long")}}}));
  CHECK(std::get<Error>(coordinator.result("long")).code == Errc::kCancelled);
}

namespace {

/// The results that workers of the default pool keep.
std::vector<std::filesystem::path> results_in(const NatsServer& server) {
  std::vector<std::filesystem::path> results;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(WorkerProcess::state_of(server))) {
    if (entry.path().extension() == ".result") results.push_back(entry.path());
  }
  return results;
}

JobOperation create(const std::string& name) {
  const Document properties{R"({"name":")" + name + R"(","secret":null})",
                            {{"/secret", {{SecretPart::Kind::kEnv, "PROBE_SECRET"}}}}};
  return CreateJob{"key-" + name, properties, {}};
}

}  // namespace

TEST_CASE("a worker that is killed before its result is acknowledged has it delivered by the next one, as it was") {
  NatsServer server;
  Coordinator coordinator(server);
  std::string said;
  {
    WorkerProcess process(server, {"--nats", server.url(), "--allow-env", "PROBE_*"});
    coordinator.accept();
    coordinator.dispatch("lost", create("never-done"));
    coordinator.go("lost");
    process.wait_for_log("creating never-done");
    coordinator.dispatch("done", create("thing"));
    coordinator.go("done");
    const auto result = std::get<MutationResult>(coordinator.result("done"));
    CHECK(result.native_id == "thing");
    CHECK(result.properties == R"({"name":"thing","secret":"***"})");
    CHECK_FALSE(coordinator.last_reply().empty());
    said = coordinator.last_data();
    process.signal(SIGKILL);
    CHECK(process.wait() == -1);
  }
  CHECK(results_in(server).size() == 2);
  WorkerProcess next(server, {"--nats", server.url()});
  const Announcement announced = coordinator.accept();
  const auto reply = coordinator.next<JobReply>(kSubjects.result("PROBE"));
  CHECK(coordinator.last_data() == said);
  CHECK(reply.worker != announced.worker);  // it says whose result it is
  REQUIRE(results_in(server).size() == 1);
  CHECK_THAT(next.log(), Catch::Contains("token=lost") && Catch::Contains("died before this change had a result"));
  CHECK(said.find("s3cret") == std::string::npos);
  CHECK(slurp(results_in(server).front()).find("s3cret") == std::string::npos);

  coordinator.publish(coordinator.last_reply(), encode(ResultAck{reply.job, reply.token, Verdict::kCommitted, ""}));
  next.signal(SIGTERM);
  CHECK(next.wait() == 0);
  CHECK(std::filesystem::is_empty(WorkerProcess::state_of(server) / "muster" / "PROBE" / "default"));
}

TEST_CASE("a worker without a state directory reads, refuses changes, and says what to do") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url(), "--state-dir", "/dev/null/state"});
  coordinator.accept();
  coordinator.dispatch("create", create("thing"));
  CHECK(std::get<Error>(coordinator.result("create")).code == Errc::kThrottling);
  coordinator.dispatch("list", ListJob{});
  CHECK(std::holds_alternative<ListResult>(coordinator.result("list")));
  CHECK_THAT(process.log(),
             Catch::Contains("refuses all changes") && Catch::Contains("--state-dir") && !Catch::Contains("creating"));
}

TEST_CASE("a rejected worker exits with 1 and its log says why") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url()});
  coordinator.next<Announcement>(kSubjects.announce("PROBE"));
  coordinator.publish(
      coordinator.last_reply(),
      encode(AnnouncementReply{kFleet,
                               kCoordinator,
                               Rejection{.code = "PROTOCOL", .message = "a newer worker is needed", .final = true},
                               {}}));
  CHECK(process.wait() == 1);
  CHECK_THAT(process.log(), Catch::Contains("a newer worker is needed"));
}

TEST_CASE("a worker whose plugin cannot initialize exits with 1, and its log says what to do") {
  NatsServer server;
  WorkerProcess process(server, {"--nats", server.url()}, {{"PROBE_CREDENTIAL", "PROBE_SECRET"}});
  CHECK(process.wait() == 1);
  CHECK_THAT(process.log(), Catch::Contains("cannot initialize code=ACCESS_DENIED: no credential PROBE_SECRET") &&
                                Catch::Contains("--allow-env") && !Catch::Contains("cleans up") &&
                                !Catch::Contains("s3cret"));
}

TEST_CASE("an ill plugin stands in heartbeats with the reason, less its credential, and works on") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url(), "--slots", "1", "--allow-env", "PROBE_*"},
                        {{"PROBE_CREDENTIAL", "PROBE_SECRET"}, {"PROBE_HEALTH", "no access"}});
  coordinator.accept();
  const auto ill =
      coordinator.next<Heartbeat>(kSubjects.heartbeat("PROBE"), [](const Heartbeat& beat) { return !beat.healthy; });
  CHECK(ill.health == "no access with ***");
  CHECK(ill.free_slots == 1);
  coordinator.dispatch("list", ListJob{});
  CHECK(std::holds_alternative<ListResult>(coordinator.result("list")));
  process.signal(SIGTERM);
  CHECK(process.wait() == 0);
  CHECK_THAT(process.log(), Catch::Contains("function=cleanup cleans up with ***") && !Catch::Contains("s3cret"));
}

TEST_CASE("a cleanup that hangs does not keep the process") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url()}, {{"PROBE_CLEANUP", "hangs"}});
  coordinator.accept();
  process.signal(SIGTERM);
  CHECK(process.wait() == 0);
  CHECK_THAT(process.log(), Catch::Contains("cleanup has not returned for") && !Catch::Contains("printed by"));
}

TEST_CASE("a thread of the plugin that never ends does not keep the process") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url()}, {{"PROBE_THREAD", "endless"}});
  coordinator.accept();
  process.signal(SIGTERM);
  CHECK(process.wait() == 0);
  CHECK_THAT(process.log(), Catch::Contains("printed by cleanup") && Catch::Contains("threads or destructors"));
}

TEST_CASE("a second signal ends the worker at once") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url()});
  coordinator.accept();
  coordinator.dispatch("long", ReadJob{{"until-stopped"}});
  coordinator.next<JobReply>(Coordinator::reply_subject("long"));
  process.signal(SIGTERM);
  coordinator.next<Heartbeat>(kSubjects.heartbeat("PROBE"), [](const Heartbeat& beat) { return beat.draining; });
  process.signal(SIGTERM);
  CHECK(process.wait() == 1);
}

TEST_CASE("a second signal is no news to a worker that a supervisor keeps") {
  NatsServer server;
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--nats", server.url()}, {{"MUSTER_SUPERVISOR", std::to_string(::getpid())}});
  coordinator.accept();
  coordinator.dispatch("long", ReadJob{{"until-stopped"}});
  coordinator.next<JobReply>(Coordinator::reply_subject("long"));
  const auto drains = [](const Heartbeat& beat) { return beat.draining; };
  for (int i = 0; i < 2; ++i) {
    process.signal(SIGTERM);
    coordinator.next<Heartbeat>(kSubjects.heartbeat("PROBE"), drains);
  }
  coordinator.publish(kSubjects.worker_control("PROBE", coordinator.worker()),
                      encode(Control{kFleet, Cancel{{JobId("job-long"), Token("long")}}}));
  CHECK(process.wait() == 0);
}

TEST_CASE("the command line of a plugin") {
  NatsServer server;
  const auto run = [&](std::vector<std::string> arguments, int status) {
    WorkerProcess process(server, std::move(arguments));
    CHECK(process.wait() == status);
    return std::make_pair(process.out(), process.log());
  };
  CHECK_THAT(run({"--help"}, 0).first, Catch::Contains("Probes the worker SDK") && Catch::Contains("Example:"));
  CHECK(run({"--version"}, 0).first == "muster-plugin-probe 1.0.0\n");
  const Json manifest = Json::parse(run({"--manifest"}, 0).first);
  CHECK(manifest["namespace"] == "PROBE");
  CHECK(manifest["types"][0]["operations"] == Json{"list", "read", "create"});
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--no-such-option"},
                                                {"--slots", "0"},
                                                {"--slots", "1025"},
                                                {"--pool", "no pool"},
                                                {"--prefix", "a..b"},
                                                {"--creds", "/no/such/file"},
                                                {"-v", "-q"},
                                                {"operand"}}) {
    INFO(wrong.front());
    const auto [out, log] = run(wrong, 2);
    CHECK(out.empty());
    CHECK_FALSE(log.empty());
  }
}

TEST_CASE("without --nats and environment the file of a running `muster up` says where the fleet is") {
  NatsServer server;
  std::ofstream(server.directory() / "nats.url") << server.url() << "\n";
  ::unsetenv("MUSTER_NATS_URL");
  Coordinator coordinator(server);
  WorkerProcess process(server, {"--data-dir", server.directory().string()});
  CHECK(coordinator.accept().plugin == "probe");
}
