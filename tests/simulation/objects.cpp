#include "simulation/objects.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "worker_sdk/testing/fake_clock.h"

namespace muster::sim {
namespace {

constexpr const char* kObjectSchema = R"({"type":"object","properties":{
  "name":{"type":"string","x-muster-create-only":true},"size":{"type":"integer"},"link":{"type":"string"},
  "kind":{"type":"string","x-muster-create-only":true},"note":{"type":"string","writeOnly":true},
  "id":{"type":"string","readOnly":true},"text":{"type":"string","readOnly":true}}})";
constexpr const char* kNamedSchema = R"({"type":"object","x-muster-identity":["name"],"properties":{
  "name":{"type":"string","x-muster-create-only":true},"size":{"type":"integer"},"link":{"type":"string"},
  "kind":{"type":"string","x-muster-create-only":true},"note":{"type":"string","writeOnly":true},
  "id":{"type":"string","readOnly":true},"text":{"type":"string","readOnly":true}}})";

/// The type of what something lies in; empty: in nothing.
std::string owner_type(const std::string& type) {
  if (type == "SIM::Child") return "SIM::Object";
  return type == "SIM::Nest" ? "SIM::Nest" : "";
}

char prefix(const std::string& type) {
  if (type == "SIM::Child") return 'c';
  return type == "SIM::Nest" ? 'n' : 'o';
}

}  // namespace

Objects::Objects(std::uint64_t seed, const Clock& clock)
    : clock_(clock), random_(std::make_unique<SeededRandom>(seed)) {}
Objects::~Objects() = default;

Resource Objects::resource(const std::string& id, const Object& object) const {
  return {id, object.properties, has_uids_ ? object.uid : std::string()};
}

void Objects::book(Entry entry, const Host& host) {
  if (!fault_ && on_change) fault_ = on_change(entry.key, host);
  const auto [act, first] = acts_.emplace(entry.key, entry.act);
  if (!first && act->second != entry.act && !fault_) fault_ = "one key for two kinds of changes: " + entry.key;
  books_.push_back(std::move(entry));
}

std::string Objects::take_note(Json& properties) {
  auto note = properties.value("note", "");
  properties.erase("note");
  if (note.starts_with("digest:") && !fault_) fault_ = "a digest is sent for a write-only value: " + properties.dump();
  return note;
}

void Objects::add_own(Json& properties, const std::string& id) const {
  properties["id"] = id;
  if (!text_.empty()) properties["text"] = text_;
}

void Objects::die(Host& host, bool kept) {
  host.dies = true;
  if (!kept) host.disk->broken = true;  // whoever ends the process repairs it
}

std::optional<Error> Objects::trouble(Host& host) {
  if (happens(faults_.before)) {
    switch (random_->below(3)) {
      case 0:
        return throttled("slower", Millis(random_->below(300)));
      case 1:
        return unavailable("a hiccup before");
      default:
        return failure(Errc::kNetwork, "a reset before");
    }
  }
  if (happens(faults_.terminal)) {
    return random_->below(2) == 0 ? access_denied("not today") : limit("no more today");
  }
  if (happens(faults_.crash) && random_->below(3) == 0) {
    die(host, random_->below(2) == 0);
    return unavailable("nobody hears this");
  }
  return std::nullopt;
}

Result<Mutation> Objects::answer(Mutation done, Host& host) {
  if (happens(faults_.crash)) die(host, random_->below(2) == 0);
  if (!happens(faults_.after)) return done;
  switch (random_->below(3)) {
    case 0:
      return unavailable("a hiccup afterwards");
    case 1:
      return failure(Errc::kTimeout, "no answer");
    default:
      return failure(Errc::kInternalFailure, "a fault afterwards");
  }
}

Mutation Objects::begin(const std::string& type, const std::string& id, std::optional<Error> fails) {
  const auto request = "request-" + std::to_string(++serial_);
  requests_[request] = {type, id, clock_.now() + Millis(random_->below(4000)), std::move(fails)};
  return Mutation::in_progress(request, random_->below(2) == 0 ? id : std::string(), Millis(random_->below(500)));
}

Result<Mutation> Objects::create(const CreateRequest& request, Host& host) {
  if (auto error = trouble(host)) return *error;
  auto& things = types_[request.type];
  const bool named = request.type == "SIM::Named";
  const auto name = request.properties.at("name").get<std::string>();
  if (named) {
    if (things.contains(name)) return already_exists(name + " is there");
  } else if (const auto refused = refused_.find(request.idempotency_key); refused != refused_.end()) {
    return answer(Mutation::in_progress(refused->second, {}, Millis{0}), host);
  } else if (const auto known = keys_.find(request.idempotency_key); known != keys_.end()) {
    for (const auto& [id, going] : requests_) {  // not there yet
      if (going.id != known->second || going.ready_at <= clock_.now()) continue;
      return answer(Mutation::in_progress(id, {}, Millis{0}), host);
    }
    const auto thing = things.find(known->second);
    if (thing != things.end()) return answer(Mutation(resource(thing->first, thing->second)), host);
    count_removal(request.type, known->second);  // answered as it was, it is gone since: the fleet sees it go once more
    return answer(Mutation(made_.at(request.idempotency_key)), host);
  }
  if (request.type == "SIM::Child" && !request.parent) {
    if (!fault_) fault_ = name + " was to be made in nothing";
    return not_found();
  }
  if (request.parent) {
    const auto& places = types_[owner_type(request.type)];
    const auto place = places.find(request.parent->native_id);
    if (place == places.end() || !seen(place->second)) return not_found("no " + request.parent->native_id);
  }
  const auto serial = std::to_string(++serial_);
  const auto id = named ? name : fmt::format("{}-{}", prefix(request.type), serial);
  Object object{request.properties,
                "uid-" + serial,
                request.parent ? request.parent->native_id : std::string(),
                request.idempotency_key,
                clock_.now(),
                clock_.now(),
                {}};
  if (latest_ > Millis{0}) object.shows_at += Millis(random_->below(static_cast<std::uint64_t>(latest_.count())));
  add_own(object.properties, id);
  object.note = take_note(object.properties);
  const auto link = request.properties.value("link", "");
  if (!link.empty() && !ever("SIM::Object", link) && !ever("SIM::Named", link) && !fault_) {
    fault_ = name + " was made to refer to nothing";
  }
  const bool goes_on = !named && happens(faults_.progress);
  if (goes_on && random_->below(5) == 0) {  // fails in the end, and makes nothing
    const auto why = random_->below(2) == 0 ? access_denied("refused in the end") : conflict("busy in the end");
    auto going = begin(request.type, id, why);
    refused_[request.idempotency_key] = "request-" + std::to_string(serial_);
    return answer(std::move(going), host);
  }
  if (!named) {
    const auto doubled = std::ranges::count_if(things, [&](const auto& each) {
      return each.second.properties["name"] == name && each.second.parent == object.parent &&
             !undeleted_.contains(each.first) && !may_have_twin(request.type, each.first);
    });
    if (doubled > 1 && !lied_to_ && !fault_) fault_ = "three living objects of " + name;
  }
  book({Entry::Act::kCreate, request.idempotency_key, request.type, id, name, {}}, host);
  ever_.emplace(request.type, id);
  made_[request.idempotency_key] = resource(id, object);
  if (!named) keys_[request.idempotency_key] = id;
  auto& made = things[id] = std::move(object);
  if (!goes_on) return answer(Mutation(resource(id, made)), host);
  auto going = begin(request.type, id, {});
  made.ready_at =
      std::ranges::find_if(requests_, [&](const auto& each) { return each.second.id == id; })->second.ready_at;
  return answer(std::move(going), host);
}

Result<Mutation> Objects::update(const UpdateRequest& request, Host& host) {
  if (auto error = trouble(host)) return *error;
  auto& things = types_[request.type];
  const auto found = things.find(request.native_id);
  if (found == things.end() || !there(found->second)) return not_found();
  if (violates(request.precondition, resource(found->first, found->second))) return conflict("it is another");
  auto& object = found->second;
  if (request.prior != object.properties && !fault_) {
    fault_ = request.native_id + " was changed from " + request.prior.dump() + ", and was " + object.properties.dump();
  }
  book({Entry::Act::kUpdate, request.idempotency_key, request.type, request.native_id, object.properties["name"], {}},
       host);
  object.properties = request.desired;
  if (object.properties.contains("note")) object.note = take_note(object.properties);
  add_own(object.properties, request.native_id);
  if (request.type == "SIM::Object" && happens(faults_.progress)) {
    return answer(begin(request.type, request.native_id, {}), host);
  }
  return answer(Mutation(resource(found->first, object)), host);
}

Result<Mutation> Objects::remove(const DeleteRequest& request, Host& host) {
  if (auto error = trouble(host)) {
    undeleted_.insert(request.native_id);
    return *error;
  }
  auto& things = types_[request.type];
  const auto found = things.find(request.native_id);
  if (found == things.end() || !there(found->second)) return Mutation::deleted();
  if (violates(request.precondition, resource(found->first, found->second))) return conflict("it is another");
  if (strict_ && !inside(request.type, request.native_id).empty()) {
    undeleted_.insert(request.native_id);
    return conflict(request.native_id + std::string(kNotEmpty));
  }
  Entry entry{Entry::Act::kDelete, request.idempotency_key,          request.type,
              request.native_id,   found->second.properties["name"], {}};
  for (const auto& [type, all] : types_) {
    for (const auto& [id, object] : all) {
      if (object.properties.value("link", "") == request.native_id) entry.users.push_back(id);
    }
  }
  for (const auto& [type, id] : inside(request.type, request.native_id)) {
    entry.users.push_back(id);
    if (on_taken_along && !fault_) fault_ = on_taken_along(request.idempotency_key, type, id);
  }
  if (request.precondition == Precondition{} && !fault_) fault_ = request.native_id + " was deleted unseen";
  book(std::move(entry), host);
  erase(request.type, request.native_id);
  return answer(Mutation::deleted(), host);
}

Result<Mutation> Objects::status(const StatusRequest& request) {
  const auto found = requests_.find(request.request_id);
  if (found == requests_.end()) return not_found("no request " + request.request_id);
  const auto& going = found->second;
  if (going.ready_at > clock_.now()) return Mutation::in_progress(request.request_id, {}, Millis{0});
  if (going.fails) return *going.fails;
  auto& things = types_[going.type];
  const auto thing = things.find(going.id);
  if (thing == things.end()) return not_found(going.id + " is gone since");
  return Mutation(resource(thing->first, thing->second));
}

bool Objects::at_rest() const {
  const auto all_show = [&](const auto& type) {
    return std::ranges::all_of(type.second, [&](const auto& each) { return seen(each.second); });
  };
  return std::ranges::all_of(requests_, [&](const auto& each) { return each.second.ready_at <= clock_.now(); }) &&
         std::ranges::all_of(types_, all_show);
}

std::size_t Objects::removals(const std::string& type, const std::string& id) const {
  const auto found = removals_.find({type, id});
  return found == removals_.end() ? 0 : found->second;
}

std::size_t Objects::creations(const std::string& type, const std::string& id) const {
  const auto makes = [&](const Entry& entry) {
    return entry.act == Entry::Act::kCreate && entry.type == type && entry.id == id;
  };
  return static_cast<std::size_t>(std::ranges::count_if(books_, makes));
}

std::vector<std::pair<std::string, std::string>> Objects::inside(const std::string& type, const std::string& id) const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [inner, things] : types_) {
    if (owner_type(inner) != type) continue;
    for (const auto& [one, thing] : things) {
      if (thing.parent != id) continue;
      all.emplace_back(inner, one);
      std::ranges::copy(inside(inner, one), std::back_inserter(all));
    }
  }
  return all;
}

void Objects::edit() {
  std::vector<std::string> types{"SIM::Object", "SIM::Named"};
  for (const auto* more : {"SIM::Child", "SIM::Nest"}) {
    if (types_.contains(more)) types.emplace_back(more);
  }
  const auto& type = types.at(random_->below(types.size()));
  auto& things = types_[type];
  if (things.empty()) return;
  const auto thing = std::next(things.begin(), static_cast<std::ptrdiff_t>(random_->below(things.size())));
  if (!seen(thing->second)) return;
  if (random_->below(4) == 0) {
    erase(type, std::string(thing->first));
  } else {
    thing->second.properties["size"] = random_->below(5);
  }
}

void Objects::erase(const std::string& type, const std::string& id) {
  const auto take = [&](const std::string& kind, const std::string& one) {
    auto thing = types_[kind].extract(one);
    if (thing.empty()) return;
    dead_[{kind, one}] = std::move(thing.mapped());
    count_removal(kind, one);
  };
  const auto contents = inside(type, id);
  take(type, id);
  for (const auto& [inner, one] : contents) take(inner, one);
}

void Objects::revive() {
  if (dead_.empty()) return;
  const auto chosen = std::next(dead_.begin(), static_cast<std::ptrdiff_t>(random_->below(dead_.size())));
  const auto [type, id] = chosen->first;
  auto thing = dead_.extract(chosen).mapped();
  if (types_[type].contains(id) || (!thing.parent.empty() && !types_[owner_type(type)].contains(thing.parent))) return;
  if (type == "SIM::Named" && random_->below(2) == 0) thing.uid = "uid-" + std::to_string(++serial_);
  types_[type].emplace(id, std::move(thing));
  revived_.insert(id);
  undeleted_.insert(id);
}

void Objects::serve(Plugin& plugin, Random& random, const Weather& weather, Host& host) {
  const auto trouble = [&random, &weather] { return weather.trouble_of_read(random); };
  const auto changed = [this, &random, &weather, &host](auto change) {
    return [this, &random, &weather, &host, change](const auto& request, JobContext&) -> Result<Mutation> {
      if (auto error = weather.trouble(random)) return *error;
      return (this->*change)(request, host);
    };
  };
  for (const auto& [name, things] : types_) {
    const bool named = name == "SIM::Named";
    TypeInfo info;
    info.name = name;
    info.schema = named ? kNamedSchema : kObjectSchema;
    info.parent = owner_type(name);
    if (!named) info.page_size = kPage;
    info.read_batch = 5;
    info.settle = settle();
    if (named) info.list_gives = ListGives::kProperties;
    const auto* all = &things;
    auto list = [this, all, named, trouble, &random, &weather, place = owner_type(name),
                 nests = owner_type(name) == name](const ListRequest& request, JobContext&) -> Result<ListPage> {
      if (auto error = trouble()) return *error;
      if (request.parent && !types_.at(place).contains(request.parent->native_id)) return not_found();
      ListPage page;
      for (auto it = all->upper_bound(request.page_token); it != all->end(); ++it) {
        if (!seen(it->second) || (request.parent && it->second.parent != request.parent->native_id)) continue;
        if (nests && !request.parent && !it->second.parent.empty()) continue;
        if (page.items.size() == std::min<std::size_t>(request.page_size, kPage)) {
          page.next_page_token = page.items.back().native_id;
          break;
        }
        auto item = resource(it->first, it->second);
        if (!named) item.properties = {};
        page.items.push_back(std::move(item));
      }
      weather.thin_out(page, random);
      return page;
    };
    auto read = [this, all, trouble](const ReadRequest& request, JobContext&) -> Result<Resource> {
      if (auto error = trouble()) return *error;
      const auto it = all->find(request.native_id);
      if (it == all->end() || !seen(it->second)) return not_found();
      return resource(it->first, it->second);
    };
    auto& type = plugin.type(std::move(info));
    type.list(std::move(list)).read(std::move(read));
    type.create(changed(&Objects::create)).update(changed(&Objects::update)).remove(changed(&Objects::remove));
    if (!named) {
      type.status([this, trouble](const StatusRequest& request, JobContext&) -> Result<Mutation> {
        if (auto error = trouble()) return *error;
        return status(request);
      });
    }
  }
}

}  // namespace muster::sim
