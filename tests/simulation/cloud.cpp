#include "simulation/cloud.h"

#include <algorithm>
#include <iterator>

namespace muster::sim {
namespace {

const std::string kSuccessor = "successor-";  // begins its name

/// Whether it has, or had, an id that was another's before.
bool took_place(const Cloud::Thing& thing) {
  return thing.has_swapped || thing.name.starts_with(kSuccessor);
}

/// The type of what something lies in; empty: in nothing.
std::string around(const std::string& type) {
  if (type == "SIM::Item") return "SIM::Box";
  if (type == "SIM::Part") return "SIM::Item";
  return type == "SIM::Folder" || type == "SIM::File" ? "SIM::Folder" : "";
}

/// The types of what lies in something.
std::vector<std::string> within(const std::string& type) {
  if (type == "SIM::Box") return {"SIM::Item"};
  if (type == "SIM::Item") return {"SIM::Part"};
  if (type == "SIM::Folder") return {"SIM::Folder", "SIM::File"};
  return {};
}

}  // namespace

std::uint64_t Cloud::Splitmix::next() {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

void Cloud::deepen() {
  names_.emplace_back("SIM::Part");
  types_["SIM::Part"];
}

void Cloud::add_folders() {
  for (const auto* name : {"SIM::Folder", "SIM::File"}) {
    names_.emplace_back(name);
    types_[name];
  }
}

void Cloud::add(const std::string& type, const std::string& id, Thing thing) {
  if (thing.name.empty()) thing.name = id;
  types_[type][id] = std::move(thing);
  ever_.emplace(type, id);
  note_place(type, id);
}

void Cloud::note_place(const std::string& type, const std::string& id) {
  auto place = types_[type][id].parent;
  for (auto outer = around(type); !outer.empty(); outer = around(outer)) {
    const auto found = types_[outer].find(place);
    if (found == types_[outer].end()) return;
    const bool was_in_what_is_gone = std::ranges::any_of(left_, [&](const auto& each) {
      const auto& [where, who] = each;
      if (where.first != outer || where.second.empty() || !who.contains(place)) return false;
      const auto& places = types_.at(around(outer));
      const auto there = places.find(where.second);
      return there == places.end() || took_place(there->second);
    });
    if (was_in_what_is_gone || took_place(found->second)) return count_removal(type, id);
    place = found->second.parent;
  }
}

void Cloud::count_removal(const std::string& type, const std::string& id) {
  std::set<std::pair<std::string, std::string>> around;  // two may have lain in each other, one after the other
  count_removal(type, id, around);
}

void Cloud::count_removal(const std::string& type, const std::string& id,
                          std::set<std::pair<std::string, std::string>>& around) {
  if (!around.emplace(type, id).second) return;
  ++removals_[{type, id}];
  for (const auto& inner : within(type)) {
    const auto contents = types_.find(inner);
    if (contents == types_.end() || outlives(inner)) continue;
    for (const auto& [one, thing] : contents->second) {
      if (thing.parent == id) count_removal(inner, one, around);
    }
    for (const auto& one : left_[{inner, id}]) count_removal(inner, one, around);
  }
  around.erase({type, id});
}

void Cloud::remove(const std::string& type, const std::string& id) {
  if (types_[type].erase(id) == 0) return;
  count_removal(type, id);
  remove_contents(type, id);
}

void Cloud::remove_contents(const std::string& type, const std::string& id) {
  for (const auto& inner : within(type)) {
    const auto contents = types_.find(inner);
    if (contents == types_.end()) continue;
    std::vector<std::string> inside;
    for (const auto& [one, thing] : contents->second) {
      if (thing.parent == id) inside.push_back(one);
    }
    for (const auto& one : inside) {
      if (outlives(inner)) {
        contents->second[one].parent.clear();
        continue;
      }
      contents->second.erase(one);
      remove_contents(inner, one);
    }
  }
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
  for (const auto& [item, thing] : types_["SIM::Item"]) {
    for (auto parts = types_.contains("SIM::Part") ? random_.below(3) : 0; parts > 0; --parts) {
      add("SIM::Part", "part-" + std::to_string(next_id_++), {item});
    }
  }
  for (std::size_t n = 0; n < notes; ++n) add("SIM::Note", "note-" + std::to_string(next_id_++), {});
  if (!types_.contains("SIM::Folder")) return;
  for (auto folders = 1 + random_.below(10); folders > 0; --folders) {
    add("SIM::Folder", "folder-" + std::to_string(next_id_++), {place_for("SIM::Folder")});
  }
  for (auto files = random_.below(20); files > 0; --files) {
    add("SIM::File", "file-" + std::to_string(next_id_++), {place_for("SIM::File")});
  }
}

std::string Cloud::place_for(const std::string& type) {
  if (around(type).empty() || (around(type) == type && random_.below(4) == 0)) return {};
  return any(around(type));
}

bool Cloud::lies_in(std::string folder, const std::string& id) const {
  const auto& folders = types_.at("SIM::Folder");
  while (!folder.empty() && folder != id) folder = folders.at(folder).parent;
  return folder == id;
}

void Cloud::churn(std::size_t acts) {
  for (std::size_t i = 0; i < acts; ++i) {
    const auto& type = names_.at(random_.below(names_.size()));
    const auto id = any(type);
    switch (random_.below(5)) {
      case 0:
        add(type, "new-" + std::to_string(next_id_++), {place_for(type)});
        break;
      case 1:
        if (!id.empty()) remove(type, id);
        break;
      case 2:
        // Where it cannot be read, either, whoever looked into the one place before and into the other after has not
        // seen it.
        if (!around(type).empty() && !id.empty() && !types_[around(type)].empty() && !is_only_listed(type)) {
          const auto to = place_for(type);
          if (type == around(type) && lies_in(to, id)) break;
          auto& thing = types_[type][id];
          left_[{type, thing.parent}].insert(id);
          thing.parent = to;
          thing.has_moved = true;
          note_place(type, id);
        }
        break;
      default:
        if (!id.empty()) ++types_[type][id].version;
    }
  }
  // What was made where there is nothing that it could lie in cannot be.
  for (const auto& type : names_) {
    if (around(type).empty()) continue;
    const auto is_nowhere = [&](const Thing& thing) {
      return !types_[around(type)].contains(thing.parent) && (type != around(type) || !thing.parent.empty());
    };
    if (outlives(type)) {
      for (auto& [id, thing] : types_[type]) {
        if (is_nowhere(thing)) thing.parent.clear();
      }
    } else {
      std::erase_if(types_[type], [&](const auto& one) { return is_nowhere(one.second); });
    }
  }
}

void Cloud::rename(std::size_t acts) {
  for (std::size_t i = 0; i < acts; ++i) {
    const auto& type = names_.at(random_.below(names_.size()));
    const auto id = any(type);
    if (id.empty()) continue;
    const auto now = "renamed-" + std::to_string(next_id_++);
    count_removal(type, id);  // who looks for the one when it is the other sees that it is gone
    add(type, now, std::move(types_[type].extract(id).mapped()));
    for (auto& [place, who] : left_) {  // who knows it under its new id may believe it to lie where it has lain
      if (place.first == type && who.contains(id)) who.insert(now);
    }
    for (const auto& inner : within(type)) {
      const auto contents = types_.find(inner);
      if (contents == types_.end()) continue;
      for (auto& [one, thing] : contents->second) {
        if (thing.parent != id) continue;
        thing.parent = now;
        left_[{inner, id}].insert(one);
      }
    }
    if (random_.below(3) > 0) continue;
    const auto& was = types_[type][now];
    add(type, id, {was.parent, 0, kSuccessor + std::to_string(next_id_++), was.has_moved});
    // What was listed below the one may be taken to lie in the other, where nobody lists what lies in the one now.
    for (const auto& inner : within(type)) {
      const auto contents = types_.find(inner);
      if (contents == types_.end()) continue;
      for (auto& [one, thing] : contents->second) thing.has_moved = thing.has_moved || thing.parent == now;
    }
  }
}

void Cloud::succeed(std::size_t acts) {
  for (std::size_t i = 0; i < acts; ++i) {
    const auto& type = names_.at(random_.below(names_.size()));
    const auto id = any(type);
    if (id.empty()) continue;
    const auto was = types_[type][id];
    remove(type, id);
    add(type, id, {was.parent, 0, kSuccessor + std::to_string(next_id_++), was.has_moved});
  }
}

void Cloud::swap(std::size_t acts) {
  for (std::size_t i = 0; i < acts; ++i) {
    const auto& type = names_.at(random_.below(names_.size()));
    const auto a = any(type), b = any(type);
    if (a == b || (type == around(type) && (lies_in(a, b) || lies_in(b, a)))) continue;
    count_removal(type, a);
    count_removal(type, b);
    auto &one_thing = types_[type][a], &other = types_[type][b];
    if (one_thing.parent != other.parent || one_thing.has_moved || other.has_moved) {
      one_thing.has_moved = other.has_moved = true;
      // Who has listed one in its place, and reads the other under its id, believes that to lie there.
      for (const auto& place : {one_thing.parent, other.parent}) left_[{type, place}].insert({a, b});
    }
    one_thing.has_swapped = other.has_swapped = true;
    std::swap(one_thing, other);
    for (auto& [place, who] : left_) {
      if (place.first == type && (who.contains(a) || who.contains(b))) who.insert({a, b});
    }
    for (const auto& inner : within(type)) {
      const auto contents = types_.find(inner);
      if (contents == types_.end()) continue;
      for (auto& [one, thing] : contents->second) {
        if (thing.parent != a && thing.parent != b) continue;
        left_[{inner, thing.parent}].insert(one);
        thing.parent = thing.parent == a ? b : a;
        thing.has_moved = true;
        count_removal(inner, one);  // who has seen half of it takes what it lies in now for another once more
      }
    }
  }
}

void Cloud::narrow() {
  served_.clear();
  if (random_.below(3) == 0) return;
  auto all = names_;
  for (const auto* other : {"SIM::Object", "SIM::Named", "SIM::Child", "SIM::Nest"}) all.emplace_back(other);
  std::ranges::copy_if(all, std::back_inserter(served_), [&](const auto&) { return random_.below(3) > 0; });
}

void Cloud::filter() {
  filters_.clear();
  if (random_.below(4) == 0) return;
  left_out_version_ = static_cast<int>(random_.below(3));
  MatchFilter filter;
  for (const auto& type : names_) {
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
  if (thing.parent.empty()) return outlives(type) ? Kept::kUnknown : Kept::kYes;
  const auto& around_it = types_.at(around(type)).at(thing.parent);
  const auto place = kept(around(type), around_it);
  // Who asked for what lies in one box may have been told of another's that had taken its id.
  const bool elsewhere = thing.has_moved || took_place(around_it) || outlives(type);
  return place == Kept::kNo && elsewhere ? Kept::kUnknown : place;
}

Json Cloud::properties(const std::string& type, const Thing& thing) {
  Json json{{"name", thing.name}, {"version", thing.version}};
  if (type == "SIM::Item") json["box"] = thing.parent;
  if (type == "SIM::Part") json["item"] = thing.parent;
  if (around(type) == "SIM::Folder") json["folder"] = thing.parent;
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
    return Inspection{"sim-1", filters_, served_};
  });
  for (const auto& [name, things] : types_) {
    TypeInfo info;
    info.name = name;
    // What a type leaves to the coordinator comes in pages of the cloud's own, several to an answer.
    if (name != "SIM::Note") info.page_size = kPage;
    info.read_batch = 5;
    info.parent = around(name);
    const bool whole = is_whole(name);
    if (whole) info.list_gives = ListGives::kProperties;
    info.contained = !outlives(name);
    const auto* all = &things;
    auto list = [this, all, whole, name = name, trouble, &random, &weather](const ListRequest& request,
                                                                            JobContext&) -> Result<ListPage> {
      if (auto error = trouble()) return *error;
      ListPage page;
      // Continues behind the id that came last: robust against what comes and goes between two pages.
      for (auto it = all->upper_bound(request.page_token); it != all->end(); ++it) {
        if (request.parent && it->second.parent != request.parent->native_id) continue;
        if (!request.parent && name == around(name) && !it->second.parent.empty()) continue;
        if (page.items.size() == std::min<std::size_t>(request.page_size, kPage)) {
          page.next_page_token = page.items.back().native_id;
          break;
        }
        Resource resource{it->first, {}, uid(it->second)};
        if (whole) resource.properties = properties(name, it->second);
        page.items.push_back(std::move(resource));
      }
      weather.thin_out(page, random);
      return page;
    };
    auto read = [this, all, name = name, trouble](const ReadRequest& request, JobContext&) -> Result<Resource> {
      if (auto error = trouble()) return *error;
      const auto it = all->find(request.native_id);
      if (it == all->end()) return not_found();
      return Resource{it->first, properties(name, it->second), uid(it->second)};
    };
    auto& type = plugin.type(std::move(info)).list(std::move(list));
    if (!is_only_listed(name)) type.read(std::move(read));
  }
}

}  // namespace muster::sim
