// What the answers to a step's jobs mean, and what is written of them.

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/canonical.h"
#include "coordinator/claim.h"
#include "coordinator/difference.h"
#include "coordinator/execution_work.h"
#include "coordinator/inventory_view.h"
#include "coordinator/json_patch.h"
#include "coordinator/must.h"
#include "coordinator/type_rules.h"
#include "schema/mutation.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr Millis kMaxPause{10'000};
constexpr Millis kFirstPoll{200};

/// Pointers of a patch.
std::vector<std::string> paths_of(const Json& patch) {
  std::vector<std::string> paths;
  for (const auto& change : patch) paths.push_back(change.at("path").get<std::string>());
  return paths;
}

bool is_code(const ReadItem& answer, Errc code) {
  const auto* error = std::get_if<Error>(&answer);
  return error != nullptr && error->code == code;
}

Error another_object(const Item& item) {
  return {Errc::kConflict, item.native_id + " is another object than the one that was planned for", {}, 0};
}

Json parsed(std::string_view properties) {
  return Json::parse(properties, nullptr, false);
}

}  // namespace

Millis pause_after(int times, Millis first) {
  return std::min(kMaxPause, Millis(first.count() << std::min(times, 16)));
}

JsonObject Execution::identity(const ResourceRecord& row) const {
  JsonObject data;
  data.text("id", row.id.value)
      .text("target", row.target)
      .text("type", row.type)
      .text("native_id", row.native_id)
      .text("command", row_.id.value);
  return data;
}

bool Execution::is_cut_off(Work& work, const JobOutcome& outcome) const {
  const auto phase = work.phase();
  const bool looks = phase == Phase::kPolling || phase == Phase::kSettling || phase == Phase::kFinding;
  const auto* error = std::get_if<Error>(&outcome.result);
  const bool cancelled = error != nullptr && error->code == Errc::kCancelled && row_.cancel == Cancelled::kForced;
  return looks && cancelled && !std::exchange(work.cut_off, true);
}

bool Execution::is_last_try(const Work& work, const Error& why, TimePoint now) const {
  const int allowed = error_traits(why.code).retry == Retry::kFewTimes ? std::min(3, s_.config.retry.attempts)
                                                                       : s_.config.retry.attempts;
  return work.tries + 1 >= allowed || now >= work.deadline;
}

void Execution::again(Work& work, Phase phase, const Error& why, TimePoint now) {
  if (row_.cancel == Cancelled::kForced) {
    return end(work.op.step, State::kCancelled, "CANCELLED",
               work.op.uncertain ? "cancelled; whether it was applied is not known: " + why.message : "cancelled");
  }
  if (is_last_try(work, why, now)) return fail(work, why);
  go_on(work, phase, now, std::max(why.retry_after, pause_after(work.tries++, kFirstPause)));
  must(s_.store.put_operation(work.op));  // with what is to come: what this has given up is not to be asked for again
}

void Execution::take_change(Work& work, JobResult result, TimePoint now) {
  if (auto* done = std::get_if<MutationResult>(&result)) {
    if (done->status == MutationStatus::kSuccess) return succeeded(work, *done, now);
    work.op.uncertain = true;
    if (const auto another = changes_another(work, done->native_id)) return fail(work, *another);
    if (done->request_id.empty()) done->request_id = work.op.request_id;
    if (!done->native_id.empty()) work.op.native_id = done->native_id;
    work.op.request_id = done->request_id;
    work.told_at = now;
    if (work.phase() == Phase::kPolling) work.tries = 0;  // what failed before was of other questions
    if (row_.cancel == Cancelled::kForced) return stop(work, now);
    if (now >= work.deadline) return fail(work, {Errc::kTimeout, "it is in progress still after an hour", {}, 0});
    go_on(work, Phase::kPolling, now,
          done->retry_after.count() > 0 ? done->retry_after : pause_after(work.polls++, kFirstPoll));
    must(s_.store.put_operation(work.op));
    return;
  }
  const auto& failure = std::get<Error>(result);
  work.phase() == Phase::kPolling ? take_poll_failure(work, failure, now) : take_failure(work, failure, now);
}

void Execution::take_poll_failure(Work& work, const Error& error, TimePoint now) {
  if (error.code == Errc::kNotFound) {
    if (ask_until_settled(work, Phase::kPolling, time_to_show(work, now), now)) return;
    // It may be the request that is not known any more, and the object is there: a read tells.
    if (work.change() == Work::Change::kDelete) return go_on(work, Phase::kSettling, now);
  }
  const bool knows = error_traits(error.code).applied == Applied::kNotApplied && error.code != Errc::kNotFound;
  if (error.code == Errc::kThrottling) {
    if (row_.cancel == Cancelled::kForced) return stop(work, now);
    if (now >= work.deadline) return fail(work, error);
    return go_on(work, Phase::kPolling, now, std::max(error.retry_after, kFirstPause));
  }
  if (knows) {  // the key has come to nothing: what is asked for next is another change
    work.op.uncertain = false;
    if (!work.inherited_key.empty()) settle_key(work, work.asked.place);
    return fail(work, error);
  }
  if (error.code == Errc::kNotFound && work.change() == Work::Change::kCreate) {
    work.op.request_id.clear();
    return again(work, work.op.native_id.empty() ? Phase::kCreating : Phase::kSettling, error, now);
  }
  again(work, error.code == Errc::kNotFound ? Phase::kSettling : Phase::kPolling, error, now);
}

void Execution::take_failure(Work& work, const Error& error, TimePoint now) {
  const auto change = work.change();
  const bool create = change == Work::Change::kCreate;
  const bool unknown = work.op.uncertain;
  if (error.code == Errc::kNotFound && !create) return take_nothing_there(work, now);
  if (error.code == Errc::kCancelled && row_.cancel == Cancelled::kForced && !unknown) {
    return end(work.op.step, State::kCancelled, "CANCELLED", "cancelled");
  }
  if (create) {
    if (error.code == Errc::kAlreadyExists && !unknown) {
      return fail(work, {error.code, error.message + way_to_create(plan_, work.step, work.create_first), {}, 0});
    }
    const bool not_applied = error_traits(error.code).applied == Applied::kNotApplied;
    if (error.code == Errc::kAlreadyExists || (unknown && not_applied) || row_.cancel == Cancelled::kForced) {
      work.search = {};
      work.search.refused = error.code == Errc::kNotFound;
      if (work.search.refused && !work.refused_since) work.refused_since = now;
      return go_on(work, Phase::kFinding, now);  // what is there of it tells how the uncertain attempt went
    }
    if (error.code == Errc::kNotFound && ask_until_settled(work, Phase::kCreating, needs_time_to_show(work), now)) {
      return;  // what it is to lie in, or refers to, does not show yet
    }
    if (!unknown) return fail(work, error);
    return again(work, Phase::kCreating, error, now);  // the same key makes no second object
  }
  // What lies in it is to go however the attempt went of which nothing was heard.
  const bool refuses = error.code == Errc::kConflict && change == Work::Change::kDelete;
  if (refuses && begin_emptying(work, now)) return;
  if (unknown) return go_on(work, Phase::kSettling, now, pause_after(work.tries, kFirstPause));
  if (error.code == Errc::kConflict) {
    ++work.op.epoch;  // nothing was applied: what is asked for next is another change
    auto explained = error;
    if (refuses && work.step.action == StepAction::kReplace && !work.second_half()) {
      explained.message += way_to_replace(s_.store, plan_, work.step);
    }
    return again(work, Phase::kReading, explained, now);
  }
  fail(work, error);
}

void Execution::take_reading(Work& work, const ReadItem& answer, TimePoint now) {
  if (take_new_id(work)) return go_on(work, Phase::kReading, now);
  const bool deletes = work.change() == Work::Change::kDelete;
  if (is_code(answer, Errc::kNotFound)) {
    if (ask_until_settled(work, Phase::kReading, time_to_show(work, now), now)) return;
    return deletes ? deleted(work, now) : gone(work);
  }
  if (const auto* error = std::get_if<Error>(&answer)) {
    if (row_.cancel == Cancelled::kForced && error->code == Errc::kCancelled) return stop(work, now);
    if (error_traits(error->code).retry == Retry::kNever) return fail(work, *error);
    return again(work, Phase::kReading, *error, now);
  }
  const auto& item = std::get<Item>(answer);
  if (!work.uid.empty() && !item.uid.empty() && work.uid != item.uid) {
    return fail(work, another_object(item));
  }
  if (!observe(work, work.step.row, item, "changed", "resource.changed")) return;
  work.uid = item.uid;
  if (deletes) {
    if (const auto held = held_by(work)) return fail(work, *held);
    if (const auto spared = spared_by(work)) return fail(work, *spared);
    work.precondition = {item.uid, item.uid.empty() ? hex(work.state) : std::string()};
    return go_on(work, Phase::kDeleting, now);
  }
  if (const auto path = unread_moved(work); path && !MUSTER_MUTATION("values-overtaken")) {
    return fail(work, {Errc::kConflict, *path + " has changed since it was planned: plan again", {}, 0});
  }
  plan_update(work, parsed(work.prior), now);
}

/// What is asked for is made from what is there now; it stays within what was planned.
void Execution::plan_update(Work& work, const Json& there, TimePoint now) {
  auto wanted = document(work.step);
  if (!wanted) return fail(work, wanted.error());
  const auto& rules = rules_of(*work.type);
  if (auto why = too_large(rules, wanted->json)) return fail(work, {Errc::kLimit, std::move(*why), {}, 0});
  const auto declared = Json::parse(wanted->json);
  std::vector<std::string> secret;
  for (const auto& each : wanted->secrets) secret.push_back(each.pointer);
  const auto difference = compare(rules, there, declared, secret);
  const auto planned = Json::parse(work.step.patch);
  auto allowed = paths_of(planned);
  const auto is_of_changed = [&](const TextPart& part) {
    return part.kind == TextPart::Kind::kResource && std::ranges::any_of(plan_.steps, [&](const CommandStep& other) {
             return other.stack == work.step.stack && other.name == part.text && other.action != StepAction::kDelete;
           });
  };
  for (const auto& hole : work.step.resource->holes) {  // what this command changes may give them other values
    if (std::ranges::any_of(hole.parts, is_of_changed)) allowed.push_back(hole.pointer);
  }
  for (const auto& path : paths_of(difference.patch)) {
    if (std::ranges::any_of(allowed, [&](const auto& whole) { return within(path, whole); })) continue;
    return fail(work, {Errc::kConflict, path + " has changed since it was planned: plan again", {}, 0});
  }
  if (!difference.create_only.empty()) {
    return fail(
        work,
        {Errc::kConflict, difference.create_only.front() + " has changed since it was planned: plan again", {}, 0});
  }
  UpdateJob update;
  update.native_id = work.op.native_id;
  update.prior = work.prior;
  auto patch = difference.patch;
  auto desired = merge_declared(rules, there, declared);
  const auto differs = paths_of(difference.patch);
  for (const auto& change : planned) {  // what cannot be compared was planned by what was declared before
    const auto path = change.at("path").get<std::string>();
    const bool unread = rule_at(rules, path).holds_write_only || std::ranges::find(secret, path) != secret.end();
    if (!unread || change.at("op") == "remove" || std::ranges::find(differs, path) != differs.end()) continue;
    patch.push_back({{"op", "replace"}, {"path", path}, {"value", change.value("value", Json())}});
  }
  const auto is_sent = [sent = paths_of(patch)](const std::string& pointer) {
    return std::ranges::any_of(sent, [&](const auto& path) { return within(pointer, path); });
  };
  for (const auto& pointer : write_only_in(rules, desired)) {
    if (is_sent(pointer)) continue;
    const Json::json_pointer at(pointer);
    desired[at.parent_pointer()].erase(at.back());
  }
  for (auto& each : wanted->secrets) {
    if (!is_sent(each.pointer)) continue;
    desired[Json::json_pointer(each.pointer)] = nullptr;
    update.desired.secrets.push_back(std::move(each));
  }
  if (patch.empty()) {  // somebody has done it
    return updated(work, {work.op.native_id, work.uid, work.prior}, now);
  }
  if (work.phase() == Phase::kSettling && ++work.tries >= s_.config.retry.attempts) {
    return fail(work, {Errc::kNotStabilized, "it is not as declared yet", {}, 0});
  }
  update.desired.json = desired.dump();
  update.patch = patch.dump();
  update.precondition = {work.uid, hex(work.state)};
  work.update = std::move(update);
  go_on(work, Phase::kUpdating, now);
}

void Execution::take_settling(Work& work, const ReadItem& answer, TimePoint now) {
  const auto change = work.change();
  if (change != Work::Change::kCreate && take_new_id(work)) return go_on(work, Phase::kSettling, now);
  const auto* error = std::get_if<Error>(&answer);
  if (error != nullptr && error->code != Errc::kNotFound) {
    const bool enough = row_.cancel == Cancelled::kForced || is_last_try(work, *error, now);
    if (enough && work.told && !work.told->properties.empty()) return created(work, Item(*work.told), now);
    return again(work, Phase::kSettling, *error, now);
  }
  const bool waits_as_told = change == Work::Change::kCreate && work.told;
  if (error != nullptr && !waits_as_told && ask_until_settled(work, Phase::kSettling, time_to_show(work, now), now)) {
    return;
  }
  if (change == Work::Change::kDelete) {
    const auto* item = std::get_if<Item>(&answer);
    const bool another = item != nullptr && !work.uid.empty() && !item->uid.empty() && item->uid != work.uid;
    if (item == nullptr || another) return deleted(work, now);
    if (const auto held = held_by(work)) return fail(work, *held);
    const bool guarded = work.precondition != Precondition{};  // not after a restart: then it is looked at first
    return again(work, guarded ? Phase::kDeleting : Phase::kReading,
                 {Errc::kNotStabilized, "it is there still after it was deleted", {}, 0}, now);
  }
  if (error != nullptr) {
    if (change == Work::Change::kUpdate) return gone(work);
    const bool settles = work.told && now < work.told_at + work.type->settle;
    if (settles && row_.cancel == Cancelled::kForced && !work.told->properties.empty()) {
      return created(work, Item(*work.told), now);  // that it is made was told; that it does not show yet says nothing
    }
    if (work.told && row_.cancel != Cancelled::kForced) {
      if (++work.reads < kConvergeReads || now < std::min(work.told_at + work.type->settle, work.deadline)) {
        return go_on(work, Phase::kSettling, now, pause_after(work.reads - 1, kFirstPause));
      }
      spend_key(work);
    }
    work.op.native_id.clear();  // if it is looked for once more, then by what identifies it
    return again(work, Phase::kCreating, {Errc::kNotStabilized, "it is not there after it was made", {}, 0}, now);
  }
  const auto& item = std::get<Item>(answer);
  if (change == Work::Change::kCreate) return created(work, item, now);
  if (work.told) return updated(work, item, now);  // what cannot be read back has been sent
  if (!work.uid.empty() && !item.uid.empty() && work.uid != item.uid && !is_as_declared(work, item)) {
    return fail(work, another_object(item));  // some systems give what is changed another uid: that is as declared
  }
  if (!observe(work, work.step.row, item, "changed", "resource.changed")) return;
  work.uid = item.uid;
  if (row_.cancel == Cancelled::kForced) {
    return end(work.op.step, State::kCancelled, "CANCELLED", "cancelled while it was changed");
  }
  plan_update(work, parsed(work.prior), now);
}

void Execution::take_finding(Work& work, JobResult result, TimePoint now) {
  if (!work.op.native_id.empty()) return go_on(work, Phase::kSettling, now);  // it has been told meanwhile
  if (const auto* error = std::get_if<Error>(&result)) {
    const auto left = error->code == Errc::kNotFound ? needs_time_to_show(work) : Millis{0};
    if (!ask_until_settled(work, Phase::kFinding, left, now)) again(work, Phase::kFinding, *error, now);
    return;
  }
  auto& search = work.search;
  const auto note = [&](const Error& error) {
    if (error_traits(error.code).retry != Retry::kNever) search.hidden = error;  // it may be the object
  };
  const bool reads = !search.candidates.empty();
  if (auto* page = std::get_if<ListResult>(&result); page != nullptr && !reads) {
    for (const auto& item : page->items) {
      if (item.properties.empty()) {
        search.candidates.push_back(item.native_id);
      } else if (is_wanted(work, item)) {
        return found(work, item, now);
      }
    }
    for (const auto& problem : page->problems) note(problem.failure);
    search.listed = page->next_page_token.empty();
    search.page_token = std::move(page->next_page_token);
    if (!search.listed && !search.tokens.insert(search.page_token).second) {
      return fail(work, {Errc::kContract, "the plugin gave the same page token twice", {}, 0});
    }
    search.barren_pages = page->items.empty() ? search.barren_pages + 1 : 0;
    if (!search.listed && search.barren_pages >= kMaxBarrenPages) {
      return fail(work, {Errc::kContract, "1000 pages in a row brought no id", {}, 0});
    }
  } else if (const auto* read = std::get_if<ReadResult>(&result); read != nullptr && reads) {
    const auto asked = first_candidates(work);
    if (read->items.size() != asked.size()) {
      return fail(work, {Errc::kContract, "the plugin did not answer for each id that it was asked for", {}, 0});
    }
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (const auto* error = std::get_if<Error>(&read->items[i])) {
        note(*error);
        continue;
      }
      const auto& item = std::get<Item>(read->items[i]);
      if (item.native_id == asked[i] && is_wanted(work, item)) return found(work, item, now);
    }
    search.candidates.erase(search.candidates.begin(),
                            search.candidates.begin() + static_cast<std::ptrdiff_t>(asked.size()));
  } else {
    return fail(work, {Errc::kContract, "the plugin answered with something else than it was asked for", {}, 0});
  }
  if (!search.candidates.empty() || !search.listed) {
    if (now >= work.deadline) return fail(work, {Errc::kTimeout, "it is looked for still after an hour", {}, 0});
    return go_on(work, Phase::kFinding, now);
  }
  if (search.hidden) {
    const Error hidden = *search.hidden;
    search = {};
    return again(work, Phase::kFinding, hidden, now);
  }
  // It is not there: the uncertain attempt has made nothing so far, and the same key may be tried again. With one of an
  // earlier command, that is refused each time as naming what is gone, nothing is made any more.
  const auto why = search.in_the_way.empty() ? "there is no such object" : search.in_the_way + " is there still";
  const Error missing{Errc::kNotStabilized, why, {}, 0};
  const bool spent = search.refused && search.in_the_way.empty() && !work.inherited_key.empty() &&
                     !rules_of(*work.type).identity.empty();
  if (spent) {  // what was made with it just now need not show yet
    const auto left = std::chrono::ceil<Millis>(*work.refused_since + work.type->settle - now);
    if (ask_until_settled(work, Phase::kCreating, left, now)) return;
  }
  if (!spent || row_.cancel == Cancelled::kForced || !is_last_try(work, missing, now)) {
    return again(work, Phase::kCreating, missing, now);
  }
  settle_key(work, work.asked.place);
  work.op.uncertain = false;
  fail(work,
       {Errc::kConflict, "what an earlier command may have made is gone: apply again, and it is made anew", {}, 0});
}

/// It bears the name. Since an earlier command asked for it, somebody else may have made it, with values that nobody
/// can read back.
void Execution::found(Work& work, const Item& item, TimePoint now) {
  if (!work.inherited_key.empty()) work.old_values = work.old_values || !unread_of(work).first.empty();
  created(work, item, now);
}

std::vector<std::string> Execution::first_candidates(const Work& work) {
  const auto count =
      static_cast<std::ptrdiff_t>(std::min(ids_read_together(*work.type), work.search.candidates.size()));
  return {work.search.candidates.begin(), work.search.candidates.begin() + count};
}

/// What is to be replaced bears the name as well, as long as it is there.
bool Execution::is_replaced(const Work& work, const Item& item) {
  const bool is_there = work.step.action == StepAction::kReplace && !work.second_half();
  const auto old = is_there ? must(s_.store.one(work.step.row)) : std::nullopt;
  if (!old || old->native_id != item.native_id) return false;
  if (!old->uid.empty() && !item.uid.empty()) return old->uid == item.uid;
  return calls_for_another(work, parsed(item.properties)).value_or(true);
}

/// Whether an object is the declared one, by what identifies objects of the type.
bool Execution::is_wanted(Work& work, const Item& item) {
  const auto& identity = rules_of(*work.type).identity;
  if (identity.empty()) return false;
  const auto wanted = document(work.step);  // what it refers to may have gone since: names are mostly known without
  const auto declared = Json::parse(wanted ? wanted->json : work.step.resource->properties);
  const auto there = parsed(item.properties);
  const bool bears_name =
      there.is_object() && std::ranges::all_of(identity, [&](const std::string& property) {
        return declared.contains(property) && there.contains(property) && declared[property] == there[property];
      });
  if (!bears_name || !is_replaced(work, item)) return bears_name;
  work.search.in_the_way = item.native_id;
  return false;
}

/// Where what is changed has another id than what was to be changed.
std::optional<Error> Execution::changes_another(const Work& work, const std::string& native_id) {
  if (work.change() == Work::Change::kCreate || native_id.empty() || native_id == work.op.native_id) return {};
  return Error{Errc::kContract, "the plugin changed " + native_id + " instead of " + work.op.native_id, {}, 0};
}

void Execution::succeeded(Work& work, const MutationResult& result, TimePoint now) {
  if (work.change() == Work::Change::kDelete) return deleted(work, now);
  if (result.native_id.empty() && work.op.native_id.empty()) {
    work.op.uncertain = true;
    return fail(work, {Errc::kContract, "the plugin says that it made an object, and not which", {}, 0});
  }
  const auto native_id = result.native_id.empty() ? work.op.native_id : result.native_id;
  if (const auto another = changes_another(work, native_id)) return fail(work, *another);
  if (result.properties.empty() || may_be_gone(work, native_id)) {
    work.op.native_id = native_id;
    work.op.uncertain = true;
    work.told = Item{native_id, result.uid, result.properties};
    work.told_at = now;
    return go_on(work, Phase::kSettling, now);
  }
  const Item item{native_id, result.uid, result.properties};
  work.change() == Work::Change::kCreate ? created(work, item, now) : updated(work, item, now);
}

Result<JsonText> Execution::kept_form(Work& work, const Item& item) {
  auto whole = canonical_object(item.properties);
  if (!whole) return whole;
  work.state = hash128(*whole);
  const auto [it, made] = unread_.try_emplace(work.type->name);
  if (made) it->second = UnreadProperties(rules_of(*work.type));
  std::vector<std::string> dropped;
  return it->second.may_be_in(*whole) ? it->second.drop_from(*whole, dropped) : whole;
}

bool Execution::observe(Work& work, RowId row, const Item& item, std::string_view cause, std::string_view event) {
  auto canonical = kept_form(work, item);
  if (!canonical || canonical->size() > kMaxPropertiesBytes) {
    fail(work,
         {Errc::kContract, "the plugin answered with properties that are no JSON object of at most 256 KiB", {}, 0});
    return false;
  }
  work.prior = std::move(*canonical);
  const auto old = must(s_.store.one(row));
  if (!old) return true;
  const auto content = hash128(work.prior);
  if (old->state == ResourceState::kVanished || old->state == ResourceState::kFiltered) return true;
  if (!item.uid.empty() && item.uid != old->uid) must(s_.store.set_uid(row, item.uid));
  if (old->state != ResourceState::kPresent) must(s_.store.come_back(row));
  if (old->state == ResourceState::kMissing) {  // which was told as vanished
    s_.events.emit(work.target.ns, "resource.discovered", old->id.value,
                   identity(*old).text("hash", hex(content)).take());
  }
  if (old->properties == work.prior) {
    if (old->state == ResourceState::kMissing) {
      must(s_.store.change(row, work.prior, content, old->label, item.uid.empty() ? old->uid : item.uid, "[]",
                           s_.clock.wall(), "discovered"));
    }
    if (event == "resource.updated") {
      s_.events.emit(work.target.ns, event, old->id.value, identity(*old).raw("patch", "[]").take());
    }
    return true;
  }
  const auto patch = patch_between(old->properties, work.prior);
  std::string label(old->native_id);
  if (auto labels = s_.queries.labels(work.manifest))
    label = (*labels)->label(work.step.type, work.prior, old->native_id);
  must(s_.store.change(row, work.prior, content, label, item.uid.empty() ? old->uid : item.uid, patch, s_.clock.wall(),
                       cause));
  auto data = identity(*old).text("hash", hex(content));
  patch.size() <= kMaxPatchBytes ? data.raw("patch", patch) : data.flag("patch_left_out", true);
  s_.events.emit(work.target.ns, event, old->id.value, data.take());
  return true;
}

void Execution::created(Work& work, const Item& item, TimePoint now) {
  auto canonical = kept_form(work, item);
  if (!canonical || canonical->size() > kMaxPropertiesBytes) {
    work.op.uncertain = true;  // it may be there: the key of it must not be lost
    return fail(
        work,
        {Errc::kContract, "the plugin answered with properties that are no JSON object of at most 256 KiB", {}, 0});
  }
  const auto& step = work.step;
  work.prior = std::move(*canonical);
  work.op.native_id = item.native_id;
  static_cast<void>(parent_of(work));
  std::string label = item.native_id;
  if (auto labels = s_.queries.labels(work.manifest)) label = (*labels)->label(step.type, work.prior, item.native_id);
  const auto at = s_.clock.wall();
  const auto content = hash128(work.prior);
  const auto former = must(s_.store.one(must(s_.store.find(work.scan, item.native_id))));
  NewResource fresh{work.scan, item.native_id, item.uid, label, work.prior, content, work.parent, at};
  fresh.made = true;
  const auto made = must(s_.store.insert(fresh));
  work.row = made.row;
  work.op.uncertain = false;
  work.told.reset();
  work.reads = 0;
  s_.writes.note(work.scan, item.native_id);
  const auto row = must(s_.store.one(made.row)).value();
  const bool anew = step.action == StepAction::kCreate;  // in place of what is gone, which may have had another name
  const bool was_gone = former && former->state == ResourceState::kMissing;
  const auto claim = row.managed ? must(s_.store.claim(made.row)) : std::nullopt;
  const bool leaves = claim && claim->stack == step.stack && (was_gone || (anew && made.row == step.row));
  if (claim && !leaves && (claim->stack != step.stack || claim->name != step.name)) {
    if (!work.inherited_key.empty()) settle_key(work, work.asked.place);  // the next apply makes its own
    return fail(work,
                {Errc::kConflict, item.native_id + " belongs to stack " + claim->stack + ", as " + claim->name, {}, 0});
  }
  if (row.version == 1 && row.first_seen == at) must(s_.store.set_created(made.row));
  if (!item.uid.empty() && row.uid != item.uid) must(s_.store.set_uid(made.row, item.uid));
  std::vector<std::pair<RowId, ResourceState>> before;  // it takes the name over from
  must(s_.store.of_stack(step.stack, step.name, [&](const ManagedView& view) {
    const bool goes = view.row == step.row || view.state == ResourceState::kMissing;
    if (goes && view.row != made.row) before.emplace_back(view.row, view.state);
  }));
  if (anew && step.row != made.row && is_gone_as_another(step)) before.emplace_back(step.row, ResourceState::kMissing);
  for (const auto& [old, state] : before) {
    if (state != ResourceState::kMissing && !step.resource->protect) {
      rename_replaced(old);
      continue;
    }
    must(s_.store.release(old));
    if (state == ResourceState::kMissing) must(s_.store.leave(old, ResourceState::kVanished, "replaced", at));
  }
  rename_others(s_.store, step);
  must(s_.store.manage(made.row, {step.stack, step.name, work.old_values ? unread_of(work).second : step.claim}));
  if (!work.inherited_key.empty()) settle_key(work, work.asked.place);
  s_.events.emit(work.target.ns, "resource.created", row.id.value, identity(row).text("hash", hex(content)).take());
  work.set_phase(Phase::kConverging);  // it is made: a coordinator that goes on with this must not ask for it again
  must(s_.store.put_operation(work.op));
  converge(work, parsed(work.prior), now);
}

void Execution::updated(Work& work, const Item& item, TimePoint now) {
  const auto& step = work.step;
  end_write(work);
  work.reads = 0;
  work.op.uncertain = true;  // until it is seen
  if (!observe(work, step.row, item, "updated", "resource.updated")) return;
  work.op.uncertain = false;
  if (const auto lost = lost_row(step)) return fail(work, *lost);
  if (step.claim.empty()) {
    must(s_.store.set_drifted(step.row, false));
  } else {
    if (step.action == StepAction::kAdopt) release_gone(step);
    rename_others(s_.store, step);
    must(s_.store.manage(step.row, {step.stack, step.name, step.claim}));
  }
  work.row = step.row;
  work.set_phase(Phase::kConverging);  // it is done: a coordinator that goes on with this must not ask for it again
  must(s_.store.put_operation(work.op));
  converge(work, parsed(work.prior), now);
}

}  // namespace muster
