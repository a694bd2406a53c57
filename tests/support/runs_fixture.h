#pragma once

#include <algorithm>
#include <string>

#include "support/coordinator_fixture.h"

namespace muster::test {

/// A coordinator whose worker can keep a run under way. The system has three boxes, one of them with an item in it.
struct RunsFixture : CoordinatorFixture {
  RunsFixture() {
    for (const auto* id : {"a", "b", "c"}) system.add("NS::Box", {.id = id});
    system.add("NS::Item", {.id = "a1", .parent = "a"});
  }
  /// The worker keeps what it is to list from now on, until release(): a run is under way.
  /// `target`   of that one only; empty: of all
  void hold_lists(const std::string& target = {}) {
    workers.at(0)->on_job = [target](const Job& job) -> FakeWorker::Behaviour {
      const bool meant = target.empty() || job.target.name == target;
      if (meant && std::holds_alternative<ListJob>(job.operation)) return FakeWorker::Hold{};
      return {};
    };
  }
  template <typename Operation>
  std::size_t asked_of(const std::string& target) {
    const auto jobs = workers.at(0)->asked<Operation>();
    return static_cast<std::size_t>(
        std::ranges::count_if(jobs, [&](const Job& job) { return job.target.name == target; }));
  }
  void let_go() {
    workers.at(0)->on_job = nullptr;
    workers.at(0)->release();
    settle();
  }
  Json run(const Json& id) { return api("run", {{"run", id}}); }
  std::size_t runs_in(const std::string& state) {
    const auto answer = api("runs");
    return static_cast<std::size_t>(
        std::ranges::count_if(answer.at("items"), [&](const Json& one) { return one.at("state") == state; }));
  }
};

}  // namespace muster::test
