// What becomes of a declaration: each object is made once, whatever is lost on the way, and every command ends.
#include <algorithm>

#include <catch2/catch.hpp>

#include "support/coordinator_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Catch::Contains;

namespace {

constexpr const char* kSchema = R"({"type":"object","x-muster-identity":["name"],"properties":{
  "name":{"type":"string"},"size":{"type":"integer"},"link":{"type":"string"},
  "kind":{"type":"string","x-muster-create-only":true},
  "id":{"type":"string","readOnly":true},"password":{"type":"string","writeOnly":true,"x-muster-secret":true}}})";

struct Commands : CoordinatorFixture {
  Commands() {
    for (auto& type : manifest.types) {
      type.schema = kSchema;
      type.parent.clear();
      type.operations = {Operation::kList,   Operation::kRead,   Operation::kCreate,
                         Operation::kUpdate, Operation::kDelete, Operation::kStatus};
    }
    config.retry = {5, Millis(10), Millis(50)};
  }

  static Json box(const std::string& name, Json properties = Json::object()) {
    properties["name"] = name;
    return {{"name", name}, {"type", "NS::Box"}, {"target", "t"}, {"properties", properties}};
  }
  /// Refers to another one's id.
  static Json linked(const std::string& name, const std::string& to) {
    auto resource = box(name, {{"link", nullptr}});
    resource["holes"] = Json::array({{{"pointer", "/link"}, {"parts", {{{"resource", to}, {"path", "id"}}}}}});
    return resource;
  }
  static Json stack(const std::vector<Json>& resources, const std::string& mode = "reconcile") {
    return {{"stacks", {{{"stack", "shop"}, {"resources", resources}}}}, {"mode", mode}};
  }
  std::string begin(const Json& request) {
    const auto answer = api("apply", request);
    INFO(answer.dump());
    REQUIRE(answer.contains("command"));
    return answer["command"].is_string() ? answer["command"].get<std::string>() : "";
  }
  Json end_of(const std::string& id) {
    wait_until(
        [&] {
          return !api("command", {{"command", id}, {"brief", true}})["finished_at"].is_null();
        },
        Millis(4'000'000));
    return api("command", {{"command", id}});
  }
  Json apply(const Json& request) {
    const auto id = begin(request);
    return id.empty() ? Json{{"state", "complete"}, {"results", Json::array()}} : end_of(id);
  }
  static std::string result_of(const Json& command, const std::string& name) {
    for (const auto& result : command["results"]) {
      if (result["name"] == name) {
        return result["state"].get<std::string>() +
               (result["code"].is_null() ? "" : " " + result["code"].get<std::string>());
      }
    }
    return "absent";
  }
  static std::string message_of(const Json& command, const std::string& name) {
    for (const auto& result : command["results"]) {
      if (result["name"] == name && result["message"].is_string()) return result["message"];
    }
    return {};
  }
  Json plan(const Json& request) { return api("plan", request); }
  std::size_t count() { return system.things["NS::Box"].size(); }
  Json thing(const std::string& name) {
    for (const auto& each : system.things["NS::Box"]) {
      auto properties = Json::parse(each.properties);
      if (properties["name"] == name) return properties;
    }
    return {};
  }
  void edit(const std::string& name, const std::string& field, const Json& value) {
    for (auto& each : system.things["NS::Box"]) {
      auto properties = Json::parse(each.properties);
      if (properties["name"] != name) continue;
      properties[field] = value;
      each.properties = properties.dump();
    }
  }
  FakeWorker& worker(std::size_t index = 0) { return *workers.at(index); }
};

}  // namespace

TEST_CASE_METHOD(Commands, "what is declared is made in order, once, and then nothing is left to do") {
  start_discovered();
  events();
  const auto done = apply(stack({linked("b", "a"), box("a", {{"size", 3}})}));
  CHECK(done["state"] == "complete");
  CHECK(count() == 2);
  CHECK(thing("b")["link"] == thing("a")["id"]);
  CHECK(listed("NS::Box").size() == 2);
  const auto line = api("resources", {{"managed", true}})["items"].at(0);
  CHECK(line["stack"] == "shop");
  advance(Millis(500));
  Strings told;
  for (const auto& event : events()) {
    const auto type = event["type"].get<std::string>();
    if (type != "muster.command.progress") told.push_back(type);
  }
  CHECK(told == Strings{"muster.command.started", "muster.resource.created", "muster.resource.created",
                        "muster.command.finished"});
  CHECK(api("resource", {{"id", line["id"]}, {"history", true}})["history"].at(0)["cause"] == "created");

  const auto jobs = worker().jobs.size();
  const auto again = api("apply", stack({linked("b", "a"), box("a", {{"size", 3}})}));
  CHECK(again["command"].is_null());
  CHECK(worker().jobs.size() == jobs);
  CHECK(discover()["state"] == "complete");
  CHECK(plan(stack({linked("b", "a"), box("a", {{"size", 3}})}))["nothing"] == true);
}

TEST_CASE_METHOD(Commands, "a change is made of what is there, guarded by what was read") {
  start_discovered();
  apply(stack({box("a", {{"size", 3}})}));
  events();
  const auto done = apply(stack({box("a", {{"size", 4}})}));
  CHECK(done["state"] == "complete");
  CHECK(thing("a")["size"] == 4);
  const auto update = std::get<UpdateJob>(worker().asked<UpdateJob>().back().operation);
  CHECK(update.patch == R"([{"op":"replace","path":"/size","value":4}])");
  CHECK_FALSE(update.precondition.state_hash.empty());
  advance(Millis(500));
  CHECK(resource_events() == Strings{"updated:made-1"});
  SECTION("what changed in other ways since it was planned is a conflict") {
    auto draft = plan(stack({box("a", {{"size", 5}, {"link", "x"}})}))["draft"];
    edit("a", "size", 5);
    discover();
    const auto refused = api("apply", {{"draft", draft}});
    CHECK_THAT(refused["error"]["message"].get<std::string>(), Contains("has changed"));
    CHECK(thing("a").contains("link") == false);
  }
  SECTION("what was changed behind the inventory's back stays within the plan") {
    edit("a", "kind", "other");
    CHECK(apply(stack({box("a", {{"size", 5}})}))["state"] == "complete");
    CHECK(thing("a")["kind"] == "other");
  }
}

TEST_CASE_METHOD(Commands, "a create-only change replaces; what is not declared any more goes when all else is done") {
  start_discovered();
  apply(stack({box("a", {{"kind", "x"}}), linked("b", "a"), box("old")}));
  const auto first = thing("a")["id"];
  SECTION("all is well") {
    CHECK(apply(stack({box("a", {{"kind", "y"}}), linked("b", "a")}))["state"] == "complete");
    CHECK(count() == 2);
    CHECK(thing("a")["id"] != first);
    CHECK(thing("b")["link"] == thing("a")["id"]);
    CHECK(state_of("NS::Box", first.get<std::string>()) == "vanished");
  }
  SECTION("the new one first, where it is declared so") {
    auto other = box("a2", {{"kind", "y"}});
    other["name"] = "a";
    other["replace"] = "create-first";
    CHECK(apply(stack({other, linked("b", "a")}))["state"] == "complete");
    CHECK(count() == 2);
    CHECK(state_of("NS::Box", first.get<std::string>()) == "vanished");
  }
  SECTION("something fails: nothing is deleted, what needs it is blocked") {
    worker().on_go = [](const Job& job) -> FakeWorker::Behaviour {
      if (std::holds_alternative<CreateJob>(job.operation)) return JobResult(Error{Errc::kAccessDenied, "no", {}, 0});
      return {};
    };
    const auto done = apply(stack({box("a", {{"kind", "x"}}), linked("b", "a"), box("c"), linked("d", "c")}));
    CHECK(done["state"] == "failed");
    CHECK(result_of(done, "c") == "failed ACCESS_DENIED");
    CHECK(result_of(done, "d") == "blocked BLOCKED");
    CHECK_THAT(message_of(done, "d"), Contains("waits for c"));
    CHECK(result_of(done, "old") == "blocked BLOCKED");
    CHECK(count() == 3);
  }
  SECTION("destroyed in reverse") {
    Strings order;
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      order.push_back(std::get<DeleteJob>(job.operation).native_id);
      return {};
    };
    const auto id_b = thing("b")["id"].get<std::string>();
    CHECK(apply(stack({}, "destroy"))["state"] == "complete");
    CHECK(count() == 0);
    CHECK(std::ranges::find(order, id_b) < std::ranges::find(order, first.get<std::string>()));
    CHECK(listed("NS::Box").empty());
  }
}

TEST_CASE_METHOD(Commands, "an answer that is lost makes no second object") {
  const bool keys = GENERATE(true, false);
  CAPTURE(keys);
  system.knows_keys = keys;
  start_discovered();
  int lost = 0;
  SECTION("the worker did it and died") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      static_cast<void>(system.change(job));
      return FakeWorker::Silent{};
    };
    CHECK(apply(stack({box("a")}))["state"] == "complete");
  }
  SECTION("it did it, and answered that it may have failed") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      static_cast<void>(system.change(job));
      return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
    };
    CHECK(apply(stack({box("a")}))["state"] == "complete");
  }
  SECTION("it did nothing, and answered that it may have failed") {
    worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      return JobResult(Error{Errc::kServiceUnavailable, "busy", {}, 0});
    };
    CHECK(apply(stack({box("a")}))["state"] == "complete");
  }
  SECTION("the coordinator dies while it is done") {
    worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      static_cast<void>(system.change(job));
      crash();
      return FakeWorker::Silent{};
    };
    const auto id = begin(stack({box("a")}));
    settle();
    REQUIRE(lost == 1);
    start();
    CHECK(end_of(id)["state"] == "complete");
  }
  SECTION("the coordinator dies before it is done, and the worker does it afterwards") {
    worker().on_go = [&](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
    const auto id = begin(stack({box("a")}));
    advance(Millis(300));
    restart();
    advance(Millis(1500));  // a heartbeat says that it has the job still
    CHECK(worker().asked<CreateJob>().size() == 1);
    worker().on_go = {};
    worker().release();
    settle();
    const auto late = worker().asked<CreateJob>().front();
    worker().send_late(late,
                       MutationResult{MutationStatus::kSuccess, {}, "made-1", "uid-made-1", thing("a").dump(), {}});
    settle();
    CHECK(worker().acks.back().verdict == Verdict::kCommitted);
    CHECK(end_of(id)["state"] == "complete");
    CHECK(worker().asked<CreateJob>().size() == 1);
  }
  CHECK(count() == 1);
  CHECK(listed("NS::Box") == Strings{"made-1"});
  CHECK(plan(stack({box("a")}))["nothing"] == true);
}

TEST_CASE_METHOD(Commands, "an update or deletion of unknown outcome is settled by a read") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  int lost = 0;
  const bool done = GENERATE(true, false);
  CAPTURE(done);
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (lost++ > 0) return {};
    if (done) static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  SECTION("update") {
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
    CHECK(thing("a")["size"] == 2);
    CHECK(worker().asked<UpdateJob>().size() == (done ? 1 : 2));
  }
  SECTION("deletion") {
    CHECK(apply(stack({}))["state"] == "complete");
    CHECK(count() == 0);
    CHECK(worker().asked<DeleteJob>().size() == (done ? 1 : 2));
  }
}

TEST_CASE_METHOD(Commands, "what is not known in the end is said, and found by the next look") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (count() == 0) static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  const auto failed = apply(stack({box("a")}));
  CHECK(failed["state"] == "failed");
  CHECK(result_of(failed, "a") == "failed INTERNAL_FAILURE");
  CHECK_THAT(message_of(failed, "a"), Contains("not known"));
  worker().on_go = {};
  SECTION("by discovery: the next apply adopts it") {
    discover();
  }
  SECTION("by the worker's own word, later") {
    const auto job = worker().asked<CreateJob>().front();
    worker().send_late(job, MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), {}});
    settle();
    CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
    finish_runs();
  }
  CHECK(plan(stack({box("a")}))["summary"]["adopt"] == 1);
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(count() == 1);
}

TEST_CASE_METHOD(Commands, "what may have been made is asked for again under the same key by the next command") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (count() == 0) static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  CHECK(apply(stack({box("a")}))["state"] == "failed");
  const auto first = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key;
  worker().on_go = {};
  SECTION("the system knows keys") {}
  SECTION("the system knows names") {
    system.knows_keys = false;
  }
  SECTION("unless it is found and adopted") {
    api("discover");
    finish_runs();
    CHECK(apply(stack({box("a")}))["state"] == "complete");
    CHECK(apply(stack({}))["state"] == "complete");
    CHECK(apply(stack({box("a")}))["state"] == "complete");
    CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key != first);
    CHECK(count() == 1);
    return;
  }
  // Nobody has looked since: the inventory does not know of it.
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key == first);
  CHECK(count() == 1);
  CHECK(apply(stack({}))["state"] == "complete");
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key != first);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(Commands, "what may have been made is never told as not made, though what it refers to is gone") {
  start_discovered();
  system.knows_keys = false;
  const auto wanted = stack({box("a"), linked("b", "a")});
  int asked = 0;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (count() == 0) return {};
    if (asked++ > 0) return FakeWorker::Hold{};
    static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
  };
  const auto id = begin(wanted);
  wait_until([&] { return asked > 1; });
  system.remove("NS::Box", thing("a")["id"]);
  api("discover");
  wait_until([&] { return state_of("NS::Box", "made-1") == "missing"; });
  REQUIRE(api("command", {{"command", id}})["state"] == "running");
  worker().on_go = {};
  SECTION("it is found by its name") {
    worker().release();
    const auto failed = end_of(id);
    CHECK(result_of(failed, "b") == "failed NOT_STABILIZED");
    CHECK_THAT(message_of(failed, "b"), Contains("done, and whether it is as declared is not known: /link refers to"));
    CHECK(row("NS::Box", "made-2").managed);
  }
  SECTION("it is not asked for again, as it cannot be said what") {
    restart();
    CHECK_THAT(message_of(end_of(id), "b"), Contains("whether it was applied is not known: /link refers to"));
    discover();
  }
  CHECK(count() == 1);
  CHECK(apply(wanted)["state"] == "complete");
  CHECK(count() == 2);
  CHECK(thing("b")["id"] == "made-2");
  CHECK(thing("b")["link"] == thing("a")["id"]);
}

TEST_CASE_METHOD(Commands, "what may have been made is never told as not made, though its target may be another") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return count() == 1; });
  system.inspection.system = "system-2";
  api("discover");
  wait_until([&] { return api("targets")["items"].at(0)["state"] == "changed"; });
  restart();
  const auto failed = end_of(id);
  CHECK(result_of(failed, "a") == "failed TARGET_CHANGED");
  CHECK_THAT(message_of(failed, "a"), Contains("whether it was applied is not known"));
  worker().on_go = {};
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {  // nobody has looked since
    return std::holds_alternative<ListJob>(job.operation) ? FakeWorker::Behaviour{FakeWorker::Hold{}}
                                                          : std::monostate{};
  };
  api("targets-accept", {{"target", "t"}});
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(count() == 1);
  const auto creates = worker().asked<CreateJob>();
  CHECK(std::get<CreateJob>(creates.back().operation).idempotency_key ==
        std::get<CreateJob>(creates.front().operation).idempotency_key);
}

TEST_CASE_METHOD(Commands, "what a replacement may have made is asked for again under the same key") {
  start_discovered();
  apply(stack({box("a", {{"kind", "x"}})}));
  auto wanted = box("a", {{"kind", "y"}});
  SECTION("the old one goes first") {
    wanted["replace"] = "delete-first";
  }
  SECTION("the new one comes first") {
    wanted = box("a2", {{"kind", "y"}});
    wanted["name"] = "a";
    wanted["replace"] = "create-first";
  }
  int made = 0;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<CreateJob>(job.operation)) return {};
    if (made++ == 0) static_cast<void>(system.change(job));
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  CHECK(apply(stack({wanted}))["state"] == "failed");
  const auto first = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key;
  worker().on_go = {};
  CHECK(apply(stack({wanted}))["state"] == "complete");
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key == first);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(Commands, "a result of nobody's job is refused, one that was taken is confirmed again") {
  start_discovered();
  apply(stack({box("a")}));
  CHECK(worker().acks.back().verdict == Verdict::kCommitted);
  auto job = worker().asked<CreateJob>().front();
  const MutationResult done{MutationStatus::kSuccess, {}, "made-1", {}, "{}", {}};
  worker().send_late(job, done);
  settle();
  CHECK(worker().acks.back().verdict == Verdict::kCommitted);
  job.id = JobId("unheard-of");
  worker().send_late(job, done);
  settle();
  CHECK(worker().acks.back().verdict == Verdict::kRefused);
}

TEST_CASE_METHOD(Commands, "changes in progress are asked for until they end") {
  start_discovered();
  int polls = 0;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    CHECK(status->request_id == "request-1");
    if (++polls == 2) restart();
    if (polls < 4) return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, thing("a").dump(), {}});
  };
  const auto id = begin(stack({box("a")}));
  CHECK(end_of(id)["state"] == "complete");
  CHECK(polls >= 4);
  CHECK(worker().asked<CreateJob>().size() == 1);
}

TEST_CASE_METHOD(Commands, "what is made in place of another is asked for without the other's id") {
  start_discovered();
  auto wanted = box("a", {{"kind", "x"}});
  apply(stack({wanted}));
  SECTION("the new one comes first") {
    wanted = box("a2", {{"kind", "y"}});
    wanted["name"] = "a";
    wanted["replace"] = "create-first";
  }
  SECTION("the old one is gone") {
    system.remove("NS::Box", "made-1");
    discover();
  }
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<CreateJob>(job.operation)) return {};
    static_cast<void>(system.change(job));
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* status = std::get_if<StatusJob>(&job.operation);
    if (status == nullptr) return {};
    CHECK(status->native_id.empty());
    const auto made = thing(wanted["properties"]["name"]).dump();
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "made-2", {}, made, {}});
  };
  CHECK(apply(stack({wanted}))["state"] == "complete");
  CHECK(worker().asked<StatusJob>().size() == 1);
  CHECK(listed("NS::Box") == Strings{"made-2"});
}

TEST_CASE_METHOD(Commands, "a change that never shows is found out") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    edit("a", "size", 7);
    auto& done = std::get<MutationResult>(result);
    done.properties = thing("a").dump();
    return result;
  };
  const auto failed = apply(stack({box("a", {{"size", 3}})}));
  CHECK(result_of(failed, "a") == "failed NOT_STABILIZED");
  CHECK_THAT(message_of(failed, "a"), Contains("/size was declared 3 and is 7"));
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(api("resources", {{"drifted", true}})["items"].size() == 1);
}

TEST_CASE_METHOD(Commands, "what was made is not made again by a coordinator that takes over while it is looked at") {
  start_discovered();
  system.knows_keys = false;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    auto result = system.change(job);
    std::get<MutationResult>(result).properties = R"({"name":"a","size":7})";  // it shows late
    return result;
  };
  const auto id = begin(stack({box("a", {{"size", 3}})}));
  wait_until([&] { return count() == 1 && !worker().asked<CreateJob>().empty(); });
  advance(Millis(10));
  REQUIRE(api("command", {{"command", id}})["state"] == "running");
  restart();
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(Commands, "what is there and not ours is no success") {
  start_discovered();
  system.add("NS::Box", {"theirs", R"({"name":"a"})", "u", ""});
  const auto failed = apply(stack({box("a")}));
  CHECK(result_of(failed, "a") == "failed ALREADY_EXISTS");
  CHECK_THAT(message_of(failed, "a"), Contains("muster discover"));
  discover();
  const auto before = row("NS::Box", "theirs").id;
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(row("NS::Box", "theirs").id == before);
  CHECK(row("NS::Box", "theirs").managed);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(Commands, "a command can be cancelled") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto id = begin(stack({box("a"), linked("b", "a")}));
  advance(Millis(200));
  SECTION("what runs ends") {
    CHECK(api("cancel", {{"command", id}})["cancel"] == "graceful");
    advance(Millis(2000));
    CHECK(api("command", {{"command", id}})["state"] == "running");
    worker().release();
    const auto ended = end_of(id);
    CHECK(ended["state"] == "cancelled");
    CHECK(result_of(ended, "a") == "done");
    CHECK(result_of(ended, "b") == "cancelled CANCELLED");
  }
  SECTION("what runs is stopped, and looked for") {
    api("cancel", {{"command", id}, {"force", true}});
    const auto ended = end_of(id);
    CHECK(ended["state"] == "cancelled");
    CHECK(count() == 0);
  }
  SECTION("a command of the stack waits, and can be cancelled before it begins") {
    const auto second = begin(stack({box("c")}, "patch"));
    CHECK(api("command", {{"command", second}})["state"] == "queued");
    CHECK(api("apply", {{"stacks", stack({box("d")})["stacks"]}, {"if_busy", "refuse"}})["error"]["code"] ==
          "CONFLICT");
    api("cancel", {{"command", second}});
    CHECK(end_of(second)["state"] == "cancelled");
    worker().on_go = {};
    worker().release();
    CHECK(end_of(id)["state"] == "complete");
    CHECK(api("cancel", {{"command", id}})["error"]["code"] == "CONFLICT");
  }
}

TEST_CASE_METHOD(Commands, "drift is told, field by field, and handled as declared") {
  start_discovered();
  auto declared = box("a", {{"size", 3}});
  const std::string on_drift = GENERATE("alert", "observe", "revert", "absorb");
  CAPTURE(on_drift);
  declared["on_drift"] = on_drift;
  apply(stack({declared}));
  events();
  edit("a", "size", 9);
  edit("a", "other", 1);  // not declared: not its business
  discover();
  advance(Millis(2000));
  Json drifted;
  for (const auto& event : events("resource.drifted")) drifted = event;
  const bool marked = !api("resources", {{"drifted", true}})["items"].empty();
  CHECK(marked == (on_drift == "alert"));
  CHECK(drifted.is_null() == (on_drift == "observe"));
  if (!drifted.is_null()) {
    CHECK(drifted["data"]["fields"] == Json::array({{{"path", "/size"}, {"declared", 3}, {"found", 9}}}));
  }
  CHECK(thing("a")["size"] == (on_drift == "revert" ? 3 : 9));
  CHECK(thing("a")["other"] == 1);
  const auto next = plan(stack({declared}))["summary"];
  CHECK(next["update"] == (on_drift == "revert" ? 0 : 1));
}

TEST_CASE_METHOD(Commands, "what is managed and gone stays in the list as missing, and is made again") {
  start_discovered();
  auto declared = box("a");
  SECTION("by the next apply") {}
  SECTION("by itself, where it is declared so") {
    declared["on_drift"] = "revert";
  }
  apply(stack({declared}));
  events();
  system.remove("NS::Box", "made-1");
  discover();
  advance(Millis(2000));
  if (declared.contains("on_drift")) {
    CHECK(count() == 1);
  } else {
    CHECK(state_of("NS::Box", "made-1") == "missing");
    CHECK(resource_events() == Strings{"drifted:made-1", "vanished:made-1"});
    discover();
    advance(Millis(500));
    CHECK(resource_events().empty());  // said once
    CHECK(plan(stack({declared}))["summary"]["create"] == 1);
    CHECK(apply(stack({declared}))["state"] == "complete");
  }
  CHECK(count() == 1);
  CHECK(listed("NS::Box") == Strings{"made-2"});
}

TEST_CASE_METHOD(Commands, "an observation that was asked for before a change says nothing of it") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  system.list_properties = true;
  // A page of the list that was read before the change arrives after it.
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.type != "NS::Box") return {};
    return FakeWorker::Hold{};
  };
  api("discover");
  advance(Millis(100));
  const auto old = std::get<ListResult>(system.answer(worker().asked<ListJob>().back()));
  worker().on_job = {};
  const auto list = *std::ranges::find_if(worker().jobs, [](const Job& job) {
    return std::holds_alternative<ListJob>(job.operation) && job.type == "NS::Box";
  });
  SECTION("an update") {
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
    CHECK(Json::parse(row("NS::Box", "made-1").properties)["size"] == 2);
  }
  SECTION("a deletion") {
    CHECK(apply(stack({}))["state"] == "complete");
  }
  events();
  worker().release();
  finish_runs();
  for (const auto& event : events("resource.")) INFO(event.dump());
  CHECK(api("resources", {{"drifted", true}})["items"].empty());
}

TEST_CASE_METHOD(Commands, "a target that may be another system is left alone") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  system.inspection.system = "system-2";
  discover();
  const auto failed = apply(stack({box("a", {{"size", 2}})}));
  CHECK(result_of(failed, "a") == "failed TARGET_CHANGED");
  CHECK_THAT(message_of(failed, "a"), Contains("muster targets accept t"));
  CHECK(worker().asked<UpdateJob>().empty());
}

TEST_CASE_METHOD(Commands, "targets of files are kept, and leave with what stood on them") {
  start_discovered();
  auto request = stack({box("a")});
  request["stacks"][0]["resources"][0]["target"] = "new";
  request["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}, {"discover", true}}});
  CHECK(apply(request)["state"] == "complete");
  restart();
  finish_runs();
  CHECK(api("targets")["items"].size() == 2);
  CHECK(api("targets")["items"].at(0)["state"] == "active");
  CHECK(plan(request)["nothing"] == true);
  request["targets"][0]["name"] = "t";
  CHECK_THAT(plan(request)["mistakes"].dump(), Contains("declared in the fleet's configuration"));
  request["targets"][0]["name"] = "new";
  request["mode"] = "destroy";
  CHECK(apply(request)["state"] == "complete");
  settle();
  CHECK(api("targets")["items"].at(0)["state"] == "removed");
}

TEST_CASE_METHOD(Commands, "secrets travel as references and are kept as such") {
  start_discovered();
  auto resource = box("a", {{"password", nullptr}});
  resource["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", "PG_PASSWORD"}}}}}});
  CHECK(apply(stack({resource}))["state"] == "complete");
  const auto create = std::get<CreateJob>(worker().asked<CreateJob>().back().operation);
  REQUIRE(create.properties.secrets.size() == 1);
  CHECK(create.properties.secrets[0].pointer == "/password");
  CHECK(create.properties.secrets[0].parts[0].kind == SecretPart::Kind::kEnv);
  CHECK(plan(stack({resource}))["nothing"] == true);
}
