#include "coordinator/declaration.h"

#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "coordinator/canonical.h"
#include "coordinator/json_object.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 5> kPartKinds{"literal", "env", "file", "secret", "resource"};
constexpr std::array<std::string_view, 4> kOnDrift{"observe", "alert", "revert", "absorb"};
constexpr std::array<std::string_view, 2> kReplace{"delete-first", "create-first"};

/// Takes fields of an object that came from outside, remembering the first that is not what it should be.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {
    if (!object.is_object()) fault_ = "an object is expected";
  }
  void text(const char* name, std::string& out) {
    if (const auto* value = find(name)) value->is_string() ? void(out = value->get<std::string>()) : blame(name);
  }
  void flag(const char* name, bool& out) {
    if (const auto* value = find(name)) value->is_boolean() ? void(out = value->get<bool>()) : blame(name);
  }
  void texts(const char* name, std::vector<std::string>& out) {
    each(name, [&](const Json& value) { value.is_string() ? out.push_back(value.get<std::string>()) : blame(name); });
  }
  template <typename E, std::size_t N>
  void word(const char* name, const std::array<std::string_view, N>& words, E& out) {
    std::string text_value;
    text(name, text_value);
    if (text_value.empty()) return;
    const auto it = std::ranges::find(words, text_value);
    it == words.end() ? blame(name) : void(out = static_cast<E>(it - words.begin()));
  }
  template <typename Use>
  void each(const char* name, Use use) {
    const auto* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array()) return blame(name);
    for (const auto& value : *list) use(value);
  }
  const Json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void blame(const std::string& name) {
    if (fault_.empty()) fault_ = name + " is not what it should be";
  }
  [[nodiscard]] std::optional<Error> fault() const {
    return fault_.empty() ? std::nullopt : std::optional(Error{Errc::kMalformed, fault_, {}, 0});
  }

 private:
  const Json& object_;
  std::string fault_;
};

Json to_json(const Hole& hole) {
  auto parts = Json::array();
  for (const auto& part : hole.parts) {
    auto& added = parts.emplace_back(Json{{kPartKinds[static_cast<std::size_t>(part.kind)], part.text}});
    if (part.kind == TextPart::Kind::kResource) added["path"] = part.path;
  }
  return {{"pointer", hole.pointer}, {"parts", std::move(parts)}};
}

Result<Hole> hole_from_json(const Json& json) {
  Hole hole;
  Fields fields(json);
  fields.text("pointer", hole.pointer);
  fields.each("parts", [&](const Json& value) {
    Fields part(value);
    for (std::size_t kind = 0; kind < kPartKinds.size(); ++kind) {
      if (part.find(std::string(kPartKinds[kind]).c_str()) == nullptr) continue;
      auto& added = hole.parts.emplace_back();
      added.kind = static_cast<TextPart::Kind>(kind);
      part.text(std::string(kPartKinds[kind]).c_str(), added.text);
      part.text("path", added.path);
      if (part.fault()) fields.blame("parts");
      return;
    }
    fields.blame("parts");
  });
  if (hole.parts.empty()) fields.blame("parts");
  try {
    static_cast<void>(Json::json_pointer(hole.pointer));
  } catch (const Json::exception&) {
    fields.blame("pointer");
  }
  if (auto fault = fields.fault()) return *fault;
  return hole;
}

}  // namespace

bool Hole::secret() const {
  return std::ranges::any_of(parts, [](const TextPart& part) {
    return part.kind != TextPart::Kind::kLiteral && part.kind != TextPart::Kind::kResource;
  });
}

std::set<std::string> DeclaredResource::needs() const {
  std::set<std::string> names(after.begin(), after.end());
  if (!parent.empty()) names.insert(parent);
  for (const auto& hole : holes) {
    for (const auto& part : hole.parts) {
      if (part.kind == TextPart::Kind::kResource) names.insert(part.text);
    }
  }
  return names;
}

std::vector<std::string> cycle_of(const std::vector<DeclaredResource>& resources) {
  std::map<std::string_view, std::set<std::string>> open;  // names that come first, of what is on no way out yet
  for (const auto& resource : resources) open.emplace(resource.name, resource.needs());
  for (auto& [name, needs] : open) std::erase_if(needs, [&](const auto& need) { return !open.contains(need); });
  std::map<std::string, std::vector<std::string_view>, std::less<>> users;  // needs go while it is used
  std::vector<std::string_view> ready;
  for (const auto& [name, needs] : open) {
    for (const auto& need : needs) users[need].push_back(name);
    if (needs.empty()) ready.push_back(name);
  }
  while (!ready.empty()) {
    const auto name = ready.back();
    ready.pop_back();
    for (const auto user : users[std::string(name)]) {
      auto& needs = open.at(user);
      needs.erase(std::string(name));
      if (needs.empty()) ready.push_back(user);
    }
    open.erase(name);
  }
  if (open.empty()) return {};
  std::vector<std::string> path;
  std::set<std::string_view> passed;  // a search of the way would take too long: it may be as long as the stack
  for (auto at = open.begin(); passed.insert(at->first).second; at = open.find(*at->second.begin())) {
    path.emplace_back(at->first);
  }
  const auto again = *open.at(path.back()).begin();
  path.erase(path.begin(), std::ranges::find(path, again));
  path.push_back(again);
  return path;
}

std::string cycle_text(const std::vector<std::string>& cycle) {
  std::string text;
  for (const auto& name : cycle) text += (text.empty() ? "" : " -> ") + name;
  return text;
}

std::string_view on_drift_name(OnDrift value) {
  return kOnDrift[static_cast<std::size_t>(value)];
}

namespace {

enum class PropertiesAs : std::uint8_t { kObject, kString };  // that holds the object

JsonText text_of(const DeclaredResource& r, PropertiesAs form) {
  JsonObject all(r.properties.size() * (form == PropertiesAs::kString ? 2 : 1) + 256);
  const auto text = [&](const char* key, std::string_view value) {
    if (!value.empty()) all.text(key, value);
  };
  // Keys in their order: the same resource is the same text.
  if (!r.after.empty()) all.raw("after", Json(r.after).dump());
  if (!r.holes.empty()) {
    auto holes = Json::array();
    for (const auto& hole : r.holes) holes.push_back(to_json(hole));
    all.raw("holes", holes.dump());
  }
  text("name", r.name);
  text("native_id", r.native_id);
  if (r.on_drift != OnDrift::kAlert) text("on_drift", on_drift_name(r.on_drift));
  text("parent", r.parent);
  form == PropertiesAs::kString ? all.text("properties", r.properties) : all.raw("properties", r.properties);
  if (r.protect) all.flag("protect", true);
  if (r.replace != ReplaceOrder::kAsType) text("replace", kReplace[static_cast<std::size_t>(r.replace)]);
  text("target", r.target);
  text("type", r.type);
  return all.take();
}

}  // namespace

JsonText declared_text(const DeclaredResource& r) {
  return text_of(r, PropertiesAs::kObject);
}

JsonText declared_request(const DeclaredResource& r) {
  return text_of(r, PropertiesAs::kString);
}

Json to_json(const DeclaredResource& r) {
  return Json::parse(declared_text(r));
}

Json to_json(const Declaration& declaration) {
  auto resources = Json::array();
  for (const auto& resource : declaration.resources) resources.push_back(to_json(resource));
  return {{"stack", declaration.stack}, {"resources", std::move(resources)}};
}

Result<DeclaredResource> declared_resource_from_json(const Json& json) {
  DeclaredResource r;
  Fields fields(json);
  fields.text("name", r.name);
  fields.text("type", r.type);
  fields.text("target", r.target);
  fields.text("native_id", r.native_id);
  fields.text("parent", r.parent);
  fields.texts("after", r.after);
  fields.word("replace", kReplace, r.replace);
  fields.flag("protect", r.protect);
  fields.word("on_drift", kOnDrift, r.on_drift);
  if (const auto* properties = fields.find("properties")) {
    const auto* const text = properties->get_ptr<const std::string*>();
    if (text != nullptr && is_canonical_object(*text)) {
      r.properties = *text;
    } else if (text == nullptr && properties->is_object()) {
      r.properties = properties->dump();
    } else if (auto object = canonical_object(text != nullptr ? *text : "")) {
      r.properties = std::move(*object);
    } else {
      fields.blame("properties");
    }
  }
  fields.each("holes", [&](const Json& value) {
    auto hole = hole_from_json(value);
    hole ? r.holes.push_back(std::move(*hole)) : fields.blame("holes");
  });
  if (!r.holes.empty() && !fields.fault()) {
    const auto values = Json::parse(r.properties, nullptr, false);
    const auto is_open = [&](const Hole& hole) {
      const Json::json_pointer at(hole.pointer);
      return values.contains(at) && values.at(at).is_null();
    };
    if (!std::ranges::all_of(r.holes, is_open)) fields.blame("holes");
  }
  for (const auto* needed : {&r.name, &r.type, &r.target}) {
    if (needed->empty()) fields.blame("a resource without name, type or target");
  }
  if (auto fault = fields.fault()) return Error{fault->code, "resource '" + r.name + "': " + fault->message, {}, 0};
  return r;
}

Result<Declaration> declaration_from_json(const Json& json) {
  Declaration declaration;
  Fields fields(json);
  fields.text("stack", declaration.stack);
  if (declaration.stack.empty()) fields.blame("stack");
  std::optional<Error> wrong;
  fields.each("resources", [&](const Json& value) {
    auto resource = declared_resource_from_json(value);
    if (resource) {
      declaration.resources.push_back(std::move(*resource));
    } else if (!wrong) {
      wrong = resource.error();
    }
  });
  if (wrong) return *wrong;
  if (auto fault = fields.fault()) return *fault;
  return declaration;
}

}  // namespace muster
