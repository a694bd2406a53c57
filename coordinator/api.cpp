#include "coordinator/api.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/api_answers.h"
#include "coordinator/api_request.h"
#include "coordinator/must.h"
#include "schema/utf8.h"

namespace muster {
namespace {

/// What a resource was after its history says this of it.
ResourceState state_after(std::string_view cause, bool managed) {
  if (cause == "filtered") return ResourceState::kFiltered;
  const bool gone = cause == "vanished" || cause == "parent" || cause == "deleted" || cause == "replaced";
  if (!gone) return ResourceState::kPresent;
  return managed ? ResourceState::kMissing : ResourceState::kVanished;
}

std::optional<ResourceState> parse_state(std::string_view name) {
  for (const auto state : {ResourceState::kPresent, ResourceState::kStale, ResourceState::kMissing,
                           ResourceState::kVanished, ResourceState::kFiltered}) {
    if (resource_state_name(state) == name) return state;
  }
  return std::nullopt;
}

/// A report that no answer has room for, with only as many of its scans, from the given one on, as fit; `next` says
/// where the others begin. Problems, which have a bound of their own, stand in the first part.
JsonText part_of_report(const JsonText& text, std::size_t from, std::size_t room) {
  auto report = nlohmann::json::parse(text);
  auto all = std::move(report["scans"]);
  auto some = nlohmann::json::array();
  std::size_t bytes = 0;
  std::size_t next = from;
  for (; next < all.size() && bytes < room / 2; ++next) {
    bytes += all[next].dump().size();
    some.push_back(std::move(all[next]));
  }
  report["scans"] = std::move(some);
  if (from > 0) report["problems"] = nlohmann::json::array();
  report["next"] = next < all.size() ? nlohmann::json(std::to_string(next)) : nlohmann::json();
  return report.dump();
}

constexpr std::size_t kRowsAtOnce = 16;  // of the store: reports have megabytes, and an answer has room for few of them
constexpr RowId kMostSeen = 400'000;     // of an answer: the search for what is rare goes on with the next one
constexpr Millis kShownFor{60'000};      // between two parts of an answer
constexpr Millis kAheadFor{1'000};       // that a page waits for who asks for it, before another list may have one
constexpr std::size_t kMaxHistoryPatch = kMaxPropertiesBytes + 64;  // what is stored now is no longer

JsonText history_line(const HistoryEntry& entry) {
  JsonObject line;
  line.number("version", entry.version).text("at", rfc3339(entry.at)).text("cause", entry.cause);
  if (!entry.was.empty()) line.text("was", entry.was);
  if (entry.patch.size() <= kMaxHistoryPatch) return line.raw("patch", entry.patch).take();
  return line.raw("patch", "null").flag("patch_left_out", true).take();
}

}  // namespace

const Api::Verb Api::kVerbs[] = {
    {"resources", &Api::resources},
    {"resource", &Api::resource},
    {"counts", &Api::counts},
    {"targets", &Api::targets},
    {"targets-accept", &Api::accept_target},
    {"plugins", &Api::plugins},
    {"workers", &Api::workers},
    {"pools", &Api::pools},
    {"workers-drain", &Api::drain_worker},
    {"supervise", &Api::supervise},
    {"types", &Api::types},
    {"schema", &Api::schema},
    {"discover", &Api::discover},
    {"runs", &Api::runs},
    {"run", &Api::run},
    {"events", &Api::events},
    {"status", &Api::status},
    {"declare", &Api::declare},
    {"plan", &Api::plan},
    {"apply", &Api::apply},
    {"commands", &Api::commands},
    {"command", &Api::command},
    {"cancel", &Api::cancel},
    {"forget", &Api::forget},
    {"export", &Api::export_resources},
};

JsonText error_answer(std::string_view code, std::string_view message, std::string_view where) {
  return JsonObject()
      .raw("error", JsonObject().text("code", code).text("message", message).text("where", where).take())
      .take();
}

JsonText Api::answer(std::string_view verb, std::string_view body, Effects& effects) {
  const auto* const known = std::ranges::find(kVerbs, verb, &Verb::name);
  if (known == std::end(kVerbs)) {
    const std::string_view name = valid_utf8(verb) ? verb : "(not UTF-8)";
    return error_answer("UNSUPPORTED", "no such verb: " + std::string(name), name);
  }
  if (shown_ && p_.clock.now() - shown_->asked_for > kShownFor) shown_.reset();
  auto request = ApiRequest::parse(body);
  if (!request) return error_answer(errc_name(request.error().code), request.error().message, verb);
  const auto largest = p_.status.bus.max_payload;
  request->set_room(std::min(kMaxAnswerBytes, largest - largest / 8));
  const auto before = p_.store.state();
  Result<JsonText> answer = Error{Errc::kInternalFailure, {}, {}, 0};
  try {
    answer = (this->*known->handler)(*request, effects);
  } catch (const StoreFailure&) {
    throw;
  } catch (const std::exception& failure) {  // a fault of ours that one request meets ends none of the others
    answer = Error{Errc::kInternalFailure, std::string("this cannot be answered: ") + failure.what(), {}, 0};
    if (p_.store.state() != before) throw StoreFailure(answer.error());  // half of it is written
  }
  const auto* error = request->fault() ? &*request->fault() : answer ? nullptr : &answer.error();
  return error != nullptr ? error_answer(errc_name(error->code), error->message, verb) : std::move(*answer);
}

JsonText resource_line(const ResourceView& r) {
  constexpr std::size_t kOthers = 512;  // bytes, about
  JsonObject line(r.properties.size() + kOthers);
  line.text("id", r.id.value).text("target", r.target).text("type", r.type).text("native_id", r.native_id);
  if (r.uid.empty()) {
    line.raw("uid", "null");
  } else {
    line.text("uid", r.uid);
  }
  line.text("label", r.label).flag("managed", r.managed);
  if (r.stack.empty()) {
    line.raw("stack", "null");
  } else {
    line.text("stack", r.stack);
  }
  line.text("state", resource_state_name(r.state)).flag("drifted", r.drifted).raw("properties", r.properties);
  if (r.parent_type.empty()) {
    line.raw("parent", "null");
  } else {
    line.raw("parent", JsonObject().text("type", r.parent_type).text("native_id", r.parent_native_id).take());
  }
  return line.text("first_seen", rfc3339(r.first_seen))
      .text("last_seen", rfc3339(r.last_seen))
      .text("changed_at", rfc3339(r.changed_at))
      .number("version", r.version)
      .take();
}

Result<ResourceQuery> resource_query(ApiRequest& request, Store& store) {
  ResourceQuery query;
  query.text = request.text("text");
  query.target = request.text("target");
  query.type = request.text("type");
  query.stack = request.text("stack");
  query.managed = request.flag("managed");
  query.drifted_only = request.flag("drifted").value_or(false);
  query.limit = request.number("limit", 1000, 1, 100'000);
  query.most_seen = kMostSeen;
  const auto state = request.text("state");
  query.state = parse_state(state);
  if (!state.empty() && !query.state) {
    return Error{Errc::kInvalidRequest,
                 "state must be present, stale, missing, vanished or filtered, not '" + state + "'",
                 {},
                 0};
  }
  const auto cursor = request.text("cursor");
  if (!cursor.empty() && !parse_cursor(cursor, query.after)) return not_a_cursor();
  if (request.fault()) return *request.fault();
  if (!query.target.empty() && !must(store.target(query.target))) {
    return Error{Errc::kNotFound, "no target is named '" + query.target + "': `muster targets` lists them", {}, 0};
  }
  return query;
}

Result<JsonText> Api::resources(ApiRequest& request, Effects&) {
  auto query = resource_query(request, p_.store);
  if (!query) return query.error();
  ResourcePage page{.query = std::move(*query), .room = request.room()};
  const auto state = p_.store.state();
  if (ahead_ && (!ahead_->read || ahead_->state != state)) ahead_.reset();
  if (ahead_ && ahead_->query == page.query && ahead_->room == page.room) {
    page = std::move(*ahead_);
    ahead_.reset();
  } else {
    if (ahead_ && p_.clock.now() - ahead_->at > kAheadFor) ahead_.reset();
    read(page);
  }
  // Not where the next page would be made twice: while another list has one waiting, or the store is written to.
  const bool rests = std::exchange(listed_state_, state) == state;
  if (rests && !ahead_ && page.query.after > 0 && page.next > 0) {
    ahead_.emplace(ResourcePage{.query = std::move(page.query), .room = page.room});
    ahead_->query.after = page.next;
  }
  return std::move(page.answer);
}

void Api::read(ResourcePage& page) {
  ItemList items(page.room);
  page.state = p_.store.state();
  page.at = p_.clock.now();
  page.next = must(p_.store.query(page.query, [&](const ResourceView& resource) {
    const auto line = resource_line(resource);
    if (!items.has_room(line)) return false;
    items.add(line);
    return true;
  }));
  page.answer = items.take(page.next > 0 ? std::to_string(page.next) : "");
  page.read = true;
}

void Api::read_ahead() {
  if (may_read_ahead()) read(*ahead_);
}

Result<JsonText> Api::resource(ApiRequest& request, Effects&) {
  const auto id = request.text("id");
  std::optional<ResourceRecord> found;
  std::string name = id;
  if (!id.empty()) {
    found = must(p_.store.one(ResourceId(id)));
  } else {
    const auto target = request.text("target"), type = request.text("type"), native_id = request.text("native_id");
    if (request.fault()) return *request.fault();
    if (target.empty() || type.empty() || native_id.empty()) {
      return Error{Errc::kInvalidRequest, "id must be given, or target, type and native_id", {}, 0};
    }
    name = target + "/" + type + "/" + native_id;
    found = must(p_.store.one(target, type, native_id));
  }
  if (!found) return unknown("no resource " + name);

  std::string at_properties;
  if (const auto at = request.text("at"); !at.empty()) {
    const auto time = parse_rfc3339(at);
    if (!time) return Error{Errc::kInvalidRequest, time.error().message, {}, 0};
    auto then = must(p_.store.properties_at(found->row, *time));
    if (!then) return unknown("no resource " + name + " was known at " + at);
    at_properties = std::move(*then);
    found->properties = at_properties;
    const auto history = must(p_.store.history(found->row));
    // The last version that was written at that time or before, as the properties are, however the clock was set.
    const auto known = [&](const HistoryEntry& entry) { return entry.at <= *time; };
    const auto last = std::find_if(history.rbegin(), history.rend(), known);
    if (last != history.rend() && last != history.rbegin()) {
      found->version = last->version;
      found->changed_at = last->at;
      found->state = state_after(last->cause, found->managed);
    }
    found->last_seen = std::min(found->last_seen, *time);
  }
  auto line = resource_line(*found);
  if (!request.flag("history").value_or(false)) return line;
  std::uint64_t last = 0;
  if (const auto cursor = request.text("cursor"); !cursor.empty() && !parse_cursor(cursor, last)) return not_a_cursor();
  ItemList history(request.room(), line.size());
  bool more = false;
  for (const auto& entry : must(p_.store.history(found->row))) {
    if (entry.version <= last) continue;
    const auto item = history_line(entry);
    more = !history.has_room(item);
    if (more) break;
    history.add(item);
    last = entry.version;
  }
  line.back() = ',';
  line += "\"history\":" + history.items();
  if (more) line += ",\"next\":\"" + std::to_string(last) + '"';
  return line + '}';
}

Result<JsonText> Api::counts(ApiRequest& request, Effects&) {
  auto items = nlohmann::json::array();
  for (const auto& count : must(p_.store.counts())) {
    if (count.resources == 0) continue;  // a type that was looked for and is not there
    items.push_back(
        {{"target", count.target}, {"type", count.type}, {"count", count.resources}, {"stale", count.stale}});
  }
  return list_answer(request, items, {"target", "type"});
}

Result<JsonText> Api::discover(ApiRequest& request, Effects&) {
  ScopePart scope{request.texts("targets"), request.texts("types")};
  scope.stacks = request.texts("stacks");
  if (request.fault()) return *request.fault();
  std::string whole;  // the stacks, where all that they have is asked for
  if (!scope.stacks.empty()) {
    scope.look = Look::kReread;
    std::set<std::string, std::less<>> targets, types;
    for (const auto& stack : scope.stacks) {
      bool has_any = false;
      must(p_.store.of_stack(stack, {}, [&](const ManagedView& row) {
        has_any = true;
        targets.emplace(row.target);
        types.emplace(row.type);
      }));
      if (!has_any) return unknown("no stack " + stack + " has resources");
    }
    if (scope.targets.empty() && scope.types.empty()) {
      for (const auto& stack : scope.stacks) whole += (whole.empty() ? "" : ", ") + stack;
    }
    if (scope.targets.empty()) scope.targets.assign(targets.begin(), targets.end());
    if (scope.types.empty()) scope.types.assign(types.begin(), types.end());
  }
  const auto run = p_.discovery.trigger(std::move(scope), "user");
  if (!run && !whole.empty() && run.error().code == Errc::kNotFound) {  // that a stack has nothing is another matter
    return Error{Errc::kConflict, "not all of stack " + whole + " can be read: " + run.error().message, {}, 0};
  }
  if (!run) return run.error();
  return nlohmann::json{{"run", run->run.value}, {"merged", run->merged}}.dump();
}

JsonText Api::run_object(const RunRow& row) const {
  const auto& active = p_.discovery.active();
  const auto running = std::ranges::find(active, row.id, [](const auto& each) { return each.run->row().id; });
  if (running != active.end()) return running->run->report();
  if (row.finished_at) return row.report;
  return JsonObject()
      .text("run", row.id.value)
      .text("state", row.state)
      .text("trigger", row.trigger)
      .raw("started_at", "null")
      .raw("finished_at", "null")
      .number("duration_ms", 0)
      .raw("scans", "[]")
      .raw("problems", "[]")
      .text("waiting", p_.discovery.is_blocked(row.id) ? "waiting for the run before it" : "waiting for workers")
      .take();
}

Result<JsonText> Api::runs(ApiRequest& request, Effects&) {
  const auto limit = request.number("limit", 50, 1, 1000);
  RunId before(request.text("cursor"));
  if (request.fault()) return *request.fault();
  ItemList items(request.room());
  std::size_t taken = 0;
  for (bool more = true; more && taken < limit;) {
    const auto rows = must(p_.store.runs(before, std::min(limit - taken, kRowsAtOnce)));
    for (const auto& row : rows) {
      auto object = run_object(row);
      if (object.size() > request.room()) object = part_of_report(object, 0, request.room());
      if (!items.has_room(object)) return items.take(before.value);
      items.add(object);
      before = row.id;
      ++taken;
    }
    more = rows.size() == kRowsAtOnce;
  }
  return items.take(taken == limit ? before.value : "");
}

Result<JsonText> Api::run(ApiRequest& request, Effects&) {
  const auto id = request.required_text("run");
  const auto cursor = request.text("cursor");
  if (request.fault()) return *request.fault();
  std::size_t from = 0;
  if (!cursor.empty() && !parse_cursor(cursor, from)) return not_a_cursor();
  const auto row = must(p_.store.run(RunId(id)));
  if (!row) return unknown("no run " + id + ": `muster runs` lists them");
  auto object = run_object(*row);
  return object.size() > request.room() ? part_of_report(object, from, request.room()) : object;
}

Result<JsonText> Api::events(ApiRequest& request, Effects&) {
  const auto since = request.text("since");
  const auto cursor = request.text("cursor");
  const auto limit = request.number("limit", 500, 1, 10'000);
  if (request.fault()) return *request.fault();
  const auto& from = cursor.empty() ? since : cursor;
  std::uint64_t after = 0;
  const auto [end, problem] = std::from_chars(from.data(), from.data() + from.size(), after);
  if (!from.empty() && (problem != std::errc() || end != from.data() + from.size())) {
    const auto time = parse_rfc3339(from);
    if (!time)
      return Error{Errc::kInvalidRequest, "since is a sequence or an RFC 3339 time, not '" + from + "'", {}, 0};
    after = must(p_.store.sequence_at(*time));
  }
  ItemList items(request.room());
  std::size_t taken = 0;
  for (bool more = true; more && taken < limit;) {
    const auto events = must(p_.store.events(after, std::min(limit - taken, kRowsAtOnce)));
    for (const auto& event : events) {
      std::string item;
      append_cloud_event(item, event, p_.store.fleet(), p_.subjects.prefix());
      if (!items.has_room(item)) return items.take(std::to_string(after));
      items.add(item);
      after = event.sequence;
      ++taken;
    }
    more = events.size() == kRowsAtOnce;
  }
  return items.take(taken == limit ? std::to_string(after) : "");
}

}  // namespace muster
