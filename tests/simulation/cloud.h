#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "muster/worker.h"
#include "simulation/weather.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sim {

/// The truth of a simulation: what exists in the system behind the target, changed by the test alone. Served by a real
/// Plugin of namespace SIM: SIM::Box (listed with properties), SIM::Item below boxes (ids only, so each is read),
/// SIM::Note (ids only). It gives filters that keep things of some types and versions out of the inventory.
class Cloud {
 public:
  explicit Cloud(std::uint64_t seed) : random_(seed) {}

  /// From now on there are SIM::Part, too, below items (listed with properties). Before populate().
  void deepen();
  /// And from now on SIM::Folder (ids only), in one another or in nothing, and SIM::File in them (listed with
  /// properties). Before populate().
  void add_folders();

  /// SIM::Part outlives what it lies in from now on: it is in nothing then, and no listing shows it.
  void loosen() { loose_ = true; }
  /// Nothing tells one thing from another but its id.
  void hide_uids() { has_uids_ = false; }
  /// What lists tell whole is not to be read by itself.
  void only_list() { reads_whole_ = false; }

  struct Thing {
    std::string parent;  // native id of the box of an item, of the item of a part, of a folder
    int version = 0;
    std::string name = {};  // the id that it had first
    bool has_moved = false;
    bool has_swapped = false;  // its id with another
  };
  using Things = std::map<std::string, Thing>;

  void populate(std::size_t boxes, std::size_t items_each, std::size_t notes);
  /// Adds, changes, moves and removes things at random.
  void churn(std::size_t acts);
  /// Gives some things another id, with what lies in them; some of their ids are of others then.
  void rename(std::size_t acts);
  /// Puts others in the place of some things, under their ids.
  void succeed(std::size_t acts);
  /// Lets some things of one type have each other's ids, with what lies in them.
  void swap(std::size_t acts);
  /// Serves some of its types only from now on, or all.
  void narrow();
  void serve_all() { served_.clear(); }
  /// What the filters leave out from now on: things of one version, of some types.
  void filter();

  [[nodiscard]] const std::map<std::string, Things>& types() const { return types_; }
  /// Whether a thing of that type and id has ever existed.
  [[nodiscard]] bool ever(const std::string& type, const std::string& id) const { return ever_.contains({type, id}); }
  /// How often a thing was removed, or what it had lain in: who has looked into its new box before it was there tells
  /// it as gone with the old one. So does who has looked into a box that has taken the place of another, before he knew
  /// that it is another, or that it lay in another that is gone. It cannot have vanished more often.
  [[nodiscard]] std::size_t removals(const std::string& type, const std::string& id) const;
  [[nodiscard]] static Json properties(const std::string& type, const Thing& thing);
  enum class Kept : std::uint8_t {
    kYes,
    kNo,
    kUnknown  // in a box that is left out, and once seen in another: its listing would say so, and nobody asks for
              // that; or has outlived what it lay in: who has seen it before knows it still
  };
  [[nodiscard]] Kept kept(const std::string& type, const Thing& thing) const;

  /// A plugin that serves this cloud, as well as the weather lets it.
  void serve(Plugin& plugin, Random& random, const Weather& weather) const;
  static PluginInfo plugin_info(const std::string& version);

 private:
  void add(const std::string& type, const std::string& id, Thing thing);
  /// With what lies in it.
  void remove(const std::string& type, const std::string& id);
  void remove_contents(const std::string& type, const std::string& id);
  /// What lies in it, or has lain there, is told as gone with it.
  void count_removal(const std::string& type, const std::string& id);
  void count_removal(const std::string& type, const std::string& id,
                     std::set<std::pair<std::string, std::string>>& around);
  void note_place(const std::string& type, const std::string& id);
  std::string any(const std::string& type);
  std::string place_for(const std::string& type);
  /// Whether a folder is another, or lies in it, near or far.
  [[nodiscard]] bool lies_in(std::string folder, const std::string& id) const;
  [[nodiscard]] bool left_out(const std::string& type, const Thing& thing) const;

  struct Splitmix final : Random {
    explicit Splitmix(std::uint64_t seed) : state(seed) {}
    std::uint64_t next() override;
    std::uint64_t state;
  };
  Splitmix random_;
  std::vector<std::string> names_{"SIM::Box", "SIM::Item", "SIM::Note"};
  std::map<std::string, Things> types_{{"SIM::Box", {}}, {"SIM::Item", {}}, {"SIM::Note", {}}};
  std::set<std::pair<std::string, std::string>> ever_;
  std::map<std::pair<std::string, std::string>, std::size_t> removals_;        // by type and id
  std::map<std::pair<std::string, std::string>, std::set<std::string>> left_;  // by type and place: what lay there
  std::size_t next_id_ = 0;
  std::vector<MatchFilter> filters_;
  /// Whether what lies in something stays when that goes.
  [[nodiscard]] bool outlives(const std::string& type) const { return loose_ && type == "SIM::Part"; }
  [[nodiscard]] static bool is_whole(const std::string& type) {
    return type == "SIM::Box" || type == "SIM::Part" || type == "SIM::File";
  }
  [[nodiscard]] bool is_only_listed(const std::string& type) const {
    return is_whole(type) && !reads_whole_ && !outlives(type);
  }
  [[nodiscard]] std::string uid(const Thing& thing) const { return has_uids_ ? "uid-" + thing.name : ""; }
  bool loose_ = false;
  bool has_uids_ = true;
  bool reads_whole_ = true;
  std::vector<std::string> served_;  // empty: all
  int left_out_version_ = 0;         // by `filters_`, of their types
};

}  // namespace muster::sim
