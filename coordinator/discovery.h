#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/run.h"

namespace muster {

/// When runs begin, over what, and which one: no target is looked at by two runs at once. What is asked for over
/// targets that are being looked at waits until that is done, in one more run, which takes in what else has to wait.
/// What is free waits for nothing: a slow target holds up no other one. Where a run that has waited finds others of its
/// targets taken by then, it begins without them and looks at each once it is free. Store errors are thrown as
/// StoreFailure. Thread: loop thread only.
class Discovery {
 public:
  struct Trigger {
    RunId run;
    bool merged = false;  // into a run that waits already
  };

  Discovery(RunServices services, Random& random) : s_(services), random_(random) {}

  /// Brings the targets in line with the configuration, and takes up runs that did not end.
  void start(TimePoint now);

  /// A run over `scope`: a new one, or the one that waits, widened.
  /// errors   kNotFound: no such target or type; the message names it
  Result<Trigger> trigger(ScopePart scope, const std::string& reason);

  /// The target's rows are accepted as belonging to its present system and configuration.
  /// errors   kNotFound; kConflict: something is being made yet on what it was before
  Result<Trigger> accept_target(const std::string& name);

  /// Targets of files that are applied: kept beside those of the configuration, and looked at when they are new.
  void apply_targets(const std::vector<TargetConfig>& targets, TimePoint now);
  /// Those of them that nothing managed stands on leave, as if they had left the configuration.
  void drop_targets(const std::vector<std::string>& names);
  /// Whether what is known of a target could belong to something else once it is declared otherwise: also what is
  /// managed there and gone, whose id another system may have, and what is being made there.
  /// `target`   as of Store::counted_targets()
  [[nodiscard]] bool has_rows(const TargetRow& target) const;

  /// As Run::look_ahead().
  bool look_ahead(const JobOutcome& outcome, TimePoint now);
  void take(JobOutcome outcome);
  void tick(TimePoint now, Effects& effects);
  [[nodiscard]] TimePoint next_due() const;

  /// Runs under way, the oldest first; at most kMaxActive.
  struct Active {
    std::unique_ptr<Run> run;
    TimePoint next_progress;
    JsonText last_progress;
  };
  static constexpr std::size_t kMaxActive = 16;
  [[nodiscard]] const std::vector<Active>& active() const { return active_; }
  [[nodiscard]] bool any_queued() const { return !queued_.empty(); }
  /// Whether the fleet has just started, and its first run waits for workers.
  [[nodiscard]] bool awaits_workers() const { return first_; }
  /// Whether a queued run waits for one under way.
  [[nodiscard]] bool is_blocked(const RunId& run) const;

 private:
  struct Queued {
    RunRow row;
    RunScope scope;
    std::set<TargetId> after{};  // targets that were being looked at when it was asked for
    TimePoint workers_until{};   // it waits for workers until then
  };
  static constexpr std::size_t kMaxQueued = 4;

  [[nodiscard]] Run* of_owner(std::uint64_t owner) const;
  [[nodiscard]] bool is_looked_at(const TargetId& target) const;
  /// Targets that runs under way have not done with.
  [[nodiscard]] std::size_t open_targets() const;
  void outdate(const TargetId& target);
  void sync_targets();
  /// How often a target may be asked: as the configuration says, or as its workers do.
  void set_rate(const TargetRow& target, TimePoint now);
  void follow_announced_rates(TimePoint now);
  /// Writes what is declared of it; whether that is to be looked at again for want of rows that might be another's.
  bool update_target(TargetRow& row, const TargetConfig& config);
  void remove_target(TargetRow& row);
  [[nodiscard]] bool is_managed_on(const std::string& target) const;
  /// Whether a worker may have begun to make something there, of which it is not known yet how that went.
  [[nodiscard]] bool is_made_on(const std::string& target) const;
  std::vector<TargetRow>::iterator row_of(std::vector<TargetRow>& rows, const TargetConfig& config,
                                          const std::map<std::string, std::string>& renamed);
  /// What is declared on it, and under way there, goes by the new name.
  void rename_target(const std::string& was, const std::string& is);
  /// What its plugin said is to be left out is not known to hold of what it is now, nor that what was left out by then
  /// is what has its ids now.
  void forget_filters(TargetRow& target);
  [[nodiscard]] bool workers_ready(const std::vector<TargetRow>& targets);
  [[nodiscard]] TimePoint return_until(const std::vector<TargetRow>& targets);
  RunId new_id();
  /// Into a run that waits, or a new one. What could begin now waits for no run that cannot.
  Trigger queue(ScopePart scope, const std::string& reason);
  [[nodiscard]] std::vector<TargetRow> targets_of(const RunScope& scope);
  /// Whether one of the runs before the active one of that number has not done with a target.
  [[nodiscard]] Run::IsTaken taken_before(std::size_t active) const;
  [[nodiscard]] TimePoint next_look(const TargetRow& target, TimePoint now) const;
  void queue_due(TimePoint now);
  void queue_reread();
  /// Names of the targets that runs under way have not done with.
  [[nodiscard]] std::set<std::string> looked_at() const;
  void begin_queued(TimePoint now);
  /// False: it still waits.
  bool begin(Queued& queued, TimePoint now);

  RunServices s_;
  Random& random_;
  std::vector<Active> active_;
  std::vector<Queued> queued_;            // bounded; one that is blocked, as a rule, and one that is about to begin
  std::map<std::string, TimePoint> due_;  // by target name: when its interval is over
  TimePoint reread_due_ = TimePoint::max();
  RunId newest_;
  std::uint64_t next_owner_ = 1;
  std::uint64_t changes_seen_ = 0;  // of the registry, when the rates were set
  bool first_ = true;
  bool rates_known_ = false;  // some worker knew a rate then, or somewhere none was left to know one
};

}  // namespace muster
