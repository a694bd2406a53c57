#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "support/commands_fixture.h"

namespace muster::test {

/// A fleet to which files are applied that declare the target `new`.
struct TargetsFixture : CommandsFixture {
  /// A file that declares a box, and the target that it is on.
  static Json file(const std::string& stack = "shop") {
    auto resource = box(stack);
    resource["target"] = "new";
    Json request{{"stacks", {{{"stack", stack}, {"resources", {resource}}}}}, {"mode", "reconcile"}};
    request["targets"] = Json::array({{{"name", "new"}, {"namespace", "NS"}, {"discover", true}}});
    return request;
  }
  static Json config_of(const std::string& zone) {
    return {{"json", Json{{"zone", zone}}.dump()}, {"secrets", Json::array()}};
  }
  /// The file, applied with that interval, after 35 s.
  Json looked_at_every_ten_seconds() {
    start_discovered();
    auto request = file();
    request["targets"][0]["interval_ms"] = 10'000;
    CHECK(apply(request)["state"] == "complete");
    advance(Millis(35'000));
    finish_runs();
    CHECK(looks() == 4);
    return request;
  }
  std::string target_state() {
    const auto row = store->target("new").value();
    return !row ? "absent" : row->state == TargetState::kRemoved ? "removed" : "there";
  }
  /// How often it was looked at.
  std::ptrdiff_t looks() {
    return std::ranges::count_if(worker().asked<InspectJob>(), [](const Job& job) { return job.target.name == "new"; });
  }
};

}  // namespace muster::test
