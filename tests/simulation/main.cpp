// muster_sim: whole fleets under virtual time, one for each seed; see README.md.

#include <iostream>
#include <memory>

#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include "simulation/fleet.h"

namespace {

using Names = std::set<std::string>;
using Log = std::shared_ptr<spdlog::logger>;

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

std::optional<std::string> run(std::uint64_t seed, const Names& without, const Log& log,
                               std::vector<std::string>* parts) {
  muster::sim::Fleet fleet(seed, without, log);
  if (parts != nullptr) *parts = fleet.parts();
  return fleet.run();
}

/// Leaves out one part after the other as long as something goes wrong still.
Names shrunk(std::uint64_t seed, Names without, const std::vector<std::string>& parts, const Log& log) {
  for (const auto& part : parts) {
    if (!without.insert(part).second) continue;
    if (!run(seed, without, log, nullptr)) without.erase(part);
  }
  return without;
}

std::string joined(const Names& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Simulates whole fleets under virtual time and checks that nothing is lost, doubled or invented.\n"
      "Example: muster_sim --seeds 1..1000"};
  std::string text = "1..100";
  bool verbose = false;
  bool shrink = true;
  std::vector<std::string> left_out;
  app.add_option("--seeds", text, "A..B (inclusive) or one seed")->capture_default_str();
  app.add_option("--without", left_out, "parts to leave out, as a failing seed names them")->delimiter(',');
  app.add_flag("--shrink,!--no-shrink", shrink, "look for the smallest failure of a failing seed (default)");
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
  const auto quiet = std::make_shared<spdlog::logger>("sim", std::make_shared<spdlog::sinks::null_sink_st>());
  quiet->set_level(spdlog::level::off);
  auto log = quiet;
  if (verbose) {
    log = std::make_shared<spdlog::logger>("sim", std::make_shared<spdlog::sinks::stderr_sink_st>());
    log->set_level(spdlog::level::debug);
  }
  const Names without(left_out.begin(), left_out.end());
  std::uint64_t failed = 0;
  for (auto seed = seeds.first; seed <= seeds.last; ++seed) {
    std::vector<std::string> parts;
    auto fault = run(seed, without, log, &parts);
    if (!fault) continue;
    ++failed;
    auto smallest = without;
    if (shrink && !verbose) {
      smallest = shrunk(seed, without, parts, quiet);
      fault = run(seed, smallest, quiet, nullptr);
    }
    std::string replay = "muster_sim --seeds " + std::to_string(seed);
    if (!smallest.empty()) replay += " --without " + joined(smallest);
    std::cout << "seed " << seed << ": " << fault.value_or("") << " [" << replay << "]" << std::endl;
  }
  std::cout << seeds.last - seeds.first + 1 << " seeds, " << failed << " failed" << std::endl;
  return failed == 0 ? 0 : 1;
}
