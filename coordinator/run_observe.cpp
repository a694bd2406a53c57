// What a run does with what workers found: pages of lists, batches of reads, one item after another.

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "coordinator/canonical.h"
#include "coordinator/json_patch.h"
#include "coordinator/must.h"
#include "coordinator/run_state.h"
#include "schema/mutation.h"

namespace muster {
namespace {

constexpr std::uint64_t kFilteredReadEvery = 16;  // runs; each of them reads its share

std::uint64_t uid_hash(std::string_view uid) {
  return uid.empty() ? 0 : std::max<std::uint64_t>(1, hash128(uid).low);
}

/// Whether what has the entry's id now is another object than had it.
bool is_another(const ScanIndex::Entry& entry, const Item& item) {
  const auto uid = uid_hash(item.uid);
  return entry.uid != 0 && uid != 0 && entry.uid != uid;
}

/// Whether it says what there is, and not that nobody could look.
bool is_answer(const ReadItem& item) {
  const auto* error = std::get_if<Error>(&item);
  return error == nullptr || error->code == Errc::kNotFound;
}

/// Rows whose ids have gone round among them, each with the id that the one before it had.
std::vector<std::vector<RowId>> circles_in(const std::map<RowId, RowId>& seen_at) {
  std::vector<std::vector<RowId>> all;
  std::unordered_map<RowId, RowId> walked;  // from where: over each row once, however long the ways are
  for (const auto& [start, first] : seen_at) {
    std::vector<RowId> way;
    auto row = start;
    while (seen_at.contains(row) && walked.emplace(row, start).second) {
      way.push_back(row);
      row = seen_at.at(row);
    }
    const auto met = walked.find(row);
    if (met != walked.end() && met->second == start) all.emplace_back(std::ranges::find(way, row), way.end());
  }
  return all;
}

std::string below(const Listing& listing) {
  return listing.parent.row == 0 ? std::string("listing") : "listing below " + listing.parent.native_id;
}

}  // namespace

JsonText Run::identity(const TargetRun& target, std::string_view type, const ResourceId& id, std::string_view native_id,
                       std::string_view members) const {
  auto text = JsonObject()
                  .text("id", id.value)
                  .text("target", target.target.name)
                  .text("type", type)
                  .text("native_id", native_id)
                  .text("run", row_.id.value)
                  .take();
  text.back() = ',';
  text += members;
  text += '}';
  return text;
}

void Run::take_page(TargetRun& target, Scan& scan, const std::shared_ptr<Listing>& listing, bool continued,
                    JobResult result) {
  if (const auto* error = std::get_if<Error>(&result)) {
    // A parent that went away between its own listing and this one has no children; the next run sees that it is gone.
    if (error->code == Errc::kNotFound && listing->parent.row != 0) return;
    fail_scan(target, scan, *error, below(*listing));
    return;
  }
  auto* page = std::get_if<ListResult>(&result);
  if (page == nullptr) {
    fail_scan(target, scan, {Errc::kContract, "the plugin answered with something that is no page", {}, 0},
              below(*listing));
    return;
  }
  scan.answered = true;
  if (overflows(scan) && !page->items.empty()) {
    if (std::exchange(scan.overflowed, true)) return;
    const auto most = std::to_string(s_.config.limits.resources_per_type);
    fail_scan(target, scan,
              {Errc::kLimit,
               "there are more than " + most +
                   ": raise limits.resources_per_type, or let the target show less, unless the listing never ends",
               {},
               0},
              below(*listing));
    return;
  }
  scan.counts.skipped += page->skipped;
  for (const auto& trouble : page->problems) {
    fail_scan(target, scan, trouble.failure, trouble.native_id.empty() ? below(*listing) : trouble.native_id);
  }
  bool barren = true;
  for (auto& item : page->items) {
    if (!note_listed(target, scan, item)) continue;
    barren = false;
    if (item.properties.empty()) {
      if (remembered_filtered(scan, item)) continue;
      scan.to_read.push_back({std::move(item.native_id), listing->parent.row, hash128(item.uid).low});
    } else {
      observe(target, scan, item, listing->parent.row);
    }
  }
  observe_released(target, scan);
  if (page->next_page_token.empty()) return;
  listing->barren_pages = barren ? listing->barren_pages + 1 : 0;
  if (listing->barren_pages >= kMaxBarrenPages) {
    if (listing->barren_pages > kMaxBarrenPages) return;  // it was on its way when that was said
    fail_scan(target, scan, {Errc::kContract, "1000 pages in a row brought no new id", {}, 0}, below(*listing));
  } else if (!continued && continues(scan, *listing, page->next_page_token, target)) {
    scan.next_pages.emplace_back(listing, std::move(page->next_page_token));
  }
}

bool Run::overflows(const Scan& scan) const {
  return scan.counts.listed >= s_.config.limits.resources_per_type;
}

bool Run::continues(Scan& scan, Listing& listing, const std::string& token, TargetRun& target) {
  if (!listing.tokens.insert(hash128(token).low).second) {
    fail_scan(target, scan, {Errc::kContract, "the plugin gave the same page token twice", {}, 0}, below(listing));
    return false;
  }
  return true;
}

bool Run::note_listed(TargetRun& target, Scan& scan, const Item& item) {
  const auto key = hash128(item.native_id);
  auto* entry = scan.index.find(key);
  const bool twice = entry != nullptr ? std::exchange(entry->seen, true) : !scan.fresh.insert(key);
  if (twice) {
    ++scan.counts.errors;
    problem(target, scan.type->name, "DUPLICATE_ID", "listed twice: " + item.native_id);
    return false;
  }
  ++scan.counts.listed;
  return true;
}

void Run::take_reads(TargetRun& target, Scan& scan, std::vector<PendingRead> asked, JobResult result) {
  auto* read = std::get_if<ReadResult>(&result);
  if (read == nullptr || read->items.size() != asked.size()) {
    const auto* error = std::get_if<Error>(&result);
    scan.counts.errors += asked.size();
    problem(target, scan.type->name, errc_name(error != nullptr ? error->code : Errc::kContract),
            "reading " + std::to_string(asked.size()) + " ids from " + asked.front().native_id + ": " +
                (error != nullptr ? error->message : "the plugin did not answer each id"));
    for (const auto& one : asked) queue_children(scan, one.native_id);
    return;
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    scan.answered = scan.answered || is_answer(read->items[i]);
    if (auto* item = std::get_if<Item>(&read->items[i])) {
      ++scan.counts.read;
      if (item->native_id != asked[i].native_id) {
        ++scan.counts.errors;
        problem(target, scan.type->name, errc_name(Errc::kContract),
                "asked for " + asked[i].native_id + ", the plugin read " + item->native_id);
        queue_children(scan, asked[i].native_id);
        continue;
      }
      remember(scan, asked[i], observe(target, scan, *item, asked[i].parent));
      continue;
    }
    const auto& error = std::get<Error>(read->items[i]);
    if (error.code == Errc::kNotFound && target.rereads) {
      const auto* entry = scan.index.find(hash128(asked[i].native_id));
      const bool known = entry == nullptr || entry->missing;
      if (known || s_.writes.outdates(position_, scan.row.id, asked[i].native_id)) continue;
      if (scan.type->discoverable) {
        list_again(target);
      } else {  // no list tells more
        take_missing(target, scan, entry->row, asked[i].native_id, read->items[i]);
      }
      continue;
    }
    if (error.code == Errc::kNotFound) {  // it went away after it was listed
      const auto key = hash128(asked[i].native_id);
      if (auto* entry = scan.index.find(key)) entry->seen = false;
      scan.fresh.erase(key);
      continue;
    }
    if (again(target, error, asked[i].failures)) {
      scan.to_read.push_back(std::move(asked[i]));
      continue;
    }
    ++scan.counts.errors;
    problem(target, scan.type->name, errc_name(error.code), "reading " + asked[i].native_id + ": " + error.message);
    queue_children(scan, asked[i].native_id);
  }
  observe_released(target, scan);
}

bool Run::again(const TargetRun& target, const Error& error, int& failures) const {
  // One object of a batch: the batch itself has succeeded, so the dispatcher does not try again.
  if (error.code == Errc::kThrottling) {
    s_.limiter.throttled(target.lane.ns, target.target.id, error.retry_after, s_.clock.now());
  }
  return error_traits(error.code).retry != Retry::kNever && ++failures < s_.config.retry.attempts;
}

Result<void> Run::parse(std::string_view text) {
  if (parsed_.data() == text.data() && parsed_.size() == text.size()) return {};
  parsed_ = {};
  if (auto parsed = document_.parse(text); !parsed) return parsed;
  parsed_ = text;
  return {};
}

bool Run::too_large(const TargetRun& target, Scan& scan, const std::string& native_id, std::size_t bytes) {
  if (bytes <= kMaxPropertiesBytes) return false;
  ++scan.counts.errors;
  problem(target, scan.type->name, errc_name(Errc::kLimit),
          native_id + ": properties of " + std::to_string(bytes) + " bytes, the limit is 262144");
  return true;
}

std::optional<std::string_view> Run::canonical_of(TargetRun& target, Scan& scan, const Item& item, JsonText& made) {
  if (is_canonical_object(item.properties)) return item.properties;
  auto canonical = canonical_object(item.properties);
  if (!canonical) {
    ++scan.counts.errors;
    problem(target, scan.type->name, errc_name(Errc::kContract),
            item.native_id + ": the properties are no JSON object: " + canonical.error().message);
    return std::nullopt;
  }
  if (too_large(target, scan, item.native_id, canonical->size())) return std::nullopt;
  made = std::move(*canonical);
  return made;
}

std::optional<bool> Run::keeps(TargetRun& target, Scan& scan, const std::string& native_id, std::string_view text) {
  if (!target.filters->applies(scan.type->name)) return true;
  const auto parsed = parse(text);
  Budget budget(usual_visits(text.size()) + target.visits);
  const auto kept = parsed ? target.filters->judge(scan.type->name, document_, budget) : Result<bool>(parsed.error());
  target.visits = std::min(target.visits, budget.left());
  if (kept) return *kept;
  ++scan.counts.errors;
  if (scan.unjudged++ == 0) {
    problem(target, scan.type->name, errc_name(kept.error().code), native_id + ": filter: " + kept.error().message);
  }
  return std::nullopt;
}

std::string Run::label_of(const TargetRun& target, const Scan& scan, std::string_view text,
                          std::string_view native_id) {
  if (!target.labels->applies(scan.type->name) || !parse(text)) {
    return target.labels->label(scan.type->name, text, native_id);
  }
  Budget budget(usual_visits(text.size()));
  return target.labels->label(scan.type->name, document_, native_id, budget);
}

Run::Seen Run::observe(TargetRun& target, Scan& scan, const Item& item, RowId parent) {
  if (scan.unread.may_be_in(item.properties)) {
    std::vector<std::string> dropped;
    auto kept = scan.unread.drop_from(item.properties, dropped);
    if (kept && !dropped.empty()) {
      if (!std::exchange(scan.told_unread, true)) {
        problem(target, scan.type->name, errc_name(Errc::kContract),
                item.native_id + ": " + dropped.front() + " is write-only or secret, and the plugin gives it: dropped");
      }
      return observe(target, scan, {item.native_id, item.uid, std::move(*kept)}, parent);
    }
  }
  parsed_ = {};  // the buffer of the item before may lie where this one does
  const auto refused = [&] {
    queue_children(scan, item.native_id);
    return Seen::kRefused;
  };
  if (too_large(target, scan, item.native_id, item.properties.size())) return refused();
  auto* entry = scan.index.find(hash128(item.native_id));
  if (s_.writes.outdates(position_, scan.row.id, item.native_id)) {
    if (entry != nullptr) entry->seen = true;
    queue_children(scan, item.native_id);
    return Seen::kKept;
  }
  std::optional<ScanIndex::Entry> written;
  if (s_.writes.knows(scan.row.id, item.native_id) && !MUSTER_MUTATION("old-index")) {
    written = written_entry(scan, item.native_id);
    entry = written ? &*written : nullptr;
    if (written) target.left.erase(written->row);
  }
  // Left with its parent earlier in this run, and found again: below another one, or below what took its place.
  if (entry != nullptr && target.left.contains(entry->row)) entry = nullptr;
  // What is managed is whatever has its id: that was declared. A command may have adopted it since it was loaded.
  if (entry != nullptr && !entry->managed && is_another(*entry, item) && !is_managed(entry->row)) {
    if (observe_successor(target, scan, *entry, !written, item, parent)) return Seen::kKept;
    entry = nullptr;
  }
  if (entry != nullptr) entry->observed = true;
  auto content = hash128(item.properties);
  if (entry != nullptr && entry->content == content && (scan.same_filters || entry->managed)) {
    observe_known(target, scan, *entry, item, parent, item.properties, content);
    return Seen::kKept;
  }
  JsonText made;
  const auto canonical = canonical_of(target, scan, item, made);
  if (!canonical) return refused();
  const auto text = *canonical;
  if (!made.empty()) content = hash128(text);
  // A stack may have let go of it since the index was loaded.
  if (entry != nullptr && entry->managed) entry->managed = is_managed(entry->row);
  const bool judged = entry != nullptr && entry->content == content && scan.same_filters;
  bool filtered = false;
  if (!judged) {
    const auto kept = entry != nullptr && entry->managed ? true : keeps(target, scan, item.native_id, text);
    if (!kept) return refused();
    filtered = !*kept;
    const auto* old = filtered && entry == nullptr ? of_uid(target, scan, item.uid) : nullptr;
    if (filtered && (old == nullptr || !old->managed)) {
      if (old != nullptr) target.hidden.insert(old->row);
      filter_out(target, scan, entry);
      return Seen::kFiltered;
    }
  }
  if (entry != nullptr) {
    observe_known(target, scan, *entry, item, parent, text, content);
  } else {
    observe_unknown(target, scan, item, parent, text, content, filtered);
  }
  return Seen::kKept;
}

bool Run::is_managed(RowId row) const {
  const auto known = must(s_.store.one(row));
  return known && known->managed;
}

bool Run::observe_successor(TargetRun& target, Scan& scan, ScanIndex::Entry& entry, bool indexed, const Item& item,
                            RowId parent) {
  if (target.rereads) {
    list_again(target);
    return true;
  }
  if (scan.deferred.holds(entry.row)) {
    resolve(target, scan, entry.row, OldId::kGone);
    const auto* old = scan.index.find_row(entry.row);
    if (old != nullptr && old->moved) return false;
  }
  if (!indexed || scan.phase != Scan::Phase::kListing || scan.successors.full() || MUSTER_MUTATION("replace-at-once")) {
    leave_tree(target, entry.row, ResourceState::kVanished, "replaced");
    return false;
  }
  scan.successors.add(entry.row, {item, parent, position_});
  return true;
}

void Run::observe_released(TargetRun& target, Scan& scan) {
  const auto position = position_;
  while (!scan.released.empty()) {
    const auto next = std::move(scan.released.back());
    scan.released.pop_back();
    position_ = next.position;
    observe(target, scan, next.item, next.parent);
  }
  position_ = position;
}

bool Run::replace_taken(TargetRun& target, Scan& scan) {
  if (scan.successors.empty()) return false;
  std::map<RowId, RowId> seen_at;  // of a row whose id is another's: the row of that, or 0
  for (auto row = scan.successors.next(0); row; row = scan.successors.next(*row)) {
    const auto* is = of_uid(target, scan, scan.successors.peek(*row)->item.uid);
    seen_at[*row] = is == nullptr ? 0 : is->row;
  }
  const auto all = circles_in(seen_at);
  for (const auto& rows : all) rename_circle(target, scan, rows);
  if (!all.empty()) return true;  // in one of them may lie what another that has lost its id is now
  const auto replace = [&](RowId row) {
    scan.released = scan.successors.take(row);
    leave_tree(target, row, ResourceState::kVanished, "replaced");
    observe_released(target, scan);
  };
  // First what is seen under nobody's id: what has its id makes room for what has the id of that, and so on.
  std::unordered_set<RowId> elsewhere;
  for (const auto& [row, is] : seen_at) elsewhere.insert(is);
  for (auto row = scan.successors.next(0); row; row = scan.successors.next(*row)) {
    if (!elsewhere.contains(*row)) replace(*row);
  }
  while (const auto row = scan.successors.next(0)) replace(*row);
  return true;
}

void Run::list_again(const TargetRun& target) {
  const auto& name = target.target.name;
  if (std::ranges::any_of(follow_up_, [&](const ScopePart& part) { return part.targets.front() == name; })) return;
  follow_up_.push_back({{name}, {}});
}

/// What the store has of an object that a command has written since the index was loaded, if it is listed.
std::optional<ScanIndex::Entry> Run::written_entry(const Scan& scan, std::string_view native_id) {
  const auto row = must(s_.store.find(scan.row.id, native_id));
  const auto record = row == 0 ? std::nullopt : must(s_.store.one(row));
  if (!record) return std::nullopt;
  ScanIndex::Entry entry;
  entry.row = row;
  entry.key = hash128(native_id);
  entry.content = hash128(record->properties);
  entry.uid = uid_hash(record->uid);
  entry.parent = record->parent;
  entry.stale = record->state == ResourceState::kStale;
  entry.managed = record->managed;
  entry.missing = record->state == ResourceState::kMissing;
  return entry;
}

ScanIndex::Entry* Run::of_uid(const TargetRun& target, Scan& scan, std::string_view uid) {
  auto* old = scan.index.find_uid(uid_hash(uid));
  return old == nullptr || target.left.contains(old->row) ? nullptr : old;
}

void Run::observe_unknown(TargetRun& target, Scan& scan, const Item& item, RowId parent, std::string_view text,
                          const Hash128& content, bool filtered) {
  const auto* old = of_uid(target, scan, item.uid);
  if (old == nullptr) {
    observe_new(target, scan, item, parent, text, content);
    return;
  }
  if (target.rereads) {  // which asks for no old ids: a command has deleted it since, or has given it another id
    list_again(target);
    return;
  }
  Deferred renamed{{item.native_id, item.uid, JsonText(text)}, parent, position_, filtered};
  if (scan.successors.holds(old->row)) {
    std::ranges::move(scan.successors.take(old->row), std::back_inserter(scan.released));
    rename(target, scan, old->row, renamed);
    return;
  }
  // Perhaps renamed: known when the old id proves to be gone.
  if (!scan.deferred.holds(old->row)) scan.old_ids.push_back({old->row, 0});
  scan.deferred.add(old->row, std::move(renamed));
}

void Run::observe_new(TargetRun& target, Scan& scan, const Item& item, RowId parent, std::string_view text,
                      const Hash128& content) {
  if (parent != 0 && !s_.writes.empty()) {  // what was seen in a thing before a command deleted it has gone with it
    const auto place = must(s_.store.one(parent));
    const bool there = place && (place->state == ResourceState::kPresent || place->state == ResourceState::kStale);
    if (!there && (!place || s_.writes.knows(place->scan, place->native_id))) return;
  }
  const auto label = label_of(target, scan, text, item.native_id);
  const auto made = must(s_.store.insert({scan.row.id, item.native_id, item.uid, label, text, content, parent,
                                          s_.clock.wall(), !s_.writes.knows(scan.row.id, item.native_id)}));
  if (target.left.erase(made.row) > 0) {  // it has come back
    if (const auto row = must(s_.store.one(made.row)); row && row->managed) s_.drift.judge(*row);
  }
  ++scan.counts.fresh;
  s_.events.emit(target.target.ns, "resource.discovered", made.id.value,
                 identity(target, scan.type->name, made.id, item.native_id, "\"hash\":\"" + hex(content) + "\""));
  queue_children(scan, made.row);
}

void Run::observe_known(TargetRun& target, Scan& scan, ScanIndex::Entry& entry, const Item& item, RowId parent,
                        std::string_view text, const Hash128& content) {
  std::optional<ResourceRecord> old;
  JsonText patch = "[]";
  const bool another = is_another(entry, item);
  if (entry.content != content || entry.missing || another) {
    old = must(s_.store.one(entry.row));
    if (!old) throw StoreFailure({Errc::kStoreUnavailable, "row " + std::to_string(entry.row) + " is gone", {}, 0});
    if (entry.content != content) patch = patch_between(old->properties, text);
  }
  const bool back = old && old->state == ResourceState::kMissing;  // a command may have found it gone, or there again
  if (patch != "[]" || back || another) {
    auto said = record_change(target, scan, *old, item, text, content, patch);
    if (another) said += ",\"replaced\":true";  // it may have lost what properties do not show
    if (another) entry.uid = uid_hash(item.uid);
    s_.events.emit(target.target.ns, back ? "resource.discovered" : "resource.changed", old->id.value,
                   identity(target, scan.type->name, old->id, item.native_id, said));
    ++scan.counts.changed;
    // As it is by now: a command may have adopted it since the index was loaded.
    if (old->managed) s_.drift.judge(must(s_.store.one(entry.row)).value());
  } else {
    ++scan.counts.unchanged;
    if (entry.content != content) must(s_.store.restate(entry.row, text, content));
    if (entry.stale) must(s_.store.set_stale(entry.row, false));
    if (entry.uid == 0 && !item.uid.empty()) must(s_.store.set_uid(entry.row, item.uid));
    if (!scan.same_filters) must(s_.store.set_label(entry.row, label_of(target, scan, text, item.native_id)));
  }
  if (entry.parent != parent) must(s_.store.reparent(entry.row, parent));
  queue_children(scan, entry.row);
}

std::string Run::record_change(TargetRun& target, Scan& scan, const ResourceRecord& old, const Item& item,
                               std::string_view text, const Hash128& content, const JsonText& patch) {
  const auto label = label_of(target, scan, text, item.native_id);
  const bool back = old.state == ResourceState::kMissing;
  const std::string_view uid = item.uid.empty() ? old.uid : std::string_view(item.uid);
  must(s_.store.change(old.row, text, content, label, uid, patch, s_.clock.wall(), back ? "discovered" : "changed"));
  if (back && patch == "[]") return "\"hash\":\"" + hex(content) + "\"";
  const auto hash = "\"hash\":\"" + hex(content) + "\",";
  return patch.size() <= kMaxPatchBytes ? hash + "\"patch\":" + patch : hash + "\"patch_left_out\":true";
}

void Run::filter_out(TargetRun& target, Scan& scan, const ScanIndex::Entry* entry) {
  if (entry == nullptr) {
    ++scan.counts.filtered;
  } else if (target.rereads && !must(s_.store.descendants(entry->row)).empty()) {
    list_again(target);  // tells what is below it still, and not elsewhere
  } else if (scan.children.empty()) {
    leave_tree(target, entry->row, ResourceState::kFiltered, "filtered");
  } else {
    target.to_leave.push_back(entry->row);  // what was below it may yet be found elsewhere
  }
}

bool Run::remembered_filtered(Scan& scan, const Item& item) {
  const auto key = hash128(item.native_id);
  const auto known = scan.filtered.find(key);
  if (known == scan.filtered.end()) return false;
  known->second.seen = true;
  if (scan.index.find(key) != nullptr) return false;  // a run that was cut short has not let its row leave
  const bool in_turn = (key.low + scan.row.runs) % kFilteredReadEvery == 0;
  if (in_turn || known->second.listed != hash128(item.uid).low) return false;
  ++scan.counts.filtered;
  return true;
}

void Run::remember(Scan& scan, const PendingRead& asked, Seen seen) {
  const auto key = hash128(asked.native_id);
  const auto known = scan.filtered.find(key);
  if (seen == Seen::kFiltered) {
    if (known != scan.filtered.end() && known->second.listed == asked.listed) return;
    scan.filtered[key] = {asked.listed, true};
    must(s_.store.put_filtered(scan.row.id, key, asked.listed));
  } else if (known != scan.filtered.end()) {
    scan.filtered.erase(known);
    must(s_.store.drop_filtered(scan.row.id, key));
  }
}

void Run::queue_children(Scan& scan, RowId row) {
  if (scan.children.empty()) return;
  if (scan.phase < Scan::Phase::kConfirming) scan.parents.push_back(row);
  if (MUSTER_MUTATION("contents-of-unlisted")) return;
  if (scan.phase == Scan::Phase::kConfirming) scan.late_parents.push_back(row);
}

void Run::queue_children(Scan& scan, std::string_view native_id) {
  if (scan.children.empty()) return;
  if (const auto row = must(s_.store.find(scan.row.id, native_id)); row != 0) queue_children(scan, row);
}

}  // namespace muster
