// What a run is to look at: the union of what was asked for.
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "coordinator/run_scope.h"

using namespace muster;
using Strings = std::vector<std::string>;

TEST_CASE("a scope is the union of what was asked for, target by target") {
  TargetRow shown, hidden;
  shown.name = "shown";
  hidden.name = "hidden";
  shown.ns = hidden.ns = "NS";
  hidden.discover = false;
  RunScope scope;
  CHECK_FALSE(scope.of(shown));
  scope.add({{}, {"NS::Box"}, Look::kDiscover});
  CHECK(scope.of(shown)->types == Strings{"NS::Box"});
  CHECK_FALSE(scope.of(hidden));
  scope.add({{"hidden"}, {"NS::Item"}, Look::kReread});
  CHECK(scope.of(hidden)->types == Strings{"NS::Item"});
  CHECK(scope.of(hidden)->look == Look::kReread);
  CHECK(scope.of(shown)->look == Look::kDiscover);
  scope.add({{"hidden"}, {}, Look::kDiscover});
  CHECK(scope.of(hidden)->types.empty());
  CHECK(scope.of(hidden)->look == Look::kDiscover);
  scope.add({{}, {"XX::Other"}, Look::kDiscover});
  CHECK(scope.of(shown)->types == Strings{"NS::Box"});
  const auto again = RunScope::parse(scope.json());
  CHECK(again.json() == scope.json());
  CHECK(again.of(hidden)->look == Look::kDiscover);
}

TEST_CASE("a scope of stacks is all of a target once that was asked for as a whole") {
  TargetRow target;
  target.name = "t";
  target.ns = "NS";
  RunScope scope;
  scope.add({{"t"}, {}, Look::kReread, {"shop"}});
  scope.add({{"t"}, {}, Look::kReread, {"store"}});
  CHECK(scope.of(target)->stacks == Strings{"shop", "store"});
  scope.add({{"u"}, {}, Look::kReread, {}});
  CHECK(scope.of(target)->stacks == Strings{"shop", "store"});
  scope.add({{"t"}, {}, Look::kReread, {}});
  CHECK(scope.of(target)->stacks.empty());
}

TEST_CASE("a scope of very many parts widens instead of growing") {
  RunScope scope;
  for (int i = 0; i < 200; ++i) scope.add({{"t"}, {"NS::T" + std::to_string(i)}, Look::kDiscover});
  TargetRow target;
  target.name = "t";
  target.ns = "NS";
  REQUIRE(scope.of(target));
  CHECK(scope.json().size() < 8000);
  CHECK(scope.of(target)->types.empty());
  target.name = "u";
  CHECK_FALSE(scope.of(target));
}

TEST_CASE("a scope of very many parts keeps what names no target beside what is named") {
  RunScope scope;
  const bool named = GENERATE(false, true);
  if (named) scope.add({{"hidden"}, {}});
  for (int i = 0; i < 200; ++i) scope.add({{}, {"NS::T" + std::to_string(i)}});
  TargetRow target;
  target.name = "t";
  target.ns = "NS";
  REQUIRE(scope.of(target));
  CHECK(scope.of(target)->types.empty());
  target.discover = false;
  CHECK_FALSE(scope.of(target));
  target.name = "hidden";
  CHECK(scope.of(target).has_value() == named);
}

TEST_CASE("a scope is no wider for what is asked for again and again") {
  RunScope scope;
  for (int i = 0; i < 200; ++i) scope.add({{"t"}, {"NS::Box"}});
  TargetRow target;
  target.name = "t";
  target.ns = "NS";
  REQUIRE(scope.of(target));
  CHECK(scope.of(target)->types == Strings{"NS::Box"});
}

TEST_CASE("a scope of one part is read as it was written at first") {
  const auto scope = RunScope::parse(R"({"targets":["t"],"types":["NS::Box"]})");
  TargetRow target;
  target.name = "t";
  target.ns = "NS";
  REQUIRE(scope.of(target));
  CHECK(scope.of(target)->types == Strings{"NS::Box"});
  target.name = "u";
  CHECK_FALSE(scope.of(target));
}
