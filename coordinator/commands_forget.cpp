// Resources that a stack lets go of: they stay as they are in their systems, and nobody manages them any more.

#include "coordinator/claim.h"
#include "coordinator/commands.h"
#include "coordinator/event_log.h"
#include "coordinator/must.h"
#include "schema/subjects.h"

namespace muster {
namespace {

std::vector<Forgotten> named_by(const ForgetRequest& request, Store& store) {
  std::vector<Forgotten> found;
  must(store.of_stack(request.stack, {}, [&](const ManagedView& view) {
    if (!request.target.empty() && view.target != request.target) return;
    if (!request.names.empty() && !request.names.contains(declared_name(view.name))) return;
    found.push_back({view.row, std::string(view.name), std::string(view.target), std::string(view.type),
                     std::string(view.native_id), view.state});
  }));
  return found;
}

Error unknown(const ForgetRequest& request, std::set<std::string> missing) {
  const auto where = "stack " + request.stack + (request.target.empty() ? "" : " on target " + request.target);
  if (missing.empty()) {
    return {Errc::kNotFound, where + " has no resources: `muster resources --managed` lists those of all", {}, 0};
  }
  return {Errc::kNotFound,
          where + " has no resource " + *missing.begin() +
              (missing.size() > 1 ? ", nor " + std::to_string(missing.size() - 1) + " more of those named" : "") +
              ": `muster resources --stack " + request.stack + "` lists what it has",
          {},
          0};
}

/// What stays declared in it lies in something that the name does not stand for any more, whoever has it next: its
/// claim says so until it is applied again.
void note_left_inside(RowId row, const std::string& stack, Store& store) {
  for (const auto below : must(store.descendants(row))) {
    const auto record = must(store.one(below));
    const auto claim = record && record->parent == row ? must(store.claim(below)) : std::nullopt;
    if (!claim || claim->stack != stack) continue;
    auto declared = claimed(claim->declared);
    if (!declared || declared->parent.empty()) continue;
    declared->parent += kForgotten;
    must(store.manage(below, {claim->stack, claim->name, declared_text(*declared)}));
    if (record->drifted) must(store.set_drifted(below, true));
  }
}

}  // namespace

Result<std::vector<Forgotten>> Commands::forget(const ForgetRequest& request) {
  auto found = named_by(request, s_.store);
  auto missing = request.names;
  for (const auto& each : found) missing.erase(declared_name(each.name));
  if (found.empty() || !missing.empty()) return unknown(request, std::move(missing));
  if (request.look_only) return found;
  if (busy({request.stack})) {
    return Error{Errc::kConflict,
                 "a command of stack " + request.stack +
                     " is under way, and goes by what the stack has: `muster commands` shows it; wait, or cancel it",
                 {},
                 0};
  }
  for (const auto& each : found) {
    const auto row = must(s_.store.one(each.row)).value();
    must(s_.store.release(each.row));
    if (row.state == ResourceState::kMissing) {
      must(s_.store.leave(each.row, ResourceState::kVanished, "vanished", s_.clock.wall()));
    }
    s_.events.emit(namespace_of(each.type), "resource.forgotten", row.id.value,
                   JsonObject()
                       .text("id", row.id.value)
                       .text("target", each.target)
                       .text("type", each.type)
                       .text("native_id", each.native_id)
                       .text("stack", request.stack)
                       .text("name", declared_name(each.name))
                       .take());
  }
  for (const auto& each : found) note_left_inside(each.row, request.stack, s_.store);
  return found;
}

}  // namespace muster
