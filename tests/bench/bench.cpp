#include "tests/bench/bench.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/bench/stopwatch.h"

namespace muster::bench {
namespace {

using nlohmann::json;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 1000 ? "%.0f" : value >= 10 ? "%.1f" : "%.3f", value);
  return text;
}

std::string or_dash(const std::optional<double>& value) {
  return value ? number(*value) : "-";
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void Report::add(const Figure& figure) {
  // The ratio is taken within each round: what else the machine does meets both.
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(figure.values.size(), figure.against.size()); ++i) {
    if (figure.against[i] > 0) ratios.push_back(figure.values[i] / figure.against[i]);
  }
  const auto value = median(figure.values);
  const auto [low, high] = std::ranges::minmax(figure.values);
  const auto ratio = median(ratios);
  const auto judged = ratios.empty() ? value : ratio;
  const auto reaches = [&](const std::optional<double>& bound) {
    return !bound || (figure.bound == Bound::kAtLeast ? judged >= *bound : judged <= *bound);
  };
  const char* verdict = !figure.goal ? "" : reaches(figure.goal) ? "ok" : reaches(figure.floor) ? "below goal" : "FAIL";
  if (!reaches(figure.floor)) failed_.push_back(figure.name);
  if (!std::exchange(titled_, true)) {
    std::fprintf(stderr, "%-28s %12s %25s %-8s %-22s %12s %8s %8s %8s\n", "NAME", "MEDIAN", "SPREAD", "UNIT",
                 "YARDSTICK", "ITS MEDIAN", "RATIO", "GOAL", "FLOOR");
  }
  const auto against = median(figure.against);
  std::fprintf(stderr, "%-28s %12s %25s %-8s %-22s %12s %8s %8s %8s %s\n", figure.name.c_str(), number(value).c_str(),
               (number(low) + ".." + number(high)).c_str(), figure.unit.c_str(), figure.yardstick.c_str(),
               figure.against.empty() ? "-" : number(against).c_str(), (ratios.empty() ? "-" : number(ratio)).c_str(),
               or_dash(figure.goal).c_str(), or_dash(figure.floor).c_str(), verdict);
  const auto optional = [](const std::optional<double>& bound) { return bound ? json(*bound) : json(); };
  const json line{{"name", figure.name},
                  {"value", value},
                  {"unit", figure.unit},
                  {"low", low},
                  {"high", high},
                  {"yardstick", figure.against.empty() ? json() : json{{"name", figure.yardstick}, {"value", against}}},
                  {"ratio", ratios.empty() ? json() : json(ratio)},
                  {"bound", figure.bound == Bound::kAtLeast ? "at least" : "at most"},
                  {"goal", optional(figure.goal)},
                  {"floor", optional(figure.floor)}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

Usage usage(const std::vector<pid_t>& pids) {
  Usage sum;
  for (const auto pid : pids) {
    const auto at = std::filesystem::path("/proc") / std::to_string(pid);
    std::istringstream stat(test::slurp(at / "stat"));
    std::string skipped;
    double user = 0, system = 0;
    for (int i = 0; i < 13; ++i) stat >> skipped;  // pid (name) state …; none of our names has a blank
    stat >> user >> system;
    sum.cpu_seconds += (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    std::istringstream status(test::slurp(at / "status"));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) sum.peak_mb += std::stod(line.substr(6)) / 1024;
      if (line.starts_with("VmRSS:")) sum.resident_mb += std::stod(line.substr(6)) / 1024;
    }
  }
  return sum;
}

BenchFleet::BenchFleet(const std::string& cloud, int workers, std::uint32_t slots, const std::string& url)
    : LiveFleet(
          (url.empty() ? "" : "nats: {url: '" + url + "'}\n") +
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
          "      - {types: [], action: exclude, conditions: [{property: {path: $.name, op: regex, value: ^tmp_}}]}\n") {
  if (!url.empty()) where_ = {"--nats", url};
  start();
  const auto wanted = static_cast<std::size_t>(workers);
  if (!eventually([&] { return json({"workers"}).size() >= wanted; })) throw std::runtime_error("no workers: " + log());
}

double BenchFleet::scan(Json* report) const {
  const auto run = discover({"--target", "cloud"});
  if (run.at("state") != "complete") throw std::runtime_error("the run is not complete: " + run.dump());
  if (report != nullptr) *report = run;
  return run.at("duration_ms").get<double>() / 1000;
}

void BenchFleet::settle() const {
  const auto done = [&] {
    const auto events = json({"status"}).at("events");
    return events.at("last") == events.at("published");
  };
  if (!eventually(done)) throw std::runtime_error("events are not published: " + log());
}

pid_t BenchFleet::start_worker() const {
  return test::spawn({command({"worker", "fake"}), {}, directory() / "worker.out", directory() / "worker.err"});
}

double BenchFleet::timed(const std::vector<std::string>& words, const std::filesystem::path& out) const {
  const Stopwatch watch;
  const auto status = test::wait_for(test::spawn({command(words), {}, out, directory() / "timed.err"}));
  const auto seconds = watch.seconds();
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
