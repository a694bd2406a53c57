// How a run ends a scan: what was not listed is confirmed to be gone, or renamed, or left alone as stale.

#include <algorithm>

#include <spdlog/spdlog.h>

#include "coordinator/json_patch.h"
#include "coordinator/must.h"
#include "coordinator/run_state.h"
#include "coordinator/settling.h"
#include "schema/mutation.h"

namespace muster {
namespace {

/// Whether the answer for an id proves that the object `uid` has it no more.
bool is_moved(const ReadItem& answer, std::string_view uid) {
  const auto* item = std::get_if<Item>(&answer);
  return item != nullptr && !item->uid.empty() && item->uid != uid;
}

/// Gives the answer for each of `ids` to `take`, with whether it is an answer for that id alone; a job that failed as a
/// whole has been tried again already.
template <typename Take>
void each_answer(const JobResult& result, const std::vector<std::string>& ids, Take take) {
  const auto* read = std::get_if<ReadResult>(&result);
  const bool whole = read != nullptr && read->items.size() == ids.size();
  const auto* failed = std::get_if<Error>(&result);
  const ReadItem no_answer =
      failed != nullptr ? *failed : Error{Errc::kContract, "the plugin did not answer each id", {}, 0};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto* item = whole ? std::get_if<Item>(&read->items[i]) : nullptr;
    if (item != nullptr && item->native_id != ids[i] && !MUSTER_MUTATION("any-id")) {
      take(i, Error{Errc::kContract, "the plugin read " + item->native_id + " instead", {}, 0}, false);
    } else {
      take(i, whole ? read->items[i] : no_answer, whole);
    }
  }
}

/// Whether a command has made or changed what the row is of less than the settle time ago: where a stack lets go of it,
/// it shows no sooner for that.
bool was_just_written(Store& store, RowId row, Millis settle, WallTime now) {
  return std::ranges::any_of(must(store.history(row)), [&](const HistoryEntry& entry) {
    const bool by_command = entry.cause == "created" || entry.cause == "updated";
    return by_command && settles_for(entry.at, settle, now) > Millis{0};
  });
}

bool is_gone(const ReadItem& answer) {
  const auto* error = std::get_if<Error>(&answer);
  return error != nullptr && error->code == Errc::kNotFound;
}

}  // namespace

void Run::settle(TargetRun& target, Scan& scan) {
  if (scan.phase == Scan::Phase::kListing) {
    if (!scan.begun)
      begin_scan(target, scan);  // a child type without a parent in sight: its rows may be missing all the same
    scan.phase = Scan::Phase::kSettled;
  }
  // Children are judged after their parents: most of them go with a parent that vanished.
  const bool in_turn = scan.parent == nullptr || scan.parent == &scan || scan.parent->phase == Scan::Phase::kDone;
  if (scan.phase == Scan::Phase::kSettled && in_turn) {
    if (scan.parent != nullptr && scan.parent->listing_failed) scan.listing_failed = true;
    scan.phase = Scan::Phase::kConfirming;
    for (const auto& entry : scan.index.entries()) {
      if (entry.seen || target.left.contains(entry.row)) continue;
      if (scan.listing_failed && !MUSTER_MUTATION("partial-is-whole")) continue;
      // Of a tree that is missing only the top is asked for; the rest goes with it, or is asked for afterwards.
      const auto* above = scan.parent == &scan ? scan.index.find_row(entry.parent) : nullptr;
      if (above != nullptr && !above->seen) continue;
      judge_unlisted(target, scan, entry.row);
    }
  }
  const bool answered = scan.to_confirm.empty() && scan.confirms == 0;
  if (scan.phase == Scan::Phase::kConfirming && answered) finish_scan(target, scan);
}

bool Run::resolve_by_listing(TargetRun& target, Scan& scan) {
  if (scan.old_ids.empty() || (!scan.answered_all() && !scan.deferred.full())) return false;
  for (const auto& old : std::exchange(scan.old_ids, {})) {
    const auto* entry = scan.index.find_row(old.row);
    if (scan.listing_failed) {
      scan.deferred.take(old.row);  // nothing is recorded, the next run looks again
    } else {
      resolve(target, scan, old.row, entry != nullptr && entry->seen ? OldId::kThere : OldId::kGone);
    }
  }
  return true;
}

void Run::judge_unlisted(TargetRun& target, Scan& scan, RowId row) {
  if (scan.readable) {
    scan.to_confirm.push_back({row, 0});
    return;
  }
  const auto record = must(s_.store.one(row));
  if (!record || !is_listed(record->state)) return;
  position_ = 0;  // of what has been written meanwhile it is not known whether it was listed before
  take_missing(target, scan, row, std::string(record->native_id), Error{Errc::kNotFound, "not listed", {}, 0});
}

/// A full batch of old ids at a time, and what is left when no more are on their way.
bool Run::ask_old_ids(TargetRun& target, Scan& scan, TimePoint now) {
  if (!scan.readable) return resolve_by_listing(target, scan);
  const bool more_to_come = scan.lists + scan.reads > 0 || !scan.next_pages.empty() || !scan.to_read.empty();
  const auto most = ids_read_together(*scan.type);
  const bool full = scan.old_ids.size() >= most || scan.deferred.full();
  if (scan.old_ids.empty() || (more_to_come && !full)) return false;
  Pending::OldIds batch;
  while (!scan.old_ids.empty() && batch.asked.size() < most) {
    const auto next = scan.old_ids.front();
    scan.old_ids.pop_front();
    if (!scan.deferred.holds(next.row)) continue;  // settled meanwhile
    batch.ids.emplace_back(must(s_.store.one(next.row)).value().native_id);
    batch.asked.push_back(next);
  }
  if (batch.asked.empty()) return false;
  ++scan.confirms;
  ReadJob operation{batch.ids};
  submit(job(target, scan, std::move(operation)), {&target, &scan, std::move(batch)}, now);
  return true;
}

void Run::take_old_ids(TargetRun& target, Scan& scan, const std::vector<PendingConfirmation>& asked,
                       const std::vector<std::string>& ids, JobResult result) {
  each_answer(result, ids, [&](std::size_t i, const ReadItem& answer, bool retriable) {
    auto one = asked[i];
    const auto* error = std::get_if<Error>(&answer);
    if (retriable && error != nullptr && again(target, *error, one.failures)) {
      scan.old_ids.push_back(one);
    } else if (scan.deferred.holds(one.row)) {
      take_old_id(target, scan, one.row, ids[i], answer);
    }
  });
}

bool Run::confirm_more(TargetRun& target, Scan& scan, TimePoint now) {
  if (scan.phase != Scan::Phase::kConfirming) return false;
  const auto most = ids_read_together(*scan.type);
  Pending::Confirmations batch;
  while (!scan.to_confirm.empty() && batch.asked.size() < most) {
    const auto next = scan.to_confirm.front();
    scan.to_confirm.pop_front();
    if (target.left.contains(next.row)) continue;
    const auto record = must(s_.store.one(next.row));
    if (!record || !is_listed(record->state)) continue;
    batch.asked.push_back(next);
    batch.ids.emplace_back(record->native_id);
  }
  if (batch.asked.empty()) return false;
  ++scan.confirms;
  ReadJob operation{batch.ids};
  submit(job(target, scan, std::move(operation)), {&target, &scan, std::move(batch)}, now);
  return true;
}

void Run::take_confirmations(TargetRun& target, Scan& scan, const std::vector<PendingConfirmation>& asked,
                             const std::vector<std::string>& ids, JobResult result) {
  each_answer(result, ids, [&](std::size_t i, const ReadItem& answer, bool retriable) {
    auto one = asked[i];
    const auto* error = std::get_if<Error>(&answer);
    if (retriable && error != nullptr && again(target, *error, one.failures)) {
      scan.to_confirm.push_back(one);
    } else {
      take_missing(target, scan, one.row, ids[i], answer);
    }
  });
}

void Run::take_old_id(TargetRun& target, Scan& scan, RowId row, const std::string& id, const ReadItem& answer) {
  const auto* error = std::get_if<Error>(&answer);
  if (error != nullptr && error->code != Errc::kNotFound) {
    // Which of the two it is cannot be told: nothing is recorded, the next run looks again.
    scan.deferred.take(row);
    fail_scan(target, scan, *error, "reading " + id + ", which may have been renamed");
    return;
  }
  const bool gone = error != nullptr || is_moved(answer, must(s_.store.one(row)).value().uid);
  resolve(target, scan, row, gone ? OldId::kGone : OldId::kThere);
}

void Run::resolve(TargetRun& target, Scan& scan, RowId row, OldId old) {
  const auto deferred = scan.deferred.take(row);
  for (std::size_t i = 0; i < deferred.size(); ++i) {
    const auto& item = deferred[i].item;
    if (s_.writes.outdates(deferred[i].position, scan.row.id, item.native_id)) continue;
    if (old == OldId::kGone && i == 0) {
      rename(target, scan, row, deferred[i]);
    } else {
      observe_waiting(target, scan, deferred[i]);
    }
  }
  parsed_ = {};  // what comes next may lie where these texts did
}

void Run::observe_waiting(TargetRun& target, Scan& scan, const Deferred& deferred) {
  if (deferred.filtered) {
    ++scan.counts.filtered;
    return;
  }
  const auto& item = deferred.item;
  parsed_ = {};
  observe_new(target, scan, item, deferred.parent, item.properties, hash128(item.properties));
}

void Run::rename(TargetRun& target, Scan& scan, RowId row, const Deferred& deferred) {
  const auto& item = deferred.item;
  parsed_ = {};
  const auto old = must(s_.store.one(row));
  if (!old || !is_listed(old->state)) {  // it left while this waited, with its parent or by a command
    observe_waiting(target, scan, deferred);
    return;
  }
  const auto label = label_of(target, scan, item.properties, item.native_id);
  must(s_.store.rename(row, item.native_id, label, deferred.parent, s_.clock.wall()));
  auto said = JsonObject().text("was", old->native_id).take();
  said = said.substr(1, said.size() - 2);
  if (old->properties != item.properties) {
    const auto patch = patch_between(old->properties, item.properties);
    said += "," + record_change(target, scan, *old, item, item.properties, hash128(item.properties), patch);
  }
  ++scan.counts.renamed;
  if (auto* entry = scan.index.find_row(row)) {
    if (entry->seen) scan.fresh.insert(entry->key);  // the id that it had was listed, and is another's
    entry->seen = entry->observed = entry->moved = true;
  }
  if (!deferred.filtered || old->managed) queue_children(scan, row);
  s_.events.emit(target.target.ns, "resource.renamed", old->id.value,
                 identity(target, scan.type->name, old->id, item.native_id, said));
  if (old->managed) s_.drift.judge(must(s_.store.one(row)).value());
  // It leaves as what it is called now, and not before it is known what has moved out of it.
  if (deferred.filtered && !old->managed) filter_out(target, scan, scan.index.find_row(row));
}

void Run::rename_circle(TargetRun& target, Scan& scan, const std::vector<RowId>& rows) {
  std::vector<Deferred> seen;
  for (const auto row : rows) seen.push_back(std::move(scan.successors.take(row).front()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[(i + 1) % rows.size()];
    auto& item = seen[i].item;
    parsed_ = {};
    JsonText made;
    const auto text = canonical_of(target, scan, item, made);
    const auto kept = text ? keeps(target, scan, item.native_id, *text) : std::nullopt;
    const auto known = must(s_.store.one(row));
    const bool there = known && is_listed(known->state);
    if (!kept && !there) continue;
    // What nobody can judge is what it was, under its new id: the one that it had is another's.
    item.properties = kept ? std::string(*text) : known->properties;
    seen[i].filtered = kept == false && !(known && known->managed);
    rename(target, scan, row, seen[i]);
  }
}

void Run::take_missing(TargetRun& target, Scan& scan, RowId row, const std::string& id, const ReadItem& answer) {
  auto* entry = scan.index.find_row(row);
  if (entry == nullptr || target.left.contains(row)) return;
  const bool unlisted =
      MUSTER_MUTATION("missing-unconfirmed") || (scan.listing_failed && MUSTER_MUTATION("partial-is-whole"));
  const auto record = must(s_.store.one(row));
  // Whose the id is now lies where nothing is listed: it is not to be known, and the one that had the id is gone.
  const auto* const there = std::get_if<Item>(&answer);
  const bool another =
      there != nullptr && record && !record->uid.empty() && !there->uid.empty() && there->uid != record->uid;
  if (is_gone(answer) || another || unlisted) {
    const auto settle = scan.type->settle;
    const auto wall = s_.clock.wall();
    const bool settling = !another && record && settles_for(record->changed_at, settle, wall) > Millis{0} &&
                          (record->managed || was_just_written(s_.store, row, settle, wall));
    if (settling || s_.writes.outdates(position_, scan.row.id, id)) {
      entry->seen = true;
      queue_children(scan, row);
      return;
    }
    if (target.hidden.contains(row) && record && !record->managed) {
      --scan.counts.filtered;  // as which it was counted when it was seen
      leave_tree(target, row, ResourceState::kFiltered, "filtered");
    } else {
      leave_tree(target, row, ResourceState::kVanished, "vanished");
    }
    judge_below(target, scan, row);  // which outlives it
    return;
  }
  if (there != nullptr) {
    // Not listed and there all the same: the list is not to be trusted, the object is.
    entry->seen = true;
    observe(target, scan, {id, there->uid, there->properties}, entry->parent);
    judge_below(target, scan, row);
    return;
  }
  const auto& error = std::get<Error>(answer);
  ++scan.counts.errors;
  problem(target, scan.type->name, errc_name(error.code), id + " was not listed, and cannot be read: " + error.message);
  queue_children(scan, row);
}

void Run::judge_below(TargetRun& target, Scan& scan, RowId row) {
  if (scan.parent != &scan) return;
  for (const auto& below : scan.index.entries()) {
    if (below.parent == row && !below.seen && !target.left.contains(below.row)) judge_unlisted(target, scan, below.row);
  }
}

void Run::leave(TargetRun& target, RowId row, ResourceState state, std::string_view reason) {
  const auto record = must(s_.store.one(row));
  if (!record || !is_listed(record->state)) return;
  // What is managed is never filtered, and stays in the list when it is gone.
  if (record->managed && (state == ResourceState::kFiltered || record->state == ResourceState::kMissing)) return;
  must(s_.store.leave(row, record->managed ? ResourceState::kMissing : state, reason, s_.clock.wall()));
  if (record->managed) s_.drift.gone(*record);
  target.left.insert(row);
  const bool vanished = state == ResourceState::kVanished;
  const auto scan = std::ranges::find_if(target.scans, [&](const auto& s) { return s->row.id == record->scan; });
  // A type that this run does not look at goes with its parent all the same.
  if (scan != target.scans.end()) ++(vanished ? (*scan)->counts.missing : (*scan)->counts.filtered);
  s_.events.emit(
      target.target.ns, vanished ? "resource.vanished" : "resource.filtered", record->id.value,
      identity(target, record->type, record->id, record->native_id, "\"reason\":\"" + std::string(reason) + "\""));
}

void Run::leave_tree(TargetRun& target, RowId top, ResourceState state, std::string_view reason) {
  const auto below = must(s_.store.descendants(top));
  leave(target, top, state, reason);
  std::unordered_set<RowId> kept;
  for (const auto row : below) {
    const auto record = must(s_.store.one(row));
    if (!record) continue;
    const auto scan = std::ranges::find_if(target.scans, [&](const auto& s) { return s->row.id == record->scan; });
    const bool known = scan != target.scans.end();
    auto* entry = known ? (*scan)->index.find_row(row) : nullptr;
    const bool seen = entry != nullptr && entry->seen;  // listed below another parent: it has moved
    // What is not contained in its parent outlives it, and is judged by a read of its own, in a run that looks at it.
    const auto type = std::ranges::find(target.manifest->types, record->type, &TypeDescriptor::name);
    const bool contained = type == target.manifest->types.end() || type->contained;
    const bool alone = !contained && state == ResourceState::kVanished;
    if (seen || alone || kept.contains(record->parent)) {
      kept.insert(row);
      continue;
    }
    // It may be found elsewhere yet, or in what has the parent's place; what is managed is judged by a read then.
    const bool known_again = known && (record->managed || !record->uid.empty());
    if (known_again && !target.all_listed && state == ResourceState::kVanished) {
      if (!record->managed) target.to_follow.push_back(row);
      kept.insert(row);
      continue;
    }
    leave(target, row, state, "parent");
  }
}

void Run::leave_late(TargetRun& target) {
  target.all_listed = true;
  for (const auto row : std::exchange(target.to_leave, {})) {
    const auto record = must(s_.store.one(row));
    if (record && !record->managed) leave_tree(target, row, ResourceState::kFiltered, "filtered");
  }
  for (const auto row : std::exchange(target.to_follow, {})) {
    const auto record = must(s_.store.one(row));
    if (!record || s_.writes.knows(record->scan, record->native_id)) continue;
    auto& scan = **std::ranges::find_if(target.scans, [&](const auto& s) { return s->row.id == record->scan; });
    const auto* entry = scan.index.find_row(row);
    const bool seen = entry != nullptr && entry->seen;
    if (!seen && !scan.listing_failed) leave_tree(target, row, ResourceState::kVanished, "parent");
  }
}

void Run::finish_scan(TargetRun& target, Scan& scan) {
  // Below what could not be looked at nothing was listed.
  const bool all_parents = scan.parent == nullptr || scan.parent == &scan || scan.parent->complete;
  scan.complete = !scan.listing_failed && scan.counts.errors == 0 && all_parents;
  if (scan.unjudged > 1) {
    problem(target, scan.type->name, errc_name(Errc::kTooLarge),
            std::to_string(scan.unjudged - 1) + " more could not be judged by the filters");
  }
  if (!target.rereads) vouch(target, scan);
  scan.row.last_run = row_.id;
  must(s_.store.put_scan(scan.row));
  scan.close();
}

/// What a scan that listed says of all its rows.
void Run::vouch(const TargetRun& target, Scan& scan) {
  scan.row.stale = scan.listing_failed && !scan.answered;
  if (!scan.row.stale) {
    for (const auto& entry : scan.index.entries()) {
      if (!entry.seen && !entry.stale && !target.left.contains(entry.row)) must(s_.store.set_stale(entry.row, true));
    }
  }
  // With errors, some rows may not have been judged by these filters.
  if (scan.complete || (!scan.listing_failed && MUSTER_MUTATION("filters-of-part"))) {
    scan.row.last_complete = s_.clock.wall();
    scan.row.filters = target.judged_by();
  }
  if (scan.listing_failed) return;
  for (const auto& [id, filtered] : scan.filtered) {
    if (!filtered.seen) must(s_.store.drop_filtered(scan.row.id, id));
  }
}

void Run::finish_target(TargetRun& target) {
  target.phase = TargetRun::Phase::kDone;
  auto& row = target.target;
  const bool answered = std::ranges::any_of(target.scans, &Scan::answered);
  // What is only read again says nothing of a target of which nothing is known.
  const bool asked = !target.rereads || std::ranges::any_of(target.scans, [](const auto& scan) {
    return scan->answered || scan->listing_failed || scan->counts.errors > 0;
  });
  const bool looked = target.unanswered || (!target.skipped && !target.scans.empty() && asked);
  if (looked && answered != row.reachable && (answered || !target.deserted)) {
    row.reachable = answered;
    s_.events.emit(row.ns, answered ? "target.reachable" : "target.unreachable", row.name,
                   JsonObject().text("target", row.name).text("run", row_.id.value).take());
  }
  row.last_run = row_.id;
  must(s_.store.note_target(row));
}

void Run::finish() {
  finished_ = true;
  bool complete = !aborted_;
  bool any = targets_.empty();
  for (const auto& target : targets_) {
    complete = complete && !target->skipped && std::ranges::all_of(target->scans, &Scan::complete);
    any = any || std::ranges::any_of(target->scans, &Scan::answered);
  }
  row_.state = complete && problems_.empty() ? "complete" : any ? "partial" : aborted_ ? "failed" : "partial";
  row_.finished_at = s_.clock.wall();
  row_.report = report();
  if (more_problems_ > 0)
    s_.log.warn("run={} more_problems={}, of which nothing is told", row_.id.value, more_problems_);
  must(s_.store.put_run(row_));
  s_.events.emit({}, "run.finished", row_.id.value, progress());  // the report itself has no bound that fits an event
}

void Run::set_followed_by(std::vector<RunId> runs) {
  followed_by_ = std::move(runs);
  row_.report = report();
  must(s_.store.put_run(row_));
}

void Run::outdate(const TargetId& id) {
  for (auto& target : targets_) {
    if (target->target.id == id && target->phase != TargetRun::Phase::kDone) target->outdated = true;
  }
}

void Run::rename_target(const std::string& was, const std::string& is) {
  scope_.rename_target(was, is);
  row_.scope = scope_.json();
  for (auto& target : targets_) {
    if (target->target.name == was) target->target.name = is;
  }
  for (auto& problem : problems_) {
    if (problem.target == was) problem.target = is;
  }
  for (auto& part : follow_up_) std::ranges::replace(part.targets, was, is);
}

void Run::give_up_outdated(Effects& effects) {
  for (auto& target : targets_) {
    if (!target->outdated || target->phase == TargetRun::Phase::kDone) continue;
    s_.dispatcher.withdraw(owner_, effects, target->target.id);
    std::erase_if(pending_, [&](const auto& entry) { return entry.second.target == target.get(); });
    target->skipped = true;
    problem(*target, {}, "TARGET_CHANGED", "it was changed or removed while the run looked at it");
    if (target->scans.empty() && target->manifest) make_scans(*target);
    for (auto& scan : target->scans) {  // what is known of its rows has been written with the change
      scan->close();
    }
    target->phase = TargetRun::Phase::kDone;
  }
}

void Run::abort(std::string_view code, const std::string& why, Effects& effects) {
  s_.dispatcher.withdraw(owner_, effects);
  pending_.clear();
  aborted_ = true;
  for (auto& target : targets_) {
    if (target->phase == TargetRun::Phase::kDone) continue;
    if (target->phase == TargetRun::Phase::kWaiting) look_up(*target);
    if (target->phase != TargetRun::Phase::kScanning) {
      skip_target(*target, code, why);
      continue;
    }
    problem(*target, {}, code, why);
    for (auto& scan : target->scans) {
      if (scan->phase == Scan::Phase::kDone) continue;
      scan->listing_failed = true;
      finish_scan(*target, *scan);
    }
    finish_target(*target);
  }
  finish();
}

}  // namespace muster
