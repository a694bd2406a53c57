#include "simulation/mutations.h"

#include <algorithm>
#include <string_view>

#include "schema/mutation.h"

namespace muster {
namespace {

std::string& chosen() {
  static std::string name;
  return name;
}

}  // namespace

bool any_mutation = false;

bool mutated(const char* name) {
  return chosen() == name;
}

namespace sim {

const std::vector<Mutation>& mutations() {
  static const Names kAlone{"crowds", "parts", "plans"};
  static const std::vector<Mutation> kFound{
      // what is durable before what is said
      {"change-before-commit", "a change is asked for when its intent is durable", {1}},
      {"intent-unwritten", "the intent of a change is written", {1}},
      {"publish-before-commit", "what waits for the commit is published after it", {1}},
      {"ack-before-commit", "a result is acknowledged when it is durable", {1}},
      {"ack-of-part", "a result is acknowledged when all of it is there", {}},
      {"answer-before-commit", "what a user is promised is durable", {1}},
      // who may act, and when
      {"act-without-go", "a worker begins a change when it is told to", {1}},
      {"ignore-lease", "a worker looks at its lease right before it acts", {18}},
      {"act-without-journal", "a worker does not act when it cannot keep the result", {25}},
      {"run-duplicates", "a job that arrives twice is run once", {102, 103}},
      {"change-lost-as-read", "a change is not given to another worker while the first may still act", {1055, 1100}},
      {"late-claim", "who gave no sign in time may not begin once another was told to go", {}},
      {"any-token", "only replies of the current attempt count", {9}, kAlone},
      // what came of it
      {"ignore-journal", "a worker that is started again sends what it kept", {12}},
      {"send-results-once", "a result is sent until it is acknowledged", {1}},
      {"drop-late-success", "a success of an attempt that was given up is evidence", {}},
      {"unknown-is-failed", "a change that may have been applied is not told as failed", {1}},
      // keys and conditions
      {"key-per-attempt", "every attempt of a change has the same key", {1}},
      {"same-key-for-both-halves", "another change has another key", {10}},
      {"forget-unsettled-key", "the next command goes on with the key of what may have been made", {12}},
      {"update-unconditioned", "an update is of what was seen", {122, 149}},
      {"delete-unconditioned", "a deletion is of what was seen", {1}},
      {"key-of-elsewhere", "what was asked for in one thing is not what is declared in another", {3918, 3804}, kAlone},
      // order
      {"deletions-unordered", "what uses something goes before it", {4, 5}},
      {"deletions-do-not-wait", "nothing is deleted unless all else has succeeded", {121, 306}},
      {"contents-ignored", "what lies in a thing does not go with it unsaid", {1365, 1268}},
      {"two-commands-of-a-stack", "one command of a stack is carried out at a time", {1}},
      {"old-plan", "a command is not begun when its stack is not as it was planned on", {13}},
      {"overtaken-unsaid", "what a command leaves alone is as it was when that was planned", {}},
      {"values-overtaken",
       "values that a command does not send are those that were sent before",
       {3095},
       {"parts", "plans", "secrets"}},
      // what is observed
      {"old-observations", "what was asked for before a write is no news of what was written", {20212}},
      {"forget-writes", "writes are remembered while an observation is under way", {7}},
      {"old-index", "what a command has written is looked up afresh", {7, 8, 13}},
      {"missing-unconfirmed", "what is not listed is read before it is told as vanished", {24, 28}},
      {"page-left-out", "an answer of several pages holds what is in each", {1}},
      {"partial-is-whole", "what a listing that failed has not shown may be there", {8, 61}},
      {"any-id", "what a read of one id tells of another is not believed", {}},
      {"filters-of-part", "filters are known to have judged all only where all was read", {68}},
      {"replace-at-once", "an object whose id is another's now is looked for under other ids", {18}},
      {"drift-seen-unsaid", "what a command has seen drifted, and did not put right, is told", {104, 194}},
      {"drop-events", "every event is told", {1}},
      {"events-overtake", "a stream has the events in their order", {4}},
  };
  static const auto kAll = [] {
    auto all = as_found(kFound);
    all.push_back({"not-found-at-once", "what was just made is not taken for gone before it shows", {18, 66}});
    all.push_back({"contents-of-unlisted", "what lies in what no list shows, and is there, is looked at", {164}});
    all.push_back({"drift-untold", "whoever listens is told of a drift", {41, 53}});
    all = without_waits(std::move(all));
    // What is found from now on comes here, with the parts that it was found without.
    return all;
  }();
  return kAll;
}

bool choose_mutation(const std::string& name) {
  const auto& all = mutations();
  if (!name.empty() && std::ranges::find(all, name, &Mutation::name) == all.end()) return false;
  chosen() = name;
  any_mutation = !name.empty();
  return true;
}

}  // namespace sim
}  // namespace muster
