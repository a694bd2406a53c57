// Declarations: plans over what is as it should be, and creates.

#include <fstream>

#include "tests/bench/bench.h"
#include "tests/bench/stopwatch.h"

namespace muster::bench {
namespace {

/// Seconds that each plan over so many unchanged resources takes, from the command line to its answer.
std::vector<double> unchanged(std::uint32_t resources, int rounds) {
  const BenchFleet fleet("resources: " + std::to_string(resources) + ", bytes: 400", 1, 4);
  fleet.scan();
  const auto file = (fleet.directory() / "all.yaml").string();
  fleet.timed({"export", "--target", "cloud"}, file);
  fleet.timed({"apply", file, "--yes", "--timeout", "300s"});  // adopts them
  fleet.settle();
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const auto out = fleet.directory() / ("plan" + std::to_string(i));
    seconds.push_back(fleet.timed({"apply", file, "--plan", "--timeout", "300s", "-o", "json"}, out));
    const auto summary = nlohmann::json::parse(test::slurp(out)).at("summary");
    if (summary.at("unchanged") != resources) throw std::runtime_error("not unchanged: " + summary.dump());
  }
  return seconds;
}

/// A second.
struct Rates {
  double creates, deletes;
};

Rates changes(std::uint32_t count) {
  const test::Scratch scratch;
  const BenchFleet fleet("resources: 0, state: " + (scratch.path / "cloud.db").string(), 1, 64);
  const auto file = (fleet.directory() / "new.yaml").string();
  {
    std::ofstream out(file);
    out << "stack: bench\nresources:\n";
    for (std::uint32_t i = 0; i < count; ++i) {
      out << "  - {name: t" << i << ", target: cloud, type: \"FAKE::Cloud::Thing0\", properties: {name: t" << i
          << ", size: 3}}\n";
    }
  }
  const auto apply = fleet.timed({"apply", file, "--yes", "--timeout", "300s"});
  const auto destroy = fleet.timed({"destroy", file, "--yes", "--timeout", "300s"});
  return {count / apply, count / destroy};
}

double commits(std::uint32_t count) {
  const test::NatsServer server;  // not used, as every yardstick is given one
  const test::Scratch scratch;
  return count / run_program("bench_yardstick",
                             {"commits", "--count", std::to_string(count), "--store", scratch.path / "store.db"},
                             server.url())
                     .at("seconds")
                     .get<double>();
}

}  // namespace

void plan(const Options& options, Report& report) {
  const std::uint32_t scale = options.quick ? 10 : 1;
  report.add({"plan/100,000", "s", unchanged(100'000 / scale, options.rounds), {}, {}, Bound::kAtMost, 2, 5});
  std::vector<double> each, each_of_few;
  for (const auto seconds : unchanged(200'000 / scale, options.rounds)) each.push_back(1e6 * seconds * scale / 200'000);
  for (const auto seconds : unchanged(20'000 / scale, options.rounds)) {
    each_of_few.push_back(1e6 * seconds * scale / 20'000);
  }
  report.add({"plan/200,000", "us/row", each, "of a tenth", each_of_few, Bound::kAtMost});
  const auto most = 10'000 / scale;
  std::vector<double> made, made_of_few, gone, gone_of_few, alone;
  for (int i = 0; i < std::min(options.rounds, 3); ++i) {
    const auto few = changes(most / 4), many = changes(most);
    made.push_back(many.creates);
    gone.push_back(many.deletes);
    made_of_few.push_back(few.creates);
    gone_of_few.push_back(few.deletes);
    alone.push_back(commits(most));
  }
  report.add({"apply/creates", "1/s", made, "their commits alone", alone});
  report.add({"apply/creates, linear", "1/s", made, "of a quarter", made_of_few, Bound::kAtLeast, 0.8, 0.6});
  report.add({"apply/deletes, linear", "1/s", gone, "of a quarter", gone_of_few, Bound::kAtLeast, 0.8, 0.6});
}

}  // namespace muster::bench
