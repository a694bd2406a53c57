#include "coordinator/cli/plugin_host.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <thread>
#include <utility>

#include "coordinator/cli/worker_command.h"

namespace muster::cli {
namespace {

constexpr Millis kSettle{200};                  // after a change, for what belongs to it
constexpr Millis kLookEvery{10'000};            // where the kernel tells nothing, such as on network file systems
constexpr std::uint64_t kPortion = 1ULL << 20;  // read in one turn, in which nothing else is done: some 5 ms
constexpr Millis kStandstill{5000};             // between two turns, which are a second apart at most
constexpr int kSweeps = 20;                     // at the end, of groups whose processes were killed
constexpr Millis kSweepEvery{10};
constexpr std::uint32_t kChanges =
    IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR;

}  // namespace

PluginHost::PluginHost(std::vector<PluginEntry> entries, Supervisor::Log log)
    : log_(std::move(log)), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  for (PluginEntry& entry : entries) {
    Group group{std::move(entry), std::nullopt};
    if (!group.entry.folder.empty()) group.folder.emplace(group.entry.folder, group.entry.verify);
    groups_.push_back(std::move(group));
  }
}

PluginHost::~PluginHost() {
  for (const auto& [pid, group] : cgroup_of_) cgroups_->remove(group);
  for (int i = 0; cgroups_ && i < kSweeps && !cgroups_->sweep(); ++i) std::this_thread::sleep_for(kSweepEvery);
  if (inotify_ >= 0) close(inotify_);
}

/// Groups are made where there are limits. Memory has a limit of the process besides; CPU has none.
Result<void> PluginHost::prepare_limits() {
  const auto limited = [](const Group& group) { return group.entry.command.limits != ProcessLimits{}; };
  if (std::none_of(groups_.begin(), groups_.end(), limited)) return {};
  const auto own = read_file("/proc/self/cgroup");
  auto cgroups = Cgroups::divide("/sys/fs/cgroup", own ? *own : "");
  if (cgroups) {
    cgroups_ = std::move(*cgroups);
    return {};
  }
  const auto slow = [](const Group& group) { return group.entry.command.limits.cpu > 0; };
  if (std::none_of(groups_.begin(), groups_.end(), slow)) return {};
  return Error{Errc::kUnsupported,
               "a limit of CPU needs a cgroup v2 that was delegated to this process (systemd: "
               "Delegate=yes), and there is none: " +
                   cgroups.error().message + ". Leave `cpu` out, or limit the service itself"};
}

Result<void> PluginHost::look() {
  if (auto prepared = prepare_limits(); !prepared) return prepared;
  for (Group& group : groups_) {
    if (!group.folder) {
      const std::string name = std::filesystem::path(group.entry.plugin).filename();
      take(group, {name, group.entry.plugin, {}, {}, false, nullptr});
      continue;
    }
    if (inotify_ >= 0) inotify_add_watch(inotify_, group.folder->path().c_str(), kChanges);
    const auto listing = group.folder->look();
    if (!listing) return listing.error();
    if (!listing->fault.empty()) return Error{Errc::kAccessDenied, group.folder->path() + ": " + listing->fault};
    look_into(group);
  }
  look_at_ = std::chrono::steady_clock::now() + kLookEvery;
  return {};
}

void PluginHost::set_bus(const std::string& url) {
  for (Group& group : groups_) group.entry.command.env["MUSTER_NATS_URL"] = url;
}

void PluginHost::reload() {
  for (Group& group : groups_) {
    for (auto& [name, kept] : group.plugins) kept.keeper.forgive();
  }
  look_at_ = TimePoint{};
}

void PluginHost::read_changes(TimePoint now) {
  alignas(inotify_event) std::array<char, 4096> events{};
  while (inotify_ >= 0 && read(inotify_, events.data(), events.size()) > 0)
    look_at_ = std::min(look_at_, now + kSettle);
}

void PluginHost::look_into(Group& group) {
  if (inotify_ >= 0) inotify_add_watch(inotify_, group.folder->path().c_str(), kChanges);  // it may be another by now
  auto listing = group.folder->look();
  const std::string trouble = listing ? listing->fault : listing.error().message;
  if (trouble != group.trouble && !trouble.empty()) log_("folder " + group.folder->path(), trouble);
  group.trouble = trouble;
  if (!listing) return;  // what runs goes on
  for (auto& [name, kept] : group.plugins) {
    const bool there = std::any_of(listing->files.begin(), listing->files.end(),
                                   [&name = name](const PluginFile& file) { return file.name == name; });
    if (!there) kept.keeper.remove();
  }
  for (PluginFile& file : listing->files) {
    if (!file.pending) take(group, std::move(file));
  }
}

void PluginHost::take(Group& group, PluginFile file) {
  const auto fewest = static_cast<std::size_t>(group.entry.count);
  const auto most = static_cast<std::size_t>(std::max(group.entry.count, group.entry.max));
  const Scaling scaling(fewest, most, static_cast<std::size_t>(group.entry.slots));
  Kept& kept = group.plugins.try_emplace(file.name, Kept{PluginKeeper(fewest), scaling, file}).first->second;
  kept.file = file;
  if (!file.refusal.empty()) {
    kept.keeper.refuse(file.version, file.refusal);
  } else {
    kept.keeper.want(file.version);
    kept.versions[file.version] = std::move(file);
  }
  std::erase_if(kept.versions, [&](const auto& version) { return !kept.keeper.uses(version.first); });
}

void PluginHost::tell(Kept& kept) {
  for (const std::string& notice : kept.keeper.take_notices()) log_("worker " + plugin_name(kept.file.name), notice);
}

void PluginHost::read_portion() {
  const auto reads = [](const Group& group) { return group.folder && group.folder->reads(); };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(groups_, reads));
  for (Group& group : groups_) {
    if (reads(group) && group.folder->read_on(std::max<std::uint64_t>(kPortion / count, 1))) look_into(group);
  }
  // What a check has found held for the starts of that turn, and nobody may be waiting for it any more.
  std::erase_if(rechecks_, [](const auto& one) { return !one.second.asked || one.second.check.unchanged(); });
  for (auto& [file, reading] : rechecks_) reading.asked = false;
  const auto next = std::ranges::min_element(rechecks_, {}, [](const auto& one) { return one.second.check.left(); });
  if (next != rechecks_.end()) next->second.check.read_on(kPortion);
}

std::optional<bool> PluginHost::may_run(const PluginFile& file) {
  if (!file.verified) return !file.file || !file.file->touched();
  Reading& reading = rechecks_.try_emplace(file.file, Reading{Recheck(file)}).first->second;
  reading.asked = true;
  return reading.check.unchanged();
}

void PluginHost::start(Supervisor& supervisor, Group& group, Kept& kept, const PluginKeeper::Start& start,
                       TimePoint now) {
  const PluginFile& file = kept.versions.at(start.version);
  const auto good = may_run(file);
  if (!good) return;                                                          // decide() says it again
  if (!*good && group.folder && group.folder->reads(kept.file.name)) return;  // what is there now is on its way
  if (!*good) {
    look_at_ = std::min(look_at_, now + kSettle);
    kept.keeper.not_started(start, "its file is being changed", now);
    return;
  }
  Command command = group.entry.command;
  set_executable(command, file.path);
  if (std::max(group.entry.count, group.entry.max) > 1) command.name += " " + std::to_string(start.seat + 1);
  // By its path where that is as good: then `ps` shows its name, and a script finds what lies beside it.
  if (file.file && (file.verified || !file.file->lies_at(file.path))) command.executable = file.file->descriptor();
  if (cgroups_ && command.limits != ProcessLimits{}) {
    auto made = cgroups_->make(command.limits);
    if (!made) return kept.keeper.not_started(start, "its limits cannot be set: " + made.error().message, now);
    command.group = *made;
  }
  const std::string id = make_token(random_);
  command.env["MUSTER_WORKER_ID"] = id;
  command.env["MUSTER_SUPERVISOR"] = std::to_string(getpid());
  const auto pid = supervisor.start_once(command, Stage::kWorkers);
  if (!command.group.empty()) {
    if (pid) {
      cgroup_of_[*pid] = command.group;
    } else {
      cgroups_->remove(command.group);
    }
  }
  if (pid) {
    id_of_[*pid] = id;
    kept.keeper.started(start, *pid, now);
  } else if (pid.error().code == Errc::kLimit) {
    kept.keeper.postponed(start, "cannot be started: " + pid.error().message, now);
  } else {
    kept.keeper.not_started(start, "cannot be started: " + pid.error().message, now);
  }
}

void PluginHost::turn(Supervisor& supervisor, TimePoint now) {
  stalled_ = turned_ && now - *turned_ >= kStandstill;
  turned_ = now;
  for (Group& group : groups_) {
    for (auto& [name, kept] : group.plugins) {
      if (stalled_) kept.keeper.stalled(now);
    }
  }
  read_changes(now);
  if (now >= look_at_) {
    look_at_ = now + kLookEvery;
    for (Group& group : groups_) {
      if (group.folder) look_into(group);
    }
  }
  read_portion();
  const auto ended = supervisor.take_ended();
  for (const auto& one : ended) {
    if (const auto group = cgroup_of_.extract(one.pid)) cgroups_->remove(group.mapped());
    id_of_.erase(one.pid);
  }
  if (cgroups_) cgroups_->sweep();
  for (Group& group : groups_) {
    for (auto& [name, kept] : group.plugins) {
      for (const auto& [pid, how] : ended) kept.keeper.ended(pid, how, now);
      const auto actions = kept.keeper.decide(now);
      for (const auto& one : actions.starts) start(supervisor, group, kept, one, now);
      for (const pid_t pid : actions.drains) supervisor.signal(pid, SIGTERM);
      for (const pid_t pid : actions.kills) supervisor.signal(pid, SIGKILL);
      tell(kept);
    }
    std::erase_if(group.plugins, [](const auto& one) { return one.second.keeper.over(); });
  }
}

TimePoint PluginHost::next_due() const {
  TimePoint due = look_at_;
  for (const Group& group : groups_) {
    if (group.folder && group.folder->reads()) return TimePoint{};
    for (const auto& [name, kept] : group.plugins) due = std::min(due, kept.keeper.next_due());
  }
  return due;
}

void PluginHost::heard(const std::vector<WorkerNews>& workers, TimePoint now) {
  for (const WorkerNews& worker : workers) hear(worker, now);
  for (const auto& [pid, id] : id_of_) {
    if (std::ranges::find(workers, id, &WorkerNews::worker) != workers.end()) continue;
    for (Group& group : groups_) {
      for (auto& [name, kept] : group.plugins) kept.keeper.unknown(pid, now);
    }
  }
}

void PluginHost::hear(const WorkerNews& worker, TimePoint now) {
  const auto process = std::ranges::find(id_of_, worker.worker, &decltype(id_of_)::value_type::second);
  if (process == id_of_.end()) return;
  const pid_t pid = process->first;
  for (Group& group : groups_) {
    for (auto& [name, kept] : group.plugins) {
      if (!kept.keeper.runs(pid)) continue;
      if (worker.lost) {
        kept.keeper.lost(pid, now);
      } else {
        kept.keeper.accepted(pid);
      }
      kept.keeper.has_jobs(pid, worker.jobs);
      if (!worker.demand || !kept.scaling.active()) continue;
      kept.scaling.hear(*worker.demand, now);
      kept.keeper.scale(kept.scaling.wanted());
    }
  }
}

bool PluginHost::scales() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.entry.max > 0; });
}

void PluginHost::trust(TimePoint started_before) {
  for (Group& group : groups_) {
    for (auto& [name, kept] : group.plugins) kept.keeper.trust(started_before);
  }
}

std::vector<PluginHost::Plugin> PluginHost::plugins() const {
  std::vector<Plugin> list;
  for (const Group& group : groups_) {
    for (const auto& [name, kept] : group.plugins) {
      Plugin plugin{plugin_name(name), kept.file.path, kept.keeper.status(), {}};
      for (const pid_t pid : plugin.status.processes) plugin.workers.push_back(id_of_.at(pid));
      list.push_back(std::move(plugin));
    }
  }
  return list;
}

bool PluginHost::awaits() const {
  for (const Group& group : groups_) {
    for (const auto& [name, kept] : group.plugins) {
      if (kept.keeper.awaits()) return true;
    }
  }
  return false;
}

}  // namespace muster::cli
