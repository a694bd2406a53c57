// Results of changes that had ended, many of them: what each costs, what is looked at again, and what is told of it.
#include "coordinator/late_looks.h"
#include "support/commands_fixture.h"
#include "support/failing_store.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

namespace {

/// A stack of one that was made, and results of its create that come on any subject.
struct EvidenceFixture : CommandsFixture {
  EvidenceFixture() : counting(put_failing_before(store)) {
    start_discovered();
    apply(stack({box("a")}));
    create = worker().asked<CreateJob>().front();
  }
  void tell(const std::string& native_id, const std::string& ns = "NS") {
    const MutationResult success{MutationStatus::kSuccess, {}, native_id, {}, "{}", {}};
    const JobReply reply{store->fleet(), create.id, create.token, WorkerId("w9"), 1, 1, JobResult(success)};
    user->publish({Subjects().result(ns), user->inbox() + ".ack", encode(reply), {}}).value();
  }
  std::size_t runs() { return api("runs", {{"limit", 1000}})["items"].size(); }
  Json left_out() { return api("status")["late_successes_left_out"]; }

  FailingStore& counting;
  Job create;
};

}  // namespace

TEST_CASE_METHOD(EvidenceFixture, "what is said of a change that has ended is judged without its command's plan") {
  const auto plans = counting.plans_read;
  const auto before = runs();
  tell("made-2", "OTHER");
  advance(Millis(1000));
  CHECK(runs() == before);
  tell("made-1");  // as is known
  tell("");        // names nothing to look at
  advance(Millis(1000));
  CHECK(runs() == before);
  tell("made-2");
  advance(Millis(1000));
  CHECK(runs() == before + 1);
  CHECK(counting.plans_read == plans);
}

TEST_CASE_METHOD(EvidenceFixture, "late successes without end have their type looked at every ten seconds") {
  const auto before = runs();
  for (int i = 0; i < 25; ++i) {
    tell("twin-" + std::to_string(i));
    advance(Millis(1000));
  }
  CHECK(runs() - before == 3);
}

TEST_CASE_METHOD(EvidenceFixture, "a late success that comes right after another is looked at, too") {
  system.add("NS::Box", {.id = "twin-1"});
  tell("twin-1");
  advance(Millis(1000));
  CHECK(listed("NS::Box") == Strings{"made-1", "twin-1"});
  system.add("NS::Box", {.id = "twin-2"});
  tell("twin-2");
  advance(Millis(1000));
  CHECK(listed("NS::Box") == Strings{"made-1", "twin-1"});
  advance(Millis(10'000));
  CHECK(listed("NS::Box") == Strings{"made-1", "twin-1", "twin-2"});
}

TEST_CASE_METHOD(EvidenceFixture, "of very many late successes some are told, and how many are not is counted") {
  CHECK(left_out() == 0);
  for (int i = 0; i < 500; ++i) tell("twin-" + std::to_string(i));
  settle();
  CHECK(left_out() == 480);
  advance(Millis(10'000));
  tell("twin");
  settle();
  CHECK(left_out() == 480);
}

TEST_CASE_METHOD(EvidenceFixture, "messages that take long to handle end no turn late") {
  std::size_t handled = 0;
  counting.on_operation_of = [&] {
    ++handled;
    clock.advance(Millis(10));
  };
  for (int i = 0; i < 1000; ++i) tell("made-1");
  coordinator->turn();
  CHECK(handled == 20);
  user->publish({Subjects().api("status"), user->inbox() + ".status", "{}", {}}).value();
  settle();
  CHECK(handled == 1000);
}

TEST_CASE_METHOD(CommandsFixture, "a late success with another id is looked at while its step goes on, too") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request", "made-1", {}, {}, Millis(500)});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(MutationResult{MutationStatus::kInProgress, "request", {}, {}, {}, Millis(500)});
  };
  begin(stack({box("a")}));
  wait_until([&] { return !worker().asked<StatusJob>().empty(); });
  system.add("NS::Box", {.id = "twin"});
  const auto job = worker().asked<CreateJob>().front();
  const auto tell = [&](const std::string& id) {
    worker().send_late(job, MutationResult{MutationStatus::kSuccess, {}, id, {}, "{}", {}});
    advance(Millis(2000));
  };
  tell("made-1");
  CHECK(state_of("NS::Box", "twin") == "absent");
  tell("twin");
  CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
  CHECK(state_of("NS::Box", "twin") == "present");
}

TEST_CASE("a look that waits keeps others waiting no longer, and comes again for those that came after it") {
  std::uint64_t left_out = 0;
  LateLooks looks(left_out);
  FakeClock clock;
  const auto now = clock.now();
  looks.add_at(now + Millis(30'000), "NS", "lab", "NS::Box");
  looks.add_at(now + Millis(45'000), "NS", "lab", "NS::Box");
  looks.add("NS", "lab", "NS::Item");
  CHECK(looks.next_due() <= now);
  REQUIRE(looks.take(now).size() == 1);
  for (const auto at : {30'000, 45'000}) {
    CHECK(looks.next_due() == now + Millis(at));
    CHECK(looks.take(now + Millis(at - 1)).empty());
    const auto due = looks.take(now + Millis(at));
    REQUIRE(due.size() == 1);
    REQUIRE(due[0].parts.size() == 1);
    CHECK(due[0].parts[0].types == Strings{"NS::Box"});
    CHECK(due[0].parts[0].targets == Strings{"lab"});
  }
  CHECK(looks.next_due() == TimePoint::max());
  CHECK(looks.take(now + Millis(60'000)).empty());
}
