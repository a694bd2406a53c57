// Jobs through the product's own dispatch, leases and results, asked for by a program instead of a run. A process of
// its own, as the yardsticks are; prints one line of JSON at its end.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <CLI/CLI.hpp>

#include "tests/bench/job_desk.h"
#include "tests/bench/stopwatch.h"

namespace muster::bench {
namespace {

constexpr const char* kThing = "FAKE::Cloud::Thing0";

struct Options {
  std::string url;
  std::size_t workers = 1;       // that are waited for
  std::uint32_t count = 10'000;  // reads, probes
  std::uint32_t window = 256;    // in flight; of `rate` jobs of 20 ms, submitted; of `probe` the same, to be done
  double seconds = 2;
};

ListJob one_item() {
  ListJob list;
  list.page_size = 1;
  return list;
}

Target slow_cloud() {
  return JobDesk::target("cloud", R"({"resources":1000,"bytes":200,"latency_ms":20})");
}

double percentile(std::vector<double>& sorted, std::size_t percent) {
  return sorted[std::min(sorted.size() - 1, sorted.size() * percent / 100)];
}

/// Reads of one resource each, so many in flight.
void reads(JobDesk& desk, const Options& options) {
  const auto target = JobDesk::target("cloud", R"({"resources":1000,"bytes":400})");
  std::vector<Stopwatch> begun(options.window);
  std::vector<double> took;
  took.reserve(options.count);
  std::uint32_t asked = 0;
  const auto ask = [&](std::uint64_t place) {
    if (asked >= options.count) return;
    char id[32];
    std::snprintf(id, sizeof id, "thing0-%08u", asked++ % 1000);
    begun[place] = Stopwatch();
    desk.submit(target, ReadJob{{id}}, kThing, place);
  };
  const Stopwatch watch;
  for (std::uint32_t i = 0; i < options.window; ++i) ask(i);
  while (took.size() < options.count) {
    desk.turn([&](const JobOutcome& outcome) {
      if (!std::holds_alternative<ReadResult>(outcome.result)) throw std::runtime_error("a read failed");
      took.push_back(begun[outcome.owner].seconds());
      ask(outcome.owner);
    });
  }
  const auto seconds = watch.seconds();
  std::ranges::sort(took);
  std::printf(R"({"seconds":%f,"p50":%f,"p99":%f,"job_bytes":%zu,"reply_bytes":%zu})"
              "\n",
              seconds, percentile(took, 50), percentile(took, 99), desk.job_bytes, desk.reply_bytes);
}

/// Seconds that cores have been busy since the machine started, with whatever.
double busy_seconds() {
  std::ifstream table("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
  table >> cpu >> user >> nice >> system >> idle >> wait >> irq >> softirq >> steal;
  return (user + nice + system + irq + softirq + steal) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double own_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Jobs of 20 ms a second, while so many are submitted; shares of a core that this program, and all cores, had to do.
void rate(JobDesk& desk, const Options& options) {
  const auto cloud = slow_cloud();
  std::uint64_t done = 0;
  const auto run = [&](double seconds) {
    done = 0;
    const Stopwatch watch;
    while (watch.seconds() < seconds) {
      desk.turn([&](const JobOutcome&) {
        ++done;
        desk.submit(cloud, one_item(), kThing, 1);
      });
    }
    return static_cast<double>(done) / watch.seconds();
  };
  for (std::uint32_t i = 0; i < options.window; ++i) desk.submit(cloud, one_item(), kThing, 1);
  run(kWarmUpSeconds);
  const auto busy = desk.dispatcher().counters().busy;
  const auto own_before = own_seconds(), all_before = busy_seconds();
  const Stopwatch watch;
  const auto per_second = run(options.seconds);
  const auto took = watch.seconds();
  std::printf(R"({"per_second":%f,"turned_away":%f,"own":%f,"all":%f,"job_bytes":%zu,"reply_bytes":%zu})"
              "\n",
              per_second, static_cast<double>(desk.dispatcher().counters().busy - busy) / took,
              (own_seconds() - own_before) / took,
              (busy_seconds() - all_before) / took / std::thread::hardware_concurrency(), desk.job_bytes,
              desk.reply_bytes);
}

/// How long small jobs of another namespace take, one after another, while so many of 20 ms are to be done; as many of
/// them are submitted as the dispatcher has room for.
void probe(JobDesk& desk, const Options& options) {
  const auto cloud = slow_cloud();
  const auto files = JobDesk::target("files", R"({"root":"/etc"})");
  constexpr std::uint64_t kFlood = 1, kProbe = 2;
  auto left = options.window;
  const auto flood = [&] {
    for (; left > 0 && desk.has_room(cloud); --left) desk.submit(cloud, one_item(), kThing, kFlood);
  };
  std::vector<double> took;
  while (took.size() < options.count) {
    flood();
    const Stopwatch watch;
    desk.submit(files, InspectJob{}, {}, kProbe, "FS");
    for (bool answered = false; !answered;) {
      desk.turn([&](const JobOutcome& outcome) {
        answered = answered || outcome.owner == kProbe;
        if (outcome.owner == kFlood) ++left;  // there is always more
      });
      flood();
    }
    took.push_back(watch.seconds());
  }
  std::ranges::sort(took);
  std::printf(R"({"p50":%f,"p99":%f})"
              "\n",
              percentile(took, 50), percentile(took, 99));
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  using namespace muster::bench;
  CLI::App app("Jobs through dispatch, lease and result");
  app.require_subcommand(1);
  Options options;
  for (const auto* name : {"reads", "rate", "probe"}) {
    auto* sub = app.add_subcommand(name);
    sub->add_option("--url", options.url)->required();
    sub->add_option("--workers", options.workers);
    sub->add_option("--count", options.count);
    sub->add_option("--window", options.window);
    sub->add_option("--seconds", options.seconds);
  }
  CLI11_PARSE(app, argc, argv);
  try {
    JobDesk desk(options.url);
    desk.await_workers(options.workers);
    if (app.got_subcommand("reads")) reads(desk, options);
    if (app.got_subcommand("rate")) rate(desk, options);
    if (app.got_subcommand("probe")) probe(desk, options);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
