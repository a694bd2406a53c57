// Creates whose outcome is not known: what is kept of them, and what it is worth to those that come after.

#include <algorithm>
#include <functional>
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

constexpr std::size_t kMaxPlaces = 16;  // of one resource, of which its key is kept

/// Stands in a claim for what nobody can read back and nobody knows: no digest is like it. What is to be made anew
/// waits for who knows it.
constexpr const char* kNotKnown = "unknown";

/// Whether nobody can read back what it gives a value to.
bool is_unread(const PropertyRule& rules, const Hole& hole) {
  return hole.secret() || is_confidential(rules, hole.pointer);
}

void forget_value(Json& properties, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  if (properties.contains(at)) properties[at] = kNotKnown;
}

/// What they referred to may be what is used still: the order of deletions must not forget that.
void forget_holes(DeclaredResource& declared, Json& properties, const std::function<bool(const Hole&)>& goes) {
  std::erase_if(declared.holes, [&](const Hole& hole) {
    if (!goes(hole)) return false;
    forget_value(properties, hole.pointer);
    for (const auto& part : hole.parts) {
      if (part.kind == TextPart::Kind::kResource) declared.after.push_back(part.text);
    }
    return true;
  });
}

std::string text_of(const std::vector<Unsettled>& all) {
  auto list = Json::array();
  for (const auto& each : all) list.push_back({each.key, each.place, each.values});
  return all.empty() ? std::string() : Json{{"keys", std::move(list)}}.dump();
}

}  // namespace

/// What is kept of a resource: at most one key for each thing that it was to lie in.
std::vector<Unsettled> Execution::unsettled(const Work& work) const {
  const auto text = must(s_.store.unsettled(work.place()));
  const auto list = Json::parse(text, nullptr, false);
  if (text.empty()) return {};
  if (list.is_array() && list.size() == 3) return {{list[0], list[1], list[2]}};  // of older versions
  if (!list.is_object()) return {{text, {}, {}}};
  std::vector<Unsettled> all;
  for (const auto& each : list.at("keys")) all.push_back({each.at(0), each.at(1), each.at(2)});
  return all;
}

/// What was asked for in another thing is another object: it may be there, and is gone on with when it is declared
/// there again.
void Execution::inherit_key(Work& work) {
  const auto parent = work.type != nullptr ? parent_of(work) : std::nullopt;
  work.asked = {{}, parent ? parent->native_id : std::string(), {}};
  for (const auto& each : unsettled(work)) {
    const bool here = work.type == nullptr || each.is_of(work.asked.place) || MUSTER_MUTATION("key-of-elsewhere");
    if (here) work.asked = {each.key, work.asked.place, each.values};
  }
  work.inherited_key = work.asked.key;
  if (!work.inherited_key.empty() && work.type != nullptr) {
    const auto unread = unread_of(work).first;
    work.old_values = !unread.empty() && work.asked.values != hex(hash128(unread));
  }
  work.op.uncertain = work.op.uncertain || !work.inherited_key.empty();
}

/// The next command may go on with what this one has asked for.
void Execution::leave_key(Work& work) {
  if (work.type == nullptr && !work.inherited_key.empty()) return;  // it is kept, of a place that is not known now
  work.asked.key = work.key();
  if (work.type != nullptr && !work.old_values) work.asked.values = hex(hash128(unread_of(work).first));
  auto all = unsettled(work);
  std::erase_if(all, [&](const Unsettled& each) { return each.is_of(work.asked.place); });
  if (all.size() == kMaxPlaces) all.erase(all.begin());
  all.push_back(work.asked);
  must(s_.store.set_unsettled(work.place(), text_of(all)));
}

/// Native id of what a row lies in.
std::string Execution::place_of(RowId row) const {
  const auto known = must(s_.store.one(row));
  const auto parent = known && known->parent != 0 ? must(s_.store.one(known->parent)) : std::nullopt;
  return parent ? std::string(parent->native_id) : std::string();
}

/// What came of a create is known.
void Execution::settle_key(const Work& work, const std::string& place) {
  auto all = unsettled(work);
  std::erase_if(all, [&](const Unsettled& each) { return each.is_of(place); });
  must(s_.store.set_unsettled(work.place(), text_of(all)));
}

/// What a step declares and nobody can read back, as text; and what is declared without it.
std::pair<std::string, JsonText> Execution::unread_of(const Work& work) {
  auto declared = claimed(work.step.claim);
  if (!declared) return {};
  std::string unread;
  const auto& rules = rules_of(*work.type);
  auto properties = Json::parse(declared->properties);
  for (const auto& pointer : write_only_in(rules, properties)) {
    auto& value = properties[Json::json_pointer(pointer)];
    unread += pointer + '=' + std::exchange(value, kNotKnown).dump() + '\n';
  }
  const auto goes = [&](const Hole& hole) { return is_unread(rules, hole); };
  DeclaredResource secret;
  std::ranges::copy_if(declared->holes, std::back_inserter(secret.holes), goes);
  if (!secret.holes.empty()) unread += declared_text(secret);
  forget_holes(*declared, properties, goes);
  declared->properties = properties.dump();
  return {std::move(unread), declared_text(*declared)};
}

/// Whether what was made may have other values than those that nobody can read back: its row was left without them.
bool Execution::made_with_old_values(const Work& work) {
  const auto [unread, rest] = unread_of(work);
  const auto claim = unread.empty() ? std::nullopt : must(s_.store.claim(work.row));
  return claim && claim->declared == rest;
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
  const auto& rules = rules_of(*work.type);
  const auto then = Json::parse(sent->properties), now = Json::parse(declared->properties);
  for (const auto& pointer : write_only_in(rules, now)) {
    const Json::json_pointer at(pointer);
    if (!is_planned(pointer) && (!then.contains(at) || then[at] != now[at])) return pointer;
  }
  for (const auto& hole : declared->holes) {
    const bool kept = !is_unread(rules, hole) || is_planned(hole.pointer);
    if (!kept && std::ranges::count(sent->holes, hole) == 0) return hole.pointer;
  }
  return std::nullopt;
}

/// What an update sends and nobody can read back counts as sent no more, as it was before or is now, where it is not
/// known whether that was applied: whoever declares it next sends it.
void Execution::forget_unread(const Work& work) {
  const auto row = must(s_.store.one(work.step.row));
  const auto claim = row && row->managed ? must(s_.store.claim(row->row)) : std::nullopt;
  auto declared = claim ? claimed(claim->declared) : std::nullopt;
  if (!declared || work.type == nullptr) return;
  const auto patch = Json::parse(work.step.patch, nullptr, false);
  const auto is_sent = [&](const std::string& pointer) {
    return std::ranges::any_of(patch, [&](const Json& change) { return within(pointer, change.at("path")); });
  };
  const auto& rules = rules_of(*work.type);
  auto properties = Json::parse(declared->properties);
  for (const auto& pointer : write_only_in(rules, properties)) {
    if (is_sent(pointer)) forget_value(properties, pointer);
  }
  forget_holes(*declared, properties,
               [&](const Hole& hole) { return is_unread(rules, hole) && is_sent(hole.pointer); });
  declared->properties = properties.dump();
  const auto text = declared_text(*declared);
  if (text == claim->declared) return;
  must(s_.store.manage(row->row, {claim->stack, claim->name, text}));
  if (row->drifted) must(s_.store.set_drifted(row->row, true));
}

/// What was made with the key is gone: what is asked for next is another object.
void Execution::spend_key(Work& work) {
  settle_key(work, work.asked.place);
  ++work.op.epoch;
  work.op.request_id.clear();
  work.op.job = {};
  work.inherited_key.clear();
  work.old_values = false;
  work.told.reset();
  work.reads = 0;
}

}  // namespace muster
