#pragma once

#include <fstream>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "support/fake_cloud.h"
#include "support/parts_fleet.h"

namespace muster::test {

/// A fleet that a fault strikes while it works: an apply on the target `cloud`, which keeps its books in state(), and a
/// discovery of the target `wide`. The test configures both, as slow as the fault needs them to be. Thread: one.
class LoadedFleet : public PartsFleet {
 public:
  using PartsFleet::PartsFleet;

  static constexpr int kThings = 40;  // that are applied

  /// Begins both; returns when some of each is done, so that the coordinator has both questions.
  void load() {
    std::ofstream(stack()) << things(kThings, 1, kLayers);
    discover_ = begin({"discover", "--wait", "--target", "wide", "-o", "json"});
    REQUIRE(eventually([&] { return user_run_reads(); }));
    apply_ = begin({"apply", stack(), "--yes", "-o", "json"});
    REQUIRE(eventually([&] { return written(state()).size() >= 5; }));
  }

  [[nodiscard]] bool applied() const { return written(state()).size() == static_cast<std::size_t>(kThings); }

  /// Both have ended well, and what is known is what is there.
  /// `wide`   things of the target of that name
  void check_end(std::size_t wide) {
    const auto apply = nlohmann::json::parse(finish(apply_).out, nullptr, false);
    const auto run = nlohmann::json::parse(finish(discover_).out, nullptr, false);
    INFO(log());
    REQUIRE(apply.is_object());
    CHECK(apply["state"] == "complete");
    REQUIRE(run.is_object());
    CHECK(run["state"] == "complete");
    CHECK(doubled(state()).empty());
    CHECK(applied());
    CHECK(discover({"--timeout", "60s"})["state"] == "complete");
    CHECK(known({"--managed"}) == written(state()));
    CHECK(known({"--target", "wide"}).size() == wide);
    CHECK(all_alive());
  }

 protected:
  [[nodiscard]] std::string state() const { return (directory() / "state.db").string(); }

 private:
  static constexpr int kLayers = 20;  // one after the other: so long the apply takes at least

  [[nodiscard]] std::string stack() const { return (directory() / "stack.yaml").string(); }
  [[nodiscard]] std::set<std::string> known(const std::vector<std::string>& which) const {
    std::set<std::string> ids;
    for (const auto& row : resources(which)) CHECK(ids.insert(row["native_id"]).second);
    return ids;
  }

  Task apply_, discover_;
};

}  // namespace muster::test
