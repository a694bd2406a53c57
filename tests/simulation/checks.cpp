// What must hold of a fleet: at every step, and when it has come to rest.

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "coordinator/claim.h"
#include "coordinator/command_plan.h"
#include "coordinator/must.h"
#include "schema/codec.h"
#include "simulation/fleet.h"
#include "simulation/liar.h"

namespace muster::sim {
namespace {

constexpr std::size_t kMaxEventBytes = 64 * 1024;
constexpr Millis kTold{5000};  // of events: a stream for them is looked for first, again if nothing is heard

/// `<command>-<step>-<epoch>`
struct Key {
  CommandId command;
  std::size_t step = 0;
};

std::optional<Key> parsed(const std::string& key) {
  const auto first = key.find('-');
  const auto second = key.find('-', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  return Key{CommandId(key.substr(0, first)), std::stoul(key.substr(first + 1, second - first - 1))};
}

std::optional<OperationRow> operation(Store& store, const Key& key) {
  for (auto& row : must(store.operations(key.command))) {
    if (row.step == key.step) return std::move(row);
  }
  return std::nullopt;
}

bool says(const OperationRow& row, std::string_view text) {
  return row.message.find(text) != std::string::npos;
}

}  // namespace

void Fleet::watch(const Outgoing& message) {
  if (fault_) return;
  if (message.subject.find(".ack.") != std::string::npos) {
    if (store_->uncommitted() > 0) fault_ = "a result is acknowledged before it is durable";
    const auto ack = decode<ResultAck>(message.data);
    const auto made = ack ? made_.find(ack->token) : made_.end();
    if (made != made_.end() && ack->verdict != Verdict::kLater) told_.insert(made->second);
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
    if (job && is_mutation(job->operation)) {
      if (store_->uncommitted() > 0) fault_ = "a change is asked for before that is durable";
      auto& token = asked_for_[job->id];
      if (!token.empty() && token != job->token) superseded_.insert(token);
      token = job->token;
    }
  }
  if (!message.subject.ends_with(".control")) return;
  const auto control = decode<Control>(message.data);
  const auto* go = control ? std::get_if<Go>(&control->action) : nullptr;
  if (go == nullptr) return;
  // What is said again, for a heartbeat, may have its result in the inbox already: its worker has been told before.
  if (!gone_.emplace(go->job.token, clock_.now()).second) return;
  const auto row = must(store_->operation_of(go->job.job));
  if (!row) fault_ = "`go` is said to a job that no step waits for";
  // A reply that was read a moment later may have ended the step: then its worker has given up, too.
  if (row && row->state != "running") needless_.insert(go->job.token);
}

void Fleet::hear(const Outgoing& message) {
  if (message.reply.find(".ack.") == std::string::npos) return;
  const auto reply = decode<JobReply>(message.data);
  const auto* result = reply ? std::get_if<JobResult>(&reply->body) : nullptr;
  const auto* done = result != nullptr ? std::get_if<MutationResult>(result) : nullptr;
  if (done == nullptr || done->status != MutationStatus::kSuccess || done->properties.empty()) return;
  made_[reply->token] = done->native_id;
}

/// Events go out when they are durable, as they are stored, and one after the other; where they were before, and it
/// was not noted, they go out again.
void Fleet::follow(const Outgoing& message) {
  if (fault_) return;
  if (store_->uncommitted() > 0) fault_ = "an event is told before it is durable";
  if (message.data.size() > kMaxEventBytes) fault_ = fmt::format("{} bytes of events in one", message.data.size());
  auto events = Json::parse(message.data);
  if (!events.is_array()) events = Json::array({std::move(events)});
  // What goes out while nobody hears it is not said again: without a stream it can be read in the store.
  const auto connections = connections_of_coordinator();
  const bool apart = std::exchange(connections_, connections) != connections;
  for (const auto& event : events) {
    const auto sequence = std::stoull(event.at("sequence").get<std::string>());
    const bool again = sequence <= followed_ && sequence == must(store_->published()) + 1;
    if (sequence != followed_ + 1 && !again && !(apart && sequence > followed_)) {
      fault_ = fmt::format("event {} is told after {}", sequence, followed_);
    }
    followed_ = sequence;
    const auto stored = must(store_->events(sequence - 1, 1));
    const auto& said = event.at("type").get_ref<const std::string&>();
    if (stored.empty() || stored.front().sequence != sequence || "muster." + stored.front().what != said ||
        Json::parse(stored.front().data) != event.at("data") || !message.subject.ends_with("." + stored.front().what)) {
      fault_ = "an event is told that is not as it is stored: " + event.dump();
    }
  }
}

/// A change is made now.
Fleet::Fault Fleet::check_change(const std::string& key, const Host& host) {
  const auto gone = gone_.find(host.token);
  if (gone == gone_.end()) return "a change is made without `go`: " + key;
  if (host.clock->now() > gone->second + kChangeLease) return "a change is made when its lease has long ended: " + key;
  if (needless_.contains(host.token)) return "a change is made that no step waits for: " + key;
  if (superseded_.contains(host.token)) return "a change is made by an attempt that was given up: " + key;
  if (!acted_.insert(host.token).second) return "one attempt makes a change twice: " + key;
  if (!host.disk->files.contains(host.token)) return "a change is made whose result cannot be kept: " + key;
  const auto place = parsed(key);
  if (!place || !operation(*store_, *place)) return "a change is made that is written nowhere: " + key;
  for (const auto& [stack, count] : must(store_->stacks())) {
    must(store_->of_stack(stack, {}, [&](const ManagedView& row) {
      if (row.drifted) drifted_at_[key].insert(std::string(row.native_id));
    }));
  }
  return std::nullopt;
}

/// A child goes with the object that it lies in.
Fleet::Fault Fleet::check_taken_along(const std::string& key, const std::string& child) {
  auto row = must(store_->one("cloud", "SIM::Child", child));
  if (!row) row = must(store_->one(std::string("cloud") + kOtherName, "SIM::Child", child));
  if (!row || !row->managed || row->state == ResourceState::kMissing) return std::nullopt;
  const auto place = parsed(key);
  const auto command = place ? must(store_->command(place->command)) : std::nullopt;
  const auto plan = command ? CommandPlan::parse(command->plan) : Result<CommandPlan>(Error{});
  if (!plan) return "something is deleted, and no plan says so: " + key;
  const auto& step = plan->steps.at(place->step);
  for (const auto& other : plan->steps) {
    if (other.row != row->row) continue;
    if (other.action == StepAction::kDelete || other.action == StepAction::kReplace) return std::nullopt;
    return fmt::format("{} goes with {}, and is planned as {}", child, step.name, step_action_name(other.action));
  }
  return fmt::format("{} goes with {}, of which the plan says nothing", child, step.name);
}

/// What a result told as there is known, whether a command waited for that result or not; unless the look for it says
/// that it has not seen everything.
Fleet::Fault Fleet::check_told() {
  if (must(store_->runs({}, 1)).front().state != "complete") return std::nullopt;
  for (const auto& [type, things] : objects_.types()) {
    for (const auto& [id, object] : things) {
      if (told_.contains(id) && !must(store_->one("cloud", type, id))) return "told as made and not known: " + id;
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
  cloud_.rename(5);
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

/// What each command says that it has done is so, and what it says that it has not done is not.
Fleet::Fault Fleet::check_reports() {
  std::map<std::pair<std::string, std::size_t>, std::vector<const Objects::Entry*>> made;
  for (const auto& entry : objects_.books()) {
    const auto key = parsed(entry.key);
    made[{key->command.value, key->step}].push_back(&entry);
  }
  for (const auto& id : promised_) {
    if (!must(store_->command(CommandId(id)))) return "a command was promised, and is not there: " + id;
  }
  std::map<std::pair<std::string, std::string>, std::string> remade;  // the last command that made it, by type and id
  for (const auto& row : must(store_->commands({}, 1000))) {
    const auto plan = CommandPlan::parse(must(store_->command(row.id))->plan);
    if (!plan) continue;
    for (const auto& each : must(store_->operations(row.id))) {
      const auto& step = plan->steps.at(each.step);
      if (step.action != StepAction::kCreate || each.state != "done") continue;
      auto& last = remade[{step.type, each.native_id}];
      last = std::max(last, row.id.value);
    }
  }
  for (const auto& row : must(store_->commands({}, 1000))) {
    const auto plan = CommandPlan::parse(must(store_->command(row.id))->plan);
    if (!plan) return "the plan of a command cannot be read: " + row.id.value;
    const auto operations = must(store_->operations(row.id));
    const bool others_failed = std::ranges::any_of(operations, [&](const auto& each) {
      return each.state != "done" && plan->steps.at(each.step).action != StepAction::kDelete;
    });
    std::size_t failed = 0;
    for (const auto& each : operations) {
      const auto& step = plan->steps.at(each.step);
      const auto said = fmt::format("{} {} of {} is reported as {} {} {}", step_action_name(step.action), step.name,
                                    row.id.value, each.state, each.code, each.message);
      const auto& entries = made[{row.id.value, each.step}];
      if (each.state == "running" || each.state == "pending") return said + ", and the command has ended";
      if (says(each, kForged)) return said + ", and is believed";
      if (each.state != "done") {
        ++failed;
        const bool certain = (step.action == StepAction::kCreate || step.action == StepAction::kDelete) &&
                             !says(each, "not known") && !says(each, kLie) && each.code != "NOT_STABILIZED";
        const bool was_done = std::ranges::any_of(entries, [&](const auto* entry) {  // and is so still
          const auto& things = objects_.types().at(step.type);
          const auto thing = things.find(entry->id);
          return step.action == StepAction::kDelete || (thing != things.end() && thing->second.key == entry->key);
        });
        if (certain && was_done) {
          return said + ", and was done";
        }
        continue;
      }
      if (step.action == StepAction::kCreate || step.action == StepAction::kReplace) {
        if (!objects_.ever(step.type, each.native_id)) return said + ", and there never was " + each.native_id;
      }
      if (step.action == StepAction::kDelete) {
        const auto& things = objects_.types().at(step.type);
        const auto thing = things.find(step.native_id);
        if (thing == things.end()) continue;
        const auto maker = parsed(thing->second.key);
        // A later create may have gone on with the key of an earlier one that nobody knew the outcome of.
        const auto& last = std::max(maker->command.value, remade[{step.type, step.native_id}]);
        if (last <= row.id.value) return said + ", and is there";
      }
      if (step.action == StepAction::kDelete && !entries.empty() && others_failed) {
        return said + ", and not all else has succeeded";
      }
      // Who uses it goes first.
      for (const auto* entry : entries) {
        if (entry->act != Objects::Entry::Act::kDelete || step.action != StepAction::kDelete) continue;
        for (const auto& other : plan->steps) {
          if (drifted_at_[entry->key].contains(other.native_id)) continue;  // it refers to what it is not declared to
          if (other.action == StepAction::kDelete && std::ranges::count(entry->users, other.native_id) > 0) {
            std::string order;
            for (const auto& one : plan->steps) {
              order +=
                  fmt::format(" {} {} after {};", step_action_name(one.action), one.name, fmt::join(one.after, ","));
            }
            return said + ", while it was used by " + other.name + ", which was to go first:" + order;
          }
        }
      }
    }
    if (row.state == "complete" && failed > 0) return "a command is complete, and a step of it is not: " + row.id.value;
  }
  return std::nullopt;
}

/// Nothing is there twice, and what belongs to nobody was told as failed.
Fleet::Fault Fleet::check_owners() {
  // The last command of which a step failed, by stack-name: what is there of it may belong to nobody when it was made
  // by then; and the last one of which a replacement failed, or a liar told something: then it may be there twice.
  std::map<std::string, std::string> failed, may_double;
  for (const auto& row : must(store_->commands({}, 1000))) {
    const auto plan = CommandPlan::parse(must(store_->command(row.id))->plan);
    for (const auto& each : must(store_->operations(row.id))) {
      const auto& step = plan->steps.at(each.step);
      const auto note = [&](std::map<std::string, std::string>& last) {
        auto& command = last[step.stack + "-" + step.name];
        command = std::max(command, row.id.value);
      };
      if (each.state != "done") note(failed);
      if ((each.state != "done" && step.action == StepAction::kReplace) || says(each, kLie)) note(may_double);
    }
  }
  std::map<std::string, std::string> living;  // name: id
  for (const auto& [type, things] : objects_.types()) {
    for (const auto& [id, object] : things) {
      const auto name = object.properties["name"].get<std::string>();
      const auto maker = parsed(object.key)->command.value;
      const auto [first, alone] = living.emplace(name, id);
      if (!alone) {
        const auto& twin = things.at(first->second);
        const auto older = std::min(maker, parsed(twin.key)->command.value);
        // What was asked for in another thing, and may be there, goes with that.
        const bool elsewhere = twin.parent != object.parent && failed[name] >= older;
        if (may_double[name] < older && !elsewhere) {
          return fmt::format("doubled: {}, made with {}, and {}, made with {}, are {}", first->second, twin.key, id,
                             object.key, name);
        }
      }
      const auto row = must(store_->one("cloud", type, id));
      if (!row) return "made and not known: " + id;
      if (row->managed) continue;
      if (failed[name] < maker) return "left behind: " + id + " is " + name + ", and nobody was told";
    }
  }
  return std::nullopt;
}

/// What is not as declared is marked as drifted, and nothing else: as far as that does not depend on other resources.
Fleet::Fault Fleet::check_marks() {
  Fault fault;
  for (const auto& [stack, count] : must(store_->stacks())) {
    must(store_->of_stack(stack, {}, [&](const ManagedView& row) {
      const auto declared = Json::parse(row.declared);
      const auto there = Json::parse(row.properties);
      if (row.state != ResourceState::kPresent || row.name.ends_with(kReplaced)) return;
      if (!declared.value("holes", Json::array()).empty() || declared.value("on_drift", "") == "observe") return;
      const auto wanted = declared.value("properties", Json::object());
      const bool same = std::ranges::all_of(wanted.items(), [&](const auto& property) {
        return property.value().is_null() || property.key() == "note" ||
               there.value(property.key(), Json()) == property.value();
      });
      if (row.drifted != same || fault) return;
      fault = fmt::format("{} is {}marked as drifted: {} of {}", row.native_id, same ? "" : "not ", row.properties,
                          row.declared);
    }));
  }
  return fault;
}

/// The cloud is as the request declares it, and there is nothing left to do.
Fleet::Fault Fleet::check_declared(const Json& request) {
  const auto& stack = request["stacks"][0]["stack"].get_ref<const std::string&>();
  std::map<std::string, std::pair<std::string, std::string>> owned;  // name: type and native id
  must(store_->of_stack(stack, {}, [&](const ManagedView& row) {
    owned[std::string(row.name)] = {std::string(row.type), std::string(row.native_id)};
  }));
  std::map<std::string, const Objects::Object*> there;  // by name
  std::map<std::string, std::string> inside;            // name by name
  for (const auto& resource : request["stacks"][0]["resources"]) {
    const auto& name = resource["name"].get_ref<const std::string&>();
    const auto own = owned.extract(name);
    if (own.empty()) return "declared and not managed: " + stack + "-" + name;
    const auto& [type, id] = own.mapped();
    const auto& things = objects_.types().at(type);
    const auto thing = things.find(id);
    if (thing == things.end()) return "declared and not there: " + stack + "-" + name + " is " + id;
    there[name] = &thing->second;
    if (resource.contains("parent")) inside[name] = resource["parent"];
    for (const auto& [property, value] : resource["properties"].items()) {
      const auto is = property == "note" ? Json(thing->second.note) : thing->second.properties.value(property, Json());
      if (property == "note" && faults_.liars > 0) continue;  // that it was sent is all that anybody can know
      if (property == "note" && is != value) return id + " has the note " + is.dump() + " of " + resource.dump();
      if (!value.is_null() && is != value) {
        return id + " is declared as " + resource.dump() + " and is " + thing->second.properties.dump();
      }
    }
  }
  for (const auto& resource : request["stacks"][0]["resources"]) {
    for (const auto& hole : resource.value("holes", Json::array())) {
      const auto& part = hole["parts"][0];  // the only one: it is all of the property
      const auto& user = there.at(resource["name"])->properties;
      const auto& used = there.at(part["resource"])->properties;
      const auto found = user.value(Json::json_pointer(hole["pointer"].get<std::string>()), Json());
      const auto& wanted = used[part["path"].get<std::string>()];
      if (found != wanted) {
        return fmt::format("{} refers to {} where {} is declared, of {}: {}", user.dump(), found.dump(), wanted.dump(),
                           part.dump(), resource.dump());
      }
    }
  }
  for (const auto& [name, place] : inside) {
    const auto id = there.at(place)->properties["id"].get<std::string>();
    if (there.at(name)->parent != id) {
      return name + " is declared in " + place + ", which is " + id + ", and is in " + there.at(name)->parent;
    }
  }
  if (!owned.empty()) return "managed and not declared: " + stack + "-" + owned.begin()->first;
  const auto number = ask("plan", request);
  if (auto fault = pass([&] { return answers_.contains(number); }, Millis(60'000), "the answer to a plan"))
    return fault;
  if (!answers_[number].value("nothing", false)) {
    std::string claims;
    must(store_->of_stack(stack, {}, [&](const ManagedView& row) { claims += "; " + std::string(row.declared); }));
    return "what has just been applied is planned again: " + answers_[number].dump() + " of " + request.dump() + claims;
  }
  return std::nullopt;
}

/// Where all has been made anew, no key is kept of a create whose outcome was not known.
Fleet::Fault Fleet::check_settled(const Json& request) {
  const auto& stack = request["stacks"][0];
  for (const auto& resource : stack["resources"]) {
    const auto place = Json{stack["stack"], resource["name"], resource["target"], resource["type"]}.dump();
    if (!must(store_->unsettled(place)).empty()) return "made, and its key is kept: " + place;
  }
  return std::nullopt;
}

Fleet::Fault Fleet::check_destroyed(const std::string& stack) {
  Fault fault;
  must(store_->of_stack(stack, {}, [&](const ManagedView& row) {
    fault = "destroyed and still managed: " + std::string(row.native_id);
  }));
  return fault;
}

}  // namespace muster::sim
