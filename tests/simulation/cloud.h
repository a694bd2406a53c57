#pragma once

#include <map>
#include <set>
#include <string>

#include "muster/worker.h"
#include "simulation/weather.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sim {

/// The truth of a simulation: what exists in the system behind the target, changed by the test alone. Served by a real
/// Plugin of namespace SIM: SIM::Box (listed with properties), SIM::Item below boxes (ids only, so each is read),
/// SIM::Note (ids only).
class Cloud {
 public:
  explicit Cloud(std::uint64_t seed) : random_(seed) {}

  struct Thing {
    std::string parent;  // native id of the box of an item
    int version = 0;
  };
  using Things = std::map<std::string, Thing>;

  void populate(std::size_t boxes, std::size_t items_each, std::size_t notes);
  /// Adds, changes, moves and removes things at random.
  void churn(std::size_t acts);

  [[nodiscard]] const std::map<std::string, Things>& types() const { return types_; }
  /// Whether a thing of that type and id has ever existed.
  [[nodiscard]] bool ever(const std::string& type, const std::string& id) const { return ever_.contains({type, id}); }
  /// How often a thing was removed, or a box that it had lain in: who has looked into its new box before it was there
  /// tells it as gone with the old one. It cannot have vanished more often.
  [[nodiscard]] std::size_t removals(const std::string& type, const std::string& id) const;
  [[nodiscard]] static Json properties(const std::string& type, const std::string& id, const Thing& thing);

  /// A plugin that serves this cloud, as well as the weather lets it.
  void serve(Plugin& plugin, Random& random, const Weather& weather) const;
  static PluginInfo plugin_info(const std::string& version);

 private:
  void add(const std::string& type, const std::string& id, Thing thing);
  void remove(const std::string& type, const std::string& id);
  std::string any(const std::string& type);

  struct Splitmix final : Random {
    explicit Splitmix(std::uint64_t seed) : state(seed) {}
    std::uint64_t next() override;
    std::uint64_t state;
  };
  Splitmix random_;
  std::map<std::string, Things> types_{{"SIM::Box", {}}, {"SIM::Item", {}}, {"SIM::Note", {}}};
  std::set<std::pair<std::string, std::string>> ever_;
  std::map<std::pair<std::string, std::string>, std::size_t> removals_;  // by type and id
  std::map<std::string, std::set<std::string>> left_;                    // by box: items that have lain in it
  std::size_t next_id_ = 0;
};

}  // namespace muster::sim
