// What is deleted, with all that lies in it.

#include <algorithm>

#include "coordinator/execution_work.h"
#include "coordinator/inventory_view.h"
#include "coordinator/must.h"
#include "schema/mutation.h"

namespace muster {

/// Something is in it, since it was planned, that must not go with it.
std::optional<Error> Execution::held_by(const Work& work) {
  std::optional<Error> held;
  each_within(s_.store, work.step.row, outlives(work), [&](const ResourceRecord& inner) {
    if (held || !inner.managed || to_go_.contains(inner.row) || MUSTER_MUTATION("contents-ignored")) return;
    const auto claim = must(s_.store.claim(inner.row)).value_or(Claim{});
    held = Error{Errc::kConflict,
                 std::string(inner.native_id) + " lies in it, and is resource " + claim.name + " of stack " +
                     claim.stack + ", which would go with it: plan again",
                 {},
                 0};
  });
  return held;
}

/// Which types outlive what they lie in.
std::function<bool(std::string_view)> Execution::outlives(const Work& work) {
  return [manifest = work.manifest](std::string_view type) {
    const auto found = std::ranges::find(manifest->types, type, &TypeDescriptor::name);
    return found != manifest->types.end() && !found->contained;
  };
}

void Execution::deleted(Work& work, TimePoint now) {
  const auto& step = work.step;
  end_write(work);
  s_.writes.begin(work.scan, work.op.native_id);
  s_.writes.end(work.scan, work.op.native_id);
  // What is known by its properties is what an earlier create may have made, whichever command has found it since.
  if (!rules_of(*work.type).identity.empty()) settle_key(work, place_of(step.row));
  const auto at = s_.clock.wall();
  if (const auto row = must(s_.store.one(step.row))) {
    const auto leave = [&](const ResourceRecord& each, std::string_view reason, std::string_view event) {
      if (each.state == ResourceState::kVanished || each.state == ResourceState::kFiltered) return;
      must(s_.store.leave(each.row, each.managed ? ResourceState::kMissing : ResourceState::kVanished, reason, at));
      s_.events.emit(work.target.ns, event, each.id.value, identity(each).text("reason", reason).take());
    };
    each_within(s_.store, step.row, outlives(work), [&](const ResourceRecord& child) {
      s_.writes.begin(child.scan, child.native_id);  // what was seen of it before is no news
      s_.writes.end(child.scan, child.native_id);
      if (child.managed && !to_go_.contains(child.row)) s_.drift.gone(child);
      leave(child, "parent", "resource.vanished");
    });
    must(s_.store.release(step.row));
    auto freed = must(s_.store.one(step.row)).value();
    leave(freed, "deleted", "resource.deleted");
  }
  if (step.action == StepAction::kReplace && !work.create_first) {
    work.begin_second_half();
    inherit_key(work);
    must(s_.store.put_operation(work.op));
    return go_on(work, Phase::kCreating, now);
  }
  end(work.op.step, State::kDone);
}

}  // namespace muster
