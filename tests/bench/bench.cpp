#include "tests/bench/bench.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <sstream>
#include <stdexcept>

#include "tests/bench/stopwatch.h"

namespace muster::bench {

using nlohmann::json;

Usage usage(const std::vector<pid_t>& pids) {
  Usage sum;
  for (const auto pid : pids) {
    const auto at = std::filesystem::path("/proc") / std::to_string(pid);
    for (const auto& thread : std::filesystem::directory_iterator(at / "task")) {
      double nanoseconds = 0;  // the ticks of `stat` are too coarse for what idles
      std::istringstream(test::slurp(thread.path() / "schedstat")) >> nanoseconds;
      sum.cpu_seconds += nanoseconds / 1e9;
    }
    std::istringstream status(test::slurp(at / "io") + test::slurp(at / "status"));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("rchar:") || line.starts_with("wchar:")) sum.read_written += std::stod(line.substr(6));
      if (line.starts_with("VmHWM:")) sum.peak_mb += std::stod(line.substr(6)) / 1024;
      if (line.starts_with("VmRSS:")) sum.resident_mb += std::stod(line.substr(6)) / 1024;
    }
  }
  return sum;
}

namespace {

std::string bench_config(const std::string& cloud, int workers, std::uint32_t slots, const std::string& url) {
  return (url.empty() ? "" : "nats: {url: '" + url + "'}\n") +
         "workers: [{plugin: fake, count: " + std::to_string(workers) + ", slots: " + std::to_string(slots) +
         "}]\n"
         "discovery: {interval: 0s}\n"
         "targets:\n"
         "  - name: cloud\n"
         "    namespace: FAKE\n"
         "    discover: false\n"
         "    config: {" +
         cloud +
         "}\n"
         "    filters:\n"
         "      - {types: [], action: exclude, conditions: [{tag: {keys: [Temp], value: \"true\"}}]}\n"
         "      - {types: [], action: exclude, conditions: [{property: {path: $.name, op: regex, value: ^tmp_}}]}\n";
}

double seconds_of(const json& run, json* report) {
  if (run.at("state") != "complete") throw std::runtime_error("the run is not complete: " + run.dump());
  if (report != nullptr) *report = run;
  return run.at("duration_ms").get<double>() / 1000;
}

}  // namespace

BenchFleet::BenchFleet(const std::string& cloud, int workers, std::uint32_t slots, const std::string& url)
    : LiveFleet(bench_config(cloud, workers, slots, url)), workers_(workers), slots_(slots), url_(url) {
  if (!url.empty()) where_ = {"--nats", url};
  begin();
}

double BenchFleet::change(const std::string& cloud, Json* report) {
  if (stop() != 0) throw std::runtime_error("the fleet does not end well: " + log());
  configure(bench_config(cloud, workers_, slots_, url_));
  begin();
  const auto id = json({"targets", "accept", "cloud"}).at("run").get<std::string>();  // it might be another cloud
  Json run;
  const auto ended = [&] {
    run = json({"run", id});
    return run.at("state") != "running";
  };
  if (!eventually(ended)) throw std::runtime_error("the run does not end: " + log());
  return seconds_of(run, report);
}

void BenchFleet::begin() {
  start();
  const auto wanted = static_cast<std::size_t>(workers_);
  if (!eventually([&] { return json({"workers"}).size() >= wanted; })) throw std::runtime_error("no workers: " + log());
}

double BenchFleet::scan(Json* report) const {
  return seconds_of(discover({"--target", "cloud"}), report);
}

void BenchFleet::settle() const {
  const auto done = [&] {
    const auto events = json({"status"}).at("events");
    return events.at("last") == events.at("published");
  };
  for (const Stopwatch watch; !done();) {  // at once: the time until then is taken
    if (watch.seconds() > 180) throw std::runtime_error("events are not published: " + log());
  }
}

pid_t BenchFleet::start_worker() const {
  return test::spawn({command({"worker", "fake"}), {}, directory() / "worker.out", directory() / "worker.err"});
}

double BenchFleet::timed(const std::vector<std::string>& words, const std::filesystem::path& out,
                         double* peak_mb) const {
  const Stopwatch watch;
  const auto pid = test::spawn({command(words), {}, out, directory() / "timed.err"});
  int status = 0;
  rusage used{};
  while (::wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  const auto seconds = watch.seconds();
  if (peak_mb != nullptr) *peak_mb = static_cast<double>(used.ru_maxrss) / 1024;
  if (status != 0) throw std::runtime_error(words.front() + " failed: " + log());
  return seconds;
}

pid_t start_program(const std::string& program, const std::vector<std::string>& words, const std::string& url,
                    const std::filesystem::path& out) {
  std::vector<std::string> argv{test::built(program)};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.insert(argv.end(), {"--url", url});
  return test::spawn({argv, {}, out, "/dev/stderr"});
}

nlohmann::json run_program(const std::string& program, const std::vector<std::string>& words, const std::string& url) {
  const test::Scratch scratch;
  const auto out = scratch.path / "out";
  if (test::wait_for(start_program(program, words, url, out)) != 0) throw std::runtime_error(program + " failed");
  return json::parse(test::slurp(out));
}

Processes::~Processes() {
  for (const auto pid : pids) {
    ::kill(pid, SIGKILL);
    test::wait_for(pid);
  }
}

}  // namespace muster::bench
