// YAML text that is long enough to be parsed ahead of whoever takes it.
#include <catch2/catch.hpp>

#include "coordinator/yaml_tree.h"

using namespace muster;

namespace {

constexpr int kItems = 60'000;

std::string item(int number) {
  return "- {name: item" + std::to_string(number) + ", text: 'a, b'}\n";
}

std::string long_list(int items = kItems) {
  std::string text = "first: 1\nlist:\n";
  for (int i = 0; i < items; ++i) text += item(i);
  return text;
}

YamlError error_of(const std::string& text) {
  const auto result = parse_yaml(text);
  REQUIRE(std::holds_alternative<YamlError>(result));
  return std::get<YamlError>(result);
}

}  // namespace

TEST_CASE("a long text is read whole, and in its order") {
  const auto text = long_list();
  REQUIRE(text.size() > 1U << 20);
  const auto result = parse_yaml(text);
  REQUIRE(std::holds_alternative<YamlNode>(result));
  const auto& root = std::get<YamlNode>(result);
  REQUIRE(root.items.size() == 2);
  const auto& list = root.items[1];
  REQUIRE(list.items.size() == kItems);
  int good = 0;
  for (int i = 0; i < kItems; ++i) {
    const auto& one = list.items[static_cast<std::size_t>(i)];
    good += one.line == i + 3 && one.items.size() == 2 && one.items[0].text == "item" + std::to_string(i) &&
            one.items[1].text == "a, b";
  }
  CHECK(good == kItems);
}

TEST_CASE("items of a list are taken as they come, and are not kept") {
  int taken = 0;
  const auto result = parse_yaml(long_list(), [&](const YamlNode& root, std::size_t index, const YamlNode& one) {
    const bool in_order = index == static_cast<std::size_t>(taken) && one.line == taken + 3;
    if (in_order && root.keys.back().text == "list" && root.items.size() == 1) ++taken;
    return index != 5;  // which stays
  });
  CHECK(taken == kItems);
  REQUIRE(std::holds_alternative<YamlNode>(result));
  const auto& list = std::get<YamlNode>(result).items.at(1);
  REQUIRE(list.items.size() == 1);
  CHECK(list.items[0].items[0].text == "item5");
}

TEST_CASE("an error in a long text is told with its place, wherever it stands") {
  const auto text = long_list();
  CHECK(error_of(text + "- ]\n").line == kItems + 3);
  CHECK(error_of("]\n" + text).line == 1);
  CHECK(error_of(std::string(600, '[') + std::string(600, ']') + "\n---\n" + text).line == 1);
  const auto middle = text.find(item(kItems / 2));
  const auto error = error_of(text.substr(0, middle) + "- !odd x\n" + text.substr(middle));
  CHECK(error.line == kItems / 2 + 3);
  CHECK(error.message.find("!odd") != std::string::npos);
}

TEST_CASE("what is behind the key that a long text is known by is not looked at") {
  CHECK(has_root_key(long_list() + "]\n", {"first"}));
  CHECK(has_root_key(long_list() + "last: 1\n]\n", {"last"}));
  CHECK_FALSE(has_root_key(long_list() + "]\nlast: 1\n", {"last"}));
}
