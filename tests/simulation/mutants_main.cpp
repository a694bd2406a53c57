// muster_sim_mutants: shows that the simulator notices when the product is wrong; see README.md.

#include <algorithm>
#include <iostream>
#include <set>
#include <thread>

#include <CLI/CLI.hpp>

#include "simulation/mutations.h"
#include "simulation/processes.h"
#include "simulation/seeds.h"

namespace {

using namespace muster::sim;

/// Seeds until one shows the mutation: `SEED what an invariant said`; empty when none does.
std::string search(const Mutation& mutation, const Seeds& seeds) {
  choose_mutation(mutation.name);
  auto order = mutation.seeds;
  for (auto seed = seeds.first; seed <= seeds.last; ++seed) order.push_back(seed);
  for (const auto seed : order) {
    if (const auto fault = run_seed(seed, mutation.without, quiet_log())) return std::to_string(seed) + " " + *fault;
  }
  return {};
}

/// Every mutation that some seed shows is noticed, and the seeds that notice one say nothing of the right product.
/// Returns the exit code.
int check(const Seeds& seeds, unsigned jobs) {
  const auto& all = mutations();
  Processes processes(jobs);
  std::set<std::pair<std::uint64_t, Names>> clean;  // what has spoken, and has to say nothing of the right product
  std::vector<std::pair<std::uint64_t, Names>> queue;
  std::size_t next = 0, missed = 0, open = 0, wrong = 0;
  const auto begin_one = [&] {
    if (next < all.size()) {
      processes.start(next, [&] { return search(all[next], seeds); });
      ++next;
      return true;
    }
    if (queue.empty()) return false;
    const auto [seed, without] = queue.back();
    queue.pop_back();
    processes.start(all.size() + seed, [&] { return run_seed(seed, without, quiet_log()).value_or(""); });
    return true;
  };
  for (;;) {
    if (!processes.full() && begin_one()) continue;
    if (processes.empty()) break;
    const auto ended = processes.wait();
    const auto said = ended.died.empty() ? ended.said : "it " + ended.died;
    if (ended.task >= all.size()) {
      if (said.empty()) continue;
      ++wrong;
      std::cout << "seed " << ended.task - all.size() << " speaks without a mutation: " << said << std::endl;
      continue;
    }
    const auto& name = all[ended.task].name;
    const bool known = !all[ended.task].seeds.empty();
    if (said.empty()) ++(known ? missed : open);
    std::cout << name << ": "
              << (!said.empty() ? "seed " + said
                                : (known ? "NOT NOTICED: " : "not shown by any seed yet: ") + all[ended.task].breaks)
              << std::endl;
    if (!ended.died.empty() || said.empty()) continue;
    const std::pair shown(std::stoull(said), all[ended.task].without);
    if (clean.insert(shown).second) queue.push_back(shown);
  }
  std::cout << all.size() << " mutations, " << missed << " not noticed, " << open << " not shown yet; " << clean.size()
            << " seeds, " << wrong << " speak without one" << std::endl;
  return missed + wrong == 0 ? 0 : 1;
}

/// Seeds with one mutation, in this process.
int run(const std::string& mutation, const Seeds& seeds, const Names& without, bool verbose) {
  if (!choose_mutation(mutation)) {
    std::cerr << "muster_sim_mutants: no mutation is named '" << mutation << "': --list-mutations names them\n";
    return 2;
  }
  bool failed = false;
  for (auto seed = seeds.first; seed <= seeds.last; ++seed) {
    const auto fault = run_seed(seed, without, verbose ? verbose_log() : quiet_log());
    if (!fault) continue;
    failed = true;
    std::cout << "seed " << seed << ": " << *fault << std::endl;
  }
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Makes the product wrong on purpose, and looks whether the simulator notices.\n"
      "Example: muster_sim_mutants --mutate act-without-go --seeds 1..10"};
  std::string text = "1..40", mutation;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool list = false, all = false, verbose = false;
  std::vector<std::string> without;
  app.add_flag("--list-mutations", list, "what can be made wrong");
  app.add_flag("--check-mutations", all, "look whether each of them is noticed");
  app.add_option("--mutate", mutation, "make this wrong; without it the product is right");
  app.add_option("--seeds", text, "A..B (inclusive) or one seed")->capture_default_str();
  app.add_option("--jobs", jobs, "processes at once, of a check")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--without", without, "parts to leave out, with --mutate")->delimiter(',');
  app.add_flag("-v,--verbose", verbose, "the logs of coordinator and workers on stderr");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  const auto seeds = parse_seeds(text);
  if (!seeds) {
    std::cerr << "muster_sim_mutants: --seeds takes A..B or one number, not '" << text << "'\n";
    return 2;
  }
  if (list) {
    for (const auto& each : mutations()) std::cout << each.name << ": " << each.breaks << "\n";
    return 0;
  }
  return all ? check(*seeds, jobs) : run(mutation, *seeds, {without.begin(), without.end()}, verbose);
}
