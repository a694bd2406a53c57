// The verbs of what users declare: drafts, plans, commands.

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "coordinator/api.h"
#include "coordinator/api_answers.h"
#include "coordinator/api_request.h"
#include "coordinator/must.h"
#include "coordinator/shown_patch.h"
#include "coordinator/suggestion.h"
#include "coordinator/target_forms.h"
#include "schema/subjects.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kChangesSaid = 10;    // of each command that a plan is told of
constexpr std::size_t kStepsAtOnce = 2000;  // of a command
constexpr std::size_t kNotesSaid = 1000;    // of a plan, of each kind

Error invalid(std::string message) {
  return {Errc::kInvalidRequest, std::move(message), {}, 0};
}

Result<ApplyMode> mode_named(const std::string& name) {
  if (name.empty() || name == "reconcile") return ApplyMode::kReconcile;
  if (name == "patch") return ApplyMode::kPatch;
  if (name == "destroy") return ApplyMode::kDestroy;
  return invalid("mode must be reconcile, patch or destroy, not '" + name + "'");
}

Result<std::size_t> cursor_of(ApiRequest& request) {
  const auto text = request.text("cursor");
  std::size_t at = 0;
  if (text.empty() || parse_cursor(text, at)) return at;
  return not_a_cursor();
}

Json time_of(const std::optional<WallTime>& at) {
  return at ? Json(rfc3339(*at)) : Json();
}

/// What may be declared of an object: all that is not the system's own.
Json writable(const PropertyRule& rules, const Json& properties) {
  auto kept = Json::object();
  for (const auto& [name, value] : properties.items()) {
    const auto& rule = rules.of(name);
    if (rule.read_only || value.is_null()) continue;
    kept[name] = value.is_object() && !rule.properties.empty() ? writable(rule, value) : value;
  }
  return kept;
}

Json shown(const std::vector<CommandPlan::Other>& others) {
  auto all = Json::array();
  for (const auto& other : others) {
    auto changes = Json::array();
    for (const auto& [step, resource] : other.steps) {
      if (changes.size() < kChangesSaid) changes.push_back(resource);
    }
    all.push_back(
        {{"command", other.command.value}, {"changes", std::move(changes)}, {"changes_total", other.steps.size()}});
  }
  return all;
}

JsonText shown(const std::vector<PlanMistake>& notes, std::size_t room) {
  std::string list = "[";
  for (std::size_t i = 0; i < std::min(notes.size(), kNotesSaid) && list.size() < room; ++i) {
    const auto& [stack, resource, pointer, message] = notes[i];
    const Json note{{"stack", stack}, {"resource", resource}, {"pointer", pointer}, {"message", message}};
    list += (i == 0 ? "" : ",") + note.dump();
  }
  return list + ']';
}

Json shown(const std::vector<TargetChange>& changes) {
  auto all = Json::array();
  for (const auto& change : changes) {
    all.push_back({{"action", step_action_name(change.action)},
                   {"target", change.target},
                   {"namespace", change.ns},
                   {"reason", change.reason},
                   {"hash", change.hash}});
  }
  return all;
}

}  // namespace

/// The draft that a request names, with what it declares itself added.
Result<Draft*> Api::draft_of(ApiRequest& request) {
  const auto id = request.text("draft");
  const auto now = p_.clock.now();
  std::vector<Declaration> stacks;
  std::vector<TargetConfig> targets;
  const auto* const declared = request.raw("stacks");
  const auto* const declared_targets = request.raw("targets");
  if (declared != nullptr && !declared->is_array()) return invalid("stacks must be an array");
  if (declared_targets != nullptr && !declared_targets->is_array()) return invalid("targets must be an array");
  const auto none = Json::array();
  for (const auto& stack : declared != nullptr ? *declared : none) {
    auto parsed = declaration_from_json(stack);
    if (!parsed) return invalid(parsed.error().message);
    stacks.push_back(std::move(*parsed));
  }
  for (const auto& target : declared_targets != nullptr ? *declared_targets : none) {
    auto parsed = target_from_json(target);
    if (!parsed) return invalid(parsed.error().message);
    targets.push_back(std::move(*parsed));
  }
  const bool adds = declared != nullptr || declared_targets != nullptr;
  if (id.empty() && !adds) return invalid("draft, or stacks and targets, are needed");
  auto draft = adds ? p_.commands.declare(id, std::move(stacks), std::move(targets), request.bytes(), now)
                    : p_.commands.draft(id, now);
  if (!draft) return draft;
  if (request.raw("mode") != nullptr) {
    const auto mode = mode_named(request.text("mode"));
    if (!mode) return mode.error();
    (*draft)->mode = *mode;
    (*draft)->planned = false;
  }
  const auto names = [&](const char* field, std::set<std::string>& into) {
    if (request.raw(field) == nullptr) return;
    const auto texts = request.texts(field);
    into = {texts.begin(), texts.end()};
    (*draft)->planned = false;
  };
  names("only", (*draft)->only);
  names("exclude", (*draft)->excluded);
  if (request.fault()) return *request.fault();
  return draft;
}

Result<JsonText> Api::declare(ApiRequest& request, Effects&) {
  const auto draft = draft_of(request);
  if (!draft) return draft.error();
  std::size_t resources = 0;
  for (const auto& stack : (*draft)->stacks) resources += stack.resources.size();
  return Json{{"draft", (*draft)->id}, {"resources", resources}, {"targets", (*draft)->targets.size()}}.dump();
}

Result<JsonText> Api::plan(ApiRequest& request, Effects&) {
  const auto found = draft_of(request);
  if (!found) return found.error();
  auto& draft = **found;
  const auto from = cursor_of(request);
  if (!from) return from.error();
  const bool changes_only = request.flag("changes").value_or(false);
  const bool keep = request.flag("keep").value_or(true);
  if (request.fault()) return *request.fault();
  if (!draft.planned || *from == 0) p_.commands.plan(draft);
  std::map<std::string, PropertyRule> rules;  // by type
  const auto patch_of = [&](const PlanStep& step) {
    const auto [it, added] = rules.try_emplace(step.type);
    if (const auto served = added ? p_.registry.type(step.type) : ServedType()) {
      if (auto parsed = property_rules(served.type->schema)) it->second = std::move(*parsed);
    }
    const auto& stack = draft.stacks[draft.stack_of[static_cast<std::size_t>(&step - draft.plan.steps.data())]];
    const auto known = step.row == 0 ? std::nullopt : must(p_.store.one(step.row));
    return shown_patch(step, step.declared ? &stack.resources[*step.declared] : nullptr,
                       known ? known->properties : std::string_view(), it->second);
  };
  const bool first = *from == 0;  // it has what stands beside the steps
  const auto behind = first ? shown(p_.commands.changing(draft)).dump() : "[]";
  const auto mistakes = first ? shown(draft.mistakes, request.room() / 4) : "[]";
  const auto unchecked = first ? shown(draft.unchecked, request.room() / 4) : "[]";
  const auto targets = first ? shown(draft.target_changes).dump() : "[]";
  const auto others = behind.size() + mistakes.size() + unchecked.size() + targets.size();
  std::string steps;
  std::size_t next = *from;
  for (; next < draft.plan.steps.size(); ++next) {
    const auto& step = draft.plan.steps[next];
    const bool unchanged = step.action == StepAction::kUnchanged;
    if (unchanged && changes_only && step.reason.empty()) continue;
    auto object = unchanged ? shown(step, step.patch) : shown(step, patch_of(step).dump());
    if (!unchanged) object.text("hash", Commands::basis(step).hash);
    const auto text = object.take();
    if (!steps.empty() && others + steps.size() + text.size() > request.room()) break;
    steps += (steps.empty() ? "" : ",") + text;
  }
  const bool more = next < draft.plan.steps.size();
  auto answer = JsonObject()
                    .text("draft", draft.id)
                    .raw("summary", shown(draft.plan.summary()).dump())
                    .flag("nothing", draft.nothing)
                    .raw("behind", behind)
                    .raw("mistakes", mistakes)
                    .number("mistakes_total", draft.mistakes.size())
                    .flag("awaits_workers", p_.discovery.awaits_workers())
                    .raw("unchecked", unchecked)
                    .raw("targets", targets)
                    .raw("steps", "[" + steps + "]")
                    .raw("next", more ? Json(std::to_string(next)).dump() : "null")
                    .take();
  if (!keep && !more) p_.commands.discard(std::string(draft.id));
  return answer;
}

Result<JsonText> Api::apply(ApiRequest& request, Effects&) {
  const auto if_busy = request.text("if_busy");
  if (!if_busy.empty() && if_busy != "wait" && if_busy != "refuse") return invalid("if_busy must be wait or refuse");
  const auto found = draft_of(request);
  if (!found) return found.error();
  auto& draft = **found;
  if (!draft.planned) p_.commands.plan(draft);
  if (!draft.mistakes.empty()) {
    std::vector<std::string> said;
    for (const auto& mistake : draft.mistakes) {
      said.push_back((mistake.resource.empty() ? "" : mistake.resource + ": ") + mistake.message);
      if (said.size() == 100) break;
    }
    return invalid(joined(said, "; "));
  }
  auto summary = shown(draft.plan.summary());
  if (auto holds = draft.nothing ? p_.commands.check_plan(draft) : Result<void>(); !holds) return holds.error();
  if (const auto others = p_.commands.changing(draft); !others.empty()) {
    return Error{Errc::kConflict,
                 "no resource to change as of now, and command " + others.front().command.value + " is changing " +
                     others.front().steps.begin()->second + ": apply again when it has ended",
                 {},
                 0};
  }
  if (draft.nothing) return Json{{"command", nullptr}, {"state", "complete"}, {"summary", std::move(summary)}}.dump();
  const auto id = p_.commands.apply(draft, if_busy == "refuse" ? Commands::IfBusy::kRefuse : Commands::IfBusy::kWait,
                                    p_.clock.now());
  if (!id) return id.error();
  return Json{{"command", id->value}, {"state", "queued"}, {"summary", std::move(summary)}}.dump();
}

Json Api::command_object(const CommandRow& row) const {
  Json object{{"command", row.id.value},
              {"kind", row.kind},
              {"state", row.state},
              {"cancel", row.cancel == Cancelled::kNo         ? Json()
                         : row.cancel == Cancelled::kGraceful ? Json("graceful")
                                                              : Json("forced")},
              {"stacks", row.stacks},
              {"created_at", rfc3339(row.created_at)},
              {"started_at", time_of(row.started_at)},
              {"finished_at", time_of(row.finished_at)}};
  if (row.started_at) {
    const auto end = row.finished_at.value_or(p_.clock.wall());
    object["duration_ms"] = std::chrono::duration_cast<Millis>(end - *row.started_at).count();
  }
  if (const auto* running = p_.commands.running(row.id)) object["progress"] = Json::parse(running->progress());
  return object;
}

Result<JsonText> Api::commands(ApiRequest& request, Effects&) {
  const auto limit = request.number("limit", 100, 1, 1000);
  const auto before = request.text("cursor");
  if (request.fault()) return *request.fault();
  ItemList items(request.room());
  const auto rows = must(p_.store.commands(CommandId(before), limit));
  auto row = rows.begin();
  for (; row != rows.end(); ++row) {
    const auto text = command_object(*row).dump();
    if (!items.has_room(text)) break;
    items.add(text);
  }
  const bool more = row != rows.end() || rows.size() == limit;
  return items.take(more ? std::prev(row)->id.value : "");
}

Result<JsonText> Api::command(ApiRequest& request, Effects&) {
  const CommandId id(request.required_text("command"));
  const bool brief = request.flag("brief").value_or(false);
  const auto from = cursor_of(request);
  if (request.fault()) return *request.fault();
  if (!from) return from.error();
  const auto row = must(p_.store.command(id));
  if (!row) return Error{Errc::kNotFound, "no command " + id.value + ": `muster commands` lists them", {}, 0};
  auto object = command_object(*row);
  if (brief) return object.dump();
  if (*from == 0 || !shown_ || shown_->command != id) {
    auto parsed = CommandPlan::parse(must(p_.store.plan_of(id)));
    if (!parsed) object["message"] = "its plan cannot be read: " + parsed.error().message;  // of another version
    shown_ = {id, parsed ? std::move(*parsed) : CommandPlan(), {}};
  }
  shown_->asked_for = p_.clock.now();
  const auto& plan = shown_->plan;
  std::map<std::size_t, OperationRow> operations;
  for (auto& operation : must(p_.store.operations(id, *from, kStepsAtOnce))) {
    operations[operation.step] = std::move(operation);
  }
  std::string steps, results;
  std::size_t next = *from;
  const auto end = std::min(plan.steps.size(), *from + kStepsAtOnce);
  for (; next < end; ++next) {
    const auto& step = plan.steps[next];
    const auto it = operations.find(next);
    const bool begun = it != operations.end();
    const bool over = row->finished_at.has_value();
    const Json result{{"name", step.name},
                      {"stack", step.stack},
                      {"target", step.target},
                      {"type", step.type},
                      {"native_id", begun && !it->second.native_id.empty() ? Json(it->second.native_id)
                                    : step.native_id.empty()               ? Json()
                                                                           : Json(step.native_id)},
                      {"action", step_action_name(step.action)},
                      {"state", begun  ? it->second.state
                                : over ? "cancelled"
                                       : "pending"},
                      {"code", begun && !it->second.code.empty() ? Json(it->second.code) : Json()},
                      {"message", begun && !it->second.message.empty() ? Json(it->second.message) : Json()}};
    const auto ended = result.dump(), planned = shown(step, step.patch).take();
    const auto bytes = steps.size() + results.size() + ended.size() + planned.size();
    if (!steps.empty() && bytes > request.room()) break;
    results += (results.empty() ? "" : ",") + ended;
    steps += (steps.empty() ? "" : ",") + planned;
  }
  const bool more = next < plan.steps.size();
  object["next"] = more ? Json(std::to_string(next)) : Json();
  auto answer = object.dump();
  answer.back() = ',';
  answer +=
      "\"plan\":" + JsonObject().raw("summary", shown(plan.summary).dump()).raw("steps", "[" + steps + "]").take();
  if (!more) shown_.reset();
  return answer + ",\"results\":[" + results + "]}";
}

Result<JsonText> Api::cancel(ApiRequest& request, Effects& effects) {
  const CommandId id(request.required_text("command"));
  const bool force = request.flag("force").value_or(false);
  if (request.fault()) return *request.fault();
  const auto done = p_.commands.cancel(id, force ? Cancelled::kForced : Cancelled::kGraceful, p_.clock.now(), effects);
  if (!done) return done.error();
  return Json{{"command", id.value}, {"cancel", *done == Cancelled::kForced ? "forced" : "graceful"}}.dump();
}

Result<JsonText> Api::forget(ApiRequest& request, Effects&) {
  constexpr std::size_t kShown = 100;
  ForgetRequest asked;
  asked.stack = request.required_text("stack");
  for (auto& name : request.texts("names")) asked.names.insert(std::move(name));
  asked.target = request.text("target");
  asked.look_only = request.flag("look_only").value_or(false);
  const bool all = request.flag("all").value_or(false);
  if (request.fault()) return *request.fault();
  if (all != (asked.names.empty() && asked.target.empty())) {
    return invalid("names, target, or all alone are needed");
  }
  const auto found = p_.commands.forget(asked);
  if (!found) return found.error();
  Json answer{{"stack", asked.stack}, {"count", found->size()}, {"resources", Json::array()}};
  for (const auto& each : *found) {
    if (answer["resources"].size() == kShown) break;
    answer["resources"].push_back({{"name", each.name},
                                   {"target", each.target},
                                   {"type", each.type},
                                   {"native_id", each.native_id},
                                   {"state", resource_state_name(each.state)}});
  }
  return answer.dump();
}

Result<JsonText> Api::export_resources(ApiRequest& request, Effects&) {
  auto query = resource_query(request, p_.store);
  if (!query) return query.error();
  std::map<std::string, PropertyRule, std::less<>> rules;
  std::map<std::string, bool, std::less<>> identified;
  std::string items;
  const auto next = must(p_.store.query(*query, [&](const ResourceView& row) {
    if (row.state == ResourceState::kMissing) return true;
    if (!rules.contains(row.type)) {
      const auto served = p_.registry.type(row.type);
      const auto schema = served ? Json::parse(served.type->schema, nullptr, false) : Json();
      auto parsed = served ? property_rules(served.type->schema) : Result<PropertyRule>(PropertyRule{});
      rules[std::string(row.type)] = parsed ? std::move(*parsed) : PropertyRule{};
      identified[std::string(row.type)] = schema.is_object() && schema.contains("x-muster-identity");
    }
    Json item{{"label", row.label},
              {"type", row.type},
              {"target", row.target},
              {"properties", writable(rules.find(row.type)->second, Json::parse(row.properties))}};
    if (!identified.find(row.type)->second) item["native_id"] = row.native_id;
    const auto text = item.dump();
    if (!items.empty() && items.size() + text.size() > request.room()) return false;
    items += (items.empty() ? "" : ",") + text;
    return true;
  }));
  return JsonObject()
      .raw("items", "[" + items + "]")
      .raw("next", next > 0 ? Json(std::to_string(next)).dump() : "null")
      .take();
}

}  // namespace muster
