// muster_sim: whole fleets under virtual time, one for each seed; see README.md.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include <CLI/CLI.hpp>

#include "simulation/processes.h"
#include "simulation/seeds.h"

namespace {

using namespace muster::sim;

/// What is asked for on the command line.
struct Wanted {
  std::string seeds = "1..100";
  std::string time;          // instead of seeds: fresh ones for so long
  bool regressions = false;  // instead of seeds: those that have shown bugs
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool verbose = false;
  bool shrink = true;
  std::vector<std::string> without;
};

/// `90s`, `10m`, `2h`
std::optional<std::chrono::seconds> parse_time(const std::string& text) {
  std::size_t digits = 0;
  try {
    const std::chrono::seconds count(std::stoul(text, &digits));
    const auto unit = text.substr(digits);
    if (unit == "s") return count;
    if (unit == "m") return count * 60;
    if (unit == "h") return count * 3600;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

/// Seeds in processes, until `last` has been run or it is `until`. Returns the exit code.
int run_many(const Seeds& seeds, std::chrono::steady_clock::time_point until, const Wanted& wanted) {
  const Names without(wanted.without.begin(), wanted.without.end());
  const auto shrink = wanted.shrink ? Shrink::kYes : Shrink::kNo;
  Processes processes(wanted.jobs);
  auto next = seeds.first;
  std::uint64_t failed = 0;
  for (;;) {
    const bool more = next <= seeds.last && std::chrono::steady_clock::now() < until;
    if (more && !processes.full()) {
      processes.start(next, [&] { return judge_seed(next, without, shrink).value_or(""); });
      ++next;
      continue;
    }
    if (processes.empty()) break;
    const auto ended = processes.wait();
    const auto line = ended.died.empty() ? ended.said : failure_line(ended.task, without, "it " + ended.died);
    if (line.empty()) continue;
    ++failed;
    std::cout << line << std::endl;
  }
  std::cout << next - seeds.first << " seeds, " << failed << " failed" << std::endl;
  return failed == 0 ? 0 : 1;
}

/// One seed in this process, for a debugger and for reading its log.
int run_one(std::uint64_t seed, const Wanted& wanted) {
  const Names without(wanted.without.begin(), wanted.without.end());
  if (!wanted.verbose) {
    const auto line = judge_seed(seed, without, wanted.shrink ? Shrink::kYes : Shrink::kNo);
    if (line) std::cout << *line << std::endl;
    std::cout << "1 seeds, " << (line ? 1 : 0) << " failed" << std::endl;
    return line ? 1 : 0;
  }
  const auto fault = run_seed(seed, without, verbose_log());
  if (fault) std::cout << failure_line(seed, without, *fault) << std::endl;
  return fault ? 1 : 0;
}

int run_regressions() {
  std::size_t failed = 0;
  for (const auto& each : regressions()) {
    const auto line = judge_seed(each.seed, each.without, Shrink::kNo);
    if (!line) continue;
    ++failed;
    std::cout << each.bug << ": " << *line << std::endl;
  }
  std::cout << regressions().size() << " regressions, " << failed << " failed" << std::endl;
  return failed == 0 ? 0 : 1;
}

int run(const Wanted& wanted) {
  if (wanted.regressions) return run_regressions();
  if (!wanted.time.empty()) {
    const auto time = parse_time(wanted.time);
    if (!time) {
      std::cerr << "muster_sim: --for takes a time like 90s, 10m or 2h, not '" << wanted.time << "'\n";
      return 2;
    }
    const auto first = std::random_device()() * std::uint64_t{1'000'000} + 1;
    std::cout << "fresh seeds from " << first << std::endl;
    return run_many({first, UINT64_MAX}, std::chrono::steady_clock::now() + *time, wanted);
  }
  const auto seeds = parse_seeds(wanted.seeds);
  if (!seeds) {
    std::cerr << "muster_sim: --seeds takes A..B or one number, not '" << wanted.seeds << "'\n";
    return 2;
  }
  if (seeds->first == seeds->last) return run_one(seeds->first, wanted);
  if (wanted.verbose) {
    std::cerr << "muster_sim: -v shows one seed: --seeds " << seeds->first << "\n";
    return 2;
  }
  return run_many(*seeds, std::chrono::steady_clock::time_point::max(), wanted);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Simulates whole fleets under virtual time and checks that nothing is lost, doubled or invented.\n"
      "Example: muster_sim --seeds 1..1000"};
  Wanted wanted;
  app.add_option("--seeds", wanted.seeds, "A..B (inclusive) or one seed")->capture_default_str();
  app.add_option("--for", wanted.time, "fresh seeds for a time: 90s, 10m, 2h");
  app.add_flag("--regressions", wanted.regressions, "the seeds that have shown bugs");
  app.add_option("--jobs", wanted.jobs, "seeds at once")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--without", wanted.without, "parts to leave out, as a failing seed names them")->delimiter(',');
  app.add_flag("--shrink,!--no-shrink", wanted.shrink, "look for the smallest failure of a failing seed (default)");
  app.add_flag("-v,--verbose", wanted.verbose, "the logs of coordinator and workers on stderr; one seed only");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  return run(wanted);
}
