// What goes wrong: answers that are lost, workers that die, requests that make no sense.

#include <algorithm>
#include <array>

#include "coordinator/cli/plugin_test/checks.h"

namespace muster::cli::conformance {
namespace {

constexpr std::array kMoments{Millis{0}, Millis{1}, Millis{5}, Millis{20}, Millis{60}};
constexpr Millis kCancelled{10'000};
constexpr Millis kShortLease{300};

DispatchPtr send_create(const Case& it, const Object& object, const std::string& key, std::optional<int> only = {}) {
  auto& bench = it.bench;
  return bench.fleet().send(bench.systems()[object.system].target, it.type.name, bench.create_job(object, key), only);
}

JobResult finish(const Case& it, const Object& object, const std::string& key, const JobResult& first) {
  auto& bench = it.bench;
  return bench.fleet().finish(bench.systems()[object.system].target, it.type.name, bench.create_job(object, key),
                              first);
}

/// There is this one object, as declared.
void must_be_one(const Case& it, Object& object) {
  auto& bench = it.bench;
  object.item = bench.must_read(object);
  const auto ids = bench.alike(object);
  if (ids.size() != 1) {
    throw CheckFailed("one key made " + std::to_string(ids.size()) + " objects like " + object.declared.json);
  }
  if (ids.front() != object.item.native_id) {
    throw CheckFailed("the object is " + ids.front() + ", and the answer named " + object.item.native_id);
  }
  if (!it.difference(object).empty()) throw CheckFailed("the object is not as declared: " + object.item.properties);
}

/// Deletes what a create has made of which nobody says whether it has.
std::string remove_alike(const Case& it, const Object& object) {
  it.bench.fleet().pause(it.type.settle);
  const auto ids = it.bench.alike(object);
  for (const auto& id : ids) {
    Object made = object;
    made.item.native_id = id;
    it.bench.remove(made);
  }
  return ids.empty() ? "nothing made" : "made";
}

/// Not done, and not to be tried again.
void must_be_refused(const Case& it, Object& object, const JobResult& result, const std::string& what) {
  if (const auto* done = std::get_if<MutationResult>(&result)) {
    object.item.native_id = done->native_id;
    if (!done->native_id.empty()) it.bench.remember(object);
    throw CheckFailed("a create with " + what + " was carried out");
  }
  const auto* error = std::get_if<Error>(&result);
  const auto traits = error == nullptr ? ErrorTraits{} : error_traits(error->code);
  if (error == nullptr || traits.retry != Retry::kNever || traits.applied != Applied::kNotApplied) {
    throw CheckFailed("a create with " + what + " was answered with " + to_string(result) +
                      ": it is to be a code that says that nothing was done, and not to try again");
  }
}

}  // namespace

std::string check_same_key(const Case& it) {
  auto& bench = it.bench;
  auto& fleet = bench.fleet();
  fleet.have_workers(2);
  const auto workers = fleet.workers();
  std::string seen;

  auto object = bench.draft(it.fixture, it.scope);
  auto key = bench.new_key();
  bench.settle(object, key, bench.run(object, bench.create_job(object, key), workers[0]));
  const auto id = object.item.native_id;
  const auto again = bench.run(object, bench.create_job(object, key), workers[1]);
  if (const auto* done = std::get_if<MutationResult>(&again)) {
    if (done->native_id != id) {
      bench.forget(object);
      object.item.native_id = done->native_id;
      bench.remember(object);
      throw CheckFailed("the same key again was answered with another object: " + id + ", " + done->native_id);
    }
    seen = "again: the same object";
  } else if (const auto* error = std::get_if<Error>(&again); error != nullptr && error->code == Errc::kAlreadyExists) {
    seen = "again: ALREADY_EXISTS";
  } else {
    throw CheckFailed("the same key again was answered with " + to_string(again));
  }
  must_be_one(it, object);
  bench.remove(object);

  object = bench.draft(it.fixture, it.scope);
  key = bench.new_key();
  const auto one = send_create(it, object, key, workers[0]);
  const auto two = send_create(it, object, key, workers[1]);
  const std::array results{finish(it, object, key, fleet.wait(one)), finish(it, object, key, fleet.wait(two))};
  const bool first = std::holds_alternative<MutationResult>(results[0]);
  bench.settle(object, key, first ? results[0] : results[1]);
  must_be_one(it, object);
  bench.remove(object);
  return seen + "; twice at once: one object";
}

std::string check_killed(const Case& it) {
  auto& bench = it.bench;
  auto& fleet = bench.fleet();
  std::string seen;
  for (const auto moment : kMoments) {
    fleet.have_workers(2);
    const auto workers = fleet.workers();
    auto object = bench.draft(it.fixture, it.scope);
    const auto key = bench.new_key();
    const auto lost = send_create(it, object, key, workers[0]);
    if (!fleet.until([&] { return lost->gone || lost->result; }, kJobDeadline))
      throw CheckFailed("a create is not claimed");
    fleet.flush();
    fleet.pause(moment);
    const bool answered = lost->result.has_value();
    fleet.kill_worker(workers[0]);
    const auto next = fleet.redeliver(*lost, workers[1]);
    const auto result = finish(it, object, key, fleet.wait(next));
    bench.settle(object, key, result);
    must_be_one(it, object);
    bench.remove(object);
    const auto* error = std::get_if<Error>(&result);
    seen += (seen.empty() ? "" : "; ") + std::to_string(moment.count()) + " ms" + (answered ? " (done before)" : "") +
            ": " + (error == nullptr ? "success" : std::string(errc_name(error->code)));
  }
  return seen;
}

std::string check_claim(const Case& it) {
  auto& bench = it.bench;
  auto& fleet = bench.fleet();
  auto object = bench.draft(it.fixture, it.scope);
  const auto job = bench.create_job(object, bench.new_key());
  const auto held = fleet.send(bench.systems()[object.system].target, it.type.name, job, {}, Claim::kHold, kShortLease);
  const auto result = fleet.wait(held, kCancelled);
  if (!held->accepted) throw CheckFailed("a create was not claimed with `accepted`");
  const auto made = remove_alike(it, object);
  const auto* error = std::get_if<Error>(&result);
  if (error == nullptr || error->code != Errc::kCancelled) {
    throw CheckFailed("a create that never got its go was answered with " + to_string(result) + ", not CANCELLED");
  }
  if (made != "nothing made") throw CheckFailed("a create that never got its go was carried out");
  return "CANCELLED at the end of the lease, nothing made";
}

std::string check_cancel(const Case& it) {
  auto& bench = it.bench;
  auto& fleet = bench.fleet();
  auto object = bench.draft(it.fixture, it.scope);
  const auto dispatch = send_create(it, object, bench.new_key());
  if (!fleet.until([&] { return dispatch->gone || dispatch->result; }, kJobDeadline))
    throw CheckFailed("a create is not claimed");
  fleet.cancel(*dispatch);
  if (!fleet.until([&] { return dispatch->result.has_value(); }, kCancelled))
    throw CheckFailed("a cancelled create is not answered within 10 s");
  const auto result = *dispatch->result;
  const auto made = remove_alike(it, object);
  const auto* error = std::get_if<Error>(&result);
  if (error != nullptr && error_traits(error->code).applied == Applied::kNotApplied && made == "made") {
    throw CheckFailed("a cancelled create was answered with " + to_string(result) +
                      ", which says that nothing was done");
  }
  return (error == nullptr ? "done before it was stopped" : std::string(errc_name(error->code))) + ", " + made;
}

std::string check_wrong_type(const Case& it) {
  auto& bench = it.bench;
  std::string seen;
  const auto declared = bench.draft(it.fixture, it.scope).declared;
  const auto properties = Json::parse(declared.json);
  for (const auto& [name, value] : properties.items()) {
    auto object = bench.draft(it.fixture, it.scope);
    auto wrong = Json::parse(object.declared.json);
    wrong[name] =
        value.is_string() || value.is_null() ? Json({{"of", {"a", "wrong", "type"}}}) : Json("of a wrong type");
    object.declared.json = wrong.dump();
    std::erase_if(object.declared.secrets,
                  [at = "/" + name](const Secret& each) { return each.pointer.starts_with(at); });
    const auto result = bench.run(object, bench.create_job(object, bench.new_key()));
    must_be_refused(it, object, result, "/" + name + " = " + wrong[name].dump());
    seen += (seen.empty() ? "" : ", ") + ("/" + name) + " " + std::string(errc_name(std::get<Error>(result).code));
  }
  return seen;
}

std::string check_missing_parent(const Case& it) {
  auto [gone, other] = it.other_parent();
  auto& bench = it.bench;
  auto object = bench.draft(it.fixture, other);
  bench.remove(gone);
  bench.must_be_gone(gone);
  const auto result = bench.run(object, bench.create_job(object, bench.new_key()));
  must_be_refused(it, object, result, "a parent that is not there");
  return to_string(result);
}

const std::vector<Check>& type_checks() {
  static const std::vector<Check> kAll{{"create-read", check_create},
                                       {"plan", check_plan},
                                       {"unknown-id", check_unknown},
                                       {"update", check_update},
                                       {"create-only", check_create_only},
                                       {"delete", check_delete},
                                       {"precondition", check_precondition},
                                       {"list", check_list},
                                       {"child-list", check_children},
                                       {"edit", check_edit},
                                       {"remove", check_remove},
                                       {"same-key", check_same_key},
                                       {"killed", check_killed},
                                       {"claim", check_claim},
                                       {"cancel", check_cancel},
                                       {"wrong-type", check_wrong_type},
                                       {"missing-parent", check_missing_parent},
                                       {"two-systems", check_systems},
                                       {"many", check_many},
                                       {"write-only", check_write_only}};
  return kAll;
}

}  // namespace muster::cli::conformance
