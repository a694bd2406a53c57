#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "support/commands_fixture.h"

namespace muster::test {

/// What drifts, and what is told of it.
struct DriftFixture : CommandsFixture {
  std::size_t drifted() { return api("resources", {{"drifted", true}})["items"].size(); }
  static Json reverting(Json resource) {
    resource["on_drift"] = "revert";
    return resource;
  }
  bool told(const std::string& type) {
    const auto all = events();
    return std::ranges::any_of(all, [&](const Json& event) { return event["type"] == "muster." + type; });
  }
};

}  // namespace muster::test
