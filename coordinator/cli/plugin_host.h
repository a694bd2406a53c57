#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cli/cgroup.h"
#include "coordinator/cli/plugin_folder.h"
#include "coordinator/cli/plugin_keeper.h"
#include "coordinator/cli/scaling.h"
#include "coordinator/cli/supervisor.h"

namespace muster::cli {

/// One plugin, or a folder of them, whose workers are to run here.
struct PluginEntry {
  std::string plugin;  // path of an executable; empty: there is a folder
  std::string folder;
  Verify verify = Verify::kIfListed;
  int count = 1;
  int max = 0;  // as many as jobs that wait need, up to that; 0: `count`
  int slots = 4;
  Command command;  // of its workers; argv[0] and name are filled in
};

/// What a coordinator says of a worker of ours.
struct WorkerNews {
  std::string worker;  // its id
  bool lost = false;
  std::size_t jobs = 0;
  std::optional<Demand> demand{};  // of its pool
};

/// Keeps the workers of plugins running: looks at folders, asks a PluginKeeper for each plugin what to do, and does it.
/// Thread: the supervisor's.
class PluginHost {
 public:
  PluginHost(std::vector<PluginEntry> entries, Supervisor::Log log);
  ~PluginHost();
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  /// Looks into the folders for the first time; what they hold is read by turn().
  /// errors   kNotFound, kLimit: a folder that cannot be read; kAccessDenied: nothing of it may be started;
  ///          kUnsupported: nobody here can limit its CPU
  Result<void> look();

  /// Where the bus is that its workers connect to.
  void set_bus(const std::string& url);

  /// What is due: looks again, reads a portion of what is new, starts, drains, kills. Processes that are left at the
  /// end are the supervisor's to stop.
  void turn(Supervisor& supervisor, TimePoint now);
  [[nodiscard]] TimePoint next_due() const;
  /// Whether this process stood still before the last turn: what was heard before is old.
  [[nodiscard]] bool stalled() const { return stalled_; }

  /// Looks again at once and tries again what was quarantined.
  void reload();

  /// Readable when a folder has changed: turn() looks then. -1: the kernel has no more watches, a look every 10 s does.
  [[nodiscard]] int changes() const { return inotify_; }

  // What coordinators say.
  void heard(const std::vector<WorkerNews>& workers, TimePoint now);
  /// None has answered for a while: workers that were started before that count as accepted.
  void trust(TimePoint started_before);

  struct Plugin {
    std::string name, path;
    PluginKeeper::Status status;
    std::vector<std::string> workers;  // ids of its processes that are to serve
    bool operator==(const Plugin&) const = default;
  };
  [[nodiscard]] std::vector<Plugin> plugins() const;
  /// Whether it waits for what a coordinator says.
  [[nodiscard]] bool awaits() const;
  /// Whether how many workers there are depends on what a coordinator says.
  [[nodiscard]] bool scales() const;

 private:
  struct Kept {
    PluginKeeper keeper;
    Scaling scaling;
    PluginFile file;                                  // as it was seen last
    std::map<std::string, PluginFile> versions = {};  // that may be started
  };
  struct Group {
    PluginEntry entry;
    std::optional<PluginFolder> folder;
    std::string trouble = {};                  // with the folder, as it was told last
    std::map<std::string, Kept> plugins = {};  // by file name
  };

  Result<void> prepare_limits();
  void hear(const WorkerNews& worker, TimePoint now);
  void read_changes(TimePoint now);
  void look_into(Group& group);
  void take(Group& group, PluginFile file);
  void tell(Kept& kept);
  /// Reads as much as what else is due can wait for.
  void read_portion();
  /// Whether a file is what was found; none: it is being read again, once for all starts of a turn.
  std::optional<bool> may_run(const PluginFile& file);
  void start(Supervisor& supervisor, Group& group, Kept& kept, const PluginKeeper::Start& start, TimePoint now);

  std::vector<Group> groups_;
  std::optional<Cgroups> cgroups_;
  std::map<pid_t, std::string> cgroup_of_;
  std::map<pid_t, std::string> id_of_;  // given to each at its start
  SystemRandom random_;
  struct Reading {
    Recheck check;
    bool asked = true;  // in this turn
  };
  std::map<std::shared_ptr<const OpenFile>, Reading> rechecks_;
  Supervisor::Log log_;
  int inotify_ = -1;
  TimePoint look_at_;
  std::optional<TimePoint> turned_;  // last
  bool stalled_ = false;
};

}  // namespace muster::cli
