// One object from its creation to its end.

#include <algorithm>

#include "coordinator/canonical.h"
#include "coordinator/cli/plugin_test/checks.h"
#include "coordinator/cli/plugin_test/plan.h"
#include "coordinator/difference.h"
#include "coordinator/suggestion.h"

namespace muster::cli::conformance {
namespace {

/// Names of properties that are never read back and stand in `properties` all the same.
void find_unread(const PropertyRule& rules, const Json& properties, const std::string& at,
                 std::vector<std::string>& found) {
  for (const auto& [name, value] : properties.items()) {
    const auto& rule = rules.of(name);
    if (rule.write_only) found.push_back(at + "/" + name);
    if (value.is_object()) find_unread(rule, value, at + "/" + name, found);
  }
}

/// Without what only the system sets.
void strip_read_only(const PropertyRule& rules, Json& properties) {
  for (auto it = properties.begin(); it != properties.end();) {
    const auto& rule = rules.of(it.key());
    if (rule.read_only) {
      it = properties.erase(it);
      continue;
    }
    if (it->is_object()) strip_read_only(rule, *it);
    ++it;
  }
}

void expect_conflict(const Case& it, const Object& object, const JobOperation& operation, const std::string& what) {
  const auto result = it.bench.run(object, operation);
  const auto* error = std::get_if<Error>(&result);
  if (error == nullptr || error->code != Errc::kConflict) {
    throw CheckFailed(std::string(operation_name(operation)) + " with " + what + " was answered with " +
                      to_string(result) + ", not CONFLICT");
  }
  const auto now = it.bench.must_read(object);
  if (now.properties != object.item.properties || now.uid != object.item.uid) {
    throw CheckFailed(std::string(operation_name(operation)) + " with " + what +
                      " was refused, and changed the object to " + now.properties);
  }
}

}  // namespace

Document merged(const Document& base, const Document& over) {
  auto json = Json::parse(base.json);
  const auto more = Json::parse(over.json);
  Document both;
  for (const auto& secret : base.secrets) {
    const auto name = secret.pointer.substr(1, secret.pointer.find('/', 1) - 1);
    if (!more.contains(name)) both.secrets.push_back(secret);
  }
  both.secrets.insert(both.secrets.end(), over.secrets.begin(), over.secrets.end());
  json.update(more);
  both.json = json.dump();
  return both;
}

std::string check_create(const Case& it) {
  auto& bench = it.bench;
  auto object = bench.draft(it.fixture, it.scope);
  const auto done = bench.change(object, bench.create_job(object, bench.new_key()));
  if (done.native_id.empty()) throw CheckFailed("a create succeeded and named no native id");
  object.item.native_id = done.native_id;
  bench.remember(object);
  object.item = bench.must_read(object);
  if (const auto differs = it.difference(object); !differs.empty()) {
    throw CheckFailed("read gives something else than was created: " + joined(differs));
  }
  const auto again = bench.must_read(object);
  if (again.properties != object.item.properties || again.uid != object.item.uid) {
    throw CheckFailed("two reads of the same object differ: " +
                      Json::diff(Json::parse(object.item.properties), Json::parse(again.properties)).dump());
  }
  if (!done.properties.empty()) {
    const auto answered = canonical_object(done.properties);
    if (!answered) throw CheckFailed("the create's answer has no JSON object: " + answered.error().message);
    if (*answered != object.item.properties) {
      throw CheckFailed("the create's answer is not what read gives: " +
                        Json::diff(Json::parse(*answered), Json::parse(object.item.properties)).dump());
    }
    if (done.uid != object.item.uid) throw CheckFailed("the create's answer has another uid than read: " + done.uid);
  }
  bench.remove(object);
  return object.item.native_id + (object.item.uid.empty() ? ", no uid" : ", uid " + object.item.uid);
}

std::string check_plan(const Case& it) {
  auto object = it.bench.make(it.fixture, it.scope);
  const auto same = plan(it.type, object.item, object.declared, &object.declared);
  if (same.action != StepAction::kUnchanged || !same.mistakes.empty()) {
    throw CheckFailed("what was just created would be changed by the same declaration: " + to_string(same));
  }
  auto properties = Json::parse(object.item.properties);
  strip_read_only(it.bench.rules(it.type.name), properties);
  const auto adopted = plan(it.type, object.item, {properties.dump(), {}}, nullptr);
  const bool nothing = adopted.patch == "[]" && adopted.mistakes.empty();
  if (!nothing) throw CheckFailed("declared as it was read, it would be changed: " + to_string(adopted));
  it.bench.remove(object);
  return "unchanged; declared as read: " + std::string(step_action_name(adopted.action)) + ", no difference";
}

std::string check_update(const Case& it) {
  it.need(Operation::kUpdate);
  if (!it.fixture.update) throw CheckSkipped("the fixture has no `update`");
  auto& bench = it.bench;
  auto object = bench.make(it.fixture, it.scope);
  const auto before = object.declared;
  const auto update = bench.document(object, *it.fixture.update, it.scope);
  object.declared = merged(before, update);
  const auto planned = plan(it.type, object.item, object.declared, &before);
  if (planned.action != StepAction::kUpdate || !planned.mistakes.empty()) {
    throw CheckFailed("the planner does not take the fixture's update for one: " + to_string(planned));
  }
  const auto job = bench.update_job(object, object.declared);
  const auto done = bench.change(object, job);
  if (done.native_id != object.item.native_id) {
    throw CheckFailed("an update of " + object.item.native_id + " was answered with " + done.native_id);
  }
  object.item = bench.must_read(object);
  if (const auto differs = it.difference(object); !differs.empty()) {
    throw CheckFailed("read does not show the update: " + joined(differs));
  }
  const auto after = plan(it.type, object.item, object.declared, &object.declared);
  if (after.action != StepAction::kUnchanged) throw CheckFailed("after the update, a plan has: " + to_string(after));
  const auto again = bench.run(object, job);
  const auto* refused = std::get_if<Error>(&again);
  if (refused != nullptr && refused->code != Errc::kConflict) {
    throw CheckFailed("the same update again was answered with " + to_string(*refused));
  }
  if (bench.must_read(object).properties != object.item.properties) {
    throw CheckFailed("the same update, once more, changed the object");
  }
  bench.remove(object);
  return planned.patch;
}

std::string check_create_only(const Case& it) {
  if (!it.fixture.replace) throw CheckSkipped("the fixture has no `replace`");
  auto& bench = it.bench;
  auto object = bench.make(it.fixture, it.scope);
  const auto wanted = merged(object.declared, bench.document(object, *it.fixture.replace, it.scope));
  const auto planned = plan(it.type, object.item, wanted, &object.declared);
  std::string seen = "planned as a replacement";
  if (planned.action != StepAction::kReplace) {
    it.need(Operation::kUpdate);
    const auto result = bench.run(object, bench.update_job(object, wanted));
    const auto* error = std::get_if<Error>(&result);
    if (error == nullptr) throw CheckFailed("a change that takes another object was carried out in place");
    if (error_traits(error->code).applied != Applied::kNotApplied) {
      throw CheckFailed("a change that takes another object was answered with " + to_string(*error));
    }
    if (bench.must_read(object).properties != object.item.properties) {
      throw CheckFailed("a change that takes another object was refused, and changed the object");
    }
    seen = "refused: " + to_string(*error);
  }
  bench.remove(object);
  return seen;
}

std::string check_delete(const Case& it) {
  it.need(Operation::kDelete);
  auto& bench = it.bench;
  auto object = bench.make(it.fixture, it.scope);
  const auto first = bench.delete_job(object);
  const auto done = bench.run(object, first);
  if (!std::holds_alternative<MutationResult>(done)) {
    throw CheckFailed("delete of " + object.what() + " was answered with " + to_string(done));
  }
  bench.must_be_gone(object);
  bench.forget(object);
  for (const auto& job : {first, bench.delete_job(object)}) {
    const auto again = bench.run(object, job);
    const auto* error = std::get_if<Error>(&again);
    if (error != nullptr && error->code != Errc::kNotFound) {
      throw CheckFailed("delete of what is gone was answered with " + to_string(*error));
    }
  }
  if (it.can(Operation::kUpdate)) {
    const auto update = bench.run(object, bench.update_job(object, object.declared));
    const auto* error = std::get_if<Error>(&update);
    if (error == nullptr || error->code != Errc::kNotFound) {
      throw CheckFailed("update of what is gone was answered with " + to_string(update) + ", not NOT_FOUND");
    }
  }
  const auto alike = bench.alike(object);
  if (std::ranges::find(alike, object.item.native_id) != alike.end()) {
    throw CheckFailed(object.what() + " is deleted, and still listed");
  }
  return "gone; once more: fine";
}

std::string check_precondition(const Case& it) {
  auto& bench = it.bench;
  if (!it.can(Operation::kUpdate) && !it.can(Operation::kDelete))
    throw CheckSkipped("the type has no update or delete");
  auto object = bench.make(it.fixture, it.scope);
  const Precondition other_state{object.item.uid, std::string(32, '0')};
  const Precondition other_object{object.item.uid + "-another", {}};
  std::string seen;
  if (it.can(Operation::kUpdate) && it.fixture.update) {
    auto job = bench.update_job(object, merged(object.declared, bench.document(object, *it.fixture.update, it.scope)));
    job.precondition = other_state;
    expect_conflict(it, object, job, "the hash of another state");
    seen = "update: state";
    if (!object.item.uid.empty()) {
      job.precondition = other_object;
      expect_conflict(it, object, job, "the uid of another object");
      seen += ", uid";
    }
  }
  if (it.can(Operation::kDelete)) {
    auto job = bench.delete_job(object);
    job.precondition = object.item.uid.empty() ? other_state : other_object;
    const std::string what = object.item.uid.empty() ? "state" : "uid";
    expect_conflict(it, object, job, "the " + what + " of another");
    seen += (seen.empty() ? "delete: " : "; delete: ") + what;
  }
  bench.remove(object);
  return seen;
}

std::string check_edit(const Case& it) {
  if (it.fixture.edit.empty()) throw CheckSkipped("the fixture has no `edit`");
  auto& bench = it.bench;
  auto object = bench.make(it.fixture, it.scope);
  bench.shell(it.fixture, bench.command(object, it.fixture.edit, it.scope));
  const auto now = bench.must_read(object);
  if (now.properties == object.item.properties) {
    throw CheckFailed("what `edit` changed does not show: " + now.properties);
  }
  const auto patch = Json::diff(Json::parse(object.item.properties), Json::parse(now.properties)).dump();
  for (const auto& listed : bench.siblings(object)) {
    if (listed.native_id != object.item.native_id || listed.properties.empty()) continue;
    if (Json::parse(listed.properties) != Json::parse(now.properties))
      throw CheckFailed("list gives something else than read: " + listed.properties);
  }
  object.item = now;
  bench.remove(object);
  return patch;
}

std::string check_remove(const Case& it) {
  if (it.fixture.remove.empty()) throw CheckSkipped("the fixture has no `remove`");
  auto& bench = it.bench;
  auto object = bench.make(it.fixture, it.scope);
  bench.shell(it.fixture, bench.command(object, it.fixture.remove, it.scope));
  bench.must_be_gone(object);
  if (!bench.alike(object).empty()) throw CheckFailed(object.what() + " is not there any more, and still listed");
  bench.remove(object);
  return "NOT_FOUND, not listed";
}

std::string check_write_only(const Case& it) {
  auto& bench = it.bench;
  const auto& rules = bench.rules(it.type.name);
  auto object = bench.make(it.fixture, it.scope);
  std::vector<std::string> declared, found;
  auto properties = Json::parse(object.declared.json);
  find_unread(rules, properties, "", declared);
  find_unread(rules, Json::parse(object.item.properties), "", found);
  for (const auto& item : bench.siblings(object)) {
    const auto listed = item.properties.empty() ? Json() : Json::parse(item.properties, nullptr, false);
    if (listed.is_object()) find_unread(rules, listed, "", found);
  }
  bench.remove(object);
  if (!found.empty()) throw CheckFailed("read back: " + found.front());
  if (declared.empty()) throw CheckSkipped("the fixture sets no write-only property");
  return joined(declared) + ": not read back";
}

}  // namespace muster::cli::conformance
