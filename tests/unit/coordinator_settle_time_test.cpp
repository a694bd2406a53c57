// What is made need not show for the settle time of its type: until then nobody takes NOT_FOUND for its end.
#include <string>

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Behaviour = FakeWorker::Behaviour;
using Catch::Contains;

namespace {

constexpr Millis kSettle{120'000};
constexpr Millis kSoon{1000};

/// A system that shows what is made in it a while later.
struct SettleTimeFixture : CommandsFixture {
  SettleTimeFixture() {
    for (auto& type : manifest.types) type.settle = kSettle;
  }
  void begin_discovered() {
    start_discovered();
    script();
  }
  void script() {
    worker().on_job = [this](const Job& job) -> Behaviour {
      if (is_mutation(job.operation) || shows()) return {};
      if (std::holds_alternative<StatusJob>(job.operation)) return not_found();
      if (std::holds_alternative<ListJob>(job.operation)) return JobResult(ListResult{});
      const auto* read = std::get_if<ReadJob>(&job.operation);
      return read == nullptr ? Behaviour() : JobResult(ReadResult{{Error{Errc::kNotFound, "no such thing", {}, 0}}});
    };
  }
  /// What is made is told when it is asked for, whether it shows or not.
  void tell_by_status() {
    const auto scripted = worker().on_job;
    worker().on_job = [this, scripted](const Job& job) -> Behaviour {
      if (!std::holds_alternative<StatusJob>(job.operation)) return scripted(job);
      const auto& made = system.things["NS::Box"].front();
      return JobResult(MutationResult{MutationStatus::kSuccess, {}, made.id, made.uid, made.properties, Millis(0)});
    };
    worker().on_go = [this](const Job& job) -> Behaviour {
      static_cast<void>(system.change(job));
      return JobResult(MutationResult{MutationStatus::kInProgress, "r", {}, {}, {}, Millis(0)});
    };
  }
  static Behaviour not_found() { return JobResult(Error{Errc::kNotFound, "no such thing", {}, 0}); }
  [[nodiscard]] bool shows() const { return clock.now() >= shows_at; }
  /// It shows `after` it was made, which is now.
  void make(const Json& request, Millis after) {
    REQUIRE(apply(request)["state"] == "complete");
    shows_at = clock.now() + after;
  }
  [[nodiscard]] std::string state(const std::string& command) {
    return api("command", {{"command", command}})["state"].get<std::string>();
  }

  TimePoint shows_at = TimePoint::min();
};

}  // namespace

TEST_CASE_METHOD(SettleTimeFixture, "what was just made is changed when it shows") {
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(60'000));
  events();
  const auto id = begin(stack({box("a", {{"size", 2}})}));
  advance(Millis(50'000));
  CHECK(state(id) == "running");
  CHECK(state_of("NS::Box", "made-1") == "present");
  CHECK(end_of(id)["state"] == "complete");
  CHECK(thing("a")["size"] == 2);
  CHECK(apply(stack({box("a", {{"size", 3}})}))["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(resource_events() == Strings{"updated:made-1", "updated:made-1"});
}

TEST_CASE_METHOD(SettleTimeFixture, "what was just made is deleted when it shows") {
  begin_discovered();
  make(stack({box("a")}), Millis(60'000));
  const auto id = begin(stack({}));
  advance(Millis(50'000));
  CHECK(state(id) == "running");
  CHECK(worker().asked<DeleteJob>().empty());
  CHECK(state_of("NS::Box", "made-1") == "present");
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 0);
  CHECK(worker().asked<DeleteJob>().size() == 1);
  CHECK(state_of("NS::Box", "made-1") == "vanished");
}

TEST_CASE_METHOD(SettleTimeFixture, "what was just made is replaced when it shows") {
  begin_discovered();
  const std::string order = GENERATE("delete-first", "create-first");
  make(stack({box("a", {{"kind", "x"}})}), Millis(60'000));
  auto wanted = box("a", {{"kind", "y"}});
  wanted["replace"] = order;
  if (order == "create-first") wanted["properties"]["name"] = "a2";
  CHECK(apply(stack({wanted}))["state"] == "complete");
  CHECK(count() == 1);
  CHECK(system.things["NS::Box"].front().id == "made-2");
  CHECK(state_of("NS::Box", "made-1") == "vanished");
}

TEST_CASE_METHOD(SettleTimeFixture, "what does not show when its settle time is over is gone") {
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(0));
  system.things.clear();
  const bool deletes = GENERATE(false, true);
  const auto id = begin(deletes ? stack({}) : stack({box("a", {{"size", 2}})}));
  advance(kSettle - kSoon);
  CHECK(state(id) == "running");
  CHECK(state_of("NS::Box", "made-1") == "present");
  const auto asked = worker().asked<ReadJob>().size();
  CHECK(asked < 30);  // more and more seldom
  advance(2 * kSoon);
  CHECK(result_of(api("command", {{"command", id}}), "a") == (deletes ? "done" : "failed NOT_FOUND"));
  CHECK(state_of("NS::Box", "made-1") == (deletes ? "vanished" : "missing"));
}

TEST_CASE_METHOD(SettleTimeFixture, "what has settled is gone when it is not found") {
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(0));
  advance(kSettle);
  system.things.clear();
  SECTION("it is to be changed") {
    const auto id = begin(stack({box("a", {{"size", 2}})}));
    advance(kSoon);
    CHECK(result_of(api("command", {{"command", id}}), "a") == "failed NOT_FOUND");
  }
  SECTION("it is to be deleted") {
    const auto id = begin(stack({}));
    advance(kSoon);
    CHECK(result_of(api("command", {{"command", id}}), "a") == "done");
  }
}

TEST_CASE_METHOD(SettleTimeFixture, "what its stack has let go of shows no sooner for that") {
  begin_discovered();
  const auto declared = [](int size) { return stack({box("a", {{"size", size}})}); };
  std::string id = "made-1";
  SECTION("it was made") {
    make(declared(1), Millis(60'000));
  }
  SECTION("it was made under an id that something had before") {
    system.names_are_ids = true;
    id = "a";
    make(declared(1), Millis(0));
    REQUIRE(apply(stack({}))["state"] == "complete");
    make(declared(1), Millis(60'000));
  }
  SECTION("it was changed") {
    make(declared(1), Millis(0));
    advance(kSettle);
    make(declared(2), Millis(60'000));
  }
  SECTION("it was seen since, and changed by somebody else") {
    make(declared(1), Millis(0));
    edit("a", "size", 3);
    discover();
    shows_at = clock.now() + Millis(60'000);
  }
  REQUIRE(api("forget", {{"stack", "shop"}, {"names", {"a"}}})["count"] == 1);
  discover();
  CHECK(state_of("NS::Box", id) == "present");
  CHECK(events("resource.vanished").empty());
  advance(kSettle);
  discover();
  CHECK(state_of("NS::Box", id) == "present");
  system.things.clear();
  discover();
  CHECK(state_of("NS::Box", id) == "vanished");
}

TEST_CASE_METHOD(SettleTimeFixture, "a change that does not find what a read has seen is asked for once more") {
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(0));
  const auto later = clock.now() + Millis(60'000);
  Strings keys;
  worker().on_go = [&](const Job& job) -> Behaviour {
    const auto* update = std::get_if<UpdateJob>(&job.operation);
    keys.push_back(update != nullptr ? update->idempotency_key : std::get<DeleteJob>(job.operation).idempotency_key);
    return clock.now() < later ? not_found() : Behaviour();
  };
  SECTION("an update") {
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
    CHECK(thing("a")["size"] == 2);
  }
  SECTION("a delete") {
    CHECK(apply(stack({}))["state"] == "complete");
    CHECK(count() == 0);
  }
  REQUIRE(keys.size() > 2);
  CHECK(keys[0] != keys[1]);  // nothing was applied
}

TEST_CASE_METHOD(SettleTimeFixture, "a change of unknown outcome is not over because its object does not show") {
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(0));
  worker().on_go = [&](const Job&) -> Behaviour {
    worker().on_go = {};
    shows_at = clock.now() + Millis(60'000);
    return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
  };
  SECTION("an update") {
    CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
    CHECK(thing("a")["size"] == 2);
  }
  SECTION("a delete") {
    CHECK(apply(stack({}))["state"] == "complete");
    CHECK(count() == 0);
  }
}

TEST_CASE_METHOD(SettleTimeFixture, "a change in progress that is not found is asked for until it is") {
  begin_discovered();
  const bool creates = GENERATE(true, false);
  if (!creates) make(stack({box("a")}), Millis(0));
  std::optional<JobResult> done;
  worker().on_go = [&](const Job& job) -> Behaviour {
    done = system.change(job);
    shows_at = clock.now() + Millis(60'000);
    const std::string told = creates ? "" : "made-1";
    return JobResult(MutationResult{MutationStatus::kInProgress, "request", told, {}, {}, Millis(0)});
  };
  const auto hidden = worker().on_job;
  int polls = 0;
  worker().on_job = [&](const Job& job) -> Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return hidden(job);
    ++polls;
    return shows() ? Behaviour(*done) : not_found();
  };
  const auto id = begin(creates ? stack({box("a")}) : stack({}));
  advance(Millis(50'000));
  CHECK(state(id) == "running");
  CHECK(polls > 3);
  CHECK(end_of(id)["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(worker().asked<DeleteJob>().size() == (creates ? 0 : 1));
  CHECK(count() == (creates ? 1 : 0));
}

TEST_CASE_METHOD(SettleTimeFixture, "a coordinator that starts anew knows what was just made") {
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(60'000));
  const bool deletes = GENERATE(false, true);
  const auto wanted = deletes ? stack({}) : stack({box("a", {{"size", 2}})});
  std::string id;
  SECTION("before the next command") {
    restart();
    wait_until([&] { return api("workers")["items"].size() == 1; });
    id = begin(wanted);
  }
  SECTION("while a command waits for it") {
    id = begin(wanted);
    advance(Millis(5000));
    restart();
  }
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == (deletes ? 0 : 1));
  CHECK(worker().asked<CreateJob>().size() == 1);
  CHECK(worker().asked<DeleteJob>().size() == (deletes ? 1 : 0));
  if (!deletes) CHECK(thing("a")["size"] == 2);
}

TEST_CASE_METHOD(SettleTimeFixture, "what waits for something to show is cancelled at once by force") {
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(60'000));
  SECTION("before it is changed") {
    const auto id = begin(GENERATE(true, false) ? stack({}) : stack({box("a", {{"size", 2}})}));
    advance(Millis(5000));
    api("cancel", {{"command", id}, {"force", true}});
    advance(kSoon);
    CHECK(result_of(api("command", {{"command", id}}), "a") == "cancelled CANCELLED");
    CHECK(state_of("NS::Box", "made-1") == "present");
  }
  SECTION("after it may have been") {
    shows_at = clock.now();
    worker().on_go = [this](const Job&) -> Behaviour {
      shows_at = clock.now() + Millis(60'000);
      return JobResult(Error{Errc::kTimeout, "no answer", {}, 0});
    };
    const auto id = begin(stack({}));
    advance(Millis(5000));
    api("cancel", {{"command", id}, {"force", true}});
    advance(Millis(10'000));
    const auto ended = api("command", {{"command", id}});
    CHECK(result_of(ended, "a") == "cancelled CANCELLED");
    CHECK_THAT(message_of(ended, "a"), Contains("whether it was applied is not known"));
    CHECK(state_of("NS::Box", "made-1") == "stale");
  }
  CHECK(count() == 1);
}

TEST_CASE_METHOD(SettleTimeFixture, "what was told as made stays the stack's when it is cancelled before it shows") {
  begin_discovered();
  shows_at = clock.now() + Millis(60'000);
  tell_by_status();
  const auto id = begin(stack({box("a")}));
  advance(Millis(10'000));
  CHECK(state(id) == "running");
  api("cancel", {{"command", id}, {"force", true}});
  const auto ended = end_of(id);
  INFO(message_of(ended, "a"));
  CHECK(result_of(ended, "a") == "done");
  CHECK(row("NS::Box", "made-1").managed);
  advance(kSettle);
  discover();
  CHECK(state_of("NS::Box", "made-1") == "present");
  CHECK(plan(stack({box("a")}))["nothing"] == true);
}

TEST_CASE_METHOD(SettleTimeFixture, "what was told as made, and is not there, is not taken in when it is cancelled") {
  for (auto& type : manifest.types) type.settle = Millis(0);
  begin_discovered();
  shows_at = TimePoint::max();
  tell_by_status();
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return !worker().asked<ReadJob>().empty(); });
  REQUIRE(state(id) == "running");
  api("cancel", {{"command", id}, {"force", true}});
  const auto ended = end_of(id);
  INFO(message_of(ended, "a"));
  CHECK(ended["state"] != "complete");
  CHECK(state_of("NS::Box", "made-1") == "absent");
}

TEST_CASE_METHOD(SettleTimeFixture, "what may have been made is looked for again when it shows") {
  begin_discovered();
  shows_at = clock.now() + kSettle / 2;
  tell_by_status();
  const auto told = worker().on_job;
  worker().on_job = [told](const Job& job) {
    return std::holds_alternative<StatusJob>(job.operation) ? Behaviour(FakeWorker::Hold{}) : told(job);
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return !worker().asked<StatusJob>().empty(); });
  api("cancel", {{"command", id}, {"force", true}});
  SECTION("when its command ends") {}
  SECTION("and when it is told of later, too") {
    advance(kSoon);
    const auto create = worker().asked<CreateJob>().front();
    worker().send_late(create, MutationResult{MutationStatus::kSuccess, {}, "made-1", {}, "{}", {}});
    advance(kSoon);
    CHECK(worker().acks.back().verdict == Verdict::kSuperseded);
  }
  CHECK(result_of(end_of(id), "a") == "cancelled CANCELLED");
  CHECK(state_of("NS::Box", "made-1") == "absent");
  advance(kSettle + Millis(10'000));
  CHECK(state_of("NS::Box", "made-1") == "present");
}

TEST_CASE_METHOD(SettleTimeFixture, "what waits for something to show tells of it, and ends within its hour") {
  for (auto& type : manifest.types) type.settle = Millis(7'200'000);
  begin_discovered();
  make(stack({box("a", {{"size", 1}})}), Millis(7'000'000));
  events();
  const auto id = begin(GENERATE(true, false) ? stack({}) : stack({box("a", {{"size", 2}})}));
  advance(Millis(5000));
  CHECK_FALSE(events("command.progress").empty());
  const auto failed = end_of(id);
  CHECK(result_of(failed, "a") == "failed NOT_STABILIZED");
  CHECK(state_of("NS::Box", "made-1") == "present");
}

TEST_CASE_METHOD(SettleTimeFixture, "what is made in something new waits until that shows") {
  manifest.types[1].parent = "NS::Box";
  begin_discovered();
  auto inner = box("inner");
  inner["type"] = "NS::Item";
  inner["parent"] = "outer";
  TimePoint shown;
  worker().on_go = [&](const Job& job) -> Behaviour {
    if (job.type == "NS::Box") {
      shown = clock.now() + Millis(60'000);
      return {};
    }
    return clock.now() < shown ? not_found() : Behaviour();
  };
  CHECK(apply(stack({box("outer"), inner}))["state"] == "complete");
  CHECK(system.things["NS::Item"].size() == 1);
}

TEST_CASE_METHOD(SettleTimeFixture, "what is made in something that has gone is not waited for") {
  manifest.types[1].parent = "NS::Box";
  begin_discovered();
  make(stack({box("outer")}), Millis(0));
  advance(kSettle);
  auto inner = box("inner");
  inner["type"] = "NS::Item";
  inner["parent"] = "outer";
  worker().on_go = [](const Job&) { return not_found(); };
  const auto id = begin(stack({box("outer"), inner}));
  advance(kSoon);
  CHECK(result_of(api("command", {{"command", id}}), "inner") == "failed NOT_FOUND");
}

TEST_CASE_METHOD(SettleTimeFixture, "what is made anew under the id of what had gone is new") {
  system.names_are_ids = true;
  begin_discovered();
  make(stack({box("a")}), Millis(0));
  advance(kSettle);
  system.things.clear();
  discover();
  REQUIRE(state_of("NS::Box", "a") == "missing");
  advance(kSettle);
  make(stack({box("a")}), Millis(60'000));
  CHECK(apply(stack({}))["state"] == "complete");
  CHECK(count() == 0);
  CHECK(worker().asked<DeleteJob>().size() == 1);
}
