// What must hold of commands: what they report, what they have made and left, and what is as declared.

#include <algorithm>

#include <fmt/format.h>

#include "coordinator/claim.h"
#include "coordinator/command_plan.h"
#include "coordinator/must.h"
#include "simulation/fleet.h"
#include "simulation/liar.h"

namespace muster::sim {
namespace {

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

/// A change is made now.
Fleet::Fault Fleet::check_change(const std::string& key, const Host& host) {
  const auto gone = gone_.find(host.token);
  if (gone == gone_.end()) return "a change is made without `go`: " + key;
  if (host.clock->now() > gone->second + kChangeLease) return "a change is made when its lease has long ended: " + key;
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

/// A thing goes with what it lies in.
Fleet::Fault Fleet::check_taken_along(const std::string& key, const std::string& type, const std::string& id) {
  auto row = must(store_->one("cloud", type, id));
  if (!row) row = must(store_->one(std::string("cloud") + kOtherName, type, id));
  if (!row || !row->managed || row->state == ResourceState::kMissing) return std::nullopt;
  const auto place = parsed(key);
  const auto plan = place ? CommandPlan::parse(must(store_->plan_of(place->command))) : Result<CommandPlan>(Error{});
  if (!plan) return "something is deleted, and no plan says so: " + key;
  const auto& step = plan->steps.at(place->step);
  for (const auto& other : plan->steps) {
    if (other.row != row->row) continue;
    if (other.action == StepAction::kDelete || other.action == StepAction::kReplace) return std::nullopt;
    return fmt::format("{} goes with {}, and is planned as {}", id, step.name, step_action_name(other.action));
  }
  return fmt::format("{} goes with {}, of which the plan says nothing", id, step.name);
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
    const auto plan = CommandPlan::parse(must(store_->plan_of(row.id)));
    if (!plan) continue;
    for (const auto& each : must(store_->operations(row.id))) {
      const auto& step = plan->steps.at(each.step);
      if (step.action != StepAction::kCreate || each.state != "done") continue;
      auto& last = remade[{step.type, each.native_id}];
      last = std::max(last, row.id.value);
    }
  }
  for (const auto& row : must(store_->commands({}, 1000))) {
    const auto plan = CommandPlan::parse(must(store_->plan_of(row.id)));
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
        if (thing == things.end() || objects_.was_revived(step.native_id)) continue;
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
          if (objects_.was_revived(other.native_id)) continue;              // it may have gone first
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
    const auto plan = CommandPlan::parse(must(store_->plan_of(row.id)));
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
  const auto let_go = forgotten();
  std::map<std::string, std::string> living;  // name: id
  for (const auto& [type, things] : objects_.types()) {
    for (const auto& [id, object] : things) {
      if (objects_.was_revived(id) || let_go.contains(id)) continue;  // it may be nobody's
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

void Fleet::each_event(const std::function<void(const EventRow&)>& use) {
  std::uint64_t last = 0;
  for (;;) {
    const auto events = must(store_->events(last, 1000));
    if (events.empty()) return;
    last = events.back().sequence;
    std::ranges::for_each(events, use);
  }
}

/// Native ids of what a stack has let go of.
std::set<std::string> Fleet::forgotten() {
  std::set<std::string> ids;
  each_event([&](const EventRow& event) {
    if (event.what == "resource.forgotten") ids.insert(Json::parse(event.data)["native_id"]);
  });
  return ids;
}

/// Ids of the resources that a run has told as drifted, and native ids of those that a step has found not as declared
/// after it was done: what it ends with says so.
std::set<std::string> Fleet::drift_told() {
  std::set<std::string> told;
  each_event([&](const EventRow& event) {
    if (event.what == "resource.drifted") told.insert(event.subject);
  });
  for (const auto& row : must(store_->commands({}, 1000))) {
    for (const auto& each : must(store_->operations(row.id))) {
      if (each.code == "NOT_STABILIZED") told.insert(each.native_id);
    }
  }
  return told;
}

/// What is not as declared is marked as drifted, and nothing else: as far as that does not depend on other resources.
/// Whoever listens has been told of it.
Fleet::Fault Fleet::check_marks() {
  Fault fault;
  const auto told = drift_told();
  std::vector<RowId> marked;
  for (const auto& [stack, count] : must(store_->stacks())) {
    must(store_->of_stack(stack, {}, [&](const ManagedView& row) {
      const auto declared = Json::parse(row.declared);
      const auto there = Json::parse(row.properties);
      if (row.name.ends_with(kReplaced)) return;
      if (row.drifted && !told.contains(std::string(row.native_id))) marked.push_back(row.row);
      if (row.state != ResourceState::kPresent) return;
      const auto holes = declared.value("holes", Json::array());
      const bool refers = std::ranges::any_of(holes, [](const Json& hole) { return hole["pointer"] != "/note"; });
      if (refers || declared.value("on_drift", "") == "observe") return;
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
  for (const auto row : marked) {
    const auto resource = must(store_->one(row)).value();
    if (fault || told.contains(resource.id.value)) continue;
    fault = fmt::format("{} is marked as drifted, and nobody was told", resource.native_id);
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
      if (property == "note" || value.is_null()) continue;
      if (thing->second.properties.value(property, Json()) != value) {
        return id + " is declared as " + resource.dump() + " and is " + thing->second.properties.dump();
      }
    }
    // A liar may not have passed it on; and what somebody brings back while it is asked for looks as if that was heard.
    const bool is_ours = faults_.liars == 0 && !objects_.was_revived(id);
    if (const auto note = note_in(resource); is_ours && !note.is_null() && note != thing->second.note) {
      return id + " has the note " + thing->second.note + " of " + resource.dump();
    }
  }
  for (const auto& resource : request["stacks"][0]["resources"]) {
    for (const auto& hole : resource.value("holes", Json::array())) {
      const auto& part = hole["parts"][0];  // the only one: it is all of the property
      if (!part.contains("resource")) continue;
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
    const bool astray = objects_.was_revived(there.at(name)->properties["id"]);  // with what it lay in, now nobody's
    if (there.at(name)->parent != id && !astray) {
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

/// Where all has been made anew, no key is kept of a create whose outcome was not known: not where things are now.
Fleet::Fault Fleet::check_settled(const Json& request) {
  const auto& stack = request["stacks"][0];
  std::map<std::string, std::string> places;  // by name: native id of what it lies in
  must(store_->of_stack(stack["stack"].get_ref<const std::string&>(), {}, [&](const ManagedView& row) {
    places[std::string(row.name)] = objects_.types().at(std::string(row.type)).at(std::string(row.native_id)).parent;
  }));
  for (const auto& resource : stack["resources"]) {
    const auto place = Json{stack["stack"], resource["name"], resource["target"], resource["type"]}.dump();
    const auto kept = must(store_->unsettled(place));
    for (const auto& each : kept.empty() ? Json::array() : Json::parse(kept)["keys"]) {
      if (each.at(1) == places.at(resource["name"])) return "made, and its key is kept: " + place + " " + kept;
    }
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
