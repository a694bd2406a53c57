// How the bench looks at what is there, and puts everything in order.

#include <algorithm>
#include <set>

#include "coordinator/canonical.h"
#include "coordinator/cli/plugin_test/bench.h"
#include "coordinator/cli/plugin_test/plan.h"
#include "coordinator/difference.h"

namespace muster::cli::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kPause{100};
constexpr std::size_t kReadBatch = 50;

/// Properties as they are compared and hashed.
Item canonical(Item item) {
  auto text = canonical_object(item.properties);
  if (!text) throw CheckFailed("the properties of " + item.native_id + " are no JSON object: " + text.error().message);
  item.properties = std::move(*text);
  return item;
}

bool is_not_found(const ReadItem& answer) {
  const auto* error = std::get_if<Error>(&answer);
  return error != nullptr && error->code == Errc::kNotFound;
}

}  // namespace

ReadItem Bench::read(const Object& object, const std::string& native_id) {
  const auto result = run(object, ReadJob{{native_id}});
  if (const auto* error = std::get_if<Error>(&result)) return *error;
  const auto* answer = std::get_if<ReadResult>(&result);
  if (answer == nullptr || answer->items.size() != 1) throw CheckFailed("a read of one id was not answered with one");
  return answer->items.front();
}

Item Bench::must_read(const Object& object) {
  const auto deadline = Clock::now() + object.type->settle;
  for (;;) {
    const auto answer = read(object, object.item.native_id);
    if (const auto* item = std::get_if<Item>(&answer)) {
      if (item->native_id != object.item.native_id)
        throw CheckFailed("a read of " + object.item.native_id + " was answered with " + item->native_id);
      return canonical(*item);
    }
    if (!is_not_found(answer) || Clock::now() >= deadline) {
      throw CheckFailed("read of " + object.what() + " was answered with " + to_string(std::get<Error>(answer)));
    }
    fleet_.pause(kPause);
  }
}

void Bench::must_be_gone(const Object& object) {
  const auto deadline = Clock::now() + object.type->settle;
  for (;;) {
    const auto answer = read(object, object.item.native_id);
    if (is_not_found(answer)) return;
    if (const auto* error = std::get_if<Error>(&answer)) {
      throw CheckFailed("read of what is deleted was answered with " + to_string(*error));
    }
    if (Clock::now() >= deadline) throw CheckFailed(object.what() + " is deleted, and read still finds it");
    fleet_.pause(kPause);
  }
}

std::vector<Item> Bench::list(std::size_t system, const TypeDescriptor& type, const std::optional<Parent>& parent,
                              std::uint32_t page_size) {
  std::vector<Item> items;
  std::set<std::string> tokens;
  std::string token;
  do {
    const auto workers = fleet_.workers();
    const auto only = workers.empty() ? std::nullopt : std::optional(workers[turn_++ % workers.size()]);
    const auto result = fleet_.run(systems_[system].target, type.name, ListJob{parent, token, page_size}, only);
    const auto* page = std::get_if<ListResult>(&result);
    if (page == nullptr) throw CheckFailed("list of " + type.name + " was answered with " + to_string(result));
    for (const auto& problem : page->problems) {
      throw CheckFailed("list of " + type.name + " has a problem: " + problem.native_id + " " +
                        to_string(problem.failure));
    }
    if (page->items.size() > page_size) {
      throw CheckFailed("a page of " + std::to_string(page_size) + " items of " + type.name + " has " +
                        std::to_string(page->items.size()));
    }
    items.insert(items.end(), page->items.begin(), page->items.end());
    token = page->next_page_token;
    if (!token.empty() && !tokens.insert(token).second) {
      throw CheckFailed("list of " + type.name + " gives a page token for the second time: " + token);
    }
  } while (!token.empty());
  return items;
}

std::vector<Item> Bench::siblings(const Object& object, std::uint32_t page_size) {
  return list(object.system, *object.type, object.parent, page_size);
}

std::vector<std::string> Bench::alike(const Object& object) {
  const auto schema = Json::parse(object.type->schema, nullptr, false);
  const auto identity = schema.is_object() ? schema.value("x-muster-identity", Json::array()) : Json::array();
  const auto declared = Json::parse(object.declared.json);
  const auto& of = rules(object.type->name);
  const auto is_it = [&](const std::string& properties) {
    const auto there = Json::parse(properties, nullptr, false);
    if (!there.is_object()) return false;
    if (identity.empty()) return compare(of, there, declared, pointers_of(object.declared)).patch.empty();
    return std::ranges::all_of(identity, [&](const Json& name) {
      const auto property = name.get<std::string>();
      return declared.contains(property) && there.contains(property) && declared[property] == there[property];
    });
  };
  std::set<std::string> seen, ids;
  std::vector<std::string> unread;
  for (const auto& item : siblings(object)) {
    if (!seen.insert(item.native_id).second) continue;
    if (item.properties.empty()) {
      unread.push_back(item.native_id);
    } else if (is_it(item.properties)) {
      ids.insert(item.native_id);
    }
  }
  for (std::size_t i = 0; i < unread.size(); i += kReadBatch) {
    const auto end = std::min(unread.size(), i + kReadBatch);
    const auto result = run(object, ReadJob{{unread.begin() + static_cast<std::ptrdiff_t>(i),
                                             unread.begin() + static_cast<std::ptrdiff_t>(end)}});
    const auto* read = std::get_if<ReadResult>(&result);
    if (read == nullptr || read->items.size() != end - i)
      throw CheckFailed("read of " + std::to_string(end - i) + " listed ids was answered with " + to_string(result));
    for (const auto& answer : read->items) {
      if (const auto* item = std::get_if<Item>(&answer); item != nullptr && is_it(item->properties))
        ids.insert(item->native_id);
    }
  }
  return {ids.begin(), ids.end()};
}

bool Bench::is_ours(const std::string& text, const Fixture& fixture) const {
  for (auto at = text.find(run_word_); at != std::string::npos; at = text.find(run_word_, at + 1)) {
    const auto word = text.substr(at, run_word_.size() + kLetters);
    const bool around =
        std::ranges::any_of(made_, [&](const Object& each) { return each.unique == word && each.fixture != &fixture; });
    if (!around) return true;
  }
  return false;
}

std::size_t Bench::sweep(const Object& like) {
  std::size_t swept = 0;
  std::set<std::string> seen;
  for (const auto& item : siblings(like)) {
    if (!seen.insert(item.native_id).second) continue;
    Object found = like;
    found.item = item;
    const auto mine = [&](const Item& each) {
      return is_ours(each.native_id, *like.fixture) || is_ours(each.properties, *like.fixture);
    };
    if (!mine(item)) {
      if (!item.properties.empty()) continue;
      const auto answer = read(like, item.native_id);
      const auto* there = std::get_if<Item>(&answer);
      if (there == nullptr || !mine(*there)) continue;
    }
    remove(found);
    ++swept;
  }
  return swept;
}

void Bench::tidy(const Fixture& fixture, const Scope& scope) {
  auto left = made_;
  std::erase_if(left, [&](const Object& each) {
    return std::ranges::any_of(scope.objects, [&](const Object& needed) { return needed.unique == each.unique; });
  });
  for (; !left.empty(); left.pop_back()) remove(left.back());
  for (const auto& like : std::vector<Object>(open_)) {
    if (like.fixture == &fixture && like.system == scope.system) sweep(like);
  }
}

std::vector<std::string> Bench::clean_up() {
  std::vector<std::string> left;
  const auto attempt = [&](const std::string& what, const auto& act) {
    try {
      act();
    } catch (const CheckFailed& failure) {
      left.push_back(what + ": " + failure.what());
    }
  };
  while (!open_.empty()) {
    const auto like = open_.back();
    open_.pop_back();
    attempt("objects of " + like.type->name, [&] { sweep(like); });
  }
  while (!made_.empty()) {
    auto object = made_.back();
    made_.pop_back();
    attempt(object.what(), [&] { remove(object); });
  }
  return left;
}

}  // namespace muster::cli::conformance
