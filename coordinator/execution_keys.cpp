// Creates whose outcome is not known: what is kept of them, and what it is worth to those that come after.

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/claim.h"
#include "coordinator/execution_work.h"
#include "coordinator/must.h"
#include "coordinator/property_rules.h"
#include "schema/mutation.h"

namespace muster {
namespace {

using Json = nlohmann::json;

}  // namespace

/// What was asked for in another thing is another object: it may be there, and goes with that.
void Execution::inherit_key(Work& work) {
  work.asked = Unsettled::parse(must(s_.store.unsettled(work.place())));
  work.unsettled = !work.asked.key.empty();
  work.inherited_key = work.asked.key;
  if (work.type != nullptr) {
    const auto parent = parent_of(work);
    const auto place = parent ? parent->native_id : std::string();
    const bool elsewhere = !work.asked.values.empty() && work.asked.place != place;
    if (elsewhere && !MUSTER_MUTATION("key-of-elsewhere")) work.inherited_key.clear();
    if (!work.inherited_key.empty()) {
      const auto unread = unread_of(work).first;
      work.old_values = !unread.empty() && work.asked.values != hex(hash128(unread));
    }
    work.asked.place = place;
  }
  work.op.uncertain = work.op.uncertain || !work.inherited_key.empty();
}

/// The next command may go on with what this one has asked for.
void Execution::leave_key(Work& work) {
  work.asked.key = work.key();
  if (work.type != nullptr && !work.old_values) work.asked.values = hex(hash128(unread_of(work).first));
  must(s_.store.set_unsettled(work.place(), work.asked.text()));
}

/// What a step declares and nobody can read back, as text; and what is declared without it.
std::pair<std::string, JsonText> Execution::unread_of(const Work& work) {
  auto declared = claimed(work.step.claim);
  if (!declared) return {};
  std::string unread;
  auto properties = Json::parse(declared->properties);
  for (const auto& pointer : write_only_in(rules_of(*work.type), properties)) {
    auto& value = properties[Json::json_pointer(pointer)];
    unread += pointer + '=' + std::exchange(value, nullptr).dump() + '\n';
  }
  DeclaredResource secret;
  std::ranges::copy_if(declared->holes, std::back_inserter(secret.holes), &Hole::secret);
  if (!secret.holes.empty()) unread += declared_text(secret);
  std::erase_if(declared->holes, [](const Hole& hole) { return hole.secret(); });
  declared->properties = properties.dump();
  return {std::move(unread), declared_text(*declared)};
}

/// Where a step declares what nobody can read back, does not send it, for it was planned as what had been sent before,
/// and another command has sent something else since.
std::optional<std::string> Execution::unread_moved(const Work& work) {
  const auto claim = must(s_.store.claim(work.step.row));
  const auto sent = claim ? claimed(claim->declared) : std::nullopt;
  const auto declared = claimed(work.step.claim);
  if (!sent || !declared) return std::nullopt;
  const auto patch = Json::parse(work.step.patch);
  const auto is_planned = [&](const std::string& pointer) {
    return std::ranges::any_of(patch, [&](const Json& change) { return within(pointer, change.at("path")); });
  };
  const auto then = Json::parse(sent->properties), now = Json::parse(declared->properties);
  for (const auto& pointer : write_only_in(rules_of(*work.type), now)) {
    const Json::json_pointer at(pointer);
    if (!is_planned(pointer) && (!then.contains(at) || then[at] != now[at])) return pointer;
  }
  for (const auto& hole : declared->holes) {
    if (hole.secret() && !is_planned(hole.pointer) && std::ranges::count(sent->holes, hole) == 0) return hole.pointer;
  }
  return std::nullopt;
}

/// What was made with the key is gone: what is asked for next is another object.
void Execution::spend_key(Work& work) {
  must(s_.store.set_unsettled(work.place(), {}));
  ++work.op.epoch;
  work.op.request_id.clear();
  work.op.job = {};
  work.inherited_key.clear();
  work.old_values = false;
  work.told.reset();
  work.reads = 0;
}

}  // namespace muster
