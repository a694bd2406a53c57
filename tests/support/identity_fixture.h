#pragma once

#include <string>

#include "support/coordinator_fixture.h"

namespace muster::test {

/// Two boxes, of a kind that filters tell apart, and an item in each.
struct IdentityFixture : CoordinatorFixture {
  IdentityFixture() {
    system.add("NS::Box", {.id = "a", .properties = R"({"kind":"big"})", .uid = "u-a"});
    system.add("NS::Box", {.id = "b", .properties = R"({"kind":"small"})", .uid = "u-b"});
    system.add("NS::Item", {.id = "a1", .parent = "a"});
    system.add("NS::Item", {.id = "b1", .parent = "b"});
  }
  static MatchFilter kind_filter(FilterAction action, const std::string& kind) {
    return {{"NS::Box"}, {PropertyMatch{"$.kind", MatchOp::kEq, "\"" + kind + "\""}}, action};
  }
  static Manifest with_parts() {
    return make_manifest({{"NS::Box", ""}, {"NS::Item", "NS::Box"}, {"NS::Part", "NS::Item"}});
  }
  /// After a first run `b1` moves from `b` to `c`, with a part in it, and `b` is to be left out.
  void start_moving() {
    system.add("NS::Box", {.id = "c", .properties = R"({"kind":"big"})", .uid = "u-c"});
    system.add("NS::Part", {.id = "part", .parent = "b1"});
    start_discovered();
    events();
    system.inspection.filters = {kind_filter(FilterAction::kExclude, "small")};
    system.thing("NS::Item", "b1").parent = "c";
  }
  std::string target_state() { return api("targets")["items"].at(0).at("state"); }
};

}  // namespace muster::test
