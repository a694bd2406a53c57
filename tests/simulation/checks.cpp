// What must hold of a fleet: at every step, and when it has come to rest.

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "coordinator/must.h"
#include "schema/codec.h"
#include "simulation/fleet.h"

namespace muster::sim {
namespace {

constexpr std::size_t kMaxEventBytes = 64 * 1024;
constexpr Millis kTold{5000};             // of events: a stream for them is looked for first, again if nothing is heard
constexpr std::size_t kAllRuns = 10'000;  // more than a simulation has

}  // namespace

void Fleet::watch(const Outgoing& message) {
  if (fault_) return;
  if (message.subject.find(".ack.") != std::string::npos) {
    if (store_->uncommitted() > 0) fault_ = "a result is acknowledged before it is durable";
    const auto ack = decode<ResultAck>(message.data);
    const auto made = ack ? made_.find(ack->token) : made_.end();
    if (made != made_.end() && ack->verdict != Verdict::kLater) told_[made->second] = last_ended_run();
  }
  if (message.subject.starts_with(user_->inbox())) {
    const auto answer = Json::parse(message.data, nullptr, false);
    const bool promise = answer.contains("command") && answer["command"].is_string();
    // Of what was promised before it may be told while the turn has written something else.
    const bool first = promise && answered_.insert(answer["command"]).second;
    if (first && store_->uncommitted() > 0) fault_ = "a promise is given before it is durable";
  }
  if (message.subject.starts_with("sim.job.") || message.subject.ends_with(".job")) {
    const auto job = decode<Job>(message.data);
    if (job && !is_within_rate(job->target.id)) fault_ = "a target is called more often than it may be";
    if (job && is_mutation(job->operation)) {
      if (store_->uncommitted() > 0) fault_ = "a change is asked for before that is durable";
      auto& tokens = asked_for_[job->id];
      std::ranges::copy_if(tokens, std::inserter(superseded_, superseded_.end()),
                           [&](const Token& token) { return token != job->token && gone_.contains(token); });
      tokens.insert(job->token);
    }
  }
  if (message.subject.starts_with("sim.eventlog.") && store_->uncommitted() > 0) {
    fault_ = "an event is kept before it is durable";
  }
  if (!message.subject.ends_with(".control")) return;
  const auto control = decode<Control>(message.data);
  const auto* go = control ? std::get_if<Go>(&control->action) : nullptr;
  if (go == nullptr) return;
  // What is said again, for a heartbeat, may have its result in the inbox already: its worker has been told before.
  if (!gone_.emplace(go->job.token, clock_.now()).second) return;
  for (const auto& token : asked_for_[go->job.job]) {
    if (token != go->job.token) superseded_.insert(token);
  }
  const auto row = must(store_->operation_of(go->job.job));
  if (!row) fault_ = "`go` is said to a job that no step waits for";
  if (row && row->state != "running") fault_ = "`go` is said to a job whose step has ended";
}

/// Whether one more call of a target is within what the fleet may ask of it.
bool Fleet::is_within_rate(const TargetId& target) {
  const auto rate = config_.limits.requests_per_second;
  if (rate <= 0) return true;
  const auto most = std::max(1.0, rate);
  auto& [left, since] = budgets_.try_emplace(target, most, clock_.now()).first->second;
  const std::chrono::duration<double> passed = clock_.now() - since;
  left = std::min(most, left + rate * passed.count()) - 1;
  since = clock_.now();
  return left > -0.001;
}

void Fleet::hear(const Outgoing& message) {
  const bool whole = message.reply.find(".ack.") != std::string::npos;
  const bool tells = message.subject.starts_with("sim.reply.") || message.subject.starts_with("sim.result.");
  if (!whole && !tells) return;
  auto reply = decode<JobReply>(message.data);
  if (const auto* part = reply ? std::get_if<Part>(&reply->body) : nullptr) {
    auto& parts = heard_parts_[reply->token];
    parts.resize(part->count);
    parts.at(part->index) = part->data;
    if (whole) reply = decode<JobReply>(fmt::format("{}", fmt::join(heard_parts_.extract(reply->token).mapped(), "")));
  }
  if (!whole) return;
  const auto* result = reply ? std::get_if<JobResult>(&reply->body) : nullptr;
  const auto* done = result != nullptr ? std::get_if<MutationResult>(result) : nullptr;
  if (done == nullptr || done->status != MutationStatus::kSuccess || done->properties.empty()) return;
  made_[reply->token] = done->native_id;
}

/// Events go out when they are durable, as they are stored, and one after the other; where they were before, and it
/// was not noted, they go out again: those, to a stream, that it does not have.
void Fleet::follow(const Outgoing& message, std::string_view from) {
  if (fault_) return;
  if (from == "coordinator" && store_->uncommitted() > 0) fault_ = "an event is told before it is durable";
  if (message.data.size() > kMaxEventBytes) fault_ = fmt::format("{} bytes of events in one", message.data.size());
  auto events = Json::parse(message.data);
  if (!events.is_array()) events = Json::array({std::move(events)});
  const bool streams = from == "stream";
  for (const auto& event : events) {
    const auto sequence = std::stoull(event.at("sequence").get<std::string>());
    const auto before = sequence - 1;
    const bool again = before < followed_ && (before == must(store_->published()) || (streams && before == streamed_));
    if (sequence != followed_ + 1 && !again) {
      fault_ = fmt::format("event {} is told after {}", sequence, followed_);
    }
    followed_ = sequence;
    if (streams) streamed_ = sequence;
    const auto stored = must(store_->events(sequence - 1, 1));
    const auto& said = event.at("type").get_ref<const std::string&>();
    if (stored.empty() || stored.front().sequence != sequence || "muster." + stored.front().what != said ||
        Json::parse(stored.front().data) != event.at("data") || !message.subject.ends_with("." + stored.front().what)) {
      fault_ = "an event is told that is not as it is stored: " + event.dump();
    }
  }
}

RunId Fleet::last_ended_run() {
  for (const auto& run : must(store_->runs({}, kAllRuns))) {
    if (run.finished_at) return run.id;
  }
  return {};
}

/// What a result told as there is known, whether a command waited for that result or not; unless a look for it says
/// that it has not seen everything.
Fleet::Fault Fleet::check_told() {
  const auto runs = must(store_->runs({}, kAllRuns));
  if (runs.front().state != "complete") return std::nullopt;
  const auto is_not_all = [&](const RunRow& run, const std::string& type) {
    const auto report = Json::parse(run.report);
    bool looked_at = faults_.narrowings == 0;
    bool all = true;
    for (const auto& scan : report.value("scans", Json::array())) {
      if (scan.at("target") != "cloud" || scan.at("type") != type) continue;
      looked_at = true;
      all = all && scan.at("complete").get<bool>();
    }
    return !looked_at || !all;
  };
  const auto looked_in_vain = [&](const RunId& since, const std::string& type) {
    const auto end = std::ranges::find(runs, since, &RunRow::id);
    return std::any_of(runs.begin(), end, [&](const RunRow& run) { return is_not_all(run, type); });
  };
  for (const auto& [type, things] : objects_.types()) {
    for (const auto& [id, object] : things) {
      const auto told = told_.find(id);
      if (told == told_.end() || objects_.was_revived(id) || must(store_->one("cloud", type, id))) continue;
      if (!looked_in_vain(told->second, type)) return "told as made and not known: " + id;
    }
  }
  return std::nullopt;
}

Fleet::Fault Fleet::check_inventory() {
  for (const auto& target : config_.targets) {
    if (auto fault = check_inventory(target.name)) return target.name + ": " + *fault;
  }
  return std::nullopt;
}

Fleet::Fault Fleet::check_inventory(const std::string& target) {
  struct Row {
    std::string properties, parent, resource;
  };
  std::map<std::string, std::map<std::string, Row>> rows;
  Fault fault;
  ResourceQuery query;
  query.target = target;
  query.limit = 1'000'000;
  must(store_->query(query, [&](const ResourceView& row) {
    const std::string type(row.type), id(row.native_id);
    if (row.managed && target != "cloud") fault = "managed through a target that nobody has named: " + id;
    if (row.managed && row.state == ResourceState::kMissing) return true;  // it is told as gone
    if (!rows[type]
             .emplace(id, Row{std::string(row.properties), std::string(row.parent_native_id), row.id.value})
             .second)
      fault = "doubled: " + type + " " + id;
    if (!cloud_.ever(type, id) && !objects_.ever(type, id)) fault = "invented: " + type + " " + id;
    if (row.state != ResourceState::kPresent) fault = "stale after a complete run: " + type + " " + id;
    return true;
  }));
  if (fault) return fault;
  const auto compare = [&](const std::string& type, const std::string& id, const std::string& truth) -> Fault {
    const auto row = rows[type].find(id);
    if (row == rows[type].end()) return "lost: " + type + " " + id;
    if (row->second.properties != truth) {
      return "wrong: " + type + " " + id + " is " + truth + ", the inventory has " + row->second.properties;
    }
    rows[type].erase(row);
    return std::nullopt;
  };
  for (const auto& [type, things] : cloud_.types()) {
    for (const auto& [id, thing] : things) {
      const auto kept = cloud_.kept(type, thing);
      const auto row = rows[type].find(id);
      if (kept == Cloud::Kept::kNo || (kept == Cloud::Kept::kUnknown && row == rows[type].end())) continue;
      if (row != rows[type].end()) {
        const auto& [properties, parent, resource] = row->second;
        if (kept == Cloud::Kept::kYes && parent != thing.parent) {
          return "misplaced: " + type + " " + id + " is in '" + thing.parent + "', not in '" + parent + "'";
        }
        auto& whose = identities_.emplace(resource, thing.name).first->second;
        if (std::exchange(whose, thing.name) != thing.name) ++renewals_[resource];
        resources_[target + "/" + thing.name] = resource;
      }
      if (auto wrong = compare(type, id, Cloud::properties(type, thing).dump())) return wrong;
    }
  }
  for (const auto& [type, things] : objects_.types()) {
    for (const auto& [id, object] : things) {
      const auto row = rows[type].find(id);
      if (row != rows[type].end() && row->second.parent != object.parent) {
        return "misplaced: " + id + " is in '" + object.parent + "', not in '" + row->second.parent + "'";
      }
      if (auto wrong = compare(type, id, object.properties.dump())) return wrong;
    }
  }
  for (const auto& [type, left] : rows) {
    if (!left.empty()) return "still there: " + type + " " + left.begin()->first;
  }
  return std::nullopt;
}

Fleet::Fault Fleet::check_renaming() {
  const auto before = resources_;
  if (faults_.renames > 0) cloud_.rename(5);
  if (faults_.swaps > 0) cloud_.swap(1);  // of more, one may wait to be listed in another that waits for it
  const auto error_rate = std::exchange(weather_.error_rate, 0);  // what cannot be listed may be what was renamed
  if (auto fault = look()) return fault;
  weather_.error_rate = error_rate;
  for (const auto& [type, things] : cloud_.types()) {
    for (const auto& [id, thing] : things) {
      for (const auto& target : config_.targets) {
        const auto was = before.find(target.name + "/" + thing.name);
        if (cloud_.kept(type, thing) != Cloud::Kept::kYes || was == before.end()) continue;
        if (resources_[was->first] != was->second) return "renamed and taken for another: " + type + " " + id;
      }
    }
  }
  return std::nullopt;
}

/// What a run told when it ended is the sum of what its report says of its scans.
Fleet::Fault Fleet::check_totals(const Json& told) {
  const auto row = must(store_->run(RunId(told.at("run").get<std::string>())));
  if (!row || !told.contains("scans")) return std::nullopt;
  const auto scans = Json::parse(row->report).at("scans");
  for (const char* count :
       {"listed", "read", "filtered", "new", "changed", "renamed", "unchanged", "missing", "errors"}) {
    std::uint64_t sum = 0;
    for (const auto& scan : scans) sum += scan.value(count, std::uint64_t{0});
    if (told.at(count) != sum) return fmt::format("{} {} are told of {}", told.at(count).dump(), count, row->report);
  }
  return std::nullopt;
}

Fleet::Fault Fleet::check_events() {
  std::uint64_t last = 0;
  using Which = std::tuple<std::string, std::string, std::string>;  // target, type, native id
  const auto which_of = [](const Json& data) {
    return Which{data.at("target"), data.at("type"), data.at("native_id")};
  };
  std::map<Which, std::size_t> vanished, begun, late;  // how often
  std::string gone;
  std::set<std::string> there;              // resource ids
  std::map<std::string, std::size_t> left;  // how often, by resource id
  std::map<std::string, std::string> told;
  std::map<std::string, std::string> hashes;  // of what they told last, by resource id
  for (;;) {
    const auto events = must(store_->events(last, 1000));
    if (events.empty()) break;
    for (const auto& event : events) {
      if (event.sequence != last + 1) return fmt::format("event {} follows {}", event.sequence, last);
      last = event.sequence;
      if (event.what == "run.finished") {
        if (auto wrong = check_totals(Json::parse(event.data))) return wrong;
      }
      auto& before = told[event.subject];
      if (event.what.starts_with("resource.")) {
        const auto data = Json::parse(event.data);
        if (data.contains("hash")) hashes_told_[event.subject].insert(hashes[event.subject] = data["hash"]);
      }
      const bool missing = before.ends_with("resource.vanished");  // what is managed stays in the list until then
      if (event.what == "resource.discovered" || event.what == "resource.created") {
        const bool news = there.insert(event.subject).second;
        if (event.what == "resource.discovered" && !news) {
          return "discovered twice, after" + before + ": " + event.data;
        }
        const auto which = which_of(Json::parse(event.data));
        if (news) ++begun[which];
        if (event.what == "resource.created" && missing) ++late[which];
      }
      if (event.what == "resource.vanished" || (event.what == "resource.deleted" && !missing)) {
        const auto data = Json::parse(event.data);
        ++vanished[which_of(data)];
        gone += " " + data.value("native_id", "") + "(" + data.value("reason", "") + before + ")";
        if (there.erase(event.subject) == 0) return event.what + " after" + before + ": " + event.data;
      }
      if (event.what == "resource.filtered" && there.erase(event.subject) == 0) {
        return event.what + " after" + before + ": " + event.data;
      }
      if (event.what == "resource.vanished" || event.what == "resource.filtered") ++left[event.subject];
      before += " " + event.what;
    }
  }
  for (const auto& [which, times] : vanished) {
    const auto& [target, type, id] = which;
    const auto removals = cloud_.removals(type, id) + objects_.removals(type, id);
    // The word of a worker that it has made something may come after the thing was seen, and seen to be gone.
    const auto again = begun[which] - std::min(begun[which], objects_.creations(type, id));
    if (times > removals + std::min(late[which], again)) {
      return fmt::format("{} {} of {} vanished {} times and was removed {} times; gone:{}", type, id, target, times,
                         removals, gone);
    }
  }
  for (const auto& [resource, times] : renewals_) {
    if (left[resource] < times) return "another took its place, and nobody was told: " + resource + told[resource];
  }
  Fault fault;
  std::size_t things = 0;
  ResourceQuery query;
  query.state = ResourceState::kPresent;
  query.limit = 1'000'000;
  must(store_->query(query, [&](const ResourceView& row) {
    ++things;
    if (hashes[row.id.value] == hex(hash128(row.properties))) return true;
    fault = fmt::format("{} is another than events have told:{}", row.native_id, told[row.id.value]);
    return false;
  }));
  if (!fault && there.size() != things) {
    return fmt::format("events speak of {} resources, there are {}; gone:{}", there.size(), things, gone);
  }
  return fault;
}

/// All that has happened was told.
Fleet::Fault Fleet::check_followed() {
  const auto told = [&] { return followed_ == must(store_->last_sequence()); };
  if (!pass(told, kTold, {})) return std::nullopt;
  return fmt::format("{} events have happened, and {} were told", must(store_->last_sequence()), followed_);
}

/// Every version of a resource is known, with what led to it.
Fleet::Fault Fleet::check_history() {
  struct Row {
    RowId row;
    std::uint64_t version;
    std::string resource;
  };
  Fault fault;
  std::vector<Row> rows;
  ResourceQuery query;
  query.limit = 1'000'000;
  must(store_->query(query, [&](const ResourceView& row) {
    rows.push_back({row.row, row.version, row.id.value});
    return true;
  }));
  for (const auto& [row, version, resource] : rows) {
    const auto history = must(store_->history(row));
    for (std::size_t i = 0; i < history.size(); ++i) {
      const auto& entry = history[i];
      if (entry.version != i + 1) return fmt::format("version {} is where {} was to be", entry.version, i + 1);
      if (faults_.clock_jumps > 0) continue;  // times say nothing of what came first
      const auto then = must(store_->properties_at(row, entry.at));
      if (!then || !hashes_told_[resource].contains(hex(hash128(*then)))) {
        return fmt::format("version {} of {} was {}, and nobody was told", i + 1, resource, then.value_or("nothing"));
      }
    }
    if (history.size() != version) return fmt::format("{} versions are known of {}", history.size(), version);
  }
  query.managed = true;
  for (const auto state : {ResourceState::kVanished, ResourceState::kFiltered}) {
    query.state = state;
    must(store_->query(query, [&](const ResourceView& row) {
      fault = "managed, and not in the list: " + std::string(row.native_id) + ":";
      for (const auto& entry : must(store_->history(row.row))) *fault += " " + entry.cause;
      return true;
    }));
  }
  return fault;
}

/// A run that says that it is complete has no errors, nor have its scans.
Fleet::Fault Fleet::check_runs() {
  for (const auto& row : must(store_->runs({}, 1000))) {
    const auto report = Json::parse(row.report);
    bool complete = true;
    for (const auto& scan : report.at("scans")) {
      complete = complete && scan.at("complete").get<bool>();
      if (scan.at("complete").get<bool>() && scan.at("errors") != 0)
        return "complete in spite of errors: " + row.report;
    }
    if ((row.state == "complete") != (complete && report.at("problems").empty())) return "it is not so: " + row.report;
  }
  return std::nullopt;
}

}  // namespace muster::sim
