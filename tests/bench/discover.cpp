// Discovery of a FAKE target by a fleet of processes, beside straight-line pipelines (yardstick_pipeline.cpp).

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tests/bench/bench.h"
#include "tests/bench/stopwatch.h"

namespace muster::bench {
namespace {

std::string share(double value) {
  return std::to_string(value);
}

std::string cloud(const Options& options, bool reads) {
  return "resources: " + std::to_string(options.resources / options.types) +
         ", types: " + std::to_string(options.types) + ", page: " + std::to_string(options.page) +
         ", bytes: " + std::to_string(options.bytes) + ", filtered_share: " + share(options.filtered) +
         (reads ? ", list_properties: false" : "");
}

double rate(const Options& options, double seconds) {
  return options.resources / options.types * options.types / seconds;
}

std::vector<double> pipeline(const Options& options, const std::string& kind, bool reads, int passes) {
  const test::NatsServer server;
  const test::Scratch scratch;
  const std::vector<std::string> sizes{
      "--resources", std::to_string(options.resources), "--types",   std::to_string(options.types),
      "--page",      std::to_string(options.page),      "--bytes",   std::to_string(options.bytes),
      "--filtered",  share(options.filtered),           "--changed", share(options.changed)};
  auto words = sizes;
  words.insert(words.begin(), "pages");
  const Processes worker{{start_program("bench_yardstick", words, server.url(), "/dev/null")}};
  words = sizes;
  words.insert(words.begin(), "pipeline");
  words.insert(words.end(), {"--kind", kind, "--store", scratch.path / "store.db", "--passes", std::to_string(passes)});
  if (reads) words.emplace_back("--reads");
  std::vector<double> rates;
  const auto said = run_program("bench_yardstick", words, server.url());
  for (const auto& seconds : said.at("seconds")) {
    rates.push_back(rate(options, seconds.get<double>()));
  }
  return rates;
}

/// Of all listings of a run.
double counted(const test::FleetClient::Json& run, const char* what) {
  double sum = 0;
  for (const auto& scan : run.at("scans")) sum += scan.at(what).get<double>();
  return sum;
}

enum class Events : std::uint8_t { kPublished, kKept };

/// Seconds until a first run has ended and, where they are published, until its events are. They are kept where
/// somebody listens to what the coordinator asks JetStream, and never answers.
double discover_all(const Options& options, Events events) {
  test::NatsServerOptions jetstream;
  jetstream.jetstream = events == Events::kPublished;
  const test::NatsServer server(jetstream);
  const test::Scratch scratch;
  Processes mute;
  if (events == Events::kKept)
    mute.pids.push_back(start_program("bench_yardstick", {"mute"}, server.url(), "/dev/null"));
  BenchFleet fleet(cloud(options, false), 1, options.slots, server.url());
  const Stopwatch watch;
  fleet.scan();
  if (events == Events::kPublished) fleet.settle();
  return watch.seconds();
}

enum class Observers : std::uint8_t { kNone, kFifty };

/// Seconds of a run that waits for its target most of the time, so that cores are left for 49 who hear its events, and
/// for one more who has stopped reading.
double discover_observed(const Options& options, Observers observers) {
  test::NatsServerOptions jetstream;
  jetstream.jetstream = true;
  const test::NatsServer server(jetstream);
  const auto things = std::to_string(options.quick ? 2'500 : 10'000);
  const BenchFleet fleet("types: 4, page: 64, latency_ms: 50, resources: " + things, 1, 4, server.url());
  const test::Scratch scratch;
  const auto said = scratch.path / "said";
  Processes observing;
  if (observers == Observers::kFifty) {
    for (const auto* count : {"1", "49"}) {
      observing.pids.push_back(start_program("bench_yardstick", {"observe", "--count", count}, server.url(), said));
    }
    const auto all_hear = [&] { return std::ranges::count(test::slurp(said), '\n') == 50; };
    if (!BenchFleet::eventually(all_hear)) throw std::runtime_error("not all observers hear events");
    ::kill(observing.pids.front(), SIGSTOP);
  }
  return fleet.scan();
}

}  // namespace

void discover(const Options& options, Report& report) {
  std::vector<double> fresh, unchanged, changed, same, same_again, same_changed, bare;
  for (int i = 0; i < options.rounds; ++i) {
    {
      BenchFleet fleet(cloud(options, false), 1, options.slots);
      fresh.push_back(rate(options, fleet.scan()));
      fleet.settle();
      const auto before = fleet.last_event();
      test::FleetClient::Json run;
      unchanged.push_back(rate(options, fleet.scan(&run)));
      for (const auto& scan : run.at("scans")) {
        if (scan.at("new") != 0 || scan.at("changed") != 0) throw std::runtime_error("not unchanged: " + run.dump());
      }
      if (!fleet.resource_events(before).empty()) throw std::runtime_error("an unchanged resource has an event");
      const auto later = cloud(options, false) + ", epoch: 1, change_share: " + share(options.changed);
      changed.push_back(rate(options, fleet.change(later, &run)));
      const auto share_found = counted(run, "changed") / (counted(run, "listed") - counted(run, "filtered"));
      if (std::abs(share_found - options.changed) > 0.01) throw std::runtime_error("not so changed: " + run.dump());
    }
    const auto rates = pipeline(options, "same-work", false, 3);
    same.push_back(rates[0]);
    same_again.push_back(rates[1]);
    same_changed.push_back(rates[2]);
    bare.push_back(pipeline(options, "bare", false, 1)[0]);
  }
  report.add({"discover-fresh", "rows/s", fresh, "same work", same, Bound::kAtLeast, 0.85, 0.65});
  report.add({"discover-fresh/bare", "rows/s", fresh, "bare", bare, Bound::kAtLeast, 0.55, 0.4});
  report.add({"discover-unchanged", "rows/s", unchanged, "discover-fresh", fresh, Bound::kAtLeast, 2, 1.5});
  report.add({"discover-unchanged/same", "rows/s", unchanged, "same work, again", same_again});
  report.add({"discover-changed", "rows/s", changed, "same work, changed", same_changed});
}

void discover_read(const Options& options, Report& report) {
  std::vector<double> fresh, same;
  for (int i = 0; i < options.rounds; ++i) {
    fresh.push_back(rate(options, BenchFleet(cloud(options, true), 1, options.slots).scan()));
    same.push_back(pipeline(options, "same-work", true, 1)[0]);
  }
  report.add({"discover-read", "rows/s", fresh, "same work", same, Bound::kAtLeast, 0.6, 0.4});
}

void discover_million(const Options& options, Report& report) {
  auto large = options, small = options;
  large.resources = options.quick ? 100'000 : 1'000'000;
  small.resources = large.resources / 10;
  std::vector<double> corrected, of_small, peak, lines, rows, client, client_small;
  for (int i = 0; i < std::min(options.rounds, 3); ++i) {
    {
      const BenchFleet fleet(cloud(large, false), 1, options.slots);
      rows.push_back(rate(large, fleet.scan()));
      fleet.settle();
      lines.push_back(rate(large, fleet.timed({"resources", "-o", "ndjson"}, "/dev/null", &client.emplace_back())));
      peak.push_back(fleet.coordinator().peak_mb);
    }
    const auto same_large = pipeline(large, "same-work", false, 1)[0];
    const BenchFleet fleet(cloud(small, false), 1, options.slots);
    const auto fresh_small = rate(small, fleet.scan());
    fleet.timed({"resources", "-o", "ndjson"}, "/dev/null", &client_small.emplace_back());
    const auto same_small = pipeline(small, "same-work", false, 1)[0];
    corrected.push_back(rows.back() / same_large);
    of_small.push_back(fresh_small / same_small);
  }
  report.add({"discover-1m", "rows/s", rows});
  report.add({"discover-1m/small", "of same", corrected, "of same, a tenth", of_small, Bound::kAtLeast, 0.9, 0.75});
  report.add({"discover-1m/memory", "MB", peak, {}, {}, Bound::kAtMost, 300, 600});
  report.add({"discover-1m/ndjson", "rows/s", lines, {}, {}, Bound::kAtLeast, 200'000, 100'000});
  report.add({"discover-1m/ndjson memory", "MB", client, "of a tenth", client_small, Bound::kAtMost, 1.1, 1.5});
}

void events(const Options& options, Report& report) {
  std::vector<double> with, without;
  for (int i = 0; i < options.rounds; ++i) {
    with.push_back(discover_all(options, Events::kPublished));
    without.push_back(discover_all(options, Events::kKept));
  }
  std::vector<double> extra;
  for (std::size_t i = 0; i < with.size(); ++i) extra.push_back(with[i] - without[i]);
  std::vector<double> observed, alone;
  for (int i = 0; i < options.rounds; ++i) {
    observed.push_back(discover_observed(options, Observers::kFifty));
    alone.push_back(discover_observed(options, Observers::kNone));
  }
  report.add({"events/published", "s", with});
  report.add({"events/cost", "s", extra, "discovery without", without, Bound::kAtMost, 0.25, 0.5});
  report.add({"events/50 observers", "s", observed, "nobody observes", alone, Bound::kAtMost, 1.05, 1.2});
}

}  // namespace muster::bench
