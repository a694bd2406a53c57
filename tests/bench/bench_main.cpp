#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>

#include <CLI/CLI.hpp>

#include "tests/bench/bench.h"

int main(int argc, char** argv) {
  using namespace muster::bench;
  struct Benchmark {
    const char* name;
    void (*run)(const Options&, Report&);
  };
  constexpr Benchmark kAll[] = {{"discover-fresh", discover},
                                {"discover-read", discover_read},
                                {"discover-1m", discover_million},
                                {"jobs", jobs},
                                {"scale", scale},
                                {"plan", plan},
                                {"events", events},
                                {"idle", idle},
                                {"start", start},
                                {"peers", peers}};
  CLI::App app(
      "What Muster costs beside what the machine itself charges; discover-unchanged and discover-changed are parts of "
      "discover-fresh");
  Options options;
  std::vector<std::string> names;
  bool check = false, with_peers = false;
  app.add_option("names", names, "which benchmarks; else all");
  app.add_flag("--quick", options.quick, "a tenth of everything, two rounds: for a look, not for a judgement");
  app.add_flag("--check", check, "exit with 1 when a figure is beyond its floor");
  app.add_flag("--peers", with_peers,
               "also `peers`: other job systems in the same shape, which run.sh installs for it");
  auto* rounds = app.add_option("--rounds", options.rounds, "each benchmark in turn with its yardstick")
                     ->check(CLI::PositiveNumber);
  auto* resources =
      app.add_option("--resources", options.resources, "of the discover benchmarks")->check(CLI::PositiveNumber);
  app.add_option("--page", options.page, "resources in a page")->check(CLI::PositiveNumber);
  app.add_option("--bytes", options.bytes, "of the properties of a resource")->check(CLI::PositiveNumber);
  app.add_option("--types", options.types, "listings side by side")->check(CLI::Range(1, 16));
  app.add_option("--filtered", options.filtered, "share of the resources that a filter excludes")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--changed", options.changed, "share of the resources that discover-changed finds changed")
      ->check(CLI::Range(0.0, 1.0));
  CLI11_PARSE(app, argc, argv);
  if (options.quick && rounds->count() == 0) options.rounds = 2;
  if (options.quick && resources->count() == 0) options.resources /= 10;
  for (auto& name : names) {
    if (name == "discover-unchanged" || name == "discover-changed") name = "discover-fresh";
    if (name == "peers" && !with_peers) {
      std::fprintf(stderr, "peers wants --peers, for it installs other job systems\n");
      return 2;
    }
    if (std::ranges::none_of(kAll, [&](const auto& benchmark) { return name == benchmark.name; })) {
      std::fprintf(stderr, "no benchmark %s\n", name.c_str());
      return 2;
    }
  }
  Report report(std::cerr, std::cout);
  bool broken = false;
  for (const auto& benchmark : kAll) {
    const bool asked = names.empty() || std::ranges::find(names, benchmark.name) != names.end();
    if (benchmark.run == peers ? !with_peers : !asked) continue;
    try {
      benchmark.run(options, report);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "%s: %s\n", benchmark.name, failure.what());
      broken = true;
    }
  }
  const int status = report.conclude(check ? Floors::kChecked : Floors::kTold);
  return broken ? 1 : status;
}
