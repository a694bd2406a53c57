// A worker that speaks the protocol without the SDK, and badly: what the SDK would have refused, and bytes that are no
// messages.

#include <spdlog/logger.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "support/fake_worker.h"
#include "support/nats_client.h"
#include "support/parts_fleet.h"
#include "worker_sdk/bus/nats_bus.h"

using namespace muster;
using test::FakeSystem;
using test::FakeWorker;
using test::PartsFleet;
using Json = nlohmann::json;

namespace {

using Ids = std::set<std::string>;
using Behaviour = FakeWorker::Behaviour;

constexpr char kType[] = "RAW::Thing";

/// Sends a body of any kind, or bytes, as the reply to a job.
struct Voice {
  FakeWorker& worker;
  Bus& bus;

  void say(const Job& job, Bytes bytes) const {
    const auto& coordinator = worker.answers.back().coordinator;
    static_cast<void>(bus.publish({Subjects().reply(job.ns, coordinator, job.token), {}, std::move(bytes), {}}));
  }
  [[nodiscard]] JobReply reply(const Job& job, decltype(JobReply::body) body) const {
    return {job.fleet, job.id, job.token, worker.announcement.worker, job.attempt, 1, std::move(body)};
  }
};

using Answer = std::function<Behaviour(const Job&, const Voice&)>;

struct Case {
  Ids known;                    // native ids in the end
  std::set<std::string> codes;  // that problems may have; empty: there is none
  Answer list;
  Answer read{};  // nothing: the ids are not found
};

Item item(const std::string& id, const std::string& properties) {
  return {id, {}, properties};
}

/// A page of one good thing and these.
Answer page(std::vector<Item> items) {
  items.insert(items.begin(), item("good", R"({"name":"good"})"));
  return [items](const Job&, const Voice&) { return JobResult(ListResult{items, {}, {}, 0}); };
}

Answer always(JobResult result) {
  return [result](const Job&, const Voice&) { return result; };
}

/// Says other bytes instead of a reply.
Answer bytes(std::function<Bytes(const Job&, const Voice&)> make) {
  return [make](const Job& job, const Voice& voice) -> Behaviour {
    voice.say(job, make(job, voice));
    return FakeWorker::Silent{};
  };
}

std::string nested(int depth) {
  return R"({"name":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
}

const std::set<std::string> kBroken{"CONTRACT", "INTERNAL_FAILURE"};
const std::set<std::string> kLate{"TIMEOUT", "INTERNAL_FAILURE"};

const std::map<std::string, Case>& cases() {
  static const ListResult kGood{{item("good", R"({"name":"good"})")}, {}, {}, 0};
  static const Answer kIds =
      always(ListResult{{item("good", R"({"name":"good"})"), item("a", ""), item("b", "")}, {}, {}, 0});
  static const std::map<std::string, Case> kCases{
      {"good", {{"good"}, {}, page({})}},
      {"twice-said",
       {{"good"},
        {},
        [](const Job& job, const Voice& voice) -> Behaviour {
          voice.say(job, encode(voice.reply(job, JobResult(kGood))));
          return JobResult(ListResult{{item("good", R"({"name":"good"})"), item("late", "{}")}, {}, {}, 0});
        }}},
      {"broken-json", {{"good"}, kBroken, page({item("bad", R"({"name":)")})}},
      {"no-object", {{"good"}, kBroken, page({item("bad", R"(["name"])"), item("worse", "null"), item("worst", "x")})}},
      {"deep-json", {{"good"}, {"CONTRACT", "INTERNAL_FAILURE", "LIMIT"}, page({item("bad", nested(100'000))})}},
      {"not-utf8", {{}, kBroken, page({item("bad", "{\"name\":\"\xff\"}"), item("\xff", "{}")})}},
      {"no-id", {{}, kBroken, page({item("", "{}")})}},
      {"long-id", {{}, {"CONTRACT", "INTERNAL_FAILURE", "LIMIT"}, page({item(std::string(20'000, 'i'), "{}")})}},
      {"large", {{"good"}, {"LIMIT"}, page({item("bad", R"({"name":")" + std::string(300'000, 'x') + R"("})")})}},
      {"twice-in-page", {{"good", "b"}, {"DUPLICATE_ID"}, page({item("b", "{}"), item("b", R"({"n":2})")})}},
      {"read-for-list", {{}, kBroken, always(ReadResult{{item("a", "{}")}})}},
      {"inspect-for-list", {{}, kBroken, always(InspectResult{})}},
      {"change-for-list", {{}, kBroken, always(MutationResult{})}},
      {"list-for-read", {{"good"}, kBroken, kIds, always(kGood)}},
      {"too-few", {{"good"}, kBroken, kIds, always(ReadResult{{item("a", "{}")}})}},
      {"too-many", {{"good"}, kBroken, kIds, always(ReadResult{{item("a", "{}"), item("b", "{}"), item("c", "{}")}})}},
      {"exchanged", {{"good"}, kBroken, kIds, always(ReadResult{{item("b", "{}"), item("a", "{}")}})}},
      {"no-code", {{}, {"INTERNAL_FAILURE"}, always(Error{static_cast<Errc>(65'000), "code 65000", {}, 0})}},
      {"garbage", {{}, kBroken, bytes([](const Job&, const Voice&) { return Bytes("\xff\xff\xff\xff garbage"); })}},
      {"empty", {{}, kBroken, bytes([](const Job&, const Voice&) { return Bytes(); })}},
      {"cut", {{}, kBroken, bytes([](const Job& job, const Voice& voice) {
                 auto whole = encode(voice.reply(job, JobResult(kGood)));
                 whole.resize(whole.size() / 2);
                 return whole;
               })}},
      {"wrong-part", {{}, {"TIMEOUT", "CONTRACT", "INTERNAL_FAILURE"}, bytes([](const Job& job, const Voice& voice) {
                        return encode(voice.reply(job, Part{7, 2, "x"}));
                      })}},
      {"no-last-part", {{}, kLate, bytes([](const Job& job, const Voice& voice) {
                          return encode(voice.reply(job, Part{0, 2, "x"}));
                        })}},
      {"part-of-nothing", {{}, kBroken, bytes([](const Job& job, const Voice& voice) {
                             return encode(voice.reply(job, Part{0, 1, "\xff\xff no reply"}));
                           })}},
      {"other-fleet", {{}, kLate, bytes([](const Job& job, const Voice& voice) {
                         auto reply = voice.reply(job, JobResult(kGood));
                         reply.fleet = FleetId("another");
                         return encode(reply);
                       })}},
      {"other-job", {{}, kLate, bytes([](const Job& job, const Voice& voice) {
                       auto reply = voice.reply(job, JobResult(kGood));
                       reply.job = JobId("another");
                       return encode(reply);
                     })}},
      {"silent", {{}, kLate, [](const Job&, const Voice&) { return FakeWorker::Silent{}; }}},
      {"accepted-only", {{}, kLate, [](const Job&, const Voice&) { return FakeWorker::Hold{}; }}},
      {"always-busy",
       {{}, {"TIMEOUT", "INTERNAL_FAILURE", "NO_WORKER"}, [](const Job&, const Voice&) { return Busy{}; }}},
  };
  return kCases;
}

/// Those that cost their worker's time stand in a pool of their own.
std::string pool_of(const Case& one) {
  return one.codes.contains("TIMEOUT") ? "late" : "default";
}

/// A worker on a thread of its own, until it is destroyed.
class RawWorker {
 public:
  RawWorker(const std::string& url, const std::string& pool) {
    thread_ = std::jthread([this, url, pool](const std::stop_token& stop) { run(stop, url, pool); });
  }

 private:
  void run(const std::stop_token& stop, const std::string& url, const std::string& pool) {
    NatsOptions options;
    options.url = url;
    auto connected = NatsBus::connect(options, std::make_shared<spdlog::logger>("raw"));
    auto& bus = *connected.value();
    const SystemClock clock;
    FakeSystem system;
    auto manifest = test::make_manifest({{kType, ""}}, "RAW");
    manifest.plugin = "raw";
    FakeWorker worker(std::move(*connected), clock, "raw-" + pool, manifest, system);
    worker.announcement.pool = pool;
    worker.announcement.slots = 64;
    worker.persistent = true;
    const Voice voice{worker, bus};
    worker.on_job = [&](const Job& job) -> Behaviour {
      const auto& one = cases().at(job.target.name);
      if (std::holds_alternative<ListJob>(job.operation)) return one.list(job, voice);
      if (std::holds_alternative<ReadJob>(job.operation) && one.read) return one.read(job, voice);
      return {};  // as a good plugin would
    };
    worker.announce();
    while (!stop.stop_requested()) {
      bus.wait(std::min(worker.next_due(), clock.now() + std::chrono::milliseconds(100)));
      worker.turn();
    }
  }

  std::jthread thread_;
};

std::vector<Json> of_target(const Json& list, const std::string& target) {
  std::vector<Json> found;
  for (const auto& one : list) {
    if (one["target"] == target) found.push_back(one);
  }
  return found;
}

}  // namespace

TEST_CASE("whatever a worker says, the fleet goes on and the run ends with a word of it") {
  PartsFleet fleet;
  std::string config =
      "discovery: {interval: 0s}\nretry: {attempts: 2, base: 20ms, max: 50ms}\nlimits: {job_deadline: 8s}\ntargets:\n"
      "  - {name: healthy, namespace: FAKE, config: {resources: 200, page: 20}, discover: false}\n";
  std::vector<std::string> named{"--target", "healthy"};
  for (const auto& [name, one] : cases()) {
    config += "  - {name: " + name + ", namespace: RAW, pool: " + pool_of(one) + ", discover: false}\n";
    named.insert(named.end(), {"--target", name});
  }
  fleet.configure(config);
  fleet.add_worker({"fake"});
  const RawWorker quick(fleet.nats.url(), "default"), late(fleet.nats.url(), "late");
  REQUIRE(PartsFleet::eventually([&] { return fleet.json({"workers"}).size() == 3; }));

  const auto report = fleet.discover(named);
  CHECK(report["state"] == "partial");
  const auto healthy = of_target(report["scans"], "healthy");
  REQUIRE(healthy.size() == 1);
  CHECK(healthy[0]["complete"] == true);
  CHECK(healthy[0]["listed"] == 200);
  CHECK(of_target(report["problems"], "healthy").empty());
  for (const auto& [name, one] : cases()) {
    INFO(name);
    const auto problems = of_target(report["problems"], name);
    CHECK(problems.empty() == one.codes.empty());
    for (const auto& problem : problems) {
      INFO(problem.dump().substr(0, 500));
      CHECK(one.codes.count(problem["code"]) == 1);
      CHECK(problem["type"] == kType);
      CHECK_THAT(problem.value("plugin", ""), Catch::StartsWith("raw"));
      CHECK_FALSE(problem.value("job", "").empty());
    }
    for (const auto& scan : of_target(report["scans"], name)) CHECK(scan["complete"] == one.codes.empty());
    Ids known;
    for (const auto& row : fleet.resources({"--target", name})) CHECK(known.insert(row["native_id"]).second);
    CHECK(known == one.known);
  }
  CHECK(fleet.discover({"--target", "healthy", "--target", "good"})["state"] == "complete");
  CHECK(fleet.stop_coordinator() == 0);
}

TEST_CASE("requests for answers where none can be sent are counted as malformed") {
  constexpr int kAsked = 500;
  PartsFleet fleet;
  fleet.configure("discovery: {interval: 0s}\n");
  test::NatsClient client(fleet.nats.url());
  for (int i = 0; i < kAsked; ++i) client.ask("muster.api.status", "answers.*", "{}");
  REQUIRE(PartsFleet::eventually([&] { return fleet.json({"status"})["malformed"] >= kAsked; }));
  CHECK(fleet.stop_coordinator() == 0);
}
