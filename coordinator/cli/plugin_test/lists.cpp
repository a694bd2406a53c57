// Many objects, their parents, and other systems.

#include <algorithm>
#include <map>
#include <set>

#include "coordinator/cli/plugin_test/checks.h"

namespace muster::cli::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kManyIds = 500;  // beyond, nobody asks for them one by one
constexpr std::size_t kLookedAt = 20;
constexpr int kTries = 8;
constexpr Millis kFirstPause{100};

/// Ids of a listing, each once.
std::set<std::string> ids_of(const std::vector<Item>& items) {
  std::set<std::string> ids;
  for (const auto& item : items) {
    if (item.native_id.empty()) throw CheckFailed("list gives an object without a native id");
    if (!ids.insert(item.native_id).second) throw CheckFailed("list gives an id twice: " + item.native_id);
  }
  return ids;
}

/// The listing, which is the same at page sizes 1, 2 and 100.
std::vector<Item> list_by_pages(Bench& bench, std::size_t system, const TypeDescriptor& type,
                                const std::optional<Parent>& parent) {
  const auto first = ids_of(bench.list(system, type, parent, 100));
  const bool few = first.size() <= kManyIds;
  std::map<std::uint32_t, std::set<std::string>> listed;
  for (const std::uint32_t size : {few ? 1U : 10U, few ? 2U : 20U}) {
    listed[size] = ids_of(bench.list(system, type, parent, size));
  }
  auto items = bench.list(system, type, parent, 100);
  const auto last = ids_of(items);
  for (const auto& [size, ids] : listed) {  // what comes or goes by other hands is in one of the two
    for (const auto& id : first) {
      if (last.contains(id) && !ids.contains(id))
        throw CheckFailed("pages of " + std::to_string(size) + " leave out " + id);
    }
    for (const auto& id : ids) {
      if (!first.contains(id) && !last.contains(id))
        throw CheckFailed("only pages of " + std::to_string(size) + " have " + id);
    }
  }
  return items;
}

/// A change or read of one object, among many at once.
struct Task {
  Task(Object& of, JobOperation what) : object(&of), operation(std::move(what)) {}

  Object* object;
  JobOperation operation;
  DispatchPtr dispatch;
  TimePoint not_before;
  int tries = 0;
  std::optional<JobResult> result;
};

/// Runs all, as many at once as there are slots. returns how many were tried again
int run_all(const Case& it, std::vector<Task>& tasks) {
  auto& fleet = it.bench.fleet();
  int again = 0;
  const auto step = [&] {
    const auto slots = fleet.workers().size() * kSlots;
    auto busy = static_cast<std::size_t>(
        std::ranges::count_if(tasks, [](const Task& each) { return each.dispatch && !each.result; }));
    for (auto& task : tasks) {
      if (task.result) continue;
      if (!task.dispatch) {
        if (busy >= slots || Clock::now() < task.not_before) continue;
        task.dispatch = fleet.send(it.bench.systems()[task.object->system].target, it.type.name, task.operation);
        ++task.tries;
        ++busy;
      } else if (task.dispatch->result) {
        auto result = *task.dispatch->result;
        const auto* error = std::get_if<Error>(&result);
        if (error != nullptr && error_traits(error->code).retry != Retry::kNever && task.tries < kTries) {
          task.not_before = Clock::now() + std::max(error->retry_after, kFirstPause * (1 << task.tries));
          task.dispatch.reset();
          ++again;
        } else {
          task.result = std::move(result);
        }
      }
    }
    return std::ranges::all_of(tasks, [](const Task& each) { return each.result.has_value(); });
  };
  if (!fleet.until(step, kJobDeadline * 4)) throw CheckFailed("many jobs at once do not end within four minutes");
  for (auto& task : tasks) {
    task.result = fleet.finish(it.bench.systems()[task.object->system].target, it.type.name, task.operation,
                               std::move(*task.result));
  }
  return again;
}

[[noreturn]] void fail(const Task& task) {
  throw CheckFailed("one of many at once, " + std::string(operation_name(task.operation)) + " of " +
                    task.object->declared.json + ", was answered with " + to_string(*task.result));
}

}  // namespace

std::string check_unknown(const Case& it) {
  it.need(Operation::kDelete);
  auto& bench = it.bench;
  auto gone = bench.make(it.fixture, it.scope);
  bench.remove(gone);
  bench.must_be_gone(gone);
  auto there = bench.make(it.fixture, it.scope);
  const auto& last = gone.item.native_id;
  if (last == there.item.native_id) {  // names come again; alone it was not found
    bench.remove(there);
    return last + " alone: NOT_FOUND";
  }
  const auto result = bench.run(there, ReadJob{{there.item.native_id, last, there.item.native_id}});
  const auto* answer = std::get_if<ReadResult>(&result);
  if (answer == nullptr)
    throw CheckFailed("a read with an unknown id among others was answered with " + to_string(result));
  if (answer->items.size() != 3)
    throw CheckFailed("a read of 3 ids has " + std::to_string(answer->items.size()) + " answers");
  for (const std::size_t i : {0U, 2U}) {
    const auto* item = std::get_if<Item>(&answer->items[i]);
    if (item == nullptr || item->native_id != there.item.native_id) {
      throw CheckFailed("an unknown id among others spoils the answer for " + there.item.native_id);
    }
  }
  const auto* error = std::get_if<Error>(&answer->items[1]);
  if (error == nullptr || error->code != Errc::kNotFound) {
    throw CheckFailed("the unknown id " + last + " was answered with " +
                      (error == nullptr ? "an object" : to_string(*error)) + ", not NOT_FOUND");
  }
  bench.remove(there);
  return last + ": NOT_FOUND";
}

std::string check_list(const Case& it) {
  it.need(Operation::kList);
  auto& bench = it.bench;
  std::vector<Object> objects;
  for (int i = 0; i < std::min(3, it.fixture.many); ++i) objects.push_back(bench.make(it.fixture, it.scope));
  const auto& like = objects.front();
  const auto items = list_by_pages(bench, like.system, it.type, like.parent);
  const auto last = ids_of(items);
  for (auto& object : objects) {
    if (!last.contains(object.item.native_id)) throw CheckFailed(object.what() + " is not listed");
    const auto item = std::ranges::find(items, object.item.native_id, &Item::native_id);
    const bool whole = it.type.list_gives == ListGives::kProperties;
    if (whole && item->properties.empty()) throw CheckFailed("list gives no properties, and the type says it does");
    const auto there = item->properties.empty() ? Json() : Json::parse(item->properties, nullptr, false);
    if (!item->properties.empty() && there != Json::parse(object.item.properties)) {
      throw CheckFailed("list and read differ: " + Json::diff(there, Json::parse(object.item.properties)).dump());
    }
    if (!item->uid.empty() && item->uid != object.item.uid)
      throw CheckFailed("list and read give other uids: " + item->uid + ", " + object.item.uid);
  }
  for (auto& object : objects) bench.remove(object);
  return std::to_string(last.size()) + " objects at page sizes 1, 2 and 100";
}

std::string check_inventory(Bench& bench, const TypeDescriptor& type) {
  const auto can = [&](Operation operation) {
    return std::ranges::find(type.operations, operation) != type.operations.end();
  };
  if (!can(Operation::kList) || !can(Operation::kRead)) throw CheckSkipped("the type has no list or read");
  const auto items = list_by_pages(bench, 0, type, std::nullopt);
  Object there;
  there.type = &type;
  const auto looked_at = std::min(items.size(), kLookedAt);
  for (std::size_t i = 0; i < looked_at; ++i) {
    there.item = items[i];
    const auto read = bench.must_read(there);
    if (!items[i].properties.empty() && Json::parse(items[i].properties) != Json::parse(read.properties))
      throw CheckFailed("list and read of " + read.native_id + " differ: " +
                        Json::diff(Json::parse(items[i].properties), Json::parse(read.properties)).dump());
  }
  return std::to_string(items.size()) + " objects, " + std::to_string(looked_at) + " read";
}

std::string check_children(const Case& it) {
  auto [second, other] = it.other_parent();
  auto& bench = it.bench;
  auto child = bench.make(it.fixture, it.scope);
  auto stranger = bench.make(it.fixture, other);
  const auto ids = ids_of(bench.siblings(child));
  const auto strange = ids_of(bench.siblings(stranger));
  if (!ids.contains(child.item.native_id)) throw CheckFailed(child.what() + " is not listed below its parent");
  if (!strange.contains(stranger.item.native_id))
    throw CheckFailed(stranger.what() + " is not listed below its parent");
  for (const auto& id : strange) {
    if (ids.contains(id)) throw CheckFailed(id + " is listed below two parents");
  }
  bench.remove(stranger);
  bench.remove(child);
  bench.remove(second);
  return std::to_string(ids.size()) + " and " + std::to_string(strange.size()) + ", apart";
}

std::string check_systems(const Case& it) {
  auto& bench = it.bench;
  if (bench.systems().size() < 2) throw CheckSkipped("the target file has no `config2`");
  auto here = bench.make(it.fixture, it.scope);
  auto scope = bench.prepare(it.fixture, 1);
  Object elsewhere = here;
  elsewhere.system = 1;
  const auto answer = bench.read(elsewhere, here.item.native_id);
  if (std::holds_alternative<Item>(answer)) {
    throw CheckFailed("what was made in one system is found in the other: " + here.what());
  }
  auto there = bench.make(it.fixture, scope, here.unique);
  const bool equal = there.item.native_id == here.item.native_id;
  bench.remove(here);
  bench.must_be_gone(here);
  static_cast<void>(bench.must_read(there));
  bench.remove(there);
  bench.put_away(it.fixture, scope);
  return equal ? "the same id in both, deleted in one" : "ids differ; deleted in one";
}

std::string check_many(const Case& it) {
  auto& bench = it.bench;
  auto& fleet = bench.fleet();
  const auto throttled = fleet.throttled();
  const auto calls = fleet.calls();
  const auto begun = Clock::now();
  std::vector<Object> objects;
  for (int i = 0; i < it.fixture.many; ++i) objects.push_back(bench.draft(it.fixture, it.scope));
  std::vector<Task> creates, reads, deletes;
  for (auto& each : objects) creates.emplace_back(each, bench.create_job(each, bench.new_key()));
  int again = run_all(it, creates);
  std::set<std::string> ids;
  for (auto& task : creates) {
    const auto* done = std::get_if<MutationResult>(&*task.result);
    const auto* error = std::get_if<Error>(&*task.result);
    if (done != nullptr) {
      task.object->item.native_id = done->native_id;
    } else if (error->code == Errc::kAlreadyExists && task.tries > 1) {
      const auto alike = bench.alike(*task.object);
      if (alike.size() == 1) task.object->item.native_id = alike.front();
    }
    if (task.object->item.native_id.empty()) fail(task);
    bench.remember(*task.object);
    if (!ids.insert(task.object->item.native_id).second)
      throw CheckFailed("two of many creates at once have the id " + task.object->item.native_id);
  }
  fleet.pause(it.type.settle);
  for (auto& each : objects) reads.emplace_back(each, ReadJob{{each.item.native_id}});
  again += run_all(it, reads);
  for (auto& task : reads) {
    const auto* answer = std::get_if<ReadResult>(&*task.result);
    if (answer == nullptr || answer->items.size() != 1) fail(task);
    const auto* item = std::get_if<Item>(&answer->items.front());
    if (item == nullptr) throw CheckFailed("one of many reads at once found nothing: " + task.object->item.native_id);
    task.object->item = *item;
    if (!it.difference(*task.object).empty()) throw CheckFailed("one of many at once is another: " + item->properties);
  }
  if (it.can(Operation::kDelete)) {
    for (auto& each : objects) deletes.emplace_back(each, DeleteJob{bench.new_key(), each.item.native_id, {}});
    again += run_all(it, deletes);
    for (auto& task : deletes) {
      const auto* error = std::get_if<Error>(&*task.result);
      if (error != nullptr && error->code != Errc::kNotFound) fail(task);
      bench.forget(*task.object);
    }
  }
  const auto rate = fleet.announcement().max_requests_per_second;
  if (rate > 0 && fleet.throttled() > throttled) {
    throw CheckFailed("the plugin announces " + std::to_string(rate) + " calls a second, and answers THROTTLING below");
  }
  const auto took = std::chrono::duration_cast<Millis>(Clock::now() - begun);
  return std::to_string(objects.size()) + " objects, " + std::to_string(fleet.calls() - calls) + " calls in " +
         std::to_string(took.count()) + " ms" + (again > 0 ? ", tried again " + std::to_string(again) + " times" : "");
}

}  // namespace muster::cli::conformance
