#include "simulation/seeds.h"

#include <exception>

#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "simulation/faults.h"
#include "simulation/fleet.h"

namespace muster::sim {
namespace {

/// Leaves out one part after the other as long as something goes wrong still.
Names shrunk(std::uint64_t seed, Names without, const std::vector<std::string>& parts, const Log& log) {
  for (const auto& part : parts) {
    if (!without.insert(part).second) continue;
    if (!run_seed(seed, without, log)) without.erase(part);
  }
  return without;
}

std::string joined(const Names& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

}  // namespace

std::optional<Seeds> parse_seeds(const std::string& text) {
  const auto dots = text.find("..");
  Seeds seeds;
  try {
    seeds.first = std::stoull(text.substr(0, dots));
    seeds.last = dots == std::string::npos ? seeds.first : std::stoull(text.substr(dots + 2));
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return seeds.first <= seeds.last ? std::optional(seeds) : std::nullopt;
}

Log quiet_log() {
  auto log = std::make_shared<spdlog::logger>("sim", std::make_shared<spdlog::sinks::null_sink_st>());
  log->set_level(spdlog::level::off);
  return log;
}

Log verbose_log() {
  auto log = std::make_shared<spdlog::logger>("sim", std::make_shared<spdlog::sinks::stderr_sink_st>());
  log->set_level(spdlog::level::debug);
  return log;
}

std::optional<std::string> run_seed(std::uint64_t seed, const Names& without, const Log& log,
                                    std::vector<std::string>* parts) {
  try {
    Fleet fleet(seed, without, log);
    if (parts != nullptr) *parts = fleet.parts();
    return fleet.run();
  } catch (const std::exception& error) {  // neither the product nor a check lets one out
    return std::string("an exception: ") + error.what();
  }
}

std::optional<std::string> judge_seed(std::uint64_t seed, const Names& without, Shrink shrink) {
  const auto log = quiet_log();
  std::vector<std::string> parts;
  auto fault = run_seed(seed, without, log, &parts);
  if (!fault) return std::nullopt;
  auto smallest = without;
  if (shrink == Shrink::kYes) {
    smallest = shrunk(seed, without, parts, log);
    fault = run_seed(seed, smallest, log);
  }
  return failure_line(seed, smallest, fault.value_or("nothing, the second time"));
}

std::string failure_line(std::uint64_t seed, const Names& without, const std::string& fault) {
  std::string replay = "muster_sim --seeds " + std::to_string(seed);
  if (!without.empty()) replay += " --without " + joined(without);
  return "seed " + std::to_string(seed) + ": " + fault + " [" + replay + "]";
}

const std::vector<Regression>& regressions() {
  // What they show was found without these.
  static const Names kFlat{"depth", "folders", "children", "nests", "notes", "crowds", "parts", "plans", "stream"};
  static const Names kBefore{"folders", "nests", "crowds", "parts", "plans", "stream"};
  static const std::vector<Regression> kFound{
      {"an answer is given before what another request wrote is durable", 784, kLaterFaults},
      {"two rows of one name: what is missing is made again and again", 2777, kLaterFaults},
      {"two rows of one name: an old one is replaced beside the new one", 14680, kLaterFaults},
      {"a target tells what it once made, and it is gone", 5748, kLaterFaults},
      {"a result comes while its step looks for the object", 12615, kLaterFaults},
      {"a read of one id is answered with another", 25264, kLaterFaults},
      {"a late result brings back what was seen to vanish", 23369, kLaterFaults},
      {"an object vanishes twice: gone for the inventory, and for a command", 948, kLaterFaults},
      {"a queued deletion goes in the order of references that are no more", 4411, kLaterFaults},
      {"what vanished comes back, and nobody is told", 7394, kLaterFaults},
      {"what new filters have not judged, for it could not be read, stays in the list", 6615, kFlat},
      {"a claim of before a restart is told to go on, though it was asked for again", 5380, kFlat},
      {"a step whose target is no more does not say that it was done", 38, kFlat},
      {"what a step has made on a target that is no more is not as declared, and no drift", 1457, kFlat},
      {"a change is asked for again while its first worker may begin it", 3923, kFlat},
      {"drift finds a parent left out by a filter, and what is below it stays", 4508, kFlat},
      {"a change is done when its last look is taken, and told as failed", 15326, kFlat},
      {"drift is absorbed after a change was planned, and the change done after all", 17851, kFlat},
      {"what was asked for in one thing is taken for what is declared in another", 49, kBefore},
      {"what was seen in a thing before it was deleted is listed again", 362, kBefore},
      {"what is to lie elsewhere holds up what becomes of the thing that it lies in", 453, kBefore},
      {"a digest is put back for the value that it stands for", 156, kBefore},
      {"what an earlier command made has other write-only values than are declared", 1563, kBefore},
      {"what came back and was deleted is asked for with the key of before", 14300, kBefore},
      {"a command makes something in what another has deleted since it was planned", 45805, kBefore},
      {"a command keeps what was declared before another declared something else", 40851, kBefore},
      {"a command does not send values that another has replaced since", 42239, kBefore},
      {"what moves out of a thing that goes with another is held up by that thing",
       46519,
       {"crowds", "parts", "plans", "stream"}},
      {"what may have been made where it is declared again is made beside it", 2177, {"crowds", "parts", "plans"}},
      {"a run marks as drifted what a command follows until it is as declared", 461, {"parts", "plans"}},
      {"what may have been sent and is not read back counts as what was sent before", 5092, {"parts", "plans"}},
      {"a result is told as taken of which a part is missing", 218, {"plans"}},
      {"a part that comes again throws away the others", 412, {"plans"}},
      {"what went with the thing that it lay in was read before that, and comes back", 3217, {"plans"}},
      {"what a stream said of what was sent before is taken for a word of what is sent now", 220328, {}},
      {"what nobody can read back is noted as sent, and another command has sent something else", 2826999110008494, {}},
      {"what is to lie in a thing that has left the stack is made in nothing", 2826999110013555, {}},
  };
  static const auto kAll = [] {
    auto all = as_found(kFound);
    all.push_back(
        {"what filters leave out stays in the list under an id that has been another's", 620365, {"forgets", "lag"}});
    all.push_back(
        {"what outlives its parent is told as gone with it by a run over other types", 653619, {"forgets", "lag"}});
    all.push_back({"what is to lie in a thing that its stack has let go of stays where it is", 421, {}});
    all.push_back({"what lies in a thing is told as gone twice: by a run, and by who empties the thing", 6855, {}});
    all.push_back({"what may have been made is not looked for once it shows", 4097017722000764, {}});
    all.push_back({"what could not follow what its stack had let go of is told as lying in what was made in its place",
                   3733651135001412,
                   {}});
    all.push_back({"what lies in a thing that is changed meanwhile is not listed by a run that says it saw all",
                   2266436454012029,
                   {"no-uids", "renames", "swaps", "wish-17", "wish-18", "wish-19", "wish-20", "wish-21", "wish-22"}});
    all.push_back(
        {"an answer to something else counts as a deletion in a thing that is emptied", 1501809726007500, {}});
    all.push_back({"what was made, and let go of, is taken for gone before it shows", 1501809726001853, {}});
    all = without_waits(std::move(all));
    // What is found from now on comes here, with the parts that it was found without.
    return all;
  }();
  return kAll;
}

}  // namespace muster::sim
