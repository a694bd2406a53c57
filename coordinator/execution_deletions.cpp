// What is deleted, with all that lies in it.

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/difference.h"
#include "coordinator/execution_work.h"
#include "coordinator/inventory_view.h"
#include "coordinator/must.h"
#include "schema/mutation.h"

namespace muster {

using Json = nlohmann::json;

/// Something is in it, since it was planned, that must not go with it.
std::optional<Error> Execution::held_by(const Work& work) {
  std::optional<Error> held;
  each_within(s_.store, work.step.row, outlives(work), [&](const ResourceRecord& inner) {
    if (held || !inner.managed || goes(inner) || MUSTER_MUTATION("contents-ignored")) return;
    const auto claim = must(s_.store.claim(inner.row)).value_or(Claim{});
    held = Error{Errc::kConflict,
                 std::string(inner.native_id) + " lies in it, and is resource " + claim.name + " of stack " +
                     claim.stack + ", which would go with it: plan again",
                 {},
                 0};
  });
  return held;
}

/// What can be known before that nothing could take its place, or that nothing asks for another one any more: another
/// command, or somebody by hand, has made it as it is declared.
std::optional<Error> Execution::spared_by(const Work& work) {
  if (work.step.action != StepAction::kReplace || work.create_first) return std::nullopt;
  if (const auto wanted = document(work.step); !wanted) return wanted.error();
  if (calls_for_another(work, Json::parse(work.prior)) != false) return std::nullopt;
  return Error{Errc::kConflict, "it need not be made anew any more: plan again", {}, 0};
}

std::optional<bool> Execution::calls_for_another(const Work& work, const Json& there) {
  const auto& rules = rules_of(*work.type);
  const auto& holes = work.step.resource->holes;
  bool compared = false;
  for (const auto& change : Json::parse(work.step.patch)) {
    const auto path = change.at("path").get<std::string>();
    if (!is_create_only(rules, path)) continue;
    const bool refers = std::ranges::any_of(
        holes, [&](const Hole& hole) { return within(path, hole.pointer) || within(hole.pointer, path); });
    if (refers || rule_at(rules, path).holds_write_only) return std::nullopt;
    compared = true;
  }
  const auto difference = compared ? differs(work, there) : Result<Difference>(Error{});
  return difference ? std::optional(!difference->create_only.empty()) : std::nullopt;
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
  s_.writes.note(work.scan, work.op.native_id);
  // What is known by its properties is what an earlier create may have made, whichever command has found it since.
  if (!rules_of(*work.type).identity.empty()) settle_key(work, place_of(step.row));
  if (must(s_.store.one(step.row))) {
    leave_contents(work, step.row);
    must(s_.store.release(step.row));
    leave(work, must(s_.store.one(step.row)).value(), "deleted", "resource.deleted");
  }
  if (step.action == StepAction::kReplace && !work.create_first) {
    work.begin_second_half();
    inherit_key(work);
    must(s_.store.put_operation(work.op));
    return go_on(work, Phase::kCreating, now);
  }
  end(work.op.step, State::kDone);
}

void Execution::leave(const Work& work, const ResourceRecord& row, std::string_view reason, std::string_view event) {
  if (row.state == ResourceState::kVanished || row.state == ResourceState::kFiltered) return;
  if (row.managed && row.state == ResourceState::kMissing) return;  // somebody else has seen and told it meanwhile
  const auto state = row.managed ? ResourceState::kMissing : ResourceState::kVanished;
  must(s_.store.leave(row.row, state, reason, s_.clock.wall()));
  s_.events.emit(work.target.ns, event, row.id.value, identity(row).text("reason", reason).take());
}

void Execution::leave_contents(const Work& work, RowId row) {
  each_within(s_.store, row, outlives(work), [&](const ResourceRecord& child) {
    s_.writes.note(child.scan, child.native_id);
    if (child.managed && !goes(child)) s_.drift.gone(child);
    leave(work, child, "parent", "resource.vanished");
  });
}

/// Whether it is planned to go, and is not what has been made in its place, or another under its id.
bool Execution::goes(const ResourceRecord& row) const {
  const auto planned = to_go_.find(row.row);
  if (planned == to_go_.end()) return false;
  const auto& step = plan_.steps[planned->second];
  return step.action == StepAction::kDelete ? !is_anothers(step) : states_[planned->second] != State::kDone;
}

/// The same of what is planned for as it is: where it has no uid, its state tells.
bool Execution::is_to_go(const ResourceRecord& row) const {
  if (!row.managed || !goes(row)) return false;
  return !row.uid.empty() || hash128(row.properties) == plan_.steps[to_go_.at(row.row)].content;
}

bool Execution::begin_emptying(Work& work, TimePoint now) {
  if (work.step.action != StepAction::kReplace || std::exchange(work.emptied, true)) return false;
  each_within(s_.store, work.step.row, outlives(work), [&](const ResourceRecord& child) {
    if (is_to_go(child)) work.contents.push_back(child.row);
  });
  if (work.contents.empty()) return false;
  end_write(work);
  work.op.job = {};
  ++work.op.epoch;  // nothing was applied: what is asked for next is another change
  must(s_.store.put_operation(work.op));
  go_on(work, Phase::kEmptying, now);
  return true;
}

void Execution::empty_more(Work& work, TimePoint now) {
  for (; !work.contents.empty(); work.contents.pop_back()) {
    const auto row = must(s_.store.one(work.contents.back()));
    if (!row || (row->state != ResourceState::kPresent && row->state != ResourceState::kStale)) continue;
    if (!is_to_go(*row)) continue;
    work.content_id = row->native_id;
    s_.writes.begin(row->scan, work.content_id);
    const auto key = work.key() + "-" + row->id.value;
    const Precondition as_planned{std::string(row->uid), row->uid.empty() ? hex(hash128(row->properties)) : ""};
    return submit(work, DeleteJob{key, work.content_id, as_planned}, now, row->type);
  }
  work.op.job = {};
  go_on(work, Phase::kReading, now);
  submit_due(work, now);
}

void Execution::end_write_of_content(const Work& work) {
  s_.writes.end(must(s_.store.one(work.contents.back())).value().scan, work.content_id);
}

void Execution::take_emptying(Work& work, const JobOutcome& outcome, TimePoint now) {
  const auto row = must(s_.store.one(work.contents.back())).value();
  end_write_of_content(work);
  work.op.job = {};
  const auto* done = std::get_if<MutationResult>(&outcome.result);
  const auto* error = std::get_if<Error>(&outcome.result);
  const bool of_another = error != nullptr && (error->code == Errc::kNotFound || error->code == Errc::kTargetChanged);
  if (of_another && !still_serves(work)) return;
  const bool in_progress = done != nullptr && done->status != MutationStatus::kSuccess;
  const bool unknown = outcome.uncertain || in_progress;
  if (unknown && is_listed(row.row)) must(s_.store.set_stale(row.row, true));  // until it is looked at, or is gone
  const auto it_lies_in = std::string(row.native_id) + " lies in it, and ";
  const auto not_known = it_lies_in + "whether it was deleted is not known: ";
  const bool may_be_there = in_progress || (error != nullptr && error->code != Errc::kNotFound);
  const bool stopped = row_.cancel != Cancelled::kNo && error != nullptr && error->code == Errc::kCancelled;
  if (stopped || (row_.cancel == Cancelled::kForced && unknown && may_be_there)) {
    return end(work.op.step, State::kCancelled, "CANCELLED", unknown ? not_known + "cancelled" : "cancelled");
  }
  if (error != nullptr && may_be_there) {
    const auto what = unknown ? not_known : it_lies_in + "cannot be deleted: ";
    const Error why{error->code, what + error->message, error->retry_after, 0};
    return error_traits(error->code).retry == Retry::kNever ? fail(work, why) : again(work, Phase::kEmptying, why, now);
  }
  if (in_progress) {
    const Error why{Errc::kConflict, it_lies_in + "is being deleted still: apply again", done->retry_after, 0};
    return again(work, Phase::kEmptying, why, now);
  }
  const bool gone = error != nullptr;
  if (gone && row.native_id != work.content_id) {  // a run has found it under another id since
    go_on(work, Phase::kEmptying, now);
    return submit_due(work, now);
  }
  if (gone &&
      ask_until_settled(work, Phase::kEmptying, row_time_to_show(work, row.type, row.state, row.changed_at), now)) {
    return;
  }
  leave_contents(work, row.row);
  leave(work, row, "parent", "resource.vanished");  // as what goes with it by itself: it is made anew by its own step
  work.contents.pop_back();
  work.emptied_some = true;
  work.tries = 0;
  go_on(work, Phase::kEmptying, now);
  submit_due(work, now);
}

}  // namespace muster
