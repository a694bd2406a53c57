// What a coordinator that comes back makes of steps that were under way.
#include <vector>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Behaviour = FakeWorker::Behaviour;
using Catch::Contains;

namespace {

struct RecoveryFixture : CommandsFixture {
  /// Makes what replaces `a` first, and stops where `b` is told to turn to it.
  std::string stop_while_turning() {
    auto owner = box("a", {{"kind", "x"}});
    REQUIRE(apply(stack({owner, linked("b", "a")}))["state"] == "complete");
    owner = box("a2", {{"kind", "y"}});
    owner["name"] = "a";
    owner["replace"] = "create-first";
    worker().on_go = [](const Job& job) -> Behaviour {
      return std::holds_alternative<UpdateJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : Behaviour();
    };
    const auto id = begin(stack({owner, linked("b", "a")}));
    wait_until([&] { return worker().asked<UpdateJob>().size() == 1; });
    advance(Millis(300));
    crash();
    return id;
  }
};

}  // namespace

TEST_CASE_METHOD(RecoveryFixture, "what cannot be gone on with ends no step twice that is under way behind it") {
  start_discovered();
  const auto id = stop_while_turning();
  config.targets.front().config.json = R"({"zone":"other"})";
  start();
  const auto ended = end_of(id);
  CHECK(ended["state"] == "failed");
  CHECK(result_of(ended, "a") == "failed NOT_STABILIZED");
  CHECK(result_of(ended, "b") == "failed TARGET_CHANGED");
}

TEST_CASE_METHOD(RecoveryFixture, "what was made stays as it was told while nobody can read it") {
  start_discovered();
  const auto id = stop_while_turning();
  worker().on_job = [](const Job& job) -> Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids != Strings{"made-3"}) return {};
    return JobResult(Error{Errc::kNetwork, "unreachable", {}, 0});
  };
  worker().on_go = {};
  start();
  const auto ended = end_of(id);
  CHECK(ended["state"] == "complete");
  CHECK(message_of(ended, "a").empty());
  CHECK(count() == 2);
}

TEST_CASE_METHOD(RecoveryFixture, "a request that the target does not know is not asked for by the next coordinator") {
  start_discovered();
  worker().on_go = [&, asked = 0](const Job& job) mutable -> Behaviour {
    const auto done = system.change(job);
    if (asked++ > 0) return done;
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    if (status->request_id.empty()) return JobResult(Error{Errc::kInvalidRequest, "no request", {}, 0});
    return JobResult(Error{Errc::kNotFound, "no such request", {}, 0});
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return worker().asked<StatusJob>().size() == 1; });
  restart();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<StatusJob>().size() == 1);
  CHECK(count() == 1);
  CHECK(row("NS::Box", "made-1").managed);
}

TEST_CASE_METHOD(RecoveryFixture, "a value that may not be the one that was made with is not forgotten in between") {
  start_discovered();
  make_and_crash();
  worker().on_job = [](const Job& job) -> Behaviour {  // no run finds it
    return std::holds_alternative<ListJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : Behaviour();
  };
  const bool plain = GENERATE(false, true);
  const bool same = GENERATE(false, true);
  CAPTURE(plain, same);
  const auto with = [&](const char* variable) {
    if (plain) return stack({box("a", {{"size", 1}, {"login", {{"user", "u"}, {"pin", variable}}}})});
    auto resource = box("a", {{"size", 1}, {"password", nullptr}});
    resource["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", variable}}}}}});
    return stack({resource});
  };
  REQUIRE(apply(with("FIRST"))["state"] == "failed");
  worker().on_go = {};
  edit("a", "size", 0);
  const auto id = begin(with(same ? "FIRST" : "SECOND"));
  wait_until([&] { return state_of("NS::Box", "made-1") == "present" && row("NS::Box", "made-1").managed; });
  restart();
  edit("a", "size", 1);
  const auto ended = end_of(id);
  CHECK(result_of(ended, "a") == (same ? "done" : "failed NOT_STABILIZED"));
  if (!same) CHECK_THAT(message_of(ended, "a"), Contains("whether its write-only values are those that are declared"));
}

TEST_CASE_METHOD(RecoveryFixture, "what may have been made before a restart is looked at when its command ends") {
  config.targets.front().discover = false;  // no run looks at it by itself
  start_discovered();
  worker().on_go = [this](const Job& job) -> Behaviour {
    if (std::get<CreateJob>(job.operation).properties.json.find("\"c\"") != std::string::npos) {
      return FakeWorker::Hold{};
    }
    static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  system.knows_keys = false;
  worker().on_job = [](const Job& job) -> Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation)) return {};
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  const auto id = begin(stack({box("a"), box("c")}));
  wait_until([&] { return result_of(api("command", {{"command", id}}), "a") == "failed INTERNAL_FAILURE"; });
  worker().on_job = {};
  restart();
  worker().on_go = {};
  CHECK(result_of(end_of(id), "c") == "done");
  finish_runs();
  CHECK(listed("NS::Box") == Strings{"made-1", "made-2"});
}

TEST_CASE_METHOD(RecoveryFixture, "a worker that comes back late keeps what it makes, and nobody else makes it") {
  start_discovered();
  worker().on_go = [](const Job&) { return Behaviour(FakeWorker::Hold{}); };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return worker().asked<CreateJob>().size() == 1; });
  advance(Millis(300));
  worker().alive = false;  // its connection, too
  restart();
  advance(Millis(6000));
  worker().alive = true;
  worker().announce();
  advance(Millis(3000));
  CHECK(worker().asked<CreateJob>().size() == 1);
  for (const auto& control : worker().controls) CHECK_FALSE(std::holds_alternative<Cancel>(control.action));
  const auto job = worker().asked<CreateJob>().front();
  worker().send_late(job, system.change(job));
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 1);
}
