#include "simulation/cloud.h"

#include <algorithm>
#include <iterator>

namespace muster::sim {
namespace {

const std::string kSuccessor = "successor-";  // begins its name
const std::vector<std::string> kTypes{"SIM::Box", "SIM::Item", "SIM::Note"};

}  // namespace

std::uint64_t Cloud::Splitmix::next() {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

void Cloud::add(const std::string& type, const std::string& id, Thing thing) {
  if (thing.name.empty()) thing.name = id;
  if (type == "SIM::Item") note_box(id, thing.parent);
  types_[type][id] = std::move(thing);
  ever_.emplace(type, id);
}

void Cloud::note_box(const std::string& item, const std::string& box) {
  const auto found = types_["SIM::Box"].find(box);
  if (found == types_["SIM::Box"].end() || !found->second.name.starts_with(kSuccessor)) return;
  ++removals_[{"SIM::Item", item}];
}

void Cloud::count_removal(const std::string& type, const std::string& id) {
  ++removals_[{type, id}];
  if (type != "SIM::Box") return;
  for (const auto& [item, thing] : types_["SIM::Item"]) {
    if (thing.parent == id) ++removals_[{"SIM::Item", item}];
  }
  for (const auto& item : left_[id]) ++removals_[{"SIM::Item", item}];
}

void Cloud::remove(const std::string& type, const std::string& id) {
  if (types_[type].erase(id) == 0) return;
  count_removal(type, id);
  if (type == "SIM::Box")
    std::erase_if(types_["SIM::Item"], [&](const auto& item) { return item.second.parent == id; });
}

std::size_t Cloud::removals(const std::string& type, const std::string& id) const {
  const auto found = removals_.find({type, id});
  return found == removals_.end() ? 0 : found->second;
}

std::string Cloud::any(const std::string& type) {
  const auto& things = types_[type];
  if (things.empty()) return {};
  return std::next(things.begin(), static_cast<std::ptrdiff_t>(random_.below(things.size())))->first;
}

void Cloud::populate(std::size_t boxes, std::size_t items_each, std::size_t notes) {
  for (std::size_t b = 0; b < boxes; ++b) {
    const auto box = "box-" + std::to_string(next_id_++);
    add("SIM::Box", box, {});
    for (std::size_t i = 0; i < items_each; ++i) add("SIM::Item", "item-" + std::to_string(next_id_++), {box});
  }
  for (std::size_t n = 0; n < notes; ++n) add("SIM::Note", "note-" + std::to_string(next_id_++), {});
}

void Cloud::churn(std::size_t acts) {
  for (std::size_t i = 0; i < acts; ++i) {
    const auto& type = kTypes.at(random_.below(kTypes.size()));
    const auto id = any(type);
    switch (random_.below(5)) {
      case 0:
        add(type, "new-" + std::to_string(next_id_++), {type == "SIM::Item" ? any("SIM::Box") : ""});
        break;
      case 1:
        if (!id.empty()) remove(type, id);
        break;
      case 2:
        if (type == "SIM::Item" && !id.empty() && !types_["SIM::Box"].empty()) {
          auto& item = types_[type][id];
          left_[item.parent].insert(id);
          item.parent = any("SIM::Box");
          item.has_moved = true;
          note_box(id, item.parent);
        }
        break;
      default:
        if (!id.empty()) ++types_[type][id].version;
    }
  }
  // An item whose box is gone cannot be: the box that was drawn last may have been removed since.
  auto& items = types_["SIM::Item"];
  std::erase_if(items, [&](const auto& item) { return !types_["SIM::Box"].contains(item.second.parent); });
}

void Cloud::rename(std::size_t acts) {
  for (std::size_t i = 0; i < acts; ++i) {
    const auto& type = kTypes.at(random_.below(kTypes.size()));
    const auto id = any(type);
    if (id.empty()) continue;
    const auto now = "renamed-" + std::to_string(next_id_++);
    count_removal(type, id);  // who looks for the one when it is the other sees that it is gone
    add(type, now, std::move(types_[type].extract(id).mapped()));
    for (auto& [item, thing] : types_["SIM::Item"]) {
      if (type != "SIM::Box" || thing.parent != id) continue;
      thing.parent = now;
      left_[id].insert(item);
    }
    if (random_.below(3) > 0) continue;
    const auto& was = types_[type][now];
    add(type, id, {was.parent, 0, kSuccessor + std::to_string(next_id_++), was.has_moved});
  }
}

void Cloud::succeed(std::size_t acts) {
  for (std::size_t i = 0; i < acts; ++i) {
    const auto& type = kTypes.at(random_.below(kTypes.size()));
    const auto id = any(type);
    if (id.empty()) continue;
    const auto was = types_[type][id];
    remove(type, id);
    add(type, id, {was.parent, 0, kSuccessor + std::to_string(next_id_++), was.has_moved});
  }
}

void Cloud::filter() {
  filters_.clear();
  if (random_.below(4) == 0) return;
  left_out_version_ = static_cast<int>(random_.below(3));
  MatchFilter filter;
  for (const auto& type : kTypes) {
    if (random_.below(2) == 0) filter.types.push_back(type);
  }
  if (filter.types.empty()) filter.types.emplace_back("SIM::Box");
  filter.conditions.emplace_back(PropertyMatch{"$.version", MatchOp::kEq, std::to_string(left_out_version_)});
  filters_.push_back(std::move(filter));
}

bool Cloud::left_out(const std::string& type, const Thing& thing) const {
  return !filters_.empty() && thing.version == left_out_version_ &&
         std::ranges::count(filters_.front().types, type) > 0;
}

Cloud::Kept Cloud::kept(const std::string& type, const Thing& thing) const {
  if (left_out(type, thing)) return Kept::kNo;
  if (type != "SIM::Item" || !left_out("SIM::Box", types_.at("SIM::Box").at(thing.parent))) return Kept::kYes;
  return thing.has_moved ? Kept::kUnknown : Kept::kNo;
}

Json Cloud::properties(const std::string& type, const Thing& thing) {
  Json json{{"name", thing.name}, {"version", thing.version}};
  if (type == "SIM::Item") json["box"] = thing.parent;
  return json;
}

PluginInfo Cloud::plugin_info(const std::string& version) {
  return {.name = "sim",
          .ns = "SIM",
          .version = version,
          .description = "the cloud of a simulation",
          .max_requests_per_second = 0,
          .label_query = "$.name",
          .filters = {},
          .config_schema = R"({"type":"object"})"};
}

void Cloud::serve(Plugin& plugin, Random& random, const Weather& weather) const {
  const auto trouble = [&random, &weather] { return weather.trouble_of_read(random); };
  plugin.inspect([this, &random, &weather](const InspectRequest&, JobContext&) -> Result<Inspection> {
    if (auto error = weather.trouble(random)) return *error;
    return Inspection{"sim-1", filters_, {}};
  });
  for (const auto& [name, things] : types_) {
    TypeInfo info;
    info.name = name;
    // What a type leaves to the coordinator comes in pages of the cloud's own, several to an answer.
    if (name != "SIM::Note") info.page_size = kPage;
    info.read_batch = 5;
    if (name == "SIM::Item") info.parent = "SIM::Box";
    if (name == "SIM::Box") info.list_gives = ListGives::kProperties;
    const auto* all = &things;
    auto list = [all, name = name, trouble](const ListRequest& request, JobContext&) -> Result<ListPage> {
      if (auto error = trouble()) return *error;
      ListPage page;
      // Continues behind the id that came last: robust against what comes and goes between two pages.
      for (auto it = all->upper_bound(request.page_token); it != all->end(); ++it) {
        if (request.parent && it->second.parent != request.parent->native_id) continue;
        if (page.items.size() == std::min<std::size_t>(request.page_size, kPage)) {
          page.next_page_token = page.items.back().native_id;
          break;
        }
        Resource resource{it->first, {}, "uid-" + it->second.name};
        if (name == "SIM::Box") resource.properties = properties(name, it->second);
        page.items.push_back(std::move(resource));
      }
      return page;
    };
    auto read = [all, name = name, trouble](const ReadRequest& request, JobContext&) -> Result<Resource> {
      if (auto error = trouble()) return *error;
      const auto it = all->find(request.native_id);
      if (it == all->end()) return not_found();
      return Resource{it->first, properties(name, it->second), "uid-" + it->second.name};
    };
    plugin.type(std::move(info)).list(std::move(list)).read(std::move(read));
  }
}

}  // namespace muster::sim
