#include "simulation/workload.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace muster::sim {
namespace {

constexpr std::uint64_t kNames = 6;
constexpr std::uint64_t kChildren = 4;
constexpr std::uint64_t kNests = 5;
constexpr std::uint64_t kNotes = 3;
const std::string kNote = "note-";

std::string name_of(std::uint64_t index) {
  return "r" + std::to_string(index);
}

/// Even names are objects, odd ones are named; each may refer to earlier ones.
Json draw_resource(const std::string& stack, std::uint64_t index, const std::vector<std::string>& earlier,
                   Random& random) {
  const bool named = index % 2 == 1;
  Json properties{{"name", stack + "-" + name_of(index)}, {"size", random.below(4)}, {"link", ""}};
  if (random.below(2) == 0) properties["kind"] = random.below(4) == 0 ? "y" : "x";
  Json resource{{"name", name_of(index)}, {"type", named ? "SIM::Named" : "SIM::Object"}, {"target", "cloud"}};
  if (!earlier.empty() && random.below(2) == 0) {
    const auto& to = earlier[random.below(earlier.size())];
    properties["link"] = nullptr;
    resource["holes"] = Json::array({{{"pointer", "/link"}, {"parts", {{{"resource", to}, {"path", "id"}}}}}});
  } else if (!earlier.empty() && random.below(4) == 0) {
    resource["after"] = {earlier[random.below(earlier.size())]};
  }
  if (!named && random.below(3) == 0) resource["replace"] = "create-first";
  switch (random.below(6)) {
    case 0:
      resource["on_drift"] = "revert";
      break;
    case 1:
      resource["on_drift"] = "absorb";
      break;
    case 2:
      resource["on_drift"] = "observe";
      break;
    default:
      break;
  }
  resource["properties"] = std::move(properties);
  return resource;
}

std::string draw_note(Random& random) {
  return kNote + std::to_string(random.below(kNotes));
}

Json secret_note(const std::string& note) {
  return {{"pointer", "/note"}, {"parts", {{{"env", "SIM_" + note}}}}};
}

/// Where its note is given by reference.
Json::iterator secret_of(Json& resource) {
  auto& holes = resource["holes"];
  return std::ranges::find_if(holes, [](const Json& hole) { return hole["pointer"] == "/note"; });
}

/// How something that lies in another is replaced, and what becomes of its drift.
void draw_rules(Json& resource, Random& random) {
  if (random.below(3) == 0) resource["replace"] = "create-first";
  if (random.below(3) == 0) resource["on_drift"] = random.below(2) == 0 ? "revert" : "absorb";
}

Json draw_request(const std::string& stack, Random& random) {
  auto resources = Json::array();
  std::vector<std::string> earlier;
  for (std::uint64_t i = 0; i < kNames; ++i) {
    if (random.below(3) == 0) continue;
    resources.push_back(draw_resource(stack, i, earlier, random));
    earlier.push_back(name_of(i));
  }
  auto request = reconciled({{"stacks", {{{"stack", stack}, {"resources", std::move(resources)}}}}});
  if (random.below(4) == 0) request["mode"] = "patch";
  if (random.below(6) == 0) request["if_busy"] = "refuse";
  return request;
}

}  // namespace

Json reconciled(const Json& request) {
  return {{"api", 1}, {"stacks", request.at("stacks")}, {"mode", "reconcile"}};
}

Json destroyed(const std::string& stack) {
  return {{"api", 1}, {"stacks", {{{"stack", stack}, {"resources", Json::array()}}}}, {"mode", "destroy"}};
}

void add_children(std::vector<Wish>& wishes, Random& random) {
  for (auto& wish : wishes) {
    if (wish.kind != Wish::Kind::kApply) continue;
    auto& stack = wish.request["stacks"][0];
    auto& resources = stack["resources"];
    std::vector<std::string> places;
    for (const auto& resource : resources) {
      if (resource["type"] == "SIM::Object") places.push_back(resource["name"]);
    }
    for (std::uint64_t i = 0; i < kChildren && !places.empty(); ++i) {
      if (random.below(2) == 0) continue;
      const auto name = "c" + std::to_string(i);
      Json child{{"name", name}, {"type", "SIM::Child"}, {"target", "cloud"}};
      child["parent"] =
          places[std::min<std::size_t>(random.below(3) == 0 ? random.below(places.size()) : i, places.size() - 1)];
      child["properties"] = {{"name", wish.stack + "-" + name}, {"size", random.below(3)}};
      draw_rules(child, random);
      resources.push_back(std::move(child));
    }
  }
}

void add_nests(std::vector<Wish>& wishes, Random& random) {
  for (auto& wish : wishes) {
    if (wish.kind != Wish::Kind::kApply) continue;
    auto& stack = wish.request["stacks"][0];
    std::vector<std::string> places;
    for (std::uint64_t i = 0; i < kNests; ++i) {
      if (random.below(3) == 0) continue;
      const auto name = "n" + std::to_string(i);
      Json nest{{"name", name}, {"type", "SIM::Nest"}, {"target", "cloud"}};
      if (i > 0 && places.empty()) break;  // it could not be where it may have been before
      if (i > 0) nest["parent"] = random.below(3) == 0 ? places[random.below(places.size())] : places.back();
      nest["properties"] = {{"name", stack["stack"].get<std::string>() + "-" + name}, {"size", random.below(3)}};
      if (random.below(4) == 0) nest["properties"]["kind"] = random.below(2) == 0 ? "y" : "x";
      draw_rules(nest, random);
      stack["resources"].push_back(std::move(nest));
      places.push_back(name);
    }
  }
}

void add_notes(std::vector<Wish>& wishes, Random& random) {
  for (auto& wish : wishes) {
    if (wish.kind != Wish::Kind::kApply) continue;
    for (auto& resource : wish.request["stacks"][0]["resources"]) {
      if (random.below(2) == 0) resource["properties"]["note"] = draw_note(random);
    }
  }
}

void add_secrets(std::vector<Wish>& wishes, Random& random) {
  for (auto& wish : wishes) {
    if (wish.kind != Wish::Kind::kApply) continue;
    for (auto& resource : wish.request["stacks"][0]["resources"]) {
      auto& properties = resource["properties"];
      if (!properties.contains("note") || random.below(2) == 0) continue;
      resource["holes"].push_back(secret_note(std::exchange(properties["note"], nullptr)));
    }
  }
  for (std::uint64_t i = 0; i < kNotes; ++i) {
    const auto note = kNote + std::to_string(i);
    ::setenv(("SIM_" + note).c_str(), ("kept-" + note).c_str(), 1);
  }
}

Json note_in(const Json& resource) {
  for (const auto& hole : resource.value("holes", Json::array())) {
    if (hole["pointer"] != "/note") continue;
    return ::getenv(hole["parts"][0]["env"].get_ref<const std::string&>().c_str());
  }
  return resource["properties"].value("note", Json());
}

void add_crowds(std::vector<Wish>& wishes, Random& random) {
  std::vector<Wish> more;
  for (const auto& wish : wishes) {
    if (wish.kind != Wish::Kind::kApply || wish.request["stacks"][0]["resources"].empty()) continue;
    for (auto count = 1 + random.below(2); count > 0; --count) {
      auto next = wish;
      next.at += Millis(random.below(2500));
      next.request.erase("if_busy");
      next.request["mode"] = random.below(4) == 0 ? "patch" : "reconcile";
      auto& resources = next.request["stacks"][0]["resources"];
      if (random.below(4) == 0) resources.erase(resources.size() - 1);  // nothing refers to the last
      for (auto& resource : resources) {
        auto& properties = resource["properties"];
        if (random.below(3) == 0) properties["size"] = random.below(3);
        if (!properties.contains("note") || random.below(2) != 0) continue;
        if (properties["note"].is_null()) {
          *secret_of(resource) = secret_note(draw_note(random));
        } else {
          properties["note"] = draw_note(random);
        }
      }
      more.push_back(std::move(next));
    }
  }
  wishes.insert(wishes.end(), more.begin(), more.end());
  std::ranges::stable_sort(wishes, {}, &Wish::at);
}

void add_plans(std::vector<Wish>& wishes, Random& random) {
  for (auto& wish : wishes) {
    if (wish.kind == Wish::Kind::kApply && random.below(2) == 0) wish.looked_at = Millis(1 + random.below(4000));
  }
}

std::vector<Wish> draw_wishes(Random& random) {
  std::vector<Wish> wishes;
  const auto count = random.below(10);
  for (std::uint64_t i = 0; i < count; ++i) {
    Wish wish;
    wish.at = Millis(500 + random.below(15'000));
    wish.stack = random.below(3) == 0 ? "beta" : "alpha";
    const auto kind = random.below(10);
    if (kind == 0) {
      wish.kind = Wish::Kind::kCancel;
      wish.force = random.below(2) == 0;
    } else {
      wish.request = kind == 1 ? destroyed(wish.stack) : draw_request(wish.stack, random);
    }
    wishes.push_back(std::move(wish));
  }
  std::ranges::stable_sort(wishes, {}, &Wish::at);
  return wishes;
}

}  // namespace muster::sim
