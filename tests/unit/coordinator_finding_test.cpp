// What may have been made, looked for by what identifies it.
#include <functional>
#include <set>
#include <string>

#include "support/commands_fixture.h"

using namespace muster;
using test::CommandsFixture;
using test::FakeWorker;

namespace {

struct FindingFixture : CommandsFixture {
  /// A target that has so many things beside, and says of the second attempt at a creation only that the name is taken.
  void start_with(int others, std::uint32_t read_batch = 0) {
    for (auto& type : manifest.types) type.read_batch = read_batch;
    for (int i = 0; i < others; ++i) {
      const auto id = "other-" + std::to_string(i);
      system.add("NS::Box", {id, Json{{"name", id}}.dump(), "uid-" + id, ""});
    }
    system.page = 1000;
    system.knows_keys = false;
    start_discovered();
    worker().jobs.clear();
    worker().on_go = [this](const Job& job) -> FakeWorker::Behaviour {
      if (lost++ > 0) return {};
      static_cast<void>(system.change(job));
      return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
    };
  }
  std::size_t creations() { return worker().asked<CreateJob>().size(); }

  int lost = 0;
};

}  // namespace

TEST_CASE_METHOD(FindingFixture, "what may have been made is looked for in batches, each id once") {
  start_with(100, 10);
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(count() == 101);
  std::multiset<std::string> read;
  for (const auto& job : worker().asked<ReadJob>()) {
    const auto& ids = std::get<ReadJob>(job.operation).native_ids;
    CHECK(ids.size() <= 10);
    read.insert(ids.begin(), ids.end());
  }
  CHECK(read.size() >= 101);
  for (int i = 0; i < 100; ++i) CHECK(read.count("other-" + std::to_string(i)) == 1);
}

TEST_CASE_METHOD(FindingFixture, "what can never be seen does not keep the rest from being looked at") {
  start_with(3);
  system.page = 1;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (list == nullptr || !list->page_token.empty()) return {};
    auto answer = std::get<ListResult>(system.answer(job));
    answer.problems.push_back({"broken", Error{Errc::kInternalFailure, "bug", {}, 0}});
    return JobResult(answer);
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(creations() == 2);
}

TEST_CASE_METHOD(FindingFixture, "what is gone or hidden for good by the time it is read is not what is looked for") {
  const auto code = GENERATE(Errc::kNotFound, Errc::kAccessDenied);
  start_with(3);
  worker().on_go = [this](const Job&) -> FakeWorker::Behaviour {
    if (lost == 2) return {};
    return JobResult(Error{lost++ == 0 ? Errc::kNetwork : Errc::kAccessDenied, "no", {}, 0});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (lost == 0 || count() > 3 || !std::holds_alternative<ReadJob>(job.operation)) return {};
    auto answer = std::get<ReadResult>(system.answer(job));
    answer.items.front() = Error{code, "no", {}, 0};
    return JobResult(answer);
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(creations() == 3);
}

TEST_CASE_METHOD(FindingFixture, "what a read of one id tells of another is not what is looked for") {
  start_with(3);
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    if (read == nullptr || read->native_ids.size() == 1) return {};
    auto answer = std::get<ReadResult>(system.answer(job));
    answer.items.front() = Item{"elsewhere", "uid-elsewhere", R"({"name":"a"})"};
    return JobResult(answer);
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(state_of("NS::Box", "elsewhere") == "absent");
  CHECK(row("NS::Box", thing("a")["id"].get<std::string>()).managed);
}

TEST_CASE_METHOD(FindingFixture, "a search that a plugin leads astray ends") {
  start_with(3);
  std::string message;
  std::function<FakeWorker::Behaviour(const Job&)> astray;
  SECTION("by a token that comes again") {
    message = "the same page token twice";
    astray = [](const Job& job) -> FakeWorker::Behaviour {
      if (!std::holds_alternative<ListJob>(job.operation)) return {};
      return JobResult(ListResult{{}, "again", {}, 0});
    };
  }
  int pages = 0;
  SECTION("by pages without end that bring nothing") {
    message = "1000 pages in a row brought no id";
    astray = [&pages](const Job& job) -> FakeWorker::Behaviour {
      if (!std::holds_alternative<ListJob>(job.operation)) return {};
      return JobResult(ListResult{{}, ++pages < 5000 ? "after-" + std::to_string(pages) : "", {}, 0});
    };
  }
  SECTION("by another answer than was asked for") {
    message = "something else than it was asked for";
    astray = [](const Job& job) -> FakeWorker::Behaviour {
      if (!std::holds_alternative<ListJob>(job.operation)) return {};
      return JobResult(ReadResult{});
    };
  }
  SECTION("by answers for other ids") {
    message = "did not answer for each id";
    astray = [](const Job& job) -> FakeWorker::Behaviour {
      const auto* read = std::get_if<ReadJob>(&job.operation);
      if (read == nullptr || read->native_ids.size() == 1) return {};
      return JobResult(ReadResult{});
    };
  }
  worker().on_job = astray;
  const auto failed = apply(stack({box("a")}));
  CHECK(result_of(failed, "a") == "failed CONTRACT");
  CHECK_THAT(message_of(failed, "a"), Catch::Contains(message));
}

TEST_CASE_METHOD(FindingFixture, "a search takes no longer than a step may") {
  start_with(3);
  int pages = 0;
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    if (!std::holds_alternative<ListJob>(job.operation) || job.priority != Priority::kCommand) return {};
    clock.advance(Millis(60'000));
    const Item same{"other-0", {}, R"({"name":"other-0"})"};
    return JobResult(ListResult{{same}, ++pages < 500 ? "after-" + std::to_string(pages) : "", {}, 0});
  };
  const auto failed = apply(stack({box("a")}));
  CHECK(result_of(failed, "a") == "failed TIMEOUT");
  CHECK_THAT(message_of(failed, "a"), Catch::Contains("whether it was applied is not known"));
  CHECK(pages < 100);
}

TEST_CASE_METHOD(FindingFixture, "what cannot be seen for the time being may be what is looked for") {
  start_with(3);
  int hidden = 0;
  SECTION("a read of it fails") {
    worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
      const auto* read = std::get_if<ReadJob>(&job.operation);
      if (read == nullptr || read->native_ids.size() == 1 || hidden++ > 0) return {};
      auto answer = std::get<ReadResult>(system.answer(job));
      answer.items.back() = Error{Errc::kThrottling, "slowly", {}, 0};
      return JobResult(answer);
    };
  }
  SECTION("a part of the listing fails") {
    worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
      if (!std::holds_alternative<ListJob>(job.operation) || hidden++ > 0) return {};
      auto answer = std::get<ListResult>(system.answer(job));
      answer.items.pop_back();
      answer.problems.push_back({{}, Error{Errc::kNetwork, "reset", {}, 0}});
      return JobResult(answer);
    };
  }
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(hidden > 1);
  CHECK(count() == 4);
  CHECK(creations() == 2);  // else a third, for it was taken for not there
}

TEST_CASE_METHOD(FindingFixture, "a look that is refused is tried again before anything is said") {
  start_with(3);
  int asked = 0;
  const bool listing = GENERATE(true, false);
  CAPTURE(listing);
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* read = std::get_if<ReadJob>(&job.operation);
    const bool looks =
        listing ? std::holds_alternative<ListJob>(job.operation) : read != nullptr && read->native_ids.size() > 1;
    if (!looks || asked++ > 0) return {};
    return JobResult(Error{Errc::kAccessDenied, "not now", {}, 0});
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(asked > 1);
  CHECK(creations() == 2);
  CHECK(count() == 4);
  CHECK(row("NS::Box", thing("a")["id"].get<std::string>()).managed);
}

TEST_CASE_METHOD(FindingFixture, "what was told under a wrong id is found by its name") {
  start_with(3);
  const auto id = begin(stack({box("a")}));
  wait_until([&] { return lost == 1; });
  worker().send_late(worker().asked<CreateJob>().front(),
                     MutationResult{MutationStatus::kSuccess, {}, "ghost", {}, {}, {}});
  CHECK(end_of(id)["state"] == "complete");
  CHECK(count() == 4);
  CHECK(row("NS::Box", thing("a")["id"].get<std::string>()).managed);
  CHECK(state_of("NS::Box", "ghost") == "absent");
}

TEST_CASE_METHOD(FindingFixture, "what is looked for once more is looked for from the beginning") {
  start_with(3);
  system.page = 1;
  int asked = 0;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    ++asked;
    if (asked == 1) return JobResult(Error{Errc::kInternalFailure, "crashed", {}, 0});
    if (asked < 4) return JobResult(Error{Errc::kAccessDenied, "not now", {}, 0});
    return {};
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(asked == 4);
}

TEST_CASE_METHOD(FindingFixture,
                 "what could not be seen for a while, and is not what is looked for, holds up nothing") {
  start_with(3);
  system.page = 1;
  int asked = 0, hidden = 0;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    if (++asked > 2) return {};
    return JobResult(Error{asked == 1 ? Errc::kInternalFailure : Errc::kAccessDenied, "not now", {}, 0});
  };
  worker().on_job = [&](const Job& job) -> FakeWorker::Behaviour {
    const auto* list = std::get_if<ListJob>(&job.operation);
    if (list == nullptr || list->page_token.empty() || hidden++ > 0) return {};
    auto answer = std::get<ListResult>(system.answer(job));
    answer.problems.push_back({{}, Error{Errc::kNetwork, "reset", {}, 0}});
    return JobResult(answer);
  };
  CHECK(apply(stack({box("a")}))["state"] == "complete");
  CHECK(hidden > 1);
  CHECK(asked == 3);
}

TEST_CASE_METHOD(FindingFixture, "what is to be replaced is not taken for what replaces it") {
  const bool seen = GENERATE(true, false);  // what differs
  const std::string property = seen ? "kind" : "seed";
  for (auto& type : manifest.types) {
    type.schema = R"({"type":"object","x-muster-identity":["name"],"properties":{
      "name":{"type":"string"},"id":{"type":"string","readOnly":true},
      "kind":{"type":"string","x-muster-create-only":true},
      "seed":{"type":"string","writeOnly":true,"x-muster-create-only":true}}})";
  }
  start_discovered();
  apply(stack({box("a", {{property, "x"}})}));
  int asked = 0;
  worker().on_go = [&](const Job&) -> FakeWorker::Behaviour {
    if (asked++ > 0) return {};
    return JobResult(Error{Errc::kNetwork, "reset", {}, 0});
  };
  events();
  auto anew = box("a", {{property, "y"}});
  anew["replace"] = "create-first";
  const auto failed = apply(stack({anew}));
  CHECK(result_of(failed, "a") == "failed NOT_STABILIZED");
  CHECK_THAT(message_of(failed, "a"), Catch::Matchers::Contains("made-1 is there still"));
  CHECK(resource_events().empty());
  CHECK(plan(stack({anew}))["steps"][0]["action"] == "replace");
}
