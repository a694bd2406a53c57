// What is not found, or is another: for how long that proves nothing, and what follows when it does.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "coordinator/execution_work.h"
#include "coordinator/json_forms.h"
#include "coordinator/must.h"
#include "coordinator/settling.h"
#include "schema/mutation.h"

namespace muster {

Millis Execution::row_time_to_show(const Work& work, std::string_view type, ResourceState state,
                                   WallTime changed_at) const {
  const bool listed = state == ResourceState::kPresent || state == ResourceState::kStale;
  const auto found = std::ranges::find(work.manifest->types, type, &TypeDescriptor::name);
  if (!listed || found == work.manifest->types.end() || MUSTER_MUTATION("not-found-at-once")) return Millis{0};
  return settles_for(changed_at, found->settle, s_.clock.wall());
}

Millis Execution::time_to_show(const Work& work, TimePoint now) const {
  if (work.change() == Work::Change::kCreate) {  // it has no row yet
    const auto until = work.told_at + work.type->settle;
    return now < until ? std::chrono::ceil<Millis>(until - now) : Millis{0};
  }
  const auto row = must(s_.store.one(work.step.row));
  return row ? row_time_to_show(work, row->type, row->state, row->changed_at) : Millis{0};
}

/// Of what it lies in, refers to or comes after, on its target.
Millis Execution::needs_time_to_show(const Work& work) const {
  Millis longest{0};
  if (!work.step.resource) return longest;
  for (const auto& name : work.step.resource->needs()) {
    each_named(work.step.stack, name, [&](const ManagedView& row) {
      if (row.target != work.step.target) return;
      longest = std::max(longest, row_time_to_show(work, row.type, row.state, row.changed_at));
    });
  }
  return longest;
}

bool Execution::ask_until_settled(Work& work, Phase phase, Millis left, TimePoint now) {
  if (left <= Millis{0}) return false;
  if (row_.cancel == Cancelled::kForced || now >= work.deadline) {
    again(work, phase, {Errc::kNotStabilized, "what was made or changed just now does not show yet", {}, 0}, now);
    return true;
  }
  go_on(work, phase, now, std::min(left, pause_after(work.reads++, kFirstPause)));
  must(s_.store.put_operation(work.op));
  return true;
}

/// Whether a create tells what was, and not what is: asked again with the key of an attempt that is not known, a target
/// may answer as it did then; and what took its time to answer may have been seen, and seen to go, meanwhile.
bool Execution::may_be_gone(const Work& work, const std::string& native_id) {
  if (work.change() != Work::Change::kCreate) return false;
  if (work.op.uncertain) return true;
  const auto known = must(s_.store.one(work.step.target, work.step.type, native_id));
  return known && known->state == ResourceState::kVanished;
}

/// A change finds nothing to change.
void Execution::take_nothing_there(Work& work, TimePoint now) {
  const bool deletes = work.change() == Work::Change::kDelete;
  if (take_new_id(work)) {  // nothing is there any more under the old one
    if (!work.op.uncertain) ++work.op.epoch;
    return go_on(work, work.op.uncertain ? Phase::kSettling : Phase::kReading, now);
  }
  auto left = time_to_show(work, now);
  if (!deletes) left = std::max(left, needs_time_to_show(work));  // it may be what it refers to that does not show
  if (left > Millis{0} && !work.op.uncertain) ++work.op.epoch;    // what is asked for next is another change
  if (ask_until_settled(work, work.op.uncertain ? Phase::kSettling : Phase::kReading, left, now)) return;
  deletes ? deleted(work, now) : gone(work);
}

bool Execution::is_as_declared(const Work& work, const Item& item) {
  const auto there = nlohmann::json::parse(item.properties, nullptr, false);
  const auto difference = there.is_object() ? differs(work, there) : Result<Difference>(Error{});
  return difference && difference->patch.empty();
}

/// An update finds nothing to update.
void Execution::gone(Work& work) {
  end_write(work);
  s_.writes.note(work.scan, work.op.native_id);
  const auto row = must(s_.store.one(work.step.row));
  const bool listed = row && (row->state == ResourceState::kPresent || row->state == ResourceState::kStale);
  if (listed) {
    must(s_.store.leave(row->row, row->managed ? ResourceState::kMissing : ResourceState::kVanished, "vanished",
                        s_.clock.wall()));
    if (row->managed) s_.drift.gone(*row);
    s_.events.emit(work.target.ns, "resource.vanished", row->id.value,
                   identity(*row).text("reason", "not found").take());
  }
  work.op.uncertain = false;  // what was changed, if it was, is gone with it
  fail(work, {Errc::kNotFound, "it is gone: apply again, and it is made anew", {}, 0});
}

}  // namespace muster
