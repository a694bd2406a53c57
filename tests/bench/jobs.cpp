// Jobs through dispatch, lease and result (job_desk_main.cpp): beside requests and replies of the same bytes without
// any meaning, and by the number of workers.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/bench/bench.h"
#include "tests/bench/stopwatch.h"

namespace muster::bench {
namespace {

using nlohmann::json;

/// CPU seconds of all processes that we have started and that have ended.
double children_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/// A server, and workers that are started anew for each desk: one that knows a fleet does not serve another.
class Workers {
 public:
  void add(const std::string& plugin, std::uint32_t count, std::uint32_t slots) {
    const std::vector<std::string> words{test::built("muster-plugin-" + plugin),
                                         "--nats",
                                         server_.url(),
                                         "--slots",
                                         std::to_string(slots),
                                         "--data-dir",
                                         scratch_.path};
    for (std::uint32_t i = 0; i < count; ++i)
      programs_.push_back({words, {}, scratch_.path / "out", scratch_.path / "err"});
  }
  [[nodiscard]] std::string url() const { return server_.url(); }
  /// What `bench_desk WORDS` says, once all workers are in; `cores`, too: how many it and they kept busy.
  [[nodiscard]] json desk(std::vector<std::string> words) const {
    const auto before = children_seconds();
    const Stopwatch watch;
    words.insert(words.end(), {"--workers", std::to_string(programs_.size())});
    json said;
    {
      Processes processes;
      for (const auto& program : programs_) processes.pids.push_back(test::spawn(program));
      said = run_program("bench_desk", words, server_.url());
    }
    said["cores"] = (children_seconds() - before) / watch.seconds();
    return said;
  }

 private:
  test::NatsServer server_;
  test::Scratch scratch_;
  std::vector<test::Program> programs_;
};

/// As many requests and replies of the sizes that `like` tells of; `more` words for those who ask.
json requests(const std::string& url, const std::string& count, const std::string& window, const json& like,
              const std::vector<std::string>& more = {}) {
  const std::vector<std::string> sizes{"--request", like.at("job_bytes").dump(), "--reply",
                                       like.at("reply_bytes").dump()};
  auto words = sizes;
  words.insert(words.begin(), "echo");
  const Processes echo{{start_program("bench_yardstick", words, url, "/dev/null")}};
  words = sizes;
  words.insert(words.begin(), "requests");
  words.insert(words.end(), {"--count", count, "--window", window});
  words.insert(words.end(), more.begin(), more.end());
  return run_program("bench_yardstick", words, url);
}

/// As many jobs of 20 ms and of the sizes that `like` tells of as workers with so many slots do that know nothing else.
double slow_requests(const std::string& url, std::uint32_t workers, std::uint32_t slots, const json& like,
                     const std::string& seconds) {
  Processes processes;
  for (std::uint32_t i = 0; i < workers; ++i) {
    const std::vector<std::string> words{"slots", "--place", std::to_string(i), "--reply",
                                         like.at("reply_bytes").dump()};
    processes.pids.push_back(start_program("bench_yardstick", words, url, "/dev/null"));
  }
  const std::vector<std::string> words{
      "slow-requests", "--window",  std::to_string(slots),      "--count", std::to_string(workers), "--seconds",
      seconds,         "--request", like.at("job_bytes").dump()};
  return run_program("bench_yardstick", words, url).at("per_second").get<double>();
}

/// Another job system in the same shape (peers/run.py), jobs a second; none where it is not installed.
std::optional<double> peer(const std::string& name, const Options& options) {
  const auto* source = std::getenv("MUSTER_SOURCE_DIR");
  if (source == nullptr) throw std::runtime_error("MUSTER_SOURCE_DIR is not set: use run.sh");
  const test::Scratch scratch;
  const auto out = scratch.path / "out";
  const auto script = std::string(source) + "/tests/bench/peers/run.py";
  const std::vector<std::string> words{"/usr/bin/python3", script, name, "--seconds", options.quick ? "1" : "3"};
  constexpr int kNotInstalled = 3;
  const auto status = test::wait_for(test::spawn({words, {}, out, "/dev/stderr"}));
  if (status == kNotInstalled) return std::nullopt;
  if (status != 0) throw std::runtime_error(name + " failed");
  return json::parse(test::slurp(out)).at("per_second").get<double>();
}

}  // namespace

void jobs(const Options& options, Report& report) {
  const auto few = std::to_string(options.quick ? 1'000 : 10'000),
             many = std::to_string(options.quick ? 50'000 : 200'000);
  Workers workers;
  workers.add("fake", 1, 256);
  std::vector<double> p50, raw_p50, p99, raw_p99, rate, raw_rate, same_rate;
  for (int i = 0; i < options.rounds; ++i) {
    const auto one = workers.desk({"reads", "--count", few, "--window", "1"});
    const auto raw_one = requests(workers.url(), few, "1", one);
    p50.push_back(1e6 * one.at("p50").get<double>());
    p99.push_back(1e6 * one.at("p99").get<double>());
    raw_p50.push_back(1e6 * raw_one.at("p50").get<double>());
    raw_p99.push_back(1e6 * raw_one.at("p99").get<double>());
    const auto wide = workers.desk({"reads", "--count", many, "--window", "256"});
    const auto raw_wide = requests(workers.url(), many, "256", wide);
    rate.push_back(std::stod(many) / wide.at("seconds").get<double>());
    raw_rate.push_back(std::stod(many) / raw_wide.at("seconds").get<double>());
    const auto same_wide = requests(workers.url(), many, "256", wide, {"--same-subjects"});
    same_rate.push_back(std::stod(many) / same_wide.at("seconds").get<double>());
  }
  report.add({"jobs/p50", "us", p50, "request/reply", raw_p50, Bound::kAtMost, 2, 3});
  report.add({"jobs/p99", "us", p99, "request/reply", raw_p99, Bound::kAtMost});
  report.add({"jobs/256 in flight", "jobs/s", rate, "request/reply", raw_rate, Bound::kAtLeast, 0.6, 0.4});
  report.add({"jobs/256, same subjects", "jobs/s", rate, "request/reply, subjects again", same_rate});
}

void peers(const Options& options, Report& report) {
  const std::uint32_t count = options.quick ? 20'000 : 200'000;
  Workers workers;
  workers.add("fake", 2, 128);
  std::map<std::string, std::vector<double>> rates, ours;
  std::set<std::string> missing;
  for (int i = 0; i < options.rounds; ++i) {
    const auto wide = workers.desk({"reads", "--count", std::to_string(count), "--window", "256"});
    for (const auto* name : {"gearman", "beanstalkd", "nats.js", "bullmq", "celery"}) {
      if (missing.contains(name)) continue;
      const auto rate = peer(name, options);
      if (!rate) {
        missing.insert(name);
        std::fprintf(stderr, "peers: %s is not installed\n", name);
        continue;
      }
      rates[name].push_back(*rate);
      ours[name].push_back(count / wide.at("seconds").get<double>());
    }
  }
  for (const auto& [name, theirs] : rates) report.add({"peers/" + name, "jobs/s", ours[name], name, theirs});
}

void scale(const Options& options, Report& report) {
  constexpr std::uint32_t kSlots = 4;
  constexpr double kGoal = 0.95;
  constexpr double kFull = 0.9;   // of a core, or of all: beyond, more workers cannot bring more,
  constexpr double kOurs = 0.25;  // unless it is others who keep the cores busy
  for (const std::uint32_t count : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    Workers workers;
    workers.add("fake", count, kSlots);
    std::vector<double> rates, linear, straight, own, all, ours;
    for (int i = 0; i < std::min(options.rounds, 3); ++i) {
      const std::string seconds = options.quick ? "0.5" : "2";
      const auto said = workers.desk({"rate", "--window", std::to_string(2 * kSlots * count), "--seconds", seconds});
      straight.push_back(slow_requests(workers.url(), count, kSlots, said, seconds));
      rates.push_back(said.at("per_second").get<double>());
      linear.push_back(kSlots * count / 0.020);
      own.push_back(said.at("own"));
      all.push_back(said.at("all"));
      ours.push_back(said.at("cores").get<double>() / std::thread::hardware_concurrency());
    }
    Figure figure{"scale/" + std::to_string(count), "jobs/s", rates, "linear", linear};
    const bool linear_still = median(rates) >= kGoal * linear.front();
    if (!linear_still && (median(own) > kFull || (median(all) > kFull && median(ours) > kOurs))) {
      figure.yardstick += "; a core is full";
    } else {
      figure.goal = kGoal;
      figure.floor = 0.9;
    }
    report.add(figure);
    report.add(
        {"scale/" + std::to_string(count) + ", straight-line", "jobs/s", rates, "workers with a timer", straight});
  }
  Workers workers;
  workers.add("fake", 4, kSlots);
  workers.add("fs", 1, kSlots);
  std::vector<double> alone, flooded;
  for (int i = 0; i < options.rounds; ++i) {
    const auto p99 = [&](const char* flood) {
      const auto said = workers.desk({"probe", "--count", "1000", "--window", flood});
      return 1000 * said.at("p99").get<double>();
    };
    alone.push_back(p99("0"));
    flooded.push_back(p99("10000"));
  }
  report.add({"scale/flood p99", "ms", flooded, "p99 without it", alone, Bound::kAtMost, 2, 2});
}

}  // namespace muster::bench
