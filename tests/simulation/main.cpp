// muster_sim: whole fleets under virtual time, one for each seed; see README.md.

#include <iostream>
#include <memory>

#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include "simulation/fleet.h"

namespace {

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

/// `7` or `1..100`, both ends included.
bool parse(const std::string& text, Seeds& seeds) {
  const auto dots = text.find("..");
  try {
    seeds.first = std::stoull(text.substr(0, dots));
    seeds.last = dots == std::string::npos ? seeds.first : std::stoull(text.substr(dots + 2));
  } catch (const std::exception&) {
    return false;
  }
  return seeds.first <= seeds.last;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Simulates whole fleets under virtual time and checks that nothing is lost, doubled or invented.\n"
      "Example: muster_sim --seeds 1..1000"};
  std::string text = "1..100";
  bool verbose = false;
  app.add_option("--seeds", text, "A..B (inclusive) or one seed")->capture_default_str();
  app.add_flag("-v,--verbose", verbose, "the logs of coordinator and workers on stderr");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  Seeds seeds;
  if (!parse(text, seeds)) {
    std::cerr << "muster_sim: --seeds takes A..B or one number, not '" << text << "'\n";
    return 2;
  }
  auto log = verbose ? std::make_shared<spdlog::logger>("sim", std::make_shared<spdlog::sinks::stderr_sink_st>())
                     : std::make_shared<spdlog::logger>("sim", std::make_shared<spdlog::sinks::null_sink_st>());
  log->set_level(verbose ? spdlog::level::debug : spdlog::level::off);
  std::uint64_t failed = 0;
  for (auto seed = seeds.first; seed <= seeds.last; ++seed) {
    muster::sim::Fleet fleet(seed, log);
    const auto fault = fleet.run();
    if (!fault) continue;
    ++failed;
    std::cout << "seed " << seed << ": " << *fault << " [" << fleet.describe() << "]" << std::endl;
  }
  std::cout << seeds.last - seeds.first + 1 << " seeds, " << failed << " failed" << std::endl;
  return failed == 0 ? 0 : 1;
}
