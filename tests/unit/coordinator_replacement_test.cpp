// What is deleted to be made anew, and what must be known before that.

#include "support/commands_fixture.h"

using namespace muster;
using namespace muster::test;
using Catch::Matchers::Contains;

TEST_CASE_METHOD(CommandsFixture, "nothing is deleted to be made anew from what it refers to in vain") {
  start_discovered();
  apply(stack({box("b"), box("a", {{"kind", "x"}})}));
  auto anew = box("a", {{"kind", "y"}, {"link", nullptr}});
  anew["holes"] = Json::array({{{"pointer", "/link"}, {"parts", {{{"resource", "b"}, {"path", "serial"}}}}}});
  const auto failed = apply(stack({box("b"), anew}));
  CHECK(result_of(failed, "a") == "failed INVALID_REQUEST");
  CHECK_THAT(message_of(failed, "a"), Contains("b has no such property"));
  CHECK(thing("a")["kind"] == "x");
  CHECK(worker().asked<DeleteJob>().empty());
  edit("b", "serial", "7");
  discover();
  CHECK(apply(stack({box("b"), anew}))["state"] == "complete");
  CHECK(thing("a")["link"] == "7");
}

TEST_CASE_METHOD(CommandsFixture, "what another command has made anew is not made anew once more") {
  system.names_are_ids = true;
  start_discovered();
  apply(stack({box("a", {{"kind", "x"}})}));
  worker().on_go = [](const Job&) -> FakeWorker::Behaviour { return FakeWorker::Hold{}; };
  const auto first = begin(stack({box("a", {{"kind", "y"}})}));
  advance(Millis(300));
  const auto second = begin(stack({box("a", {{"kind", "y"}})}));  // waits
  worker().on_go = {};
  worker().release();
  CHECK(end_of(first)["state"] == "complete");
  const auto refused = end_of(second);
  CHECK(result_of(refused, "a") == "failed CONFLICT");
  CHECK_THAT(message_of(refused, "a"), Contains("need not be made anew any more"));
  CHECK(worker().asked<DeleteJob>().size() == 1);
  CHECK(plan(stack({box("a", {{"kind", "y"}})}))["nothing"] == true);
}

TEST_CASE_METHOD(CommandsFixture, "what refers to a thing that is made anew is made anew, though it looks the same") {
  system.names_are_ids = true;
  start_discovered();
  const auto declared = [](const std::string& kind) {
    auto other = box("a", {{"kind", nullptr}});
    other["holes"] = Json::array({{{"pointer", "/kind"}, {"parts", {{{"resource", "b"}, {"path", "id"}}}}}});
    return stack({box("b", {{"kind", kind}}), other});
  };
  apply(declared("x"));
  const auto ended = apply(declared("y"));
  CHECK(ended["state"] == "complete");
  CHECK(worker().asked<DeleteJob>().size() == 2);
  CHECK(worker().asked<CreateJob>().size() == 4);
}
