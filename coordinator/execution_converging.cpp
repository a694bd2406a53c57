// What a step has made or changed, until it is as declared.

#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/difference.h"
#include "coordinator/execution_work.h"
#include "coordinator/must.h"

namespace muster {
namespace {

using Json = nlohmann::json;

}  // namespace

/// What is to be changed of what is there to have it as declared, but for secrets, which are not compared.
/// errors   those of what it refers to
Result<Difference> Execution::differs(const Work& work, const Json& there) {
  const auto wanted = document(work.step);
  if (!wanted) return wanted.error();
  std::vector<std::string> secret;
  for (const auto& each : wanted->secrets) secret.push_back(each.pointer);
  return compare(rules_of(*work.type), there, Json::parse(wanted->json), secret);
}

/// What is done cannot be followed to its end.
Error Execution::unconfirmed(const Work& work, const Error& why) {
  const bool replaces = work.step.action == StepAction::kReplace && !work.second_half();
  return {Errc::kNotStabilized,
          (replaces ? "made, and what it replaces is there still: "
                    : "done, and whether it is as declared is not known: ") +
              why.message,
          {},
          0};
}

void Execution::converge(Work& work, const Json& there, TimePoint now) {
  const auto difference = differs(work, there);
  if (!difference) return fail(work, unconfirmed(work, difference.error()));
  if (difference->patch.empty()) {
    if (work.old_values) {  // the next apply sends them
      return fail(work, {Errc::kNotStabilized,
                         "it was there before, and whether its write-only values are those that are declared is not "
                         "known: apply again",
                         {},
                         0});
    }
    // What has its very row is what was replaced: that had gone by itself.
    const bool replaces = work.step.action == StepAction::kReplace && work.row != work.step.row;
    if (replaces && work.create_first && !work.second_half()) {
      if (!std::exchange(work.made_first, true)) release(work.op.step);
      made_first_.insert(work.op.step);
      work.due = TimePoint::max();
      return;
    }
    return end(work.op.step, State::kDone);
  }
  if (++work.reads < kConvergeReads)
    return go_on(work, Phase::kConverging, now, pause_after(work.reads - 1, kFirstPause));
  std::string message = "done, and it is not as declared:";
  for (const auto& change : difference->patch) {
    const auto path = change.at("path").get<std::string>();
    const auto pointer = Json::json_pointer(path);
    message += " " + path + " was declared " + change.value("value", Json()).dump() + " and is " +
               (there.contains(pointer) ? there.at(pointer).dump() : "not there") + ";";
  }
  message.back() = '.';
  // Marked, and not put back: that has just been tried.
  if (work.step.resource->on_drift != OnDrift::kAbsorb) must(s_.store.set_drifted(work.row, true));
  fail(work, {Errc::kNotStabilized, message, {}, 0});
}

void Execution::take_converging(Work& work, const ReadItem& answer, TimePoint now) {
  if (const auto* item = std::get_if<Item>(&answer)) {
    if (!observe(work, work.row, *item, "changed", "resource.changed")) return;
  }
  // Not found for a moment after it was made, or not readable for a while: what the change itself answered stands.
  converge(work, Json::parse(work.prior, nullptr, false), now);
}

}  // namespace muster
