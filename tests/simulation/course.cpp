// The course of a simulation: faults and wishes, then what must hold when the world stands still.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "coordinator/must.h"
#include "simulation/fleet.h"

namespace muster::sim {
namespace {

constexpr Millis kTaken{10 * 60'000};  // of results that workers keep: they are said again twice a minute

}  // namespace

Fleet::Fault Fleet::look() {
  // The errors of the plugin stay: they are retried like any other. A run that one of them made partial is repeated.
  // What was left out by a filter once is read again in one of 16 runs.
  int until_all_is_read = faults_.filters > 0 ? 16 : 0;
  for (int attempt = 0; attempt < 40; ++attempt) {
    if (auto fault = pass([&] { return objects_.at_rest(); }, kLimit, "the end of what the cloud is at")) return fault;
    const auto shown = clock_.now() + objects_.settle();  // no look before then tells what is gone
    if (auto fault = pass([&] { return clock_.now() >= shown; }, kLimit, "what is shown late")) return fault;
    const auto before = must(store_->runs({}, 1)).front().id;
    const auto changes = objects_.books().size();
    trigger();
    const auto ended = [&] { return must(store_->runs({}, 1)).front().id != before && all_ended(); };
    if (auto fault = pass(ended, kLimit, "the end of the last run")) return fault;
    // What a drift has made the fleet change was told to the target that it was changed through, and to no other.
    if (config_.targets.size() > 1 && objects_.books().size() > changes) continue;
    if (must(store_->runs({}, 1)).front().state == "complete") {
      auto fault = check_inventory();
      if (!fault || --until_all_is_read < 0) return fault;
      continue;
    }
    const auto later = clock_.now() + Millis(2000);  // there may be no worker yet
    if (auto fault = pass([&] { return clock_.now() >= later; }, kLimit, "two seconds")) return fault;
  }
  return "no run is complete though the world stands still: " + must(store_->runs({}, 1)).front().report;
}

std::string Fleet::managed() const {
  std::string said = " managed:";
  for (const auto& [stack, count] : must(store_->stacks())) {
    must(store_->of_stack(stack, {}, [&](const ManagedView& row) {
      said += fmt::format(" {}/{} {} {} (row {} in {}) {} as {};", stack, row.name, row.type, row.native_id, row.row,
                          row.parent, resource_state_name(row.state), row.declared);
    }));
  }
  return said;
}

bool Fleet::tidy_up(const CommandId& command) {
  bool did = false;
  for (const auto& operation : must(store_->operations(command))) {
    const auto end = operation.message.find(kNotEmpty);
    if (end == std::string::npos) continue;
    const auto begin = operation.message.rfind(' ', end - 1) + 1;
    const auto id = operation.message.substr(begin, end - begin);
    for (const auto* type : {"SIM::Object", "SIM::Nest"}) {
      for (const auto& [inner, one] : objects_.inside(type, id)) {
        const auto row = must(store_->one("cloud", inner, one));
        if (row && row->managed) continue;
        objects_.erase(inner, one);
        did = true;
      }
    }
  }
  return did;
}

Fleet::Fault Fleet::apply(const Json& request, Left left, int more) {
  const auto number = ask("apply", request);
  if (auto fault = pass([&] { return answers_.contains(number); }, kLimit, "the answer to an apply")) return fault;
  const auto answer = answers_[number];
  if (!answer.contains("command")) {
    // What a step that failed has left, or a liar, is nobody's, and may be another than what is declared now.
    const auto said = answer.dump();
    const auto end = said.find(" is there and is another");
    if (end == std::string::npos || left == Left::kTold || more == 0) {
      return "an apply in a quiet world is refused: " + said + managed() + " " + request.dump();
    }
    const auto begin = said.rfind(' ', end - 1) + 1;
    objects_.erase("SIM::Named", said.substr(begin, end - begin));
    if (auto fault = look()) return fault;
    return apply(request, left, more - 1);
  }
  if (answer["command"].is_null()) return std::nullopt;
  if (auto fault = pass([&] { return all_ended(); }, kLimit, "the end of the last commands")) return fault;
  const auto command = must(store_->command(CommandId(answer["command"].get<std::string>())));
  if (!command) return "a command was promised, and is not there: " + answer.dump();
  if (command->state == "complete") return std::nullopt;
  if (more > 0) {
    if (faults_.strict > 0 && tidy_up(command->id)) {
      if (auto fault = look()) return fault;
    }
    return apply(request, left, more - 1);
  }
  std::string said = "an apply in a quiet world ends as " + command->state + ":";
  for (const auto& operation : must(store_->operations(command->id))) {
    if (operation.state != "done") said += " " + operation.code + " " + operation.message + ";";
  }
  return said + managed() + " " + request.dump();
}

Fleet::Fault Fleet::run() {
  set_policy(faults_);
  objects_.set_faults(faults_.changes);
  objects_.may_be_doubled(faults_.liars > 0);
  if (faults_.stream > 0) stream_ = std::make_unique<EventStream>(broker_, clock_, usual_.prefix);
  start_coordinator();
  for (std::size_t i = 0; i < kWorkers; ++i) start_worker(i);
  if (faults_.liars > 0) start_liar();

  if (auto fault = pass([&] { return plan_.empty(); }, kLimit, "the end of the faults")) return fault;
  liar_.reset();
  cut_off_ = 0;
  for (std::size_t i = 0; i < kWorkers; ++i) start_worker(i);
  if (faults_.settings > 0) configure(usual_);
  start_coordinator();
  if (auto fault = pass([&] { return all_ended(); }, kLimit, "the end of every run and command")) return fault;
  if (auto fault = faults_.settings > 0 ? accept_targets() : std::nullopt) return fault;

  // Quiet: the world stands still and nothing goes wrong any more.
  Faults quiet;
  quiet.delay = Millis(1);
  faults_.slow_disk = {};
  weather_.gaps = false;
  cloud_.serve_all();
  set_policy(quiet);
  objects_.set_faults({});
  if (stream_) stream_->set(EventStream::State::kThere);
  if (auto fault = pass([&] { return workers_are_done(); }, kTaken, "that every worker is done")) return fault;
  if (auto fault = pass([&] { return objects_.at_rest(); }, kLimit, "the end of what the cloud is at")) return fault;
  if (auto fault = pass([&] { return all_ended(); }, kLimit, "the end of what late results have begun")) return fault;
  if (auto fault = check_told()) return fault;
  if (auto fault = look()) return fault;
  if (auto fault = check_marks()) return fault;
  if (auto fault = faults_.renames + faults_.swaps > 0 ? check_renaming() : std::nullopt) return fault;
  if (auto fault = check_events()) return fault;
  if (auto fault = check_reports()) return fault;
  if (auto fault = check_owners()) return fault;

  std::map<std::string, Json> last;  // what each stack was wanted to be
  for (const auto& wish : wishes_) {
    if (wish.kind == Wish::Kind::kApply) last[wish.stack] = reconciled(wish.request);
  }
  const auto all_as_declared = [&](Left left) -> Fault {
    for (const auto& [stack, request] : last) {
      if (auto fault = apply(request, left)) return fault;
    }
    if (auto fault = look()) return fault;
    for (const auto& [stack, request] : last) {
      if (auto fault = check_declared(request)) return fault;
    }
    return std::nullopt;
  };
  if (auto fault = all_as_declared(Left::kTidied)) return fault;
  for (const auto& [stack, request] : last) {
    if (auto fault = apply(destroyed(stack), Left::kTold)) return fault;
    if (auto fault = check_destroyed(stack)) return fault;
  }
  if (faults_.lag > Millis{0}) {  // what has just been made goes at once, and does not stay where nobody knows it
    for (const auto& [stack, request] : last) {
      if (auto fault = apply(request, Left::kTold)) return fault;
      if (auto fault = apply(destroyed(stack), Left::kTold)) return fault;
      if (auto fault = check_destroyed(stack)) return fault;
      if (auto fault = check_reports()) return fault;
    }
  }
  if (auto fault = look()) return fault;
  if (auto fault = all_as_declared(Left::kTold)) return fault;  // nothing of what was before stands in its way
  for (const auto& [stack, request] : last) {
    if (auto fault = check_settled(request)) return fault;
  }
  if (auto fault = check_reports()) return fault;
  if (auto fault = check_owners()) return fault;
  if (auto fault = check_events()) return fault;
  if (auto fault = check_followed()) return fault;
  if (auto fault = check_runs()) return fault;
  return check_history();
}

}  // namespace muster::sim
