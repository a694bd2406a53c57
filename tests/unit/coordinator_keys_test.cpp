// Keys of what may have been made: kept until it is known, and another for what is another change.
#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Catch::Contains;

TEST_CASE_METHOD(CommandsFixture, "what may have been made is asked for again under the same key by the next command") {
  start_discovered();
  make_and_crash();
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

TEST_CASE_METHOD(CommandsFixture, "what is told as made, and cannot be read, is asked for again under the same key") {
  start_discovered();
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    auto done = std::get<MutationResult>(system.change(job));
    done.properties.clear();
    return JobResult(done);
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ReadJob>(job.operation)) return {};
    return JobResult(ReadResult{{Error{Errc::kAccessDenied, "not for you", {}, 0}}});
  };
  CHECK(apply(stack({box("a")}))["state"] == "failed");
  worker().on_go = {};
  worker().on_job = {};
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  Strings keys;
  for (const auto& job : worker().asked<CreateJob>()) {
    keys.push_back(std::get<CreateJob>(job.operation).idempotency_key);
  }
  REQUIRE(keys.size() == 2);
  CHECK(keys[0] == keys[1]);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what came back under its name and was deleted is made anew under another key") {
  system.names_are_ids = true;
  start_discovered();
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  system.things.clear();
  discover();
  make_and_crash();
  CHECK(apply(stack({box("a")}))["state"] == "failed");
  const auto first = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key;
  worker().on_go = {};
  discover();
  CHECK(plan(stack({box("a")}))["summary"]["unchanged"] == 1);
  CHECK(apply(stack({}))["state"] == "complete");
  CHECK(count() == 0);
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key != first);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a key that has come to nothing after all is not asked for again") {
  start_discovered();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  CHECK(apply(stack({box("a")}))["state"] == "failed");
  const auto key = [&] { return std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key; };
  const auto first = key();
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(MutationResult{MutationStatus::kInProgress, "request-1", {}, {}, {}, Millis(0)});
  };
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<StatusJob>(job.operation)) return {};
    return JobResult(Error{Errc::kInvalidRequest, "no such size", {}, 0});
  };
  CHECK(result_of(apply(stack({box("a")})), "a") == "failed INVALID_REQUEST");
  CHECK(key() == first);
  worker().on_go = {};
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(key() != first);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "what a target tells of an old key is looked at: it may be gone since") {
  start_discovered();
  const auto with_pin = [](const char* pin) { return stack({box("a", {{"login", {{"user", "u"}, {"pin", pin}}}})}); };
  std::vector<FakeSystem::Thing> made;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (made.empty()) static_cast<void>(system.change(job));
    if (made.empty()) made = std::exchange(system.things["NS::Box"], {});
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  CHECK(apply(with_pin("1"))["state"] == "failed");
  const auto first = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::get<CreateJob>(job.operation).idempotency_key != first) return {};
    const auto& then = made.front();
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, then.id, then.uid, then.properties, {}});
  };
  CHECK(apply(with_pin("2"))["state"] == "complete");
  CHECK(count() == 1);
  CHECK(plan(with_pin("2"))["summary"]["unchanged"] == 1);  // it is the second's, and has what that declares
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key != first);
  worker().on_go = {};
  CHECK(apply(stack({}))["state"] == "complete");
  const auto creates = worker().asked<CreateJob>().size();
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(worker().asked<CreateJob>().size() == creates + 1);
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key != first);
}

TEST_CASE_METHOD(CommandsFixture, "what a command has made and lost is made again under another key") {
  start_discovered();
  std::string first;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto& key = std::get<CreateJob>(job.operation).idempotency_key;
    if (first.empty()) {
      first = key;
      return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
    }
    if (key != first) return {};
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, "lost", "uid-lost", R"({"name":"a"})", {}});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(listed("NS::Box") == std::vector<std::string>{"made-1"});
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key != first);
}

TEST_CASE_METHOD(CommandsFixture, "a key whose object is gone is not asked for by one command after the other") {
  start_discovered();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    system.things["NS::Box"].clear();
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  REQUIRE(apply(stack({box("a")}))["state"] == "failed");
  const auto key = [&] { return std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key; };
  const auto first = key();
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (std::get<CreateJob>(job.operation).idempotency_key != first) return {};
    return JobResult(Error{Errc::kNotFound, "made with this key, and deleted since", {}, 0});
  };
  const auto failed = apply(stack({box("a")}));
  CHECK(result_of(failed, "a") == "failed CONFLICT");
  CHECK_THAT(message_of(failed, "a"), Contains("apply again"));
  CHECK(key() == first);
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(key() != first);
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a key is not given up while what was made with it may not show yet") {
  manifest.types[0].settle = Millis(30'000);
  start_discovered();
  std::vector<FakeSystem::Thing> made;
  worker().on_go = [&](const Job& job) -> FakeWorker::Behaviour {
    if (made.empty()) static_cast<void>(system.change(job));
    if (made.empty()) made = std::exchange(system.things["NS::Box"], {});
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  REQUIRE(apply(stack({box("a")}))["state"] == "failed");
  const auto shows_at = clock.now() + Millis(25'000);
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    if (clock.now() < shows_at) return JobResult(Error{Errc::kNotFound, "not to be seen", {}, 0});
    system.things["NS::Box"] = made;
    const auto& then = made.front();
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, then.id, then.uid, then.properties, {}});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(count() == 1);
  CHECK(listed("NS::Box") == std::vector<std::string>{made.front().id});
}

TEST_CASE_METHOD(CommandsFixture, "a change that conflicts is asked for again as another") {
  start_discovered();
  apply(stack({box("a", {{"size", 1}})}));
  int asked = 0;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    if (asked++ > 0) return {};
    return JobResult(Error{Errc::kConflict, "busy", {}, 0});
  };
  CHECK(apply(stack({box("a", {{"size", 2}})}))["state"] == "complete");
  const auto updates = worker().asked<UpdateJob>();
  REQUIRE(updates.size() == 2);
  CHECK(std::get<UpdateJob>(updates[0].operation).idempotency_key !=
        std::get<UpdateJob>(updates[1].operation).idempotency_key);
}

TEST_CASE_METHOD(CommandsFixture, "what a replacement may have made is asked for again under the same key") {
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

TEST_CASE_METHOD(CommandsFixture,
                 "a key is spent once it is known what was made with it, though nothing tells objects apart") {
  for (auto& type : manifest.types) type.schema = R"({"type":"object"})";
  start_discovered();
  make_and_crash();
  REQUIRE(apply(stack({box("a")}))["state"] == "failed");
  const auto key = [&] { return std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key; };
  const auto first = key();
  worker().on_go = {};
  SECTION("by the one who asks with it again") {
    CHECK(apply(stack({box("a")}))["state"] == "complete");
  }
  SECTION("by the one who adopts it by its id") {
    discover();
    auto adopted = box("a");
    adopted["native_id"] = "made-1";
    CHECK(apply(stack({adopted}))["state"] == "complete");
  }
  CHECK(count() == 1);
  CHECK(key() == first);
  CHECK(apply(stack({}))["state"] == "complete");
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(key() != first);
}

TEST_CASE_METHOD(CommandsFixture, "a key with which another stack's object is told is not asked for again") {
  start_discovered();
  auto theirs = stack({box("b")});
  theirs["stacks"][0]["stack"] = "store";
  REQUIRE(apply(theirs)["state"] == "complete");
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour {
    return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
  };
  REQUIRE(apply(stack({box("a")}))["state"] == "failed");
  const auto key = [&] { return std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key; };
  const auto first = key();
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    const auto& there = system.thing("NS::Box", "made-1");
    return JobResult(MutationResult{MutationStatus::kSuccess, {}, there.id, there.uid, there.properties, {}});
  };
  CHECK(result_of(apply(stack({box("a")})), "a") == "failed CONFLICT");
  CHECK(key() == first);
  worker().on_go = {};
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(key() != first);
  CHECK(count() == 2);
}

TEST_CASE_METHOD(CommandsFixture, "a value that may not be the one that was made with is sent by the next apply") {
  start_discovered();
  make_and_crash();
  worker().on_job = [](const Job& job) -> FakeWorker::Behaviour {  // no run finds it
    const bool lists = std::holds_alternative<ListJob>(job.operation);
    return lists ? FakeWorker::Behaviour(FakeWorker::Hold{}) : FakeWorker::Behaviour();
  };
  const bool plain = GENERATE(false, true);
  const auto with = [&](const char* variable) {
    if (plain) return stack({box("a", {{"login", {{"user", "u"}, {"pin", variable}}}})});
    auto resource = box("a", {{"password", nullptr}});
    resource["holes"] = Json::array({{{"pointer", "/password"}, {"parts", {{{"env", variable}}}}}});
    return stack({resource});
  };
  REQUIRE(apply(with("FIRST"))["state"] == "failed");
  worker().on_go = {};
  SECTION("another") {
    const auto failed = apply(with("SECOND"));
    CHECK(result_of(failed, "a") == "failed NOT_STABILIZED");
    CHECK_THAT(message_of(failed, "a"), Contains("whether its write-only values are those that are declared"));
    CHECK(apply(with("SECOND"))["state"] == "complete");
    REQUIRE(worker().asked<UpdateJob>().size() == 1);
    CHECK(std::get<UpdateJob>(worker().asked<UpdateJob>()[0].operation).desired.secrets.size() == (plain ? 0 : 1));
    if (plain) CHECK(thing("a")["login"]["pin"] == "SECOND");
  }
  SECTION("another, of which nothing was heard, either") {
    make_and_crash();
    REQUIRE(result_of(apply(with("SECOND")), "a") == "failed INTERNAL_FAILURE");
    worker().on_go = {};
    CHECK(result_of(apply(with("SECOND")), "a") == "failed NOT_STABILIZED");
    CHECK(apply(with("SECOND"))["state"] == "complete");
    REQUIRE(worker().asked<UpdateJob>().size() == 1);
  }
  SECTION("that somebody else may have made it with") {
    system.knows_keys = false;
    worker().on_job = {};
    CHECK(result_of(apply(with("FIRST")), "a") == "failed NOT_STABILIZED");
    CHECK(apply(with("FIRST"))["state"] == "complete");
    REQUIRE(worker().asked<UpdateJob>().size() == 1);
    CHECK(plan(with("FIRST"))["summary"]["unchanged"] == 1);
  }
  SECTION("the same") {
    CHECK(apply(with("FIRST"))["state"] == "complete");
    CHECK(worker().asked<UpdateJob>().empty());
  }
  CHECK(count() == 1);
}

TEST_CASE_METHOD(CommandsFixture, "a key that an older version has kept is asked for again") {
  start_discovered();
  const auto place = Json{"shop", "a", "t", "NS::Box"}.dump();
  const std::string kept = GENERATE("old-key", R"(["old-key","",""])");
  REQUIRE(store->set_unsettled(place, kept));
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key == "old-key");
}

namespace {

struct PlacesFixture : CommandsFixture {
  PlacesFixture() { manifest.types[1].parent = "NS::Box"; }
  /// Two boxes, and an item in one of them.
  static Json with_item_in(const char* parent) {
    auto item = box("i");
    item["type"] = "NS::Item";
    item["parent"] = parent;
    return stack({box("a"), box("b"), item});
  }
  std::string key() { return std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key; }
  void refuse_items(bool made) {
    worker().on_go = [this, made](const Job& job) -> FakeWorker::Behaviour {
      if (job.type != "NS::Item") return {};
      if (made) static_cast<void>(system.change(job));
      return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
    };
  }
};

}  // namespace

TEST_CASE_METHOD(PlacesFixture, "a key is spent once what was made with it, in another thing, is adopted") {
  start_discovered();
  refuse_items(true);
  REQUIRE(apply(with_item_in("a"))["state"] == "failed");
  const auto first = key();
  worker().on_go = {};
  discover();
  REQUIRE(apply(with_item_in("a"))["state"] == "complete");
  CHECK(key() == first);
  CHECK(apply(stack({box("a"), box("b")}))["state"] == "complete");
  CHECK(apply(with_item_in("a"))["state"] == "complete");
  CHECK(key() != first);
}

TEST_CASE_METHOD(PlacesFixture, "however often something fails in one place, its key of another is kept") {
  start_discovered();
  refuse_items(false);
  REQUIRE(apply(with_item_in("a"))["state"] == "failed");
  const auto first = key();
  for (int i = 0; i < 17; ++i) {
    REQUIRE(apply(with_item_in("b"))["state"] == "failed");
    CHECK(key() != first);
  }
  worker().on_go = {};
  CHECK(apply(with_item_in("a"))["state"] == "complete");
  CHECK(key() == first);
}

TEST_CASE_METHOD(PlacesFixture, "of the places in which something may have been made no more than some are kept") {
  start_discovered();
  refuse_items(false);
  std::vector<Json> boxes;
  for (int i = 0; i < 17; ++i) boxes.push_back(box("b" + std::to_string(i)));
  const auto with_item = [&](int place) {
    auto item = box("i");
    item["type"] = "NS::Item";
    item["parent"] = "b" + std::to_string(place);
    auto all = boxes;
    all.push_back(item);
    return stack(all);
  };
  Strings keys;
  for (int i = 0; i < 17; ++i) {
    REQUIRE(apply(with_item(i))["state"] == "failed");
    keys.push_back(key());
  }
  const auto kept = Json::parse(store->unsettled(Json{"shop", "i", "t", "NS::Item"}.dump()).value());
  CHECK(kept["keys"].size() == 16);
  worker().on_go = {};
  CHECK(apply(with_item(1))["state"] == "complete");  // the oldest went
  CHECK(key() == keys[1]);
}

TEST_CASE_METHOD(CommandsFixture, "what may have been made keeps its key while nobody serves its type") {
  for (auto& type : manifest.types) type.schema = R"({"type":"object"})";
  start_discovered();
  worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
    static_cast<void>(system.change(job));
    return FakeWorker::Hold{};
  };
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return count() == 1; });
  auto lesser = manifest;
  std::erase_if(lesser.types, [](const TypeDescriptor& type) { return type.name == "NS::Box"; });
  lesser.version = "2.0.0";
  add_worker("w2", lesser);
  advance(Millis(1500));
  const auto first = std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key;
  crash();
  remove_worker("w1");
  start();
  const auto failed = end_of(id);
  CHECK(result_of(failed, "a") == "failed UNSUPPORTED");
  CHECK_THAT(message_of(failed, "a"), Contains("whether it was applied is not known"));
  remove_worker("w2");
  add_worker("w3");
  advance(Millis(15'000));
  finish_runs();
  REQUIRE(apply(stack({box("a")}))["state"] == "complete");
  CHECK(std::get<CreateJob>(worker().asked<CreateJob>().back().operation).idempotency_key == first);
  CHECK(count() == 1);
}
