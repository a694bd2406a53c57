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
