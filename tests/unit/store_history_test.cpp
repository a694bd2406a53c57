// History of a Store's resources: what each version was, and when.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/json_patch.h"
#include "support/store_fixture.h"

using namespace muster;
using nlohmann::json;
using test::StoreFixture;

namespace {

JsonText with(int n) {
  return json{{"n", n}, {"name", "x"}}.dump();
}

JsonText to(int n) {
  return json::array({{{"op", "replace"}, {"path", "/n"}, {"value", n}}}).dump();
}

}  // namespace

TEST_CASE_METHOD(StoreFixture, "a resource that never changed has its discovery for history") {
  const auto row = insert(tables, "a", with(0), 10);
  const auto history = store().history(row).value();
  REQUIRE(history.size() == 1);
  CHECK(history[0].version == 1);
  CHECK(history[0].at == at(10));
  CHECK(history[0].cause == "discovered");
  CHECK(history[0].patch == "[]");
  CHECK_FALSE(store().properties_at(row, at(9.9)).value());
  CHECK(store().properties_at(row, at(10)).value() == with(0));
  CHECK(store().properties_at(row, at(99)).value() == with(0));
  CHECK(store().history(777).value().empty());
  CHECK_FALSE(store().properties_at(777, at(99)).value());
}

TEST_CASE_METHOD(StoreFixture, "every version of fifty can be read back") {
  const auto row = insert(tables, "a", with(0), 0);
  for (int n = 1; n <= 50; ++n) change(row, with(n), to(n), n);
  store().commit().value();
  reopen();
  CHECK(one(row).version == 51);
  CHECK(one(row).changed_at == at(50));
  for (int n = 0; n <= 50; ++n) {
    INFO(n);
    CHECK(store().properties_at(row, at(n)).value() == with(n));
    CHECK(store().properties_at(row, at(n + 0.5)).value() == with(n));
  }
  const auto history = store().history(row).value();
  REQUIRE(history.size() == 51);
  for (std::size_t i = 0; i < history.size(); ++i) {
    CHECK(history[i].version == i + 1);
    CHECK(history[i].at == at(static_cast<double>(i)));
    if (i > 0) CHECK(history[i].cause == "changed");
    if (i > 0) CHECK(history[i].patch == to(static_cast<int>(i)));
  }
}

TEST_CASE_METHOD(StoreFixture, "leaving, coming back and renaming between changes") {
  const auto row = insert(tables, "a", with(0), 0);
  double now = 0;
  for (int n = 1; n <= 40; ++n) {
    change(row, with(n), to(n), ++now);
    if (n % 7 == 0) store().rename(row, "a" + std::to_string(n), "a", 0, at(++now)).value();
    if (n % 5 == 0) {
      store().leave(row, ResourceState::kVanished, "parent", at(++now)).value();
      CHECK(insert(tables, one(row).native_id, with(n + 1000), ++now) == row);
    }
  }
  const auto history = store().history(row).value();
  CHECK(history.size() == one(row).version);
  json expected = json::parse(with(0));
  for (std::size_t i = 1; i < history.size(); ++i) {  // a reader who only has the patches comes to the same
    expected = expected.patch(json::parse(history[i].patch));
    INFO(i);
    CHECK(store().properties_at(row, history[i].at).value() == expected.dump());
  }
}

TEST_CASE_METHOD(StoreFixture, "structural patches") {
  const std::vector<JsonText> versions = {R"({})",
                                          R"({"list":[1,2,3]})",
                                          R"({"list":[1,3]})",
                                          R"({"list":[1,{"deep":null},3]})",
                                          R"({"a/b":1,"list":[],"m~n":{"é":"ü"}})",
                                          R"({"list":{}})"};
  const auto row = insert(tables, "a", versions[0], 0);
  for (std::size_t i = 1; i < versions.size(); ++i) {
    const auto patch = json::diff(json::parse(versions[i - 1]), json::parse(versions[i])).dump();
    change(row, versions[i], patch, static_cast<double>(i));
  }
  for (std::size_t i = 0; i < versions.size(); ++i) {
    CHECK(store().properties_at(row, at(static_cast<double>(i))).value() == versions[i]);
  }
}

TEST_CASE_METHOD(StoreFixture, "history is bounded, and what is kept can be read back") {
  constexpr int kChanges = 1100;
  const auto row = insert(tables, "a", with(0), 0);
  const auto other = insert(tables, "b", with(0), 0);
  change(other, with(1), to(1), 1);
  for (int n = 1; n <= kChanges; ++n) change(row, with(n), to(n), n);
  const auto history = store().history(row).value();
  CHECK(history.size() <= 1000);
  CHECK(history.size() > 960);
  CHECK(history.front().version == 1);
  CHECK(history.back().version == kChanges + 1);
  const auto oldest = static_cast<int>(history[1].version);
  for (int n = oldest - 1; n <= kChanges; ++n) CHECK(store().properties_at(row, at(n)).value() == with(n));
  CHECK_FALSE(store().properties_at(row, at(oldest - 3)).value());
  CHECK(store().history(other).value().size() == 2);
}

TEST_CASE_METHOD(StoreFixture, "so is that of what leaves and comes back again and again") {
  const auto row = insert(tables, "a", with(0), 0);
  if (GENERATE(false, true))
    change(row, with(1000), to(1000), 1);  // both to leave and to come back is every 16th version
  for (int n = 1; n <= 600; ++n) {
    store().leave(row, ResourceState::kVanished, "parent", at(2 * n)).value();
    REQUIRE(insert(tables, "a", with(n), 2 * n + 1) == row);
  }
  const auto history = store().history(row).value();
  CHECK(history.size() <= 1000);
  CHECK(history.size() > 960);
  CHECK(store().properties_at(row, at(1201)).value() == with(600));
}

TEST_CASE_METHOD(StoreFixture, "and that of what gets another name again and again") {
  const auto row = insert(tables, "a", with(0), 0);
  for (int n = 1; n <= 1100; ++n) store().rename(row, "a" + std::to_string(n), "a", 0, at(n)).value();
  const auto history = store().history(row).value();
  CHECK(history.size() <= 1000);
  CHECK(history.size() > 960);
  CHECK(history.back().was == "a1099");
}

TEST_CASE_METHOD(StoreFixture, "a patch that does not fit is an error, not a wrong answer") {
  const auto row = insert(tables, "a", with(0), 0);
  change(row, with(1), R"([{"op":"replace","path":"/absent","value":1}])", 1);
  change(row, with(2), to(2), 2);
  change(row, with(3), "no JSON", 3);
  change(row, with(4), to(4), 4);
  CHECK(store().properties_at(row, at(0)).value() == with(0));
  CHECK(store().properties_at(row, at(2)).error().code == Errc::kStoreUnavailable);
  CHECK(store().properties_at(row, at(3)).error().code == Errc::kStoreUnavailable);
  CHECK(store().properties_at(row, at(4)).value() == with(4));
}

TEST_CASE_METHOD(StoreFixture, "a history says what was renamed") {
  const auto row = insert(tables, "a", with(0), 0);
  store().rename(row, "b", "b", 0, at(1)).value();
  change(row, with(1), to(1), 2);
  const auto history = store().history(row).value();
  REQUIRE(history.size() == 3);
  CHECK(history[0].was.empty());
  CHECK(history[1].was == "a");
  CHECK(history[2].was.empty());
}

TEST_CASE_METHOD(StoreFixture, "other text of the same properties is no version") {
  const auto row = insert(tables, "a", R"({"n":1})", 0);
  store().restate(row, R"({"n":1.0})", hash128(R"({"n":1.0})")).value();
  CHECK(one(row).version == 1);
  CHECK(one(row).properties == R"({"n":1.0})");
  CHECK(index(tables).at(0).content == hash128(R"({"n":1.0})"));
  change(row, R"({"n":2})", R"([{"op":"replace","path":"/n","value":2}])", 1);
  CHECK(store().properties_at(row, at(0)).value() == R"({"n":1.0})");
}

TEST_CASE_METHOD(StoreFixture, "what has left and comes back as something else has no patch longer than that") {
  json before{{"list", json::array()}}, after = before;
  for (int i = 0; i < 5000; ++i) (i < 4999 ? before : after)["list"].push_back(i);
  for (int i = 0; i < 4999; ++i) after["list"].push_back(i);
  const auto row = insert(tables, "a", before.dump(), 0);
  store().leave(row, ResourceState::kVanished, "vanished", at(1)).value();
  CHECK(insert(tables, "a", after.dump(), 2) == row);
  const auto patch = store().history(row).value().back().patch;
  CHECK(patch.size() <= after.dump().size() + 64);
  CHECK(patch_between(R"({"a":1,"b":2})", R"({"a":2,"b":3})").find("/a") != std::string::npos);
  CHECK(before.patch(json::parse(patch)) == after);
  change(row, with(1), patch_between(after.dump(), with(1)), 3);
  CHECK(store().properties_at(row, at(2)).value() == after.dump());
  CHECK(store().properties_at(row, at(0)).value() == before.dump());
}
