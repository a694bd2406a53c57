#include "coordinator/discovery.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "coordinator/command_plan.h"
#include "coordinator/must.h"
#include "coordinator/resource_id.h"
#include "coordinator/target_names.h"
#include "schema/subjects.h"

namespace muster {
namespace {

constexpr Millis kWaitForWorkers{10'000};  // that the configuration names, before the first run
constexpr Millis kWaitForReturn{10'000};   // of workers that fell silent: they may be restarting
constexpr Millis kRunProgressEvery{2000};
constexpr Millis kBusyAgain{1000};  // until it is seen whether a target that is due is still being looked at
constexpr std::size_t kRunsKept = 1000;
constexpr double kSlowestAnnounced = 0.1;  // calls per second: a worker that says less stops its pool
constexpr std::string_view kDrift = "drift";

}  // namespace

void Discovery::start(TimePoint now) {
  sync_targets();
  if (const auto newest = must(s_.store.runs({}, 1)); !newest.empty()) newest_ = newest.front().id;
  const auto unfinished = must(s_.store.unfinished_runs());
  for (const auto& row : unfinished) {
    const auto scope = RunScope::parse(row.scope);
    if (queued_.empty()) {
      queued_.push_back({row, scope});
      s_.log.info("run={} did not end: it starts again", row.id.value);
    } else {  // one run takes the others in, and they end with a word of it
      queued_.front().scope.add(scope);
      auto ended = row;
      ended.state = "failed";
      ended.finished_at = s_.clock.wall();
      ended.started_at = row.started_at.value_or(*ended.finished_at);
      ended.report =
          JsonObject()
              .text("run", row.id.value)
              .text("state", "failed")
              .text("trigger", row.trigger)
              .text("started_at", rfc3339(*ended.started_at))
              .text("finished_at", rfc3339(*ended.finished_at))
              .number("duration_ms", 0)
              .text("merged_into", queued_.front().row.id.value)
              .raw("scans", "[]")
              .raw("problems", "[{\"target\":\"\",\"type\":\"\",\"code\":\"MERGED\",\"message\":\"taken in by run " +
                                   queued_.front().row.id.value + "\"}]")
              .take();
      must(s_.store.put_run(ended));
      s_.events.emit({}, "run.finished", row.id.value,
                     JsonObject()
                         .text("run", row.id.value)
                         .text("state", ended.state)
                         .text("merged_into", queued_.front().row.id.value)
                         .take());
    }
  }
  queue({}, "start");
  queued_.front().workers_until = now + kWaitForWorkers;
  const auto targets = must(s_.store.targets());
  for (const auto& target : targets) {
    due_[target.name] = TimePoint::max();
    set_rate(target, now);
  }
  if (s_.config.drift_interval.count() > 0) reread_due_ = now + s_.config.drift_interval;
}

void Discovery::sync_targets() {
  auto rows = must(s_.store.counted_targets());
  const auto renamed = renamed_targets(s_.config.targets, rows);
  for (const auto* declared : in_order_of_names(s_.config.targets, renamed)) {
    const auto& config = *declared;
    auto row = row_of(rows, config, renamed);
    if (row->applied && row->state != TargetState::kRemoved) {
      s_.log.warn(
          "target={} was declared by a file that was applied, and is the configuration's now: take it out of the file, "
          "or `muster apply` refuses that",
          row->name);
    }
    row->applied = false;
    update_target(*row, config);
  }
  for (auto& row : rows) {
    if (std::ranges::find(s_.config.targets, row.name, &TargetConfig::name) != s_.config.targets.end()) continue;
    if (row.state != TargetState::kRemoved && !row.applied) remove_target(row);
  }
}

/// The row of what is declared, under its old name where it gets another one now; a new row where there is none.
std::vector<TargetRow>::iterator Discovery::row_of(std::vector<TargetRow>& rows, const TargetConfig& config,
                                                   const std::map<std::string, std::string>& renamed) {
  const auto was = renamed.find(config.name);
  const auto row = std::ranges::find(rows, was == renamed.end() ? config.name : was->second, &TargetRow::name);
  if (row != rows.end()) return row;
  TargetRow fresh;
  fresh.id = TargetId(make_ulid(s_.clock.wall(), random_));
  return rows.insert(rows.end(), std::move(fresh));
}

void Discovery::remove_target(TargetRow& row) {
  // Whatever is declared when it comes back: its rows are not known to be of that. An empty text is no configuration.
  if (row.state == TargetState::kChanged) row.config = {{}, {}};
  row.state = TargetState::kRemoved;
  must(s_.store.put_target(row));
  mark_stale(s_.store, row.id);
  due_.erase(row.name);
  outdate(row.id);
  s_.events.emit(row.ns, "target.changed", row.name,
                 JsonObject().text("target", row.name).text("is", "removed").take());
}

TimePoint Discovery::next_look(const TargetRow& target, TimePoint now) const {
  const auto interval = target.interval.count() > 0 ? target.interval : s_.config.discovery_interval;
  return interval.count() > 0 && target.discover ? now + interval : TimePoint::max();
}

void Discovery::apply_targets(const std::vector<TargetConfig>& targets, TimePoint now) {
  auto rows = must(s_.store.counted_targets());
  ScopePart fresh;
  const auto renamed = renamed_targets(targets, rows);
  for (const auto& [name, was] : renamed) due_.erase(was);
  for (const auto* declared : in_order_of_names(targets, renamed)) {
    const auto& config = *declared;
    auto row = row_of(rows, config, renamed);
    const bool looked_at = !row->name.empty() && row->state != TargetState::kRemoved && row->discover;
    row->applied = true;
    const bool look = update_target(*row, config) || !looked_at;
    set_rate(*row, now);
    auto& due = due_.try_emplace(row->name, TimePoint::max()).first->second;
    due = looked_at && config.discover ? std::min(due, next_look(*row, now)) : TimePoint::max();
    if (look && config.discover) fresh.targets.push_back(config.name);
  }
  if (!fresh.targets.empty()) queue(std::move(fresh), "apply");
}

void Discovery::drop_targets(const std::vector<std::string>& names) {
  for (auto& row : must(s_.store.targets())) {
    if (!row.applied || row.state == TargetState::kRemoved || std::ranges::find(names, row.name) == names.end())
      continue;
    if (!is_managed_on(row.name)) remove_target(row);
  }
}

bool Discovery::is_managed_on(const std::string& target) const {
  ResourceQuery query;
  query.target = target;
  query.managed = true;
  query.limit = 1;
  bool found = false;
  must(s_.store.query(query, [&](const ResourceView&) {
    found = true;
    return true;
  }));
  return found;
}

bool Discovery::has_rows(const TargetRow& target) const {
  return target.resources > 0 || is_managed_on(target.name) || is_made_on(target.name);
}

bool Discovery::is_made_on(const std::string& target) const {
  for (const auto& command : must(s_.store.unfinished_commands())) {
    for (const auto& operation : must(s_.store.operations(command.id))) {
      const bool asked = operation.state == "running" && operation.target == target && !operation.job.empty();
      if (asked && s_.dispatcher.may_have_begun(operation.job)) return true;
    }
  }
  return false;
}

bool Discovery::update_target(TargetRow& row, const TargetConfig& config) {
  const bool known = !row.name.empty();
  const bool moved = known && (row.config != config.config || row.ns != config.ns || row.pool != config.pool);
  const bool back = row.state == TargetState::kRemoved;
  // Without rows there is nothing that could belong to something else.
  const bool changed = moved && has_rows(row);
  const bool renamed = known && row.name != config.name;
  const auto was = row.name;
  if (renamed) rename_target(was, config.name);
  row.name = config.name;
  row.ns = config.ns;
  row.pool = config.pool;
  row.config = config.config;
  row.discover = config.discover;
  row.interval = config.interval;
  row.filters = config.filters;
  if (back || (moved && !changed)) row.state = TargetState::kActive;
  if (changed) row.state = TargetState::kChanged;
  if (moved && !changed) row.system.clear();
  if (moved) forget_filters(row);
  must(s_.store.put_target(row));
  if (changed) mark_stale(s_.store, row.id);
  if (moved) {
    s_.dispatcher.stop_changes(row.id);
    outdate(row.id);
  }
  if (changed || back || renamed) {
    const std::string_view is = changed ? "configuration changed" : renamed ? "renamed" : "back";
    JsonObject data;
    data.text("target", row.name).text("is", is);
    if (renamed) data.text("was", was);
    s_.events.emit(row.ns, "target.changed", row.name, data.take());
  }
  return moved && !changed;
}

void Discovery::rename_target(const std::string& was, const std::string& is) {
  must(s_.store.rename_target(was, is));
  for (auto& run : must(s_.store.unfinished_runs())) {
    auto scope = RunScope::parse(run.scope);
    scope.rename_target(was, is);
    run.scope = scope.json();
    must(s_.store.put_run(run));
  }
  for (auto& each : queued_) {
    each.scope.rename_target(was, is);
    each.row.scope = each.scope.json();
  }
  for (const auto& each : active_) each.run->rename_target(was, is);
  for (auto& command : must(s_.store.unfinished_commands())) {
    auto plan = CommandPlan::parse(command.plan);
    if (!plan) continue;
    plan->rename_target(was, is);
    command.plan = plan->json();
    must(s_.store.put_command(command));
  }
}

void Discovery::forget_filters(TargetRow& target) {
  target.plugin_filters.clear();
  target.inspected = false;
  for (auto& scan : must(s_.store.scans(target.id))) {
    if (scan.filters.empty()) continue;
    scan.filters.clear();  // the next run judges everything anew
    must(s_.store.put_scan(scan));
  }
}

/// What workers say of their systems holds from when they come, whether a run looks at these or not.
void Discovery::follow_announced_rates(TimePoint now) {
  if (s_.registry.changes() == changes_seen_) return;
  changes_seen_ = s_.registry.changes();
  const bool announced = std::ranges::any_of(
      s_.registry.workers(), [](const auto& worker) { return worker.second.announcement.max_requests_per_second > 0; });
  const bool known = std::exchange(rates_known_, announced);
  if (s_.config.limits.requests_per_second > 0 || (!announced && !known)) return;
  for (const auto& target : must(s_.store.targets())) {
    if (target.state == TargetState::kRemoved) continue;
    if (s_.registry.lane({target.ns, target.pool}).empty()) {
      rates_known_ = true;  // what holds there is for those who come to say
    } else {
      set_rate(target, now);
    }
  }
}

Result<Discovery::Trigger> Discovery::accept_target(const std::string& name) {
  for (auto& row : must(s_.store.targets())) {
    if (row.name != name) continue;
    if (row.state == TargetState::kChanged && is_made_on(name)) {
      return Error{Errc::kConflict,
                   "a change that was begun on what target " + name +
                       " was before is under way still: `muster commands` shows it; wait, or cancel it with --force",
                   {},
                   0};
    }
    if (row.state == TargetState::kChanged) {
      row.state = TargetState::kActive;
      row.system.clear();
      forget_filters(row);
      must(s_.store.put_target(row));
      s_.events.emit(row.ns, "target.changed", row.name,
                     JsonObject().text("target", row.name).text("is", "accepted").take());
    }
    return trigger({{name}, {}}, "user");
  }
  return Error{Errc::kNotFound, "no target is named '" + name + "': `muster targets` lists them", {}, 0};
}

Result<Discovery::Trigger> Discovery::trigger(ScopePart scope, const std::string& reason) {
  const auto targets = must(s_.store.targets());
  for (const auto& name : scope.targets) {
    const auto row = std::ranges::find(targets, name, &TargetRow::name);
    if (row == targets.end()) {
      return Error{Errc::kNotFound, "no target is named '" + name + "': `muster targets` lists them", {}, 0};
    }
    if (row->state == TargetState::kRemoved) {
      return Error{Errc::kNotFound, "target " + name + " is declared no more: it is looked at once it is again", {}, 0};
    }
  }
  for (const auto& type : scope.types) {
    if (!s_.registry.type(type)) {
      return Error{Errc::kNotFound, "no plugin serves type '" + type + "': `muster types` lists them", {}, 0};
    }
  }
  const auto holds_a_type = [&](const std::string& name) {
    const auto& ns = std::ranges::find(targets, name, &TargetRow::name)->ns;
    return std::ranges::any_of(scope.types, [&](const auto& type) { return namespace_of(type) == ns; });
  };
  if (!scope.targets.empty() && !scope.types.empty() && std::ranges::none_of(scope.targets, holds_a_type)) {
    return Error{Errc::kInvalidRequest,
                 "'" + scope.types.front() + "' is of another namespace than target '" + scope.targets.front() +
                     "': `muster targets` lists them",
                 {},
                 0};
  }
  return queue(std::move(scope), reason);
}

/// Ids sort by time, so that the newest run is the last: also for two within a millisecond, or a clock set back.
RunId Discovery::new_id() {
  auto at = s_.clock.wall();
  if (const auto last = parse_resource_id(newest_.value)) at = std::max(at, WallTime(Millis(last->millis + 1)));
  return newest_ = RunId(make_ulid(at, random_));
}

std::vector<TargetRow> Discovery::targets_of(const RunScope& scope) {
  auto targets = must(s_.store.targets());
  std::erase_if(targets, [&](const TargetRow& row) { return row.state == TargetState::kRemoved || !scope.of(row); });
  return targets;
}

Discovery::Trigger Discovery::queue(ScopePart part, const std::string& reason) {
  RunScope scope;
  scope.add(part);
  std::set<TargetId> after;
  for (const auto& target : targets_of(scope)) {
    if (is_looked_at(target.id)) after.insert(target.id);
  }
  auto waits = std::ranges::find_if(queued_, [&](const Queued& each) { return each.after.empty() == after.empty(); });
  if (waits == queued_.end() && queued_.size() == kMaxQueued) --waits;
  const bool merged = waits != queued_.end();
  if (!merged) {
    waits = queued_.insert(waits, Queued());
    waits->row.id = new_id();
    waits->row.trigger = reason;
    waits->row.report = "{}";
  }
  waits->scope.add(std::move(part));
  waits->after.merge(after);
  waits->row.state = "queued";
  waits->row.scope = waits->scope.json();
  must(s_.store.put_run(waits->row));
  return {waits->row.id, merged};
}

bool Discovery::is_blocked(const RunId& run) const {
  const auto found = std::ranges::find(queued_, run, [](const Queued& each) { return each.row.id; });
  return active_.size() >= kMaxActive || (found != queued_.end() && !found->after.empty());
}

bool Discovery::workers_ready(const std::vector<TargetRow>& targets) {
  std::size_t expected = 0;
  for (const auto& worker : s_.config.workers) expected += static_cast<std::size_t>(worker.count);
  std::size_t active = 0;
  for (const auto& [name, worker] : s_.registry.workers()) active += worker.state == WorkerState::kActive ? 1 : 0;
  return active >= expected && std::ranges::all_of(targets, [&](const TargetRow& target) {
           return s_.registry.serves({target.ns, target.pool}, {});
         });
}

/// Until when the workers that a target lacks are worth waiting for; the beginning of time when none is missed.
TimePoint Discovery::return_until(const std::vector<TargetRow>& targets) {
  TimePoint until;
  for (const auto& target : targets) {
    const Lane lane{target.ns, target.pool};
    if (s_.registry.serves(lane, {})) continue;
    for (const auto& [name, worker] : s_.registry.workers()) {
      if (worker.state == WorkerState::kLost && worker.lane() == lane) {
        until = std::max(until, worker.last_heard + kWaitForReturn);
      }
    }
  }
  return until;
}

Run* Discovery::of_owner(std::uint64_t owner) const {
  const auto found = std::ranges::find(active_, owner, [](const Active& each) { return each.run->owner(); });
  return found == active_.end() ? nullptr : found->run.get();
}

bool Discovery::is_looked_at(const TargetId& target) const {
  return std::ranges::any_of(active_, [&](const Active& each) { return each.run->looks_at(target); });
}

std::size_t Discovery::open_targets() const {
  std::size_t open = 0;
  for (const auto& each : active_) open += each.run->open_targets();
  return open;
}

std::set<std::string> Discovery::looked_at() const {
  std::set<std::string> names;
  if (open_targets() == 0) return names;
  for (const auto& row : must(s_.store.targets())) {
    if (is_looked_at(row.id)) names.insert(row.name);
  }
  return names;
}

void Discovery::outdate(const TargetId& target) {
  for (const auto& each : active_) each.run->outdate(target);
}

Run::IsTaken Discovery::taken_before(std::size_t active) const {
  return [this, active](const TargetId& target) {
    return std::any_of(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(active),
                       [&](const Active& each) { return each.run->looks_at(target); });
  };
}

void Discovery::begin_queued(TimePoint now) {
  std::erase_if(queued_, [&](Queued& each) { return begin(each, now); });
}

bool Discovery::begin(Queued& queued, TimePoint now) {
  std::erase_if(queued.after, [&](const TargetId& target) { return !is_looked_at(target); });
  if (!queued.after.empty() || active_.size() >= kMaxActive) return false;
  auto targets = targets_of(queued.scope);
  if (!first_) queued.workers_until = return_until(targets);
  if (now < queued.workers_until && !(first_ && workers_ready(targets))) return false;
  first_ = false;
  for (const auto& target : targets) {
    const auto scope = queued.scope.of(target);
    const bool whole = scope && scope->look == Look::kDiscover && scope->types.empty();
    if (whole) due_[target.name] = next_look(target, now);
    set_rate(target, now);
  }
  auto run = std::make_unique<Run>(s_, std::move(queued.row), std::move(queued.scope), next_owner_++);
  active_.push_back({std::move(run), now + kRunProgressEvery, {}});
  auto& begun = *active_.back().run;
  begun.start(std::move(targets), now);
  begun.advance(now, taken_before(active_.size() - 1));
  return true;
}

void Discovery::set_rate(const TargetRow& target, TimePoint now) {
  const auto limit = s_.config.limits.requests_per_second;
  double announced = 0;  // of the worker that says the system bears most: no limit is more than any
  for (const auto* worker : s_.registry.lane({target.ns, target.pool})) {
    const double rate = worker->announcement.max_requests_per_second;
    announced = std::max({announced, rate, kSlowestAnnounced});
    if (rate > 0) continue;
    announced = 0;
    break;
  }
  s_.limiter.set_rate(target.ns, target.id, limit > 0 ? limit : announced, now);
}

bool Discovery::look_ahead(const JobOutcome& outcome, TimePoint now) {
  auto* const run = of_owner(outcome.owner);
  return run != nullptr && run->look_ahead(outcome, now);
}

void Discovery::take(JobOutcome outcome) {
  if (auto* const run = of_owner(outcome.owner)) run->take(std::move(outcome));
}

void Discovery::tick(TimePoint now, Effects& effects) {
  follow_announced_rates(now);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    auto& each = active_[i];
    auto& run = *each.run;
    run.give_up_outdated(effects);
    run.advance(now, taken_before(i));
    if (!run.finished() && now >= run.deadline()) {
      run.abort(errc_name(Errc::kTimeout), "the run's deadline has come", effects);
    }
    if (run.finished()) {
      s_.log.info("run={} state={}", run.row().id.value, run.row().state);
      std::vector<RunId> next;
      for (const auto& part : run.follow_up()) {
        const auto id = queue(part, std::string(kDrift)).run;
        if (std::ranges::find(next, id) == next.end()) next.push_back(id);
      }
      if (!next.empty()) run.set_followed_by(std::move(next));
      must(s_.store.prune_runs(kRunsKept));
    } else if (now >= each.next_progress) {
      each.next_progress = now + kRunProgressEvery;
      auto progress = run.progress();
      if (progress != each.last_progress) s_.events.emit({}, "run.progress", run.row().id.value, progress);
      each.last_progress = std::move(progress);
    }
  }
  std::erase_if(active_, [](const Active& each) { return each.run->finished(); });
  queue_due(now);
  begin_queued(now);
}

void Discovery::queue_due(TimePoint now) {
  ScopePart due;
  std::optional<std::set<std::string>> busy;
  for (auto& [target, when] : due_) {
    if (when > now) continue;
    if (!busy) busy = looked_at();
    if (busy->contains(target)) {
      when = now + kBusyAgain;
      continue;
    }
    when = TimePoint::max();
    due.targets.push_back(target);
  }
  if (!due.targets.empty()) queue(std::move(due), "interval");
  if (now < reread_due_) return;
  reread_due_ = now + s_.config.drift_interval;
  const bool rereading =  // it takes longer than the interval
      std::ranges::any_of(active_, [](const Active& each) { return each.run->row().trigger == kDrift; });
  if (!rereading) queue_reread();
}

/// Of all targets, but for those that are being looked at in any case.
void Discovery::queue_reread() {
  ScopePart part{.look = Look::kReread};
  if (open_targets() > 0) {
    for (const auto& row : must(s_.store.targets())) {
      const bool free = row.state != TargetState::kRemoved && row.discover && !is_looked_at(row.id);
      if (free) part.targets.push_back(row.name);
    }
    if (part.targets.empty()) return;
  }
  queue(std::move(part), std::string(kDrift));
}

TimePoint Discovery::next_due() const {
  auto due = TimePoint::max();
  due = std::min(due, reread_due_);
  for (const auto& [target, when] : due_) due = std::min(due, when);
  for (const auto& each : active_) due = std::min({due, each.run->deadline(), each.next_progress});
  if (active_.size() >= kMaxActive) return due;
  for (const auto& each : queued_) due = each.after.empty() ? std::min(due, each.workers_until) : due;
  return due;
}

}  // namespace muster
