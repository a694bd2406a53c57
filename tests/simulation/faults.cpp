#include "simulation/faults.h"

#include "simulation/event_stream.h"

namespace muster::sim {

Faults draw_faults(Random& random) {
  const auto chance = [&](std::uint64_t percent) { return random.below(100) < percent; };
  const auto up_to = [&](std::uint64_t most) { return static_cast<int>(random.below(most + 1)); };
  Faults faults;
  if (chance(50)) faults.loss = static_cast<double>(random.below(200)) / 1000;
  if (chance(40)) faults.duplication = static_cast<double>(random.below(200)) / 1000;
  if (chance(70)) faults.delay = Millis(chance(20) ? random.below(3000) : random.below(50));
  if (chance(40)) faults.error_rate = static_cast<double>(random.below(100)) / 1000;
  if (chance(50)) faults.changes.before = up_to(200);
  if (chance(50)) faults.changes.after = up_to(chance(20) ? 900 : 300);
  if (chance(30)) faults.changes.terminal = up_to(100);
  if (chance(40)) faults.changes.crash = up_to(200);
  if (chance(40)) faults.changes.progress = up_to(600);
  if (chance(50)) faults.worker_crashes = up_to(5);
  if (chance(50)) faults.coordinator_crashes = up_to(4);
  if (chance(40)) faults.disconnections = up_to(4);
  if (chance(40)) faults.stops = up_to(4);
  if (chance(20)) faults.store_failures = up_to(3);
  if (chance(20)) faults.full_disks = up_to(3);
  if (chance(20)) faults.clock_jumps = up_to(4);
  if (chance(60)) faults.churns = 1 + up_to(4);
  if (chance(60)) faults.edits = up_to(12);
  if (chance(25)) faults.partitions = up_to(4);
  if (chance(30)) faults.drains = up_to(4);
  if (chance(30)) faults.joins = up_to(2);
  if (chance(25)) faults.outages = up_to(2);
  if (chance(25)) faults.throttlings = up_to(2);
  if (chance(20)) faults.slow_disk = Millis(random.below(chance(50) ? 500 : 15'000));
  if (chance(25)) faults.mixed_versions = 1;
  if (chance(25)) faults.liars = 1;
  return faults;
}

void draw_later_faults(Faults& faults, Random& random) {
  const auto chance = [&](std::uint64_t percent) { return random.below(100) < percent; };
  if (chance(30)) faults.renames = 1 + static_cast<int>(random.below(3));
  if (chance(20)) faults.successors = 1 + static_cast<int>(random.below(2));
  if (chance(30)) faults.filters = 1 + static_cast<int>(random.below(3));
  if (chance(30)) faults.narrow_looks = 1 + static_cast<int>(random.below(4));
}

std::vector<std::string> leave_out(Faults& faults, const std::set<std::string>& without) {
  std::vector<std::string> there;
  const auto part = [&](const char* name, auto& fault) {
    if (fault == std::decay_t<decltype(fault)>{}) return;
    there.emplace_back(name);
    if (without.contains(name)) fault = {};
  };
  part("loss", faults.loss);
  part("duplication", faults.duplication);
  part("delay", faults.delay);
  part("errors", faults.error_rate);
  part("fail-before", faults.changes.before);
  part("fail-after", faults.changes.after);
  part("fail-for-good", faults.changes.terminal);
  part("die-in-calls", faults.changes.crash);
  part("progress", faults.changes.progress);
  part("worker-crashes", faults.worker_crashes);
  part("coordinator-crashes", faults.coordinator_crashes);
  part("disconnections", faults.disconnections);
  part("stops", faults.stops);
  part("store-failures", faults.store_failures);
  part("full-disks", faults.full_disks);
  part("clock-jumps", faults.clock_jumps);
  part("churns", faults.churns);
  part("edits", faults.edits);
  part("partitions", faults.partitions);
  part("drains", faults.drains);
  part("joins", faults.joins);
  part("outages", faults.outages);
  part("throttlings", faults.throttlings);
  part("slow-disk", faults.slow_disk);
  part("mixed-versions", faults.mixed_versions);
  part("liars", faults.liars);
  part("renames", faults.renames);
  part("successors", faults.successors);
  part("filters", faults.filters);
  part("narrow-looks", faults.narrow_looks);
  part("second-target", faults.second_target);
  part("depth", faults.depth);
  part("folders", faults.folders);
  part("children", faults.children);
  part("nests", faults.nests);
  part("notes", faults.notes);
  part("secrets", faults.secrets);
  part("crowds", faults.crowds);
  part("parts", faults.parts);
  part("plans", faults.plans);
  part("waits", faults.waits);
  part("settings", faults.settings);
  part("gaps", faults.gaps);
  part("swaps", faults.swaps);
  part("loose", faults.loose);
  part("narrowings", faults.narrowings);
  part("revivals", faults.revivals);
  part("unread", faults.unread);
  part("no-uids", faults.no_uids);
  part("strict", faults.strict);
  part("forgets", faults.forgets);
  part("lag", faults.lag);
  part("stream", faults.stream);
  return there;
}

Plan plan_faults(const Faults& faults, TimePoint now, Random& random) {
  using Kind = Act::Kind;
  Plan plan;
  const auto soon = [&] { return now + Millis(random.below(17'000)); };
  const auto add = [&](int times, Kind kind, std::size_t whom) {
    for (int i = 0; i < times; ++i) plan.emplace(soon(), Act{kind, random.below(whom)});
  };
  const auto pairs = [&](int times, Kind begin, Kind end, std::size_t whom) {
    for (int i = 0; i < times; ++i) {
      const auto at = soon();
      const auto who = random.below(whom);
      plan.emplace(at, Act{begin, who});
      plan.emplace(at + Millis(random.below(4'000)), Act{end, who});
    }
  };
  pairs(faults.worker_crashes, Kind::kWorkerCrash, Kind::kWorkerStart, kWorkers);
  pairs(faults.coordinator_crashes, Kind::kCoordinatorCrash, Kind::kCoordinatorStart, 1);
  pairs(faults.disconnections, Kind::kDisconnect, Kind::kReconnect, kMaxWorkers + 1);
  pairs(faults.store_failures, Kind::kStoreFails, Kind::kStoreWorks, 1);
  pairs(faults.full_disks, Kind::kDiskFull, Kind::kDiskFree, kDisks);
  add(faults.stops, Kind::kStop, kMaxWorkers + 1);
  add(faults.clock_jumps, Kind::kClockJump, 1);
  add(faults.churns, Kind::kChurn, 1);
  add(faults.churns, Kind::kTrigger, 1);
  add(faults.edits, Kind::kEdit, 1);
  add((faults.edits + 1) / 2, Kind::kTrigger, 1);
  pairs(faults.partitions, Kind::kPartition, Kind::kHeal, std::size_t{1} << (kMaxWorkers + 1));
  add(faults.drains, Kind::kDrain, kWorkers);
  for (int i = 0; i < faults.joins; ++i) {
    plan.emplace(soon(), Act{Kind::kWorkerStart, kWorkers + static_cast<std::size_t>(i)});
  }
  pairs(faults.outages, Kind::kOutage, Kind::kOutageEnds, 1);
  pairs(faults.throttlings, Kind::kThrottling, Kind::kThrottlingEnds, 1);
  return plan;
}

void plan_later_faults(const Faults& faults, TimePoint now, Random& random, Plan& plan) {
  using Kind = Act::Kind;
  const auto add = [&](int times, Kind kind, std::size_t whom) {
    for (int i = 0; i < times; ++i) plan.emplace(now + Millis(random.below(17'000)), Act{kind, random.below(whom)});
  };
  add(faults.renames, Kind::kRename, 1);
  add(faults.successors, Kind::kSucceed, 1);
  add(faults.filters, Kind::kFilter, 1);
  add(faults.filters + faults.renames, Kind::kTrigger, 1);
  add(faults.narrow_looks, Kind::kNarrowLook, 5);
  add(faults.settings, Kind::kConfigure, 1);
  for (int outages = 1; outages < faults.stream; ++outages) {
    const auto at = now + Millis(random.below(17'000));
    plan.emplace(at, Act{Kind::kStream, 1 + random.below(EventStream::kStates - 1)});
    plan.emplace(at + Millis(random.below(20'000)), Act{Kind::kStream, 0});
  }
}

}  // namespace muster::sim
