#include "simulation/settings.h"

namespace muster::sim {

Config changed_config(const Config& usual, Random& random) {
  const auto one_in = [&](std::uint64_t many) { return random.below(many) == 0; };
  Config config = usual;
  config.targets.clear();
  for (auto target : usual.targets) {
    if (one_in(4)) continue;
    if (one_in(4)) std::swap(target.name, target.renamed_from);
    if (one_in(4)) target.config.json = R"({"region":"elsewhere"})";
    if (one_in(8)) target.discover = false;
    if (one_in(4)) target.interval = Millis(1000 + random.below(5000));
    config.targets.push_back(std::move(target));
  }
  if (one_in(3)) config.discovery_interval = Millis(2000 + random.below(5000));
  if (one_in(3)) config.drift_interval = Millis(1000 + random.below(5000));
  if (one_in(3)) config.retry.attempts = static_cast<int>(1 + random.below(4));
  if (one_in(3)) config.limits.requests_per_second = static_cast<double>(1 + random.below(50));
  if (one_in(3)) config.limits.jobs_in_flight = static_cast<int>(1 + random.below(4));
  if (one_in(3)) config.limits.job_deadline = Millis(1000 + random.below(10'000));
  if (one_in(4)) config.limits.run_deadline = Millis(2000 + random.below(10'000));
  return config;
}

}  // namespace muster::sim
